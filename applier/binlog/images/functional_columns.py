"""The hidden columns of functional indexes, which a source of 8.0.14 to 8.0.17 logs with each row.

A functional key part is a hidden generated column. Since 8.0.18 a source leaves those out of its
table maps; a replica expects them of an older one (`ColumnFilterInboundFunctionalIndexes`,
sql/changestreams 8.0.32 to 9.7), which it knows by the version in the GTID event, there since
8.0.14. They stand where they were added: behind the columns of that time, before those that ALTER
TABLE added later. No schema says where, so the place is found by the types, and refused where these
leave a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from applier.binlog.table_map import SourceColumn, TableMap
from applier.errors import ReplicationError
from lookup.table import Column, TableDefinition

FIRST, BEHIND = 80014, 80018
"""The versions between which the columns are in the log and are known to be."""
HIDDEN_NAME = "!hidden!"
Fits = Callable[[SourceColumn, Column], bool]


def functional_columns(
    table_map: TableMap, definition: TableDefinition, source_version: int, fits: Fits
) -> frozenset[int]:
    """Which columns of the table map are hidden ones.

    Raises ReplicationError 1235 where the types do not tell.
    """
    count = sum(part.column is None for key in definition.keys for part in key.parts)
    sources, columns = table_map.columns, definition.columns
    if not count or not FIRST <= source_version < BEHIND or len(sources) != len(columns) + count:
        return frozenset()
    named = frozenset(
        at for at, source in enumerate(sources) if (source.name or "").startswith(HIDDEN_NAME)
    )
    if named:
        return named
    ways = _ways(sources, columns, fits)
    if ways[len(sources)][len(columns)] > 1:
        raise ReplicationError(
            1235,
            f"the log has {count} hidden columns of functional indexes of {definition.full_name},"
            " and their types do not say where they stand among the others",
            table=definition.full_name,
            hint="leave the table out with --exclude-table",
        )
    return _hidden(ways, sources, columns, fits)


def _ways(
    sources: Sequence[SourceColumn], columns: Sequence[Column], fits: Fits
) -> list[list[int]]:
    """[source columns][local columns] from the left -> in how many ways these can be those; 2 for
    more."""
    most = len(sources) - len(columns)
    ways = [[0] * (len(columns) + 1) for _ in range(len(sources) + 1)]
    ways[0][0] = 1
    for at in range(1, len(sources) + 1):
        for place in range(max(0, at - most), min(at, len(columns)) + 1):
            found = ways[at - 1][place]
            if place and ways[at - 1][place - 1] and fits(sources[at - 1], columns[place - 1]):
                found += ways[at - 1][place - 1]
            ways[at][place] = min(found, 2)
    return ways


def _hidden(
    ways: list[list[int]], sources: Sequence[SourceColumn], columns: Sequence[Column], fits: Fits
) -> frozenset[int]:
    """The one way, read from its end. None at all: the last columns, so that error 1677 names the
    first that differs."""
    place, hidden = len(columns), set()
    for at in range(len(sources), 0, -1):
        if place and ways[at - 1][place - 1] and fits(sources[at - 1], columns[place - 1]):
            place -= 1
        else:
            hidden.add(at - 1)
    return frozenset(hidden) if not place else frozenset(range(len(columns), len(sources)))
