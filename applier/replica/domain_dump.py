"""What a source of MariaDB sends a replica that names the last GTID of each domain.

The dump begins with the newest log that has all that is missing, by the list of GTIDs at its head;
in it, the groups of a domain up to the one named are left out. Behind the last of these, a list of
GTIDs that stands in no log tells how far that went (gtid_find_binlog_file, check_slave_start_
position and send_event_to_slave, sql/sql_repl.cc of MariaDB 10.11; relay logs of 10.11.18).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping

from applier.binlog.event_bytes import event_of, head_of, make_event, raw_events
from applier.binlog.events import parse
from applier.binlog.gtid_events import MariadbGtidEvent
from applier.binlog.header import (
    Event,
    EventFlag,
    EventType,
    FormatDescription,
)
from applier.binlog.transactions import TransactionTracker
from applier.errors import ReplicationError
from checkpoints.gtid import MariadbGtid, MariadbGtidSet

_FATAL = "Got fatal error 1236 from master when reading data from binary log: '"
PURGED = (
    _FATAL + "Could not find GTID state requested by slave in any binlog files. Probably the slave"
    " state is too old and required binlog files have been purged.'"
)
NOT_THERE = (
    _FATAL + "Error: connecting slave requested to start from GTID {gtid}, which is not in the"
    " master's binlog'"
)
_COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<IIQ")
Log = tuple[bytes, FormatDescription]
"""A log's content and what governs it."""


class BinlogState:
    """The last GTID of each server in each domain; the newest one of a domain is its last."""

    def __init__(self) -> None:
        self._last: dict[int, dict[int, int]] = {}

    def add(self, gtid: MariadbGtid) -> None:
        """The newest transaction of its domain."""
        servers = self._last.setdefault(gtid.domain, {})
        servers.pop(gtid.server_id, None)
        servers[gtid.server_id] = gtid.sequence

    def has(self, gtid: MariadbGtid) -> bool:
        """Whether the server wrote as far in that domain."""
        return self._last.get(gtid.domain, {}).get(gtid.server_id, -1) >= gtid.sequence

    def knows(self, domain: int) -> bool:
        """Whether it has a transaction of the domain."""
        return domain in self._last

    def is_last(self, gtid: MariadbGtid) -> bool:
        """Whether it is the newest one of its domain."""
        servers = self._last.get(gtid.domain, {})
        return list(servers.items())[-1:] == [(gtid.server_id, gtid.sequence)]

    def entries(self) -> list[MariadbGtid]:
        """All of them, domain by domain, the newest of each at its end."""
        return [
            MariadbGtid(domain, server, sequence)
            for domain, servers in sorted(self._last.items())
            for server, sequence in servers.items()
        ]

    def position(self) -> MariadbGtidSet:
        """The newest transaction of each domain."""
        return MariadbGtidSet(self.entries())


def list_at_head(log: Log, name: str) -> BinlogState:
    """What the list of GTIDs at the head of a log says was logged before it."""
    state = BinlogState()
    for event in events(log, name):
        if event.type == EventType.GTID_LIST:
            for gtid in parse(event, log[1]).gtids:
                state.add(gtid)
        if event.type != EventType.FORMAT_DESCRIPTION:
            break
    return state


def events(log: Log, name: str) -> Iterator[Event]:
    """The whole events of a log; what is cut off at its end is left out."""
    content, description = log
    for position, data in raw_events(content):
        yield event_of(
            data, file=name, position=position, checksum_length=description.checksum_length
        )


def state_at(log: Log, name: str, end: int) -> BinlogState:
    """What was logged up to a place in a log."""
    state = list_at_head(log, name)
    for event in events(log, name):
        if event.position >= end:
            break
        if event.type == EventType.MARIADB_GTID:
            state.add(_parsed(event, log[1]).gtid)
    return state


def beginning(logs: Mapping[str, Log], position: MariadbGtidSet) -> tuple[str, MariadbGtidSet]:
    """The log that a dump behind `position` begins with, and what is to be left out in it.

    Raises ReplicationError 1236 for a GTID that the source has not got, and where logs that are
    needed were purged.
    """
    newest = list(logs)[-1]
    known = state_at(logs[newest], newest, len(logs[newest][0]))
    for gtid in position:
        if known.knows(gtid.domain) and not known.has(gtid):
            raise ReplicationError(
                1236,
                NOT_THERE.format(gtid=gtid),
                file=newest,
                hint="the source is another one, or it lost transactions in a crash",
            )
    for name in reversed(list(logs)):
        before = list_at_head(logs[name], name)
        if _is_behind(before, position):
            return name, MariadbGtidSet(gtid for gtid in position if not before.is_last(gtid))
    raise ReplicationError(
        1236, PURGED, file=next(iter(logs)), hint="set the replica up again from a backup"
    )


def _is_behind(before: BinlogState, position: MariadbGtidSet) -> bool:
    """Whether nothing that comes behind `position` was logged before."""
    for entry in before.entries():
        asked = position.last(entry.domain)
        if asked is None:
            return False
        is_before = asked.server_id == entry.server_id and asked.sequence <= entry.sequence
        if is_before and not before.is_last(asked):
            return False
    return True


class DomainSkip:
    """Leaves out what the replica has of each domain, until its GTID is met."""

    def __init__(self, position: MariadbGtidSet) -> None:
        self._left = {gtid.domain: gtid for gtid in position}
        self._seen = BinlogState()
        self._tracker = TransactionTracker()
        self._is_skipping = self._is_reached = False

    def leaves_out(self, event: Event, description: FormatDescription) -> bool:
        """Whether the event is not sent."""
        if event.type == EventType.MARIADB_GTID and self._left:
            self._look_at(_parsed(event, description).gtid)
        if not self._is_skipping:
            return False
        self._tracker.feed(event, description)
        self._is_skipping = self._tracker.in_transaction
        return True

    def _look_at(self, gtid: MariadbGtid) -> None:
        self._seen.add(gtid)
        asked = self._left.get(gtid.domain)
        if asked is None:
            return
        same = gtid.server_id == asked.server_id
        self._is_skipping = not same or gtid.sequence <= asked.sequence
        self._tracker = TransactionTracker()
        if same and gtid.sequence >= asked.sequence:
            self._is_reached = True
            del self._left[gtid.domain]

    def list_behind(self, end: int, server_id: int, *, checksum: bool) -> bytes | None:
        """The list of the GTIDs that were met, behind the last group of a domain that is left
        out."""
        if self._is_skipping or not self._is_reached:
            return None
        self._is_reached = False
        entries = self._seen.entries()
        body = _COUNT.pack(len(entries)) + b"".join(
            _ENTRY.pack(one.domain, one.server_id, one.sequence) for one in entries
        )
        return make_event(
            EventType.GTID_LIST,
            body,
            timestamp=0,
            server_id=server_id,
            log_pos=end,
            flags=EventFlag.ARTIFICIAL,
            checksum=checksum,
        )


def _parsed(event: Event, description: FormatDescription) -> MariadbGtidEvent:
    found = parse(event, description)
    assert isinstance(found, MariadbGtidEvent)
    return found


Sender = Callable[[bytes, int], Iterator[bytes]]
"""An event as it stands in the log, and its end there, to what goes over."""


def sender(skip: DomainSkip, name: str, description: FormatDescription, server_id: int) -> Sender:
    """Of one log."""

    def send(data: bytes, end: int) -> Iterator[bytes]:
        head_of(data)
        event = event_of(
            data,
            file=name,
            position=end - len(data),
            checksum_length=description.checksum_length,
        )
        if not skip.leaves_out(event, description):
            yield data
        known = skip.list_behind(end, server_id, checksum=description.checksum == 1)
        if known is not None:
            yield known

    return send
