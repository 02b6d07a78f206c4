"""Dates and times: stored value <-> Python <-> the server's text.

Packed forms: sql-common/my_time.cc (`TIME_to_longlong_datetime_packed`,
`my_datetime_packed_to_binary`, ...), 5.6.4 to 9.7. A value that Python's types cannot hold (zero
dates, zero months or days) comes out as the server's text instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo

from applier.binlog.time_zone import to_utc
from applier.binlog.types.base import ValueRefused, text_of
from lookup.table import Column

Parts = tuple[int, int, int, int, int, int, int]
"""year, month, day, hour, minute, second, microsecond"""

_TIME_OFFSET = {3: 0x800000, 4: 0x80000000, 5: 0x8000000000, 6: 0x800000000000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = re.compile(r"(\d{1,4})\D(\d{1,2})\D(\d{1,2})(?:[T\s]+(.*))?", re.DOTALL)
_TIME = re.compile(r"(-?)(?:(\d+)\s+)?(\d+)(?::(\d{1,2}))?(?::(\d{1,2}))?(?:\.(\d*))?$")
_ZONE = re.compile(r"(.*)([+-])(\d\d):(\d\d)$", re.DOTALL)


def datetime_to_parts(moment: datetime) -> Parts:
    """A datetime's parts."""
    return (
        moment.year,
        moment.month,
        moment.day,
        moment.hour,
        moment.minute,
        moment.second,
        moment.microsecond,
    )


def number_to_parts(number: int) -> Parts:
    """The parts of a moment written as YYYYMMDDhhmmss."""
    day, clock = divmod(number, 1_000_000)
    return (
        day // 10000,
        day // 100 % 100,
        day % 100,
        clock // 10000,
        clock // 100 % 100,
        clock % 100,
        0,
    )


def fraction_text(microseconds: int, digits: int) -> str:
    """The fraction of a second with its point; "" for 0 digits. A second that 5.7's
    CURRENT_TIMESTAMP(6) rounds up to has a digit more (`my_useconds_to_str`)."""
    whole = 7 if microseconds < 1_000_000 else 8
    return f".{microseconds:06d}"[: digits + whole - 6] if digits else ""


def _fraction(data: bytes, at: int) -> int:
    """Microseconds out of the 0 to 3 bytes that stand at the end of a packed value."""
    size = len(data) - at
    return int.from_bytes(data[at:], "big") * (0, 10000, 100, 1)[size] if size else 0


def _fraction_bytes(microseconds: int, digits: int) -> bytes:
    size = (digits + 1) // 2
    return (microseconds // (1, 10000, 100, 1)[size]).to_bytes(size, "big") if size else b""


# DATE


def date_parts(stored: int) -> tuple[int, int, int]:
    """Year, month, day of a stored DATE; each may be zero."""
    return stored >> 9, stored >> 5 & 0x0F, stored & 0x1F


def date_to_text(_column: Column) -> Callable[[int], str]:
    """DATE as the server prints it."""
    return lambda stored: "{:04d}-{:02d}-{:02d}".format(*date_parts(stored))


def date_to_python(column: Column) -> Callable[[int], date | str]:
    """DATE as date; as text where Python has no such date (2024-00-00)."""
    to_text = date_to_text(column)

    def convert(stored: int) -> date | str:
        try:
            return date(*date_parts(stored))
        except ValueError:
            return to_text(stored)

    return convert


def date_from_sql(column: Column) -> Callable[[object], int]:
    """DATE from SQL values; a time of day is cut off. The function raises ValueRefused 1292."""

    def convert(value: object) -> int:
        year, month, day, *_ = parse_datetime(value, column)
        return year << 9 | month << 5 | day

    return convert


# DATETIME


def datetime_parts(stored: bytes) -> Parts:
    """Year, month, day, hour, minute, second, microsecond of a stored DATETIME2."""
    packed = int.from_bytes(stored[:5], "big") - 0x8000000000
    year_month, day = packed >> 22, packed >> 17 & 0x1F
    return (
        year_month // 13, year_month % 13, day, packed >> 12 & 0x1F, packed >> 6 & 0x3F,
        packed & 0x3F, _fraction(stored, 5),
    )  # fmt: skip


def pack_datetime(parts: Parts, digits: int) -> bytes:
    """The stored form of a DATETIME2 with `digits` of a fraction; what is more is cut off."""
    year, month, day, hour, minute, second, microsecond = parts
    packed = ((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second
    return (packed + 0x8000000000).to_bytes(5, "big") + _fraction_bytes(microsecond, digits)


def parts_text(parts: Parts, digits: int) -> str:
    """Parts as the server prints a DATETIME."""
    return "{:04d}-{:02d}-{:02d} {:02d}:{:02d}:{:02d}".format(*parts[:6]) + fraction_text(
        parts[6], digits
    )


def datetime_to_text(column: Column) -> Callable[[bytes], str]:
    """DATETIME as the server prints it."""
    return lambda stored: parts_text(datetime_parts(stored), column.scale)


def datetime_to_python(column: Column) -> Callable[[bytes], datetime | str]:
    """DATETIME as datetime in no time zone; as text where Python has none."""

    def convert(stored: bytes) -> datetime | str:
        parts = datetime_parts(stored)
        try:
            return datetime(*parts)
        except ValueError:
            return parts_text(parts, column.scale)

    return convert


def datetime_from_sql(column: Column) -> Callable[[object], bytes]:
    """DATETIME from SQL values, rounded to the column's digits. The function raises ValueRefused:
    1264 out of range, 1292 no time."""
    return lambda value: pack_datetime(
        _rounded(parse_datetime(value, column), column.scale), column.scale
    )


# TIMESTAMP


def timestamp_microseconds(stored: bytes) -> int:
    """Microseconds since 1970 in UTC."""
    return int.from_bytes(stored[:4], "big") * 1_000_000 + _fraction(stored, 4)


def timestamp_to_text(column: Column) -> Callable[[bytes], str]:
    """In UTC; the zero timestamp is the zero date."""

    def convert(stored: bytes) -> str:
        microseconds = timestamp_microseconds(stored)
        if microseconds == 0:
            return "0000-00-00 00:00:00" + fraction_text(0, column.scale)
        moment = _EPOCH + timedelta(seconds=int.from_bytes(stored[:4], "big"))
        fraction = fraction_text(_fraction(stored, 4), column.scale)
        return moment.strftime("%Y-%m-%d %H:%M:%S") + fraction

    return convert


def timestamp_to_python(column: Column) -> Callable[[bytes], datetime | str]:
    """TIMESTAMP as datetime in UTC; the zero timestamp as text."""
    to_text = timestamp_to_text(column)

    def convert(stored: bytes) -> datetime | str:
        microseconds = timestamp_microseconds(stored)
        return _EPOCH + timedelta(microseconds=microseconds) if microseconds else to_text(stored)

    return convert


def pack_timestamp(microseconds: int, digits: int) -> bytes:
    """The stored form of a TIMESTAMP2, from microseconds since 1970. Raises ValueRefused 1292
    behind 2106."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    if not 0 <= seconds < 1 << 32:
        raise ValueRefused(1292, "Incorrect datetime value for a TIMESTAMP column")
    return seconds.to_bytes(4, "big") + _fraction_bytes(fraction, digits)


def timestamp_from_sql(column: Column, zone: tzinfo = UTC) -> Callable[[object], bytes]:
    """TIMESTAMP from SQL values in a session's time zone. The function raises ValueRefused 1292; a
    day that the calendar lacks becomes zero."""

    def convert(value: object) -> bytes:
        zero = pack_timestamp(0, column.scale)
        parts = _rounded(parse_datetime(value, column), column.scale)
        if not any(parts[:3]):
            return zero
        try:
            moment = to_utc(datetime(*parts), zone)
        except (ValueError, OverflowError):
            raise ValueRefused(
                1292, f"Incorrect datetime value: '{value}' for column '{column.name}'", zero
            ) from None
        return pack_timestamp((moment - _EPOCH) // timedelta(microseconds=1), column.scale)

    return convert


# TIME


def time_microseconds(stored: bytes) -> int:
    """Signed microseconds."""
    sign, seconds, fraction = _time_parts(stored)
    return sign * (seconds * 1_000_000 + fraction)


def _time_parts(stored: bytes) -> tuple[int, int, int]:
    """Sign, seconds and microseconds. A negative fraction is stored as two's complement of the
    whole value."""
    size = len(stored)
    packed = int.from_bytes(stored, "big") - _TIME_OFFSET[size]
    sign = -1 if packed < 0 else 1
    shift = (size - 3) * 8
    whole, fraction = abs(packed) >> shift, abs(packed) & ((1 << shift) - 1)
    seconds = (whole >> 12 & 0x3FF) * 3600 + (whole >> 6 & 0x3F) * 60 + (whole & 0x3F)
    return sign, seconds, fraction * (1, 10000, 100, 1)[size - 3]


def pack_time(microseconds: int, digits: int) -> bytes:
    """The stored form of a TIME2 with `digits` of a fraction."""
    size = 3 + (digits + 1) // 2
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    whole = seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60
    packed = whole << (size - 3) * 8 | fraction // (1, 10000, 100, 1)[size - 3]
    return ((-packed if microseconds < 0 else packed) + _TIME_OFFSET[size]).to_bytes(size, "big")


def time_text(microseconds: int, digits: int) -> str:
    """Microseconds as the server prints a TIME."""
    return _clock_text(microseconds < 0, *divmod(abs(microseconds), 1_000_000), digits)


def _clock_text(negative: bool, seconds: int, fraction: int, digits: int) -> str:
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{'-' if negative else ''}{clock}{fraction_text(fraction, digits)}"


def time_to_text(column: Column) -> Callable[[bytes], str]:
    """TIME as the server prints it."""

    def convert(stored: bytes) -> str:
        sign, seconds, fraction = _time_parts(stored)
        return _clock_text(sign < 0 < seconds + fraction, seconds, fraction, column.scale)

    return convert


def time_to_python(_column: Column) -> Callable[[bytes], timedelta]:
    """TIME as timedelta."""
    return lambda stored: timedelta(microseconds=time_microseconds(stored))


def time_from_sql(column: Column) -> Callable[[object], bytes]:
    """TIME from SQL values, rounded to the column's digits. The function raises ValueRefused: 1264
    out of range, 1292 no time."""

    def convert(value: object) -> bytes:
        step = 10 ** (6 - column.scale)
        microseconds = parse_time(value, column)
        rounded = (abs(microseconds) + step // 2) // step * step
        sign = -1 if microseconds < 0 else 1
        most = (838 * 3600 + 59 * 60 + 59) * 1_000_000
        if rounded >= most + 1_000_000:
            raise ValueRefused(
                1264,
                f"Out of range value for column '{column.name}'",
                pack_time(sign * most, column.scale),
            )
        return pack_time(sign * min(rounded, most), column.scale)

    return convert


# YEAR


def year_to_python(_column: Column) -> Callable[[int], int]:
    """YEAR as int; 0 is the year 0000."""
    return lambda stored: stored + 1900 if stored else 0


def year_to_text(column: Column) -> Callable[[int], str]:
    """YEAR as the server prints it. MariaDB still has YEAR(2)."""
    if column.length == 2:
        return lambda stored: f"{stored % 100:02d}"
    return lambda stored: f"{stored + 1900 if stored else 0:04d}"


def year_from_sql(column: Column) -> Callable[[object], int]:
    """YEAR from SQL values; two digits mean 1970 to 2069. The function raises ValueRefused: 1264
    out of range, 1366 no year."""

    def convert(value: object) -> int:
        text = text_of(value).strip()
        if not text.isdigit():
            raise ValueRefused(1366, f"Incorrect year value: '{text}'", 0)
        year = int(text)
        if year < 100 and (year or (isinstance(value, (str, bytes)) and len(text) < 4)):
            year += 2000 if year < 70 else 1900
        if year and not 1901 <= year <= 2155:
            raise ValueRefused(1264, f"Out of range value for column '{column.name}'", 0)
        return year - 1900 if year else 0

    return convert


# reading SQL


def parse_datetime(value: object, column: Column) -> Parts:
    """A DATE or DATETIME literal in the forms the server takes. Raises ValueRefused (1292)."""
    if isinstance(value, datetime):
        return (
            value.year,
            value.month,
            value.day,
            value.hour,
            value.minute,
            value.second,
            value.microsecond,
        )
    if isinstance(value, date):
        return (value.year, value.month, value.day, 0, 0, 0, 0)
    text = text_of(value).strip()
    refused = ValueRefused(
        1292, f"Incorrect {column.type} value: '{text}' for column '{column.name}'"
    )
    zone = _ZONE.fullmatch(text) if ":" in text else None
    if zone is not None:
        text = zone[1]
    match = _DATE.fullmatch(text)
    if match is None:
        parts = _packed_digits(text)
        if parts is None:
            raise refused
    else:
        year = int(match[1]) + ((2000 if int(match[1]) < 70 else 1900) if len(match[1]) <= 2 else 0)
        clock = _clock(match[4] or "0")
        if clock is None:
            raise refused
        parts = (year, int(match[2]), int(match[3]), *clock)
    if parts[1] > 12 or parts[2] > 31 or parts[3] > 23 or parts[4] > 59 or parts[5] > 59:
        raise refused
    if zone is not None:
        offset = timedelta(hours=int(zone[3]), minutes=int(zone[4]))
        moment = datetime(*parts) - (offset if zone[2] == "+" else -offset)
        parts = datetime_to_parts(moment)
    return parts


def _clock(text: str) -> tuple[int, int, int, int] | None:
    match = re.fullmatch(r"(\d{1,2})(?::(\d{1,2}))?(?::(\d{1,2}))?(?:\.(\d*))?\s*", text)
    if match is None:
        return None
    return (
        int(match[1]),
        int(match[2] or 0),
        int(match[3] or 0),
        int((match[4] or "").ljust(6, "0")[:7][:6] or 0),
    )


def _packed_digits(text: str) -> Parts | None:
    """YYYYMMDD[hhmmss][.ffffff] and the two-digit-year forms."""
    whole, _, fraction = text.partition(".")
    if not whole.isdigit() or len(whole) > 14:
        return None
    if int(whole) == 0:
        return (0, 0, 0, 0, 0, 0, 0)
    if len(whole) in (6, 12):
        whole = ("20" if int(whole[:2]) < 70 else "19") + whole
    if len(whole) not in (8, 14):
        return None
    whole = whole.ljust(14, "0")
    microsecond = int(fraction.ljust(6, "0")[:6] or 0)
    return (
        int(whole[:4]), int(whole[4:6]), int(whole[6:8]), int(whole[8:10]), int(whole[10:12]),
        int(whole[12:14]), microsecond,
    )  # fmt: skip


def _rounded(parts: Parts, digits: int) -> Parts:
    """Fractional seconds rounded to the column's precision; rounding up may carry into the date."""
    step = 10 ** (6 - digits)
    microsecond = (parts[6] + step // 2) // step * step
    if microsecond < 1_000_000:
        return (*parts[:6], microsecond)
    try:
        moment = datetime(*parts[:6]) + timedelta(seconds=1)
    except (ValueError, OverflowError):
        return (*parts[:6], 1_000_000 - step)
    return (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, 0)


def parse_time(value: object, column: Column) -> int:
    """A TIME literal in signed microseconds. Raises ValueRefused (1292)."""
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    text = text_of(value).strip()
    match = _TIME.match(text)
    if match is None:
        parts = parse_datetime(text, column)
        return ((parts[3] * 60 + parts[4]) * 60 + parts[5]) * 1_000_000 + parts[6]
    sign, days, first, second, third, fraction = match.groups()
    if second is None and days is None:
        digits = first.rjust(6, "0")
        hours, minutes, seconds = int(digits[:-4]), int(digits[-4:-2]), int(digits[-2:])
    else:
        hours, minutes, seconds = int(first), int(second or 0), int(third or 0)
    if minutes > 59 or seconds > 59:
        raise ValueRefused(1292, f"Incorrect time value: '{text}' for column '{column.name}'")
    total = ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds
    microseconds = total * 1_000_000 + int((fraction or "").ljust(6, "0")[:6] or 0)
    return -microseconds if sign else microseconds


END_OF_TIME = pack_timestamp(((1 << 31) - 1) * 1_000_000 + 999_999, 6)
"""The end of a system-versioned row that still holds (MariaDB: 2038-01-19 03:14:07.999999 UTC)."""
ENDS_OF_TIME = frozenset(
    {END_OF_TIME, pack_timestamp(((1 << 32) - 1) * 1_000_000 + 999_999, 6), (1 << 64) - 1}
)
"""The same from MariaDB 11.5 on, and of tables that are versioned by transaction numbers."""
