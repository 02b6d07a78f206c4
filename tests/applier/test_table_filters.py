"""Filters in a replay in memory: statements go by the tables that they name; the server's own
schemas are left out."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import applier
from applier.errors import ReplicationError
from tests.applier.logs import insert, ints, replay_log, transaction
from tests.binlog.build import gtid, log, query, rows, table_map

TWO = (
    "CREATE TABLE shop.t (a INT PRIMARY KEY); CREATE TABLE shop.u (a INT PRIMARY KEY); "
    "INSERT INTO shop.t VALUES (1), (2);"
)


def elsewhere(*statements: bytes) -> bytes:
    """Statements whose default database is another one."""
    return log(
        *(
            part
            for number, sql in enumerate(statements, 1)
            for part in (gtid(number), query(sql, b"test"))
        )
    )


@pytest.mark.parametrize(
    "chosen",
    [{"table": "shop.t"}, {"database": "shop"}, {"table": "sh%.t"}, {"exclude_table": "shop.u"}],
)
def test_ddl_of_another_default_database(tmp_path: Path, chosen: dict[str, str]) -> None:
    content = elsewhere(b"TRUNCATE TABLE shop.t", b"ALTER TABLE shop.t ADD z INT DEFAULT 7")
    tables, result = replay_log(tmp_path, content, TWO, **chosen)
    assert (result.error, result.statements) == (None, 2)
    assert list(tables["shop.t"].rows()) == []
    assert len(tables["shop.t"].definition.columns) == 2


def test_what_the_filter_leaves_out_is_not_done(tmp_path: Path) -> None:
    content = elsewhere(
        b"TRUNCATE TABLE shop.t", b"DROP TABLE shop.u", b"CREATE TABLE test.v (a INT)"
    )
    tables, result = replay_log(tmp_path, content, TWO, table="shop.u")
    assert (len(list(tables["shop.t"].rows())), "shop.u" in tables, "test.v" in tables) == (
        2,
        False,
        False,
    )
    assert result.notes == {}
    tables, result = replay_log(tmp_path, content, TWO, exclude_database="shop")
    assert (len(list(tables["shop.t"].rows())), "shop.u" in tables, "test.v" in tables) == (
        2,
        True,
        True,
    )


def test_a_statement_of_wanted_and_unwanted_tables_is_carried_out_as_a_whole(
    tmp_path: Path,
) -> None:
    tables, result = replay_log(
        tmp_path, elsewhere(b"DROP TABLE shop.t, shop.u"), TWO, table="shop.u"
    )
    assert len(tables) == 0
    assert result.notes == {
        "a statement that changes shop.u was carried out as a whole; it also changes shop.t": 1
    }


@pytest.mark.parametrize(
    "statement",
    [
        b"UPDATE shop.t JOIN shop.u ON t.a = u.a SET t.a = 9",
        b"UPDATE shop.t, shop.u SET t.a = 9",
        b"DELETE shop.t FROM shop.t LEFT JOIN shop.u x ON t.a = x.a WHERE x.a IS NULL",
        b"DELETE FROM t USING shop.t, shop.u",
        b"INSERT INTO shop.t SELECT x.a + 9 FROM shop.t x JOIN shop.u USING (a) WHERE 1",
    ],
)
def test_a_join_with_what_is_left_out_is_refused(tmp_path: Path, statement: bytes) -> None:
    _, result = replay_log(tmp_path, elsewhere(statement), TWO, exclude_table="shop.u")
    assert result.error is not None
    assert result.error.number == 1235
    assert "the statement reads shop.u, which the filters leave out" in result.error.message
    assert "name it with --table" in (result.error.hint or "")


def test_a_rename_says_which_table_the_filter_lacks(tmp_path: Path) -> None:
    content = elsewhere(
        b"CREATE TABLE shop._t_new (a INT)",
        b"RENAME TABLE shop.t TO shop._t_old, shop._t_new TO shop.t",
    )
    _, result = replay_log(tmp_path, content, TWO, table="shop.t")
    assert isinstance(result.error, ReplicationError)
    assert result.error.number == 1146
    assert result.error.hint == (
        "the statement also names shop._t_old, shop._t_new, which the filters leave out: "
        "name it with --table"
    )


@pytest.mark.parametrize(
    "sql",
    [b"INSERT INTO shop.t SELECT * FROM shop.u", b"CREATE TABLE shop.t2 SELECT * FROM shop.u"],
)
def test_rows_of_a_table_that_is_left_out_are_not_read(sql: bytes, tmp_path: Path) -> None:
    """They are not what the source had when it read them."""
    _, result = replay_log(tmp_path, elsewhere(sql), TWO, table=["shop.t", "shop.t2"])
    assert isinstance(result.error, ReplicationError)
    assert (result.error.number, result.error.table) == (1235, "shop.u")
    _, result = replay_log(tmp_path, elsewhere(sql), TWO)
    assert result.error is None


PARENT = """
CREATE TABLE shop.p (a INT PRIMARY KEY);
CREATE TABLE d.t (a INT NOT NULL PRIMARY KEY, FOREIGN KEY (a) REFERENCES shop.p (a));
"""


@pytest.mark.parametrize("rewrite_db", [None, {"d": "e"}])
def test_a_foreign_key_says_which_table_the_filter_leaves_out(
    tmp_path: Path, rewrite_db: dict[str, str] | None
) -> None:
    content = log(*insert(1, 7))
    schema = PARENT.replace("d.t", "e.t") if rewrite_db else PARENT
    _, result = replay_log(
        tmp_path, content, schema, exclude_table="shop.p", rewrite_db=rewrite_db or {}
    )
    assert isinstance(result.error, ReplicationError)
    assert result.error.number == 1452
    assert "REFERENCES `shop`.`p` (`a`)" in result.error.message
    assert result.error.hint == (
        "a foreign key ties d.t to shop.p, which the filters leave out; a replica stops here, too: "
        "leave d.t out as well, or do not leave shop.p out"
    )
    _, result = replay_log(tmp_path, content, schema, rewrite_db=rewrite_db or {})
    assert result.error is not None
    assert "filters" not in str(result.error.hint)


def test_a_foreign_key_that_forbids_a_delete_names_the_child(tmp_path: Path) -> None:
    content = log(gtid(1), query(b"BEGIN"), query(b"DELETE FROM shop.p"), query(b"COMMIT"))
    schema = f"{PARENT} INSERT INTO shop.p VALUES (7); INSERT INTO d.t VALUES (7);"
    _, result = replay_log(tmp_path, content, schema, table="shop.p")
    assert isinstance(result.error, ReplicationError)
    assert (result.error.number, str(result.error.hint).split(",")[0]) == (
        1451,
        "a foreign key ties shop.p to d.t",
    )


def test_what_comes_before_a_statement_that_is_left_out_is_forgotten(tmp_path: Path) -> None:
    """INSERT_ID belongs to the statement behind it only."""
    schema = "CREATE TABLE d.t (a INT AUTO_INCREMENT PRIMARY KEY, b INT);"
    content = log(
        gtid(1), query(b"BEGIN"), (5, b"\2" + struct.pack("<Q", 77)),
        query(b"INSERT INTO u (b) VALUES (1)"),
        query(b"INSERT INTO t (b) VALUES (1)"), query(b"COMMIT"),
    )  # fmt: skip
    tables, result = replay_log(tmp_path, content, schema, table="d.t")
    assert (result.error, list(tables["d.t"].rows())) == (None, [(1, 1)])


def test_system_schemas_are_left_out_and_counted(tmp_path: Path) -> None:
    of_mysql = table_map(2, database=b"mysql", table=b"time_zone")
    content = log(
        gtid(1), query(b"TRUNCATE TABLE time_zone", b"mysql"),
        *transaction(2, of_mysql, rows(30, ints(1, 2), 2)),
        *transaction(3, of_mysql, rows(30, ints(3), 2)), gtid(4),
        query(b"CREATE TABLE d.t (a INT)", b"mysql"),
        *transaction(5, table_map(), rows(30, ints(4))), gtid(6),
        query(b"CREATE DATABASE mtr", b""),
    )  # fmt: skip
    tables, result = replay_log(tmp_path, content, applier.Tables())
    assert (result.error, list(tables["d.t"].rows())) == (None, [(4,)])
    assert list(result.notes) == [
        "left out: mtr (1 statement); name it with --database to replay it",
        "left out: mysql (2 rows events, 1 statement); name it with --database to replay it",
    ]
    _, result = replay_log(tmp_path, content, applier.Tables(), database=["mysql", "d"])
    assert result.error is not None
    assert result.error.message == "Table 'mysql.time_zone' doesn't exist"
    own = "CREATE TABLE mysql.time_zone (a INT PRIMARY KEY);"
    tables = applier.load_schema(own, table="mysql.time%")
    applier.replay([tmp_path / "binlog.000001"], into=tables, table="mysql.time%")
    assert list(tables["mysql.time_zone"].rows()) == [(1,), (2,), (3,)]
