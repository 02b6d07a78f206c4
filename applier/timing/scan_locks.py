"""Workers that scan the same table without a key: who waits for whom, who is rolled back, and what
a transaction then takes.

The rules, from the sources of 5.7 to 9.7, with what real servers showed
(docs/design/forecast-accuracy.md):

- A scan locks every row that it reads, from the first on, until the commit, whatever the isolation
  level. So one worker at a time is in the table.
- Commits keep the log's order. An earlier transaction that waits for the lock of a later one has
  that one rolled back: at once when it waits for its turn to commit, otherwise at the end of its
  event (Commit_order_manager::check_and_report_deadlock, sql/rpl_replica_commit_order_manager.cc).
- It then sleeps as many seconds as it was rolled back, 5 at most, and begins again
  (Slave_worker::retry_transaction, sql/rpl_rli_pdb.cc). Meanwhile a worker that is free takes a
  still later transaction, which gets the lock first, and is rolled back when the sleeper wakes. So
  while there is work for all workers, once is for ever: two workers apply one transaction a second.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from itertools import pairwise
from random import Random

from applier.timing.clock_steps import GRID, SHORTEST, STEPS_A_DECADE
from applier.timing.workers import RETRY_PAUSE_MAX

MOST_WORKERS = 8
"""More workers than that in one table count as that many."""
WAKING = 0.0002
"""Seconds within which a thread is at work after it was woken; the mean of an exponential."""
RUNS, WARM_UP, COUNTED = 6, 20, 80
"""Simulations of a length, transactions that are left out at the start of each, and counted."""

SCANNING, WAITING, READY, ASLEEP, DONE = range(5)


@dataclass(frozen=True, slots=True)
class Contention:
    """What a transaction takes on average: seconds from the commit before it to its own, and how
    often it is rolled back."""

    seconds: float
    retries: float


class ScannedTable:
    """Workers that apply transactions which nothing ties to each other, each a scan of one table.

    `scans`: seconds of each; `late`: seconds until a worker that is woken is at work. `overtaking`:
    the first transaction that reaches the table before the one ahead of it. After `run`,
    `committed` holds the moment of each commit, `attempts` the scans, `retries` the rollbacks.
    """

    def __init__(
        self, workers: int, scans: Sequence[float], *, late: Sequence[float], overtaking: int
    ) -> None:
        self.workers, self.scans, self.late, self.overtaking = workers, scans, late, overtaking
        self.committed: list[float] = []
        self.attempts = [0] * len(scans)
        self.retries = [0] * len(scans)
        self.now = 0.0
        self._states = [WAITING] * len(scans)
        self._victims: set[int] = set()
        self._holder: int | None = None
        self._queue: deque[int] = deque()
        self._handed_out = 0
        self._events: list[tuple[float, int, bool, int]] = []
        self._number = 0

    def run(self) -> None:
        """Until all are committed."""
        for _ in range(self.workers):
            self._hand_out()
        while self._events:
            self.now, _, is_end, one = heappop(self._events)
            if is_end:
                self._scanned(one)
            else:
                self._ask(one)

    def _after(self, seconds: float, is_end: bool, one: int) -> None:
        self._number += 1
        heappush(self._events, (self.now + seconds, self._number, is_end, one))

    def _hand_out(self) -> None:
        """A worker is free: the coordinator gives it the next transaction."""
        one = self._handed_out
        if one < len(self.scans):
            self._handed_out += 1
            if one + 1 == self.overtaking:  # until the one behind it is there
                delay = sum(self.scans[max(one - self.workers, 0) : one + 1]) + 10 * WAKING
            else:
                delay = self.late[one]
            self._after(delay, False, one)

    def _ask(self, one: int) -> None:
        """A transaction begins its scan, or waits for the table."""
        if self._holder is None:
            self._lock(one)
            return
        self._states[one] = WAITING
        self._queue.append(one)
        self._report(one)

    def _report(self, waiting: int) -> None:
        """One that waits for a later one has it rolled back."""
        holder = self._holder
        if holder is None or holder < waiting:
            return
        if self._states[holder] == READY:
            self._roll_back(holder)
        else:
            self._victims.add(holder)

    def _lock(self, one: int) -> None:
        self._holder = one
        self._states[one] = SCANNING
        self.attempts[one] += 1
        self._after(self.scans[one], True, one)

    def _scanned(self, one: int) -> None:
        if one == len(self.committed):
            self._commit(one)
        elif one in self._victims:
            self._roll_back(one)
        else:
            self._states[one] = READY

    def _unlock(self) -> None:
        self._holder = None
        if self._queue:
            self._lock(self._queue.popleft())
            for one in tuple(self._queue):
                self._report(one)

    def _roll_back(self, one: int) -> None:
        self._victims.discard(one)
        self._states[one] = ASLEEP
        self.retries[one] += 1
        pause = min(self.retries[one], RETRY_PAUSE_MAX)
        self._after(pause + self.late[-1 - one], False, one)
        self._unlock()

    def _commit(self, one: int) -> None:
        self._victims.discard(one)
        self._states[one] = DONE
        self.committed.append(self.now)
        self._unlock()
        self._hand_out()
        following = one + 1
        if self._holder == following and self._states[following] == READY:
            self._commit(following)


def contention(workers: int, scan: float) -> Contention:
    """What a transaction takes when so many workers are in the table all the time and each scan
    takes `scan` seconds on average: rows stand anywhere in the table."""
    seconds = retries = 0.0
    for seed in range(RUNS):
        draw = Random(seed)
        count = WARM_UP + COUNTED
        scans = [2 * scan * draw.random() for _ in range(count)]
        late = [draw.expovariate(1 / WAKING) for _ in range(count)]
        table = ScannedTable(workers, scans, late=late, overtaking=workers + 1)
        table.run()
        # The last ones have fewer behind them.
        gaps = [after - before for before, after in pairwise(table.committed)]
        seconds += sum(gaps[WARM_UP - 1 : -workers])
        retries += sum(table.retries[WARM_UP:-workers])
    counted = RUNS * (COUNTED - workers)
    return Contention(max(seconds / counted, scan), retries / counted)


@cache
def contentions(workers: int) -> tuple[tuple[Contention, ...], ...]:
    """`contention` for 2 to so many workers (8 at most) and each length of the grid."""
    lengths = [SHORTEST * 10 ** (step / STEPS_A_DECADE) for step in range(GRID)]
    return tuple(
        tuple(contention(number, length) for length in lengths)
        for number in range(2, min(workers, MOST_WORKERS) + 1)
    )
