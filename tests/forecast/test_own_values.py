"""Rows per value of a key where the log wrote them: counted in it, as a replay meets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import applier
from applier.forecast.inventory.facts import TableFacts, facts_of_file
from applier.forecast.lag.run import Forecast
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.workload.learned import Learned, learned
from applier.forecast.workload.made_tables import made_tables
from applier.forecast.workload.schema import Schema
from applier.tables.catalog import Tables
from lookup.versions import RULES
from tests.forecast.logs import DELETE, UPDATE, WRITE, calibration, file, schema, transaction
from tests.forecast.test_table_fates import ddl

CREATE = ddl(1, b"CREATE TABLE batches (a INT, KEY k (a))")
Transactions = list[list[tuple[int, bytes]]]


def forecast(log: str, **given: Any) -> Forecast:
    return run(ForecastPlan(files=[log], calibration=calibration(), **given)).forecast


def replayed_reads(log: str, server: str, table: str) -> int:
    result = applier.replay([log], into=Tables(), server=server)
    assert result.error is None
    costs = result.costs.values()
    return sum(cost.rows_read for cost in costs if (cost.table, cost.kind != "write") == (table, 1))


def filled(batches: int, size: int) -> Transactions:
    return [CREATE] + [
        transaction(2 + value, b"batches", WRITE, *[value] * size) for value in range(batches)
    ]


@pytest.mark.parametrize(("server", "events"), [("5.7", 4), ("9.7", 1), ("mariadb", 4)])
def test_a_job_that_fills_a_table_and_empties_it_batch_by_batch(
    tmp_path: Path, server: str, events: int
) -> None:
    """Each row is the first of its value that is left, also where a statement has several
    events."""
    gone = [transaction(50 + at, b"batches", DELETE, *[at] * 40, events=events) for at in range(10)]
    log = file(tmp_path, *filled(10, 40), *gone)
    found = forecast(log, server=server)
    assert found.facts["d.batches"].met["k"] == 40
    assert found.tables["d.batches"].reads == pytest.approx(
        replayed_reads(log, server, "d.batches"), rel=0.05
    )
    assert not [text for text in found.assumptions() if "d.batches" in text]


@pytest.mark.parametrize(
    ("statements", "met"),
    [
        ((), 30.0),
        ((ddl(40, b"TRUNCATE batches"),), 1.0),
        ((ddl(40, b"DROP TABLE batches"), CREATE), 1.0),
        ((ddl(40, b"ALTER TABLE batches RENAME aside"), ddl(41, b"RENAME TABLE aside TO batches")),
         30.0),
    ],
)  # fmt: skip
def test_rows_come_along_and_go_with_their_table(
    tmp_path: Path, statements: Transactions, met: float
) -> None:
    change = transaction(50, b"batches", DELETE, 1)
    made = [ddl(39, b"CREATE TABLE IF NOT EXISTS batches (a INT)")]
    log = file(tmp_path, *filled(2, 30), *made, *statements, change)
    found = forecast(log, server="5.7").facts["d.batches"]
    assert found.met.get("k", 1.0) == met


@pytest.mark.parametrize(
    ("written", "changed", "met", "is_said"),
    [(50, (0, 7), 25.5, True), (50, (7,), 50.0, False), (0, (0, 7), None, True)],
)
def test_values_that_the_log_did_not_write_stay_uncounted(
    tmp_path: Path, written: int, changed: tuple[int, ...], met: float | None, is_said: bool
) -> None:
    """Of a table whose rows nobody knows."""
    log = file(
        tmp_path, *([transaction(1, b"twice", WRITE, *[7] * written)] if written else ()),
        *(transaction(at, b"twice", UPDATE, *changed) for at in range(2, 12)),
    )  # fmt: skip
    found = forecast(log, facts=facts_of_file(schema(tmp_path)), server="5.7")
    assert found.facts["d.twice"].met.get("k") == met
    uncounted = "the rows of a value of key `k` of d.twice could not be counted"
    assert any(uncounted in text for text in found.assumptions()) == is_said


def test_what_is_known_of_a_table_is_not_counted_again(tmp_path: Path) -> None:
    log = file(
        tmp_path, transaction(1, b"twice", WRITE, *[7] * 50), transaction(2, b"twice", DELETE, 7)
    )
    facts = facts_of_file(schema(tmp_path))
    for counts in (["d.twice.k=3"], ["d.twice=1000"]):
        found = forecast(log, facts=facts, row_counts=counts, server="5.7").facts["d.twice"]
        assert found.met.get("k", 3.0) == 3.0


def test_tables_that_the_log_makes_are_known_ahead(tmp_path: Path) -> None:
    log = file(
        tmp_path, *filled(1, 3), ddl(2, b"ALTER TABLE batches ADD b INT, DROP KEY k"),
        ddl(3, b"DROP TABLE batches"), ddl(4, b"CREATE TABLE plain (a INT, KEY (a))"),
    )  # fmt: skip
    facts = facts_of_file(schema(tmp_path))
    (made,) = made_tables(facts, [log], "9.7").items()
    assert made[0] == "d.batches"
    assert [column.name for column in made[1].definition.columns] == ["a", "b"]
    assert not made[1].definition.keys
    assert made_tables({**facts, "d.batches": facts["d.plain"]}, [log], "9.7") == {}


def test_a_log_that_cannot_be_read_twice_shows_nothing(tmp_path: Path) -> None:
    known: dict[str, TableFacts] = facts_of_file(schema(tmp_path))
    both, missing = Schema(known, RULES["9.7"]), str(tmp_path / "none")
    for file_name in ("-", missing):
        assert learned(both, [file_name], None, follows_ddl=True) == Learned(known, {}, [], [])
        assert made_tables({}, [file_name], "9.7") == {}
