"""How dates and times fit into columns: the dates that an SQL mode lets in, the digits that a
column keeps."""

from __future__ import annotations

import calendar
from datetime import datetime, timedelta

from applier.binlog.types.temporal import Parts, parts_text
from applier.tables.expressions.operands import Dialect, unsupported
from applier.tables.sql.sql_mode_flags import SqlModeFlag


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
    rounds = (
        dialect.sql_mode & SqlModeFlag.TIME_ROUND_FRACTIONAL
        if dialect.mariadb
        else not dialect.sql_mode & SqlModeFlag.TIME_TRUNCATE_FRACTIONAL
    )
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
