"""How dates and times fit into columns: the dates that an SQL mode lets in, the digits that a
column keeps."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta, tzinfo

from applier.binlog.time_zone import from_utc
from applier.binlog.types.temporal import Parts, parts_text
from applier.binlog.types.temporal_parse import (
    TIME_LIMIT,
    DateRules,
    DateTimeValue,
    number_moment,
    round_moment,
    text_moment,
    text_time,
)
from applier.tables.expressions.operands import Dialect, unsupported
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from lookup.table import Column

_SHORT_DATES, _LONG_DATES = 991231, 10000101
"""The last YYMMDD, the first YYYYMMDD."""
_SIGN = re.compile(r"[ \t\n\v\f\r]*([-+]?)[ \t\n\v\f\r]*")
_DATE_AND_MORE = re.compile(
    r"\d+(?:[^\w\s:.]\d+[^\w\s]|[:.]\d+[^\w\s:.])\d+\D.*\d|\d+[:.]\d+[:.]\d+\s+\d"
)
_ODD_MARKS = re.compile(r"\d+[tT]\d+[^\w\s]|\d+[^\w\s]\d+[^\w\s]\d+(?:\s+[^\w\s]|t)")
"""Texts of which MariaDB reads the date or the time before it, by rules that are not known here."""
_DIGITS_AND_T = re.compile(r"[0-9]+T[0-9]")
_SHORTEST_MOMENT = 12
"""Characters from which on a text for a TIME is first read as a moment."""


def date_rules(column: Column, dialect: Dialect) -> DateRules:
    """Which dates a column takes; a TIMESTAMP is a moment, and none has a zero month or day."""
    sql_mode = dialect.sql_mode
    return DateRules(
        fuzzy=column.type != "timestamp",
        no_zero_in_date=SqlModeFlag.NO_ZERO_IN_DATE in sql_mode or column.type == "timestamp",
        no_zero_date=SqlModeFlag.NO_ZERO_DATE in sql_mode,
        invalid_dates=SqlModeFlag.ALLOW_INVALID_DATES in sql_mode,
        mariadb=dialect.mariadb,
        displacements=dialect.is_modern,
    )


def session_parts(moment: DateTimeValue, rounded: Parts, zone: tzinfo) -> Parts:
    """What a column of the session's time zone `zone` holds of a moment that names a time zone of
    its own. One whose rounding carries into the seconds stays as it is (seen on 9.7.4).

    Raises ReplicationError 1235 for one that leaves the dates of the calendar.
    """
    seconds = moment.displacement_seconds
    if seconds is None or rounded[5] != moment.parts[5]:
        return rounded
    try:
        utc = datetime(*rounded, tzinfo=UTC) - timedelta(seconds=seconds)
        local = from_utc(utc, zone)
    except (ValueError, OverflowError):
        raise unsupported(f"{parts_text(rounded, 6)} with a time zone") from None
    return (*local.timetuple()[:6], local.microsecond)


def cuts_fractions(sql_mode: SqlModeFlag, *, mariadb: bool) -> bool:
    """Whether fractions of a second are cut, not rounded."""
    if mariadb:
        return SqlModeFlag.TIME_ROUND_FRACTIONAL not in sql_mode
    return SqlModeFlag.TIME_TRUNCATE_FRACTIONAL in sql_mode


def longest_time(*, mariadb: bool) -> int:
    """Of a TIME, in microseconds."""
    return TIME_LIMIT + (999_999 if mariadb else 0)


def number_of_column(number: int, rules: DateRules) -> DateTimeValue | None:
    """The moment that a number stands for; None where it stands for no moment."""
    if rules.mariadb and _SHORT_DATES < number < _LONG_DATES:
        return None
    parts = number_moment(number, rules)
    return None if parts is None else DateTimeValue(parts)


def time_of_text(text: str, digits: int, dialect: Dialect, *, cuts: bool) -> tuple[int, int]:
    """Microseconds and the nanoseconds behind them of a text for a TIME (`str_to_time`). `digits`:
    those of the column; `cuts`: fractions are cut, not rounded."""
    if not dialect.mariadb:
        whole = text_moment(text, DateRules(displacements=not dialect.old))
        if whole is not None and whole.displacement_seconds is not None:
            raise unsupported(f"'{text}' with its time zone as a TIME")
        return text_time(text, DateRules(invalid_dates=not dialect.old), old=dialect.old)
    sign = _SIGN.match(text)
    assert sign is not None
    text = text[sign.end() :]
    if not text[:1].isdigit():
        return 0, 0
    negative = sign[1] == "-"
    is_short = len(text) < _SHORTEST_MOMENT or negative
    if (is_short and _DATE_AND_MORE.match(text)) or _ODD_MARKS.match(text):
        raise unsupported(f"'{text[:40]}' as a TIME")
    if _DIGITS_AND_T.match(text) is None:
        text = text.replace("T", " ")
    dates = DateRules(invalid_dates=True, mariadb=True)
    moment = text_moment(text, dates) if len(text) >= _SHORTEST_MOMENT else None
    if moment is not None and (
        negative or round_moment(moment, digits, truncate=cuts, mariadb=True) is None
    ):
        return 0, 0
    microseconds, nanoseconds = text_time(text, dates, longest_time(mariadb=True))
    return (-microseconds if negative else microseconds), nanoseconds


def checked_date(parts: Parts, sql_mode: SqlModeFlag, *, zeros: bool = True) -> Parts | None:
    """None for a date that the SQL mode does not let in (`check_date`, sql-common/my_time.cc).
    `zeros`: a month or day may be 0."""
    year, month, day = parts[:3]
    if not any(parts[:3]):
        return None if sql_mode & SqlModeFlag.NO_ZERO_DATE else parts
    if not month or not day:
        return parts if zeros and not sql_mode & SqlModeFlag.NO_ZERO_IN_DATE else None
    if (
        day > (29 if month == 2 and not year else calendar.monthrange(max(year, 1), month)[1])
        and not sql_mode & SqlModeFlag.ALLOW_INVALID_DATES
    ):
        return None
    return parts


def fitted_fraction(microseconds: int, digits: int, dialect: Dialect) -> int:
    """Microseconds with the digits of a column: rounded, or cut where version and SQL mode say
    so."""
    step: int = 10 ** (6 - digits)
    rounds = not cuts_fractions(dialect.sql_mode, mariadb=dialect.mariadb)
    return (microseconds + (step // 2 if rounds else 0)) // step * step


def fitted_parts(parts: Parts, digits: int, dialect: Dialect) -> Parts:
    """A moment with the digits of a column; rounding may carry into all of its parts."""
    microsecond = fitted_fraction(parts[6], digits, dialect)
    if microsecond < 1_000_000:
        return (*parts[:6], microsecond)
    try:
        moment = datetime(*parts[:6]) + timedelta(seconds=1)
    except (ValueError, OverflowError):
        raise unsupported(f"{parts_text(parts, 6)} rounded to {digits} digits") from None
    return (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, 0)
