"""The views of the replays whose positions a server keeps: one for each, as a replica has one for
each channel."""

from __future__ import annotations

from applier.error_codes import Code
from applier.errors import InputError
from applier.mysql.client.connection import Server
from applier.mysql.positions.checkpoint import SCHEMA, Checkpoint, checkpoints_of, is_locked
from applier.mysql.positions.thread_rows import infos
from applier.server_versions import asked_rules
from applier.status.status import stopped
from applier.status.view import ON, ReplicaView, Thread
from checkpoints.info import RelayLogInfo, SourceInfo, WorkerInfo
from checkpoints.position import Position


def views_of_server(server: Server, version: str | None = None) -> list[ReplicaView]:
    """The replays by name. `version` names the columns; None: the server's own. Raises InputError
    where no replay was begun.

    Whether a receiver runs is not known here, so its columns are unknown.
    """
    name = server.rules_version if version is None else asked_rules(version).name
    found = checkpoints_of(server)
    if not found:
        raise InputError(
            f"{server.endpoint} keeps no position of a replay",
            code=Code.NO_REPLICA,
            hint="binlag replay FILE... --into mysql://... begins one",
        )
    return [_view(server, checkpoint, name) for checkpoint in found]


def _view(server: Server, checkpoint: Checkpoint, version: str) -> ReplicaView:
    relay, replay = Position(checkpoint.file, checkpoint.offset), checkpoint.replay
    is_running = is_locked(server, replay)
    workers = tuple(infos(server, WorkerInfo, replay))
    source = next(iter(infos(server, SourceInfo, replay)), None)
    record = RelayLogInfo(channel_name=replay, number_of_workers=len(workers))
    state = Thread(ON) if is_running else stopped()
    return ReplicaView(
        version=version,
        channel=checkpoint.replay,
        source=source,
        relay=record.at(relay, checkpoint.source),
        worker_infos=workers,
        applier=state,
        workers=(state,) * len(workers),
        info_repository=None if source is None else f"{SCHEMA}.{SourceInfo.fields.table}",
        executed=checkpoint.gtids,
    )
