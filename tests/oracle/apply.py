"""Rows events applied the long way: one handler call after the other, as the server's source has
it.

`do_apply_event`, `do_index_scan_and_update`, `do_table_scan_and_update`, `do_hash_scan_and_update`,
`do_scan_and_update`, `write_row` (sql/log_event.cc, 5.6 to 9.7) and `find_row`
(sql/log_event_server.cc, MariaDB 10.11).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lookup.batch import ApplyOptions, RowsShape
from lookup.handler import Counters, Image, Row
from lookup.table import Key, TableDefinition
from lookup.versions import rules_for
from tests.oracle.decide import HASH, INDEX, decide, nullable, primary_key
from tests.oracle.engine import (
    END_OF_FILE,
    KEY_NOT_FOUND,
    RECORD_DELETED,
    Duplicate,
    HandlerError,
    NaiveHandler,
    NaiveTable,
    Record,
    compare_keys,
)
from tests.oracle.entries import Entries

NEXT, LEAVE, FAIL = "next", "leave", "fail"


BEFORE_8_0_17 = rules_for("8.0.16")


class Failure(Exception):
    """What a row came to: the server's error number, the handler's error, the row's index."""

    def __init__(self, number: int, code: str, row: int) -> None:
        super().__init__(number, code, row)
        self.number, self.code, self.row = number, code, row


@dataclass
class Done:
    """The outcome of one event."""

    error: tuple[int, str, int] | None = None
    rows_changed: int = 0


@dataclass
class NaiveApplier:
    """Applies the events of one shape to a table."""

    table: NaiveTable
    shape: RowsShape
    options: ApplyOptions
    defaults: Row
    rows_per_value: Callable[[Key], float]
    counters: Counters = field(default_factory=Counters)
    done: Done = field(default_factory=Done)
    algorithm: str = ""
    key: Key | None = None

    @property
    def definition(self) -> TableDefinition:
        return self.table.definition

    @property
    def is_update(self) -> bool:
        return self.shape.kind == "update"

    @property
    def is_mariadb(self) -> bool:
        return self.options.rules.name == "mariadb"

    def apply(self, rows: list[Any], counters: Counters) -> Done:
        self.counters, self.done = counters, Done()
        self.handler = NaiveHandler(self.table, counters, mariadb=self.is_mariadb)
        if self.shape.kind == "write":
            self._row_by_row(rows, self._write)
            return self.done
        image = set(self.shape.before_columns)
        self.algorithm, self.key = decide(
            self.definition, image, self.options.rules, self.options.row_search, self.rows_per_value
        )
        if self.algorithm == HASH:
            HashScan(self, rows).run()
        else:
            self._row_by_row(rows, self._find_and_change)
        return self.done

    def _row_by_row(self, rows: list[Any], apply_row: Callable[[int, Any], None]) -> None:
        for index, row in enumerate(rows):
            try:
                apply_row(index, row)
            except Failure as failure:
                if self.judge(failure) != NEXT:
                    return

    def judge(self, failure: Failure) -> str:
        """`handle_idempotent_and_ignored_errors`."""
        if self.options.idempotent:
            return NEXT
        if self.options.skips(failure.number):
            return LEAVE
        self.done.error = (failure.number, failure.code, failure.row)
        return FAIL

    # rows and images

    def complete(self, image: Image) -> Row:
        """record[0] after prepare_record and unpack_row of a before image."""
        row = list(self.defaults)
        for column, value in zip(self.shape.before_columns, image, strict=True):
            row[column] = value
        return tuple(row)

    def before(self, row: Any) -> Row:
        return self.complete(row[0] if self.is_update else row)

    def equal(self, row: Row, wanted: Row) -> bool:
        """`record_compare`, the other way round. MariaDB compares the columns that the image lacks,
        too."""
        columns = range(len(row)) if self.is_mariadb else self.shape.before_columns
        return all(row[column] == wanted[column] for column in columns)

    def after(self, found: Row | None, image: Image) -> Row:
        return image if self.shape.new_row is None else self.shape.new_row(found, image)

    # index scan and table scan

    def _find_and_change(self, index: int, row: Any) -> None:
        wanted = self.before(row)
        try:
            record = (
                self._index_scan(wanted) if self.algorithm == INDEX else self._table_scan(wanted)
            )
        except HandlerError as error:
            raise Failure(1032, error.code, index) from None
        self.change(index, record, record.row, row)

    def _index_scan(self, wanted: Row) -> Record:
        key, handler = self.key, self.handler
        assert key is not None
        is_primary = key is primary_key(self.definition)
        if is_primary and not self.table.is_myisam:
            return handler.rnd_pos_by_record(wanted)
        handler.index_init(key)
        record = handler.index_read(wanted)
        if is_primary or (key.unique and not nullable(self.definition, key)):
            return record
        if key.unique and all(wanted[column] is not None for column in key.columns):
            return record
        while not self.equal(record.row, wanted):
            if self.is_mariadb or self.options.rules.name == "5.6":
                record = handler.index_next()
            else:
                record = handler.index_next_same(wanted)
        return record

    def _table_scan(self, wanted: Row) -> Record:
        restarts = 0
        self.handler.rnd_init()
        while True:
            try:
                record = self.handler.rnd_next()
            except HandlerError as error:
                if error.code == RECORD_DELETED:
                    continue
                restarts += 1
                if self.is_mariadb or restarts == 2:
                    raise
                self.handler.rnd_init()
                continue
            if self.equal(record.row, wanted):
                return record

    # changing rows

    def change(self, index: int, record: Record, old: Row, row: Any) -> Row:
        """`do_exec_row`. Returns record[0], whatever becomes of it; `old` is record[1], as a rule
        the row as it stands."""
        if not self.is_update:
            self.counters.delete += 1
            self.table.delete(record)
            self.done.rows_changed += 1
            return old
        new = self.after(old, row[1])
        self.counters.update += 1
        stored = tuple(n if n != o else r for r, o, n in zip(record.row, old, new, strict=True))
        try:
            self.table.update(record, stored)
        except Duplicate:
            raise Failure(1062, "HA_ERR_FOUND_DUPP_KEY", index) from None
        self.done.rows_changed += 1
        return new

    def _write(self, index: int, image: Image) -> None:
        """`write_row`: IDEMPOTENT overwrites."""
        row = self.after(None, image)
        while True:
            self.counters.write += 1
            try:
                self.table.insert(row)
            except Duplicate as duplicate:
                if not self.options.idempotent:
                    raise Failure(1062, "HA_ERR_FOUND_DUPP_KEY", index) from None
                key, found = duplicate.key, duplicate.record
            else:
                self.done.rows_changed += 1
                return
            if self.table.is_myisam:
                self.counters.read_rnd += 1
            else:
                self.counters.read_key += 1
            if not self.shape.complete:
                row = self.after(found.row, image)
            if key is self.table.unique_keys()[-1]:
                self.counters.update += 1
                try:
                    self.table.update(found, row)
                except Duplicate:
                    raise Failure(1062, "HA_ERR_FOUND_DUPP_KEY", index) from None
                self.done.rows_changed += 1
                return
            self.counters.delete += 1
            self.table.delete(found)


class HashScan:
    """`do_hash_scan_and_update` over all rows of one event."""

    def __init__(self, applier: NaiveApplier, rows: list[Any]) -> None:
        self.applier = applier
        self.rows = rows
        self.handler = applier.handler
        self.key = applier.key
        by_primary = self.key is not None and self.key is primary_key(applier.definition)
        new = (
            applier.options.rules.name in ("8.0", "8.4", "9.7")
            and applier.options.rules != BEFORE_8_0_17
        )
        self.looks_again = applier.is_update and new and not by_primary
        self.collides = self.looks_again and applier.options.rules.collisions_apply
        self.entries = Entries(applier.definition, applier.shape, applier.options.rules)
        self.distinct: list[Row] = []
        self.unread: list[Row] = []
        self.value: Row = ()
        self.cursor = 0
        """The row of the event that is read next."""

    def run(self) -> None:
        while self.cursor < len(self.rows):
            try:
                self._hash_row(self.cursor)
                self.cursor += 1
                if self.cursor == len(self.rows):
                    self._scan()
            except Failure as failure:
                if self.applier.judge(failure) != NEXT:
                    return

    def _hash_row(self, index: int) -> None:
        row = self.applier.before(self.rows[index])
        self.entries.add(row, index)
        if self.key is None:
            return
        at = 0
        while at < len(self.distinct):
            order = compare_keys(self.applier.definition, self.key, self.distinct[at], row)
            if order == 0:
                return
            if order > 0:
                break
            at += 1
        self.distinct.insert(at, row)

    def _scan(self) -> None:
        """`do_scan_and_update`. Raises what the event's loop shall judge; leaves `cursor` where the
        server does."""
        errors = 0
        error: Failure | None = None
        first = True
        self._open()
        while True:
            try:
                record = self._next_record(first=first)
            except HandlerError as miss:
                if miss.code == END_OF_FILE:
                    error = Failure(1032, miss.code, len(self.rows) - 1)
                    break
                if miss.code == KEY_NOT_FOUND:
                    failure = Failure(1032, miss.code, len(self.rows) - 1)
                    verdict = self.applier.judge(failure)
                    if verdict != NEXT:
                        error = failure if verdict == FAIL else None
                        break
                    errors += 1
            else:
                verdict, error = self._meet(record)
                if verdict != NEXT:
                    break
            first = False
            if len(self.entries) == 0 or errors >= len(self.entries):
                break
        if (len(self.entries) == 0 and error is None) or errors >= len(self.entries):
            self.cursor = len(self.rows)
        if error is not None:
            raise error

    def _open(self) -> None:
        if self.key is None:
            self.handler.rnd_init()
            return
        self.handler.index_init(self.key)
        self.unread = list(self.distinct)
        self.value = self.unread.pop(0)

    def _next_record(self, *, first: bool) -> Record:
        """`next_record_scan`."""
        if self.key is None:
            return self.handler.rnd_next()
        if not first:
            try:
                return self.handler.index_next_same(self.value)
            except HandlerError:
                if not self.unread:
                    raise HandlerError(KEY_NOT_FOUND) from None
                self.value = self.unread.pop(0)
        return self.handler.index_read(self.value)

    def _meet(self, record: Record) -> tuple[str, Failure | None]:
        """One row read: what the hash has for it is applied, from 8.0.17 on also what it has for
        the changed row."""
        row = record.row
        while True:
            index = self.entries.take(row)
            if index is None:
                chain = self.entries.chain(row) if self.collides else []
                if not chain:
                    return NEXT, None
                # what the last comparison left in record[0]; record[1] is made from it
                row = chain[-1]
                continue
            self.cursor = index + 1
            old = row
            try:
                row = self.applier.change(index, record, old, self.rows[index])
            except Failure as failure:
                verdict = self.applier.judge(failure)
                if verdict != NEXT:
                    return verdict, failure if verdict == FAIL else None
                row = self.applier.after(old, self.rows[index][1])
            if not self.looks_again:
                return NEXT, None
