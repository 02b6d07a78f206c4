"""Integers, floats, decimals and bits: the stored form, the server's text, and what a column
refuses."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.binlog.types import ValueRefused, from_sql, to_python, to_text
from applier.binlog.types.numbers import decimal_to_text, double_text
from lookup.table import Column

RANGES = {
    ("tinyint", False): (-128, 127),
    ("tinyint", True): (0, 255),
    ("smallint", False): (-32768, 32767),
    ("smallint", True): (0, 65535),
    ("mediumint", False): (-8388608, 8388607),
    ("mediumint", True): (0, 16777215),
    ("int", False): (-2147483648, 2147483647),
    ("int", True): (0, 4294967295),
    ("bigint", False): (-9223372036854775808, 9223372036854775807),
    ("bigint", True): (0, 18446744073709551615),
}


def refused(column: Column, value: object) -> ValueRefused:
    with pytest.raises(ValueRefused) as caught:
        from_sql(column)(value)
    return caught.value


@pytest.mark.parametrize(("kind", "unsigned"), RANGES)
def test_integers_to_their_limits(kind: str, unsigned: bool) -> None:
    column = Column("c", kind, unsigned=unsigned)
    low, high = RANGES[kind, unsigned]
    for number in (low, low + 1, 0, high - 1, high):
        for literal in (number, str(number), str(number).encode(), Decimal(number)):
            assert from_sql(column)(literal) == number
        assert (to_python(column)(number), to_text(column)(number)) == (number, str(number))
    for number, closest in ((low - 1, low), (high + 1, high), (10**40, high), (-(10**40), low)):
        error = refused(column, number)
        assert (error.number, error.closest) == (1264, closest)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("1.5", 2),
        ("-1.5", -2),
        ("2.5", 3),
        ("1e2", 100),
        (" 7 ", 7),
        (1.4999, 1),
        (Decimal("0.5"), 1),
        (True, 1),
        (b"\x41", 65),
        ("", None),
    ],
)
def test_what_an_integer_column_makes_of_a_value(value: object, stored: int | None) -> None:
    column = Column("c", "int")
    if stored is None:
        assert (refused(column, value).number, refused(column, value).closest) == (1366, 0)
    else:
        assert from_sql(column)(value) == stored


@pytest.mark.parametrize(
    ("text", "closest"),
    [
        ("12abc", 12),
        ("-3x", -3),
        ("1.6 ", 2),
        ("x", 0),
        ("1e999999999x", 127),
        ("1_000", 1),
        ("0x10", 0),
    ],
)
def test_text_that_only_starts_like_a_number(text: str, closest: int) -> None:
    """Without strict mode the server stores the start (warning 1265 or 1366)."""
    column = Column("c", "tinyint")
    if text == "1.6 ":
        assert from_sql(column)(text) == closest
        return
    with pytest.raises(ValueRefused) as caught:
        from_sql(column)(text)
    assert caught.value.closest == closest


@pytest.mark.parametrize("text", ["1e999999999", "-1e999999999", "9" * 400])
@pytest.mark.parametrize("kind", ["int", "bigint", "decimal"])
def test_numbers_without_end_are_out_of_range(text: str, kind: str) -> None:
    """Spelling them out would take gigabytes."""
    assert refused(Column("c", kind, length=10), text).number == 1264


@pytest.mark.parametrize(
    "value",
    [
        float("inf"),
        float("-inf"),
        float("nan"),
        Decimal("Infinity"),
        Decimal("NaN"),
        "inf",
        "nan",
        "Infinity",
    ],
)
@pytest.mark.parametrize("kind", ["int", "decimal", "float", "double"])
def test_what_is_no_number(value: object, kind: str) -> None:
    if isinstance(value, float) and kind in ("float", "double") and math.isnan(value):
        return
    assert refused(Column("c", kind, length=10), value).number in (1264, 1366)


# DECIMAL


@pytest.mark.parametrize(
    ("precision", "scale", "text", "raw"),
    [
        (10, 2, "1234567.89", "8012d68759"),
        (10, 2, "-1234567.89", "7fed2978a6"),
        (14, 4, "1234567890.1234", "810dfb38d204d2"),
        (14, 4, "-1234567890.1234", "7ef204c72dfb2d"),
        (1, 0, "0", "80"),
        (1, 0, "-9", "76"),
        (1, 1, "0.5", "85"),
        (4, 2, "0.00", "8000"),
    ],
)
def test_decimals_as_they_are_packed(precision: int, scale: int, text: str, raw: str) -> None:
    """The second pair is the example in strings/decimal.cc (`decimal2bin`)."""
    column = Column("c", "decimal", length=precision, scale=scale)
    stored = from_sql(column)(text)
    assert stored.hex() == raw
    assert to_text(column)(stored) == text
    assert to_python(column)(stored) == Decimal(text)


def test_sixty_five_digits() -> None:
    column = Column("c", "decimal", length=65, scale=30)
    text = "-" + "9" * 35 + "." + "9" * 30
    stored = from_sql(column)(text)
    assert len(stored) == 30
    assert to_text(column)(stored) == text
    assert to_python(column)(stored) == Decimal(text)
    over = refused(column, "1" + "0" * 35)
    assert over.number == 1264
    assert to_text(column)(over.closest) == text[1:]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1.005", "1.01"),
        ("1.004999", "1.00"),
        ("-1.005", "-1.01"),
        (2.675, "2.68"),
        ("-0.001", "0.00"),
    ],
)
def test_decimals_round_half_up(value: object, text: str) -> None:
    """A negative number that rounds to zero is zero: the server has no -0.00."""
    column = Column("c", "decimal", length=10, scale=2)
    assert to_text(column)(from_sql(column)(value)) == text


@st.composite
def decimals(draw: st.DrawFn) -> tuple[int, int, Decimal]:
    precision = draw(st.integers(1, 65))
    scale = draw(st.integers(0, min(30, precision)))
    unscaled = draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    return precision, scale, Decimal(f"{unscaled}E-{scale}")  # scaleb rounds to 28 digits


@given(decimals(), decimals())
def test_decimals_come_back_and_sort_as_bytes(
    one: tuple[int, int, Decimal], two: tuple[int, int, Decimal]
) -> None:
    precision, scale, number = one
    column = Column("c", "decimal", length=precision, scale=scale)
    stored = from_sql(column)(format(number, "f"))
    assert to_python(column)(stored) == number
    assert decimal_to_text(precision, scale)(stored) == (
        format(number, "f") if number else format(abs(number), "f")
    )
    other = Decimal(int(two[2].as_tuple().digits[0]) * (-1 if two[2] < 0 else 1)).scaleb(-scale)
    assert (from_sql(column)(format(other, "f")) < stored) == (other < number)


# FLOAT, DOUBLE


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (-0.0, "-0"), (1.0, "1"), (0.1, "0.1"), (1e15, "1e15"),
        (1e14, "100000000000000"), (123456.789, "123456.789"),
        (1e-14, "0.00000000000001"), (1e-15, "0.000000000000001"), (1e-16, "1e-16"), (1e16, "1e16"),
        (-1877022215144213.5, "-1877022215144213.5"), (1877022215144213.0, "1.877022215144213e15"),
        (123456789012345678.0, "1.2345678901234568e17"), (1.5e300, "1.5e300"), (-2.5, "-2.5"),
        (5e-324, "5e-324"), (1.7976931348623157e308, "1.7976931348623157e308"),
        (123456789012345.6, "123456789012345.6"),
    ],
)  # fmt: skip
def test_doubles_as_the_server_prints_them(value: float, text: str) -> None:
    assert double_text(value) == text
    column = Column("c", "double")
    assert to_text(column)(struct.pack("<d", value)) == text
    assert from_sql(column)(text) == struct.pack("<d", value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_reads_back(value: float) -> None:
    assert float(double_text(value)) == value
    assert math.copysign(1, float(double_text(value))) == math.copysign(1, value)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_are_kept_bit_by_bit(value: float) -> None:
    column = Column("c", "float")
    stored = from_sql(column)(value)
    assert stored == struct.pack("<f", value)
    assert to_python(column)(stored) == value


def test_a_double_too_large_for_a_float() -> None:
    column = Column("c", "float")
    for value, most in ((1e39, 3.4028234663852886e38), (-1e39, -3.4028234663852886e38)):
        error = refused(column, value)
        assert error.number == 1264
        assert to_python(column)(error.closest) == most


@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        (Column("c", "double", length=15, scale=8), "1.42857143", 1.4285714299999999),
        (Column("c", "double", length=15, scale=8), Decimal("-0.333333333333"), -0.33333333),
        (Column("c", "double", length=5, scale=0), 2.5, 2.0),
        (Column("c", "float", length=8, scale=2), "1.005", struct.unpack("<f", b"\0\0\x80?")[0]),
    ],
)
def test_a_fixed_number_of_decimals(column: Column, value: object, stored: float) -> None:
    """The server adds the rounded part behind the point to the whole one."""
    assert to_python(column)(from_sql(column)(value)) == stored


def test_a_fixed_number_of_digits() -> None:
    column = Column("c", "double", length=5, scale=2)
    error = refused(column, "-1000")
    assert (error.number, to_python(column)(error.closest)) == (1264, -999.99)


# BIT, YEAR


@pytest.mark.parametrize(
    ("length", "value", "stored"),
    [
        (1, 1, 1),
        (8, b"\xff", 255),
        (64, (1 << 64) - 1, (1 << 64) - 1),
        (10, b"\x02\x01", 513),
        (4, "\x05", 5),
    ],
)
def test_bits(length: int, value: object, stored: int) -> None:
    column = Column("c", "bit", length=length)
    assert from_sql(column)(value) == stored
    assert to_text(column)(stored) == str(stored)


def test_more_bits_than_there_are() -> None:
    error = refused(Column("c", "bit", length=3), 9)
    assert (error.number, error.closest) == (1406, 7)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (2024, 124),
        ("2024", 124),
        (1901, 1),
        (2155, 255),
        (0, 0),
        ("0000", 0),
        ("0", 100),
        ("00", 100),
        (69, 169),
        (70, 70),
        ("99", 99),
        (1, 101),
    ],
)
def test_years(value: object, stored: int) -> None:
    """The number 0 is the zero year; the text "0" or "00" is 2000 (Field_year::store)."""
    column = Column("c", "year")
    assert from_sql(column)(value) == stored
    assert to_text(column)(stored) == (f"{stored + 1900}" if stored else "0000")


@pytest.mark.parametrize(("value", "number"), [(1900, 1264), (2156, 1264), ("x", 1366), (-1, 1366)])
def test_years_that_are_none(value: object, number: int) -> None:
    assert refused(Column("c", "year"), value).number == number
