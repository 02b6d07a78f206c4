"""Comparison of typed operands, and LIKE. What does not compare exactly is refused with 1235."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from applier.binlog.types import ValueRefused, from_sql
from applier.binlog.types.temporal import Parts
from applier.tables.collations.collation import is_exact, sort_key
from applier.tables.expressions.operands import (
    BYTES,
    CHARACTERS,
    DATES,
    NUMBERS,
    Dialect,
    Operand,
    OperandKind,
    Scope,
    Session,
    Value,
    as_number,
    as_text,
    constant,
    mapped,
    rounded_half_up,
    shared_collation,
    unsupported,
)
from applier.tables.expressions.operators import REALS, has_fixed_digits, null_or
from lookup.table import Column

ASCII_EXACT = re.compile(
    r"(latin1_swedish|ascii_general|latin[12]_general|cp125[01]_general|\w+_general|\w+_general_mysql500|\w+_unicode|\w+_unicode_520)_ci"
    r"|utf8mb4_0900_(ai_ci|as_ci|as_cs)|uca1400_\w+|\w+_uca1400_(ai|as)_c[is]"
)
"""Collations whose keys are exact for ASCII text (`applier.tables.collations.collation`)."""

Order = Callable[[Any, Any], int]
_READ_FROM_TEXT = NUMBERS | DATES | {OperandKind.TIME}
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?")
_TIME = re.compile(r"(-?)(\d{2,3}):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,6}))?)?")
_PLAIN_NUMBER = re.compile(r"-?\d{1,15}|-?(?=[\d.]{3,16}$)\d+\.\d+")


def _plain(one: Any, two: Any) -> int:
    if isinstance(one, tuple) is not isinstance(two, tuple):
        raise unsupported("a date compared with a time")
    return int(one > two) - int(one < two)


def _as_doubles(one: Any, two: Any) -> int:
    return _plain(float(one), float(two))


_COMPARED_AS_STORED = frozenset({"uuid", "inet4", "inet6"})


def comparison(one: Operand, two: Operand, dialect: Dialect) -> Callable[[Scope], int | None]:
    """-1, 0 or 1; None where one is NULL. Raises ReplicationError 1235 for what is not compared
    exactly here."""
    left, right, order = _comparable(one, two, dialect)
    return null_or([left, right], order)


def fixed_digits(operand: Operand) -> int | None:
    """Those of a FLOAT(M,D) or DOUBLE(M,D), or of a number that is exact; None for any other."""
    if operand.kind not in REALS:
        return operand.digits
    return operand.digits if has_fixed_digits(operand.column) else None


def _near(one: Operand, two: Operand) -> Order | None:
    """How two numbers compare of which one is a FLOAT(M,D) or DOUBLE(M,D) and the other has fixed
    digits, too: half a unit behind the last digit of both is no difference
    (`Arg_comparator::compare_real_fixed`, sql/item_cmpfunc.cc; seen on 5.7.29, 9.7.4 and MariaDB
    10.11.18). None for all others. Raises ReplicationError 1235 for one that was worked out from
    such a column."""
    if not {one.kind, two.kind} <= NUMBERS or REALS.isdisjoint({one.kind, two.kind}):
        return None
    if one.of_fixed or two.of_fixed:
        raise unsupported(f"{one.sql} compared with {two.sql}")
    first, second = fixed_digits(one), fixed_digits(two)
    if first is None or second is None:
        return None
    within = 5 / 10.0 ** (max(first, second) + 1)

    def order(left: Any, right: Any) -> int:
        found, wanted = float(left), float(right)
        return 0 if abs(found - wanted) < within else _plain(found, wanted)

    return order


def _comparable(one: Operand, two: Operand, dialect: Dialect) -> tuple[Operand, Operand, Order]:
    kinds = {one.kind, two.kind}
    columns = {operand.column.type for operand in (one, two) if operand.column is not None}
    if columns & _COMPARED_AS_STORED and OperandKind.NULL not in kinds:
        return _as_stored(one, two), _as_stored(two, one), _plain
    if OperandKind.BINARY in kinds and kinds & _READ_FROM_TEXT:
        one, two = written_text(one), written_text(two)
        kinds = {one.kind, two.kind}
    if OperandKind.NULL in kinds:
        return one, two, _plain
    if kinds <= NUMBERS | {OperandKind.HEX} and kinds & NUMBERS:
        _refuse_short_years(one, two)
        left, right = as_number(one), as_number(two)
        return left, right, _as_doubles if OperandKind.DOUBLE in (left.kind, right.kind) else _plain
    if kinds <= CHARACTERS:
        left, right = as_text(one, dialect), as_text(two, dialect)
        return left, right, text_order([left, right])
    if one.is_bytes and two.is_bytes and kinds & BYTES:
        return one, two, _plain
    if kinds & BYTES and OperandKind.TEXT in kinds and kinds <= BYTES | {OperandKind.TEXT}:
        left, right = _read_as(one, two), _read_as(two, one)
        if left.kind is right.kind:
            return left, right, text_order([left, right])
        return _encoded(one), _encoded(two), _plain
    if kinds <= DATES or kinds == {OperandKind.TIME}:
        return one, two, _plain
    if kinds & CHARACTERS and kinds & DATES and len(kinds) == 2:
        return _moment(one), _moment(two), _plain
    if kinds & CHARACTERS and OperandKind.TIME in kinds and len(kinds) == 2:
        digits = 6 if dialect.mariadb else (one if one.kind is OperandKind.TIME else two).digits
        return _time(one, digits), _time(two, digits), _plain
    if (
        OperandKind.TEXT in kinds
        and kinds & NUMBERS
        and kinds <= {OperandKind.TEXT} | NUMBERS - {OperandKind.YEAR}
    ):
        return _short_number(one), _short_number(two), _as_doubles
    raise unsupported(f"{one.sql} compared with {two.sql}")


def _refuse_short_years(one: Operand, two: Operand) -> None:
    """Beside a YEAR the server takes 1 to 99 for years of this century and the last."""
    if OperandKind.YEAR in (one.kind, two.kind) and one.kind is not two.kind:
        raise unsupported(f"{one.sql} compared with {two.sql}")


def _read_as(operand: Operand, other: Operand) -> Operand:
    """A literal of bytes beside a text whose collation is stronger, as bytes of that text's
    character set (`DTCollation::aggregate`, sql/item.cc); another operand as it is."""
    if operand.kind not in BYTES or not operand.literal or other.strength >= operand.strength:
        return operand
    own = other.charset

    def read(data: bytes) -> str:
        text = own.decode(data)
        if own.encode(text) != data:
            raise unsupported(f"{operand.sql} in the character set {own.name}")
        return text

    return mapped(operand, OperandKind.TEXT, read, collation=other.collation)


def _encoded(operand: Operand) -> Operand:
    if operand.kind in BYTES:
        return operand
    encode = operand.charset.encode
    return mapped(operand, OperandKind.BINARY, encode)


def _moment(operand: Operand) -> Operand:
    """A text literal in the standard form beside a date or time."""
    if operand.kind not in CHARACTERS:
        return operand
    if not operand.literal:
        raise unsupported(f"{operand.sql} as a date")
    return mapped(operand, OperandKind.DATETIME, moment_of)


def _time(operand: Operand, digits: int) -> Operand:
    """A text literal beside a TIME of so many digits. MySQL rounds the text to them where it
    compares the two, but not in an IN list of 8.0 and later (seen on 5.7.29 and 9.7.4): one with
    more digits is refused."""
    if operand.kind is OperandKind.TIME:
        return operand

    def fits(value: Parts | int) -> Parts | int:
        if isinstance(value, int) and value % 10 ** (6 - digits):
            raise unsupported(f"{operand.sql} compared with a TIME of {digits} digits")
        return value

    return mapped(_moment(operand), OperandKind.DATETIME, fits)


def written_text(operand: Operand) -> Operand:
    """A literal of bytes in ASCII, as a client with the character set binary sends them, as the
    text that a server reads a number, a date or a label from; another operand as it is."""
    if operand.kind is not OperandKind.BINARY or not operand.literal:
        return operand
    data = operand.value(Scope((), Session()))
    if not isinstance(data, bytes) or not data.isascii():
        return operand
    text = data.decode()
    return constant(OperandKind.TEXT, text, sql=operand.sql, collation="latin1_swedish_ci")


def moment_of(text: str) -> Parts | int:
    """The parts of a date, or the microseconds of a time, in the form that the server itself
    prints. Raises ReplicationError 1235."""
    match = _DATE.fullmatch(text)
    if match is not None:
        year, month, day, *clock = (int(part or 0) for part in match.groups()[:6])
        if month <= 12 and day <= 31 and clock[0] < 24 and max(clock[1:]) < 60:
            return (
                year,
                month,
                day,
                clock[0],
                clock[1],
                clock[2],
                int((match[7] or "").ljust(6, "0")),
            )
    match = _TIME.fullmatch(text)
    if match is None or int(match[2]) > 838:
        raise unsupported(f"'{text[:40]}' as a date or time")
    seconds = (int(match[2]) * 60 + int(match[3])) * 60 + int(match[4] or 0)
    microseconds = seconds * 1_000_000 + int((match[5] or "").ljust(6, "0"))
    return -microseconds if match[1] else microseconds


def _as_stored(operand: Operand, other: Operand) -> Operand:
    """A column of UUID, INET4 or INET6, or a literal as it stands in the one that is compared with
    it: MariaDB compares their bytes (`Type_handler_fbt`, sql/sql_type_fixedbin.h)."""
    column = operand.column or other.column
    is_literal = operand.literal and operand.kind is OperandKind.TEXT
    if column is None or (other.column or column).type != column.type:
        raise unsupported(f"{operand.sql} compared with {other.sql}")
    if operand.column is not None:
        return operand
    if not is_literal:
        raise unsupported(f"{operand.sql} compared with {other.sql}")
    try:
        stored = from_sql(column)(operand.value(Scope((), Session())))
    except ValueRefused:
        raise unsupported(f"{operand.sql} compared with {other.sql}") from None
    return replace(operand, kind=OperandKind.OTHER, value=lambda scope: stored)


def _refuse_order_of_uuids(*operands: Operand) -> None:
    """Which of two is the larger hangs on their versions (seen on MariaDB 10.11.18)."""
    if any(one.column is not None and one.column.type == "uuid" for one in operands):
        raise unsupported(f"the order of UUIDs ({operands[0].sql})")


def _short_number(operand: Operand) -> Operand:
    """Numbers of at most 15 digits: as doubles they compare as they are."""
    if operand.kind in CHARACTERS:
        text = replace(operand, kind=OperandKind.TEXT)
        return mapped(text, OperandKind.DOUBLE, _plain_number)
    inner = as_number(operand)
    return (
        inner
        if inner.kind is OperandKind.DOUBLE
        else mapped(inner, OperandKind.DOUBLE, _within_double)
    )


def _plain_number(text: str) -> float:
    if not _PLAIN_NUMBER.fullmatch(text) and not (text and not re.search(r"[0-9.]", text)):
        raise unsupported(f"'{text[:40]}' compared with a number")
    return float(text) if text[-1:].isdigit() else 0.0


def _within_double(number: Any) -> float:
    if abs(number) >= 1 << 53:
        raise unsupported(f"{number} compared with text")
    return float(number)


def text_order(operands: list[Operand]) -> Order:
    """How two of these texts sort. Raises ReplicationError 1235, for the texts too, where the
    collation is not exact here."""
    collation, _ = shared_collation(operands)
    key = text_key(collation)
    return lambda one, two: _plain(key(one), key(two))


def text_key(collation: str) -> Callable[[str], Any]:
    """Sort keys of texts in a collation. The function raises ReplicationError 1235 for a text whose
    key is not exact."""
    for_ascii = ASCII_EXACT.fullmatch(collation) is not None
    exact = is_exact(collation)
    if not exact and not for_ascii:
        raise unsupported(f"texts in the collation {collation}")
    own = Operand(OperandKind.TEXT, lambda scope: None, collation=collation).charset
    key = sort_key(Column("", "varchar", charset=own.name, collation=collation))

    def of(text: str) -> Any:
        if not exact and not text.isascii():
            raise unsupported(f"'{text[:40]}' in the collation {collation}")
        try:
            data = own.encode(text)
        except UnicodeError:
            raise unsupported(f"'{text[:40]}' in the character set {own.name}") from None
        return data if key is None else key(data)

    return of


_HOLDS: dict[str, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "!=": lambda order: order != 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
}


def compared(operator: str, one: Operand, two: Operand, dialect: Dialect) -> Operand:
    """=, <>, <, …, <=>."""
    order = _alone_compared(one, two, dialect)
    sql = f"{one.sql} {operator} {two.sql}"
    if operator in ("<", "<=", ">", ">="):
        _refuse_order_of_uuids(one, two)
    if operator == "<=>":

        def same(scope: Scope) -> int:
            found = order(scope)
            return (
                int(found == 0)
                if found is not None
                else int(one.value(scope) is None and two.value(scope) is None)
            )

        return Operand(OperandKind.INTEGER, same, sql)
    holds = _HOLDS[operator]

    def value(scope: Scope) -> Value:
        found = order(scope)
        return None if found is None else int(holds(found))

    return Operand(OperandKind.INTEGER, value, sql)


def _alone_compared(one: Operand, two: Operand, dialect: Dialect) -> Callable[[Scope], int | None]:
    """`comparison` of two operands alone, for which MariaDB takes a DECIMAL beside numbers that are
    exact with the digits that it shows (`Arg_comparator::compare_decimal`, sql/item_cmpfunc.cc;
    seen on 10.11.18): a quotient has more. Of several, in IN, BETWEEN and CASE, it takes all
    digits."""
    if (near := _near(one, two)) is not None:
        return null_or([as_number(one), as_number(two)], near)
    if not dialect.mariadb or OperandKind.DOUBLE in (one.kind, two.kind):
        return comparison(one, two, dialect)
    is_beside_text = OperandKind.TEXT in (one.kind, two.kind)
    return comparison(_as_shown(one, is_beside_text), _as_shown(two, is_beside_text), dialect)


def _as_shown(operand: Operand, is_beside_text: bool) -> Operand:
    if operand.kind is not OperandKind.DECIMAL:
        return operand

    def shown(value: Decimal) -> Decimal:
        found = rounded_half_up(value, operand.digits)
        if is_beside_text and found != value:
            raise unsupported(f"{operand.sql} compared with text")
        return found

    return mapped(operand, OperandKind.DECIMAL, shown)


def among(
    one: Operand, items: list[Operand], dialect: Dialect, *, of_several: bool = False
) -> Operand:
    """IN (…). With a NULL in the list 5.7 finds no TIME (seen on 5.7.29). `of_several`: there are
    more than these items."""
    if (
        dialect.old
        and OperandKind.TIME is one.kind
        and any(item.kind is OperandKind.NULL for item in items)
    ):
        raise unsupported(f"{one.sql} IN a list with NULL")
    if len({item.kind for item in [one, *items]} - {OperandKind.NULL}) > 1 and not all(
        item.kind in NUMBERS for item in [one, *items]
    ):
        _refuse_mixed(one, items)
    _refuse_signs([one, *items])
    compare = comparison if of_several or len(items) > 1 else _alone_compared
    orders = [compare(one, item, dialect) for item in items]

    def value(scope: Scope) -> Value:
        found = [order(scope) for order in orders]
        return 1 if 0 in found else None if None in found else 0

    return Operand(OperandKind.INTEGER, value, f"{one.sql} IN (…)")


def between(one: Operand, low: Operand, high: Operand, dialect: Dialect) -> Operand:
    """BETWEEN … AND …. From 8.0 on one bound on both sides is compared as `=` does."""
    _refuse_order_of_uuids(one, low, high)
    if dialect.is_modern and REALS & {one.kind} and (one.of_fixed or fixed_digits(one) is not None):
        raise unsupported(f"{one.sql} BETWEEN …")
    if {low.kind, high.kind} - {OperandKind.NULL} != {low.kind} and not {
        one.kind,
        low.kind,
        high.kind,
    } <= NUMBERS:
        _refuse_mixed(one, [low, high])
    _refuse_signs([one, low, high])
    below, above = comparison(one, low, dialect), comparison(one, high, dialect)

    def value(scope: Scope) -> Value:
        least, most = below(scope), above(scope)
        if (least is not None and least < 0) or (most is not None and most > 0):
            return 0
        return None if least is None or most is None else 1

    return Operand(OperandKind.INTEGER, value, f"{one.sql} BETWEEN …")


def _refuse_signs(operands: list[Operand]) -> None:
    """5.7 compares three or more integers as signed or unsigned alike."""
    if (
        len({operand.unsigned for operand in operands if operand.unsigned or not operand.literal})
        > 1
    ):
        raise unsupported(f"{operands[0].sql} compared with signed and unsigned numbers")


def _refuse_mixed(one: Operand, items: list[Operand]) -> None:
    """Three or more operands of several types are compared in a type that they share."""
    if len({item.kind for item in items} - {OperandKind.NULL}) > 1:
        raise unsupported(f"{one.sql} compared with values of several types")


# LIKE
