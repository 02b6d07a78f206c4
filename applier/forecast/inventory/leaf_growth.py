"""Leaves of an index that fill up and split (btr0btr.cc, btr_page_split_and_insert).

A split makes a page, moves half of the entries there and changes the neighbour's pointer back. An
index that was built in order has full leaves: the first entry that comes into one splits it. After
many of them in no order a leaf is filled to 69 % at the mean (ln 2).
"""

from __future__ import annotations

import math
from collections import defaultdict

from applier.forecast.inventory.midpoint_lru import MidpointLru

FILLED = math.log(2)
FULL = 0.9
"""A leaf that is as full as this by a server's statistics is full: they may be off by as much."""
PIECES_SHIFT = 6
MOST_PIECES = 1 << PIECES_SHIFT
"""Bits for the number of a page among those that a leaf was split into."""


class LeafGrowth:
    """What has come into each leaf since the start. `per_leaf`: entries of a leaf then; `most`:
    those that fit in."""

    def __init__(self, held: MidpointLru) -> None:
        self.held = held
        self._more: defaultdict[int, int] = defaultdict(int)
        self._pieces: dict[int, int] = {}
        """Leaf -> the pages that it was split into."""

    def page_of(self, leaf: int, within: float) -> int:
        """The page of an entry that stands so far (0 to 1) within a leaf's entries."""
        return leaf << PIECES_SHIFT | int(within * self._pieces.get(leaf, 1))

    def add(self, leaf: int, per_leaf: float, most: float, now: float) -> bool:
        """An entry comes in; whether a neighbour is read for a split."""
        self._more[leaf] += 1
        pieces, entries = self._pieces.get(leaf, 1), per_leaf + self._more[leaf]
        if entries <= (most if pieces == 1 else most * pieces * FILLED) or pieces == MOST_PIECES:
            return False
        self._pieces[leaf] = pieces + 1
        self.held.create(leaf << PIECES_SHIFT | pieces, now)
        return self.held.touch(leaf + 1 << PIECES_SHIFT, now)

    def remove(self, leaf: int) -> None:
        """Purge takes an entry out. Pages stay: they are joined again below half of what fits."""
        self._more[leaf] -= 1
