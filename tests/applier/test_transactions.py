"""What the replay makes of transactions: commits, rollbacks, savepoints, XA, statements in a mixed
log, and where it stops."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

import applier
from applier.errors import UsageError
from applier.mysql.feed import Feed
from applier.options import parse_options
from tests.applier.logs import BEGIN, INT_TABLE, insert, ints, log, replay_log, transaction
from tests.binlog.build import (
    MAGIC,
    event,
    format_description,
    gtid,
    mariadb_gtid,
    query,
    rows,
    table_map,
    write,
    xid,
)

MAP = table_map()
XA = b"X'78',X'',1"
PREPARE = (38, struct.pack("<BIII", 0, 1, 1, 0) + b"x")
ONE_PHASE = (38, struct.pack("<BIII", 1, 1, 1, 0) + b"x")


def write_rows(*values: int) -> tuple[int, bytes]:
    return rows(30, ints(*values))


def found(folder: Path, *events: Any, schema: str = INT_TABLE, **options: Any) -> list[int]:
    tables, result = replay_log(folder, log(*events), schema, **options)
    assert result.error is None, result.error
    return [row[0] for row in tables["d.t"].rows()]


def xa(word: bytes) -> tuple[int, bytes]:
    return query(b"XA " + word + b" " + XA)


@pytest.mark.parametrize(
    ("events", "left"),
    [
        ([gtid(1), BEGIN, MAP, write_rows(1), xid()], [1]),
        ([gtid(1), BEGIN, MAP, write_rows(1), query(b"COMMIT")], [1]),
        ([gtid(1), BEGIN, MAP, write_rows(1), query(b"ROLLBACK")], []),
        ([gtid(1), BEGIN, MAP, write_rows(1)], []),
        ([BEGIN, MAP, write_rows(1), xid(), BEGIN, MAP, write_rows(2), xid()], [1, 2]),
        (
            [
                gtid(1),
                BEGIN,
                MAP,
                write_rows(1),
                query(b"SAVEPOINT `s`"),
                MAP,
                write_rows(2),
                query(b"ROLLBACK TO `s`"),
                MAP,
                write_rows(3),
                xid(),
            ],
            [1, 3],
        ),
        ([gtid(1), BEGIN, query(b"SAVEPOINT s"), MAP, write_rows(1), query(b"rollback work to s"),
          MAP, write_rows(2), xid()], [2]),
        ([gtid(1), query(b"XA START " + XA), MAP, write_rows(1), query(b"XA END " + XA), PREPARE,
          gtid(2), query(b"xa commit " + XA)], [1]),
        ([gtid(1), BEGIN, query(b"SAVEPOINT a"), MAP, write_rows(1), query(b"RELEASE SAVEPOINT a"),
          xid()], [1]),
        ([gtid(1), BEGIN, query(b'SAVEPOINT "a`b"'), MAP, write_rows(1),
          query(b"ROLLBACK TO `A``B`"), xid()], []),
        ([gtid(1), xa(b"START"), MAP, write_rows(1), xa(b"END"), PREPARE, gtid(2), xa(b"COMMIT")],
         [1]),
        ([gtid(1), xa(b"START"), MAP, write_rows(1), xa(b"END"), PREPARE, gtid(2), xa(b"ROLLBACK")],
         []),
        ([gtid(1), xa(b"START"), MAP, write_rows(1), xa(b"END"), PREPARE, *insert(2, 5)], [5]),
        ([gtid(1), xa(b"START"), MAP, write_rows(1), xa(b"END"), ONE_PHASE], [1]),
        ([gtid(1), xa(b"START"), MAP, write_rows(1), xa(b"END"), PREPARE, *insert(2, 5), gtid(3),
          xa(b"COMMIT")], [1, 5]),
        ([*insert(1, 1), gtid(2), query(b"TRUNCATE TABLE t"), *insert(3, 7)], [7]),
        ([gtid(1), query(b"INSERT INTO t VALUES (4), (2)")], [2, 4]),
        ([gtid(1), BEGIN, query(b"INSERT INTO t VALUES (4)"), MAP, write_rows(5),
          query(b"DELETE FROM t WHERE a = 4"), xid()], [5]),
    ],
)  # fmt: skip
def test_transactions(tmp_path: Path, events: list[Any], left: list[int]) -> None:
    assert found(tmp_path, *events) == left


def test_an_incomplete_transaction_is_said(tmp_path: Path) -> None:
    content = log(*insert(1, 1), gtid(2), BEGIN, MAP, write_rows(2))
    _, result = replay_log(tmp_path, content)
    assert result.incomplete_transaction is not None
    assert result.incomplete_transaction.startswith("binlog.000001:")
    assert [note for note in result.notes if "not complete" in note]
    assert result.transactions == 1


def test_a_failed_transaction_leaves_the_ones_before_it(tmp_path: Path) -> None:
    content = log(
        *insert(1, 1), *transaction(2, MAP, write_rows(2), MAP, write_rows(1)), *insert(3, 3)
    )
    tables, result = replay_log(tmp_path, content)
    assert result.error is not None
    assert (result.error.number, result.error.table) == (1062, "d.t")
    assert tables["d.t"].rows() == [(1,)]
    assert (result.transactions, result.last_file) == (1, "binlog.000001")
    stop = applier.replay(
        [tmp_path / "binlog.000001"],
        into=applier.load_schema(INT_TABLE),
        stop_position=result.last_position,
    )
    assert (stop.error, stop.transactions) == (None, 1)


def test_a_savepoint_that_nobody_set(tmp_path: Path) -> None:
    _, result = replay_log(tmp_path, log(gtid(1), BEGIN, query(b"ROLLBACK TO s")))
    assert result.error is not None
    assert (result.error.number, result.error.position is not None) == (1305, True)


def test_an_incident_stops_the_applier(tmp_path: Path) -> None:
    _, result = replay_log(tmp_path, log(*insert(1, 1), (26, struct.pack("<H", 1) + b"\4lost")))
    assert result.error is not None
    assert (result.error.number, "LOST_EVENTS" in result.error.message) == (1590, True)


# what stands before a statement


def test_auto_increment_of_the_log(tmp_path: Path) -> None:
    schema = "CREATE TABLE d.t (a INT AUTO_INCREMENT PRIMARY KEY, b BIGINT);"
    intvar = (5, struct.pack("<BQ", 2, 50))
    last = (5, struct.pack("<BQ", 1, 9))
    assert found(
        tmp_path,
        gtid(1),
        BEGIN,
        intvar,
        query(b"INSERT INTO t (b) VALUES (1), (2)"),
        query(b"INSERT INTO t (b) VALUES (3)"),
        xid(),
        schema=schema,
    ) == [50, 51, 52]
    tables, _ = replay_log(
        tmp_path, log(gtid(1), last, query(b"INSERT INTO t (b) VALUES (LAST_INSERT_ID())")), schema
    )
    assert tables["d.t"].rows() == [(1, 9)]


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (0, b"hi", "hi"), (1, struct.pack("<d", 1.5), "1.5"), (2, struct.pack("<q", -7), "-7"),
        (4, bytes([4, 2]) + b"\x8c\x22", "12.34"),
    ],
)  # fmt: skip
def test_user_variables(tmp_path: Path, kind: int, raw: bytes, value: str) -> None:
    variable = (
        14,
        struct.pack("<I", 1) + b"v" + struct.pack("<BBII", 0, kind, 45, len(raw)) + raw + b"\0",
    )
    tables, result = replay_log(
        tmp_path,
        log(gtid(1), variable, query(b"INSERT INTO t VALUES (@v)")),
        "CREATE TABLE d.t (s VARCHAR(20));",
    )
    assert result.error is None, result.error
    assert tables["d.t"].rows() == [(value,)]


@pytest.mark.parametrize(
    ("kind", "raw"), [(1, b"abc"), (2, b""), (4, b"\4"), (4, b"\4\2\x8c"), (4, b"\2\4\x8c\x22")]
)
def test_user_variables_that_are_damaged(tmp_path: Path, kind: int, raw: bytes) -> None:
    variable = (
        14,
        struct.pack("<I", 1) + b"v" + struct.pack("<BBII", 0, kind, 45, len(raw)) + raw + b"\0",
    )
    with pytest.raises(applier.InputError) as caught:
        replay_log(
            tmp_path,
            log(gtid(1), variable, query(b"INSERT INTO t VALUES (@v)")),
            "CREATE TABLE d.t (s VARCHAR(20));",
        )
    assert (caught.value.file, caught.value.position is not None) == ("binlog.000001", True)


def test_load_data(tmp_path: Path) -> None:
    first, second = (17, struct.pack("<I", 3) + b"1\n2"), (9, struct.pack("<I", 3) + b"0\n3\n")
    sql = b"LOAD DATA INFILE 'x' INTO TABLE `t` (`a`)"
    execute = (
        18,
        struct.pack("<IIBHH", 7, 0, 1, 0, 0) + struct.pack("<IIIB", 3, 0, 0, 0) + b"d\0" + sql,
    )
    assert found(tmp_path, gtid(1), BEGIN, first, second, execute, xid()) == [1, 3, 20]
    with pytest.raises(applier.InputError, match="not in the log"):
        replay_log(tmp_path, log(gtid(1), BEGIN, execute, xid()))


def test_now_is_the_time_of_the_event(tmp_path: Path) -> None:
    variables = b"\x05\x06+02:00"
    content = log(gtid(1), query(b"INSERT INTO t VALUES (NOW())", variables=variables))
    tables, result = replay_log(tmp_path, content, "CREATE TABLE d.t (s VARCHAR(30));")
    assert result.error is None
    assert tables["d.t"].rows() == [("2023-11-15 00:13:20",)]


# several files, filters, other rules


def test_files_in_order(tmp_path: Path) -> None:
    rotate = (4, struct.pack("<Q", 4) + b"binlog.000002")
    write(tmp_path, log(*insert(1, 1), gtid(2), BEGIN, MAP, write_rows(2), rotate))
    write(tmp_path, log(MAP, write_rows(3), xid(), created=0), "binlog.000002")
    tables = applier.load_schema(INT_TABLE)
    result = applier.replay([tmp_path / "binlog.000001", tmp_path / "binlog.000002"], into=tables)
    assert (result.error, [row[0] for row in tables["d.t"].rows()]) == (None, [1, 2, 3])


@pytest.mark.parametrize("gtids", [[], [gtid(1)]])
def test_source_that_crashed_in_a_transaction(
    tmp_path: Path, gtids: list[tuple[int, bytes]]
) -> None:
    """A replica of 5.7.29 whose relay log held these events without GTIDs had row 2 only: the log
    of a source that was started anew."""
    whole = (*gtids, BEGIN, MAP, write_rows(2), xid())
    write(tmp_path, log(*gtids, BEGIN, MAP, write_rows(1)))
    write(tmp_path, log(*whole), "binlog.000002")
    tables = applier.load_schema(INT_TABLE)
    result = applier.replay([tmp_path / "binlog.000001", tmp_path / "binlog.000002"], into=tables)
    assert (result.error, result.transactions, [row[0] for row in tables["d.t"].rows()]) == (
        None,
        1,
        [2],
    )
    assert [note.partition(":")[0] for note in result.notes] == [
        "the beginning of a transaction was rolled back"
    ]


def test_begin_behind_begin(tmp_path: Path) -> None:
    """BEGIN commits what is open: a replica of 5.7.29 whose relay log held these events had both
    rows."""
    assert found(tmp_path, BEGIN, MAP, write_rows(1), BEGIN, MAP, write_rows(2), xid()) == [1, 2]


def test_load_data_without_begin_ends_its_transaction(tmp_path: Path) -> None:
    block = (17, struct.pack("<I", 3) + b"1\n2\n")
    sql = b"LOAD DATA INFILE 'x' INTO TABLE `t` (`a`)"
    execute = (
        18,
        struct.pack("<IIBHH", 7, 0, 1, 0, 0) + struct.pack("<IIIB", 3, 0, 0, 0) + b"d\0" + sql,
    )
    tables, result = replay_log(tmp_path, log(gtid(1), block, execute, *insert(2, 3)))
    assert [row[0] for row in tables["d.t"].rows()] == [1, 2, 3]
    assert (result.transactions, str(result.executed)) == (
        2,
        "00010203-0405-0607-0809-0a0b0c0d0e0f:1-2",
    )


def test_table_ids_start_anew_in_a_new_file(tmp_path: Path) -> None:
    """Rows without a table map of their own file are an error, not rows for whatever had that
    number before."""
    write(tmp_path, log(*insert(1, 1)))
    write(tmp_path, log(gtid(2), BEGIN, write_rows(2), xid()), "binlog.000002")
    with pytest.raises(applier.InputError, match="no table map") as caught:
        applier.replay(
            [tmp_path / "binlog.000001", tmp_path / "binlog.000002"],
            into=applier.load_schema(INT_TABLE),
        )
    assert caught.value.file == "binlog.000002"


def test_filters_from_python(tmp_path: Path) -> None:
    assert found(
        tmp_path,
        *insert(1, 1),
        *insert(2, 2),
        exclude_gtids="00010203-0405-0607-0809-0a0b0c0d0e0f:1",
    ) == [2]
    with pytest.raises(UsageError, match="names nothing that is in the log"):
        found(tmp_path, *insert(1, 1), database=["other"])
    assert found(tmp_path, *insert(1, 1), table="d.t") == [1]
    for options in (
        {"server": "x"},
        {"skip_errors": "x"},
        {"include_gtids": "?"},
        {"exec_mode": "x"},
        {"table": "t"},
        {"start_datetime": "x"},
    ):
        with pytest.raises(UsageError):
            replay_log(tmp_path, log(), **options)


@pytest.mark.parametrize(("start", "stop", "left"), [(8, 11, [1, 2]), (11, 12, []), (0, 9, [])])
def test_a_transaction_goes_whole_by_the_time_of_its_first_event(
    tmp_path: Path, start: int, stop: int, left: list[int]
) -> None:
    """The GTID event has the time of the last statement, BEGIN that of the first."""
    times = (10, 5, 5, 5, 10, 10, 10)
    events = (gtid(1), BEGIN, MAP, write_rows(1), MAP, write_rows(2), xid())
    body = MAGIC + format_description()
    for (kind, data), time in zip(events, times, strict=True):
        body += event(kind, data, at=len(body), timestamp=time)
    limits = {"start_datetime": f"@{start}", "stop_datetime": f"@{stop}"}
    tables, result = replay_log(tmp_path, body, INT_TABLE, **limits)
    assert [row[0] for row in tables["d.t"].rows()] == left
    assert result.transactions == bool(left)
    feed = Feed([str(tmp_path / "binlog.000001")], parse_options(**limits))
    assert any(source.wanted for source in feed) == bool(left)


def test_mariadb_groups(tmp_path: Path) -> None:
    """Flag 1 of the GTID event marks a statement that is a group of its own."""
    content = log(
        mariadb_gtid(1), MAP, rows(23, ints(1)), xid(), mariadb_gtid(2, 1),
        query(b"INSERT INTO t VALUES (2)"), mariadb_gtid(3), MAP,
        rows(23, ints(3)),
        version="10.11.6-MariaDB",
    )  # fmt: skip
    tables, result = replay_log(tmp_path, content)
    assert (result.server, result.transactions) == ("mariadb", 2)
    assert [row[0] for row in tables["d.t"].rows()] == [1, 2]
    assert result.incomplete_transaction is not None


def test_a_relay_log_with_the_sources_format_description(tmp_path: Path) -> None:
    """The version of the source decides, and its table ids hold from there on."""
    relay = bytearray(log(server_id=2))
    relay += event(15, format_description("5.7.29")[19:-4], at=len(relay))
    for kind, body in insert(1, 4):
        relay += event(kind, body, at=len(relay))
    tables = applier.load_schema(INT_TABLE)
    result = applier.replay([write(tmp_path, bytes(relay), "relay.000002")], into=tables)
    assert (result.server, tables["d.t"].rows()) == ("5.7", [(4,)])


def test_records_can_go_somewhere_else(tmp_path: Path) -> None:
    records: list[Any] = []
    events: list[Any] = []
    tables = applier.load_schema(INT_TABLE)
    result = applier.replay(
        [write(tmp_path, log(*insert(1, 1, 2)))],
        into=tables,
        on_rows=records.append,
        on_event=events.append,
    )
    assert (result.events, [record.rows for record in records]) == ([], [2])
    assert [each.type for each in events] == [15, 33, 2, 19, 30, 16]
    quiet = applier.replay(
        [tmp_path / "binlog.000001"], into=applier.load_schema(INT_TABLE), keep_events=False
    )
    assert (quiet.events, quiet.counters["write"]) == ([], 2)
