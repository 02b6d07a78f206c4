"""The forecast has a clock of its own, without queues and status: it must tell the same times."""

from __future__ import annotations

import random

import pytest

from applier.binlog.gtid_events import MariadbGtidEvent as Marked
from applier.replica.scheduling import MODES, GroupMarks
from applier.timing.clock import ClockConfiguration
from applier.timing.simulate import simulate
from applier.timing.timed import TimedTransaction
from applier.timing.work_clock import Turn, WorkClock


def log_of(seed: int) -> list[TimedTransaction]:
    """Two thousand transactions, ten seconds of work for each second that they come in."""
    random_ = random.Random(seed)
    at, log = 1000.0, []
    for number in range(2000):
        at += random_.expovariate(100)
        committed = max(number - random_.randrange(1, 12), 0)
        log.append(TimedTransaction(at, random_.expovariate(10), 600, 5, committed, number + 1))
    return log


@pytest.mark.parametrize("workers", [1, 2, 4, 16])
@pytest.mark.parametrize("preserve_order", [True, False])
def test_both_clocks_agree(workers: int, preserve_order: bool) -> None:
    log = log_of(workers)
    simulation = simulate(
        log, ClockConfiguration(server="8.0", workers=workers, preserve_commit_order=preserve_order)
    )
    other = WorkClock(workers, preserve_order=preserve_order)
    turns = (
        Turn(each.seconds, last_committed=each.last_committed, sequence_number=each.sequence_number)
        for each in log
    )
    ends = [other.take(each.commit, turn) for each, turn in zip(log, turns, strict=True)]
    assert list(simulation.ends) == pytest.approx(ends, abs=1e-6)


def domains_of(seed: int) -> list[TimedTransaction]:
    """A thousand groups of MariaDB: group commits of several, DDL, groups that wait, three
    domains."""
    random_ = random.Random(seed)
    at, commit, log = 1000.0, 0, []
    for _ in range(1000):
        at += random_.expovariate(100)
        commit += random_.random() < 0.4
        usual = Marked.TRANSACTIONAL | Marked.ALLOW_PARALLEL
        flags = random_.choice(
            (
                usual,
                usual,
                usual,
                usual | Marked.WAITED,
                Marked.ALLOW_PARALLEL,
                Marked.DDL | Marked.STANDALONE,
            )
        )
        marks = GroupMarks(
            random_.choice((0, 0, 3, 9)), commit if random_.random() < 0.8 else 0, flags
        )
        log.append(TimedTransaction(at, random_.expovariate(10), 0, 5, marks=marks))
    return log


@pytest.mark.parametrize("workers", [2, 3, 16])
@pytest.mark.parametrize("mode", MODES[1:])
def test_both_clocks_agree_on_the_domains_of_mariadb(mode: str, workers: int) -> None:
    log = domains_of(workers)
    simulation = simulate(
        log, ClockConfiguration(server="mariadb", workers=workers, parallel_type=mode)
    )
    other = WorkClock(workers, parallel_type=mode)
    ends = [other.take(each.commit, Turn(each.seconds, marks=each.marks)) for each in log]
    assert list(simulation.ends) == pytest.approx(ends, abs=1e-6)
