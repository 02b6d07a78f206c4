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
from pathlib import Path, PurePath

from applier.binlog.header import (
    CHECKSUM_LENGTH,
    COMPRESSED,
    ENCRYPTED_MAGIC,
    HEADER,
    HEADER_LENGTH,
    KNOWN_TYPES,
    MAGIC,
    SERVER_NAMES,
    Event,
    EventFlag,
    EventType,
    FormatDescription,
    parse_format_description,
)
from applier.binlog.payload import compressed_start, decompress_event, payload_events
from applier.error_codes import Code
from applier.errors import InputError
from checkpoints.gtid import GtidError, GtidSet

PLAIN_TYPES = KNOWN_TYPES - {
    EventType.FORMAT_DESCRIPTION,
    EventType.PREVIOUS_GTIDS,
    EventType.TRANSACTION_PAYLOAD,
    EventType.START_ENCRYPTION,
    EventType.PRE_GA_WRITE_ROWS,
    EventType.PRE_GA_UPDATE_ROWS,
    EventType.PRE_GA_DELETE_ROWS,
    *COMPRESSED,
}
"""Types that need nothing from the reader but their header."""
FRAME_TYPES = frozenset(
    {EventType.FORMAT_DESCRIPTION, EventType.PREVIOUS_GTIDS, EventType.ROTATE, EventType.GTID_LIST, EventType.BINLOG_CHECKPOINT}
)
"""What stands at the head of a file. A relay log has the source's format description there, behind its own."""
CRC_RESIDUE = 0x2144DF1C
"""The CRC32 of any bytes followed by their own CRC32, little-endian."""


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
            raise InputError("no binary log was given", code=Code.NOTHING_TO_READ, hint="name at least one file")
        self.paths = [Path(path) for path in paths]
        self.verify_checksum = verify_checksum
        self.start_position = start_position
        self.stop_position = stop_position
        self.format: FormatDescription | None = None
        self.position = 0
        """Offset behind the event handed out last."""

    def __iter__(self) -> Iterator[Event]:
        previous: _FileEnd | None = None
        for number, path in enumerate(self._files()):
            file = _FileEnd(path, previous)
            start = self.start_position if number == 0 else None
            self.format = None
            self.position = len(MAGIC)
            try:
                for buffer, limit in self._pieces(number, path):
                    yield from self._events(file, buffer, limit, start or 0)
            except InputError as error:
                if error.file is None:
                    error.locate(file=path.name, position=self.position)
                raise
            previous = file

    def _files(self) -> Iterator[Path]:
        return iter(self.paths)

    def _pieces(self, number: int, path: Path) -> Iterator[tuple[bytes, int]]:
        """The file as it is now, and how far to read in it: once, or again and again while it grows."""
        buffer = open_log(path)
        if number == 0 and self.start_position is not None and self.start_position > len(buffer):
            raise InputError(
                f"the start position {self.start_position} lies behind the end of the file, {len(buffer)}", code=Code.START_BEYOND_END
            )
        stop = self.stop_position if number == len(self.paths) - 1 else None
        yield buffer, len(buffer) if stop is None else min(stop, len(buffer))

    def _events(self, file: _FileEnd, buffer: bytes, limit: int, start: int) -> Iterator[Event]:
        """The loop over one file, from `self.position` on. What it does per event is the floor under all else: keep it short."""
        name, view, unpack, crc32, size = file.path.name, memoryview(buffer), HEADER.unpack_from, zlib.crc32, len(buffer)
        plain, trailer, header_length, verify = self._layout()
        shortest = header_length + trailer
        position, event = self.position, file.last
        while position < limit:
            if position + HEADER_LENGTH > size:
                self.position = position
                raise InputError("the file ends in the middle of an event header", code=Code.CUT_OFF, hint=TRUNCATED_HINT)
            header = unpack(buffer, position)
            type_code, length = header[1], header[3]
            end = position + length
            if length < shortest or end > size:
                self.position = position
                raise _bad_length(type_code, length, shortest, at_start=position == start)
            if start and position < start and type_code not in FRAME_TYPES and plain:
                position = start
                continue
            event = Event(name, position, header, buffer, position + header_length, end - trailer)
            if verify and type_code in plain and crc32(view[position:end]) != CRC_RESIDUE:
                self.position = position
                raise InputError(f"the checksum of a {event.name} event is wrong", code=Code.CHECKSUM, hint=_corrupt_hint(position, start))
            self.position = end
            if type_code in plain:
                if position >= start:
                    yield event
            else:
                self.position = position
                if type_code == EventType.FORMAT_DESCRIPTION:
                    self.format = self._format(event, view)
                    plain, trailer, header_length, verify = self._layout()
                    shortest = header_length + trailer
                elif verify and crc32(view[position:end]) != CRC_RESIDUE:
                    raise InputError(
                        f"the checksum of a {event.name} event is wrong", code=Code.CHECKSUM, hint=_corrupt_hint(position, start)
                    )
                self._special(event, file, _corrupt_hint(position, start))
                if position >= start or type_code == EventType.FORMAT_DESCRIPTION:
                    self.position = end
                    yield event
                if type_code == EventType.TRANSACTION_PAYLOAD:
                    self.position = position
                    yield from payload_events(event)
                    self.position = end
            position = end
        self.position = position
        file.last = event

    def _layout(self) -> tuple[frozenset[int], int, int, bool]:
        """What the format description says: types that need only their header, bytes of checksum and header, and whether to verify."""
        if self.format is None:
            return frozenset(), 0, HEADER_LENGTH, False
        trailer = self.format.checksum_length
        return PLAIN_TYPES, trailer, self.format.header_length, self.verify_checksum and trailer > 0

    def _format(self, event: Event, view: memoryview) -> FormatDescription:
        body = event.buffer[event.position + HEADER_LENGTH : event.position + event.length]
        format_description = parse_format_description(body)
        event.body = event.position + HEADER_LENGTH
        event.end = event.position + event.length - (0 if format_description.checksum is None else CHECKSUM_LENGTH)
        if format_description.checksum is not None and self.verify_checksum:
            head = bytearray(view[event.position : event.end])
            head[17] &= ~EventFlag.IN_USE & 0xFF
            if zlib.crc32(head) != int.from_bytes(body[-CHECKSUM_LENGTH:], "little"):
                raise InputError("the checksum of the format description event is wrong", code=Code.CHECKSUM, hint=CORRUPT_HINT)
        return format_description

    def _special(self, event: Event, file: _FileEnd, hint: str) -> None:
        """Types that are refused, that say something about the file, or that carry compressed content."""
        type_code = event.type
        if self.format is None:
            raise InputError(f"a {event.name} event stands before the format description event", code=Code.BAD_FORMAT, hint=CORRUPT_HINT)
        if type_code in COMPRESSED:
            decompress_event(event, compressed_start(event, self.format.post_header_length(type_code)))
        elif type_code == EventType.FORMAT_DESCRIPTION:
            file.check_server(event)
        elif type_code == EventType.PREVIOUS_GTIDS:
            file.check_gtids(event)
        elif type_code == EventType.START_ENCRYPTION:
            raise InputError(
                "the log is encrypted (MariaDB)", code=Code.ENCRYPTED, hint="decrypt it, e.g. mysqlbinlog --read-from-remote-server --raw"
            )
        elif type_code in (EventType.PRE_GA_WRITE_ROWS, EventType.PRE_GA_UPDATE_ROWS, EventType.PRE_GA_DELETE_ROWS):
            raise InputError("rows events of MySQL 5.1 before its release (pre-GA) are not supported", code=Code.UNKNOWN_FORMAT)
        elif type_code not in KNOWN_TYPES and not event.flags & EventFlag.IGNORABLE:
            raise InputError(f"unknown event type {type_code}", code=Code.BAD_HEADER, hint=hint)


TRUNCATED_HINT = "copy the file again, or stop before this position with --stop-position"
CORRUPT_HINT = "the file is damaged or no binary log; copy it again"
START_HINT = "the start position is not the start of an event; `binlag events` shows the positions"


def _corrupt_hint(position: int, start: int) -> str:
    return START_HINT if position == start else CORRUPT_HINT


def _bad_length(type_code: int, length: int, shortest: int, *, at_start: bool) -> InputError:
    name = SERVER_NAMES.get(type_code, f"type {type_code}")
    if length < shortest:
        return InputError(
            f"a {name} event claims a length of {length} bytes", code=Code.BAD_HEADER, hint=START_HINT if at_start else CORRUPT_HINT
        )
    hint = START_HINT if at_start else TRUNCATED_HINT
    return InputError(f"the file ends in the middle of a {name} event of {length} bytes", code=Code.CUT_OFF, hint=hint)


class _FileEnd:
    """What one file says about the next, and whether it follows the one before."""

    def __init__(self, path: Path, previous: _FileEnd | None) -> None:
        self.path = path
        self.previous = previous
        self.server_id: int | None = None
        self.gtids: GtidSet | None = None
        self.last: Event | None = None

    def check_server(self, description: Event) -> None:
        """Looks at the first format description of the file. Raises InputError when the file is not the next one."""
        if self.server_id is not None:
            return
        self.server_id, before = description.server_id, self.previous
        if before is None:
            return
        expected = before._expected_name()
        if expected is not None and expected != self.path.name:
            raise self._foreign(f"{before.path.name} is followed by {expected} in the log, not by {self.path.name}")
        if before.server_id != self.server_id:
            raise self._foreign(f"{self.path.name} was written by server id {self.server_id}, {before.path.name} by {before.server_id}")
        before.previous = None

    def check_gtids(self, event: Event) -> None:
        """The set of previous GTIDs only grows from file to file. (A relay log's is what was received: recovery empties it.)"""
        if self.gtids is not None or event.flags & EventFlag.RELAY_LOG:
            return
        try:
            self.gtids = GtidSet.decode(event.data)
        except GtidError as error:
            raise InputError(f"the set of previous GTIDs cannot be read: {error}", code=Code.BAD_EVENT) from None
        before = self.previous.gtids if self.previous is not None else None
        if before is not None and not before.issubset(self.gtids):
            raise self._foreign(f"{self.path.name} does not know the transactions {before.subtract(self.gtids)} from before")

    def _foreign(self, message: str) -> InputError:
        hint = "give the files of one server in order and without a gap"
        return InputError(message, code=Code.BAD_FORMAT, file=self.path.name, position=len(MAGIC), hint=hint)

    def _expected_name(self) -> str | None:
        last = self.last
        own = last is not None and last.server_id == self.server_id  # a relay log also holds the source's rotate events
        if last is not None and own and last.type == EventType.ROTATE and not last.flags & EventFlag.ARTIFICIAL:
            return PurePath(last.data[8:].decode("utf-8", "surrogateescape")).name
        match = re.fullmatch(r"(.*\.)(\d+)", self.path.name)
        if match is None:
            return None
        return f"{match[1]}{int(match[2]) + 1:0{len(match[2])}d}"


def open_log(path: Path, size: int = 0) -> bytes:
    """The content of a log file, or its first `size` bytes, mapped into memory. Raises InputError for anything but a plain binary log."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
            if not magic:
                raise InputError("the file is empty", code=Code.NOT_A_LOG, file=str(path))
            if magic == ENCRYPTED_MAGIC:
                raise InputError(
                    "the log is encrypted (binlog_encryption)",
                    code=Code.ENCRYPTED,
                    file=str(path),
                    hint="fetch it decrypted: mysqlbinlog --read-from-remote-server --raw",
                )
            if magic != MAGIC:
                raise InputError("not a binary log: it does not start with fe 62 69 6e", code=Code.NOT_A_LOG, file=str(path), position=0)
            return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)  # type: ignore[return-value]
    except OSError as error:
        raise InputError(f"cannot read the file: {error.strerror}", code=Code.CANNOT_READ, file=str(path)) from None


def read_events(
    paths: Sequence[str | os.PathLike[str]],
    *,
    verify_checksum: bool = True,
    start_position: int | None = None,
    stop_position: int | None = None,
) -> Iterator[Event]:
    """The events of `paths` in order; see LogReader."""
    return iter(LogReader(paths, verify_checksum=verify_checksum, start_position=start_position, stop_position=stop_position))
