"""Dates and times: packed bytes, zero parts, fractions, signs."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.binlog.types import ValueRefused, from_sql, to_python, to_text
from lookup.table import Column


def column(kind: str, scale: int = 0) -> Column:
    return Column("c", kind, scale=scale)


@pytest.mark.parametrize(
    ("text", "stored", "value"),
    [
        ("2024-02-29", 2024 << 9 | 2 << 5 | 29, date(2024, 2, 29)),
        ("0000-00-00", 0, "0000-00-00"),
        ("2024-00-00", 2024 << 9, "2024-00-00"),
        ("2024-05-00", 2024 << 9 | 5 << 5, "2024-05-00"),
        ("0000-01-01", 1 << 5 | 1, "0000-01-01"),
        ("0001-01-01", 1 << 9 | 1 << 5 | 1, date(1, 1, 1)),
        ("9999-12-31", 9999 << 9 | 12 << 5 | 31, date(9999, 12, 31)),
        ("2023-02-31", 2023 << 9 | 2 << 5 | 31, "2023-02-31"),
    ],
)
def test_dates(text: str, stored: int, value: object) -> None:
    """A date that Python does not know comes out as text, never as NULL."""
    assert from_sql(column("date"))(text) == stored
    assert to_text(column("date"))(stored) == text
    assert to_python(column("date"))(stored) == value


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ("20240229", "2024-02-29"), (20240229, "2024-02-29"), ("24-2-9", "2024-02-09"),
        ("70-1-1", "1970-01-01"), ("69-1-1", "2069-01-01"), ("2024/02/29", "2024-02-29"),
        ("2024-02-29 23:59:59", "2024-02-29"), ("240229", "2024-02-29"), (0, "0000-00-00"),
    ],
)  # fmt: skip
def test_forms_of_a_date(literal: object, text: str) -> None:
    assert to_text(column("date"))(from_sql(column("date"))(literal)) == text


@pytest.mark.parametrize(
    "literal",
    ["2024-13-01", "2024-01-32", "x", "", "2024", "2024-01", "9" * 30, "-1", "2024-01-01 25:00:00"],
)
@pytest.mark.parametrize("kind", ["date", "datetime", "timestamp"])
def test_what_is_no_date(literal: str, kind: str) -> None:
    with pytest.raises(ValueRefused) as caught:
        from_sql(column(kind))(literal)
    assert caught.value.number == 1292


@pytest.mark.parametrize(
    ("scale", "text", "raw"),
    [
        (0, "2024-02-29 12:34:56", "99b2bac8b8"),
        (0, "0000-00-00 00:00:00", "8000000000"),
        (0, "2024-00-00 00:00:00", "99b2000000"),
        (3, "2024-02-29 12:34:56.789", "99b2bac8b81ed2"),
        (6, "9999-12-31 23:59:59.999999", "fef3ff7efb0f423f"),
        (1, "2024-02-29 12:34:56.7", "99b2bac8b846"),
        (6, "0000-00-00 00:00:00.000001", "8000000000000001"),
    ],
)
def test_datetimes_as_they_are_packed(scale: int, text: str, raw: str) -> None:
    rules = column("datetime", scale)
    stored = bytes.fromhex(raw)
    assert to_text(rules)(stored) == text
    assert from_sql(rules)(text) == stored


def test_datetimes_in_python() -> None:
    rules = column("datetime", 6)
    stored = from_sql(rules)("2024-02-29 12:34:56.000001")
    assert to_python(rules)(stored) == datetime(2024, 2, 29, 12, 34, 56, 1)
    assert to_python(rules)(from_sql(rules)("2024-00-10 00:00:00")) == "2024-00-10 00:00:00.000000"


@pytest.mark.parametrize(
    ("scale", "literal", "text"),
    [
        (0, "2024-12-31 23:59:59.5", "2025-01-01 00:00:00"),
        (0, "2024-12-31 23:59:59.499999", "2024-12-31 23:59:59"),
        (2, "2024-12-31 23:59:59.995", "2025-01-01 00:00:00.00"),
        (3, "2024-01-01 00:00:00.0004", "2024-01-01 00:00:00.000"),
    ],
)
def test_fractions_are_rounded(scale: int, literal: str, text: str) -> None:
    for kind in ("datetime", "timestamp"):
        rules = column(kind, scale)
        assert to_text(rules)(from_sql(rules)(literal)) == text


@pytest.mark.parametrize(
    ("scale", "text", "raw"),
    [
        (0, "1970-01-01 00:00:01", "00000001"),
        (0, "2038-01-19 03:14:07", "7fffffff"),
        (0, "0000-00-00 00:00:00", "00000000"),
        (3, "2024-02-29 12:34:56.789", "65e079f01ed2"),
        (6, "2038-01-19 03:14:07.999999", "7fffffff0f423f"),
        (6, "0000-00-00 00:00:00.000000", "00000000000000"),
    ],
)
def test_timestamps(scale: int, text: str, raw: str) -> None:
    rules = column("timestamp", scale)
    assert to_text(rules)(bytes.fromhex(raw)) == text
    assert from_sql(rules)(text) == bytes.fromhex(raw)


def test_timestamps_beyond_their_range() -> None:
    for text in ("1969-12-31 23:59:59", "2200-01-01 00:00:00"):
        with pytest.raises(ValueRefused) as caught:
            from_sql(column("timestamp"))(text)
        assert caught.value.number == 1292


def test_timestamps_in_python_are_utc() -> None:
    assert to_python(column("timestamp"))(b"\0\0\0\1") == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert to_python(column("timestamp", 2))(bytes(5)) == "0000-00-00 00:00:00.00"


def test_a_literal_with_a_zone() -> None:
    assert (
        to_text(column("timestamp"))(from_sql(column("timestamp"))("2024-01-01 02:00:00+02:00"))
        == "2024-01-01 00:00:00"
    )


@pytest.mark.parametrize(
    ("scale", "text", "raw"),
    [
        (0, "00:00:00", "800000"),
        (0, "838:59:59", "b46efb"),
        (0, "-838:59:59", "4b9105"),
        (0, "-00:00:01", "7fffff"),
        (2, "-00:00:00.10", "7ffffff6"),
        (2, "12:34:56.78", "80c8b84e"),
        (2, "-12:34:56.78", "7f3747b2"),
        (4, "-00:00:01.0001", "7ffffeffff"),
        (6, "-838:59:59.000000", "4b9105000000"),
        (6, "-00:00:00.000001", "7fffffffffff"),
        (6, "00:00:00.999999", "8000000f423f"),
    ],
)
def test_times_as_they_are_packed(scale: int, text: str, raw: str) -> None:
    rules = column("time", scale)
    assert to_text(rules)(bytes.fromhex(raw)) == text
    assert from_sql(rules)(text) == bytes.fromhex(raw)


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ("1 02:03:04", "26:03:04"), ("-1 00:00:00", "-24:00:00"), ("10", "00:00:10"),
        ("1010", "00:10:10"), (101010, "10:10:10"), ("12:30", "12:30:00"),
        ("2024-01-01 05:06:07", "05:06:07"), ("00:00:00.5", "00:00:01"),
        ("-00:00:00.5", "-00:00:01"),
    ],
)  # fmt: skip
def test_forms_of_a_time(literal: object, text: str) -> None:
    assert to_text(column("time"))(from_sql(column("time"))(literal)) == text


def test_times_beyond_their_range() -> None:
    for literal, text in (
        ("839:00:00", "838:59:59"),
        ("-900:00:00", "-838:59:59"),
        ("34 22:59:59.5", "838:59:59"),
    ):
        with pytest.raises(ValueRefused) as caught:
            from_sql(column("time"))(literal)
        assert caught.value.number == 1264
        assert to_text(column("time"))(caught.value.closest) == text


@given(
    st.integers(-(838 * 3600 + 59 * 60 + 59) * 10**6, (838 * 3600 + 59 * 60 + 59) * 10**6),
    st.integers(0, 6),
)
def test_every_time_comes_back(microseconds: int, scale: int) -> None:
    step = 10 ** (6 - scale)
    value = timedelta(
        microseconds=abs(microseconds) // step * step * (-1 if microseconds < 0 else 1)
    )
    rules = column("time", scale)
    stored = from_sql(rules)(value)
    assert to_python(rules)(stored) == value
    assert from_sql(rules)(to_text(rules)(stored)) == stored


@given(
    st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 58)),
    st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)),
    st.integers(0, 6),
)
def test_every_datetime_comes_back_and_sorts_as_bytes(
    one: datetime, two: datetime, scale: int
) -> None:
    step = 10 ** (6 - scale)
    one, two = (
        moment.replace(microsecond=moment.microsecond // step * step) for moment in (one, two)
    )
    rules = column("datetime", scale)
    first, second = from_sql(rules)(one), from_sql(rules)(two)
    assert to_python(rules)(first) == one
    assert from_sql(rules)(to_text(rules)(first)) == first
    assert (first < second) == (one < two)


@given(
    st.datetimes(datetime(1970, 1, 1, 0, 0, 1), datetime(2038, 1, 19, 3, 14, 6)), st.integers(0, 6)
)
def test_every_timestamp_comes_back(moment: datetime, scale: int) -> None:
    step = 10 ** (6 - scale)
    moment = moment.replace(microsecond=moment.microsecond // step * step)
    rules = column("timestamp", scale)
    stored = from_sql(rules)(moment)
    assert to_python(rules)(stored) == moment.replace(tzinfo=UTC)
    assert from_sql(rules)(to_text(rules)(stored)) == stored
