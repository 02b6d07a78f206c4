"""Row images whose lengths point outside of their event, in logs without checksums: of wide tables,
and of partial updates.

BINLAG_FUZZ multiplies the number of damaged logs (default 1: 2,100).
"""

from __future__ import annotations

import os
import random
import resource
import struct
from pathlib import Path

import pytest

import applier
from applier.binlog.listing import Listing
from applier.errors import InputError
from applier.forecast.inventory.facts import facts_of_tables
from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.schema import Schema
from lookup.versions import RULES
from tests.applier.fuzz import survives
from tests.applier.logs import transaction
from tests.binlog.build import log, rows, table_map, write

LOGS = 700 * int(os.environ.get("BINLAG_FUZZ") or 1)
MEGABYTES = 200
DIFF = b"\0\3$.a\3\5\1\0"
"""JSON_REPLACE('$.a', 1)"""
JSON = b"\0\1\0\x0c\0\x0b\0\1\0\5\1\0a"
COLUMNS = (
    ("INT NOT NULL", 3, b"", struct.pack("<i", 1)),
    ("VARCHAR(300)", 15, struct.pack("<H", 1200), b"\3\0abc"),
    ("JSON", 245, b"\4", struct.pack("<I", len(JSON)) + JSON),
    ("LONGBLOB", 252, b"\4", struct.pack("<I", 3) + b"xyz"),
    ("DATETIME(3)", 18, b"\3", bytes.fromhex("99b6f31230") + b"\0\1"),
    ("DECIMAL(10,3)", 246, b"\x0a\3", bytes.fromhex("8000000100c8")),
    ("BIT(20)", 16, b"\4\2", b"\1\2\3"),
    ("DOUBLE", 5, b"\x08", struct.pack("<d", 1.5)),
    ("TINYTEXT", 252, b"\1", b"\2hi"),
)
"""Definition, type, metadata, a value."""
WIDE = COLUMNS * 9
SCHEMA = (
    f"CREATE TABLE d.t ({', '.join(f'c{at} {one[0]}' for at, one in enumerate(WIDE))}, "
    "PRIMARY KEY (c0));"
)


def image(*, changes: bool = False) -> bytes:
    diff = struct.pack("<I", len(DIFF)) + DIFF
    return bytes((len(WIDE) + 7) // 8) + b"".join(
        diff if changes and one[1] == 245 else one[3] for one in WIDE
    )


def made(kind: int) -> tuple[bytes, tuple[int, int]]:
    """A log with an insert and an event of this kind; where the images of that stand."""
    types, metadata = bytes(one[1] for one in WIDE), b"".join(one[2] for one in WIDE)
    number, body = table_map(types=types, metadata=b"")
    body = (
        body[: -1 - (len(WIDE) + 7) // 8]
        + bytes([len(metadata)])
        + metadata
        + b"\xff" * ((len(WIDE) + 7) // 8)
    )
    one = image()
    images = {
        30: one,
        31: one + one,
        32: one,
        39: one + b"\0" + one + one + b"\1" + b"\xff\1" + image(changes=True),
    }[kind]
    first = transaction(1, (number, body), rows(30, one, width=len(WIDE))) if kind != 30 else ()
    content = log(
        *first, *transaction(2, (number, body), rows(kind, images, width=len(WIDE))), checksum=False
    )
    return content, (content.rindex(images), content.rindex(images) + len(images))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("kind", [30, 31, 39])
def test_lengths_that_point_outside(tmp_path: Path, kind: int) -> None:
    content, (start, end) = made(kind)
    chance, schema = random.Random(kind), applier.load_schema(SCHEMA)
    facts = facts_of_tables(schema)
    path, before = write(tmp_path, content), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert sum(1 for _ in Listing([str(path)], with_rows=True)) > 4
    for _ in range(LOGS):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 1, 2, 4))):
            damaged[chance.randrange(start, end)] = chance.choice(
                (0, 1, 0x7F, 0x80, 0xFC, 0xFF, chance.randrange(256))
            )
        if chance.random() < 0.3:
            del damaged[chance.randrange(start, len(damaged)) :]
        path.write_bytes(damaged)
        reader = chance.randrange(3)
        try:
            if reader == 0:
                survives(path, schema.copy(), verify_checksum=False)
            elif reader == 1:
                list(Listing([str(path)], with_rows=True, verify=False))
            else:
                list(LoadReader([path], schema=Schema(facts, RULES["9.7"]), verify_checksum=False))
        except InputError as error:
            assert error.file is not None
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024 < MEGABYTES
