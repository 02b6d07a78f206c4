"""Which events belong together: transactions, single statements, and the two halves of an XA
transaction.

The rules are in `applier.binlog.boundaries`; here is a record of each group. No events are
gathered: the tracker looks at each event once and marks where a group begins and ends.

A group may go on in the next file of a relay log, so events that only frame a file (rotate, format
description, previous GTIDS, stop) neither end nor belong to one. Only a source that was started
anew ends its logs' open group, cut off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from applier.binlog.boundaries import Boundaries, StatementRole, is_restart
from applier.binlog.events import XaPrepare, parse
from applier.binlog.gtid_events import Gtid, MariadbGtidEvent
from applier.binlog.header import GTID_TYPES, ROWS_TYPES, Event, EventType, FormatDescription
from applier.binlog.reader import LogReader


class TransactionKind(Enum):
    """What a group turned out to be."""

    TRANSACTION = "transaction"
    STATEMENT = "statement"
    """One statement without BEGIN: DDL, or DML on a table without transactions in old logs."""
    ROLLED_BACK = "rolled back"
    """Ends with ROLLBACK: it changed tables without transactions."""
    XA_PREPARE = "XA prepare"
    XA_COMMIT = "XA commit"
    XA_ROLLBACK = "XA rollback"
    XA_ONE_PHASE = "XA commit in one phase"
    INCIDENT = "incident"


@dataclass(slots=True)
class Transaction:
    """One group of events: [start, end) in `file` (`end_file` where it spans several). 0 and None
    where the log does not say.

    `log_pos` is the end in the source's log, `begin` says whether its first event was seen,
    `complete` whether its last was. `gtid` is the text of the GTID, None for an anonymous
    transaction and in a log without GTIDs. `xid` is the text of an XA transaction's identifier.
    Commit timestamps are in microseconds.
    """

    file: str
    start: int
    timestamp: int
    server_id: int
    end_file: str = ""
    end: int = 0
    log_pos: int = 0
    kind: TransactionKind = TransactionKind.TRANSACTION
    gtid: str | None = None
    identity: Gtid | MariadbGtidEvent | None = None
    xid: str | None = None
    last_committed: int = 0
    sequence_number: int = 0
    immediate_commit_timestamp: int = 0
    original_commit_timestamp: int = 0
    transaction_length: int = 0
    begin: bool = True
    complete: bool = False
    compressed: bool = False
    events: list[Event] = field(default_factory=list)
    """Filled by `group(..., keep_events=True)` only."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """`ended`: the group that is over, with this event when `ended.complete`, else cut off before
    it. `began`: starts with this event.

    Both are the same object when the event is a group of its own.
    """

    ended: Transaction | None = None
    began: Transaction | None = None


QUIET_TYPES = ROWS_TYPES | {
    EventType.TABLE_MAP,
    EventType.ROWS_QUERY,
    EventType.ANNOTATE_ROWS,
    EventType.INTVAR,
    EventType.RAND,
    EventType.USER_VAR,
    EventType.BEGIN_LOAD_QUERY,
    EventType.APPEND_BLOCK,
    EventType.DELETE_FILE,
    EventType.VIEW_CHANGE,
    EventType.NEW_LOAD,
    EventType.CREATE_FILE,
    EventType.TRANSACTION_PAYLOAD,
}
"""Inside a group these change nothing; outside they begin one."""
HEAD_TYPES = frozenset(
    {EventType.INTVAR, EventType.RAND, EventType.USER_VAR, EventType.BEGIN_LOAD_QUERY,
        EventType.APPEND_BLOCK, EventType.ROWS_QUERY,
     EventType.DELETE_FILE, EventType.NEW_LOAD, EventType.CREATE_FILE,
     EventType.TRANSACTION_PAYLOAD}
)  # fmt: skip
STATEMENT_TYPES = frozenset({EventType.EXECUTE_LOAD_QUERY, EventType.LOAD, EventType.EXEC_LOAD})
ENDING_TYPES = (
    frozenset({EventType.XID, EventType.XA_PREPARE, EventType.INCIDENT, EventType.QUERY})
    | STATEMENT_TYPES
    | GTID_TYPES
)
MEMBER_TYPES = QUIET_TYPES | ENDING_TYPES

_ENDS = {
    StatementRole.STATEMENT: TransactionKind.STATEMENT,
    StatementRole.COMMIT: TransactionKind.TRANSACTION,
    StatementRole.ROLLBACK: TransactionKind.ROLLED_BACK,
    StatementRole.XA_COMMIT: TransactionKind.XA_COMMIT,
    StatementRole.XA_ROLLBACK: TransactionKind.XA_ROLLBACK,
}
"""The QUERY events that end a group, and what it was then."""
_NOT_ALONE = frozenset({TransactionKind.TRANSACTION, TransactionKind.ROLLED_BACK,
                        TransactionKind.XA_PREPARE, TransactionKind.XA_ONE_PHASE})  # fmt: skip
"""Groups of which the last event cannot be the first."""


class TransactionTracker:
    """Feed it every event in order; types in QUIET_TYPES may be left out while `current` is set.

    Call `finish()` at the end of the last file: it hands out a transaction whose end is not there.
    Such a one ends where the last event that was fed ends.

    `unpacked`: the events of a compressed transaction come behind its TRANSACTION_PAYLOAD, as
    LogReader gives them. Else that is the group's last event: it holds all of the others.
    """

    def __init__(self, *, unpacked: bool = True) -> None:
        self._unpacked = unpacked
        self.current: Transaction | None = None
        """The group that the last event belongs to; None between groups."""
        self._rules = Boundaries()
        self._payload_end = 0
        self._last: Event | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a group has begun and not ended."""
        return self.current is not None

    @property
    def state(self) -> int:
        """0 between groups, 1 behind a GTID, 2 behind BEGIN."""
        return 0 if self.current is None else 1 + self._rules.begun

    @property
    def before_begin(self) -> bool:
        """A group has begun, but neither BEGIN nor a statement was seen yet."""
        return self.current is not None and not self._rules.begun

    def feed(self, event: Event, fde: FormatDescription) -> Boundary | None:
        """The boundary at this event, None for most."""
        boundary = self._look(event, fde)
        self._last = event
        return boundary

    def finish(self) -> Transaction | None:
        """The group that is still open, if any, marked as not complete."""
        self._rules.end()
        return self._cut_off()

    def _look(self, event: Event, fde: FormatDescription) -> Boundary | None:
        type_code, rules = event.type, self._rules
        if type_code in QUIET_TYPES:
            is_payload = type_code == EventType.TRANSACTION_PAYLOAD
            return self._payload(event) if is_payload else self._quiet(event)
        if type_code == EventType.QUERY:
            role = rules.query(event)
            kind = None if role is None else _ENDS.get(role)
        elif type_code in GTID_TYPES:
            rules.start(event, fde)
            kind = None
        elif type_code not in ENDING_TYPES or (type_code in STATEMENT_TYPES and rules.begun):
            if self.current is None or not is_restart(event, fde):
                return None
            rules.end()
            return Boundary(self._cut_off())
        else:
            kind = self._kind_of(event, fde)
        if kind is not None:
            return self._ended(event, kind)
        if rules.first is event:
            return Boundary(self._cut_off(), self._begin(event))
        if self.current is not None:
            self.current.xid = rules.xid
        return None

    def _quiet(self, event: Event) -> Boundary | None:
        if self.current is not None:
            return None
        is_head = event.type in HEAD_TYPES
        self._rules.enter(event, begun=not is_head)
        return Boundary(began=self._begin(event, seen=is_head))

    def _payload(self, event: Event) -> Boundary | None:
        boundary = self._quiet(event)
        self._payload_end = event.position + event.length
        assert self.current is not None
        self.current.compressed = True
        if self._unpacked:
            return boundary
        began = None if boundary is None else boundary.began
        return replace(self._ended(event, TransactionKind.TRANSACTION), began=began)

    def _kind_of(self, event: Event, fde: FormatDescription) -> TransactionKind:
        """What an event makes of the group that it always ends."""
        if event.type == EventType.XID:
            return TransactionKind.TRANSACTION
        if event.type == EventType.INCIDENT:
            return TransactionKind.INCIDENT
        if event.type != EventType.XA_PREPARE:
            return TransactionKind.STATEMENT
        prepared: XaPrepare = parse(event, fde)
        self._rules.xid = prepared.text
        return TransactionKind.XA_ONE_PHASE if prepared.one_phase else TransactionKind.XA_PREPARE

    def _end_of(self, event: Event) -> int:
        return event.position + event.length if event.inner_index < 0 else self._payload_end

    def _begin(self, event: Event, *, seen: bool = True) -> Transaction:
        transaction = self.current = Transaction(
            event.file, event.position, event.timestamp, event.server_id, begin=seen
        )
        transaction.compressed = event.inner_index >= 0
        rules = self._rules
        transaction.xid = rules.xid
        transaction.identity = rules.identity
        transaction.gtid = rules.gtid
        if isinstance(rules.identity, Gtid):
            _note_clock(transaction, rules.identity)
        return transaction

    def _ended(self, event: Event, kind: TransactionKind) -> Boundary:
        """The event ends the group, and is the whole of it when none is open."""
        began = self._begin(event, seen=kind not in _NOT_ALONE) if self.current is None else None
        ended = self.current
        assert ended is not None
        ended.kind, ended.xid, ended.complete = kind, self._rules.xid, True
        self._close(ended, event)
        self._rules.end()
        return Boundary(ended, began)

    def _cut_off(self) -> Transaction | None:
        current = self.current
        if current is not None and self._last is not None:
            self._close(current, self._last)
        self.current = None
        return current

    def _close(self, transaction: Transaction, last: Event) -> None:
        transaction.end_file, transaction.log_pos = last.file, last.log_pos
        transaction.end = self._end_of(last)
        self.current = None


def _note_clock(transaction: Transaction, gtid: Gtid) -> None:
    transaction.last_committed = gtid.last_committed
    transaction.sequence_number = gtid.sequence_number
    transaction.immediate_commit_timestamp = gtid.immediate_commit_timestamp
    transaction.original_commit_timestamp = gtid.original_commit_timestamp
    transaction.transaction_length = gtid.transaction_length


def group(
    events: LogReader | Iterable[tuple[Event, FormatDescription]], *, keep_events: bool = False
) -> Iterator[Transaction]:
    """The transactions of a log in order, the last one possibly not complete.

    `events` is a reader, or events each with the format description that governs it. With
    `keep_events` each transaction has its events; without, memory does not grow. Raises InputError
    where the log cannot be read.
    """
    tracker = TransactionTracker()
    for event, fde in with_formats(events) if isinstance(events, LogReader) else events:
        boundary = tracker.feed(event, fde)
        ended = boundary.ended if boundary is not None else None
        owner = ended if ended is not None and ended.complete else tracker.current
        if keep_events and owner is not None and event.type in MEMBER_TYPES:
            owner.events.append(event)
        if ended is not None:
            yield ended
    unfinished = tracker.finish()
    if unfinished is not None:
        yield unfinished


def with_formats(reader: LogReader) -> Iterator[tuple[Event, FormatDescription]]:
    """Each event with the format description that governs it."""
    for event in reader:
        assert reader.format is not None
        yield event, reader.format
