"""Where a replay stands between GTID, BEGIN and COMMIT."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from applier.binlog.gtid_events import gtid_text
from applier.binlog.header import Event, EventType
from applier.binlog.selection.filters import nothing_between


class OpenTransaction:
    """One object for all transactions of a log, one after the other. Its texts are made when
    somebody asks.

    `first` is the event it begins with, `begun` says that BEGIN was seen, `open` that rows were,
    `skipped` that an option leaves it out.
    """

    __slots__ = ("_gtid", "begun", "first", "open", "outside", "skipped", "xid")

    first: Event | None
    xid: str | None
    """The XA transaction that MariaDB's GTID event names."""

    outside: str | None
    """That no event lies in the times of `in_time`, with words on the log's."""

    def __init__(self) -> None:
        self.outside = None
        self.end()

    def start(self, event: Event, gtid: str | None = None, *, skipped: bool = False) -> None:
        """A GTID event, or the first event of a log without GTIDs."""
        self.first = event
        self._gtid = gtid
        self.skipped = skipped
        self.begun = self.open = False
        self.xid = None

    def begin(self, event: Event) -> None:
        """BEGIN."""
        self.begun = True
        if self.first is None:
            self.first = event

    def end(self) -> None:
        """COMMIT, ROLLBACK, or whatever else ends it: nothing is open."""
        self.first = self._gtid = self.xid = None
        self.begun = self.skipped = self.open = False

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
            elif event.timestamp >= stop and not self.open:
                self.outside = None if reached else nothing_between("begins", event)
                return
            elif start <= event.timestamp < stop:
                reached = True
                yield event
        self.outside = None if reached else nothing_between("ends", event)

    @property
    def gtid(self) -> str | None:
        """The GTID's text; None without one."""
        if self._gtid is None and self.first is not None and self.first.type == EventType.GTID:
            self._gtid = gtid_text(self.first)
        return self._gtid

    @property
    def started_at(self) -> str | None:
        """File and byte where it begins; None when nothing is open."""
        return None if self.first is None else f"{self.first.file}:{self.first.position}"
