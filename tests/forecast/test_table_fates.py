"""How many rows tables have behind CREATE, DROP, TRUNCATE and RENAME: as typed here, and as a
replay of real logs leaves them."""

from __future__ import annotations

from pathlib import Path

import pytest

import applier
from applier.forecast.answers.words import rows_read
from applier.forecast.inventory.facts import OwnRows
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.table_fates import TableFate
from applier.tables.catalog import Tables
from tests.binlog.build import gtid, log, query, write
from tests.captures_support import captures, logs
from tests.forecast.logs import DELETE, WRITE, calibration, file, transaction
from tests.forecast.test_forecast import forecast, summary

EMPTY = TableFate("d.t")
FATES = {
    "TRUNCATE t": [EMPTY],
    "/* a job */ truncate table `other`.`t`": [TableFate("other.t")],
    "CREATE TABLE t (a INT)": [EMPTY],
    "CREATE OR REPLACE TABLE t (a INT)": [EMPTY],
    "CREATE TABLE t LIKE u": [EMPTY],
    "CREATE TABLE IF NOT EXISTS t (a INT)": [TableFate("d.t", if_missing=True)],
    "CREATE TABLE t SELECT * FROM u": [TableFate("d.t", is_known=False)],
    "/*!50001 CREATE TABLE t (a INT) */": [EMPTY],
    "SET STATEMENT max_statement_time=1 FOR TRUNCATE t": [EMPTY],
    "DROP TABLE IF EXISTS t, other.u": [
        TableFate("d.t", exists=False), TableFate("other.u", exists=False)
    ],
    "DROP DATABASE IF EXISTS `other`": [TableFate("", database="other", exists=False)],
    "DROP SCHEMA other": [TableFate("", database="other", exists=False)],
    "RENAME TABLE t TO u, v TO other.t": [TableFate("d.t", "d.u"), TableFate("d.v", "other.t")],
    "ALTER TABLE t RENAME TO other.u": [TableFate("d.t", "other.u")],
    "ALTER TABLE t ADD b INT, RENAME u": [TableFate("d.t", "d.u")],
    "ALTER TABLE t RENAME COLUMN a TO b, RENAME INDEX k TO l, RENAME = u": [
        TableFate("d.t", "d.u")
    ],
}  # fmt: skip
NO_FATES = (
    "CREATE TEMPORARY TABLE t (a INT)",
    "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`",
    "CREATE DATABASE other",
    "CREATE VIEW t AS SELECT 1",
    "DROP PROCEDURE other.p",
    "RENAME USER a TO b",
    "ALTER TABLE t ADD b INT",
    "ALTER TABLE t RENAME KEY k TO l",
    "INSERT INTO t VALUES (1)",
    "TRUNCATE ~",
)


@pytest.mark.parametrize("sql", [*FATES, *NO_FATES])
def test_what_a_statement_makes_of_whole_tables(tmp_path: Path, sql: str) -> None:
    fates = FATES.get(sql, [])
    path = write(tmp_path, log(query(sql.encode())))
    assert [fate for load in LoadReader([path]) for fate in load.fates] == fates


def ddl(number: int, sql: bytes) -> list[tuple[int, bytes]]:
    return [gtid(number, last=number - 1, sequence=number), query(sql)]


def read_by_scans(folder: Path, sql: bytes, *rest: list[tuple[int, bytes]]) -> float:
    """Rows that the scans of two deletes read, before and behind a statement."""
    log = file(
        folder, transaction(1, b"plain", DELETE, 1), ddl(2, sql), *rest,
        transaction(9, b"plain", DELETE, 2),
    )  # fmt: skip
    counts = "d.plain=1000", "d.twice=40", "d.twice.k=1"
    return forecast(folder, log, *counts).tables["d.plain"].reads


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (b"ANALYZE TABLE plain", 1000 + 19),
        (b"CREATE TABLE IF NOT EXISTS plain (a INT)", 1000 + 19),
        (b"TRUNCATE plain", 20),
        (b"DROP DATABASE d", 20),
        (b"CREATE OR REPLACE TABLE plain (a INT)", 20),
        (b"RENAME TABLE plain TO gone, twice TO plain", 1),  # which has a key
    ],
)
def test_a_scan_reads_the_rows_that_are_left(tmp_path: Path, sql: bytes, rows: int) -> None:
    found = read_by_scans(tmp_path, sql, transaction(3, b"plain", WRITE, *range(20)))
    assert found == pytest.approx(500.5 + (rows + 1) / 2, rel=0.01)


def test_the_rows_of_a_table_that_the_log_makes_are_not_assumed(tmp_path: Path) -> None:
    deleted = transaction(3, b"plain", DELETE, 1)
    log = file(
        tmp_path, ddl(1, b"CREATE TABLE plain (a INT)"), transaction(2, b"plain", WRITE, 1, 2),
        deleted, ddl(4, b"DROP TABLE plain"),
    )  # fmt: skip
    found = summary(tmp_path, log)
    (table,) = found["tables"]
    assert table["table_rows"] == 2
    assert table["table_rows_from"] == "counted in the log, which makes or empties the table"
    assert rows_read(table)[0].isdigit()
    assert not [text for text in found["assumptions"] if "the number that the log shows" in text]


def test_a_table_that_a_statement_fills_is_of_unknown_size(tmp_path: Path) -> None:
    log = file(
        tmp_path, ddl(1, b"CREATE TABLE plain SELECT * FROM keyed"),
        transaction(2, b"plain", DELETE, 1),
    )  # fmt: skip
    state = forecast(tmp_path, log, "d.plain=9").states["d.plain"]
    assert (state.known, state.most_rows) == (False, 9)


def test_ddl_alone_is_no_table_of_the_log(tmp_path: Path) -> None:
    log = file(tmp_path, ddl(1, b"DROP TABLE other"), transaction(2, b"plain", WRITE, 1))
    found = run(ForecastPlan(files=[log], calibration=calibration())).summary()
    assert not [text for text in found["assumptions"] if text.startswith("d.other")]


def test_the_filter_chooses_among_the_tables_of_a_statement(tmp_path: Path) -> None:
    from applier.binlog.selection.table_filter import TableFilter

    path = write(tmp_path, log(*ddl(1, b"TRUNCATE keyed"), *ddl(2, b"TRUNCATE plain")))
    found = [
        fate for load in LoadReader([path], only=TableFilter.of(table="d.plain"))
        for fate in load.fates
    ]  # fmt: skip
    assert found == [TableFate("d.plain")]


def test_rows_of_the_logs_own_are_those_since_the_table_was_emptied(tmp_path: Path) -> None:
    """A job that empties, fills and purges a table, thrice: each delete meets the first row."""
    rounds = [
        [ddl(1, b"TRUNCATE plain"), transaction(2, b"plain", WRITE, *range(200)),
         *(transaction(3, b"plain", DELETE, value) for value in range(100))]
        for _ in range(3)
    ]  # fmt: skip
    log = file(tmp_path, *(one for each in rounds for one in each))
    assert forecast(tmp_path, log).facts["d.plain"].own_rows == {"delete": OwnRows(1.0, 149.5)}
    emptied = run(ForecastPlan(files=[log], calibration=calibration())).forecast
    assert emptied.states["d.plain"].rows == 100


MAKE_THEIR_TABLES = [
    one
    for one in captures()
    if (one / "before.sql").exists() and b"CREATE TABLE" not in (one / "before.sql").read_bytes()
]


def test_tables_end_with_the_rows_of_the_replay() -> None:
    """All logs of real servers here that make their own tables."""
    compared, wrong = 0, []
    for capture in MAKE_THEIR_TABLES:
        files, tables = [str(log) for log in logs(capture)], Tables()
        assert applier.replay(files, into=tables).error is None
        states = run(ForecastPlan(files=files)).forecast.states
        rows = {table.definition.full_name: float(len(table.rows())) for table in tables}
        said = {name: states[name].rows for name in {*states, *rows} if name in states}
        compared += len(rows)
        wrong += [
            (capture.name, name)
            for name in {*rows, *said}
            if said.get(name, 0.0) != rows.get(name, 0.0)
        ]
    assert (compared >= 10, wrong) == (True, [])
