"""Which tables are not exact behind a statement that --skip-errors 1235 passes over."""

from __future__ import annotations

from pathlib import Path

import pytest
from pymysql.cursors import Cursor
from pymysql.err import MySQLError

from applier.tables.catalog import Tables
from applier.tables.sql.stored_calls import NATIVE, may_call_stored
from tests.applier.logs import replay_log
from tests.binlog.build import gtid, log, query
from tests.servers.fixtures import ServerFactory


@pytest.mark.parametrize(
    ("sql", "inexact"),
    [
        (b"INSERT INTO t (a, b) VALUES (ABS(1), SLEEP(2))", {"d.t"}),
        (b"INSERT INTO d.t (a, b) VALUES (1, SLEEP (2))", {"d.t"}),
        (b"INSERT INTO t (a, b) VALUES (1, f1(2))", {"d.t", ""}),
        (b"INSERT INTO t (a, b) VALUES (1, f1 (2))", {"d.t", ""}),
        (b"INSERT INTO t VALUES (1, d.abs(2))", {"d.t", ""}),
        (b"INSERT INTO t VALUES (1, `now`(2))", {"d.t", ""}),
        (b"REPLACE `t` (`a`, `b`) SELECT a, SLEEP(1) FROM t AS o WHERE a IN (1, 2)", {"d.t"}),
        (b"UPDATE t SET a = f1(2), b = SLEEP(1)", {"d.t", ""}),
        (b"DELETE FROM t WHERE SLEEP(1) OR f1(a)", {"d.t", ""}),
        (b"UPDATE t SET a = SLEEP(1), b = 'f1(2)' /* f1(3) */", {"d.t"}),
        (b"CREATE TABLE n (a INT, KEY k (a)) SELECT SLEEP(1)", {"d.n"}),
        (b"CREATE TABLE n (a INT, KEY k (a)) SELECT f1(1)", {"d.n", ""}),
        (b"UPDATE v SET a = SLEEP(1)", {"d.v", ""}),
        (b"SELECT `d`.`f1`()", {""}),
    ],
)
def test_what_a_function_or_a_view_may_change_is_not_exact(
    tmp_path: Path, sql: bytes, inexact: set[str]
) -> None:
    statements = (b"CREATE TABLE t (a INT, b INT)", b"CREATE VIEW v AS SELECT * FROM t", sql)
    events = [
        event
        for number, statement in enumerate(statements, 1)
        for event in (gtid(number), query(statement, b"d"))
    ]
    _, result = replay_log(tmp_path, log(*events), Tables(), skip_errors="1235")
    assert result.error is None, result.error
    assert set(result.inexact) == inexact


def test_what_follows_a_create_that_was_passed_over(tmp_path: Path) -> None:
    """Statements on the table are passed over with it, until it is made anew."""
    statements = (
        b"CREATE TABLE n (a INT) SELECT SLEEP(1) AS b",
        b"INSERT INTO n VALUES (1, 2)",
        b"CREATE TABLE m LIKE n",
        b"UPDATE m SET a = 3",
        b"DROP TABLE n",
        b"CREATE TABLE n (a INT)",
        b"INSERT INTO n VALUES (5)",
    )
    events = [
        event
        for number, statement in enumerate(statements, 1)
        for event in (gtid(number), query(statement, b"d"))
    ]
    tables, result = replay_log(tmp_path, log(*events), Tables(), skip_errors="1235")
    assert result.error is None, result.error
    assert (tables["d.n"].rows(), list(result.inexact)) == ([(5,)], ["d.m"])
    assert "what makes it was passed over" in " ".join(result.notes)
    _, stopped = replay_log(
        tmp_path, log(*events, gtid(8), query(b"DROP TABLE k", b"d")), Tables(), skip_errors="1235"
    )
    assert stopped.error is not None and stopped.error.number == 1051


def test_what_cannot_be_read_may_call_anything() -> None:
    assert may_call_stored("UPDATE t SET a = 1e999999999" + "9" * 9) is False
    assert may_call_stored("UPDATE t SET a = f(`")


@pytest.mark.parametrize("name", ["9.7", "mariadb"])
def test_no_server_takes_these_names_for_those_of_stored_functions(
    name: str, server_factory: ServerFactory
) -> None:
    """1305: no such function; 1630: none of this name, which a space stands behind."""
    with (
        server_factory.shared(name).connect(database="mysql") as connection,
        connection.cursor() as cursor,
    ):
        assert {
            word for word in NATIVE - {"SLEEP"} if _error(cursor, word) in (1305, 1630)
        } == set()


def _error(cursor: Cursor, word: str) -> int | None:
    try:
        cursor.execute(f"SELECT {word}()")
        cursor.fetchall()
    except MySQLError as error:
        return int(error.args[0])
    return None
