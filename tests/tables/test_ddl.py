"""The log's DDL on tables with rows: every operation, the server's error numbers, and what is
passed over with a word."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import applier
from applier.errors import ReplicationError
from applier.tables.auto_numbers import NumberSteps
from applier.tables.catalog import Tables
from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.execution import apply_ddl
from applier.tables.expressions.operands import Session

SCHEMA = """CREATE TABLE d.t (id int NOT NULL, a int DEFAULT 5,
    b varchar(10) CHARSET utf8mb4 DEFAULT 'q', PRIMARY KEY (id), KEY k (a));
INSERT INTO d.t VALUES (1, 10, 'x'), (2, NULL, 'é'), (3, 30, NULL);"""


def run(*statements: str, schema: str = SCHEMA, server: str = "9.7") -> Tables:
    tables = applier.load_schema(schema, server=server)
    for sql in statements:
        apply_ddl(tables, sql, "d", DdlSession(server=server))
    return tables


def rows(*statements: str, table: str = "d.t", **options: Any) -> list[tuple[Any, ...]]:
    return run(*statements, **options)[table].rows()


def number(*statements: str, **options: Any) -> int:
    with pytest.raises(ReplicationError) as caught:
        run(*statements, **options)
    return caught.value.number


# columns


@pytest.mark.parametrize(
    ("clause", "found"),
    [
        ("ADD c int", [(1, 10, "x", None), (2, None, "é", None), (3, 30, None, None)]),
        ("ADD COLUMN c int NOT NULL", [(1, 10, "x", 0), (2, None, "é", 0), (3, 30, None, 0)]),
        ("ADD c varchar(3) DEFAULT 'z' FIRST",
         [("z", 1, 10, "x"), ("z", 2, None, "é"), ("z", 3, 30, None)]),
        ("ADD c int DEFAULT 1 AFTER id", [(1, 1, 10, "x"), (2, 1, None, "é"), (3, 1, 30, None)]),
        ("ADD (c int DEFAULT 1, e int DEFAULT 2)",
         [(1, 10, "x", 1, 2), (2, None, "é", 1, 2), (3, 30, None, 1, 2)]),
        ("ADD g int GENERATED ALWAYS AS (id * 2) STORED",
         [(1, 10, "x", 2), (2, None, "é", 4), (3, 30, None, 6)]),
        ("ADD g int AS (a + 1)", [(1, 10, "x", 11), (2, None, "é", None), (3, 30, None, 31)]),
        ("DROP a", [(1, "x"), (2, "é"), (3, None)]),
        ("DROP COLUMN a, DROP COLUMN b", [(1,), (2,), (3,)]),
        ("DROP a, ADD a int DEFAULT 7", [(1, "x", 7), (2, "é", 7), (3, None, 7)]),
        ("MODIFY a bigint unsigned", [(1, 10, "x"), (2, None, "é"), (3, 30, None)]),
        ("MODIFY a int NOT NULL", [(1, 10, "x"), (2, 0, "é"), (3, 30, None)]),
        ("MODIFY a varchar(5)", [(1, "10", "x"), (2, None, "é"), (3, "30", None)]),
        ("MODIFY a decimal(5,2) AFTER b",
         [(1, "x", Decimal("10.00")), (2, "é", None), (3, None, Decimal("30.00"))]),
        ("MODIFY b varchar(10) CHARSET latin1 FIRST",
         [("x", 1, 10), ("é", 2, None), (None, 3, 30)]),
        ("CHANGE a z smallint", [(1, 10, "x"), (2, None, "é"), (3, 30, None)]),
        ("CHANGE a z int FIRST, CHANGE b y varchar(10)",
         [(10, 1, "x"), (None, 2, "é"), (30, 3, None)]),
        ("RENAME COLUMN a TO z", [(1, 10, "x"), (2, None, "é"), (3, 30, None)]),
        ("CONVERT TO CHARACTER SET latin1", [(1, 10, "x"), (2, None, "é"), (3, 30, None)]),
        ("ENGINE=MyISAM", [(1, 10, "x"), (2, None, "é"), (3, 30, None)]),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (id DESC)",
         [(3, 30, None), (2, None, "é"), (1, 10, "x")]),
        ("DROP PRIMARY KEY, ORDER BY id DESC", [(3, 30, None), (2, None, "é"), (1, 10, "x")]),
        ("", [(1, 10, "x"), (2, None, "é"), (3, 30, None)]),
        ("FORCE, ALGORITHM=INPLACE, LOCK=NONE", [(1, 10, "x"), (2, None, "é"), (3, 30, None)]),
        ("SECONDARY_LOAD", [(1, 10, "x"), (2, None, "é"), (3, 30, None)]),
        ("SECONDARY_UNLOAD PARTITION (p0, p1)", [(1, 10, "x"), (2, None, "é"), (3, 30, None)]),
        ("ADD COLUMN IF NOT EXISTS a int, DROP COLUMN IF EXISTS zz",
         [(1, 10, "x"), (2, None, "é"), (3, 30, None)]),
    ],
)  # fmt: skip
def test_alter_table_and_the_rows(clause: str, found: list[tuple[Any, ...]]) -> None:
    assert rows(f"ALTER TABLE t {clause}") == found


@pytest.mark.parametrize(
    ("algorithm", "increment", "offset", "start", "numbers"),
    [
        ("COPY", 5, 3, "", [3, 8, 13]),
        ("COPY", 5, 30, "", [4, 9, 14]),
        ("COPY", 5, 30, ", AUTO_INCREMENT = 42", [45, 50, 55]),
        ("INPLACE", 1, 1, ", AUTO_INCREMENT = 42", [42, 43, 44]),
        ("INPLACE", 5, 3, "", [8, 13, 18]),
        ("INPLACE", 5, 3, ", AUTO_INCREMENT = 42", [43, 48, 53]),
        ("INPLACE", 5, 5, "", [15, 20, 25]),
        ("INPLACE", 5, 30, ", AUTO_INCREMENT = 3", [5, 10, 15]),
    ],
)
def test_numbers_of_a_new_column(
    algorithm: str, increment: int, offset: int, start: str, numbers: list[int]
) -> None:
    """Seen on 5.7.29, 9.7.4 and MariaDB 10.11.18."""
    tables = applier.load_schema(SCHEMA)
    session = DdlSession(expressions=Session(numbers=NumberSteps(increment, offset)))
    apply_ddl(
        tables,
        f"ALTER TABLE t DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY{start}, "
        f"ALGORITHM={algorithm}",
        "d",
        session,
    )
    assert [row[-1] for row in tables["d.t"].rows()] == numbers


def test_a_number_beyond_the_type_of_a_new_column_is_refused() -> None:
    """MariaDB 10.11.18 stores -128 in place of 128 where the table is not copied."""
    tables = applier.load_schema(SCHEMA)
    session = DdlSession(server="mariadb", expressions=Session(mariadb=True))
    with pytest.raises(ReplicationError, match="number 128 in column n of type tinyint") as caught:
        apply_ddl(
            tables,
            "ALTER TABLE t DROP PRIMARY KEY, ADD n TINYINT AUTO_INCREMENT PRIMARY KEY, "
            "AUTO_INCREMENT=127",
            "d",
            session,
        )
    assert caught.value.number == 1235


def test_a_tablespace_comes_as_a_file() -> None:
    with pytest.raises(
        ReplicationError, match="its rows are in files that the log does not have"
    ) as caught:
        run("ALTER TABLE t DISCARD TABLESPACE", "ALTER TABLE t IMPORT TABLESPACE")
    assert caught.value.number == 1235


def test_a_discarded_tablespace_takes_the_rows_away() -> None:
    """As on 5.7.29, 9.7.4 and MariaDB 10.11.18: ALTER TABLE and RENAME leave it so, MariaDB's
    TRUNCATE does not."""
    tables = run(
        "ALTER TABLE t DISCARD TABLESPACE", "ALTER TABLE t ADD KEY (a)", "RENAME TABLE t TO u"
    )
    assert tables["d.u"].why_unreadable == "Tablespace has been discarded for table 'u' (1814)"
    apply_ddl(tables, "TRUNCATE TABLE u", "d", DdlSession())
    assert (tables["d.u"].is_readable, tables["d.u"].rows()) == (True, [])
    apply_ddl(tables, "DROP TABLE u", "d", DdlSession())
    assert "d.u" not in tables


def test_the_dump_of_a_table_that_cannot_be_read_has_its_columns_alone(tmp_path: Path) -> None:
    run("ALTER TABLE t DISCARD TABLESPACE").dump(tmp_path)
    [header] = (tmp_path / "d.t.tsv").read_text().splitlines()
    assert header.startswith("id:")


def test_names_after_a_change() -> None:
    definition = run(
        "ALTER TABLE t CHANGE a z int, RENAME INDEX k TO kk, ALTER b DROP DEFAULT",
        "ALTER TABLE t ALTER z SET DEFAULT 9",
        "ALTER TABLE t ALTER z SET INVISIBLE",
    )["d.t"].definition
    assert [(column.name, column.default, column.invisible) for column in definition.columns] == [
        ("id", None, False), ("z", "9", True), ("b", None, False),
    ]  # fmt: skip
    assert [(key.name, key.columns) for key in definition.keys] == [("PRIMARY", (0,)), ("kk", (1,))]


def test_a_column_takes_its_keys_along() -> None:
    definition = run("ALTER TABLE t ADD KEY two (a, b)", "ALTER TABLE t DROP COLUMN a")[
        "d.t"
    ].definition
    assert [(key.name, key.columns) for key in definition.keys] == [
        ("PRIMARY", (0,)),
        ("two", (1,)),
    ]


@pytest.mark.parametrize(
    ("statement", "keys"),
    [
        ("ALTER TABLE t ADD UNIQUE (b)", ["PRIMARY", "b", "k"]),
        ("ALTER TABLE t ADD UNIQUE KEY u (b(3) DESC), DROP KEY k", ["PRIMARY", "u"]),
        ("ALTER TABLE t ADD INDEX ((a + 1))", ["PRIMARY", "k", "functional_index"]),
        ("ALTER TABLE t DROP PRIMARY KEY", ["k"]),
        ("ALTER TABLE t ADD CONSTRAINT c UNIQUE (a, id)", ["PRIMARY", "c", "k"]),
        ("ALTER TABLE t ADD CONSTRAINT c FOREIGN KEY (b) REFERENCES p (x)", ["PRIMARY", "k", "c"]),
        ("CREATE INDEX i ON t (b(2))", ["PRIMARY", "k", "i"]),
        ("CREATE UNIQUE INDEX `i i` USING BTREE ON d.t (a)", ["PRIMARY", "i i", "k"]),
        ("CREATE FULLTEXT INDEX i ON t (b)", ["PRIMARY", "k", "i"]),
        ("DROP INDEX k ON t", ["PRIMARY"]),
        ("DROP INDEX `PRIMARY` ON t", ["k"]),
        ("ALTER TABLE t ADD KEY (a), ADD KEY (a)", ["PRIMARY", "k", "a", "a_2"]),
    ],
)
def test_indexes(statement: str, keys: list[str]) -> None:
    assert [key.name for key in run(statement)["d.t"].definition.sorted_keys] == keys


def test_index_visibility() -> None:
    visible = [
        run(f"ALTER TABLE t ALTER INDEX k {word}")["d.t"].definition.keys[1].visible
        for word in ("INVISIBLE", "VISIBLE")
    ]
    assert visible == [False, True]


def test_a_new_unique_key_over_equal_rows() -> None:
    schema = (
        "CREATE TABLE d.t (a int, b int); INSERT INTO d.t VALUES (1, 1), (2, 1), (3, NULL), (4, "
        "NULL);"
    )
    assert number("ALTER TABLE t ADD UNIQUE (b)", schema=schema) == 1062
    assert len(rows("ALTER TABLE t ADD UNIQUE (a)", schema=schema)) == 4
    tables = applier.load_schema(schema)
    with pytest.raises(ReplicationError):
        apply_ddl(tables, "ALTER TABLE t ADD UNIQUE (b)", "d", DdlSession())
    assert [key.name for key in tables["d.t"].definition.keys] == []


def test_values_that_do_not_fit_a_new_type_are_clamped() -> None:
    schema = (
        "CREATE TABLE d.t (a int, b varchar(10)); INSERT INTO d.t VALUES (300, 'abcdef'), (-5, "
        "'7x');"
    )
    assert rows("ALTER TABLE t MODIFY a tinyint unsigned, MODIFY b varchar(3)", schema=schema) == [
        (255, "abc"),
        (0, "7x"),
    ]


# tables and databases


def test_create_like_and_select() -> None:
    tables = run(
        "CREATE TABLE l LIKE t",
        "CREATE TABLE s AS SELECT id, b FROM t",
        "CREATE TABLE s2 (id int NOT NULL, z int DEFAULT 4) SELECT * FROM t",
        "CREATE TABLE x.l2 (LIKE d.t)",
    )
    assert (len(tables["d.l"]), [key.name for key in tables["d.l"].definition.keys]) == (
        0,
        ["PRIMARY", "k"],
    )
    assert tables["d.s"].rows() == [(1, "x"), (2, "é"), (3, None)]
    assert [column.name for column in tables["d.s2"].definition.columns] == ["z", "id", "a", "b"]
    assert tables["d.s2"].rows()[0] == (4, 1, 10, "x")
    assert tables["d.s"].definition.keys == ()
    assert "x.l2" in tables


@pytest.mark.parametrize(
    ("select", "found"),
    [
        ("SELECT id, a FROM t WHERE a >= 10", [(1, 10), (3, 30)]),
        ("SELECT n.b AS c FROM d.t n WHERE n.a IS NULL", [("é",)]),
        ("SELECT t.id FROM t ORDER BY id DESC LIMIT 2", [(3,), (2,)]),
        ("SELECT * FROM t AS n WHERE 1 = 0", []),
    ],
)
def test_create_from_some_rows_of_a_table(select: str, found: list[tuple[Any, ...]]) -> None:
    assert rows(f"CREATE TABLE s {select}", table="d.s") == found


def test_rename_swap_drop_truncate() -> None:
    tables = run("CREATE TABLE u (z int)", "RENAME TABLE t TO tmp, u TO t, tmp TO u")
    assert (len(tables["d.u"]), len(tables["d.t"])) == (3, 0)
    tables = run("RENAME TABLE t TO other.t2", "ALTER TABLE other.t2 RENAME TO d.back")
    assert [table.definition.full_name for table in tables] == ["d.back"]
    assert rows("TRUNCATE t") == rows("TRUNCATE TABLE d.t") == []
    assert len(run("DROP TABLE t")) == 0
    assert len(run("CREATE TABLE u (a int)", "DROP TABLE IF EXISTS t, nope, d.u CASCADE")) == 0


def test_truncate_starts_the_counter_anew() -> None:
    schema = "CREATE TABLE d.t (id int AUTO_INCREMENT PRIMARY KEY); INSERT INTO d.t VALUES (7);"
    assert run(schema=schema)["d.t"].auto_increment == 8
    assert run("TRUNCATE t", schema=schema)["d.t"].auto_increment == 1
    assert run("ALTER TABLE t AUTO_INCREMENT = 100", schema=schema)["d.t"].auto_increment == 100
    assert (
        run("CREATE TABLE u (id int AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT=50", schema=schema)[
            "d.u"
        ].auto_increment
        == 50
    )


def test_a_column_that_becomes_auto_increment_numbers_the_rows_in_scan_order() -> None:
    schema = "CREATE TABLE d.t (a int, b int); INSERT INTO d.t VALUES (7, 0), (5, 3), (7, 0);"
    added = run("ALTER TABLE t ADD COLUMN id INT AUTO_INCREMENT PRIMARY KEY FIRST", schema=schema)[
        "d.t"
    ]
    assert (added.rows(), added.auto_increment) == ([(1, 7, 0), (2, 5, 3), (3, 7, 0)], 4)
    begun = run(
        "ALTER TABLE t ADD COLUMN id INT AUTO_INCREMENT PRIMARY KEY, AUTO_INCREMENT = 10",
        schema=schema,
    )["d.t"]
    assert begun.rows() == [(7, 0, 10), (5, 3, 11), (7, 0, 12)]
    changed = run("ALTER TABLE t MODIFY b INT AUTO_INCREMENT PRIMARY KEY", schema=schema)["d.t"]
    assert changed.rows() == [(7, 1), (5, 3), (7, 4)]


def test_a_zero_of_an_auto_increment_column_stays_a_zero_when_the_table_is_altered() -> None:
    schema = (
        "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';"
        "CREATE TABLE d.t (id int AUTO_INCREMENT PRIMARY KEY); INSERT INTO d.t VALUES (0), (4);"
    )
    assert run("ALTER TABLE t MODIFY id BIGINT AUTO_INCREMENT", schema=schema)["d.t"].rows() == [
        (0,),
        (4,),
    ]


def test_databases() -> None:
    tables = run(
        "CREATE DATABASE e CHARACTER SET latin1",
        "CREATE TABLE e.t (v varchar(3))",
        "ALTER DATABASE e COLLATE utf8mb4_bin",
        "CREATE TABLE e.u (v varchar(3))",
    )
    assert [tables[name].definition.columns[0].collation for name in ("e.t", "e.u")] == [
        "latin1_swedish_ci",
        "utf8mb4_bin",
    ]
    apply_ddl(tables, "DROP DATABASE e", "d", DdlSession())
    assert [table.definition.full_name for table in tables] == ["d.t"]
    apply_ddl(tables, "DROP SCHEMA IF EXISTS e", "d", DdlSession())
    apply_ddl(tables, "CREATE DATABASE IF NOT EXISTS d CHARACTER SET latin1", "d", DdlSession())
    assert tables.databases["d"].charset is None


def test_sequences_of_mariadb() -> None:
    tables = run(
        "CREATE SEQUENCE s START WITH 5 INCREMENT BY -2 MINVALUE -100 MAXVALUE 50 CACHE 10",
        "CREATE SEQUENCE plain",
        server="mariadb",
    )
    assert tables["d.s"].rows() == [(5, -100, 50, 5, -2, 10, 0, 0)]
    assert tables["d.plain"].rows() == [(1, 1, 9223372036854775806, 1, 1, 1000, 0, 0)]
    apply_ddl(tables, "DROP SEQUENCE s", "d", DdlSession())
    assert "d.s" not in tables


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("CREATE INDEX i ON t (a) WAIT 1", ["PRIMARY", "k", "i"]),
        (
            "CREATE INDEX i USING BTREE ON t (a) NOWAIT COMMENT 'WAIT' ALGORITHM=INPLACE",
            ["PRIMARY", "k", "i"],
        ),
        ("DROP INDEX k ON t WAIT 1", ["PRIMARY"]),
        ("DROP INDEX IF EXISTS k ON t NOWAIT LOCK=NONE", ["PRIMARY"]),
    ],
)
def test_mariadb_says_how_long_an_index_waits_for_its_table(sql: str, keys: list[str]) -> None:
    assert [key.name for key in run(sql, server="mariadb")["d.t"].definition.keys] == keys


def test_or_replace_of_mariadb() -> None:
    tables = run(
        "CREATE OR REPLACE TABLE t (z int)", "CREATE OR REPLACE DATABASE e", server="mariadb"
    )
    assert [column.name for column in tables["d.t"].definition.columns] == ["z"]


def test_temporary_tables() -> None:
    tables = run("CREATE TEMPORARY TABLE tmp (a int)")
    temporary = tables.temporary("d", "tmp")
    assert temporary is not None
    assert temporary.definition.temporary
    assert [table.definition.name for table in tables] == ["t"]
    assert (
        run("CREATE TEMPORARY TABLE tmp (a int)", "DROP TEMPORARY TABLE IF EXISTS tmp").temporary(
            "d", "tmp"
        )
        is None
    )


# what is refused


MERGE = """CREATE TABLE d.one (id int) ENGINE=MyISAM;
CREATE TABLE d.all_of_them (id int) ENGINE=MERGE UNION=(d.one) INSERT_METHOD=LAST;
CREATE TABLE d.none (id int) ENGINE=MRG_MyISAM;"""


def test_a_merge_table_has_rows_that_are_not_its_own(tmp_path: Path) -> None:
    schema = MERGE + "INSERT INTO d.all_of_them VALUES (3), (4);"
    assert rows("ALTER TABLE all_of_them ENGINE=InnoDB", table="d.all_of_them", schema=schema) == [
        (3,),
        (4,),
    ]
    assert rows("TRUNCATE all_of_them", table="d.one", schema=schema) == []
    assert rows("ALTER TABLE none ENGINE=InnoDB", table="d.none", schema=schema) == []
    assert rows("DROP TABLE all_of_them", table="d.one", schema=schema) == [(3,), (4,)]
    run(schema=schema).dump(tmp_path)
    assert (tmp_path / "d.all_of_them.tsv").read_text() == (tmp_path / "d.one.tsv").read_text()


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE one",
        "ALTER TABLE one ADD b INT",
        "ALTER TABLE one ENGINE=InnoDB",
        "RENAME TABLE one TO two",
    ],
)
def test_a_merge_table_over_another_table_cannot_be_read(sql: str) -> None:
    tables = run(sql, schema=MERGE)
    assert not tables["d.all_of_them"].is_readable
    with pytest.raises(
        ReplicationError, match=r"Unable to open underlying table `d`\.`one`"
    ) as caught:
        tables["d.all_of_them"].rows()
    assert caught.value.number == 1168


@pytest.mark.parametrize(
    ("clauses", "left"),
    [
        (("ADD CONSTRAINT f2 FOREIGN KEY (a) REFERENCES t (id)",), "f2"),
        (("DROP FOREIGN KEY f1",), "f1"),
        (("DROP FOREIGN KEY f1", "ADD CONSTRAINT f2 FOREIGN KEY (a) REFERENCES t (id)"), "f2"),
        (("DROP FOREIGN KEY f1, ADD CONSTRAINT f2 FOREIGN KEY (a) REFERENCES t (id)",), "f2"),
        (("RENAME KEY f1 TO own", "ADD CONSTRAINT f2 FOREIGN KEY (a) REFERENCES t (id)"), "own"),
    ],
)
def test_the_key_made_for_a_foreign_key_gives_way_to_that_of_the_next(
    clauses: tuple[str, ...], left: str
) -> None:
    """As 5.6.24 (but for RENAME KEY), 5.7.29, 9.7.4 and MariaDB 10.11.18 show it; a key that was
    renamed is one like any other."""
    schema = (
        "CREATE TABLE d.t (id int PRIMARY KEY, a int, CONSTRAINT f1 FOREIGN KEY (a) "
        "REFERENCES d.t (id));"
    )
    altered = run(*(f"ALTER TABLE t {clause}" for clause in clauses), schema=schema)[
        "d.t"
    ].definition
    assert [key.name for key in altered.keys] == ["PRIMARY", left]
