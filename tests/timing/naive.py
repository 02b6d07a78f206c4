"""The coordinator and its workers once more, tick by tick and as literally as possible: the oracle
of the simulation.

Time is whole seconds. In each, workers end what is over, then the coordinator does all it can
without waiting. It is a generator that hands out what it waits for. Nothing is computed ahead;
usage counts, the low-water mark and the pending bytes are kept as the server keeps them
(sql/rpl_mta_submode.cc, rpl_rli_pdb.cc, rpl_replica.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from applier.replica.scheduling import LOGICAL_CLOCK
from applier.timing.clock import ClockConfiguration
from applier.timing.timed import ALL_DATABASES, TimedTransaction

Condition = Callable[[], bool]


@dataclass
class Job:
    number: int
    transaction: TimedTransaction
    executed_at: int | None = None
    done: bool = False
    stamp: int = 0


@dataclass
class NaiveWorker:
    id: int
    jobs: list[Job] = field(default_factory=list)
    usage_partition: int = 0


@dataclass
class Entry:
    worker: NaiveWorker
    usage: int = 0


class Naive:
    """Run it with `run(until)`. Results: `starts`, `ends`, `who`; `shown` and `stamps` hold one
    value a tick, at its end."""

    def __init__(
        self, transactions: list[TimedTransaction], configuration: ClockConfiguration, start: int
    ) -> None:
        self.transactions = transactions
        self.configuration = configuration
        self.now = start
        self.workers = [NaiveWorker(number + 1) for number in range(configuration.worker_count)]
        self.gaq: list[Job] = []
        self.entries: dict[str, Entry] = {}
        self.commit_queue: list[Job] = []
        self.pending = 0
        self.timestamp = 0
        self.position = 0
        self.last_checkpoint = start
        self.starts: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self.who: dict[int, int] = {}
        self.shown: list[int] = []
        self.stamps: list[int] = []
        self.window: list[Job] = []
        self.previous = 0
        self.first = True
        self.chosen = self.workers[0]

    def run(self, until: int) -> None:
        coordinator = self.coordinate()
        waiting_for: Condition = lambda: True  # noqa: E731
        while self.now <= until:
            self.work()
            while waiting_for():
                waiting_for = next(coordinator)
                self.work()
            self.shown.append(self.position)
            self.stamps.append(self.timestamp)
            self.now += 1

    # workers

    def work(self) -> None:
        progress = True
        while progress:
            progress = False
            for worker in self.workers:
                progress |= self.work_on(worker)

    def work_on(self, worker: NaiveWorker) -> bool:
        if not worker.jobs:
            return False
        job = worker.jobs[0]
        if job.number not in self.starts:
            self.starts[job.number] = self.now
            return True
        if (
            job.executed_at is None
            and self.now >= self.starts[job.number] + job.transaction.seconds
        ):
            job.executed_at = self.now
            self.pending -= job.transaction.bytes
            return True
        if job.executed_at is None or (
            self.configuration.commit_order and self.commit_queue[0] is not job
        ):
            return False
        self.commit_queue.remove(job)
        worker.jobs.pop(0)
        job.done = True
        self.ends[job.number] = self.now
        self.who[job.number] = worker.id
        for database in job.transaction.databases:
            entry = self.entries.get(database)
            if entry is not None:
                entry.usage -= 1
                entry.worker.usage_partition -= entry.usage == 0
        return True

    # coordinator

    def coordinate(self) -> Iterator[Condition]:
        for number, transaction in enumerate(self.transactions):
            yield from self.end_of_log(int(transaction.commit))
            yield from self.before_event()
            self.read(transaction.stamp)
            job = Job(number, transaction)
            self.gaq.append(job)
            if self.configuration.scheduling == LOGICAL_CLOCK:
                yield from self.wait_for_dependencies(job)
                yield lambda: any(not worker.jobs for worker in self.workers)
                worker = next(worker for worker in self.workers if not worker.jobs)
            else:
                yield from self.databases_are_free(transaction)
                worker = self.chosen
            if self.timestamp == 0:
                self.read(transaction.body_stamp)
            yield from self.wait_for_memory(transaction.bytes)
            self.pending += transaction.bytes
            worker.jobs.append(job)
            self.commit_queue.append(job)
            job.stamp = transaction.last_stamp
            if (
                transaction.databases == ALL_DATABASES
                and self.configuration.scheduling != LOGICAL_CLOCK
            ):
                yield lambda: not any(worker.jobs for worker in self.workers)
        yield from self.end_of_log(1 << 60)

    def end_of_log(self, arrival: int) -> Iterator[Condition]:
        while self.now < arrival:
            if self.now - self.last_checkpoint >= self.configuration.checkpoint_period_seconds:
                self.checkpoint()
            if not self.gaq:
                self.timestamp = 0
            wake = self.now + int(self.configuration.checkpoint_period_seconds)
            yield lambda wake=wake: self.now >= min(wake, arrival)  # type: ignore[misc]

    def before_event(self) -> Iterator[Condition]:
        if len(self.gaq) >= self.configuration.checkpoint_group:
            yield from self.forced_checkpoint()
        elif self.now - self.last_checkpoint >= self.configuration.checkpoint_period_seconds:
            self.checkpoint()

    def read(self, stamp: int) -> None:
        if self.timestamp == 0 and self.configuration.rules.coordinator_sets_timestamp:
            self.timestamp = stamp

    def checkpoint(self) -> None:
        self.last_checkpoint = self.now
        popped = None
        while self.gaq and self.gaq[0].done:
            popped = self.gaq.pop(0)
            self.position += 1
        if popped is None:
            return
        if not self.configuration.rules.checkpoint_shows_head:
            self.timestamp = popped.stamp
        else:
            self.timestamp = self.gaq[0].stamp if self.gaq else 0

    def forced_checkpoint(self) -> Iterator[Condition]:
        yield lambda: self.gaq[0].done
        self.checkpoint()

    def wait_for_memory(self, size: int) -> Iterator[Condition]:
        most = self.configuration.pending_bytes_max
        yield lambda: self.pending + size <= most if size <= most else self.pending == 0

    # LOGICAL_CLOCK

    def low_water_mark(self) -> int:
        """The largest sequence number with all before it done."""
        mark = 0
        for job in self.window:
            if not job.done:
                break
            mark = job.transaction.sequence_number
        return mark

    def wait_for_dependencies(self, job: Job) -> Iterator[Condition]:
        committed, number = job.transaction.last_committed, job.transaction.sequence_number
        gap = number > self.previous + 1 and (
            not self.first or self.configuration.rules.first_gap_counts
        )
        if number == 0 or committed == 0 or gap or self.previous == 0:
            while len(self.gaq) > 1:
                yield from self.forced_checkpoint()
            self.window = []
        elif (
            self.gaq[0] is not job
            and self.window
            and committed >= self.window[0].transaction.sequence_number
        ):
            yield lambda: self.low_water_mark() >= committed
        self.window.append(job)
        self.previous, self.first = number, False

    # DATABASE

    def databases_are_free(self, transaction: TimedTransaction) -> Iterator[Condition]:
        """Ends with the worker in `chosen`."""
        if transaction.databases == ALL_DATABASES:
            yield lambda: not any(worker.jobs for worker in self.workers)
            self.chosen = self.workers[0]
            return
        chosen: NaiveWorker | None = None
        for database in transaction.databases:
            entry = self.entries.get(database)
            if entry is None or entry.usage == 0:
                chosen = chosen or self.least_occupied()
                entry = self.entries[database] = Entry(chosen)
            elif chosen is None:
                chosen = entry.worker
            elif entry.worker is not chosen:
                yield lambda entry=entry: entry.usage == 0  # type: ignore[misc]
                entry = self.entries[database] = Entry(chosen)
            entry.usage += 1
            chosen.usage_partition += entry.usage == 1
        assert chosen is not None
        self.chosen = chosen

    def least_occupied(self) -> NaiveWorker:
        least = self.workers[0]
        for worker in self.workers:
            if worker.usage_partition <= least.usage_partition:
                least = worker
        return least
