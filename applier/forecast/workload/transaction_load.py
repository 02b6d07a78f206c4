"""What one transaction asks of a replica, as the readers of logs find it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from applier.binlog.transactions import TransactionKind
from applier.forecast.inventory.facts import TableFacts
from applier.forecast.inventory.key_places import Entry
from applier.forecast.workload.row_counts import Count
from applier.forecast.workload.row_places import Places
from applier.forecast.workload.table_fates import TableFate
from applier.replica.scheduling import NO_MARKS, GroupMarks

Columns = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LoadShape:
    """Rows events of one table that are alike but for their rows. One object a shape: compare by
    identity.

    `before` and `after` are the columns of the images (a write has after only). `key` is the key
    whose distinct values are counted. `facts`: the table behind DDL of the log; None for one that
    is as it was before the log.
    """

    table: str
    kind: str
    columns: int
    before: Columns
    after: Columns
    key: str | None = None
    facts: TableFacts | None = None


@dataclass(slots=True)
class Applied:
    """A transaction's rows events of one target. `row_bytes` is what the images take, uncompressed.

    `sizes`: (rows, distinct key values) of an event -> how many events. `statements`: statements
    that ended on the target.
    """

    target: LoadShape
    events: int = 0
    rows: int = 0
    row_bytes: int = 0
    statements: int = 0
    distinct_values: int = 0
    sizes: dict[Count, int] = field(default_factory=dict)
    keys: list[int] = field(default_factory=list)
    """A number for the key of each row, of the first ones, where `Schema.paged` asks for them."""
    entries: list[Entry] | None = None
    """Entries of secondary indexes that the same rows change, or are found by."""
    placed: int = 0
    """How many rows these are."""

    def place(self, places: Places) -> None:
        """Adds the places of the next rows."""
        self.keys += places.keys
        if self.entries is None:
            self.entries = []
        self.entries += places.entries
        self.placed += places.rows

    @property
    def placed_share(self) -> float:
        """Of the rows, those with places."""
        return self.placed / self.rows if self.placed else 1.0

    def add(self, count: Count, row_bytes: int, ends_statement: bool) -> None:
        """A rows event of so many rows and distinct key values."""
        self.events += 1
        self.rows += count[0]
        self.row_bytes += row_bytes
        self.statements += ends_statement
        self.distinct_values += count[1]
        self.sizes[count] = self.sizes.get(count, 0) + 1


@dataclass(slots=True)
class TransactionLoad:
    """One transaction. `log_bytes` is its length in the log (compressed where the log is),
    `commit_time` in seconds since 1970.

    `commit_time` is the commit timestamp in microseconds where the log has one, else that of the
    last event, in whole seconds. `last_committed` and `sequence_number` are 0 in a log without them
    (5.6, MariaDB). `statements` are those in the log as text (DDL, statement format);
    `statement_seconds` is how long they ran on the source, `statement` the beginning of the first
    of them.
    """

    file: str
    position: int
    end_file: str = ""
    end: int = 0
    gtid: str | None = None
    kind: TransactionKind = TransactionKind.TRANSACTION
    server_id: int = 0
    commit_time: float = 0.0
    last_committed: int = 0
    sequence_number: int = 0
    log_bytes: int = 0
    rows: int = 0
    rows_events: int = 0
    statements: int = 0
    statement_seconds: int = 0
    statement: str = ""
    complete: bool = True
    marks: GroupMarks = NO_MARKS
    """What MariaDB's workers go by."""
    fates: list[TableFate] = field(default_factory=list)
    """What its statements make of whole tables, before its rows events."""
    applied: dict[LoadShape, Applied] = field(default_factory=dict)

    @property
    def row_bytes(self) -> int:
        """Bytes of its row images."""
        return sum(applied.row_bytes for applied in self.applied.values())

    @property
    def new_rows(self) -> float:
        """Rows that it writes, but for those that take the place of one that it has deleted."""
        deleted, found = set[tuple[str, int]](), 0.0
        for at, one in self.applied.items():
            if at.kind == "delete":
                deleted.update((at.table, key) for key in one.keys)
            elif at.kind == "write":
                again = sum((at.table, key) in deleted for key in one.keys) if deleted else 0
                found += one.rows - (one.rows * again / len(one.keys) if again else 0.0)
        return found

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it changes, each once."""
        return tuple(dict.fromkeys(target.table for target in self.applied))

    @property
    def databases(self) -> frozenset[str]:
        """The databases of these tables."""
        return frozenset(target.table.partition(".")[0] for target in self.applied)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "file": self.file,
            "pos": self.position,
            "end_log_pos": self.end,
            "gtid": self.gtid,
            "commit_time": self.commit_time,
            "last_committed": self.last_committed,
            "sequence_number": self.sequence_number,
            "bytes": self.log_bytes,
            "row_bytes": self.row_bytes,
            "rows": self.rows,
            "events": self.rows_events,
            "statements": self.statements,
            "statement_seconds": self.statement_seconds,
            "tables": list(self.tables),
        }
