"""Where rows and index entries stand: a number for a key in the order of its index.

InnoDB keeps rows in the order of the primary key and the entries of a secondary index in the order
of its columns. Rows whose keys are near each other share a page, so the model of the buffer pool
needs places, not only whether two keys are equal. Three rules give them:

- A primary key that ends in whole numbers counts them (`KeyOrder`): numbers are taken to follow
  each other. Columns before the counted one name a group that has its own pages, as long as a group
  fills some pages by the server's statistics (rows per value of the first columns). Columns behind
  it say where a row stands among those of one value.
- Of a secondary index a sample of the log's own images gives the distribution (`Spread`): a value
  stands where its share of the sample ends. So values that many rows share get many leaves.
- An index whose values rise with the primary key (a time of creation) is touched where the table
  is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple
from zlib import crc32

from lookup.table import TableDefinition

GROUP_PAGES = 2
"""That the rows of a group fill, to have pages of their own."""
GROUP_SHIFT = 32
"""Bits for the numbers of a group."""
GROUP_BITS = 0xFFFFF
"""With `GROUP_SHIFT` numbers of 52 bits, which a float can hold."""
FEWEST_VALUES = 50
"""Of a sample that says something."""
NEAR = 0.01
"""Of the sample: how far apart in the index rows are that are neighbours by the primary key, at
the median, where the one order follows the other. Without a tie it is a third."""
WHOLE_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "integer", "bigint"})
Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """How a primary key becomes a number in the order of the table. The first `group` columns of
    the key name the group. `rows`: of the columns behind, the rows of a group that share a value of
    the first, of the first two, …; 1 for all of them."""

    group: int
    rows: tuple[float, ...]

    def number(self, key: Values) -> int:
        """The key's number; neighbours' numbers follow each other. A log whose column is no whole
        number, as another schema has it, has its keys anywhere."""
        counted = key[self.group :]
        if not isinstance(counted[0], int):
            return crc32(repr(key).encode())
        place = counted[0] * self.rows[0]
        for value, shared, rows in zip(counted[1:], self.rows, self.rows[1:], strict=False):
            place += number_of((value,)) * rows % shared
        if not self.group:
            return int(place)
        group = crc32(repr(key[: self.group]).encode()) & GROUP_BITS
        return group << GROUP_SHIFT | int(place) & (1 << GROUP_SHIFT) - 1


def number_of(values: Values) -> int:
    """A number that is the same for equal values."""
    value = values[0] if len(values) == 1 else None
    return value if isinstance(value, int) else crc32(repr(values).encode())


def key_order(
    definition: TableDefinition, rows_per_prefix: Sequence[float], rows_per_page: float
) -> KeyOrder | None:
    """None where the keys' order cannot be told: rows then stand anywhere. `rows_per_prefix`: rows
    that share the first 1, 2, … columns of the primary key; empty where nobody said."""
    primary = definition.primary
    if primary is None or primary.has_prefix:
        return None
    columns = [definition.columns[at] for at in primary.columns]
    known = [*rows_per_prefix[: len(columns) - 1], 1.0]
    if len(known) < len(columns):
        return None
    group = sum(rows >= GROUP_PAGES * rows_per_page for rows in known[:-1])
    if columns[group].type not in WHOLE_NUMBERS:
        return None
    return KeyOrder(group, tuple(max(rows, 1.0) for rows in known[group:]))


class Entry(NamedTuple):
    """A place in a secondary index, by the index's number: a share of its entries (0 to 1), or,
    where the index follows the primary key, the number of the row. `is_lookup`: rows are found
    there, `is_new`: it is written."""

    number: int
    place: float
    follows: bool = False
    is_lookup: bool = False
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of an index's values by a sample, in order, all of one type. `nulls`:
    entries of the sample that hold NULL, which stand before all others."""

    values: tuple[Values, ...] = ()
    nulls: int = 0
    follows: bool = False

    def place(self, value: Values, salt: int) -> float:
        """The share of entries before this one, 0 to 1. `salt` scatters equal values among the
        places that they have."""
        total, chance = len(self.values) + self.nulls, (salt * 0x9E3779B1 & 0xFFFFFFFF) / (1 << 32)
        if not value:  # a minimal image lacks it
            return chance
        if total < FEWEST_VALUES:
            return (crc32(repr(value).encode()) & 0xFFFFFFFF) / (1 << 32)
        if None in value:
            return chance * max(self.nulls, 1) / total
        if self.values and _types(value) != _types(self.values[0]):  # the column was altered
            return chance
        first, last = bisect_left(self.values, value), bisect_right(self.values, value)
        if first == last:
            share = first - 0.5 + self._within(value, first)
            return max(self.nulls + share, 0.0) / total
        return (self.nulls + first + chance * (last - first)) / total

    def share_page(self, one: Values, other: Values, pages: float) -> float:
        """The chance that two values stand in the same of so many pages, by the values of the
        sample between them; 0 where one of them is not known, or of another type."""
        known = {_types(value) for value in (one, other, *self.values[:1])}
        if len(known) > 1 or not one or None in one:
            return 0.0
        low, high = sorted((one, other))
        between = bisect_left(self.values, high) - bisect_right(self.values, low)
        return max(1 - between * pages / max(len(self.values) + self.nulls, 1), 0.0)

    def _within(self, value: Values, at: int) -> float:
        """How far a value is from the one of the sample before it to the one behind."""
        low, high = self.values[max(at - 1, 0)][0], self.values[min(at, len(self.values) - 1)][0]
        if isinstance(low, int) and isinstance(high, int) and high > low:
            return float((min(max(value[0], low), high) - low) / (high - low))
        return (crc32(repr(value).encode()) & 0xFFFFFFFF) / (1 << 32)


def spread_of(pairs: Sequence[tuple[Values, Values]]) -> Spread:
    """The distribution of an index's values, from (primary key, value) of rows of a sample; nothing
    is known where the log alters the type of a column."""
    for kept in zip(*pairs, strict=True):
        if len({_types(one) for one in kept if one and None not in one}) > 1:
            return Spread()
    values = sorted(value for _, value in pairs if None not in value)
    return Spread(tuple(values), len(pairs) - len(values), _follows(pairs))


def _types(values: Values) -> tuple[type, ...]:
    return tuple(map(type, values))


def _follows(pairs: Sequence[tuple[Values, Values]]) -> bool:
    """Whether values rise (or fall) with the primary key."""
    unique = {key: value for key, value in pairs if None not in value and None not in key}
    if len(unique) < FEWEST_VALUES:
        return False
    ordered = sorted(unique, key=lambda key: unique[key])
    ranks = {key: rank for rank, key in enumerate(ordered)}
    by_key = [ranks[key] for key in sorted(unique)]
    apart = sorted(abs(one - other) for one, other in pairwise(by_key))
    return apart[len(apart) // 2] <= max(NEAR * len(by_key), 1)
