"""Text and numbers as dates and times, read as the server reads them when it stores them.

`str_to_datetime`, `str_to_time`, `number_to_datetime` and `number_to_time` (sql-common/my_time.cc
5.7 to 9.7; MariaDB 10.11 where the table of its readings says so). What is wrong is not refused:
the server stores zero, or the nearest time, with a warning.
"""

from __future__ import annotations

import calendar
import re
import string
from dataclasses import dataclass
from datetime import datetime, timedelta

from applier.binlog.types.temporal import Parts, number_to_parts

ZERO: Parts = (0, 0, 0, 0, 0, 0, 0)
_DIGITS = frozenset("0123456789")
_SPACES = frozenset(" \t\n\v\f\r")
_PUNCTUATION = frozenset(string.punctuation)
_MOST_TIME = 8385959
_WHOLE_MOMENT = 12
"""Digits of YYMMDDhhmmss: in MariaDB a point behind fewer stands between fields, and so many need
no delimiters whatever follows."""
_TWO_DIGIT_YEARS = 70
"""Of two digits, the years from here on are of the 20th century."""
_DISPLACEMENT = re.compile(r"([-+])([0-9]{2}):([0-5][0-9])[ \t\n\v\f\r]*")
_ONE_MARK = re.compile(r"[^\w\s]?[0-9]")
_MARK_OR_SPACES = re.compile(r"[ \t\n\v\f\r]+[0-9]|[^\w\s]?[0-9]")
_FRACTION = re.compile(r"^\.?[0-9]*")
_MOST_DISPLACEMENT_SECONDS = 14 * 3600
TIME_LIMIT = (838 * 3600 + 59 * 60 + 59) * 1_000_000
"""The longest TIME in microseconds."""


@dataclass(frozen=True, slots=True)
class DateRules:
    """What makes a date wrong. `fuzzy`: months and days may be zero. `mariadb`: as MariaDB reads
    signs, and digits that end at a point. `displacements`: a time zone such as +05:30 may follow
    the seconds (8.0.19 on)."""

    fuzzy: bool = True
    no_zero_in_date: bool = False
    no_zero_date: bool = False
    invalid_dates: bool = False
    mariadb: bool = False
    displacements: bool = False

    def allow(self, parts: Parts) -> bool:
        """`check_date`: whether a column may hold this date."""
        year, month, day = parts[:3]
        if not any(parts):
            return not self.no_zero_date
        if (self.no_zero_in_date or not self.fuzzy) and not (month and day):
            return False
        if self.invalid_dates or not month:
            return True
        return day <= _days_in_month(year, month)


@dataclass(frozen=True, slots=True)
class DateTimeValue:
    """A date with its time of day; `nanoseconds` are those behind the microseconds. `is_date`: text
    without a time of day. `displacement_seconds`: of its time zone from UTC; None: that of the
    session."""

    parts: Parts
    nanoseconds: int = 0
    is_date: bool = False
    displacement_seconds: int | None = None


def moment_of(when: datetime) -> DateTimeValue:
    """A datetime as a moment."""
    return DateTimeValue(
        (when.year, when.month, when.day, when.hour, when.minute, when.second, when.microsecond)
    )


def _days_in_month(year: int, month: int) -> int:
    if month != 2:
        return (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    return 29 if year and calendar.isleap(year) else 28


def in_range(parts: Parts) -> bool:
    """`check_datetime_range`."""
    year, month, day, hour, minute, second, _ = parts
    return (
        year <= 9999 and month <= 12 and day <= 31 and hour <= 23 and minute <= 59 and second <= 59
    )


class _Text:
    """A cursor over characters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.end = len(text)
        self.behind_fields = 0

    @property
    def left(self) -> int:
        return self.end - self.at

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.text[at] if at < self.end else ""

    def digits(self, most: int | None = None) -> str:
        """Passes up to `most` digits."""
        start = self.at
        while (
            self.at < self.end
            and self.text[self.at] in _DIGITS
            and (most is None or self.at - start < most)
        ):
            self.at += 1
        return self.text[start : self.at]

    def spaces(self) -> None:
        while self.at < self.end and self.text[self.at] in _SPACES:
            self.at += 1


def text_moment(text: str, rules: DateRules) -> DateTimeValue | None:
    """`str_to_datetime`; None for what is no date, which the server stores as zero."""
    return _read_moment(text, rules)[1]


def _read_moment(
    text: str, rules: DateRules, *, with_time: bool = False
) -> tuple[bool, DateTimeValue | None]:
    """Whether the text looks like a date, and the date, None for one that is wrong.

    `with_time`: only a date that has a time of day counts, as when a TIME is read.
    """
    cursor = _Text(text)
    cursor.spaces()
    if rules.mariadb and cursor.peek() == "+":
        cursor.at += 1
        cursor.spaces()
    if cursor.peek() not in _DIGITS or not cursor.peek():
        return False, None
    run = next(
        (
            at
            for at in range(cursor.at, cursor.end)
            if cursor.text[at] not in _DIGITS and cursor.text[at] != "T"
        ),
        cursor.end,
    )
    count = run - cursor.at
    internal = run == cursor.end or cursor.text[run] == "."
    if rules.mariadb and run < cursor.end:
        internal = count >= _WHOLE_MOMENT
    counted = count - cursor.text.count("T", cursor.at, run) if rules.mariadb else count
    year_length = 4 if counted in (4, 8) or counted >= 14 else 2
    width = year_length if internal else None
    fields, spaced, delimited = _fields(cursor, width, single=rules.mariadb)
    if fields is None or (delimited and not spaced and with_time):
        return False, None
    values = [int(field) for field in fields] + [0] * (7 - len(fields))
    if not internal:
        year_length = len(fields[0])
    if len(fields) == 7:
        values[6] *= 10 ** (6 - len(fields[6]))
    if year_length == 2 and any(values):
        values[0] += 2000 if values[0] < _TWO_DIGIT_YEARS else 1900
    parts: Parts = tuple(values)  # type: ignore[assignment]
    if len(fields) < 3 or not in_range(parts) or not rules.allow(parts):
        return True, None
    nanoseconds = 0
    if len(fields) == 7 and len(fields[6]) == 6 and cursor.peek() in _DIGITS and cursor.peek():
        nanoseconds = 100 * int(cursor.peek())
    displacement = None
    if rules.displacements and len(fields) >= 6:
        rest = text[cursor.behind_fields :].lstrip(string.digits)
        if rest.startswith(("+", "-")):
            displacement = _displacement_seconds(rest)
            if displacement is None:
                return True, None
    if rules.mariadb and internal and _spoils(cursor, run, fields):
        return True, None
    return True, DateTimeValue(parts, nanoseconds, len(fields) <= 3, displacement)


def _spoils(cursor: _Text, run: int, fields: list[str]) -> bool:
    """Whether what stands behind digits without delimiters makes them no date: digits, punctuation
    and a T that is one too many do, letters and spaces do not (seen on MariaDB 10.11.18)."""
    rest = cursor.text[cursor.behind_fields :].lstrip(string.digits)
    if rest.startswith("T") and (len(fields) == 7 or "T" in cursor.text[: cursor.behind_fields]):
        return True
    rest = _FRACTION.sub("", cursor.text[max(cursor.behind_fields, run) :])
    return any(char in _DIGITS or char in _PUNCTUATION or char > "\x7f" for char in rest)


def _displacement_seconds(text: str) -> int | None:
    """`time_zone_displacement_to_seconds` (sql-common/my_time.cc 8.0.19 on); None for a wrong
    one."""
    found = _DISPLACEMENT.fullmatch(text)
    if found is None or found[0].startswith("-00:00"):
        return None
    seconds = int(found[2]) * 3600 + int(found[3]) * 60
    if seconds > _MOST_DISPLACEMENT_SECONDS:
        return None
    return -seconds if found[1] == "-" else seconds


def _fields(
    cursor: _Text, year_length: int | None, *, single: bool
) -> tuple[list[str] | None, bool, bool]:
    """The runs of digits; whether spaces, and whether any delimiters, stood between them. None for
    a run that is too long. `year_length`: of digits without delimiters; `single`: one character of
    punctuation delimits, and behind a second one nothing is read (MariaDB)."""
    fields: list[str] = []
    spaced = delimited = False
    internal = year_length is not None
    width = year_length or 4
    behind = cursor.at
    for at in range(7):
        if cursor.peek() not in _DIGITS or not cursor.peek():
            break
        field = cursor.digits(width if internal or at == 6 else None)
        if int(field) > 999_999:
            return None, spaced, delimited
        fields.append(field)
        width = 2
        behind = cursor.behind_fields = cursor.at
        if not cursor.left:
            break
        if at == 2 and cursor.peek() == "T":
            cursor.at += 1
            continue
        if at == 5:
            if cursor.peek() == ".":
                cursor.at += 1
                behind = cursor.behind_fields = cursor.at
                width = 6
            elif cursor.peek() in _DIGITS:
                break
            continue
        behind_one = _ONE_MARK if at > 2 else _MARK_OR_SPACES
        if single and at > 1 and not behind_one.match(cursor.text, cursor.at, cursor.end):
            break
        marks = 0
        while cursor.left and (cursor.peek() in _PUNCTUATION or cursor.peek() in _SPACES):
            marks += cursor.peek() in _PUNCTUATION
            if single and marks > 1:
                break
            if cursor.peek() in _SPACES:
                if at not in (2, 6):
                    return None, spaced, delimited
                spaced = True
            cursor.at += 1
            delimited = True
        behind = cursor.at
    cursor.at = behind
    return fields, spaced, delimited


def number_moment(number: int, rules: DateRules) -> Parts | None:
    """`number_to_datetime`: YYMMDD, YYYYMMDD, and both with hhmmss; None for what is no date."""
    if number == 0 or number >= 10000101000000:
        full = number
    elif number < 101:
        return None
    elif number <= 691231:
        full = (number + 20000000) * 1_000_000
    elif number < 700101:
        return None
    elif number <= 991231:
        full = (number + 19000000) * 1_000_000
    elif number < 10000101 and not rules.fuzzy:
        return None
    elif number <= 99991231:
        full = number * 1_000_000
    elif number < 101000000:
        return None
    elif number <= 691231235959:
        full = number + 20000000000000
    elif number < 700101000000:
        return None
    elif number <= 991231235959:
        full = number + 19000000000000
    else:
        full = number
    if full > 99999999999999:
        return None
    parts = number_to_parts(full)
    return parts if in_range(parts) and rules.allow(parts) else None


def text_time(
    text: str, rules: DateRules, most: int = TIME_LIMIT, *, old: bool = False
) -> tuple[int, int]:
    """`str_to_time`: signed microseconds, and nanoseconds behind them. Zero for what is no time; a
    longer one is cut.

    `rules` are for a text that has a date before the time, `most` is the longest time in
    microseconds. A date with a minus is no time; `old` servers (5.x) pass over the minus, and add
    the days of a month 0.
    """
    cursor = _Text(text)
    cursor.spaces()
    negative = cursor.peek() == "-"
    cursor.at += negative
    if not cursor.left:
        return 0, 0
    if cursor.left >= 12:
        is_date, moment = _read_moment(cursor.text[cursor.at :], rules, with_time=True)
        if is_date and moment is None:
            return 0, 0
        if moment is not None:
            if negative and not old:
                return 0, 0
            days = moment.parts[2] if old and not moment.parts[1] else 0
            hours = days * 24 + moment.parts[3]
            seconds = (hours * 60 + moment.parts[4]) * 60 + moment.parts[5]
            return seconds * 1_000_000 + moment.parts[6], moment.nanoseconds
    fields = _clock_fields(cursor, (1 << 64 if rules.mariadb else 1 << 32) - 1)
    if fields is None:
        return 0, 0
    days, hours, minutes, seconds = fields
    fraction, nanoseconds = _clock_fraction(cursor)
    if fraction is None or minutes > 59 or seconds > 59:
        return 0, 0
    total = ((days * 24 + hours) * 3600 + minutes * 60 + seconds) * 1_000_000 + fraction
    if total > most:
        total, nanoseconds = most, 0
    return (-total if negative else total), nanoseconds


def _clock_fields(cursor: _Text, most: int) -> list[int] | None:
    """Days, hours, minutes, seconds; None where the first number is above `most`."""
    value = int(cursor.digits() or 0)
    if value > most:
        return None
    end_of_days = cursor.at
    cursor.spaces()
    if cursor.left > 1 and cursor.at != end_of_days and cursor.peek() in _DIGITS:
        found = [value]
    elif cursor.left > 1 and cursor.peek() == ":" and cursor.peek(1) in _DIGITS:
        found = [0, value]
        cursor.at += 1
    else:
        return [0, value // 10000, value // 100 % 100, value % 100]
    while True:
        found.append(int(cursor.digits() or 0))
        if (
            len(found) == 4
            or cursor.left < 2
            or cursor.peek() != ":"
            or cursor.peek(1) not in _DIGITS
        ):
            break
        cursor.at += 1
    found += [0] * (4 - len(found))
    return found if max(found) <= 0xFFFFFFFF else None


def _clock_fraction(cursor: _Text) -> tuple[int | None, int]:
    fraction, nanoseconds = 0, 0
    if cursor.left >= 2 and cursor.peek() == "." and cursor.peek(1) in _DIGITS:
        cursor.at += 1
        digits = cursor.digits()
        fraction = int(digits[:6].ljust(6, "0"))
        # the last digit, as the server takes it
        nanoseconds = 100 * int(digits[-1]) if len(digits) > 6 else 0
    sign = cursor.peek(1) in ("-", "+") and cursor.peek(1) != ""
    follows = cursor.peek(2) if sign else cursor.peek(1)
    if cursor.left > 1 and cursor.peek() in ("e", "E") and follows and follows in _DIGITS:
        return None, 0
    return fraction, nanoseconds


def number_time(number: int) -> int:
    """`number_to_time`: hhmmss, or a whole date with its time, in signed microseconds; a longer one
    is cut."""
    if number > _MOST_TIME:
        parts = number_moment(number, DateRules()) if number >= 10_000_000_000 else None
        if parts is None:
            return TIME_LIMIT
        return ((parts[3] * 60 + parts[4]) * 60 + parts[5]) * 1_000_000
    if number < -_MOST_TIME:
        return -TIME_LIMIT
    clock = abs(number)
    if clock % 100 > 59 or clock // 100 % 100 > 59:
        return 0
    total = ((clock // 10000 * 60 + clock // 100 % 100) * 60 + clock % 100) * 1_000_000
    return -total if number < 0 else total


_END_OF_YEARS = (9999, 12, 31, 23, 59, 59)


def round_moment(
    moment: DateTimeValue, digits: int, *, truncate: bool, mariadb: bool = False
) -> Parts | None:
    """The fraction at `digits`; None where a second is carried into a date with a zero, or out of
    the year 9999. MariaDB cuts the latter, and carries as far as the day in the former."""
    step = 10 ** (6 - digits)
    parts = moment.parts
    if truncate or (mariadb and parts[:6] == _END_OF_YEARS):
        return (*parts[:6], parts[6] // step * step)
    whole = (parts[6] * 1000 + moment.nanoseconds + step * 500) // (step * 1000) * step
    if whole < 1_000_000:
        return (*parts[:6], whole)
    clock = (parts[3] * 60 + parts[4]) * 60 + parts[5] + 1
    if mariadb and clock < 86_400:
        return (*parts[:3], clock // 3600, clock // 60 % 60, clock % 60, 0)
    try:
        later = datetime(*parts[:6]) + timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None
    return (later.year, later.month, later.day, later.hour, later.minute, later.second, 0)


def round_time(
    microseconds: int, nanoseconds: int, digits: int, *, truncate: bool, most: int = TIME_LIMIT
) -> int:
    """Signed microseconds at `digits`, at most `most` (of which the digits behind are cut)."""
    step: int = 10 ** (6 - digits)
    size: int = abs(microseconds)
    if truncate:
        size = size // step * step
    else:
        size = (size * 1000 + nanoseconds + step * 500) // (step * 1000) * step
        size = min(size, most // step * step)
    return -size if microseconds < 0 else size
