"""How many rows of the replica share the key values that the log's changes name.

A server's statistics say how many rows share a value on average over the values. Changes meet rows:
where some values have many rows, most changes meet one of those. sysbench gives three of four rows
one of 1,000 values of its indexed column, some 75 rows each, and the mean over all values is 4.8.
So a sample of the log's own values is counted where the rows are, in the dump or on the live
server.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from applier.forecast.inventory.facts import TableFacts
from applier.forecast.inventory.key_places import Values
from applier.tables.engine import MemoryTable
from applier.tables.keys import key_extractor
from lookup.table import Key, TableDefinition

CountRows = Callable[[TableDefinition, Key, Sequence[Values]], Sequence[int]]
"""The rows of each of these values of a key; none where they cannot be counted."""
TableKey = tuple[str, str]
"""A table's full name, and the name of a key of it."""
MOST_VALUES = 100
"""Of a key that are counted: a mean whose standard error is a tenth of the values' spread."""
MOST_ROWS = 10_000
"""Of a value that are counted on a live server: a million entries of an index at most."""


class Counted(NamedTuple):
    """The tables with what was counted, what is to be said of it, and the keys that nobody could
    count."""

    facts: dict[str, TableFacts]
    said: list[str]
    uncounted: list[TableKey]


def with_value_counts(
    facts: Mapping[str, TableFacts],
    found_by: Mapping[TableKey, Sequence[Values]],
    count: CountRows | None,
) -> Counted:
    """`found_by`: table and key -> values of it that lead to changed rows. What --rows gave for a
    key stays."""
    found = Counted(dict(facts), [], [])
    for (table, name), values in found_by.items():
        one = found.facts[table]
        if name in one.met:
            continue
        key = next(key for key in one.definition.keys if key.name == name)
        rows = count(one.definition, key, _spread(values)) if count is not None else ()
        if not rows:
            found.uncounted.append((table, name))
            continue
        # a row that the log itself puts there is one at least
        mean = statistics.fmean(max(number, 1) for number in rows)
        found.facts[table] = replace(one, met={**one.met, name: mean})
        if max(rows) >= MOST_ROWS:
            found.said.append(
                f"changes of {table} meet values of key `{name}` with {MOST_ROWS:,} rows and more, "
                f"of which no more were counted (give --rows {table}.{name}=N)"
            )
    return found


def _spread(values: Sequence[Values]) -> list[Values]:
    """Some of them, from the first to the last."""
    step = max(len(values) / MOST_VALUES, 1.0)
    return [values[int(at * step)] for at in range(min(len(values), MOST_VALUES))]


def counted_in_memory(tables: Iterable[MemoryTable]) -> CountRows | None:
    """By the rows of a dump; None for one without rows."""
    by_name = {table.definition.full_name: table for table in tables}
    if not any(map(len, by_name.values())):
        return None

    def count(definition: TableDefinition, key: Key, values: Sequence[Values]) -> list[int]:
        view = by_name[definition.full_name].ordered(key)
        groups = map(view.group, map(key_extractor(definition, key, key.columns), values))
        return [end - begin for begin, end in groups]

    return count
