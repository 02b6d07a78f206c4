"""Where a group of events begins and ends: the rules, for everyone who reads a log.

The states are those of the server's `Transaction_boundary_parser` (sql/rpl_trx_boundary_parser.cc
5.7 to 9.7); MariaDB's GTID event says BEGIN by itself. Nothing is made for a group, since a replay
asks this of every transaction; `applier.binlog.transactions` makes records of it.

XID, XA PREPARE and INCIDENT events end a group whatever came before. Rows, table maps and what
else is in a group need not be shown here.
"""

from __future__ import annotations

import re
from enum import Enum

from applier.binlog.events import parse
from applier.binlog.gtid_events import Gtid, MariadbGtidEvent, gtid_text
from applier.binlog.header import GTID_TYPES, Event, EventFlag, EventType, FormatDescription
from applier.binlog.xa import xa_statement
from applier.error_codes import Code
from applier.errors import InputError

PLAIN_GTID = int(EventType.GTID)
"""As a plain number, which compares faster."""
_GROUP_ENDS = frozenset({EventType.XID, EventType.XA_PREPARE, EventType.TRANSACTION_PAYLOAD})
_KEYWORD = re.compile(
    rb"\s*(begin\s*\Z|commit\s*\Z|rollback(?!\s+(?:work\s+)?to\b)|xa\s)", re.IGNORECASE
)


class StatementRole(Enum):
    """What a QUERY event is to its group, unless it is BEGIN."""

    XA_START = "XA START"
    CONTENT = "content"
    XA_END = "XA END"
    """Changes nothing and ends nothing: XA_PREPARE follows."""
    STATEMENT = "statement"
    """One statement without BEGIN, which ends its group."""
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    XA_COMMIT = "XA COMMIT"
    XA_ROLLBACK = "XA ROLLBACK"


_XA_ROLES = {
    "START": StatementRole.XA_START,
    "BEGIN": StatementRole.XA_START,
    "COMMIT": StatementRole.XA_COMMIT,
    "ROLLBACK": StatementRole.XA_ROLLBACK,
}
_WORDS = {b"C": StatementRole.COMMIT, b"R": StatementRole.ROLLBACK}
CONTROL_WORDS = frozenset({"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA"})
"""First words of statements that touch no table: they only frame a transaction, or part of it."""
_CONTROL = re.compile(
    rf"\s*({'|'.join(sorted(CONTROL_WORDS))}|START\s+TRANSACTION)\b".encode(), re.IGNORECASE
)


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


def statement_of(event: Event) -> bytes:
    """The statement of a QUERY event. Raises InputError."""
    start, end = query_text(event)
    return event.buffer[start:end]


def is_begin(event: Event) -> bool:
    """Whether a QUERY event is BEGIN, in any case. Raises InputError."""
    return statement_of(event).strip().upper() == b"BEGIN"


def is_control(event: Event) -> bool:
    """Whether a QUERY event only frames a transaction, or part of it. Raises InputError."""
    if event.buffer[event.end - 6 : event.end] == b"\0BEGIN":
        return True
    return _CONTROL.match(event.buffer, *query_text(event)) is not None


def starts_group(event: Event) -> bool:
    """BEGIN or XA START, as servers write them (`Query_log_event::starts_group`)."""
    return event.type == EventType.QUERY and statement_of(event).startswith((b"BEGIN", b"XA START"))


def starts_xa(event: Event) -> bool:
    """XA START, as servers write it."""
    return event.type == EventType.QUERY and statement_of(event).startswith(b"XA START")


def ends_group(event: Event) -> bool:
    """XID, XA PREPARE, COMMIT, or ROLLBACK that is not to a savepoint
    (`Query_log_event::ends_group`)."""
    if event.type != EventType.QUERY:
        return event.type in _GROUP_ENDS
    text = statement_of(event).upper()
    return (
        text == b"COMMIT"
        or (text.startswith(b"ROLLBACK") and not text.startswith(b"ROLLBACK TO "))
        or text.startswith(b"XA ROLLBACK")
    )


def is_restart(event: Event, fde: FormatDescription) -> bool:
    """The format description with which a source that was started anew begins its log. What was
    open before it has no end: replicas roll it back
    (Format_description_log_event::do_apply_event 5.7; seen of 5.7.29)."""
    own_or_copy = EventFlag.RELAY_LOG | EventFlag.ARTIFICIAL
    is_format = event.type == EventType.FORMAT_DESCRIPTION
    return is_format and fde.created != 0 and not event.flags & own_or_copy


class Boundaries:
    """The group that is open, from one event to the next. Who sees its end calls `end`.

    `first` is the event it begins with, None between groups. `begun` says that BEGIN was seen:
    statements do not end it any more. `xid` is the text of an XA transaction's identifier.
    """

    __slots__ = ("_format", "_gtid", "_identity", "begun", "first", "xid")

    first: Event | None
    xid: str | None
    _gtid: str | None
    _identity: Gtid | MariadbGtidEvent | None

    def __init__(self) -> None:
        self.end()

    def end(self) -> None:
        """Nothing is open."""
        self.first = self._identity = self._gtid = self.xid = None
        self.begun = False

    def start(self, event: Event, fde: FormatDescription) -> None:
        """A GTID event: a group begins, and one that is open is cut off.

        One of MySQL's without a tag is not read before `gtid` or `identity` is asked for; damaged
        ones of the others raise InputError here.
        """
        self.first, self._format = event, fde
        self._identity = self._gtid = self.xid = None
        self.begun = False
        if event.type == PLAIN_GTID:
            return
        identity: Gtid | MariadbGtidEvent = parse(event, fde)
        self._identity = identity
        if isinstance(identity, MariadbGtidEvent):
            self.begun = not identity.is_standalone
            self.xid = identity.xid

    def enter(self, event: Event, *, begun: bool) -> None:
        """A group begins with an event of another kind, and one that is open is cut off. `begun`:
        BEGIN was before it, or is it."""
        self.first = event
        self._identity = self._gtid = self.xid = None
        self.begun = begun

    def query(self, event: Event) -> StatementRole | None:
        """A QUERY event; None is BEGIN. Behind BEGIN, in a log without GTIDs, it cuts off the group
        before. Raises InputError."""
        start, end = query_text(event)
        buffer = event.buffer
        if buffer[start:end] == b"BEGIN":
            self._begin(event)
            return None
        match = _KEYWORD.match(buffer, start, end)
        if match is not None:
            letter = match[1][:1].upper()
            if letter == b"B":
                self._begin(event)
                return None
            if letter != b"X":
                return _WORDS[letter]
            if (xa := xa_statement(buffer[start:end])) is not None:
                return self._xa(event, *xa)
        return StatementRole.CONTENT if self.begun else StatementRole.STATEMENT

    def _begin(self, event: Event) -> None:
        is_cut_off = self.begun and not isinstance(self._identity, MariadbGtidEvent)
        if self.first is None or is_cut_off:
            self.enter(event, begun=True)
        self.begun = True

    def _xa(self, event: Event, verb: str, xid: str) -> StatementRole:
        """MariaDB's GTID event names the transaction, too, and in full."""
        role = _XA_ROLES.get(verb, StatementRole.XA_END)
        if role is StatementRole.XA_START:
            self._begin(event)
        if role is not StatementRole.XA_END:
            self.xid = self.xid or xid
        return role

    @property
    def identity(self) -> Gtid | MariadbGtidEvent | None:
        """What the GTID event says; None in a log without GTIDs. Raises InputError."""
        if self._identity is None and self.first is not None and self.first.type == PLAIN_GTID:
            self._identity = parse(self.first, self._format)
        return self._identity

    @property
    def gtid(self) -> str | None:
        """The GTID's text; None without one."""
        if self._gtid is None and self.first is not None and self.first.type in GTID_TYPES:
            known = self._identity
            self._gtid = gtid_text(self.first) if known is None else known.text
        return self._gtid
