"""Who executes a transaction, and what has to be over before: replica_parallel_type DATABASE and
LOGICAL_CLOCK.

Mts_submode_database and Mts_submode_logical_clock (sql/rpl_mta_submode.cc 5.7, 8.0, 9.7). A
scheduler moves the coordinator's `now` on as far as it has to wait; what it waits for are ends of
earlier transactions, which are known by then.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from applier.errors import ReplicationError
from applier.replica.scheduling import ClockRules, LogicalClockOrder
from applier.timing.coordinator import Coordinator
from applier.timing.timed import ALL_DATABASES, TimedTransaction
from applier.timing.workers import SimulatedWorker

UNUSED_DATABASES_KEPT = 16
"""The server trims its map of databases beyond this."""


class Scheduler(Protocol):
    """How replica_parallel_type hands out transactions."""

    def choose(self, transaction: TimedTransaction) -> SimulatedWorker:
        """The worker. The transaction's slot is already the last in the coordinator's queue."""

    def handed_out(
        self, transaction: TimedTransaction, worker: SimulatedWorker, end: float
    ) -> None:
        """The worker will be done with it at `end`; in parts that may be after all others."""


class ByDatabase:
    """One worker a database at a time; transactions queue behind each other there.

    Implements `Scheduler`.
    """

    def __init__(self, coordinator: Coordinator, workers: list[SimulatedWorker]) -> None:
        self._coordinator = coordinator
        self._workers = workers
        self._used: dict[str, tuple[SimulatedWorker, float]] = {}
        """Database -> (the worker that has it, until when)."""

    def choose(self, transaction: TimedTransaction) -> SimulatedWorker:
        coordinator = self._coordinator
        if transaction.databases == ALL_DATABASES:
            coordinator.now = max(coordinator.now, *(worker.free for worker in self._workers))
            return self._workers[0]
        chosen: SimulatedWorker | None = None
        for database in transaction.databases:
            owner, until = self._used.get(database, (None, 0.0))
            if owner is None or until <= coordinator.now:
                chosen = chosen or self._least_occupied()
            elif chosen is None or owner is chosen:
                chosen = owner
            else:
                coordinator.now = until
        assert chosen is not None
        return chosen

    def handed_out(
        self, transaction: TimedTransaction, worker: SimulatedWorker, end: float
    ) -> None:
        if transaction.databases == ALL_DATABASES:  # alone, from its first event to its last
            self._coordinator.now = max(self._coordinator.now, end)
            return
        for database in transaction.databases:
            self._used[database] = worker, end

    def _least_occupied(self) -> SimulatedWorker:
        """The worker with the fewest databases in use; of equal ones the last."""
        now = self._coordinator.now
        if len(self._used) > UNUSED_DATABASES_KEPT:
            self._used = {database: use for database, use in self._used.items() if use[1] > now}
        occupied: dict[int, int] = {}
        for worker, until in self._used.values():
            if until > now:
                occupied[worker.id] = occupied.get(worker.id, 0) + 1
        if not occupied:
            return self._workers[-1]
        return min(reversed(self._workers), key=lambda worker: occupied.get(worker.id, 0))


class LogicalClock:
    """What was in the source's group commit together runs together; one transaction a worker, no
    queues. Implements `Scheduler`."""

    def __init__(
        self, coordinator: Coordinator, workers: list[SimulatedWorker], rules: ClockRules
    ) -> None:
        self._coordinator = coordinator
        self._workers = workers
        self._order = LogicalClockOrder(rules)
        self._window = 0
        """sequence_number of the first transaction behind the last barrier."""
        self._done: deque[float] = deque(maxlen=coordinator.capacity)
        """When all of the window up to each sequence_number are done, the last of them for
        `_previous`."""

    def choose(self, transaction: TimedTransaction) -> SimulatedWorker:
        coordinator = self._coordinator
        order, committed = self._order, transaction.last_committed
        if transaction.starts_file:
            order.new_log()
        previous = order.previous
        if self._is_barrier(transaction):
            coordinator.wait_for_all_before()
            self._window = order.previous
            self._done.clear()
        elif committed >= self._window:
            back = previous - committed
            if back < len(self._done):
                coordinator.now = max(coordinator.now, self._done[-1 - back])
        return self._free_worker()

    def handed_out(
        self, transaction: TimedTransaction, worker: SimulatedWorker, end: float
    ) -> None:
        self._done.append(max(end, self._done[-1]) if self._done else end)

    def _is_barrier(self, transaction: TimedTransaction) -> bool:
        try:
            return self._order.is_barrier(transaction.last_committed, transaction.sequence_number)
        except ReplicationError as error:
            error.locate(file=transaction.file or None, position=transaction.position or None)
            raise

    def _free_worker(self) -> SimulatedWorker:
        """The first one without work; the coordinator spins until there is one."""
        now = self._coordinator.now
        for worker in self._workers:
            if worker.free <= now:
                return worker
        earliest = min(self._workers, key=lambda worker: worker.free)
        self._coordinator.now = earliest.free
        return earliest
