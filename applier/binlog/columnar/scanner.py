"""A binary log cut into chunks: the rows events of a stretch of the file, found and verified by the
scan kernel.

Python touches what the kernel cannot read: format descriptions, compressed content, and table maps
when they are new. Compressed content is unpacked piece by piece into buffers that the chunk keeps,
and scanned there by the same kernel.
"""

from __future__ import annotations

import ctypes
import io
import os
from collections.abc import Generator, Iterator, Sequence

import numpy as np

from applier.binlog import payload
from applier.binlog.columnar.cache import load_kernel
from applier.binlog.columnar.checksum_tables import crc_tables
from applier.binlog.columnar.control import Class, EventKind, Ref, Scan, ScanStatus
from applier.binlog.columnar.registry import Bytes, Registry, address
from applier.binlog.columnar.table_ids import Integers
from applier.binlog.header import (
    COMPRESSED,
    HEADER,
    HEADER_LENGTH,
    KNOWN_TYPES,
    MAGIC,
    SERVER_NAMES,
    Event,
    EventType,
    an_event,
)
from applier.binlog.reader import CORRUPT_HINT, TRUNCATED_HINT, LogReader, _FileEnd, open_log
from applier.error_codes import Code
from applier.errors import InputError
from applier.sources import log_name

REFS_PER_CHUNK = 1 << 16
PIECE_BYTES = 4_000_000
"""Compressed content is unpacked by this many bytes at a time."""

KINDS = {
    EventType.WRITE_ROWS_V1: EventKind.WRITE, EventType.UPDATE_ROWS_V1: EventKind.UPDATE,
    EventType.DELETE_ROWS_V1: EventKind.DELETE,
    EventType.WRITE_ROWS: EventKind.WRITE, EventType.UPDATE_ROWS: EventKind.UPDATE,
    EventType.DELETE_ROWS: EventKind.DELETE,
    EventType.PARTIAL_UPDATE_ROWS: EventKind.PARTIAL_UPDATE,
}  # fmt: skip
SPECIAL = {
    EventType.FORMAT_DESCRIPTION, EventType.PREVIOUS_GTIDS, EventType.TRANSACTION_PAYLOAD,
    EventType.START_ENCRYPTION,
    EventType.PRE_GA_WRITE_ROWS, EventType.PRE_GA_UPDATE_ROWS, EventType.PRE_GA_DELETE_ROWS,
    *COMPRESSED,
}  # fmt: skip
ROWS_COMPRESSED = frozenset(COMPRESSED) - {EventType.QUERY_COMPRESSED}
GTIDS = {EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID}


def _classes() -> Bytes:
    classes = np.full(256, Class.UNKNOWN, np.uint8)
    classes[sorted(KNOWN_TYPES)] = Class.PLAIN
    classes[sorted(SPECIAL)] = Class.SPECIAL
    classes[sorted(GTIDS)] = Class.GTID
    classes[EventType.TABLE_MAP] = Class.TABLE_MAP
    for type_code in KINDS:
        classes[type_code] = Class.ROWS_V2 if type_code >= EventType.WRITE_ROWS else Class.ROWS_V1
    return classes


def _kinds() -> Bytes:
    kinds = np.zeros(256, np.uint8)
    for type_code, kind in KINDS.items():
        kinds[type_code] = kind
    return kinds


class Chunk:
    """The rows events of a stretch of one file. `keep` owns the bytes that the references point
    to."""

    def __init__(self, file: str, keep: Bytes) -> None:
        self.file = file
        self.refs: Integers = np.empty((REFS_PER_CHUNK, Ref.SIZE_OF_ENTRY), np.int64)
        self.count = 0
        self.keep = [keep]
        self.unpacked = 0
        """bytes of decompressed content kept"""
        self.images: Integers


class Scanner(LogReader):
    """Iterates over chunks rather than events; what it refuses and how it says so is
    LogReader's."""

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        registry: Registry,
        *,
        verify_checksum: bool,
        chunk_bytes: int,
    ) -> None:
        super().__init__(paths, verify_checksum=verify_checksum)
        self.registry = registry
        self.chunk_bytes = chunk_bytes
        self._scan = load_kernel("scan").call
        self._control: Integers = np.zeros(Scan.SIZE_OF_BLOCK, np.int64)
        self._classes, self._kinds, self._crc = _classes(), _kinds(), crc_tables()
        self._before_format = np.full(256, Class.SPECIAL, np.uint8)
        self._inside_classes = self._classes.copy()
        self._inside_classes[sorted(payload.NEVER_INSIDE)] = Class.SPECIAL
        self._post_headers = np.zeros(257, np.uint8)

    def chunks(self) -> Iterator[Chunk]:
        """The chunks of all files in order. An error is raised after the chunk of what stands
        before it."""
        previous: _FileEnd | None = None
        for path in self.paths:
            self._buffer = open_log(path)
            data = np.frombuffer(self._buffer, np.uint8)
            self._name = log_name(path)
            self._end = _FileEnd(path, previous)
            yield from self._file(data)
            last = int(self._control[Scan.LAST])
            self._end.last = self._event(last) if last else None
            previous = self._end

    def _file(self, data: Bytes) -> Iterator[Chunk]:
        control = self._control
        control[:] = 0
        control[Scan.SIZE] = len(data)
        control[Scan.BUFFER] = address(data)
        control[Scan.POSITION] = len(MAGIC)
        control[Scan.VERIFY] = self.verify_checksum
        control[Scan.CRC_TABLES] = ctypes.addressof(self._crc)
        control[Scan.CLASSES] = address(self._before_format)
        control[Scan.KINDS] = address(self._kinds)
        control[Scan.POST_HEADERS] = address(self._post_headers)
        control[Scan.HEADER_LENGTH] = HEADER_LENGTH
        control[Scan.FIXED_POSITION] = -1
        self.format = None
        self.registry.forget_ids()
        self._chunk = self._new_chunk(data)
        try:
            yield from self._stretches(data)
        except InputError as error:
            error.locate(file=self._name, position=self._position())
            yield self._close()
            raise
        yield self._close()

    def _stretches(self, data: Bytes) -> Iterator[Chunk]:
        control = self._control
        control[Scan.LIMIT] = min(len(MAGIC) + self.chunk_bytes, len(data))
        while True:
            status = self._run()
            if status == ScanStatus.SPECIAL:
                yield from self._read_special(data)
            elif status not in (ScanStatus.DONE, ScanStatus.REFS_FULL):
                self._solve(status, data)
                continue
            if control[Scan.POSITION] >= len(data):
                return
            if (
                control[Scan.POSITION] >= control[Scan.LIMIT]
                or status == ScanStatus.REFS_FULL
                or self._chunk.unpacked >= self.chunk_bytes
            ):
                yield self._flush(data)
                control[Scan.LIMIT] = min(int(control[Scan.POSITION]) + self.chunk_bytes, len(data))

    def _run(self) -> int:
        self.registry.bind(self._control)
        return self._scan(address(self._control))

    def _new_chunk(self, data: Bytes) -> Chunk:
        chunk = Chunk(self._name, data)
        self._control[Scan.REFS] = address(chunk.refs)
        self._control[Scan.REFS_CAPACITY] = len(chunk.refs)
        self._control[Scan.REFS_COUNT] = 0
        return chunk

    def _close(self) -> Chunk:
        chunk = self._chunk
        chunk.count = int(self._control[Scan.REFS_COUNT])
        chunk.images = self.registry.images
        return chunk

    def _flush(self, data: Bytes) -> Chunk:
        """The chunk so far; a new one is begun."""
        chunk = self._close()
        self._chunk = self._new_chunk(data)
        return chunk

    def _position(self) -> int:
        """File position of the event being read."""
        fixed = int(self._control[Scan.FIXED_POSITION])
        return fixed if fixed >= 0 else int(self._control[Scan.POSITION])

    def _event(self, position: int) -> Event:
        """The event at `position` of the file, whose header is there."""
        header = HEADER.unpack_from(self._buffer, position)
        body = position + int(self._control[Scan.HEADER_LENGTH])
        end = position + int(header[3]) - int(self._control[Scan.TRAILER])
        return Event(self._name, position, header, self._buffer, body, end)

    def _solve(self, status: int, data: Bytes) -> None:
        """What the kernel stopped for: something new to remember, or an error to raise. `data` is
        the buffer it reads."""
        control = self._control
        position = int(control[Scan.POSITION])
        if status == ScanStatus.NEW_SHAPE:
            start = int(control[Scan.DETAIL_START]) - int(control[Scan.BUFFER])
            head = bytes(data[start : start + int(control[Scan.DETAIL_LENGTH])])
            kind = self._kinds[data[position + 4]]
            bitmaps = 2 if kind in (EventKind.UPDATE, EventKind.PARTIAL_UPDATE) else 1
            self.registry.add_shape(int(control[Scan.DETAIL]), head, bitmaps)
            return
        if status in (ScanStatus.HEADER_CUT, ScanStatus.EVENT_CUT):
            raise InputError(
                "the log ends in the middle of an event", code=Code.CUT_OFF, hint=TRUNCATED_HINT
            )
        length = int.from_bytes(bytes(data[position + 9 : position + 13]), "little")
        if status == ScanStatus.NEW_MAP:
            body = position + int(control[Scan.HEADER_LENGTH])
            end = position + length - int(control[Scan.TRAILER])
            self.registry.add_table_map(
                bytes(data[body:end]), int(self._post_headers[EventType.TABLE_MAP])
            )
            return
        type_code = int(data[position + 4])
        name = SERVER_NAMES.get(type_code, f"type {type_code}")
        message = {
            ScanStatus.BAD_LENGTH: f"an event claims a length of {length} bytes",
            ScanStatus.NO_CHECKSUM_ROOM: (
                f"{an_event(name)} of {length} bytes has no room for its checksum"
            ),
            ScanStatus.BAD_CHECKSUM: f"the checksum of {an_event(name)} is wrong",
            ScanStatus.BAD_ROWS_HEAD: f"{an_event(name)} ends inside its head",
            ScanStatus.NO_TABLE_MAP: f"{an_event(name)} has no table map before it",
            ScanStatus.UNKNOWN_TYPE: f"unknown event type {type_code}",
        }[ScanStatus(status)]
        raise InputError(message, code=Code.BAD_HEADER, hint=CORRUPT_HINT)

    def _read_special(self, data: Bytes) -> Iterator[Chunk]:
        """Reads the event at POSITION in Python and steps over it."""
        control = self._control
        position = int(control[Scan.POSITION])
        event = self._event(position)
        if event.type == EventType.FORMAT_DESCRIPTION:
            self.format = self._format(event, memoryview(self._buffer))
            control[Scan.TRAILER] = self.format.checksum_length
            control[Scan.HEADER_LENGTH] = self.format.header_length
            control[Scan.CLASSES] = address(self._classes)
            lengths = self.format.post_header_lengths[:255]
            self._post_headers[:] = 0
            self._post_headers[1 : 1 + len(lengths)] = np.frombuffer(lengths, np.uint8)
            self.registry.forget_ids()
        self._special(event, self._end, CORRUPT_HINT)
        if event.type == EventType.TRANSACTION_PAYLOAD:
            control[Scan.ORDINAL] += 1
            yield from self._inside(position, self._payload(event, data))
            control[Scan.ORDINAL] -= 1
        elif event.stored_type in ROWS_COMPRESSED:
            length = HEADER_LENGTH + len(event.buffer)
            header = HEADER.pack(
                event.timestamp, event.type, event.server_id, length, event.log_pos, event.flags
            )
            yield from self._inside(position, self._single(header + event.buffer, data))
            control[Scan.ORDINAL] -= 1
        control[Scan.LAST] = position
        control[Scan.POSITION] = position + event.length
        control[Scan.ORDINAL] += 1

    def _inside(self, position: int, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """Runs `chunks`, which read decompressed events: without checksums, all at `position`."""
        outer = self._control.copy()
        self._control[[Scan.TRAILER, Scan.HEADER_LENGTH, Scan.FIXED_POSITION]] = (
            0,
            HEADER_LENGTH,
            position,
        )
        self._control[Scan.CLASSES] = address(self._inside_classes)
        yield from chunks
        for item in (
            Scan.CLASSES,
            Scan.TRAILER,
            Scan.HEADER_LENGTH,
            Scan.FIXED_POSITION,
            Scan.BUFFER,
            Scan.SIZE,
            Scan.LIMIT,
        ):
            self._control[item] = outer[item]

    def _payload(self, event: Event, data: Bytes) -> Iterator[Chunk]:
        """The events of a TRANSACTION_PAYLOAD, as they are unpacked."""
        header = payload.parse_payload_header(event)
        raw = event.buffer[header.payload_start : header.payload_start + header.payload_size]
        stream = (
            io.BytesIO(raw)
            if header.compression == payload.UNCOMPRESSED
            else payload._zstd_stream(raw)
        )
        limit = header.uncompressed_size or payload.MAX_EVENT_BYTES
        rest, total, wanted = b"", 0, min(PIECE_BYTES, limit)
        while piece := payload._read(stream, wanted):
            total += len(piece)
            if total > limit:
                raise InputError(
                    f"the transaction payload unpacks to more than the {limit} bytes it claims",
                    code=Code.BAD_PAYLOAD,
                )
            rest += piece
            done = yield from self._events_in(rest, data)
            rest = rest[done:]
            wanted = min(PIECE_BYTES, limit)
            if len(rest) >= HEADER_LENGTH:
                length = int.from_bytes(rest[9:13], "little")
                if length > min(payload.MAX_EVENT_BYTES, limit):
                    raise InputError(
                        f"an event inside the transaction payload claims {length} bytes",
                        code=Code.BAD_PAYLOAD,
                    )
                wanted = max(length - len(rest), wanted)
        if rest:
            raise InputError(
                "the transaction payload ends in the middle of an event", code=Code.BAD_PAYLOAD
            )
        if header.uncompressed_size and total != header.uncompressed_size:
            raise InputError(
                f"the transaction payload has {total} bytes instead of the"
                f" {header.uncompressed_size} it claims",
                code=Code.BAD_PAYLOAD,
            )

    def _single(self, content: bytes, data: Bytes) -> Iterator[Chunk]:
        """The one event that `content` is."""
        done = yield from self._events_in(content, data)
        if done != len(content):
            raise InputError(
                "a compressed event cannot be read", code=Code.BAD_PAYLOAD, hint=CORRUPT_HINT
            )

    def _events_in(self, content: bytes, data: Bytes) -> Generator[Chunk, None, int]:
        """Scans whole events of `content`; returns how many bytes they take."""
        inner = np.frombuffer(content, np.uint8)
        self._hold(inner)
        control = self._control
        control[Scan.BUFFER] = address(inner)
        control[Scan.SIZE] = control[Scan.LIMIT] = len(inner)
        control[Scan.POSITION] = 0
        while (status := self._run()) not in (
            ScanStatus.DONE,
            ScanStatus.HEADER_CUT,
            ScanStatus.EVENT_CUT,
        ):
            if status == ScanStatus.REFS_FULL:
                yield self._flush(data)
                self._hold(inner)
            elif status == ScanStatus.SPECIAL:
                raise InputError(
                    f"a {SERVER_NAMES.get(content[int(control[Scan.POSITION]) + 4])} event inside"
                    " compressed content",
                    code=Code.BAD_PAYLOAD,
                )
            else:
                self._solve(status, inner)
        done = int(control[Scan.POSITION])
        if self._chunk.unpacked >= self.chunk_bytes:
            yield self._flush(data)
        return done

    def _hold(self, inner: Bytes) -> None:
        self._chunk.keep.append(inner)
        self._chunk.unpacked += len(inner)
