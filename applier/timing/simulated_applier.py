"""What the applier has in common with and without workers: its timestamp, the delay, retries, and
how its events come in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import floor, inf

from applier.errors import ReplicationError
from applier.timing.delay import DelayGate, nap_seconds
from applier.timing.seconds_behind import LastSourceTimestamp
from applier.timing.simulation import Simulation
from applier.timing.timed import Step, TimedTransaction
from applier.timing.workers import retry_seconds


class SimulatedApplier(ABC):
    """What both kinds of applier share: the timestamp, the delay, retries, and how it ends."""

    def __init__(self, simulation: Simulation, *, parallel: bool) -> None:
        configuration = simulation.configuration
        self.simulation = simulation
        self.configuration = configuration
        self.rules = configuration.rules
        self.timestamp = LastSourceTimestamp(
            self.rules, parallel=parallel, monotonic=configuration.monotonic
        )
        self.now = simulation.start
        """Where the thread that reads the relay log is."""
        self.ended = False
        self.stop = inf if configuration.stop is None else configuration.stop
        """When the applier stops: as asked, or for an error of a worker that the coordinator has
        not seen yet."""
        self.failure: ReplicationError | None = None
        self.gate = DelayGate(self.rules, configuration.delay_seconds, simulation.clock_difference)
        self.delayed = configuration.delay_seconds > 0
        self.retries = configuration.retries if self.rules.workers_retry or not parallel else 0
        self._parallel = parallel
        simulation.timestamp = self.timestamp.history

    @abstractmethod
    def end(self, moment: float, *, handed_out: bool = False) -> None:
        """STOP. `handed_out`: UNTIL, all that workers were given is executed."""

    def fail(self, error: ReplicationError) -> None:
        """An error of the thread that reads is like a stop."""
        self.simulation.error = error
        self.end(self.now)

    def buffered(self, begun: float) -> None:
        """The thread that reads was at the next transaction from `begun` until now."""
        self.simulation.buffered_from.append(begun)
        self.simulation.buffered_to.append(self.now)

    def replica_time(self, moment: float) -> float:
        """What the replica's clock shows at a moment of true time."""
        return moment + self.configuration.replica_offset.at(moment)

    def nap(self, now: float, until: int | None) -> float:
        """Sleeps for SOURCE_DELAY; when that is over."""
        seconds = nap_seconds(until, self.replica_time(now))
        if seconds and until is not None:
            self.simulation.naps.add(now, now + seconds, until)
        return now + seconds

    def retry(
        self, transaction: TimedTransaction, *, pauses: bool = True
    ) -> tuple[float, ReplicationError | None]:
        """Seconds that its temporary errors cost, and the error with which it gives up at their
        end. `pauses`: the applier sleeps before it tries again."""
        tried = min(transaction.errors, self.retries)
        seconds = tried * transaction.seconds
        if pauses:
            seconds += retry_seconds(tried, worker=self._parallel)
        if transaction.errors <= self.retries:
            return seconds, None
        return seconds, ReplicationError(
            1213,
            f"the applier retried the transaction {tried} time(s) in vain, giving up",
            file=transaction.file or None,
            position=transaction.position or None,
            hint="raise replica_transaction_retries, or find out what the transaction waits for",
        )

    def retried(self, transaction: TimedTransaction, done: float, *, pauses: bool = True) -> float:
        """When a worker's transaction that meets temporary errors is done. When it gives up, never;
        the thread that reads goes on until it sees that."""
        seconds, error = self.retry(transaction, pauses=pauses)
        done += seconds
        if error is None:
            return done
        if done < self.stop:
            self.stop, self.failure = done, error
        return inf

    def parts(
        self, transaction: TimedTransaction, first_byte: float, last_byte: float
    ) -> Iterator[tuple[float, Step]]:
        """The steps of a transaction and when each is in the relay log to its end."""
        if not transaction.steps:
            header = (
                int(transaction.commit)
                if transaction.body_stamp != transaction.stamp
                else transaction.stamp
            )
            step = Step(
                transaction.body_stamp,
                header,
                transaction.events,
                transaction.bytes,
                transaction.seconds,
            )
            yield max(first_byte, last_byte - transaction.seconds), step
            return
        passed, whole = 0, max(transaction.bytes, 1)
        for step in transaction.steps:
            passed += step.bytes
            yield first_byte + (last_byte - first_byte) * passed / whole, step

    def relay_event(self, transaction: TimedTransaction, now: float, first_byte: float) -> None:
        """Bug #72376: the head of the next relay log counts, with the replica's time at which the
        receiver wrote it."""
        if transaction.starts_file and self.configuration.counts_relay_events:
            self.timestamp.read(now, floor(self.replica_time(first_byte)))
