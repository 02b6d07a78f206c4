"""The workload of a log: per table and kind of change how many events, rows and bytes, how large,
and the worst transactions.

A workload is a sum: those of several files, or of parts of one that were cut at transactions, merge
into the workload of the whole. Its size depends on how many tables there are, not on how long the
log is. (`merge` takes parts in the log's order only for the sake of the clock: a commit earlier
than the one before it is counted.)
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.schema import Schema
from applier.forecast.workload.transaction_load import Applied, Columns, LoadShape, TransactionLoad
from tests.forecast.distribution import Distribution

WORST = 10
"""Transactions that a workload names, by rows and by bytes."""
MAX_IMAGES = 100
"""Different column sets of images that are told apart for one table and kind."""


@dataclass(slots=True)
class TableLoad:
    """What a log does to one table in one way. Bytes are those of row images, uncompressed.

    `transactions` that touch it so; `statements` that ended on it. `distinct_values` are summed
    over the events that `key` was counted for (`counted_rows` rows); None where no key was.
    `images`: (columns of the before, of the after image) -> events.
    """

    table: str
    kind: str
    columns: int
    transactions: int = 0
    statements: int = 0
    events: int = 0
    rows: int = 0
    row_bytes: int = 0
    key: str | None = None
    distinct_values: int | None = None
    counted_rows: int = 0
    rows_per_event: Distribution = field(default_factory=Distribution)
    rows_per_transaction: Distribution = field(default_factory=Distribution)
    images: dict[tuple[Columns, Columns], int] = field(default_factory=dict)

    def add(self, applied: Applied) -> None:
        """Takes in a part of a transaction."""
        target = applied.target
        self.columns = target.columns
        self.statements += applied.statements
        self.events += applied.events
        self.rows += applied.rows
        self.row_bytes += applied.row_bytes
        for (rows, _), events in applied.sizes.items():
            self.rows_per_event.add(rows, events)
        if target.key is not None:
            self._count_values(target.key, applied.distinct_values, applied.rows)
        self._count_image(target, applied.events)

    def end_transaction(self, rows: int) -> None:
        """All that one transaction does to the table was added; it was this many rows."""
        self.transactions += 1
        self.rows_per_transaction.add(rows)

    def merge(self, other: TableLoad) -> None:
        """Takes in what another part of the log did to the table."""
        self.columns = other.columns
        self.transactions += other.transactions
        self.statements += other.statements
        self.events += other.events
        self.rows += other.rows
        self.row_bytes += other.row_bytes
        self.rows_per_event.merge(other.rows_per_event)
        self.rows_per_transaction.merge(other.rows_per_transaction)
        if other.key is not None:
            self._count_values(other.key, other.distinct_values or 0, other.counted_rows)
        for image, events in other.images.items():
            if image in self.images or len(self.images) < MAX_IMAGES:
                self.images[image] = self.images.get(image, 0) + events

    @property
    def bytes_per_row(self) -> float:
        """Mean bytes of a row's images."""
        return self.row_bytes / self.rows if self.rows else 0.0

    @property
    def rows_per_value(self) -> float | None:
        """Rows of an event that share one value of the key, on average."""
        return self.counted_rows / self.distinct_values if self.distinct_values else None

    @property
    def full_images(self) -> bool:
        """Whether every image of every event holds all columns."""
        everything = tuple(range(self.columns))
        return all(image in ((), everything) for images in self.images for image in images)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "table": self.table,
            "type": self.kind,
            "transactions": self.transactions,
            "statements": self.statements,
            "events": self.events,
            "rows": self.rows,
            "row_bytes": self.row_bytes,
            "rows_per_event": self.rows_per_event.as_dict(),
            "rows_per_transaction": self.rows_per_transaction.as_dict(),
            "full_images": self.full_images,
            "key": self.key,
            "distinct_values": self.distinct_values,
        }

    def _count_values(self, key: str, values: int, rows: int) -> None:
        """The key may change in the middle of a log (another image): the last one gives its
        name."""
        self.key = key
        self.distinct_values = (self.distinct_values or 0) + values
        self.counted_rows += rows

    def _count_image(self, target: LoadShape, events: int) -> None:
        image = (target.before, target.after)
        if image in self.images or len(self.images) < MAX_IMAGES:
            self.images[image] = self.images.get(image, 0) + events


@dataclass(frozen=True, slots=True)
class NamedTransaction:
    """One transaction to point at. `tables` are those it changes."""

    file: str
    position: int
    end: int
    gtid: str | None
    rows: int
    events: int
    log_bytes: int
    commit_time: float
    tables: tuple[str, ...]

    @classmethod
    def of(cls, load: TransactionLoad) -> NamedTransaction:
        """What names a transaction."""
        return cls(
            load.file,
            load.position,
            load.end,
            load.gtid,
            load.rows,
            load.rows_events,
            load.log_bytes,
            load.commit_time,
            load.tables,
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "file": self.file,
            "pos": self.position,
            "end_log_pos": self.end,
            "gtid": self.gtid,
            "rows": self.rows,
            "events": self.events,
            "bytes": self.log_bytes,
            "commit_time": self.commit_time,
            "tables": list(self.tables),
        }


class Worst:
    """The transactions with the most of something; of equal ones the first."""

    def __init__(self, most: int = WORST) -> None:
        self.most = most
        self._heap: list[tuple[int, int, NamedTransaction]] = []
        self._seen = 0

    def offer(self, size: int, load: TransactionLoad) -> None:
        """Keeps the transaction if it has more than those that are kept."""
        self._seen += 1
        if self._takes(size):
            self._push(size, NamedTransaction.of(load))

    def merge(self, other: Worst) -> None:
        """Takes in those of a later part of the log."""
        for size, _, named in sorted(other._heap, reverse=True):
            self._seen += 1
            if self._takes(size):
                self._push(size, named)

    def list(self) -> list[NamedTransaction]:
        """Those that are kept, the most first."""
        return [named for _, _, named in sorted(self._heap, key=lambda item: (-item[0], -item[1]))]

    def _takes(self, size: int) -> bool:
        return (
            size > 0 and self.most > 0 and (len(self._heap) < self.most or size > self._heap[0][0])
        )

    def _push(self, size: int, named: NamedTransaction) -> None:
        item = (size, -self._seen, named)
        if len(self._heap) < self.most:
            heapq.heappush(self._heap, item)
        else:
            heapq.heapreplace(self._heap, item)


class Workload:
    """The sum of transactions. Times are in seconds since 1970, 0 where there is no transaction.

    `steps_back` counts commits earlier than the one before them, `longest_step_back_seconds` is the
    longest such step: the source's clock was set, or transactions took their commit time before
    they waited for each other.
    """

    def __init__(self, worst: int = WORST) -> None:
        self.files: list[str] = []
        self.server_version = ""
        self.transactions = 0
        self.statements = 0
        self.statement_seconds = 0
        self.events = 0
        self.rows = 0
        self.log_bytes = 0
        self.tables: dict[tuple[str, str], TableLoad] = {}
        """(table, kind) -> its load, in the order they were met."""
        self.rows_per_transaction = Distribution()
        self.bytes_per_transaction = Distribution()
        self.worst_by_rows = Worst(worst)
        self.worst_by_bytes = Worst(worst)
        self.first_commit = 0.0
        self.last_commit = 0.0
        self.steps_back = 0
        self.longest_step_back_seconds = 0.0
        self.with_dependencies = 0
        """Transactions that carry last_committed and sequence_number."""
        self.incomplete: NamedTransaction | None = None
        """The transaction that the log ends in; it is not in the sums."""
        self.notes: dict[str, int] = {}

    def add(self, load: TransactionLoad) -> None:
        """Takes in the next transaction."""
        if not load.complete:
            self.incomplete = NamedTransaction.of(load)
            return
        if not self.files or self.files[-1] != load.file:
            self.files.append(load.file)
        self.transactions += 1
        self.statements += load.statements
        self.statement_seconds += load.statement_seconds
        self.events += load.rows_events
        self.rows += load.rows
        self.log_bytes += load.log_bytes
        self.rows_per_transaction.add(load.rows)
        self.bytes_per_transaction.add(load.log_bytes)
        self.worst_by_rows.offer(load.rows, load)
        self.worst_by_bytes.offer(load.log_bytes, load)
        self.with_dependencies += load.sequence_number > 0
        self._tick(load.commit_time)
        touched: dict[tuple[str, str], int] = {}
        for target, applied in load.applied.items():
            place = target.table, target.kind
            table = self.tables.get(place) or self._table(*place, target.columns)
            table.add(applied)
            touched[place] = touched.get(place, 0) + applied.rows
        for place, rows in touched.items():
            self.tables[place].end_transaction(rows)

    def merge(self, other: Workload) -> None:
        """Adds the workload of a later part of the log."""
        self.files += [file for file in other.files if file not in self.files[-1:]]
        self.server_version = other.server_version or self.server_version
        self.transactions += other.transactions
        self.statements += other.statements
        self.statement_seconds += other.statement_seconds
        self.events += other.events
        self.rows += other.rows
        self.log_bytes += other.log_bytes
        self.rows_per_transaction.merge(other.rows_per_transaction)
        self.bytes_per_transaction.merge(other.bytes_per_transaction)
        self.worst_by_rows.merge(other.worst_by_rows)
        self.worst_by_bytes.merge(other.worst_by_bytes)
        self.with_dependencies += other.with_dependencies
        if other.first_commit:
            self._tick(other.first_commit)
            self.last_commit = other.last_commit
        self.steps_back += other.steps_back
        self.longest_step_back_seconds = max(
            self.longest_step_back_seconds, other.longest_step_back_seconds
        )
        self.incomplete = other.incomplete or self.incomplete
        for load in other.tables.values():
            self._table(load.table, load.kind, load.columns).merge(load)
        self.add_notes(other.notes)

    def add_notes(self, notes: dict[str, int]) -> None:
        """Takes in what was left out or assumed, and how often."""
        for note, times in notes.items():
            self.notes[note] = self.notes.get(note, 0) + times

    def table(self, name: str) -> list[TableLoad]:
        """The loads of one table, one a kind."""
        return [load for (table, _), load in self.tables.items() if table == name]

    @property
    def duration_seconds(self) -> float:
        """From the first commit to the last."""
        return max(self.last_commit - self.first_commit, 0.0)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "files": self.files,
            "server_version": self.server_version,
            "transactions": self.transactions,
            "statements": self.statements,
            "statement_seconds": self.statement_seconds,
            "events": self.events,
            "rows": self.rows,
            "bytes": self.log_bytes,
            "first_commit": self.first_commit,
            "last_commit": self.last_commit,
            "steps_back": self.steps_back,
            "longest_step_back_seconds": self.longest_step_back_seconds,
            "with_dependencies": self.with_dependencies,
            "rows_per_transaction": self.rows_per_transaction.as_dict(),
            "bytes_per_transaction": self.bytes_per_transaction.as_dict(),
            "tables": [load.as_dict() for load in self.tables.values()],
            "worst_by_rows": [named.as_dict() for named in self.worst_by_rows.list()],
            "worst_by_bytes": [named.as_dict() for named in self.worst_by_bytes.list()],
            "incomplete": None if self.incomplete is None else self.incomplete.as_dict(),
            "notes": self.notes,
        }

    def _tick(self, commit_time: float) -> None:
        if not self.first_commit:
            self.first_commit = commit_time
        elif commit_time < self.last_commit:
            self.steps_back += 1
            self.longest_step_back_seconds = max(
                self.longest_step_back_seconds, self.last_commit - commit_time
            )
        self.last_commit = commit_time

    def _table(self, table: str, kind: str, columns: int) -> TableLoad:
        load = self.tables.get((table, kind))
        if load is None:
            load = self.tables[table, kind] = TableLoad(table, kind, columns)
        return load


def summed(loads: Iterable[TransactionLoad], worst: int = WORST) -> Workload:
    """The workload of some transactions."""
    workload = Workload(worst)
    for load in loads:
        workload.add(load)
    return workload


def profile(
    paths: Sequence[str | os.PathLike[str]],
    *,
    schema: Schema | None = None,
    worst: int = WORST,
    verify_checksum: bool = True,
    start_position: int | None = None,
    stop_position: int | None = None,
) -> Workload:
    """The workload of binlog files, read once from end to end. Raises InputError for a log that
    cannot be read.

    A log without a transaction gives a workload of nothing, and a note that says so.
    """
    reader = LoadReader(
        paths,
        schema=schema,
        verify_checksum=verify_checksum,
        start_position=start_position,
        stop_position=stop_position,
    )
    workload = summed(reader, worst)
    workload.server_version = reader.server_version
    workload.add_notes(reader.notes)
    if not workload.transactions:
        workload.add_notes({"the log holds no complete transaction": 1})
    if workload.incomplete is not None:
        named = workload.incomplete
        workload.add_notes(
            {
                (
                    f"the transaction that starts at {named.file}:{named.position} is not "
                    "complete; it is left out"
                ): 1
            }
        )
    return workload
