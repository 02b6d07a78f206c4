"""Generated columns of tables whose definition an ALTER TABLE changes."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from applier.binlog.types.temporal import pack_datetime, pack_time
from applier.errors import BinlagError, ReplicationError
from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.execution import apply_ddl
from applier.tables.expressions.operands import Session
from tests.tables.test_ddl import run


@pytest.mark.parametrize(("server", "read"), [("9.7", "10:11:12.1"), ("mariadb", "10:11:12.0")])
def test_generated_columns_are_computed_by_the_rules_of_the_server(
    server: str, read: str, tmp_path: Path
) -> None:
    """MariaDB cuts the digits that a TIME(1) has no place for, MySQL rounds."""
    tables = run(
        schema="CREATE TABLE d.t (id int, m TIME(4), k TIME(1) AS (m) VIRTUAL)", server=server
    )
    tables["d.t"].insert((1, pack_time(((10 * 60 + 11) * 60 + 12) * 1_000_000 + 63_000, 4), None))
    session = DdlSession(server=server, expressions=Session(mariadb=server == "mariadb"))
    apply_ddl(tables, "ALTER TABLE t ADD INDEX (id)", "d", session)
    tables.dump(tmp_path)
    assert (tmp_path / "d.t.tsv").read_text().split()[-1] == read


@pytest.mark.parametrize(
    ("clause", "kept"),
    [
        ("ADD INDEX (id)", True),
        ("ADD x int FIRST, DROP b", True),
        ("MODIFY id bigint", False),
        ("MODIFY g varchar(9) AS (soundex(id)) STORED", False),
    ],
)
def test_a_generated_value_that_is_not_exact_stays_what_the_log_brought(
    clause: str, kept: bool
) -> None:
    """Where the column and all that it is made of stay as they are."""
    tables = run(schema="CREATE TABLE d.t (id int, b int, g varchar(8) AS (soundex(id)) STORED)")
    tables["d.t"].insert((1, 2, b"X100"))
    apply_ddl(tables, f"ALTER TABLE t {clause}", "d", DdlSession(server="9.7"))
    if kept:
        assert tables["d.t"].rows()[0][-1] == "X100"
    else:
        with pytest.raises(ReplicationError, match="SOUNDEX"):
            tables["d.t"].rows()


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("a + DEFAULT(a)", [8, 9, None]),
        ("concat(DEFAULT(b), a)", ["x1", "x2", None]),
        ("timestampdiff(month, m, '2024-03-30')", [1, -9, None]),
        ("timestampdiff(hour, '2024-03-01', m)", [-24, 8039, None]),
    ],
)
def test_calls_with_a_grammar_of_their_own(expression: str, found: list[object]) -> None:
    """Seen on 5.7.29, 9.7.4 and MariaDB 10.11.18."""
    schema = """CREATE TABLE d.t (a int DEFAULT 7, b varchar(3) DEFAULT 'x', m datetime);
        INSERT INTO d.t (a, m) VALUES (1, '2024-02-29 00:00:00'), (2, '2025-01-29 23:59:59'),
            (NULL, NULL)"""
    kind = "varchar(9)" if "concat" in expression else "bigint"
    tables = run(f"ALTER TABLE t ADD g {kind} AS ({expression}) STORED", schema=schema)
    assert [row[-1] for row in tables["d.t"].rows()] == found


def test_a_moment_of_a_virtual_column_is_shown_in_utc(tmp_path: Path) -> None:
    """The session that reads the column decides, not the one that wrote the row."""
    tables = run(schema="CREATE TABLE d.t (a int, m datetime AS (from_unixtime(a)) VIRTUAL)")
    tables["d.t"].insert((86400, pack_datetime((1970, 1, 2, 3, 0, 0, 0), 0)))
    tables.dump(tmp_path)
    assert "1970-01-02 00:00:00" in (tmp_path / "d.t.tsv").read_text()


def test_a_virtual_column_of_a_number_is_what_the_number_makes_it(tmp_path: Path) -> None:
    """MariaDB logs what it was before the row got its AUTO_INCREMENT number. Seen on 10.11.18."""
    schema = (
        "CREATE TABLE d.t (id int AUTO_INCREMENT PRIMARY KEY, g int AS (id + a) VIRTUAL, a int)"
    )
    tables = run(schema=schema, server="mariadb")
    tables["d.t"].insert((1, 10, 10))
    tables.dump(tmp_path)
    assert (tmp_path / "d.t.tsv").read_text().split()[-2:] == ["11", "10"]


def test_the_digits_of_a_virtual_quotient_are_not_guessed(tmp_path: Path) -> None:
    """div_precision_increment of the session that opened the table decides. Seen on 10.11.18."""
    schema = "CREATE TABLE d.t (a int, b int, g varchar(20) AS (concat(a / b)) VIRTUAL)"
    tables = run(schema=schema, server="mariadb")
    tables["d.t"].insert((1, 3, b"0.3333"))
    tables.dump(tmp_path)
    assert (tmp_path / "d.t.tsv").read_text().split()[-1] == "0.3333"
    tables["d.t"].insert((1, 3, b"0.33333333"))
    with pytest.raises(BinlagError, match="div_precision_increment"):
        tables.dump(tmp_path)


@pytest.mark.parametrize("name", ["time", "timestamp"])
def test_the_digits_of_a_definition_are_not_guessed(name: str) -> None:
    """TIME(m) keeps the digits that m had when the column was made. Seen on 5.7.29, 9.7.4 and
    MariaDB 10.11.18."""
    tables = run(schema=f"CREATE TABLE d.t (m datetime, g varchar(30) AS ({name}(m)) STORED)")
    tables["d.t"].insert((pack_datetime((2024, 1, 1, 12, 30, 45, 0), 0), b"as in the log"))
    apply_ddl(tables, "ALTER TABLE t ENGINE=InnoDB", "d", DdlSession(server="9.7"))
    assert tables["d.t"].rows()[0][1] == "as in the log"
    apply_ddl(tables, "ALTER TABLE t MODIFY m datetime(1)", "d", DdlSession(server="9.7"))
    with pytest.raises(ReplicationError, match=name.upper()):
        tables["d.t"].rows()


def test_defaults_of_new_columns_that_other_columns_decide() -> None:
    """Seen on 9.7.4 and MariaDB 10.11.18."""
    sql = (
        "ALTER TABLE t ADD e int DEFAULT (a + 1) FIRST, ADD f varchar(9) DEFAULT (concat(b, a)), "
        "ADD h int DEFAULT (e * 2)"
    )
    tables = run(sql)
    assert tables["d.t"].rows()[0] == (11, 1, 10, "x", "x10", 22)
    assert tables["d.t"].rows()[2] == (31, 3, 30, None, None, 62)


def test_a_default_that_other_columns_decide_where_it_does_not_fit() -> None:
    """Without strict mode the server stores the nearest value, and zero for NULL in NOT NULL. Seen
    on 9.7.4 and MariaDB 10.11.18."""
    schema = (
        "CREATE TABLE d.t (a int, d date); INSERT INTO d.t VALUES (1, '2024-02-28'), (500, NULL), "
        "(NULL, NULL)"
    )
    sql = """ALTER TABLE t ADD b tinyint DEFAULT (a + 1), ADD c char(2) NOT NULL DEFAULT (a * 1000),
        ADD e date NOT NULL DEFAULT (DATE_ADD(d, INTERVAL 1 DAY)),
        ADD f int NOT NULL DEFAULT (a + 1)"""
    tables = run(sql, schema=schema)
    assert [row[2:] for row in tables["d.t"].rows()] == [
        (2, "10", date(2024, 2, 29), 2),
        (127, "50", "0000-00-00", 501),
        (None, "", "0000-00-00", 0),
    ]
