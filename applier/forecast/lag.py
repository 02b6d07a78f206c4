"""The replica's clock: when each transaction of a log is done, given how long each takes; and what lag that makes.

One worker applies one transaction after the other. With N workers a transaction starts when a worker is free and everything up to
its last_committed is done (`Mts_submode_logical_clock::schedule_next_event`, sql/rpl_mta_submode.cc 5.7 to 9.7); last_committed 0,
a gap in the sequence numbers, or none (5.6, MariaDB's log carries other marks) wait for all before it. Transactions commit in the
log's order unless replica_preserve_commit_order is off.

This is the part of `applier.replica` that decides when a transaction ends, without its queues, checkpoints and status, so that a
million of them take seconds.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator

WINDOW = 4096
"""Done marks that are remembered; replica_checkpoint_group lets 512 transactions be under way."""


class SingleClock:
    """One worker."""

    def __init__(self) -> None:
        self.free = 0.0
        self.busy = 0.0

    def take(self, arrival: float, seconds: float, last_committed: int, sequence_number: int) -> float:
        """When a transaction is done that came at `arrival`."""
        self.free = (arrival if arrival > self.free else self.free) + seconds
        self.busy += seconds
        return self.free


class WorkersClock:
    """N workers, with the log's own dependencies."""

    def __init__(self, workers: int, *, preserve_order: bool = True) -> None:
        self.workers = [0.0] * workers
        self.preserve_order = preserve_order
        self.all_done = 0.0
        self.started = 0.0
        self.previous = 0
        self.marks: deque[tuple[int, float]] = deque(maxlen=WINDOW)
        """(sequence number, when it and all before it are done), of the transactions since the last barrier."""

    def take(self, arrival: float, seconds: float, last_committed: int, sequence_number: int) -> float:
        """When a transaction is committed that came at `arrival`."""
        start = max(arrival, self.started, self.workers[0])
        if not last_committed or not sequence_number or not self.previous or sequence_number > self.previous + 1:
            start = max(start, self.all_done)
            self.marks.clear()
        else:
            start = max(start, self._done_to(last_committed))
        self.previous = sequence_number
        self.started = start
        done = start + seconds
        if self.preserve_order:
            done = max(done, self.all_done)
        heapq.heapreplace(self.workers, done)
        self.all_done = max(self.all_done, done)
        self.marks.append((sequence_number, self.all_done))
        return done

    def _done_to(self, last_committed: int) -> float:
        """When everything up to a sequence number is done."""
        marks = self.marks
        if not marks or last_committed < marks[0][0]:
            return 0.0
        at = min(last_committed - marks[0][0], len(marks) - 1)
        return marks[at][1]


def clock(workers: int, *, preserve_order: bool = True) -> SingleClock | WorkersClock:
    """The clock of so many workers."""
    return SingleClock() if workers == 1 else WorkersClock(workers, preserve_order=preserve_order)


class LagCurve:
    """Lag over time in bounded memory: the highest value of each stretch; stretches double when there are too many."""

    def __init__(self, most: int = 480, width: float = 1.0) -> None:
        self.most = most
        self.width = width
        self.start: float | None = None
        self.values: list[float] = []
        self.peak = 0.0
        self.peak_at = 0.0

    def add(self, commit: float, begin: float, done: float) -> None:
        """A transaction that the source committed at `commit` was the oldest that was missing from `begin` to `done`."""
        if self.start is None:
            self.start = commit
        lag = done - commit
        if lag > self.peak:
            self.peak, self.peak_at = lag, done
        last = int((done - self.start) / self.width)
        while last >= self.most:
            self._double()
            last = int((done - self.start) / self.width)
        self._raise(last, lag)
        for at in range(int((begin - self.start) / self.width), last):
            self._raise(at, (at + 1) * self.width + self.start - commit)

    def _raise(self, at: int, lag: float) -> None:
        values = self.values
        if at >= len(values):
            values.extend([0.0] * (at + 1 - len(values)))
        if lag > values[at]:
            values[at] = lag

    def _double(self) -> None:
        values = self.values
        self.values = [max(values[at : at + 2]) for at in range(0, len(values), 2)]
        self.width *= 2

    def __iter__(self) -> Iterator[tuple[float, float]]:
        """(Seconds since 1970 at which a stretch begins, the highest lag in it)."""
        for at, value in enumerate(self.values):
            yield (self.start or 0.0) + at * self.width, value

    def first_above(self, limit: float) -> float | None:
        """When the lag first exceeds a limit; None if it never does."""
        return next((time for time, value in self if value > limit), None)
