"""The applier without workers: reads, waits for the delay, executes, one event after the other.

exec_relay_log_event() and Rpl_applier_reader::read_next_event() (sql/rpl_replica.cc,
rpl_applier_reader.cc; next_event() in 5.x).
"""

from __future__ import annotations

from math import inf

from applier.replica.admission import AdmissionVerdict
from applier.timing.simulated_applier import SimulatedApplier
from applier.timing.simulation import Simulation
from applier.timing.timed import TimedTransaction


class Single(SimulatedApplier):
    """One thread."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation, parallel=False)

    def take(
        self,
        transaction: TimedTransaction,
        first_byte: float,
        last_byte: float,
        verdict: AdmissionVerdict,
    ) -> tuple[float, float, int]:
        """(start, end, worker 0)"""
        self._wait(first_byte)
        if verdict is AdmissionVerdict.NOT_RECEIVED:
            return self.now, self.now, -1
        self.relay_event(transaction, self.now, first_byte)
        self.timestamp.read(self.now, transaction.stamp)
        if verdict is AdmissionVerdict.SKIP:
            self.timestamp.read(self.now, transaction.last_stamp)
            return self.now, self.now, -1
        if self.delayed:
            self.now = self.nap(
                self.now,
                self.gate.gtid(
                    transaction.stamp, transaction.commit if transaction.timed else None
                ),
            )
        start = self.now
        execute = verdict is AdmissionVerdict.EXECUTE
        if not transaction.steps and not self.delayed and last_byte <= start:
            self.timestamp.read(start, transaction.body_stamp)
            self.now += transaction.seconds if execute else 0.0
        else:
            for arrival, step in self.parts(transaction, first_byte, last_byte):
                self._wait(arrival)
                self.timestamp.read(self.now, step.stamp)
                if self.delayed:
                    self.now = self.nap(self.now, self.gate.event(step.header))
                self.now += step.seconds if execute else 0.0
        if transaction.errors and execute:
            seconds, error = self.retry(transaction)
            self.now += seconds
            if error is not None:
                raise error
        if transaction.last_stamp != self.timestamp.value:
            self.timestamp.read(self.now, transaction.last_stamp)
        if start <= self.stop < self.now and transaction.rolls_back:
            return start, inf, -1
        return start, self.now, 0

    def drain(self) -> None:
        """The log is at its end."""
        self.timestamp.end_of_log(self.now)
        self.end(self.stop)

    def end(self, moment: float, *, handed_out: bool = False) -> None:
        """The applier stops; a transaction that cannot be undone is executed to its end."""
        if moment < inf:
            last = self.simulation.ends[-1] if len(self.simulation) else moment
            self.simulation.stopped_at = max(moment, last) if last < inf else moment
            self.ended = True

    def _wait(self, moment: float) -> None:
        """At the end of the relay log the timestamp is 0."""
        if moment > self.now:
            self.timestamp.end_of_log(self.now)
            self.now = moment
