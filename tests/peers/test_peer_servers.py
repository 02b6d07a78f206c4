"""The harness itself on a real server: a script of our own is equal, and every kind of difference
is seen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from servers.installed import cache_folder, installed

from applier.mysql.into_options import MODES
from tests.peers.contents import ServerTable, server_differences, server_tables
from tests.peers.exceptions import EQUAL
from tests.peers.replaying import replay_outcome
from tests.peers.session import PeerServer
from tests.peers.target import NOT_COMPARABLE, into_outcome
from tests.servers.fixtures import lacking

STATEMENTS = [
    (
        "CREATE TABLE t (a INT(5) UNSIGNED ZEROFILL, b FLOAT, c DOUBLE, d VARCHAR(9) "
        "CHARACTER SET utf8mb4, e BLOB, f BIT(9), `g\\h` YEAR)"
    ),
    (
        "INSERT INTO t VALUES (7, 0.1, -0e0, '\xc3\xa4\\t\\\\', x'00ff', 257, 2026), (NULL, NULL, "
        "NULL, NULL, NULL, NULL, NULL)"
    ),
    "INSERT INTO nowhere VALUES (1)",
    "CREATE DATABASE `o'dd`",
    "CREATE TABLE `o'dd`.`t``2` (j JSON, p POINT)",
    "INSERT INTO `o'dd`.`t``2` VALUES ('{\"a\": 1.0}', POINT(1, 2))",
    "DROP TABLE t",
]


@pytest.fixture(scope="module")
def ended() -> Iterator[tuple[list[Path], list[ServerTable]]]:
    """The log of the statements and the tables that they left."""
    if not installed("9.7").there:
        lacking(f"9.7 is not in {cache_folder()}; python docker/servers/bring.py 9.7 brings it")
    server = PeerServer("9.7", "ROW")
    files = server.carry_out(STATEMENTS)
    yield files, server_tables(server.query)
    server.close()


@pytest.fixture(scope="module")
def target() -> Iterator[PeerServer]:
    server = PeerServer("9.7", "ROW")
    yield server
    server.close()


def test_equal_tables(ended: tuple[list[Path], list[ServerTable]]) -> None:
    files, tables = ended
    assert [table.name for table in tables] == ["o'dd.t`2", "test.zz1_0_t"]
    assert [len(table.rows or ()) for table in tables] == [1, 2]
    assert replay_outcome(files, tables) == (EQUAL, "")


def test_each_difference_is_seen(ended: tuple[list[Path], list[ServerTable]]) -> None:
    files, (other, table) = ended
    assert table.rows is not None
    changed = {
        "table missing": [other, table, replace(table, file="x")],
        "table too many": [table],
        "columns differ": [
            other,
            replace(table, columns=(replace(table.columns[0], name="z"), *table.columns[1:])),
        ],
        "type differs": [
            other,
            replace(table, columns=(replace(table.columns[0], type="bigint"), *table.columns[1:])),
        ],
        "row count differs": [other, replace(table, rows=table.rows[:1])],
        "values differ": [other, replace(table, rows=[table.rows[0], (b"1", *table.rows[1][1:])])],
    }
    for kind, tables in changed.items():
        outcome, cause = replay_outcome(files, tables)
        assert (outcome, cause.partition(":")[0]) == ("difference", kind)


def test_a_log_that_is_refused(ended: tuple[list[Path], list[ServerTable]], tmp_path: Path) -> None:
    (tmp_path / "binlog.000001").write_bytes(b"no log at all")
    outcome, cause = replay_outcome([tmp_path / "binlog.000001"], ended[1])
    assert outcome.startswith("refused BL")
    assert "binlog.000001" in cause


@pytest.mark.parametrize("apply", MODES)
def test_a_second_server(
    apply: str, ended: tuple[list[Path], list[ServerTable]], target: PeerServer
) -> None:
    files, tables = ended
    assert into_outcome(target, files, tables, apply) == (EQUAL, "")
    there = server_tables(target.query)
    assert server_differences(tables, there) == []
    target.query("ALTER TABLE test.zz1_0_t MODIFY b DOUBLE")
    target.query("DELETE FROM `o'dd`.`t``2`")
    target.query("CREATE TABLE test.more (a INT)")
    changed = server_tables(target.query)
    assert server_differences(tables, changed) == [
        "row count differs: o'dd.t`2: 1, the target 0",
        "columns differ: test.zz1_0_t",
        "table too many: test.more",
    ]
    assert "table missing: test.more" in server_differences(changed, tables)


def test_what_memory_refuses_is_not_comparable(target: PeerServer, tmp_path: Path) -> None:
    source = PeerServer("9.7", "MIXED")
    try:
        statements = [
            "CREATE TABLE t (a POINT)",
            "INSERT INTO t VALUES (ST_GeomFromWKB(ST_AsWKB(POINT(1, 2))))",
        ]
        files = [Path(shutil.copy(file, tmp_path)) for file in source.carry_out(statements)]
        tables = server_tables(source.query)
    finally:
        source.close()
    outcome, cause = into_outcome(target, files, tables, "native")
    assert (outcome, "ST_GEOMFROMWKB" in cause) == (NOT_COMPARABLE, True)
    absent = [replace(tables[0], name="test.u"), *tables]
    assert into_outcome(target, files, absent, "native") == (
        "difference",
        "table missing: test.u",
    )
    files[0].write_bytes(b"no log at all")
    assert into_outcome(target, files, tables, "native")[0].startswith("refused BL")
