"""Leaves of an index that fill up and split, and halves that are merged again: btr0btr.cc and
btr0cur.cc of 5.7 to 9.7.

A split makes a page and moves half of the entries there (btr_page_split_and_insert). An index that
was built in order has full leaves: the first entry that comes into one splits it. As soon as an
entry is taken out of a page that is filled to less than MERGE_THRESHOLD afterwards, the page is
merged with a neighbour that has the room (btr_cur_compress_if_useful). For either, the leaves on
both sides are latched and so read (btr_cur_latch_leaves, BTR_MODIFY_TREE). After many entries in no
order a leaf is filled to 69 % at the mean (ln 2).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from applier.forecast.inventory.midpoint_lru import MidpointLru

FILLED = math.log(2)
FULL = 0.9
"""A leaf that is as full as this by a server's statistics is full: they may be off by as much."""
MERGE_THRESHOLD = 0.5
"""Of a page; what an index says of it in its COMMENT is not read."""
MOST_PIECES = 64
"""Pages that one leaf is followed into."""
PIECES_SHIFT = 192
"""Bits by which the number of a page among them stands above the leaf's own."""


class EntryPlace(NamedTuple):
    """Where an entry stands: so far (0 to 1) within a leaf as it was at the start. `entries`: of
    that leaf then; `most`: those that fit in. `is_buffered`: what purge does to it waits in the
    change buffer while the leaf is not in the pool."""

    leaf: int
    within: float
    entries: float
    most: float
    is_buffered: bool = False


@dataclass(slots=True)
class _Pieces:
    """The pages that a leaf was split into, in the index's order: where each begins within the
    leaf, its entries, and its number."""

    entries: list[float]
    starts: list[float] = field(default_factory=lambda: [0.0])
    numbers: list[int] = field(default_factory=lambda: [0])

    def at(self, within: float) -> int:
        return bisect_right(self.starts, within) - 1

    def split(self, at: int) -> int:
        """Moves half of a page's entries into a new one behind it; the number of that."""
        end = self.starts[at + 1] if at + 1 < len(self.starts) else 1.0
        number = next(one for one in range(MOST_PIECES) if one not in self.numbers)
        self.entries[at] /= 2
        self.entries.insert(at + 1, self.entries[at])
        self.starts.insert(at + 1, (self.starts[at] + end) / 2)
        self.numbers.insert(at + 1, number)
        return number

    def merge(self, at: int, most: float) -> None:
        """Joins a page with the one before it, or the one behind, where both fit into one."""
        for first in (at - 1, at):
            if 0 <= first < len(self.entries) - 1 and sum(self.entries[first : first + 2]) <= most:
                self.entries[first] += self.entries.pop(first + 1)
                del self.starts[first + 1], self.numbers[first + 1]
                return


class LeafGrowth:
    """What has become of each leaf since the start. Each step returns how many pages are read."""

    def __init__(self, held: MidpointLru) -> None:
        self.held = held
        self._pieces: dict[int, _Pieces] = {}

    def find(self, place: EntryPlace, now: float, *, changes: bool = False) -> int:
        """Somebody looks for an entry, and `changes` it or not."""
        pieces = self._pieces.get(place.leaf)
        number = pieces.numbers[pieces.at(place.within)] if pieces else 0
        return self.held.touch(_page(place.leaf, number), now, changes=changes)

    def add(self, place: EntryPlace, now: float) -> int:
        """An entry comes in."""
        read = self.find(place, now, changes=True)
        pieces, at = self._counted(place, 1)
        if pieces.entries[at] > place.most and len(pieces.numbers) < MOST_PIECES:
            read += self._latch_neighbours(place.leaf, at, now)
            self.held.create(_page(place.leaf, pieces.split(at)), now)
        return read

    def remove(self, place: EntryPlace, now: float) -> int:
        """Purge takes an entry out."""
        pieces, at = self._counted(place, -1)
        if place.is_buffered and _page(place.leaf, pieces.numbers[at]) not in self.held:
            return 0
        read = self.find(place, now, changes=True)
        if pieces.entries[at] < place.most * MERGE_THRESHOLD:
            read += self._latch_neighbours(place.leaf, at, now)
            pieces.merge(at, place.most)
        return read

    def _counted(self, place: EntryPlace, change: int) -> tuple[_Pieces, int]:
        """The leaf's pages, and which of them has so many entries more."""
        pieces = self._pieces.setdefault(place.leaf, _Pieces([place.entries]))
        at = pieces.at(place.within)
        pieces.entries[at] += change
        return pieces, at

    def _latch_neighbours(self, leaf: int, at: int, now: float) -> int:
        numbers = self._pieces[leaf].numbers
        before, behind = self._pieces.get(leaf - 1), self._pieces.get(leaf + 1)
        if at:
            left = _page(leaf, numbers[at - 1])
        else:
            left = _page(leaf - 1, before.numbers[-1] if before else 0)
        if at + 1 < len(numbers):
            right = _page(leaf, numbers[at + 1])
        else:
            right = _page(leaf + 1, behind.numbers[0] if behind else 0)
        return sum(self.held.touch(page, now, changes=False) for page in (left, right))


def _page(leaf: int, number: int) -> int:
    """The number of a page that a leaf was split into; the first is the leaf's own."""
    return number << PIECES_SHIFT | leaf
