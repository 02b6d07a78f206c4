"""What a replica had executed when it died, as far as logs tell: GTIDs, and XA transactions that
are prepared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from applier.binlog.events import parse
from applier.binlog.gtid_events import Gtid
from applier.binlog.header import GTID_TYPES, MAGIC, EventFlag, EventType
from applier.binlog.transactions import MEMBER_TYPES, TransactionKind, TransactionTracker
from applier.binlog.xa import plain_xid, prepared_xid
from applier.errors import InputError, ReplicationError
from applier.replica.relay.relay_index import RelayLogIndex
from applier.replica.relay.relay_reader import FIRST_EVENT, RelayLogReader
from applier.replica.storage import Prepared
from checkpoints.gtid import GtidSet
from checkpoints.position import Position
from checkpoints.simulated_disk import SimulatedDisk

_FLAGS = len(MAGIC) + 17


@dataclass(frozen=True, slots=True)
class LoggedGroup:
    """A whole group of a log, and where it ends there."""

    end: Position
    gtid: Gtid | None
    kind: TransactionKind
    xid: str | None

    def is_in(self, executed: GtidSet) -> bool:
        """Whether its GTID is."""
        gtid = self.gtid
        return (
            gtid is not None
            and gtid.uuid is not None
            and executed.contains(gtid.uuid, gtid.number, gtid.tag)
        )


def logged_groups(files: Mapping[str, bytes]) -> Iterator[LoggedGroup]:
    """The groups of logs, oldest first. A log that cannot be read on is left there, as recovery
    does with the newest one."""
    disk = SimulatedDisk({name: _not_in_use(data) for name, data in files.items()})
    index = RelayLogIndex(disk, "")
    index.names = list(files)
    tracker, gtid = TransactionTracker(), None
    for name in files:
        reader = RelayLogReader(disk, index)
        try:
            reader.seek(Position(name, FIRST_EVENT))
            while (relay := reader.read()) is not None:
                event = relay.event
                if event.type not in MEMBER_TYPES:
                    continue
                if event.type in GTID_TYPES:
                    found = parse(event, relay.format)
                    gtid = found if isinstance(found, Gtid) else None
                boundary = tracker.feed(event, relay.format)
                ended = None if boundary is None else boundary.ended
                if event.type == EventType.TRANSACTION_PAYLOAD:
                    ended = tracker.finish()
                elif ended is not None and not ended.complete:
                    continue
                if ended is not None:
                    yield LoggedGroup(relay.end, gtid, ended.kind, ended.xid)
                    gtid = None
        except (ReplicationError, InputError):
            tracker, gtid = TransactionTracker(), None


def executed_gtids(own_logs: Mapping[str, bytes]) -> GtidSet:
    """gtid_executed from a server's binary logs: what was there before the newest one, and the
    groups in it."""
    found = GtidSet()
    if not own_logs:
        return found
    newest = list(own_logs)[-1]
    disk = SimulatedDisk({newest: _not_in_use(own_logs[newest])})
    index = RelayLogIndex(disk, "")
    index.names = [newest]
    reader = RelayLogReader(disk, index)
    try:
        reader.seek(Position(newest, FIRST_EVENT))
        while (relay := reader.read()) is not None:
            if relay.event.type == EventType.PREVIOUS_GTIDS:
                found = GtidSet.decode(relay.event.data)
                break
    except (ReplicationError, InputError):
        return found
    return found.union(gtids_of(list(logged_groups({newest: own_logs[newest]}))))


def gtids_of(groups: Sequence[LoggedGroup]) -> GtidSet:
    """The GTIDs of these groups."""
    found = GtidSet()
    for group in groups:
        if group.gtid is not None and group.gtid.uuid is not None:
            found.add(group.gtid.uuid, group.gtid.number, group.gtid.tag)
    return found


def prepared_by(executed: Sequence[LoggedGroup]) -> Prepared:
    """The XA transactions that these groups leave prepared."""
    found: Prepared = {}
    for group in executed:
        if group.xid is None:
            continue
        if group.kind is TransactionKind.XA_PREPARE:
            found[plain_xid(group.xid)] = ()
        elif group.kind in (TransactionKind.XA_COMMIT, TransactionKind.XA_ROLLBACK):
            found.pop(prepared_xid(group.xid, found), None)
    return found


def _not_in_use(content: bytes) -> bytes:
    """A binary log that was open when its server died says so in its head, beside the checksum."""
    if len(content) <= _FLAGS or not content[_FLAGS] & EventFlag.IN_USE:
        return content
    return (
        content[:_FLAGS]
        + bytes([content[_FLAGS] & ~EventFlag.IN_USE & 0xFF])
        + content[_FLAGS + 1 :]
    )
