"""Which columns of a source's table are which of the replica's, when one side has a generated
invisible primary key."""

from __future__ import annotations

import pytest

from applier.binlog import wire
from applier.binlog.images.matching import match
from applier.binlog.table_map import SourceColumn, TableMap
from applier.errors import ReplicationError
from lookup.table import Column, TableDefinition

GIPK_FLAG = 0x04
HIDDEN = Column(
    "my_row_id", "bigint", unsigned=True, nullable=False, auto_increment=True, invisible=True
)
PLAIN = (Column("a", "int"), Column("b", "int"))


def table(*, hidden_key: bool) -> TableDefinition:
    return TableDefinition(
        "d", "t", ((HIDDEN,) if hidden_key else ()) + PLAIN, generated_invisible_key=hidden_key
    )


def table_map(ints: int, *, hidden_key: bool = False) -> TableMap:
    columns = [
        SourceColumn(wire.LONGLONG if hidden_key and at == 0 else wire.LONG, 0, True)
        for at in range(ints)
    ]
    return TableMap(1, GIPK_FLAG if hidden_key else 0, "d", "t", tuple(columns), None)


@pytest.mark.parametrize(
    ("source", "replica_has_it", "version", "places"),
    [
        (table_map(2), False, 80030, (0, 1)),
        (table_map(3, hidden_key=True), True, 80030, (0, 1, 2)),
        (table_map(2), True, 80030, (1, 2)),
        (table_map(3, hidden_key=True), False, 80030, (None, 0, 1)),
        (table_map(2), True, 50729, (1, 2)),
        (table_map(2), True, 0, (1, 2)),
    ],
)
def test_hidden_key_of_one_side(
    source: TableMap, replica_has_it: bool, version: int, places: tuple[int | None, ...]
) -> None:
    matching = match(source, table(hidden_key=replica_has_it), source_version=version)
    assert tuple(target.column for target in matching.targets) == places


def test_an_older_source_with_as_many_columns_has_the_key_too() -> None:
    source = TableMap(
        1, 0, "d", "t", (SourceColumn(wire.LONGLONG, 0, True), *table_map(2).columns), None
    )
    matching = match(source, table(hidden_key=True), source_version=80029)
    assert tuple(target.column for target in matching.targets) == (0, 1, 2)


@pytest.mark.parametrize("columns", [1, 4])
def test_an_older_source_that_differs_by_more_is_refused(columns: int) -> None:
    with pytest.raises(ReplicationError) as stopped:
        match(table_map(columns), table(hidden_key=True), source_version=50729)
    assert stopped.value.number == 13964
