"""The records in which a replica keeps where it stands: its applier's, receiver's, workers'."""

from __future__ import annotations

from applier.errors import ReplicationError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.recovery import UNREADABLE
from applier.replica.relay.relay_reader import START_AGAIN
from applier.replica.replica_status import ReplicaPositions
from checkpoints.disk import Disk
from checkpoints.errors import InfoError
from checkpoints.info import RelayLogInfo, SourceInfo, WorkerInfo
from checkpoints.repositories import Repositories
from checkpoints.repository import Repository
from checkpoints.table_store import TableStore


class ReplicaRecords:
    """The records of a replica's channel, on disk and in tables as its options say."""

    def __init__(self, configuration: ReplicaConfiguration, disk: Disk, tables: TableStore) -> None:
        self._channel = configuration.channel
        self._repositories = Repositories(
            configuration.version,
            disk,
            tables,
            configuration.relay_log_info_repository or "",
            configuration.master_info_repository or "",
            configuration.sync,
            as_server=True,
        )
        self.applier: Repository[RelayLogInfo] = self._repositories.relay_log_info(self._channel)
        self.receiver: Repository[SourceInfo] = self._repositories.source_info(self._channel)

    def worker(self, number: int) -> Repository[WorkerInfo]:
        """The record of the worker with this number, from 1 on."""
        return self._repositories.worker_info(number, self._channel)

    def workers(self, count: int) -> list[WorkerInfo]:
        """What the records of the first `count` workers say; those without one are left out."""
        found = [self.worker(number).read() for number in range(1, count + 1)]
        return [worker for worker in found if worker is not None]

    def read(self) -> tuple[RelayLogInfo | None, SourceInfo | None]:
        """Applier and receiver. Raises ReplicationError as START REPLICA says it of a record that
        cannot be read."""
        try:
            return self.applier.read(), self.receiver.read()
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
