"""Replay binary logs: the loop from events to applied transactions.

    events -> what ends, starts or belongs to a transaction -> the target -> commit

The loop knows transactions and filters; rows are the target's, statements the session's, and what
is kept from one event to the next is in `applier.loop`. Where transactions begin and end it asks
`applier.binlog.boundaries` itself: the records of a `TransactionTracker`, which nothing here reads,
would cost a small transaction a fifth more. A transaction that fails is rolled back and stops the
replay, as the applier of a replica stops.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from applier.arguments import checked
from applier.binlog.boundaries import PLAIN_GTID, StatementRole, is_restart
from applier.binlog.events import ExecuteLoadQuery, Query, parse
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
from applier.binlog.refusals import OLD_LOAD_TYPES, lost_events, old_load
from applier.binlog.rows_context import RowsContext
from applier.binlog.selection.filters import holds, none_included
from applier.binlog.table_map import TableMap
from applier.errors import InputError, ReplicationError
from applier.garbage import no_cycle_collection
from applier.logs import logger
from applier.loop.expected_errors import refuse_interrupted, remaining_error
from applier.loop.inexact_tables import InexactTables
from applier.loop.locked_tables import LockedTables
from applier.loop.open_transaction import OpenTransaction
from applier.loop.replay_position import ReplayPosition
from applier.loop.savepoints import carry_out_savepoint
from applier.loop.xa_transactions import XaTransactions
from applier.options import ReplayOptions, parse_options, row_search_text
from applier.result import ReplayResult, RowsRecord
from applier.tables.catalog import Tables
from applier.tables.session import StatementApplier
from applier.tables.sql.statement_names import (
    is_wanted,
    needs_more,
    needs_relative,
    refuse_left_out,
)
from applier.tables.target import RowsApplier
from lookup.batch import ApplyOptions

_LOG = logger("replay")
XA_ROLES = (StatementRole.XA_START, StatementRole.XA_COMMIT, StatementRole.XA_ROLLBACK)
STATEMENT_TYPES = frozenset(
    {
        EventType.INTVAR,
        EventType.RAND,
        EventType.USER_VAR,
        EventType.BEGIN_LOAD_QUERY,
        EventType.APPEND_BLOCK,
    }
)


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
    """Replays `files` in order into tables in memory, which are changed in place: logs, patterns,
    or a folder of logs.

    `options` are those of `binlag replay` with underscores (server, row_search, exec_mode,
    skip_errors, database, table, rewrite_db, start_position, stop_position, start_datetime,
    stop_datetime, include_gtids, exclude_gtids). `on_rows` gets each record instead of
    `result.events`, `on_event` each event read, `on_start` the result before it grows; without
    `keep_events` records are not made at all.

    An error that stops the applier is in `result.error`; the transactions before it are applied.
    Raises InputError for a log that cannot be read and UsageError for invalid options.
    """
    tables = into if into is not None else Tables()
    with no_cycle_collection():
        loop = ReplayLoop(
            tables, parse_options(**options), on_rows, keep_events=keep_events and on_rows is None
        )
        if on_start is not None:
            on_start(loop.result)
        return loop.run(log_files(files), on_event)


def _shown(events: Iterable[Event], on_event: Callable[[Event], None]) -> Iterator[Event]:
    for event in events:
        on_event(event)
        yield event


class ReplayLoop:
    """One event after the other. `run` reads files; `feed` takes events of any other origin, such
    as a relay log."""

    def __init__(
        self,
        tables: Tables,
        options: ReplayOptions,
        on_rows: Callable[[RowsRecord], None] | None,
        *,
        keep_events: bool,
    ) -> None:
        self.tables = tables
        self.options = options
        tables.lower_case_names = options.lower_case_names
        self.result = ReplayResult()
        self.result.keep = self.result.events.append if keep_events else on_rows
        self.tally = options.tally()
        self._selects_gtids = options.include_gtids is not None or options.exclude_gtids is not None
        self._included = False
        """Whether a transaction was in --include-gtids."""
        self.transaction = OpenTransaction()
        self._context = RowsContext(self._keep_map)
        self.maps = self._context.maps
        """Table id -> the map; of a table that is not wanted, its database."""
        self.xa = XaTransactions(tables)
        self._inexact = InexactTables(options, self.result, tables)
        self._position = ReplayPosition(self.result, self.transaction)
        self._fde: FormatDescription | None = None
        self._version = ""
        self._find = self._handlers().get
        self.before_commit: Callable[[Event], None] = _nothing
        """Called with the event that ends a transaction while its changes can still be seen in the
        tables' journal."""

    def run(
        self, files: Sequence[str | os.PathLike[str]], on_event: Callable[[Event], None] | None
    ) -> ReplayResult:
        """All of these logs. Raises InputError, with nothing left half done; an error that stops
        the applier is in the result."""
        options = self.options
        reader = open_reader(
            files,
            verify_checksum=options.verify_checksum,
            start_position=options.start_position,
            stop_position=options.stop_position,
        )
        self._reader = reader
        events: Iterable[Event] = reader if on_event is None else _shown(reader, on_event)
        if (times := options.times()).is_limited:
            events = self.transaction.in_time(events, times)
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
            self.xa.leave_out(self.result)
            raise
        self._finish(reader, event)
        return self.result

    def feed(self, event: Event, fde: FormatDescription) -> None:
        """One event and the format description that governs it. Raises ReplicationError where the
        applier stops."""
        if event.type == EventType.FORMAT_DESCRIPTION:
            self._describe(fde)
            return
        if (handler := self._find(event.type)) is not None:
            handler(event)

    def _handlers(self) -> dict[int, Callable[[Event], object]]:
        """Event type -> what to do; a type that is not here changes no table. The keys are plain
        numbers: they compare faster."""
        handlers: dict[int, Callable[[Event], object]] = dict.fromkeys(ROWS_TYPES, self._rows)
        handlers.update(dict.fromkeys(GTID_TYPES, self._gtid))
        handlers.update(dict.fromkeys(STATEMENT_TYPES, self._prepare))
        handlers.update(dict.fromkeys(OLD_LOAD_TYPES, self._old_load))
        handlers.update(
            {
                EventType.FORMAT_DESCRIPTION: self._format_description,
                EventType.TABLE_MAP: self._take_map,
                EventType.QUERY: self._query,
                EventType.XID: self._commit,
                EventType.XA_PREPARE: self._xa_prepare,
                EventType.EXECUTE_LOAD_QUERY: self._load,
                EventType.INCIDENT: self._incident,
                EventType.ROTATE: self._position.rotate,
                EventType.GTID_LIST: self._position.pass_by,
                EventType.BINLOG_CHECKPOINT: self._position.pass_by,
            }
        )
        return {int(event_type): handler for event_type, handler in handlers.items()}

    def _format_description(self, event: Event) -> None:
        """The source's; a relay log begins with the receiver's own, which says nothing about what
        follows."""
        fde = self._reader.format
        assert fde is not None
        if event.flags & EventFlag.RELAY_LOG:
            self._position.in_relay_log = True
            return
        _LOG.info(
            "reading a log",
            extra={"file": event.file, "position": event.position, "version": fde.server_version},
        )
        # or one log of the source goes on in another relay log
        begins = event.log_pos != 0 and not event.flags & EventFlag.ARTIFICIAL
        if begins:
            self._position.pass_by(event)
        if begins and self.transaction.begun and is_restart(event, fde):
            self._abandon(event, "the source stopped before it had written all of it")
        self._describe(fde, begins=begins)

    def _describe(self, fde: FormatDescription, *, begins: bool = True) -> None:
        """Where a log begins, table ids start anew; the version says whose rules hold."""
        self._fde = fde
        self._context.describe(fde, begins=begins)
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
        apply_options = ApplyOptions(
            rules, row_search, self.options.idempotent, self.options.skip_errors
        )
        version = 0 if fde.is_mariadb else version_number(fde.server_version)
        self.rows_applier = RowsApplier(
            self.tables,
            apply_options,
            self.result,
            self.options.conversions,
            self.options.rewrite,
            version,
        )
        self._locked = LockedTables(self.rows_applier.table_of)
        self.statements = StatementApplier(self.tables, rules.name, self.options.rewrite)
        self.tables.follow(rules.name)
        if self.options.row_search is not None and not rules.row_search_selectable:
            self.result.note(
                f"--row-search has no effect: {rules.name} has no slave_rows_search_algorithms;"
                " choose another --server"
            )
        self.result.server = rules.name
        self.result.rules = rules
        self.result.row_search = row_search_text(rules, row_search)

    # transactions

    def _gtid(self, event: Event) -> None:
        assert self._fde is not None
        transaction = self.transaction
        if transaction.begun:
            self._abandon(event, "the log has the whole of it behind")
        transaction.start(event, self._fde)
        transaction.skipped = transaction.rows_seen = False
        if event.type == PLAIN_GTID and not self._selects_gtids:
            plain_gtid(event)  # a damaged one is refused here, not when somebody asks for it
            return
        identity = transaction.identity
        assert identity is not None
        transaction.skipped = self._skips_gtid(identity) or identity.is_half_alter
        if isinstance(identity, MariadbGtidEvent):
            self.xa.begin(identity, transaction)

    def _skips_gtid(self, identity: Gtid | MariadbGtidEvent) -> bool:
        include, exclude = self.options.include_gtids, self.options.exclude_gtids
        included = include is None or holds(include, identity)
        self._included = self._included or included
        return not included or (exclude is not None and holds(exclude, identity))

    def _commit(self, event: Event) -> None:
        self.before_commit(event)
        self.tables.commit()
        self.result.transactions += not self.transaction.skipped
        self._position.end(event)

    def _rollback(self, event: Event) -> None:
        self.tables.rollback()
        self._position.end(event)

    def _abandon(self, event: Event, reason: str) -> None:
        """The open transaction has no end in the log.

        A receiver that asks for transactions by their GTIDs gets one that was cut off again from
        its beginning. A source that crashed rolls back what it had begun to write, and its replicas
        do when its next log begins (Format_description_log_event::do_apply_event 5.7; seen of
        5.7.29).
        """
        place = {"file": event.file, "position": event.position}
        self.result.note(f"the beginning of a transaction was rolled back: {reason}", **place)
        self.tables.rollback()
        self.transaction.end()

    # rows

    def _keep_map(self, table_map: TableMap, _body: bytes) -> TableMap | str:
        wanted = self.tally.wants_table(table_map.database, table_map.table)
        return table_map if wanted else table_map.database

    def _take_map(self, event: Event) -> None:
        kept = self._context.take_map(event)
        if isinstance(kept, TableMap):
            self._locked.add(kept)

    def _rows(self, event: Event) -> None:
        rows = self._context.head_of(event)
        self._locked.is_last = rows.ends_statement
        transaction = self.transaction
        if transaction.skipped:
            return
        table_map = self._context.table_of(event, rows)
        if not isinstance(table_map, TableMap):
            if table_map is not None:
                self.tally.left_out_rows(table_map)
            return
        transaction.rows_seen = True
        try:
            self._locked.check(table_map)
            self.rows_applier.apply(event, rows, table_map, transaction)
        except ReplicationError as error:
            if error.position is not None:
                raise
            error.locate(file=event.file, position=event.position, table=table_map.full_name)
            self._inexact.pass_over(error)
        except InputError as error:
            error.locate(file=event.file, position=event.position, table=table_map.full_name)
            raise

    # statements

    def _prepare(self, event: Event) -> None:
        if not self.transaction.skipped:
            assert self._fde is not None
            self.statements.prepare(parse(event, self._fde))

    def _query(self, event: Event) -> None:
        transaction = self.transaction
        role = transaction.query(event)
        if role is None:
            return
        if role in XA_ROLES:
            self.xa.carry_out(role, event, transaction)
        if role is StatementRole.CONTENT or role is StatementRole.STATEMENT:
            self._statement(event)
        elif role is StatementRole.COMMIT or role is StatementRole.XA_COMMIT:
            self._commit(event)
        elif role is StatementRole.ROLLBACK or role is StatementRole.XA_ROLLBACK:
            self._rollback(event)

    def _statement(self, event: Event) -> None:
        assert self._fde is not None
        query: Query = parse(event, self._fde)
        if carry_out_savepoint(self.tables, query):
            return
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
        self._inexact.pass_on(query)
        try:
            refuse_interrupted(query, self.options.skips)
            refuse_left_out(self.options.only, query)
            if (note := self.statements.execute(event, query)) is not None:
                self.result.note(note)
        except ReplicationError as caught:
            self.tables.rollback_to_mark(mark)
            error = caught
        if (error := remaining_error(error, query, self.options.skips)) is not None:
            error.hint = needs_more(self.options.only, error.number, query) or error.hint
            self._inexact.pass_over(error, query)
        else:
            self._inexact.forget_dropped(query)

    def _load(self, event: Event) -> None:
        assert self._fde is not None
        load: ExecuteLoadQuery = parse(event, self._fde)
        if not self.transaction.skipped:
            if is_wanted(self.tally, load.query):
                self.result.statements += 1
                try:
                    self.statements.load(event, load)
                except ReplicationError as error:
                    self._inexact.pass_over(error, load.query)
            else:
                self.statements.forget()
                self.statements.statement.files.pop(load.file_id, None)
        if not self.transaction.begun:
            self._commit(event)

    def _old_load(self, event: Event) -> None:
        raise old_load(event)

    def _incident(self, event: Event) -> None:
        assert self._fde is not None
        raise lost_events(event, self._fde)

    def _xa_prepare(self, event: Event) -> None:
        assert self._fde is not None
        self.xa.prepare(parse(event, self._fde), self.transaction)
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
        if (
            self.result.error is None
            and self.transaction.started_at is not None
            and event is not None
        ):
            self.tables.rollback()
            self.result.incomplete_transaction = self.transaction.started_at
            self.result.note(
                f"the transaction that starts at {self.transaction.started_at} is not complete; it"
                " was rolled back"
            )
        elif self.result.error is None:
            self.tables.commit()
        if self.transaction.outside is not None:
            self.result.note(self.transaction.outside)
        self.result.notes.update(self.tally.notes())
        if self.result.error is None and not isinstance(reader, LogFollower):
            if self.options.include_gtids is not None and not self._included:
                raise none_included(
                    self.options.include_gtids, str(self.result.executed).rpartition(",")[2]
                )
            self.tally.check()
        self.xa.leave_out(self.result)


def _nothing(event: Event) -> None:
    """The default of `before_commit`."""
