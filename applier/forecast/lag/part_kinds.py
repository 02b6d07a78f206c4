"""Which kinds of work a log has: rows events of one table, kind and image, of about as many rows,
as many events and statements in a transaction. They are what `binlag measure --from` measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

from applier.forecast.prices.pricing import Part, Pricer
from applier.forecast.prices.table_state import TableState
from applier.forecast.workload.transaction_load import LoadShape
from lookup.table_shape import NO_KEY, PRIMARY

FULL, PARTIAL = "full", "partial"
"""Images of all columns; of some of them."""
COLUMNS: dict[str, str] = {
    "source": "string", "server": "string", "table": "string", "kind": "string", "image": "string",
    "key": "string", "rows_per_value": "double", "indexes": "int64", "columns": "int64",
    "table_rows": "double", "row_bytes": "double", "rows_per_event": "double",
    "events_per_transaction": "double", "statements_per_transaction": "double",
    "transactions": "int64", "events": "int64", "rows": "int64", "algorithm": "string",
    "seconds": "double",
}  # fmt: skip
"""Columns of a fleet's table `shapes` -> their kinds. `key`: the best key for the images, one of
`lookup.table_shape.KEY_KINDS`; `indexes`: keys but for the primary key; `columns`: of the log's
table; `row_bytes`: of an image; `seconds`: what a worker takes, as forecast for the mean of the
shape."""


class PartKind(NamedTuple):
    """What parts of transactions have in common. Numbers have two significant digits: rows of an
    event, events and statements of a transaction."""

    target: LoadShape
    rows: int
    events: int
    statements: int


def part_kind(target: LoadShape, events: int, rows: int, statements: int) -> PartKind:
    """The kind of a part with so many events, rows and ended statements."""
    return PartKind(
        target, two_digits(round(rows / max(events, 1))), two_digits(events), two_digits(statements)
    )


def two_digits(value: int) -> int:
    """Rounded to two significant digits."""
    if value < 100:
        return value
    unit = int(10 ** (len(str(value)) - 2))
    return (value + unit // 2) // unit * unit


@dataclass(slots=True)
class PartTotals:
    """Parts of one kind, added up: `row_bytes` of all images; `values`: distinct ones of the key
    that rows are looked up by, of each event, 0 where nobody counts them."""

    transactions: int = 0
    events: int = 0
    rows: int = 0
    statements: int = 0
    row_bytes: int = 0
    values: int = 0

    def add(
        self,
        transactions: int,
        events: int,
        rows: int,
        statements: int,
        row_bytes: int,
        values: int,
    ) -> None:
        """So many more."""
        self.transactions += transactions
        self.events += events
        self.rows += rows
        self.statements += statements
        self.row_bytes += row_bytes
        self.values += values


class PartCounts:
    """All kinds of a log, and their totals."""

    def __init__(self) -> None:
        self.totals: dict[PartKind, PartTotals] = {}
        self._of_table: dict[str, list[PartKind]] = {}

    def of(self, kind: PartKind) -> PartTotals:
        """The totals of a kind, to add to."""
        found = self.totals.get(kind)
        if found is None:
            found = self.totals[kind] = PartTotals()
            self._of_table.setdefault(kind.target.table, []).append(kind)
        return found

    def targets(self, table: str) -> dict[LoadShape, PartTotals]:
        """What each target of a table has."""
        found: dict[LoadShape, PartTotals] = {}
        for kind in self._of_table.get(table, ()):
            found.setdefault(kind.target, PartTotals()).add(*astuple(self.totals[kind]))
        return found

    @property
    def tables(self) -> set[str]:
        """The tables whose rows the log changes."""
        return set(self._of_table)


def shape_rows(
    counts: PartCounts, states: Mapping[str, TableState], pricer: Pricer
) -> list[dict[str, Any]]:
    """COLUMNS but for the source, a row for each kind of work, the dearest first. `states`: of the
    tables at the end of the log."""
    rows = [
        _row(kind, one, states[kind.target.table], pricer)
        for kind, one in counts.totals.items()
        if one.rows
    ]
    return sorted(rows, key=lambda row: (-row["seconds"], *map(str, row.values())))


def _row(kind: PartKind, totals: PartTotals, state: TableState, pricer: Pricer) -> dict[str, Any]:
    target, count = kind.target, totals.transactions
    per_event, events = totals.rows / totals.events, totals.events / count
    statements = totals.statements / count
    part = Part(
        target, (((round(per_event) or 1, 0), max(round(events), 1)),), round(statements),
        state.rounded(int(state.most_rows)), state.row_bytes, max(round(events), 1),
        max(round(totals.rows / count), 1),
    )  # fmt: skip
    price, shape = pricer.price(part), pricer.shape(target, part.rows, part.row_bytes)
    facts = pricer.facts_of(target)
    primary = PRIMARY if facts is None or facts.definition.primary is not None else NO_KEY
    images = [one for one in (target.before, target.after) if one]
    whole = all(len(one) == target.columns for one in images)
    return {
        "server": pricer.scenario.rules.name,
        "table": target.table,
        "kind": target.kind,
        "image": FULL if whole else PARTIAL,
        "key": primary if target.kind == "write" else shape.key,
        "rows_per_value": shape.rows_per_value,
        "indexes": 0 if facts is None else len(facts.definition.secondary_keys),
        "columns": target.columns,
        "table_rows": part.rows,
        "row_bytes": totals.row_bytes / (totals.rows * len(images)),
        "rows_per_event": per_event,
        "events_per_transaction": events,
        "statements_per_transaction": statements,
        "transactions": count,
        "events": totals.events,
        "rows": totals.rows,
        "algorithm": price.algorithm,
        "seconds": price.seconds * count + price.byte_seconds * totals.row_bytes,
    }
