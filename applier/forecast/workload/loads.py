"""What each transaction of a log asks of a replica: its rows events by table, kind and size, its
dependencies, its commit time.

One pass, nothing gathered but the transaction at hand, and of that only how often each size of
event occurs: a transaction of a hundred million rows takes no more memory than one of ten. Row
values are not decoded; with a schema, the columns of the key that the replica would use are looked
at, to tell how many distinct values an event has.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

from applier.binlog.boundaries import is_control, query_text
from applier.binlog.events import Query, parse
from applier.binlog.gtid_events import MariadbGtidEvent
from applier.binlog.header import (
    FIRST_EVENT,
    GTID_TYPES,
    ROWS_TYPES,
    Event,
    EventFlag,
    EventType,
    FormatDescription,
)
from applier.binlog.reader import LogReader
from applier.binlog.rows import RowsHead
from applier.binlog.rows_context import RowsContext
from applier.binlog.selection.filters import LogFilter
from applier.binlog.selection.table_filter import EVERYTHING, FilterTally, TableFilter
from applier.binlog.table_map import TableMap
from applier.binlog.transactions import (
    STATEMENT_TYPES,
    Transaction,
    TransactionTracker,
    with_formats,
)
from applier.errors import InputError
from applier.forecast.workload.bulk_loads import (
    WORTH_COMPILING_BYTES,
    BulkLoads,
    compiled_loads,
    smallest_log_bytes,
)
from applier.forecast.workload.followed_definitions import FollowedDefinitions
from applier.forecast.workload.load_batch import LoadBatch, LoadPlan, add_event
from applier.forecast.workload.row_counts import row_counter, rows_layout
from applier.forecast.workload.row_places import PlacesReader
from applier.forecast.workload.schema import Schema
from applier.forecast.workload.statement_seconds import Connections, doubt, on_source
from applier.forecast.workload.table_fates import ddl_in, table_fates
from applier.forecast.workload.transaction_load import Columns, LoadShape, TransactionLoad
from applier.masking import mask
from applier.replica.scheduling import marks_of
from applier.tables.sql.quoting import without_end
from applier.tables.sql.statement_names import is_wanted
from lookup.table import Key

TABLE_MAP = int(EventType.TABLE_MAP)
FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION)
QUERY = int(EventType.QUERY)
FIRST_TYPES = GTID_TYPES | {EventType.QUERY}
"""Events that a transaction may begin with."""
MOST_FRUITLESS = 255
"""Transactions that are read event by event before the kernel is asked again, where it took
none."""
MOST_PLACES = 20_000
"""Rows of a transaction and target whose places are kept."""
_QUERY_HEAD = struct.Struct("<II")
"""Of a statement's event: its connection, and the seconds that it took."""
STATEMENT_WIDTH = 60
"""Characters of a statement that are kept."""


def _beginning(sql: bytes) -> str:
    """The first words of a statement, without passwords."""
    text = " ".join(mask(without_end(bytes(sql[:1000]).decode("utf-8", "replace"))).split())
    return text if len(text) <= STATEMENT_WIDTH else text[: STATEMENT_WIDTH - 1] + "…"


class ReadMap(NamedTuple):
    """A table map, and the body of its event, by which the kernel knows it."""

    table_map: TableMap
    body: bytes


class LoadReader:
    """Iterates over the transactions of `paths`; see LogReader for the positions. Raises InputError
    naming file and position.

    The last transaction may not be complete. `part` picks transactions by time and GTID, `only`
    tables; of others neither rows nor statements count. `tolerant`: a file that ends in the middle
    of an event is a note. `definitions`: who follows the log's DDL; `schema` knows the same facts.
    `notes` says what was passed over or is missing, and how often.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        schema: Schema | None = None,
        verify_checksum: bool = True,
        start_position: int | None = None,
        stop_position: int | None = None,
        part: LogFilter | None = None,
        only: TableFilter = EVERYTHING,
        tolerant: bool = False,
        definitions: FollowedDefinitions | None = None,
    ) -> None:
        self._reader = LogReader(
            paths,
            verify_checksum=verify_checksum,
            start_position=start_position,
            stop_position=stop_position,
            on_cut_off=self._cut_off if tolerant else None,
        )
        self._part, self._only = part, FilterTally(only)
        self.schema, self._definitions = schema, definitions
        self.server_version = ""
        self.notes: dict[str, int] = {}
        self.unmatched: list[str] = []
        self._tracker = TransactionTracker()
        self._load: TransactionLoad | None = None
        self._context = RowsContext(ReadMap, on_full=self._forget_plans)
        self._plans: dict[RowsHead, LoadPlan] = {}
        self._targets: dict[tuple[str, str, Columns, Columns, str | None, int], LoadShape] = {}
        self._bulk: BulkLoads | None = None
        """The kernel that reads plain transactions of the file at hand; None where it does not, or
        not yet."""
        self._may_bulk = False
        self._smallest_bytes = smallest_log_bytes()
        self._file_bytes = self._bytes_before = 0
        """Of the file at hand, and of those before it."""
        self._compiled: BulkLoads | None = None
        self._bulk_plans: dict[int, LoadPlan] = {}
        self._fruitless = self._pause = 0

    def __iter__(self) -> Iterator[TransactionLoad]:
        for found in self.batches():
            if isinstance(found, LoadBatch):
                yield from found
            else:
                yield found

    def batches(self) -> Iterator[TransactionLoad | LoadBatch]:
        """As iteration, but plain transactions of a long log many at a time."""
        event: Event | None = None
        try:
            for event in self._events():
                type_code = event.type
                if type_code in ROWS_TYPES:
                    self._rows(event)
                elif type_code == TABLE_MAP:
                    self._table_map(event)
                elif type_code == FORMAT_DESCRIPTION:
                    self._format_description(event)
                    yield from self._other(event)
                elif (
                    self._may_bulk
                    and type_code in FIRST_TYPES
                    and (yield from self._in_bulk(event))
                ):
                    continue
                else:
                    yield from self._other(event)
        except InputError as error:
            if event is not None:
                error.locate(file=event.file, position=event.position)
            raise
        unfinished = self._tracker.finish()
        if unfinished is not None:
            yield self._close(unfinished, event)
        self.unmatched = self._only.unmatched()

    def _events(self) -> Iterator[Event]:
        if self._part is None or not self._part.is_active:
            return iter(self._reader)
        return (event for event, _ in self._part.select(with_formats(self._reader)))

    def _cut_off(self, error: InputError) -> None:
        """The transaction at the end of a file that was cut off is not known as a whole: it does
        not count."""
        self.notes[
            f"{error.file} is cut off at {error.position}: {error.message}; "
            "what came before it counts"
        ] = 1
        self._tracker, self._load = TransactionTracker(), None

    def _format_description(self, event: Event) -> None:
        """Table ids start anew."""
        if event.position == FIRST_EVENT:
            self._bytes_before += self._file_bytes
            self._file_bytes = len(event.buffer)
        fde = self._reader.format
        assert fde is not None
        is_relay_log = event.flags & EventFlag.RELAY_LOG  # its source's own description follows
        self._writer = None if is_relay_log else event.server_id
        self._file_begins = event.timestamp
        self._connections = Connections(fde.created)
        self._fde: FormatDescription = fde
        self._context.describe(fde)
        self._plans.clear()
        self.server_version = fde.server_version
        self._bulk = None
        wants_keys = self.schema is not None and self.schema.has_places
        self._may_bulk = (
            not wants_keys and not self._only and (self._part is None or not self._part.is_active)
        )

    # plain transactions, many at a time

    def _bulk_of(self, event: Event) -> BulkLoads | None:
        """The kernel, ready for the content at hand; None where it is not worth its start, or
        cannot be had."""
        if (
            len(event.buffer) < self._smallest_bytes
            and self._bytes_before + len(event.buffer) < WORTH_COMPILING_BYTES
        ):
            return None
        if self._bulk is None:
            bulk = self._compiled = self._compiled or compiled_loads()
            self._may_bulk = bulk is not None and bulk.begin(
                self._fde, verify=self._reader.verify_checksum
            )
            if bulk is None or not self._may_bulk:
                return None
            for table_id, read in self._context.maps.items():
                bulk.add_map(read.body, table_id)
            self._bulk = bulk
            self._bulk_plans = {}  # a new one: the numbers of shapes begin anew
            self._plans.clear()  # each is shown to the kernel when it is made
        self._bulk.attach(event.buffer)
        return self._bulk

    def _in_bulk(self, event: Event) -> Generator[LoadBatch, None, bool]:
        """Transactions from this event on; False where there is none that the kernel takes."""
        if self._tracker.current is not None or event.inner_index >= 0:
            return False
        if self._pause:
            self._pause -= 1
            return False
        bulk = self._bulk_of(event)
        if bulk is None:
            return False
        position = event.position
        for stretch in bulk.run(position, self._reader.limit):
            position = self._reader.position = stretch.position
            yield LoadBatch(event.file, stretch, self._bulk_plans)
        found = position > event.position
        self._fruitless = 0 if found else min(2 * self._fruitless + 1, MOST_FRUITLESS)
        self._pause = self._fruitless
        return found

    # transactions

    def _other(self, event: Event) -> Sequence[TransactionLoad]:
        """The transactions that are over with this event: its own, or the one before it that was
        cut off."""
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
        self._most_seconds = 0
        return self._load

    def _close(self, transaction: Transaction, last: Event | None) -> TransactionLoad:
        load = self._load or self._open(transaction)
        self._load = None
        load.end_file, load.end = transaction.end_file or transaction.file, transaction.end
        load.gtid = transaction.gtid
        load.kind = transaction.kind
        load.server_id = transaction.server_id
        load.last_committed = transaction.last_committed
        load.sequence_number = transaction.sequence_number
        if isinstance(transaction.identity, MariadbGtidEvent):
            load.marks = marks_of(transaction.identity)
        load.complete = transaction.complete
        stamp = transaction.immediate_commit_timestamp
        load.commit_time = (
            stamp / 1e6
            if stamp
            else float(transaction.timestamp if last is None else last.timestamp)
        )
        if load.statements and last is not None:
            seconds, count = load.statement_seconds, load.statements
            load.statement_seconds = on_source(seconds, self._most_seconds, count, transaction)
            told = doubt(transaction, last, self._writer, self._file_begins)
            if load.statement_seconds and told is not None:
                self.notes[told] = self.notes.get(told, 0) + 1
        load.log_bytes = (
            load.end - load.position
            if load.end_file == load.file
            else transaction.transaction_length
        )
        return load

    def _statement(self, event: Event) -> None:
        """A statement in the log's text runs on the replica about as long as it did on the
        source."""
        start = end = 0
        if event.type == QUERY:
            if is_control(event):
                return
            start, end = query_text(event)
        load = self._load
        if load is not None and self._wants(event):
            load.statement = load.statement or _beginning(event.buffer[start:end])
            load.statements += 1
            self._ddl(event, load)
            connection, seconds = _QUERY_HEAD.unpack_from(event.buffer, event.body)
            load.statement_seconds += seconds
            self._most_seconds += self._connections.most_seconds(
                connection, event.timestamp, seconds
            )

    def _ddl(self, event: Event, load: TransactionLoad) -> None:
        """What a statement makes of tables, if it may be DDL."""
        query = ddl_in(event, self._fde)
        if query is None:
            return
        fates, definitions = table_fates(query), self._definitions
        if definitions is not None:
            before = definitions.changes
            failure = definitions.follow(event, query, fates)
            if failure is not None:
                self.notes[failure] = self.notes.get(failure, 0) + 1
            fates = list(filter(definitions.happened, fates))
            if definitions.changes != before:
                self._forget_plans()
        load.fates += fates

    def _wants(self, event: Event) -> bool:
        if not self._only:
            return True
        parsed = parse(event, self._fde)
        query = parsed if isinstance(parsed, Query) else getattr(parsed, "query", None)
        return query is None or is_wanted(self._only, query)

    # rows

    def _table_map(self, event: Event) -> None:
        if self._tracker.current is None:
            self._begin_without_head(event)
        read = self._context.take_map(event)
        if self._bulk is not None:
            self._bulk.add_map(read.body, read.table_map.table_id)

    def _forget_plans(self) -> None:
        self._plans.clear()
        if self._bulk is not None:
            self._bulk.forget()
            self._bulk_plans = {}  # who keeps a batch keeps those before

    def _begin_without_head(self, event: Event) -> None:
        boundary = self._tracker.feed(event, self._fde)
        if boundary is not None and boundary.began is not None:
            self._open(boundary.began)

    def _rows(self, event: Event) -> None:
        head = self._context.head_of(event)
        load = self._load
        if load is None:
            self._begin_without_head(event)
            load = self._load
            assert load is not None
        plan = self._plans.get(head)
        read = self._context.table_of(event, head)
        if read is None:
            return
        if plan is None or plan.table_map is not read.table_map:
            table_map = read.table_map
            if self._only and not self._only.wants_table(table_map.database, table_map.table):
                return
            plan = self._plan(event, head, read)
        add_event(load, plan, plan.count(event), event.end - event.body - head.length)
        if plan.places is not None:
            applied = load.applied[plan.target]
            if applied.placed < MOST_PLACES:
                applied.place(plan.places(event))

    def _plan(self, event: Event, head: RowsHead, read: ReadMap) -> LoadPlan:
        table_map = read.table_map
        width, first, second = head.columns()
        before: Columns = () if head.kind == "write" else first
        after: Columns = () if head.kind == "delete" else second
        table, followed = table_map.full_name, self._definitions
        key = self._key(table, before) if head.kind != "write" else None
        layout = rows_layout(head, table_map, None if key is None else key.columns)
        name = None if key is None else key.name
        changed = 0 if followed is None else followed.times_changed(table)
        place = table, head.kind, before, after, name, changed
        target = self._targets.get(place)
        if target is None:
            facts = followed.facts.get(table) if followed is not None and changed else None
            target = self._targets[place] = LoadShape(
                table, head.kind, width, before, after, name, facts
            )
        places = self._places(head, table_map)
        plan = self._plans[head] = LoadPlan(
            table_map, target, row_counter(layout), head.ends_statement, places
        )
        if self._bulk is not None:
            text = event.buffer[event.body : event.body + head.length]
            number = self._bulk.add_head(read.body, head, text, layout)
            if number is not None:
                self._bulk_plans[number] = plan
        return plan

    def _places(self, head: RowsHead, table_map: TableMap) -> PlacesReader | None:
        if self.schema is None:
            return None
        found = self.schema.places_of(table_map.full_name, head.kind, head.columns()[1])
        return None if found is None else found.reader(head, table_map)

    def _key(self, table: str, before: Columns) -> Key | None:
        if self.schema is None:
            return None
        if table not in self.schema.facts:
            note = f"{table} is not in the schema: nothing is known of its keys"
            self.notes[note] = 1
        return self.schema.key_of(table, before)
