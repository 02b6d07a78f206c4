"""CAST and CONVERT: from the type of an operand to the type that is asked for, where that is
exact."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from applier.binlog.charsets import CHARSETS, charset
from applier.tables.expressions.calls import as_bytes
from applier.tables.expressions.comparisons import moment_of
from applier.tables.expressions.documents.json_functions import document_of
from applier.tables.expressions.literals import literal_collation, well_formed
from applier.tables.expressions.operands import (
    BYTES,
    COLUMN,
    DATES,
    Dialect,
    Operand,
    OperandKind,
    Value,
    as_number,
    as_text,
    constant,
    document_text,
    mapped,
    unsupported,
)
from applier.tables.expressions.operators import EXACT, checked_decimal, null_or

_TYPE = re.compile(r"([A-Za-z ]+?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_WORD = (1 << 64) - 1


def cast(operand: Operand, kind: str, dialect: Dialect) -> Operand:
    """CAST(operand AS kind). Raises ReplicationError 1235 where it is not exact here."""
    match = _TYPE.fullmatch(kind.strip())
    sql = f"CAST({operand.sql} AS {kind.lower()})"
    build = None if match is None else _CASTS.get(" ".join(match[1].upper().split()))
    if build is None or match is None:
        raise unsupported(f"CAST(… AS {kind.lower()})")
    if operand.kind is OperandKind.NULL:
        return constant(OperandKind.NULL, None, sql=sql)
    return build(operand, match[2], match[3], dialect, sql)


def _integer(operand: Operand, *, unsigned: bool, sql: str) -> Operand:
    if operand.kind is OperandKind.TEXT:
        convert: Callable[[Any], int] = _integer_of_text
        inner = operand
    else:
        inner = as_number(operand)
        convert = _integer_of_double if inner.kind is OperandKind.DOUBLE else _integer_of_number

    def checked(value: Any) -> int:
        number = convert(value)
        if unsigned and number < 0 and operand.kind is OperandKind.TIME:
            raise unsupported(sql)
        if unsigned and number < 0 and inner.kind is OperandKind.INTEGER:
            return number & _WORD
        if unsigned and number < 0 and operand.kind is OperandKind.TEXT and number >= -(1 << 63):
            return number & _WORD
        if not unsigned and number >= 1 << 63 and inner.unsigned:
            return number - (1 << 64)
        if not (0 if unsigned else -(1 << 63)) <= number < (1 << 64 if unsigned else 1 << 63):
            raise unsupported(f"{sql}: out of range")
        return number

    return mapped(
        inner,
        OperandKind.INTEGER,
        checked,
        digits=0,
        unsigned=unsigned,
        sql=sql,
        column=None,
        literal=False,
    )


def _integer_of_text(text: str) -> int:
    match = re.fullmatch(r"\s*([-+]?\d+)[^\d.eE]*", text)
    if match is None:
        if re.match(r"\s*[-+]?[\d.]", text):
            raise unsupported(f"'{text[:40]}' as an integer")
        return 0
    return int(match[1])


def _integer_of_double(value: float) -> int:
    return round(value)


def _integer_of_number(value: Any) -> int:
    return value if isinstance(value, int) else int(value.to_integral_value("ROUND_HALF_UP"))


def _signed(
    operand: Operand, _length: str | None, _scale: str | None, _dialect: Dialect, sql: str
) -> Operand:
    return _integer(operand, unsigned=False, sql=sql)


def _unsigned(
    operand: Operand, _length: str | None, _scale: str | None, _dialect: Dialect, sql: str
) -> Operand:
    return _integer(operand, unsigned=True, sql=sql)


def _char(
    operand: Operand, length: str | None, _scale: str | None, dialect: Dialect, sql: str
) -> Operand:
    if operand.kind is OperandKind.JSON:
        read = document_of(operand, sql, dialect)
        return (
            Operand(
                OperandKind.TEXT,
                _json_text(read, dialect),
                sql,
                collation="utf8mb4_bin",
                strength=2,
            )
            if length is None
            else _refuse(sql)
        )
    text = as_text(operand, dialect)
    cut = None if length is None else int(length)
    return mapped(
        text,
        OperandKind.TEXT,
        lambda value: value[:cut],
        sql=sql,
        column=None,
        literal=False,
        collation=dialect.collation,
        strength=2,
    )


def recoded(operand: Operand, name: str, dialect: Dialect) -> Operand:
    """CONVERT … USING a character set. Raises ReplicationError 1235 for bytes that are no text of
    it, and for characters that it lacks, which become "?"."""
    sql = f"CONVERT({operand.sql} USING {name})"
    if name == "binary":
        return replace(as_bytes(operand, dialect), sql=sql, column=None, literal=False)
    if name not in CHARSETS:
        raise unsupported(sql)
    own = charset(name)
    text = operand if operand.kind in BYTES else as_text(operand, dialect)

    def convert(value: str | bytes) -> str:
        try:
            data = value if isinstance(value, bytes) else own.encode(value)
        except UnicodeError:
            raise unsupported(sql) from None
        found = well_formed(own, data)
        if found is None or (isinstance(value, str) and found != value):
            raise unsupported(sql)
        return found

    return Operand(
        OperandKind.TEXT,
        null_or([text], convert),
        sql,
        collation=literal_collation(own, dialect),
        strength=COLUMN,
    )


def _json_text(read: Callable[[Any], Value], dialect: Dialect) -> Callable[[Any], Value]:
    def value(scope: Any) -> Value:
        found = read(scope)
        return None if found is None else document_text(found, dialect)

    return value


def _refuse(sql: str) -> Operand:
    raise unsupported(sql)


def _binary(
    operand: Operand, length: str | None, _scale: str | None, dialect: Dialect, sql: str
) -> Operand:
    if length is not None or operand.kind in (
        OperandKind.FLOAT,
        OperandKind.DOUBLE,
        OperandKind.JSON,
        OperandKind.OTHER,
        OperandKind.BIT,
    ):
        raise unsupported(sql)
    if operand.kind in (OperandKind.BINARY, OperandKind.HEX):
        return mapped(operand, OperandKind.BINARY, bytes, sql=sql, literal=False)
    text = as_text(operand, dialect)
    return mapped(
        text, OperandKind.BINARY, text.charset.encode, sql=sql, column=None, literal=False
    )


def _decimal(
    operand: Operand, length: str | None, scale: str | None, _dialect: Dialect, sql: str
) -> Operand:
    digits = int(scale or 0)
    whole = int(length or 10) - digits
    places = Decimal(1).scaleb(-digits)
    if operand.kind is OperandKind.TEXT:
        raise unsupported(sql)
    inner = as_number(operand)
    if inner.kind is OperandKind.DOUBLE:
        raise unsupported(sql)

    def compute(value: Any) -> Decimal:
        number = Decimal(value).quantize(places, context=EXACT)
        if number.copy_abs() >= Decimal(10) ** whole:
            raise unsupported(f"{sql}: out of range")
        return checked_decimal(number, sql)

    return mapped(
        inner,
        OperandKind.DECIMAL,
        compute,
        digits=digits,
        sql=sql,
        unsigned=False,
        column=None,
        literal=False,
    )


def _double(
    operand: Operand, length: str | None, _scale: str | None, _dialect: Dialect, sql: str
) -> Operand:
    if length is not None:
        raise unsupported(sql)
    return mapped(
        as_number(operand), OperandKind.DOUBLE, float, digits=0, sql=sql, column=None, literal=False
    )


def _date(
    operand: Operand, _length: str | None, _scale: str | None, dialect: Dialect, sql: str
) -> Operand:
    if operand.kind not in DATES | {OperandKind.TEXT}:
        raise unsupported(sql)

    def compute(value: Any) -> Value:
        parts = moment_of(value) if isinstance(value, str) else value
        if isinstance(parts, int) or not all(parts[:3]) or parts[6]:
            raise unsupported(sql)
        return (*parts[:3], 0, 0, 0, 0)

    return Operand(OperandKind.DATE, null_or([operand], compute), sql)


def _datetime(
    operand: Operand, length: str | None, _scale: str | None, _dialect: Dialect, sql: str
) -> Operand:
    digits = int(length or 0)
    if operand.kind not in DATES | {OperandKind.TEXT} or digits > 6:
        raise unsupported(sql)
    unit = 10 ** (6 - digits)

    def compute(value: Any) -> Value:
        parts = moment_of(value) if isinstance(value, str) else value
        if isinstance(parts, int) or not all(parts[:3]) or parts[6] % unit:
            raise unsupported(sql)
        return parts

    return Operand(OperandKind.DATETIME, null_or([operand], compute), sql, digits)


def _json(
    operand: Operand, _length: str | None, _scale: str | None, dialect: Dialect, sql: str
) -> Operand:
    if operand.kind not in (OperandKind.JSON, OperandKind.TEXT):
        raise unsupported(sql)
    return Operand(OperandKind.JSON, document_of(operand, sql, dialect), sql)


_Cast = Callable[[Operand, str | None, str | None, Dialect, str], Operand]
_CASTS: dict[str, _Cast] = {
    **dict.fromkeys(("SIGNED", "SIGNED INTEGER", "SIGNED INT", "INT", "INTEGER"), _signed),
    **dict.fromkeys(("UNSIGNED", "UNSIGNED INTEGER", "UNSIGNED INT"), _unsigned),
    **dict.fromkeys(("CHAR", "VARCHAR", "CHARACTER"), _char),
    "BINARY": _binary,
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC"), _decimal),
    **dict.fromkeys(("DOUBLE", "REAL", "DOUBLE PRECISION"), _double),
    "DATE": _date,
    "DATETIME": _datetime,
    "JSON": _json,
}
"""Held against real servers by tests/tables/test_functions_servers.py."""
