"""Where a replica stands: what its threads know, what a restart would read, and the errors."""

from __future__ import annotations

from dataclasses import dataclass

from applier.errors import BinlagError
from checkpoints.gtid import AnyGtidSet
from checkpoints.info import RelayLogInfo, SourceInfo, WorkerInfo


@dataclass(frozen=True, slots=True)
class ReplicaPositions:
    """Where a replica stands, in memory or on disk. `received` is None without a receiver's
    record."""

    applied: RelayLogInfo | None
    received: SourceInfo | None
    workers: tuple[WorkerInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """`memory` is what SHOW REPLICA STATUS shows, `persisted` what a restart would read."""

    memory: ReplicaPositions
    persisted: ReplicaPositions
    retrieved_gtids: AnyGtidSet
    """MariaDB: Gtid_IO_Pos."""
    executed_gtids: AnyGtidSet
    """MariaDB: gtid_slave_pos."""
    relay_logs: tuple[str, ...]
    gaps: tuple[bool, ...]
    """Of the groups that are still to be looked through after a crash with workers: whether each
    was executed."""
    receiver_error: BinlagError | None
    applier_error: BinlagError | None
