"""Seconds_Behind_Source: the number itself, and the timestamp that it is made of.

The number is that of show_slave_status_send_data() (5.6 to 9.7 the same). `last_source_timestamp`
(last_master_timestamp) is set in exec_relay_log_event(), mta_checkpoint_routine() and where the
applier meets the end of the relay log; `rules` has the differences.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from heapq import heappop, heappush
from math import floor, inf

from applier.replica.scheduling import ClockRules


def seconds_behind(
    now: float,
    last_source_timestamp: int,
    clock_difference: int,
    *,
    applier_running: bool,
    connected: bool,
    same_position: bool,
    follows_caught_up: bool = False,
) -> int | None:
    """What the server shows; None is its NULL. `now` is the replica's clock.

    `same_position`: the receiver's position is the applier's. `follows_caught_up`: MariaDB, which
    does not compare them.
    """
    if not applier_running or (follows_caught_up and not connected):
        return None
    if same_position and not follows_caught_up:
        return 0 if connected else None
    if not last_source_timestamp:
        return 0
    return max(0, floor(now) - last_source_timestamp - clock_difference)


def clock_difference(replica_time: float, source_time: float, answer_seconds: float = 0.0) -> int:
    """clock_diff_with_source: the replica's clock, when the answer to UNIX_TIMESTAMP() is there,
    less that answer. Whole seconds."""
    return floor(replica_time + answer_seconds) - floor(source_time)


class Timeline:
    """A value over time that changes at moments: `times` ascend, `values[i]` holds from `times[i]`
    on."""

    __slots__ = ("times", "value", "values")

    def __init__(self, value: int = 0) -> None:
        self.times = array("d")
        self.values = array("q")
        self.value = value

    def set(self, moment: float, value: int) -> None:
        """The value from this moment on; moments must not go back."""
        if value == self.value and self.times:
            return
        if self.times and self.times[-1] == moment:
            self.values[-1] = value
        else:
            self.times.append(moment)
            self.values.append(value)
        self.value = value

    def at(self, moment: float) -> int:
        """0 before the first change."""
        found = bisect_right(self.times, moment)
        return self.values[found - 1] if found else 0

    def __len__(self) -> int:
        return len(self.times)


class LastSourceTimestamp:
    """last_source_timestamp over time, set as the server does. `parallel` is with workers.

    `monotonic` keeps the larger of the old and a new value (the patch of the group replication
    article).
    """

    __slots__ = ("_highest", "history", "monotonic", "parallel", "rules")

    def __init__(self, rules: ClockRules, *, parallel: bool, monotonic: bool = False) -> None:
        self.rules = rules
        self.parallel = parallel
        self.monotonic = monotonic
        self.history = Timeline()
        self._highest = 0

    @property
    def value(self) -> int:
        """As it is now, in seconds since 1970; 0 when the applier has nothing to do."""
        return self.history.value

    def read(self, moment: float, stamp: int) -> None:
        """An event that counts was read, before it is delayed or executed. `stamp` = header time +
        exec_time."""
        if not stamp and not self.rules.zero_time_counts:
            return
        if self.parallel and (self.history.value or not self.rules.coordinator_sets_timestamp):
            return
        if self.monotonic:
            stamp = self._highest = max(self._highest, stamp)
        self.history.set(moment, stamp)

    def checkpoint(self, moment: float, head: int | None, done: int) -> None:
        """A checkpoint took groups out of the queue: `head` is the time of the first one left
        (None: none is), `done` of the last out."""
        if self.rules.checkpoint_shows_head:
            self.history.set(moment, head or 0)
        elif done:
            self.history.set(moment, done)

    def end_of_log(self, moment: float) -> None:
        """The applier has read all there is and no group is in work."""
        self.history.set(moment, 0)


class CommittedTimestamp:
    """last_master_timestamp of MariaDB with workers: that of the newest event that was committed,
    which never goes back.

    `history` is 0 while the applier is idle: the reading thread is at the end of the relay log, and
    workers have executed all that they were given. The first event behind that sets it, to its
    header time without exec_time. (exec_relay_log_event, sql/slave.cc; inc_group_relay_log_pos,
    rpl_rli.cc; are_sql_threads_caught_up, rpl_parallel.cc of MariaDB 10.11.)
    """

    __slots__ = ("_at_end_since", "_busy_until", "_commits", "_latest", "_reached", "history",
                 "positions")  # fmt: skip

    def __init__(self, history: Timeline, start: float) -> None:
        self.history = history
        self.positions = Timeline()
        """How many groups of the log lie below the position that is shown: it is that of the one
        farthest behind that is committed, whatever other domains have left before it."""
        self._commits: list[tuple[float, int, int]] = []
        self._latest = self._reached = 0
        self._busy_until = start
        self._at_end_since: float | None = start

    def read(self, moment: float, header: int) -> None:
        """An event was read from the relay log; it counts where the applier was idle."""
        self.advance(moment)
        if self._latest and not self._is_idle(moment):
            return
        self._latest = max(self._latest, header)
        self._at_end_since = None
        self.history.set(moment, self._latest)

    def committed(self, moment: float, stamp: int, number: int) -> None:
        """The group of this number will be committed at `moment`; `stamp` is that of its last
        event."""
        if moment < inf:
            heappush(self._commits, (moment, stamp, number + 1))
        self.busy(moment)

    def busy(self, moment: float) -> None:
        """A worker is at what it was given until then."""
        self._busy_until = max(self._busy_until, moment)

    def end_of_log(self, moment: float) -> None:
        """The reading thread waits for more."""
        self.advance(moment)
        if self._at_end_since is None:
            self._at_end_since = moment
        self._note_idle(moment)

    def advance(self, moment: float) -> None:
        """What workers have committed up to now."""
        while self._commits and self._commits[0][0] <= moment:
            self._commit(*heappop(self._commits))
        self._note_idle(moment)

    def drop(self, numbers: set[int]) -> None:
        """These groups are not committed after all."""
        self._commits = sorted(one for one in self._commits if one[2] - 1 not in numbers)

    def _commit(self, moment: float, stamp: int, count: int) -> None:
        self._reached = max(self._reached, count)
        self.positions.set(moment, self._reached)
        if stamp > self._latest:
            self._latest = stamp
            self.history.set(moment, stamp)

    def _is_idle(self, moment: float) -> bool:
        return self._at_end_since is not None and self._busy_until <= moment

    def _note_idle(self, moment: float) -> None:
        if self._is_idle(moment) and self._busy_until < inf:
            assert self._at_end_since is not None
            self.history.set(max(self._busy_until, self._at_end_since), 0)
