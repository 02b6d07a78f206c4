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


def check_times(start: float | None, stop: float | None) -> None:
    """Raises UsageError for a stop time that is before the start time."""
    if start is not None and stop is not None and stop < start:
        raise UsageError(
            "--stop-datetime is before --start-datetime",
            code=Code.OPTIONS_CLASH,
            hint="exchange them",
        )


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


def nothing_between(does: str, event: Event | None) -> str:
    """What is said where no event lies in the times; `event` is the one with which the log begins
    or ends, whichever it `does` outside of them."""
    said = "no event lies in these times"
    if event is not None and event.timestamp:
        moment = datetime.fromtimestamp(event.timestamp, UTC).isoformat(" ")
        said += f": the log {does} at {moment}"
    return said


@dataclass
class LogFilter:
    """Times in seconds since 1970. An instance is for one pass over one log."""

    start_time: float | None = None
    stop_time: float | None = None
    include_gtids: AnyGtidSet | None = None
    exclude_gtids: AnyGtidSet | None = None
    _tracker: TransactionTracker = field(default_factory=TransactionTracker)
    nothing: str | None = None
    """What is said at the end where no event lies in the times."""
    _started: bool = False
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
        start = time_of("--start-datetime", start_datetime)
        stop = time_of("--stop-datetime", stop_datetime)
        check_times(start, stop)
        return cls(
            start,
            stop,
            gtids_of("--include-gtids", include_gtids),
            gtids_of("--exclude-gtids", exclude_gtids),
        )

    @property
    def is_active(self) -> bool:
        """Whether anything is left out at all."""
        return any(
            limit is not None
            for limit in (self.start_time, self.stop_time, self.include_gtids, self.exclude_gtids)
        )

    def select(
        self, events: Iterable[tuple[Event, FormatDescription]]
    ) -> Iterator[tuple[Event, FormatDescription]]:
        """The wanted events, in order. Format descriptions always pass; the stop time ends the
        stream."""
        by_gtid = self.include_gtids is not None or self.exclude_gtids is not None
        reached, event = False, None
        for event, fde in events:
            if self.stop_time is not None and event.timestamp >= self.stop_time:
                if not reached:
                    self.nothing = nothing_between("begins", event)
                return
            if not self._in_time(event):
                continue
            reached = reached or event.type != EventType.FORMAT_DESCRIPTION
            if not by_gtid or not self._is_skipped(event, fde):
                yield event, fde
        if self.start_time is not None and not reached:
            self.nothing = nothing_between("ends", event)

    def check(self) -> None:
        """Raises UsageError where --include-gtids named nothing of the log."""
        if self.include_gtids is not None and not self._included:
            raise none_included(self.include_gtids, self._last)

    def _in_time(self, event: Event) -> bool:
        if self._started or self.start_time is None or event.type == EventType.FORMAT_DESCRIPTION:
            return True
        self._started = event.timestamp >= self.start_time
        return self._started

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
