"""Events with what belongs to them: transaction, table, rows. The stream behind `binlag events`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from applier.binlog import events as log
from applier.binlog.describe import (
    describe,
    describe_map,
    describe_parsed,
)
from applier.binlog.header import ROWS_TYPES, Event, EventType, FormatDescription
from applier.binlog.images.row_values import WORDS, RowValues, Values, image_text
from applier.binlog.plain_lines import PlainLines
from applier.binlog.reader import LogReader
from applier.binlog.refusals import unknown_table
from applier.binlog.rows import DUMMY_TABLE_IDS, STATEMENT_END, RowsHead
from applier.binlog.rows_context import RowsContext, as_it_is
from applier.binlog.selection.filters import LogFilter, Moment
from applier.binlog.selection.table_filter import (
    EVERYTHING,
    FilterTally,
    StatementNames,
    TableFilter,
)
from applier.binlog.table_map import TableMap
from applier.binlog.transactions import TransactionTracker, with_formats

Row = tuple[Values | None, Values | None]
QUERY_TYPES = frozenset({EventType.QUERY, EventType.EXECUTE_LOAD_QUERY})


@dataclass(slots=True)
class EventRecord:
    """One event. `database`, `table`, `kind` and the rows are None where the event has none or they
    were not asked for."""

    event: Event
    info: str
    gtid: str | None = None
    database: str | None = None
    table: str | None = None
    kind: str | None = None
    row_count: int | None = None
    rows: list[Row] | None = None

    def as_dict(self) -> dict[str, Any]:
        """The JSON object of `--json`; `inner` numbers the events of a compressed transaction."""
        event = self.event
        result: dict[str, Any] = {
            "file": event.file,
            "pos": event.position,
            "end_log_pos": event.log_pos,
            "type": event.name,
            "timestamp": event.timestamp,
            "server_id": event.server_id,
            "event_bytes": event.length,
            "gtid": self.gtid,
            "database": self.database,
            "table": self.table,
            "info": self.info,
        }
        if event.inner_index >= 0:
            result["inner"] = event.inner_index
        if self.row_count is not None:
            result["rows"] = self.row_count
        if self.rows is not None:
            result["values"] = [{"before": before, "after": after} for before, after in self.rows]
        return result

    def row_lines(self) -> Iterator[str]:
        """One line of text per row."""
        if self.rows is None or self.kind is None:
            return
        for before, after in self.rows:
            images = " -> ".join(
                image_text(image) for image in (before, after) if image is not None
            )
            yield f"{WORDS[self.kind]} {self.database}.{self.table}: {images}"


class Listing:
    """Iterates over the events of `files`. `incomplete` says at the end whether the last
    transaction has an end.

    `with_rows` decodes values, `count_rows` only counts. `only` picks tables; `names_of` says which
    a statement changes.

    `nothing` says at the end that no event lies in the times, `unmatched` which names of `only` the
    log does not have.

    Raises InputError for logs that cannot be read, UsageError for options, and at the end for names
    and GTIDs of which the log has none.
    """

    def __init__(
        self,
        files: Sequence[str],
        *,
        with_rows: bool = False,
        count_rows: bool = False,
        verify: bool = True,
        start_position: int | None = None,
        stop_position: int | None = None,
        start_datetime: Moment = None,
        stop_datetime: Moment = None,
        include_gtids: str | None = None,
        exclude_gtids: str | None = None,
        only: TableFilter = EVERYTHING,
        names_of: Callable[[log.Query], StatementNames] = lambda query: StatementNames(
            control=True
        ),
    ) -> None:
        self._reader = LogReader(
            files,
            verify_checksum=verify,
            start_position=start_position,
            stop_position=stop_position,
        )
        self._filter = LogFilter.of(
            start_datetime=start_datetime,
            stop_datetime=stop_datetime,
            include_gtids=include_gtids,
            exclude_gtids=exclude_gtids,
        )
        self._wanted, self._names_of = FilterTally(only), names_of
        self._with_rows, self._count_rows = with_rows, with_rows or count_rows
        self._values = RowValues()
        self._context = RowsContext(as_it_is)
        self._fast: PlainLines | None = None
        self.incomplete: str | None = None
        self.nothing: str | None = None
        self.unmatched: list[str] = []

    def __iter__(self) -> Iterator[EventRecord]:
        for listed in self._walk():
            assert isinstance(listed, EventRecord)
            yield listed

    def with_lines(self, width: int) -> Iterator[EventRecord | str]:
        """The same; many events of plain transactions come as their lines, in one text. `width`: of
        the file's name."""
        if self._filter.is_active or self._wanted:
            yield from self._walk()
        else:
            self._fast = PlainLines(
                self._reader, self._values, with_rows=self._with_rows, width=width
            )
            yield from self._walk()

    def _walk(self) -> Iterator[EventRecord | str]:
        tracker, described = TransactionTracker(), None
        stream = with_formats(self._reader)
        if self._filter.is_active:
            stream = self._filter.select(stream)
        for event, fde in stream:
            if fde is not described:
                self._context.describe(fde, begins=False)
                described = fde
            boundary = tracker.feed(event, fde)
            if boundary is not None:
                self._context.maps.clear()
            current = tracker.current or (boundary.ended if boundary is not None else None)
            listed = self._list(event, fde, None if current is None else current.gtid)
            if listed is not None:
                yield listed
            if self._fast is not None:
                maps = self._context.maps
                self._fast.learn(event, fde, maps, is_boundary=boundary is not None)
                yield from self._fast.behind(event, fde, tracker, maps)
        unfinished = tracker.finish()
        if unfinished is not None:
            name = f" {unfinished.gtid}" if unfinished.gtid else ""
            self.incomplete = (
                f"the transaction{name} that starts at {unfinished.file}:{unfinished.start} has no"
                " end in this log"
            )
        self.nothing = self._filter.nothing
        if self.nothing is None:
            self._filter.check()
            self._wanted.check()
            self.unmatched = self._wanted.unmatched()

    def _list(self, event: Event, fde: FormatDescription, gtid: str | None) -> EventRecord | None:
        if event.type == EventType.TABLE_MAP:
            table_map = self._context.take_map(event)
            wanted = self._wants(table_map)
            return (
                EventRecord(
                    event, describe_map(table_map), gtid, table_map.database, table_map.table
                )
                if wanted
                else None
            )
        if event.type in ROWS_TYPES:
            return self._list_rows(event, fde, gtid)
        if event.type in QUERY_TYPES:
            parsed = log.parse(event, fde)
            query: log.Query = parsed if isinstance(parsed, log.Query) else parsed.query
            if self._wanted and not self._wanted.wants_statement(self._names_of(query)):
                return None
            database = query.database.decode("utf-8", "backslashreplace") or None
            return EventRecord(event, describe_parsed(event, parsed), gtid, database)
        return EventRecord(event, describe(event, fde), gtid)

    def _wants(self, table_map: TableMap) -> bool:
        """Everything is listed, system schemas too, unless somebody chose."""
        return not self._wanted or self._wanted.wants_table(table_map.database, table_map.table)

    def _list_rows(
        self, event: Event, fde: FormatDescription, gtid: str | None
    ) -> EventRecord | None:
        rows = self._context.head_of(event)
        table_map = self._context.maps.get(rows.table_id)
        if table_map is None:
            if rows.table_id in DUMMY_TABLE_IDS and rows.flags & STATEMENT_END:
                return EventRecord(event, describe(event, fde), gtid)
            return self._without_map(event, fde, rows, gtid)
        if not self._wants(table_map):
            return None
        listed = EventRecord(
            event, describe(event, fde), gtid, table_map.database, table_map.table, rows.kind
        )
        if self._count_rows:
            values = self._values.rows(event, rows, table_map)
            listed.row_count = len(values)
            listed.rows = values if self._with_rows else None
        return listed

    def _without_map(
        self, event: Event, fde: FormatDescription, rows: RowsHead, gtid: str | None
    ) -> EventRecord:
        """Rows whose table map stands before the start position can be listed, but not decoded."""
        if self._count_rows or self._wanted:
            raise unknown_table(event, rows.table_id)
        return EventRecord(event, describe(event, fde), gtid, kind=rows.kind)
