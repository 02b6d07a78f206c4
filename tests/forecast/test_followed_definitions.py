"""Keys that DDL of the log makes and drops: rows are found by them, as in a replay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import applier
from applier.forecast.inventory.facts import OwnRows, TableFacts, facts_of_file
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.workload.followed_definitions import FollowedDefinitions
from applier.forecast.workload.loads import LoadReader
from lookup.strategies import NOT_NEEDED
from lookup.table import TableDefinition
from tests.binlog.build import gtid, query
from tests.captures_support import captures, logs
from tests.forecast.logs import DELETE, UPDATE, WRITE, calibration, file, schema, transaction
from tests.forecast.test_forecast import forecast
from tests.forecast.test_table_fates import ddl

OWN = {"update": OwnRows(0.5, 3.0)}
DELETES = tuple(range(10, 20))


def file_behind(folder: Path, *statements: bytes) -> str:
    """A log of ten deletes of one row behind these statements."""
    return file(
        folder, *(ddl(1, sql) for sql in statements),
        *(transaction(2, b"plain", DELETE, value) for value in DELETES),
    )  # fmt: skip


def read_behind(folder: Path, *statements: bytes) -> float:
    """Rows that the deletes read, in a table of a thousand."""
    log = file_behind(folder, *statements)
    return forecast(folder, log, "d.plain=1000").tables["d.plain"].reads


@pytest.mark.parametrize(
    "statements",
    [
        (b"ALTER TABLE plain ADD PRIMARY KEY (a)",),
        (b"alter table plain modify a bigint not null, add unique key (a)",),
        (b"ALTER TABLE plain MODIFY a INT NOT NULL", b"CREATE UNIQUE INDEX u ON plain (a)"),
        (b"DROP TABLE plain", b"CREATE TABLE plain LIKE keyed"),
        (b"RENAME TABLE plain TO gone, keyed TO plain",),
        (b"ALTER TABLE plain ADD b INT FIRST, DROP a, ADD a INT NOT NULL PRIMARY KEY FIRST",),
        (b"CREATE OR REPLACE TABLE plain (a INT PRIMARY KEY)",),
        (b"CREATE TABLE plain (a INT PRIMARY KEY)",),  # of a schema that is younger than the log
    ],
)
def test_a_key_that_the_log_adds_finds_rows(tmp_path: Path, statements: tuple[bytes, ...]) -> None:
    assert read_behind(tmp_path, *statements) == 10


@pytest.mark.parametrize(
    "statements",
    [
        (b"ALTER TABLE plain ADD INDEX k (a)", b"DROP INDEX k ON plain"),
        (b"CREATE TABLE other LIKE keyed", b"DROP TABLE other"),
        (b"CREATE TRIGGER plain BEFORE INSERT ON plain FOR EACH ROW SET NEW.a = NEW.a + 1",),
        (b"CREATE PROCEDURE p() BEGIN END", b"CREATE VIEW v AS SELECT 1", b"CREATE USER u"),
        (b"CREATE TEMPORARY TABLE plain (a INT PRIMARY KEY)", b"DROP TEMPORARY TABLE plain"),
        (b"CREATE TEMPORARY TABLE gone (a INT)", b"ALTER TABLE gone ADD PRIMARY KEY (a)"),
    ],
)
def test_statements_that_leave_a_table_without_a_key(
    tmp_path: Path, statements: tuple[bytes, ...]
) -> None:
    log, found = file_behind(tmp_path, *statements), read_behind(tmp_path, *statements)
    assert found == pytest.approx(10 * 500, rel=0.01)
    assert not [text for text in forecast(tmp_path, log).notes if "followed" in text]


def summary_of(log: str, **given: Any) -> dict[str, Any]:
    return run(ForecastPlan(files=[log], calibration=calibration(), **given)).summary()


@pytest.mark.parametrize(
    ("columns", "algorithm"), [(b"a INT", "hash over table"), (b"a INT PRIMARY KEY", "index scan")]
)
def test_a_table_that_only_the_log_knows_has_the_keys_it_says(
    tmp_path: Path, columns: bytes, algorithm: str
) -> None:
    log = file(
        tmp_path, ddl(1, b"CREATE TABLE made (%s)" % columns),
        transaction(2, b"made", WRITE, *range(1000)), transaction(3, b"made", UPDATE, 7),
    )  # fmt: skip
    for facts in (None, {}, facts_of_file(schema(tmp_path))):
        found = summary_of(log, facts=facts)
        (table,) = found["tables"]
        assert list(table["algorithms"]) == [algorithm]
        assert (table["suggestion"] is None) == (algorithm == "index scan")
        assert not [one for one in found["assumptions"] if "d.made" in one or "followed" in one]
        assert not [one for one in found["notes"] if "d.made" in one]


def test_what_cannot_be_followed_is_said(tmp_path: Path) -> None:
    log = file(
        tmp_path, ddl(1, b"ALTER TABLE plain DROP COLUMN nowhere"),
        ddl(2, b"ALTER TABLE plain DROP COLUMN nowhere"), transaction(3, b"plain", DELETE, 7),
    )  # fmt: skip
    found = summary_of(log, facts=facts_of_file(schema(tmp_path)))
    ((text, times),) = [one for one in found["notes"].items() if "cannot be followed" in one[0]]
    assert text.startswith("a statement about the definition of d.plain cannot be followed (error")
    assert times == 2


def test_views_and_what_failed_on_the_source_go_without_saying(tmp_path: Path) -> None:
    """A DROP TABLE that dropped one of two tables is logged with its error (up to 5.7); the one
    that is there still has its rows."""
    parent = b"CREATE TABLE parent (a INT PRIMARY KEY)"
    child = b"CREATE TABLE child (a INT PRIMARY KEY, FOREIGN KEY (a) REFERENCES parent (a))"
    drop = query(b"DROP TABLE plain, parent", error=1217)
    log = file(
        tmp_path, ddl(1, b"CREATE VIEW v AS SELECT 1"), ddl(2, b"RENAME TABLE v TO w"),
        ddl(3, parent), ddl(4, child), transaction(5, b"parent", WRITE, 1, 2),
        [gtid(6, last=5, sequence=6), drop], transaction(7, b"parent", DELETE, 1),
        version="5.7.29",
    )  # fmt: skip
    found = run(
        ForecastPlan(files=[log], facts=facts_of_file(schema(tmp_path)), calibration=calibration())
    ).forecast
    assert not [text for text in found.notes if "followed" in text]
    assert (found.states["d.plain"].exists, found.states["d.parent"].rows) == (False, 1)


def test_a_table_that_takes_anothers_place_is_changed_as_that(tmp_path: Path) -> None:
    """What an online schema change does: rows come with the new table, how the log changes a table
    goes by its name, also before."""
    start = TableFacts(
        facts_of_file(schema(tmp_path))["d.twice"].definition, 9.0, leaf_pages={"k": 4.0},
        index_changes={"k": 0.5}, own_rows=OWN, met={"k": 7.0},
    )  # fmt: skip
    statements = (
        b"CREATE TABLE _new LIKE twice", b"ALTER TABLE _new ADD b INT",
        b"RENAME TABLE twice TO _old, _new TO twice", b"DROP TABLE _old",
    )  # fmt: skip
    followed = FollowedDefinitions({"d.twice": start}, "9.7")
    log = file(tmp_path, *(ddl(at, sql) for at, sql in enumerate(statements, 1)))
    assert len(list(LoadReader([log], definitions=followed))) == len(statements)
    (found,) = followed.facts.values()
    assert [column.name for column in found.definition.columns] == ["a", "b"]
    assert (found.rows, found.leaf_pages, found.met) == (None, {}, {"k": 7.0})
    assert (found.index_changes, found.own_rows) == ({"k": 0.5}, OWN)
    assert (followed.last["d._old"].rows, followed.last["d._old"].leaf_pages) == (9.0, {"k": 4.0})


def test_transactions_from_elsewhere_have_the_keys_of_the_schema(tmp_path: Path) -> None:
    """A part of a log, or one that somebody describes: nobody followed what came before."""
    from applier.forecast.plan import load_reader

    log = file(
        tmp_path, ddl(1, b"ALTER TABLE plain ADD PRIMARY KEY (a)"),
        transaction(2, b"plain", DELETE, 7),
    )  # fmt: skip
    plan = ForecastPlan(files=[log], facts=facts_of_file(schema(tmp_path)), row_counts=["*=1000"])
    loads = list(load_reader(plan, [log]))
    found = run(replace(plan, loads=loads, calibration=calibration())).forecast
    assert found.tables["d.plain"].reads == 500.5
    assert [one for one in found.assumptions() if one.endswith("are not followed")]


def test_numbers_of_keys_that_stay_are_kept(tmp_path: Path) -> None:
    before, after = (
        facts_of_file(schema(tmp_path, f"CREATE DATABASE d; USE d; CREATE TABLE t ({columns});"))
        for columns in (
            "a INT PRIMARY KEY, b INT, c INT, KEY b (b), KEY c (c)",
            "a INT PRIMARY KEY, c INT, b INT, KEY b (c), KEY c (c)",
        )
    )
    known = TableFacts(
        before["d.t"].definition, 9.0, duplicates={"b": 2.0, "c": 3.0}, met={"c": 4.0},
        index_changes={"b": 0.5, "c": 0.25}, leaf_pages={"PRIMARY": 7.0, "b": 5.0, "c": 6.0},
        rows_per_prefix=(1.0,),
    )  # fmt: skip
    found = known.altered(after["d.t"].definition)
    assert found == TableFacts(
        after["d.t"].definition, 9.0, duplicates={"c": 3.0}, met={"c": 4.0},
        index_changes={"c": 0.25}, leaf_pages={"PRIMARY": 7.0, "c": 6.0}, rows_per_prefix=(1.0,),
    )  # fmt: skip
    assert found.altered(before["d.t"].definition).duplicates == {"c": 3.0}
    assert (
        TableFacts(after["d.t"].definition, index_changes={})
        .altered(known.definition)
        .index_changes
        == {}
    )


def test_rows_are_found_as_the_replay_finds_them() -> None:
    """In each table of these logs by the same algorithms."""
    compared, wrong = 0, []
    for capture in captures():
        files, before = [str(log) for log in logs(capture)], str(capture / "before.sql")
        replayed = applier.replay(files, into=applier.load_schema(before))
        found = run(ForecastPlan(files=files, facts=facts_of_file(before))).forecast.tables
        there: dict[str, set[str]] = {name: {NOT_NEEDED} for name in found}
        for cost in replayed.costs.values():
            there.setdefault(cost.table, {NOT_NEEDED}).add(cost.algorithm)
        said = {name: {NOT_NEEDED, *cost.algorithms} for name, cost in found.items()}
        compared += len(there)
        wrong += [(capture.name, name) for name in there if there[name] != said.get(name)]
    assert (compared > 20, wrong) == (True, [])


def shape(definition: TableDefinition) -> tuple[Any, ...]:
    columns = [(one.name, one.type, one.nullable) for one in definition.columns]
    return columns, definition.keys, definition.engine


def test_all_definitions_are_those_of_the_replay() -> None:
    """Of the logs of real servers here, behind their last statement. (A forecast does not know the
    character sets of databases without tables.)"""
    compared, wrong = 0, []
    for capture in captures():
        files, before = [str(log) for log in logs(capture)], str(capture / "before.sql")
        tables = applier.load_schema(before)
        replayed = applier.replay(files, into=tables)
        if replayed.error is not None:
            continue
        followed = FollowedDefinitions(facts_of_file(before), replayed.server)
        for _ in LoadReader(files, definitions=followed):
            pass
        there = {table.definition.full_name: shape(table.definition) for table in tables}
        said = {name: shape(facts.definition) for name, facts in followed.facts.items()}
        compared += len(there)
        wrong += [
            (capture.name, name) for name in there | said if there.get(name) != said.get(name)
        ]
    assert (compared > 20, wrong) == (True, [])
