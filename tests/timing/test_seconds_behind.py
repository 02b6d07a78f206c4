"""Seconds_Behind_Source: the formula by its branches, the timestamp by version, and curves of real
servers."""

from __future__ import annotations

import os

import pytest

from applier.replica.scheduling import RULES
from applier.timing.clock import ClockConfiguration
from applier.timing.seconds_behind import (
    LastSourceTimestamp,
    Timeline,
    clock_difference,
    seconds_behind,
)
from applier.timing.simulate import simulate
from applier.timing.timed import Step, TimedTransaction
from tests.timing.lag_captures import LagCapture, lag_captures

RUNNING = {"applier_running": True, "connected": True, "same_position": False}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, 30),
        ({"connected": False}, 30),
        ({"applier_running": False}, None),
        ({"same_position": True}, 0),
        ({"same_position": True, "connected": False}, None),
        ({"follows_caught_up": True, "same_position": True}, 30),
        ({"follows_caught_up": True, "connected": False}, None),
    ],
)
def test_each_branch_of_the_formula(changed: dict[str, bool], expected: int | None) -> None:
    assert seconds_behind(1030.9, 1000, 0, **{**RUNNING, **changed}) == expected


@pytest.mark.parametrize(
    ("stamp", "difference", "expected"),
    [(0, 0, 0), (1000, 25, 5), (1000, -25, 55), (1000, 31, 0), (1031, 0, 0)],
)
def test_no_timestamp_is_zero_and_the_future_is_no_less(
    stamp: int, difference: int, expected: int
) -> None:
    assert seconds_behind(1030.9, stamp, difference, **RUNNING) == expected


def test_the_clock_difference_holds_the_way_to_the_source() -> None:
    assert clock_difference(1000.2, 1000.9) == 0
    assert clock_difference(1000.8, 1000.8, answer_seconds=0.3) == 1
    assert clock_difference(4600.0, 1000.0) == 3600


@pytest.mark.parametrize(
    ("server", "parallel", "expected"),
    [
        ("5.6", False, [100, 0, 200, 0]),
        ("5.6", True, [0, 0, 0, 0]),
        ("5.7", False, [100, 0, 200, 0]),
        ("5.7", True, [100, 0, 200, 0]),
        ("9.7", True, [100, 0, 200, 0]),
    ],
)
def test_events_set_it_from_idle(server: str, parallel: bool, expected: list[int]) -> None:
    timestamp, seen = LastSourceTimestamp(RULES[server], parallel=parallel), []
    for moment, stamp in ((1.0, 100), (3.0, 200)):
        timestamp.read(moment, stamp)
        seen.append(timestamp.value)
        timestamp.end_of_log(moment + 1)
        seen.append(timestamp.value)
    assert seen == expected


@pytest.mark.parametrize(
    ("server", "after_read", "after_checkpoint", "after_last", "without_time"),
    [("5.6", 100, 150, 170, 170), ("5.7", 100, 160, 0, 0), ("9.7", 100, 160, 0, 0)],
)
def test_with_workers_a_checkpoint_sets_it(
    server: str, after_read: int, after_checkpoint: int, after_last: int, without_time: int
) -> None:
    timestamp = LastSourceTimestamp(RULES[server], parallel=True)
    timestamp.history.set(0.0, 100)
    timestamp.read(1.0, 110)
    assert timestamp.value == after_read, "busy: what is read does not count"
    timestamp.checkpoint(2.0, head=160, done=150)
    assert timestamp.value == after_checkpoint
    timestamp.checkpoint(3.0, head=None, done=170)
    assert timestamp.value == after_last
    timestamp.read(4.0, 0)
    assert timestamp.value == without_time


def test_events_without_time_count_from_8_0_on() -> None:
    for server, expected in (("5.7", 100), ("8.0", 0)):
        timestamp = LastSourceTimestamp(RULES[server], parallel=False)
        timestamp.read(1.0, 100)
        timestamp.read(2.0, 0)
        assert timestamp.value == expected


def test_the_monotonic_rule_takes_no_step_back() -> None:
    timestamp = LastSourceTimestamp(RULES["8.0"], parallel=False, monotonic=True)
    for stamp in (100, 90, 120):
        timestamp.read(float(stamp), stamp)
    assert list(timestamp.history.values) == [100, 120]


def test_a_timeline_holds_changes_only() -> None:
    line = Timeline()
    for moment, value in ((1.0, 5), (2.0, 5), (3.0, 6), (3.0, 7), (4.0, 0)):
        line.set(moment, value)
    assert list(line.times) == [1.0, 3.0, 4.0]
    assert [line.at(moment) for moment in (0.5, 1.0, 2.9, 3.0, 9.0)] == [0, 5, 5, 7, 0]


CAPTURES = list(lag_captures())


def edges(curve: list[int], capture: LagCapture) -> tuple[float, float, int] | None:
    """When it exceeds what the clock's seconds alone show, first and last, and the peak. None when
    it never does."""
    high = [number for number, value in enumerate(curve) if value > 1]
    return (
        (capture.samples[high[0]].time, capture.samples[high[-1]].time, max(curve))
        if high
        else None
    )


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda capture: capture.name)
def test_the_curve_of_a_real_replica(capture: LagCapture) -> None:
    simulated = [value if value is not None else -99 for value in capture.curve(capture.simulate())]
    measured = [
        sample.seconds_behind if sample.seconds_behind is not None else -99
        for sample in capture.samples
    ]
    expected, found = edges(measured, capture), edges(simulated, capture)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert found == pytest.approx(expected, abs=1.05), "start, drop and peak"
    for number, value in enumerate(simulated):  # the same within a second, in time and in value
        near = measured[max(number - 2, 0) : number + 3]
        assert min(near) - 1 <= value <= max(near) + 1


@pytest.mark.parametrize(
    "capture",
    [found for found in CAPTURES if found.configuration().delay_seconds],
    ids=lambda capture: capture.name,
)
def test_the_remaining_delay_of_a_real_replica(capture: LagCapture) -> None:
    """A number while the applier waits, NULL otherwise; where the two change a moment apart, the
    neighbour's."""
    simulated = capture.remaining_delays(capture.simulate())
    measured = [sample.remaining_delay for sample in capture.samples]
    assert [value for value in measured if value is not None]
    differ = [
        number
        for number, value in enumerate(simulated)
        if value not in measured[max(number - 1, 0) : number + 2]
    ]
    assert differ == []


def test_all_curves_are_there() -> None:
    assert CAPTURES
    if not os.environ.get("BINLAG_CAPTURES"):
        assert len(CAPTURES) == 33
        assert {capture.version for capture in CAPTURES} == {"5.6", "5.7", "9.7"}


@pytest.mark.parametrize("server", ["5.7", "8.0", "9.7"])
def test_half_a_transaction_keeps_the_number_up(server: str) -> None:
    """Workers, a slow network: the group has begun, so that the end of the relay log is none; each
    event that comes sets the time again."""
    begun = 1_700_000_000
    log = [
        TimedTransaction(
            begun + number, 0.001, 40_000, 8, number - 1, number,
            steps=(Step(begun + number, begun + number, 1, 65, 0.0),
                   Step(begun + number, begun + number, 7, 39_935, 0.001)),
        )
        for number in range(1, 9)
    ]  # fmt: skip
    slow = simulate(
        iter(log),
        ClockConfiguration(
            server=server, workers=4, network_bytes_per_second=20_000, start=float(begun)
        ),
    )
    moments = [begun + 4.0 + number / 10 for number in range(100)]
    numbers = [slow.seconds_behind(moment) or 0 for moment in moments]
    assert sum(number > 0 for number in numbers) > 75
    assert max(numbers) == 7
    single = simulate(
        iter(log),
        ClockConfiguration(
            server="5.7", workers=0, network_bytes_per_second=20_000, start=float(begun)
        ),
    )
    assert sum((single.seconds_behind(moment) or 0) > 0 for moment in moments) < 25
