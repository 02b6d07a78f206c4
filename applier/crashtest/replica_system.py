"""The emulated replica as a system under test.

A run receives and applies in turns; a turn of the receiver ends wherever its number of events
happens to end, so that crashes find half transactions in the relay log, and the receiver now far
ahead and now behind. After a crash the replica is started, receives all and applies all. The ledger
is the storage's own: which transactions changed the tables, by the bytes of their first event; no
position has a part in it.

Thousands of recoveries come to the same standings on their way, so each standing is gone on from
once: right behind the start, and again between any two groups later on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import cycle

from applier.crashtest.contract import CannotStart, State
from applier.crashtest.durable import (
    Durability,
    DurableStorage,
    RecoveryMemory,
    is_record_file,
)
from applier.crashtest.log_maker import EPOCH
from applier.crashtest.workload import Workload, content_of
from applier.errors import InputError, ReplicationError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.interleaving import Shuffled
from applier.replica.relay.relay_event import KnownRelayLogs
from applier.replica.replica import Replica
from checkpoints.disk import Disk
from checkpoints.errors import CheckpointError
from checkpoints.simulated_disk import SimulatedDisk

TURNS = (9, 4, 17, 6, 2, 11)
"""Events of each turn of the receiver, over and over."""
APPLIED = (2, 0, 3, 1)
"""Groups of each turn of the applier."""
HEAD_EVENTS = 2
"""Rotate and format description, with which every dump begins."""
CHECKPOINT_EVERY = 4
"""Groups of the workers between two checkpoints of the coordinator, on average."""
NOT_INITIALIZED = 1872
"""ER_SLAVE_RLI_INIT_REPOSITORY: what START REPLICA says when a record or a relay log is not as it
should be."""


@dataclass
class Shared:
    """What the systems of one exploration have in common: how it went on from a standing that was
    reached before. It holds nothing that a crash would lose, and saves only time."""

    storage: RecoveryMemory = field(default_factory=RecoveryMemory)
    relay_logs: KnownRelayLogs = field(default_factory=KnownRelayLogs)
    ends: dict[Hashable, State | Exception] = field(default_factory=dict)


class ReplicaSystem:
    """One server with its replica. An error of the disk ends it, as InnoDB and
    binlog_error_action=ABORT_SERVER end a server."""

    stops_on_error = True
    refusals = (CannotStart, ReplicationError)

    def __init__(
        self,
        workload: Workload,
        configuration: ReplicaConfiguration,
        *,
        seed: int = 1,
        shared: Shared | None = None,
    ) -> None:
        self.workload = workload
        self.configuration = configuration
        self.seed = seed
        self.shared = shared or Shared()

    def what_counts(self, name: str) -> Callable[[bytes], bytes] | None:
        """The torn end of the storage's files is cut off before anything else."""
        return self._whole_part if is_record_file(name) else None

    def _whole_part(self, content: bytes) -> bytes:
        return content[: self.shared.storage.parsed.whole(content)[1]]

    def run(self, disk: Disk) -> Iterator[Hashable]:
        """Until the source has nothing more. Yields what the storage has committed."""
        replica, storage = self.server(disk)
        replica.start()
        told = 0
        for events, groups in zip(cycle(TURNS), cycle(APPLIED), strict=False):
            is_end = replica.receive(events) < events
            replica.apply(None if is_end else groups)
            yield from storage.ledger[told:]
            told = len(storage.ledger)
            if is_end:
                return

    def recover(self, disk: Disk) -> State:
        """Restart, START REPLICA, and wait until the source has nothing more."""
        standings: list[Hashable] = []
        end: State | Exception
        try:
            end = self._catch_up(disk, standings)
        except (CheckpointError, InputError) as error:
            end = CannotStart(str(error), number=NOT_INITIALIZED)
        except ReplicationError as error:
            end = error
        self.shared.ends.update(dict.fromkeys(standings, end))
        if isinstance(end, Exception):
            raise end
        return end

    def _catch_up(self, disk: Disk, standings: list[Hashable]) -> State | Exception:
        """Applies what is there, then event by event. `standings` gets those passed on the way; a
        known one ends it.

        The applier is asked after each event: a half transaction at the end of the relay log keeps
        it inside of a group until it reads on.
        """
        replica, storage = self.server(disk)
        replica.start()
        start = storage.history, replica.standing_behind_start()
        if start in self.shared.ends:
            return self.shared.ends[start]
        standings.append(start)
        replica.apply()
        drained = False
        while not drained:
            if replica.between_groups:
                stand = storage.history, replica.standing_between_groups()
                if stand in self.shared.ends:
                    return self.shared.ends[stand]
                standings.append(stand)
            drained = not replica.receive(1)
            replica.apply()
        return State(tuple(storage.ledger), content_of(storage.tables))

    def server(self, disk: Disk) -> tuple[Replica, DurableStorage]:
        """A server on a disk, not yet started."""
        configuration = self.configuration
        log_bin = configuration.log_bin and configuration.log_replica_updates
        durability = Durability(
            configuration.innodb_flush_log_at_trx_commit, configuration.sync_binlog, log_bin
        )
        storage = DurableStorage(
            disk,
            self.workload.schema,
            durability,
            version=configuration.version,
            work=lambda: self._work(replica),
            known=self.shared.storage,
        )
        order = Shuffled(self.seed, checkpoint_every=CHECKPOINT_EVERY)
        source, known = self.workload.source(), self.shared.relay_logs
        replica = Replica(
            disk,
            configuration,
            source,
            storage,
            interleaving=order,
            clock=lambda: EPOCH,
            known=known,
        )
        return replica, storage

    def _work(self, replica: Replica) -> str:
        first = replica.executing
        return "" if first is None else self.workload.names[first.data]


def set_up(workload: Workload, configuration: ReplicaConfiguration) -> dict[str, bytes]:
    """The disk of a replica that has connected to its source once and was shut down. Setting it up
    is not part of what is tested."""
    disk = SimulatedDisk()
    replica, _ = ReplicaSystem(workload, configuration).server(disk)
    replica.start()
    replica.receive(HEAD_EVENTS)
    replica.apply()
    replica.shutdown()
    return disk.contents()


def expected_state(workload: Workload, configuration: ReplicaConfiguration) -> State:
    """What must be there in the end: the ledger of an undisturbed run, and the tables as the replay
    of the log leaves them."""
    ledger = tuple(
        ReplicaSystem(workload, configuration).run(SimulatedDisk(set_up(workload, configuration)))
    )
    return State(ledger, workload.expected)
