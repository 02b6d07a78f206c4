"""Binary logs and relay logs as a stream of events: several files in order, checksums verified,
lengths checked.

The loop touches only headers; bodies are parsed when somebody asks. A file is mapped, not read, so
its size does not matter; one on a store or a compressed one is fetched piece by piece. Compressed
transactions are handed out after their payload event, decompressed one event at a time.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Protocol

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
    an_event,
    parse_format_description,
)
from applier.binlog.payload import compressed_start, decompress_event, payload_events
from applier.binlog.spool import Spool, is_spooled
from applier.error_codes import Code
from applier.errors import InputError, cannot_read
from applier.sources import are_listed_in_order, log_name, next_log_name, source_name
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
    {
        EventType.FORMAT_DESCRIPTION,
        EventType.PREVIOUS_GTIDS,
        EventType.ROTATE,
        EventType.GTID_LIST,
        EventType.BINLOG_CHECKPOINT,
    }
)
"""What stands at the head of a file. A relay log has the source's format description there, behind
its own."""
CRC_RESIDUE = 0x2144DF1C
"""The CRC32 of any bytes followed by their own CRC32, little-endian."""


class LogReader:
    """Iterates over the events of `paths`. `format` is the format description that governs the
    event handed out last.

    `start_position` counts in the first file, `stop_position` in the last (the event that starts
    there is not read). `on_cut_off` is told of a file that ends in the middle of an event, and
    reading goes on with the next one. Raises InputError naming file and position.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        verify_checksum: bool = True,
        start_position: int | None = None,
        stop_position: int | None = None,
        on_cut_off: Callable[[InputError], None] | None = None,
    ) -> None:
        if not paths:
            raise InputError(
                "no binary log was given", code=Code.NOTHING_TO_READ, hint="name at least one file"
            )
        self.paths = [Path(path) for path in paths]
        self.verify_checksum = verify_checksum
        self.start_position = start_position
        self.stop_position = stop_position
        self._on_cut_off = on_cut_off
        self.format: FormatDescription | None = None
        self.position = 0
        """Offset behind the event handed out last. A caller that has read further events itself
        moves it behind them."""
        self.limit = 0
        """Where reading of this file ends: no event that starts here or later is handed out."""

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
                    error.locate(file=file.name, position=self.position)
                if self._on_cut_off is None or error.code != Code.CUT_OFF:
                    raise
                self._on_cut_off(error)
            previous = file

    def _files(self) -> Iterator[Path]:
        return iter(self.paths)

    def _pieces(self, number: int, path: Path) -> Iterator[tuple[bytes, int]]:
        """The file as it is now, and how far to read in it: once, or again and again while it grows
        or is fetched."""
        stop = self.stop_position if number == len(self.paths) - 1 else None
        if is_spooled(path):
            yield from self._fetched(number, path, stop)
            return
        buffer = open_log(path)
        self._check_start(number, len(buffer))
        yield buffer, len(buffer) if stop is None else min(stop, len(buffer))

    def _fetched(self, number: int, path: Path, stop: int | None) -> Iterator[tuple[bytes, int]]:
        """A file that is not on this machine, or compressed: piece by piece, as far as it is
        read."""
        with Spool(path) as spool:
            check_magic(spool.mapped(spool.fetch(0, len(MAGIC)))[: len(MAGIC)], path)
            while self.position != spool.size and (stop is None or self.position < stop):
                whole = spool.whole_events(self.position)
                if spool.size is not None:
                    self._check_start(number, spool.size)
                yield spool.mapped(whole), whole if stop is None else min(stop, whole)

    def _check_start(self, number: int, size: int) -> None:
        if number == 0 and self.start_position is not None and self.start_position > size:
            raise InputError(
                f"the start position {self.start_position} lies behind the end of the file, {size}",
                code=Code.START_BEYOND_END,
            )

    def _events(self, file: _FileEnd, buffer: bytes, limit: int, start: int) -> Iterator[Event]:
        """The loop over one file, from `self.position` on. What it does per event is the floor
        under all else: keep it short."""
        name = file.name
        view = memoryview(buffer)
        unpack = HEADER.unpack_from
        crc32 = zlib.crc32
        size = len(buffer)
        plain, trailer, header_length, verify = self._layout()
        shortest = header_length + trailer
        position, event = self.position, file.last
        self.limit = limit
        while position < limit:
            if position + HEADER_LENGTH > size:
                self.position = position
                raise InputError(
                    "the file ends in the middle of an event header",
                    code=Code.CUT_OFF,
                    hint=TRUNCATED_HINT,
                )
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
                raise InputError(
                    f"the checksum of {an_event(event.name)} is wrong",
                    code=Code.CHECKSUM,
                    hint=_corrupt_hint(position, start),
                )
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
                        f"the checksum of {an_event(event.name)} is wrong",
                        code=Code.CHECKSUM,
                        hint=_corrupt_hint(position, start),
                    )
                self._special(event, file, _corrupt_hint(position, start))
                self.position = end
                if position >= start or type_code == EventType.FORMAT_DESCRIPTION:
                    yield event
                if type_code == EventType.TRANSACTION_PAYLOAD:
                    self.position = position
                    yield from payload_events(event)
                    self.position = end
            position = self.position
        self.position = position
        file.last = event

    def _layout(self) -> tuple[frozenset[int], int, int, bool]:
        """What the format description says: types that need only their header, bytes of checksum
        and header, and whether to verify."""
        if self.format is None:
            return frozenset(), 0, HEADER_LENGTH, False
        trailer = self.format.checksum_length
        return PLAIN_TYPES, trailer, self.format.header_length, self.verify_checksum and trailer > 0

    def _format(self, event: Event, view: memoryview) -> FormatDescription:
        body = event.buffer[event.position + HEADER_LENGTH : event.position + event.length]
        format_description = parse_format_description(body)
        event.body = event.position + HEADER_LENGTH
        event.end = (
            event.position
            + event.length
            - (0 if format_description.checksum is None else CHECKSUM_LENGTH)
        )
        # A dump from the middle of a log without checksums changes it, its position too, and leaves
        # its own checksum as it was.
        is_changed = not format_description.checksum_length and not event.log_pos
        if format_description.checksum is not None and not is_changed and self.verify_checksum:
            head = bytearray(view[event.position : event.end])
            head[17] &= ~EventFlag.IN_USE & 0xFF
            if zlib.crc32(head) != int.from_bytes(body[-CHECKSUM_LENGTH:], "little"):
                raise InputError(
                    "the checksum of the format description event is wrong",
                    code=Code.CHECKSUM,
                    hint=CORRUPT_HINT,
                )
        return format_description

    def _special(self, event: Event, file: _FileEnd, hint: str) -> None:
        """Types that are refused, that say something about the file, or that carry compressed
        content."""
        type_code = event.type
        if self.format is None and type_code == EventType.START_V3:
            raise old_format(event)
        if self.format is None:
            raise InputError(
                f"{an_event(event.name)} stands before the format description event",
                code=Code.BAD_FORMAT,
                hint=CORRUPT_HINT,
            )
        if type_code in COMPRESSED:
            decompress_event(
                event, compressed_start(event, self.format.post_header_length(type_code))
            )
        elif type_code == EventType.FORMAT_DESCRIPTION:
            file.check_server(event)
        elif type_code == EventType.PREVIOUS_GTIDS:
            file.check_gtids(event)
        elif type_code == EventType.START_ENCRYPTION:
            raise InputError(
                "the log is encrypted (MariaDB)",
                code=Code.ENCRYPTED,
                hint="decrypt it, e.g. mysqlbinlog --read-from-remote-server --raw",
            )
        elif type_code in (
            EventType.PRE_GA_WRITE_ROWS,
            EventType.PRE_GA_UPDATE_ROWS,
            EventType.PRE_GA_DELETE_ROWS,
        ):
            raise InputError(
                "rows events of MySQL 5.1 before its release (pre-GA) are not supported",
                code=Code.UNKNOWN_FORMAT,
            )
        elif type_code not in KNOWN_TYPES and not event.flags & EventFlag.IGNORABLE:
            raise InputError(f"unknown event type {type_code}", code=Code.BAD_HEADER, hint=hint)


def old_format(event: Event) -> InputError:
    """Start_event_v3, the head of a log of MySQL 3.23 to 4.1: version of the format, version of the
    server, time."""
    body = event.buffer[event.position + HEADER_LENGTH : event.position + event.length]
    number = int.from_bytes(body[:2], "little")
    server = body[2:52].rstrip(b"\0").decode("utf-8", "backslashreplace")
    return InputError(
        f"the log has version {number} of the format, of MySQL {server or 'before 5.0'}; it is"
        " readable from version 4 on (MySQL 5.0)",
        code=Code.UNKNOWN_FORMAT,
        hint="replay it on a server of that age with its own mysqlbinlog",
    )


TEXT_HINT = (
    "this is text: give the file that the server wrote, not what mysqlbinlog prints; a dump is"
    " --schema FILE"
)
SQLITE_MAGIC = b"SQLi"
EMPTY_HINT = "copy the file again; for -, check the command that writes to the pipe"
_PRINTED = frozenset(b"\t\n\r" + bytes(range(32, 127)))
"""Bytes of a text."""
TRUNCATED_HINT = "copy the file again, or stop before this position with --stop-position"
CORRUPT_HINT = "the file is damaged or no binary log; copy it again"
START_HINT = "the start position is not the start of an event; `binlag events` shows the positions"


def _corrupt_hint(position: int, start: int) -> str:
    return START_HINT if position == start else CORRUPT_HINT


def _bad_length(type_code: int, length: int, shortest: int, *, at_start: bool) -> InputError:
    name = SERVER_NAMES.get(type_code, f"type {type_code}")
    if length < shortest:
        return InputError(
            f"{an_event(name)} claims a length of {length} bytes",
            code=Code.BAD_HEADER,
            hint=START_HINT if at_start else CORRUPT_HINT,
        )
    hint = START_HINT if at_start else TRUNCATED_HINT
    return InputError(
        f"the file ends in the middle of {an_event(name)} of {length} bytes",
        code=Code.CUT_OFF,
        hint=hint,
    )


ORDER_HINT = "give the files of one server in order and without a gap, each once"


class WrittenLog(Protocol):
    """A log, and the server that wrote it."""

    @property
    def path(self) -> str | Path:
        """Where it lies."""

    @property
    def name(self) -> str:
        """Its own name."""

    @property
    def server_id(self) -> int | None:
        """The one that its first format description has."""


def check_next(before: WrittenLog, after: WrittenLog, expected: str | None, *, file: str) -> None:
    """Raises InputError where `after` is not the log behind `before`, which is called `expected`
    (None: anything). `file`: what the message calls it."""
    hint = ORDER_HINT
    if expected is not None and expected != after.name:
        problem = f"{before.name} is followed by {expected} in the log, not by {after.name}"
    elif before.server_id != after.server_id and not are_listed_in_order(
        Path(before.path), Path(after.path)
    ):
        problem = (
            f"{after.name} was written by server id {after.server_id}, {before.name} by"
            f" {before.server_id}"
        )
        hint += "; if the server_id of one was changed, put its index beside the files"
    else:
        return
    raise InputError(problem, code=Code.BAD_FORMAT, file=file, position=len(MAGIC), hint=hint)


class _FileEnd:
    """What one file says about the next, and whether it follows the one before."""

    def __init__(self, path: Path, previous: _FileEnd | None) -> None:
        self.path, self.name = path, log_name(path)
        self.previous = previous
        self.server_id: int | None = None
        self.gtids: GtidSet | None = None
        self.last: Event | None = None

    def check_server(self, description: Event) -> None:
        """Looks at the first format description of the file. Raises InputError when the file is not
        the next one."""
        if self.server_id is not None:
            return
        self.server_id, before = description.server_id, self.previous
        if before is None:
            return
        check_next(before, self, before._expected_name(), file=self.name)
        before.previous = None

    def check_gtids(self, event: Event) -> None:
        """The set of previous GTIDs only grows from file to file. (A relay log's is what was
        received: recovery empties it.)"""
        if self.gtids is not None or event.flags & EventFlag.RELAY_LOG:
            return
        try:
            self.gtids = GtidSet.decode(event.data)
        except GtidError as error:
            raise InputError(
                f"the set of previous GTIDs cannot be read: {error}", code=Code.BAD_EVENT
            ) from None
        before = self.previous.gtids if self.previous is not None else None
        if before is not None and not before.issubset(self.gtids):
            missing = before.subtract(self.gtids)
            raise InputError(
                f"{self.name} does not know the transactions {missing} from before",
                code=Code.BAD_FORMAT,
                file=self.name,
                position=len(MAGIC),
                hint=ORDER_HINT,
            )

    def _expected_name(self) -> str | None:
        last = self.last
        # a relay log also holds the source's rotate events
        own = last is not None and last.server_id == self.server_id
        if (
            last is not None
            and own
            and last.type == EventType.ROTATE
            and not last.flags & EventFlag.ARTIFICIAL
        ):
            return PurePath(last.data[8:].decode("utf-8", "surrogateescape")).name
        return next_log_name(self.name)


def _foreign(magic: bytes) -> str | None:
    if magic == SQLITE_MAGIC:
        return "this is a database of SQLite: give a binary log of MySQL or MariaDB"
    return TEXT_HINT if all(byte in _PRINTED for byte in magic) else None


def check_magic(magic: bytes, path: Path) -> None:
    """Looks at the first bytes of a log. Raises InputError for anything but a plain binary log."""
    name = source_name(path)
    if not magic:
        raise InputError("the file is empty", code=Code.NOT_A_LOG, file=name, hint=EMPTY_HINT)
    if len(magic) < len(MAGIC) and MAGIC.startswith(magic):
        what = f"the file ends after {len(magic)} bytes of a log's first {len(MAGIC)}"
        raise InputError(what, code=Code.NOT_A_LOG, file=name, hint=EMPTY_HINT)
    if magic == ENCRYPTED_MAGIC:
        raise InputError(
            "the log is encrypted (binlog_encryption)",
            code=Code.ENCRYPTED,
            file=name,
            hint="fetch it decrypted: mysqlbinlog --read-from-remote-server --raw",
        )
    if magic != MAGIC:
        raise InputError(
            "not a binary log: it does not start with fe 62 69 6e",
            code=Code.NOT_A_LOG,
            file=name,
            position=0,
            hint=_foreign(magic),
        )


def open_log(path: Path, size: int = 0) -> bytes:
    """The content of a log file, or its first `size` bytes, mapped into memory. Raises InputError
    for what is no binary log.

    One on a store is fetched, and one that is compressed unpacked, as a whole.
    """
    if is_spooled(path):
        with Spool(path) as spool:
            buffer = spool.mapped(spool.fetch(0))
        check_magic(buffer[: len(MAGIC)], path)
        return buffer
    try:
        with path.open("rb") as file:
            check_magic(file.read(len(MAGIC)), path)
            return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)  # type: ignore[return-value]
    except OSError as error:
        raise cannot_read(error, path) from None
