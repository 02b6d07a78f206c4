"""What a replica had executed when it died, as far as logs tell: GTIDs, and XA transactions that
are prepared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from applier.binlog.gtid_events import Gtid
from applier.binlog.header import MAGIC, EventFlag, EventType
from applier.binlog.selection.filters import holds
from applier.binlog.transactions import MEMBER_TYPES, TransactionKind, TransactionTracker
from applier.binlog.xa import plain_xid, prepared_xid
from applier.errors import InputError, ReplicationError
from applier.replica.relay.relay_index import RelayLogIndex
from applier.replica.relay.relay_reader import relay_events
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
        return self.gtid is not None and holds(executed, self.gtid)


def logged_groups(files: Mapping[str, bytes]) -> Iterator[LoggedGroup]:
    """The groups of logs, oldest first. A log that cannot be read on is left there, as recovery
    does with the newest one."""
    tracker = TransactionTracker(unpacked=False)
    disk, index = _as_relay_logs(files)
    for name in files:
        try:
            for relay in relay_events(disk, index, name):
                event = relay.event
                if event.type not in MEMBER_TYPES:
                    continue
                boundary = tracker.feed(event, relay.format)
                ended = None if boundary is None else boundary.ended
                if ended is not None and ended.complete:
                    gtid = ended.identity if isinstance(ended.identity, Gtid) else None
                    yield LoggedGroup(relay.end, gtid, ended.kind, ended.xid)
        except (ReplicationError, InputError):
            tracker = TransactionTracker(unpacked=False)


def executed_gtids(own_logs: Mapping[str, bytes]) -> GtidSet:
    """gtid_executed from a server's binary logs: what was there before the newest one, and the
    groups in it."""
    found = GtidSet()
    if not own_logs:
        return found
    newest = list(own_logs)[-1]
    log = {newest: own_logs[newest]}
    try:
        events = relay_events(*_as_relay_logs(log), newest)
        before = (one for one in events if one.event.type == EventType.PREVIOUS_GTIDS)
        if (relay := next(before, None)) is not None:
            found = GtidSet.decode(relay.event.data)
    except (ReplicationError, InputError):
        return found
    return found.union(gtids_of(list(logged_groups(log))))


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


def _as_relay_logs(files: Mapping[str, bytes]) -> tuple[SimulatedDisk, RelayLogIndex]:
    """Binary logs, which read as relay logs do."""
    disk = SimulatedDisk({name: _not_in_use(data) for name, data in files.items()})
    index = RelayLogIndex(disk, "")
    index.names = list(files)
    return disk, index


def _not_in_use(content: bytes) -> bytes:
    """A binary log that was open when its server died says so in its head, beside the checksum."""
    if len(content) <= _FLAGS or not content[_FLAGS] & EventFlag.IN_USE:
        return content
    return (
        content[:_FLAGS]
        + bytes([content[_FLAGS] & ~EventFlag.IN_USE & 0xFF])
        + content[_FLAGS + 1 :]
    )
