"""Which rows a partition clause takes away; tests/mysql/test_structure.py asks real servers."""

from __future__ import annotations

import pytest

import applier
from applier.errors import ReplicationError
from applier.tables.catalog import Tables
from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.execution import apply_ddl
from applier.tables.partitioning.partition_clauses import partitioning_of
from applier.tables.partitioning.partitions import read_partitioning
from applier.tables.sql.sql_text import DEFAULT_LEXIS, Parser


def altered(
    partitions: str, *clauses: str, columns: str = "a INT, b INT", server: str = "9.7"
) -> Tables:
    tables = applier.load_schema(
        f"CREATE TABLE d.t ({columns}) {partitions}; INSERT INTO d.t VALUES (1, 1), (12, 2), (23, "
        f"3); CREATE TABLE d.u ({columns});"
    )
    for clause in clauses:
        apply_ddl(tables, f"ALTER TABLE t {clause}", "d", DdlSession(server=server))
    return tables


RANGE = """PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10),
    PARTITION p1 VALUES LESS THAN (20),
    PARTITION p2 VALUES LESS THAN MAXVALUE)"""
SUB, P = "PARTITION BY RANGE (a) SUBPARTITION BY HASH (b)", "PARTITION p VALUES LESS THAN MAXVALUE"


@pytest.mark.parametrize(
    ("partitions", "clauses", "left"),
    [
        (RANGE, ["DROP PARTITION p1"], [1, 23]),
        (RANGE, ["TRUNCATE PARTITION p0, p2"], [12]),
        (RANGE, ["TRUNCATE PARTITION ALL"], []),
        (RANGE, ["DROP PARTITION p1", "DROP PARTITION p2"], [1]),
        (RANGE,
         ["REORGANIZE PARTITION p0, p1 INTO (PARTITION q VALUES LESS THAN (20))",
          "DROP PARTITION q"], [23]),
        (RANGE,
         ["REMOVE PARTITIONING", "PARTITION BY HASH (a) PARTITIONS 2", "TRUNCATE PARTITION p1"],
         [12]),
        ("PARTITION BY HASH (a) PARTITIONS 2",
         ["ADD PARTITION PARTITIONS 2", "TRUNCATE PARTITION p0"], [1, 23]),
        ("PARTITION BY HASH (a) PARTITIONS 4", ["COALESCE PARTITION 3", "TRUNCATE PARTITION p0"],
         []),
        (f"{SUB} SUBPARTITIONS 2 ({P})", ["TRUNCATE PARTITION psp1"], [12]),
        (f"{SUB} ({P})", ["TRUNCATE PARTITION psp0"], []),
        (f"{SUB.lower()} ({P})", ["TRUNCATE PARTITION psp0"], []),
        (f"{SUB} ({P} (SUBPARTITION x, SUBPARTITION `y z`))", ["TRUNCATE PARTITION X"], [1, 23]),
        (RANGE, ["DROP COLUMN b", "ADD COLUMN c INT", "DROP PARTITION p0"], [12, 23]),
    ],
)  # fmt: skip
def test_what_is_left(partitions: str, clauses: list[str], left: list[int]) -> None:
    assert [row[0] for row in altered(partitions, *clauses)["d.t"].rows()] == left


@pytest.mark.parametrize(("count", "place"), [(2, 0), (3, 2), (5, 3), (7, 1)])
def test_null_in_partitions_by_hash(count: int, place: int) -> None:
    """Seen on 9.7.4 and MariaDB 10.11.18: the lowest number of 64 bits stands for it."""
    tables = altered(f"PARTITION BY HASH (a) PARTITIONS {count}", "TRUNCATE PARTITION ALL")
    tables["d.t"].insert((None, 1))
    apply_ddl(tables, f"ALTER TABLE t TRUNCATE PARTITION p{place}", "d", DdlSession())
    assert len(tables["d.t"]) == 0


def test_a_partition_and_a_table_change_places() -> None:
    tables = altered(RANGE, "EXCHANGE PARTITION p1 WITH TABLE u")
    assert ([row[0] for row in tables["d.t"].rows()], tables["d.u"].rows()) == ([1, 23], [(12, 2)])
    apply_ddl(tables, "ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE u", "d", DdlSession())
    assert [row[0] for row in tables["d.t"].rows()] == [1, 23, 12]


def test_mariadb_makes_a_table_of_a_partition_and_the_other_way_round() -> None:
    tables = altered(RANGE, "CONVERT PARTITION p1 TO TABLE x", server="mariadb")
    assert ([row[0] for row in tables["d.t"].rows()], tables["d.x"].rows()) == ([1, 23], [(12, 2)])
    assert not tables["d.x"].definition.partitioned
    tables = altered(
        RANGE,
        "DROP PARTITION p2",
        "CONVERT TABLE u TO PARTITION p3 VALUES LESS THAN (40)",
        server="mariadb",
    )
    assert "d.u" not in tables
    partitioning = partitioning_of(tables["d.t"].definition, DEFAULT_LEXIS)
    assert partitioning is not None
    assert [part.name for part in partitioning.parts] == ["p0", "p1", "p3"]


@pytest.mark.parametrize(
    ("kind", "theirs", "ours"), [("VIRTUAL", (1, 0), (10, 11)), ("STORED", (1, 2), (10, 9))]
)
def test_a_table_reads_virtual_columns_by_its_own_expression(
    kind: str, theirs: tuple[int, int], ours: tuple[int, int]
) -> None:
    """Seen on 5.7.29; later servers refuse the exchange of such tables."""
    tables = applier.load_schema(
        f"CREATE TABLE d.t (a INT, b INT AS (a - 1) {kind}) PARTITION BY RANGE (a) "
        "(PARTITION p VALUES LESS THAN MAXVALUE);"
        f"CREATE TABLE d.u (a INT, b INT AS (a + 1) {kind}); INSERT INTO d.t (a) VALUES (10); "
        "INSERT INTO d.u (a) VALUES (1);"
    )
    apply_ddl(
        tables, "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", "d", DdlSession(server="5.7")
    )
    assert (tables["d.t"].rows(), tables["d.u"].rows()) == ([theirs], [ours])


@pytest.mark.parametrize(
    ("partitions", "clause", "columns", "error"),
    [
        (RANGE, "DROP PARTITION nope", "a INT, b INT", 1735),
        ("", "DROP PARTITION p0", "a INT, b INT", 1235),
        ("PARTITION BY KEY (a) PARTITIONS 2", "TRUNCATE PARTITION p0", "a VARCHAR(9), b INT", 1235),
        (
            (
                "PARTITION BY RANGE (a) SUBPARTITION BY HASH (b) (PARTITION p VALUES LESS THAN "
                "MAXVALUE)"
            ),
            "TRUNCATE PARTITION ps0",
            "a INT, b INT",
            1735,
        ),
        (RANGE, "EXCHANGE PARTITION p0 WITH TABLE nope", "a INT, b INT", 1146),
        (RANGE, "DISCARD PARTITION p0 TABLESPACE", "a INT, b INT", 1235),
    ],
)
def test_what_is_refused(partitions: str, clause: str, columns: str, error: int) -> None:
    with pytest.raises(ReplicationError) as caught:
        altered(partitions, clause, columns=columns)
    assert caught.value.number == error


def test_a_partition_follows_its_column_in_mariadb_and_is_unknown_elsewhere() -> None:
    renamed = "CHANGE a c INT"
    assert [
        row[0]
        for row in altered(RANGE, renamed, "DROP PARTITION p0", server="mariadb")["d.t"].rows()
    ] == [12, 23]
    with pytest.raises(ReplicationError, match="not known"):
        altered(RANGE, renamed, "DROP PARTITION p0", server="5.7")


@pytest.mark.parametrize(
    "sql",
    [
        "PARTITION BY LINEAR HASH (a + 1) (PARTITION `p0`, PARTITION `p1`)",
        "PARTITION BY KEY ALGORITHM = 1 (a, b) (PARTITION `p0` ENGINE = InnoDB)",
        (
            "PARTITION BY LIST COLUMNS (a, b) (PARTITION `p``0` VALUES IN ((1, 2), (3, NULL)), "
            "PARTITION `d` DEFAULT)"
        ),
        (
            "PARTITION BY RANGE (YEAR(d)) SUBPARTITION BY HASH (b) SUBPARTITIONS 2 (PARTITION `p1` "
            "VALUES LESS THAN (MAXVALUE))"
        ),
    ],
)
def test_the_text_of_partitions(sql: str) -> None:
    found = read_partitioning(Parser(sql))
    assert " ".join(found.sql.split()) == sql
    assert read_partitioning(Parser(found.sql)) == found
