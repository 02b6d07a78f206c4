"""MariaDB's worker threads: a pool that the domains share, and what is queued for each thread.

A domain goes round over places of its own. A place keeps its thread while that has work; a thread
without work goes back to the pool (rpl_parallel_entry::choose_thread, rpl_parallel_thread_pool,
sql/rpl_parallel.cc of MariaDB 10.11).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from applier.replica.scheduling import GroupCommitOrder


@dataclass(slots=True)
class QueuedGroup:
    """The events of a group in a thread's queue: they leave it at an even pace from `start` to
    `end`."""

    start: float
    end: float
    bytes: int

    def when_left(self, most: float) -> float:
        """When `most` bytes of it are left, which are fewer than it has."""
        return self.end - (self.end - self.start) * most / self.bytes


@dataclass(slots=True, eq=False)
class PooledWorker:
    """`free` is when it has done all that it was given. `id` counts from 1."""

    id: int
    free: float
    place: tuple[int, int] | None = None
    """The domain and its place that had it last."""
    queue: deque[QueuedGroup] = field(default_factory=deque)

    def room(self, now: float, most: int) -> float:
        """When its queue has room for one more event: it holds `most` bytes or less."""
        while self.queue and self.queue[0].end <= now:
            self.queue.popleft()
        left = sum(group.bytes for group in self.queue)
        for group in self.queue:
            if left <= most:
                break
            left -= group.bytes
            if left <= most:
                return max(now, group.when_left(most - left))
        return now


@dataclass(slots=True)
class SimulatedDomain:
    """One domain's batch, its commits, and its places in the pool."""

    order: GroupCommitOrder
    places: list[PooledWorker | None]
    at: int = -1
    """The place that was used last."""
    batch_from: float = 0.0
    """When the groups before the batch had all begun to commit."""
    committing: float = 0.0
    """When all groups so far have begun to commit; `committed`: when they are committed."""
    committed: float = 0.0


class WorkerPool:
    """`most` is slave_parallel_max_queued."""

    def __init__(self, count: int, start: float, most: int) -> None:
        self.workers = [PooledWorker(number + 1, start) for number in range(count)]
        self._most = most

    def choose(
        self, number: int, domain: SimulatedDomain, now: float
    ) -> tuple[PooledWorker, float]:
        """The worker of a domain's next group, and when the group can be given to it."""
        domain.at = (domain.at + 1) % len(domain.places)
        place, worker = (number, domain.at), domain.places[domain.at]
        if worker is not None and worker.place == place and worker.free > now:
            return worker, worker.room(now, self._most)
        now = max(now, min(each.free for each in self.workers))
        idle = [each for each in self.workers if each.free <= now]
        worker = max(idle, key=lambda each: (each.free, -each.id))
        worker.place, domain.places[domain.at] = place, worker
        return worker, now

    def queue(self, worker: PooledWorker, group: QueuedGroup, last_event: int, now: float) -> float:
        """Gives a worker a group, and says when its last event of so many bytes was queued."""
        worker.queue.append(QueuedGroup(group.start, group.end, group.bytes - last_event))
        queued = worker.room(now, self._most)
        if worker.queue:
            worker.queue[-1] = group
        return queued
