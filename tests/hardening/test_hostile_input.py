"""Small files that claim to be huge: one line of error, exit code 2, and memory that follows what
is there, not what is claimed."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from applier.binlog.types import json
from applier.binlog.types.base import ValueRefused
from applier.errors import InputError
from tests.binlog.build import (
    MAGIC,
    UUID,
    event,
    format_description,
    gtid,
    int_image,
    log,
    mariadb_gtid,
    packed,
    payload,
    query,
    rows,
    table_map,
    write,
    xid,
)
from tests.hardening.runner import Done, Runner

MEGABYTE = 1 << 20
SMALL = 24 * MEGABYTE
"""What reading a small file may take: the first use of a library, caches."""
ALL = os.environ.get("BINLAG_ALL_CASES") == "1"
HUGE = 0xFFFFFFFF
HEAD = MAGIC + format_description(checksum=False)
COLUMNS = packed(65_535)


def header(length: int, kind: int = 2, flags: int = 0) -> bytes:
    return struct.pack("<IBIIIH", 1, kind, 1, length, 0, flags)


def bare(*events: tuple[int, bytes], version: str = "8.0.36") -> bytes:
    return log(*events, checksum=False, version=version)


def map_of(count: bytes, types: bytes, behind: bytes = b"") -> tuple[int, bytes]:
    return 19, struct.pack("<IHH", 1, 0, 1) + b"\x01d\0\x01t\0" + count + types + behind


def zeros(size: int) -> bytes:
    """A zstd frame of so many zero bytes behind the header of an event that has room for them: some
    30,000 bytes a gigabyte."""
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    parts = [compressor.compress(header(19 + size, 29))]
    piece = bytes(MEGABYTE)
    parts += [compressor.compress(piece) for _ in range(size // MEGABYTE)]
    return b"".join([*parts, compressor.flush()])


def claimed(size: int, data: bytes) -> tuple[int, bytes]:
    return payload(b"", size=size, data=data)


def nested(depth: int) -> bytes:
    """Binary JSON: an array in an array in an array..."""
    document = b"\x00\x00\x00\x04\x00"
    for _ in range(depth):
        document = (
            b"\x03"
            + struct.pack("<IIBI", 1, 8 + 5 + len(document) - 1, document[0], 13)
            + document[1:]
        )
    return document


ONE = (gtid(1), query(b"BEGIN"), table_map())
JSON_TABLE = table_map(types=b"\xf5", metadata=b"\x04")
BLOCK = bytes([0x84]) + struct.pack(">I", HUGE) + zlib.compress(bytes(100))
LOGS: dict[str, bytes] = {
    "an event of 40 bytes that claims 4 GB": HEAD + header(HUGE) + bytes(21),
    "a length of 0": HEAD + header(0) + bytes(21),
    "a length that ends inside the header": HEAD + header(18) + bytes(21),
    "a length one byte beyond the file": HEAD + header(20),
    "headers of 255 bytes":
        bare(*ONE).replace(struct.pack("<IB", 1_700_000_000, 19), struct.pack("<IB", 1, 255), 1),
    "a query whose head claims more than it has":
        bare((2, struct.pack("<IIBHH", 1, 0, 255, 0, 65_535))),
    "a user variable of 4 GB": bare((14, struct.pack("<I", HUGE) + b"v")),
    "the value of a user variable of 4 GB":
        bare((14, struct.pack("<I1sBBII", 1, b"v", 0, 0, 45, HUGE))),
    "a transaction context of 2^32 items":
        bare((36, struct.pack("<BIBIII", 0, 1, 1, 0, HUGE, HUGE))),
    "a view change of 2^32 entries": bare((37, bytes(40) + struct.pack("<QI", 1, HUGE))),
    "a list of 2^28 GTIDs": bare((163, struct.pack("<I", 0x0FFFFFFF)), version="10.11.6-MariaDB"),
    "a tagged GTID of 2^60 bytes": bare((42, b"\x02\xff" + struct.pack("<Q", 1 << 60))),
    "a set of 2^60 sources": bare((35, struct.pack("<Q", 1 << 60))),
    "a set of 2^64 intervals": bare((35, struct.pack("<Q16sQQQ", 1, UUID, (1 << 64) - 1, 1, 2))),
    "an interval that ends at 2^63": bare((35, struct.pack("<Q16sQQQ", 1, UUID, 1, 1, 1 << 63))),
    "a payload that claims 2^60 bytes":
        bare(gtid(1), payload(b"", size=1 << 60, data=zstandard.compress(bytes(100)))),
    "a payload whose compressed size is 2^60":
        bare(gtid(1), (40, b"\x02\x01\x00\x01\x09\xfe" + struct.pack("<Q", 1 << 60) + b"\0")),
    "a payload whose event claims 1.5 GB":
        bare(gtid(1), claimed(1 << 40, zstandard.compress(header(3 << 29) + bytes(99)))),
    "a payload whose event claims 1 GB and has none":
        bare(gtid(1), claimed(1 << 40, zstandard.compress(header(1 << 30) + bytes(99)))),
    "a payload with 100 MB more than it claims":
        bare(gtid(1), claimed(1_000, zeros(100 * MEGABYTE))),
    "a zstd window of 2 GB":
        bare(gtid(1), claimed(1_000, b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x03\x00\x00\x00")),
    "a payload in a payload":
        bare(gtid(1), payload(event(*payload(event(*xid(), checksum=False)), checksum=False))),
    "a MariaDB event that claims 4 GB":
        bare(mariadb_gtid(1), (165, query(b"")[1] + BLOCK), version="10.11.6-MariaDB"),
    "a MariaDB event with 20 MB more than it claims": bare(
        mariadb_gtid(1),
        (
            165,
            query(b"")[1]
            + bytes([0x84])
            + struct.pack(">I", 500)
            + zlib.compress(bytes(20 * MEGABYTE), 1),
        ),
        version="10.11.6-MariaDB",
    ),
    "a table map of 65,535 columns that are not there":
        bare(gtid(1), map_of(COLUMNS, b"\x03" * 20)),
    "a table map of 65,535 columns":
        bare(gtid(1), map_of(COLUMNS, b"\x03" * 65_535, b"\x00" + bytes(8_192))),
    "a table map of 2^60 columns": bare(gtid(1), map_of(b"\xfe" + struct.pack("<Q", 1 << 60), b"")),
    "metadata of 2^60 bytes":
        bare(gtid(1), map_of(b"\x01", b"\x0f", b"\xfe" + struct.pack("<Q", 1 << 60) + b"\x10\0\0")),
    "metadata of the wrong length": bare(gtid(1), map_of(b"\x01", b"\x0f", b"\x01\x10\0\0")),
    "a name of 2^60 bytes":
        bare(gtid(1), (19, struct.pack("<IHH", 1, 0, 1) + b"\xfe" + struct.pack("<Q", 1 << 60))),
    "2^60 labels": bare(gtid(1),
                        map_of(b"\x01", b"\xfe",
                               b"\x02\xf7\x01\0\x06\x09\xfe" + struct.pack("<Q", 1 << 60))),
    "rows whose bitmap is longer than the event":
        bare(*ONE, (30, struct.pack("<IHHH", 1, 0, 1, 2) + b"\xfc\x00\x10\xff")),
    "rows of 2^60 columns":
        bare(*ONE, (30, struct.pack("<IHHH", 1, 0, 1, 2) + b"\xfe" + struct.pack("<Q", 1 << 60))),
    "rows with an extra header of 65,535 bytes":
        bare(*ONE, (30, struct.pack("<IHHH", 1, 0, 1, 65_535) + b"\x01\xff")),
    "a blob of 4 GB": bare(gtid(1), query(b"BEGIN"), table_map(types=b"\xfc", metadata=b"\x04"),
                           rows(30, b"\0" + struct.pack("<I", HUGE))),
}  # fmt: skip
"""Name -> a log that both `binlag events --rows` and `binlag replay` must refuse."""
CHANGE_NO_TABLE = (
    "a transaction context of 2^32 items",
    "a view change of 2^32 entries",
    "a list of 2^28 GTIDs",
)
"""Events that a replay passes over unread."""
SCHEMA = "CREATE DATABASE d; CREATE TABLE d.t (i {});"


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as running:
        yield running


def refused(done: Done, *words: str, most: int = SMALL) -> None:
    """One line, exit code 2, and little memory."""
    assert done.code == 2, done
    assert done.said.count("\n") == 1, done.said
    assert done.said.startswith("binlag")
    assert "Next: " in done.said
    assert all(word in done.said for word in words), done.said
    assert done.grown < most, f"{done.grown:,} bytes"


@pytest.mark.parametrize("name", LOGS)
def test_a_log_that_claims_too_much(name: str, runner: Runner, tmp_path: Path) -> None:
    path = write(tmp_path, LOGS[name])
    assert len(LOGS[name]) < 200_000
    refused(runner.run("events", "--rows", path), "binlog.000001", "position")
    if not ALL and list(LOGS).index(name) % 3:
        return
    schema = tmp_path / "s.sql"
    schema.write_text(SCHEMA.format("LONGBLOB" if "blob" in name else "INT"))
    done = runner.run("replay", path, "--schema", schema)
    if name in CHANGE_NO_TABLE:
        assert done.code == 0
        assert done.grown < SMALL
    else:
        refused(done, "binlog.000001", "position")


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("compiled", [False, True], ids=["python", "kernels"])
def test_the_columnar_readers_refuse_it_as_well(name: str, compiled: bool, tmp_path: Path) -> None:
    """But for what only statements and sets of GTIDs hold, which they pass over unread."""
    from tests.binlog.columnar_support import collect

    unread = any(
        word in name
        for word in ("query", "user variable", "context", "view change", "list of", "tagged")
    )
    batches, error = collect(
        [write(tmp_path, LOGS[name])], compiled=compiled, verify_checksum=False
    )
    assert (error is None) == unread
    assert not batches


def test_a_zstd_bomb_ends_where_the_memory_does(runner: Runner, tmp_path: Path) -> None:
    """An event of 900 MB out of 30 kB is no larger than a server's may be; where there is no room
    for it, that is said."""
    path = write(tmp_path, bare(gtid(1), claimed(1 << 40, zeros(900 * MEGABYTE))))
    assert path.stat().st_size < 120_000
    done = runner.run("replay", path, limit=300 * MEGABYTE)
    refused(done, "memory", most=310 * MEGABYTE)


def test_a_payload_of_many_events_is_read_in_little_memory(runner: Runner, tmp_path: Path) -> None:
    """200 MB (2 GB with BINLAG_ALL_CASES=1) of events out of a few kB, one after the other."""
    one = header(19 + MEGABYTE, 29) + bytes(MEGABYTE)
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    count = 2_000 if ALL else 200
    data = b"".join(compressor.compress(one) for _ in range(count)) + compressor.flush()
    path = write(tmp_path, bare(gtid(1), claimed(count * len(one), data)))
    done = runner.run("replay", path)
    assert done.code == 0, done.said
    assert done.grown < SMALL + 8 * MEGABYTE


@pytest.mark.parametrize("depth", [101, 100_000])
def test_json_nested_without_end(depth: int, runner: Runner, tmp_path: Path) -> None:
    document = nested(min(depth, 3_000))
    with pytest.raises(InputError, match="nested too deeply"):
        json.decode(document)
    with pytest.raises(ValueRefused):
        json.encode(json.parse_text("[" * depth + "]" * depth))
    path = write(
        tmp_path,
        bare(
            gtid(1),
            query(b"BEGIN"),
            JSON_TABLE,
            rows(30, b"\0" + struct.pack("<I", len(document)) + document),
        ),
    )
    refused(runner.run("events", "--rows", path), "nested too deeply", "d.t")
    schema = tmp_path / "s.sql"
    schema.write_text(
        SCHEMA.format("JSON") + f"INSERT INTO d.t VALUES ('{'[' * depth}{']' * depth}');"
    )
    refused(runner.run("replay", path, "--schema", schema), "s.sql", "line 1")


def test_a_set_of_a_million_intervals(runner: Runner, tmp_path: Path) -> None:
    """No error: it is a set. It takes memory in proportion, and two of them are compared in one
    pass."""
    count = 1_000_000 if ALL else 100_000
    spans = b"".join(struct.pack("<QQ", 2 * number + 1, 2 * number + 2) for number in range(count))
    previous = (35, struct.pack("<Q16sQ", 1, UUID, count) + spans)
    first = write(tmp_path, bare(previous))
    second = write(tmp_path, bare(previous), "binlog.000002")
    done = runner.run("replay", first, second)
    assert done.code == 0, done.said
    assert done.grown < SMALL + 60 * len(spans)


@pytest.mark.parametrize(
    "first", ["1000000000", "999999999", "99999999999999999999999999", "-1", "0", ""]
)
def test_the_number_of_lines_of_an_info_file(first: str, runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "relay-log.info").write_text(
        f"{first}\n./relay-bin.000001\n4\nbinlog.000001\n154\n0\n0\n1\n\n"
    )
    done = runner.run("status", tmp_path)
    assert done.code in (0, 2), done
    assert "Traceback" not in done.said
    notes = done.said.splitlines()
    assert len(notes) <= 2, "of which the first says whose rules are taken for a file of 5.5"
    assert all(note.startswith("binlag: ") for note in notes)
    assert done.grown < SMALL
    (tmp_path / "worker-relay-log.info.1").write_text("1\nr\n4\nb\n4\nr\n4\nb\n4\n0\n4000000000\n")
    again = runner.run("status", tmp_path)
    assert "Traceback" not in again.said
    assert again.grown < SMALL


@pytest.mark.parametrize(
    ("text", "most"),
    [("x", 10), ("\\n" + "x" * 14, 20), ("\\\\", 130)],
    ids=["a blob", "text", "escapes only"],
)
def test_a_dump_with_one_line_of_many_megabytes(
    text: str, most: int, runner: Runner, tmp_path: Path
) -> None:
    """Some times the size of the line. Escapes cost the regular expression most; a line of nothing
    else is nobody's."""
    size = (50 if ALL and most < 100 else 4) * MEGABYTE
    schema = tmp_path / "s.sql"
    path = write(tmp_path, bare(*ONE, rows(30, int_image(1)), xid()))
    schema.write_text(
        SCHEMA.format("INT")
        + f"CREATE TABLE d.b (b LONGBLOB); INSERT INTO d.b VALUES ('{text * (size // len(text))}');"
    )
    done = runner.run("replay", path, "--schema", schema)
    assert done.code == 0, done.said
    assert done.grown < SMALL + most * size


def test_a_statement_of_millions_of_words(runner: Runner, tmp_path: Path) -> None:
    schema = tmp_path / "s.sql"
    schema.write_text(
        "CREATE DATABASE d; CREATE TABLE d.t (" + "a," * (3_000_000 if ALL else 300_000)
    )
    refused(
        runner.run("replay", write(tmp_path, bare(gtid(1))), "--schema", schema),
        "s.sql",
        most=1 << 30,
    )


@pytest.mark.parametrize("limit", [200 * MEGABYTE])
def test_a_gzip_bomb(limit: int, runner: Runner, tmp_path: Path) -> None:
    schema = tmp_path / "s.sql.gz"
    with gzip.open(schema, "wb", 1) as file:
        for _ in range(400):
            file.write(b" " * MEGABYTE)
    refused(
        runner.run("replay", write(tmp_path, bare(gtid(1))), "--schema", schema, limit=limit),
        "memory",
        most=limit + 10 * MEGABYTE,
    )
