"""The view of a replica that files tell: info files and relay logs in a folder."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import TypeVar

from applier.error_codes import Code
from applier.errors import InputError, ReplicationError
from applier.receive.receive_resume import find
from applier.server_versions import asked_rules, remark
from applier.status.status import stopped
from applier.status.view import ON, ReplicaView, Thread
from checkpoints.errors import CheckpointError
from checkpoints.info import Record, RelayLogInfo, SourceInfo, WorkerInfo
from checkpoints.info_files import parse, versions_of

R = TypeVar("R", bound=Record)
VERSION = "8.0"
"""Whose status is shown when the files do not tell: the last version with info files."""


def view_of_folder(folder: Path, version: str | None = None) -> tuple[ReplicaView, list[str]]:
    """What info files and relay logs in a folder say, and notes on what could not be read. Nothing
    is written.

    `version` is the server's that wrote them; None: as the files' form tells. Raises InputError
    where there is no replica's file.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder", code=Code.NO_REPLICA)
    names = {record: folder / record.fields.file_name for record in (RelayLogInfo, SourceInfo)}
    notes: list[str] = []
    if version is not None:
        version = asked_rules(version).name
    else:
        version = _version_of(names)
        said = remark(version, "the info files")
        notes += [said] if said is not None else []
    relay = _record(RelayLogInfo, names[RelayLogInfo], version, notes)
    source = _record(SourceInfo, names[SourceInfo], version, notes)
    logs = _relay_logs(folder, relay)
    if relay is None and source is None and not logs and not notes:
        raise InputError(
            f"{folder} holds no replica: neither relay-log.info nor master.info nor relay logs",
            code=Code.NO_REPLICA,
            hint="name the folder of `binlag receive --dir`, or a server's data directory",
        )
    workers = [
        _record(WorkerInfo, folder / f"{WorkerInfo.fields.file_name}.{number}", version, notes)
        for number in range(1, (relay.number_of_workers if relay is not None else 0) + 1)
    ]
    retrieved, position, server_id = _received(logs, notes)
    receiver = Thread(ON) if _locked(folder / "auto.cnf") else stopped()
    view = ReplicaView(
        version=version,
        source=source,
        relay=relay,
        worker_infos=tuple(worker for worker in workers if worker is not None),
        receiver=receiver,
        applier=stopped() if relay is not None else Thread(),
        workers=tuple(stopped() for _ in workers),
        source_file=None if position is None else position[0],
        read_position=None if position is None else position[1],
        relay_log_bytes=sum(log.stat().st_size for log in logs if log.exists()) if logs else None,
        source_server_id=server_id,
        info_repository=str(names[SourceInfo]) if source is not None else None,
        retrieved=retrieved,
    )
    return view, notes


def _version_of(names: dict[type[RelayLogInfo] | type[SourceInfo], Path]) -> str:
    """The newest version that may have written all the files there are."""
    possible: list[set[str]] = []
    for record, path in names.items():
        if path.is_file() and (data := path.read_bytes()):
            try:
                found = versions_of(record, data, file=path.name)
            except CheckpointError:
                continue
            possible.append(set(found))
    common = set.intersection(*possible) if possible else set()
    return max(common, default=VERSION)


def _record(record: type[R], path: Path, version: str, notes: list[str]) -> R | None:
    """None where there is no such file; one that cannot be read is noted."""
    try:
        return parse(record, path.read_bytes(), version, file=path.name).record
    except FileNotFoundError:
        return None
    except OSError as error:
        notes.append(f"{path.name}: {error.strerror}")
    except CheckpointError as error:
        notes.append(str(error))
    return None


def _relay_logs(folder: Path, relay: RelayLogInfo | None) -> list[Path]:
    """The relay logs that the index with the applier's log, or else any index of relay logs
    names, where they lie now: a server names them with the folder of its option."""
    for index in sorted(folder.glob("*.index")):
        listed = [
            Path(line).name
            for line in index.read_text("utf-8", "surrogateescape").splitlines()
            if line
        ]
        known = relay is not None and Path(relay.relay_log_name).name in listed
        if known or (relay is None and "relay" in index.name):
            return [folder / name for name in listed]
    return []


def _received(
    logs: list[Path], notes: list[str]
) -> tuple[str | None, tuple[str, int] | None, int | None]:
    """Retrieved_Gtid_Set, the place in the source's log behind the last event, the source's server
    id. None: not known."""
    try:
        found = find([log for log in logs if log.exists()], by_domains=False)
    except (InputError, ReplicationError) as error:
        notes.append(str(error))
        return None, None, None
    if found is None:
        return ("" if logs else None), None, None
    progress = found.progress
    gtids = str(progress.gtids or progress.domains)
    position = (progress.file, progress.offset) if progress.file else None
    return gtids, position, progress.source_server_id or None


def _locked(path: Path) -> bool:
    """Whether a receiver of ours is at work in the folder."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False
