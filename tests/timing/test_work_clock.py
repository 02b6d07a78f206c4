"""The forecast's clock where workers share a machine: by hand, and beside what a real 9.7.4
took."""

from __future__ import annotations

from dataclasses import replace

import pytest

from applier.replica.scheduling import DATABASE, LOGICAL_CLOCK
from applier.timing.clock_steps import LENGTHS
from applier.timing.work_clock import Machine, Turn, WorkClock
from applier.timing.worker_rules import Handed, WorkerRules

US = 1e-6


def seconds(clock: WorkClock, turns: list[Turn]) -> float:
    """Until all are done that are there at once."""
    return max(clock.take(0.0, turn) for turn in turns)


def free(
    count: int, processor: float = 1.0, waiting: float = 0.0, reads: float = 0.0
) -> list[Turn]:
    """Transactions that nothing ties to each other."""
    return [
        Turn(processor, waiting, reads, 1, 1 if number > 1 else 0, number)
        for number in range(1, count + 1)
    ]


@pytest.mark.parametrize(
    ("workers", "cores", "spins", "expected"),
    [
        (1, 2, True, 12.0),
        (4, 1, False, 12.0),
        (4, 2, False, 6.0),
        (4, 2, True, 12.0),
        (4, 5, True, 3.0),
        (4, 64, True, 3.0),
        (4, 1, True, 24.0),
    ],
)
def test_workers_get_the_cores_that_there_are(
    workers: int, cores: float, spins: bool, expected: float
) -> None:
    clock = WorkClock(workers, machine=Machine(cores, spins=spins), parallel_type="optimistic")
    assert seconds(clock, free(12)) == pytest.approx(expected)


def test_workers_wait_for_pages_side_by_side_as_far_as_the_disk_goes() -> None:
    turns = free(8, 0.0, 1.0, 10)
    for workers, rate, expected in ((1, 1000.0, 8.0), (4, 1000.0, 2.0), (4, 20.0, 4.0)):
        machine = Machine(reads_per_second=rate)
        clock = WorkClock(workers, machine=machine, parallel_type="optimistic")
        assert seconds(clock, turns) == pytest.approx(expected)


def test_a_sync_takes_those_along_that_were_ready_before_it_began() -> None:
    machine = Machine(sync_waiting=10.0)
    one, four = (
        WorkClock(workers, machine=machine, parallel_type="optimistic") for workers in (1, 4)
    )
    assert seconds(one, free(4)) == pytest.approx(44.0)
    first, second, third = (10.0 * one for one in LENGTHS[:3])
    assert seconds(four, free(4)) == pytest.approx(1.0 + first)
    assert (one.syncs, four.syncs) == (4, 1)
    later = [four.take(0.0, Turn(work, 0, 0, 1, 1, 5 + at)) for at, work in enumerate((1, 2, 3))]
    begun = 2.0 + first
    behind = begun + second + third  # two were ready while the sync of the first went on
    assert later == pytest.approx([begun + second, behind, behind])


def test_one_log_is_synced_while_others_wait_for_the_other_one() -> None:
    machine = Machine(sync_waiting=10.0, synced_logs=2.0)
    redo, log, next_redo, next_log = (5.0 * one for one in LENGTHS[:4])
    clock = WorkClock(2, machine=machine, parallel_type="optimistic")
    first, second = (clock.take(0.0, turn) for turn in (Turn(1.0), Turn(2.0)))
    flushed = max(2.0, 1.0 + redo) + next_redo
    assert first == pytest.approx(1.0 + redo + log)
    assert second == pytest.approx(max(flushed, first) + next_log)
    assert clock.syncs == 4


def test_syncs_are_as_long_as_measured_at_the_mean() -> None:
    assert sum(LENGTHS) == pytest.approx(len(LENGTHS))
    alone = WorkClock(machine=Machine(sync_waiting=1.0, synced_logs=2.0))
    assert [alone.take(0.0, Turn(1.0)) for _ in range(3)] == [2.0, 4.0, 6.0]


def test_the_threads_that_make_room_for_pages_share_the_cores() -> None:
    turns = [Turn(1.0, 1.0, 10, 1, 1 if at else 0, at + 1, room=3.0) for at in range(8)]
    for workers, cores, spins, expected in (
        (1, 2, True, 16.0),  # they work beside the one worker
        (4, 2, True, 33.0),  # the coordinator leaves one core: 8 times 4, and the last read
        (4, 2, False, 17.0),
        (2, 2, False, 12.0),  # two workers alone would take 8
        (4, 64, False, 6.0),
    ):
        clock = WorkClock(workers, machine=Machine(cores, spins=spins), parallel_type="optimistic")
        assert seconds(clock, turns) == pytest.approx(expected), (workers, cores)


@pytest.mark.parametrize(
    ("workers", "spins", "sync", "expected"),
    [
        (4, True, 0.0, 8.0),  # without syncs it is in the price of the rows
        (4, True, 1e-6, 12.0),  # on the core that the coordinator leaves
        (4, False, 1e-6, 6.0),
        (2, False, 1e-6, 4.0),  # each worker has a core of its own
        (1, True, 1e-6, 8.0),
    ],
)
def test_purge_shares_the_cores_of_workers_that_wait_for_syncs(
    workers: int, spins: bool, sync: float, expected: float
) -> None:
    turns = [Turn(1.0, 0.0, 0.0, 1, 1 if at else 0, at + 1, marked=0.5) for at in range(8)]
    turns.append(Turn(0.0, 0.0, 0.0, 1, 1, 9))  # behind the purge of those before it
    machine = Machine(2, spins=spins, sync_waiting=sync, worker_rules=WorkerRules(purge_work=1.0))
    clock = WorkClock(workers, machine=machine, parallel_type="optimistic")
    assert seconds(clock, turns) == pytest.approx(expected, abs=0.001)


def test_all_stop_who_read_pages_while_one_waits_for_writes() -> None:
    """Of its 9 seconds of waiting 8 are such: others that read pages wait for the end of those,
    one that reads none does not."""
    first = Turn(1.0, 9.0, 10, 1, 1, 1, stopped=8.0)
    others = [Turn(1.0, 1.0, 10, 1, 1, 2), Turn(1.0, 0.0, 0, 1, 1, 3)]
    clock = WorkClock(4, parallel_type="optimistic", preserve_order=False)
    assert clock.take(0.0, first) == 10.0
    assert clock.take(0.0, others[0]) == 10.0  # commits keep the order in MariaDB
    alone = WorkClock(machine=Machine(2))
    assert [alone.take(0.0, turn) for turn in (first, *others)] == [10.0, 12.0, 13.0]
    # one that only makes pages stops as well, and others behind it
    maker = Turn(1.0, 8.0, 0, 1, 1, 1, stopped=8.0)
    for workers in (1, 4):
        clock = WorkClock(workers, parallel_type="optimistic")
        assert clock.take(0.0, maker) == 9.0
        assert clock.take(0.0, others[0]) == (11.0 if workers == 1 else 9.0)


def test_the_coordinator_reads_one_transaction_after_the_other() -> None:
    machine = Machine(coordinator_transaction=0.5, coordinator_event=0.5)
    clock = WorkClock(16, machine=machine, parallel_type="optimistic")
    assert seconds(clock, free(10)) == pytest.approx(10.0)


def test_by_database_one_transaction_of_a_database_at_a_time() -> None:
    turns = [Turn(1.0, databases=(name,)) for name in ("a", "b", "a", "b", "c")]
    clock = WorkClock(4, preserve_order=False, parallel_type="DATABASE")
    assert [clock.take(0.0, turn) for turn in turns] == [1.0, 1.0, 2.0, 2.0, 1.0]
    everything = Turn(1.0)
    assert clock.take(0.0, everything) == 3.0  # of no database: it waits for all


def test_conservative_groups_that_were_alone_in_their_group_commit_follow_one_another() -> None:
    clock = WorkClock(4, parallel_type="conservative")
    assert [clock.take(0.0, Turn(1.0)) for _ in range(3)] == [1.0, 2.0, 3.0]


def test_a_conservative_group_is_handed_from_thread_to_thread_behind_the_one_before() -> None:
    """Optimistic ones are handed out while the ones before are executed."""
    machine = Machine(coordinator_transaction=0.125, hand_over=0.25)
    for mode, expected in (("conservative", [1.0, 2.25, 3.5]), ("optimistic", [1.0, 1.125, 1.25])):
        clock = WorkClock(4, parallel_type=mode, machine=machine)
        assert [clock.take(0.0, Turn(1.0)) for _ in range(3)] == expected


def test_beside_others_a_transaction_of_mariadb_takes_more_of_the_processor() -> None:
    """As long as others are under way, and only with several workers; those for which there is no
    core are woken besides."""
    turns = [Turn(4.0), Turn(1.0), Turn(3.0)]
    machine = Machine(8, beside=1.0, hand_over=2.0)
    clock = WorkClock(4, parallel_type="optimistic", machine=machine)
    assert [clock.take(0.0, turn) for turn in turns] == [4.0, 4.0, 6.0]
    assert clock.take(10.0, Turn(4.0)) == 14.0  # all others are done
    assert clock.take(13.0, Turn(4.0)) == 18.0  # one second beside another
    alone = WorkClock(1, parallel_type="optimistic", machine=machine)
    assert seconds(alone, turns) == 8.0
    other = WorkClock(4, machine=machine)
    assert seconds(other, free(4, 2.0)) == 4.0
    few = WorkClock(4, parallel_type="optimistic", machine=Machine(2, hand_over=2.0))
    assert [few.take(0.0, Turn(2.0)) for _ in range(3)] == [2.0, 3.0, 4.0]


def test_a_worker_of_5_7_takes_more_for_each_transaction_and_event_that_it_gets() -> None:
    """So many times what that takes of the coordinator, and a part of the rows besides; the only
    thread takes nothing."""
    rules = WorkerRules({DATABASE: Handed(1.5, 0.5, 2.0), LOGICAL_CLOCK: Handed(1.0, 1.0, 1.0)})
    machine = Machine(2, True, 0.0, 0.0, 0.25, 0.125, worker_rules=rules)
    for kind, each in ((DATABASE, 1.5 + 0.125 + 0.5), (LOGICAL_CLOCK, 1.0 + 0.25 + 0.25)):
        clock = WorkClock(2, machine=machine, parallel_type=kind)
        turns = [
            Turn(1.0, events=2, last_committed=at, sequence_number=at + 1, databases=("d",))
            for at in range(3)
        ]
        assert [clock.take(0.0, turn) for turn in turns] == [each, 2 * each, 3 * each]
    assert WorkClock(1, machine=machine).take(0.0, Turn(1.0, events=2)) == 1.0


def test_the_more_workers_there_are_the_less_a_hand_over_takes() -> None:
    """The coordinator of a 5.7 that looks for a free one is less in their way. Prices are those
    with four workers."""
    machine = Machine(2, True, 0.0, 0.0, 0.25, 0.0)
    turns = [Turn(1.0, sequence_number=at + 1) for at in range(64)]

    def each(workers: int, eased: float) -> float:
        rules = WorkerRules({LOGICAL_CLOCK: Handed(1.0, 1.0, 1.0, eased)})
        clock = WorkClock(workers, machine=replace(machine, worker_rules=rules))
        return max(clock.take(0.0, turn) for turn in turns) / len(turns)

    assert [each(workers, 1.0) for workers in (2, 4, 8)] == [1.5, 1.25, 1.125]
    assert [each(workers, 0.0) for workers in (2, 4, 8)] == [1.25, 1.25, 1.25]


def test_a_coordinator_of_5_7_that_sleeps_behind_a_group_commit_is_woken() -> None:
    chain = [Turn(1.0, last_committed=at, sequence_number=at + 1) for at in range(3)]
    machine = Machine(2, spins=True, hand_over=0.25, worker_rules=WorkerRules(wakes=True))
    clock = WorkClock(2, machine=machine)
    assert [clock.take(0.0, turn) for turn in chain] == [1.0, 2.25, 3.5]
    awake = WorkClock(2, machine=replace(machine, worker_rules=WorkerRules()))
    assert [awake.take(0.0, turn) for turn in chain] == [1.0, 2.0, 3.0]


def test_each_that_waits_for_a_sync_of_mariadb_is_woken_behind_it() -> None:
    """The one behind which it waits, or the one that it shares."""
    first, second = (1000.0 * one for one in LENGTHS[:2])
    machine = Machine(sync_waiting=1000.0, hand_over=0.5)
    clock = WorkClock(4, parallel_type="optimistic", machine=machine)
    done = [clock.take(0.0, Turn(work)) for work in (1, 2, 3, 4)]
    behind = 1.0 + first + second + 0.5
    assert done == pytest.approx([1.0 + first, behind, behind + 0.5, behind + 1.0])


REAL = [
    ("rows by primary key", False, 142, {2: 142, 4: 120}),
    ("rows by primary key, a quieter hour", False, 151, {2: 149, 4: 135}),
    ("one of four tables without it", False, 328, {2: 287, 4: 322}),
    ("rows by primary key", True, 142, {1: 360, 2: 283, 4: 263}),
    ("one of four tables without it", True, 328, {1: 503, 2: 420, 4: 402}),
]
"""sysbench oltp_write_only, applied by 9.7.4 on two cores: what, durable, microseconds of a
transaction's rows with one worker, and workers -> microseconds for each transaction."""


@pytest.mark.parametrize(("what", "durable", "processor", "real"), REAL)
def test_beside_a_real_replica(
    what: str, durable: bool, processor: int, real: dict[int, int]
) -> None:
    sync = (128 * US, 72 * US) if durable else (0.0, 0.0)
    machine = Machine(2, True, *sync, 10 * US, 4 * US)
    for workers, expected in real.items():
        turns = [
            Turn(processor * US, 0, 0, 11, max(number - 8, 0), number) for number in range(1, 2001)
        ]
        said = seconds(WorkClock(workers, machine=machine), turns) / 2000 / US
        assert said / expected == pytest.approx(1, abs=0.25), (what, workers, said)
