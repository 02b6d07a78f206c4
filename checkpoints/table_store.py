"""What a table repository asks of whoever keeps its tables, and the simplest such store.

The store may be the emulator's own storage engine or a MySQL server. A write belongs to the
transaction that is open, when there is one and the tables are transactional; otherwise it is
committed by itself at once. How durable a commit is, is the store's own affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

Row = Mapping[str, Any]
Key = Mapping[str, Any]


class TableStore(Protocol):
    """Tables named as in the server (slave_relay_log_info, …), with rows as a client sees them."""

    @property
    def transactional(self) -> bool:
        """Whether a row written in a transaction goes with it when it is rolled back or lost."""
        ...

    def rows(self, table: str) -> list[Row]:
        """All rows, as the writer itself sees them; none when there is no such table yet."""
        ...

    def write(self, table: str, key: Key, row: Row) -> None:
        """Puts the row into the place of the one whose key columns have these values, or adds
        it."""
        ...

    def delete(self, table: str, key: Key) -> None:
        """Takes away the row with this key, if it is there."""
        ...


class MemoryTableStore:
    """Tables in memory, with one transaction at a time. Implements `TableStore`."""

    def __init__(self, *, transactional: bool = True) -> None:
        self._transactional = transactional
        self._tables: dict[str, list[Row]] = {}
        self._before: dict[str, list[Row]] | None = None

    @property
    def transactional(self) -> bool:
        return self._transactional

    def rows(self, table: str) -> list[Row]:
        return list(self._tables.get(table, ()))

    def write(self, table: str, key: Key, row: Row) -> None:
        rows = self._tables.setdefault(table, [])
        places = [place for place, other in enumerate(rows) if _has(other, key)]
        if places:
            rows[places[0]] = dict(row)
        else:
            rows.append(dict(row))

    def delete(self, table: str, key: Key) -> None:
        self._tables[table] = [row for row in self._tables.get(table, ()) if not _has(row, key)]

    def copy(self) -> MemoryTableStore:
        """An independent store with the same rows and no open transaction."""
        twin = MemoryTableStore(transactional=self._transactional)
        twin._tables = {table: list(rows) for table, rows in self._tables.items()}
        return twin

    def begin(self) -> None:
        """Opens a transaction."""
        self._before = {table: list(rows) for table, rows in self._tables.items()}

    def commit(self) -> None:
        """What was written since `begin` stays."""
        self._before = None

    def rollback(self) -> None:
        """Takes back what the open transaction wrote; a non-transactional table keeps it."""
        if self._before is not None and self._transactional:
            self._tables = self._before
        self._before = None


def _has(row: Row, key: Key) -> bool:
    return all(row[column] == value for column, value in key.items())
