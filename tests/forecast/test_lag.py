"""The forecast's clock: against the full simulation of the replica, and by hand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.timing.clock import ClockConfiguration
from applier.timing.lag import LagCurve
from applier.timing.simulate import simulate
from applier.timing.timed import TimedTransaction
from applier.timing.work_clock import Turn, WorkClock

START = 1_700_000_000.0


def transactions(seed: int, count: int, parallel: int, gaps: bool) -> list[TimedTransaction]:
    """Transactions of a log; with `gaps` some sequence numbers and commit parents are missing."""
    chance = random.Random(seed)
    found, time, number = [], START, 0
    for _ in range(count):
        time += chance.choice((0.0, 0.25, 1.0))
        number += 2 if gaps and chance.random() < 0.1 else 1
        parent = (
            0 if gaps and chance.random() < 0.1 else max(number - chance.randint(1, parallel), 0)
        )
        found.append(
            TimedTransaction(
                time,
                chance.choice((0.0, 0.5, 2.0, 8.0)),
                last_committed=parent,
                sequence_number=number,
            )
        )
    return found


def ends(log: list[TimedTransaction], workers: int) -> list[float]:
    mine = WorkClock(workers)
    return [mine.take(one.commit, turn(one)) for one in log]


def turn(one: TimedTransaction) -> Turn:
    return Turn(one.seconds, last_committed=one.last_committed, sequence_number=one.sequence_number)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 8))
def test_one_worker_is_done_when_the_simulated_replica_is(
    seed: int, count: int, parallel: int
) -> None:
    log = transactions(seed, count, parallel, gaps=False)
    told = simulate(log, ClockConfiguration(server="5.7", workers=0))
    assert ends(log, 1) == pytest.approx(list(told.ends))


@given(
    st.integers(0, 10_000),
    st.integers(1, 40),
    st.integers(1, 8),
    st.sampled_from((2, 3, 8)),
    st.booleans(),
)
def test_workers_are_done_when_the_simulated_ones_are(
    seed: int, count: int, parallel: int, workers: int, gaps: bool
) -> None:
    log = transactions(seed, count, parallel, gaps)
    told = simulate(log, ClockConfiguration(server="8.0", workers=workers))
    assert ends(log, workers) == pytest.approx(list(told.ends), abs=1e-5)


def test_without_commit_order_a_small_transaction_is_done_first() -> None:
    kept, free = WorkClock(2), WorkClock(2, preserve_order=False)
    steps = [(1.0, 0, 1), (9.0, 1, 2), (1.0, 1, 3)]
    turns = [
        Turn(seconds, last_committed=parent, sequence_number=number)
        for seconds, parent, number in steps
    ]
    for turn_of in turns[:1]:
        kept.take(0.0, turn_of), free.take(0.0, turn_of)
    assert [mine.take(0.0, turns[1]) for mine in (kept, free)] == [10.0, 10.0]
    assert [mine.take(0.0, turns[2]) for mine in (kept, free)] == [10.0, 2.0]


def test_a_single_worker_waits_for_work() -> None:
    single = WorkClock()
    turns = [(10.0, 2.0), (11.0, 1.0), (20.0, 1.0)]
    assert [single.take(at, Turn(seconds)) for at, seconds in turns] == [12.0, 13.0, 21.0]


def test_the_curve_rises_while_a_transaction_is_applied() -> None:
    curve = LagCurve(most=8)
    curve.add(0.0, 0.0, 3.5)
    curve.add(2.0, 3.5, 4.0)
    assert [value for _, value in curve] == [1.0, 2.0, 3.0, 3.5, 2.0]
    assert (curve.peak, curve.peak_at) == (3.5, 3.5)


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 500)), min_size=1, max_size=60))
def test_a_curve_is_short_and_keeps_its_peak(steps: list[tuple[float, float]]) -> None:
    curve, time, done = LagCurve(most=16), START, START
    lags = []
    for wait, seconds in steps:
        time += wait
        begin, done = max(done, time), max(done, time) + seconds
        curve.add(time, begin, done)
        lags.append(done - time)
    assert len(curve.values) <= 16
    assert max(curve.values) == pytest.approx(max(lags)) == pytest.approx(curve.peak)
