"""What each transaction of a log asks of a replica: its rows events by table, kind and size, its dependencies, its commit time.

One pass, nothing gathered but the transaction at hand, and of that only how often each size of event occurs: a transaction of a
hundred million rows takes no more memory than one of ten. Row values are not decoded; with a schema, the columns of the key
that the replica would use are looked at, to tell how many distinct values an event has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from applier.binlog.header import ROWS_TYPES, Event, EventType, FormatDescription
from applier.binlog.reader import LogReader
from applier.binlog.refusals import unknown_table
from applier.binlog.rows import DUMMY_TABLE_IDS, RowsHead, RowsHeads
from applier.binlog.table_map import TableMap, parse_table_map
from applier.binlog.transactions import STATEMENT_TYPES, Kind, Transaction, TransactionTracker, query_text
from applier.errors import InputError
from applier.forecast.row_counts import Count, row_counter
from lookup.decision import decide
from lookup.table import Key, TableDefinition
from lookup.versions import ServerRules

Columns = tuple[int, ...]
TABLE_MAP, FORMAT_DESCRIPTION, QUERY = int(EventType.TABLE_MAP), int(EventType.FORMAT_DESCRIPTION), int(EventType.QUERY)
_CONTROL = re.compile(rb"\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|XA|START\s+TRANSACTION)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Rows events of one table that are alike but for their rows. One object a shape: compare by identity.

    `before` and `after` are the columns of the images (a write has after only). `key` is the key whose distinct values are counted.
    """

    table: str
    kind: str
    columns: int
    before: Columns
    after: Columns
    key: str | None = None


@dataclass(slots=True)
class Applied:
    """A transaction's rows events of one target. `row_bytes` is what the images take, uncompressed.

    `sizes`: (rows, distinct key values) of an event -> how many events. `statements`: statements that ended on the target.
    """

    target: Target
    events: int = 0
    rows: int = 0
    row_bytes: int = 0
    statements: int = 0
    distinct_values: int = 0
    sizes: dict[Count, int] = field(default_factory=dict)


@dataclass(slots=True)
class TransactionLoad:
    """One transaction. `log_bytes` is its length in the log (compressed where the log is), `commit_time` in seconds since 1970.

    `commit_time` is the commit timestamp in microseconds where the log has one, else that of the last event, in whole seconds.
    `last_committed` and `sequence_number` are 0 in a log without them (5.6, MariaDB). `statements` are those in the log as text
    (DDL, statement format); `statement_seconds` is how long they ran on the source.
    """

    file: str
    position: int
    end_file: str = ""
    end: int = 0
    gtid: str | None = None
    kind: Kind = Kind.TRANSACTION
    server_id: int = 0
    commit_time: float = 0.0
    last_committed: int = 0
    sequence_number: int = 0
    log_bytes: int = 0
    rows: int = 0
    rows_events: int = 0
    statements: int = 0
    statement_seconds: int = 0
    complete: bool = True
    applied: dict[Target, Applied] = field(default_factory=dict)

    @property
    def row_bytes(self) -> int:
        """Bytes of its row images."""
        return sum(applied.row_bytes for applied in self.applied.values())

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it changes, each once."""
        return tuple(dict.fromkeys(target.table for target in self.applied))

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


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of the replica, and the rules it finds rows by: which key's values are worth counting."""

    tables: Mapping[str, TableDefinition]
    rules: ServerRules
    row_search: frozenset[str] | None = None
    rows_per_value: Callable[[TableDefinition, Key], float] | None = None

    def key_of(self, table: str, columns: Columns) -> Key | None:
        """The key that may name several rows; None for one that names one, and for a scan."""
        definition = self.tables.get(table)
        if definition is None:
            return None
        known = self.rows_per_value
        statistics = None if known is None else lambda key: known(definition, key)
        local = tuple(at for at in columns if at < len(definition.columns))
        decision = decide(definition, local, self.rules, self.row_search, statistics)
        if decision.key is None or decision.key_class != "other" or not set(decision.key.columns) <= set(columns):
            return None
        return decision.key


@dataclass(slots=True)
class _Plan:
    table_map: TableMap
    target: Target
    count: Callable[[Event], Count]
    ends_statement: bool


class LoadReader:
    """Iterates over the transactions of `paths`; see LogReader for the positions. Raises InputError naming file and position.

    The last transaction may not be complete. `notes` says what was passed over or is missing, and how often.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        schema: Schema | None = None,
        verify_checksum: bool = True,
        start_position: int | None = None,
        stop_position: int | None = None,
    ) -> None:
        self._reader = LogReader(paths, verify_checksum=verify_checksum, start_position=start_position, stop_position=stop_position)
        self.schema = schema
        self.server_version = ""
        self.notes: dict[str, int] = {}
        self._tracker = TransactionTracker()
        self._load: TransactionLoad | None = None
        self._maps: dict[int, TableMap] = {}
        self._known_maps: dict[bytes, tuple[int, TableMap]] = {}
        self._plans: dict[RowsHead, _Plan] = {}
        self._targets: dict[tuple[str, str, Columns, Columns, str | None], Target] = {}

    def __iter__(self) -> Iterator[TransactionLoad]:
        event: Event | None = None
        try:
            for event in self._reader:
                type_code = event.type
                if type_code in ROWS_TYPES:
                    self._rows(event)
                elif type_code == TABLE_MAP:
                    self._table_map(event)
                elif type_code == FORMAT_DESCRIPTION:
                    self._format_description()
                else:
                    yield from self._other(event)
        except InputError as error:
            if event is not None:
                error.locate(file=event.file, position=event.position)
            raise
        unfinished = self._tracker.finish()
        if unfinished is not None:
            yield self._close(unfinished, event)

    def _format_description(self) -> None:
        """Table ids start anew."""
        fde = self._reader.format
        assert fde is not None
        self._fde: FormatDescription = fde
        self._heads = RowsHeads(fde)
        self._maps.clear()
        self._known_maps.clear()
        self._plans.clear()
        self.server_version = fde.server_version

    # transactions

    def _other(self, event: Event) -> Sequence[TransactionLoad]:
        """The transactions that are over with this event: its own, or the one before it that was cut off."""
        boundary = self._tracker.feed(event, self._fde)
        is_statement = event.type == QUERY or event.type in STATEMENT_TYPES
        if boundary is None:
            if is_statement:
                self._statement(event)
            return ()
        ended, began = boundary.ended, boundary.began
        cut_off = ended is not None and not ended.complete
        over = [self._close(ended, None)] if ended is not None and cut_off else []
        if began is not None:
            self._open(began)
        if is_statement:
            self._statement(event)
        if ended is not None and not cut_off:
            over.append(self._close(ended, event))
        return over

    def _open(self, transaction: Transaction) -> TransactionLoad:
        self._load = TransactionLoad(transaction.file, transaction.start)
        return self._load

    def _close(self, transaction: Transaction, last: Event | None) -> TransactionLoad:
        load = self._load or self._open(transaction)
        self._load = None
        load.end_file, load.end = transaction.end_file or transaction.file, transaction.end
        load.gtid, load.kind, load.server_id = transaction.gtid, transaction.kind, transaction.server_id
        load.last_committed, load.sequence_number = transaction.last_committed, transaction.sequence_number
        load.complete = transaction.complete
        stamp = transaction.immediate_commit_timestamp
        load.commit_time = stamp / 1e6 if stamp else float(transaction.timestamp if last is None else last.timestamp)
        load.log_bytes = load.end - load.position if load.end_file == load.file else transaction.transaction_length
        return load

    def _statement(self, event: Event) -> None:
        """A statement in the log's text runs on the replica about as long as it did on the source."""
        if event.type == QUERY:
            if event.buffer[event.end - 6 : event.end] == b"\0BEGIN":
                return
            start, end = query_text(event)
            if _CONTROL.match(event.buffer[start : min(end, start + 40)]):
                return
        load = self._load
        if load is not None:
            load.statements += 1
            load.statement_seconds += int.from_bytes(event.buffer[event.body + 4 : event.body + 8], "little")

    # rows

    def _table_map(self, event: Event) -> None:
        if self._tracker.current is None:
            self._begin_without_head(event)
        body = event.buffer[event.body : event.end]
        known = self._known_maps.get(body)
        if known is None:
            table_map = parse_table_map(event.buffer, event.body, event.end, self._fde.post_header_length(EventType.TABLE_MAP))
            if len(self._known_maps) > 10_000:
                self._known_maps.clear()
                self._plans.clear()
            known = self._known_maps[body] = table_map.table_id, table_map
        table_id, self._maps[table_id] = known

    def _begin_without_head(self, event: Event) -> None:
        boundary = self._tracker.feed(event, self._fde)
        if boundary is not None and boundary.began is not None:
            self._open(boundary.began)

    def _rows(self, event: Event) -> None:
        head = self._heads.of(event)
        load = self._load
        if load is None:
            self._begin_without_head(event)
            load = self._load
            assert load is not None
        plan = self._plans.get(head)
        if plan is None or plan.table_map is not self._maps.get(head.table_id):
            if head.table_id in DUMMY_TABLE_IDS:
                return
            plan = self._plan(event, head)
        count = plan.count(event)
        rows = count[0]
        applied = load.applied.get(plan.target)
        if applied is None:
            applied = load.applied[plan.target] = Applied(plan.target)
        applied.events += 1
        applied.rows += rows
        applied.row_bytes += event.end - event.body - head.length
        applied.statements += plan.ends_statement
        applied.distinct_values += count[1]
        applied.sizes[count] = applied.sizes.get(count, 0) + 1
        load.rows += rows
        load.rows_events += 1

    def _plan(self, event: Event, head: RowsHead) -> _Plan:
        table_map = self._maps.get(head.table_id)
        if table_map is None:
            raise unknown_table(event, head.table_id)
        width, first, second = head.columns()
        before: Columns = () if head.kind == "write" else first
        after: Columns = () if head.kind == "delete" else second
        key = self._key(table_map.full_name, before) if head.kind != "write" else None
        counter = row_counter(head, table_map, None if key is None else key.columns)
        place = (table_map.full_name, head.kind, before, after, None if key is None else key.name)
        target = self._targets.get(place)
        if target is None:
            target = self._targets[place] = Target(place[0], head.kind, width, before, after, place[4])
        plan = self._plans[head] = _Plan(table_map, target, counter, head.ends_statement)
        return plan

    def _key(self, table: str, before: Columns) -> Key | None:
        if self.schema is None:
            return None
        if table not in self.schema.tables:
            note = f"{table} is not in the schema: nothing is known of its keys"
            self.notes[note] = self.notes.get(note, 0) + 1
        return self.schema.key_of(table, before)
