"""CHECK constraints: which a table has after each DDL, and that IGNORE, which leaves out what they
refuse, is refused.

INSERT IGNORE and UPDATE IGNORE left such rows out on 9.7.4 and MariaDB 10.11.18, and mixed format
logged the statements.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import applier
from applier.errors import ReplicationError
from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.execution import apply_ddl
from applier.tables.dml.load_file import load_data
from applier.tables.dml.row_writer import StatementSession
from applier.tables.dml.statements import execute_statement


def checks(body: str, *clauses: str, server: str = "9.7") -> list[str]:
    tables = applier.load_schema(f"CREATE TABLE d.t ({body});", server=server)
    for clause in clauses:
        apply_ddl(tables, f"ALTER TABLE t {clause}", "d", DdlSession(server=server))
    return [check.expression for check in tables["d.t"].definition.checks]


@pytest.mark.parametrize(
    ("body", "clauses", "left"),
    [
        ("a int CHECK (a > 0), CHECK (a < 9)", (), ["a > 0", "a < 9"]),
        ("a int CONSTRAINT low CHECK (a > 0) NOT NULL", ("DROP CHECK low",), []),
        ("a int, CONSTRAINT low CHECK (a > 0) ENFORCED, CHECK (a < 9)", ("DROP CONSTRAINT LOW",),
         ["a < 9"]),
        ("a int CHECK (a > 0)", ("DROP CHECK t_chk_1",), []),
        # which one is not known
        ("a int CHECK (a > 0), CHECK (a < 9)", ("DROP CHECK t_chk_1",), ["a > 0", "a < 9"]),
        ("a int, b int CHECK (b > 0), CHECK (a < 9)", ("DROP b",), ["a < 9"]),
        ("a int", ("ADD CONSTRAINT low CHECK (a > 0)", "ADD b int CHECK (b > 1)"),
         ["a > 0", "b > 1"]),
        ("a int CHECK (a > 0)", ("MODIFY a bigint",), ["a > 0"]),
        ("a int CHECK (a > 0), CONSTRAINT u UNIQUE (a)", ("DROP CONSTRAINT u",), ["a > 0"]),
    ],
)  # fmt: skip
def test_checks_follow_the_ddl_of_mysql(
    body: str, clauses: tuple[str, ...], left: list[str]
) -> None:
    assert checks(body, *clauses) == left


@pytest.mark.parametrize(
    ("clauses", "left"),
    [
        (("MODIFY a bigint",), ["a + b > 0"]),
        (("CHANGE a z bigint CHECK (z > 1)",), ["`z` + b > 0", "z > 1"]),
        (("RENAME COLUMN a TO z", "MODIFY z bigint"), ["`z` + b > 0"]),
        (("DROP CONSTRAINT CONSTRAINT_1",), ["a > 0"]),
        (("DROP CONSTRAINT IF EXISTS CONSTRAINT_2",), ["a > 0", "a + b > 0"]),
    ],
)
def test_a_check_behind_a_column_of_mariadb_goes_when_the_column_is_defined_anew(
    clauses: tuple[str, ...], left: list[str]
) -> None:
    assert (
        checks("a int CHECK (a > 0), b int, CHECK (a + b > 0)", *clauses, server="mariadb") == left
    )


def test_mariadb_checks_json() -> None:
    """As SHOW CREATE TABLE of 10.11.18 shows it."""
    assert checks("a JSON, b JSON CHECK (b <> ''), c longtext", server="mariadb") == [
        "json_valid(`a`)",
        "b <> ''",
    ]
    assert checks("a JSON", "MODIFY a longtext", "ADD b JSON", server="mariadb") == [
        "json_valid(`b`)"
    ]
    assert checks("a JSON") == []


def test_5_7_reads_checks_over() -> None:
    assert checks("a int CHECK (a > 0), CHECK (a < 9)", server="5.7") == []


def _execute(sql: str) -> Callable[[applier.Tables], object]:
    return lambda tables: execute_statement(tables, sql, "d", StatementSession())


IGNORING = [
    _execute("INSERT IGNORE INTO t VALUES (1), (-1)"),
    _execute("INSERT IGNORE INTO t SET a = -1"),
    _execute("INSERT IGNORE INTO t SELECT 1"),
    _execute("UPDATE IGNORE t SET a = a - 1"),
    lambda tables: load_data(
        tables, "LOAD DATA LOCAL INFILE 'f' INTO TABLE t", "d", b"1\n", StatementSession()
    ),
]


@pytest.mark.parametrize("statement", IGNORING)
def test_ignore_is_refused_where_a_check_may_leave_rows_out(
    statement: Callable[[applier.Tables], object],
) -> None:
    tables = applier.load_schema(
        "CREATE TABLE d.t (a int CHECK (a > 0)); INSERT INTO d.t VALUES (5);"
    )
    with pytest.raises(
        ReplicationError, match="IGNORE on a table with a CHECK constraint"
    ) as caught:
        statement(tables)
    assert caught.value.number == 1235
    apply_ddl(tables, "ALTER TABLE t DROP CHECK t_chk_1", "d", DdlSession())
    statement(tables)
    assert len(tables["d.t"].rows()) > 0


@pytest.mark.parametrize(
    ("body", "clauses", "left"),
    [
        ("a int CHECK (a > 0) NOT ENFORCED, CHECK (a < 9) NOT ENFORCED", (), []),
        ("a int CHECK (a > 0) ENFORCED, CONSTRAINT low CHECK (a < 9) NOT ENFORCED", (), ["a > 0"]),
        ("a int, CONSTRAINT low CHECK (a < 9)", ("ALTER CHECK low NOT ENFORCED",), []),
        ("a int, CONSTRAINT low CHECK (a < 9) NOT ENFORCED", ("ALTER CONSTRAINT LOW ENFORCED",),
         ["a < 9"]),
        ("a int, CHECK (a < 9)", ("ALTER CHECK t_chk_1 NOT ENFORCED",), []),
        # which one is not known
        ("a int, CHECK (a < 9), CHECK (a > 0)", ("ALTER CHECK t_chk_1 NOT ENFORCED",),
         ["a < 9", "a > 0"]),
        ("a int CHECK (a > 0) NOT ENFORCED, CHECK (a < 9) NOT ENFORCED",
         ("ALTER CHECK t_chk_1 ENFORCED",), ["a > 0", "a < 9"]),
        ("a int, CONSTRAINT low CHECK (a < 9) NOT ENFORCED", ("ADD b int", "RENAME COLUMN a TO z"),
         []),
    ],
)  # fmt: skip
def test_which_constraints_are_enforced(
    body: str, clauses: tuple[str, ...], left: list[str]
) -> None:
    tables = applier.load_schema(f"CREATE TABLE d.t ({body});", server="9.7")
    for clause in clauses:
        apply_ddl(tables, f"ALTER TABLE t {clause}", "d", DdlSession(server="9.7"))
    assert [check.expression for check in tables["d.t"].definition.checks if check.enforced] == left


def test_statements_without_ignore_are_carried_out() -> None:
    tables = applier.load_schema(
        "CREATE TABLE d.t (a int CHECK (a > 0)); INSERT INTO d.t VALUES (5);"
    )
    execute_statement(tables, "INSERT INTO t VALUES (7)", "d", StatementSession())
    execute_statement(tables, "UPDATE t SET a = a + 1", "d", StatementSession())
    assert tables["d.t"].rows() == [(6,), (8,)]
