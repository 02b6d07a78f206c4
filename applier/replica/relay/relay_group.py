"""The group of events that is being read from a relay log."""

from __future__ import annotations

from applier.binlog.header import GTID_TYPES
from applier.binlog.transactions import TransactionTracker
from applier.replica.relay.relay_event import RelayEvent


class RelayGroup:
    """Its events so far; none between groups."""

    __slots__ = ("_tracker", "events")

    def __init__(self) -> None:
        self.drop()

    def drop(self) -> None:
        """Forgets what was read of it."""
        self.events: list[RelayEvent] = []
        self._tracker = TransactionTracker(unpacked=False)

    @property
    def is_open(self) -> bool:
        """Whether a group has begun and not ended."""
        return self._tracker.in_transaction

    def add(self, relay: RelayEvent) -> list[RelayEvent] | None:
        """One event of a group: all of the group's when it is the last. A GTID event drops what was
        there before it."""
        if relay.event.type in GTID_TYPES:
            self.drop()
        self.events.append(relay)
        self._tracker.feed(relay.event, relay.format)
        if self._tracker.in_transaction:
            return None
        whole, self.events = self.events, []
        return whole
