"""Events of the relay log, followed without tables: where groups end, which GTIDs and XA
transactions that leaves.

This is how a replica moves whose rows are not at hand: positions and GTIDs are those of the
execution, errors of rows are not found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from applier.binlog.boundaries import statement_of
from applier.binlog.gtid_events import Gtid
from applier.binlog.header import EventType
from applier.binlog.selection.filters import holds
from applier.binlog.transactions import Transaction, TransactionKind, TransactionTracker
from applier.binlog.xa import check_xid, plain_xid, prepared_xid
from applier.errors import ReplicationError
from applier.replica.execute import BeforeCommit, GroupEnd
from applier.replica.relay.relay_event import RelayEvent
from applier.replica.storage import Commit, Storage
from applier.tables.ddl.execution import DDL_STATEMENTS
from applier.tables.sql.statement_kind import statement_kind

_XA_ENDS = frozenset({TransactionKind.XA_COMMIT, TransactionKind.XA_ROLLBACK})


@dataclass(frozen=True, slots=True)
class ExecutedGroup:
    """A group that was carried out. `start` and `end` are places in the source's log
    `source_log`."""

    gtid: str | None
    source_log: str
    start: int
    end: int
    first: bytes
    """Its first event: the same bytes are the same group."""
    kind: TransactionKind
    xid: str | None


@dataclass
class Followed:
    """What was carried out, in order."""

    groups: list[ExecutedGroup] = field(default_factory=list)
    source_log: Callable[[], str] = str
    """The source's log that the applier is in."""

    def executor(
        self, storage: Storage, version: str, *, before_commit: BeforeCommit
    ) -> BoundaryExecutor:
        """Implements `ExecutorOf`."""
        return BoundaryExecutor(storage, self, before_commit)


class BoundaryExecutor:
    """Implements `GroupExecutor` without touching a row. `followed` gets each group."""

    def __init__(self, storage: Storage, followed: Followed, before_commit: BeforeCommit) -> None:
        self.storage = storage
        self._followed = followed
        self._before_commit = before_commit
        self._tracker = TransactionTracker(unpacked=False)
        self.first: RelayEvent | None = None

    @property
    def in_group(self) -> bool:
        return self.first is not None

    @property
    def open_tables(self) -> tuple[int, ...]:
        return ()

    def feed(self, relay: RelayEvent) -> GroupEnd | None:
        event = relay.event
        if self.first is None:
            self.first = relay
            self.storage.begin()
        boundary = self._tracker.feed(event, relay.format)
        ended = None if boundary is None else boundary.ended
        if ended is None or not ended.complete:
            return None
        try:
            return self._end(relay, ended)
        except ReplicationError as error:
            error.locate(file=event.file, position=event.position)
            self.abandon()
            raise

    def abandon(self) -> None:
        if self.first is not None:
            self.storage.rollback()
        self._forget()

    def _forget(self) -> None:
        self._tracker = TransactionTracker(unpacked=False)
        self.first = None

    def _end(self, relay: RelayEvent, ended: Transaction) -> GroupEnd:
        event = relay.event
        by_xid = event.type in (EventType.XID, EventType.TRANSACTION_PAYLOAD)
        gtid = ended.identity if isinstance(ended.identity, Gtid) else None
        if gtid is not None and holds(self.storage.executed_gtids, gtid):
            self.storage.rollback()
            self._forget()
            return GroupEnd(False, by_xid, False)
        prepared = self.storage.prepared
        xid = None if ended.xid is None else prepared_xid(ended.xid, prepared)
        sql = statement_of(event) if event.type == EventType.QUERY else b""
        if ended.kind in _XA_ENDS:
            check_xid(False, xid or "", sql, prepared)
        elif ended.kind is TransactionKind.XA_PREPARE:
            check_xid(True, xid or "", f"XA START {ended.xid}".encode(), prepared)
        end = GroupEnd(
            True,
            by_xid,
            ended.kind is TransactionKind.STATEMENT
            and statement_kind(sql.decode("utf-8", "replace")) in DDL_STATEMENTS,
        )
        prepares = (
            plain_xid(ended.xid)
            if ended.kind is TransactionKind.XA_PREPARE and ended.xid is not None
            else None
        )
        self._tell(relay, ended)
        self._before_commit(relay, end)
        self.storage.commit(
            Commit(
                None if gtid is None else gtid.text,
                prepares=prepares,
                ends=xid if ended.kind in _XA_ENDS else None,
            )
        )
        self._forget()
        return end

    def _tell(self, relay: RelayEvent, ended: Transaction) -> None:
        assert self.first is not None
        first = self.first
        self._followed.groups.append(
            ExecutedGroup(
                gtid=ended.gtid,
                source_log=self._followed.source_log(),
                start=first.event.log_pos - len(first.data) if first.event.log_pos else 0,
                end=relay.event.log_pos,
                first=first.data,
                kind=ended.kind,
                xid=ended.xid,
            )
        )
