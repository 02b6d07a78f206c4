"""The applier of MariaDB with workers: what one thread reads is queued, and each domain commits in
the log's order.

Time does not pass here: which domain commits next is asked of an `Interleaving`. A group is
executed as a whole at the moment of its commit, so slave_parallel_mode decides only which domains
there are. By file and position, and in mode minimal, there is one, and a crash leaves no gap.

The position that is shown and recorded is that of the group farthest behind in the log, and never
goes back. An event between groups moves it in its turn, in memory only (rpl_parallel::do_event,
handle_queued_pos_update, sql/rpl_parallel.cc, and Relay_log_info::inc_group_relay_log_pos,
rpl_rli.cc of MariaDB 10.11).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from applier.binlog.event_bytes import rotate_target
from applier.binlog.events import parse
from applier.binlog.gtid_events import MariadbGtidEvent
from applier.binlog.header import EventType
from applier.binlog.transactions import MEMBER_TYPES
from applier.errors import BinlagError, ReplicationError
from applier.replica.applier import Applier
from applier.replica.interleaving import InOrder, Interleaving
from applier.replica.relay.relay_event import RelayEvent
from applier.replica.relay.relay_group import RelayGroup
from applier.replica.scheduling import MAX_QUEUED, MINIMAL
from checkpoints.disk import plain
from checkpoints.info import RelayLogInfo
from checkpoints.position import Position
from checkpoints.sync_rules import Occasion


@dataclass(eq=False)
class QueuedEvents:
    """A group, or one event between groups. `source_end` has offset 0 where the source's position
    stays; `sub_id` is that of the group's row in gtid_slave_pos."""

    events: list[RelayEvent]
    domain: int
    source_end: Position
    sub_id: int | None = None
    is_group: bool = False

    @property
    def bytes(self) -> int:
        """What it takes in a queue."""
        return sum(len(relay.data) for relay in self.events)


@dataclass
class ParallelDomainsApplier(Applier):
    """`interleaving` decides which domain commits next."""

    interleaving: Interleaving | None = None
    queue: deque[QueuedEvents] = field(default_factory=deque)
    """What is read and not executed, oldest first."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._order: Interleaving = self.interleaving or InOrder()
        configuration = self.configuration
        by_position = configuration.using_gtid == "No"
        self._one_domain = by_position or configuration.parallel_type == MINIMAL
        self._most_bytes = MAX_QUEUED * (configuration.workers or 1)
        self._forget()

    def _forget(self) -> None:
        self.queue.clear()
        self._partial = RelayGroup()
        self._domain: int | None = None
        self._waiting: RelayEvent | None = None
        self._sub_id: int | None = None
        self._source_file = self.info.source_log_name

    @property
    def in_group(self) -> bool:
        """Whether a group has begun and not ended, in a worker or before one has it."""
        return super().in_group or bool(self._partial.events)

    def start(self) -> None:
        """Begins where `info` stands; nothing is queued."""
        super().start()
        self._forget()

    def stop(self) -> None:
        """STOP REPLICA: what no worker has begun is dropped."""
        super().stop()
        self._forget()
        self.reader.seek(self.info.relay_position)

    def step(self) -> bool:
        """One group, or one event that frames them. False when there is none for now. Raises
        ReplicationError, which is kept in `error`, too."""
        try:
            return self._step()
        except BinlagError as error:
            self.executor.abandon()
            self.error = error
            raise

    def _step(self) -> bool:
        moved = self._read_ahead()
        heads = self._heads()
        if not heads:
            return moved
        self._execute(heads[self._order.next(len(heads)) if len(heads) > 1 else 0])
        return True

    def _heads(self) -> list[QueuedEvents]:
        """The oldest of each domain."""
        found: dict[int, QueuedEvents] = {}
        for queued in self.queue:
            found.setdefault(queued.domain, queued)
        return list(found.values())

    # the reading thread

    def _read_ahead(self) -> bool:
        """Queues what there is, as far as queues have room. Whether an event was executed at
        once."""
        moved = False
        while self._has_room():
            relay = self._waiting or self._next_or_finish()
            if relay is None:
                break
            self._waiting = None
            if relay.event.type in MEMBER_TYPES:
                self._add(relay)
            elif relay.begins_run and self.queue:  # all that came before is executed first
                self._waiting = relay
                break
            else:
                moved = self._between_groups(relay) or moved
        return moved

    def _next_or_finish(self) -> RelayEvent | None:
        """The next event. Where the relay log cannot be read on, workers end what they have begun:
        at least the oldest group of each domain."""
        try:
            return self._next()
        except BinlagError:
            for queued in self._heads():
                self._execute(queued)
            raise

    def _has_room(self) -> bool:
        if not self._order.reads_ahead:
            return not self.queue
        return sum(queued.bytes for queued in self.queue) <= self._most_bytes

    def _between_groups(self, relay: RelayEvent) -> bool:
        """Before the first group, such an event is executed at once, as with one thread; then it is
        queued."""
        if relay.begins_run:
            self._partial.drop()
        if self._partial.events:
            return False
        if self._domain is None:
            self._take(relay)
            self._source_file = self.info.source_log_name
            return True
        source_end = Position(self._source_file, 0)
        if not relay.own and relay.event.type == EventType.ROTATE:
            file, offset = rotate_target(relay.data, relay.format.checksum_length)
            self._source_file, source_end = file, Position(file, offset)
        elif not relay.own and relay.event.type != EventType.STOP:
            source_end = Position(self._source_file, relay.event.log_pos)
        self.queue.append(QueuedEvents([relay], self._domain, source_end))
        return False

    def _add(self, relay: RelayEvent) -> None:
        """An event of a group; the group is queued with its last one."""
        if relay.event.type == EventType.MARIADB_GTID:
            self._begin(relay)
        events = self._partial.add(relay)
        if events is not None:
            source_end = Position(self._source_file, relay.event.log_pos)
            domain = self._domain or 0
            self.queue.append(QueuedEvents(events, domain, source_end, self._sub_id, is_group=True))
            self._sub_id = None

    def _begin(self, relay: RelayEvent) -> None:
        gtid = parse(relay.event, relay.format)
        assert isinstance(gtid, MariadbGtidEvent)
        if gtid.is_half_alter:
            raise ReplicationError(
                1235,
                "ALTER TABLE in two parts is not emulated with workers of MariaDB",
                file=relay.event.file,
                position=relay.event.position,
                hint="use 0 workers",
            )
        self._domain = 0 if self._one_domain else gtid.gtid.domain
        if self.slave_pos is not None:
            self._sub_id = self.slave_pos.next_number()

    def _next_file(self) -> bool:
        """A relay log is left when all of it is executed, where it is to be purged then."""
        if self.configuration.relay_log_purge and self.queue:
            return False
        return super()._next_file()

    # workers

    def _execute(self, queued: QueuedEvents) -> None:
        self.queue.remove(queued)
        last = queued.events[-1]
        if not queued.is_group:
            self.info = self._forward(last, queued.source_end)
            return
        self._has_recorded = False
        self._now = queued
        for relay in queued.events:
            end = self.executor.feed(relay)
        assert end is not None
        self._record_gtid(queued.events[0])
        self.info = self._forward(last, queued.source_end)
        if not self.spares_record:
            by_xid = end.committed and end.by_xid
            self.repository.flush(self.info, Occasion.COMMIT if by_xid else Occasion.GROUP_END)
        self._count()

    def _number(self) -> int | None:
        """Taken when the group was read, whoever commits first."""
        return self._now.sub_id

    def _forward(self, last: RelayEvent, source_end: Position) -> RelayLogInfo:
        """The position behind an event, where it is not behind that already."""
        info = self.info
        relay, source = info.relay_position, info.source_position
        if _place(relay) < _place(last.end):
            relay = last.end
        if source_end.offset and _place(source) < _place(source_end):
            source = source_end
        return info.at(relay, source)


def _place(position: Position) -> tuple[str, int]:
    return plain(position.file), position.offset
