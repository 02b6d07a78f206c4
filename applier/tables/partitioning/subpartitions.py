"""Which rows stand in a partition, or in a single subpartition, that a statement names.

A row stands in the subpartition that HASH or KEY gives, counted anew in each partition
(`get_partition_id_with_sub`, sql/sql_partition.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from applier.tables.expressions.operands import Session
from applier.tables.partitioning.partition_clauses import PartitionChange, PartitionClause
from applier.tables.partitioning.partitions import (
    Locate,
    Partition,
    Partitioning,
    Place,
    locator,
    read_partitioning,
)
from applier.tables.sql.sql_text import Parser
from lookup.handler import Row
from lookup.table import TableDefinition


def stands_in(
    definition: TableDefinition,
    partitioning: Partitioning,
    places: Collection[Place],
    session: Session,
) -> Callable[[Row], bool]:
    """Whether a row stands in one of the places. It, and this, raise ReplicationError 1235 where
    that is not exact."""
    locate = locator(definition, partitioning, session)
    if not any(isinstance(place, tuple) for place in places):
        return lambda row: locate(row) in places
    below = _sub_locator(definition, partitioning, session)
    return lambda row: locate(row) in places or (locate(row), below(row)) in places


def named_partitions(
    parser: Parser, definition: TableDefinition, session: Session
) -> Callable[[Row], bool] | None:
    """`PARTITION (p0, p1sp0)` at the cursor, behind a table: whether a row stands in one of them;
    None where there is no such clause. Raises ReplicationError as `stands_in` does."""
    if parser.word() != "PARTITION" or parser.op(1) != "(":
        return None
    parser.at += 2
    clause = PartitionClause(definition, parser, definition.database)
    places = clause.places()
    parser.expect(")")
    assert clause.before is not None
    return stands_in(definition, clause.before, places, session)


def kept_rows(
    change: PartitionChange, definition: TableDefinition, rows: list[Row], session: Session
) -> list[Row]:
    """The rows of the partitions that are not emptied; all must have had a partition that is known,
    unless every partition is emptied. Raises ReplicationError 1235."""
    if not change.emptied or change.before is None:
        return rows
    if change.emptied.issuperset(range(len(change.before.parts))):
        return []
    return divided(definition, change.before, change.emptied, rows, session)[1]


def divided(
    definition: TableDefinition,
    partitioning: Partitioning,
    places: Collection[Place],
    rows: list[Row],
    session: Session,
) -> tuple[list[Row], list[Row]]:
    """The rows that stand in one of the places, and the others. Raises ReplicationError 1235 where
    that is not exact; without rows there is nothing to know."""
    if not rows:
        return [], []
    stands = stands_in(definition, partitioning, places, session)
    return [row for row in rows if stands(row)], [row for row in rows if not stands(row)]


def _sub_locator(
    definition: TableDefinition, partitioning: Partitioning, session: Session
) -> Locate:
    """A function from a row to the place of its subpartition within its partition."""
    method = read_partitioning(Parser(partitioning.sub[len("SUB") :]))
    count = max(len(names) for names in partitioning.sub_names)
    parts = tuple(Partition(f"s{at}") for at in range(count))
    return locator(definition, replace(method, parts=parts), session)
