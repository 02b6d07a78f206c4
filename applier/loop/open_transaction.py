"""Where a replay stands between GTID, BEGIN and COMMIT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from applier.binlog.boundaries import Boundaries
from applier.binlog.header import Event, EventType
from applier.binlog.selection.filters import TimeRange


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

    def in_time(self, events: Iterable[Event], times: TimeRange) -> Iterator[Event]:
        """The events of transactions that begin in these times, and what stands between them."""
        event = None
        for event in events:
            is_inside = self.first is not None or self.rows_seen
            if not is_inside and event.type != EventType.FORMAT_DESCRIPTION:
                if times.is_over(event):
                    self.outside = times.nothing("begins", event)
                    return
                if not times.takes(event.timestamp):
                    continue
            yield event
        self.outside = times.nothing("ends", event)

    @property
    def started_at(self) -> str | None:
        """File and byte where it begins; None when nothing is open."""
        return None if self.first is None else f"{self.first.file}:{self.first.position}"
