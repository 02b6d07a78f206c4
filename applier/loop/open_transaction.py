"""Where a replay stands between GTID, BEGIN and COMMIT."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from applier.binlog.boundaries import Boundaries
from applier.binlog.header import Event, EventType
from applier.binlog.selection.filters import nothing_between


class OpenTransaction(Boundaries):
    """One object for all transactions of a log, one after the other.

    `rows_seen` counts where no BEGIN was seen; `skipped` says that an option leaves it out.
    """

    __slots__ = ("outside", "rows_seen", "skipped")

    outside: str | None
    """That no event lies in the times of `in_time`, with words on the log's."""

    def __init__(self) -> None:
        self.outside = None
        super().__init__()

    def end(self) -> None:
        """COMMIT, ROLLBACK, or whatever else ends it: nothing is open."""
        Boundaries.end(self)
        self.skipped = self.rows_seen = False

    def in_time(
        self, events: Iterable[Event], start: float | None, stop: float | None
    ) -> Iterator[Event]:
        """--start-datetime and --stop-datetime go by the header's timestamp; a transaction that
        began is read to its end. Seconds since 1970; None: no limit."""
        start = -math.inf if start is None else start
        stop = math.inf if stop is None else stop
        event, reached = None, False
        for event in events:
            if event.type in (EventType.TABLE_MAP, EventType.FORMAT_DESCRIPTION) or self.begun:
                yield event
            elif event.timestamp >= stop and not self.rows_seen:
                self.outside = None if reached else nothing_between("begins", event)
                return
            elif start <= event.timestamp < stop:
                reached = True
                yield event
        self.outside = None if reached else nothing_between("ends", event)

    @property
    def started_at(self) -> str | None:
        """File and byte where it begins; None when nothing is open."""
        return None if self.first is None else f"{self.first.file}:{self.first.position}"
