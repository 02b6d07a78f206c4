"""Operators of SQL expressions on typed operands: arithmetic, comparison, logic. What is not exact
is refused with 1235."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

from applier.tables.expressions.operands import (
    BYTES,
    DATES,
    Dialect,
    Operand,
    OperandKind,
    Scope,
    Value,
    as_number,
    as_text,
    constant,
    mapped,
    rounded_half_up,
    shared_collation,
    truth,
    unsupported,
)
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from lookup.table import Column

EXACT = Context(prec=130, rounding=ROUND_HALF_UP)
"""Holds each product of two DECIMALs. Python's own context would round to 28 digits."""
REALS = frozenset({OperandKind.DOUBLE, OperandKind.FLOAT})
MOST_DIGITS, MOST_SCALE = 65, 30


def null_or(operands: list[Operand], compute: Callable[..., Value]) -> Callable[[Scope], Value]:
    """NULL where an operand is NULL."""
    values = [operand.value for operand in operands]

    def value(scope: Scope) -> Value:
        found = [inner(scope) for inner in values]
        return None if None in found else compute(*found)

    return value


# arithmetic


def checked_integer(number: int, sql: str, *, unsigned: bool) -> int:
    """Raises ReplicationError 1235 where the server's 64 bits do not hold the number."""
    low, high = (0, 1 << 64) if unsigned else (-(1 << 63), 1 << 63)
    if not low <= number < high:
        raise unsupported(f"{sql}: {number} is out of range")
    return number


def checked_decimal(number: Decimal, sql: str) -> Decimal:
    """A result; a negative zero loses its scale (`do_mul`, strings/decimal.cc).

    Raises ReplicationError 1235 beyond the digits of the server's DECIMAL.
    """
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if len(digits) > MOST_DIGITS or -exponent > MOST_SCALE:
        raise unsupported(f"{sql}: more digits than a DECIMAL has")
    return number if number or not number.is_signed() else Decimal(0)


def digits_behind_point(number: Decimal | int) -> int:
    """How many a number is written with."""
    return max(-int(Decimal(number).as_tuple().exponent), 0)


_COMPUTE: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda one, two: one + two,
    "-": lambda one, two: one - two,
    "*": lambda one, two: one * two,
    "%": lambda one, two: remainder(one, two) if two and one else Decimal(0) if two else None,
}


def arithmetic(operator: str, one: Operand, two: Operand, dialect: Dialect) -> Operand:
    """+, -, *, /, DIV, %."""
    left, right = as_number(one), as_number(two)
    sql = f"{one.sql} {operator} {two.sql}"
    kinds = {left.kind, right.kind}
    if OperandKind.NULL in kinds:  # NULL is a string to it, and a string a DOUBLE
        kind = OperandKind.INTEGER if operator == "DIV" else OperandKind.DOUBLE
        return constant(kind, None, sql=sql)
    if operator == "DIV":
        return _integer_division(left, right, sql)
    if OperandKind.DOUBLE in kinds:
        return _double_arithmetic(operator, left, right, sql, dialect)
    if operator == "/":
        return _division(left, right, sql, dialect)
    unsigned = left.unsigned or right.unsigned
    if operator == "-" and dialect.sql_mode & SqlModeFlag.NO_UNSIGNED_SUBTRACTION:
        unsigned = False
    digits = left.digits + right.digits if operator == "*" else max(left.digits, right.digits)
    unsigned = left.unsigned if operator == "%" else unsigned
    compute = _COMPUTE[operator]
    if kinds == {OperandKind.INTEGER}:
        result = null_or([left, right], compute)
        return Operand(
            OperandKind.INTEGER, _checked(result, sql, unsigned=unsigned), sql, unsigned=unsigned
        )

    def exact(first: Any, second: Any) -> Value:
        with localcontext(EXACT):
            number = compute(Decimal(first), Decimal(second))
        if number is None:
            return None
        if not number and operator == "%" and first < 0 and dialect.mariadb:
            raise unsupported(f"{sql}: a negative zero")
        if not number and _loses_scale(operator, first, second, dialect):
            return Decimal(0)
        return checked_decimal(EXACT.create_decimal(number), sql)

    found = Operand(OperandKind.DECIMAL, null_or([left, right], exact), sql, digits)
    return as_shown(worked_out_of([left, right], found), dialect)


def _loses_scale(operator: str, one: Any, two: Any, dialect: Dialect) -> bool:
    """Whether a result of zero has no digits behind the point: what equal numbers leave of each
    other (`do_sub`, strings/decimal.cc); from 8.0 on, a product and a remainder (seen on 9.7.4)."""
    if operator in "*%":
        return dialect.is_modern
    return operator in "+-" and ((one < 0) == (two < 0)) == (operator == "-")


def _checked(
    result: Callable[[Scope], Value], sql: str, *, unsigned: bool
) -> Callable[[Scope], Value]:
    def value(scope: Scope) -> Value:
        number = result(scope)
        return None if number is None else checked_integer(number, sql, unsigned=unsigned)

    return value


def _double_arithmetic(
    operator: str, left: Operand, right: Operand, sql: str, dialect: Dialect
) -> Operand:
    def compute(one: Any, two: Any) -> Value:
        first, second = float(one), float(two)
        if operator in "/%" and second == 0:
            return None
        number = (
            first / second
            if operator == "/"
            else math.fmod(first, second)
            if operator == "%"
            else _COMPUTE[operator](first, second)
        )
        if number - number != 0:
            raise unsupported(f"{sql}: out of range")
        return signed_zero(number, sql, dialect)

    return worked_out_of(
        [left, right], Operand(OperandKind.DOUBLE, null_or([left, right], compute), sql)
    )


def has_fixed_digits(column: Column | None) -> bool:
    """Whether it is a FLOAT(M,D) or DOUBLE(M,D)."""
    if column is None or column.length is None:
        return False
    return column.type in ("float", "double")


def worked_out_of(arguments: list[Operand], result: Operand) -> Operand:
    """A result that knows whether it is a double made of a FLOAT(M,D) or DOUBLE(M,D), or a DECIMAL
    made of one of groups."""
    fixed = any(
        one.of_fixed or (one.kind in REALS and has_fixed_digits(one.column)) for one in arguments
    )
    grouped = any(one.of_groups for one in arguments)
    if fixed and result.kind in REALS:
        return replace(result, of_fixed=True)
    return replace(result, of_groups=True) if grouped else result


def as_shown(result: Operand, dialect: Dialect) -> Operand:
    """What a function or an operator makes of an AVG, which has more digits than it shows: 8.0 and
    later round it (seen on 9.7.4)."""
    if result.kind is not OperandKind.DECIMAL or not result.of_groups or not dialect.is_modern:
        return result
    return mapped(result, result.kind, lambda value: rounded_half_up(value, result.digits))


def remainder(one: Any, two: Any) -> Any:
    """Of numbers; it has the sign of the dividend."""
    result = abs(one) % abs(two)
    return -result if one < 0 else result


def signed_zero(number: float, sql: str, dialect: Dialect) -> float:
    """MariaDB prints a negative zero as 0. Raises ReplicationError 1235 for one there."""
    if dialect.mariadb and number == 0 and math.copysign(1, number) < 0:
        raise unsupported(f"{sql}: a negative zero")
    return number


def _groups(digits: int) -> int:
    return -(-digits // 9) * 9


def _quotient_digits(one: Decimal, two: Decimal) -> int:
    """Digits that a quotient has before it is rounded (`do_div_mod`, strings/decimal.cc)."""
    first, second = digits_behind_point(one), digits_behind_point(two)
    more = max(4 - (_groups(first) - first) - (_groups(second) - second), 0)
    return min(_groups(_groups(first) + _groups(second) + more), MOST_SCALE)


def _division(left: Operand, right: Operand, sql: str, dialect: Dialect) -> Operand:
    """The scale of the dividend and 4 more: the default of div_precision_increment, which no log
    has, so that a replica takes its own.

    5.x and MariaDB keep the whole groups of nine digits that the division makes for what is done
    next, so that 1/3*3 is 0.999999999 there and 0.9999 from 8.0 on (`do_div_mod`,
    strings/decimal.cc). A zero has no scale, but for one that comes from rounding.
    """
    digits, is_modern = min(left.digits + 4, MOST_SCALE), dialect.is_modern

    def compute(one: Any, two: Any) -> Value:
        if not two:
            return None
        first, second = Decimal(one), Decimal(two)
        kept = Decimal(1).scaleb(-_quotient_digits(first, second))
        number = EXACT.divide(first, second).quantize(kept, ROUND_DOWN, context=EXACT)
        if not number and (is_modern or not first):
            return Decimal(0)
        if is_modern:
            number = number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, context=EXACT)
        if not number and number.is_signed():  # 5.7 has no sign there, 5.6 and MariaDB keep it
            raise unsupported(f"{sql}: a negative quotient of less than its digits")
        return checked_decimal(number, sql)

    found = Operand(OperandKind.DECIMAL, null_or([left, right], compute), sql, digits)
    return worked_out_of([left, right], found)


def _integer_division(left: Operand, right: Operand, sql: str) -> Operand:
    if OperandKind.DOUBLE in (left.kind, right.kind):
        raise unsupported(sql)
    unsigned = left.unsigned or right.unsigned

    def compute(one: Any, two: Any) -> Value:
        if not two:
            return None
        quotient = EXACT.divide(Decimal(one), Decimal(two)).to_integral_value(ROUND_DOWN)
        return checked_integer(int(quotient), sql, unsigned=unsigned)

    return Operand(OperandKind.INTEGER, null_or([left, right], compute), sql, unsigned=unsigned)


def negative(operand: Operand, dialect: Dialect) -> Operand:
    """Minus one operand. Dates and bit strings go through doubles."""
    if operand.kind in DATES | {OperandKind.TIME, OperandKind.HEX}:
        raise unsupported(f"-{operand.sql}")
    inner = as_number(operand)
    sql = f"-{operand.sql}"
    if inner.kind is OperandKind.INTEGER:
        return mapped(
            inner,
            OperandKind.INTEGER,
            lambda value: checked_integer(-value, sql, unsigned=False),
            unsigned=False,
            sql=sql,
        )
    if inner.kind is OperandKind.DOUBLE:
        return mapped(
            inner, OperandKind.DOUBLE, lambda value: signed_zero(-value, sql, dialect), sql=sql
        )
    found = mapped(
        inner, inner.kind, lambda value: checked_decimal(EXACT.minus(value), sql), sql=sql
    )
    return as_shown(found, dialect)


_BITS: dict[str, Callable[[int, int], int]] = {
    "&": lambda one, two: one & two,
    "|": lambda one, two: one | two,
    "^": lambda one, two: one ^ two,
    "<<": lambda one, two: one << _places(two),
    ">>": lambda one, two: one >> _places(two),
}
_WORD = (1 << 64) - 1


def _places(count: int) -> int:
    if count >= 64:
        raise unsupported(f"a shift by {count}")
    return count


def bits(operator: str, one: Operand, two: Operand) -> Operand:
    """Operators on 64 bits; of integers only, since text and other numbers go different ways in
    each version."""
    sql = f"{one.sql} {operator} {two.sql}"
    operands = [
        as_number(one) if one.kind is not OperandKind.TEXT else one,
        as_number(two) if two.kind is not OperandKind.TEXT else two,
    ]
    if any(operand.kind not in (OperandKind.INTEGER, OperandKind.NULL) for operand in operands) or {
        one.kind,
        two.kind,
    } == {OperandKind.HEX}:
        raise unsupported(sql)
    return Operand(
        OperandKind.INTEGER,
        null_or(
            operands, lambda first, second: _BITS[operator](first & _WORD, second & _WORD) & _WORD
        ),
        sql,
        unsigned=True,
    )


def inverted(operand: Operand) -> Operand:
    """~ of an integer."""
    inner = as_number(operand)
    if inner.kind is not OperandKind.INTEGER or operand.kind is OperandKind.HEX:
        raise unsupported(f"~{operand.sql}")
    return mapped(
        inner,
        OperandKind.INTEGER,
        lambda value: ~value & _WORD,
        unsigned=True,
        sql=f"~{operand.sql}",
    )


# logic


def both(one: Operand, two: Operand) -> Operand:
    """AND."""
    first, second = truth(one), truth(two)

    def value(scope: Scope) -> Value:
        left = first(scope)
        if left is False:
            return 0
        right = second(scope)
        return 0 if right is False else None if left is None or right is None else 1

    return Operand(OperandKind.INTEGER, value, f"{one.sql} AND {two.sql}")


def either(one: Operand, two: Operand) -> Operand:
    """OR."""
    first, second = truth(one), truth(two)

    def value(scope: Scope) -> Value:
        left = first(scope)
        if left:
            return 1
        right = second(scope)
        return 1 if right else None if left is None or right is None else 0

    return Operand(OperandKind.INTEGER, value, f"{one.sql} OR {two.sql}")


def exclusive(one: Operand, two: Operand) -> Operand:
    """XOR."""
    first, second = truth(one), truth(two)

    def value(scope: Scope) -> Value:
        left, right = first(scope), second(scope)
        return None if left is None or right is None else int(left != right)

    return Operand(OperandKind.INTEGER, value, f"{one.sql} XOR {two.sql}")


def inverse(operand: Operand) -> Operand:
    """NOT."""
    inner = truth(operand)

    def value(scope: Scope) -> Value:
        found = inner(scope)
        return None if found is None else int(not found)

    return Operand(OperandKind.INTEGER, value, f"NOT {operand.sql}")


def is_null(operand: Operand) -> Operand:
    """IS NULL. A zero date in a NOT NULL column is NULL to it, which is refused."""
    column = operand.column
    zero_is_null = column is not None and not column.nullable and operand.kind in DATES

    def value(scope: Scope) -> Value:
        found = operand.value(scope)
        if zero_is_null and found is not None and not any(found):
            raise unsupported(f"{operand.sql} IS NULL of a zero date")
        return int(found is None)

    return Operand(OperandKind.INTEGER, value, f"{operand.sql} IS NULL")


def is_truth(operand: Operand, *, wanted: bool | None) -> Operand:
    """IS TRUE, IS FALSE, IS UNKNOWN."""
    inner = truth(operand)
    return Operand(
        OperandKind.INTEGER, lambda scope: int(inner(scope) is wanted), f"{operand.sql} IS {wanted}"
    )


# the type of several

_TO_DOUBLE = frozenset({OperandKind.INTEGER, OperandKind.DECIMAL, OperandKind.DOUBLE})


def common(operands: list[Operand], dialect: Dialect, sql: str) -> list[Operand]:
    """Operands of which one becomes the result (CASE, IF, COALESCE, …), as the type that they
    share. Raises ReplicationError 1235."""
    kinds = {operand.kind for operand in operands} - {OperandKind.NULL}
    if kinds <= {OperandKind.INTEGER}:
        return _of_one_sign(operands, sql)
    if kinds <= {OperandKind.INTEGER, OperandKind.DECIMAL} and OperandKind.DECIMAL in kinds:
        digits = max(operand.digits for operand in operands)
        return [
            mapped(operand, OperandKind.DECIMAL, Decimal, digits=digits) for operand in operands
        ]
    if OperandKind.DOUBLE in kinds and kinds <= _TO_DOUBLE:
        double = next(one for one in operands if one.kind is OperandKind.DOUBLE)
        if not worked_out_of(operands, double).of_fixed:
            return [_as_double(operand) for operand in operands]
    if kinds and kinds <= {OperandKind.TEXT, OperandKind.INTEGER, OperandKind.LABELS}:
        texts = [as_text(operand, dialect) for operand in operands]
        collation, strength = shared_collation(
            [text for text in texts if text.kind is OperandKind.TEXT]
        )
        return [replace(text, collation=collation, strength=strength) for text in texts]
    if kinds and kinds <= BYTES:
        return [_as_bytes(operand) for operand in operands]
    if kinds == {OperandKind.JSON}:
        return operands
    if len(kinds) == 1 and kinds <= DATES | {OperandKind.TIME}:
        digits = max(operand.digits for operand in operands)
        return [replace(operand, digits=digits) for operand in operands]
    raise unsupported(sql)


def _as_double(operand: Operand) -> Operand:
    if operand.kind in (OperandKind.NULL, OperandKind.DOUBLE):
        return operand
    return mapped(operand, OperandKind.DOUBLE, float, digits=0)


def _as_bytes(operand: Operand) -> Operand:
    """A literal 0x… is no number any more once it is one of several results."""
    return replace(operand, kind=OperandKind.BINARY) if operand.kind in BYTES else operand


def _of_one_sign(operands: list[Operand], sql: str) -> list[Operand]:
    """Integers that share a type. Signed beside unsigned ones are signed, or a DECIMAL without
    digits behind the point where BIGINT does not hold both: 1235 from 2^63 on."""
    if len({one.unsigned for one in operands if one.kind is OperandKind.INTEGER}) <= 1:
        return operands

    def signed(value: int) -> int:
        return checked_integer(value, sql, unsigned=False)

    return [
        one
        if one.kind is OperandKind.NULL
        else mapped(one, OperandKind.INTEGER, signed, unsigned=False)
        for one in operands
    ]


def typed_as(operands: list[Operand], value: Callable[[Scope], Value], sql: str) -> Operand:
    """The result of one of `common` operands."""
    first = next(
        (operand for operand in operands if operand.kind is not OperandKind.NULL), operands[0]
    )
    found = replace(first, value=value, sql=sql, literal=False, column=None)
    return worked_out_of(operands, found)


def choice(
    branches: list[tuple[Callable[..., bool | None], Operand]], otherwise: Operand, dialect: Dialect
) -> Operand:
    """CASE and IF."""
    *results, last = common(
        [*(result for _, result in branches), otherwise], dialect, "CASE of several types"
    )
    tests = [test for test, _ in branches]

    def value(scope: object) -> object:
        for test, result in zip(tests, results, strict=True):
            if test(scope):
                return result.value(scope)  # type: ignore[arg-type]
        return last.value(scope)  # type: ignore[arg-type]

    return typed_as([*results, last], value, "CASE …")
