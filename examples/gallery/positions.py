"""Ways to save a position in a source's log that lose rows, repeat them, or cannot go on, each seen
in public; and one that does not.

    python examples/gallery/positions.py            all of them, one line each
    python examples/gallery/positions.py NAME       one, with the first crash that shows it

Each consumer reads a real log (positions.binlog: statements cut into several rows events,
transactions with two tables), delivers each rows event to a sink of its own, and saves where it is.
It is killed before and after each of its writes and restarted on what is left. What it delivered
must be there once. They are models of mistakes, a few lines each, and no product's code;
docs/gallery.md says who made which.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from applier.binlog.events import parse
from applier.binlog.gtid_events import Gtid
from applier.binlog.header import ROWS_TYPES, EventType
from applier.binlog.reader import LogReader
from applier.binlog.rows import RowsHeads
from applier.binlog.table_map import parse_table_map
from applier.crashtest import CannotStart, Journal, Kind, State, Verdict, explore
from applier.crashtest.explorer import Exploration
from checkpoints.disk import Disk, read_file
from checkpoints.outcomes import Medium

LOG = Path(__file__).with_name("positions.binlog")
SECTORS = Medium(sector_bytes=512)


@dataclass(frozen=True)
class LogEvent:
    """What a consumer looks at. `kind`: gtid, table map, rows, commit, other."""

    kind: str
    start: int
    end: int
    table_id: int = -1
    text: str = ""
    """Of a GTID event the GTID, of a table map the table."""


def read_log(path: Path = LOG) -> list[LogEvent]:
    """The events of the log, in order."""
    reader, found = LogReader([path]), []
    heads: RowsHeads | None = None
    for event in reader:
        assert reader.format is not None
        kind, table_id, text = "other", -1, ""
        if event.type == EventType.GTID:
            gtid = parse(event, reader.format)
            assert isinstance(gtid, Gtid)
            kind, text = "gtid", str(gtid.text)
        elif event.type == EventType.TABLE_MAP:
            table = parse_table_map(
                event.buffer, event.body, event.end, reader.format.post_header_length(event.type)
            )
            kind, table_id, text = "table map", table.table_id, table.table
        elif event.type in ROWS_TYPES:
            heads = heads or RowsHeads(reader.format)
            kind, table_id = "rows", heads.of(event).table_id
        elif event.type == EventType.XID:
            kind = "commit"
        found.append(LogEvent(kind, event.position, event.log_pos, table_id, text))
    return found


EVENTS = read_log()


class Consumer:
    """Delivers the rows of each rows event as it comes. Where it saves its position, and what a
    restart makes of it, is up to each."""

    saves = ""

    def run(self, disk: Disk) -> Iterator[str]:
        self.disk, self.sink = disk, Journal(disk, "sink")
        tables: dict[int, str] = {}
        for event in self.resumed(self.saved()):
            if event.kind == "table map":
                tables[event.table_id] = event.text
            if event.kind == "rows" and event.table_id in tables:
                yield from self.rows(event, f"{tables[event.table_id]}@{event.start}")
            elif event.kind == "rows":
                self.without_table_map(event)
            yield from self.seen(event)

    def recover(self, disk: Disk) -> State:
        for _ in self.run(disk):
            pass
        delivered = [rows for record in self.sink.records for rows in record["rows"]]
        return State(tuple(delivered), delivered)

    def resumed(self, saved: dict[str, Any]) -> Iterator[LogEvent]:
        """The source's answer to a saved position: every event from that byte on."""
        yield from (event for event in EVENTS if event.start >= saved.get("position", 0))

    def rows(self, event: LogEvent, rows: str) -> Iterator[str]:
        self.sink.append({"rows": [rows]})
        yield rows

    def without_table_map(self, event: LogEvent) -> None:
        raise CannotStart(
            f"no table map for table id {event.table_id} ({LOG.name}, position {event.start})"
        )

    def seen(self, event: LogEvent) -> Iterator[str]:
        """An event is done with."""
        yield from ()

    def saved(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(read_file(self.disk, "position") or "{}")
        return found

    def save(self, **what: Any) -> None:
        file = self.disk.open("position", create=True)
        file.write(0, json.dumps(what).encode().ljust(400))
        file.fsync()


class AfterEachRowsEvent(Consumer):
    saves = "the end of each rows event"

    def seen(self, event: LogEvent) -> Iterator[str]:
        if event.kind == "rows":
            self.save(position=event.end)
        yield from ()


class AfterEachEvent(Consumer):
    saves = "the end of each event, table maps among them"

    def seen(self, event: LogEvent) -> Iterator[str]:
        self.save(position=event.end)
        yield from ()


class BeforeTheRows(Consumer):
    saves = "the end of each rows event, before its rows are delivered"

    def rows(self, event: LogEvent, rows: str) -> Iterator[str]:
        self.save(position=event.end)
        yield from super().rows(event, rows)


class PassesOverUnknownTables(AfterEachRowsEvent):
    saves = "the end of each rows event, and passes over rows without a table map"

    def without_table_map(self, event: LogEvent) -> None:
        """They are taken for rows of a table that nobody asked for."""


class StartsWithTheNextTransaction(AfterEachEvent):
    saves = "the end of each event, and starts with the next transaction behind it"

    def resumed(self, saved: dict[str, Any]) -> Iterator[LogEvent]:
        begins = False
        for event in super().resumed(saved):
            begins = begins or event.kind == "gtid" or not saved
            if begins:
                yield event


class GtidAtTheBegin(Consumer):
    saves = "the GTID when its transaction begins"

    def resumed(self, saved: dict[str, Any]) -> Iterator[LogEvent]:
        """Auto-position: the source leaves out the transactions that are in the set."""
        self.executed = list(saved.get("gtids", []))
        left_out = False
        for event in EVENTS:
            left_out = event.text in saved.get("gtids", []) if event.kind == "gtid" else left_out
            if not left_out:
                yield event

    def seen(self, event: LogEvent) -> Iterator[str]:
        if event.kind == "gtid":
            self.executed.append(event.text)
            self.save(gtids=self.executed)
        yield from ()


class PositionOfARotateEvent(Consumer):
    """The connection breaks once, between two rows events. The source answers the reconnect with a
    rotate event that names the place."""

    saves = (
        "the end of each transaction, and the position of every rotate event, that of a reconnect "
        "too"
    )
    breaks_at = next(event.end for event in EVENTS if event.kind == "rows")

    def seen(self, event: LogEvent) -> Iterator[str]:
        if event.kind == "commit" or event.end == self.breaks_at:
            self.save(position=event.end)
        yield from ()


class CountThatIsNotReset(Consumer):
    saves = (
        "where the transaction begins and how many rows events to pass over, and at its end the "
        "position alone"
    )

    def resumed(self, saved: dict[str, Any]) -> Iterator[LogEvent]:
        self.begin, self.done = saved.get("position", 0), saved.get("done", 0)
        left = self.done
        for event in super().resumed(saved):
            if event.kind == "rows" and left:
                left -= 1
                continue
            yield event

    def seen(self, event: LogEvent) -> Iterator[str]:
        if event.kind == "gtid":
            self.begin = event.start
        elif event.kind == "rows":
            self.done += 1
            self.save(position=self.begin, done=self.done)
        elif event.kind == "commit":
            self.begin = event.end
            self.save(position=self.begin, done=self.done)
            self.done = 0
        yield from ()


class AtTheEndOfTheTransaction(Consumer):
    saves = "the end of each transaction, in a file of its own"

    def seen(self, event: LogEvent) -> Iterator[str]:
        if event.kind == "commit":
            self.save(position=event.end)
        yield from ()


class WithTheRows(Consumer):
    """The right way: rows wait for the commit, and one record holds them and the position."""

    saves = "the end of each transaction, in the same record as its rows"

    def saved(self) -> dict[str, Any]:
        self.waiting: list[str] = []
        return self.sink.records[-1] if self.sink.records else {}

    def rows(self, event: LogEvent, rows: str) -> Iterator[str]:
        self.waiting.append(rows)
        yield from ()

    def seen(self, event: LogEvent) -> Iterator[str]:
        if event.kind == "commit":
            self.sink.append({"rows": self.waiting, "position": event.end})
            yield from self.waiting
            self.waiting = []


CONSUMERS: dict[str, type[Consumer]] = {
    "rows-event": AfterEachRowsEvent,
    "table-map": AfterEachEvent,
    "before-the-rows": BeforeTheRows,
    "unknown-table": PassesOverUnknownTables,
    "next-transaction": StartsWithTheNextTransaction,
    "gtid-at-begin": GtidAtTheBegin,
    "rotate-event": PositionOfARotateEvent,
    "count-not-reset": CountThatIsNotReset,
    "at-commit": AtTheEndOfTheTransaction,
    "with-the-rows": WithTheRows,
}


WORST = (Verdict.LOSES, Verdict.CANNOT_START, Verdict.REEXECUTES)


def try_all(name: str) -> Exploration:
    """Every kill of a consumer."""
    return explore(CONSUMERS[name], kinds=[Kind.PROCESS], medium=SECTORS)


def lines(name: str, found: Exploration, *, example: bool) -> Iterator[str]:
    """How many of the disks that a kill may leave end how, and a crash that ends worst."""
    counts = found.counts()
    ends = [f"{verdict} {counts[verdict]}" for verdict in Verdict if counts[verdict]]
    yield f"{name:16} {len(found.trials):2} disks: {', '.join(ends)}"
    if example:
        yield f"  saves {CONSUMERS[name].saves}"
        yield from [
            f"  {trial}"
            for verdict in WORST
            if (trial := found.first(Kind.PROCESS, verdict)) is not None
        ][:1]


def main(names: list[str]) -> None:
    for name in names or CONSUMERS:
        for line in lines(name, try_all(name), example=bool(names)):
            click.echo(line)


if __name__ == "__main__":
    main(sys.argv[1:])
