"""Values of expressions into columns of dates and times; part of
`applier.tables.expressions.storing`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from applier.binlog.time_zone import to_utc
from applier.binlog.types import from_sql
from applier.binlog.types.temporal import (
    Parts,
    pack_datetime,
    pack_time,
    pack_timestamp,
    parts_text,
)
from applier.binlog.types.temporal_parse import (
    DateTimeValue,
    number_time,
    round_moment,
    round_time,
    text_moment,
)
from applier.tables.expressions.moment_rules import (
    checked_date,
    cuts_fractions,
    fitted_parts,
    longest_time,
    number_of_column,
    session_parts,
    time_of_text,
)
from applier.tables.expressions.operands import CHARACTERS, OperandKind, Session, Value
from applier.tables.expressions.store_column import StoreColumn, Stored, Write
from applier.tables.sql.sql_mode_flags import SqlModeFlag

_MOST_TIME = 8385959
"""hhmmss."""


def _parts(target: StoreColumn) -> Callable[[Value, Session], Parts]:
    """Parts of what is stored in a DATE, DATETIME or TIMESTAMP."""
    kind, dates = target.operand.kind, target.dates
    if kind in (OperandKind.DATE, OperandKind.DATETIME):
        return lambda value, session: value
    if kind is OperandKind.INTEGER:
        return lambda value, session: _read(
            target, number_of_column(value, dates), str(value), session
        )
    if kind in CHARACTERS:
        return lambda value, session: _read(target, text_moment(value, dates), value, session)
    raise target.unknown()


def _read(target: StoreColumn, moment: DateTimeValue | None, given: str, session: Session) -> Parts:
    """The moment in the session's time zone with the digits of the column. Raises ValueRefused for
    what is not a moment."""
    column, dialect = target.column, target.dialect
    cuts = cuts_fractions(dialect.sql_mode, mariadb=dialect.mariadb)
    cuts = cuts or (column.type == "date" and dialect.mariadb)
    parts = None
    if moment is not None and target.dates.allow(moment.parts):
        parts = round_moment(moment, column.scale, truncate=cuts, mariadb=dialect.mariadb)
    if parts is None:
        closest = 0 if column.type == "date" else from_sql(column)(0)
        raise target.refused(1292, f"Incorrect {column.type} value: '{given[:40]}'", closest)
    assert moment is not None
    return session_parts(moment, parts, session.zone)


def _date(target: StoreColumn) -> Write:
    read = _parts(target)

    def write(value: Value, session: Session) -> Stored:
        parts = read(value, session)
        if parts[6]:
            raise target.unknown()
        found = checked_date(parts, target.dialect.sql_mode)
        if found is None:
            raise target.refused(1292, f"Incorrect date value: '{parts_text(parts, 0)}'", 0)
        return int(found[0] << 9 | found[1] << 5 | found[2])

    return write


def _datetime(target: StoreColumn) -> Write:
    read, digits = _parts(target), target.column.scale

    def write(value: Value, session: Session) -> Stored:
        parts = fitted_parts(read(value, session), digits, target.dialect)
        found = checked_date(parts, target.dialect.sql_mode)
        if found is None:
            raise target.refused(
                1292,
                f"Incorrect datetime value: '{parts_text(parts, 0)}'",
                pack_datetime((0,) * 7, digits),
            )
        return pack_datetime(found, digits)

    return write


def _timestamp(target: StoreColumn) -> Write:
    read, digits = _parts(target), target.column.scale

    def write(value: Value, session: Session) -> Stored:
        parts = fitted_parts(read(value, session), digits, target.dialect)
        zero = pack_timestamp(0, digits)
        found = checked_date(
            parts, target.dialect.sql_mode & ~SqlModeFlag.ALLOW_INVALID_DATES, zeros=False
        )
        if found is None:
            raise target.refused(1292, f"Incorrect datetime value: '{parts_text(parts, 0)}'", zero)
        if not any(found):
            return zero
        microseconds = (
            to_utc(datetime(*found), session.zone) - datetime(1970, 1, 1, tzinfo=UTC)
        ) // timedelta(microseconds=1)
        if not 1_000_000 <= microseconds < 0x8000_0000 * 1_000_000:
            raise target.refused(1292, f"Incorrect datetime value: '{parts_text(parts, 0)}'", zero)
        return pack_timestamp(microseconds, digits)

    return write


def _time(target: StoreColumn) -> Write:
    kind, digits, dialect = target.operand.kind, target.column.scale, target.dialect
    cuts = cuts_fractions(dialect.sql_mode, mariadb=dialect.mariadb)
    most = longest_time(mariadb=dialect.mariadb)

    def of_text(text: str) -> tuple[int, int]:
        return time_of_text(text, digits, dialect, cuts=cuts)

    def of_moment(parts: Parts) -> tuple[int, int]:
        return ((parts[3] * 60 + parts[4]) * 60 + parts[5]) * 1_000_000 + parts[6], 0

    def of_number(number: int) -> tuple[int, int]:
        if abs(number) > _MOST_TIME:  # a date or too long; versions differ
            raise target.unknown()
        return number_time(number), 0

    readers: dict[OperandKind, Callable[[Value], tuple[int, int]]] = {
        OperandKind.TIME: lambda value: (value, 0),
        OperandKind.DATETIME: of_moment,
        OperandKind.INTEGER: of_number,
        **dict.fromkeys(CHARACTERS, of_text),
    }
    read = readers.get(kind)
    if read is None:
        raise target.unknown()

    def write(value: Value, _session: Session) -> Stored:
        microseconds, nanoseconds = read(value)
        return pack_time(
            round_time(microseconds, nanoseconds, digits, truncate=cuts, most=most), digits
        )

    return write


MOMENT_WRITERS: dict[str, Callable[[StoreColumn], Write]] = {
    "date": _date, "datetime": _datetime, "timestamp": _timestamp, "time": _time,
}  # fmt: skip
