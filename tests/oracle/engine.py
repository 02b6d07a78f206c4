"""A storage engine in plain lists: every read walks row by row, every call is counted.

Nothing here is clever. The table is one list in clustered order, each index is a list that is
sorted anew for each cursor move, and the handler calls (`rnd_next`, `index_read`,
`index_next_same`, …) add to the counters what a server adds for them: InnoDB counts inside its own
reads, MyISAM and every engine of MariaDB count the handler call.

Values are limited to what the tests make: integers, and ASCII text in a case-insensitive PAD SPACE
collation or a _bin one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lookup.handler import Counters, Row
from lookup.table import Column, Key, TableDefinition

KEY_NOT_FOUND = "HA_ERR_KEY_NOT_FOUND"
END_OF_FILE = "HA_ERR_END_OF_FILE"
RECORD_DELETED = "HA_ERR_RECORD_DELETED"


class HandlerError(Exception):
    """A read that gave no row; `code` is its HA_ERR_ name."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Duplicate(Exception):
    """A change that a unique key refused; `record` is the row in the way."""

    def __init__(self, key: Key, record: Record) -> None:
        super().__init__(key.name)
        self.key = key
        self.record = record


@dataclass(eq=False)
class Record:
    """One row where it stands. `number` is the hidden row id, or the slot in the data file."""

    row: Row
    number: int


def compare_values(column: Column, prefix: int | None, left: Any, right: Any) -> int:
    """-1, 0 or 1 as an index of the server orders two values: NULL first, text by its collation."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if column.type in ("char", "varchar"):
        if prefix is not None:
            left, right = left[:prefix], right[:prefix]
        if not (column.collation or "").endswith("_bin"):
            left, right = left.upper(), right.upper()
        width = max(len(left), len(right))
        left, right = left.ljust(width, b" "), right.ljust(width, b" ")
    return int(left > right) - int(left < right)


def compare_keys(definition: TableDefinition, key: Key, left: Row, right: Row) -> int:
    """The key values of two whole rows compared part by part."""
    for part in key.parts:
        assert part.column is not None
        order = compare_values(
            definition.columns[part.column], part.prefix, left[part.column], right[part.column]
        )
        if order:
            return -order if part.descending else order
    return 0


@dataclass
class NaiveTable:
    """The rows and the rules for changing them. No statistics, no shortcuts."""

    definition: TableDefinition
    records: list[Record | None] = field(default_factory=list)
    """In clustered order; for MyISAM by slot, None where a row was deleted."""
    free_slots: list[int] = field(default_factory=list)
    next_number: int = 0

    @property
    def is_myisam(self) -> bool:
        return self.definition.engine == "MyISAM"

    @property
    def has_fixed_rows(self) -> bool:
        return not any(column.type == "varchar" for column in self.definition.columns)

    @property
    def clustered(self) -> Key | None:
        return None if self.is_myisam else self.definition.primary

    def rows(self) -> list[Row]:
        return [record.row for record in self.records if record is not None]

    def compare_records(self, left: Record, right: Record) -> int:
        """Which of two records a table scan meets first."""
        if self.clustered is not None:
            return compare_keys(self.definition, self.clustered, left.row, right.row)
        return int(left.number > right.number) - int(left.number < right.number)

    def unique_keys(self) -> list[Key]:
        return [key for key in self.definition.sorted_keys if key.unique]

    def check_duplicates(self, row: Row, old: Record | None) -> None:
        for key in self.unique_keys():
            if any(row[column] is None for column in key.columns):
                continue
            for record in self.records:
                if record is None or record is old:
                    continue
                if any(record.row[column] is None for column in key.columns):
                    continue
                if compare_keys(self.definition, key, record.row, row) == 0:
                    raise Duplicate(key, record)

    def insert(self, row: Row) -> Record:
        self.check_duplicates(row, None)
        if self.free_slots:
            record = Record(row, self.free_slots.pop())
            self.records[record.number] = record
            return record
        record = Record(row, self.next_number)
        self.next_number += 1
        self._place(record)
        return record

    def update(self, record: Record, row: Row) -> None:
        self.check_duplicates(row, record)
        if self.is_myisam:
            record.row = row
            return
        self.records.remove(record)
        record.row = row
        self._place(record)

    def delete(self, record: Record) -> None:
        if self.is_myisam:
            self.records[record.number] = None
            self.free_slots.append(record.number)
        else:
            self.records.remove(record)

    def _place(self, record: Record) -> None:
        at = 0
        while at < len(self.records):
            other = self.records[at]
            if other is not None and self.compare_records(other, record) > 0:
                break
            at += 1
        self.records.insert(at, record)


class NaiveHandler:
    """One open cursor on a table. The cursor stands on a copy of the record read last, as it was
    when it was read."""

    def __init__(self, table: NaiveTable, counters: Counters, *, mariadb: bool) -> None:
        self.table = table
        self.counters = counters
        self.counts_inside = not table.is_myisam and not mariadb
        self.counts_deleted = not mariadb
        self.key: Key | None = None
        self.at: Record | None = None
        self.slot = -1
        self.started = False

    # the whole table

    def rnd_init(self) -> None:
        self.at, self.slot, self.started = None, -1, False

    def rnd_next(self) -> Record:
        if self.table.is_myisam:
            return self._next_slot()
        self.counters.read_rnd_next += 1
        if not self.started and self.counts_inside:
            self.counters.read_first += 1
            self.counters.read_key += 1
        self.started = True
        for record in self.table.records:
            assert record is not None
            if self.at is None or self.table.compare_records(record, self.at) > 0:
                self.at = Record(record.row, record.number)
                return record
        raise HandlerError(END_OF_FILE)

    def _next_slot(self) -> Record:
        """MyISAM: a free slot of rows of fixed length is read and said to be deleted; rows of
        varying length are skipped over."""
        while True:
            self.slot += 1
            record = self.table.records[self.slot] if self.slot < len(self.table.records) else None
            free = record is None and self.slot < len(self.table.records)
            if free and not (self.table.has_fixed_rows and self.counts_deleted):
                continue
            self.counters.read_rnd_next += 1
            if free:
                raise HandlerError(RECORD_DELETED)
            if record is None:
                raise HandlerError(END_OF_FILE)
            return record

    def rnd_pos_by_record(self, wanted: Row) -> Record:
        """Through the clustered key, and nothing but the key is compared."""
        self.counters.read_rnd += 1
        if self.counts_inside:
            self.counters.read_key += 1
        key = self.table.clustered
        assert key is not None
        for record in self.table.records:
            assert record is not None
            if compare_keys(self.table.definition, key, record.row, wanted) == 0:
                return record
        raise HandlerError(KEY_NOT_FOUND)

    # one index

    def index_init(self, key: Key) -> None:
        self.key, self.at = key, None

    def _entries(self) -> list[Record]:
        """The index as it is now: by key value, then by place in the table."""
        entries: list[Record] = []
        for record in self.table.records:
            if record is None:
                continue
            at = 0
            while at < len(entries) and self._compare(entries[at], record) < 0:
                at += 1
            entries.insert(at, record)
        return entries

    def _compare(self, left: Record, right: Record) -> int:
        assert self.key is not None
        return compare_keys(
            self.table.definition, self.key, left.row, right.row
        ) or self.table.compare_records(left, right)

    def index_read(self, wanted: Row) -> Record:
        """HA_READ_KEY_EXACT with the whole key of `wanted`."""
        assert self.key is not None
        self.counters.read_key += 1
        self.at = None
        for record in self._entries():
            if compare_keys(self.table.definition, self.key, record.row, wanted) == 0:
                self.at = Record(record.row, record.number)
                return record
        raise HandlerError(KEY_NOT_FOUND)

    def index_next(self) -> Record:
        self.counters.read_next += 1
        if self.at is not None:
            for record in self._entries():
                if self._compare(record, self.at) > 0:
                    self.at = Record(record.row, record.number)
                    return record
        raise HandlerError(END_OF_FILE)

    def index_next_same(self, wanted: Row) -> Record:
        assert self.key is not None
        before = self.at
        record = self.index_next()
        if compare_keys(self.table.definition, self.key, record.row, wanted) != 0:
            self.at = before
            raise HandlerError(END_OF_FILE)
        return record
