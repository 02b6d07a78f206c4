"""One emulated replica: a server that receives a source's log into relay logs, applies it, and
keeps its positions.

Receiving and applying are asked for step by step, so that a run is the same every time. Whatever
reaches the disk goes through `disk`, and the rows through `storage`; the next `Replica` on the disk
and the storage that a crash left is the restarted server.

    replica = Replica(disk, ReplicaConfiguration("5.7"), source, storage)
    replica.start()
    replica.receive()
    replica.apply()
    replica.shutdown()
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from applier.error_codes import Code
from applier.errors import BinlagError, ReplicationError, UsageError
from applier.replica.applier import Applier
from applier.replica.appliers import first_place, new_applier
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.domains import begin_anew, dump_of
from applier.replica.execute import Executor, ExecutorOf
from applier.replica.interleaving import Interleaving
from applier.replica.records import ReplicaRecords
from applier.replica.recovery import (
    FILL_AGAIN,
    FORBIDDEN_BY_GAPS,
    SINCE_GAPS,
    check_all_there,
    check_magic,
    check_target,
    first_source_position,
    not_initialized,
    nothing_initialized,
    received_gtids,
    recovered,
    relay_logs_read,
    sanitized,
    uninitialized,
)
from applier.replica.relay.gaps import find_gaps
from applier.replica.relay.receiver import Receiver
from applier.replica.relay.relay_event import KnownRelayLogs, RelayEvent
from applier.replica.relay.relay_log import Clock, RelayLogWriter, system_clock
from applier.replica.relay.relay_reader import FIRST_EVENT, START_AGAIN
from applier.replica.replica_status import ReplicaPositions, ReplicaStatus
from applier.replica.source import Source, first_log
from applier.replica.storage import Storage
from applier.tables.catalog import Tables
from checkpoints.disk import Disk, digest, read_file
from checkpoints.gtid import AnyGtidSet, GtidSet, MariadbGtidSet
from checkpoints.gtid_slave_pos import GtidSlavePos
from checkpoints.info import RelayLogInfo, SourceInfo
from checkpoints.position import Position
from checkpoints.sync_rules import Occasion


class Replica:
    """A whole replica: receiver, relay logs, applier or workers, records of where they stand, and
    recovery.

    `disk` has relay logs and info files, `storage` tables and info tables; give both to the next
    replica, and it stands where a restarted server does. `source` is who is replicated.
    `interleaving` decides what the workers do next. `start_at` is what CHANGE REPLICATION SOURCE
    gives on an empty disk. `clock` gives the seconds that events of its own carry.
    """

    def __init__(
        self,
        disk: Disk,
        configuration: ReplicaConfiguration,
        source: Source,
        storage: Storage,
        *,
        start_at: Position | None = None,
        interleaving: Interleaving | None = None,
        clock: Clock = system_clock,
        known: KnownRelayLogs | None = None,
        executor_of: ExecutorOf = Executor,
    ) -> None:
        """`known` is shared by replicas that read the same relay logs again and again.
        `executor_of` makes who carries events out."""
        self.disk = disk
        self.configuration = configuration
        self.source = source
        self.storage = storage
        self.start_at = start_at
        self.receiver_error: BinlagError | None = None
        self.recovered_from: RelayLogInfo | None = None
        """The applier's record that relay_log_recovery replaced at the start."""
        self._interleaving = interleaving
        self._executor_of = executor_of
        self._dump: Iterator[bytes] | None = None
        self._slave_pos = GtidSlavePos(storage.info) if configuration.rules.by_domains else None
        self._has_begun = False
        self._ignore_space_limit = False
        self._retrieved, self._last_gtid = GtidSet(), ""
        self.relay_log = RelayLogWriter(
            disk, configuration, clock=clock, retrieved=self._retrieved_now
        )
        self.relay_log.index.known = known
        self._records = ReplicaRecords(configuration, disk, storage.info)
        self._receiver: Receiver | None = None
        self._applier: Applier | None = None
        self._memory = ReplicaPositions(None, None)

    # the server's life

    def start(self) -> None:
        """Server start: tables, records, relay logs, recovery. The threads start with the first
        `receive` and `apply`.

        Raises ReplicationError (1872 and others) when START REPLICA would fail.
        """
        self.storage.recover()
        if self._slave_pos is not None:
            self._slave_pos.load()
        with uninitialized(self.configuration.rules):
            info, source = self._records.read()
        self._memory = ReplicaPositions(info, source)
        self.relay_log.index.open()
        if source is None:
            self._change_source()
            return
        if info is None:
            self._without_record(source)
            return
        source = self._look_over_relay_logs(info, source)
        self.relay_log.begin_file(at_start=True)
        try:
            with uninitialized(self.configuration.rules):
                info, source = self._recover(info, source)
                check_all_there(self.disk, self.relay_log.index)
        except ReplicationError:
            self.relay_log.close()
            raise
        self._open(info, source)

    def receive(self, events: int | None = None) -> int:
        """Up to `events` events of the source, all that there are without it. Returns how many
        came.

        Stops earlier when relay_log_space_limit is reached. Raises ReplicationError 1236 and
        others, which end the receiver.
        """
        self._begin_threads()
        receiver = self._threads()[0]
        count = 0
        try:
            dump = self._dump or self._connect(receiver)
            while (events is None or count < events) and not self._space_is_used_up():
                data = next(dump, None)
                if data is None:
                    self._dump = None
                if not data:
                    break
                receiver.queue(data)
                count += 1
        except BinlagError as error:
            self.receiver_error, self._dump = error, None
            raise
        return count

    def apply(self, transactions: int | None = None) -> int:
        """Up to `transactions` groups, all that are there without it. Returns how many. Raises what
        stops the applier."""
        self._begin_threads()
        applier = self._threads()[1]
        with relay_logs_read(self.configuration.rules):
            count = applier.apply(transactions)
        self._ignore_space_limit = count == 0
        return count

    def apply_until_gaps_are_filled(self) -> int:
        """START REPLICA UNTIL SQL_AFTER_MTS_GAPS."""
        return self._threads()[1].apply(until_gaps_are_filled=True)

    def stop(self) -> None:
        """STOP REPLICA: both threads end, both positions are kept."""
        receiver, applier = self._threads()
        applier.stop()
        receiver.stop()
        self._dump, self._has_begun = None, False

    def restart_applier(self) -> None:
        """START REPLICA after an error, or after `stop`: gaps that workers left are looked for."""
        applier = self._threads()[1]
        applier.recovery_groups = self._gaps_at_start(applier.info)
        with relay_logs_read(self.configuration.rules, starts=True):
            applier.start()

    def shutdown(self) -> None:
        """A clean shutdown; also of a server whose replica could not be started."""
        if self._receiver is not None and self._applier is not None:
            self.stop()
            self._memory = ReplicaPositions(self._applier.info, self._receiver.info)
        self.relay_log.close()
        self._receiver = self._applier = None
        self._has_begun = False

    def reset(self) -> None:
        """RESET REPLICA on a replica that is stopped: relay logs and positions go. `start` sets it
        up from the beginning."""
        receiver, applier = self._threads()
        self._dump, self._retrieved, self._last_gtid = None, GtidSet(), ""
        self._receiver = self._applier = None
        self.relay_log.reset()
        for number in range(1, applier.info.number_of_workers + 1):
            self._records.worker(number).remove()
        self._records.applier.remove()
        source = receiver.info.at(Position("", FIRST_EVENT))
        if self.configuration.rules.reset_keeps_connection:
            self._records.receiver.flush(source, Occasion.CHANGE)
        else:
            self._records.receiver.remove()
        first = Position(self.relay_log.index.names[-1], FIRST_EVENT)
        self._memory = ReplicaPositions(
            replace(applier.info, number_of_workers=0).at(first, Position("", 0)), source
        )

    # what can be seen

    @property
    def tables(self) -> Tables:
        """The replica's tables."""
        return self.storage.tables

    @property
    def executing(self) -> RelayEvent | None:
        """The first event of the group that is being executed."""
        return None if self._applier is None else self._applier.executor.first

    @property
    def between_groups(self) -> bool:
        """Neither thread is inside of a group."""
        receiver, applier = self._threads()
        return not receiver.in_transaction and not applier.in_group

    @property
    def memory(self) -> ReplicaPositions:
        """The positions of both threads."""
        receiver, applier = self._threads()
        return ReplicaPositions(applier.info, receiver.info)

    def standing_behind_start(self) -> Hashable:
        """Right behind `start`: what both threads know, and the relay logs that are still to be
        read, byte for byte.

        Two replicas of which this is the same, with the same data, go on alike: the rest of the
        disk is only written from here on. With auto-position the dump says where the receiver
        stands: its first event names file and position.
        """
        receiver, applier = self._threads()
        received = (
            receiver.info.at(Position("", 0))
            if receiver.info.enabled_auto_position
            else receiver.info
        )
        names = self.relay_log.index.names
        here = applier.info.relay_log_name
        unread = names[names.index(here) if here else 0 :]
        gtids = str(self._executed()), str(receiver.retrieved), receiver.last_gtid
        gaps = tuple(applier.recovery_groups)
        return (
            applier.info,
            received,
            gtids,
            gaps,
            tuple((name, digest(read_file(self.disk, name))) for name in unread),
        )

    def standing_between_groups(self) -> Hashable:
        """Between groups, everything received being applied: all that the future depends on beside
        the data.

        Relay logs that are read are not read again, and which GTIDs came from where makes no
        difference any more, but where one of a transaction that only began may be among those
        received.
        """
        receiver, applier = self._threads()
        if self._slave_pos is not None:
            gtids = f"{self._slave_pos.position} {receiver.domains}"
        elif self.configuration.rules.splits_transactions:
            gtids = f"{self.storage.executed_gtids} {receiver.retrieved} {receiver.last_gtid}"
        else:
            gtids = str(self.storage.executed_gtids.union(receiver.retrieved))
        return (
            gtids,
            applier.info.source_position,
            receiver.info.source_position,
            applier.executor.open_tables,
        )

    @property
    def retrieved_gtids(self) -> AnyGtidSet:
        """Retrieved_Gtid_Set: what came since the relay logs begin. MariaDB: Gtid_IO_Pos."""
        if self._slave_pos is not None:
            return MariadbGtidSet() if self._receiver is None else self._receiver.domains
        return self._retrieved_now()

    def _executed(self) -> AnyGtidSet:
        slave_pos = self._slave_pos
        return self.storage.executed_gtids if slave_pos is None else slave_pos.position

    @property
    def status(self) -> ReplicaStatus:
        """Where it stands in memory, and what a crash would leave of that."""
        applier = self._applier
        return ReplicaStatus(
            memory=self._memory
            if applier is None or self._receiver is None
            else ReplicaPositions(applier.info, self._receiver.info),
            persisted=ReplicaRecords(self.configuration, self.disk, self.storage.info).positions(),
            retrieved_gtids=self.retrieved_gtids,
            executed_gtids=self._executed(),
            relay_logs=tuple(self.relay_log.index.names),
            gaps=() if applier is None else tuple(applier.recovery_groups),
            receiver_error=self.receiver_error,
            applier_error=None if applier is None else applier.error,
        )

    # the start

    def _change_source(self) -> None:
        """CHANGE REPLICATION SOURCE TO on a server that was no replica before."""
        configuration = self.configuration
        start = self.start_at or (
            Position("", 0)
            if configuration.auto_position
            else Position(first_log(self.source), FIRST_EVENT)
        )
        self.relay_log.begin_file(created=True)
        self._open(*self._records.begin(Position(self.relay_log.name, FIRST_EVENT), start))

    def _without_record(self, source: SourceInfo) -> None:
        """The applier's record is not there: it gets a place at once, or when the threads begin;
        then only the look over the relay logs needs one that is open (5.7.29, 9.7.4)."""
        configuration = self.configuration
        info = RelayLogInfo("", 0, channel_name=configuration.channel)
        self._look_over_relay_logs(info, source)
        if configuration.rules.places_at_start:
            info = info.at(first_place(self.relay_log), Position("", 0))
        elif configuration.rules.sanitizes and not configuration.relay_log_recovery:
            self.relay_log.begin_file(at_start=True)
        self._open(info, source)

    def _look_over_relay_logs(self, info: RelayLogInfo, source: SourceInfo) -> SourceInfo:
        """Before a new relay log begins: what was received, and from 8.4 on whether its end can
        stay."""
        configuration = self.configuration
        if configuration.relay_log_recovery:
            return source
        if configuration.rules.sanitizes:
            source = source.at(sanitized(self.disk, self.relay_log.index, info, source))
        if configuration.gtid_mode:
            self._retrieved, self._last_gtid = received_gtids(
                self.disk, self.relay_log.index, configuration.rules
            )
        return source

    def _recover(self, info: RelayLogInfo, source: SourceInfo) -> tuple[RelayLogInfo, SourceInfo]:
        configuration, rules = self.configuration, self.configuration.rules
        gaps: list[bool] = []
        if configuration.relay_log_recovery:
            if rules.gaps_matter_to_recovery or not configuration.auto_position:
                with nothing_initialized():
                    gaps = self._find_gaps(info)
            elif rules.recovery_forgets_workers:
                info = replace(info, number_of_workers=0)
            if gaps and rules.gaps_forbid_recovery:
                raise not_initialized(FORBIDDEN_BY_GAPS, SINCE_GAPS)
            info = self._start_again(self._fill(info, source, gaps) if gaps else info)
            self._records.applier.flush(info, Occasion.RECOVERY)
            if info.source_log_name or not (configuration.auto_position or rules.by_domains):
                source = source.at(
                    Position(info.source_log_name, max(FIRST_EVENT, info.source_log_pos))
                )
            if gaps:
                self._records.receiver.flush(source, Occasion.RECOVERY)
            self._memory = ReplicaPositions(info, source)
        check_target(self.disk, self.relay_log.index, info.relay_log_name)
        if rules.opens_relay_log and (not configuration.relay_log_recovery or rules.by_domains):
            check_magic(self.disk, info.relay_log_name)
        return info, source

    def _start_again(self, info: RelayLogInfo) -> RelayLogInfo:
        """The source's position, and the relay log that has just begun; nothing where the applier
        never knew a position."""
        if not info.source_log_name:
            scans = not self.configuration.rules.by_domains
            first = first_source_position(self.disk, self.relay_log.index) if scans else None
            if first is None:
                return info
            info = info.at(info.relay_position, first)
        self.recovered_from = info
        return recovered(info, self.relay_log.name)[0]

    def _find_gaps(self, info: RelayLogInfo) -> list[bool]:
        if not info.number_of_workers:
            return []
        workers = self._records.workers(info.number_of_workers)
        return find_gaps(self.disk, self.relay_log.index, info, workers)

    def _fill(self, info: RelayLogInfo, source: SourceInfo, gaps: list[bool]) -> RelayLogInfo:
        """fill_mts_gaps_and_recover: the coordinator runs until SQL_AFTER_MTS_GAPS while the server
        starts. What it cannot read behind the last gap does no harm (5.7.29, 9.7.4)."""
        applier = self._applier = self._new_applier(info)
        applier.recovery_groups = list(gaps)
        try:
            with nothing_initialized(FILL_AGAIN), relay_logs_read(self.configuration.rules):
                applier.start()
                applier.apply(until_gaps_are_filled=True)
        except ReplicationError:
            if applier.recovery_groups:
                raise
        finally:
            self._memory = ReplicaPositions(applier.info, source)
        if applier.recovery_groups:
            raise not_initialized("the relay logs end before all gaps are filled", START_AGAIN)
        applier.stop()
        return applier.info

    def _open(self, info: RelayLogInfo, source: SourceInfo) -> None:
        """Both threads are ready to run; gaps are looked for, as START REPLICA does."""
        self._memory = ReplicaPositions(info, source)
        self._receiver = Receiver(
            self.relay_log, source, self._records.receiver, retrieved=self._retrieved
        )
        self._receiver.last_gtid = self._last_gtid or None
        self._applier = self._new_applier(info)
        if self.configuration.rules.start_flushes:
            self._records.applier.flush(info, Occasion.CHANGE)
            self._records.receiver.flush(source, Occasion.CHANGE)
        self._applier.spares_record = source.asks_by_gtid and self._slave_pos is not None
        if self._applier.spares_record or not info.relay_log_name:
            return
        looks = not self.configuration.relay_log_recovery
        gaps = self._gaps_at_start(info) if looks else []
        with relay_logs_read(self.configuration.rules, starts=True):
            self._applier.start()
        self._applier.recovery_groups = gaps

    def _begin_threads(self) -> None:
        """START REPLICA of both threads."""
        receiver, applier = self._threads()
        if not self._has_begun and applier.spares_record and self._slave_pos is not None:
            begin_anew(receiver, applier, self.relay_log, self._slave_pos)
        elif not applier.info.relay_log_name:
            applier.info = applier.info.at(first_place(self.relay_log), Position("", 0))
            applier.start()
        self._has_begun = True

    def _gaps_at_start(self, info: RelayLogInfo) -> list[bool]:
        """What START REPLICA finds; with auto-position later versions do not look."""
        configuration = self.configuration
        matter = configuration.rules.gaps_matter_to_start or not configuration.auto_position
        return self._find_gaps(info) if matter else []

    def _new_applier(self, info: RelayLogInfo) -> Applier:
        return new_applier(
            self.disk, self.relay_log, self.storage, info, self._records,
            executor_of=self._executor_of, slave_pos=self._slave_pos,
            interleaving=self._interleaving,
        )  # fmt: skip

    # the receiver

    def _connect(self, receiver: Receiver) -> Iterator[bytes]:
        receiver.connect(self.source.server_id, self.source.uuid)
        self.receiver_error = None
        info = receiver.info
        if self._slave_pos is not None:
            self._dump = dump_of(self.source, receiver, self._slave_pos)
        elif info.enabled_auto_position:
            self._dump = iter(
                self.source.dump_gtids(self.storage.executed_gtids.union(receiver.complete_gtids()))
            )
        else:
            self._dump = iter(self.source.dump(info.source_log_name, info.source_log_pos))
        return self._dump

    def _space_is_used_up(self) -> bool:
        limit = (
            self.configuration.relay_log_space_limit if self.configuration.relay_log_purge else 0
        )
        return bool(limit) and not self._ignore_space_limit and self.relay_log.total_size() > limit

    def _retrieved_now(self) -> GtidSet:
        return self._retrieved if self._receiver is None else self._receiver.retrieved

    def _threads(self) -> tuple[Receiver, Applier]:
        if self._receiver is None or self._applier is None:
            raise UsageError(
                "the replica is not started", code=Code.WRONG_MOMENT, hint="call start() first"
            )
        return self._receiver, self._applier
