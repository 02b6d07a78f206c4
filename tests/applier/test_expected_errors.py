"""A statement that failed on the source has to fail here with the same error; what it did before
that is done."""

from __future__ import annotations

from pathlib import Path

import pytest

import applier
from applier.result import ReplayResult
from applier.tables.catalog import Tables
from tests.binlog.build import log, query, write

PARENT_AND_CHILD = """CREATE TABLE d.p (id INT PRIMARY KEY);
CREATE TABLE d.c (id INT, FOREIGN KEY (id) REFERENCES d.p (id));
CREATE TABLE d.m (id INT PRIMARY KEY) ENGINE=MyISAM; CREATE TABLE d.i (id INT PRIMARY KEY);"""


def replayed(
    folder: Path, sql: bytes, error: int, server: str = "5.7", **options: str
) -> tuple[ReplayResult, Tables]:
    tables = applier.load_schema(f"CREATE DATABASE d; {PARENT_AND_CHILD}")
    return applier.replay(
        [write(folder, log(query(sql, error=error)))], into=tables, server=server, **options
    ), tables


def names(tables: Tables) -> list[str]:
    return sorted(table.definition.name for table in tables)


@pytest.mark.parametrize(
    ("sql", "error", "left"),
    [
        (b"DROP TABLE p, c", 1217, ["i", "m", "p"]),
        (b"DROP TABLE p, nope, c", 1217, ["i", "m", "p"]),
        (b"DROP TABLE c, nope, p", 1051, ["i", "m"]),
    ],
)
def test_a_drop_that_failed_in_part(
    sql: bytes, error: int, left: list[str], tmp_path: Path
) -> None:
    result, tables = replayed(tmp_path, sql, error)
    assert (result.error, names(tables)) == (None, left)


def test_a_drop_is_all_or_nothing_from_8_0_on(tmp_path: Path) -> None:
    result, tables = replayed(tmp_path, b"DROP TABLE p, c", 0, server="8.0")
    assert (result.error, names(tables)) == (None, ["i", "m"])
    result, tables = replayed(tmp_path, b"DROP TABLE p, i", 0, server="8.0")
    assert result.error is not None
    assert (result.error.number, names(tables)) == (3730, ["c", "i", "m", "p"])


@pytest.mark.parametrize(("table", "left"), [("m", 2), ("i", 0)])
def test_rows_before_the_error_stay_where_nothing_can_take_them_back(
    table: str, left: int, tmp_path: Path
) -> None:
    sql = f"INSERT INTO {table} VALUES (1), (2), (1), (3)".encode()
    result, tables = replayed(tmp_path, sql, 1062)
    assert (result.error, len(tables[f"d.{table}"])) == (None, left)


@pytest.mark.parametrize(
    ("sql", "error", "number"),
    [
        (b"DROP TABLE i", 1051, 3002),
        (b"DROP TABLE nope", 1217, 3002),
        (b"DROP TABLE nope", 0, 1051),
        (b"DROP TABLE i", 1317, 3001),
        (b"DELETE FROM i ORDER BY ABS(id) LIMIT 1, 2", 1062, 1235),
    ],
)
def test_another_error_than_the_sources_stops(
    sql: bytes, error: int, number: int, tmp_path: Path
) -> None:
    result, _ = replayed(tmp_path, sql, error)
    assert result.error is not None
    assert result.error.number == number


@pytest.mark.parametrize(
    ("error", "skipped"), [(1205, ""), (1213, ""), (1051, "1051"), (1317, "1317")]
)
def test_errors_that_need_not_come_again(error: int, skipped: str, tmp_path: Path) -> None:
    result, tables = replayed(
        tmp_path, b"DROP TABLE i", error, **({"skip_errors": skipped} if skipped else {})
    )
    assert (result.error, names(tables)) == (None, ["c", "m", "p"])


def test_a_missing_table_is_no_error_to_mariadb(tmp_path: Path) -> None:
    """slave_ddl_exec_mode=IDEMPOTENT, the default: DROP TABLE is DROP TABLE IF EXISTS."""
    result, tables = replayed(tmp_path, b"DROP TABLE i, nope", 0, server="mariadb")
    assert (result.error, names(tables)) == (None, ["c", "m", "p"])
