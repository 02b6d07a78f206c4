"""Compressed transactions and columns that cannot be used: each is an error that says where."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from tests.applier.logs import BEGIN, inner, ints, replay_log, transaction
from tests.applier.test_bad_input import refused
from tests.binlog.build import (
    format_description,
    gtid,
    log,
    payload,
    rows,
    table_map,
    xid,
)


def test_a_compressed_transaction(tmp_path: Path) -> None:
    tables, result = replay_log(
        tmp_path, log(gtid(1), payload(inner(BEGIN, table_map(), rows(30, ints(5)), xid())))
    )
    assert result.error is None
    assert tables["d.t"].rows() == [(5,)]


@pytest.mark.parametrize(
    "never",
    [
        payload(inner(BEGIN, table_map(), rows(30, ints(6)), xid())),
        (15, format_description()[19:-4]),
        (35, bytes(8)),
        gtid(9),
        (4, struct.pack("<Q", 4) + b"binlog.000002"),
        (3, b""),
        (20, rows(23, ints(6))[1]),
        (166, rows(23, ints(6))[1]),
        (164, bytes(20)),
    ],
    ids=lambda event: f"type{event[0]}",
)
def test_what_never_stands_in_a_compressed_transaction(
    tmp_path: Path, never: tuple[int, bytes]
) -> None:
    """Taken for an event without rows it would lose the rows that it holds."""
    content = log(gtid(1), payload(inner(BEGIN, never, table_map(), rows(30, ints(5)), xid())))
    error = refused(tmp_path, content)
    assert "cannot stand inside a transaction payload" in error.message
    assert error.position is not None


def compressed_value(data: bytes, *, size: int | None = None, head: int | None = None) -> bytes:
    """A value of a MariaDB COMPRESSED column."""
    length = len(data) if size is None else size
    packed = zlib.compress(data)
    return bytes([0x84 if head is None else head]) + length.to_bytes(4, "big") + packed


COMPRESSED_TABLE = "CREATE TABLE d.t (v VARCHAR(2000) CHARACTER SET latin1 COMPRESSED);"


def compressed_log(value: bytes) -> bytes:
    # with the byte of the method
    mapped = table_map(types=b"\x8d", metadata=struct.pack("<H", 2001))
    return log(*transaction(1, mapped, rows(30, b"\0" + struct.pack("<H", len(value)) + value)))


@pytest.mark.parametrize("text", [b"", b"a", b"x" * 1500])
def test_a_compressed_column(tmp_path: Path, text: bytes) -> None:
    tables, result = replay_log(tmp_path, compressed_log(compressed_value(text)), COMPRESSED_TABLE)
    assert result.error is None
    assert tables["d.t"].rows() == [(text.decode(),)]


def test_a_compressed_column_that_is_kept_plain(tmp_path: Path) -> None:
    tables, _ = replay_log(tmp_path, compressed_log(b"\0abc"), COMPRESSED_TABLE)
    assert tables["d.t"].rows() == [("abc",)]


@pytest.mark.parametrize(
    "value",
    [
        compressed_value(b"abc")[:-4],
        compressed_value(b"abc", size=2),
        compressed_value(b"abc", size=4),
        compressed_value(b"abc", head=0x8C),
        compressed_value(b"abc", head=0x94),
        compressed_value(b"abc", size=0xFFFFFFFF),
        b"\x84\0\0\0\3garbage",
        b"\x87\0",
    ],
)
def test_a_compressed_column_that_is_damaged(tmp_path: Path, value: bytes) -> None:
    error = refused(tmp_path, compressed_log(value), COMPRESSED_TABLE)
    assert "COMPRESSED" in error.message
    assert error.table == "d.t"


def test_a_compressed_column_is_never_unpacked_beyond_its_claim(tmp_path: Path) -> None:
    """A kilobyte that unpacks to a gigabyte, and says so or not."""
    bomb = zlib.compress(bytes(1 << 20))
    value = b"\x84" + (100).to_bytes(4, "big") + bomb
    assert (
        "does not have the 100 bytes"
        in refused(tmp_path, compressed_log(value), COMPRESSED_TABLE).message
    )
