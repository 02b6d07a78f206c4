"""All repositories of one replica, as its options say: FILE or TABLE, and how often they are
synced.

relay_log_info_repository rules the applier's record and those of its workers,
master_info_repository the receiver's; both options, and the files with them, were taken away in
8.3. Defaults are the version's own. What a version does not have is refused before anything is
read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from checkpoints.disk import Disk
from checkpoints.errors import CheckpointError
from checkpoints.fields import column_of
from checkpoints.info import R, RelayLogInfo, SourceInfo, WorkerInfo
from checkpoints.repository import SUBJECTS, FileRepository, Repository, TableRepository, kept_in
from checkpoints.sync_rules import DEFAULT_REPOSITORY, RecordStorage, SyncOptions, rule_of
from checkpoints.table_store import TableStore

FILE, TABLE = "FILE", "TABLE"


@dataclass(frozen=True)
class Repositories:
    """Where a replica of this version keeps its records. Raises CheckpointError for what the
    version does not allow."""

    server: str
    disk: Disk
    tables: TableStore | None = None
    relay_log_info_repository: str = ""
    """FILE or TABLE; empty: the default of the version."""
    master_info_repository: str = ""
    options: SyncOptions | None = None
    as_server: bool = False
    """Damaged files are read as the server reads them: a number before garbage counts, a line that
    is missing is its default."""
    _kept: dict[type, RecordStorage] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        applier = self._sort("relay_log_info_repository", self.relay_log_info_repository)
        receiver = self._sort("master_info_repository", self.master_info_repository)
        self._kept.update({RelayLogInfo: applier, WorkerInfo: applier, SourceInfo: receiver})
        for record in (RelayLogInfo, SourceInfo):
            rule_of(SUBJECTS[record], self._kept[record], self.server)

    def relay_log_info(self, channel: str = "") -> Repository[RelayLogInfo]:
        """The applier's record of a channel."""
        return self._open(RelayLogInfo, channel, None)

    def source_info(self, channel: str = "") -> Repository[SourceInfo]:
        """The receiver's record of a channel (master_info)."""
        return self._open(SourceInfo, channel, None)

    def worker_info(self, number: int, channel: str = "") -> Repository[WorkerInfo]:
        """The repository of one worker; they are numbered from 1."""
        return self._open(WorkerInfo, channel, number)

    def workers(self, count: int, channel: str = "") -> list[WorkerInfo]:
        """What the workers 1 to `count` have recorded; `count` is the relay log info's
        number_of_workers.

        Raises CheckpointError when one of them is not there.
        """
        found = []
        for number in range(1, count + 1):
            repository = self.worker_info(number, channel)
            info = repository.read()
            if info is None:
                raise CheckpointError(
                    f"{repository.place} is not there, but {count} workers ran",
                    hint=(
                        "put it back, or RESET REPLICA and give the position again: only this file"
                        " tells which groups were executed"
                    ),
                )
            found.append(info)
        return found

    def _sort(self, option: str, value: str) -> RecordStorage:
        kind = value.upper() or (
            "FILE" if DEFAULT_REPOSITORY[column_of(self.server)] is RecordStorage.FILE else "TABLE"
        )
        if kind == FILE:
            return RecordStorage.FILE
        if kind != TABLE:
            raise CheckpointError(f"{option}={value!r}", hint="give FILE or TABLE")
        if self.tables is None:
            raise CheckpointError(
                f"{option}=TABLE, but there are no tables to keep it in",
                hint="give a store of tables, or FILE",
            )
        return kept_in(self.tables)

    def _open(self, record: type[R], channel: str, number: int | None) -> Repository[R]:
        period = (self.options or SyncOptions.default(self.server)).period(SUBJECTS[record])
        if self._kept[record] is not RecordStorage.FILE and self.tables is not None:
            return TableRepository(
                self.tables, record, self.server, period, channel=channel, number=number
            )
        if channel:
            raise CheckpointError(
                f"channel {channel!r} cannot be kept in a file",
                hint="use TABLE, as the server demands (error 3077)",
            )
        return FileRepository(
            self.disk, record, self.server, period, number=number, as_server=self.as_server
        )
