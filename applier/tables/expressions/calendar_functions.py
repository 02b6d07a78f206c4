"""More SQL functions on dates and times that are exact here: weeks, names, periods, formats, spans
of time; see `applier.tables.expressions.functions`."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from applier.binlog.types.temporal import Parts, datetime_to_parts
from applier.tables.expressions.calls import (
    EXACT_NUMBERS,
    WHOLE,
    WORDS,
    Call,
    Domain,
    Function,
    integer_result,
    plain_text,
    unchanged,
)
from applier.tables.expressions.date_functions import DATED, ONLY_DATES, real_moment
from applier.tables.expressions.operands import (
    Dialect,
    Operand,
    OperandKind,
    Scope,
    Session,
    Value,
    local_parts,
    mapped,
    unsupported,
)
from applier.tables.expressions.operators import null_or

SECOND = 1_000_000
MOST_TIME = (838 * 3600 + 59 * 60 + 59) * SECOND
CLOCKED = Domain(frozenset({OperandKind.DATETIME, OperandKind.TIME}), unchanged)
TIMES = Domain(frozenset({OperandKind.TIME}), unchanged)


def _clock(value: int | Parts) -> int:
    """Microseconds of a time, or of a moment within its day."""
    if isinstance(value, int):
        return value
    return ((value[3] * 60 + value[4]) * 60 + value[5]) * SECOND + value[6]


def _in_range(microseconds: int, sql: str) -> int:
    if abs(microseconds) > MOST_TIME:
        raise unsupported(f"{sql}: a time out of range")
    return microseconds


def _time(call: Call) -> Operand:
    (one,) = call.arguments
    return mapped(one, OperandKind.TIME, _clock, sql=call.sql, literal=False, column=None)


def _timestamp(call: Call) -> Operand:
    (one,) = call.arguments
    return replace(one, kind=OperandKind.DATETIME, sql=call.sql, literal=False, column=None)


# weeks


def _week_one(year: int, *, monday: bool, full: bool) -> int:
    """The ordinal of the first day of week 1: the first full week, or the one with four days."""
    first = date(year, 1, 1)
    gone = first.weekday() if monday else first.isoweekday() % 7
    starts_later = gone > 0 if full else gone > 3
    return first.toordinal() - gone + (7 if starts_later else 0)


def _week(day: datetime, mode: int, *, of_year: bool) -> tuple[int, int]:
    """(year, week) of a day by a mode of WEEK() (`calc_week`, sql-common/my_time.cc). `of_year`:
    never week 0."""
    monday = bool(mode & 1)
    full = bool(mode & 4) != (not monday)
    at, year = day.toordinal(), day.year
    if not 1 < year < 9999:
        raise unsupported(f"the week of a day in the year {year}")
    start = _week_one(year, monday=monday, full=full)
    if at < start:
        if not of_year:
            return year, 0
        year -= 1
        start = _week_one(year, monday=monday, full=full)
    elif of_year and at >= _week_one(year + 1, monday=monday, full=full):
        return year + 1, 1
    return year, (at - start) // 7 + 1


def _week_number(parts: Parts, mode: int = 0) -> int:
    return _week(real_moment(parts), mode & 7, of_year=bool(mode & 2))[1]


def _year_week(parts: Parts, mode: int = 0) -> int:
    year, week = _week(real_moment(parts), mode & 7, of_year=True)
    return year * 100 + week


def _of_mode(compute: Callable[..., int]) -> Callable[[Call], Operand]:
    """WEEK and YEARWEEK. NULL as the mode is default_week_format, or NULL. Without a mode it is 0:
    a log does not say what default_week_format was."""
    build = integer_result(compute)

    def built(call: Call) -> Operand:
        if len(call.arguments) > 1 and not call.arguments[1].literal:
            raise unsupported(call.sql)
        if call.arguments[-1].kind is OperandKind.NULL:
            raise unsupported(call.sql)
        return build(call)

    return built


# periods


def _months_of(period: int) -> int:
    year, month = divmod(period, 100)
    if period <= 0 or not 1 <= month <= 12 or year > 9999:
        raise unsupported(f"the period {period}")
    return (year + (2000 if year < 70 else 1900 if year < 100 else 0)) * 12 + month - 1


def _period_add(period: int, count: int) -> int:
    months = _months_of(period) + count
    if not 1200 <= months < 120_000:
        raise unsupported(f"the period {period} and {count} months")
    return months // 12 * 100 + months % 12 + 1


def _period_difference(one: int, two: int) -> int:
    return _months_of(one) - _months_of(two)


# made of numbers


def _make_date(year: int, day: int) -> Parts | None:
    if day <= 0 or not 0 <= year <= 9999:
        return None
    year += 2000 if year < 70 else 1900 if year < 100 else 0
    ordinal = date(year, 1, 1).toordinal() + day - 1
    if ordinal > date.max.toordinal():
        return None
    found = date.fromordinal(ordinal)
    return (found.year, found.month, found.day, 0, 0, 0, 0)


def _make_time(call: Call) -> Operand:
    def compute(hour: int, minute: int, second: int) -> int | None:
        if not 0 <= minute < 60 or not 0 <= second < 60:
            return None
        size = ((abs(hour) * 60 + minute) * 60 + second) * SECOND
        return _in_range(-size if hour < 0 else size, call.sql)

    return Operand(OperandKind.TIME, null_or(call.arguments, compute), call.sql)


def _seconds_to_time(call: Call) -> Operand:
    return Operand(
        OperandKind.TIME,
        null_or(call.arguments, lambda seconds: _in_range(seconds * SECOND, call.sql)),
        call.sql,
    )


def _from_unixtime(call: Call) -> Operand:
    """A moment in the session's time zone. Raises ReplicationError 1235 from 2038 on."""
    (given,) = call.arguments
    if given.digits > 6:
        raise unsupported(call.sql)

    def value(scope: Scope) -> Value:
        seconds = given.value(scope)
        if seconds is None or seconds < 0:
            return None
        if seconds >= 1 << 31:
            raise unsupported(f"FROM_UNIXTIME({seconds})")
        return _moment_of(int(seconds * SECOND), scope.session)

    return Operand(OperandKind.DATETIME, value, call.sql, given.digits)


def _moment_of(microseconds: int, session: Session) -> Parts:
    """0 is 1970, not the zero date."""
    if microseconds:
        return local_parts(microseconds, session)
    later = local_parts(SECOND, session)
    return (*later[:5], later[5] - 1, 0)


# spans


def _add_time(sign: int) -> Callable[[Call], Operand]:
    """ADDTIME and SUBTIME of moments and times."""

    def build(call: Call) -> Operand:
        one, two = call.arguments
        digits = max(one.digits, two.digits)
        if OperandKind.NULL in (one.kind, two.kind):
            raise unsupported(call.sql)

        def compute(start: Any, span: int) -> Value:
            if isinstance(start, int):
                return _in_range(start + sign * span, call.sql)
            return _moved(start, sign * span, call.sql)

        return Operand(one.kind, null_or([one, two], compute), call.sql, digits)

    return build


def _moved(start: Parts, microseconds: int, sql: str) -> Parts:
    try:
        moved = real_moment(start) + timedelta(microseconds=microseconds)
    except OverflowError:
        raise unsupported(f"{sql} beyond the calendar") from None
    return datetime_to_parts(moved)


def _time_difference(call: Call) -> Operand:
    one, two = call.arguments
    if one.kind is not two.kind:
        raise unsupported(call.sql)

    def compute(first: Any, second: Any) -> int:
        if isinstance(first, int):
            return _in_range(first - second, call.sql)
        span = real_moment(first) - real_moment(second)
        whole = (span.days * 86400 + span.seconds) * SECOND + span.microseconds
        return _in_range(whole, call.sql)

    digits = max(one.digits, two.digits)
    return Operand(OperandKind.TIME, null_or([one, two], compute), call.sql, digits)


_SPANS = {
    "MICROSECOND": 1, "SECOND": SECOND, "MINUTE": 60 * SECOND, "HOUR": 3600 * SECOND,
    "DAY": 86400 * SECOND, "WEEK": 7 * 86400 * SECOND,
}  # fmt: skip
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def timestamp_difference(unit: str, one: Operand, two: Operand, dialect: Dialect) -> Operand:
    """TIMESTAMPDIFF: whole units from the one to the other. Raises ReplicationError 1235 for
    other units."""
    sql = f"TIMESTAMPDIFF({unit}, {one.sql}, {two.sql})"
    if OperandKind.NULL in (one.kind, two.kind):
        raise unsupported(sql)
    taken = [DATED.take(operand, "TIMESTAMPDIFF", dialect) for operand in (one, two)]
    if unit not in _SPANS and unit not in _MONTHS:
        raise unsupported(sql)

    def compute(first: Parts, second: Parts) -> int:
        start, end = real_moment(first), real_moment(second)
        sign = -1 if end < start else 1
        start, end = min(start, end), max(start, end)
        if unit in _SPANS:
            span = end - start
            whole = (span.days * 86400 + span.seconds) * SECOND + span.microseconds
            return sign * (whole // _SPANS[unit])
        months = (end.year - start.year) * 12 + end.month - start.month
        behind = (end.day, end.time()) < (start.day, start.time())
        return sign * ((months - behind) // _MONTHS[unit])

    return Operand(OperandKind.INTEGER, null_or(taken, compute), sql)


# formats


def _ordinal(day: int) -> str:
    last = day % 10
    place = 2 * last if last < 4 and not 10 < day < 20 else 0
    return f"{day}{'thstndrd'[place : place + 2]}"


def _hour(moment: datetime) -> int:
    return moment.hour % 12 or 12


def _half(moment: datetime) -> str:
    return "AM" if moment.hour < 12 else "PM"


_FORMATS: dict[str, Callable[[datetime], str]] = {
    "a": lambda moment: calendar.day_abbr[moment.weekday()],
    "b": lambda moment: calendar.month_abbr[moment.month],
    "c": lambda moment: str(moment.month),
    "D": lambda moment: _ordinal(moment.day),
    "d": lambda moment: f"{moment.day:02}",
    "e": lambda moment: str(moment.day),
    "f": lambda moment: f"{moment.microsecond:06}",
    "H": lambda moment: f"{moment.hour:02}",
    "h": lambda moment: f"{_hour(moment):02}",
    "I": lambda moment: f"{_hour(moment):02}",
    "i": lambda moment: f"{moment.minute:02}",
    "j": lambda moment: f"{moment.timetuple().tm_yday:03}",
    "k": lambda moment: str(moment.hour),
    "l": lambda moment: str(_hour(moment)),
    "M": lambda moment: calendar.month_name[moment.month],
    "m": lambda moment: f"{moment.month:02}",
    "p": _half,
    "r": lambda moment: f"{_hour(moment):02}:{moment:%M:%S} {_half(moment)}",
    "S": lambda moment: f"{moment.second:02}",
    "s": lambda moment: f"{moment.second:02}",
    "T": lambda moment: f"{moment:%H:%M:%S}",
    "U": lambda moment: f"{_week(moment, 0, of_year=False)[1]:02}",
    "u": lambda moment: f"{_week(moment, 1, of_year=False)[1]:02}",
    "V": lambda moment: f"{_week(moment, 2, of_year=True)[1]:02}",
    "v": lambda moment: f"{_week(moment, 3, of_year=True)[1]:02}",
    "W": lambda moment: calendar.day_name[moment.weekday()],
    "w": lambda moment: str(moment.isoweekday() % 7),
    "X": lambda moment: f"{_week(moment, 2, of_year=True)[0]:04}",
    "x": lambda moment: f"{_week(moment, 3, of_year=True)[0]:04}",
    "Y": lambda moment: f"{moment.year:04}",
    "y": lambda moment: f"{moment.year % 100:02}",
}
"""By the letter behind %; a letter that is not here stands for itself."""


def _formatted(parts: Parts, layout: str) -> str | None:
    if not layout.isascii() or not layout or layout.endswith("%"):
        raise unsupported(f"the format '{layout[:40]}'")
    moment, text, letters = real_moment(parts), [], iter(layout)
    for letter in letters:
        if letter == "%":
            letter = next(letters)
            text.append(_FORMATS.get(letter, lambda _, own=letter: own)(moment))
        else:
            text.append(letter)
    return "".join(text)


def _in_english(compute: Callable[..., Value]) -> Callable[[Call], Operand]:
    """Text with names in English. Raises ReplicationError 1235 where lc_time_names is another."""
    build = plain_text(compute)

    def built(call: Call) -> Operand:
        operand = build(call)

        def value(scope: Scope) -> Value:
            if scope.session.lc_time_names:
                raise unsupported(f"{call.sql} with lc_time_names")
            return operand.value(scope)

        return replace(operand, value=value)

    return built


def _name(names: Callable[[datetime], str]) -> Function:
    return Function((DATED,), _in_english(lambda parts: names(real_moment(parts))), 1, 1)


def _date_result(compute: Callable[..., Value]) -> Callable[[Call], Operand]:
    return lambda call: Operand(OperandKind.DATE, null_or(call.arguments, compute), call.sql)


def _seconds_of(parts: Parts) -> int:
    moment = real_moment(parts)
    days = moment.toordinal() + 365
    return days * 86400 + (moment.hour * 60 + moment.minute) * 60 + moment.second


CALENDAR_FUNCTIONS: dict[str, Function] = {
    "TIME": Function((CLOCKED,), _time, 1, 1),
    "TIMESTAMP": Function((ONLY_DATES,), _timestamp, 1, 1),
    "FROM_UNIXTIME": Function((EXACT_NUMBERS,), _from_unixtime, 1, 1),
    "WEEK": Function((DATED, WHOLE), _of_mode(_week_number), 1, 2),
    "YEARWEEK": Function((DATED, WHOLE), _of_mode(_year_week), 1, 2),
    "WEEKOFYEAR": Function((DATED,), integer_result(lambda parts: _week_number(parts, 3)), 1, 1),
    "DAYNAME": _name(_FORMATS["W"]),
    "MONTHNAME": _name(_FORMATS["M"]),
    "DATE_FORMAT": Function((DATED, WORDS), _in_english(_formatted), 2, 2),
    "PERIOD_ADD": Function((WHOLE,), integer_result(_period_add), 2, 2),
    "PERIOD_DIFF": Function((WHOLE,), integer_result(_period_difference), 2, 2),
    "MAKEDATE": Function((WHOLE,), _date_result(_make_date), 2, 2),
    "MAKETIME": Function((WHOLE,), _make_time, 3, 3),
    "SEC_TO_TIME": Function((WHOLE,), _seconds_to_time, 1, 1),
    "TO_SECONDS": Function((DATED,), integer_result(_seconds_of), 1, 1),
    "ADDTIME": Function((CLOCKED, TIMES), _add_time(1), 2, 2),
    "SUBTIME": Function((CLOCKED, TIMES), _add_time(-1), 2, 2),
    "TIMEDIFF": Function((CLOCKED,), _time_difference, 2, 2),
}
