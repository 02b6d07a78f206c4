"""Relay logs as the receiver writes them: real files, event by event, with their index.

A file begins with magic, the replica's own format description and, from 5.7 on or with GTIDs, the
set of what was received before. What the source sends follows as it is. When the file is left for
the next one, a rotate event of the replica ends it; a clean shutdown ends it with a stop event, a
crash with nothing. (MYSQL_BIN_LOG::open_binlog, new_file_impl, close; byte by byte as in relay logs
of real 5.6.24, 5.7.29 and 9.7.4.)
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from applier.binlog.event_bytes import format_body, make_event, rotate_body
from applier.binlog.header import MAGIC, EventFlag, EventType
from applier.error_codes import Code
from applier.errors import InputError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.relay.relay_index import RelayLogIndex
from checkpoints.disk import Disk, DiskFile, plain
from checkpoints.gtid import GtidSet
from checkpoints.position import Position
from checkpoints.sync_rules import Occasion, RecordStorage, Subject, SyncCounter

Clock = Callable[[], int]
"""Seconds since 1970."""


def system_clock() -> int:
    """Whole seconds since 1970."""
    return int(time.time())


@dataclass(frozen=True, slots=True)
class Written:
    """What one append did."""

    start: Position
    end: Position


class RelayLogWriter:
    """The relay logs of one channel. `retrieved` is asked for at the head of each new file.

    `checksum` says whether events of our own, and so the file, have one: as the source's, once its
    format description came. Everything goes through `disk`; whatever fails raises OSError and
    leaves the file as it is.
    """

    def __init__(
        self,
        disk: Disk,
        configuration: ReplicaConfiguration,
        *,
        clock: Clock = system_clock,
        retrieved: Callable[[], GtidSet] = GtidSet,
    ) -> None:
        self.configuration = configuration
        self.checksum = configuration.relay_log_checksum
        self.retrieved = retrieved
        self._disk = disk
        self._clock = clock
        channel = f"-{configuration.channel.lower()}" if configuration.channel else ""
        self._base = f"{configuration.relay_log}{channel}"
        self.index = RelayLogIndex(
            disk, self._base, normalizes=configuration.rules.normalizes_names
        )
        self.counter: SyncCounter = configuration.sync.counter(
            Subject.RELAY_LOG, RecordStorage.FILE, configuration.version
        )
        self._file: DiskFile | None = None
        self.name = ""
        """The file that is written, as the index names it; "" before the first."""
        self.size = 0
        """Its bytes."""

    @property
    def position(self) -> Position:
        """The end of what is written."""
        return Position(self.name, self.size)

    @property
    def max_size(self) -> int:
        """Bytes from which on a new file is begun: max_relay_log_size, or a gigabyte where that is
        0 (max_binlog_size)."""
        return self.configuration.max_relay_log_size or 1 << 30

    def open(self) -> None:
        """Server start: reads the index and begins a new file; the old ones stay."""
        self.index.open()
        self.begin_file(at_start=True)

    def begin_file(
        self, source_format: bytes | None = None, *, at_start: bool = False, created: bool = False
    ) -> None:
        """A new file, in the index once its head is on disk. `source_format` is the source's format
        description, made artificial; `at_start` says that it is a server's start, `created` that it
        is the first of all: it tells when that was.
        """
        configuration, rules = self.configuration, self.configuration.rules
        name = self._next_name()
        self.index.register([name])
        file = self._disk.open(name, create=True)
        head = MAGIC + self._own(
            EventType.FORMAT_DESCRIPTION,
            format_body(
                configuration.server_version or "",
                rules.post_header_lengths,
                created=self._clock() if created else 0,
                checksum=int(self.checksum),
            ),
            at=len(MAGIC),
            flags=EventFlag.RELAY_LOG,
            checksum=True,
        )
        if (rules.previous_gtids or configuration.gtid_mode) and (
            rules.previous_gtids_at_start or not at_start
        ):
            head += self._own(
                EventType.PREVIOUS_GTIDS,
                self.retrieved().encode(),
                at=len(head),
                flags=rules.previous_gtids_flags,
            )
        head += source_format or b""
        file.write(0, head)
        if self.counter.flush(Occasion.OPEN).syncs:
            file.fsync()
        if self._file is not None:
            self._file.close()
        self._file, self.name, self.size = file, name, len(head)
        self.index.add(name)

    def append(self, data: bytes | memoryview, events: int = 1) -> Written:
        """Writes one event as it is, or several at once. Does not rotate; the caller knows whether
        a transaction is open."""
        file = self._open_file()
        start = self.position
        done = self.counter.flush(Occasion.EVENT, events)
        file.write(self.size, data)
        self.size += len(data)
        if done.syncs:
            file.fsync()
        return Written(start, self.position)

    def append_pieces(self, pieces: Iterable[bytes | memoryview]) -> Written:
        """Writes one event piece by piece. Where an error ends them, none of them stays."""
        file, start, end = self._open_file(), self.position, self.size
        try:
            for piece in pieces:
                file.write(end, piece)
                end += len(piece)
        except BaseException:
            file.truncate(self.size)
            raise
        self.size = end
        if self.counter.flush(Occasion.EVENT).syncs:
            file.fsync()
        return Written(start, self.position)

    def sync(self) -> None:
        """Makes all that was written durable, so that a crash can only damage the newest file."""
        self._open_file().fsync()

    def append_position(self, source: Position) -> Written:
        """A rotate event of server id 0 for what is not written but moves the position: the applier
        takes the position from it."""
        knows = self.configuration.rules.rotates_know_their_place
        body = rotate_body(source.file, source.offset)
        data = self._own(
            EventType.ROTATE, body, at=self.size if knows else None, flags=0, server_id=0
        )
        return self.append(data)

    def append_own_format(self) -> Written:
        """A format description of the replica's own in the middle of a file, with the flag of a
        file that was not closed."""
        configuration = self.configuration
        data = self._own(
            EventType.FORMAT_DESCRIPTION,
            format_body(
                configuration.server_version or "",
                configuration.rules.post_header_lengths,
                checksum=int(self.checksum),
            ),
            at=self.size,
            flags=EventFlag.IN_USE,
            checksum=True,
        )
        return self.append(data)

    def rotate(self, source_format: bytes | None = None) -> None:
        """Ends the file with a rotate event that names the next one, and begins that."""
        following = plain(self._next_name())
        flags = EventFlag.RELAY_LOG
        self._finish(
            self._own(
                EventType.ROTATE, rotate_body(following, len(MAGIC)), at=self.size, flags=flags
            )
        )
        self.begin_file(source_format)

    def too_long(self) -> bool:
        """Whether max_relay_log_size asks for a new file."""
        return self.size > self.max_size

    def close(self) -> None:
        """Clean shutdown: a stop event ends the file."""
        if self._file is not None:
            self._finish(self._own(EventType.STOP, b"", at=self.size, flags=0))
            self._file.close()
            self._file, self.name, self.size = None, "", 0

    def purge_before(self, name: str) -> list[str]:
        """Deletes the files older than `name`, which must be in the index. Returns what went."""
        return self.index.remove_before(name)

    def total_size(self) -> int:
        """Bytes of all relay logs, which relay_log_space_limit is about."""
        total = 0
        for name in self.index.names:
            if name == self.name:
                total += self.size
                continue
            file = self._disk.open(name)
            total += file.size()
            file.close()
        return total

    def reset(self) -> None:
        """RESET REPLICA: all files go; a first one begins and is closed."""
        self.begin_anew()
        self.close()

    def begin_anew(self) -> None:
        """All files go, and a first one begins."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self.index.clear()
        self.index.open()
        self.begin_file(created=True)

    def _finish(self, data: bytes) -> None:
        file = self._open_file()
        file.write(self.size, data)
        self.size += len(data)
        if self.counter.flush(Occasion.CLOSE).syncs:
            file.fsync()

    def _open_file(self) -> DiskFile:
        if self._file is None:
            raise InputError(
                "no relay log is open",
                code=Code.WRONG_MOMENT,
                hint="call open() first: it is a server's start",
            )
        return self._file

    def _next_name(self) -> str:
        """One more than the highest number there is, in the index or not (find_uniq_filename)."""
        pattern = re.compile(re.escape(self._base) + r"\.(\d+)")
        numbers = [
            int(found[1]) for name in self._disk.names() if (found := pattern.fullmatch(name))
        ]
        return f"./{self._base}.{max(numbers, default=0) + 1:06d}"

    def _own(
        self,
        type_code: EventType,
        body: bytes,
        *,
        at: int | None,
        flags: int,
        server_id: int | None = None,
        checksum: bool | None = None,
    ) -> bytes:
        """An event of the replica; `at` is where it will stand, None when its log_pos is to be
        0."""
        checked = self.checksum if checksum is None else checksum
        length = 19 + len(body) + (4 if checked else 0)
        return make_event(
            type_code,
            body,
            timestamp=self._clock(),
            server_id=self.configuration.server_id if server_id is None else server_id,
            log_pos=0 if at is None else at + length,
            flags=flags,
            checksum=checked,
        )
