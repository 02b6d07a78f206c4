"""Which pages the events of a part of a transaction touch, for the pool of a scenario."""

from __future__ import annotations

from applier.forecast.inventory.facts import (
    LEAF_BYTES,
    TableFacts,
    entry_bytes,
    stored_per_page,
)
from applier.forecast.inventory.leaf_growth import FILLED, FULL
from applier.forecast.inventory.pool import ENTRY_BYTES, IndexLeaves, Touches
from applier.forecast.inventory.pool_rules import PAGE
from applier.forecast.inventory.redo_log import redo_bytes
from applier.forecast.prices.units import UNITS, Amounts
from applier.forecast.workload.row_places import indexes_of
from lookup.cost import Expected
from lookup.strategies import Access
from lookup.table_shape import PRIMARY, TableShape


class TouchedPages:
    """Adds up the pages that a part's events touch."""

    def __init__(
        self, facts: TableFacts | None, shape: TableShape, kind: str, *, is_buffered: bool
    ) -> None:
        self.table_rows = max(shape.rows, 1.0)
        self.per_page = (
            stored_per_page(shape.row_bytes)
            if facts is None
            else facts.rows_per_page(shape.row_bytes)
        )
        self.pages = max(shape.rows / self.per_page, 1.0)
        self.leaf_pages = max(shape.rows * ENTRY_BYTES / PAGE, 1.0)
        self.indexes = () if facts is None else _leaves_of(facts, self.table_rows, is_buffered)
        self.ordered = facts is not None and facts.order is not None
        self.kind = kind
        self.rows = self.values = self.leaves = self.lookups = self.scanned = 0.0
        self.by_primary = False

    def add(self, found: Expected, rows: float, times: float, leaves: float) -> None:
        """Takes in so many equal events of `rows` rows."""
        counted, strategy = found.counters, found.strategy
        self.leaves += times * rows * leaves
        if strategy is None:
            self.by_primary = self.ordered
            self.values += times * rows
            self.rows += times * rows
        elif strategy.access is Access.ROW:
            self.by_primary = found.key == PRIMARY
            self.values += times * rows
            self.rows += times * rows
            self.lookups += times * rows * (not self.by_primary)
        elif strategy.access is Access.VALUE:
            self.values += times * counted.read_key
            self.lookups += times * counted.read_key
            self.rows += times * (counted.read_key + counted.read_next)
        else:
            self.scanned += times * counted.read_rnd_next / self.table_rows

    def all(self, amounts: Amounts) -> Touches:
        """What was added. `amounts`: of the part's units."""
        return Touches(
            self.pages,
            self.leaf_pages,
            self.rows,
            self.values,
            self.leaves,
            self.scanned,
            self.per_page,
            self.ordered and self.by_primary,
            self.lookups,
            self.kind == "write",
            self.kind == "delete",
            self.indexes,
            redo_bytes(dict(zip(UNITS, amounts, strict=True))),
        )


def _leaves_of(facts: TableFacts, rows: float, is_buffered: bool) -> tuple[IndexLeaves, ...]:
    """The leaves of each index of `indexes_of`; changes of a unique one cannot be buffered. Where
    the length of an entry is not known, leaves are as full as many changes leave them."""
    found = []
    for key in indexes_of(facts):
        pages, width = facts.leaf_pages.get(key.name), entry_bytes(facts.definition, key)
        known = pages / facts.rows if pages and facts.rows else (width or ENTRY_BYTES) / LEAF_BYTES
        per_page = 1 / known
        most = LEAF_BYTES / width if width else per_page / FILLED
        most = most if per_page < FULL * most else per_page
        buffered = is_buffered and not key.unique
        found.append(IndexLeaves(max(rows * known, 1.0), per_page, most, buffered))
    return tuple(found)
