"""The articles' cases give the articles' numbers; and what the number hides is in the true lag."""

from __future__ import annotations

from functools import cache

import pytest

from applier.timing.scenarios import SCENARIOS, START
from applier.timing.simulation import Simulation


@cache
def runs(name: str) -> dict[str, Simulation]:
    return SCENARIOS[name].run()


def shown(simulation: Simulation, at: float) -> int | None:
    return simulation.seconds_behind(START + at)


def true_lag(simulation: Simulation, at: float) -> float:
    lag = simulation.true_lag(START + at)
    assert lag is not None
    return round(lag, 3)


def peak(simulation: Simulation, seconds: int) -> int:
    return max(
        moment.seconds_behind or 0 for moment in simulation.sample(START, START + seconds, 0.1)
    )


@pytest.mark.parametrize(
    ("scenario", "replica", "at_arrival", "halfway", "highest"),
    [
        ("ddl", "no workers", 0, 15, 30),
        ("ddl", "5.7 and later, workers", 30, 45, 60),
        ("ddl", "5.6, workers", 0, 0, 0),
        ("large-transaction", "no workers", 30, 45, 60),
        ("large-transaction", "5.7 and later, workers", 30, 45, 60),
        ("large-transaction", "5.6, workers", 0, 0, 0),
    ],
)
def test_thirty_seconds_of_work(
    scenario: str, replica: str, at_arrival: int, halfway: int, highest: int
) -> None:
    """While the source works nothing shows; then from what to what the number rises, and down to 0
    at once."""
    simulation = runs(scenario)[replica]
    assert shown(simulation, 35.1) == 0
    assert shown(simulation, 35.21) == at_arrival
    assert shown(simulation, 50.2) == halfway
    assert shown(simulation, 65.29) == highest
    assert shown(simulation, 65.7) == 0
    assert peak(simulation, 75) == highest
    assert true_lag(simulation, 50.2) == 15.0


def test_a_transaction_held_open_looks_ten_minutes_late() -> None:
    single, workers = runs("held-open")["no workers"], runs("held-open")["workers"]
    assert [shown(single, at) for at in (600.0, 605.21, 609.0, 610.3)] == [0, 600, 604, 0]
    assert [shown(workers, at) for at in (605.21, 609.0, 611.0)] == [0, 4, 0]
    assert true_lag(single, 609.0) == true_lag(workers, 609.0) == 3.8


def test_the_number_waits_for_the_checkpoint() -> None:
    replicas = runs("checkpoint-period")
    assert peak(replicas["300 ms (default)"], 100) == 0
    slow = replicas["60 s"]
    assert [shown(slow, at) for at in (5.2, 35.0, 65.05, 66.0)] == [0, 30, 60, 0]
    assert true_lag(slow, 35.0) == 0.0
    steady = replicas["60 s, steady load"]
    assert [shown(steady, at) for at in (59.9, 60.5, 119.9, 120.5, 179.9, 180.5)] == [
        54,
        0,
        59,
        0,
        59,
        0,
    ]


def test_a_clock_that_is_set_makes_any_number() -> None:
    replicas = runs("wrong-clock")
    alone, back, ahead = (
        replicas["clock left alone"],
        replicas["set back by an hour"],
        replicas["set ahead by an hour"],
    )
    assert [shown(replica, 39.0) for replica in (alone, back, ahead)] == [24, 24, 24]
    assert [shown(replica, 41.0) for replica in (alone, back, ahead)] == [26, 0, 3626]
    assert [true_lag(replica, 41.0) for replica in (alone, back, ahead)] == [26.0, 26.0, 26.0]


def test_what_has_not_arrived_is_not_counted() -> None:
    single = runs("slow-network")["1 MB/s"]
    samples = [
        moment for moment in single.sample(START + 6, START + 120, 1.0) if moment.seconds_behind
    ]
    assert samples == []
    assert [true_lag(single, at) for at in (65.0, 124.0)] == [30.0, 59.5]
    left = single.work_left(START + 65.0)
    assert (left.transactions, left.bytes) == (121, 121 * 500_000)
    assert shown(runs("slow-network")["1 MB/s, workers"], 65.0) == 31


def test_a_large_transaction_holds_positions_and_number_but_not_the_others() -> None:
    replicas = runs("gap")
    loose, kept, small_group = (
        replicas["order not kept"],
        replicas["order kept"],
        replicas["order not kept, group of 64"],
    )
    moment = START + 70.1
    assert [replica.low_water_mark(moment) for replica in replicas.values()] == [50, 50, 50]
    assert [replica.seconds_behind(moment) for replica in replicas.values()] == [55, 55, 55]
    assert [replica.gaps(moment) for replica in replicas.values()] == [[50], [], [50]]
    assert loose.work_left(moment).transactions == 1
    assert small_group.work_left(moment).transactions == 325 - 50 - 63
    assert kept.work_left(moment).transactions == 325 - 50


def test_a_delay_on_the_source_lets_workers_work() -> None:
    replicas = runs("group-commit-delay")
    assert peak(replicas["20 ms, 4 workers"], 100) <= 1
    assert [peak(replicas[name], 100) for name in ("no delay, 4 workers", "20 ms, no workers")] == [
        31,
        30,
    ]
    lags = {
        name: [end - commit for end, commit in zip(one.ends, one.commits, strict=True)]
        for name, one in replicas.items()
    }
    assert max(lags["20 ms, 4 workers"][100:]) < 0.02, "last_committed 0 serialises the first group"
    assert max(lags["no delay, 4 workers"]) == pytest.approx(30.0, abs=0.1)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_ends_with_everything_done(name: str) -> None:
    scenario = SCENARIOS[name]
    again = scenario.run()
    for replica, simulation in runs(name).items():
        assert simulation.error is None
        assert shown(simulation, scenario.seconds) == 0
        assert true_lag(simulation, scenario.seconds) == 0.0
        assert simulation.work_left(START + scenario.seconds).transactions == 0
        assert list(again[replica].ends) == list(simulation.ends), "the same input, the same result"
