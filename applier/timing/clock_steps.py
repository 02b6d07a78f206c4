"""The steps of the forecast's clock, on flat rows of numbers, in plain Python or compiled.

`WorkClock` explains the model and gives these functions their numbers. They call nothing but
themselves, log10 and `applier.replica.scheduling`, so that Numba takes the very same source.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from math import log, log10
from typing import Final, NamedTuple

from applier.binlog.gtid_events import MariadbGtidEvent
from applier.replica.scheduling import (
    NEW_BATCH,
    WAITS_FOR_COMMITS,
    batch_of,
    is_out_of_order,
    waits_for_all,
)

SERIAL, BY_DATABASE, BY_LOGICAL_CLOCK, BY_GROUP_COMMIT = range(4)
"""What a transaction waits for: all before it; those of its databases; those up to its
last_committed; what MariaDB's mode says of its group."""

(
    MODE, QUEUES, SEVERAL, KEEPS_ORDER, CORES, SHARES_CORES, READS_PER_SECOND,
    REDO_SYNC, LOG_SYNC, SYNC_PROCESSOR, COORDINATOR_TRANSACTION, COORDINATOR_EVENT,
    ALL_DONE, COORDINATOR_FREE, READ_FROM, CORES_FROM,
    REDO_START, REDO_END, LOG_START, LOG_END, SYNCS,
    PREVIOUS, IS_FIRST, FIRST_MARK, LAST_MARK, RETRIES, GROUP_MODE, ONE_DOMAIN, MOST_QUEUED,
    BESIDE, WOKEN, LEFT_WAITING, IN_WORKER, TAKEN_TRANSACTION, TAKEN_EVENT, HANDED,
    PURGE_WORK, CLOCK_NUMBERS,
) = range(38)  # fmt: skip
"""Places in `Clock.numbers`: settings, then times and counts. QUEUES: the coordinator goes on while
a transaction waits for its worker. REDO_SYNC, LOG_SYNC: seconds of the two stages of a durable
commit at the mean; REDO_START to LOG_END: when the last sync of each begins and ends.
SYNC_PROCESSOR: of both. FIRST_MARK is -1 while there is no mark. RETRIES: expected rollbacks of
transactions that scanned a table out of order. GROUP_MODE: a place in `scheduling.MODES`. Of
MariaDB's workers, 0 elsewhere: BESIDE: processor seconds more for each that a transaction takes
beside others; WOKEN: seconds until one that waited is awake; LEFT_WAITING: the share of workers for
which there is no core. IN_WORKER: how many times the processor that rows take in the only thread of
a replica they take in one of several workers; TAKEN_TRANSACTION, TAKEN_EVENT: seconds that such a
worker takes besides for each that it gets from the coordinator. HANDED: seconds until the
coordinator is awake behind those that a transaction waits for, and its worker; 0 where that is part
of other prices. PURGE_WORK: how many times MARKED purge takes of the workers' cores; 0 where
nothing is synced."""

(
    ARRIVAL, PROCESSOR, WAITING, READS, EVENTS, LAST_COMMITTED, SEQUENCE_NUMBER,
    FIRST_DATABASE, END_DATABASE, SCANNED, SCAN, DOMAIN, COMMIT_ID, FLAGS, LOG_BYTES, ROOM,
    STOPPED, MARKED, TURN_NUMBERS,
) = range(19)  # fmt: skip
"""Places in a turn: seconds, pages, events, and what the transaction depends on. SCANNED: the table
without a key that it scans, -1 for none; SCAN: the seconds of that. ROOM: processor seconds of the
server's other threads, for room in the buffer pool. STOPPED: seconds, part of WAITING, in which
all workers that read pages stand still. MARKED: seconds, part of PROCESSOR, for entries of indexes
that purge takes out later."""

SHORTEST, STEPS_A_DECADE, GRID = 1e-4, 3, 17
"""Lengths of scans for which contention is known: 0.1 ms to 21 s."""

BATCH, LAST_COMMIT_ID, BATCH_FROM, COMMITTING, COMMITTED, PLACE, DOMAIN_NUMBERS = range(7)
"""Places in a domain's row: what `scheduling.batch_of` said last, and of which group commit; when
its batch may begin; when all so far begin to commit, and are committed; the place of its last
worker."""


def _exponential_lengths(parts: int, step: int) -> tuple[float, ...]:
    found = [-log(1 - (at * step % parts + 0.5) / parts) for at in range(parts)]
    return tuple(one * parts / sum(found) for one in found)


LENGTHS = _exponential_lengths(31, 12)
"""Lengths of a sync beside their mean: the middles of as many parts of an exponential distribution,
in mixed order. The number is odd, so that two stages that take turns meet each of them."""

WINDOW = 4096
"""Done marks that are remembered; replica_checkpoint_group lets 512 transactions be under way."""

STANDALONE: Final = MariadbGtidEvent.STANDALONE

Numbers = MutableSequence[float]


class Clock(NamedTuple):
    """A clock's numbers. `workers`: when each is free. `marks`: when a sequence number and all
    before it are done, at its place modulo WINDOW. `until`: when a database's last transaction is
    done. `scanned`: for each scanned table when its last transactions are done, as many as there
    are workers. `contention`: `scan_locks.contentions`, seconds and retries in turn, for each
    number of workers GRID lengths; empty where no transaction is rolled back. `domains`: a row for
    each domain; `places`: a row for each, of the workers that it had; `owners`: the place that had
    each worker last."""

    numbers: Numbers
    workers: Numbers
    marks: Numbers
    until: Numbers
    scanned: Numbers
    contention: Numbers
    domains: Numbers
    places: Numbers
    owners: Numbers


def take(clock: Clock, turn: Sequence[float], databases: Sequence[int]) -> float:
    """When a transaction is committed. `databases` holds the numbers of those that turns change."""
    numbers, workers = clock.numbers, clock.workers
    if numbers[MODE] == BY_GROUP_COMMIT:
        return _take_group(clock, turn)
    after = _may_begin(clock, turn, databases)
    worker = _free_worker(clock, after)
    arrival = turn[ARRIVAL]
    may_start = max(arrival, numbers[COORDINATOR_FREE])
    if after > may_start:
        may_start = after + numbers[HANDED]
    start = max(may_start, workers[worker])
    taken = numbers[TAKEN_TRANSACTION] + numbers[TAKEN_EVENT] * turn[EVENTS]
    work = turn[PROCESSOR] * numbers[IN_WORKER] + taken
    if numbers[SEVERAL]:
        reading = numbers[COORDINATOR_TRANSACTION] + numbers[COORDINATOR_EVENT] * turn[EVENTS]
        begin = max(arrival, numbers[COORDINATOR_FREE]) if numbers[QUEUES] else start
        numbers[COORDINATOR_FREE] = begin + reading
    ready = _executed(numbers, start, work, turn)
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


def _take_group(clock: Clock, turn: Sequence[float]) -> float:
    """The same with the workers of MariaDB, as `applier.timing.simulated_domains` has it. Of the
    queues, only a transaction that is itself longer than one holds the reading thread up.

    A worker that waits for those before it begins when it is awake again."""
    numbers, domains = clock.numbers, clock.domains
    row = 0 if numbers[ONE_DOMAIN] else int(turn[DOMAIN])
    at, commit_id = row * DOMAIN_NUMBERS, turn[COMMIT_ID]
    same = commit_id != 0 and commit_id == domains[at + LAST_COMMIT_ID]
    flags = int(turn[FLAGS])
    batch = batch_of(int(numbers[GROUP_MODE]), flags, same, int(domains[at + BATCH]))
    domains[at + BATCH], domains[at + LAST_COMMIT_ID] = batch, commit_id
    reading = numbers[COORDINATOR_TRANSACTION] + numbers[COORDINATOR_EVENT] * turn[EVENTS]
    if batch & NEW_BATCH:
        domains[at + BATCH_FROM] = domains[at + COMMITTING] + numbers[WOKEN]
    now = max(turn[ARRIVAL], numbers[COORDINATOR_FREE])
    worker = _pooled_worker(clock, row, now)
    start = max(now, clock.workers[worker], domains[at + BATCH_FROM])
    if batch & WAITS_FOR_COMMITS:
        start = max(start, domains[at + COMMITTED] + numbers[WOKEN])
    now = max(now, clock.workers[worker]) if clock.owners[worker] < 0 else now
    clock.owners[worker] = row * len(clock.workers) + int(domains[at + PLACE])
    ready = _executed(numbers, start, _processor(numbers, start, turn), turn)
    if turn[LOG_BYTES] > numbers[MOST_QUEUED]:
        now = max(now, ready - (ready - start) * numbers[MOST_QUEUED] / turn[LOG_BYTES])
    numbers[COORDINATOR_FREE] = now + reading
    done = max(_committed(numbers, ready), domains[at + COMMITTED])
    begins = done if flags & STANDALONE else ready
    domains[at + COMMITTING] = max(domains[at + COMMITTING], begins)
    domains[at + COMMITTED] = clock.workers[worker] = done
    numbers[ALL_DONE] = max(numbers[ALL_DONE], done)
    return done


def _pooled_worker(clock: Clock, row: int, now: float) -> int:
    """A domain's next worker: that of its next place while it has work, else one of the pool, whose
    owner is -1 then."""
    workers, owners, domains = clock.workers, clock.owners, clock.domains
    count = len(workers)
    place = (int(domains[row * DOMAIN_NUMBERS + PLACE]) + 1) % count
    domains[row * DOMAIN_NUMBERS + PLACE] = place
    mine = row * count + place
    held = int(clock.places[mine])
    if held >= 0 and owners[held] == mine and workers[held] > now:
        return held
    best = 0
    for at in range(count):
        if workers[at] < workers[best]:
            best = at
    clock.places[mine], owners[best] = best, -1
    return best


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
    return numbers[ALL_DONE]


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


def _processor(numbers: Numbers, start: float, turn: Sequence[float]) -> float:
    """Seconds of a processor that its rows take: more of them while others are under way."""
    alone, others = turn[PROCESSOR], numbers[ALL_DONE] - start
    if others <= 0:
        return alone
    return alone + numbers[BESIDE] * min(alone, others) + numbers[WOKEN] * numbers[LEFT_WAITING]


def _executed(numbers: Numbers, start: float, work: float, turn: Sequence[float]) -> float:
    """When its rows are changed: cores and disk are given out in the log's order."""
    ready = start + work
    if numbers[SHARES_CORES]:
        begin = max(numbers[CORES_FROM], start)
        numbers[CORES_FROM] = begin + (work + turn[ROOM]) / numbers[CORES]
        ready = max(ready, numbers[CORES_FROM])
        numbers[CORES_FROM] += turn[MARKED] * numbers[PURGE_WORK] / numbers[CORES]
    if turn[READS] or turn[STOPPED]:
        begin = max(numbers[READ_FROM], start)
        room = turn[ROOM] / numbers[CORES] if numbers[SEVERAL] else 0.0
        read = max(turn[READS] / numbers[READS_PER_SECOND], room)
        numbers[READ_FROM] = begin + read + turn[STOPPED]
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
    """When both logs hold it."""
    redo, log = numbers[REDO_SYNC], numbers[LOG_SYNC]
    if not numbers[KEEPS_ORDER] and ready + redo + log < numbers[REDO_START]:
        numbers[SYNCS] += 1
        return ready + redo + log  # long before the one that comes ahead of it in the log
    share = redo / (redo + log) if redo + log else 0.0
    flushed = _synced(numbers, ready, REDO_START, redo, share) if redo else ready
    return _synced(numbers, flushed, LOG_START, log, 1 - share) if log else flushed


def _synced(numbers: Numbers, ready: float, start: int, seconds: float, share: float) -> float:
    """When a sync holds it, and its worker is awake: the sync that has not begun yet, or one of its
    own. `start`: the place of its stage; `share`: its part of a commit."""
    end = start + 1
    if ready > numbers[start]:
        woken = numbers[WOKEN] if ready < numbers[end] else 0.0
        numbers[start] = max(ready, numbers[end])
        length = LENGTHS[int(numbers[SYNCS]) % len(LENGTHS)] if numbers[SEVERAL] else 1.0
        numbers[end] = numbers[start] + seconds * length + woken
        numbers[CORES_FROM] += numbers[SYNC_PROCESSOR] * share / numbers[CORES]
        numbers[SYNCS] += 1
    else:
        numbers[end] += numbers[WOKEN]
    return numbers[end]


STEPS = (
    _may_begin, _parents_done, _note, _free_worker, _processor, _executed, _contended,
    _scanned, _note_scan, _synced, _committed, _pooled_worker, _take_group, take,
)  # fmt: skip
"""What a compiler has to know of besides the functions of scheduling."""
