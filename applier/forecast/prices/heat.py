"""What one changed row costs, by how it is found and by how many rows an event changes: the map
behind the report's heat map."""

from __future__ import annotations

from typing import Any

from applier.forecast.prices.units import SCANS, Prices, RowWork, event_amounts
from lookup.cost import expected
from lookup.table_shape import NO_KEY, OTHER, PRIMARY, EventShape, TableShape
from lookup.versions import HASH_SCAN, INDEX_SCAN, RULES, TABLE_SCAN

ROWS_PER_EVENT = (1, 10, 100, 1000)
WAYS: dict[str, tuple[str, float, frozenset[str]]] = {
    "primary key": (PRIMARY, 1, frozenset({INDEX_SCAN, HASH_SCAN})),
    "index scan, 100 rows a value": (OTHER, 100, frozenset({INDEX_SCAN, TABLE_SCAN})),
    "hash over index, 100 rows a value": (OTHER, 100, frozenset({INDEX_SCAN, HASH_SCAN})),
    "hash over table": (NO_KEY, 1, frozenset({INDEX_SCAN, HASH_SCAN})),
    "table scan": (NO_KEY, 1, frozenset({INDEX_SCAN, TABLE_SCAN})),
}
"""Name -> kind of key, rows of one of its values, slave_rows_search_algorithms."""


def heat(prices: Prices, rows: float, row_bytes: float, columns: int) -> list[dict[str, Any]]:
    """Seconds for each changed row of an UPDATE on a table of `rows` rows. A way whose unit has no
    price is left out."""
    found = []
    for name, (key, duplicates, options) in WAYS.items():
        shape = TableShape(rows, key, min(duplicates, max(rows, 1)))
        for per_event in ROWS_PER_EVENT:
            if per_event > rows:
                continue
            cost = expected(shape, EventShape("update", per_event), RULES["8.0"], options)
            assert cost.strategy is not None
            if cost.strategy.scans and not prices[SCANS[cost.strategy.hashes][0]]:
                break
            seconds, _ = prices.cost(
                event_amounts(cost, "update", per_event, RowWork(row_bytes, columns, 0.0, rows))
            )
            found.append({"way": name, "rows_per_event": per_event, "seconds": seconds / per_event})
    return found
