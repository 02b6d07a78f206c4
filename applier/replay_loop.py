"""Replay binary logs: the loop from events to applied transactions.

    events -> what ends, starts or belongs to a transaction -> the target -> commit

The loop knows transactions and filters; rows are the target's, statements the session's. A transaction that fails is rolled
back and stops the replay, as the applier of a replica stops.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from applier.arguments import checked
from applier.binlog.describe import read_table_map
from applier.binlog.events import ExecuteLoadQuery, Query, XaPrepare, parse
from applier.binlog.follow import LogFiles, LogFollower, log_files, open_reader
from applier.binlog.gtid_events import Gtid, MariadbGtidEvent, plain_gtid
from applier.binlog.header import (
    GTID_TYPES,
    ROWS_TYPES,
    Event,
    EventFlag,
    EventType,
    FormatDescription,
    version_number,
)
from applier.binlog.reader import LogReader
from applier.binlog.refusals import OLD_LOAD_TYPES, lost_events, old_load, unknown_table
from applier.binlog.rows import DUMMY_TABLE_IDS, RowsHeads
from applier.binlog.selection.filters import holds, none_included
from applier.binlog.table_map import TableMap
from applier.binlog.xa import BEGINS, check_xid, plain_xid, prepared_xid, xa_statement
from applier.errors import NOT_SUPPORTED, InputError, ReplicationError
from applier.expected_errors import refuse_interrupted, remaining_error
from applier.garbage import no_cycle_collection
from applier.logs import logger
from applier.open_transaction import OpenTransaction
from applier.options import ReplayOptions, parse_options, row_search_text
from applier.result import ReplayResult, RowsRecord
from applier.tables.catalog import Tables
from applier.tables.engine import Change
from applier.tables.session import StatementApplier
from applier.tables.sql.quoting import unquoted
from applier.tables.sql.statement_names import is_wanted, names_of, needs_more, needs_relative
from applier.tables.target import RowsApplier
from checkpoints.gtid import GtidSet
from lookup.batch import ApplyOptions

_LOG = logger("replay")
_SAVEPOINT = re.compile(rb"\s*(SAVEPOINT|ROLLBACK\s+(?:WORK\s+)?TO(?:\s+SAVEPOINT)?|RELEASE\s+SAVEPOINT)\s+(.*)", re.IGNORECASE | re.DOTALL)
STATEMENT_TYPES = frozenset({EventType.INTVAR, EventType.RAND, EventType.USER_VAR, EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK})


@checked(parse_options)
def replay(
    files: LogFiles,
    into: Tables | None = None,
    *,
    on_rows: Callable[[RowsRecord], None] | None = None,
    keep_events: bool = True,
    on_event: Callable[[Event], None] | None = None,
    on_start: Callable[[ReplayResult], None] | None = None,
    **options: Any,
) -> ReplayResult:
    """Replays `files` in order into tables in memory, which are changed in place: logs, patterns, or a folder of logs.

    `options` are those of `binlag replay` with underscores (server, row_search, exec_mode, skip_errors, database, table,
    rewrite_db, start_position, stop_position, start_datetime, stop_datetime, include_gtids, exclude_gtids). `on_rows` gets
    each record instead of `result.events`, `on_event` each event read, `on_start` the result before it grows; without `keep_events`
    records are not made at all.

    An error that stops the applier is in `result.error`; the transactions before it are applied. Raises InputError for a
    log that cannot be read and UsageError for invalid options.
    """
    tables = into if into is not None else Tables()
    with no_cycle_collection():
        loop = ReplayLoop(tables, parse_options(**options), on_rows, keep_events=keep_events and on_rows is None)
        if on_start is not None:
            on_start(loop.result)
        return loop.run(log_files(files), on_event)


def _shown(events: Iterable[Event], on_event: Callable[[Event], None]) -> Iterator[Event]:
    for event in events:
        on_event(event)
        yield event


class ReplayLoop:
    """One event after the other. `run` reads files; `feed` takes events of any other origin, such as a relay log."""

    def __init__(self, tables: Tables, options: ReplayOptions, on_rows: Callable[[RowsRecord], None] | None, *, keep_events: bool) -> None:
        self.tables = tables
        self.options = options
        self.result = ReplayResult() if keep_events else ReplayResult(keep=on_rows)
        self.tally = options.tally()
        self._included = False
        """Whether a transaction was in --include-gtids."""
        self.transaction = OpenTransaction()
        self.maps: dict[int, TableMap | str] = {}
        """Table id -> the map; of a table that is not wanted, its database."""
        self.prepared: dict[str, list[Change]] = {}
        self.knows_prepared = False
        """All XA transactions that are prepared are in `prepared`: an end of another is an error. A log may begin behind a PREPARE."""
        self._known_maps: dict[bytes, tuple[int, TableMap | str]] = {}
        """Body of a TABLE_MAP event -> what goes into `maps`: one object for the same bytes."""
        self._fde: FormatDescription | None = None
        self._version = ""
        self._in_relay_log = False
        self._find = self._handlers().get
        self.before_commit: Callable[[Event], None] = _nothing
        """Called with the event that ends a transaction while its changes can still be seen in the tables' journal."""

    def run(self, files: Sequence[str | os.PathLike[str]], on_event: Callable[[Event], None] | None) -> ReplayResult:
        """All of these logs. Raises InputError, with nothing left half done; an error that stops the applier is in the result."""
        options = self.options
        reader = open_reader(
            files,
            verify_checksum=options.verify_checksum,
            start_position=options.start_position,
            stop_position=options.stop_position,
        )
        self._reader = reader
        events: Iterable[Event] = reader if on_event is None else _shown(reader, on_event)
        if options.start_time is not None or options.stop_time is not None:
            events = self.transaction.in_time(events, options.start_time, options.stop_time)
        event: Event | None = None
        find = self._find
        try:
            for event in events:
                if (handler := find(event.type)) is not None:
                    handler(event)
        except ReplicationError as error:
            self._stop(error, event)
        except InputError as error:
            if event is not None:
                error.locate(file=event.file, position=event.position)
            self.tables.rollback()
            self._leave_prepared_out()
            raise
        self._finish(reader, event)
        return self.result

    def feed(self, event: Event, fde: FormatDescription) -> None:
        """One event and the format description that governs it. Raises ReplicationError where the applier stops."""
        if event.type == EventType.FORMAT_DESCRIPTION:
            self._describe(fde)
            return
        if (handler := self._find(event.type)) is not None:
            handler(event)

    def _handlers(self) -> dict[int, Callable[[Event], None]]:
        """Event type -> what to do; a type that is not here changes no table. The keys are plain numbers: they compare faster."""
        handlers: dict[int, Callable[[Event], None]] = dict.fromkeys(ROWS_TYPES, self._rows)
        handlers.update(dict.fromkeys(GTID_TYPES, self._gtid))
        handlers.update(dict.fromkeys(STATEMENT_TYPES, self._prepare))
        handlers.update(dict.fromkeys(OLD_LOAD_TYPES, self._old_load))
        handlers.update(
            {
                EventType.FORMAT_DESCRIPTION: self._format_description,
                EventType.TABLE_MAP: self._table_map,
                EventType.QUERY: self._query,
                EventType.XID: self._commit,
                EventType.XA_PREPARE: self._xa_prepare,
                EventType.EXECUTE_LOAD_QUERY: self._load,
                EventType.INCIDENT: self._incident,
                EventType.ROTATE: self._rotate,
                EventType.GTID_LIST: self._between,
                EventType.BINLOG_CHECKPOINT: self._between,
            }
        )
        return {int(event_type): handler for event_type, handler in handlers.items()}

    def _format_description(self, event: Event) -> None:
        """The source's; a relay log begins with the receiver's own, which says nothing about what follows."""
        fde = self._reader.format
        assert fde is not None
        if event.flags & EventFlag.RELAY_LOG:
            self._in_relay_log = True
            return
        _LOG.info("reading a log", extra={"file": event.file, "position": event.position, "version": fde.server_version})
        begins = event.log_pos != 0 and not event.flags & EventFlag.ARTIFICIAL  # or one log of the source goes on in another relay log
        if begins:
            self._between(event)
        self._describe(fde, begins=begins)

    def _describe(self, fde: FormatDescription, *, begins: bool = True) -> None:
        """Where a log begins, table ids start anew; the version says whose rules hold."""
        self._fde = fde
        self._heads = RowsHeads(fde)
        if begins:
            self.maps.clear()
            self._known_maps.clear()
        if begins and fde.created:  # the source was started anew
            self.tables.end_sessions()
        if fde.server_version == self._version:
            return
        self._version = fde.server_version
        rules = self.options.rules(fde.server_version)
        remark = self.options.version_remark(fde.server_version)
        if remark is not None:
            self.result.note(remark)
        row_search = self.options.row_search if rules.row_search_selectable else None
        apply_options = ApplyOptions(rules, row_search, self.options.idempotent, self.options.skip_errors)
        version = 0 if fde.is_mariadb else version_number(fde.server_version)
        self.rows_applier = RowsApplier(self.tables, apply_options, self.result, self.options.conversions, self.options.rewrite, version)
        self.statements = StatementApplier(self.tables, rules.name, self.options.rewrite)
        self.tables.display_widths = rules.name in ("5.6", "5.7", "mariadb")
        if self.options.row_search is not None and not rules.row_search_selectable:
            self.result.note(f"--row-search has no effect: {rules.name} has no slave_rows_search_algorithms; choose another --server")
        self.result.server = rules.name
        self.result.rules = rules
        self.result.row_search = row_search_text(rules, row_search)

    # transactions

    def _gtid(self, event: Event) -> None:
        assert self._fde is not None
        options = self.options
        if self.transaction.begun:
            self._abandon(event)
        if event.type == EventType.GTID and options.include_gtids is None and options.exclude_gtids is None:
            plain_gtid(event)  # so that a damaged one is refused here, not when somebody asks for it
            self.transaction.start(event)
            return
        parsed: Gtid | MariadbGtidEvent = parse(event, self._fde)
        self.transaction.start(event, parsed.text, skipped=self._skips_gtid(parsed) or parsed.is_half_alter)
        if isinstance(parsed, MariadbGtidEvent):
            self.transaction.begun = not parsed.is_standalone
            self.transaction.xid = parsed.xid

    def _skips_gtid(self, parsed: Gtid | MariadbGtidEvent) -> bool:
        include, exclude = self.options.include_gtids, self.options.exclude_gtids
        included = include is None or holds(include, parsed)
        self._included = self._included or included
        return not included or (exclude is not None and holds(exclude, parsed))

    def _commit(self, event: Event) -> None:
        self.before_commit(event)
        self.tables.commit()
        self.result.transactions += not self.transaction.skipped
        self._end(event)

    def _end(self, event: Event) -> None:
        transaction, result = self.transaction, self.result
        if transaction.first is not None and transaction.first.type in GTID_TYPES:
            self._executed(transaction.first)
        transaction.end()
        result.last_file, result.last_position = event.file, event.position + (event.length if event.inner_index < 0 else 0)
        result.source_position = event.log_pos

    def _executed(self, event: Event) -> None:
        """One that was left out counts, too: its position is behind us."""
        if event.type == EventType.GTID:
            self.result.executed.add_plain(*plain_gtid(event))
        elif event.type != EventType.ANONYMOUS_GTID:
            assert self._fde is not None
            parsed: Gtid | MariadbGtidEvent = parse(event, self._fde)
            self.result.executed.add(parsed.gtid if isinstance(parsed, MariadbGtidEvent) else GtidSet(parsed.text or ""))

    def _rotate(self, event: Event) -> None:
        """In a relay log: the source's log that what follows is of, and where it is there."""
        if self._in_relay_log and not event.flags & EventFlag.RELAY_LOG and self.transaction.first is None:
            data = event.data
            self.result.source_file = data[8:].decode("utf-8", "surrogateescape")
            self.result.source_position = int.from_bytes(data[:8], "little")

    def _between(self, event: Event) -> None:
        """An event that belongs to no transaction moves the position as well."""
        if self._in_relay_log and event.log_pos and self.transaction.first is None:
            self.result.source_position = event.log_pos

    def _rollback(self, event: Event) -> None:
        self.tables.rollback()
        self._end(event)

    def _abandon(self, event: Event) -> None:
        """A receiver that asks for transactions by their GTIDs gets one that was cut off again from its beginning."""
        place = {"file": event.file, "position": event.position}
        self.result.note("the beginning of a transaction was rolled back: the log has the whole of it behind", **place)
        self.tables.rollback()
        self.transaction.end()

    # rows

    def _table_map(self, event: Event) -> None:
        assert self._fde is not None
        body = event.buffer[event.body : event.end]
        known = self._known_maps.get(body)
        if known is None:
            table_map = read_table_map(event, self._fde)
            wanted = self.tally.wants_table(table_map.database, table_map.table)
            known = self._known_maps[body] = table_map.table_id, table_map if wanted else table_map.database
        table_id, self.maps[table_id] = known

    def _rows(self, event: Event) -> None:
        assert self._fde is not None
        rows = self._heads.of(event)
        transaction = self.transaction
        if transaction.skipped:
            return
        table_map = self.maps.get(rows.table_id)
        if not isinstance(table_map, TableMap):
            if table_map is not None:
                self.tally.left_out_rows(table_map)
            elif rows.table_id not in DUMMY_TABLE_IDS:
                raise unknown_table(event, rows.table_id)
            return
        transaction.open = True
        try:
            self.rows_applier.apply(event, rows, table_map, transaction)
        except ReplicationError as error:
            if error.position is not None:
                raise
            error.locate(file=event.file, position=event.position, table=table_map.full_name)
            self._refused(error)
        except InputError as error:
            error.locate(file=event.file, position=event.position, table=table_map.full_name)
            raise

    def _refused(self, error: ReplicationError, query: Query | None = None) -> None:
        """An event that could not be opened: passed over when its error is in the skip list."""
        if not self.options.skips(error.number):
            raise error
        if error.number == NOT_SUPPORTED:
            database, dot, table = (error.table or "").partition(".")
            own = [f"{self.options.rewrite.get(database, database)}{dot}{table}"]
            self._inexact(own if query is None else self._changed(query), error.message)
        place = {"number": error.number, "file": error.file, "position": error.position, "table": error.table}
        self.result.note(f"skipped by --skip-errors: {error.message}", **place)

    def _inexact(self, tables: Iterable[str], reason: str) -> None:
        for table in tables:
            self.result.inexact.setdefault(table, reason)

    def _changed(self, query: Query) -> list[str]:
        """Tables that a statement changes, by their names here; "" where they are not known."""
        rewrite = self.options.rewrite
        return [f"{rewrite.get(database, database)}.{table}" for database, table in names_of(query).tables] or [""]

    def _pass_inexact_on(self, query: Query) -> None:
        """What a statement makes of a table that is not exact is not exact: RENAME TABLE, INSERT … SELECT, CREATE TABLE … LIKE."""
        sql = query.sql.decode("utf-8", "replace").lower()
        for table, reason in list(self.result.inexact.items()):
            if table.rpartition(".")[2].lower() in sql:
                self._inexact(self._changed(query), reason)

    # statements

    def _prepare(self, event: Event) -> None:
        if not self.transaction.skipped:
            assert self._fde is not None
            self.statements.prepare(parse(event, self._fde))

    def _query(self, event: Event) -> None:
        assert self._fde is not None
        if event.buffer[event.end - 5 : event.end] == b"BEGIN" and event.buffer[event.end - 6] == 0:
            self.transaction.begin(event)
            return
        query: Query = parse(event, self._fde)
        word = query.sql.strip().upper()
        if word == b"BEGIN":
            self.transaction.begin(event)
        elif word == b"COMMIT":
            self._commit(event)
        elif word == b"ROLLBACK":
            self._rollback(event)
        elif not self._xa(event, query) and not self._savepoint(query):
            self._statement(event, query)

    def _statement(self, event: Event, query: Query) -> None:
        if not self.transaction.skipped:
            if is_wanted(self.tally, query):
                self._execute(event, query)
            else:
                self.statements.forget()
        if not self.transaction.begun:
            self._commit(event)

    def _execute(self, event: Event, query: Query) -> None:
        self.result.statements += 1
        mark, error = self.tables.changes, None
        if self.result.inexact:
            self._pass_inexact_on(query)
        try:
            refuse_interrupted(query, self.options.skips)
            if (note := self.statements.execute(event, query)) is not None:
                self.result.note(note)
        except ReplicationError as caught:
            self.tables.rollback_to_mark(mark)
            error = caught
        if (error := remaining_error(error, query, self.options.skips)) is not None:
            error.hint = needs_more(self.options.only, error.number, query) or error.hint
            self._refused(error, query)

    def _load(self, event: Event) -> None:
        assert self._fde is not None
        load: ExecuteLoadQuery = parse(event, self._fde)
        if self.transaction.skipped:
            return
        if not is_wanted(self.tally, load.query):
            self.statements.forget()
            self.statements.statement.files.pop(load.file_id, None)
        else:
            self.result.statements += 1
            try:
                self.statements.load(event, load)
            except ReplicationError as error:
                self._refused(error, load.query)

    def _old_load(self, event: Event) -> None:
        raise old_load(event)

    def _incident(self, event: Event) -> None:
        assert self._fde is not None
        raise lost_events(event, self._fde)

    def _savepoint(self, query: Query) -> bool:
        match = _SAVEPOINT.match(query.sql)
        if match is None:
            return False
        word, name = match[1].upper(), unquoted(match[2].decode("utf-8", "surrogateescape").strip()).lower()
        if word == b"SAVEPOINT":
            self.tables.savepoint(name)
        elif word.startswith(b"ROLLBACK"):
            try:
                self.tables.rollback_to(name)
            except KeyError:
                raise ReplicationError(1305, f"SAVEPOINT {name} does not exist") from None
        return True

    # XA

    def _xa(self, event: Event, query: Query) -> bool:
        statement = xa_statement(query.sql)
        if statement is None:
            return False
        verb, text = statement
        xid = prepared_xid(self.transaction.xid or text, self.prepared)
        if self.knows_prepared and not self.transaction.skipped:
            check_xid(verb, xid, query.sql, self.prepared)
        if verb in BEGINS:
            self.transaction.begin(event)
        elif verb == "COMMIT":
            self.prepared.pop(xid, None)
            self._commit(event)
        elif verb == "ROLLBACK":
            self.tables.roll_back_detached(self.prepared.pop(xid, []))
            self._rollback(event)
        return True

    def _xa_prepare(self, event: Event) -> None:
        assert self._fde is not None
        parsed: XaPrepare = parse(event, self._fde)
        if not parsed.one_phase:
            self.prepared[plain_xid(parsed.text)] = self.tables.detach()
        self._commit(event)

    # the end

    def _stop(self, error: ReplicationError, event: Event | None) -> None:
        if event is not None:
            error.locate(file=event.file, position=event.position)
        error.hint = needs_relative(self.options.only, error, self.options.rewrite) or error.hint
        self.result.error = error
        self.tables.rollback()
        self.transaction.end()

    def _finish(self, reader: LogReader, event: Event | None) -> None:
        if self.result.error is None and self.transaction.started_at is not None and event is not None:
            self.tables.rollback()
            self.result.incomplete_transaction = self.transaction.started_at
            self.result.note(f"the transaction that starts at {self.transaction.started_at} is not complete; it was rolled back")
        elif self.result.error is None:
            self.tables.commit()
        if self.transaction.outside is not None:
            self.result.note(self.transaction.outside)
        self.result.notes.update(self.tally.notes())
        if self.result.error is None and not isinstance(reader, LogFollower):
            if self.options.include_gtids is not None and not self._included:
                raise none_included(self.options.include_gtids, str(self.result.executed).rpartition(",")[2])
            self.tally.check()
        self._leave_prepared_out()

    def _leave_prepared_out(self) -> None:
        for xid, changes in reversed(self.prepared.items()):
            try:
                self.tables.roll_back_detached(changes)
            except ReplicationError as error:
                self.result.error = self.result.error or error
                error.locate(file=self.result.last_file, position=self.result.last_position)
            else:
                self.result.note(f"XA transaction {xid} is prepared and neither committed nor rolled back: its rows are left out")


def _nothing(event: Event) -> None:
    """No one wants to know."""
