"""Foreign keys follow the names of tables and columns, and cascades come to an end."""

from __future__ import annotations

import pytest

import applier
from applier.binlog.types.temporal import END_OF_TIME
from applier.errors import ReplicationError
from applier.tables.catalog import Tables
from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.execution import apply_ddl
from lookup.handler import CascadeTooDeep, NoReferencedRow, RowIsReferenced

FAMILY = """CREATE TABLE d.p (id INT PRIMARY KEY); CREATE TABLE d.c (a INT PRIMARY KEY, pid INT,
    FOREIGN KEY (pid) REFERENCES d.p (id) ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO d.p VALUES (1), (2); INSERT INTO d.c VALUES (10, 1), (20, 2);"""


def changed(
    *statements: str, schema: str = FAMILY, server: str = "9.7", checks: bool = True
) -> Tables:
    tables = applier.load_schema(schema)
    for sql in statements:
        apply_ddl(tables, sql, "d", DdlSession(server=server, foreign_key_checks=checks))
    return tables


@pytest.mark.parametrize(
    ("statements", "parent", "child"),
    [
        (("RENAME TABLE p TO q",), "d.q", "d.c"),
        (("RENAME TABLE p TO e.q, c TO e.k",), "e.q", "e.k"),
        (("ALTER TABLE p RENAME TO q, ADD z INT",), "d.q", "d.c"),
        (("RENAME TABLE p TO q", "CREATE TABLE p (x INT)"), "d.q", "d.c"),
        (("ALTER TABLE p RENAME COLUMN id TO i", "ALTER TABLE c CHANGE pid q INT"), "d.p", "d.c"),
        (
            ("CREATE TABLE o (id INT PRIMARY KEY)", "RENAME TABLE p TO x, o TO p, x TO o"),
            "d.o",
            "d.c",
        ),
    ],
)
def test_a_key_follows_its_tables_and_columns(
    statements: tuple[str, ...], parent: str, child: str
) -> None:
    tables = changed(*statements)
    row = tables[parent].stored_rows()[0]
    tables[parent].delete(row[0])
    assert [row[0] for row in tables[child].rows()] == [20]
    with pytest.raises(NoReferencedRow):
        tables[child].insert((30, 77))


@pytest.mark.parametrize(
    ("parent", "child", "collation", "refused"),
    [
        ("VARCHAR(9)", "VARCHAR(20)", "utf8mb4_0900_ai_ci", set()),
        ("CHAR(9)", "CHAR(20)", "utf8mb4_0900_ai_ci", set()),
        ("VARCHAR(9)", "CHAR(9)", "utf8mb4_general_ci", set()),
        ("CHAR(9)", "VARCHAR(9)", "utf8mb4_general_ci", {"update"}),
        ("CHAR(9)", "VARCHAR(9)", "utf8mb4_0900_ai_ci", {"update", "delete"}),
        ("VARCHAR(9)", "CHAR(9)", "utf8mb4_0900_ai_ci", {"update", "delete"}),
        ("VARBINARY(9)", "BINARY(2)", "utf8mb4_bin", {"update", "delete"}),
        ("BINARY(2)", "BINARY(3)", "utf8mb4_bin", {"update", "delete"}),
        ("BINARY(2)", "BINARY(2)", "utf8mb4_bin", set()),
        ("VARBINARY(2)", "VARBINARY(3)", "utf8mb4_bin", set()),
    ],
)
def test_between_lengths_only_what_the_end_does_not_decide(
    parent: str, child: str, collation: str, refused: set[str]
) -> None:
    schema = f"""CREATE TABLE d.p (g {parent} PRIMARY KEY) COLLATE {collation};
    CREATE TABLE d.c (g {child}, FOREIGN KEY (g) REFERENCES d.p (g) ON DELETE CASCADE
        ON UPDATE CASCADE) COLLATE {collation};
    INSERT INTO d.p VALUES ('a'), ('b'); INSERT INTO d.c VALUES ('a');"""
    for action, rows in (("update", [(b"n",)]), ("delete", [])):
        tables = applier.load_schema(schema)
        ref, _ = next(iter(tables["d.p"].scan()))
        try:
            tables["d.p"].update(ref, (b"n",)) if action == "update" else tables["d.p"].delete(ref)
        except ReplicationError as error:
            assert error.number == 1235
            assert action in refused
        else:
            assert action not in refused
            assert tables["d.c"].stored_rows() == rows


def test_a_parent_made_anew_is_the_parent_again() -> None:
    tables = changed("DROP TABLE p", checks=False)
    with pytest.raises(NoReferencedRow):
        tables["d.c"].insert((30, 1))
    apply_ddl(
        tables, "CREATE TABLE p (id INT PRIMARY KEY)", "d", DdlSession(foreign_key_checks=False)
    )
    tables["d.p"].insert((1,))
    tables["d.p"].delete(1)
    assert tables["d.c"].rows() == [(20, 2)]


def test_names_made_up_for_keys_follow_the_table() -> None:
    tables = changed("RENAME TABLE c TO k", "ALTER TABLE k DROP FOREIGN KEY k_ibfk_1")
    tables["d.k"].insert((30, 77))


def test_a_circle_of_cascades_ends() -> None:
    schema = (
        """CREATE TABLE d.s (pk INT PRIMARY KEY, fk INT, FOREIGN KEY (fk) REFERENCES d.s (pk) """
        """ON DELETE CASCADE);"""
    )
    tables = changed(schema=schema)
    tables.foreign_keys.enabled = False
    tables["d.s"].load([(2, 4), (3, 2), (4, 3), (5, 5)])
    tables.foreign_keys.enabled = True
    tables["d.s"].delete(2)
    assert tables["d.s"].rows() == [(5, 5)]


def test_a_cascade_that_goes_too_deep_leaves_all_as_it_was() -> None:
    rows = ", ".join(f"({at}, {at - 1})" for at in range(1, 40))
    schema = f"""CREATE TABLE d.s (pk INT PRIMARY KEY, fk INT,
            FOREIGN KEY (fk) REFERENCES d.s (pk) ON DELETE CASCADE);
        INSERT INTO d.s VALUES (0, 0), {rows};"""
    tables = changed(schema=schema)
    with pytest.raises(CascadeTooDeep):
        tables["d.s"].delete(0)
    assert len(tables["d.s"]) == 40
    tables["d.s"].delete(30)
    assert len(tables["d.s"]) == 30


def test_a_cascade_does_not_update_a_table_that_it_comes_from() -> None:
    schema = """CREATE TABLE d.s (pk INT PRIMARY KEY, fk INT,
            FOREIGN KEY (fk) REFERENCES d.s (pk) ON DELETE SET NULL ON UPDATE CASCADE);
        INSERT INTO d.s VALUES (1, NULL), (2, 1);"""
    tables = changed(schema=schema)
    with pytest.raises(RowIsReferenced):
        tables["d.s"].update(1, (9, None))
    tables["d.s"].delete(1)
    assert tables["d.s"].rows() == [(2, None)]


@pytest.mark.parametrize("engines", [("MyISAM", "MyISAM"), ("InnoDB", "MyISAM")])
def test_an_engine_without_foreign_keys_has_none(engines: tuple[str, str]) -> None:
    schema = f"""CREATE TABLE d.p (id INT PRIMARY KEY) ENGINE={engines[0]};
        CREATE TABLE d.c (id INT, FOREIGN KEY (id) REFERENCES d.p (id)) ENGINE={engines[1]};"""
    tables = changed("ALTER TABLE c ENGINE=InnoDB", schema=schema)
    tables["d.c"].insert((9,))
    assert [key.name for key in tables["d.c"].definition.keys] == ["id"]


def test_values_are_compared_by_their_collation() -> None:
    schema = """CREATE TABLE d.p (v VARCHAR(10) CHARACTER SET latin1 PRIMARY KEY);
        CREATE TABLE d.c (v VARCHAR(20) CHARACTER SET latin1,
        FOREIGN KEY (v) REFERENCES d.p (v) ON DELETE CASCADE); INSERT INTO d.p VALUES ('A');
        INSERT INTO d.c VALUES ('a'), ('A ');"""
    tables = changed(schema=schema)
    tables["d.p"].delete(tables["d.p"].refs()[0])
    assert tables["d.c"].rows() == []


@pytest.mark.parametrize(
    ("server", "enforced"), [("5.7", False), ("8.4", False), ("9.7", True), ("mariadb", True)]
)
def test_references_behind_a_column(server: str, enforced: bool) -> None:
    tables = changed("CREATE TABLE k (a INT REFERENCES p (id))", server=server)
    assert [key.name for key in tables["d.k"].definition.foreign_keys] == (
        ["k_ibfk_1"] if enforced else []
    )


VERSIONED = (
    "CREATE TABLE p (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING",
    (
        "CREATE TABLE c (a INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id) "
        "ON DELETE SET NULL)"
    ),
)


def test_a_delete_of_a_row_with_a_system_time_is_an_update() -> None:
    """MariaDB makes the parent's row history, and does with the child what ON DELETE says."""
    tables = changed(*VERSIONED, schema="CREATE DATABASE d", server="mariadb")
    parent, child = tables["d.p"], tables["d.c"]
    refs = [parent.insert((number, 7, 1, END_OF_TIME)) for number in (1, 2)]
    child.insert((10, 1))
    parent.update(refs[1], (2, 7, 1, 5))
    changed_ref = parent.update(refs[0], (1, 8, 2, END_OF_TIME))
    assert child.rows() == [(10, 1)]
    parent.update(changed_ref, (1, 8, 2, 5))
    assert child.rows() == [(10, None)]


OTHER_VERSIONED = (
    """CREATE TABLE c (a INT PRIMARY KEY, pid INT, s TIMESTAMP(6) AS ROW START INVISIBLE,
        e TIMESTAMP(6) AS ROW END INVISIBLE,
        PERIOD FOR SYSTEM_TIME (s, e), FOREIGN KEY (pid) REFERENCES p (id) ON DELETE
        SET NULL) WITH SYSTEM VERSIONING""",
    """CREATE TABLE c (a INT PRIMARY KEY, pid INT, s BIGINT UNSIGNED AS ROW START,
        e BIGINT UNSIGNED AS ROW END,
        PERIOD FOR SYSTEM_TIME (s, e), FOREIGN KEY (pid) REFERENCES p (id)
        ON DELETE CASCADE) WITH SYSTEM VERSIONING""",
)


@pytest.mark.parametrize("table", OTHER_VERSIONED)
def test_moments_of_the_servers_own_are_refused(table: str) -> None:
    tables = changed(
        "CREATE TABLE p (id INT PRIMARY KEY)", table, schema="CREATE DATABASE d", server="mariadb"
    )
    tables["d.p"].insert((1,))
    tables["d.c"].insert((10, 1, 1, END_OF_TIME))
    with pytest.raises(ReplicationError, match="each server has its own microseconds") as caught:
        tables["d.p"].delete(1)
    assert caught.value.number == 1235


def test_versioned_rows_that_refer_to_their_own_table_are_refused() -> None:
    key = "FOREIGN KEY (q) REFERENCES r (b) ON DELETE CASCADE"
    sql = f"CREATE TABLE r (b INT PRIMARY KEY, q INT, {key}) WITH SYSTEM VERSIONING"
    tables = changed(sql, schema="CREATE DATABASE d", server="mariadb")
    table = tables["d.r"]
    ref = table.insert((1, None, 1, END_OF_TIME))
    table.insert((2, 1, 1, END_OF_TIME))
    with pytest.raises(ReplicationError, match="refers to itself"):
        table.update(ref, (1, None, 1, 5))


@pytest.mark.parametrize("count", [2, 3])
def test_a_cascade_makes_the_parent_of_the_row_that_it_comes_from(count: int) -> None:
    """Tables that point to one another in a circle; the same rows on 5.7.29, 9.7.4 and MariaDB
    10.11.18."""
    names = [f"t{at}" for at in range(count)]
    key = (
        "f INT, UNIQUE KEY (f), FOREIGN KEY (f) REFERENCES d.{} (f) ON DELETE CASCADE ON UPDATE "
        "CASCADE"
    )
    tables = changed(
        *(f"CREATE TABLE {name} ({key.format(names[at - 1])})" for at, name in enumerate(names)),
        checks=False,
    )
    tables.foreign_keys.enabled = False
    for name in names:
        tables[f"d.{name}"].load([(1,), (2,)])
    tables.foreign_keys.enabled = True
    tables.commit()
    tables["d.t0"].update(tables["d.t0"].refs()[1], (3,))
    assert [tables[f"d.{name}"].rows() for name in names] == [[(1,), (3,)]] * count
    tables.rollback()
    assert [tables[f"d.{name}"].rows() for name in names] == [[(1,), (2,)]] * count


def test_a_cascade_checks_the_other_keys_of_the_row() -> None:
    """Refused by 5.7.29, 9.7.4 and MariaDB 10.11.18 too; then nothing has changed."""
    tables = changed(
        "CREATE TABLE q (id INT PRIMARY KEY)",
        "CREATE TABLE k (f INT PRIMARY KEY, FOREIGN KEY (f) REFERENCES p (id) ON UPDATE CASCADE, "
        "FOREIGN KEY (f) REFERENCES q (id))",
    )
    tables["d.q"].insert((1,))
    tables["d.k"].insert((1,))
    with pytest.raises(NoReferencedRow):
        tables["d.p"].update(1, (7,))
    assert [tables[name].rows() for name in ("d.p", "d.k")] == [[(1,), (2,)], [(1,)]]


def test_a_row_may_point_to_what_it_was() -> None:
    """Seen on 9.7.4; 5.7.29 and MariaDB 10.11.18 refuse it."""
    tables = changed(
        "CREATE TABLE s (pk INT PRIMARY KEY, f INT, FOREIGN KEY (f) REFERENCES s (pk))"
    )
    tables["d.s"].insert((1, None))
    tables["d.s"].update(1, (2, 1))
    assert tables["d.s"].rows() == [(2, 1)]


def test_a_row_that_points_to_itself_keeps_its_key() -> None:
    """As it was before its update: refused by 5.7.29, 9.7.4 and MariaDB 10.11.18."""
    tables = changed(
        "CREATE TABLE s (pk INT PRIMARY KEY, f INT, FOREIGN KEY (f) REFERENCES s (pk))"
    )
    tables["d.s"].insert((1, 1))
    with pytest.raises(RowIsReferenced):
        tables["d.s"].update(1, (2, 2))
    assert tables["d.s"].rows() == [(1, 1)]
