"""Makes binary logs byte by byte, as the formats are written down, without the code under test."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

MAGIC = b"\xfebin"
POST_HEADERS = {
    "5.0.96": bytes.fromhex("380d0008001200040404041200004a00041a"),
    "5.7.29": bytes.fromhex(
        "380d0008001200040404041200005f00041a08000000080808020000000a0a0a2a2a00123400"
    ),
    "8.0.36": bytes.fromhex(
        "000d0008000000000400040000006200041a08000000080808020000000a0a0a2a2a001234000a2800"
    ),
    "9.7.0": bytes.fromhex(
        "000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a280000"
    ),
    "10.11.6-MariaDB": bytes.fromhex(
        "380d000800120004040404120000e400041a08000000080808020000000a0a0a0000000000000a0a0a"
    )
    + bytes(118)
    + bytes.fromhex("00041304000d0808080a0a0a"),
}
"""Lengths of the fixed parts, by server version: one byte per event type from 1 on."""


def event(
    kind: int,
    body: bytes = b"",
    *,
    at: int = 0,
    timestamp: int = 1_700_000_000,
    server_id: int = 1,
    flags: int = 0,
    checksum: bool = True,
) -> bytes:
    """One event that starts at offset `at`."""
    length = 19 + len(body) + (4 if checksum else 0)
    raw = struct.pack("<IBIIIH", timestamp, kind, server_id, length, at + length, flags) + body
    return raw + struct.pack("<I", zlib.crc32(raw)) if checksum else raw


def format_description(
    version: str = "8.0.36",
    *,
    at: int = 4,
    checksum: bool = True,
    in_use: bool = False,
    server_id: int = 1,
    created: int = 1_700_000_000,
) -> bytes:
    """FORMAT_DESCRIPTION. Its own checksum is there even when the log has none, except in logs from
    before 5.6.1. `created`: when the server was started, 0 in a log that follows another one."""
    body = struct.pack("<H50sIB", 4, version.encode(), created, 19) + POST_HEADERS[version]
    old = version.startswith("5.0")
    raw = event(
        15, body if old else body + bytes([checksum]), at=at, checksum=not old, server_id=server_id
    )
    return raw[:17] + b"\x01\0" + raw[19:] if in_use else raw


def log(
    *events: tuple[int, bytes] | tuple[int, bytes, int],
    version: str = "8.0.36",
    checksum: bool = True,
    server_id: int = 1,
    created: int = 1_700_000_000,
) -> bytes:
    """A file of events (type, body[, flags]) behind a format description."""
    checksum = checksum and not version.startswith("5.0")
    out = bytearray(MAGIC)
    out += format_description(version, checksum=checksum, server_id=server_id, created=created)
    for kind, body, *rest in events:
        out += event(
            kind,
            body,
            at=len(out),
            flags=rest[0] if rest else 0,
            checksum=checksum,
            server_id=server_id,
        )
    return bytes(out)


def write(folder: Path, content: bytes, name: str = "binlog.000001") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def query(
    sql: bytes, database: bytes = b"d", variables: bytes = b"", error: int = 0
) -> tuple[int, bytes]:
    head = struct.pack("<IIBHH", 7, 0, len(database), error, len(variables))
    return 2, head + variables + database + b"\0" + sql


def xid(number: int = 1) -> tuple[int, bytes]:
    return 16, struct.pack("<Q", number)


UUID = bytes(range(16))
UUID_TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"


def gtid(
    number: int, *, last: int = 0, sequence: int = 1, anonymous: bool = False, rest: bytes = b""
) -> tuple[int, bytes]:
    return (34 if anonymous else 33), struct.pack(
        "<B16sqBqq", 1, UUID, number, 2, last, sequence
    ) + rest


def mariadb_gtid(
    sequence: int, flags: int = 0, *, domain: int = 0, rest: bytes = b""
) -> tuple[int, bytes]:
    return 162, (struct.pack("<QIB", sequence, domain, flags) + rest).ljust(19, b"\0")


def table_map(
    table_id: int = 1,
    database: bytes = b"d",
    table: bytes = b"t",
    types: bytes = b"\x03",
    metadata: bytes = b"",
) -> tuple[int, bytes]:
    """Columns are INT unless told otherwise."""
    return 19, (
        struct.pack("<IHH", table_id, 0, 1)
        + bytes([len(database)])
        + database
        + b"\0"
        + bytes([len(table)])
        + table
        + b"\0"
        + bytes([len(types)])
        + types
        + bytes([len(metadata)])
        + metadata
        + bytes((len(types) + 7) // 8)
    )


def rows(
    kind: int, images: bytes, table_id: int = 1, width: int = 1, flags: int = 1
) -> tuple[int, bytes]:
    """Rows of all `width` columns; version 2 for types from 30 on."""
    bitmap = ((1 << width) - 1).to_bytes((width + 7) // 8, "little")
    bitmaps = bitmap * (2 if kind in (24, 31, 39) else 1)
    extra = struct.pack("<H", 2) if kind >= 30 else b""
    return kind, struct.pack("<IHH", table_id, 0, flags) + extra + bytes([width]) + bitmaps + images


def int_image(value: int) -> bytes:
    return b"\0" + struct.pack("<i", value)


def packed(value: int) -> bytes:
    """A length-encoded integer."""
    if value < 251:
        return bytes([value])
    if value < 1 << 16:
        return b"\xfc" + struct.pack("<H", value)
    if value < 1 << 24:
        return b"\xfd" + struct.pack("<I", value)[:3]
    return b"\xfe" + struct.pack("<Q", value)


def payload(
    inner: bytes, *, size: int | None = None, data: bytes | None = None, compression: int = 0
) -> tuple[int, bytes]:
    """TRANSACTION_PAYLOAD of events without checksums; `size` and `data` may lie."""
    import zstandard

    packed_data = (
        data if data is not None else inner if compression == 255 else zstandard.compress(inner)
    )
    fields = b""
    for field, value in (
        (2, compression),
        (3, len(inner) if size is None else size),
        (1, len(packed_data)),
    ):
        fields += packed(field) + packed(len(packed(value))) + packed(value)
    return 40, fields + b"\0" + packed_data


def compressed(data: bytes) -> bytes:
    """MariaDB's compressed block."""
    size = len(data).to_bytes(4, "big")
    return bytes([0x80 | 4]) + size + zlib.compress(data)
