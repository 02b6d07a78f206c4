"""Suggestions without a server: which way is taken, what is said of it, and what is never
suggested."""

from __future__ import annotations

import pytest

from applier.schema_source import load_schema
from applier.tables.engine import MemoryTable
from applier.tables.partitioning.partition_columns import partition_columns
from applier.tables.row_size import row_bytes
from applier.tables.suggestion import Suggestion, duplicates_in, suggestion
from lookup.versions import RULES, rules_for


def table(sql: str, server: str = "9.7") -> MemoryTable:
    (found,) = load_schema(f"CREATE DATABASE d; USE d; {sql}", server=server)
    return found


def suggested(
    sql: str,
    version: str = "9.7",
    row_search: frozenset[str] | None = None,
    *,
    with_rows: bool = False,
) -> Suggestion | None:
    found = table(sql)
    return suggestion(
        found.definition,
        rules_for(version),
        row_search,
        duplicates_in(found) if with_rows else None,
    )


@pytest.mark.parametrize(
    ("version", "attribute"),
    [
        ("5.6", ""),
        ("5.7", ""),
        ("8.0.22", ""),
        ("8.0.23", " INVISIBLE"),
        ("8.4", " INVISIBLE"),
        ("mariadb", " INVISIBLE"),
    ],
)
def test_a_new_column_is_invisible_where_columns_can_be(version: str, attribute: str) -> None:
    found = suggested("CREATE TABLE `a``b` (x INT)", version)
    assert found is not None
    column = f"`my_row_id` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT{attribute} PRIMARY KEY"
    assert found.sql == f"ALTER TABLE `d`.`a``b` ADD COLUMN {column};"
    assert (found.algorithm, found.lock) == ("INPLACE", "SHARED")
    assert any("1136" in note for note in found.notes) is not bool(attribute)


def test_a_column_without_duplicates_today_is_not_a_key() -> None:
    sql = (
        "CREATE TABLE t (at DATETIME NOT NULL); INSERT INTO t VALUES ('2026-01-01'), "
        "('2026-01-02');"
    )
    found = suggested(sql, with_rows=True)
    assert found is not None and found.sql is not None
    assert "ADD PRIMARY KEY" not in found.sql


def test_no_column_is_made_not_null() -> None:
    for sql in (
        "CREATE TABLE t (a INT, UNIQUE KEY (a))",
        "CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 2",
    ):
        found = suggested(sql)
        assert found is not None and found.sql is not None
        assert "MODIFY" not in found.sql
        assert "PRIMARY KEY (" not in found.sql


def test_a_unique_key_that_5_6_does_not_use() -> None:
    sql = "CREATE TABLE t (a VARCHAR(20) NOT NULL, UNIQUE KEY u (a(3)))"
    found = suggested(sql, "5.6")
    assert found is not None
    assert (found.sql, found.lock) == ("ALTER TABLE `d`.`t` ADD PRIMARY KEY (`a`(3));", "NONE")
    assert suggested(sql, "5.7.22") == found
    assert [suggested(sql, version) for version in ("5.7.23", "8.0", "9.7", "mariadb")] == [
        None
    ] * 4


def test_duplicates_of_the_auto_increment_column() -> None:
    sql = (
        "CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT, a INT, KEY (id)); "
        "INSERT INTO t VALUES (1, 1), ({second}, 2);"
    )
    unknown, without, twice = (
        suggested(sql.format(second=second), with_rows=with_rows)
        for second, with_rows in ((1, False), (2, True), (1, True))
    )
    assert unknown is not None and without is not None and twice is not None
    assert unknown.sql == without.sql == "ALTER TABLE `d`.`t` ADD PRIMARY KEY (`id`);"
    assert any("1062" in note for note in unknown.notes)
    assert twice.sql is None
    assert "share values" in twice.finding


def test_an_option_that_keeps_the_primary_key_from_being_used() -> None:
    sql = "CREATE TABLE t (id INT PRIMARY KEY)"
    found = suggested(sql, "5.7", frozenset({"HASH_SCAN"}))
    assert found is not None
    assert found.sql is None
    assert "'INDEX_SCAN,HASH_SCAN'" in found.finding
    assert suggested(sql, "5.7") is None


def test_an_unknown_engine_and_unknown_partitions() -> None:
    for sql in ("CREATE TABLE t (a INT) ENGINE=RocksDB", "CREATE TABLE t (a INT) ENGINE=CSV"):
        found = suggested(sql)
        assert found is not None and found.sql is None
        assert found.lines == [found.finding]


def test_the_word_for_what_is_locked() -> None:
    found = suggested("CREATE TABLE t (a INT) ENGINE=MyISAM")
    assert found is not None and found.duration is not None
    assert found.duration.startswith("ALGORITHM=COPY, LOCK=SHARED: ")
    assert found.as_dict()["algorithm"] == "COPY"


@pytest.mark.parametrize(
    ("clause", "columns"),
    [
        ("HASH (a + year(b))", (0, 1)),
        ("LINEAR KEY ALGORITHM=2 (`c(x`)", (2,)),
        ("RANGE COLUMNS (b, a) (PARTITION c VALUES LESS THAN (MAXVALUE, MAXVALUE))", (1, 0)),
        ("RANGE (a) SUBPARTITION BY KEY (b) (PARTITION p VALUES LESS THAN (9))", (0, 1)),
        ("LIST (a) (PARTITION b VALUES IN (1, NULL))", (0,)),
        ("KEY ()", ()),
    ],
)
def test_partition_columns(clause: str, columns: tuple[int, ...]) -> None:
    sql = (
        "CREATE TABLE t (a INT NOT NULL, b DATE NOT NULL, `c(x` INT NOT NULL, UNIQUE KEY (a, b, "
        f"`c(x`)) PARTITION BY {clause}"
    )
    assert partition_columns(table(sql).definition) == columns


def test_partition_columns_follow_an_alter() -> None:
    start = "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL) PARTITION BY HASH (a); ALTER TABLE t "
    assert partition_columns(table(f"{start} PARTITION BY HASH (b)").definition) == (1,)
    assert partition_columns(table(f"{start} REMOVE PARTITIONING").definition) == ()


def test_row_bytes_of_each_type() -> None:
    columns = {
        "TINYINT": 1, "INT": 4, "DECIMAL(10,2)": 5, "DECIMAL(30,7)": 15, "BIT(9)": 2, "YEAR": 1,
        "TIME(3)": 5, "DATETIME(6)": 8, "TIMESTAMP": 4, "CHAR(3) CHARACTER SET utf8mb4": 12,
        "VARCHAR(63) CHARACTER SET utf8mb4": 253, "VARCHAR(64) CHARACTER SET utf8mb4": 258,
        "ENUM('a')": 1, "SET('a','b')": 1, "TEXT": 10, "LONGBLOB": 12, "JSON": 12,
    }  # fmt: skip
    for kind, expected in columns.items():
        sql = f"CREATE TABLE t (v VARBINARY(1) NOT NULL, c {kind} NOT NULL)"
        assert row_bytes(table(sql).definition) == 2 + expected, kind


def test_every_version_has_an_answer() -> None:
    assert all(suggested("CREATE TABLE t (a INT)", version) is not None for version in RULES)
