"""Traffic that is described, not logged."""

from __future__ import annotations

from pathlib import Path

import pytest

from applier.errors import InputError
from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.workload.traffic import Traffic, read_described
from tests.forecast.logs import calibration, schema

TEXT = """
hours: 2
tables:
  shop.events: {rows: 100000, key: none, row_bytes: 100}
  shop.orders: {rows: 1000, key: index, rows_per_value: 10}
traffic:
  - {table: shop.events, type: delete, rows_per_statement: 200, statements_per_hour: 6}
  - {table: shop.orders, type: update, statements_per_hour: 60, statements_per_transaction: 2}
"""


def described(folder: Path, text: str = TEXT) -> Traffic:
    path = folder / "traffic.yaml"
    path.write_text(text)
    return read_described(path)


def test_transactions_come_evenly_and_in_order(tmp_path: Path) -> None:
    loads = list(described(tmp_path))
    times = [load.commit_time for load in loads]
    assert times == sorted(times)
    assert len(loads) == 12 + 60
    deletes = [load for load in loads if load.tables == ("shop.events",)]
    assert {(load.rows, load.rows_events, load.row_bytes) for load in deletes} == {(200, 3, 20_000)}
    assert {load.rows for load in loads if load.tables == ("shop.orders",)} == {2}


def test_it_is_forecast_like_a_log(tmp_path: Path) -> None:
    traffic = described(tmp_path)
    found = run(
        ForecastPlan(loads=traffic, facts=traffic.facts, calibration=calibration())
    ).forecast
    assert found.tables["shop.events"].reads == pytest.approx(12 * 3 * 2 / 3 * 100_000, rel=0.05)
    assert found.tables["shop.orders"].reads == pytest.approx(120 * 5.5, rel=0.01)


def test_its_tables_have_room_for_a_key(tmp_path: Path) -> None:
    """What stands for the rest of the columns must not be taken for a row that is full (error
    1118)."""
    traffic = described(tmp_path)
    found = run(
        ForecastPlan(loads=traffic, facts=traffic.facts, calibration=calibration())
    ).summary()
    assert found["fixes"][0]["table"] == "shop.events"
    assert "ADD COLUMN" in found["fixes"][0]["sql"]


def test_tables_of_a_schema_need_only_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(
        "tables: {d.keyed: {rows: 500}}\ntraffic: [{table: d.keyed, type: "
        "insert, statements_per_hour: 1, parallel: 4}]"
    )
    traffic = read_described(path, facts_of_file(schema(tmp_path)))
    assert traffic.facts["d.keyed"].rows == 500
    assert traffic.facts["d.keyed"].definition.primary is not None
    assert [load.last_committed for load in traffic][:6] == [0, 0, 0, 0, 1, 2]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds no keys"),
        ("{", "not as it should be"),
        ("hours: 1\nhours: 2", "the key 'hours' stands there twice"),
        ("hours: 1", "no traffic"),
        ("speed: 1", "unknown key 'speed'"),
        ("traffic: [{table: a.b, type: delete, statements_per_hour: 1}]", "neither in `tables`"),
        ("tables: {t: {rows: 1}}\ntraffic: []", "database.table"),
        ("tables: {a.t: {key: big}}", "key must be one of"),
        ("tables: {a.t: {rows: x}}", "could not convert"),
        ("tables: {a.t: {rows: 1}}\ntraffic: [7]", "line 1"),
        (
            "tables: {a.t: {rows: 1}}\ntraffic: [{table: a.t, type: drop, statements_per_hour: 1}]",
            "insert, update or delete",
        ),
        (
            "tables: {a.t: {rows: 1}}\ntraffic: [{table: a.t, type: delete}]",
            "statements_per_hour must be above 0",
        ),
        (
            (
                "hours: -1\ntables: {a.t: {rows: 1}}\ntraffic: [{table: a.t, type: "
                "delete, statements_per_hour: 1}]"
            ),
            "hours must be above 0",
        ),
        ("tables: {a.t: {rows: 1, wide: 7}}", "unknown key 'wide'"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        described(tmp_path, text)
    assert told in str(caught.value) and "traffic.yaml" in str(caught.value)
