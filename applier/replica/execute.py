"""Events of the relay log, carried out: what changed in the tables, transaction by transaction,
goes to the storage.

The rows and statements themselves are the replay's (`applier.replay_loop`); here is what only a
replica does: transactions whose GTID was executed are passed over, and each commit is announced
before it happens, so that the position can be a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from applier.binlog.boundaries import statement_of
from applier.binlog.events import parse
from applier.binlog.gtid_events import Gtid
from applier.binlog.header import GTID_TYPES, ROWS_TYPES, Event, EventType
from applier.binlog.payload import payload_events
from applier.binlog.rows import RowsHead, parse_rows_head
from applier.binlog.selection.filters import holds
from applier.error_codes import Code
from applier.errors import InputError, ReplicationError
from applier.options import parse_options
from applier.replay_loop import ReplayLoop
from applier.replica.relay.relay_event import RelayEvent
from applier.replica.storage import Commit, DdlGroup, RowChange, Storage, row_changes
from applier.tables.ddl.execution import DDL_STATEMENTS
from applier.tables.engine import Change
from applier.tables.sql.statement_kind import statement_kind
from applier.tables.target import EVENT_TEXT
from lookup.handler import traits_of


@dataclass(frozen=True, slots=True)
class GroupEnd:
    """A group is over. `committed` False: it was rolled back in the log, or passed over since its
    GTID was executed."""

    committed: bool
    by_xid: bool
    """An XID event ended it."""
    ddl: bool


BeforeCommit = Callable[[RelayEvent, GroupEnd], None]


class GroupExecutor(Protocol):
    """What the applier asks of who carries out the events of the groups, one after the other."""

    @property
    def in_group(self) -> bool:
        """A GTID, BEGIN or another first event was seen and its end was not."""
        ...

    @property
    def first(self) -> RelayEvent | None:
        """The first event of the open group, which identifies it."""
        ...

    @property
    def open_tables(self) -> tuple[int, ...]:
        """The table maps that wait for rows, by their ids: none between groups of a log that is
        whole."""
        ...

    def feed(self, relay: RelayEvent) -> GroupEnd | None:
        """One event of a group; its end when this was the last. Raises ReplicationError: the
        transaction is taken back then."""
        ...

    def abandon(self) -> None:
        """The open transaction is taken back: it failed, or its end will never come."""
        ...


class ExecutorOf(Protocol):
    """Makes the executor of an applier over a storage, for a version. `before_commit` is called
    inside the storage's transaction."""

    def __call__(
        self, storage: Storage, version: str, *, before_commit: BeforeCommit
    ) -> GroupExecutor: ...


class Executor:
    """Feeds events into the tables of a storage. `before_commit` is called inside the storage's
    transaction, right before its commit.

    Implements `GroupExecutor`.
    """

    def __init__(self, storage: Storage, version: str, *, before_commit: BeforeCommit) -> None:
        self.storage = storage
        self._before_commit = before_commit
        self._loop = ReplayLoop(
            storage.tables, parse_options(server=version), None, keep_events=False
        )
        self._loop.before_commit = self._commit
        self._loop.xa.prepared = {
            xid: [
                (
                    storage.tables[change.table],
                    change.ref_before,
                    change.before,
                    change.ref_after,
                    change.after,
                )
                for change in changes
            ]
            for xid, changes in storage.prepared.items()
        }
        self._loop.xa.knows_all = True
        self._unprotected: list[Change] = []
        self._statements: list[DdlGroup] = []
        self._group: list[RelayEvent] = []
        self._now: RelayEvent | None = None
        self._end: GroupEnd | None = None
        self._gtid: str | None = None
        self._described = b""
        self._prepared: Mapping[str, list[Change]] = {}
        """The XA transactions that were prepared before the event."""
        self._watch_unprotected_tables()

    @property
    def in_group(self) -> bool:
        """A GTID, BEGIN or another first event was seen and its end was not."""
        return bool(self._group)

    @property
    def first(self) -> RelayEvent | None:
        """The first event of the open group, which identifies it."""
        return self._group[0] if self._group else None

    @property
    def open_tables(self) -> tuple[int, ...]:
        """The table maps that wait for rows, by their ids: none between groups of a log that is
        whole."""
        return tuple(self._loop.maps)

    def feed(self, relay: RelayEvent) -> GroupEnd | None:
        """One event of a group; its end when this was the last. Raises ReplicationError: the
        transaction is taken back then."""
        if relay.format_data != self._described:
            # table maps hold on where a group goes on in another relay log
            maps = dict(self._loop.maps) if self._group else {}
            self._loop.feed(_format_event(relay), relay.format)
            self._loop.maps.update(maps)
            self._described = relay.format_data
        if not self._group:
            self.storage.begin()
        self._group.append(relay)
        self._now, self._end = relay, None
        prepared = self._prepared = dict(self._loop.xa.prepared)
        try:
            self._feed(relay)
        except (ReplicationError, InputError) as error:
            error.locate(file=relay.event.file, position=relay.event.position)
            self.abandon()
            raise
        if (
            self._end is None
            and relay.event.type == EventType.QUERY
            and self._loop.transaction.first is None
        ):
            self._end = GroupEnd(False, False, False)
            ended = self._ended(prepared)
            taken_back = prepared[ended] if ended is not None else []
            self.storage.commit(
                Commit(
                    self._gtid,
                    tuple(_inverse(change) for change in reversed(row_changes(taken_back))),
                    ends=ended,
                )
            )
        if self._end is not None:
            self._group.clear()
            self._gtid = None
        return self._end

    def abandon(self) -> None:
        """The open transaction is taken back: it failed, or its end will never come."""
        if self._group:
            self.storage.tables.rollback()
            self._loop.transaction.end()
            self.storage.rollback()
            self._group.clear()
            self._statements.clear()
            self._gtid = None

    # inside

    def _feed(self, relay: RelayEvent) -> None:
        event = relay.event
        if event.type in ROWS_TYPES:
            self._rows(relay)
        else:
            self._loop.feed(event, relay.format)
        if event.type in GTID_TYPES:
            self._note_gtid(relay)
        elif event.type == EventType.TRANSACTION_PAYLOAD:
            for inner in payload_events(event):
                self._loop.feed(inner, relay.format)
        elif event.type == EventType.QUERY:
            self._watch_unprotected_tables()
        if self._unprotected:
            changes, self._unprotected[:] = row_changes(self._unprotected), []
            self.storage.write_through(changes)

    def _rows(self, relay: RelayEvent) -> None:
        """A statement's last rows event ends its table maps (STMT_END_F); without one, rows are
        passed over: so are those that come twice.

        Rows_log_event::do_apply_event and cleanup_context, 5.6 to 9.7; seen of 5.7.29.
        """
        head = parse_rows_head(relay.event, relay.format)
        self._loop.maps.setdefault(head.table_id, "")
        try:
            self._loop.feed(relay.event, relay.format)
        except InputError as error:
            if relay.format.checksum_length or error.code != Code.BAD_ROWS:
                raise
            raise _corrupt(relay, head, error) from None
        if head.ends_statement:
            self._loop.maps.clear()

    def _note_gtid(self, relay: RelayEvent) -> None:
        gtid = parse(relay.event, relay.format)
        if isinstance(gtid, Gtid) and gtid.uuid is not None:
            self._gtid = gtid.text
            self._loop.transaction.skipped = holds(self.storage.executed_gtids, gtid)

    def _commit(self, event: Event) -> None:
        """The loop is about to commit; this is where it becomes durable."""
        assert self._now is not None
        by_xid = event.type == EventType.XID
        if self._loop.transaction.skipped:
            self._end = GroupEnd(False, by_xid, False)
            self.storage.rollback()
            return
        if event.type == EventType.QUERY and _is_ddl(event):
            self._statements.append(
                DdlGroup(self._described, tuple(relay.data for relay in self._group))
            )
        elif by_xid:  # CREATE TABLE … SELECT of 8.0: the table and its rows are one transaction
            made = tuple(
                relay.data
                for relay in self._group
                if relay.event.type == EventType.QUERY and _is_ddl(relay.event)
            )
            self._statements += [DdlGroup(self._described, made)] if made else []
        journal = row_changes(self.storage.tables.journal)
        prepares = next((xid for xid in self._loop.xa.prepared if xid not in self._prepared), None)
        if prepares is not None:
            journal = row_changes(self._loop.xa.prepared[prepares])
        self._end = GroupEnd(True, by_xid, bool(self._statements))
        self._before_commit(self._now, self._end)
        self.storage.commit(
            Commit(
                self._gtid, journal, tuple(self._statements), prepares, self._ended(self._prepared)
            )
        )
        self._statements.clear()

    def _ended(self, before: Mapping[str, list[Change]]) -> str | None:
        """The XA transaction that is not prepared any more."""
        return next((xid for xid in before if xid not in self._loop.xa.prepared), None)

    def _watch_unprotected_tables(self) -> None:
        """Tables without transactions get a journal of their own, which no rollback looks at."""
        for table in self.storage.tables:
            if not traits_of(table.definition).transactional:
                table.journal = self._unprotected


def _is_ddl(event: Event) -> bool:
    return statement_kind(statement_of(event).decode("utf-8", "replace")) in DDL_STATEMENTS


def _corrupt(relay: RelayEvent, head: RowsHead, error: InputError) -> ReplicationError:
    """ER_SLAVE_CORRUPT_EVENT of rows that end behind their event (unpack_row), where no checksum
    has shown it before."""
    return ReplicationError(
        1610,
        f"Could not execute {EVENT_TEXT[head.kind]} event on table {error.table};"
        f" Corrupted replication event was detected: {error.message}",
        file=relay.event.file,
        position=relay.event.position,
        table=error.table,
        hint=error.hint,
    )


def _format_event(relay: RelayEvent) -> Event:
    """Stands for the format description; the loop takes what it says from the format itself."""
    header = (0, int(EventType.FORMAT_DESCRIPTION), 0, 0, 0, 0)
    return Event(relay.event.file, relay.event.position, header, relay.format_data, 0, 0)


def _inverse(change: RowChange) -> RowChange:
    return RowChange(change.table, change.ref_after, change.after, change.ref_before, change.before)
