"""A transaction as the clock sees it: when it was committed, what its events' headers say, what
executing it costs.

    TimedTransaction(commit=1_700_000_000.25, seconds=0.004, bytes=512, last_committed=7,
    sequence_number=9)

is enough for a transaction whose statement took no time on the source. `timed_transactions` reads
them from a log.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from applier.binlog.boundaries import starts_group
from applier.binlog.events import Query, parse
from applier.binlog.gtid_events import MariadbGtidEvent
from applier.binlog.header import ROWS_TYPES, Event, EventType, FormatDescription
from applier.binlog.reader import LogReader
from applier.binlog.selection.filters import LogFilter
from applier.binlog.table_map import read_table_map
from applier.binlog.transactions import TransactionKind, TransactionTracker, with_formats
from applier.errors import InputError
from applier.replica.scheduling import (
    NO_MARKS,
    GroupMarks,
    databases_of,
    marks_of,
    touches_databases,
)

MAX_DATABASES = 16
"""More databases in one transaction count as all of them (MAX_DBS_IN_EVENT_MTS)."""
ALL_DATABASES = ("",)
"""What a transaction touches that nothing may run beside."""


class Step(NamedTuple):
    """Events that follow each other with one time. `stamp` = header time + exec_time, `header` =
    header time; the source's seconds."""

    stamp: int
    header: int
    events: int
    bytes: int
    seconds: float


@dataclass(slots=True)
class TimedTransaction:
    """One transaction of the source's log. Times are in seconds since 1970 on the source's clock.

    `commit` is the immediate commit time, `original_commit` that on the first source (None: the
    same, 0: there is none). `seconds` is what executing it on the replica costs, `commit_seconds`
    of that for the commit itself. `stamp`, `body_stamp` and `last_stamp` are header time +
    exec_time of the first event (GTID, in 5.6 BEGIN), of the second and of the last one; 0 stands
    for the whole second of `commit`, and for `stamp` and `body_stamp` after one that is given.
    `steps` tells more than these where a transaction has several statements: its parts in order,
    their `seconds` sum up to `seconds`. `last_committed` and `sequence_number` are 0 where the log
    has none. `databases` are those it touches (ALL_DATABASES: not known). `errors` are the
    temporary errors (1205, 1213) that it meets before it succeeds.
    """

    commit: float
    seconds: float = 0.0
    bytes: int = 0
    events: int = 1
    last_committed: int = 0
    sequence_number: int = 0
    stamp: int = 0
    body_stamp: int = 0
    last_stamp: int = 0
    databases: tuple[str, ...] = ("",)
    steps: tuple[Step, ...] = ()
    original_commit: float | None = None
    gtid: str | None = None
    server_id: int = 1
    file: str = ""
    position: int = 0
    end: int = 0
    starts_file: bool = False
    """The first of a log file of the source that is not the first one read."""
    timed: bool = True
    """Its GTID event carries commit timestamps (8.0 and later)."""
    errors: int = 0
    marks: GroupMarks = NO_MARKS
    """What MariaDB's workers go by."""
    rolls_back: bool = True
    """STOP REPLICA may undo it half-way: it changes only tables with transactions."""

    def __post_init__(self) -> None:
        if self.steps:
            self.stamp, self.last_stamp = self.steps[0].stamp, self.steps[-1].stamp
            self.body_stamp = (
                self.steps[0] if self.steps[0].events > 1 or len(self.steps) == 1 else self.steps[1]
            ).stamp
        else:
            self.stamp = self.stamp or int(self.commit)
            self.body_stamp = self.body_stamp or self.stamp
            self.last_stamp = self.last_stamp or self.body_stamp


EventCost = Callable[[Event], float]
"""Seconds that executing one event costs."""


def timed_transactions(
    paths: Sequence[str | os.PathLike[str]],
    cost: EventCost,
    *,
    seconds_per_transaction: float = 0.0,
    start_position: int | None = None,
    stop_position: int | None = None,
    part: LogFilter | None = None,
    on_cut_off: Callable[[InputError], None] | None = None,
) -> Iterator[TimedTransaction]:
    """The complete transactions of a log with the times of all their events. Memory holds one
    transaction's steps, merged by time.

    `seconds_per_transaction` is what the commit costs; positions and `on_cut_off` are
    `LogReader`'s, `part` picks by time and GTID.

    Raises InputError as `LogReader` does.
    """
    gathering = _Gathering(cost, seconds_per_transaction)
    file, begun = "", False
    stream = with_formats(
        LogReader(
            paths, start_position=start_position, stop_position=stop_position, on_cut_off=on_cut_off
        )
    )
    for event, fde in stream if part is None or not part.is_active else part.select(stream):
        if event.file != file:
            file, gathering.starts_file = event.file, begun
        done = gathering.feed(event, fde)
        if done is not None:
            begun = True
            yield done


class _Gathering:
    """Events in, a transaction out with its last event."""

    def __init__(self, cost: EventCost, seconds_per_transaction: float) -> None:
        self.starts_file = False
        self._cost = cost
        self._seconds_per_transaction = seconds_per_transaction
        self._tracker = TransactionTracker()
        self._databases: dict[str, None] = {}
        self._everywhere = False
        self._exec_seconds = 0
        self._steps: list[Step] = []
        self._latest = 0.0

    def feed(self, event: Event, fde: FormatDescription) -> TimedTransaction | None:
        boundary = self._tracker.feed(event, fde)
        if boundary is not None and boundary.began is not None:
            self._steps, self._databases, self._everywhere = [], {}, False
        ended = boundary.ended if boundary is not None else None
        if self._tracker.current is None and ended is None:
            return None
        self._add(event, fde)
        if ended is None or not ended.complete:
            return None
        self._steps[-1] = self._steps[-1]._replace(
            seconds=self._steps[-1].seconds + self._seconds_per_transaction
        )
        steps = tuple(self._steps)
        committed = ended.immediate_commit_timestamp
        # without commit timestamps: the last event's time, which is that of its statement's begin,
        # but no earlier than the one before
        self._latest = (
            committed / 1e6
            if committed
            else max(float(event.timestamp + self._exec_seconds), self._latest)
        )
        result = TimedTransaction(
            self._latest,
            sum(step.seconds for step in steps),
            sum(step.bytes for step in steps),
            sum(step.events for step in steps),
            ended.last_committed,
            ended.sequence_number,
            steps=steps,
            databases=(
                tuple(self._databases)
                if 0 < len(self._databases) <= MAX_DATABASES and not self._everywhere
                else ALL_DATABASES
            ),
            original_commit=ended.original_commit_timestamp / 1e6 if committed else None,
            gtid=ended.gtid,
            server_id=ended.server_id,
            file=ended.file,
            position=ended.start,
            end=ended.log_pos or ended.end,
            starts_file=self.starts_file,
            timed=bool(committed),
            marks=(
                marks_of(ended.identity)
                if isinstance(ended.identity, MariadbGtidEvent)
                else NO_MARKS
            ),
            rolls_back=ended.kind is not TransactionKind.STATEMENT,
        )
        self.starts_file = False
        return result

    def _add(self, event: Event, fde: FormatDescription) -> None:
        self._exec_seconds = 0
        if event.type == EventType.QUERY:
            query: Query = parse(event, fde)
            self._exec_seconds = query.execution_seconds
            if touches_databases(event):
                names = databases_of(query)
                self._databases |= dict.fromkeys(names)
                self._everywhere |= not names
        elif event.type == EventType.TABLE_MAP:
            table = read_table_map(event, fde)
            self._databases[table.database] = None
            self._everywhere |= table.crosses_databases
        step = Step(
            event.timestamp + self._exec_seconds,
            event.timestamp,
            1,
            event.length,
            self._cost(event),
        )
        last = self._steps[-1] if self._steps else None
        # the GTID event stays by itself: the next event's time counts after a barrier
        if (
            last is None
            or len(self._steps) == 1
            or (last.stamp, last.header) != (step.stamp, step.header)
        ):
            self._steps.append(step)
        else:
            self._steps[-1] = Step(
                last.stamp,
                last.header,
                last.events + 1,
                last.bytes + step.bytes,
                last.seconds + step.seconds,
            )


def rows_cost(seconds_per_byte: float, seconds_per_event: float = 0.0) -> EventCost:
    """A cost by size of the rows events and a fixed part for every event; a statement costs what it
    cost the source."""

    def cost(event: Event) -> float:
        if event.type in ROWS_TYPES:
            return seconds_per_event + seconds_per_byte * event.length
        if (
            event.type == EventType.QUERY
            and event.body + 8 <= event.end
            and not starts_group(event)
        ):
            return seconds_per_event + float(
                int.from_bytes(event.buffer[event.body + 4 : event.body + 8], "little")
            )
        return seconds_per_event

    return cost
