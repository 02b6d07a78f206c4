"""Pages that a replica's buffer pool does not hold: an LRU over the keys of the log itself.

A row that is found by a key touches a page of the table and, by a secondary key, a leaf of that
key; rows of one value of a secondary key stand anywhere. A change of a row touches the leaves of
its entries in secondary indexes (`row_places` says where). Rows that are written behind all others
make new pages, which nobody reads. A page that was touched lately is in the pool; at the start none
of a table is, unless all that the log touches fits in. A scan of more than the pool holds reads all
of it each time, and InnoDB's midpoint (innodb_old_blocks_pct) keeps it from driving out the rest.
What InnoDB keeps free of a pool (innodb_lru_scan_depth of each instance) holds no page.

Every transaction writes into a rollback segment, and they take turns: 128 in each of the two undo
tablespaces of 8.0 and later. Their headers and undo logs are some 600 pages that a small pool does
not have for tables (seen in information_schema.INNODB_BUFFER_PAGE of a 9.7.4).

What purge reads once more is not in the model. It follows close behind, and a pool of more than a
thousand pages mostly still holds what it needs; a smaller one may read more than this says.

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

from applier.forecast.inventory.key_places import GROUP_SHIFT, Entry

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
ROWS, LEAVES, INDEXES = range(3)
"""Parts of a table: its rows, leaves of indexes without known places, and the first index."""
SCATTER, STEP, MASK = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, (1 << 64) - 1


class IndexLeaves(NamedTuple):
    """The leaves of a secondary index. `is_buffered`: changes wait in the change buffer, and the
    leaf is read when they are merged: no worker waits for it then."""

    pages: float
    per_page: float
    is_buffered: bool = False


class Touches(NamedTuple):
    """Pages that a part of a transaction touches. `scanned` is in whole tables.

    `rows` pages of the table for `values` values of a key, of the `pages` that there are.
    `ordered`: the key's values are numbers in the order of the table, `per_page` of them in a page;
    `writes`: they are new rows. `lookups` leaves to find rows by and `leaves` for changed entries,
    of `leaf_pages` that there are, where nobody knows their places; else `indexes`.
    """

    pages: float = 0.0
    leaf_pages: float = 0.0
    rows: float = 0.0
    values: float = 0.0
    leaves: float = 0.0
    scanned: float = 0.0
    per_page: float = 1.0
    ordered: bool = False
    lookups: float = 0.0
    writes: bool = False
    indexes: tuple[IndexLeaves, ...] = ()


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
    last: dict[int, int]
    """Table or index, and group of its keys -> its last page so far."""
    rollback_segments: int
    transactions: int = 0

    @classmethod
    def of(cls, pool_bytes: float, rollback_segments: int = 0) -> BufferPool:
        """One without pages of tables. A server reads those of rollback segments at its start."""
        pages = capacity(pool_bytes)
        held = OrderedDict.fromkeys(range(-int(min(2 * rollback_segments, pages)), 0))
        return cls(pages, held, Random(1), {}, rollback_segments)

    def read(
        self,
        table: int,
        touches: Touches,
        keys: Sequence[int] | None,
        entries: Sequence[Entry] | None = None,
        share: float = 1.0,
    ) -> PageReads:
        """What is read for a part. `table` is its number; `keys` of its rows and their `entries` in
        secondary indexes, where they are known, of a `share` of the rows."""
        if touches is NOTHING or math.isinf(self.pages):
            return NO_READS
        scanned = touches.scanned * touches.pages if touches.pages > self.pages else 0.0
        read, merged, wanted = 0.0, 0.0, touches.rows + touches.lookups + touches.leaves
        if entries is not None:
            touches = touches._replace(lookups=0.0, leaves=0.0)
        if wanted:
            followed = min(1.0, MOST_TOUCHES / wanted)
            missed = sum(self._rows(table, touches, keys, followed))
            read = missed / followed
        if entries is not None:
            late, now = self._entries(table, touches, entries)
            merged, read = late / share, read + now / share
        return PageReads(read + merged + scanned, read + scanned / READ_AHEAD)

    def commit(self) -> float:
        """The end of a transaction: pages of its rollback segment that are read, the header and the
        undo log. Segments take turns, so all of theirs stay in the pool, or none."""
        if math.isinf(self.pages) or not self.rollback_segments:
            return 0.0
        number = self.transactions % self.rollback_segments
        self.transactions += 1
        return float(self._touch(-1 - 2 * number) + self._touch(-2 - 2 * number))

    def _entries(self, table: int, touches: Touches, entries: Sequence[Entry]) -> tuple[int, int]:
        """How many leaves of entries are read when buffered changes are merged, and at once."""
        late = now = 0
        for entry in entries:
            missed = self._touch_entry(table, touches, entry)
            if touches.indexes[entry.number].is_buffered and not entry.is_lookup:
                late += missed
            else:
                now += missed
        return late, now

    def _touch_entry(self, table: int, touches: Touches, entry: Entry) -> bool:
        """Whether the leaf of an entry must be read."""
        leaves = touches.indexes[entry.number]
        base = _base(table, entry.number + INDEXES)
        if not entry.follows:
            return self._touch(base | min(int(entry.place * leaves.pages), int(leaves.pages)))
        page = base | int(entry.place / leaves.per_page)
        return self._touch_ordered(page, int(entry.place), base, touches.writes)

    def _touch_ordered(self, page: int, key: int, base: int, writes: bool) -> bool:
        """Whether a page of an index in the order of `key` must be read: not one behind all others
        that a row is written into."""
        group = base | key >> GROUP_SHIFT
        last = self.last.get(group)
        if last is None or page > last:
            self.last[group] = page
        missed = self._touch(page)
        return missed and not (writes and last is not None and page > last)

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

    def _rows(
        self,
        table: int,
        touches: Touches,
        keys: Sequence[int] | None,
        followed: float,
    ) -> Iterator[bool]:
        """Whether each page must be read: of rows, and of leaves whose places are not known."""
        rows_base, leaves_base = _base(table, ROWS), _base(table, LEAVES)
        pages, leaf_pages = max(int(touches.pages), 1), max(int(touches.leaf_pages), 1)
        values = _whole(touches.values * followed, self.chance)
        rows = _whole(touches.rows * followed, self.chance)
        leaves = _whole((touches.lookups + touches.leaves) * followed, self.chance)
        for at in range(max(values, leaves)):
            key = keys[at % len(keys)] if keys else self.chance.getrandbits(62)
            if at < leaves:
                yield self._touch(leaves_base | (key * SCATTER & MASK) % leaf_pages)
            if touches.ordered and keys:
                if at < rows:
                    page = rows_base | int(key / touches.per_page)
                    yield self._touch_ordered(page, key, rows_base, touches.writes)
                continue
            for number in range(rows * at // max(values, 1), rows * (at + 1) // max(values, 1)):
                place = (key + (number - rows * at // max(values, 1)) * STEP) * SCATTER & MASK
                yield self._touch(rows_base | (place >> 20) % pages)


def _base(table: int, part: int) -> int:
    """What the numbers of pages of a part of a table begin with."""
    return (table << 8 | part) << 64


def _whole(amount: float, chance: Random) -> int:
    """A whole number of the same mean."""
    whole = int(amount)
    return whole + (chance.random() < amount - whole)
