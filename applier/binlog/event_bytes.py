"""Events that a replica writes itself, and the few fields that it changes or looks at in those of
its source.

An event of a relay log is bytes: common header, body, checksum. Layouts as in
`applier.binlog.header` and `applier.binlog.events`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from applier.binlog.header import (
    CHECKSUM_LENGTH,
    HEADER,
    HEADER_LENGTH,
    MAGIC,
    Event,
    EventFlag,
    EventType,
)
from applier.binlog.reader import CRC_RESIDUE
from applier.error_codes import Code
from applier.errors import InputError

_POSITION = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Head:
    """What stands at the front of an event. `length` includes header and checksum, `log_pos` is the
    end in the source's log."""

    timestamp: int
    type: int
    server_id: int
    length: int
    log_pos: int
    flags: int


def head_of(data: bytes) -> Head:
    """The common header. Raises InputError when it is not all there or its length is not that of
    the bytes."""
    if len(data) < HEADER_LENGTH:
        raise InputError(
            f"an event of {len(data)} bytes has no room for its header",
            code=Code.BAD_ANSWER,
            hint="the source's answer was cut off: connect again",
        )
    head = Head(*HEADER.unpack_from(data))
    if head.length != len(data):
        raise wrong_length(len(data), head.length)
    return head


def wrong_length(length: int, claimed: int) -> InputError:
    """The error for an event of so many bytes that claims another number."""
    return InputError(
        f"an event of {length} bytes says it has {claimed}",
        code=Code.BAD_ANSWER,
        hint="the source's answer was cut off: connect again",
    )


def make_event(
    type_code: EventType,
    body: bytes,
    *,
    timestamp: int,
    server_id: int,
    log_pos: int = 0,
    flags: int = 0,
    checksum: bool = True,
) -> bytes:
    """A whole event; a format description has a checksum in any case."""
    length = HEADER_LENGTH + len(body) + (CHECKSUM_LENGTH if checksum else 0)
    data = HEADER.pack(timestamp, type_code, server_id, length, log_pos, flags) + body
    return data + zlib.crc32(data).to_bytes(4, "little") if checksum else data


def rotate_body(file: str, position: int) -> bytes:
    """The body of a ROTATE event."""
    return _POSITION.pack(position) + file.encode("utf-8", "surrogateescape")


def rotate_target(data: bytes, checksum_length: int) -> tuple[str, int]:
    """File and position that a ROTATE event names. Raises InputError."""
    end = len(data) - checksum_length
    if end <= HEADER_LENGTH + _POSITION.size:
        raise InputError(
            "a Rotate event names no file",
            code=Code.BAD_ANSWER,
            hint="the source's answer is damaged: connect again",
        )
    (position,) = _POSITION.unpack_from(data, HEADER_LENGTH)
    return data[HEADER_LENGTH + _POSITION.size : end].decode("utf-8", "surrogateescape"), position


def has_checksum(data: bytes) -> bool:
    """Whether the last four bytes are the CRC32 of the others."""
    return zlib.crc32(data) == CRC_RESIDUE


def with_checksum(data: bytes, *, wanted: bool) -> bytes:
    """The event with or without a checksum. The first event of a dump comes before anybody knows
    which of the two the log has."""
    if has_checksum(data) == wanted:
        return data
    head = bytearray(data if wanted else data[:-CHECKSUM_LENGTH])
    struct.pack_into("<I", head, 9, len(head) + (CHECKSUM_LENGTH if wanted else 0))
    return bytes(head) + (zlib.crc32(bytes(head)).to_bytes(4, "little") if wanted else b"")


def format_body(
    server_version: str, post_header_lengths: bytes, *, created: int = 0, checksum: int = 1
) -> bytes:
    """The body of a FORMAT_DESCRIPTION without its checksum. `checksum` is the algorithm: 0 none, 1
    CRC32."""
    return (
        struct.pack("<H50sIB", 4, server_version.encode("latin-1"), created, HEADER_LENGTH)
        + post_header_lengths
        + bytes([checksum])
    )


def as_artificial_format(data: bytes) -> bytes:
    """The source's format description as it is repeated at the head of the next relay log:
    artificial, without a position, never created."""
    head = bytearray(data[:-CHECKSUM_LENGTH])
    (flags,) = struct.unpack_from("<H", head, 17)
    struct.pack_into("<IH", head, 13, 0, flags | EventFlag.ARTIFICIAL)
    struct.pack_into("<I", head, HEADER_LENGTH + 52, 0)
    return bytes(head) + zlib.crc32(bytes(head)).to_bytes(4, "little")


def event_of(
    data: bytes,
    *,
    file: str,
    position: int,
    header_length: int = HEADER_LENGTH,
    checksum_length: int = CHECKSUM_LENGTH,
) -> Event:
    """Bytes as an event that knows where it stands."""
    head_of(data)
    return Event(
        file, position, HEADER.unpack_from(data), data, header_length, len(data) - checksum_length
    )


def raw_events(content: bytes, position: int = len(MAGIC)) -> Iterator[tuple[int, bytes]]:
    """(Where it stands, its bytes) for each whole event of a log; what is cut off at the end is
    left out."""
    while position + HEADER_LENGTH <= len(content):
        length = int.from_bytes(content[position + 9 : position + 13], "little")
        if length < HEADER_LENGTH or position + length > len(content):
            return
        yield position, content[position : position + length]
        position += length
