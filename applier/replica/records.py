"""The records in which a replica keeps where it stands: its applier's, receiver's, workers'.

Up to 8.0 a server looks for each of them in the other repository, too, and moves it to the one that
the option names (Rpl_info_factory::decide_repository); but where workers left records, for there
may be gaps, that of the applier stays with them, whatever the option says (seen of 5.6.24 and
5.7.29).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from applier.errors import ReplicationError
from applier.replica.configuration import FILE, TABLE, ReplicaConfiguration
from applier.replica.recovery import UNREADABLE
from applier.replica.relay.relay_index import as_listed
from applier.replica.relay.relay_reader import FIRST_EVENT, START_AGAIN
from applier.replica.replica_status import ReplicaPositions
from checkpoints.disk import Disk
from checkpoints.errors import InfoError
from checkpoints.fields import FILES_IN
from checkpoints.info import R, RelayLogInfo, SourceInfo, WorkerInfo
from checkpoints.position import Position
from checkpoints.repositories import Repositories
from checkpoints.repository import Repository
from checkpoints.sync_rules import Occasion
from checkpoints.table_store import TableStore

TWO_RECORDS = 1794
"""ER_REPLICA_CONFIGURATION."""
OTHER = {FILE: TABLE, TABLE: FILE}
_Placed = TypeVar("_Placed", RelayLogInfo, WorkerInfo)


class ReplicaRecords:
    """The records of a replica's channel, on disk and in tables as its options say."""

    def __init__(self, configuration: ReplicaConfiguration, disk: Disk, tables: TableStore) -> None:
        self._configuration, self._channel = configuration, configuration.channel
        applier = configuration.relay_log_info_repository or ""
        receiver = configuration.master_info_repository or ""
        version, sync = configuration.version, configuration.sync
        can_move = version in FILES_IN and not configuration.rules.by_domains and not self._channel
        if can_move and not _has_workers(applier, disk, tables):
            applier = OTHER[applier] if _has_workers(OTHER[applier], disk, tables) else applier
        self._repositories = Repositories(
            version, disk, tables, applier, receiver, sync, as_server=True
        )
        self._others = (
            Repositories(
                version, disk, tables, OTHER[applier], OTHER[receiver], sync, as_server=True
            )
            if can_move
            else None
        )
        self.applier: Repository[RelayLogInfo] = self._repositories.relay_log_info(self._channel)
        self.receiver: Repository[SourceInfo] = self._repositories.source_info(self._channel)

    def worker(self, number: int) -> Repository[WorkerInfo]:
        """The record of the worker with this number, from 1 on."""
        return self._repositories.worker_info(number, self._channel)

    def workers(self, count: int) -> list[WorkerInfo]:
        """What the records of the first `count` workers say; those without one are left out."""
        found = [self.worker(number).read() for number in range(1, count + 1)]
        return [self._as_listed(worker) for worker in found if worker is not None]

    def _as_listed(self, info: _Placed) -> _Placed:
        """Its relay log by the name that the index has."""
        if not self._configuration.rules.normalizes_names:
            return info
        return replace(info, relay_log_name=as_listed(info.relay_log_name))

    def begin(self, relay_position: Position, start: Position) -> tuple[RelayLogInfo, SourceInfo]:
        """The first records of applier and receiver, as CHANGE REPLICATION SOURCE TO writes
        them."""
        configuration = self._configuration
        channel = configuration.channel
        info = RelayLogInfo(channel_name=channel).at(relay_position, start)
        source = replace(
            SourceInfo(channel_name=channel),
            source_log_name=start.file,
            source_log_pos=max(start.offset, FIRST_EVENT),
            enabled_auto_position=configuration.auto_position
            and not configuration.rules.by_domains,
            using_gtid=configuration.using_gtid or "No",
            heartbeat_period=configuration.rules.heartbeat_period_seconds,
            ignored_server_ids=configuration.ignore_server_ids,
        )
        self.receiver.flush(source, Occasion.CHANGE)
        self.applier.flush(info, Occasion.CHANGE)
        return info, source

    def read(self) -> tuple[RelayLogInfo | None, SourceInfo | None]:
        """Applier and receiver; what is in the other repository is moved. Raises ReplicationError
        as START REPLICA says it of a record that cannot be read, or is there twice."""
        try:
            others = self._others
            if others is not None:
                _move(others.source_info(), self.receiver)
                _move(others.relay_log_info(), self.applier)
            applier, source = self.applier.read(), self.receiver.read()
            return applier and self._as_listed(applier), source
        except InfoError as error:
            number, words = UNREADABLE[
                SourceInfo if error.file == SourceInfo.fields.file_name else RelayLogInfo
            ]
            raise ReplicationError(
                number, f"{words}: {error}", file=error.file, hint=START_AGAIN
            ) from error

    def positions(self) -> ReplicaPositions:
        """All that is kept; nothing where it cannot be read. Read by somebody else than the running
        threads."""
        try:
            applier = self.applier.read()
            workers = self.workers(applier.number_of_workers if applier is not None else 0)
            return ReplicaPositions(applier, self.receiver.read(), tuple(workers))
        except InfoError:
            return ReplicaPositions(None, None)


def _has_workers(kind: str, disk: Disk, tables: TableStore) -> bool:
    """Whether that repository holds the record of a worker."""
    fields = WorkerInfo.fields
    return bool(
        tables.rows(fields.table) if kind == TABLE else f"{fields.file_name}.1" in disk.names()
    )


def _move(here: Repository[R], wanted: Repository[R]) -> None:
    """A record that is kept in another place than the options ask for. Raises ReplicationError 1794
    where both have one, be it damaged (5.6.24, 5.7.29)."""
    try:
        found = here.read()
    except InfoError:
        if wanted.read() is None:
            raise
    else:
        if found is None:
            return
        if wanted.read() is None:
            wanted.flush(found, Occasion.CHANGE)
            here.remove()
            return
    raise ReplicationError(
        TWO_RECORDS,
        "Replica is not configured or failed to initialize properly: multiple replication metadata"
        f" repository instances found with data in them: {here.place} and {wanted.place}",
        hint=f"remove one of them: {wanted.place} is what the options ask for",
    )
