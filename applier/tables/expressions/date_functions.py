"""The SQL functions on dates and times that are exact here, with their domains; see
`applier.tables.expressions.functions`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from applier.binlog.types.temporal import Parts, datetime_to_parts, parts_text
from applier.tables.expressions.calls import WHOLE, Call, Domain, Function, integer_result
from applier.tables.expressions.comparisons import moment_of
from applier.tables.expressions.operands import (
    DATES,
    Dialect,
    Operand,
    OperandKind,
    Scope,
    Session,
    Value,
    constant,
    mapped,
    unsupported,
)
from applier.tables.expressions.operators import null_or


def _dated(operand: Operand, _dialect: Dialect) -> Operand:
    """Text in the standard form is a DATETIME."""
    return operand if operand.kind in DATES else mapped(operand, OperandKind.DATETIME, _parts_of)


def _parts_of(text: str) -> Parts:
    found = moment_of(text)
    if isinstance(found, int):
        raise unsupported(f"'{text[:40]}' as a date")
    return found


def _timed(operand: Operand, _dialect: Dialect) -> Operand:
    if operand.kind is OperandKind.TIME:
        return operand
    if operand.kind is OperandKind.TEXT:
        return mapped(operand, OperandKind.TIME, _time_of)
    return mapped(operand, OperandKind.TIME, _clock)


def _time_of(text: str) -> int:
    found = moment_of(text)
    if len(text) == 10 and not isinstance(found, int):
        raise unsupported(f"'{text}' as a time")
    return found if isinstance(found, int) else _clock(found)


def _clock(parts: Parts) -> int:
    return ((parts[3] * 60 + parts[4]) * 60 + parts[5]) * 1_000_000 + parts[6]


DATED = Domain(DATES | {OperandKind.TEXT}, _dated)
TIMED = Domain(frozenset({OperandKind.DATETIME, OperandKind.TIME, OperandKind.TEXT}), _timed)
ONLY_DATES = Domain(DATES, _dated)


def real_moment(parts: Parts) -> datetime:
    """Parts as a datetime. Raises ReplicationError 1235 for zero dates and the like, of which each
    function makes something else."""
    try:
        return datetime(*parts)
    except ValueError:
        raise unsupported(f"a function of the date {parts_text(parts, 0)}") from None


# the clock


def moment(session: Session) -> datetime:
    """The time of the statement in UTC, without tzinfo."""
    return session.clock - session.offset


def _now(call: Call) -> Operand:
    digits = _fraction_digits(call)
    keep = 10 ** (6 - digits)

    def value(scope: Scope) -> Value:
        now = scope.session.clock
        return datetime_to_parts(now.replace(microsecond=now.microsecond // keep * keep))

    return Operand(OperandKind.DATETIME, value, call.sql, digits)


def _utc_now(call: Call) -> Operand:
    digits = _fraction_digits(call)
    keep = 10 ** (6 - digits)

    def value(scope: Scope) -> Value:
        now = moment(scope.session)
        return datetime_to_parts(now.replace(microsecond=now.microsecond // keep * keep))

    return Operand(OperandKind.DATETIME, value, call.sql, digits)


def _current_time(call: Call) -> Operand:
    return mapped(_now(call), OperandKind.TIME, _clock)


def _today(call: Call) -> Operand:
    return mapped(_now(call), OperandKind.DATE, _midnight)


def _utc_today(call: Call) -> Operand:
    return mapped(_utc_now(call), OperandKind.DATE, _midnight)


def _fraction_digits(call: Call) -> int:
    if not call.arguments:
        return 0
    (given,) = call.arguments
    digits = given.value(Scope((), None)) if given.literal else None  # type: ignore[arg-type]
    if not isinstance(digits, int) or not 0 <= digits <= 6:
        raise unsupported(call.sql)
    return digits


def _midnight(parts: Parts) -> Parts:
    return (*parts[:3], 0, 0, 0, 0)


def _unix_timestamp(call: Call) -> Operand:
    """Of now, or of a moment of whole seconds in the session's time zone (`TIME_to_timestamp`)."""
    if not call.arguments:
        return Operand(OperandKind.INTEGER, lambda scope: _seconds(moment(scope.session)), call.sql)
    (given,) = call.arguments
    if given.digits:
        raise unsupported(call.sql)

    def value(scope: Scope) -> Value:
        parts = given.value(scope)
        if parts is None:
            return None
        local, zone = real_moment(parts), scope.session.zone
        early, late = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
        seconds = _seconds(early.astimezone(UTC).replace(tzinfo=None))
        if early.utcoffset() != late.utcoffset() or not _DAY < seconds < (1 << 31) - _DAY:
            raise unsupported(f"UNIX_TIMESTAMP of {local}")
        return seconds

    return Operand(OperandKind.INTEGER, value, call.sql)


_DAY = 86400


def _seconds(found: datetime) -> int:
    return int((found - datetime(1970, 1, 1)).total_seconds())


def _whole_seconds(operand: Operand, dialect: Dialect) -> Operand:
    """A text that is not a literal would have six digits of a second."""
    if operand.kind is OperandKind.TEXT and not (operand.literal and "." not in operand.sql):
        raise unsupported(f"UNIX_TIMESTAMP of the text {operand.sql[:40]}")
    return _dated(operand, dialect)


WHOLE_SECONDS = Domain(DATES | {OperandKind.TEXT}, _whole_seconds)


# parts


def _part(at: int) -> Function:
    """YEAR, MONTH, DAY: of zero dates, too."""
    return Function((DATED,), integer_result(lambda parts: parts[at]), 1, 1)


def _of_time(compute: Callable[[int], int]) -> Function:
    return Function((TIMED,), integer_result(lambda microseconds: compute(abs(microseconds))), 1, 1)


def _of_moment(compute: Callable[[datetime], Any]) -> Function:
    return Function((DATED,), integer_result(lambda parts: compute(real_moment(parts))), 1, 1)


_TO_DAYS = 365
"""TO_DAYS counts from the year 0, Python from the year 1."""


def _date(call: Call) -> Operand:
    (one,) = call.arguments
    return mapped(
        one,
        OperandKind.DATE,
        _midnight,
        digits=0,
        sql=call.sql,
        literal=False,
        column=None,
        collation=None,
    )


def _last_day(parts: Parts) -> Parts:
    start = real_moment(parts)
    following = (
        datetime(start.year + start.month // 12, start.month % 12 + 1, 1)
        if (start.year, start.month) != (9999, 12)
        else None
    )
    last = 31 if following is None else (following - timedelta(days=1)).day
    return (start.year, start.month, last, 0, 0, 0, 0)


def _date_result(compute: Callable[..., Value]) -> Callable[[Call], Operand]:
    return lambda call: Operand(OperandKind.DATE, null_or(call.arguments, compute), call.sql)


def _days_between(one: Parts, two: Parts) -> int:
    return (real_moment(one).date() - real_moment(two).date()).days


# intervals

_UNITS: dict[str, timedelta] = {
    "MICROSECOND": timedelta(microseconds=1), "SECOND": timedelta(seconds=1),
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1), "DAY": timedelta(days=1), "WEEK": timedelta(weeks=1),
}  # fmt: skip
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
UNITS = frozenset(_UNITS) | frozenset(_MONTHS)
DAY_UNITS = frozenset({"DAY", "WEEK", "MONTH", "QUARTER", "YEAR"})
"""Those that leave a DATE one."""


def with_interval(operand: Operand, count: Operand, unit: str, sign: int) -> Operand:
    """A date and an interval of whole units. Raises ReplicationError 1235 for other ones."""
    sql = f"{operand.sql} {'+' if sign > 0 else '-'} INTERVAL {count.sql} {unit}"
    if OperandKind.NULL in (operand.kind, count.kind):
        return constant(OperandKind.NULL, None, sql=sql)
    if operand.kind not in DATES or count.kind is not OperandKind.INTEGER or unit not in UNITS:
        raise unsupported(sql)
    is_date = operand.kind is OperandKind.DATE and unit in DAY_UNITS
    kind = OperandKind.DATE if is_date else OperandKind.DATETIME
    digits = 6 if unit == "MICROSECOND" else operand.digits

    def compute(parts: Parts, number: int) -> Value:
        start = real_moment(parts)
        try:
            moved = _moved(start, number * sign, unit)
        except (ValueError, OverflowError):
            raise unsupported(f"{sql} beyond the calendar") from None
        return datetime_to_parts(moved)

    return Operand(kind, null_or([operand, count], compute), sql, digits)


def _moved(start: datetime, count: int, unit: str) -> datetime:
    if unit in _UNITS:
        return start + count * _UNITS[unit]
    months = start.year * 12 + start.month - 1 + count * _MONTHS[unit]
    year, month = divmod(months, 12)
    last = _last_day((year, month + 1, 1, 0, 0, 0, 0))[2]
    return start.replace(year=year, month=month + 1, day=min(start.day, last))


def _add_days(sign: int) -> Callable[[Call], Operand]:
    return lambda call: with_interval(call.arguments[0], call.arguments[1], "DAY", sign)


def _from_days(days: int) -> Parts:
    if not 366 <= days <= 3652424:
        raise unsupported(f"FROM_DAYS({days})")
    found = date.fromordinal(days - _TO_DAYS)
    return (found.year, found.month, found.day, 0, 0, 0, 0)


def _time_to_sec(call: Call) -> Operand:
    (one,) = call.arguments
    if one.digits:
        raise unsupported(call.sql)
    return replace(
        integer_result(lambda value: (abs(value) // 1_000_000) * (-1 if value < 0 else 1))(call),
        column=one.column,
    )


DATE_FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(("NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"),
        Function((WHOLE,), _now, 0, 1)),
    **dict.fromkeys(("CURDATE", "CURRENT_DATE"), Function((WHOLE,), _today, 0, 0)),
    **dict.fromkeys(("CURTIME", "CURRENT_TIME"), Function((WHOLE,), _current_time, 0, 1)),
    "UTC_TIMESTAMP": Function((WHOLE,), _utc_now, 0, 1),
    "UTC_DATE": Function((WHOLE,), _utc_today, 0, 0),
    "UNIX_TIMESTAMP": Function((WHOLE_SECONDS,), _unix_timestamp, 0, 1),
    "YEAR": _part(0),
    "MONTH": _part(1),
    **dict.fromkeys(("DAY", "DAYOFMONTH"), _part(2)),
    "QUARTER": Function((DATED,), integer_result(lambda parts: (parts[1] + 2) // 3), 1, 1),
    "HOUR": _of_time(lambda value: value // 3_600_000_000),
    "MINUTE": _of_time(lambda value: value // 60_000_000 % 60),
    "SECOND": _of_time(lambda value: value // 1_000_000 % 60),
    "MICROSECOND": _of_time(lambda value: value % 1_000_000),
    "TIME_TO_SEC": Function((TIMED,), _time_to_sec, 1, 1),
    "DAYOFWEEK": _of_moment(lambda found: found.isoweekday() % 7 + 1),
    "WEEKDAY": _of_moment(lambda found: found.weekday()),
    "DAYOFYEAR": _of_moment(lambda found: found.timetuple().tm_yday),
    "TO_DAYS": _of_moment(lambda found: found.toordinal() + _TO_DAYS),
    "FROM_DAYS": Function((WHOLE,), _date_result(_from_days), 1, 1),
    "LAST_DAY": Function((DATED,), _date_result(_last_day), 1, 1),
    "DATE": Function((DATED,), _date, 1, 1),
    "DATEDIFF": Function((DATED,), integer_result(_days_between), 2, 2),
    **dict.fromkeys(("ADDDATE",), Function((ONLY_DATES, WHOLE), _add_days(1), 2, 2)),
    **dict.fromkeys(("SUBDATE",), Function((ONLY_DATES, WHOLE), _add_days(-1), 2, 2)),
}  # fmt: skip
