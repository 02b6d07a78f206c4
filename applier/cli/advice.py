"""What is wrong with a table that costs much, and the statement that would mend it."""

from __future__ import annotations

from applier.binlog.types.names import column_type
from applier.result import Cost
from applier.tables.catalog import Tables
from applier.tables.engine import MemoryTable
from lookup.decision import BY_TABLE, HASH_OVER_INDEX, HASH_OVER_TABLE, NOT_NEEDED
from lookup.table import BLOB_TYPES, Key, TableDefinition

EXPENSIVE = 10
"""Rows read per row changed from which on a table is worth a word."""


def advice(costs: list[Cost], tables: Tables) -> list[str]:
    """One line for each table that reads much more than it changes: what is wrong and what would fix it."""
    lines = []
    seen = set()
    for cost in costs:
        per_row = cost.reads_per_change
        if per_row is None or per_row < EXPENSIVE or cost.algorithm == NOT_NEEDED or cost.table in seen:
            continue
        seen.add(cost.table)
        reading = f"{cost.table} reads {per_row:,.0f} rows for each row it changes"
        if cost.table in tables:
            table = tables[cost.table]
            lines.append(f"{reading}: {_reason(cost, table.definition)}. {cure(table.definition, table)}")
        else:
            lines.append(f"{reading}; the log dropped it later.")
    return lines


def _reason(cost: Cost, definition: TableDefinition) -> str:
    has_key = definition.primary is not None
    if cost.algorithm == BY_TABLE:
        why = ", though it has a primary key" if has_key else ", since it has no primary key"
        return "each row is looked for from the top of the table" + why
    if cost.algorithm == HASH_OVER_TABLE:
        return "each event scans the table" + (", though it has a primary key" if has_key else ", since no key is usable")
    if cost.algorithm == HASH_OVER_INDEX:
        return f"the values of key `{cost.key}` stand in many rows"
    return f"key `{cost.key}` is not unique, and its values stand in many rows"


def cure(definition: TableDefinition, table: MemoryTable | None = None) -> str:
    """What to type against it; `table` shows which columns could be a primary key."""
    name = definition.full_name
    if definition.primary is not None:
        return "Replay with INDEX_SCAN in --row-search: the primary key is there."
    key = next((key for key in definition.sorted_keys if _could_be_primary(definition, key)), None)
    if key is not None:
        nullable = (definition.columns[at] for at in key.columns if definition.columns[at].nullable)
        changes = ", ".join(f"MODIFY `{column.name}` {column_type(column)} NOT NULL" for column in nullable)
        return f"Make the unique key `{key.name}` count: ALTER TABLE {name} {changes};"
    column = None if table is None else _distinct_column(table)
    if column is not None:
        return f"Give it a primary key; no value of `{column}` stands in two rows here: ALTER TABLE {name} ADD PRIMARY KEY (`{column}`);"
    taken = {column.name.lower() for column in definition.columns}
    fresh = next(word for word in ("id", "row_id", *(f"row_id{n}" for n in range(2, 5000))) if word not in taken)
    return f"Give it a primary key: ALTER TABLE {name} ADD COLUMN `{fresh}` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY;"


def _could_be_primary(definition: TableDefinition, key: Key) -> bool:
    plain = key.unique and not key.has_prefix and not key.is_functional
    return plain and any(definition.columns[at].nullable for at in key.columns)


def _distinct_column(table: MemoryTable) -> str | None:
    """The first NOT NULL column whose values are all different; None when the table holds too little to tell."""
    rows = table.stored_rows()
    if len(rows) < 2:
        return None
    for at, column in enumerate(table.definition.columns):
        keyable = column.type not in BLOB_TYPES and column.type != "json" and not column.is_virtual
        if keyable and not column.nullable and len({row[at] for row in rows}) == len(rows):
            return column.name
    return None
