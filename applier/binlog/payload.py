"""Compressed content: MySQL's transaction payload (zstd) and MariaDB's compressed events (zlib), in
bounded memory."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import zstandard

from applier.binlog.cursor import Cursor
from applier.binlog.header import (
    COMPRESSED,
    GTID_TYPES,
    HEADER,
    HEADER_LENGTH,
    KNOWN_TYPES,
    SERVER_NAMES,
    Event,
    EventFlag,
    EventType,
    InnerEvent,
)
from applier.error_codes import Code
from applier.errors import InputError

MAX_EVENT_BYTES = 1 << 30
"""An event larger than this out of compressed content is taken for an attack (a server's own limit
is 1 GiB)."""
PIECE_BYTES = 1 << 20
MAX_WINDOW_BYTES = 1 << 27
"""What zstd keeps of the past at most. The server's decoder leaves zstd's limit as it is: no server
reads more (zstd_dec.cpp 9.7)."""
ZSTD, UNCOMPRESSED = 0, 255
NEVER_INSIDE = GTID_TYPES | {
    EventType.TRANSACTION_PAYLOAD,
    EventType.FORMAT_DESCRIPTION,
    EventType.PREVIOUS_GTIDS,
    EventType.ROTATE,
    EventType.STOP,
    EventType.START_V3,
    EventType.START_ENCRYPTION,
    EventType.PRE_GA_WRITE_ROWS,
    EventType.PRE_GA_UPDATE_ROWS,
    EventType.PRE_GA_DELETE_ROWS,
    *COMPRESSED,
}
"""No server puts these into a compressed transaction (`Binlog_cache_compressor` gets the cache of
one transaction, 9.7); the reader would not look into them there, and rows inside would be lost
without a word."""


@dataclass(frozen=True, slots=True)
class PayloadHeader:
    """What stands before the compressed bytes; sizes in bytes."""

    compression: int
    uncompressed_size: int
    payload_start: int
    payload_size: int


def parse_payload_header(event: Event) -> PayloadHeader:
    """TRANSACTION_PAYLOAD's type-length-value header (libs/mysql/binlog/event/codecs/binary.cpp
    9.7). Raises InputError."""
    cursor = Cursor(event.buffer, event.body, event.end)
    fields: dict[int, int] = {}
    while (field := cursor.packed()) != 0:
        length = cursor.packed()
        start = cursor.at
        if field in (1, 2, 3):
            fields[field] = cursor.packed()
        cursor.at = start
        cursor.skip(length)
    if 2 not in fields:
        raise InputError(
            "the transaction payload does not name its compression", code=Code.BAD_PAYLOAD
        )
    size = fields.get(1, cursor.end - cursor.at)
    if size > cursor.end - cursor.at:
        raise InputError(
            f"the transaction payload claims {size} bytes where {cursor.end - cursor.at} are left",
            code=Code.BAD_PAYLOAD,
        )
    if fields[2] not in (ZSTD, UNCOMPRESSED):
        raise InputError(
            f"unknown compression type {fields[2]} of a transaction payload", code=Code.BAD_PAYLOAD
        )
    return PayloadHeader(fields[2], fields.get(3, 0), cursor.at, size)


def payload_events(event: Event) -> Iterator[Event]:
    """The events inside a TRANSACTION_PAYLOAD, one after the other as they are decompressed.

    Raises InputError for what is cut off, garbled, or larger than it claims.
    """
    header = parse_payload_header(event)
    raw = event.buffer[header.payload_start : header.payload_start + header.payload_size]
    stream = io.BytesIO(raw) if header.compression == UNCOMPRESSED else _zstd_stream(raw)
    index, total = 0, 0
    limit = header.uncompressed_size or MAX_EVENT_BYTES
    while True:
        head = _read(stream, HEADER_LENGTH)
        if not head:
            break
        if len(head) < HEADER_LENGTH:
            raise InputError(
                "the transaction payload ends in the middle of an event", code=Code.BAD_PAYLOAD
            )
        timestamp, type_code, server_id, length, _, flags = HEADER.unpack(head)
        total += length
        if length < HEADER_LENGTH or length > MAX_EVENT_BYTES or total > limit:
            raise InputError(
                f"an event inside the transaction payload claims {length} bytes",
                code=Code.BAD_PAYLOAD,
            )
        if type_code not in KNOWN_TYPES and not flags & EventFlag.IGNORABLE:
            raise InputError(
                f"unknown event type {type_code} inside a transaction payload",
                code=Code.BAD_PAYLOAD,
            )
        if type_code in NEVER_INSIDE:
            name = SERVER_NAMES.get(type_code, f"type {type_code}")
            raise InputError(
                f"a {name} event cannot stand inside a transaction payload",
                code=Code.BAD_PAYLOAD,
                hint="the log is damaged; copy it again",
            )
        body = _read(stream, length - HEADER_LENGTH)
        if len(body) < length - HEADER_LENGTH:
            raise InputError(
                "the transaction payload ends in the middle of an event", code=Code.BAD_PAYLOAD
            )
        yield InnerEvent(
            event, (timestamp, type_code, server_id, length, event.log_pos, flags), body, index
        )
        index += 1
    if total != header.uncompressed_size and header.uncompressed_size:
        raise InputError(
            f"the transaction payload has {total} bytes instead of the {header.uncompressed_size}"
            " it claims",
            code=Code.BAD_PAYLOAD,
        )


def _zstd_stream(raw: bytes) -> io.RawIOBase:
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    return decompressor.stream_reader(raw, read_across_frames=True)  # type: ignore[return-value]


def _read(stream: io.BytesIO | io.RawIOBase, size: int) -> bytes:
    """Exactly `size` bytes, or fewer at the end. Memory grows with what is really there, not with
    what is claimed, and once only."""
    found = io.BytesIO()
    try:
        while (left := size - found.tell()) and (piece := stream.read(min(left, PIECE_BYTES))):
            found.write(piece)
    except zstandard.ZstdError as error:
        raise InputError(
            f"the transaction payload cannot be decompressed: {error}", code=Code.BAD_PAYLOAD
        ) from None
    return found.getvalue()


def decompress_event(event: Event, compressed_start: int) -> None:
    """Turns a compressed MariaDB event into the plain one, in place. `compressed_start`: offset of
    the compressed block.

    Block: 0x80 | algorithm << 4 | n, then n bytes big-endian size, then a zlib stream
    (`binlog_buf_uncompress`, 10.11).

    Raises InputError.
    """
    buffer = event.buffer
    if (
        compressed_start >= event.end
        or not buffer[compressed_start] & 0x80
        or buffer[compressed_start] & 0x70
    ):
        raise InputError(
            "a compressed event does not start with a known compression header",
            code=Code.BAD_PAYLOAD,
        )
    width = buffer[compressed_start] & 0x07
    data = compressed_start + 1 + width
    size = int.from_bytes(buffer[compressed_start + 1 : data], "big")
    if not 1 <= width <= 4 or data > event.end or size > MAX_EVENT_BYTES:
        raise InputError(f"a compressed event claims {size} bytes", code=Code.BAD_PAYLOAD)
    try:
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(buffer[data : event.end], size + 1)
    except zlib.error as error:
        raise InputError(
            f"a compressed event cannot be decompressed: {error}", code=Code.BAD_PAYLOAD
        ) from None
    if len(plain) != size or not unpacker.eof:
        raise InputError(
            f"a compressed event has {len(plain)} bytes instead of the {size} it claims",
            code=Code.BAD_PAYLOAD,
        )
    event.buffer = buffer[event.body : compressed_start] + plain
    event.body, event.end = 0, len(event.buffer)
    event.type = COMPRESSED[event.type]


def compressed_start(event: Event, post_header_length: int) -> int:
    """Where the compressed block of a MariaDB compressed event begins."""
    cursor = Cursor(event.buffer, event.body, event.end)
    if event.type == EventType.QUERY_COMPRESSED:
        cursor.skip(8)
        database_length = cursor.u8()
        cursor.skip(2)
        status_length = cursor.u16()
        cursor.skip(max(post_header_length - 13, 0))
        cursor.skip(status_length + database_length + 1)
        return cursor.at
    cursor.skip(8)
    if post_header_length == 10:
        (extra,) = struct.unpack("<H", cursor.take(2))
        cursor.skip(max(extra - 2, 0))
    width = cursor.packed()
    is_update = event.type in (
        EventType.UPDATE_ROWS_COMPRESSED_V1,
        EventType.UPDATE_ROWS_COMPRESSED,
    )
    cursor.skip((width + 7) // 8 * (2 if is_update else 1))
    return cursor.at
