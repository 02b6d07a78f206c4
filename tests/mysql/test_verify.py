"""The comparison of tables, without a server: rows come from a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

import applier
from applier.cli.commands.verify import TRUSTED, report_lines
from applier.errors import ReplicationError
from applier.mysql.contents.verify import (
    KEPT,
    SETTINGS,
    SNAPSHOT,
    TableReport,
    Verification,
    verify,
)
from applier.mysql.statements.column_bytes import DIALECTS, cell, expression, quoted
from applier.tables.catalog import Tables
from lookup.table import Column


class Listed:
    """Stands for a connection: tables with their columns and rows. Remembers what it was asked."""

    def __init__(
        self,
        tables: dict[str, tuple[str, list[tuple[Any, ...]]]],
        rules_version: str = "9.7",
        created: str | None = None,
    ) -> None:
        self.rules_version = rules_version
        self.created = created
        self.tables = tables
        self.asked: list[str] = []

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        self.asked.append(sql)
        if "information_schema.TABLES" in sql:
            return [tuple(part.encode() for part in name.split(".")) for name in self.tables]
        if "information_schema.COLUMNS" in sql:
            named = [
                (*name.split("."), column)
                for name, (columns, _) in self.tables.items()
                for column in columns.split()
            ]
            return [tuple(part.encode() for part in row) for row in named]
        if sql.startswith("SHOW CREATE TABLE"):
            columns = self.tables[sql.rpartition(" ")[2].replace("`", "")][0].split()
            return [
                (
                    b"t",
                    (
                        self.created
                        or f"CREATE TABLE t ({', '.join(f'{name} INT' for name in columns)})"
                    ).encode(),
                )
            ]
        if sql.startswith("SELECT COUNT(*)"):
            return [(str(len(self.tables[self._named(sql)][1])).encode(),)]
        return []

    def stream(self, sql: str) -> Iterable[Sequence[bytes | None]]:
        self.asked.append(sql)
        for row in self.tables[self._named(sql)][1]:
            yield tuple(None if value is None else str(value).encode() for value in row)

    def _named(self, sql: str) -> str:
        return sql.rpartition(" FROM ")[2].replace("`", "")


def keyed(rows: str) -> Tables:
    return applier.load_schema(
        "CREATE DATABASE d; USE d; CREATE TABLE t (a INT PRIMARY KEY, b INT); "
        f"INSERT INTO t VALUES {rows};"
    )


def keyless(rows: str) -> Tables:
    return applier.load_schema(
        f"CREATE DATABASE d; USE d; CREATE TABLE t (a INT, b INT); INSERT INTO t VALUES {rows};"
    )


def compare(tables: Tables, rows: list[tuple[Any, ...]], columns: str = "a b") -> TableReport:
    key = ", PRIMARY KEY (a)" if tables["d.t"].definition.keys else ""
    created = f"CREATE TABLE t ({', '.join(f'{name} INT' for name in columns.split())}{key})"
    (report,) = verify(Listed({"d.t": (columns, rows)}, created=created), tables).tables
    return report


def test_equal_rows_in_any_order_are_no_difference() -> None:
    report = compare(keyed("(1, 10), (2, NULL)"), [(2, None), (1, 10)])
    assert report.equal
    assert (report.expected_rows, report.found_rows) == (2, 2)


def test_null_is_not_the_text_null_nor_empty() -> None:
    assert compare(keyed("(2, NULL)"), [(2, "")]).extra == 1
    assert compare(keyed("(2, NULL)"), [(2, "NULL")]).extra == 1


def test_values_do_not_run_into_each_other() -> None:
    assert not compare(keyless("(1, 23)"), [(12, 3)]).equal


def test_rows_of_one_key_are_paired() -> None:
    report = compare(keyed("(1, 10), (2, 20), (3, 30)"), [(1, 10), (2, 21), (4, 40)])
    assert (report.missing, report.extra) == (2, 2)
    assert [(row.expected, row.found, row.differing) for row in report.differences] == [
        ((b"2", b"20"), (b"2", b"21"), ("b",)),
        ((b"3", b"30"), None, ()),
        (None, (b"4", b"40"), ()),
    ]


@pytest.mark.parametrize(
    ("found", "missing", "extra"), [(1, 2, 0), (2, 1, 0), (3, 0, 0), (4, 0, 1), (0, 3, 0)]
)
def test_twins_are_counted(found: int, missing: int, extra: int) -> None:
    report = compare(keyless("(1, 1), (1, 1), (1, 1), (2, 2)"), [(2, 2), *[(1, 1)] * found])
    assert (report.missing, report.extra) == (missing, extra)
    assert len(report.differences) == missing + extra


def test_all_differences_are_counted_and_some_are_kept() -> None:
    report = compare(keyless("(1, 1)"), [(5, at) for at in range(100)])
    assert (report.missing, report.extra, len(report.differences)) == (1, 100, KEPT)


def test_a_table_of_one_side_is_a_difference() -> None:
    server = Listed({"d.u": ("a", [(1,), (2,)])})
    gone, more = verify(server, keyed("(1, 1)")).tables
    assert (gone.table, gone.missing, gone.problem) == ("d.t", 1, "it is not on the server")
    assert (more.table, more.extra, more.problem) == ("d.u", 2, "it is on the server only")


def test_an_empty_table_on_the_server_only_is_a_difference() -> None:
    assert not verify(Listed({"d.t": ("a b", [(1, 1)]), "d.u": ("a", [])}), keyless("(1, 1)")).equal


def test_tables_that_are_not_wanted_are_left_alone() -> None:
    server = Listed({"d.u": ("a", [(1,)])})
    result = verify(server, keyed("(1, 1)"), lambda database, table: table == "v")
    assert result.equal
    assert not any("`t`" in sql or "`u`" in sql for sql in server.asked)


def test_a_column_of_the_server_only_is_a_difference() -> None:
    report = compare(keyed("(1, 1)"), [(1, 1)], "a b c")
    assert report.definition == ["column `c`: int on the server only"]
    assert (report.problem, report.differs, report.equal) == (None, True, False)


def test_a_column_that_the_server_lacks_is_told() -> None:
    class Lacking(Listed):
        def stream(self, sql: str) -> Iterable[Sequence[bytes | None]]:
            raise ReplicationError(1054, "Unknown column 'b' in 'field list'")

    (report,) = verify(Lacking({"d.t": ("a", [(1,)])}), keyed("(1, 1)")).tables
    assert report.problem == "Unknown column 'b' in 'field list'"
    assert report.definition[0] == "column `b`: int after the replay only"
    assert report.missing == 1


def test_reads_in_one_snapshot_and_ends_it() -> None:
    server = Listed({"d.t": ("a b", [(1, 1)])})
    verify(server, keyed("(1, 1)"))
    assert server.asked[:2] == [SETTINGS, SNAPSHOT]
    assert server.asked[-1] == "ROLLBACK"


def test_leaves_out_what_is_no_table_of_the_log() -> None:
    tables = applier.load_schema(
        "CREATE DATABASE d; USE d; CREATE TABLE t (a INT, b INT); CREATE TEMPORARY TABLE x (a INT);"
        "CREATE TABLE y (a INT) ENGINE=BLACKHOLE;"
    )
    assert [report.table for report in verify(Listed({"d.t": ("a b", [])}), tables).tables] == [
        "d.t"
    ]


@pytest.mark.parametrize(
    ("column", "stored", "version", "sql", "shown"),
    [
        (Column("a", "int"), -5, "9.7", "`a` + 0", b"-5"),
        (Column("a`b", "year"), 124, "5.7", "`a``b`", b"2024"),
        (Column("a", "enum", charset="latin1", labels=("x", "y")), 2, "9.7",
         "CAST(`a` AS UNSIGNED)", b"2"),
        (Column("a", "set", charset="latin1", labels=("x", "y")), 3, "9.7", "CAST(`a` AS UNSIGNED)",
         b"3"),
        (Column("a", "bit", length=64), (1 << 64) - 1, "5.6", "CAST(`a` AS UNSIGNED)",
         b"18446744073709551615"),
        (Column("a", "binary", length=4), b"x", "9.7", "`a`", b"x\0\0\0"),
        (Column("a", "varchar", charset="latin1"), b"\xe4 ", "9.7", "`a`", b"\xe4 "),
        (Column("a", "float"), b"\xcd\xcc\x8c\x3f", "9.7", "CAST(`a` AS DOUBLE)",
         b"1.100000023841858"),
        (Column("a", "double"), b"\0" * 7 + b"\x80", "9.7", "CAST(`a` AS DOUBLE)", b"-0"),
        (Column("a", "double"), b"\0" * 7 + b"\x80", "5.7",
         "IF(`a` = 0 AND `a` LIKE '%-%', '-0', `a` + 0e0)", b"-0"),
        (Column("a", "float"), b"\0\0\0\x80", "mariadb", "`a` + 0e0", b"0"),
        (Column("a", "date"), 0, "9.7", "`a`", b"0000-00-00"),
        (Column("a", "inet4"), b"\x7f\0\0\x01", "mariadb", "`a`", b"127.0.0.1"),
    ],
)  # fmt: skip
def test_a_cell_is_what_the_server_is_asked_for(
    column: Column, stored: Any, version: str, sql: str, shown: bytes
) -> None:
    assert expression(column, DIALECTS[version]) == sql
    assert cell(column, DIALECTS[version])(stored) == shown
    assert cell(column, DIALECTS[version])(None) is None


def test_names_are_quoted() -> None:
    assert quoted("a`b") == "`a``b`"


def test_a_table_that_memory_does_not_hold_exactly_is_not_compared() -> None:
    server = Listed({"d.t": ("a b", [(7, 7)]), "d.u": ("a", [])})
    result = verify(
        server, keyed("(1, 1)"), inexact=lambda database, table: "refused" if table == "t" else None
    )
    assert [(report.table, report.not_comparable, report.differs) for report in result.tables] == [
        ("d.t", "refused", False),
        ("d.u", None, True),
    ]
    assert report_lines(Verification(result.tables[:1])) == [
        "d.t: not comparable: refused",
        "1 of 1 tables are not comparable",
        TRUSTED,
    ]


def test_definitions_by_the_defaults_of_another_version_are_not_compared() -> None:
    server = Listed({"d.t": ("a b", [(1, 1)])}, created="CREATE TABLE t (a BIGINT, b INT)")
    (other,) = verify(server, keyless("(1, 1)"), log_rules="5.7").tables
    assert other.not_comparable == (
        "defaults of 5.7 hold in the log, those of 9.7 on the server: column `a`: "
        "bigint on the server, int after the replay"
    )
    assert not other.differs and not other.equal
    (same,) = verify(server, keyless("(1, 1)"), log_rules="9.7").tables
    assert same.definition == ["column `a`: bigint on the server, int after the replay"]
    assert report_lines(Verification([same])) == [
        "d.t: column `a`: bigint on the server, int after the replay",
        "1 of 1 tables differ",
        TRUSTED,
    ]


def test_a_definition_that_cannot_be_read_is_not_comparable() -> None:
    (report,) = verify(
        Listed({"d.t": ("a b", [(1, 1)])}, created="CREATE TABLE t (a WONDER)"), keyless("(1, 1)")
    ).tables
    assert report.not_comparable is not None
    assert report.not_comparable.startswith("the server's definition cannot be read: ")


def test_the_report_in_words() -> None:
    report = compare(keyed("(1, 10), (2, 20), (3, 30)"), [(1, 10), (2, 21)])
    assert report_lines(Verification([report])) == [
        "d.t; 2 rows where 3 are expected, 2 missing, 1 too many",
        "  differs: b is '21', should be '20'; in the row a='2'",
        "  missing: a='3', b='30'",
        "1 of 1 tables differ",
        TRUSTED,
    ]
    assert report_lines(Verification([TableReport("d.t", 2, 2)])) == [
        "no difference: 1 tables, 2 rows"
    ]
    assert report_lines(Verification([])) == ["no difference: 0 tables, 0 rows"]
