"""DDL that is not understood: an error that names the statement, and no table has changed."""

from __future__ import annotations

import pytest

import applier
from applier.errors import BinlagError, ReplicationError
from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.execution import apply_ddl
from applier.tables.expressions.row_expressions import Session
from applier.tables.sql.set_statement import check_variables
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from applier.tables.sql.sql_text import Lexis, Parser
from applier.tables.sql.statement_kind import (
    executed_statement,
    set_statement_names,
    statement_kind,
)

SCHEMA = (
    "CREATE TABLE d.t (id int NOT NULL, a int, PRIMARY KEY (id), KEY k (a)); "
    "INSERT INTO d.t VALUES (1, 10), (2, 20);"
)


@pytest.mark.parametrize("server", ["5.7", "9.7", "mariadb"])
@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD c int what",
        "ALTER TABLE t ADD c int ADD e int",
        "ALTER TABLE t ADD c int, what",
        "ALTER TABLE t WHAT 5",
        "ALTER TABLE t DROP a what",
        "ALTER TABLE t ADD KEY x (a) what",
        "ALTER WHAT TABLE t ADD c int",
        "CREATE WHAT t",
        "CREATE WHAT TABLE u (a int)",
        "CREATE TABLE u (a int) WHAT 5",
        "CREATE TABLE u (a int what)",
        "CREATE TABLE u (a int, KEY (a) what)",
        "CREATE TABLE u (a int, CONSTRAINT x what)",
        "CREATE TABLE u (a int REFERENCES t (a) ON WHAT CASCADE)",
        "CREATE TABLE u LIKE t what",
        "CREATE DATABASE e WHAT 5",
        "CREATE INDEX i ON t (a) what",
        "DROP TABLE t what",
        "DROP DATABASE d what",
        "TRUNCATE TABLE t what",
        "RENAME TABLE t TO u what",
        "CREATE TABLE u (a int WITHOUT overlaps)",
        "CREATE TABLE u (a float(x))",
    ],
)
def test_what_is_not_understood_changes_nothing(sql: str, server: str) -> None:
    tables = applier.load_schema(SCHEMA)
    before = [(table.definition, table.rows()) for table in tables]
    with pytest.raises(BinlagError) as caught:
        apply_ddl(tables, sql, "d", DdlSession(server=server))
    assert "near" in str(caught.value)
    assert [(table.definition, table.rows()) for table in tables] == before


@pytest.mark.parametrize(("database", "number"), [("information_schema", 1235), ("nothing", 1146)])
def test_tables_that_the_server_makes_up_are_not_known(database: str, number: int) -> None:
    with pytest.raises(ReplicationError) as caught:
        apply_ddl(
            applier.load_schema(SCHEMA),
            f"CREATE TABLE x LIKE {database}.CHARACTER_SETS",
            "d",
            DdlSession(),
        )
    assert caught.value.number == number


def test_a_masking_policy_changes_no_row() -> None:
    tables = applier.load_schema(SCHEMA)
    before = tables["d.t"].definition
    for sql in (
        "MODIFY a int MASKING POLICY p",
        "ALTER a DROP MASKING POLICY",
        "ALTER COLUMN a SET MASKING POLICY p",
    ):
        apply_ddl(tables, f"ALTER TABLE t {sql}", "d", DdlSession(server="9.7"))
    assert tables["d.t"].definition == before
    assert tables["d.t"].rows() == [(1, 10), (2, 20)]


@pytest.mark.parametrize(("server", "number"), [("mariadb", 4092), ("5.7", 1051)])
def test_drop_view_that_failed_for_one_view_drops_the_others(server: str, number: int) -> None:
    tables = applier.load_schema(SCHEMA)
    tables.views |= {("d", "v"), ("d", "w")}
    with pytest.raises(ReplicationError) as caught:
        apply_ddl(tables, "DROP VIEW v, gone", "d", DdlSession(server=server, error_code=number))
    assert caught.value.number == number
    assert tables.views == {("d", "w")}
    apply_ddl(tables, "DROP VIEW w, from_before_the_log", "d", DdlSession(server=server))
    assert not tables.views


def test_a_literal_of_a_generated_column_that_5_7_reads_anew() -> None:
    tables = applier.load_schema(SCHEMA)
    session = DdlSession(server="5.7")
    session.expressions.old = True
    apply_ddl(tables, "CREATE TABLE u (`ä` int, c varchar(9) AS (CONCAT('a', `ä`)))", "d", session)
    with pytest.raises(ReplicationError, match="`c` has a literal that is not ASCII") as caught:
        apply_ddl(tables, "ALTER TABLE u MODIFY c varchar(9) AS ('ä')", "d", session)
    assert caught.value.number == 1235
    apply_ddl(tables, "CREATE TABLE v (c varchar(9) AS ('ä'))", "d", DdlSession(server="9.7"))


@pytest.mark.parametrize(
    ("server", "mode", "refused"),
    [
        ("mariadb", 0, True),
        ("mariadb", SqlModeFlag.NO_ENGINE_SUBSTITUTION, False),
        ("9.7", 0, False),
        ("5.7", 0, False),
    ],
)
@pytest.mark.parametrize(
    "sql", ["CREATE TABLE u (a int) ENGINE='Blackhole'", "ALTER TABLE t ENGINE=BLACKHOLE"]
)
def test_an_engine_that_another_one_may_take_the_place_of(
    sql: str, server: str, mode: int, refused: bool
) -> None:
    tables = applier.load_schema(SCHEMA)
    session = DdlSession(server=server)
    session.expressions.sql_mode = SqlModeFlag(mode)
    if not refused:
        apply_ddl(tables, sql, "d", session)
        return
    with pytest.raises(ReplicationError, match="NO_ENGINE_SUBSTITUTION") as caught:
        apply_ddl(tables, sql, "d", session)
    assert caught.value.number == 1235


def test_a_period_goes_by_its_name() -> None:
    tables = applier.load_schema("CREATE TABLE d.t (s date, e date)")
    session = DdlSession(server="mariadb")
    apply_ddl(tables, "ALTER TABLE t ADD PERIOD FOR p (s, e)", "d", session)
    apply_ddl(tables, "ALTER TABLE t DROP PERIOD IF EXISTS FOR q", "d", session)
    apply_ddl(tables, "ALTER TABLE t DROP SYSTEM VERSIONING", "d", session)
    apply_ddl(tables, "ALTER TABLE t ADD g INT, WITH SYSTEM VERSIONING", "d", session)
    assert tables["d.t"].definition.system_versioned
    apply_ddl(tables, "ALTER TABLE t ADD PERIOD IF NOT EXISTS FOR p (e, s)", "d", session)
    assert tables["d.t"].definition.period == ("p", "s", "e")
    apply_ddl(tables, "ALTER TABLE t DROP PERIOD FOR p", "d", session)
    assert tables["d.t"].definition.period is None


def test_clauses_behind_validation_are_read() -> None:
    tables = applier.load_schema(SCHEMA)
    apply_ddl(
        tables,
        "ALTER TABLE t WITHOUT VALIDATION, ADD c int DEFAULT 5",
        "d",
        DdlSession(server="5.7"),
    )
    assert tables["d.t"].rows() == [(1, 10, 5), (2, 20, 5)]


@pytest.mark.parametrize(
    ("sql", "inner", "names"),
    [
        ("SET STATEMENT a=1 FOR CREATE TABLE t (a INT)", "CREATE TABLE t (a INT)", ["a"]),
        (
            "set statement A=concat('FOR', 1), b = 'x' for ALTER TABLE t ADD b INT",
            "ALTER TABLE t ADD b INT",
            ["a", "b"],
        ),
        ("SET STATEMENT a=1 FOR SET STATEMENT b=2 FOR DROP TABLE t", "DROP TABLE t", ["a", "b"]),
        ("/* x */ SET STATEMENT a=(1 + 2) FOR DROP TABLE t", "DROP TABLE t", ["a"]),
        ("SET a = 'SET STATEMENT x=1 FOR y'", "SET a = 'SET STATEMENT x=1 FOR y'", []),
        ("DROP TABLE t", "DROP TABLE t", []),
        ("SET STATEMENT a=1 FOR ANALYZE DELETE FROM t", "DELETE FROM t", ["a"]),
        ("/* x */ analyze format = json UPDATE t SET a = 1", "UPDATE t SET a = 1", []),
        ("ANALYZE TABLE t", "ANALYZE TABLE t", []),
    ],
)
def test_set_statement(sql: str, inner: str, names: list[str]) -> None:
    assert executed_statement(sql) == inner
    assert set_statement_names(sql) == names
    assert statement_kind(sql) == inner.partition(" ")[0]


def test_variables_of_set_statement_that_are_not_known() -> None:
    check_variables(
        "SET STATEMENT lock_wait_timeout=1, sql_mode='', optimizer_switch='', join_buffer_size=5 "
        "FOR DROP TABLE t"
    )
    with pytest.raises(BinlagError, match="group_concat_max_len"):
        check_variables(
            "SET STATEMENT sql_mode='', group_concat_max_len=4 FOR INSERT INTO t SELECT "
            "GROUP_CONCAT(a) FROM u"
        )


def test_expressions_are_spelled_as_a_session_without_modes_reads_them() -> None:
    lexis = Lexis(ansi_quotes=True, no_backslash_escapes=True)
    parser = Parser("""("a" + 'x\\' || 'it''s')""", lexis)
    assert parser.expression_in_parentheses() == """`a` + 'x\\\\' || 'it''s'"""
    with pytest.raises(BinlagError, match="CONCAT"):
        Parser("(a || b)", Lexis(pipes_as_concat=True)).expression_in_parentheses()


def test_create_or_replace_that_failed_on_the_source() -> None:
    tables = applier.load_schema(SCHEMA)
    with pytest.raises(ReplicationError) as caught:
        apply_ddl(
            tables, "CREATE OR REPLACE TABLE t", "d", DdlSession(server="mariadb", error_code=1113)
        )
    assert caught.value.number == 1113
    assert "d.t" not in tables


@pytest.mark.parametrize(
    ("client", "sql", "name"),
    [
        ("utf8mb4", "CREATE TABLE x\U0001f42cy (a INT)", "x?y"),
        ("utf8mb4", "CREATE TABLE `x\U0001f42cy` (a INT)", "x?y"),
        ("utf8mb4", "CREATE TABLE x\u2014y (a INT)", "x\u2014y"),
        ("utf8mb4", "CREATE TABLE 1\u2014y (a INT)", "1\u2014y"),
        ("utf8mb4", "CREATE TABLE x\u3000y (a INT)", "x\u3000y"),
        ("utf8mb4", "CREATE TABLE x\x85y (a INT)", "x\x85y"),
        ("gbk", "CREATE TABLE x\xd7y (a INT)", "x\xd7y"),
        ("utf8mb4", "CREATE TABLE x\xa0(a INT)", "x\xa0"),
        ("latin1", "CREATE TABLE\xa0x\xa0(a INT)", "x"),
        ("cp852", "CREATE\xa0TABLE x (a INT)", "x"),
        ("latin1", "CREATE TABLE `x\xa0y` (a INT)", "x\xa0y"),
    ],
)
def test_names_beyond_ascii(client: str, sql: str, name: str) -> None:
    """Seen on 5.7.29, 9.7.4 and MariaDB 10.11.18, which refuses what utf8mb3 does not have."""
    tables = applier.load_schema("CREATE DATABASE d")
    apply_ddl(tables, sql, "d", DdlSession(expressions=Session(client=client)))
    assert [table.definition.full_name for table in tables] == [f"d.{name}"]


def test_a_column_name_that_the_server_does_not_keep() -> None:
    tables = applier.load_schema("CREATE TABLE d.t (`a\U0001f42c` int)")
    assert [column.name for column in tables["d.t"].definition.columns] == ["a?"]


def test_mariadb_looks_for_the_old_name_first() -> None:
    """RENAME of a table that is not there to one that is: 1050 of 5.6, 5.7 and 9.7."""
    with pytest.raises(BinlagError) as caught:
        apply_ddl(
            applier.load_schema(SCHEMA), "RENAME TABLE gone TO t", "d", DdlSession(server="mariadb")
        )
    assert getattr(caught.value, "number", None) == 1146
