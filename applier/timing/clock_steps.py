"""The steps of the forecast's clock, on flat rows of numbers, in plain Python or compiled.

`WorkClock` explains the model and gives these functions their numbers. They call nothing but
themselves, log10 and `applier.replica.scheduling`, so that Numba takes the very same source.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from math import log10
from typing import NamedTuple

from applier.replica.scheduling import is_out_of_order, waits_for_all

NOTHING, SERIAL, BY_DATABASE, BY_LOGICAL_CLOCK = range(4)
"""What a transaction waits for: a free worker alone; all before it; those of its databases; those
up to its last_committed."""

(
    MODE, QUEUES, SEVERAL, KEEPS_ORDER, CORES, SHARES_CORES, READS_PER_SECOND, SYNC, SYNC_PROCESSOR,
    COORDINATOR_TRANSACTION, COORDINATOR_EVENT,
    ALL_DONE, COORDINATOR_FREE, READ_FROM, CORES_FROM, SYNC_START, SYNC_END, SYNCS,
    PREVIOUS, IS_FIRST, FIRST_MARK, LAST_MARK, RETRIES, CLOCK_NUMBERS,
) = range(24)  # fmt: skip
"""Places in `Clock.numbers`: settings, then times and counts. QUEUES: the coordinator goes on while
a transaction waits for its worker. FIRST_MARK is -1 while there is no mark. RETRIES: expected
rollbacks of transactions that scanned a table out of order."""

(
    ARRIVAL, PROCESSOR, WAITING, READS, EVENTS, LAST_COMMITTED, SEQUENCE_NUMBER,
    FIRST_DATABASE, END_DATABASE, SCANNED, SCAN, TURN_NUMBERS,
) = range(12)  # fmt: skip
"""Places in a turn: seconds, pages, events, and what the transaction depends on. SCANNED: the table
without a key that it scans, -1 for none; SCAN: the seconds of that."""

SHORTEST, STEPS_A_DECADE, GRID = 1e-4, 3, 17
"""Lengths of scans for which contention is known: 0.1 ms to 21 s."""

WINDOW = 4096
"""Done marks that are remembered; replica_checkpoint_group lets 512 transactions be under way."""

Numbers = MutableSequence[float]


class Clock(NamedTuple):
    """A clock's numbers. `workers`: when each is free. `marks`: when a sequence number and all
    before it are done, at its place modulo WINDOW. `until`: when a database's last transaction is
    done. `scanned`: for each scanned table when its last transactions are done, as many as there
    are workers. `contention`: `scan_locks.contentions`, seconds and retries in turn, for each
    number of workers GRID lengths; empty where nobody is rolled back."""

    numbers: Numbers
    workers: Numbers
    marks: Numbers
    until: Numbers
    scanned: Numbers
    contention: Numbers


def take(clock: Clock, turn: Sequence[float], databases: Sequence[int]) -> float:
    """When a transaction is committed. `databases` holds the numbers of those that turns change."""
    numbers, workers = clock.numbers, clock.workers
    after = _may_begin(clock, turn, databases)
    worker = _free_worker(clock, after)
    arrival = turn[ARRIVAL]
    start = max(arrival, numbers[COORDINATOR_FREE], workers[worker], after)
    if numbers[SEVERAL]:
        reading = numbers[COORDINATOR_TRANSACTION] + numbers[COORDINATOR_EVENT] * turn[EVENTS]
        begin = max(arrival, numbers[COORDINATOR_FREE]) if numbers[QUEUES] else start
        numbers[COORDINATOR_FREE] = begin + reading
    ready = _executed(numbers, start, turn)
    if numbers[SEVERAL] and turn[SCANNED] >= 0:
        all_busy = workers[worker] > max(arrival, after)
        ready = _scanned(clock, turn, start, ready, all_busy)
    done = _committed(numbers, ready)
    if numbers[KEEPS_ORDER]:
        done = max(done, numbers[ALL_DONE])
    if numbers[SEVERAL] and turn[SCANNED] >= 0:
        _note_scan(clock, turn, done)
    workers[worker] = done
    numbers[ALL_DONE] = max(numbers[ALL_DONE], done)
    _note(clock, turn, databases, done)
    return done


def _may_begin(clock: Clock, turn: Sequence[float], databases: Sequence[int]) -> float:
    """When a transaction may begin, as far as others are concerned."""
    numbers = clock.numbers
    mode = numbers[MODE]
    if mode == BY_LOGICAL_CLOCK:
        return _parents_done(clock, turn)
    if mode == BY_DATABASE:
        first, end = int(turn[FIRST_DATABASE]), int(turn[END_DATABASE])
        if first == end:
            return numbers[ALL_DONE]
        latest = 0.0
        for at in range(first, end):
            latest = max(latest, clock.until[databases[at]])
        return latest
    return numbers[ALL_DONE] if mode == SERIAL else 0.0


def _parents_done(clock: Clock, turn: Sequence[float]) -> float:
    """replica_parallel_type LOGICAL_CLOCK: when everything up to last_committed is done."""
    numbers = clock.numbers
    committed, sequence = int(turn[LAST_COMMITTED]), int(turn[SEQUENCE_NUMBER])
    # The first of a log, or one that nothing before it ties, begins the numbers anew.
    previous = int(numbers[PREVIOUS]) if committed else 0
    if numbers[IS_FIRST] == 0 and is_out_of_order(committed, sequence, previous):
        committed = sequence = 0
    numbers[PREVIOUS], numbers[IS_FIRST] = sequence, 0
    if waits_for_all(committed, sequence, previous, True):
        numbers[FIRST_MARK] = -1
        return numbers[ALL_DONE]
    if committed < numbers[FIRST_MARK] or numbers[FIRST_MARK] < 0:
        return 0.0
    return clock.marks[min(committed, int(numbers[LAST_MARK])) % WINDOW]


def _note(clock: Clock, turn: Sequence[float], databases: Sequence[int], done: float) -> None:
    """A transaction is done: what others wait for."""
    numbers = clock.numbers
    if numbers[MODE] == BY_LOGICAL_CLOCK:
        sequence = int(turn[SEQUENCE_NUMBER])
        numbers[LAST_MARK] = sequence
        first = sequence if numbers[FIRST_MARK] < 0 else int(numbers[FIRST_MARK])
        numbers[FIRST_MARK] = max(first, sequence - WINDOW + 1)
        clock.marks[sequence % WINDOW] = numbers[ALL_DONE]
    elif numbers[MODE] == BY_DATABASE:
        for at in range(int(turn[FIRST_DATABASE]), int(turn[END_DATABASE])):
            clock.until[databases[at]] = done


def _free_worker(clock: Clock, after: float) -> int:
    """The one that is free first; where transactions queue, the one that has what it waits for."""
    workers = clock.workers
    best = 0
    for at in range(len(workers)):
        if clock.numbers[QUEUES] and workers[at] == after:
            return at
        if workers[at] < workers[best]:
            best = at
    return best


def _executed(numbers: Numbers, start: float, turn: Sequence[float]) -> float:
    """When its rows are changed: cores and disk are given out in the log's order."""
    ready = start + turn[PROCESSOR]
    if numbers[SHARES_CORES]:
        begin = max(numbers[CORES_FROM], start)
        numbers[CORES_FROM] = begin + turn[PROCESSOR] / numbers[CORES]
        ready = max(ready, numbers[CORES_FROM])
    if turn[READS]:
        begin = max(numbers[READ_FROM], start)
        numbers[READ_FROM] = begin + turn[READS] / numbers[READS_PER_SECOND]
        return max(ready + turn[WAITING], numbers[READ_FROM])
    return ready


def _scanned(
    clock: Clock, turn: Sequence[float], start: float, ready: float, all_busy: bool
) -> float:
    """When its rows are changed where others are in the table that it scans: they hold all of it.
    `all_busy`: it waited for a worker, so that whoever is rolled back is overtaken again."""
    workers = len(clock.workers)
    first = int(turn[SCANNED]) * workers
    others, let_go = 0, 0.0
    for place in range(first, first + workers):
        if clock.scanned[place] > start:
            others += 1
            let_go = max(let_go, clock.scanned[place])
    if not others:
        return ready
    if not all_busy or not len(clock.contention):
        return max(ready, let_go + turn[SCAN])
    return max(ready, let_go + _contended(clock, others, turn[SCAN]))


def _contended(clock: Clock, others: int, scan: float) -> float:
    """Seconds from the commit before to its own while so many others are in the table."""
    rows = len(clock.contention) // (2 * GRID)
    step = (log10(scan / SHORTEST) if scan > SHORTEST else 0.0) * STEPS_A_DECADE
    low = min(int(step), GRID - 2)
    share = min(step - low, 1.0)
    place = 2 * ((min(others, rows) - 1) * GRID + low)
    retries = clock.contention[place + 1] * (1 - share) + clock.contention[place + 3] * share
    clock.numbers[RETRIES] += retries
    seconds = clock.contention[place] * (1 - share) + clock.contention[place + 2] * share
    return max(seconds, scan)


def _note_scan(clock: Clock, turn: Sequence[float], done: float) -> None:
    """A transaction that scans a table is done: it takes the place of the first of the others."""
    workers = len(clock.workers)
    first = int(turn[SCANNED]) * workers
    best = first
    for place in range(first, first + workers):
        if clock.scanned[place] < clock.scanned[best]:
            best = place
    clock.scanned[best] = done


def _committed(numbers: Numbers, ready: float) -> float:
    """When a sync holds it: the one that has not begun yet, or one of its own."""
    sync = numbers[SYNC]
    if not sync:
        return ready
    if not numbers[KEEPS_ORDER] and ready + sync < numbers[SYNC_START]:
        numbers[SYNCS] += 1
        return ready + sync  # long before the one that comes ahead of it in the log
    if ready > numbers[SYNC_START]:
        numbers[SYNC_START] = max(ready, numbers[SYNC_END])
        numbers[SYNC_END] = numbers[SYNC_START] + sync
        numbers[CORES_FROM] += numbers[SYNC_PROCESSOR] / numbers[CORES]
        numbers[SYNCS] += 1
    return numbers[SYNC_END]


STEPS = (
    _may_begin, _parents_done, _note, _free_worker, _executed, _contended, _scanned, _note_scan,
    _committed, take,
)  # fmt: skip
"""What a compiler has to know of besides the functions of scheduling."""
