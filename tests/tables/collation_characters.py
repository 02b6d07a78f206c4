"""The characters of a character set: what scripts/collation_weights.py asks a server for, and what
the tests of collations ask."""

from __future__ import annotations

from collections.abc import Iterator

from applier.binlog.charsets import charset
from applier.tables.collations.collation import UNICODE


def characters_of(charset_name: str) -> Iterator[bytes]:
    """All sequences of bytes that may be a character of a character set; some of those of several
    bytes are none."""
    if charset_name in UNICODE:
        last = 0x10000 if charset_name in ("ucs2", "utf8mb3") else 0x110000
        yield from (
            chr(code).encode(UNICODE[charset_name])
            for code in (*range(0xD800), *range(0xE000, last))
        )
        return
    most = charset(charset_name).max_bytes
    yield from (bytes([one]) for one in range(256))
    if most > 1:
        yield from (bytes([one, two]) for one in range(0x80, 0x100) for two in range(0x30, 0x100))
    if most == 3:
        yield from (
            bytes([0x8F, one, two]) for one in range(0xA0, 0x100) for two in range(0xA0, 0x100)
        )
    if most == 4:
        yield from (
            bytes([n // 12600 + 0x81, n // 1260 % 10 + 0x30, n // 10 % 126 + 0x81, n % 10 + 0x30])
            for n in range(126 * 12600)
        )
