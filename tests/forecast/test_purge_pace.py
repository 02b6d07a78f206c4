"""What purge does behind transactions, beside the seconds that they take: those that leave old rows
cost more, and leaves of full indexes split less often the sooner the next transaction comes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.inventory.index_fill import FullIndex
from applier.forecast.inventory.pool_rules import POOL_RULES
from applier.forecast.measurement.measured import Measured
from applier.forecast.measurement.measurement_grid import Cell
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.prices.calibration import DURABLE, SHARED, SYNC, TimePrice
from applier.forecast.prices.units import PLACE, UNITS, Prices
from applier.forecast.workload.loads import LoadReader
from lookup.table_shape import PRIMARY
from tests.forecast.logs import DELETE, SECONDS, UPDATE, WRITE, calibration, file, schema
from tests.forecast.logs import transaction as of_rows

TRANSACTIONS, ROWS, LEAVES = 40, 100_000.0, 30.0
VERSION = "8.0.36"
TABLES = """
CREATE DATABASE d; USE d;
CREATE TABLE keyed (a INT NOT NULL PRIMARY KEY);
CREATE TABLE twice (a INT NOT NULL PRIMARY KEY, KEY k (a));
"""
DELAYED = {name: int(value) for name, value in DURABLE.items()}
QUICK = {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0}


def forecast(
    folder: Path, table: bytes, kind: int, prices: Mapping[str, float], **settings: Any
) -> dict[str, Any]:
    """Of transactions of one row."""
    numbers = range(1, TRANSACTIONS + 1)
    log = file(
        folder,
        *(of_rows(number, table, kind, number) for number in numbers),
        version=VERSION,
    )
    priced = Prices.of(SECONDS | prices)
    facts = facts_of_file(schema(folder, TABLES))
    full = replace(facts["d.twice"], rows=ROWS, leaf_pages={"k": LEAVES}, index_stays={"k": 1.0})
    return run(
        ForecastPlan(
            loads=list(LoadReader([log])),
            server=VERSION,
            facts=facts | {"d.twice": full},
            calibration=replace(
                calibration(version=VERSION),
                prices=priced,
                shared={**SHARED, SYNC: TimePrice(0.0, 5e-3)},
            ),
            settings={"workers": 1, "cores": 2, **settings},
        )
    ).summary()


def seconds(*given: Any, **settings: Any) -> float:
    """What the log takes one worker."""
    found: float = forecast(*given, **settings)["replica"]["apply_seconds"]
    return found


@pytest.mark.parametrize(("kind", "leaves"), [(WRITE, 0), (UPDATE, 1), (DELETE, 1)])
def test_a_transaction_that_leaves_old_rows_costs_more(
    tmp_path: Path, kind: int, leaves: int
) -> None:
    without, more = {"history": 0.0}, {"history": 0.25}
    gained = seconds(tmp_path, b"keyed", kind, more) - seconds(tmp_path, b"keyed", kind, without)
    assert gained == pytest.approx(leaves * TRANSACTIONS * 0.25)
    summary = forecast(tmp_path, b"keyed", kind, more)
    parts = {one["name"]: one["seconds"] for one in summary["besides_tables"]}
    assert parts["commits"] == pytest.approx(TRANSACTIONS * (0.001 + leaves * 0.25 + 0.01))


def test_a_table_of_cells_from_before_that_was_known() -> None:
    for kind, leaves in ("write", 0.0), ("update", 7.0):
        amounts = tuple(7.0 if name == "transaction" else 0.0 for name in UNITS)
        row = Measured(Cell(PRIMARY, 100, kind, 1, 1, 7), "t", VERSION, 1.0, 1, amounts).as_row()
        del row["unit_history"]
        assert Measured.of_row(row).amounts[PLACE["history"]] == leaves


def test_leaves_split_less_often_the_sooner_the_next_transaction_comes(tmp_path: Path) -> None:
    """Whether commits wait for the disk is the pace here."""
    price = {"leaf split": 1e-3}
    found = {}
    for name, settings in ("durable", DELAYED), ("relaxed", QUICK):
        whole = seconds(tmp_path, b"twice", UPDATE, price, **settings)
        found[name] = whole - seconds(tmp_path, b"twice", UPDATE, {}, **settings)
        apart = whole / TRANSACTIONS
        index = FullIndex("k", 1.0, LEAVES, 0.0)
        splits = TRANSACTIONS * index.leaves_split(1, POOL_RULES["8.0"].splits, apart)
        assert found[name] == pytest.approx(splits * 1e-3, rel=0.05)
    assert found["durable"] > 1.05 * found["relaxed"]


def test_tables_add_up_to_what_is_left_of_the_splits(tmp_path: Path) -> None:
    summary = forecast(tmp_path, b"twice", UPDATE, {"leaf split": 0.1}, **DELAYED)
    parts = [*summary["tables"], *summary["besides_tables"]]
    assert sum(one["share"] for one in parts) == pytest.approx(1.0)
    whole = summary["replica"]["apply_seconds"]
    assert sum(one["seconds"] for one in parts) == pytest.approx(whole)
    assert summary["worst"][0]["seconds"] == pytest.approx(whole / TRANSACTIONS, rel=0.01)
