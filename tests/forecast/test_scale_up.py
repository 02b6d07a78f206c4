"""What workers share, measured: prices from ratios, and cells with several workers on real
servers."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from applier.forecast.live import live_settings
from applier.forecast.measurement.fit import fit
from applier.forecast.measurement.measured import Measured, mean_of, read_parquet, write_parquet
from applier.forecast.measurement.measurement_grid import Cell
from applier.forecast.measurement.on_server import ServerTarget
from applier.forecast.measurement.scale_up import (
    scale_up_cells,
    shared_prices,
    spread,
    unexplained,
    unsteadiness,
)
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.prices.calibration import (
    BESIDE,
    COORDINATOR,
    DURABLE,
    HAND_OVER,
    RELAXED,
    SHARED,
    SYNC,
    UNEXPLAINED,
    TimePrice,
    load_calibration,
    syncs_at,
)
from applier.forecast.prices.margin import margin
from applier.forecast.prices.scenario import Scenario
from applier.forecast.prices.units import Prices, amounts
from applier.mysql.client.connection import connect
from applier.mysql.client.url import Endpoint
from applier.timing.work_clock import Machine, Turn, WorkClock
from applier.timing.worker_rules import WORKER_RULES
from lookup.table_shape import PRIMARY
from lookup.versions import RULES, rules_for
from tests.forecast import logs
from tests.servers.fixtures import ServerFactory

US = 1e-6
NO_COORDINATOR = {name: TimePrice(0.0) for name in COORDINATOR}
PRICES = Prices.of({"transaction": 100 * US, "event": 50 * US})


def applied(
    cell: Cell,
    speed: float,
    sync: TimePrice,
    transaction: float = 0.0,
    event: float = 0.0,
    *,
    version: str = "9.7.4",
    beside: float = 0.0,
    hand_over: float = 0.0,
) -> Measured:
    """A cell on a machine that is `speed` times as slow as the prices say."""
    alone = 100 * US + cell.events * 50 * US
    is_mariadb = "MariaDB" in version
    syncs = (1.0 if is_mariadb else 2.0) * cell.durable
    machine = Machine(
        2,
        cell.workers > 1 and not is_mariadb,
        sync.processor * syncs,
        sync.waiting * syncs,
        transaction,
        event,
        synced_logs=syncs,
        beside=beside,
        hand_over=hand_over,
        worker_rules=WORKER_RULES[rules_for(version).name],
    )
    kind = "optimistic" if is_mariadb else "LOGICAL_CLOCK"
    clock, done = WorkClock(cell.workers, machine=machine, parallel_type=kind), 0.0
    for number in range(1, cell.transactions + 1):
        turn = Turn(alone, 0, 0, 2 * cell.events + 3, min(number - 1, 1), number)
        done = max(done, clock.take(0.0, turn))
    beside_seconds = cell.transactions * alone
    asked = amounts(transaction=cell.transactions, event=cell.transactions * cell.events)
    return Measured(
        cell, "test", version, done * speed, 1, asked, beside_seconds=beside_seconds * speed
    )


SYNC_PRICES = [TimePrice(64 * US, 36 * US), TimePrice(70 * US, 800 * US)]


def speed_of(number: int) -> float:
    """A machine that is fast, usual and slow in turn."""
    return (0.5, 1, 2)[number % 3]


@pytest.mark.one_case_in(6)
@pytest.mark.parametrize("sync", SYNC_PRICES)
@pytest.mark.parametrize(
    ("transaction", "event"), [(10 * US, 4 * US), (30 * US, 12 * US), (150 * US, 20 * US)]
)
def test_the_prices_are_found_whatever_the_speed(
    sync: TimePrice, transaction: float, event: float
) -> None:
    cells = scale_up_cells(4_000, workers=True)
    measured = [
        applied(cell, speed_of(number), sync, transaction, event)
        for number, cell in enumerate(cells)
    ]
    found = shared_prices(measured, cores=2, syncs=2.0)
    coordinator = [found[name].processor for name in COORDINATOR]
    for one in measured:
        again = applied(one.cell, 1.0, found[SYNC], *coordinator)
        assert again.seconds / again.beside_seconds == pytest.approx(
            one.seconds / one.beside_seconds, rel=0.12
        )
    total = found[SYNC].processor + found[SYNC].waiting
    assert total == pytest.approx(sync.processor + sync.waiting, rel=0.15)


@pytest.mark.one_case_in(4)
@pytest.mark.parametrize("sync", SYNC_PRICES)
@pytest.mark.parametrize(("beside", "hand_over"), [(1.5, 45 * US), (3.0, 150 * US)])
def test_what_workers_of_mariadb_cost_each_other_is_found(
    sync: TimePrice, beside: float, hand_over: float
) -> None:
    measured = [
        applied(
            cell, speed_of(number), sync, beside=beside, hand_over=hand_over,
            version="10.11.18-MariaDB",
        )
        for number, cell in enumerate(scale_up_cells(4_000, workers=True))
    ]  # fmt: skip
    found = shared_prices(measured, cores=2, syncs=1.0)
    assert set(found) == {SYNC, BESIDE, HAND_OVER}
    assert found[BESIDE].processor == pytest.approx(beside, rel=0.5)
    assert found[HAND_OVER].processor == pytest.approx(hand_over, rel=0.5)
    off = unexplained(measured, SHARED | NO_COORDINATOR | found, cores=2, syncs=1.0)
    assert max(off.values()) < 0.15


@pytest.mark.one_case_in(4)
@pytest.mark.parametrize("sync", SYNC_PRICES)
@pytest.mark.parametrize(("transaction", "event"), [(10 * US, 2 * US), (30 * US, 1 * US)])
def test_what_workers_of_5_7_take_of_each_transaction_and_event_is_found(
    sync: TimePrice, transaction: float, event: float
) -> None:
    measured = [
        applied(cell, speed_of(number), sync, transaction, event, version="5.7.29")
        for number, cell in enumerate(scale_up_cells(4_000, workers=True))
    ]
    usual = SHARED | {COORDINATOR[0]: TimePrice(15 * US), COORDINATOR[1]: TimePrice(1.5 * US)}
    found = shared_prices(measured, cores=2, syncs=2.0, usual=usual)
    assert set(found) == {SYNC, *COORDINATOR}
    each = found[COORDINATOR[0]].processor + 5 * found[COORDINATOR[1]].processor
    assert each == pytest.approx(transaction + 5 * event, rel=0.1)
    off = unexplained(measured, usual | found, cores=2, syncs=2.0)
    assert max(off.values()) < 0.15


def test_nothing_measured_is_nothing_said() -> None:
    assert shared_prices([], cores=2, syncs=2.0) == {}
    assert unsteadiness([]) == 0.0


def test_unsteadiness_is_that_of_the_readings_beside() -> None:
    """Of each shape by itself: that other transactions cost more than prices say is no change."""
    cell = Cell(PRIMARY, 1000, "update", 1, 1, 10, workers=1, durable=1)
    larger = replace(cell, events=4, transactions=5, statements=4)
    sync = TimePrice(1 * US)
    steady = [applied(cell, 2.0, sync, 0.0, 0.0)] * 5 + [applied(larger, 3.0, sync, 0.0, 0.0)] * 4
    assert unsteadiness(steady) == pytest.approx(0.0)
    longer = replace(steady[0], cell=replace(cell, transactions=20))
    longer = replace(longer, beside_seconds=2 * longer.beside_seconds)
    assert unsteadiness([*steady, longer]) == pytest.approx(0.0)
    wild = [*steady, *(replace(one, beside_seconds=one.beside_seconds * 1.5) for one in steady[:2])]
    assert unsteadiness(wild) == pytest.approx(0.5)


def test_what_the_clock_does_not_explain_is_kept_for_the_margin(tmp_path: Path) -> None:
    """A disk whose syncs take three times as long in one of ten minutes, and workers that are off
    by a quarter."""
    sync = TimePrice(64 * US, 36 * US)
    cell = Cell(PRIMARY, 1000, "update", 1, 1, 50, workers=4)
    steady = applied(replace(cell, durable=1), 1.0, sync, 10 * US, 4 * US)
    slow = replace(steady, seconds=3 * steady.seconds)
    relaxed = applied(cell, 1.0, sync, 10 * US, 4 * US)
    shared = {**logs.calibration().shared, "sync": sync}
    off = unexplained(
        [*[steady] * 4, slow, *[replace(relaxed, seconds=relaxed.seconds / 1.25)] * 5],
        shared,
        cores=2,
        syncs=2.0,
    )
    assert off == {
        "syncs": pytest.approx(2.0, abs=0.1),
        "several workers": pytest.approx(0.25, abs=0.05),
    }
    calibration = replace(logs.calibration(spread=0.2), unexplained={**UNEXPLAINED, **off})
    calibration.save(tmp_path / "prices.json")
    assert load_calibration(tmp_path / "prices.json").unexplained == calibration.unexplained
    base = Scenario("as it is", RULES["9.7"])
    assert margin(base, {}, calibration)[0] == pytest.approx(0.2)
    assert margin(replace(base, workers=4, cores=2), {}, calibration)[0] == pytest.approx(
        0.32, abs=0.05
    )
    assert margin(replace(base, syncs=2.0), {}, calibration)[0] > 1.9


def test_few_cells_that_are_explained_make_no_narrow_margin() -> None:
    cell = Cell(PRIMARY, 1000, "update", 1, 1, 100, workers=4, durable=1)
    one = applied(cell, 1.0, TimePrice(64 * US, 36 * US), 10 * US, 4 * US)
    alone = [replace(one, cell=replace(cell.alone, rows=1000 + at),
                     seconds=one.beside_seconds, beside_seconds=0.0)
             for at in range(10)]  # fmt: skip
    assert fit([*alone, one]).unexplained == UNEXPLAINED
    several = [
        replace(one, cell=replace(cell, rows=1000 + at), seconds=one.seconds * (1 + at))
        for at in range(5)
    ]
    assert fit([*alone, *several]).unexplained["syncs"] > 0.5


def test_what_is_measured_beside_a_cell_is_one_of_its_own() -> None:
    cell = Cell(PRIMARY, 1000, "update", 1, 1, 100, workers=4, durable=1)
    one = applied(cell, 1.0, TimePrice(64 * US, 36 * US), 10 * US, 4 * US)
    slow = replace(one.alone, seconds=2 * one.beside_seconds)
    assert (one.alone.cell, one.alone.seconds) == (cell.alone, one.beside_seconds)
    found = fit([slow, one, *[replace(one, cell=replace(cell, workers=of)) for of in (1, 2, 8)]])
    assert found.residuals.cells == 5
    said = found.prices.cost(one.amounts)[0] / one.beside_seconds
    assert 1.0 < said < 1.5  # four of five took as long as that


def test_cells_of_scale_up_stand_among_the_others_in_their_order() -> None:
    units = [Cell(PRIMARY, 1000 + number, "update", 1, 1, 10) for number in range(10)]
    cells = list(scale_up_cells(1_000, workers=True))
    mixed = spread(cells, units)
    assert [one for one in mixed if one.workers] == cells
    assert [one for one in mixed if not one.workers] == units
    assert spread([], units) == units
    assert {one.workers for one in scale_up_cells(1_000, workers=False)} == {1}


def test_a_table_keeps_what_was_measured_beside(tmp_path: Path) -> None:
    cell = Cell(PRIMARY, 1000, "update", 1, 1, 10, workers=4, durable=1)
    one = applied(cell, 1.0, TimePrice(1 * US), 0.0, 0.0)
    write_parquet([one], tmp_path / "cells.parquet")
    assert read_parquet(tmp_path / "cells.parquet") == [one]
    other = replace(one, seconds=2 * one.seconds, beside_seconds=4 * one.beside_seconds)
    both = mean_of([one, other])
    assert both.seconds == pytest.approx(1.5 * one.seconds)
    assert both.beside_seconds == pytest.approx(2.5 * one.beside_seconds)


def test_prices_that_hold_syncs_are_not_charged_for_them_again(tmp_path: Path) -> None:
    log = logs.file(
        tmp_path,
        logs.transaction(1, b"keyed", logs.WRITE, 1),
        logs.transaction(2, b"keyed", logs.WRITE, 2),
    )
    free = logs.calibration()
    shared = {**free.shared, "sync": TimePrice(0.01)}
    found = {}
    for name, settings in (
        ("relaxed", RELAXED),
        ("durable", DURABLE | {"log_bin": "ON", "log_replica_updates": "ON"}),
    ):
        prices = replace(free, shared=shared, settings=settings)
        plan = ForecastPlan(
            files=[log],
            calibration=prices,
            settings={"log_replica_updates": True},
            workers=1,
            what_ifs=("durable",),
        )
        forecast = run(plan).forecast
        found[name] = forecast.base.span
        assert forecast.runs[-1].span == found[name]  # it is durable already
    assert found["relaxed"] - found["durable"] == pytest.approx(2 * 2 * 0.01)
    assert syncs_at(
        {"sync_binlog": "10", "log_bin": "ON", "log_slave_updates": "ON"}
    ) == pytest.approx(0.1)


def test_prices_of_another_machine_have_a_wide_margin() -> None:
    base = Scenario("as it is", RULES["9.7"])
    own, other = logs.calibration(spread=0.2), replace(logs.calibration(spread=0.2), ships=True)
    assert margin(base, {}, own)[0] == pytest.approx(0.2)
    assert margin(base, {}, other)[0] > 2
    assert margin(base, {}, replace(own, unsteadiness=0.4))[0] > 0.4


@pytest.mark.parametrize(("name", "least", "most"), [("9.7", 0.35, 0.5), ("mariadb", 0.6, 0.7)])
def test_beside_a_small_pool_the_margin_is_wider(name: str, least: float, most: float) -> None:
    """Workers of MariaDB wait for pages that are written, four of them longer than is known."""
    base = Scenario("as it is", RULES[name], pool_bytes=float(8 << 20))
    found, said = margin(base, {}, logs.calibration(spread=0.2))
    assert least < found < most
    assert "larger than the buffer pool" in said[0]


@pytest.mark.in_ci
@pytest.mark.parametrize("version", ["5.7", "9.7", "mariadb"])
def test_a_server_applies_it_and_gets_its_settings_back(
    version: str, server_factory: ServerFactory
) -> None:
    with closing(server_factory(version, options={"relay_log": "relay"})) as server:
        endpoint = Endpoint(server.host, server.port, server.user, password=server.password)
        names = (
            "Variable_name LIKE '%parallel%' OR Variable_name IN ('sync_binlog', "
            "'innodb_flush_log_at_trx_commit', 'gtid_slave_pos')"
        )
        before = server.query(f"SHOW GLOBAL VARIABLES WHERE {names}")
        with ServerTarget(endpoint, relay_folder=server.data) as target:
            assert target.runs_workers
            for workers, durable in ((1, 1), (4, 0), (4, 1)):
                cell = Cell(
                    PRIMARY,
                    20_000,
                    "update",
                    1,
                    4,
                    2_000,
                    statements=4,
                    workers=workers,
                    durable=durable,
                )
                measured = target.measure(cell)
                assert measured.cell == cell
                assert measured.seconds > 0 < measured.beside_seconds
            assert target.settings.items() >= RELAXED.items()
        assert server.query(f"SHOW GLOBAL VARIABLES WHERE {names}") == before
        with ServerTarget(endpoint) as target:
            assert not target.runs_workers


def test_a_replica_tells_what_a_read_takes(
    server_factory: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(server_factory("9.7")) as server:
        connection = connect(
            Endpoint(server.host, server.port, server.user, password=server.password)
        )
        try:
            assert live_settings.read_seconds(connection) is None  # too few since its start
            monkeypatch.setattr(live_settings, "FEWEST_READS", 1)
            found = live_settings.read_seconds(connection)
            reads, timed = server.query(live_settings.READS)[0]
            assert found == pytest.approx(int(timed) / int(reads) * 1e-12, rel=0.2)
        finally:
            connection.close()
