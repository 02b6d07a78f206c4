"""Binary logs and relay logs as a stream of events: several files in order, checksums verified, lengths checked.

The loop touches only headers; bodies are parsed when somebody asks. A file is mapped, not read, so its size does not
matter. Compressed transactions are handed out after their payload event, decompressed one event at a time.
"""

from __future__ import annotations

import mmap
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from applier.binlog.header import (
    CHECKSUM_LENGTH,
    COMPRESSED,
    ENCRYPTED_MAGIC,
    HEADER,
    HEADER_LENGTH,
    KNOWN_TYPES,
    MAGIC,
    Event,
    EventFlag,
    EventType,
    FormatDescription,
    parse_format_description,
)
from applier.binlog.payload import compressed_start, decompress_event, payload_events
from applier.errors import InputError

PLAIN_TYPES = KNOWN_TYPES - {
    EventType.FORMAT_DESCRIPTION,
    EventType.TRANSACTION_PAYLOAD,
    EventType.START_ENCRYPTION,
    EventType.PRE_GA_WRITE_ROWS,
    EventType.PRE_GA_UPDATE_ROWS,
    EventType.PRE_GA_DELETE_ROWS,
    *COMPRESSED,
}
"""Types that need nothing from the reader but their header."""


class LogReader:
    """Iterates over the events of `paths`. `format` is the format description that governs the event handed out last.

    `start_position` counts in the first file, `stop_position` in the last (the event that starts there is not read).
    Raises InputError naming file and position.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        verify_checksum: bool = True,
        start_position: int | None = None,
        stop_position: int | None = None,
    ) -> None:
        if not paths:
            raise InputError("no binary log was given", hint="name at least one file")
        self.paths = [Path(path) for path in paths]
        self.verify_checksum = verify_checksum
        self.start_position = start_position
        self.stop_position = stop_position
        self.format: FormatDescription | None = None
        self.position = 0
        """Offset behind the event handed out last."""

    def __iter__(self) -> Iterator[Event]:
        previous: _FileEnd | None = None
        for number, path in enumerate(self.paths):
            buffer = open_log(path)
            first, last = number == 0, number == len(self.paths) - 1
            end = _FileEnd(path)
            start = self.start_position if first else None
            stop = self.stop_position if last else None
            for event in self._read_file(path.name, buffer, start, stop):
                if event.type == EventType.FORMAT_DESCRIPTION and end.server_id is None:
                    end.server_id = event.server_id
                    if previous is not None:
                        previous.check_next(end)
                if event.inner_index < 0:
                    end.last = event
                yield event
            previous = end

    def _read_file(self, name: str, buffer: bytes, start: int | None, stop: int | None) -> Iterator[Event]:
        self.format = None
        self.position = len(MAGIC)
        limit = len(buffer) if stop is None else min(stop, len(buffer))
        jump = start if start is not None and start > len(MAGIC) else None
        try:
            for event in self._events(name, buffer, limit, jump):
                yield event
                if event.type == EventType.TRANSACTION_PAYLOAD:
                    yield from payload_events(event)
        except InputError as error:
            error.locate(file=name, position=self.position)
            raise

    def _events(self, name: str, buffer: bytes, limit: int, jump: int | None) -> Iterator[Event]:
        """The loop. `jump`: where to go on after the format description."""
        view = memoryview(buffer)
        unpack, crc32, size = HEADER.unpack_from, zlib.crc32, len(buffer)
        position = self.position
        trailer = 0
        header_length = HEADER_LENGTH
        while position < limit:
            self.position = position
            if position + HEADER_LENGTH > size:
                raise InputError("the file ends in the middle of an event header", hint=TRUNCATED_HINT)
            timestamp, type_code, server_id, length, log_pos, flags = unpack(buffer, position)
            end = position + length
            if length < HEADER_LENGTH:
                raise InputError(f"an event claims a length of {length} bytes", hint=CORRUPT_HINT)
            if end > size:
                raise InputError(
                    f"the file ends in the middle of a {_type_name(type_code)} event of {length} bytes", hint=TRUNCATED_HINT
                )
            event = Event(
                name, position, type_code, timestamp, server_id, length, log_pos, flags, buffer, position + header_length, end - trailer
            )
            if type_code == EventType.FORMAT_DESCRIPTION:
                self.format = self._format(event, view)
                trailer, header_length = self.format.checksum_length, self.format.header_length
            elif self.format is None:
                raise InputError(f"a {event.name} event stands before the format description event", hint=CORRUPT_HINT)
            elif trailer:
                if event.end < event.body:
                    raise InputError(f"a {event.name} event of {length} bytes has no room for its checksum", hint=CORRUPT_HINT)
                if self.verify_checksum and crc32(view[position : event.end]) != int.from_bytes(buffer[event.end : end], "little"):
                    raise InputError(f"the checksum of a {event.name} event is wrong", hint=CORRUPT_HINT)
            if type_code not in PLAIN_TYPES:
                self._special(event)
            yield event
            position = end
            if jump is not None and self.format is not None:
                position, jump = jump, None
        self.position = position

    def _format(self, event: Event, view: memoryview) -> FormatDescription:
        body = event.buffer[event.position + HEADER_LENGTH : event.position + event.length]
        format_description = parse_format_description(body)
        event.body = event.position + HEADER_LENGTH
        event.end = event.position + event.length - (0 if format_description.checksum is None else CHECKSUM_LENGTH)
        if format_description.checksum is not None and self.verify_checksum:
            head = bytearray(view[event.position : event.end])
            head[17] &= ~EventFlag.IN_USE & 0xFF
            if zlib.crc32(head) != int.from_bytes(body[-CHECKSUM_LENGTH:], "little"):
                raise InputError("the checksum of the format description event is wrong", hint=CORRUPT_HINT)
        return format_description

    def _special(self, event: Event) -> None:
        """Types that are refused, or that carry compressed content."""
        assert self.format is not None
        if event.type in COMPRESSED:
            decompress_event(event, compressed_start(event, self.format.post_header_length(event.type)))
        elif event.type == EventType.START_ENCRYPTION:
            raise InputError("the log is encrypted (MariaDB)", hint="decrypt it, e.g. mysqlbinlog --read-from-remote-server --raw")
        elif event.type in (EventType.PRE_GA_WRITE_ROWS, EventType.PRE_GA_UPDATE_ROWS, EventType.PRE_GA_DELETE_ROWS):
            raise InputError("rows events of MySQL 5.1 before its release (pre-GA) are not supported")
        elif event.type not in KNOWN_TYPES and not event.flags & EventFlag.IGNORABLE:
            raise InputError(f"unknown event type {event.type}", hint=CORRUPT_HINT)


TRUNCATED_HINT = "copy the file again, or stop before this position with --stop-position"
CORRUPT_HINT = "the file is damaged or no binary log; copy it again"


class _FileEnd:
    """What the end of one file says about the next."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.server_id: int | None = None
        self.last: Event | None = None

    def check_next(self, following: _FileEnd) -> None:
        """Raises InputError when the next file is not the one that comes after this."""
        expected = self._expected_name()
        if expected is not None and expected != following.path.name:
            raise InputError(
                f"{self.path.name} is followed by {expected} in the log, not by {following.path.name}",
                file=following.path.name,
                position=len(MAGIC),
                hint="give the files in order and without a gap",
            )
        if self.server_id != following.server_id:
            raise InputError(
                f"{following.path.name} was written by server id {following.server_id}, {self.path.name} by {self.server_id}",
                file=following.path.name,
                position=len(MAGIC),
                hint="replay logs of different servers one by one",
            )

    def _expected_name(self) -> str | None:
        last = self.last
        if last is not None and last.type == EventType.ROTATE and not last.flags & EventFlag.ARTIFICIAL:
            return os.path.basename(last.data[8:].decode("utf-8", "surrogateescape"))
        match = re.fullmatch(r"(.*\.)(\d+)", self.path.name)
        if match is None:
            return None
        return f"{match[1]}{int(match[2]) + 1:0{len(match[2])}d}"


def open_log(path: Path) -> bytes:
    """The content of a log file, mapped into memory. Raises InputError for anything but a plain binary log."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
            if not magic:
                raise InputError("the file is empty", file=str(path))
            if magic == ENCRYPTED_MAGIC:
                raise InputError(
                    "the log is encrypted (binlog_encryption)",
                    file=str(path),
                    hint="fetch it decrypted: mysqlbinlog --read-from-remote-server --raw",
                )
            if magic != MAGIC:
                raise InputError("not a binary log: it does not start with fe 62 69 6e", file=str(path), position=0)
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # type: ignore[return-value]
    except OSError as error:
        raise InputError(f"cannot read the file: {error.strerror}", file=str(path)) from None


def read_events(
    paths: Sequence[str | os.PathLike[str]],
    *,
    verify_checksum: bool = True,
    start_position: int | None = None,
    stop_position: int | None = None,
) -> Iterator[Event]:
    """The events of `paths` in order; see LogReader."""
    return iter(
        LogReader(paths, verify_checksum=verify_checksum, start_position=start_position, stop_position=stop_position)
    )


def _type_name(type_code: int) -> str:
    from applier.binlog.header import SERVER_NAMES

    return SERVER_NAMES.get(type_code, f"type {type_code}")
