"""Values of expressions into columns: for each type of column the types of operands that are stored
exactly.

Held against real servers by tests/tables/test_functions_servers.py. What is not in the table is
refused with 1235. A value that does not fit raises ValueRefused, with what the server stores
instead where it is not in strict mode.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from applier.binlog.charsets import charset
from applier.binlog.types import ValueRefused, from_sql
from applier.binlog.types import json as json_documents
from applier.binlog.types.names import zerofill_width
from applier.binlog.types.numbers import TWO_POINTS, float_limit, leading_number, rounded_float
from applier.binlog.types.texts import labels_of
from applier.tables.expressions.comparisons import ASCII_EXACT, written_text
from applier.tables.expressions.moment_storing import MOMENT_WRITERS
from applier.tables.expressions.operands import (
    BYTES,
    Dialect,
    Operand,
    OperandKind,
    Scope,
    Session,
    Value,
    as_number,
    as_parsed,
    as_text,
    document_text,
)
from applier.tables.expressions.operators import has_fixed_digits
from applier.tables.expressions.store_column import StoreColumn, Stored, Write
from lookup.table import Column


def storer(column: Column, operand: Operand, dialect: Dialect) -> Callable[[Scope], Stored]:
    """A function from a scope to the stored form of an operand's value, None for NULL.

    Raises ReplicationError 1235 where the operand's type is not stored exactly; the function does
    so for such values, and ValueRefused for one that does not fit.
    """
    if operand.kind is OperandKind.NULL:
        return lambda scope: None
    family = _FAMILIES.get(column.type, _same_type)
    if family in _READ_FROM_TEXT:
        operand = written_text(operand)
    target = StoreColumn(column, operand, dialect)
    write = family(target)
    inner = operand.value

    def stored(scope: Scope) -> Stored:
        value = inner(scope)
        return None if value is None else write(value, scope.session)

    return stored


def _numeric(target: StoreColumn) -> Write:
    """Into integers, DECIMAL, FLOAT and DOUBLE."""
    column, operand = target.column, target.operand
    convert = from_sql(column)
    is_integer = "int" in column.type
    if operand.kind in (
        OperandKind.LABELS,
        OperandKind.BINARY,
        OperandKind.JSON,
        OperandKind.OTHER,
    ):
        raise target.unknown()
    if (
        operand.kind in (OperandKind.DATE, OperandKind.DATETIME, OperandKind.TIME)
        and operand.column is None
        and not operand.literal
    ):
        raise target.unknown()
    if operand.kind is OperandKind.TEXT:
        prepare: Callable[[Any], Any] = str
    else:
        inner = as_number(Operand(operand.kind, lambda scope: scope, operand.sql, operand.digits))
        number: Callable[[Any], Any] = inner.value
        prepare = number

    digits_differ = not target.dialect.is_modern
    is_copied = _may_be_copied(target)
    rounded = rounded_float(column) if is_copied else float
    # 5.x copies a DATE column into an integer one as a DATETIME (seen on 5.7.29)
    has_clock = is_integer and target.dialect.old and operand.kind is OperandKind.DATE
    has_clock = has_clock and operand.column is not None

    def write(value: Value, _session: Session) -> Stored:
        found = prepare(value)
        if has_clock:
            found = int(found) * 1_000_000
        if isinstance(found, str) and _HUGE_EXPONENT.search(found):
            raise target.unknown()
        if is_integer and digits_differ and isinstance(found, str) and TWO_POINTS.match(found):
            raise target.unknown()
        if is_copied and (rounded(found) != found or abs(found) > float_limit(column)):
            raise target.unknown()
        if is_integer and isinstance(found, float):
            found = round(found) if abs(found) < 1 << 65 else Decimal(found)
        if (
            column.unsigned
            and not is_integer
            and (leading_number(found) if isinstance(found, str) else found) < 0
        ):
            raise target.refused(1264, "Out of range value", convert(0))
        return convert(found)

    return write


def _may_be_copied(target: StoreColumn) -> bool:
    """MySQL copies a FLOAT or DOUBLE column into a (M,D) of its type without rounding, and each
    expression that a SELECT keeps in a temporary table is such a column (`fields_are_memcpyable`,
    sql/field_conv.cc 9.7, and 5.7); MariaDB rounds."""
    column, operand = target.column, target.operand
    is_fixed = has_fixed_digits(column)
    is_written = operand.literal or operand.kind is not OperandKind.DOUBLE
    return is_fixed and not is_written and not target.dialect.mariadb


_HUGE_EXPONENT = re.compile(r"[0-9.][eE][-+]?0*[1-9][0-9]{8}")
"""Servers differ in what such a text becomes."""


def _text(target: StoreColumn) -> Write:
    column, operand, dialect = target.column, target.operand, target.dialect
    own = charset(column.charset)
    convert = from_sql(column)
    if operand.kind in BYTES:
        return lambda value, session: convert(_well_formed(target, value))
    if operand.kind is OperandKind.JSON:
        return lambda value, session: convert(document_text(value, dialect))
    text = _text_of(target)
    limit = column.length

    def write(value: Value, _session: Session) -> Stored:
        found = text(value)
        if operand.kind is OperandKind.DOUBLE and limit is not None and len(found) > limit:
            raise target.unknown()
        try:
            return convert(found)
        except ValueRefused as refused:
            if refused.closest is None:
                refused.closest = _closest_text(
                    convert, "".join(_or_mark(own.encode, char) for char in found)
                )
            raise

    return write


def _text_of(target: StoreColumn) -> Callable[[Any], str]:
    """The text that is stored. A number of a column goes into CHAR, VARCHAR and the like as a
    number, and into TEXT and BLOB as the column shows it: YEAR with four digits, ZEROFILL
    (`field_conv`; seen on 5.7.29, 9.7.4, 10.11.18). A DECIMAL has all its digits; functions of text
    see only those that it shows."""
    operand = target.operand
    shown = operand.column if target.column.type.endswith(("text", "blob")) else None
    if operand.of_groups:
        raise target.unknown()
    if operand.kind is OperandKind.DECIMAL:
        width = 0 if shown is None else zerofill_width(shown)
        return lambda value: f"{value:f}".rjust(width, "0")
    is_number = operand.kind is OperandKind.YEAR and operand.column is not None and shown is None
    kind = OperandKind.INTEGER if is_number else operand.kind
    bare = Operand(
        kind, lambda scope: scope, operand.sql, operand.digits, collation=operand.collation,
        column=shown,
    )  # fmt: skip
    text: Callable[[Any], str] = as_text(bare, target.dialect).value
    return text


def _closest_text(convert: Callable[[Any], Any], text: str) -> Stored:
    try:
        return convert(text)
    except ValueRefused as refused:
        return refused.closest


def _or_mark(encode: Callable[[str], bytes], char: str) -> str:
    """A character that the character set lacks becomes a question mark."""
    try:
        encode(char)
    except UnicodeError:
        return "?"
    return char


def _well_formed(target: StoreColumn, value: bytes) -> bytes:
    """Bytes are taken as they are; those that are no text of the column's character set are
    refused."""
    own = charset(target.column.charset)
    value = b"\0" * (-len(value) % len(own.pad)) + value
    text = own.decode(value)
    if own.codec == "utf-8" and any("\ud800" <= char <= "\udfff" for char in text):
        if target.dialect.mariadb:
            raise target.unknown()
        good = next(at for at in range(len(value), -1, -1) if _is_utf8(value[:at]))
        raise target.refused(1366, "Incorrect string value", from_sql(target.column)(value[:good]))
    try:
        same = own.encode(text) == value
    except UnicodeError:
        same = False
    if not same:
        raise target.unknown()
    return value


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _bytes(target: StoreColumn) -> Write:
    operand = target.operand
    convert = from_sql(target.column)
    if operand.is_bytes:
        return lambda value, session: convert(value)
    if operand.kind is OperandKind.JSON:
        raise target.unknown()
    text = _text_of(target)
    encode = operand.charset.encode if operand.collation is not None else str.encode

    def write(value: Value, _session: Session) -> Stored:
        try:
            found = encode(text(value))
        except UnicodeEncodeError:  # a character that the connection's set does not have
            raise target.unknown() from None
        if (
            operand.kind is OperandKind.DOUBLE
            and target.column.length is not None
            and len(found) > target.column.length
        ):
            raise target.unknown()
        return convert(found)

    return write


def _year(target: StoreColumn) -> Write:
    convert = from_sql(target.column)
    if target.operand.kind not in (OperandKind.INTEGER, OperandKind.YEAR, OperandKind.TEXT):
        raise target.unknown()

    def write(value: Value, _session: Session) -> Stored:
        if isinstance(value, str) and not value.strip(" "):
            return convert(0)  # 0000, where '0' is 2000; an error in strict mode
        if isinstance(value, str) and not (value.isdigit() and len(value) in (1, 2, 4)):
            raise target.unknown()
        return convert(value)

    return write


# others


def _bit(target: StoreColumn) -> Write:
    """Bytes are digits of base 256, also those of a text in its own character set; a literal that
    is a number beside numbers has at most eight."""
    convert, kind = from_sql(target.column), target.operand.kind
    if kind is OperandKind.TEXT:
        encode = target.operand.charset.encode
        return lambda value, session: convert(encode(value))
    if kind not in (OperandKind.INTEGER, OperandKind.BIT, *BYTES):
        raise target.unknown()

    def write(value: Value, _session: Session) -> Stored:
        if (
            value < 0
            if isinstance(value, int)
            else target.operand.kind is OperandKind.HEX and len(value) > 8
        ):
            raise target.unknown()
        return convert(value)

    return write


def _labels(target: StoreColumn) -> Write:
    """ENUM and SET: a label as it stands in the definition, or in another case where the collation
    ignores it."""
    column, kind = target.column, target.operand.kind
    convert, labels = from_sql(column), labels_of(column.labels)
    if kind not in (OperandKind.TEXT, OperandKind.LABELS, OperandKind.INTEGER, OperandKind.HEX):
        raise target.unknown()
    own = charset(column.charset)
    folded = ASCII_EXACT.fullmatch(column.collation or own.default_collation) is not None
    most = len(column.labels) if column.type == "enum" else (1 << len(column.labels)) - 1
    pad = "" if column.charset == "binary" else " "
    read = target.operand.column
    may_be_zero = (
        kind is OperandKind.LABELS
        and read is not None
        and read.type == "enum"
        and "" not in read.labels
    )
    """ENUM to ENUM: the value 0 stays as it is (`field_conv`, sql/field_conv.cc)."""

    def write(value: Value, _session: Session) -> Stored:
        if isinstance(value, int):
            if not 0 <= value <= most or (value == 0 and column.type == "enum"):
                raise target.refused(
                    1265, "Data truncated", 0 if column.type == "enum" else value & most
                )
            return value
        if isinstance(value, bytes):
            value = own.decode(value)
        pieces = [value] if column.type == "enum" else value.split(",")
        known = all(piece.rstrip(pad) in labels.exact or piece in labels.exact for piece in pieces)
        if not known and value and not (folded and value.isascii() and labels.is_ascii):
            raise target.unknown()
        if column.type == "set" and not known and re.search("[0-9]", value):
            raise target.unknown()
        if column.type == "enum" and value == "" and "" not in labels.exact:
            if may_be_zero:
                return 0
            raise target.refused(1265, "Data truncated", 0)
        return convert(value)

    return write


def _json(target: StoreColumn) -> Write:
    """From documents and texts. Servers take a literal that is not UTF-8 with a warning (1300)."""
    operand = target.operand
    if operand.kind is OperandKind.JSON:
        return lambda value, session: json_documents.encode(as_parsed(value))
    if operand.kind is not OperandKind.TEXT and not (
        operand.kind is OperandKind.OTHER and operand.is_bytes
    ):
        raise target.unknown()
    first = target.dialect.old

    def write(value: Value, _session: Session) -> Stored:
        text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
        return json_documents.encode(json_documents.parse_text(text, first=first))

    return write


def _printed(target: StoreColumn) -> Write:
    """MariaDB's UUID, INET4 and INET6 from their text."""
    if target.operand.kind is OperandKind.OTHER:
        return _same_type(target)
    if target.operand.kind is not OperandKind.TEXT:
        raise target.unknown()
    convert = from_sql(target.column)
    return lambda value, session: convert(value)


_SHAPES = {
    "geometry": range(1, 8), "point": (1,), "linestring": (2,), "polygon": (3,), "multipoint": (4,),
    "multilinestring": (5,), "multipolygon": (6,), "geometrycollection": (7,),
}  # fmt: skip
"""Column type -> the WKB types that it holds."""
_SRID_BYTES, _WKB_HEAD_BYTES = 4, 5


def _geometry(target: StoreColumn) -> Write:
    """From bytes as servers keep them: the SRID, then WKB in little endian, which they store as it
    is (`Field_geom::store`)."""
    if not target.operand.is_bytes:
        return _same_type(target)
    shapes, srid = _SHAPES[target.column.type], target.column.srid

    def write(value: Value, _session: Session) -> Stored:
        assert isinstance(value, bytes)
        order, shape = value[_SRID_BYTES : _SRID_BYTES + 1], value[_SRID_BYTES + 1 :][:4]
        if (
            len(value) <= _SRID_BYTES + _WKB_HEAD_BYTES
            or order != b"\x01"
            or int.from_bytes(shape, "little") not in shapes
            or srid not in (None, int.from_bytes(value[:_SRID_BYTES], "little"))
        ):
            raise target.unknown()
        return value

    return write


def _same_type(target: StoreColumn) -> Write:
    """A copy of a column of the same type."""
    source = target.operand.column
    if source is None or (source.type, source.length, source.srid) != (
        target.column.type,
        target.column.length,
        target.column.srid,
    ):
        raise target.unknown()
    return lambda value, session: value


_FAMILIES: dict[str, Callable[[StoreColumn], Write]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _numeric),
    **dict.fromkeys(("decimal", "float", "double"), _numeric),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _text),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _bytes),
    "vector": _bytes,
    **MOMENT_WRITERS, "year": _year,
    "bit": _bit, "enum": _labels, "set": _labels, "json": _json,
    "uuid": _printed, "inet4": _printed, "inet6": _printed,
    **dict.fromkeys(_SHAPES, _geometry),
}  # fmt: skip
_READ_FROM_TEXT = frozenset({_numeric, _year, _labels, *MOMENT_WRITERS.values()})
