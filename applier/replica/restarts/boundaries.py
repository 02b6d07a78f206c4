"""Events of the relay log, followed without tables: where groups end, which GTIDs and XA
transactions that leaves.

This is how a replica moves whose rows are not at hand: positions and GTIDs are those of the
execution, errors of rows are not found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from applier.binlog.boundaries import query_text
from applier.binlog.events import parse
from applier.binlog.gtid_events import Gtid, MariadbGtidEvent
from applier.binlog.header import GTID_TYPES, EventType
from applier.binlog.transactions import Transaction, TransactionKind, TransactionTracker
from applier.binlog.xa import plain_xid, prepared_xid
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
    """Implements `GroupExecutor` without touching a row. `followed` is told of each group."""

    def __init__(self, storage: Storage, followed: Followed, before_commit: BeforeCommit) -> None:
        self.storage = storage
        self._followed = followed
        self._before_commit = before_commit
        self._tracker = TransactionTracker()
        self._first: RelayEvent | None = None
        self._gtid: str | None = None
        self._domain_gtid: str | None = None
        self._is_skipped = False

    @property
    def in_group(self) -> bool:
        return self._first is not None

    @property
    def first(self) -> RelayEvent | None:
        return self._first

    @property
    def open_tables(self) -> tuple[int, ...]:
        return ()

    def feed(self, relay: RelayEvent) -> GroupEnd | None:
        event = relay.event
        if self._first is None:
            self._first = relay
            self.storage.begin()
        if event.type in GTID_TYPES:
            self._note_gtid(relay)
        boundary = self._tracker.feed(event, relay.format)
        ended = (
            boundary.ended
            if boundary is not None and boundary.ended is not None and boundary.ended.complete
            else None
        )
        if event.type == EventType.TRANSACTION_PAYLOAD:
            ended = self._tracker.finish()
        if ended is None:
            return None
        try:
            return self._end(relay, ended)
        except ReplicationError as error:
            error.locate(file=event.file, position=event.position)
            self.abandon()
            raise

    def abandon(self) -> None:
        if self._first is not None:
            self.storage.rollback()
        self._forget()

    def _forget(self) -> None:
        self._tracker = TransactionTracker()
        self._first, self._gtid, self._domain_gtid, self._is_skipped = None, None, None, False

    def _note_gtid(self, relay: RelayEvent) -> None:
        gtid = parse(relay.event, relay.format)
        if isinstance(gtid, MariadbGtidEvent):
            self._domain_gtid = gtid.text
        elif isinstance(gtid, Gtid) and gtid.uuid is not None:
            self._gtid = gtid.text
            self._is_skipped = self.storage.executed_gtids.contains(
                gtid.uuid, gtid.number, gtid.tag
            )

    def _end(self, relay: RelayEvent, ended: Transaction) -> GroupEnd:
        event = relay.event
        by_xid = event.type in (EventType.XID, EventType.TRANSACTION_PAYLOAD)
        if self._is_skipped:
            self.storage.rollback()
            self._forget()
            return GroupEnd(False, by_xid, False)
        prepared = self.storage.prepared
        xid = None if ended.xid is None else prepared_xid(ended.xid, prepared)
        if ended.kind in _XA_ENDS and xid not in prepared:
            raise ReplicationError(
                1397, f"Error 'XAER_NOTA: Unknown XID' on query. Query: '{_text(relay)}'"
            )
        if ended.kind is TransactionKind.XA_PREPARE and xid in prepared:
            raise ReplicationError(
                1440,
                "Error 'XAER_DUPID: The XID already exists' on query. Query: 'XA START"
                f" {ended.xid}'",
            )
        end = GroupEnd(
            True,
            by_xid,
            ended.kind is TransactionKind.STATEMENT
            and statement_kind(_text(relay)) in DDL_STATEMENTS,
        )
        prepares = (
            plain_xid(ended.xid)
            if ended.kind is TransactionKind.XA_PREPARE and ended.xid is not None
            else None
        )
        self._tell(relay, ended)
        self._before_commit(relay, end)
        self.storage.commit(
            Commit(self._gtid, prepares=prepares, ends=xid if ended.kind in _XA_ENDS else None)
        )
        self._forget()
        return end

    def _tell(self, relay: RelayEvent, ended: Transaction) -> None:
        assert self._first is not None
        first = self._first
        self._followed.groups.append(
            ExecutedGroup(
                self._gtid or self._domain_gtid,
                self._followed.source_log(),
                first.event.log_pos - len(first.data) if first.event.log_pos else 0,
                relay.event.log_pos,
                first.data,
                ended.kind,
                ended.xid,
            )
        )


def _text(relay: RelayEvent) -> str:
    if relay.event.type != EventType.QUERY:
        return ""
    start, end = query_text(relay.event)
    return relay.event.buffer[start:end].decode("utf-8", "replace")
