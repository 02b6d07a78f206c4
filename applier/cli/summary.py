"""The end of a replay in words: a table of what each table cost, what is wrong with it, and what would mend it."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from applier.result import Cost, ReplayResult
from applier.tables.catalog import Tables
from applier.tables.texts import column_type
from lookup.decision import BY_TABLE, HASH_OVER_INDEX, HASH_OVER_TABLE, NOT_NEEDED
from lookup.table import TableDefinition

EXPENSIVE = 10
"""Rows read per row changed from which on a table is worth a word."""


def print_summary(result: ReplayResult, tables: Tables) -> None:
    """Prints to standard output."""
    console = wide_console()
    costs = sorted(result.costs.values(), key=lambda cost: (-cost.rows_read, cost.table, cost.kind))
    console.print(
        f"{result.transactions:,} transactions, {sum(cost.events for cost in costs):,} rows events, {result.rows:,} rows; "
        f"rules of {result.server or 'no server'}, {result.row_search or 'no row was looked up'}",
        highlight=False,
    )
    if costs:
        console.print(cost_table(costs))
    for line in advice(costs, tables):
        console.print(line, highlight=False, soft_wrap=True)
    for note, count in result.notes.items():
        console.print(f"note: {note}" + (f" ({count} times)" if count > 1 else ""), highlight=False, soft_wrap=True)
    if result.error is None and result.last_file is not None:
        console.print(f"done: {result.last_file}, position {result.last_position}", highlight=False)


def wide_console() -> Console:
    """A console on standard output; into a file or pipe its lines are as wide as they need to be."""
    console = Console()
    return console if console.is_terminal else Console(width=200)


def cost_table(costs: list[Cost]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, right in (
        ("table", False), ("event", False), ("algorithm", False), ("key", False), ("events", True), ("rows", True),
        ("changed", True), ("rows read", True), ("per row", True),
    ):  # fmt: skip
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for cost in costs:
        per_row = cost.reads_per_change
        table.add_row(
            cost.table,
            cost.kind,
            cost.algorithm,
            cost.key or "-",
            f"{cost.events:,}",
            f"{cost.rows:,}",
            f"{cost.rows_changed:,}",
            f"{cost.rows_read:,}",
            "-" if per_row is None or cost.algorithm == NOT_NEEDED else f"{per_row:,.1f}",
            style="bold" if per_row is not None and per_row >= EXPENSIVE and cost.algorithm != NOT_NEEDED else "",
        )
    return table


def advice(costs: list[Cost], tables: Tables) -> list[str]:
    """One line for each table that reads much more than it changes: what is wrong and what would fix it."""
    lines = []
    seen = set()
    for cost in costs:
        per_row = cost.reads_per_change
        if per_row is None or per_row < EXPENSIVE or cost.algorithm == NOT_NEEDED or cost.table in seen:
            continue
        seen.add(cost.table)
        definition = tables[cost.table].definition if cost.table in tables else None
        reason, fix = _reason(cost, definition), cure(cost.table, definition)
        lines.append(f"{cost.table} reads {per_row:,.0f} rows for each row it changes: {reason}. {fix}")
    return lines


def _reason(cost: Cost, definition: TableDefinition | None) -> str:
    has_key = definition is not None and definition.primary is not None
    if cost.algorithm == BY_TABLE:
        why = ", though it has a primary key" if has_key else ", since it has no primary key"
        return "each row is looked for from the top of the table" + why
    if cost.algorithm == HASH_OVER_TABLE:
        return "each event scans the table" + (", though it has a primary key" if has_key else ", since no key is usable")
    if cost.algorithm == HASH_OVER_INDEX:
        return f"the values of key `{cost.key}` stand in many rows"
    return f"key `{cost.key}` is not unique, and its values stand in many rows"


def cure(name: str, definition: TableDefinition | None) -> str:
    """What to type against it."""
    if definition is not None and definition.primary is not None:
        return "Replay with INDEX_SCAN in --row-search: the primary key is there."
    if definition is not None:
        for key in definition.sorted_keys:
            if key.unique and not key.has_prefix and not key.is_functional:
                columns = ", ".join(f"MODIFY `{column.name}` {column_type(column)} NOT NULL" for column in
                                    (definition.columns[at] for at in key.columns) if column.nullable)
                if columns:
                    return f"Make the unique key `{key.name}` count: ALTER TABLE {name} {columns};"
    return f"Give it a primary key: ALTER TABLE {name} ADD COLUMN id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY;"
