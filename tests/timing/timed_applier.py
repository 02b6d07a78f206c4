"""An emulated replica's applier on a clock: real events, executed one by one, with what the server
would show at each moment.

    timed = TimedApplier(applier, SimulatedClock(start), cost=rows_cost(1e-7))
    while timed.step():
        timed.seconds_behind(receiver_position, connected=True)

On a `RealClock` executing takes the time that it takes; on a `SimulatedClock` each event takes what
`cost` says. Here rows change and positions are kept; where only times are asked for, `simulate`
does a log in a fraction of the time.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Protocol

from applier.binlog.events import parse
from applier.binlog.gtid_events import Gtid
from applier.binlog.header import GTID_TYPES, Event, EventFlag, EventType, FormatDescription
from applier.errors import BinlagError
from applier.replica.applier import Applier
from applier.replica.relay.relay_event import RelayEvent
from applier.replica.scheduling import rules_for
from applier.status.failure import NO_FAILURE, ThreadFailure
from applier.status.view import ANONYMOUS, NOTHING, OFF, ON, Monitored, Thread
from applier.timing.delay import DelayGate, nap_seconds
from applier.timing.seconds_behind import LastSourceTimestamp, seconds_behind
from applier.timing.timed import EventCost
from checkpoints.position import Position

NEVER_DELAYED = frozenset({EventType.ROTATE, EventType.FORMAT_DESCRIPTION, EventType.START_V3})


def counted_time(event: Event, fde: FormatDescription) -> int | None:
    """header time + exec_time of an event that sets last_source_timestamp; None for one that the
    receiver or the relay log made."""
    if (
        event.flags & (EventFlag.ARTIFICIAL | EventFlag.RELAY_LOG)
        or event.type == EventType.FORMAT_DESCRIPTION
        or not event.server_id
    ):
        return None
    if event.type == EventType.QUERY:
        return event.timestamp + int(parse(event, fde).execution_seconds)
    return event.timestamp


class Clock(Protocol):
    """Seconds since 1970 as the replica's machine sees them."""

    def now(self) -> float:
        """The time."""

    def sleep(self, seconds: float) -> None:
        """Comes back when that much time has passed on this clock."""


class RealClock:
    """The clock of the machine. Implements `Clock`."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class SimulatedClock:
    """Stands still unless somebody sleeps: the same input gives the same result. Implements
    `Clock`."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += max(seconds, 0.0)


class TimedApplier:
    """Steps an applier without workers. `clock_difference` is what the receiver measured."""

    def __init__(
        self,
        applier: Applier,
        clock: Clock,
        *,
        cost: EventCost | None = None,
        delay_seconds: int = 0,
        clock_difference: int = 0,
    ) -> None:
        self.applier = applier
        self.clock = clock
        self.rules = rules_for(applier.configuration.version)
        self.timestamp = LastSourceTimestamp(self.rules, parallel=False)
        self.clock_difference = clock_difference
        self.last, self.current = NOTHING, NOTHING
        self.failure = NO_FAILURE
        self._cost = cost
        self._gate = DelayGate(self.rules, delay_seconds, clock_difference)

    def step(self) -> bool:
        """One event; False at the end of the relay logs. Raises what the applier raises, and keeps
        it for the status."""
        relay = self.applier.reader.peek()
        groups = self.applier.groups
        if relay is not None:
            self._before(relay)
        try:
            going = self.applier.step()
        except BinlagError as error:
            self.failure = ThreadFailure(
                getattr(error, "number", 0), error.message, self.clock.now()
            )
            raise
        if not going:
            self.timestamp.end_of_log(self.clock.now())
            return False
        if (
            relay is not None
            and self._cost is not None
            and counted_time(relay.event, relay.format) is not None
        ):
            self.clock.sleep(self._cost(relay.event))
        if self.applier.groups > groups and self.current is not NOTHING:
            self.last, self.current = replace(self.current, end=self.clock.now()), NOTHING
        return True

    def seconds_behind(self, receiver: Position, *, connected: bool) -> int | None:
        """Seconds_Behind_Source now. `receiver` is the receiver's position in the source's log."""
        return seconds_behind(
            self.clock.now(),
            self.timestamp.value,
            self.clock_difference,
            applier_running=not self.failure.number,
            connected=connected,
            same_position=self.applier.info.source_position == receiver,
            follows_caught_up=self.rules.follows_caught_up,
        )

    def thread(self) -> Thread:
        """The applier's part of a `ReplicaView`."""
        return Thread(
            OFF if self.failure.number else ON, None, self.failure, self.last, self.current
        )

    def _before(self, relay: RelayEvent) -> None:
        """What comes before execution, in the server's order: the timestamp, then the delay, then
        START_APPLY."""
        event = relay.event
        stamp = counted_time(event, relay.format)
        if stamp is not None:
            self.timestamp.read(self.clock.now(), stamp)
        if event.type in GTID_TYPES:
            parsed = parse(event, relay.format)
            commit = (
                parsed.immediate_commit_timestamp / 1e6
                if isinstance(parsed, Gtid) and parsed.immediate_commit_timestamp
                else None
            )
            self._nap(self._gate.gtid(event.timestamp, commit))
            original = parsed.original_commit_timestamp / 1e6 if commit is not None else None
            self.current = Monitored(parsed.text or ANONYMOUS, original, commit, self.clock.now())
        elif event.type not in NEVER_DELAYED and (
            event.type != EventType.PREVIOUS_GTIDS or not self.rules.delays_transactions
        ):
            self._nap(self._gate.event(event.timestamp))

    def _nap(self, until: int | None) -> None:
        seconds = nap_seconds(until, self.clock.now())
        if seconds:
            self.clock.sleep(float(seconds))
