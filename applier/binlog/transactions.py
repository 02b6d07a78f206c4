"""Which events belong together: transactions, single statements, and the two halves of an XA
transaction.

The states are those of the server's `Transaction_boundary_parser` (sql/rpl_trx_boundary_parser.cc
5.7 to 9.7); MariaDB's GTID event says BEGIN by itself. Nothing is gathered: the tracker looks at
each event once and marks where a group begins and ends.

A group may go on in the next file of a relay log, so events that only frame a file (rotate, format
description, previous GTIDS, stop) neither end nor belong to one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from applier.binlog.events import parse
from applier.binlog.gtid_events import Gtid, MariadbGtidEvent
from applier.binlog.header import GTID_TYPES, ROWS_TYPES, Event, EventType, FormatDescription
from applier.binlog.reader import LogReader
from applier.binlog.xa import BEGINS, xa_statement
from applier.error_codes import Code
from applier.errors import InputError


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


class _State(Enum):
    NONE = 0
    """Between groups."""
    HEAD = 1
    """A GTID or the first half of a statement was seen: BEGIN or one statement follows."""
    BODY = 2
    """Behind BEGIN."""


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

_ROLLBACK = re.compile(rb"rollback(?!\s+to\b)", re.IGNORECASE)
XA_KINDS = {"COMMIT": TransactionKind.XA_COMMIT, "ROLLBACK": TransactionKind.XA_ROLLBACK}


def query_text(event: Event) -> tuple[int, int]:
    """Where the statement of a QUERY event stands in its buffer, without parsing the rest. Raises
    InputError."""
    buffer, body, end = event.buffer, event.body, event.end
    if body + 13 > end:
        raise InputError(
            "a Query event is too short",
            code=Code.BAD_EVENT,
            file=event.file,
            position=event.position,
        )
    start = body + 14 + buffer[body + 8] + (buffer[body + 11] | buffer[body + 12] << 8)
    if start > end:
        raise InputError(
            "a Query event ends inside its head",
            code=Code.BAD_EVENT,
            file=event.file,
            position=event.position,
        )
    return start, end


class TransactionTracker:
    """Feed it every event in order; types in QUIET_TYPES may be left out while `current` is set.

    Call `finish()` at the end of the last file: it hands out a transaction whose end is not there.
    Such a one ends where the last event that was fed ends.
    """

    def __init__(self) -> None:
        self.current: Transaction | None = None
        """The group that the last event belongs to; None between groups."""
        self._state = _State.NONE
        self._payload_end = 0
        self._last: Event | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a group has begun and not ended."""
        return self._state is not _State.NONE

    @property
    def state(self) -> int:
        """0 between groups, 1 behind a GTID, 2 behind BEGIN."""
        return self._state.value

    @property
    def before_begin(self) -> bool:
        """A group has begun, but neither BEGIN nor a statement was seen yet."""
        return self._state is _State.HEAD

    def feed(self, event: Event, fde: FormatDescription) -> Boundary | None:
        """The boundary at this event, None for most."""
        boundary = self._look(event, fde)
        self._last = event
        return boundary

    def finish(self) -> Transaction | None:
        """The group that is still open, if any, marked as not complete."""
        current, last = self.current, self._last
        self.current, self._state = None, _State.NONE
        if current is not None and last is not None:
            current.end_file, current.end, current.log_pos = (
                last.file,
                self._end_of(last),
                last.log_pos,
            )
        return current

    def _look(self, event: Event, fde: FormatDescription) -> Boundary | None:
        type_code = event.type
        if type_code in QUIET_TYPES:
            if type_code == EventType.TRANSACTION_PAYLOAD:
                self._payload_end = event.position + event.length
                if self.current is not None:
                    self.current.compressed = True
            if self._state is not _State.NONE:
                return None
            return Boundary(
                began=self._begin(
                    event,
                    _State.HEAD if type_code in HEAD_TYPES else _State.BODY,
                    seen=type_code in HEAD_TYPES,
                )
            )
        if type_code not in ENDING_TYPES:
            return None
        if type_code == EventType.QUERY:
            return self._query(event)
        if type_code in GTID_TYPES:
            return self._gtid(event, fde)
        if type_code in STATEMENT_TYPES:
            return (
                self._single(event, TransactionKind.STATEMENT)
                if self._state is not _State.BODY
                else None
            )
        if type_code == EventType.INCIDENT:
            return self._single(event, TransactionKind.INCIDENT)
        return self._commit(event, fde)

    def _end_of(self, event: Event) -> int:
        return event.position + event.length if event.inner_index < 0 else self._payload_end

    def _begin(self, event: Event, state: _State, *, seen: bool = True) -> Transaction:
        self.current = Transaction(
            event.file, event.position, event.timestamp, event.server_id, begin=seen
        )
        self.current.compressed = (
            event.inner_index >= 0 or event.type == EventType.TRANSACTION_PAYLOAD
        )
        self._state = state
        return self.current

    def _end(self, event: Event, kind: TransactionKind | None = None) -> Transaction:
        transaction = self.current
        assert transaction is not None
        if kind is not None:
            transaction.kind = kind
        transaction.end_file = event.file
        transaction.end = self._end_of(event)
        transaction.log_pos = event.log_pos
        transaction.complete = True
        self.current, self._state = None, _State.NONE
        return transaction

    def _single(self, event: Event, kind: TransactionKind | None) -> Boundary:
        """The event ends the group, and is the whole of it when none is open."""
        began = (
            self._begin(event, _State.BODY, seen=kind is not None) if self.current is None else None
        )
        return Boundary(self._end(event, kind), began)

    def _gtid(self, event: Event, fde: FormatDescription) -> Boundary:
        abandoned = self.finish()
        parsed: Gtid | MariadbGtidEvent = parse(event, fde)
        standalone = not isinstance(parsed, MariadbGtidEvent) or parsed.is_standalone
        transaction = self._begin(event, _State.HEAD if standalone else _State.BODY)
        transaction.identity, transaction.gtid = parsed, parsed.text
        if isinstance(parsed, Gtid):
            transaction.last_committed, transaction.sequence_number = (
                parsed.last_committed,
                parsed.sequence_number,
            )
            transaction.immediate_commit_timestamp = parsed.immediate_commit_timestamp
            transaction.original_commit_timestamp = parsed.original_commit_timestamp
            transaction.transaction_length = parsed.transaction_length
        elif parsed.xid is not None:
            transaction.xid = parsed.xid
        return Boundary(abandoned, transaction)

    def _query(self, event: Event) -> Boundary | None:
        start, end = query_text(event)
        buffer = event.buffer
        size = end - start
        if size == 5 and buffer[start:end] == b"BEGIN":
            return self._opening(event)
        first = buffer[start] | 0x20 if size else 0
        xa = xa_statement(buffer[start:end]) if first in b"x \t\n\r" and size < 600 else None
        if xa is not None and (xa[0] in BEGINS or xa[0] in XA_KINDS):
            return self._xa(event, *xa)
        if self._state is not _State.BODY:
            return self._single(event, TransactionKind.STATEMENT)
        if first == 0x63 and size == 6 and buffer[start:end].upper() == b"COMMIT":
            return self._single(event, None)
        if first == 0x72 and _ROLLBACK.match(buffer[start:end]):
            return self._single(event, TransactionKind.ROLLED_BACK)
        return None

    def _opening(self, event: Event) -> Boundary | None:
        """BEGIN or XA START. One that comes inside an open group says that the group before was cut
        off (no GTIDs)."""
        if self._state is _State.HEAD:
            self._state = _State.BODY
            return None
        if (
            self._state is _State.BODY
            and self.current is not None
            and isinstance(self.current.identity, MariadbGtidEvent)
        ):
            return None
        abandoned = self.finish()
        return Boundary(abandoned, self._begin(event, _State.BODY))

    def _xa(self, event: Event, verb: str, xid: str) -> Boundary | None:
        if verb in XA_KINDS:
            if self.current is not None and self._state is _State.BODY and not self._is_xa_end():
                return None
            boundary = self._single(event, XA_KINDS[verb])
            assert boundary.ended is not None
            boundary.ended.xid = xid
            return boundary
        boundary_or_none = self._opening(event)
        if self.current is not None:
            self.current.xid = xid
        return boundary_or_none

    def _is_xa_end(self) -> bool:
        """MariaDB's GTID event of an XA COMMIT or ROLLBACK may leave out STANDALONE."""
        identity = self.current.identity if self.current is not None else None
        return isinstance(identity, MariadbGtidEvent) and bool(
            identity.flags & MariadbGtidEvent.COMPLETED_XA
        )

    def _commit(self, event: Event, fde: FormatDescription) -> Boundary:
        if event.type == EventType.XID:
            return self._single(event, None)
        prepared = parse(event, fde)
        boundary = self._single(event, None)
        assert boundary.ended is not None
        boundary.ended.kind = (
            TransactionKind.XA_ONE_PHASE if prepared.one_phase else TransactionKind.XA_PREPARE
        )
        boundary.ended.xid = prepared.text
        return boundary


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
