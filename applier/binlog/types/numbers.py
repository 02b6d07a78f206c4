"""Integers, floats and decimals: stored value <-> Python <-> the server's text."""

from __future__ import annotations

import math
import re
import struct
import sys
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache
from typing import Any

from applier.binlog.types.base import ValueRefused, text_of
from applier.binlog.wire import DIGIT_BYTES
from lookup.table import Column

_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")
_EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,9})?")
TWO_POINTS = re.compile(r"[ \t\n\v\f\r]*([-+]?)([0-9]*)\.([0-9]+)\.")
"""A text whose digits 5.x and MariaDB read as an integer in a way of their own."""
_NUMBER_PREFIX = re.compile(r"[ \t\n\r\f\v]*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
MOST_DIGITS = 100
FLOAT_MAX = 3.4028234663852886e38
INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
SHORTEST_FIXED, LONGEST_FIXED = -14, 15
"""Decimal point positions between which the server writes a double without an exponent; behind them
too where digits follow the point (`my_gcvt`, strings/dtoa.cc; held against 5.6, 5.7, 9.7 and
MariaDB 10.11)."""

_ALL_FIXED = 10.0**LONGEST_FIXED
"""Below it no number of Python's repr without an exponent is one that the server writes with it."""


def finite(value: float) -> float:
    """A double as the server shows it: what is no number, or infinite, is 0 (`my_gcvt`)."""
    return value if math.isfinite(value) else 0.0


def double_text(value: float) -> str:
    """A double as the server prints it: the shortest digits that read back to the same number."""
    shortest = repr(finite(value))
    if "e" not in shortest and abs(value) < _ALL_FIXED:  # most numbers: Python writes the same
        return shortest.removesuffix(".0")
    sign, digits, exponent = Decimal(shortest).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    if not text:
        return "-0" if sign else "0"
    point = len(digits) + exponent
    minus = "-" if sign else ""
    if point < SHORTEST_FIXED or (point > LONGEST_FIXED and len(text) <= point):
        return f"{minus}{text[0]}{'.' if len(text) > 1 else ''}{text[1:]}e{point - 1}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    if point >= len(text):
        return minus + text + "0" * (point - len(text))
    return f"{minus}{text[:point]}.{text[point:]}"


def integer_range(column: Column) -> tuple[int, int]:
    """The least and the greatest number that the column holds."""
    bits = INTEGER_BITS[column.type]
    return (0, (1 << bits) - 1) if column.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


def to_decimal(value: object) -> Decimal:
    """A SQL literal as a number. Text that does not read as one is refused; `closest` is what it
    starts with."""
    if isinstance(value, (bool, int)):
        return Decimal(int(value))
    if isinstance(value, (Decimal, float)):
        number = Decimal(repr(value)) if isinstance(value, float) else value
        if not number.is_finite():
            raise ValueRefused(1264, f"Out of range value: {value}")
        return number
    text = text_of(value).strip()
    match = _NUMBER.match(text)
    if match is None or match.end() != len(text):
        raise ValueRefused(
            1366, f"Incorrect number value: '{text}'", Decimal(match[0] if match else 0)
        )
    return Decimal(text)


def _truncating(convert: Callable[[object], Any]) -> Callable[[object], Any]:
    """Text that only starts like a number: what is refused carries the stored form of that
    start."""

    def truncated(value: object) -> Any:
        try:
            return convert(value)
        except ValueRefused as refused:
            if isinstance(refused.closest, Decimal):
                refused.closest = convert(refused.closest)
            raise

    return truncated


def _is_huge(number: Decimal) -> bool:
    """More digits before the point than any column has; spelling them out might take gigabytes."""
    return bool(number) and number.adjusted() > MOST_DIGITS


def integer_from_sql(column: Column) -> Callable[[object], int]:
    """Integers from SQL values. The function raises ValueRefused: 1264 out of range, 1366 no
    number."""
    low, high = integer_range(column)

    def convert(value: object) -> int:
        if type(value) is int:
            number = value
        elif isinstance(value, bytes) and not value.lstrip(b"-").isdigit():
            number = int.from_bytes(value, "big")
        else:
            decimal = to_decimal(value)
            number = (
                (low - 1 if decimal < 0 else high + 1)
                if _is_huge(decimal)
                else int(decimal.to_integral_value(ROUND_HALF_UP))
            )
        if not low <= number <= high:
            raise ValueRefused(
                1264,
                f"Out of range value for column '{column.name}'",
                low if number < low else high,
            )
        return number

    return _truncating(convert)


def float_codec(column: Column) -> struct.Struct:
    """How FLOAT and DOUBLE are stored: little-endian, 4 and 8 bytes."""
    return _FLOAT if column.type == "float" else _DOUBLE


def float_to_python(column: Column) -> Callable[[bytes], float]:
    """FLOAT and DOUBLE as float."""
    unpack = float_codec(column).unpack
    return lambda stored: float(unpack(stored)[0])


def float_to_text(column: Column) -> Callable[[bytes], str]:
    """FLOAT and DOUBLE as the server prints them."""
    to_python = float_to_python(column)
    return lambda stored: double_text(to_python(stored))


def float_limit(column: Column) -> float:
    """The largest number that a FLOAT or DOUBLE takes; (M,D) leaves it M - D digits before the
    point."""
    if column.length is not None:
        return float(10 ** (column.length - column.scale)) - 1.0 / 10.0**column.scale
    return FLOAT_MAX if column.type == "float" else sys.float_info.max


def rounded_float(column: Column) -> Callable[[float], float]:
    """What FLOAT(M,D) and DOUBLE(M,D) make of a number (`Field_real::truncate`, sql/field.cc;
    MariaDB: `truncate_double`): the part behind the point is rounded by itself, so that the sum can
    be one bit beside the number with these digits. Without (M,D) it stays as it is."""
    if column.length is None:
        return lambda number: number
    scale = 10.0**column.scale

    def convert(number: float) -> float:
        if math.isinf(number):
            return number
        whole = math.floor(number)
        return whole + round((number - whole) * scale) / scale

    return convert


def float_from_sql(column: Column) -> Callable[[object], bytes]:
    """FLOAT and DOUBLE from SQL values. The function raises ValueRefused: 1264 out of range, 1366
    no number."""
    pack = float_codec(column).pack
    rounded, most = rounded_float(column), float_limit(column)

    def convert(value: object) -> bytes:
        number = rounded(value if isinstance(value, float) else float(to_decimal(value)))
        if abs(number) > most:
            raise ValueRefused(
                1264,
                f"Out of range value for column '{column.name}'",
                pack(math.copysign(most, number)),
            )
        return pack(number)

    return _truncating(convert)


# DECIMAL (strings/decimal.cc: decimal2bin, bin2decimal)


def _groups(precision: int, scale: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """(digits, bytes) of the groups before and behind the point."""
    whole = precision - scale
    before = ([(whole % 9, DIGIT_BYTES[whole % 9])] if whole % 9 else []) + [(9, 4)] * (whole // 9)
    after = [(9, 4)] * (scale // 9) + ([(scale % 9, DIGIT_BYTES[scale % 9])] if scale % 9 else [])
    return before, after


@cache
def decimal_to_text(precision: int, scale: int) -> Callable[[bytes], str]:
    """A function from the packed bytes to the server's text, all digits of the scale written."""
    before, after = _groups(precision, scale)

    def convert(data: bytes) -> str:
        negative = not data[0] & 0x80
        raw = bytes([data[0] ^ 0x80]) + data[1:]
        if negative:
            raw = bytes(byte ^ 0xFF for byte in raw)
        at = 0
        parts = []
        for digits, size in (*before, *after):
            parts.append(f"{int.from_bytes(raw[at : at + size], 'big'):0{digits}d}")
            at += size
        digits_text = "".join(parts)
        whole = digits_text[: precision - scale].lstrip("0") or "0"
        fraction = f".{digits_text[precision - scale :]}" if scale else ""
        return ("-" if negative else "") + whole + fraction

    return convert


@cache
def decimal_from_sql(precision: int, scale: int) -> Callable[[object], bytes]:
    """A function from a SQL literal to the packed bytes; rounds half up as the server does.

    It raises ValueRefused: 1264 out of range, 1366 no number.
    """
    before, after = _groups(precision, scale)
    quantum = Decimal(1).scaleb(-scale)
    limit = Decimal(10) ** (precision - scale)

    def convert(value: object) -> bytes:
        number = to_decimal(value)
        number = number if _is_huge(number) else number.quantize(quantum, context=_EXACT)
        if number.copy_abs() >= limit:
            most = _EXACT.subtract(limit, quantum).copy_sign(number)
            raise ValueRefused(1264, "Out of range value for a DECIMAL column", convert(most))
        digits = f"{number.copy_abs().scaleb(scale, context=_EXACT):.0f}".rjust(precision, "0")
        raw = bytearray()
        at = 0
        for count, size in (*before, *after):
            raw += int(digits[at : at + count]).to_bytes(size, "big")
            at += count
        if number < 0:
            raw = bytearray(byte ^ 0xFF for byte in raw)
        raw[0] ^= 0x80
        return bytes(raw)

    return _truncating(convert)


def decimal_to_python(column: Column) -> Callable[[bytes], Decimal]:
    """DECIMAL as Decimal."""
    to_text = decimal_to_text(column.length or 10, column.scale)
    return lambda stored: Decimal(to_text(stored))


def leading_number(text: str) -> float:
    """A text counts as far as it starts like a number."""
    match = _NUMBER_PREFIX.match(text)
    return float(match[0]) if match else 0.0
