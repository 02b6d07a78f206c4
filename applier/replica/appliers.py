"""Which applier a replica has: one thread, workers behind checkpoints, or workers by domain; and
where it begins without a record."""

from __future__ import annotations

from applier.replica.applier import Applier
from applier.replica.execute import ExecutorOf
from applier.replica.interleaving import Interleaving
from applier.replica.parallel import ParallelApplier
from applier.replica.parallel_domains import ParallelDomainsApplier
from applier.replica.records import ReplicaRecords
from applier.replica.relay.relay_log import RelayLogWriter
from applier.replica.relay.relay_reader import FIRST_EVENT
from applier.replica.storage import Storage
from checkpoints.disk import Disk
from checkpoints.gtid_slave_pos import GtidSlavePos
from checkpoints.info import RelayLogInfo
from checkpoints.position import Position


def new_applier(
    disk: Disk,
    relay_log: RelayLogWriter,
    storage: Storage,
    info: RelayLogInfo,
    records: ReplicaRecords,
    *,
    executor_of: ExecutorOf,
    slave_pos: GtidSlavePos | None,
    interleaving: Interleaving | None,
) -> Applier:
    """One that stands at `info`; with `slave_pos`, of MariaDB."""
    workers = relay_log.configuration.workers
    if not workers:
        return Applier(
            disk, relay_log, storage, info, records.applier,
            executor_of=executor_of, slave_pos=slave_pos,
        )  # fmt: skip
    if slave_pos is not None:
        return ParallelDomainsApplier(
            disk, relay_log, storage, info, records.applier,
            executor_of=executor_of, slave_pos=slave_pos, interleaving=interleaving,
        )  # fmt: skip
    count = max(workers, info.number_of_workers)
    return ParallelApplier(
        disk, relay_log, storage, info, records.applier, executor_of=executor_of,
        workers=[records.worker(number) for number in range(1, count + 1)],
        interleaving=interleaving,
    )  # fmt: skip


def first_place(relay_log: RelayLogWriter) -> Position:
    """Where the applier begins without a record: at the first relay log, with relay_log_recovery,
    too (rli_init_info; 5.6.24, 5.7.29, 9.7.4, 10.11.18)."""
    if not relay_log.name:
        relay_log.begin_file(at_start=True)
    return Position(relay_log.index.names[0], FIRST_EVENT)
