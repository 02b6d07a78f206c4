"""Workers in a table without a key: the rules by hand, and beside what a real 9.7.4 did.

The counts are those of benchmarks/results/keyless_workers_9.7.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from applier.forecast.answers.words import lock_sentence
from applier.timing.scan_locks import MOST_WORKERS, ScannedTable, contention, contentions
from applier.timing.work_clock import Turn, WorkClock

RESULTS = Path(__file__).parents[2] / "benchmarks/results/keyless_workers_9.7.json"
SCAN = 0.01


def table(workers: int, count: int, *, overtaking: int = 0, late: float = 0.0) -> ScannedTable:
    """One that is done, with scans of the same length."""
    found = ScannedTable(workers, [SCAN] * count, late=[late] * count, overtaking=overtaking)
    found.run()
    return found


def test_in_turn_one_worker_after_the_other_is_in_the_table() -> None:
    for workers in (1, 2, 4):
        found = table(workers, 20)
        assert found.committed == pytest.approx([SCAN * (at + 1) for at in range(20)])
        assert sum(found.retries) == 0


def test_who_overtakes_is_rolled_back_and_from_then_on_each_that_follows() -> None:
    found = table(2, 20, overtaking=3)
    assert found.retries == [0, 0, 0, *[1] * 17]
    assert found.attempts == [1, 1, 1, *[2] * 17]
    gaps = [
        after - before
        for before, after in zip(found.committed[3:], found.committed[4:], strict=False)
    ]
    assert gaps == pytest.approx([1.0] * len(gaps), abs=3 * SCAN)


def test_all_are_committed_in_the_order_of_the_log() -> None:
    for workers in (2, 3, 4, 8):
        found = table(workers, 50, overtaking=workers + 1)
        assert len(found.committed) == 50
        assert found.committed == sorted(found.committed)
        assert [
            attempts - retries
            for attempts, retries in zip(found.attempts, found.retries, strict=True)
        ] == [1] * 50


def test_contentions_have_a_row_for_each_number_of_workers() -> None:
    assert [len(contentions(workers)) for workers in (2, 4, 99)] == [1, 3, MOST_WORKERS - 1]


def clock_seconds(clock: WorkClock, count: int, scan: float, tables: int = 1) -> float:
    """Of transactions that nothing ties to each other and that scan one of these tables."""
    turns = [
        Turn(scan, 0.0, 0.0, 1, min(at, 1), at + 1, scanned=at % tables, scan=scan)
        for at in range(count)
    ]
    return max(clock.take(0.0, turn) for turn in turns)


def test_the_clock_counts_the_seconds_and_retries_of_the_rule() -> None:
    clock = WorkClock(4)
    said = contention(4, SCAN)
    assert clock_seconds(clock, 400, SCAN) / 400 == pytest.approx(said.seconds, rel=0.1)
    assert clock.retries / 400 == pytest.approx(said.retries, rel=0.1)
    assert clock_seconds(WorkClock(4, in_turn=True), 400, SCAN) == pytest.approx(400 * SCAN)


def test_nobody_is_rolled_back_without_commit_order_or_a_second_worker() -> None:
    one, unordered = WorkClock(1), WorkClock(4, preserve_order=False)
    assert clock_seconds(one, 100, SCAN) == pytest.approx(100 * SCAN)
    assert clock_seconds(unordered, 100, SCAN) == pytest.approx(100 * SCAN)
    assert one.retries == unordered.retries == 0


def test_scans_of_different_tables_do_not_lock_each_other() -> None:
    said = clock_seconds(WorkClock(4), 100, SCAN, tables=4)
    assert said == pytest.approx(26 * SCAN)  # all wait for the first one


def test_a_replica_that_is_not_behind_scans_in_turn() -> None:
    clock = WorkClock(4)
    done = [
        clock.take(
            at * 1.5 * SCAN, Turn(SCAN, 0.0, 0.0, 1, min(at, 1), at + 1, scanned=0, scan=SCAN)
        )
        for at in range(50)
    ]
    assert done[-1] == pytest.approx(49 * 1.5 * SCAN + SCAN)
    assert clock.retries == 0


def real(workers: int) -> list[dict[str, Any]]:
    """Runs in which workers did overtake each other."""
    runs: list[dict[str, Any]] = json.loads(RESULTS.read_text())["runs"]
    return [
        one for one in runs if one["workers"] == workers and (workers == 1 or one["retries"] > 0.5)
    ]


@pytest.mark.parametrize("workers", [2, 4])
def test_beside_a_real_replica(workers: int) -> None:
    """A run begins in turn until the first overtakes; the rule is what follows."""
    alone = mean(one["scans"] for one in real(1))
    runs = real(workers)
    said = contention(workers, mean(one["seconds"] for one in real(1)) / runs[0]["transactions"])
    assert said.seconds * 1000 == pytest.approx(mean(one["milliseconds"] for one in runs), rel=0.35)
    assert said.retries == pytest.approx(mean(one["retries"] for one in runs), rel=0.35)
    assert 1 + said.retries == pytest.approx(mean(one["scans"] for one in runs) / alone, rel=0.35)


def test_the_answer_names_the_locks_where_transactions_are_rolled_back() -> None:
    assert "wait for each other's locks. About 12 times" in lock_sentence(12.3)
    assert lock_sentence(0.0) == ""
