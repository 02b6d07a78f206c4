"""The applier of one thread: reads the relay log event by event, executes, and moves its positions.

Two positions: the event position is where the next event stands; the group position, in the relay
log and in the source's log, is the end of the last group and what survives. Inside a group only the
first moves (Log_event::do_update_pos, Relay_log_info::stmt_done and inc_group_relay_log_pos, 5.6 to
9.7). With a transactional info table the group position of a transaction is written inside of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from applier.binlog.event_bytes import rotate_target
from applier.binlog.events import parse
from applier.binlog.gtid_events import MariadbGtidEvent
from applier.binlog.header import GTID_TYPES, ROWS_TYPES, EventType
from applier.binlog.rows import parse_rows_head
from applier.binlog.transactions import MEMBER_TYPES
from applier.errors import BinlagError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.execute import Executor, ExecutorOf, GroupEnd
from applier.replica.relay.relay_event import RelayEvent
from applier.replica.relay.relay_group import RelayGroup
from applier.replica.relay.relay_log import RelayLogWriter
from applier.replica.relay.relay_reader import FIRST_EVENT, FRAME, ROTATED, RelayLogReader
from applier.replica.storage import Storage
from checkpoints.disk import Disk
from checkpoints.gtid_slave_pos import GtidSlavePos
from checkpoints.info import RelayLogInfo
from checkpoints.position import Position
from checkpoints.repository import Repository
from checkpoints.sync_rules import Occasion


@dataclass
class Applier:
    """Moves `info`, the group position in memory; `repository` keeps it as its rules say."""

    disk: Disk
    relay_log: RelayLogWriter
    storage: Storage
    info: RelayLogInfo
    repository: Repository[RelayLogInfo]
    error: BinlagError | None = None
    """Why it stopped; None while it runs or was stopped by hand."""
    groups: int = 0
    """Groups that ended since it started, transactions and others."""
    recovery_groups: list[bool] = field(default_factory=list)
    """Behind a crash with workers: for each of the next groups whether it was executed already."""
    executor_of: ExecutorOf = Executor
    """Who carries the events out."""
    slave_pos: GtidSlavePos | None = None
    """MariaDB: where the GTID of each group is recorded, within its transaction."""
    spares_record: bool = False
    """The record is not written behind each group: the GTIDs are what a restart goes by."""

    def __post_init__(self) -> None:
        self.configuration: ReplicaConfiguration = self.relay_log.configuration
        self.reader = RelayLogReader(self.disk, self.relay_log.index)
        self.executor = self.executor_of(
            self.storage, self.configuration.version, before_commit=self._before_commit
        )
        self._committed: RelayLogInfo | None = None
        self._has_recorded = False
        self._skipped = RelayGroup()

    @property
    def in_group(self) -> bool:
        """Whether a group has begun and not ended."""
        return self.executor.in_group or self._skipped.is_open

    def start(self) -> None:
        """START REPLICA: goes to the group position; what was open before is taken back."""
        self.executor.abandon()
        self._skipped.drop()
        self.error = None
        ends_at_gtids = self.configuration.rules.head_ends_at_gtids
        self.reader.seek(self.info.relay_position, ROTATED if ends_at_gtids else FRAME)

    def stop(self) -> None:
        """STOP REPLICA: an open transaction is taken back, the position is kept."""
        self.executor.abandon()
        self._skipped.drop()
        self.repository.flush(self.info, Occasion.STOP)

    def apply(self, groups: int | None = None, *, until_gaps_are_filled: bool = False) -> int:
        """Up to `groups` groups, all that is there without it. Returns how many ended. Raises the
        error that stopped it."""
        before = self.groups
        while groups is None or self.groups - before < groups:
            if until_gaps_are_filled and not self.recovery_groups:
                self._look_ahead()
                break
            if not self.step():
                break
        return self.groups - before

    def _look_ahead(self) -> None:
        """UNTIL is asked with the next event at hand: where a file ends, the next one has been gone
        to, and the old one purged."""
        if self.reader.peek() is None:
            self._next_file()

    def step(self) -> bool:
        """One event. False when there is none for now. Raises ReplicationError, which is kept in
        `error`, too."""
        try:
            relay = self._next()
            if relay is None:
                return False
            self._take(relay)
        except BinlagError as error:
            self.executor.abandon()
            self.error = error
            raise
        return True

    def _next(self) -> RelayEvent | None:
        while (relay := self.reader.read()) is None:
            if not self._next_file():
                return None
        return relay

    def _take(self, relay: RelayEvent) -> None:
        event = relay.event
        if event.type == EventType.FORMAT_DESCRIPTION:
            self._format(relay)
        elif event.type == EventType.PREVIOUS_GTIDS:
            pass
        elif event.type == EventType.ROTATE:
            self._rotate(relay)
        elif event.type == EventType.STOP:
            self._stop_event(relay)
        elif event.type in MEMBER_TYPES:
            self._member(relay)
        elif not self.in_group:
            self._ended_alone(relay)

    # what frames the groups

    def _format(self, relay: RelayEvent) -> None:
        if relay.own or relay.event.server_id == self.configuration.server_id:
            return
        if relay.begins_run:
            self._give_up_open_group()
        if not self.in_group:
            self._ended_alone(relay)

    def _rotate(self, relay: RelayEvent) -> None:
        """The source goes on in another file, or somewhere else in this one."""
        if relay.own or relay.event.server_id == self.configuration.server_id or self.in_group:
            return
        file, position = rotate_target(relay.data, relay.format.checksum_length)
        self.info = self.info.at(relay.end, Position(file, position))
        self.repository.flush(
            self.info,
            Occasion.ROTATE if self.configuration.rules.rotate_flushes else Occasion.GROUP_END,
        )

    def _stop_event(self, relay: RelayEvent) -> None:
        """A clean shutdown of the replica; with workers the group position stays where the
        low-water mark is."""
        if not self.in_group:
            self.info = self.info.at(relay.end, self.info.source_position)
            self.repository.flush(self.info, Occasion.STOP)

    def _ended_alone(self, relay: RelayEvent) -> None:
        """An event that is no group moves the group position, too."""
        self.info = self.info.at(relay.end, self._source_end(relay))
        if not self.spares_record:
            self.repository.flush(self.info, Occasion.GROUP_END)

    def _give_up_open_group(self) -> None:
        """Rolling back unfinished transaction (no COMMIT or ROLLBACK in relay log)."""
        self.executor.abandon()
        self._skipped.drop()

    # groups

    def _member(self, relay: RelayEvent) -> None:
        if relay.event.type in GTID_TYPES and self.in_group:
            self._give_up_open_group()
        if self.recovery_groups and self.recovery_groups[0]:
            self._skip(relay)
            return
        self._committed, self._has_recorded = None, False
        first = self.executor.first or relay
        end = self.executor.feed(relay)
        if end is not None:
            self._record_gtid(first)
            self._ended(relay, end)

    def _ended(self, relay: RelayEvent, end: GroupEnd) -> None:
        written = self._committed is not None or self.spares_record
        self.info = self._committed or self.info.at(relay.end, self._source_end(relay))
        if not written:
            self.repository.flush(
                self.info, Occasion.COMMIT if end.committed and end.by_xid else Occasion.GROUP_END
            )
        self._count()

    def _before_commit(self, relay: RelayEvent, end: GroupEnd) -> None:
        """Inside the transaction: the position that it will have reached, where the repository can
        be a part of it."""
        self._record_gtid(self.executor.first)
        if self.repository.counter.rule.in_transaction and (
            end.by_xid or (end.ddl and self.configuration.rules.atomic_ddl)
        ):
            self._committed = self.info.at(relay.end, self._source_end(relay))
            self.repository.flush(self._committed, Occasion.COMMIT)

    def _record_gtid(self, first: RelayEvent | None) -> None:
        """Once for each group; one that changes nothing is recorded behind its end."""
        if self.slave_pos is None or first is None or self._has_recorded:
            return
        if first.event.type == EventType.MARIADB_GTID:
            gtid = parse(first.event, first.format)
            assert isinstance(gtid, MariadbGtidEvent)
            self.slave_pos.record(gtid.gtid, self._number())
            self._has_recorded = True

    def _number(self) -> int | None:
        """The sub_id of the group; None: the next one."""
        return None

    def _count(self) -> None:
        self.groups += 1
        if self.slave_pos is not None:
            self.slave_pos.clean_up()
        if self.recovery_groups:
            del self.recovery_groups[0]
            if not self.recovery_groups:
                self.gaps_filled()

    def gaps_filled(self) -> None:
        """MTS recovery has completed: nothing to do for one thread."""

    def _skip(self, relay: RelayEvent) -> None:
        """An event of a group that a worker executed before the crash: only the position moves.

        It moves with each statement, for no transaction is open (update_pos and stmt_done; seen of
        5.7.29)."""
        is_over = self._skipped.add(relay) is not None
        if is_over or _ends_statement(relay):
            self.info = self.info.at(relay.end, self._source_end(relay))
            self.repository.flush(self.info, Occasion.GROUP_END)
        if is_over:
            self._count()

    def _source_end(self, relay: RelayEvent) -> Position:
        source = self.info.source_position
        return Position(source.file, relay.event.log_pos) if relay.event.log_pos else source

    # files

    def _next_file(self) -> bool:
        """Goes on in the next relay log; those that are done with are deleted first (next_event,
        purge_first_log)."""
        following = self.reader.following_file()
        if following is None:
            return False
        if self.configuration.relay_log_purge and (
            not self.in_group or self.configuration.rules.purges_inside_groups
        ):
            if self.info.relay_position == self.reader.position:
                self.info = self.info.at(
                    Position(following, FIRST_EVENT), self.info.source_position
                )
            self.repository.flush(self.info, Occasion.PURGE)
            self.relay_log.purge_before(self.info.relay_log_name)
        elif self.configuration.rules.flushes_between_files:
            self.repository.flush(self.info, Occasion.PURGE)
        return self.reader.move_on(following)


def _ends_statement(relay: RelayEvent) -> bool:
    if relay.event.type in ROWS_TYPES:
        return parse_rows_head(relay.event, relay.format).ends_statement
    return relay.event.type == EventType.QUERY
