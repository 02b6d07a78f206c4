"""From what a transaction asks to the seconds it takes: the shape of its tables, the expected handler calls, their prices.

Equal parts are priced once: a part is rows events of one target with the same sizes on a table of about the same size (three
significant digits), so a log of a million transactions has some hundreds of them.

What a log does not say is assumed, and `Pricer.assumptions` lists it: rows stand anywhere in their table; the events of one
statement follow each other in the order of a scan, so each covers its part of the table; no row is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from applier.forecast.distribution import bucket
from applier.forecast.facts import TableFacts
from applier.forecast.loads import Applied, Target
from applier.forecast.row_counts import Count
from applier.forecast.scenario import Scenario
from applier.forecast.units import PLACE, UNITS, Amounts, Prices, RowWork, event_amounts
from lookup.cost import Expected, expected
from lookup.decision import HASH_OVER_TABLE, NOT_NEEDED
from lookup.shape import NULLABLE_UNIQUE, OTHER, PRIMARY, ROW_EVENT_MAX_BYTES, EventShape, TableShape, shape_of

EVENT_HEAD_BYTES = 40
KEY_BYTES = 8
CHANGED_SHARE = 0.5
"""With a minimal image: the share of an after image's bytes that is still logged. The log does not tell which columns changed."""

Sizes = tuple[tuple[Count, int], ...]


class Part(NamedTuple):
    """Rows events of one target within one transaction. `rows` are those of the table, `row_bytes` those of one image."""

    target: Target
    sizes: Sizes
    statements: int
    rows: float
    row_bytes: float
    events: int
    changed: int


@dataclass(frozen=True, slots=True)
class Price:
    """Seconds of a part but for its bytes in the log; those of them spent on finding rows; seconds for each byte."""

    seconds: float
    lookup: float
    algorithm: str
    reads: float
    byte_seconds: float


class Work(NamedTuple):
    """What a part asks of a replica: amounts of units but for bytes, rows read, and the factor by which its bytes change."""

    amounts: Amounts
    algorithm: str
    reads: float
    byte_factor: float


class TableState:
    """A table while the log goes by: `rows` follows inserts and deletes."""

    __slots__ = ("known", "looked_at", "row_bytes", "rows", "seen_bytes", "seen_rows")

    def __init__(self, rows: float | None) -> None:
        self.known = rows is not None
        self.rows = rows or 0.0
        self.seen_bytes = 0
        self.seen_rows = self.looked_at = 0
        self.row_bytes = 0.0

    def note(self, applied: Applied, images: int) -> None:
        """Keeps the mean length of an image, to two digits: it enters prices and must not change with each transaction."""
        self.seen_bytes += applied.row_bytes
        self.seen_rows += applied.rows * images
        if self.seen_rows > self.looked_at * 1.1:
            self.looked_at = self.seen_rows
            self.row_bytes = float(f"{self.seen_bytes / self.seen_rows:.2g}")

    def change(self, kind: str, rows: int) -> None:
        """Rows have come or gone."""
        if kind == "write":
            self.rows += rows
        elif kind == "delete":
            self.rows = max(self.rows - rows, 0.0)
        elif not self.known and rows > self.rows:
            self.rows = float(rows)


class Pricer:
    """Prices of parts in one scenario."""

    def __init__(
        self, scenario: Scenario, facts: Mapping[str, TableFacts], prices: Prices, placement: tuple[float, float] = (0.0, 1.0)
    ) -> None:
        self.scenario = scenario
        self.facts = facts
        self.prices = prices
        self.placement = placement
        self.assumptions: dict[str, None] = {}

    def shape(self, target: Target, rows: float, row_bytes: float) -> TableShape:
        """The table's shape for these images, in this scenario. A table that the schema lacks counts as having a primary key."""
        facts = self.facts.get(target.table)
        if facts is None:
            return TableShape(rows * self.scenario.row_factor, PRIMARY, row_bytes=row_bytes, columns=target.columns)
        local = tuple(at for at in target.before if at < len(facts.definition.columns))
        shape, decision = shape_of(
            facts.definition, local, self.scenario.rules, self.scenario.row_search,
            rows=rows, rows_per_value=facts.statistics, row_bytes=row_bytes,
        )  # fmt: skip
        if shape.key == OTHER and decision.key is not None and not facts.known(decision.key):
            name = f"{target.table}.{decision.key.name}"
            self.assumptions[f"nothing is known of the values of key {name}: one row a value is assumed (--rows {name}=N)"] = None
        if shape.key == NULLABLE_UNIQUE and decision.key is not None:
            key = f"`{decision.key.name}` of {target.table}"
            self.assumptions[f"no row has NULL in the nullable unique key {key}"] = None
        if facts.rows and rows < facts.rows:  # values lose rows as the table does
            shape = replace(shape, rows_per_value=max(shape.rows_per_value * rows / facts.rows, 1.0))
        return self.scenario.changed(target.table, shape)

    def price(self, part: Part) -> Price:
        """What a part of a transaction takes."""
        work, factor = self.work(part), self.scenario.factor
        seconds, lookup = self.prices.cost(work.amounts)
        if self.scenario.found_at_once:
            seconds, lookup = seconds - lookup, 0.0
        byte = self.prices["byte"] * work.byte_factor * factor
        return Price(seconds * factor, lookup * factor, work.algorithm, work.reads, byte)

    def work(self, part: Part) -> Work:
        """What a part asks for, in units."""
        scenario, target = self.scenario, part.target
        sizes, byte_factor = (part.sizes, 1.0) if scenario.same_events else self._cut(part)
        events = sum(times for _, times in sizes)
        spread = max(events / max(part.statements, 1), 1.0)
        shape = self.shape(target, part.rows, part.row_bytes)
        alive, ghosts, first, last = self._places(part, shape, spread, events)
        shape = replace(shape, rows=alive)
        row = RowWork(shape.row_bytes, target.columns, self._index_entries(target), alive, last - first)
        total = [0.0] * len(UNITS)
        total[PLACE["statement"]] = float(part.statements)
        reads, algorithm = 0.0, NOT_NEEDED
        for (rows, distinct), times in sizes:
            if not rows:
                total[PLACE["event"]] += times
                continue
            found = self._expected(target, shape, rows, distinct, first, last)
            behind = ghosts * (1.0 if spread > 1 else min(found.counters.read_rnd_next / max(alive, 1.0), 1.0)) if ghosts else 0.0
            if found.algorithm != HASH_OVER_TABLE and spread <= 1 and ghosts:
                behind /= max(rows, 1.0)
            for place, amount in enumerate(event_amounts(found, target.kind, rows, row, behind)):
                total[place] += times * amount
            reads += times * found.counters.rows_read
            algorithm = found.algorithm
        return Work(tuple(total), algorithm, reads, byte_factor)

    def _expected(self, target: Target, shape: TableShape, rows: float, distinct: float, first: float, last: float) -> Expected:
        as_logged = self.scenario.key is None and shape.key in (OTHER, NULLABLE_UNIQUE) and target.key is not None
        values = min(max(distinct, 1), rows) if as_logged and distinct else None
        event = EventShape(target.kind, max(rows, 1.0), distinct_values=values, first=first, last=last)
        return expected(shape, event, self.scenario.rules, self.scenario.row_search)

    def _places(self, part: Part, shape: TableShape, spread: float, events: float) -> tuple[float, float, float, float]:
        """(Rows alive on average, deleted rows that are stepped over, the part of the table that an event's rows stand in).

        A statement of several events goes through the table once: event k of E finds its rows in the k-th part. The mean over k is
        taken for all, since reads grow in a straight line with k.
        """
        before, after = self.placement
        rows = max(shape.rows, float(part.changed) if part.target.kind != "write" else 0.0)
        deleted = part.changed if part.target.kind == "delete" else 0.0
        alive = max(rows - deleted * (events - 1) / (2 * events), 1.0)
        ghosts = deleted * (events - 1) / (2 * events)
        if spread <= 1:
            return alive, ghosts, before, after
        width = after - before
        start = before + width * (spread - 1) / (2 * spread) * max(rows - deleted / max(part.statements, 1), 0.0) / alive
        return alive, ghosts, min(start, 1.0), min(start + width * rows / spread / alive, 1.0)

    def _cut(self, part: Part) -> tuple[Sequence[tuple[tuple[float, float], float]], float]:
        """The events as the source would write them in this scenario, and by what factor their bytes change."""
        scenario, target = self.scenario, part.target
        images = 2 if target.kind == "update" else 1
        whole = part.row_bytes * images
        row_bytes = whole
        facts = self.facts.get(target.table)
        if scenario.minimal_image and target.kind != "write":
            has_key = facts is None or facts.definition.primary is not None or scenario.key == PRIMARY
            before = KEY_BYTES if has_key else part.row_bytes
            row_bytes = before + (part.row_bytes * CHANGED_SHARE if images == 2 else 0.0)
            if images == 2:
                self.assumptions["with a minimal image half of an after image's bytes are taken to be left"] = None
        limit = scenario.event_bytes or ROW_EVENT_MAX_BYTES
        most = max((limit - EVENT_HEAD_BYTES) // max(min(row_bytes, whole), 1.0), 1.0)
        statements = max(part.statements, 1)
        per_statement = part.changed / statements
        if part.events <= statements and per_statement <= most:
            return part.sizes, min(row_bytes / whole, 1.0) if whole else 1.0
        events = max(-(-per_statement // most), 1.0)
        return [((max(per_statement / events, 1.0), 0), events * statements)], min(row_bytes / whole, 1.0) if whole else 1.0

    def _index_entries(self, target: Target) -> float:
        """Secondary indexes that a changed row touches; an update's are taken not to change, since the log does not compare images."""
        facts = self.facts.get(target.table)
        if facts is None or target.kind == "update":
            return 0.0
        primary = facts.definition.primary
        return float(sum(key is not primary for key in facts.definition.keys))


def part_of(applied: Applied, state: TableState) -> Part:
    """The part of a transaction, rounded so that equal ones meet again."""
    sizes, rows = tuple(applied.sizes.items()), bucket(int(state.rows))
    return Part(applied.target, sizes, applied.statements, rows, state.row_bytes, applied.events, applied.rows)
