"""MariaDB's applier with workers: one thread reads and hands out, workers execute, and each domain
commits in the log's order.

rpl_parallel::do_event() and handle_rpl_parallel_thread() (sql/rpl_parallel.cc of MariaDB 10.11).
The reading thread does not wait for what ties groups together: it queues them, and the workers
wait. It waits itself where a worker's queue is full, or where no thread is left in the pool.
"""

from __future__ import annotations

from math import inf

from applier.error_codes import Code
from applier.errors import UsageError
from applier.replica.admission import AdmissionVerdict
from applier.replica.scheduling import (
    MINIMAL,
    NEW_BATCH,
    NONE,
    WAITS_FOR_COMMITS,
    GroupCommitOrder,
)
from applier.timing.domain_workers import QueuedGroup, SimulatedDomain, WorkerPool
from applier.timing.seconds_behind import CommittedTimestamp
from applier.timing.simulated_applier import SimulatedApplier
from applier.timing.simulation import Simulation
from applier.timing.timed import TimedTransaction


class ParallelDomains(SimulatedApplier):
    """The reading thread with its workers."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation, parallel=True)
        configuration = self.configuration
        self._shown = CommittedTimestamp(self.timestamp.history, simulation.start)
        simulation.positions = self._shown.positions
        count = configuration.worker_count
        self._pool = WorkerPool(count, simulation.start, configuration.max_queued_bytes)
        self._places = min(configuration.domain_workers or count, count)
        self._domains: dict[int, SimulatedDomain] = {}
        self._domain_of: list[int] = []
        self._failed: int | None = None
        """The domain of the group that gives up."""
        self._one_domain = configuration.by_position or configuration.scheduling in (NONE, MINIMAL)

    def take(
        self,
        transaction: TimedTransaction,
        first_byte: float,
        last_byte: float,
        verdict: AdmissionVerdict,
    ) -> tuple[float, float, int]:
        """(start, end, the worker's id; -1 for one that is not executed)"""
        if transaction.marks.is_scheduled_apart:
            raise UsageError(
                "XA transactions and ALTER TABLE in two parts are not simulated with workers of"
                " MariaDB",
                code=Code.CONFIGURATION,
                hint="use 0 workers",
            )
        number = 0 if self._one_domain else transaction.marks.domain
        self._domain_of.append(number)
        self._wait(first_byte)
        begun = self.now
        if verdict is AdmissionVerdict.NOT_RECEIVED or verdict is AdmissionVerdict.SKIP:
            if verdict is AdmissionVerdict.SKIP:
                self._shown.read(self.now, transaction.stamp)
                self._shown.committed(self.now, transaction.last_stamp, len(self.simulation))
            self.buffered(begun)
            return self.now, self.now, -1
        self.relay_event(transaction, self.now, first_byte)
        self._shown.read(self.now, _header(transaction))
        if self.delayed:
            self.now = self.nap(self.now, self.gate.gtid(transaction.stamp, None))
        self.now += (
            self.configuration.coordinator_seconds
            + self.configuration.coordinator_seconds_per_byte * transaction.bytes
        )
        start, end, worker = self._hand_out(
            transaction, first_byte, last_byte, number,
            changes=verdict is AdmissionVerdict.EXECUTE,
        )  # fmt: skip
        self._shown.committed(end, transaction.last_stamp, len(self.simulation))
        self.buffered(begun)
        return start, end, worker

    def _hand_out(
        self,
        transaction: TimedTransaction,
        first_byte: float,
        last_byte: float,
        number: int,
        *,
        changes: bool,
    ) -> tuple[float, float, int]:
        """(start, end, the worker's id)"""
        domain = self._domain(number)
        waits = domain.order.take(transaction.marks)
        if waits & NEW_BATCH:
            domain.batch_from = domain.committing
        worker, self.now = self._pool.choose(number, domain, self.now)
        start = max(self.now, worker.free, domain.batch_from)
        if waits & WAITS_FOR_COMMITS:
            start = max(start, domain.committed)
        if start == inf:
            return inf, inf, -1
        done = self._executed(transaction, first_byte, last_byte, start, changes=changes)
        if transaction.errors and changes:
            done = self._retried(transaction, done, domain, number)
        end = max(done, domain.committed)
        if done < inf:
            group = QueuedGroup(start, done, transaction.bytes)
            last_event = transaction.bytes // max(transaction.events, 1)
            self.now = self._pool.queue(worker, group, last_event, self.now)
        commits = end if transaction.marks.is_standalone else done
        domain.committing = max(domain.committing, commits)
        worker.free = domain.committed = end
        return start, end, worker.id

    def _domain(self, number: int) -> SimulatedDomain:
        """A domain's state, made with its first group."""
        found = self._domains.get(number)
        if found is None:
            order = GroupCommitOrder(self.configuration.scheduling)
            found = self._domains[number] = SimulatedDomain(order, [None] * self._places)
        return found

    def _executed(
        self,
        transaction: TimedTransaction,
        first_byte: float,
        last_byte: float,
        start: float,
        *,
        changes: bool,
    ) -> float:
        """When the worker has executed it and may commit. What is not there yet is waited for; a
        worker that has no more of it to execute counts as idle."""
        if last_byte <= self.now and not self.delayed:
            return start + (transaction.seconds if changes else 0.0)
        end = start
        for arrival, step in self.parts(transaction, first_byte, last_byte):
            if arrival > self.now:
                self._shown.busy(end)
                self._wait(arrival)
                self._shown.read(self.now, step.header)
            if self.delayed:
                self.now = self.nap(self.now, self.gate.event(step.header))
            end = max(end, self.now) + (step.seconds if changes else 0.0)
        return end

    def _retried(
        self, transaction: TimedTransaction, done: float, domain: SimulatedDomain, number: int
    ) -> float:
        """When a group that meets temporary errors may commit: it waits until all before it are
        committed, and is executed again, without a pause."""
        failure = self.failure
        done = self.retried(transaction, max(done, domain.committed), pauses=False)
        if self.failure is not failure:
            self._failed = number
        return done

    def drain(self) -> None:
        """Nothing comes any more."""
        self._shown.end_of_log(self.now)
        self._shown.advance(self.stop)
        self.end(self.stop)

    def end(self, moment: float, *, handed_out: bool = False) -> None:
        """STOP: in each domain, groups up to the last one begun are executed, those behind it
        dropped. `handed_out`: UNTIL, all that workers were given is executed.

        An error of a worker: nothing behind its group is committed in its domain; other domains
        end the groups that they have begun.
        """
        if moment == inf or self.ended:
            return
        simulation = self.simulation
        starts, ends = simulation.starts, simulation.ends
        last: dict[int, int] = {}
        for number, domain in enumerate(self._domain_of[: len(simulation)]):
            if handed_out or starts[number] <= moment:
                last[domain] = number
        dropped = {
            number
            for number, domain in enumerate(self._domain_of[: len(simulation)])
            if number > last.get(domain, -1) or (domain == self._failed and ends[number] > moment)
        }
        for number in sorted(dropped, reverse=True):
            simulation.drop(number)
        self._shown.drop(dropped)
        rest = [end for end in ends if moment < end < inf]
        simulation.stopped_at = max([moment, *rest])
        self._shown.advance(simulation.stopped_at)
        simulation.error = simulation.error or self.failure
        self.ended = True

    def _wait(self, moment: float) -> None:
        """For what arrives then."""
        if moment > self.now:
            self._shown.end_of_log(self.now)
            self.now = moment


def _header(transaction: TimedTransaction) -> int:
    """Of its GTID event."""
    return transaction.steps[0].header if transaction.steps else transaction.stamp
