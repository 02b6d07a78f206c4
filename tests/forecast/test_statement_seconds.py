"""How long statements ran on their source, from logs that a replica wrote and under SET TIMESTAMP.

The times are those of a real 9.7.4 source and its replica, whose applier was stopped for ten
seconds: CREATE DATABASE, exec_time 0 in the source's log and 10 in the replica's. 5.7.29 and
MariaDB 10.11.18 write the same exec_time, and no commit times.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.statement_seconds import Connections
from tests.binlog import build
from tests.captures_support import CAPTURES

BEGAN, COMMITTED, APPLIED = 1_795_620_320, 1_795_620_320_461_230, 1_795_620_330_338_183
ORIGINAL_FOLLOWS = 1 << 55


def stamps(committed: int, original: int | None = None) -> bytes:
    if original is None:
        return struct.pack("<Q", committed)[:7]
    found = (committed | ORIGINAL_FOLLOWS, original)
    return b"".join(struct.pack("<Q", one)[:7] for one in found)


def made(
    folder: Path, rest: bytes, seconds: int, *, server_id: int = 1, began: int = BEGAN,
    version: str = "8.0.36", statements: int = 1, created: int = 0,
) -> LoadReader:  # fmt: skip
    """A log of server 1 whose transaction is of `server_id`."""
    kind, body = build.query(b"CREATE DATABASE d" if statements == 1 else b"INSERT INTO t SELECT 1")
    timed = kind, body[:4] + struct.pack("<I", seconds) + body[8:]
    found = [build.gtid(1, rest=rest, anonymous=version == "5.7.29"), timed]
    if statements > 1:
        found = [found[0], build.query(b"BEGIN"), *[timed] * statements, build.xid()]
    out = build.MAGIC + build.format_description(version, created=created)
    for kind, body in found:
        out += build.event(kind, body, at=len(out), timestamp=began, server_id=server_id)
    return LoadReader([build.write(folder, out)])


@pytest.mark.parametrize(
    ("rest", "server_id", "logged", "seconds"),
    [
        (stamps(COMMITTED), 1, 0, 0),
        (stamps(COMMITTED), 1, 30, 30),
        (stamps(APPLIED, COMMITTED), 2, 10, 0),
        (stamps(APPLIED, COMMITTED), 2, 40, 30),
        (stamps(COMMITTED - 5_000_000, COMMITTED), 2, 25, 30),  # its clock is 5 s slow
        (stamps(APPLIED, 0), 2, 10, 10),  # of a source of 5.7
    ],
)
def test_what_the_replica_was_behind_is_no_time_of_the_statement(
    tmp_path: Path, rest: bytes, server_id: int, logged: int, seconds: int
) -> None:
    reader = made(tmp_path, rest, logged, server_id=server_id)
    assert [load.statement_seconds for load in reader] == [seconds]


def test_each_statement_of_a_transaction_has_it(tmp_path: Path) -> None:
    reader = made(tmp_path, stamps(APPLIED, COMMITTED), 12, server_id=2, statements=3)
    assert [load.statement_seconds for load in reader] == [6]


@pytest.mark.parametrize(("version", "rest"), [("5.7.29", b""), ("8.0.36", stamps(APPLIED, 0))])
def test_a_replica_that_does_not_say_how_far_behind_it_was(
    tmp_path: Path, version: str, rest: bytes
) -> None:
    reader = made(tmp_path, rest, 10, server_id=2, version=version)
    assert [load.statement_seconds for load in reader] == [10]
    [note] = reader.notes
    assert note.startswith("server_id 1, a replica, wrote the log of server_id 2: the time of")
    for seconds, server_id in ((0, 2), (10, 1)):
        reader = made(tmp_path, rest, seconds, server_id=server_id, version=version)
        assert [load.statement_seconds for load in reader] == [seconds]
        assert reader.notes == {}


def test_a_statement_that_began_long_before_its_file_is_in_doubt(tmp_path: Path) -> None:
    file_began = 1_700_000_000
    for began, notes in ((file_began - 3600, 0), (file_began - 3601, 1)):
        reader = made(tmp_path, stamps(COMMITTED), 4000, began=began)
        assert [load.statement_seconds for load in reader] == [4000]
        assert len(reader.notes) == notes


def test_no_statement_took_longer_than_since_the_one_before_it_on_its_connection() -> None:
    connections = Connections(server_began=0)
    assert connections.most_seconds(7, 1_000, 30) == 30
    assert connections.most_seconds(7, 500, 535) == 5  # SET TIMESTAMP = 500, ended at 1,035
    assert connections.most_seconds(8, 500, 535) == 535  # another connection: nothing tells
    assert connections.most_seconds(7, 1_040, 3_600) == 3_600
    assert connections.most_seconds(7, 9_000, 0) == 0
    assert Connections(server_began=1_030).most_seconds(1, 500, 535) == 5


def test_a_client_that_had_set_its_timestamp_took_no_days() -> None:
    """A real 9.7.4's log of statements, from the start of the server on: exec_time says years."""
    captured = LoadReader([CAPTURES / "open" / "my_statement_mixed" / "binlog.000001"])
    assert sum(load.statement_seconds for load in captured) < 60
    assert captured.notes == {}


def test_a_relay_log_is_not_its_replicas_own(tmp_path: Path) -> None:
    """It holds the source's events as they are."""
    reader = made(tmp_path, b"", 10, server_id=2, version="5.7.29")
    [path] = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    content[4 + 17] |= 0x40
    length = int.from_bytes(content[13:17], "little") - 4
    content[4 + length : 8 + length] = struct.pack("<I", zlib.crc32(content[4 : 4 + length]))
    path.write_bytes(content)
    assert [load.statement_seconds for load in reader] == [10]
    assert reader.notes == {}
