"""Damaged logs: an InputError or a valid result, never another exception, and no flipped bit goes
unseen under a checksum.

BINLAG_FUZZ multiplies the number of mutated files (default 1: about 2,000).
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applier.binlog.listing import Listing
from applier.binlog.reader import LogReader
from applier.binlog.transactions import group
from applier.errors import InputError
from tests.binlog.build import (
    MAGIC,
    compressed,
    event,
    gtid,
    int_image,
    log,
    mariadb_gtid,
    payload,
    query,
    rows,
    table_map,
    write,
    xid,
)
from tests.captures_support import captures, logs

ROUNDS = int(os.environ.get("BINLAG_FUZZ") or 1)
UNWATCHED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
"""Each example writes its file anew; how long it takes to make one says how fast the machine is."""
BEGIN = query(b"BEGIN")
UPDATE = rows(31, int_image(1) + int_image(2))


def mysql_log(checksum: bool) -> bytes:
    inner = b"".join(
        event(kind, body, checksum=False) for kind, body in (BEGIN, table_map(), UPDATE, xid())
    )
    variables = b"\x00\0\0\0\4\x01" + bytes(8) + b"\x06\x03std\x04" + bytes(6) + b"\x0c\x01d\0"
    return log(
        (35, struct.pack("<Q16sQQQ", 1, bytes(16), 1, 1, 5)),
        gtid(1),
        BEGIN,
        (29, b"\0UPDATE t"),
        table_map(),
        UPDATE,
        rows(30, int_image(3) * 9),
        xid(),
        gtid(2),
        query(b"CREATE TABLE t (a INT)", variables=variables),
        gtid(3),
        payload(inner),
        (14, struct.pack("<I1sBBII", 1, b"v", 0, 0, 45, 2) + b"hi\0"),
        query(b"XA START X'78',X'',1"),
        (38, struct.pack("<BIII", 0, 1, 1, 0) + b"x"),
        (4, struct.pack("<Q", 4) + b"binlog.000002"),
        checksum=checksum,
    )


def mariadb_log(checksum: bool) -> bytes:
    _, whole = rows(23, int_image(7) * 50)
    head = len(rows(23, b"")[1])
    return log(
        (163, struct.pack("<IIIQ", 1, 0, 9, 7)),
        (161, struct.pack("<I", 3) + b"b.1"),
        mariadb_gtid(1, 6, rest=bytes(8)),
        (160, b"INSERT"),
        table_map(),
        (166, whole[:head] + compressed(whole[head:])),
        xid(),
        mariadb_gtid(2, 1),
        (165, query(b"")[1] + compressed(b"DROP TABLE t")),
        version="10.11.6-MariaDB",
        checksum=checksum,
    )


def read_everything(path: Path, **options: object) -> int:
    """Every event described, every row decoded, every transaction grouped; the number of events."""
    count = sum(1 for listed in Listing([str(path)], with_rows=True, **options) if listed.as_dict())  # type: ignore[arg-type]
    list(group(LogReader([path], verify_checksum=bool(options.get("verify", True)))))
    return count


def survives(path: Path, content: bytes, **options: object) -> bool:
    """Whether the log could be read; any error but the one for damaged input fails the test."""
    write(path, content, "binlog.000001")
    try:
        read_everything(path / "binlog.000001", **options)
    except InputError as error:
        assert error.file is not None
        return False
    return True


def flip(content: bytearray, at: int, chance: random.Random) -> None:
    content[at] ^= 1 << chance.randrange(8)


def replace(content: bytearray, at: int, chance: random.Random) -> None:
    content[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFB, 0xFC, 0xFE, 0xFF))


def widen(content: bytearray, at: int, chance: random.Random) -> None:
    content[at : at + 4] = chance.choice((0, 18, 19, 1 << 16, 0x7FFFFFFF, 0xFFFFFFFF)).to_bytes(
        4, "little"
    )


def cut_out(content: bytearray, at: int, chance: random.Random) -> None:
    del content[at : at + chance.randrange(1, 40)]


def double(content: bytearray, at: int, chance: random.Random) -> None:
    content[at:at] = content[at : at + chance.randrange(1, 40)]


MUTATIONS: tuple[Callable[[bytearray, int, random.Random], None], ...] = (
    flip,
    replace,
    widen,
    cut_out,
    double,
)


@pytest.mark.parametrize("make", [mysql_log, mariadb_log])
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
@pytest.mark.parametrize("checksum", [True, False], ids=["crc32", "none"])
def test_mutated_logs(
    tmp_path: Path, make: Callable[[bool], bytes], mutation: Callable[..., None], checksum: bool
) -> None:
    """With checksums on, one file in two is read without verifying, so that damage reaches the
    parsers."""
    original = make(checksum)
    assert survives(tmp_path, original)
    chance = random.Random(f"{make.__name__} {mutation.__name__} {checksum}")
    for number in range(80 * ROUNDS):
        content = bytearray(original)
        for _ in range(1 + number % 3):
            mutation(content, chance.randrange(4, len(content) - 4), chance)
        survives(tmp_path, bytes(content), verify=number % 2 == 0)


def small_log(checksum: bool) -> bytes:
    return log(BEGIN, query(b"INSERT INTO t VALUES (1)"), xid(), checksum=checksum)


@pytest.mark.parametrize("make", [mysql_log, mariadb_log, small_log])
def test_every_flipped_bit_is_detected(tmp_path: Path, make: Callable[[bool], bytes]) -> None:
    """But for the flag that says the log is in use, which is not part of the checksum."""
    original = make(True)
    in_use = 8 * (4 + 17)
    stride = max(1, len(original) * 8 // (700 * ROUNDS)) if make is not small_log else 1
    for bit in range(32, len(original) * 8, stride):
        content = bytearray(original)
        content[bit // 8] ^= 1 << bit % 8
        assert survives(tmp_path, bytes(content)) == (bit == in_use), (
            f"bit {bit % 8} of byte {bit // 8}"
        )


@pytest.mark.parametrize("make", [mysql_log, mariadb_log])
def test_every_truncation(tmp_path: Path, make: Callable[[bool], bytes]) -> None:
    """A log that ends between two events is a log; every other cut is an error at the position of
    the event that is cut."""
    original = make(True)
    path = write(tmp_path, original)
    starts = [event.position for event in LogReader([path]) if event.inner_index < 0] + [
        len(original)
    ]
    for size in range(4, len(original), 1 if ROUNDS > 1 else 3):
        path.write_bytes(original[:size])
        if size in starts:
            list(LogReader([path]))
            continue
        with pytest.raises(InputError) as caught:
            list(LogReader([path]))
        assert caught.value.position == max((start for start in starts if start < size), default=4)


@pytest.mark.parametrize(
    "capture",
    [
        path
        for path in captures()
        if path.name in {"my_tagged_gtid", "ma_xa_domains", "my_statement_mixed"}
    ],
    ids=lambda p: p.name,
)
def test_mutated_real_logs(tmp_path: Path, capture: Path) -> None:
    original = logs(capture)[0].read_bytes()[:12_000]
    chance = random.Random(capture.name)
    for number in range(40 * ROUNDS):
        content = bytearray(original)
        for _ in range(1 + number % 4):
            chance.choice(MUTATIONS)(content, chance.randrange(4, len(content) - 4), chance)
        survives(tmp_path, bytes(content), verify=False)


@settings(max_examples=200 * ROUNDS, deadline=None, suppress_health_check=UNWATCHED)
@given(
    kind=st.integers(0, 255),
    body=st.binary(max_size=80),
    flags=st.sampled_from([0, 0x80]),
    mariadb=st.booleans(),
)
def test_any_body_of_any_type(
    tmp_path: Path, kind: int, body: bytes, flags: int, mariadb: bool
) -> None:
    survives(
        tmp_path, log((kind, body, flags), xid(), version="10.11.6-MariaDB" if mariadb else "9.7.0")
    )


@settings(max_examples=100 * ROUNDS, deadline=None, suppress_health_check=UNWATCHED)
@given(st.binary(max_size=300))
def test_any_bytes(tmp_path: Path, content: bytes) -> None:
    survives(tmp_path, MAGIC + content)


@settings(max_examples=100 * ROUNDS, deadline=None, suppress_health_check=UNWATCHED)
@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=1), st.binary(max_size=3)), max_size=6),
    st.binary(max_size=60),
)
def test_any_columns_and_any_images(
    tmp_path: Path, columns: list[tuple[bytes, bytes]], images: bytes
) -> None:
    types = b"".join(kind for kind, _ in columns) or b"\x03"
    metadata = b"".join(data for _, data in columns)
    made = [
        table_map(types=types, metadata=metadata),
        rows(30, images, width=len(types)),
        rows(31, images, width=len(types)),
    ]
    survives(tmp_path, log(*made))
