"""The log's DDL that changes no table: the servers' errors, and what is passed over with a word."""

from __future__ import annotations

from pathlib import Path

import pytest

import applier
from applier.errors import BinlagError, InputError, ReplicationError
from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.execution import apply_ddl
from applier.tables.expressions.literals import string_literal
from applier.tables.expressions.operands import Scope, Session
from applier.tables.sql.statement_kind import statement_kind
from tests.tables.test_ddl import SCHEMA, number, rows, run


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("CREATE TABLE t (a int)", 1050), ("DROP TABLE gone", 1051),
        ("ALTER TABLE gone ADD a int", 1146), ("TRUNCATE gone", 1146),
        ("RENAME TABLE gone TO x", 1146), ("RENAME TABLE gone TO t", 1050),
        ("RENAME TABLE t TO t", 1050), ("ALTER TABLE t ADD a int", 1060),
        ("ALTER TABLE t DROP zz", 1091), ("ALTER TABLE t DROP KEY zz", 1091),
        ("ALTER TABLE t ADD KEY k (a)", 1061), ("ALTER TABLE t ADD PRIMARY KEY (a)", 1068),
        ("ALTER TABLE t ADD KEY z (zz)", 1072), ("ALTER TABLE t MODIFY zz int", 1054),
        ("ALTER TABLE t CHANGE zz y int", 1054), ("ALTER TABLE t ADD c int AFTER zz", 1054),
        ("CREATE DATABASE d", 1007), ("DROP DATABASE gone", 1008),
        ("ALTER DATABASE gone CHARSET latin1", 1049),
        ("CREATE TABLE l LIKE gone", 1146), ("CREATE INDEX i ON gone (a)", 1146),
        ("DROP INDEX zz ON t", 1091),
        ("ALTER TABLE t RENAME COLUMN zz TO y", 1054),
        ("ALTER TABLE t DROP PARTITION p0", 1235), ("ALTER TABLE t TRUNCATE PARTITION p0", 1235),
        ("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u", 1235),
        ("CREATE TABLE s AS SELECT count(*) FROM t GROUP BY a WITH ROLLUP", 1235),
        ("CREATE TABLE s SELECT 7 DIV 2", 1235), ("CREATE TABLE s SELECT a FROM t LIMIT 1", 1235),
        ("CREATE TABLE s SELECT a FROM t WHERE RAND() < 2", 1235),
        ("CREATE TABLE s (PRIMARY KEY (a)) SELECT a FROM t", 1235),
        ("CREATE TABLE s SELECT n.a FROM t", 1235),
        ("CREATE TABLE s SELECT a FROM t, t AS u", 1235),
    ],
)  # fmt: skip
def test_the_servers_errors(statement: str, error: int | None) -> None:
    tables = applier.load_schema(SCHEMA)
    before = (tables["d.t"].rows(), tables["d.t"].definition)
    with pytest.raises(BinlagError) as caught:
        apply_ddl(tables, statement, "d", DdlSession())
    assert getattr(caught.value, "number", None) == error
    assert (tables["d.t"].rows(), tables["d.t"].definition) == before
    assert len(tables) == 1


def test_exists_already_or_not_there() -> None:
    tables = applier.load_schema(SCHEMA)
    for sql in (
        "CREATE TABLE IF NOT EXISTS t (z int)",
        "DROP TABLE IF EXISTS gone",
        "ALTER TABLE IF EXISTS gone ADD a int",
    ):
        assert apply_ddl(tables, sql, "d", DdlSession(server="mariadb"))
    assert len(tables["d.t"]) == 3


def test_a_replica_of_mariadb_executes_some_statements_again() -> None:
    """slave_ddl_exec_mode=IDEMPOTENT, as tests/replica/test_real_mariadb.py asks a server."""
    tables, session = applier.load_schema(SCHEMA), DdlSession(server="mariadb", executes_again=True)
    for sql in ("CREATE DATABASE d", "DROP DATABASE gone", "DROP TABLE gone"):
        assert apply_ddl(tables, sql, "d", session)
    assert len(tables["d.t"]) == 3
    told = apply_ddl(tables, "CREATE TABLE t (z int)", "d", session)
    assert told is not None and "is replaced" in told
    assert (len(tables["d.t"]), [column.name for column in tables["d.t"].definition.columns]) == (
        0,
        ["z"],
    )
    with pytest.raises(BinlagError, match="Table 't' already exists"):
        applier.load_schema(SCHEMA + "CREATE TABLE d.t (a int);", server="mariadb")


def test_alter_if_exists_of_a_table_that_is_there() -> None:
    assert rows("ALTER TABLE IF EXISTS t DROP a, DROP b", server="mariadb") == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW v AS SELECT 1",
        "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`a`@`b` SQL SECURITY DEFINER VIEW v AS SELECT 1",
        "DROP VIEW v",
        "CREATE FUNCTION f() RETURNS INT RETURN 1",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t", "CREATE USER u",
        "ALTER USER u IDENTIFIED BY 'x'",
        "GRANT ALL ON *.* TO u", "FLUSH TABLES",
        "ANALYZE TABLE t", "OPTIMIZE TABLE t", "SET PASSWORD = 'x'", "CREATE ROLE r",
        "RENAME USER a TO b", "ALTER VIEW v AS SELECT 2",
        "DROP PROCEDURE IF EXISTS p",
        "CREATE TABLESPACE ts ADD DATAFILE 'x'", "INSTALL PLUGIN x SONAME 'y'",
    ],
)  # fmt: skip
def test_what_changes_no_table_is_passed_over_with_a_word(sql: str) -> None:
    tables = applier.load_schema(SCHEMA)
    note = apply_ddl(tables, sql, "d", DdlSession())
    assert note is not None
    assert "not replayed" in note
    assert len(tables["d.t"]) == 3


def test_triggers_are_taken_in_without_a_word() -> None:
    tables = applier.load_schema(SCHEMA)
    create = "CREATE DEFINER=`root`@`%` TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1"
    assert apply_ddl(tables, create, "d", DdlSession()) is None
    assert [one.name for one in tables.triggers.fired("d", "t", "INSERT")] == ["tr"]
    assert apply_ddl(tables, "DROP TRIGGER tr", "d", DdlSession()) is None
    assert tables.triggers.fired("d", "t", "INSERT") == []


def test_partition_maintenance_keeps_all_rows() -> None:
    schema = (
        "CREATE TABLE d.t (a int) PARTITION BY HASH (a) PARTITIONS 3; INSERT INTO d.t VALUES (1), "
        "(2);"
    )
    for clause in (
        "ADD PARTITION PARTITIONS 2",
        "COALESCE PARTITION 1",
        "REORGANIZE PARTITION p0 INTO (PARTITION p9 VALUES LESS THAN (5))",
        "REBUILD PARTITION ALL",
    ):
        tables = run(f"ALTER TABLE t {clause}", schema=schema)
        assert (len(tables["d.t"]), tables["d.t"].definition.partitioned) == (2, True)
    assert not run("ALTER TABLE t REMOVE PARTITIONING", schema=schema)["d.t"].definition.partitioned
    assert run("ALTER TABLE t PARTITION BY KEY () PARTITIONS 4")["d.t"].definition.partitioned


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("  /* x */ insert into t", "INSERT"),
        ("/*!50003 CREATE*/ TABLE", "CREATE"),
        ("-- c\nDROP TABLE t", "DROP"),
        ("# c\n(SELECT 1)", "SELECT"),
        ("", ""),
        ("/*M!100301 ALTER", "ALTER"),
    ],
)
def test_the_first_word(sql: str, kind: str) -> None:
    assert statement_kind(sql) == kind


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD c",
        "ALTER TABLE t ADD KEY (",
        "ALTER TABLE t RENAME COLUMN a",
        "ALTER TABLE t MODIFY",
        "RENAME TABLE t",
        "ALTER TABLE t ORDER",
        "CREATE SEQUENCE s START x",
    ],
)
def test_sql_that_cannot_be_read(sql: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        run(sql)


@pytest.mark.parametrize(
    ("sql", "server"),
    [
        ("CREATE TABLE n (a ENUM(0xFF) CHARACTER SET utf8mb4)", "9.7"),
        ("CREATE TABLE n (a CHAR(5) CHARACTER SET filename)", "mariadb"),
        ("CREATE TABLE n (a CHAR(5)) CHARACTER SET filename", "mariadb"),
    ],
)
def test_text_that_is_not_exact_is_refused(sql: str, server: str) -> None:
    assert number(sql, server=server) == 1235


def test_a_virtual_column_of_the_session_is_not_guessed(tmp_path: Path) -> None:
    """The row has what the source's session computed; each reader sees another value."""
    schema = (
        "CREATE TABLE d.v (id int, m int AS (connection_id()) VIRTUAL, k int AS (id + 1) VIRTUAL)"
    )
    tables = run(schema=schema, server="mariadb")
    tables.dump(tmp_path)
    tables["d.v"].insert((1, 0, 2))
    with pytest.raises(BinlagError, match="CONNECTION_ID"):
        tables.dump(tmp_path)


def test_text_of_a_client_with_swe7_is_refused_where_it_is_not_ascii() -> None:
    session = Session(client="swe7", collation="swe7_swedish_ci")
    assert string_literal("ab", session.dialect).value(Scope((), session)) == "ab"
    with pytest.raises(ReplicationError, match="swe7"):
        string_literal("a{", session.dialect)
