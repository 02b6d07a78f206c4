"""Workers: when each part of a transaction is executed, when it commits, and the memory that
waiting events take.

slave_worker_exec_job_group(), append_item_to_jobs() (sql/rpl_rli_pdb.cc, rpl_replica.cc),
Commit_order_manager. Times are true time.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil

from applier.errors import ReplicationError
from applier.timing.timed import TimedTransaction

QUEUED_EVENTS_MAX = 16384
"""Events that wait for one worker."""
PARTS = 16
"""A transaction over 1/16 of the memory is put into it in parts."""
RETRY_PAUSE_MAX = 5
"""Seconds between two tries (MAX_SLAVE_RETRY_PAUSE)."""


@dataclass(slots=True, eq=False)
class SimulatedWorker:
    """`free` is when it has done all that it was given. `id` counts from 1."""

    id: int
    free: float


def retry_seconds(errors: int, *, worker: bool) -> int:
    """How long an applier sleeps over `errors` temporary errors in a row. A worker counts before it
    sleeps, a single applier behind."""
    first = 1 if worker else 0
    return sum(min(tried, RETRY_PAUSE_MAX) for tried in range(first, first + errors))


class PendingEvents:
    """Memory of events handed to workers and not executed yet (replica_pending_jobs_size_max).

    A transaction's events are taken to be of one size, and executed at an even pace.
    """

    def __init__(self, most: int, *, large_event_waits: bool) -> None:
        self.most = most
        self._large_event_waits = large_event_waits
        self._bytes = 0
        self._releases: list[tuple[float, int]] = []

    def first(self, transaction: TimedTransaction, now: float) -> float:
        """When the first event fits in: one over the limit waits until nothing else does. Raises
        ReplicationError 1864 (5.6)."""
        size = transaction.bytes // max(transaction.events, 1)
        if self._bytes + size <= self.most:
            return now
        if size > self.most and not self._large_event_waits:
            raise ReplicationError(
                1864,
                f"an event of {size} bytes exceeds slave_pending_jobs_size_max ({self.most})",
                file=transaction.file or None,
                position=transaction.position or None,
                hint="raise slave_pending_jobs_size_max",
            )
        self._release_until(now)
        while self._releases and (size > self.most or self._bytes + size > self.most):
            now = max(now, self._release())
        return now

    def rest(self, transaction: TimedTransaction, now: float, start: float, end: float) -> float:
        """When the last event fits in, while the worker executes the transaction from `start` to
        `end`."""
        size, events = transaction.bytes, transaction.events
        parts = (
            1 if size * PARTS <= self.most else min(max(events, 1), ceil(size * PARTS / self.most))
        )
        part, pace = size // parts, (end - start) / parts
        for number in range(1, parts + 1):
            self._release_until(now)
            while self._releases and self._bytes + part > self.most:
                now = max(now, self._release())
            self._bytes += part
            heappush(self._releases, (start + number * pace, part))
        if events > QUEUED_EVENTS_MAX:
            now = max(now, start + (end - start) * (events - QUEUED_EVENTS_MAX) / events)
        return now

    def _release_until(self, now: float) -> None:
        while self._releases and self._releases[0][0] <= now:
            self._release()

    def _release(self) -> float:
        moment, size = heappop(self._releases)
        self._bytes -= size
        return moment
