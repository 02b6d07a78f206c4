"""Tables and events of a shape, with rows: what the formulas of lookup.cost are held against."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from applier.tables.engine import MemoryTable
from lookup.batch import ApplyOptions, RowsShape
from lookup.cost import Expected, expected
from lookup.handler import COUNTER_NAMES, Counters, Row
from lookup.rows import RowsPlan
from lookup.table import Column, Key, KeyPart, TableDefinition
from lookup.table_shape import NULLABLE_UNIQUE, OTHER, PRIMARY, UNIQUE, EventShape, TableShape
from lookup.versions import ServerRules

KEYS = {
    PRIMARY: Key("PRIMARY", (KeyPart(2),), unique=True),
    UNIQUE: Key("u", (KeyPart(1, 12),), unique=True),
    NULLABLE_UNIQUE: Key("n", (KeyPart(0),), unique=True),
    OTHER: Key("k", (KeyPart(0),)),
}
NEW = 1_000_000_000


def definition_of(shape: TableShape) -> TableDefinition:
    """Columns: the key's value, the same row's name as text, a number of its own, something to
    update."""
    columns = (
        Column("value", "int"),
        Column(
            "name",
            "char" if shape.fixed else "varchar",
            12,
            nullable=False,
            charset="latin1",
            collation="latin1_bin",
        ),
        Column("number", "int", nullable=False),
        Column("note", "int", nullable=False),
    )
    keys = (KEYS[shape.key],) if shape.key in KEYS else ()
    return TableDefinition(
        "d", "t", columns, keys, engine=shape.engine, charset="latin1", collation="latin1_bin"
    )


@dataclass
class Sample:
    """One event on one table, and the counters it moved."""

    shape: TableShape
    event: EventShape
    rules: ServerRules
    row_search: frozenset[str] | None
    dice: random.Random

    def counters(self) -> Counters:
        shape, event = self.shape, self.event
        table = MemoryTable(definition_of(shape))
        originals = self._rows()
        wanted = self._draw(originals)
        gone = {at for at in wanted if self.dice.random() < event.missing}
        free = set(
            self.dice.sample(range(len(originals) + int(shape.free_slots)), int(shape.free_slots))
        )
        refs, placed = [], 0
        for at in range(len(originals) + len(free)):
            if at in free:
                refs.append(table.insert((None, b"free%d" % at, NEW * 2 - at, 0)))
                continue
            if (
                (placed not in gone)
                if event.kind != "write"
                else (placed not in wanted or placed in gone)
            ):
                table.insert(originals[placed])
            placed += 1
        for ref in refs:
            table.delete(ref)
        return self._apply(table, [originals[at] for at in wanted])

    def _apply(self, table: MemoryTable, images: list[Row]) -> Counters:
        kind = self.event.kind
        width = tuple(range(len(table.definition.columns)))
        rows: list[Any] = images
        if kind == "update":
            rows = [(image, (*image[:3], NEW + at)) for at, image in enumerate(images)]
        shape = RowsShape(kind, () if kind == "write" else width, () if kind == "delete" else width)
        plan = RowsPlan(table, shape, ApplyOptions(self.rules, self.row_search, idempotent=True))
        counters = Counters()
        outcome = plan.apply(rows, counters)
        assert outcome.error is None
        return counters

    def _rows(self) -> list[Row]:
        """All rows as they were before some went missing. Rows that are alike have the same value,
        number and name."""
        shape = self.shape
        total = round(
            shape.rows + (self.event.rows * self.event.missing if self.event.kind != "write" else 0)
        )
        copies = round(shape.identical_rows)
        kinds = total // copies
        nulls = round(kinds * shape.null_share)
        group = 1 if shape.key == NULLABLE_UNIQUE else round(shape.rows_per_value) // copies or 1
        values = [None] * nulls + [at // group for at in range(kinds - nulls)]
        self.dice.shuffle(values)
        rows = [(values[at], b"%d" % at, at, 0) for at in range(kinds)] * copies
        if copies > 1:
            self.dice.shuffle(rows)
        return rows

    def _draw(self, rows: list[Row]) -> list[int]:
        """The places of the event's rows, in the event's order."""
        event, count = self.event, round(self.event.rows)
        if event.distinct_values is not None:
            chosen = self._of_values(rows, count, round(event.distinct_values))
        elif self.shape.identical_rows > 1:
            first: dict[Row, int] = {}
            for at, row in enumerate(rows):
                first.setdefault(row, at)
            chosen = self.dice.sample(sorted(first.values()), count)
        else:
            size = min(len(rows), max(round((event.last - event.first) * len(rows)), count))
            part = min(event.first * len(rows), len(rows) - size)
            start = int(part + self.dice.random())  # within a row: at it or behind it, by chance
            chosen = self.dice.sample(range(start, start + size), count)
        chosen.sort(reverse=event.order == "reverse")
        if event.order == "random":
            self.dice.shuffle(chosen)
        return chosen

    def _of_values(self, rows: list[Row], count: int, distinct: int) -> list[int]:
        places: dict[Any, list[int]] = {}
        for at, row in enumerate(rows):
            places.setdefault(row[0], []).append(at)
        values = self.dice.sample(sorted(places), distinct)
        return [at for value in values for at in self.dice.sample(places[value], count // distinct)]


def averages(sample: Sample, trials: int) -> dict[str, tuple[float, float]]:
    """Counter -> (mean, its standard error) over many events of the shape."""
    found = [sample.counters().as_dict() for _ in range(trials)]
    result = {}
    for name in COUNTER_NAMES:
        values = [counters[name] for counters in found]
        mean = sum(values) / trials
        variance = sum((value - mean) ** 2 for value in values) / max(trials - 1, 1)
        result[name] = mean, (variance / trials) ** 0.5
    return result


def compare(
    shape: TableShape,
    event: EventShape,
    rules: ServerRules,
    row_search: frozenset[str] | None = None,
    *,
    trials: int = 150,
    seed: int = 1,
    tolerance: float = 0.0,
) -> Expected:
    """Holds the formula against the engine: to the read where the formula says that it is exact,
    else within five standard errors.

    `tolerance` is a share of the expected count on top, where a formula is a limit only.
    """
    formula = expected(shape, event, rules, row_search)
    sample = Sample(shape, event, rules, row_search, random.Random(seed))
    if formula.exact:
        for _ in range(3):
            counted, told = sample.counters().as_dict(), formula.counters.as_dict()
            assert {name: round(told[name], 6) for name in counted} == counted, (
                f"{shape}\n{event}\n{formula}"
            )
        return formula
    for name, (mean, error) in averages(sample, trials).items():
        told = getattr(formula.counters, name)
        allowed = 5 * error + tolerance * abs(told) + 0.01
        assert abs(mean - told) <= allowed, (
            f"{name}: counted {mean:.3f} +- {error:.3f}, formula {told:.3f}\n{shape}\n{event}\n"
            f"{formula}"
        )
    return formula
