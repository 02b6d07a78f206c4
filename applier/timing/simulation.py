"""What a replica would have done: every transaction's times, Seconds_Behind_Source and the true lag
at every moment.

    simulation = simulate(transactions, ClockConfiguration(server="8.0", workers=8))
    simulation.seconds_behind(moment), simulation.true_lag(moment), simulation.work_left(moment)

All moments are true time, seconds since 1970. With workers, what each transaction waits for are
ends of earlier ones, so that one pass in the log's order is the whole simulation; memory grows by
some 60 bytes a transaction, whatever their size.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from applier.errors import ReplicationError
from applier.timing.clock import ClockConfiguration
from applier.timing.delay import Naps
from applier.timing.seconds_behind import Timeline, seconds_behind


@dataclass(frozen=True, slots=True)
class WorkLeft:
    """What the source had committed and the replica had not. `seconds` until it is done if nothing
    comes; None: never."""

    transactions: int
    bytes: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class LagSample:
    """One sample. None is unknown (the server's NULL)."""

    time: float
    seconds_behind: int | None
    true_lag: float | None
    work: WorkLeft


class Simulation:
    """The result of `simulate`. Entry i of the arrays belongs to the i-th transaction of the log;
    inf stands for never.

    `commits` are in true time, `arrivals` and `received` when the first and the last byte are
    there, `starts` and `ends` when a worker begins and is done, `workers` who (0: the single
    applier, -1: nobody, it was skipped or never executed).
    """

    def __init__(
        self, configuration: ClockConfiguration, clock_difference: int, start: float
    ) -> None:
        self.configuration = configuration
        self.clock_difference = clock_difference
        self.start = start
        self.commits = array("d")
        self.arrivals = array("d")
        self.received = array("d")
        self.buffered_from = array("d")
        """With workers: when the coordinator read the first event of each that it handed out, …"""
        self.buffered_to = array("d")
        """… and when it had handed out the last one."""
        self.skipped: set[int] = set()
        """Those that went through without changes, since their GTID was executed."""
        self.starts = array("d")
        self.ends = array("d")
        self.workers = array("h")
        self.timestamp = Timeline()
        """last_source_timestamp."""
        self.positions: Timeline | None = None
        """How many transactions lie below the position that the replica shows. None: all that are
        done (no workers)."""
        self.naps = Naps()
        self.stopped_at: float | None = None
        """When the applier stopped; None: it runs."""
        self.error: ReplicationError | None = None
        self._bytes = array("q", [0])
        self._low_water = array("d")
        """Up to each transaction: when it and all before it are done."""
        self._committed = array("d")
        self._finished: tuple[list[float], list[int]] | None = None

    def add(
        self,
        commit: float,
        arrival: float,
        received: float,
        start: float,
        end: float,
        worker: int,
        size: int,
    ) -> None:
        """The next transaction of the log."""
        low, latest = (self._low_water[-1], self._committed[-1]) if self.commits else (end, commit)
        self.commits.append(commit)
        self.arrivals.append(arrival)
        self.received.append(received)
        self.starts.append(start)
        self.ends.append(end)
        self.workers.append(worker)
        self._bytes.append(self._bytes[-1] + size)
        self._low_water.append(end if end > low else low)
        self._committed.append(commit if commit > latest else latest)

    def recent(self) -> range:
        """Transactions that the queue may hold: all others are done, or do not begin."""
        return range(max(len(self) - self._queue_length() - 1, 0), len(self))

    def _queue_length(self) -> int:
        """How many transactions may be under way at most: MariaDB does not count them."""
        configuration = self.configuration
        most = configuration.checkpoint_group + configuration.worker_count
        return len(self) if configuration.rules.by_group_commit else most

    def drop(self, number: int) -> None:
        """It is not executed after all."""
        self.starts[number] = self.ends[number] = inf
        self.workers[number] = -1
        for later in range(number, len(self)):
            self._low_water[later] = inf

    def __len__(self) -> int:
        return len(self.commits)

    @property
    def end(self) -> float:
        """When the last transaction that is ever done is done."""
        return max((end for end in self.ends if end < inf), default=self.start)

    def seconds_behind(self, moment: float) -> int | None:
        """What SHOW REPLICA STATUS says; None is NULL."""
        configuration = self.configuration
        connected = moment >= self.start and (
            configuration.receiver_stop is None or moment < configuration.receiver_stop
        )
        return seconds_behind(
            moment + configuration.replica_offset.at(moment),
            self.timestamp.at(moment),
            self.clock_difference,
            applier_running=self.start <= moment
            and (self.stopped_at is None or moment < self.stopped_at),
            connected=connected,
            same_position=self.same_position(moment),
            follows_caught_up=configuration.rules.follows_caught_up,
        )

    def same_position(self, moment: float) -> bool:
        """Whether nothing is in the relay log behind the position that the applier shows."""
        shown = self.low_water_mark(moment) if self.positions is None else self.positions.at(moment)
        return shown >= len(self) or self.arrivals[shown] > moment

    def true_lag(self, moment: float) -> float | None:
        """Age of the oldest transaction that the source has committed and the replica has not; 0
        without one, None before the start."""
        if moment < self.start and not self.commits:
            return None
        oldest = self.low_water_mark(moment)
        return max(moment - self.commits[oldest], 0.0) if oldest < len(self) else 0.0

    def low_water_mark(self, moment: float) -> int:
        """How many transactions from the first on are done without a gap, whether a checkpoint has
        seen it or not."""
        return bisect_right(self._low_water, moment)

    def gaps(self, moment: float) -> list[int]:
        """Transactions that are not done though a later one is."""
        mark = self.low_water_mark(moment)
        done = [
            number
            for number in range(mark, self._started_before(mark, moment))
            if self.ends[number] <= moment
        ]
        return (
            [number for number in range(mark, done[-1]) if self.ends[number] > moment]
            if done
            else []
        )

    def _started_before(self, mark: int, moment: float) -> int:
        """No transaction of this number or a later one is done: the queue holds no more than a
        group."""
        return min(mark + self._queue_length() + 1, len(self))

    def work_left(self, moment: float) -> WorkLeft:
        """Commits up to `moment` that are not done by then."""
        committed = bisect_right(self._committed, moment)
        if self._finished is None:
            order = sorted(range(len(self)), key=self.ends.__getitem__)
            sizes, total = [0], 0
            for number in order:
                total += self._bytes[number + 1] - self._bytes[number]
                sizes.append(total)
            self._finished = [self.ends[number] for number in order], sizes
        ends, sizes = self._finished
        done = bisect_right(ends, moment)
        latest = self._low_water[committed - 1] if committed else moment
        return WorkLeft(
            max(committed - done, 0),
            max(self._bytes[committed] - sizes[done], 0),
            None if latest == inf else max(latest - moment, 0.0),
        )

    def sample(self, start: float, stop: float, every: float = 1.0) -> Iterator[LagSample]:
        """Moments from `start` to `stop`."""
        for number in range(int((stop - start) / every) + 1):
            moment = start + number * every
            yield LagSample(
                moment, self.seconds_behind(moment), self.true_lag(moment), self.work_left(moment)
            )
