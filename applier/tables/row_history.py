"""Rows of MariaDB's system-versioned tables that a foreign key changes or ends, on a replica.

InnoDB ends the child's row, or keeps what it was as history, at the time of the rows event
(`row_update_vers_insert`, storage/innobase/row/row0mysql.cc 10.11). An event has seconds only; the
replica counts the microseconds up on its own (`THD::set_time`; seen on 10.11.18), so that source
and replica differ in them. Here they are counted up, too: what other sessions did between is not
known. Rows that still hold are the server's but for the start of their period.
"""

from __future__ import annotations

from applier.binlog.types.temporal import ENDS_OF_TIME, pack_timestamp
from applier.tables.engine import MemoryTable
from lookup.handler import Ref, Row
from lookup.table import TableDefinition


class EventTimes:
    """The moments of events, each later than the one before."""

    def __init__(self) -> None:
        self._micros = 0

    def begin(self, seconds: int) -> None:
        """An event of this second begins."""
        self._micros = max(seconds * 1_000_000, self._micros + 1)

    @property
    def stored(self) -> bytes:
        """The moment of the event at hand, as a period column holds it."""
        return pack_timestamp(self._micros, 6)


def period_column(definition: TableDefinition, end: str) -> int | None:
    """Where the column of the period's "start" or "end" stands; None in a table without a
    period."""
    places = (at for at, column in enumerate(definition.columns) if column.system_time == end)
    return next(places, None)


def is_versioned(definition: TableDefinition) -> bool:
    """Whether rows have a system time."""
    return period_column(definition, "end") is not None


def shows_times(definition: TableDefinition, *, current: bool) -> bool:
    """Whether columns show the moment: those of the rows that still hold (`current`), or numbers of
    transactions, which are of the server's own, in any row."""
    return any(
        column.type != "timestamp" or (current and not column.hidden)
        for column in definition.columns
        if column.system_time
    )


def is_history(definition: TableDefinition, row: Row) -> bool:
    """Whether the row holds no longer."""
    at = period_column(definition, "end")
    return at is not None and row[at] not in ENDS_OF_TIME


def current_refs(table: MemoryTable, refs: list[Ref]) -> list[Ref]:
    """Those of the rows that still hold."""
    rows = [(ref, table.get(ref)) for ref in refs]
    return [ref for ref, row in rows if row and not is_history(table.definition, row)]


def end_row(table: MemoryTable, ref: Ref, row: Row, moment: bytes) -> None:
    """What a cascade of DELETE makes of a versioned row. Raises RowError."""
    table.update(ref, _with(row, period_column(table.definition, "end"), moment))


def change_row(table: MemoryTable, ref: Ref, row: Row, new: Row, moment: bytes) -> None:
    """The row changes, and what it was becomes history. Raises RowError."""
    table.update(ref, _with(new, period_column(table.definition, "start"), moment))
    table.insert(_with(row, period_column(table.definition, "end"), moment))


def _with(row: Row, at: int | None, value: bytes) -> Row:
    assert at is not None
    return (*row[:at], value, *row[at + 1 :])
