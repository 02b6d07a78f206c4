"""A disk whose syncs take another time than those of the prices: said by an option, or by a live
replica."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.live import live_settings
from applier.forecast.live.live_settings import PICOSECOND, SYNCS, sync_seconds
from applier.forecast.plan import Forecasted, ForecastPlan, run
from applier.forecast.prices.calibration import (
    DURABLE,
    PAGE_WRITE,
    RELAXED,
    SHARED,
    SYNC,
    TimePrice,
)
from applier.forecast.prices.conditions import Live
from applier.forecast.prices.scenario import Scenario
from applier.mysql.client.connection import connect
from applier.mysql.client.url import Endpoint
from lookup.versions import RULES
from tests.forecast.logs import UPDATE, calibration, file, schema, transaction
from tests.servers.fixtures import ServerFactory

TRANSACTIONS = 40
SHARED_PRICES = {**SHARED, SYNC: TimePrice(60e-6, 40e-6)}


def forecast(
    tmp_path: Path, settings: Mapping[str, Any], priced: Mapping[str, str] = RELAXED
) -> Forecasted:
    """Of transactions in turn, with durable commits."""
    numbers = range(1, TRANSACTIONS + 1)
    log = file(tmp_path, *(transaction(number, b"keyed", UPDATE, 1) for number in numbers))
    prices = replace(calibration(), shared=SHARED_PRICES, settings=priced)
    durable = {name: int(value) for name, value in DURABLE.items()}
    return run(
        ForecastPlan(
            [log],
            facts=facts_of_file(schema(tmp_path)),
            calibration=prices,
            settings={"cores": 2, **durable, **settings},
        )
    )


def seconds(tmp_path: Path, **settings: Any) -> float:
    found = forecast(tmp_path, settings).summary()["replica"]["span_seconds"]
    assert isinstance(found, float)
    return found


def test_one_worker_waits_for_two_syncs_a_transaction(tmp_path: Path) -> None:
    usual = seconds(tmp_path, workers=1)
    assert seconds(tmp_path, workers=1, sync_latency=1e-4) == pytest.approx(usual)
    slow = seconds(tmp_path, workers=1, sync_latency="2ms")
    assert slow - usual == pytest.approx(2 * TRANSACTIONS * (2e-3 - 1e-4))
    quick = seconds(tmp_path, workers=1, sync_latency=20e-6)
    assert usual - quick == pytest.approx(2 * TRANSACTIONS * (1e-4 - 20e-6))
    relaxed = {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0}
    asked = [seconds(tmp_path, sync_latency=one, **relaxed) for one in (1e-5, 1e-1)]
    assert asked[0] == asked[1]


def test_a_live_replica_s_disk_is_taken_and_an_option_wins(tmp_path: Path) -> None:
    live = Live("9.7.4", {}, sync_seconds=3e-3)
    log = file(tmp_path, transaction(1, b"keyed", UPDATE, 1))
    plan = ForecastPlan(
        [log], facts=facts_of_file(schema(tmp_path)), calibration=calibration(), live=live
    )
    told = run(plan).forecast.conditions
    given = run(replace(plan, settings={"sync_latency": 1e-3})).forecast.conditions
    assert told is not None and given is not None
    both = (one.values["sync_latency"] for one in (told, given))
    found = [(one.value, one.source) for one in both]
    assert found == [(3e-3, "live replica"), (1e-3, "option")]


def test_prices_that_hold_syncs_cannot_be_changed_and_that_is_said(tmp_path: Path) -> None:
    def notes(settings: Mapping[str, Any], priced: Mapping[str, str]) -> list[str]:
        said = forecast(tmp_path, settings, priced).summary()["notes"]
        return [one for one in said if "sync_latency changes none" in str(one)]

    assert len(notes({"sync_latency": 2e-3}, DURABLE)) == 1
    assert not notes({"sync_latency": 2e-3}, RELAXED) and not notes({}, DURABLE)


def test_pages_that_make_room_in_a_redo_log_are_synced_too() -> None:
    shared = {**SHARED_PRICES, PAGE_WRITE: TimePrice(0.0, 6e-4)}
    for name, page in (("5.7", 6e-4 * 20), ("mariadb", 6e-4)):
        replica = Scenario("as it is", RULES[name], sync_seconds=2e-3)
        assert replica.page_write_seconds(shared) == pytest.approx(page)
        as_measured = replace(replica, sync_seconds=None)
        assert as_measured.page_write_seconds(shared) == 6e-4


@pytest.mark.parametrize("name", ["9.7", "5.7"])
def test_a_replica_tells_what_a_sync_takes(
    name: str, server_factory: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(server_factory(name, options=DURABLE)) as server:
        server.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT) ENGINE=InnoDB")
        server.execute(*(f"INSERT INTO d.t VALUES ({number})" for number in range(100)))
        endpoint = Endpoint(server.host, server.port, server.user, password=server.password)
        with closing(connect(endpoint)) as connection:
            assert sync_seconds(connection, DURABLE) is None  # too few since its start
            monkeypatch.setattr(live_settings, "FEWEST_SYNCS", 100)
            both = sync_seconds(connection, DURABLE)
            binlog_only = sync_seconds(connection, {**RELAXED, "sync_binlog": "1"})
            assert sync_seconds(connection, RELAXED) is None
        rows = {event: (count, timed) for event, count, timed in server.query(SYNCS)}
        counted = [rows[event] for event in live_settings.SYNCED]
        assert all(count >= 100 for count, _ in counted)
        syncs, timed = map(sum, zip(*counted, strict=True))
        assert both == pytest.approx(timed / syncs * PICOSECOND, rel=0.2)
        syncs, timed = rows["wait/io/file/sql/binlog"]
        assert binlog_only == pytest.approx(timed / syncs * PICOSECOND, rel=0.2)
