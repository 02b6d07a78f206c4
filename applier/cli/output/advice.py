"""Which tables cost a replay much, why, and what to do about it."""

from __future__ import annotations

from applier.result import Cost, ReplayResult
from applier.tables.catalog import Tables
from applier.tables.engine import MemoryTable
from applier.tables.suggestion import duplicates_in, suggestion
from lookup.strategies import NOT_NEEDED, strategy_named
from lookup.table import TableDefinition
from lookup.versions import NEWEST, RULES, parse_row_search

EXPENSIVE = 10
"""Rows read per row changed from which on a table is worth a word."""
INDENT = "  "


def advice(result: ReplayResult, tables: Tables) -> list[str]:
    """Lines on each table that reads much more rows than it changes: why, then what to do,
    indented."""
    lines = []
    seen = set()
    for cost in sorted(
        result.costs.values(), key=lambda cost: (-cost.rows_read, cost.table, cost.kind)
    ):
        per_row = cost.reads_per_change
        if (
            per_row is None
            or per_row < EXPENSIVE
            or cost.algorithm == NOT_NEEDED
            or cost.table in seen
        ):
            continue
        seen.add(cost.table)
        reading = f"{cost.table} reads {per_row:,.0f} rows for each row it changes"
        if cost.table in tables:
            table = tables[cost.table]
            lines.append(f"{reading}: {_reason(cost, table.definition)}.")
            lines += [INDENT + line for line in _suggested(table, result)]
        else:
            lines.append(f"{reading}; the log drops the table later.")
    return lines


def _suggested(table: MemoryTable, result: ReplayResult) -> list[str]:
    rules = result.rules or RULES[NEWEST]
    row_search = (
        parse_row_search(result.row_search)
        if rules.row_search_selectable and result.row_search
        else None
    )
    found = suggestion(table.definition, rules, row_search, duplicates_in(table))
    return found.lines if found is not None else []


def _reason(cost: Cost, definition: TableDefinition) -> str:
    has_key = definition.primary is not None
    no_key = ", although it has a primary key" if has_key else " because it has no usable key"
    text = strategy_named(cost.algorithm).expensive_text
    return text.format(key=cost.key, no_key=no_key)
