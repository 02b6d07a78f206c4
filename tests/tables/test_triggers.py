"""Triggers: which statements run them, and which are refused; rows events, and tables that lost
theirs, are not concerned. What they do is held beside servers in test_trigger_servers.py."""

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
    ("BEFORE INSERT", "REPLACE INTO t VALUES (2)"),
    ("AFTER DELETE", "REPLACE INTO t VALUES (1)"),
    ("AFTER INSERT", "INSERT IGNORE INTO t VALUES (2)"),
    ("BEFORE UPDATE", "UPDATE IGNORE t SET a = 5"),
    ("AFTER UPDATE", "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 7"),
    ("AFTER INSERT", "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 7"),
    ("AFTER INSERT", "INSERT INTO t SELECT 5 FROM u"),
    ("BEFORE DELETE", "DELETE t FROM t JOIN u USING (a)"),
    ("BEFORE UPDATE", "UPDATE t JOIN u USING (a) SET t.a = 3"),
]
NOT_RUN = {
    "DECLARE x INT": "DECLARE in a trigger",
    "BEGIN WHILE 1 DO SET @x = 1; END WHILE; END": "WHILE in a trigger",
    "CALL p(NEW.a)": "CALL in a trigger",
    "SET GLOBAL x = 1": "SET GLOBAL x = 1 in a trigger",
    "SET NEW.a = 1": "SET NEW.a = 1 in a trigger",
    "SET @x = OLD.a": "OLD in a trigger over INSERT",
    "SET @x = NEW.b": "Unknown column 'b' in a trigger",
    "SET @x = @@server_id": "@@server_id",
    "SET @x = LAST_INSERT_ID()": "LAST_INSERT_ID",
    "BEGIN SET @x = 1; IF @x THEN DELETE FROM u; END IF; END": "variables that it sets",
    "IF NEW.a THEN DELETE FROM u; END": "SQL that cannot be read: expected END IF",
    "BEGIN DELETE FROM u; END; DELETE FROM u": "DELETE FROM u",
}
"""Bodies of an AFTER INSERT trigger, and what the refusal says of them."""


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


@pytest.mark.parametrize("body", NOT_RUN)
def test_a_body_that_is_not_run_is_named_before_a_row_changes(body: str, tmp_path: Path) -> None:
    tables, result = replayed(
        tmp_path, f"CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW {body}",
        "INSERT INTO t VALUES (2)",
    )  # fmt: skip
    assert result.error is not None
    assert (result.error.number, result.error.table) == (1235, "d.t")
    assert f"`tr`, which is not run in memory: {NOT_RUN[body]}" in result.error.message
    assert tables["d.t"].rows() == [(1,)]


def test_a_failing_trigger_takes_its_statement_back(tmp_path: Path) -> None:
    schema = f"{TABLES} CREATE TABLE d.v (a INT PRIMARY KEY); INSERT INTO d.v VALUES (3);"
    body = "BEGIN INSERT INTO u VALUES (NEW.a); INSERT INTO v VALUES (NEW.a); END"
    tables, result = replayed(
        tmp_path, f"CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW {body}",
        "INSERT INTO t VALUES (2), (3), (4)", schema=schema,
    )  # fmt: skip
    assert result.error is not None and result.error.number == 1062
    assert [tables[f"d.{name}"].rows() for name in "tuv"] == [[(1,)], [], [(3,)]]


def test_a_trigger_may_not_change_the_table_that_fires_it(tmp_path: Path) -> None:
    body = "FOR EACH ROW INSERT INTO t VALUES (NEW.a + 1)"
    tables, result = replayed(
        tmp_path, f"CREATE TRIGGER tr AFTER INSERT ON t {body}", "INSERT INTO t VALUES (2)"
    )
    assert result.error is not None and result.error.number == 1235
    assert tables["d.t"].rows() == [(1,)]


@pytest.mark.parametrize(
    ("condition", "is_refused"),
    [("", False), (" WHERE a > 0", False), (" WHERE b > 0", True), (" ORDER BY a", True)],
)
def test_triggers_that_hang_on_the_order_of_rows(
    condition: str, is_refused: bool, tmp_path: Path
) -> None:
    """InnoDB reads a table by its primary key where no condition is about another one."""
    schema = (
        "CREATE TABLE d.t (a INT PRIMARY KEY, b INT, KEY (b)) ENGINE=InnoDB;"
        " CREATE TABLE d.u (a INT PRIMARY KEY, b INT); INSERT INTO d.t VALUES (1, 9), (2, 8);"
    )
    body = "FOR EACH ROW REPLACE INTO u VALUES (1, NEW.a)"
    tables, result = replayed(
        tmp_path, f"CREATE TRIGGER tr AFTER UPDATE ON t {body}",
        "UPDATE t SET b = 5 WHERE b = 9", f"UPDATE t SET b = b + 1{condition}", schema=schema,
    )  # fmt: skip
    assert (result.error is not None and "order of the rows" in result.error.message) == is_refused
    assert tables["d.u"].rows() == ([(1, 1)] if is_refused else [(1, 2)])


@pytest.mark.parametrize("fires", [False, True])
def test_rows_that_a_foreign_key_changes_fire_triggers_where_the_log_says_so(
    fires: bool, tmp_path: Path
) -> None:
    """enable_cascade_triggers of 9.7 (status variable 21)."""
    schema = (
        "CREATE TABLE d.t (a INT PRIMARY KEY); CREATE TABLE d.c (a INT PRIMARY KEY, FOREIGN KEY (a)"
        " REFERENCES d.t (a) ON DELETE CASCADE); INSERT INTO d.t VALUES (1);"
        " INSERT INTO d.c VALUES (1);"
    )
    delete = query(b"DELETE FROM t", variables=bytes([21, fires]))
    made = query(b"CREATE TRIGGER tr AFTER DELETE ON c FOR EACH ROW SET @x = 1")
    tables, result = replay_log(tmp_path, log(made, query(b"BEGIN"), delete, xid()), schema)
    assert (result.error is not None) == fires
    assert tables["d.c"].rows() == ([(1,)] if fires else [])


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
        f"CREATE TRIGGER tr AFTER INSERT ON t {BODY.replace('u', 'gone')}",
        *moves,
        "INSERT INTO r VALUES (2, 3)",
    )
    assert result.error is not None
    assert (result.error.number, result.error.table) == (1146, "d.gone")


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


def test_triggers_of_a_dump_run_for_the_rows_behind_them(tmp_path: Path) -> None:
    trigger = f"CREATE TRIGGER d.tr AFTER INSERT ON t {BODY.replace('u ', 'd.u ')};"
    tables, _ = replayed(tmp_path, schema=f"{TABLES} {trigger} INSERT INTO d.t VALUES (5), (6);")
    assert tables["d.t"].rows() == [(1,), (5,), (6,)]
    assert tables["d.u"].rows() == [(5,), (6,)]
