"""The source as the replica sees it: binary logs that are dumped event by event.

A dump begins with a rotate event that is not in the log (timestamp 0, ARTIFICIAL) and names where
it starts; the format description follows, without a position when the start is behind it. After the
last event of a file the rotate event of the log itself goes over, then an artificial one for the
next file, which up to 5.7 has a timestamp: the moment it was sent; here, that of the last event
(Binlog_sender::run, 5.7 to 9.7). With auto-position what the replica has is left out
(Binlog_sender::skip_event), and a heartbeat tells how far that went.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from applier.binlog.event_bytes import (
    event_of,
    has_checksum,
    head_of,
    make_event,
    rotate_body,
    rotate_target,
)
from applier.binlog.events import parse
from applier.binlog.follow import LogFiles, log_files
from applier.binlog.gtid_events import Gtid
from applier.binlog.header import (
    CHECKSUM_LENGTH,
    GTID_TYPES,
    HEADER_LENGTH,
    MAGIC,
    EventFlag,
    EventType,
    FormatDescription,
    parse_format_description,
    version_number,
)
from applier.binlog.reader import check_magic
from applier.binlog.selection.filters import holds
from applier.error_codes import Code
from applier.errors import ReplicationError, UsageError, cannot_read
from applier.replica.domain_dump import (
    DomainSkip,
    Log,
    beginning,
    sender,
    state_at,
)
from applier.sources import log_name, open_source
from checkpoints.gtid import GtidSet, MariadbGtidSet

_FATAL = "Got fatal error 1236 from source when reading data from binary log: "
NO_SUCH_LOG = _FATAL + "'Could not find first log file name in binary log index file'"
PURGED = (
    _FATAL
    + "'Cannot replicate because the source purged required binary logs. The missing transactions"
    " are {missing!r}'"
)
BEHIND = _FATAL + "'Client requested source to start replication from position > file size'"
BEFORE = _FATAL + "'Client requested source to start replication from position < 4'"
INSIDE = _FATAL + "'bogus data in log event'"


class Source(Protocol):
    """Who is replicated. Every item of a dump is one whole event, checksum included; an empty one
    says that there is nothing more for now, and the next may be asked for at any later time. A dump
    that ends is a connection that was closed.
    """

    @property
    def uuid(self) -> str:
        """server_uuid."""

    @property
    def server_id(self) -> int:
        """server_id."""

    def dump(self, file: str, position: int) -> Iterator[bytes]:
        """From a position on; file "" means the first log. Raises ReplicationError 1236 when it is
        not there."""
        ...

    def dump_gtids(self, received: GtidSet) -> Iterator[bytes]:
        """Everything but `received`. Raises ReplicationError 1236 when some of it was purged."""
        ...

    def dump_domains(self, position: MariadbGtidSet) -> Iterator[bytes]:
        """MariaDB: everything behind the last transaction of each domain. Raises ReplicationError
        1236 when it does not have that one, or not all behind it."""
        ...

    def domains_at(self, file: str, position: int) -> MariadbGtidSet:
        """MariaDB: the last transaction of each domain up to a place in its log
        (BINLOG_GTID_POS)."""
        ...


def first_log(source: Source) -> str:
    """The name of a source's first log, as a user would look it up. Raises UsageError where nobody
    knows it."""
    files = getattr(source, "files", None)
    if not files:
        raise UsageError(
            "where the source's log is to be read from is not known",
            code=Code.OPTION_MISSING,
            hint="give start_at, or use auto_position",
        )
    return str(next(iter(files)))


class BinlogFiles:
    """A source made of binary log files: name -> content, oldest first. More may be appended while
    a dump goes on. Implements `Source`."""

    def __init__(
        self, files: Mapping[str, bytes], *, uuid: str = "", server_id: int | None = None
    ) -> None:
        self.files = dict(files)
        for name, content in self.files.items():
            check_magic(content[: len(MAGIC)], Path(name))
        self._uuid = uuid
        self._server_id = server_id

    @classmethod
    def read(cls, paths: LogFiles, *, uuid: str = "") -> BinlogFiles:
        """Logs as every command takes them: compressed, a folder with its index, standard input.

        Raises InputError for one that cannot be read.
        """
        files: dict[str, bytes] = {}
        for path in log_files(paths):
            try:
                with open_source(path) as file:
                    files[log_name(path)] = file.read()
            except OSError as error:
                raise cannot_read(error) from None
        return cls(files, uuid=uuid)

    @property
    def uuid(self) -> str:
        return self._uuid

    @property
    def server_id(self) -> int:
        """That of the first format description when none was given."""
        if self._server_id is None:
            first = next(iter(self.files.values()), b"")
            self._server_id = (
                int.from_bytes(first[9:13], "little") if len(first) > HEADER_LENGTH else 0
            )
        return self._server_id

    def end(self) -> tuple[str, int]:
        """The end of the last file: file, position."""
        name = list(self.files)[-1]
        return name, len(self.files[name])

    def dump(self, file: str, position: int) -> Iterator[bytes]:
        names = list(self.files)
        if file and file not in names and file == self._announced():
            yield from itertools.takewhile(lambda _: file not in self.files, itertools.repeat(b""))
            names = list(self.files)
        if file and file not in names:
            raise ReplicationError(
                1236, NO_SUCH_LOG, file=file, hint=f"the source has {_span(names)}"
            )
        if file and position > len(self.files[file]):
            raise ReplicationError(
                1236,
                BEHIND,
                file=file,
                position=position,
                hint="the source lost the end of its log in a crash",
            )
        if file and position < len(MAGIC):
            raise ReplicationError(
                1236, BEFORE, file=file, hint="give a position with CHANGE REPLICATION SOURCE TO"
            )
        yield from self._from(file or names[0], max(position, len(MAGIC)), None)

    def dump_gtids(self, received: GtidSet) -> Iterator[bytes]:
        names = list(self.files)
        before = {name: _previous_gtids(self.files[name], name) for name in names}
        start = next((name for name in reversed(names) if before[name].issubset(received)), None)
        if start is None:
            missing = str(before[names[0]].subtract(received))
            raise ReplicationError(
                1236,
                PURGED.format(missing=missing),
                file=names[0],
                hint="set the replica up again from a backup",
            )
        yield from self._from(start, len(MAGIC), received)

    def dump_domains(self, position: MariadbGtidSet) -> Iterator[bytes]:
        logs = {name: self._log(name) for name in self.files}
        start, left = beginning(logs, position)
        skip = DomainSkip(left)
        yield from self._from(start, len(MAGIC), None, skip)

    def domains_at(self, file: str, position: int) -> MariadbGtidSet:
        name = file or next(iter(self.files))
        if name not in self.files:
            return MariadbGtidSet()
        return state_at(self._log(name), name, position).position()

    def _log(self, name: str) -> Log:
        return self.files[name], format_of(self.files[name], name)

    def _from(
        self, start: str, position: int, skip: GtidSet | None, domains: DomainSkip | None = None
    ) -> Iterator[bytes]:
        timestamp = 0
        name: str | None = start
        while name is not None:
            format_event, description = format_event_of(self.files[name], name)
            checksum = description.checksum == 1
            yield make_event(
                EventType.ROTATE,
                rotate_body(name, position),
                timestamp=timestamp,
                server_id=self.server_id,
                flags=EventFlag.ARTIFICIAL,
                checksum=checksum,
            )
            yield _sent_format(
                format_event, from_the_middle=position > len(MAGIC), checksum=checksum
            )
            first = max(position, len(MAGIC) + len(format_event))
            if domains is None:
                last = yield from self._events(name, first, description, skip)
            else:
                last = yield from self._events_of_domains(name, first, description, domains)
            is_old = version_number(description.server_version) < 80000 or description.is_mariadb
            timestamp = last if is_old else 0
            name, position = self._following(name), len(MAGIC)

    def _events(
        self, name: str, position: int, description: FormatDescription, skip: GtidSet | None
    ) -> Generator[bytes, None, int]:
        """The events of one file from a position on, until there is a next one; returns the
        timestamp of the last event."""
        timestamp, skipping, skipped_to = 0, False, 0
        while position < len(self.files[name]) or self._following(name) is None:
            if position >= len(self.files[name]):
                yield self._heartbeat(name, skipped_to, description) if skipped_to else b""
                skipped_to = 0
                continue
            data = _event_at(self.files[name], position, name)
            head = head_of(data)
            if skip is not None and head.type in GTID_TYPES:
                gtid = parse(
                    event_of(
                        data,
                        file=name,
                        position=position,
                        checksum_length=description.checksum_length,
                    ),
                    description,
                )
                skipping = isinstance(gtid, Gtid) and holds(skip, gtid)
            elif head.type == EventType.ROTATE:
                skipping = False
            position += len(data)
            timestamp = head.timestamp
            if skipping:
                skipped_to = position
                continue
            if skipped_to:
                yield self._heartbeat(name, skipped_to, description)
                skipped_to = 0
            yield data
        if skipped_to:
            yield self._heartbeat(name, skipped_to, description)
        return timestamp

    def _events_of_domains(
        self, name: str, position: int, description: FormatDescription, skip: DomainSkip
    ) -> Generator[bytes, None, int]:
        """As `_events`; there are no heartbeats for what is left out."""
        timestamp, send = 0, sender(skip, name, description, self.server_id)
        while position < len(self.files[name]) or self._following(name) is None:
            if position >= len(self.files[name]):
                yield b""
                continue
            data = _event_at(self.files[name], position, name)
            position += len(data)
            timestamp = head_of(data).timestamp
            yield from send(data, position)
        return timestamp

    def _following(self, name: str) -> str | None:
        """The file after this one, when it is there."""
        names = list(self.files)
        at = names.index(name) + 1
        return names[at] if at < len(names) else None

    def _announced(self) -> str | None:
        """The file that the last rotate event names, which may not be there yet."""
        name, content = list(self.files.items())[-1]
        at, last = len(MAGIC), b""
        while at < len(content):
            last = _event_at(content, at, name)
            at += len(last)
        return (
            rotate_target(last, CHECKSUM_LENGTH if has_checksum(last) else 0)[0]
            if last[4:5] == bytes([EventType.ROTATE])
            else None
        )

    def _heartbeat(self, name: str, position: int, description: FormatDescription) -> bytes:
        """A HEARTBEAT event: its log_pos says how far the source has read."""
        checksum = description.checksum == 1
        return make_event(
            EventType.HEARTBEAT,
            name.encode(),
            timestamp=0,
            server_id=self.server_id,
            log_pos=position,
            checksum=checksum,
        )


def _event_at(content: bytes, position: int, name: str) -> bytes:
    length = int.from_bytes(content[position + 9 : position + 13], "little")
    is_cut = position + max(length, HEADER_LENGTH) > len(content)
    if length < HEADER_LENGTH or is_cut:
        raise ReplicationError(
            1236,
            INSIDE,
            file=name,
            position=position,
            hint="the position is not the start of an event",
        )
    return content[position : position + length]


def format_of(content: bytes, name: str) -> FormatDescription:
    """What governs the events of a log. Raises BinlagError where its head cannot be read."""
    return format_event_of(content, name)[1]


def format_event_of(content: bytes, name: str) -> tuple[bytes, FormatDescription]:
    """The format description event of a file, with the flag of an open file cleared as the dump
    does, and its meaning."""
    data = bytearray(_event_at(content, len(MAGIC), name))
    data[17] &= ~EventFlag.IN_USE & 0xFF
    return bytes(data), parse_format_description(bytes(data[HEADER_LENGTH:]))


def _sent_format(data: bytes, *, from_the_middle: bool, checksum: bool) -> bytes:
    """As it goes over: a dump that starts behind it sends it without position and without the
    moment of the server's start. Without binlog_checksum it keeps the log's checksum, which is
    wrong then (Binlog_sender::send_format_description_event; seen of 5.7.29, 9.7.4, MariaDB)."""
    if not from_the_middle:
        return data
    changed = bytearray(data[:-CHECKSUM_LENGTH])
    struct.pack_into("<I", changed, 13, 0)
    struct.pack_into("<I", changed, HEADER_LENGTH + 52, 0)
    old = data[-CHECKSUM_LENGTH:]
    return bytes(changed) + (
        zlib.crc32(bytes(changed)).to_bytes(CHECKSUM_LENGTH, "little") if checksum else old
    )


def _previous_gtids(content: bytes, name: str) -> GtidSet:
    """What was executed before a file began; nothing for a log without GTIDs."""
    description = format_of(content, name)
    position = len(MAGIC)
    while position + HEADER_LENGTH <= len(content):
        data = _event_at(content, position, name)
        if data[4] == EventType.PREVIOUS_GTIDS:
            return GtidSet.decode(data[HEADER_LENGTH : len(data) - description.checksum_length])
        if data[4] not in (EventType.FORMAT_DESCRIPTION, EventType.ROTATE):
            break
        position += len(data)
    return GtidSet()


def _span(names: list[str]) -> str:
    return (
        "no binary logs"
        if not names
        else names[0]
        if len(names) == 1
        else f"{names[0]} to {names[-1]}"
    )
