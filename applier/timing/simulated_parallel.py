"""The applier with workers: the coordinator reads and hands out, workers execute and commit.

exec_relay_log_event(), Log_event::get_slave_worker(), slave_worker_exec_job_group()
(sql/rpl_replica.cc, log_event.cc, rpl_rli_pdb.cc). A transaction's worker begins while the
coordinator still reads it; the coordinator goes on as soon as all of it is handed out.
"""

from __future__ import annotations

from math import ceil, inf

from applier.errors import ReplicationError
from applier.replica.admission import AdmissionVerdict
from applier.replica.scheduling import LOGICAL_CLOCK
from applier.timing.coordinator import Coordinator
from applier.timing.schedule import ByDatabase, LogicalClock, Scheduler
from applier.timing.simulated_applier import SimulatedApplier
from applier.timing.simulation import Simulation
from applier.timing.timed import Step, TimedTransaction
from applier.timing.workers import PendingEvents, SimulatedWorker

PIECES_PER_PERIOD = 4
"""Into how many pieces what arrives in one checkpoint period is cut at most."""


class Parallel(SimulatedApplier):
    """The coordinator with its workers."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation, parallel=True)
        configuration, rules = self.configuration, self.rules
        self.coordinator = Coordinator(
            simulation.start,
            self.timestamp,
            period=configuration.checkpoint_period_seconds,
            group=configuration.checkpoint_group,
        )
        simulation.positions = self.coordinator.positions
        workers = [
            SimulatedWorker(number + 1, simulation.start)
            for number in range(configuration.worker_count)
        ]
        self.scheduler: Scheduler = (
            LogicalClock(self.coordinator, workers, rules)
            if configuration.scheduling == LOGICAL_CLOCK
            else ByDatabase(self.coordinator, workers)
        )
        self.pending = PendingEvents(
            configuration.pending_bytes_max, large_event_waits=rules.large_event_waits
        )
        self.commit_order = configuration.commit_order and configuration.worker_count > 1
        self._last_commit = simulation.start
        self._reading = (
            configuration.coordinator_seconds,
            configuration.coordinator_seconds_per_byte,
        )

    def take(
        self,
        transaction: TimedTransaction,
        first_byte: float,
        last_byte: float,
        verdict: AdmissionVerdict,
    ) -> tuple[float, float, int]:
        """(start, end, the worker's id; -1 for one that is not executed)"""
        coordinator = self.coordinator
        if first_byte > coordinator.now:
            coordinator.idle_until(first_byte)
        self.now = coordinator.now
        if verdict is AdmissionVerdict.NOT_RECEIVED or verdict is AdmissionVerdict.SKIP:
            if verdict is AdmissionVerdict.SKIP:
                coordinator.read(transaction.stamp)
            self.now = coordinator.skip()
            self.buffered(self.now)
            return self.now, self.now, -1
        self._before(transaction, first_byte)
        group, begun = coordinator.begin(), coordinator.now
        worker = self.scheduler.choose(transaction)
        if coordinator.now == inf:  # it waits for a worker that met an error
            self.now = inf
            self.buffered(begun)
            return inf, inf, -1
        if not self.timestamp.value:
            self.timestamp.read(coordinator.now, transaction.body_stamp)
        coordinator.now = self.pending.first(transaction, coordinator.now)
        start = max(coordinator.now, worker.free)
        end = self._execute(
            transaction, first_byte, last_byte, start, changes=verdict is AdmissionVerdict.EXECUTE
        )
        if transaction.errors and verdict is AdmissionVerdict.EXECUTE:
            end = self.retried(transaction, end)
        if end < inf:
            coordinator.now = self.pending.rest(transaction, coordinator.now, start, end)
            end = max(end, coordinator.now)
        if self.commit_order:
            end = self._last_commit = max(end, self._last_commit)
        worker.free = group.end = end
        group.stamp = transaction.last_stamp
        self.scheduler.handed_out(transaction, worker, end)
        self.now = coordinator.now
        self.buffered(begun)
        return start, end, worker.id

    def drain(self) -> None:
        """Nothing comes any more: idle, with a checkpoint each period, until the stop."""
        self.coordinator.idle_until(self.stop)
        self.now = self.coordinator.now
        self.end(self.stop)

    def end(self, moment: float, *, handed_out: bool = False) -> None:
        """STOP: groups up to the last one begun are executed, those behind it dropped. Nothing is
        half done, and no gap is left.

        `handed_out`: UNTIL, all that workers were given is executed. An error of a worker: the
        others end the group they are in, and gaps may remain.
        """
        if moment == inf or self.ended:
            return
        simulation = self.simulation
        recent = simulation.recent()
        if self.failure is not None:
            dropped = [number for number in recent if simulation.starts[number] >= moment]
        else:
            last = (
                len(simulation)
                if handed_out
                else max(
                    (number for number in recent if simulation.starts[number] <= moment), default=-1
                )
            )
            dropped = [number for number in recent if number > last]
        for number in dropped:
            simulation.drop(number)
        simulation.stopped_at = max(
            [moment, *(end for number in recent if (end := simulation.ends[number]) < inf)]
        )
        simulation.error = simulation.error or self.failure
        self.ended = True

    def fail(self, error: ReplicationError) -> None:
        """An error of the coordinator is like a stop."""
        self.simulation.error = error
        self.end(self.coordinator.now)

    def _before(self, transaction: TimedTransaction, first_byte: float) -> None:
        """The first event: a new file of the source waits for all workers (ROTATE is executed
        alone), then time and delay."""
        coordinator = self.coordinator
        if transaction.starts_file:
            coordinator.wait_for_all()
        self.relay_event(transaction, coordinator.now, first_byte)
        coordinator.read(transaction.stamp)
        if self.delayed:
            until = self.gate.gtid(
                transaction.stamp, transaction.commit if transaction.timed else None
            )
            coordinator.now = self.nap(coordinator.now, until)
        each, byte = self._reading
        if each or byte:
            coordinator.now += each + byte * transaction.bytes

    def _execute(
        self,
        transaction: TimedTransaction,
        first_byte: float,
        last_byte: float,
        start: float,
        *,
        changes: bool,
    ) -> float:
        """When the worker is through with it, commit order aside."""
        end = start
        coordinator = self.coordinator
        if last_byte <= coordinator.now and not self.delayed:
            end += transaction.seconds if changes else 0.0
        else:
            began = first_byte
            for arrival, step in self.parts(transaction, first_byte, last_byte):
                if arrival > coordinator.now:
                    self._read_as_it_comes(began, arrival, step)
                began = arrival
                if self.delayed:
                    coordinator.now = self.nap(coordinator.now, self.gate.event(step.header))
                end = max(end, coordinator.now) + (step.seconds if changes else 0.0)
        return end

    def _read_as_it_comes(self, began: float, arrival: float, step: Step) -> None:
        """The events of a step arrive one by one. A checkpoint in between finds the group at the
        head, whose time is not set before its end, and shows 0; the next event that is read sets it
        again. More pieces than four in a period would make no difference.
        """
        coordinator, seconds = self.coordinator, arrival - began
        most = ceil(PIECES_PER_PERIOD * seconds / coordinator.period) if seconds > 0 else 1
        pieces = max(1, min(step.events, most))
        for number in range(1, pieces + 1):
            moment = arrival if number == pieces else began + seconds * number / pieces
            if moment > coordinator.now:
                coordinator.idle_until(moment)
                coordinator.read(step.stamp)
