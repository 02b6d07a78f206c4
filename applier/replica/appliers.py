"""Which applier a replica has: one thread, workers behind checkpoints, or workers by domain."""

from __future__ import annotations

from applier.replica.applier import Applier
from applier.replica.execute import ExecutorOf
from applier.replica.interleaving import Interleaving
from applier.replica.parallel import ParallelApplier
from applier.replica.parallel_domains import ParallelDomainsApplier
from applier.replica.records import ReplicaRecords
from applier.replica.relay.relay_log import RelayLogWriter
from applier.replica.storage import Storage
from checkpoints.disk import Disk
from checkpoints.gtid_slave_pos import GtidSlavePos
from checkpoints.info import RelayLogInfo


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
