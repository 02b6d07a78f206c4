"""Which events of a log are wanted: by time, by GTID. Positions are the reader's, tables
`table_filter`'s.

Times and GTIDs follow mysqlbinlog (client/mysqlbinlog.cc 9.7): a start time drops everything before
the first event that is late enough, a stop time ends the log, and a GTID set takes or drops whole
transactions.
"""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from applier.binlog.events import parse
from applier.binlog.gtid_events import Gtid, MariadbGtidEvent
from applier.binlog.header import GTID_TYPES, Event, EventType, FormatDescription
from applier.binlog.transactions import TransactionTracker
from applier.error_codes import Code
from applier.errors import UsageError
from checkpoints.gtid import GtidError, GtidSet, MariadbGtidSet, parse_gtid_set

AnyGtidSet = GtidSet | MariadbGtidSet
Moment = str | float | date | None
"""A time as `time_of` takes it, a datetime among them; None: no limit."""


def time_of(option: str, value: Moment) -> float | None:
    """Seconds since 1970, of a number of them, a datetime, "2026-11-21 04:05:06" or "@1795233906";
    UTC unless a zone is named.

    Raises UsageError with the option's name.
    """
    if value is None or (isinstance(value, int | float) and not math.isnan(value)):
        return value
    text = str(value).strip()
    if re.fullmatch(r"@\d+", text):
        return float(text[1:])
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        what, hint = _wrong(text)
        raise UsageError(
            f"{option}: {str(value)!r} {what}", code=Code.DATE_TIME, hint=hint
        ) from None


def _wrong(text: str) -> tuple[str, str]:
    """What is wrong with a text that is no time, and what to write."""
    if found := re.match(r"(\d{4})-(0[1-9]|1[0-2])-(\d\d)(?!\d)", text):
        year, month, day = map(int, found.groups())
        last = calendar.monthrange(max(year, 1), month)[1]
        if not 1 <= day <= last:
            what = f"names a day that {found[1]}-{found[2]} does not have"
            return what, f"give a day from 01 to {last}"
    return "is not a date and time", 'write it like "2026-11-21 04:05:06"'


@dataclass
class TimeRange:
    """--start-datetime and --stop-datetime for one pass over a log: seconds since 1970, by the
    timestamps of the events' headers; None: no limit.

    A list of events begins with the first one that is late enough, and ends before the first that
    is too late, as mysqlbinlog's does. A replay takes transactions whole: each goes by the event
    that it begins with.
    """

    start: float | None = None
    stop: float | None = None
    reached: bool = False
    """Something lay in these times."""

    @classmethod
    def of(cls, start_datetime: Moment, stop_datetime: Moment) -> TimeRange:
        """From the values of the options. Raises UsageError."""
        start = time_of("--start-datetime", start_datetime)
        stop = time_of("--stop-datetime", stop_datetime)
        if start is not None and stop is not None and stop < start:
            raise UsageError(
                "--stop-datetime is before --start-datetime",
                code=Code.OPTIONS_CLASH,
                hint="exchange them",
            )
        return cls(start, stop)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all."""
        return self.start is not None or self.stop is not None

    def is_over(self, event: Event) -> bool:
        """Whether an event is too late."""
        return self.stop is not None and event.timestamp >= self.stop

    def takes(self, timestamp: int) -> bool:
        """Whether what is not too late is late enough."""
        takes = self.start is None or timestamp >= self.start
        self.reached = self.reached or takes
        return takes

    def nothing(self, does: str, event: Event | None) -> str | None:
        """What is said where nothing lay in the times; `event` is the one with which the log begins
        or ends, whichever it `does` outside of them."""
        if self.reached or not self.is_limited:
            return None
        said = "no event lies in these times"
        if event is not None and event.timestamp:
            moment = datetime.fromtimestamp(event.timestamp, UTC).isoformat(" ")
            said += f": the log {does} at {moment}"
        return said


def gtids_of(option: str, text: str | None) -> AnyGtidSet | None:
    """The set that an option gives, in MySQL's or MariaDB's form. Raises UsageError with the
    option's name."""
    if text is None:
        return None
    try:
        return parse_gtid_set(text)
    except GtidError as error:
        raise UsageError(f"{option}: {error}", code=Code.GTID_SET) from None


def holds(gtids: AnyGtidSet, identity: Gtid | MariadbGtidEvent) -> bool:
    """Whether a set names this transaction. An anonymous one is in no set. Raises UsageError for a
    set of the other kind of server."""
    check_kind(gtids, identity)
    if isinstance(identity, MariadbGtidEvent):
        return isinstance(gtids, MariadbGtidSet) and identity.gtid in gtids
    return (
        isinstance(gtids, GtidSet)
        and identity.uuid is not None
        and gtids.contains(identity.uuid, identity.number, identity.tag)
    )


def check_kind(gtids: AnyGtidSet, identity: Gtid | MariadbGtidEvent) -> None:
    """Raises UsageError for a set in MariaDB's form and a log of MySQL, or the other way round: it
    could name nothing there."""
    check_flavour(gtids, isinstance(identity, MariadbGtidEvent))


def check_flavour(gtids: AnyGtidSet, of_log: bool) -> None:
    """The same; `of_log`: whether the log is MariaDB's."""
    names = ("MySQL", "MariaDB")
    of_set = isinstance(gtids, MariadbGtidSet)
    if gtids and of_set != of_log:
        raise UsageError(
            f"{gtids} names transactions of {names[of_set]}, and the log is one of {names[of_log]}",
            code=Code.GTID_SET,
            hint="write them as `binlag events` shows them for this log",
        )


def none_included(gtids: AnyGtidSet, last: object) -> UsageError:
    """--include-gtids names no transaction of the log; `last` is one that the log has, if any."""
    hint = (
        f"the log has others, up to {last}"
        if last
        else "leave --include-gtids out: the log has no GTIDs"
    )
    what = (
        f"--include-gtids {gtids}: the log has none of these"
        if gtids
        else "--include-gtids: the set is empty"
    )
    return UsageError(what, code=Code.NOTHING_CHOSEN, hint=hint)


@dataclass
class LogFilter:
    """An instance is for one pass over one log."""

    times: TimeRange = field(default_factory=TimeRange)
    include_gtids: AnyGtidSet | None = None
    exclude_gtids: AnyGtidSet | None = None
    _tracker: TransactionTracker = field(default_factory=TransactionTracker)
    nothing: str | None = None
    """What is said at the end where no event lies in the times."""
    _skip: bool = False
    _included: bool = False
    _last: str = ""
    """The last GTID of the log."""

    @classmethod
    def of(
        cls,
        *,
        start_datetime: Moment = None,
        stop_datetime: Moment = None,
        include_gtids: str | None = None,
        exclude_gtids: str | None = None,
    ) -> LogFilter:
        """From the texts of the options. Raises UsageError."""
        return cls(
            TimeRange.of(start_datetime, stop_datetime),
            gtids_of("--include-gtids", include_gtids),
            gtids_of("--exclude-gtids", exclude_gtids),
        )

    @property
    def is_active(self) -> bool:
        """Whether anything is left out at all."""
        return self.times.is_limited or self._is_by_gtid

    @property
    def _is_by_gtid(self) -> bool:
        return self.include_gtids is not None or self.exclude_gtids is not None

    def select(
        self, events: Iterable[tuple[Event, FormatDescription]]
    ) -> Iterator[tuple[Event, FormatDescription]]:
        """The wanted events, in order. Format descriptions always pass; the stop time ends the
        stream."""
        by_gtid, times, event = self._is_by_gtid, self.times, None
        for event, fde in events:
            if times.is_over(event):
                self.nothing = times.nothing("begins", event)
                return
            is_format = event.type == EventType.FORMAT_DESCRIPTION
            if not (is_format or times.reached or times.takes(event.timestamp)):
                continue
            if not by_gtid or not self._is_skipped(event, fde):
                yield event, fde
        self.nothing = times.nothing("ends", event)

    def check(self) -> None:
        """Raises UsageError where --include-gtids named nothing of the log."""
        if self.include_gtids is not None and not self._included:
            raise none_included(self.include_gtids, self._last)

    def _is_skipped(self, event: Event, fde: FormatDescription) -> bool:
        """Decides at each GTID for all of its transaction. Transactions without a GTID event are in
        no set."""
        before = self._tracker.current
        boundary = self._tracker.feed(event, fde)
        if event.type in GTID_TYPES:
            self._skip = not self._is_wanted(parse(event, fde))
        elif boundary is not None and boundary.began is not None:
            self._skip = self.include_gtids is not None
        inside = before is not None or boundary is not None
        return inside and self._skip

    def _is_wanted(self, identity: Gtid | MariadbGtidEvent) -> bool:
        self._last = identity.text or self._last
        if self.include_gtids is not None and not holds(self.include_gtids, identity):
            return False
        self._included = True
        return self.exclude_gtids is None or not holds(self.exclude_gtids, identity)
