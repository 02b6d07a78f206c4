"""The view of an emulated replica at work."""

from __future__ import annotations

from applier.replica.replica import Replica
from applier.status.view import OFF, ReplicaView, Thread, ThreadFailure
from checkpoints.info import SourceInfo


def view_of_replica(replica: Replica, *, persisted: bool = False) -> ReplicaView:
    """An emulated replica as it is in memory, or as a restart would find it.

    It is executed step by step: whether its threads run is nobody's to say (NULL) unless one has
    stopped with an error.
    """
    status = replica.status
    stand = status.persisted if persisted else status.memory
    configuration = replica.configuration
    applier = (
        Thread()
        if status.applier_error is None
        else Thread(OFF, "", _failure(status.applier_error))
    )
    source_kept = configuration.master_info_repository == "FILE"
    return ReplicaView(
        version=configuration.version,
        channel=configuration.channel,
        source=stand.received,
        relay=stand.applied,
        worker_infos=stand.workers,
        receiver=(
            Thread()
            if status.receiver_error is None
            else Thread(OFF, "", _failure(status.receiver_error))
        ),
        applier=applier,
        workers=tuple(Thread() for _ in range(configuration.workers or 0)),
        relay_log_bytes=replica.relay_log.total_size(),
        info_repository=(
            SourceInfo.fields.file_name if source_kept else f"mysql.{SourceInfo.fields.table}"
        ),
        retrieved=str(status.retrieved_gtids),
        executed=str(status.executed_gtids),
    )


def _failure(error: Exception) -> ThreadFailure:
    return ThreadFailure(getattr(error, "number", 0), str(getattr(error, "message", error)))
