"""Each event type from bytes to its fields, and its line in the words of SHOW BINLOG EVENTS."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from applier.binlog import events as log_events
from applier.binlog.describe import describe
from applier.binlog.events import parse
from applier.binlog.gtid_events import Gtid
from applier.binlog.reader import LogReader
from applier.binlog.status_vars import parse_status_variables
from applier.errors import InputError
from tests.binlog.build import (
    UUID,
    UUID_TEXT,
    gtid,
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

MARIADB = "10.11.6-MariaDB"


def read(
    folder: Path, made: tuple[int, bytes] | tuple[int, bytes, int], version: str = "8.0.36"
) -> tuple[Any, str]:
    """(fields, description) of one event behind a format description."""
    reader = LogReader([write(folder, log(made, version=version))])
    for event in reader:
        if event.type != 15:
            assert reader.format is not None
            return parse(event, reader.format), describe(event, reader.format)
    raise AssertionError("no event")


def varlen(value: int) -> bytes:
    """mysql::serialization's unsigned integer."""
    size = next(size for size in range(1, 10) if size == 9 or value < 1 << (7 * size))
    return (
        b"\xff" + value.to_bytes(8, "little")
        if size == 9
        else ((value << size) | ((1 << (size - 1)) - 1)).to_bytes(size, "little")
    )


def signed(value: int) -> bytes:
    return varlen((abs(value) - (value < 0)) << 1 | (value < 0))


def tagged(fields: list[bytes], *, ignorable: int = 0, version: int = 1) -> tuple[int, bytes]:
    tail = varlen(ignorable) + b"".join(fields)
    size = next(size for size in range(1, 400) if size == 1 + len(varlen(size)) + len(tail))
    return 42, varlen(version) + varlen(size) + tail


TAGGED = [
    varlen(0) + varlen(1),
    varlen(1) + b"".join(varlen(byte) for byte in UUID[::-1]),
    varlen(2) + signed(70000),
    varlen(3) + varlen(5) + b"tag_1",
    varlen(4) + signed(-1),
    varlen(5) + signed(17),
    varlen(6) + varlen(1_700_000_000_000_000),
    varlen(7) + varlen(1_600_000_000_000_000),
    varlen(8) + varlen(5_000_000_000),
    varlen(9) + varlen(90600),
    varlen(10) + varlen(80400),
    varlen(11) + varlen((1 << 63) + 5),
]


def test_varlen_examples_of_the_server() -> None:
    assert (varlen(127), varlen(128), varlen(65535)) == (b"\xfe", b"\x01\x02", b"\xfb\xff\x07")
    assert (len(varlen((1 << 56) - 1)), len(varlen(1 << 56)), signed(5)) == (8, 9, b"\x14")


def test_gtid_tagged(tmp_path: Path) -> None:
    found, text = read(tmp_path, tagged(TAGGED), "9.7.0")
    assert found == Gtid(
        "0f0e0d0c-0b0a-0908-0706-050403020100",
        70000,
        "tag_1",
        1,
        -1,
        17,
        1_700_000_000_000_000,
        1_600_000_000_000_000,
        5_000_000_000,
        90600,
        80400,
        (1 << 63) + 5,
    )
    assert text == "SET @@SESSION.GTID_NEXT= '0f0e0d0c-0b0a-0908-0706-050403020100:tag_1:70000'"


def test_gtid_tagged_defaults_and_fields_from_the_future(tmp_path: Path) -> None:
    fields = [*TAGGED[1:7], TAGGED[9], varlen(12) + b"new things"]
    found, _ = read(tmp_path, tagged(fields, ignorable=0), "9.7.0")
    assert (
        found.original_commit_timestamp,
        found.original_server_version,
        found.transaction_length,
    ) == (1_700_000_000_000_000, 90600, 0)
    with pytest.raises(InputError, match="must not be ignored"):
        read(tmp_path, tagged(fields, ignorable=13), "9.7.0")
    with pytest.raises(InputError, match="serialization format"):
        read(tmp_path, tagged(fields, version=2), "9.7.0")
    kind, body = tagged(fields)
    with pytest.raises(InputError, match="claims more bytes"):
        read(tmp_path, (kind, body[:-1]), "9.7.0")


def test_gtid_of_5_6_has_no_clock(tmp_path: Path) -> None:
    found, text = read(tmp_path, (33, struct.pack("<B16sq", 1, UUID, 9)))
    assert found == Gtid(UUID_TEXT, 9, flags=1)
    assert text == f"SET @@SESSION.GTID_NEXT= '{UUID_TEXT}:9'"


def test_gtid_of_5_7_and_8(tmp_path: Path) -> None:
    found, _ = read(tmp_path, gtid(9, last=3, sequence=4))
    assert (found.last_committed, found.sequence_number, found.immediate_commit_timestamp) == (
        3,
        4,
        0,
    )
    micros = 1_700_000_000_123_456
    both = struct.pack("<Q", micros | 1 << 55)[:7] + struct.pack("<Q", micros - 5)[:7]
    found, _ = read(
        tmp_path,
        gtid(9, rest=both + packed(70_000) + struct.pack("<IIQ", 80036 | 1 << 31, 50744, 77)),
    )
    assert (found.immediate_commit_timestamp, found.original_commit_timestamp) == (
        micros,
        micros - 5,
    )
    assert (
        found.transaction_length,
        found.immediate_server_version,
        found.original_server_version,
    ) == (70_000, 80036, 50744)
    assert found.commit_group_ticket == 77
    one = struct.pack("<Q", micros)[:7] + packed(200) + struct.pack("<I", 80036)
    found, text = read(tmp_path, gtid(0, anonymous=True, rest=one))
    assert (
        found.uuid,
        found.text,
        found.original_commit_timestamp,
        found.original_server_version,
    ) == (None, None, micros, 80036)
    assert text == "SET @@SESSION.GTID_NEXT= 'ANONYMOUS'"


XID = struct.pack("<IBB", 1, 2, 1) + b"gtb"
PREPARED = struct.pack("<BIII", 0, 1, 2, 1) + b"gtb"


@pytest.mark.parametrize(
    ("made", "fields", "text"),
    [
        (mariadb_gtid(5, 1), {"text": "0-1-5", "is_standalone": True, "commit_id": None},
         "GTID 0-1-5"),
        (mariadb_gtid(5, 4, domain=3), {"text": "3-1-5", "is_standalone": False},
         "BEGIN GTID 3-1-5"),
        (mariadb_gtid(5, 2, rest=struct.pack("<Q", 99)), {"commit_id": 99},
         "BEGIN GTID 0-1-5 cid=99"),
        (mariadb_gtid(5, 0x40, rest=XID), {"xid": "X'6774',X'62',1"},
         "XA START X'6774',X'62',1 GTID 0-1-5"),
        (mariadb_gtid(5, 0x81, rest=XID), {"xid": "X'6774',X'62',1"}, "GTID 0-1-5"),
        (mariadb_gtid(5, 4, rest=bytes([0, 0, 0])), {"flags_extra": 0}, "BEGIN GTID 0-1-5"),
        (mariadb_gtid(5, 0x29, rest=bytes([2])), {"is_half_alter": True}, "GTID 0-1-5"),
        (mariadb_gtid(5, 0x29, rest=bytes([4]) + bytes(8)), {"is_half_alter": False}, "GTID 0-1-5"),
        (mariadb_gtid(5, 0x29, rest=bytes([8]) + bytes(8)), {"is_half_alter": True}, "GTID 0-1-5"),
        ((163, struct.pack("<IIIQIIQ", 2 | 1 << 28, 1, 9, 7, 0, 9, 5)), {"flags": 1},
         "[0-9-5,1-9-7]"),
        ((163, struct.pack("<I", 0)), {"gtids": ()}, "[]"),
        ((161, struct.pack("<I", 13) + b"binlog.000003"), {"file": "binlog.000003"},
         "binlog.000003"),
        ((160, b"INSERT INTO t VALUES (1)"), {"sql": b"INSERT INTO t VALUES (1)"},
         "INSERT INTO t VALUES (1)"),
    ],
)  # fmt: skip
def test_mariadb(
    tmp_path: Path, made: tuple[int, bytes], fields: dict[str, Any], text: str
) -> None:
    found, shown = read(tmp_path, made, MARIADB)
    assert {name: getattr(found, name) for name in fields} == fields
    assert shown == text


@pytest.mark.parametrize(
    ("made", "fields", "text"),
    [
        (xid(77), {"xid": 77}, "COMMIT /* xid=77 */"),
        ((38, PREPARED), {"one_phase": False, "text": "X'6774',X'62',1"},
         "XA PREPARE X'6774',X'62',1"),
        ((38, b"\x01" + PREPARED[1:]), {"one_phase": True}, "XA COMMIT X'6774',X'62',1 ONE PHASE"),
        ((3, b""), {"data": b""}, ""),
        ((4, struct.pack("<Q", 4) + b"binlog.000002"), {"position": 4, "file": "binlog.000002"},
         "binlog.000002;pos=4"),
        ((5, b"\x02" + struct.pack("<Q", 12)), {"type": 2, "value": 12}, "INSERT_ID=12"),
        ((5, b"\x01" + struct.pack("<Q", 13)), {"value": 13}, "LAST_INSERT_ID=13"),
        ((13, struct.pack("<QQ", 3, 4)), {"seed1": 3, "seed2": 4}, "rand_seed1=3,rand_seed2=4"),
        ((29, b"\0SELECT 1"), {"sql": b"SELECT 1"}, "# SELECT 1"),
        ((28, b"", 0x80), {"data": b""}, "# Unrecognized ignorable event"),
        ((26, b"\x01\0\x04gone"), {"number": 1, "message": "gone"}, "#1 (LOST_EVENTS): gone"),
        ((26, b"\x01\0"), {"message": ""}, "#1 (LOST_EVENTS)"),
        ((17, struct.pack("<I", 8) + b"a,b"), {"file_id": 8, "data": b"a,b"},
         ";file_id=8;block_len=3"),
        ((9, struct.pack("<I", 8) + b"c"), {"file_id": 8, "data": b"c"}, ";file_id=8;block_len=1"),
        ((11, struct.pack("<I", 8)), {"file_id": 8}, ";file_id=8"),
        ((27, b"binlog.000007"), {"file": "binlog.000007"}, "binlog.000007;pos=162"),
        (
            (41, b"\x01\x0dbinlog.000007\x02\x09\xfe" + struct.pack("<Q", 1 << 33) + b"\0"),
            {"position": 1 << 33},
            "binlog.000007;pos=8589934592",
        ),
        ((35, bytes(8)), {"gtids": log_events.GtidSet()}, ""),
        ((35, struct.pack("<Q16sQQQ", 1, UUID, 1, 1, 5)),
         {"gtids": log_events.GtidSet(f"{UUID_TEXT}:1-4")}, f"{UUID_TEXT}:1-4"),
        (
            (
                37,
                b"view:1".ljust(40, b"\0")
                + struct.pack("<QIH", 5, 1, 1)
                + b"k"
                + struct.pack("<I", 2)
                + b"vv",
            ),
            {"view_id": "view:1", "sequence_number": 5, "certification": {"k": b"vv"}},
            "view_id=view:1",
        ),
        (
            (
                36,
                struct.pack("<BIBIII", 2, 9, 1, 3, 1, 2)
                + b"uu"
                + b"set"
                + b"\x01\0w"
                + b"\x02\0r1"
                + b"\0\0",
            ),
            {
                "server_uuid": "uu",
                "snapshot": b"set",
                "write_set": (b"w",),
                "read_set": (b"r1", b""),
            },
            "server_uuid=uu\tthread_id=9",
        ),
        ((14, struct.pack("<I", 1) + b"v\x01"), {"name": b"v", "value": None}, "@`v`=NULL"),
        ((14, struct.pack("<I1sBBII", 1, b"v", 0, 2, 8, 8) + struct.pack("<q", -7) + b"\0"),
         {"type": 2, "unsigned": False}, "@`v`=-7"),
        ((14, struct.pack("<I1sBBII", 1, b"v", 0, 2, 8, 8) + b"\xff" * 8 + b"\x01"),
         {"unsigned": True}, "@`v`=18446744073709551615"),
        ((14, struct.pack("<I1sBBII", 1, b"v", 0, 1, 8, 8) + struct.pack("<d", 0.1)), {"type": 1},
         "@`v`=0.1"),
        ((14, struct.pack("<I1sBBII", 1, b"v", 0, 4, 8, 4) + b"\x03\x01\x80\x0c"), {"type": 4},
         None),
        (
            (14, struct.pack("<I1sBBII", 1, b"v", 0, 0, 45, 2) + b"hi"),
            {"value": b"hi", "collation": 45},
            "@`v`=_utf8mb4 0x6869 COLLATE utf8mb4_general_ci",
        ),
        (payload(b"", data=b"", compression=255), {"compression": 255, "payload_size": 0},
         "compression='NONE', decompressed_size=0 bytes"),
        ((1, b"x" * 56), {"data": b"x" * 56}, ""),
        ((7, b"abc"), {"data": b"abc"}, ""),
        ((6, b"x" * 18), {"data": b"x" * 18}, ""),
        ((12, b"x" * 18), {"data": b"x" * 18}, ""),
        ((8, b"\x01\0\0\0xx"), {"data": b"\x01\0\0\0xx"}, ""),
        ((10, struct.pack("<I", 3)), {"file_id": 3}, ";file_id=3"),
    ],
)  # fmt: skip
def test_other_events(
    tmp_path: Path, made: tuple[int, bytes], fields: dict[str, Any], text: str | None
) -> None:
    found, shown = read(tmp_path, made)
    assert {name: getattr(found, name) for name in fields} == fields
    assert text is None or shown == text


def test_query(tmp_path: Path) -> None:
    found, text = read(
        tmp_path, query(b"DROP TABLE t", b"my`db", b"\x11" + struct.pack("<Q", 42), error=1051)
    )
    assert (found.thread_id, found.database, found.error_code, found.sql) == (
        7,
        b"my`db",
        1051,
        b"DROP TABLE t",
    )
    assert found.variables.ddl_xid == 42
    assert text == "use `my``db`; DROP TABLE t /* xid=42 */"
    assert read(tmp_path, (*query(b"BEGIN"), 0x8))[1] == "BEGIN"
    assert read(tmp_path, query(b"\xff\xfe", b""))[1] == "\\xff\\xfe"


def test_execute_load_query(tmp_path: Path) -> None:
    _, body = query(b"LOAD DATA INFILE 'x' INTO TABLE t")
    found, text = read(tmp_path, (18, body[:13] + struct.pack("<IIIB", 8, 9, 12, 1) + body[13:]))
    assert (found.file_id, found.name_start, found.name_end, found.duplicate_handling) == (
        8,
        9,
        12,
        1,
    )
    assert found.query.sql == b"LOAD DATA INFILE 'x' INTO TABLE t"
    assert text == "use `d`; LOAD DATA INFILE 'x' INTO TABLE t ;file_id=8"


def test_table_map_and_rows(tmp_path: Path) -> None:
    reader = LogReader(
        [
            write(
                tmp_path,
                log(
                    table_map(7),
                    rows(30, b"", 7),
                    rows(24, b"", 7, flags=0x1F),
                    rows(32, b"", 7, flags=0),
                ),
            )
        ]
    )
    shown = [describe(event, reader.format) for event in reader if reader.format]
    assert shown[1:] == [
        "table_id: 7 (d.t)",
        "table_id: 7 flags: STMT_END_F",
        (
            "table_id: 7 flags: STMT_END_F NO_FOREIGN_KEY_CHECKS_F RELAXED_UNIQUE_CHECKS_F "
            "COMPLETE_ROWS_F USE_SQL_FOREIGN_KEY_F"
        ),
        "table_id: 7",
    ]


STATUS = (
    b"\x00"
    + struct.pack("<I", 1 << 26)
    + b"\x01"
    + struct.pack("<Q", 1 << 40)
    + b"\x02\x03std\0"
    + b"\x06\x03std"
    + b"\x03"
    + struct.pack("<HH", 10, 3)
    + b"\x04"
    + struct.pack("<HHH", 255, 45, 8)
    + b"\x05\x06SYSTEM"
    + b"\x07"
    + struct.pack("<H", 4)
    + b"\x08"
    + struct.pack("<H", 46)
    + b"\x09"
    + struct.pack("<Q", 5)
    + b"\x0a"
    + struct.pack("<I", 6)
    + b"\x0b\x04root\x09localhost"
    + b"\x0c\x02a\0bb\0"
    + b"\x0d"
    + struct.pack("<I", 123456)[:3]
    + b"\x10\x01"
    + b"\x11"
    + struct.pack("<Q", 7)
    + b"\x12"
    + struct.pack("<H", 45)
    + b"\x13\x01\x14\x00\x15\x01"
)


def test_every_status_variable() -> None:
    found = parse_status_variables(STATUS)
    assert not found.foreign_key_checks
    assert (found.sql_mode, found.catalog, found.auto_increment, found.charset) == (
        1 << 40,
        b"std",
        (10, 3),
        (255, 45, 8),
    )
    assert (
        found.time_zone,
        found.lc_time_names,
        found.collation_database,
        found.table_map_for_update,
    ) == (b"SYSTEM", 4, 46, 5)
    assert (found.source_data_written, found.invoker, found.updated_databases) == (
        6,
        (b"root", b"localhost"),
        (b"a", b"bb"),
    )
    assert (found.microseconds, found.explicit_defaults_for_timestamp, found.ddl_xid) == (
        123456,
        True,
        7,
    )
    assert (found.default_collation_for_utf8mb4, found.sql_require_primary_key) == (45, True)
    assert (found.default_table_encryption, found.enable_cascade_triggers, found.unknown) == (
        False,
        True,
        None,
    )


def test_status_variables_of_mariadb_and_the_future() -> None:
    found = parse_status_variables(
        b"\x80\x01\x00\x00"
        b"\x81" + struct.pack("<Q", 9) + b"\x82\x04" + bytes(8) + b"\x0c\xfe" + b"\x63xyz"
    )
    assert (
        found.microseconds,
        found.xid,
        found.gtid_flags3,
        found.updated_databases,
        found.unknown,
    ) == (1, 9, 4, (), 0x63)
    assert parse_status_variables(b"").sql_mode is None


@pytest.mark.parametrize("code", [0, 1, 3, 4, 5, 6, 7, 11, 12, 13, 17, 129])
def test_status_variable_that_runs_out(code: int) -> None:
    with pytest.raises(InputError, match="runs past the end"):
        parse_status_variables(bytes([code]) + b"\x05")


@pytest.mark.parametrize(
    "made",
    [
        (16, b"short"),
        (33, b"\x01"),
        (38, PREPARED[:-1]),
        (38, struct.pack("<BIII", 0, 1, 65, 0)),
        (4, b"\x04"),
        (5, b"\x01"),
        (13, bytes(9)),
        (35, bytes(7)),
        (35, struct.pack("<Q", 5)),
        (14, struct.pack("<I", 500)),
        (37, bytes(41)),
        (36, struct.pack("<BIBIII", 2, 9, 1, 3, 1 << 31, 0)),
        (2, struct.pack("<IIBHH", 7, 0, 1, 0, 500)),
        (2, struct.pack("<IIBHH", 7, 0, 9, 0, 0)),
        (18, bytes(20)),
        (17, b"a"),
        (26, b"\x01\0\x09abc"),
    ],
)
def test_field_that_runs_out_of_its_event(tmp_path: Path, made: tuple[int, bytes]) -> None:
    with pytest.raises(InputError, match="cannot be read") as caught:
        read(tmp_path, made)
    assert caught.value.file == "binlog.000001"
    assert caught.value.position == len(log())


@pytest.mark.parametrize(
    "made",
    [
        (162, bytes(9)),
        (162, struct.pack("<QIB", 1, 0, 0x40) + struct.pack("<IBB", 1, 60, 60)),
        (163, struct.pack("<I", 0x0FFFFFFF)),
        (161, struct.pack("<I", 99)),
    ],
)
def test_field_that_runs_out_of_its_mariadb_event(tmp_path: Path, made: tuple[int, bytes]) -> None:
    with pytest.raises(InputError, match="event cannot be read"):
        read(tmp_path, made, MARIADB)
