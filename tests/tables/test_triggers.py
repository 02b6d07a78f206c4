"""Triggers: a statement that fires one is refused; rows events, and tables that lost theirs, are
not concerned."""

from __future__ import annotations

from pathlib import Path

import pytest

import applier
from applier.result import ReplayResult
from tests.applier.logs import log, replay_log
from tests.binlog.build import query, rows, table_map, xid

TABLES = (
    "CREATE TABLE d.t (a INT NOT NULL PRIMARY KEY); CREATE TABLE d.u (a INT); "
    "INSERT INTO d.t VALUES (1);"
)
BODY = "FOR EACH ROW INSERT INTO u VALUES (NEW.a)"


def replayed(
    folder: Path, *statements: str, schema: str = TABLES
) -> tuple[applier.Tables, ReplayResult]:
    events = [
        event for sql in statements for event in (query(b"BEGIN"), query(sql.encode()), xid())
    ]
    return replay_log(folder, log(*events), schema)


FIRED = [
    ("AFTER INSERT", "INSERT INTO t VALUES (2)"),
    ("BEFORE INSERT", "REPLACE INTO t VALUES (2)"),
    ("AFTER DELETE", "REPLACE INTO t VALUES (1)"),
    ("BEFORE UPDATE", "UPDATE t SET a = 5"),
    ("AFTER UPDATE", "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 7"),
    ("AFTER DELETE", "DELETE FROM t"),
]


@pytest.mark.parametrize(("when", "statement"), FIRED)
def test_a_statement_that_fires_a_trigger_is_refused(
    when: str, statement: str, tmp_path: Path
) -> None:
    tables, result = replayed(
        tmp_path, f"CREATE DEFINER=`root`@`%` TRIGGER d.tr {when} ON t {BODY}", statement
    )
    assert result.error is not None
    assert (result.error.number, result.error.table) == (1235, "d.t")
    assert "`tr`" in result.error.message
    assert tables["d.t"].rows() == [(1,)]


@pytest.mark.parametrize(("when", "statement"), FIRED)
def test_triggers_of_the_dump_count(when: str, statement: str, tmp_path: Path) -> None:
    trigger = (
        "\nDELIMITER ;;\n/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`b`*/ /*!50003 TRIGGER d.`tr` "
        f"{when} ON `t` {BODY} */;;\nDELIMITER ;\n"
    )
    _, result = replayed(tmp_path, statement, schema=TABLES + trigger)
    assert result.error is not None and result.error.number == 1235


@pytest.mark.parametrize(
    "before",
    [
        f"CREATE TRIGGER tr AFTER DELETE ON t {BODY}",
        f"CREATE TRIGGER tr AFTER INSERT ON u {BODY}",
        f"CREATE TRIGGER tr AFTER INSERT ON t {BODY}; DROP TRIGGER tr",
        f"CREATE TRIGGER tr AFTER INSERT ON t {BODY}; DROP TRIGGER IF EXISTS d.tr",
        f"CREATE TRIGGER tr AFTER INSERT ON t {BODY}; DROP TABLE t; CREATE TABLE t (a INT)",
        f"CREATE TRIGGER tr AFTER INSERT ON t {BODY}; RENAME TABLE t TO s; CREATE TABLE t (a INT)",
    ],
)
def test_other_statements_go_on(before: str, tmp_path: Path) -> None:
    tables, result = replayed(tmp_path, *before.split("; "), "INSERT INTO t VALUES (2)")
    assert result.error is None
    assert (2,) in tables["d.t"].rows()


def test_a_trigger_goes_with_its_table(tmp_path: Path) -> None:
    moves = ["RENAME TABLE t TO s", "ALTER TABLE s ADD b INT", "ALTER TABLE s RENAME TO r"]
    _, result = replayed(
        tmp_path,
        f"CREATE TRIGGER tr AFTER INSERT ON t {BODY}",
        *moves,
        "INSERT INTO r VALUES (2, 3)",
    )
    assert result.error is not None and (result.error.number, result.error.table) == (1235, "d.r")


def test_rows_events_fire_none(tmp_path: Path) -> None:
    events = (
        query(f"CREATE TRIGGER tr AFTER INSERT ON t {BODY}".encode()),
        query(b"BEGIN"),
        table_map(),
        rows(30, b"\0\7\0\0\0"),
        xid(),
    )
    tables, result = replay_log(tmp_path, log(*events), TABLES)
    assert result.error is None
    assert tables["d.t"].rows() == [(1,), (7,)]
    assert tables["d.u"].rows() == []


@pytest.mark.parametrize("statement", ["SELECT `d`.`f`(1)", "DO f()", "CALL p()"])
def test_calls_of_stored_routines_are_refused(statement: str, tmp_path: Path) -> None:
    """A server logs a SELECT only when a function in it changed something."""
    _, result = replayed(tmp_path, statement)
    assert result.error is not None and result.error.number == 1235
