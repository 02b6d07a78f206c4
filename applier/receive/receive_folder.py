"""The folder a receiver writes to: relay logs and their index, master.info, and auto.cnf with the
UUID that it keeps for life.

    relay-bin.000001 ...   what was received      relay-bin.index   their names
    master.info            source and position    auto.cnf          who we are; locked while at work

Laid out as in a replica of 8.0 with master_info_repository=FILE. The password of master.info stays
empty.
"""

from __future__ import annotations

import fcntl
import os
import re
import uuid as uuid_module
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from applier.error_codes import Code
from applier.errors import InputError, UsageError
from applier.mysql.client.url import Endpoint
from applier.receive.protocol import Identity, SourceServer
from applier.receive.receive_progress import Progress
from applier.receive.receive_resume import Found, find, has_head
from applier.replica.configuration import FILE, ReplicaConfiguration
from applier.replica.relay.relay_index import RelayLogIndex
from applier.replica.relay.relay_log import RelayLogWriter
from checkpoints.disk import RealDisk, plain, read_file
from checkpoints.errors import CheckpointError
from checkpoints.gtid import GtidSet, MariadbGtidSet
from checkpoints.info import SourceInfo
from checkpoints.position import Position
from checkpoints.repositories import Repositories
from checkpoints.sync_rules import Occasion

VERSION = "8.0"
"""The replica that binlag's receiver is like: the last one that keeps its records in files."""
RELAY_LOG = "relay-bin"
OWN_FILE = "auto.cnf"
_UUID_LINE = "server-uuid="


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin in a folder without relay logs; and who we are, if not what the folder
    says."""

    position: Position | None = None
    gtids: GtidSet | MariadbGtidSet | None = None
    server_id: int | None = None
    max_relay_log_bytes: int = 1 << 30


class Folder:
    """Opens the folder and finds where to go on. Raises InputError and UsageError; `close` it, or
    `abandon` it as a kill would."""

    def __init__(self, path: Path, start: Start, *, auto_position: bool = False) -> None:
        self.path = path
        self.notes: list[str] = []
        """What was mended when it was opened."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = (path / OWN_FILE).open("a+", encoding="utf-8", errors="replace")
        except OSError as error:
            raise UsageError(
                f"cannot write to {path}: {error.strerror}",
                code=Code.CANNOT_WRITE,
                hint="give another folder with --dir",
            ) from None
        try:
            self._open(start, auto_position=auto_position)
        except BaseException:
            self._lock.close()
            raise

    def _open(self, start: Start, *, auto_position: bool) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"another receiver is at work in {self.path}",
                code=Code.FOLDER_BUSY,
                hint="end it first, or give another folder",
            ) from None
        disk = RealDisk(self.path)
        repositories = Repositories(
            VERSION, disk, relay_log_info_repository=FILE, master_info_repository=FILE
        )
        self._repository = repositories.source_info()
        if (
            read_file(disk, self._repository.place) == b""
        ):  # killed between its creation and its first write; the relay logs know more
            self._repository.remove()
        try:
            self._record = self._repository.read() or SourceInfo()
        except CheckpointError as error:
            self._repository.remove()
            self._record = SourceInfo()
            self.notes.append(
                "master.info is damaged and is written again; the relay logs say where to go on"
                f" ({error.message})"
            )
        uuid = self._uuid()
        index = RelayLogIndex(disk, RELAY_LOG)
        index.open()
        self._mend_index(index, disk)
        self._drop_headless(index)
        found = find([self.path / plain(name) for name in index.names], by_domains=auto_position)
        self.progress = self._resumed(found, start)
        self.own = Identity(_server_id(found, start, uuid), uuid)
        configuration = ReplicaConfiguration(
            VERSION,
            server_id=self.own.server_id,
            relay_log=RELAY_LOG,
            master_info_repository=FILE,
            relay_log_info_repository=FILE,
            max_relay_log_size=start.max_relay_log_bytes,
        )
        self.writer = RelayLogWriter(disk, configuration, retrieved=lambda: self.progress.gtids)
        self.writer.index.open()
        self._head = 0
        if found is not None:
            self._cut(disk, index.names[-1], found.size)

    def _mend_index(self, index: RelayLogIndex, disk: RealDisk) -> None:
        """Takes the relay logs that are there where a crash of the machine left no list of them."""
        is_relay_log = re.compile(rf"(\./)?{RELAY_LOG}\.\d{{6,}}").fullmatch
        there = [f"./{name}" for name in disk.names() if is_relay_log(name)]
        if there and not (index.names and all(map(is_relay_log, index.names))):
            index.replace(there)
            self.notes.append(
                f"{index.file} is damaged and is written again; all relay logs that are here count"
            )

    def _drop_headless(self, index: RelayLogIndex) -> None:
        """Removes the newest relay logs that a crash of the machine left without a beginning, or
        not at all."""
        whole = list(index.names)
        while whole and not has_head(self.path / plain(whole[-1])):
            self.notes.append(
                f"{plain(whole.pop())} has no beginning and is removed; the source sends what was"
                " in it again"
            )
        if len(whole) < len(index.names):
            if whole:
                index.remove_after(whole[-1])
            else:
                index.clear()
                index.open()

    def _uuid(self) -> str:
        """Our own, from auto.cnf; a new one is on disk before anybody hears of it."""
        self._lock.seek(0)
        content = self._lock.read()
        for line in content.splitlines():
            if line.startswith(_UUID_LINE):
                return line.removeprefix(_UUID_LINE).strip()
        if content.strip():
            self.notes.append(
                f"{OWN_FILE} is damaged and is written again; this replica has a new UUID"
            )
        uuid = str(uuid_module.uuid4())
        self._lock.truncate(0)
        self._lock.write(f"[auto]\n{_UUID_LINE}{uuid}\n")
        self._lock.flush()
        os.fsync(self._lock.fileno())
        return uuid

    def _resumed(self, found: Found | None, start: Start) -> Progress:
        if found is not None and found.progress.file:
            if start.position is not None or start.gtids is not None:
                raise UsageError(
                    f"{self.path} holds relay logs up to {found.progress.position} of the source:"
                    " it goes on there",
                    code=Code.FOLDER_GOES_ON,
                    hint="leave --from and --executed-gtids out, or give a new folder",
                )
            return found.progress
        progress = found.progress if found is not None else Progress()
        if start.position is not None:
            progress.file, progress.offset = start.position.file, start.position.offset
        if isinstance(start.gtids, MariadbGtidSet):
            progress.domains = start.gtids
        elif start.gtids is not None:
            progress.gtids = start.gtids
        return progress

    def _cut(self, disk: RealDisk, name: str, size: int) -> None:
        """Takes off what a kill or a crash left behind the last whole event."""
        with disk.open(name) as file:
            beyond = file.size() - size
            if beyond > 0:
                file.truncate(size)
                self.notes.append(
                    f"{plain(name)}: {beyond:,} bytes behind the last whole event are cut off; the"
                    " source sends them again"
                )

    # while receiving

    def check_source(
        self, source: SourceServer, *, auto_position: bool, note: Callable[[str], None]
    ) -> None:
        """Raises InputError when a position would be taken to a server that it is not a position
        of."""
        before, now, known = self._record.uuid, source.uuid or "", self.progress.source_server_id
        format_description = self.progress.format
        if (not before and not known) or (before and before == now):
            return
        same_product = (
            format_description is None or format_description.is_mariadb == source.is_mariadb
        )
        if not (before and now) and same_product and known == source.server_id:
            return
        text = (
            f"the source is {_name(now, source.server_id)} now and was {_name(before, known)}"
            " before"
        )
        if not auto_position:
            raise InputError(
                text,
                code=Code.OTHER_SOURCE,
                hint=(
                    "a position of one server means nothing on another: use --auto-position, or a"
                    " new folder"
                ),
            )
        note(text)

    def connected(
        self,
        endpoint: Endpoint,
        source: SourceServer,
        *,
        heartbeat_seconds: float,
        auto_position: bool,
    ) -> None:
        """Keeps in master.info whom we are connected to."""
        self._record = replace(
            self._record,
            host="localhost" if endpoint.socket else endpoint.host,
            port=endpoint.port,
            user_name=endpoint.user,
            enabled_ssl=endpoint.tls.is_required,
            uuid=source.uuid or "",
            heartbeat_period=heartbeat_seconds,
            enabled_auto_position=auto_position,
            compression_algorithm=",".join(endpoint.compression.algorithms),
            zstd_compression_level=endpoint.compression.zstd_level,
        )
        self._repository.flush(self._record.at(self.progress.position), Occasion.CHANGE)

    def begin_file(self) -> None:
        """The next events go into a new relay log, unless the one that is open has nothing of the
        source yet."""
        writer = self.writer
        if not writer.name:
            writer.begin_file()
        elif writer.size > self._head:
            writer.sync()
            writer.rotate()
        self._head = writer.size
        writer.checksum = writer.configuration.relay_log_checksum

    def split(self, source_format: bytes) -> None:
        """The relay log is long enough; the next one begins with the source's format
        description."""
        self.writer.sync()
        self.writer.rotate(source_format)
        self._head = 0

    def keep(self, position: Position) -> None:
        """Writes the position into master.info."""
        if self._record.source_position != position and position.file:
            self._record = self._record.at(position)
            self._repository.flush(self._record, Occasion.EVENT)

    def close(self) -> None:
        """Ends the relay log as a clean shutdown does."""
        if self.writer.name:
            self.writer.close()
            self._repository.flush(self._record, Occasion.STOP)
        self._lock.close()

    def abandon(self) -> None:
        """Leaves everything as it is: the disk is full, or broken."""
        self._lock.close()


def _server_id(found: Found | None, start: Start, uuid: str) -> int:
    before = found.server_id if found is not None else 0
    if start.server_id is not None and before and start.server_id != before:
        raise UsageError(
            f"--server-id {start.server_id}: the relay logs here were written as {before}",
            code=Code.FOLDER_GOES_ON,
            hint="give a new folder",
        )
    return start.server_id or before or _id_of(uuid)


def _name(uuid: str, server_id: int) -> str:
    return uuid or f"server id {server_id}"


def _id_of(uuid: str) -> int:
    """A server id that is hardly anybody else's: ids that people give are small."""
    return zlib.crc32(uuid.encode()) | 1 << 31
