"""Coordinator and workers: the rules one by one, and random logs against a model that works tick by
tick."""

from __future__ import annotations

import os
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.timing.clock import ClockConfiguration
from applier.timing.simulate import simulate
from applier.timing.simulation import Simulation
from applier.timing.timed import ALL_DATABASES, TimedTransaction
from tests.timing.naive import Naive

START = 1000
EXAMPLES = settings(max_examples=400 if os.environ.get("BINLAG_ALL_CASES") else 100)


@st.composite
def logs(draw: st.DrawFn) -> list[TimedTransaction]:
    """Logs as a source writes them: numbers ascend and begin anew, dependencies point back, commits
    do not go back."""
    result: list[TimedTransaction] = []
    at, number = START, 0
    for _ in range(draw(st.integers(1, 40))):
        at += draw(st.sampled_from([0, 0, 0, 1, 2, 9]))
        step = draw(st.sampled_from([1, 1, 1, 1, 1, 2]))
        number = 1 if draw(st.integers(0, 19)) == 0 and not result else number + step
        committed = max(number - draw(st.integers(1, 8)), 0)
        databases = draw(
            st.sampled_from([("a",), ("b",), ("c",), ("d",), ("a", "b"), ("c", "a"), ALL_DATABASES])
        )
        stamp = at - draw(st.integers(0, 3))
        result.append(
            TimedTransaction(
                float(at),
                float(draw(st.integers(1, 12))),
                draw(st.sampled_from([1, 10, 40, 90])),
                1,
                committed,
                number,
                stamp,
                stamp + draw(st.integers(0, 2)),
                stamp + draw(st.integers(0, 2)),
                databases,
            )
        )
    return result


configurations = (
    st.builds(
        ClockConfiguration,
        server=st.sampled_from(["5.7", "8.0"]),
        workers=st.integers(1, 5),
        parallel_type=st.sampled_from(["DATABASE", "LOGICAL_CLOCK"]),
        checkpoint_period_seconds=st.sampled_from([1.0, 3.0, 20.0]),
        checkpoint_group=st.sampled_from([1, 2, 5, 512]),
        pending_jobs_size_max=st.sampled_from([60, 100, 1 << 24]),
        preserve_commit_order=st.just(False),
    )
    | st.builds(
        ClockConfiguration,
        server=st.sampled_from(["8.0", "9.7"]),
        workers=st.integers(1, 5),
        checkpoint_period_seconds=st.sampled_from([1.0, 3.0, 20.0]),
        checkpoint_group=st.sampled_from([1, 2, 5, 512]),
        pending_jobs_size_max=st.sampled_from([60, 100, 1 << 24]),
    )
    | st.builds(
        ClockConfiguration,
        server=st.just("5.6"),
        workers=st.integers(1, 5),
        checkpoint_period_seconds=st.sampled_from([1.0, 3.0, 20.0]),
        checkpoint_group=st.sampled_from([2, 5, 512]),
    )
)


@EXAMPLES
@given(logs(), configurations)
def test_the_naive_model_agrees(
    log: list[TimedTransaction], configuration: ClockConfiguration
) -> None:
    simulation = simulate(log, replace(configuration, start=float(START)))
    last = int(simulation.end) + 50
    naive = Naive(log, configuration, START)
    naive.run(last)
    everyone = range(len(log))
    assert list(simulation.starts) == [naive.starts[number] for number in everyone]
    assert list(simulation.ends) == [naive.ends[number] for number in everyone]
    assert list(simulation.workers) == [naive.who[number] for number in everyone]
    assert simulation.positions is not None
    ticks = range(START, last + 1)
    assert [simulation.positions.at(tick) for tick in ticks] == naive.shown
    assert [simulation.timestamp.at(tick) for tick in ticks] == naive.stamps


@EXAMPLES
@given(logs(), configurations)
def test_order_gaps_and_low_water_mark_obey_the_rules(
    log: list[TimedTransaction], configuration: ClockConfiguration
) -> None:
    simulation = simulate(log, configuration)
    ends, starts = list(simulation.ends), list(simulation.starts)
    if configuration.commit_order:
        assert ends == sorted(ends)
    for moment in {*starts, *ends}:
        done = {number for number, end in enumerate(ends) if end <= moment}
        mark = simulation.low_water_mark(moment)
        assert mark == next((number for number in range(len(log)) if number not in done), len(log))
        assert simulation.gaps(moment) == [
            number for number in range(max(done, default=0)) if number not in done
        ]
        assert simulation.positions is not None
        assert simulation.positions.at(moment) <= mark
        running = [number for number in range(len(log)) if starts[number] <= moment < ends[number]]
        assert len(running) <= configuration.worker_count
        if configuration.commit_order:
            assert simulation.gaps(moment) == []
    assert simulation.work_left(simulation.end).transactions == 0


def log_of(count: int, *, seconds: float = 1.0, apart: float = 0.0) -> list[TimedTransaction]:
    """Transactions without dependencies, in one group commit."""
    return [
        TimedTransaction(START + number * apart, seconds, 100, 1, min(number, 1), number + 1)
        for number in range(count)
    ]


def run(log: list[TimedTransaction], **options: object) -> Simulation:
    return simulate(log, ClockConfiguration(**options))  # type: ignore[arg-type]


def since(simulation: Simulation, moments: list[float]) -> list[float]:
    return [moment - START for moment in moments]


@pytest.mark.parametrize(
    ("server", "committed", "number", "error"),
    [
        ("5.7", 3, 3, 1756),
        ("8.0", 3, 3, 1756),
        ("8.0", 1, 2, 1756),
        ("9.7", 3, 3, None),
        ("9.7", 1, 2, None),
    ],
)
def test_an_impossible_order_stops_until_8_0_and_serialises_later(
    server: str, committed: int, number: int, error: int | None
) -> None:
    log = [
        *log_of(2),
        *(
            TimedTransaction(START, 1.0, 100, 1, *numbers)
            for numbers in ((committed, number), (3, 4))
        ),
    ]
    simulation = run(log, server=server, workers=4, parallel_type="LOGICAL_CLOCK")
    assert (simulation.error.number if simulation.error else None) == error
    expected = [1.0, 2.0, inf, inf] if error else [1.0, 2.0, 3.0, 4.0]
    assert since(simulation, list(simulation.ends)) == expected


def test_the_first_transaction_of_a_source_file_waits_for_all() -> None:
    log = log_of(4, seconds=5.0)
    log += [
        replace(transaction, starts_file=number == 0)
        for number, transaction in enumerate(log_of(3, seconds=5.0))
    ]
    simulation = run(log, server="8.0", workers=8)
    assert since(simulation, list(simulation.starts)) == [0, 5, 5, 5, 10, 15, 15]


def test_events_too_large_for_the_memory() -> None:
    log = [
        replace(transaction, bytes=size)
        for transaction, size in zip(log_of(4, seconds=10.0), (100, 5000, 100, 100), strict=True)
    ]
    log = [
        replace(transaction, databases=(f"d{number}",)) for number, transaction in enumerate(log)
    ]
    stopped = run(log, server="5.6", workers=4, pending_jobs_size_max=1000)
    assert stopped.error is not None
    assert stopped.error.number == 1864
    assert since(stopped, list(stopped.ends)) == [10, inf, inf, inf]
    waits = run(log, server="5.7", workers=4, pending_jobs_size_max=1000)
    assert since(waits, list(waits.starts)) == [0, 10, 20, 20], "alone"


def test_a_transaction_larger_than_the_memory_holds_the_coordinator() -> None:
    log = [
        replace(transaction, databases=(f"d{number}",))
        for number, transaction in enumerate(log_of(2, seconds=100.0))
    ]
    log[0] = replace(log[0], bytes=100_000, events=1000)
    simulation = run(log, server="5.7", workers=4, pending_jobs_size_max=20_000)
    assert since(simulation, list(simulation.starts))[1] == pytest.approx(80.0, abs=2.0), (
        "until the last fifth fits in"
    )


@pytest.mark.parametrize(
    ("options", "errors", "ends", "error"),
    [
        ({"server": "8.0", "workers": 0}, 3, 4 * 2.0 + 0 + 1 + 2, None),
        ({"server": "8.0", "workers": 2}, 3, 4 * 2.0 + 1 + 2 + 3, None),
        ({"server": "8.0", "workers": 2}, 7, 8 * 2.0 + 1 + 2 + 3 + 4 + 5 + 5 + 5, None),
        ({"server": "8.0", "workers": 2, "transaction_retries": 2}, 3, inf, 1213),
        ({"server": "5.6", "workers": 0}, 1, 4.0, None),
        ({"server": "5.6", "workers": 2}, 1, inf, 1213),
    ],
)
def test_retries(options: dict[str, object], errors: int, ends: float, error: int | None) -> None:
    simulation = run([replace(log_of(1, seconds=2.0)[0], errors=errors)], **options)
    assert since(simulation, list(simulation.ends)) == [ends]
    assert (simulation.error.number if simulation.error else None) == error


def test_an_error_of_a_worker_may_leave_a_gap() -> None:
    log = [
        replace(transaction, databases=(f"d{number}",))
        for number, transaction in enumerate(log_of(6, seconds=3.0))
    ]
    log[2] = replace(log[2], errors=1)
    simulation = run(log, server="5.7", workers=3, transaction_retries=0)
    assert since(simulation, list(simulation.ends)) == [3, 3, inf, inf, inf, inf]
    log[2] = replace(log[2], seconds=1.0)
    log[0] = replace(log[0], seconds=0.5)
    gap = run(log, server="5.7", workers=3, transaction_retries=0)
    assert gap.gaps(START + 100.0) == [2]
    assert since(gap, list(gap.ends)) == [0.5, 3, inf, 3.5, inf, inf]
    assert gap.stopped_at == START + 3.5
    assert gap.seconds_behind(START + 4.0) is None


def test_stop_leaves_no_gap() -> None:
    log = [
        replace(transaction, databases=("a" if number in (0, 1) else f"d{number}",))
        for number, transaction in enumerate(log_of(5))
    ]
    log[0] = replace(log[0], seconds=10.0)
    simulation = run(log, server="5.7", workers=5, stop=START + 0.5)
    assert since(simulation, list(simulation.ends)) == [10, 11, 1, 1, 1], (
        "what waits before one that began is executed as well"
    )
    assert simulation.gaps(START + 100.0) == []
    assert simulation.seconds_behind(START + 5.0) is not None
    assert simulation.seconds_behind(START + 11.0) is None


@pytest.mark.parametrize(("rolls_back", "ends"), [(True, [1, inf, inf]), (False, [1, 2, inf])])
def test_stop_without_workers_rolls_back_what_it_can(rolls_back: bool, ends: list[float]) -> None:
    log = [replace(transaction, rolls_back=rolls_back) for transaction in log_of(3)]
    simulation = run(log, server="8.0", workers=0, stop=START + 1.5)
    assert since(simulation, list(simulation.ends)) == ends
    assert simulation.seconds_behind(START + 3.0) is None


def test_a_stopped_receiver_shows_a_number_while_there_is_work_and_then_null() -> None:
    simulation = run(
        log_of(4, seconds=10.0, apart=2.0), server="8.0", workers=0, receiver_stop=START + 3.0
    )
    assert since(simulation, list(simulation.ends)) == [10, 20, inf, inf]
    assert [simulation.seconds_behind(START + at) for at in (2.5, 15.0, 21.0)] == [2, 13, None]
    assert simulation.true_lag(START + 30.0) == 26.0
    assert simulation.work_left(START + 30.0).seconds is None


def test_a_checkpoint_group_of_one_still_runs() -> None:
    simulation = run(log_of(5), server="8.0", workers=4, checkpoint_group=1)
    assert since(simulation, list(simulation.ends)) == [1, 2, 3, 4, 5]


def test_the_head_of_a_relay_log_counted_as_an_event_of_the_source() -> None:
    """Bug #72376: it carries the replica's time, and an applier with workers takes the first time
    that it reads."""
    log = [TimedTransaction(START, 60.0, 100, 1, 0, 1, stamp=START - 100, starts_file=True)]
    fixed, broken = (
        run(log, server="5.7", workers=2, start=START, counts_relay_events=counts)
        for counts in (False, True)
    )
    assert [fixed.seconds_behind(START + 30.0), broken.seconds_behind(START + 30.0)] == [130, 30]


def test_nothing_at_all() -> None:
    simulation = simulate([])
    assert (len(simulation), simulation.seconds_behind(5.0), simulation.true_lag(-1.0)) == (
        0,
        0,
        None,
    )
