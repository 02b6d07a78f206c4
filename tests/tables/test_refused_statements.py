"""Statement-format DML that is refused by name, with the option that skips it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import applier
from applier.errors import ReplicationError
from applier.tables.dml.load_file import load_data
from applier.tables.dml.row_writer import StatementSession
from applier.tables.dml.statements import execute_statement
from applier.tables.expressions.operands import Session
from tests.applier.logs import log
from tests.binlog.build import gtid, query, write, xid
from tests.tables.test_statements import SCHEMA, refused


def test_is_null_under_sql_auto_is_null_is_refused(tmp_path: Path) -> None:
    """It finds the last number inserted there; without the setting it finds what is NULL."""
    for flags, number in ((1 << 14, 1235), (0, None)):
        variables = b"\0" + struct.pack("<I", flags)
        path = tmp_path / "log"
        delete = query(b"DELETE FROM t WHERE a is  null", variables=variables)
        path.write_bytes(log(gtid(1), query(b"BEGIN"), delete, xid()))
        result = applier.replay([path], into=(tables := applier.load_schema(SCHEMA)))
        assert (result.error and result.error.number) == number
        assert len(tables["d.t"].rows()) == (3 if number else 2)


@pytest.mark.parametrize(
    ("modes", "words", "number"),
    [
        (1 << 33, b"CHARACTER SET utf8", 1235),
        (1 << 33, b"COLLATE UTF8_bin", 1235),
        (1 << 33, b"CHARACTER SET utf8mb3", None),
        (1 << 33, b"DEFAULT _utf8mb4'x'", None),
        (0, b"CHARACTER SET utf8", None),
    ],
)
def test_utf8_that_stands_for_utf8mb4_is_refused(
    modes: int, words: bytes, number: int | None, tmp_path: Path
) -> None:
    """sql_mode INTERPRET_UTF8_AS_UTF8MB4 of 9.7."""
    path = tmp_path / "log"
    create = query(b"CREATE TABLE n (a CHAR(3) " + words + b")", b"d", struct.pack("<BQ", 1, modes))
    path.write_bytes(log(gtid(1), create))
    result = applier.replay([path], into=applier.load_schema(SCHEMA))
    assert (result.error and result.error.number) == number


@pytest.mark.parametrize(
    "select",
    [
        "(WITH c AS (SELECT 1) SELECT * FROM c)",
        "SELECT a + 20 AS x FROM t ORDER BY x + 1",
        "SELECT table_rows FROM information_schema.tables",
    ],
)
def test_a_select_that_is_not_carried_out_is_not_called_wrong(select: str) -> None:
    assert refused(f"INSERT INTO t (id) {select}").number == 1235


@pytest.mark.parametrize(
    ("sql", "number"),
    [
        ("INSERT INTO t SELECT SQL_CALC_FOUND_ROWS * FROM t", 1235),
        ("INSERT INTO t (a) SELECT 1 UNION SELECT 2", 1235),
        ("INSERT INTO t (a) SELECT STD(a) FROM t", 1235),
        ("INSERT INTO t (a) SELECT a FROM t GROUP BY a", 1235),
        ("INSERT INTO t (a) SELECT t.a FROM t, t u", 1235),
        ("INSERT INTO t (a) SELECT zz FROM t, u", 1146),
        ("INSERT INTO t (a) SELECT a x y FROM t", 1235),
        ("INSERT INTO t (a) SELECT t.a FROM t JOIN u ON 1", 1146),
        ("INSERT INTO t (a) SELECT u.a FROM t", 1235),
        ("INSERT INTO t (a) SELECT a / 3 FROM t", 1235),
        ("INSERT INTO t (a) SELECT a FROM t LIMIT 1", 1235),
        ("INSERT INTO t (a) SELECT RAND() FROM t", 1235),
        ("UPDATE t SET a = d.f(1)", 1235), ("INSERT INTO t (a) VALUES (IGNORE)", 1235),
        ("INSERT INTO t SELECT NULL, u, u, u + 90 FROM t", 1235),
        ("INSERT INTO t (a) SELECT u AS a FROM t ORDER BY a", 1235),
        ("INSERT IGNORE INTO t SELECT * FROM t", 1235),
        ("INSERT INTO t SELECT * FROM t ON DUPLICATE KEY UPDATE a = 1", 1235),
        ("INSERT INTO t SELECT a FROM t", 1136), ("INSERT INTO t SELECT * FROM gone", 1146),
        ("INSERT INTO t SELECT * FROM t", 1062),
        ("UPDATE t JOIN u ON t.id = u.id SET t.a = 1", 1146), ("UPDATE t, u SET t.a = 1", 1146),
        ("DELETE t FROM t JOIN u", 1146), ("DELETE FROM t USING t, u", 1146),
        ("UPDATE t SET a = (SELECT a FROM t)", 1235), ("UPDATE t x SET a = t.a", 1235),
        ("UPDATE t x, u SET x.a = 1", 1146), ("DELETE FROM t AS x WHERE t.id = 1", 1235),
        ("UPDATE t SET a = f(1)", 1235), ("UPDATE t SET a = 1, b", 1235),
        ("DELETE FROM t WHERE id IN (SELECT id FROM t)", 1235),
        ("UPDATE t SET a = RAND()", 1235),
        ("UPDATE t SET a = 1 WHERE", 1235), ("UPDATE t SET a = ", 1235),
        ("DELETE FROM t LIMIT x", 1235),
        ("UPDATE t SET a = SLEEP(5)", 1235), ("UPDATE t SET b = GET_FORMAT(DATE, 'EUR')", 1235),
        ("UPDATE t, JSON_TABLE('[2]', '$[*]' COLUMNS (x INT PATH '$')) j SET t.a = j.x", 1235),
        ("INSERT INTO t VALUES (1, 2)", 1136), ("INSERT INTO t (zz) VALUES (1)", 1054),
        ("UPDATE t SET zz = 1", 1054),
        ("UPDATE t SET a = zz", 1054),
        ("INSERT INTO gone VALUES (1)", 1146), ("INSERT INTO t VALUES (1, 1, 'x', 9)", 1062),
        ("UPDATE t SET id = 2 WHERE id = 1", 1062), ("UPDATE t SET u = 3 WHERE id = 1", 1062),
        ("UPDATE t SET id = NULL", 1062), ("UPDATE t SET a = 2e", 1054), ("MERGE INTO t", 1235),
    ],
)  # fmt: skip
def test_what_is_refused(sql: str, number: int) -> None:
    error = refused(sql)
    assert error.number == number
    if number == 1235:
        assert error.hint is not None
        assert "--skip-errors 1235" in error.hint
        assert "not supported in memory: " in error.message


def test_the_state_of_a_cursor() -> None:
    """Of a routine in sql_mode=ORACLE, whose statement is logged as it stands there."""
    tables = applier.load_schema("CREATE TABLE d.t (a INT);", server="mariadb")
    session = StatementSession(Session(mariadb=True))
    with pytest.raises(ReplicationError) as caught:
        execute_statement(tables, "INSERT INTO t SELECT c%ISOPEN", "d", session)
    assert caught.value.number == 1235


def test_a_character_that_the_clients_set_does_not_have() -> None:
    """0x7F of swe7."""
    tables = applier.load_schema("CREATE TABLE d.t (a VARBINARY(9));")
    session = StatementSession(Session(client="swe7", collation="swe7_swedish_ci"))
    with pytest.raises(ReplicationError, match="not supported in memory: ") as caught:
        execute_statement(tables, "INSERT INTO t VALUES ('\x7f')", "d", session)
    assert caught.value.number == 1235


def test_a_refused_statement_changes_nothing_in_a_log(tmp_path: Path) -> None:
    """Rows that a statement changed before it failed are rolled back with its transaction."""
    content = log(
        gtid(1), query(b"BEGIN"), query(b"INSERT INTO t VALUES (7, 7, 'x', 7), (1, 1, 'x', 8)")
    )
    tables = applier.load_schema(SCHEMA)
    result = applier.replay([write(tmp_path, content)], into=tables)
    assert result.error is not None
    assert (result.error.number, result.error.table) == (1062, "d.t")
    assert result.error.position is not None
    assert [row[0] for row in tables["d.t"].rows()] == [1, 2, 3]


def test_load_data_with_expressions_is_refused() -> None:
    with pytest.raises(ReplicationError) as caught:
        load_data(
            applier.load_schema(SCHEMA),
            "LOAD DATA INFILE 'x' INTO TABLE t (id, @a) SET a = @a + 1",
            "d",
            b"7\t1\n",
            StatementSession(),
        )
    assert caught.value.number in (1054, 1235)


UNKNOWN = "CREATE TABLE d.t (a INT PRIMARY KEY, g DOUBLE AS (COS(a)) VIRTUAL); "


def test_a_generated_column_that_cannot_be_computed_is_refused_where_it_is_needed(
    tmp_path: Path,
) -> None:
    tables = applier.load_schema(UNKNOWN)
    execute_statement(tables, "INSERT INTO t (a) VALUES (1), (2)", "d", StatementSession())
    execute_statement(tables, "DELETE FROM t WHERE a = 2", "d", StatementSession())
    assert len(tables["d.t"]) == 1
    for needs in (tables["d.t"].rows, lambda: tables.dump(tmp_path)):
        with pytest.raises(ReplicationError, match="function COS") as caught:
            needs()
        assert caught.value.number == 1235


@pytest.mark.parametrize(
    ("where", "left"),
    [("f", None), ("s AND id", None), ("1 OR f", None), ("NOT f", 2), ("f > 0", 1), ("id", 0)],
)
def test_a_fraction_as_a_condition(where: str, left: int | None) -> None:
    """5.7.29 takes one that stands alone for an integer; 9.7.4 and MariaDB do not."""
    schema = (
        "CREATE TABLE d.t (id INT, f DOUBLE, s CHAR(5)); "
        "INSERT INTO d.t VALUES (1, 0.1, '1'), (2, 0, 'x'), (3, 0.4, '0.4');"
    )
    tables = applier.load_schema(schema)
    execute_statement(tables, f"DELETE FROM t WHERE {where}", "d", StatementSession())
    old = applier.load_schema(schema)
    if left is None:
        with pytest.raises(ReplicationError, match="as a condition"):
            session = StatementSession(Session(old=True))
            execute_statement(old, f"DELETE FROM t WHERE {where}", "d", session)
        return
    execute_statement(old, f"DELETE FROM t WHERE {where}", "d", StatementSession(Session(old=True)))
    assert len(old["d.t"]) == len(tables["d.t"]) == left


def test_auto_increment_behind_other_columns_of_its_key() -> None:
    """MyISAM counts by group there, and a log has no INSERT_ID."""
    schema = "CREATE TABLE d.t (a INT, b INT AUTO_INCREMENT, PRIMARY KEY (a, b){}) ENGINE=MyISAM;"
    for more, number in (("", 1235), (", KEY (b)", None)):
        tables = applier.load_schema(schema.format(more))
        try:
            execute_statement(tables, "INSERT INTO t (a) VALUES (1)", "d", StatementSession())
            found = None
        except ReplicationError as error:
            found = error.number
        assert found == number


def test_large_unsigned_numbers_in_greatest() -> None:
    """5.7.29 gives -2 for the least of 1 and 18446744073709551614."""
    sql = "UPDATE t SET a = {}(a, 18446744073709551614)"
    for function, found in (("LEAST", 1), ("GREATEST", 18446744073709551614)):
        tables = applier.load_schema(
            "CREATE TABLE d.t (a BIGINT UNSIGNED); INSERT INTO d.t VALUES (1);"
        )
        with pytest.raises(ReplicationError) as caught:
            session = StatementSession(Session(old=True))
            execute_statement(tables, sql.format(function), "d", session)
        assert caught.value.number == 1235
        execute_statement(tables, sql.format(function), "d", StatementSession())
        assert tables["d.t"].rows() == [(found,)]


def test_a_default_that_other_columns_decide() -> None:
    tables = applier.load_schema(
        "CREATE TABLE d.t (a INT, b INT DEFAULT (a + 1)); INSERT INTO d.t VALUES (1, 5);"
    )
    execute_statement(tables, "UPDATE t SET a = 3", "d", StatementSession())
    assert tables["d.t"].rows() == [(3, 5)]
    execute_statement(tables, "INSERT INTO t (a) VALUES (1)", "d", StatementSession())
    with pytest.raises(ReplicationError, match="the default of `b`"):
        tables["d.t"].rows()


def test_it_is_no_key(tmp_path: Path) -> None:
    tables = applier.load_schema(UNKNOWN.replace("VIRTUAL", "VIRTUAL UNIQUE"))
    with pytest.raises(ReplicationError, match="function COS"):
        execute_statement(tables, "INSERT INTO t (a) VALUES (1)", "d", StatementSession())


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET a = 1 LIMIT 2", "DELETE FROM t ORDER BY a IS NULL LIMIT 1",
        "UPDATE t SET b = UPPER('é')", "UPDATE t SET a = SIN(1)", "UPDATE t SET a = UUID()",
        "UPDATE t SET a = @@sql_mode", "UPDATE t SET b = SYSDATE()",
        "DELETE FROM t WHERE (a, id) < (1, 2)", "DELETE FROM t WHERE (a, id) IN (SELECT 1, 2)",
        "DELETE FROM t WHERE (a, id) IN ((1, 2.5))", "DELETE FROM t WHERE (a, id) = (1, 2, 3)",
        "DELETE FROM t WHERE (b, id) IN ((0, 1))", "DELETE FROM t WHERE (a, id)",
    ],
)  # fmt: skip
def test_what_is_not_exact_is_refused(sql: str) -> None:
    assert refused(sql).number == 1235


DIVIDED = """
    CREATE TABLE d.t (id INT PRIMARY KEY, a INT)
        PARTITION BY RANGE (id)
        (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20));
    INSERT INTO d.t VALUES (1, 1), (11, 1);
"""


@pytest.mark.parametrize(
    ("sql", "number"),
    [
        ("INSERT INTO t PARTITION (p0) VALUES (12, 1)", 1748),
        ("REPLACE INTO t PARTITION (p0) VALUES (11, 2)", 1748),
        ("UPDATE t PARTITION (p0) SET id = 12", 1748),
        ("INSERT INTO t PARTITION (p0) VALUES (1, 1) ON DUPLICATE KEY UPDATE id = 13", 1748),
        ("INSERT IGNORE INTO t PARTITION (p0) VALUES (12, 1)", 1235),
        ("DELETE FROM t PARTITION (p7)", 1735),
        ("UPDATE t PARTITION (p0), t u SET t.a = 1", 1235),
    ],
)
def test_rows_outside_of_the_partitions_that_are_named(sql: str, number: int) -> None:
    assert refused(sql, DIVIDED).number == number


def test_partitions_that_are_not_there_or_are_read_in_an_order() -> None:
    assert refused("DELETE FROM t PARTITION (p0)").number == 1235
    with pytest.raises(ReplicationError, match="LIMIT among the rows of partitions"):
        execute_statement(
            applier.load_schema(DIVIDED),
            "DELETE FROM t PARTITION (p0) ORDER BY id LIMIT 1",
            "d",
            StatementSession(Session(mariadb=True)),
        )
