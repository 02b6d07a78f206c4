"""The replica as it is: who says what, the versions' defaults, and what cannot be taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from applier.errors import UsageError
from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.prices.calibration import APPLIER, OWN_LOG, STATEMENTS, TimePrice
from applier.forecast.prices.conditions import KINDS, Live, conditions, defaults, size, span
from tests.forecast.logs import UPDATE, calibration, file, schema, transaction


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("5.6", (0, "DATABASE", False, 0, False)),
        ("5.7.29", (0, "DATABASE", False, 1, False)),
        ("8.0.26", (0, "DATABASE", False, 1, True)),
        ("8.0.27", (4, "LOGICAL_CLOCK", True, 1, True)),
        ("8.0", (4, "LOGICAL_CLOCK", True, 1, True)),
        ("8.4", (4, "LOGICAL_CLOCK", True, 1, True)),
        ("9.7.4", (4, "LOGICAL_CLOCK", True, 1, True)),
        ("10.11.18-MariaDB", (0, "optimistic", True, 0, False)),
        ("10.4.30-MariaDB", (0, "conservative", True, 0, False)),
    ],
)
def test_defaults_are_those_of_the_version(version: str, expected: tuple[Any, ...]) -> None:
    found = defaults(version)
    names = ("workers", "parallel_type", "preserve_commit_order", "sync_binlog")
    assert tuple(found[name] for name in (*names, "log_replica_updates")) == expected
    assert found["innodb_flush_log_at_trx_commit"] == 1
    assert found["buffer_pool"] == 128 << 20


def test_an_option_wins_over_a_live_replica_and_that_over_the_version() -> None:
    live = Live("9.7.4", {"replica_parallel_workers": "8", "sync_binlog": "100"}, is_here=True)
    found = conditions(
        "9.7.4",
        {"sync_binlog": 1},
        live,
        measured={"cores": 2, "read_latency": 1e-4, "sync_latency": 2e-4},
        cores_here=16,
    )
    assert set(found.values) == set(KINDS) - {"redo_log", "row_search"}  # of older ones
    said = {name: (one.value, one.source) for name, one in found.values.items()}
    assert said["sync_binlog"] == (1, "option")
    assert said["workers"] == (8, "live replica")
    assert said["cores"] == (16, "this machine")
    assert said["read_latency"] == (1e-4, "calibration")
    assert said["sync_latency"] == (2e-4, "calibration")
    assert said["parallel_type"] == ("LOGICAL_CLOCK", "default of 9.7")
    assert said["iops"] == (None, "assumed")
    assert found.doubts == ()
    assert "workers 8" in found.sentence() and "128 MiB" in found.sentence()


@pytest.mark.parametrize(
    ("version", "told", "given", "searched", "source"),
    [
        ("5.7", "INDEX_SCAN,HASH_SCAN", None, {"INDEX_SCAN", "HASH_SCAN"}, "live replica"),
        ("5.7", "INDEX_SCAN,HASH_SCAN", "TABLE_SCAN", {"TABLE_SCAN"}, "option"),
        ("5.7", None, None, None, "default of 5.7"),
        ("8.0", "TABLE_SCAN", None, {"TABLE_SCAN"}, "live replica"),
        ("9.7", "TABLE_SCAN", None, None, ""),  # it has no such variable
    ],
)
def test_rows_are_searched_for_as_the_live_replica_says(
    tmp_path: Path,
    version: str,
    told: str | None,
    given: str | None,
    searched: set[str] | None,
    source: str,
) -> None:
    variables = {} if told is None else {"slave_rows_search_algorithms": told}
    plan = ForecastPlan(
        files=[file(tmp_path, transaction(1, b"plain", UPDATE, 7))], server=version,
        row_search=given, live=Live(version, variables),
    )  # fmt: skip
    found = run(plan).forecast
    assert found.base.scenario.row_search == searched
    assert found.conditions is not None
    assert getattr(found.conditions.values.get("row_search"), "source", "") == source


def test_rows_are_searched_for_as_a_setting_says(tmp_path: Path) -> None:
    plan = ForecastPlan(
        files=[file(tmp_path, transaction(1, b"plain", UPDATE, 7))],
        server="5.7",
        settings={"row_search": "INDEX_SCAN,HASH_SCAN"},
    )
    assert run(plan).forecast.base.scenario.row_search == {"INDEX_SCAN", "HASH_SCAN"}


def test_a_replica_elsewhere_has_the_cores_of_the_calibration() -> None:
    found = conditions("9.7", {}, Live("9.7.4", {}), measured={"cores": 2}, cores_here=16)
    assert found.values["cores"].value == 2


@pytest.mark.parametrize(
    ("flush", "sync", "log", "syncs"),
    [
        (1, 1, True, 2.0),
        (1, 100, True, 1.01),
        (2, 0, True, 0.0),
        (1, 1, False, 1.0),
        (0, 1, True, 1),
    ],
)
def test_syncs_of_a_commit(flush: int, sync: int, log: bool, syncs: float) -> None:
    given = {
        "innodb_flush_log_at_trx_commit": flush, "sync_binlog": sync, "log_replica_updates": log,
    }  # fmt: skip
    assert conditions("9.7", given).syncs == pytest.approx(syncs)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("innodb_buffer_pool_size", "0"),
        ("innodb_flush_log_at_trx_commit", "7"),
        ("replica_parallel_workers", "many"),
        ("slave_parallel_mode", "wild"),
    ],
)
def test_what_a_replica_says_and_cannot_be_is_told_and_the_default_taken(
    variable: str, text: str
) -> None:
    found = conditions("9.7", {}, Live("9.7.4", {variable: text}))
    (doubt,) = found.doubts
    assert variable in doubt and "assumed" in doubt and "\n" not in doubt
    assert found.values == conditions("9.7", {}).values


def test_a_replica_that_tells_nothing_is_told() -> None:
    assert conditions("9.7", {}, Live("9.7.4", {}, refused="it refuses")).doubts == ("it refuses",)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("cores", 0, "--cores: 0 is not 1 or more"),
        ("iops", 0, "--iops: 0 is not more than 0"),
        ("read_latency", 0.0, "--read-latency: 0.0 is not more than 0"),
        ("sync_latency", -1.0, "--sync-latency: -1.0 is not more than 0"),
    ],
)
def test_options_out_of_range_are_refused(name: str, value: float, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        conditions("9.7", {name: value})


@pytest.mark.parametrize(
    ("name", "hint"), [("bufer_pool", "did you mean buffer_pool?"), ("x", "one of workers, ")]
)
def test_a_setting_that_is_none_is_refused(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"setting '{name}' is not known") as caught:
        conditions("9.7", {name: 1})
    assert str(caught.value.hint).startswith(hint)


def test_workers_may_be_a_setting_too(tmp_path: Path) -> None:
    plan = ForecastPlan(
        [file(tmp_path, transaction(1, b"plain", UPDATE, 1))],
        facts=facts_of_file(schema(tmp_path)),
        calibration=calibration(),
        settings={"workers": 7, "preserve_commit_order": False},
    )
    found = run(plan).summary()["replica"]["settings"]
    assert (found["workers"]["value"], found["preserve_commit_order"]["value"]) == (7, False)
    found = run(replace(plan, workers=3)).summary()["replica"]["settings"]
    assert found["workers"]["value"] == 3, "the argument of that name is nearer"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("158us", "158 µs"),
        ("2ms", "2 ms"),
        ("999.9us", "1 ms"),
        ("1.5s", "1.5 s"),
        ("0.1us", "0.1 µs"),
    ],
)
def test_a_time_is_shown_without_a_power_of_ten(text: str, shown: str) -> None:
    found = conditions("9.7", {"sync_latency": text}).sentence()
    assert f"sync_latency {shown} (option)" in found


def test_sizes_and_times() -> None:
    assert [size(text) for text in ("134217728", "128M", "1.5G", "64MiB")] == [
        128 << 20, 128 << 20, 3 << 29, 64 << 20,
    ]  # fmt: skip
    assert [span(text) for text in ("500us", "0.5ms", "25µs", "1s")] == pytest.approx(
        [5e-4, 5e-4, 2.5e-5, 1.0]
    )
    for read, text in ((size, "big"), (size, "0"), (span, "5"), (span, "1h")):
        with pytest.raises(ValueError):
            read(text)


@pytest.mark.parametrize(
    ("log_bin", "updates", "logs"), [("ON", "ON", True), ("ON", "OFF", False), ("OFF", "ON", False)]
)
def test_a_replica_has_a_log_of_its_own_where_both_variables_are_on(
    log_bin: str, updates: str, logs: bool
) -> None:
    live = Live("10.11.18-MariaDB", {"log_bin": log_bin, "log_slave_updates": updates})
    found = conditions(live.version, {"sync_binlog": 1}, live)
    assert found["log_replica_updates"] == logs
    assert found.syncs == 1 + logs


@pytest.mark.parametrize("measured", [True, False])
def test_prices_of_the_other_kind_are_changed_and_that_is_said(
    measured: bool, tmp_path: Path
) -> None:
    """`measured`: on a server with a binary log of its own."""
    log = file(tmp_path, transaction(1, b"keyed", UPDATE, 1), transaction(2, b"keyed", UPDATE, 2))
    facts = facts_of_file(schema(tmp_path))
    told = {"log_bin": "ON", "log_replica_updates": "ON" if measured else "OFF"}
    known = replace(calibration(), target=APPLIER)
    prices = replace(known, settings=told, shared={**known.shared, OWN_LOG: TimePrice(250e-6)})
    prices = replace(
        prices, prices=prices.prices.with_more("transaction", 1.0).with_more("event", 1.0)
    )
    seconds, said = {}, {}
    for logs in (True, False):
        found = run(
            ForecastPlan(
                files=[log],
                facts=facts,
                calibration=prices,
                settings={"log_replica_updates": logs, "sync_binlog": 0},
            )
        )
        seconds[logs] = found.forecast.base.seconds
        said[logs] = [one for one in found.forecast.assumptions() if "binary log of its own" in one]
    assert seconds[True] - seconds[False] == pytest.approx(2 * 5 * 250e-6)
    assert said[measured] == []
    assert len(said[not measured]) == 1
    assert f"250 µs {'less' if measured else 'more'}" in said[not measured][0]
    by_clients = replace(prices, target=STATEMENTS)
    assert by_clients.with_own_log(not measured) is by_clients
