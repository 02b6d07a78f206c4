"""ALTER TABLE: a list of changes to a definition, then the rows carried over into the new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from applier.errors import ReplicationError
from applier.tables.catalog import Tables, table_of
from applier.tables.collations.collation import sort_key
from applier.tables.ddl.alter_rows import numbered, row_converter
from applier.tables.ddl.alteration import read_alteration
from applier.tables.ddl.row_copy import copies_rows
from applier.tables.definitions.table_draft import SchemaRules
from applier.tables.discarded_table import DiscardedTable
from applier.tables.dump import current_rows
from applier.tables.engine import MemoryTable
from applier.tables.expressions.operands import Dialect, unsupported
from applier.tables.merge_tables import altered_merge, is_merge
from applier.tables.partitioning.partition_exchange import exchange_rows
from applier.tables.partitioning.subpartitions import kept_rows
from lookup.handler import DuplicateKey, Ref, Row, traits_of
from lookup.table import TableDefinition

CHECKED_PARTITIONS = frozenset({"ANALYZE", "CHECK", "OPTIMIZE", "REPAIR"})
"""What ALTER TABLE does with partitions beside changing them; it is logged, and succeeds, for a
table that is not there, too."""


def alter_table(
    tables: Tables,
    table: MemoryTable,
    clause: str,
    rules: SchemaRules,
    *,
    database: str,
    ignoring: bool = False,
) -> None:
    """Carries out the clauses behind ALTER TABLE name; `ignoring`: ALTER IGNORE TABLE, which leaves
    out rows with a key that is there.

    `database`: the session's; a table that is renamed without one goes there. In 5.x and MariaDB a
    table that is copied under another name loses its foreign keys, and those that point to it keep
    the old name (seen on 5.7.29, 10.11.18). Raises ReplicationError with the server's number.
    """
    change = read_alteration(table.definition, clause, rules, database)
    definition = altered_merge(table.definition, change.definition())
    moved = definition.full_name != table.definition.full_name
    taken = (
        tables.same_kind(definition) is not None
        or (definition.database, definition.name) in tables.views
    )
    if moved and taken:
        raise ReplicationError(
            1050, f"Table '{definition.name}' already exists", table=definition.full_name
        )
    copies = copies_rows(change, definition)
    copied = copies is True
    loses_keys = moved and copied and (rules.mariadb or not rules.modern_utf8mb4)
    if loses_keys:
        definition = replace(definition, foreign_keys=())
    discarded = change.discards or isinstance(table, DiscardedTable)
    new = DiscardedTable(definition) if discarded else table_of(definition)
    new.auto_increment = change.auto_increment or table.auto_increment
    new.had_deletes = table.had_deletes and not copied
    conversions = replace(rules.conversions, copies=copied)
    convert = row_converter(
        table.definition,
        definition,
        change.sources,
        rules.session,
        conversions,
        copied=copies,
    )
    kept = _kept_rows(table, new, rules.session.dialect)
    if change.partitions is not None:
        kept = kept_rows(change.partitions, table.definition, kept, rules.session)
    if change.order_by and definition.primary is None:
        for name, down in reversed(change.order_by):
            kept.sort(key=_order_key(table.definition, name), reverse=down)
    rows = numbered(
        table.definition,
        definition,
        change.sources,
        map(convert, kept),
        change.auto_increment or 0,
        rules.session,
        copied=copied,
    )
    try:
        if ignoring:
            _load_first(new, rows, partitioned=table.definition.partitioned)
        else:
            new.load(rows)
    except DuplicateKey as duplicate:
        raise ReplicationError(1062, str(duplicate), table=definition.full_name) from None
    tables.replace(table, new, change.columns.renamed, children_follow=not loses_keys)
    if change.partitions is not None and change.partitions.exchanged is not None:
        exchange_rows(tables, new, change.partitions, rules.session)


def _kept_rows(table: MemoryTable, new: MemoryTable, dialect: Dialect) -> list[Row]:
    """The rows that the new table gets. A MERGE table has none of its own, and gets none
    (HA_NO_COPY_ON_ALTER); one that is no longer system-versioned keeps the current ones."""
    definition = new.definition
    if is_merge(definition) or isinstance(new, DiscardedTable):
        return []
    if table.definition.system_versioned and not definition.system_versioned:
        return list(current_rows(table, dialect))
    return [row for _, row in table.scan()]


def _load_first(table: MemoryTable, rows: Iterable[Row], *, partitioned: bool) -> None:
    """Of rows with the same unique key the one that is read first stays
    (`copy_data_between_tables`, seen on MariaDB 10.11.18).

    InnoDB keeps the undo record of the last row only, and takes that row back for each that it
    passes over: one that was stored before it found its other key taken; but for the clustered key
    the row before it, whatever that is (`ALTER IGNORE TABLE t ADD PRIMARY KEY (a)` of 2, 1, 1, 3
    leaves 2 and 3). Raises ReplicationError 1235 where the rows come from partitions, which are
    read one after the other.
    """
    definition = table.definition
    clustered = definition.primary if traits_of(definition).clustered else None
    last: Ref | None = None
    for row in rows:
        try:
            last = table.insert(row)
        except DuplicateKey as duplicate:
            if partitioned:
                what = f"ALTER IGNORE of partitions' rows with the same {duplicate.key.name}"
                raise unsupported(what) from None
            if duplicate.key == clustered and last is not None:
                table.delete(last)
            last = None


def _order_key(definition: TableDefinition, name: str) -> Callable[[Row], Any]:
    """Rows in the order of a column; NULL is the smallest. Raises ReplicationError 1054."""
    at = definition.positions.get(name.lower())
    if at is None:
        raise ReplicationError(
            1054, f"Unknown column '{name}' in 'order clause'", table=definition.full_name
        )
    convert = sort_key(definition.columns[at])
    return lambda row: (
        () if row[at] is None else (row[at] if convert is None else convert(row[at]),)
    )
