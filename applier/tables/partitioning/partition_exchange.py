"""ALTER TABLE … EXCHANGE PARTITION: the rows of a partition and those of a table change places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from applier.errors import ReplicationError
from applier.tables.catalog import Tables
from applier.tables.engine import MemoryTable
from applier.tables.expressions.defaults import row_generator
from applier.tables.expressions.operands import Session
from applier.tables.partitioning.partition_clauses import PartitionChange
from applier.tables.partitioning.partitions import not_exact
from applier.tables.partitioning.subpartitions import divided
from lookup.handler import Row
from lookup.table import TableDefinition


def exchange_rows(
    tables: Tables, table: MemoryTable, change: PartitionChange, session: Session
) -> None:
    """Raises ReplicationError: 1146 without the other table, 1235 where a row's partition is not
    known."""
    assert change.exchanged is not None
    assert change.before is not None
    place, name = change.exchanged
    other = tables.get(*name)
    if other is None:
        raise ReplicationError(
            1146, f"Table '{name[0]}.{name[1]}' doesn't exist", table=f"{name[0]}.{name[1]}"
        )
    leaving, staying = divided(
        table.definition, change.before, [place], table.stored_rows(), session
    )
    coming, strangers = divided(
        table.definition, change.before, [place], other.stored_rows(), session
    )
    if strangers:  # WITHOUT VALIDATION: they stand there all the same
        raise not_exact(table.definition, "EXCHANGE PARTITION with rows that do not belong there")
    counter = max(table.auto_increment, other.auto_increment)
    for old, rows in ((table, [*staying, *coming]), (other, leaving)):
        new = MemoryTable(old.definition)
        new.load(_as_read(old.definition, rows, session))
        new.auto_increment = counter
        tables.replace(old, new)


def _as_read(definition: TableDefinition, rows: Iterable[Row], session: Session) -> Iterator[Row]:
    """Rows that come from another table, as this one reads them: a virtual column follows its own
    expression, which need not be the other table's on 5.7; a stored one keeps its value."""
    virtual = [at for at, column in enumerate(definition.columns) if column.is_virtual]
    generate = row_generator(definition, session, stored=False) if virtual else None
    if generate is None:
        yield from rows
        return
    for row in rows:
        made, new = generate(row), list(row)
        for at in virtual:
            new[at] = made[at]
        yield tuple(new)
