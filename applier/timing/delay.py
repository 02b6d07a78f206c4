"""Delayed replication: until when SOURCE_DELAY holds an event back, and what is left of the wait.

sql_delay_event() (sql/rpl_replica.cc). Old rule (5.6, 5.7, MariaDB, and a source without commit
timestamps): every event waits until its header time + clock difference + delay. New rule (8.0 and
later): the GTID event waits until the immediate commit, rounded up to a second, + delay, in UTC and
without the clock difference; what follows in the transaction does not wait.
"""

from __future__ import annotations

from bisect import bisect_right
from math import ceil, floor

from applier.replica.scheduling import ClockRules


class DelayGate:
    """Which rule holds is decided by the first GTID event that the channel ever sees, and stays
    (Relay_log_info's constructor)."""

    def __init__(self, rules: ClockRules, delay_seconds: int, clock_difference: int) -> None:
        self.rules = rules
        self.delay_seconds = delay_seconds
        self.clock_difference = clock_difference
        self._by_commit: bool | None = None if rules.delays_transactions else False

    def gtid(self, header: int, commit: float | None) -> int | None:
        """Until when a GTID event waits, in whole seconds of the replica's clock; None without a
        delay.

        `commit` is the immediate commit timestamp, None where the event carries none.
        """
        if self._by_commit is None:
            self._by_commit = commit is not None
        if not self.delay_seconds:
            return None
        if self._by_commit:
            return ceil(round((commit or 0.0) * 1e6) / 1e6) + self.delay_seconds
        return self.event(header)

    def event(self, header: int) -> int | None:
        """The same of any other event but ROTATE and FORMAT_DESCRIPTION (8.0: and
        PREVIOUS_GTIDS)."""
        if not self.delay_seconds or self._by_commit:
            return None
        return header + self.clock_difference + self.delay_seconds


def nap_seconds(until: int | None, now: float) -> int:
    """How long the applier sleeps, once, at `now` of the replica's clock: whole seconds."""
    return 0 if until is None else max(until - floor(now), 0)


class Naps:
    """The sleeps of a delayed applier, for SQL_Remaining_Delay: in true time from `starts[i]` to
    `ends[i]`, for `untils[i]`."""

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.ends: list[float] = []
        self.untils: list[int] = []

    def add(self, start: float, end: float, until: int) -> None:
        """A sleep, behind those before it."""
        self.starts.append(start)
        self.ends.append(end)
        self.untils.append(until)

    def remaining(self, moment: float, replica_now: float) -> int | None:
        """SQL_Remaining_Delay; None (NULL) while the applier does not wait for the delay."""
        found = bisect_right(self.starts, moment) - 1
        if found < 0 or moment >= self.ends[found]:
            return None
        return max(self.untils[found] - floor(replica_now), 0)
