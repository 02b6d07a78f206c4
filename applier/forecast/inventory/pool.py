"""Pages that a replica's buffer pool does not hold: an LRU over the keys of the log itself.

A row that is found by a key touches a page of the table and, by a secondary key, a leaf of that
key; rows of one value of a secondary key stand anywhere. A page that was touched lately is in the
pool; at the start none of a table is, unless all that the log touches fits in. A scan of more than
the pool holds reads all of it each time, and InnoDB's midpoint (innodb_old_blocks_pct) keeps it
from driving out the rest. What InnoDB keeps free of a pool (innodb_lru_scan_depth of each instance)
holds no page.

On a 9.7.4 with 64 MiB and 2 million rows in 31,000 pages, 8,000 updates by primary key read 7,753
pages; this says 7,700.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

PAGE = 16 * 1024
FREE_PAGES = 1024
"""innodb_lru_scan_depth: what each instance keeps free."""
LARGE_POOL, INSTANCES = 1 << 30, 8
ENTRY_BYTES = 22
"""Of a secondary index on a number, with the primary key and InnoDB's header, at the fill of an
index that was built in order."""
MOST_TOUCHES = 20_000
"""Of a part of a transaction that are followed one by one; beyond, their share that is read stands
for the rest."""
SCATTER, STEP, MASK = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, (1 << 64) - 1


class Touches(NamedTuple):
    """Pages that a part of a transaction touches. `scanned` is in whole tables.

    `rows` pages of the table for `values` values of a key, `leaves` of secondary indexes, of the
    `pages` and `leaf_pages` that there are. `ordered`: the key's values are numbers in the order of
    the table, `per_page` of them in a page.
    """

    pages: float = 0.0
    leaf_pages: float = 0.0
    rows: float = 0.0
    values: float = 0.0
    leaves: float = 0.0
    scanned: float = 0.0
    per_page: float = 1.0
    ordered: bool = False


NOTHING = Touches()


class PageReads(NamedTuple):
    """Pages that are read, and for how many of them a worker waits: a scan's come ahead of it
    (innodb_read_ahead_threshold). Of 169,112 pages of scans a 9.7.4 read 9,983 when they were
    wanted.
    """

    pages: float = 0.0
    waits: float = 0.0


NO_READS = PageReads()
READ_AHEAD = 17
"""Pages of a scan for one that it waits for."""


def capacity(pool_bytes: float) -> float:
    """Pages that a pool of so many bytes holds at work."""
    if math.isinf(pool_bytes):
        return math.inf
    pages, instances = pool_bytes / PAGE, INSTANCES if pool_bytes >= LARGE_POOL else 1
    return max(pages - FREE_PAGES * instances, pages / 2)


@dataclass(slots=True)
class BufferPool:
    """The pool of one scenario while the log goes by. `pages`: what it holds."""

    pages: float
    held: OrderedDict[int, None]
    chance: Random

    @classmethod
    def of(cls, pool_bytes: float) -> BufferPool:
        """An empty one."""
        return cls(capacity(pool_bytes), OrderedDict(), Random(1))

    def read(self, table: int, touches: Touches, keys: Sequence[int] | None) -> PageReads:
        """What is read for a part. `table` is its number; `keys` of its rows, where they are
        known."""
        if touches is NOTHING or math.isinf(self.pages):
            return NO_READS
        scanned = touches.scanned * touches.pages if touches.pages > self.pages else 0.0
        read, wanted = 0.0, touches.rows + touches.leaves
        if wanted:
            followed = min(1.0, MOST_TOUCHES / wanted)
            missed = sum(map(self._touch, self._places(table, touches, keys, followed)))
            read = missed / followed
        return PageReads(read + scanned, read + scanned / READ_AHEAD)

    def _touch(self, page: int) -> bool:
        """Whether it must be read."""
        held = self.held
        if page in held:
            held.move_to_end(page)
            return False
        held[page] = None
        if len(held) > self.pages:
            held.popitem(last=False)
        return True

    def _places(
        self, table: int, touches: Touches, keys: Sequence[int] | None, followed: float
    ) -> Iterator[int]:
        """The pages, as numbers; those of leaves are odd."""
        base, pages = table << 48, max(int(touches.pages), 1)
        values = _whole(touches.values * followed, self.chance)
        rows = _whole(touches.rows * followed, self.chance)
        leaves = _whole(touches.leaves * followed, self.chance)
        leaf_pages = max(int(touches.leaf_pages), 1)
        for at in range(max(values, leaves)):
            key = keys[at % len(keys)] if keys else self.chance.getrandbits(62)
            if at < leaves:
                yield base | (key * SCATTER & MASK) % leaf_pages << 1 | 1
            if touches.ordered and keys:
                if at < rows:
                    yield base | (int(key / touches.per_page) & 0xFFFFFFFFFF) << 1
                continue
            for number in range(rows * at // max(values, 1), rows * (at + 1) // max(values, 1)):
                place = (key + (number - rows * at // max(values, 1)) * STEP) * SCATTER & MASK
                yield base | (place >> 20) % pages << 1


def _whole(amount: float, chance: Random) -> int:
    """A whole number of the same mean."""
    whole = int(amount)
    return whole + (chance.random() < amount - whole)
