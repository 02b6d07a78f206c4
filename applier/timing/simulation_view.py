"""The view of a simulated replica at one moment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import inf

from applier.error_codes import Code
from applier.errors import UsageError
from applier.status.failure import NO_FAILURE, ThreadFailure
from applier.status.view import ANONYMOUS, NOTHING, OFF, ON, Monitored, ReplicaView, Thread
from applier.timing.simulation import Simulation
from applier.timing.timed import TimedTransaction

CAUGHT_UP = {
    "5.6": "Slave has read all relay log; waiting for the slave I/O thread to update it",
    "5.7": "Slave has read all relay log; waiting for more updates",
    "mariadb": "Slave has read all relay log; waiting for more updates",
}
CAUGHT_UP_NOW = "Replica has read all relay log; waiting for more updates"
DELAYED = {"5.6": "Waiting until MASTER_DELAY seconds after master executed event"}
DELAYED |= {"5.7": DELAYED["5.6"], "mariadb": DELAYED["5.6"]}
DELAYED_NOW = "Waiting until SOURCE_DELAY seconds after source executed event"
CONNECTED = {"5.6": "Waiting for master to send event", "5.7": "Waiting for master to send event"}
CONNECTED |= {"mariadb": CONNECTED["5.6"]}
CONNECTED_NOW = "Waiting for source to send event"


def view_at(
    simulation: Simulation, transactions: Sequence[TimedTransaction], moment: float
) -> ReplicaView:
    """A simulated replica at a moment of true time. `transactions` are those that were simulated.
    Times shown are the replica's.

    Raises UsageError when they are not as many.
    """
    if len(transactions) != len(simulation):
        raise UsageError(
            f"{len(simulation)} transactions were simulated, {len(transactions)} are given",
            code=Code.OPTION_VALUE,
        )
    return _Moment(simulation, transactions, moment).view()


class _Moment:
    """One look at a simulation."""

    def __init__(
        self, simulation: Simulation, transactions: Sequence[TimedTransaction], moment: float
    ) -> None:
        self.simulation = simulation
        self.transactions = transactions
        self.moment = moment
        self.configuration = simulation.configuration
        self.name = self.configuration.rules.name
        self.running = simulation.start <= moment and (
            simulation.stopped_at is None or moment < simulation.stopped_at
        )

    def view(self) -> ReplicaView:
        simulation, configuration = self.simulation, self.configuration
        connected = self.moment >= simulation.start and (
            configuration.receiver_stop is None or self.moment < configuration.receiver_stop
        )
        arrived = bisect_right(simulation.received, self.moment)
        shown = self._shown()
        source_end, executed_end = self._end_of(arrived), self._end_of(shown)
        remaining = (
            simulation.naps.remaining(self.moment, self._replica_time(self.moment))
            if self.running
            else None
        )
        return ReplicaView(
            version=configuration.server,
            receiver=self._receiver(arrived, connected),
            applier=self._applier(remaining),
            workers=tuple(
                self._worker(number) for number in range(1, configuration.worker_count + 1)
            ),
            source_file=source_end[0],
            read_position=source_end[1],
            executed_file=executed_end[0],
            executed_position=executed_end[1],
            source_server_id=self.transactions[arrived - 1].server_id if arrived else None,
            seconds_behind=simulation.seconds_behind(self.moment),
            delay=configuration.delay_seconds,
            remaining_delay=remaining,
        )

    def _replica_time(self, moment: float) -> float:
        return moment + self.configuration.replica_offset.at(moment)

    def _shown(self) -> int:
        positions = self.simulation.positions
        return (
            self.simulation.low_water_mark(self.moment)
            if positions is None
            else positions.at(self.moment)
        )

    def _end_of(self, count: int) -> tuple[str | None, int | None]:
        """Where the first `count` transactions end in the source's log."""
        if not count:
            return None, None
        last = self.transactions[count - 1]
        return (last.file, last.end) if last.file else (None, None)

    def _receiver(self, arrived: int, connected: bool) -> Thread:
        simulation = self.simulation
        begun = arrived < len(simulation) and simulation.arrivals[arrived] <= self.moment
        last = (
            self._monitored(arrived - 1, simulation.arrivals, simulation.received)
            if arrived
            else NOTHING
        )
        current = self._monitored(arrived, simulation.arrivals, None) if begun else NOTHING
        stage = CONNECTED.get(self.name, CONNECTED_NOW) if connected else ""
        return Thread(ON if connected else OFF, stage, NO_FAILURE, last, current)

    def _applier(self, remaining: int | None) -> Thread:
        """The coordinator, or the single applier, which is also its own worker."""
        simulation = self.simulation
        state = ON if self.running else OFF
        error = simulation.error
        failure = (
            NO_FAILURE
            if error is None or self.running
            else ThreadFailure(error.number, error.message, simulation.stopped_at)
        )
        stage: str | None = ""
        if remaining is not None:
            stage = DELAYED.get(self.name, DELAYED_NOW)
        elif self.running:
            stage = (
                CAUGHT_UP.get(self.name, CAUGHT_UP_NOW)
                if simulation.same_position(self.moment)
                else None
            )
        if not self.configuration.worker_count:
            return Thread(state, stage, failure, *self._applied(0))
        begun = bisect_right(simulation.buffered_from, self.moment)
        last = current = NOTHING
        if begun:
            ended = simulation.buffered_to[begun - 1] <= self.moment
            if not ended:
                current = self._monitored(begun - 1, simulation.buffered_from, None)
            before = begun - 1 if ended else begun - 2
            last = (
                self._monitored(before, simulation.buffered_from, simulation.buffered_to)
                if before >= 0
                else NOTHING
            )
        return Thread(state, stage, failure, last, current)

    def _worker(self, number: int) -> Thread:
        return Thread(ON if self.running else OFF, None, NO_FAILURE, *self._applied(number))

    def _applied(self, worker: int) -> tuple[Monitored, Monitored]:
        """What a worker did last and what it is at. One that was executed before never is
        LAST_APPLIED."""
        simulation = self.simulation
        last = current = None
        for number, who in enumerate(simulation.workers):
            if who != worker or simulation.starts[number] > self.moment:
                continue
            if simulation.ends[number] > self.moment:
                current = number
            elif number not in simulation.skipped:
                last = number
        return (
            NOTHING if last is None else self._monitored(last, simulation.starts, simulation.ends),
            NOTHING if current is None else self._monitored(current, simulation.starts, None),
        )

    def _monitored(
        self, number: int, starts: Sequence[float], ends: Sequence[float] | None
    ) -> Monitored:
        transaction = self.transactions[number]
        original = transaction.original_commit
        end = None if ends is None or ends[number] == inf else self._replica_time(ends[number])
        return Monitored(
            transaction.gtid or ANONYMOUS,
            (transaction.commit if original is None else original) if transaction.timed else None,
            transaction.commit if transaction.timed else None,
            self._replica_time(starts[number]),
            end,
            (
                min(transaction.errors, self.configuration.retries)
                if ends is not None and starts is self.simulation.starts
                else 0
            ),
        )
