"""Workers of MariaDB on the clock: by hand, and beside a model that goes tick by tick."""

from __future__ import annotations

import random
from typing import Any

import pytest

from applier.binlog.gtid_events import MariadbGtidEvent as Marked
from applier.errors import UsageError
from applier.replica.scheduling import HALF_ALTER, MODES, GroupMarks
from applier.timing.clock import ClockConfiguration
from applier.timing.simulate import simulate
from applier.timing.simulation import Simulation
from applier.timing.timed import TimedTransaction
from tests.timing.naive_domains import NaiveDomains

USUAL = Marked.TRANSACTIONAL | Marked.ALLOW_PARALLEL
DDL = Marked.DDL | Marked.STANDALONE
START = 1000


def group(
    commit_id: int = 0,
    *,
    domain: int = 0,
    flags: int = USUAL,
    seconds: float = 1.0,
    at: float = START,
    size: int = 300,
) -> TimedTransaction:
    return TimedTransaction(at, seconds, size, 5, marks=GroupMarks(domain, commit_id, flags))


def run(log: list[TimedTransaction], mode: str, workers: int = 4, **options: Any) -> Simulation:
    return simulate(
        log, ClockConfiguration(server="mariadb", workers=workers, parallel_type=mode, **options)
    )


def starts(simulation: Simulation) -> list[float]:
    return [moment - START for moment in simulation.starts]


MIXED = [
    group(5),
    group(5),
    group(6),
    group(6, flags=DDL),
    group(),
    group(domain=1),
    group(flags=USUAL | Marked.WAITED),
]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("none", [0, 1, 2, 3, 4, 5, 6]),
        ("minimal", [0, 1, 2, 3, 4, 5, 6]),
        ("conservative", [0, 0, 1, 2, 3, 1, 4]),
        ("optimistic", [0, 0, 0, 1, 2, 1, 3]),
        ("aggressive", [0, 0, 0, 1, 2, 1, 2]),
    ],
)
def test_what_goes_beside_what(mode: str, expected: list[float]) -> None:
    assert starts(run(MIXED, mode)) == expected


def test_by_position_all_domains_are_one() -> None:
    log = [group(seconds=3), group(domain=7)]
    assert list(run(log, "conservative").ends) == [START + 3, START + 1]
    assert list(run(log, "conservative", by_position=True).ends) == [START + 3, START + 4]


def test_a_group_that_began_to_commit_lets_the_next_batch_begin_before_it_is_committed() -> None:
    log = [group(1, seconds=5), group(1), group(2)]
    simulation = run(log, "conservative")
    assert starts(simulation) == [0, 0, 5]
    log = [group(1, seconds=5), group(1), group(flags=Marked.ALLOW_PARALLEL)]
    assert starts(run(log, "optimistic")) == [0, 0, 5]
    assert list(run(log, "optimistic").ends) == [START + 5, START + 5, START + 6]


def test_a_domain_has_so_many_threads_and_no_more() -> None:
    log = [group(1), group(1), group(1), group(domain=3)]
    assert starts(run(log, "conservative", 3)) == [0, 0, 0, 1]
    assert starts(run(log, "conservative", 3, domain_workers=2)) == [0, 0, 1, 0]


def test_a_queue_that_is_full_holds_up_the_other_domains() -> None:
    log = [group(seconds=10, size=1_000_000), group(domain=1)]
    assert starts(run(log, "optimistic", max_queued_bytes=2_000_000)) == [0, 0]
    held_up = run(log, "optimistic", max_queued_bytes=200_000)
    # the last of five events goes in when 200,000 bytes of the others are left
    assert held_up.starts[1] - START == pytest.approx(10 - 10 * 200_000 / 800_000, abs=0.01)


def test_what_waits_in_a_queue_fills_it_as_well() -> None:
    log = [
        group(seconds=4, size=100),
        group(seconds=4, size=1000),
        group(seconds=1, size=1000),
        group(domain=1),
    ]
    simulation = run(log, "optimistic", 1, max_queued_bytes=1200)
    assert simulation.starts[2] == START + 8
    assert list(simulation.workers) == [1, 1, 1, 1]


def test_the_number_is_that_of_the_newest_commit_and_0_while_all_are_idle() -> None:
    log = [
        group(1, seconds=4),
        group(1, seconds=10),
        group(2, seconds=2, at=START + 3),
        group(at=START + 30),
    ]
    simulation = run(log, "conservative")
    shown = {0: 0, 3.5: 3, 4: 4, 9: 9, 10: 10, 11.5: 11, 12: 0, 29: 0, 30.5: 0, 31: 0}
    assert {at: simulation.seconds_behind(START + at) for at in shown} == shown
    assert simulation.timestamp.at(START + 30.5) == START + 30


def test_a_domain_that_is_ahead_takes_the_position_along() -> None:
    simulation = run([group(seconds=8), group(domain=1, seconds=1)], "optimistic")
    assert simulation.positions is not None
    assert [simulation.positions.at(START + at) for at in (0.5, 1, 8)] == [0, 2, 2]
    assert simulation.low_water_mark(START + 1) == 0
    assert simulation.gaps(START + 1) == [0]


def test_a_conflict_waits_for_all_before_it_and_is_executed_again() -> None:
    log = [group(seconds=6), TimedTransaction(START, 2.0, 300, 5, errors=1)]
    assert list(run(log, "optimistic").ends) == [START + 6, START + 8]


def test_one_that_gives_up_keeps_those_behind_it_in_its_domain_from_committing() -> None:
    log = [
        group(seconds=1),
        TimedTransaction(START, 1.0, 300, 5, errors=99),
        group(seconds=1),
        group(domain=2, seconds=30),
    ]
    simulation = run(log, "optimistic", transaction_retries=2)
    assert [moment < float("inf") for moment in simulation.ends] == [True, False, False, True]
    assert simulation.error is not None
    assert simulation.stopped_at == START + 30


def test_a_stop_ends_what_was_begun_in_each_domain() -> None:
    log = [
        group(seconds=2),
        group(seconds=2),
        group(domain=1, seconds=9),
        group(domain=1, seconds=1),
    ]
    simulation = run(log, "conservative", stop=START + 1)
    assert [moment < float("inf") for moment in simulation.ends] == [True, False, True, False]
    assert simulation.stopped_at == START + 9


@pytest.mark.parametrize("flags", [Marked.PREPARED_XA, Marked.COMPLETED_XA, DDL | HALF_ALTER])
def test_what_has_rules_of_its_own_is_refused(flags: int) -> None:
    with pytest.raises(UsageError, match="not simulated with workers"):
        run([group(flags=flags)], "optimistic")
    assert len(run([group(flags=flags)], "none")) == 1


def random_log(seed: int) -> list[TimedTransaction]:
    rnd = random.Random(seed)
    at, commit, log = START, 0, []
    for _ in range(60):
        at += rnd.choice((0, 0, 0, 1, 2, 9))
        commit += rnd.random() < 0.4
        flags = rnd.choice(
            (
                USUAL,
                USUAL,
                USUAL,
                USUAL | Marked.WAITED,
                Marked.ALLOW_PARALLEL,
                Marked.TRANSACTIONAL,
                DDL,
            )
        )
        domain, seconds = rnd.choice((0, 0, 1, 5)), rnd.randint(1, 6)
        found = group(
            commit if rnd.random() < 0.8 else 0,
            domain=domain,
            flags=flags,
            seconds=seconds,
            at=at,
            size=0,
        )
        found.last_stamp = at + rnd.choice((0, 0, 3))
        log.append(found)
    return log


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("seed", range(12))
def test_beside_the_model_that_goes_tick_by_tick(seed: int, mode: str) -> None:
    log, rnd = random_log(seed), random.Random(seed)
    options = {"domain_workers": rnd.choice((0, 0, 1, 2)), "by_position": rnd.random() < 0.3}
    configuration = ClockConfiguration(
        server="mariadb", workers=rnd.choice((1, 2, 3, 8)), parallel_type=mode, **options
    )
    simulation = simulate(log, configuration)
    naive = NaiveDomains(log, configuration, START)
    naive.run(int(simulation.end) + 2)
    assert [each.started for each in naive.groups] == list(simulation.starts)
    assert [each.committed for each in naive.groups] == list(simulation.ends)
    assert naive.shown == [
        simulation.timestamp.at(START + tick + 0.5) for tick in range(len(naive.shown))
    ]
