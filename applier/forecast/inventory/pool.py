"""Pages that a replica's buffer pool does not hold: its LRU over the keys of the log itself.

A row that is found by a key touches a page of the table and, by a secondary key, a leaf of that
key; rows of one value of a secondary key stand anywhere. A change of a row touches the leaves of
its entries in secondary indexes (`row_places` says where). Rows that are written behind all others
make new pages, which nobody reads. Which pages the pool still holds is the business of
`midpoint_lru`; at the start it holds none of a table, unless all that the log touches fits in. A
scan of more than the pool holds reads all of it each time, and the midpoint keeps it from driving
out the rest.

Transactions write undo logs, whose pages take room (`undo_pages`); what they deleted is read once
more (`purge`), and leaves that fill up split (`leaf_growth`). What all of them go through is lost
and read again now and then (`upper_pages`).

On a 9.7.4 with 64 MiB and 2 million rows in 31,000 pages, 8,000 updates by primary key read 7,753
pages; this says 7,849.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from applier.forecast.inventory.key_places import GROUP_SHIFT, Entry
from applier.forecast.inventory.leaf_growth import EntryPlace, LeafGrowth
from applier.forecast.inventory.midpoint_lru import MidpointLru
from applier.forecast.inventory.pool_rules import PAGE, UNKNOWN, PoolRules
from applier.forecast.inventory.purge import Purge
from applier.forecast.inventory.redo_log import TRANSACTION_BYTES, RedoLog
from applier.forecast.inventory.undo_pages import UndoPages
from applier.forecast.inventory.upper_pages import OF_WORKERS, UpperPages

ENTRY_BYTES = 22
"""Of a secondary index on a number, with the primary key and InnoDB's header, at the fill of an
index that was built in order."""
MOST_TOUCHES = 20_000
"""Of a part of a transaction that are followed one by one; beyond, their share that is read stands
for the rest."""
UPPER, ROWS, LEAVES, INDEXES = range(4)
"""Parts of a table: pages above leaves, rows, leaves of indexes without known places, and the first
index."""
BESIDE = 128
"""Bits by which the numbers of pages beside a group's are apart from all others."""
SCATTER, STEP, MASK = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, (1 << 64) - 1


class IndexLeaves(NamedTuple):
    """The leaves of a secondary index. `is_buffered`: changes wait in the change buffer, and the
    leaf is read when they are merged, and not by purge. A worker waits for it all the same: one
    whose change finds the buffer too large merges others (ibuf_contract_after_insert); a 5.7.29
    with 0.5 ms more for a read took 25 s for 51,000 of them. `most`: entries that fit into one."""

    pages: float
    per_page: float
    most: float
    is_buffered: bool = False


class Touches(NamedTuple):
    """Pages that a part of a transaction touches. `scanned` is in whole tables.

    `rows` pages of the table for `values` values of a key, of the `pages` that there are.
    `ordered`: the key's values are numbers in the order of the table, `per_page` of them in a page;
    `writes`: they are new rows, `deletes`: they go. `lookups` leaves to find rows by and `leaves`
    for changed entries, of `leaf_pages` that there are, where nobody knows their places; else
    `indexes`. `redo_bytes`: of redo, but for rows' images.
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
    deletes: bool = False
    indexes: tuple[IndexLeaves, ...] = ()
    redo_bytes: float = 0.0


NOTHING = Touches()


class PageReads(NamedTuple):
    """Pages that are read, and for how many of them a worker waits: a scan's come ahead of it
    (innodb_read_ahead_threshold). Of 169,112 pages of scans a 9.7.4 read 9,983 when they were
    wanted.
    `writes`: pages that the workers wait for meanwhile until the page cleaner has written them.
    """

    pages: float = 0.0
    waits: float = 0.0
    writes: float = 0.0


NO_READS = PageReads()
READ_AHEAD = 17
"""Pages of a scan for one that it waits for."""


@dataclass(slots=True)
class BufferPool:
    """The pool of one scenario while the log goes by. `pages`: what it holds at most."""

    pages: float
    held: MidpointLru
    chance: Random
    last: dict[int, int]
    """Table or index, and group of its keys -> its last page so far."""
    undo: UndoPages | None
    growth: LeafGrowth
    purge: Purge
    upper: UpperPages
    write_seconds: float = 0.0
    redo_bytes: float = 0.0
    """That are not in the redo log yet."""
    now: float = 0.0
    """The clock of one worker, in seconds."""
    elapsed: float = 0.0
    """The replica's clock, whatever its workers: purge goes by it."""
    uses: float = 0.0
    """Of pages of tables and indexes, so far."""
    began: float = 0.0
    """When the first of them was used."""
    stopped_seconds: float = 0.0
    """So far, in which workers waited for pages that were written."""

    @classmethod
    def of(
        cls,
        pool_bytes: float,
        rules: PoolRules = UNKNOWN,
        write_seconds: float = 0.0,
        redo_log_bytes: float = math.inf,
    ) -> BufferPool:
        """One without pages of tables: with those that a server reads at its start. A page is
        written in so many seconds. A pool without end holds all pages from the start; it is of use
        for those that the redo log has written."""
        pages = pool_bytes / PAGE
        redo = None if math.isinf(redo_log_bytes) else RedoLog(redo_log_bytes)
        held = MidpointLru(pages, rules.cleaner(pool_bytes), redo)
        for page in range(rules.own_pages):
            held.touch(_base(-2, 0) - page, 0.0)
        segments = 0 if math.isinf(pages) and redo is None else rules.rollback_segments
        undo = None
        if segments:
            undo = UndoPages(segments, held, rules.cut_after, rules.cut_seconds)
        growth = LeafGrowth(held)
        purge = Purge(held, growth, rules.history, rules.history_seconds)
        upper = UpperPages(held, rules.used_by_all)
        return cls(pages, held, Random(1), {}, undo, growth, purge, upper, write_seconds)

    def read(
        self,
        table: int,
        touches: Touches,
        keys: Sequence[int] | None,
        entries: Sequence[Entry] | None = None,
        share: float = 1.0,
        image_bytes: int = 0,
    ) -> PageReads:
        """What is read for a part. `table` is its number; `keys` of its rows and their `entries` in
        secondary indexes, where they are known, of a `share` of the rows. `image_bytes`: of its
        rows in the log."""
        if touches is NOTHING or not self.is_followed:
            return NO_READS
        self.redo_bytes += touches.redo_bytes + image_bytes * (not touches.deletes)
        scanned = touches.scanned * touches.pages if touches.pages > self.pages else 0.0
        read, above, wanted = 0.0, 0, touches.rows + touches.lookups + touches.leaves
        if not self.uses:
            self.began = self.now
        self.uses += wanted
        if entries is not None:
            touches = touches._replace(lookups=0.0, leaves=0.0)
        if wanted:
            followed = min(1.0, MOST_TOUCHES / wanted)
            pages: list[int] = []
            missed = sum(self._rows(table, touches, keys, followed, pages))
            read = missed / followed
            if touches.deletes or any(not (one.is_new or one.is_lookup) for one in entries or ()):
                self.purge.needs(pages)
        if entries is not None:
            read += sum(self._touch_entry(table, touches, entry) for entry in entries) / share
        upper = _base(table, UPPER)
        if not self.upper.are_read(upper):
            leaves = [touches.pages, *(index.pages for index in touches.indexes)]
            above = self.upper.use(upper, leaves, self.now)
        waits = read + above * OF_WORKERS + scanned / READ_AHEAD
        return self._found(read + above + scanned, waits)

    def commit(self, changed_rows: float, new_rows: float) -> PageReads:
        """The end of a transaction that changed or deleted some rows, and wrote some new ones: the
        pages that are read for its undo logs, and by purge."""
        if not self.is_followed:
            return NO_READS
        waits, above, behind = 0, 0, 0
        if self.undo:
            waits, pages = self.undo.write(changed_rows, new_rows, self.now)
            self.purge.needs(pages)
            above = self.upper.use_own(_base(-1, UPPER), self.now)
            behind += self.undo.cut(self.now, self.elapsed)
        behind += self.purge.commit(self.now, self.elapsed)
        if self.write_seconds and self.uses:
            at_work = max(self.now - self.began - self.stopped_seconds, 0.0)
            self.held.use_beside_write = at_work / self.uses / self.write_seconds
        self.redo_bytes += TRANSACTION_BYTES
        return self._found(float(waits + above + behind), waits + above * OF_WORKERS)

    def wait(self, until: float) -> None:
        """Nothing is done until then, by the replica's clock."""
        idle = max(until - self.elapsed, 0.0)
        self.now += idle
        self.elapsed += idle

    def work(self, seconds: float, pace: float) -> None:
        """A worker is at work for so many seconds, each of which takes the replica `pace`."""
        self.now += seconds
        self.elapsed += seconds * pace

    @property
    def is_followed(self) -> bool:
        """Whether pages are read, or written for the redo log."""
        return not math.isinf(self.pages) or self.held.redo is not None

    def _found(self, pages: float, waits: float) -> PageReads:
        """The pages that were read; none by a pool without end, which has them all."""
        writes = self._writes()
        return (
            PageReads(0.0, 0.0, writes)
            if math.isinf(self.pages)
            else PageReads(pages, waits, writes)
        )

    def _writes(self) -> float:
        """Pages that workers have waited for since this was asked."""
        writes, self.held.waited_for = self.held.waited_for, 0.0
        if self.held.redo is not None:
            writes += self.held.redo.write(self.redo_bytes, self.now)
            self.redo_bytes = 0.0
        self.stopped_seconds += writes * self.write_seconds
        return writes

    def _touch_entry(self, table: int, touches: Touches, entry: Entry) -> int:
        """How many leaves must be read for an entry."""
        index = touches.indexes[entry.number]
        base = _base(table, entry.number + INDEXES)
        if entry.follows:
            page = base | int(entry.place / index.per_page)
            return self._touch_ordered(page, int(entry.place), base, touches.writes)
        whole = entry.place * index.pages
        leaf = base | min(int(whole), int(index.pages))
        place = EntryPlace(leaf, whole % 1, index.per_page, index.most, index.is_buffered)
        if entry.is_new:
            return self.growth.add(place, self.now)
        if not entry.is_lookup:
            self.purge.needs([], [place])
        return self.growth.find(place, self.now, changes=not entry.is_lookup)

    def _touch_ordered(self, page: int, key: int, base: int, writes: bool) -> int:
        """How many pages of an index in the order of `key` must be read: not one behind all others
        that a row is written into. A group's end is in the middle of the table: the page there is
        full, and each new page has a neighbour."""
        group, in_group = base | key >> GROUP_SHIFT, key >> GROUP_SHIFT
        last = self.last.get(group)
        is_first, is_next = last is None, last is not None and page > last
        if is_first or is_next:
            self.last[group] = page
        if not writes or not (is_next or (is_first and in_group)):
            return self.held.touch(page, self.now)
        read = 0 if is_next else self.held.touch(page, self.now)
        self.held.create(page if is_next else group << BESIDE, self.now)
        if in_group:
            read += self.held.touch(group << BESIDE | 1, self.now)
        return read

    def _rows(
        self,
        table: int,
        touches: Touches,
        keys: Sequence[int] | None,
        followed: float,
        visited: list[int],
    ) -> Iterator[int]:
        """How many pages must be read, for each place: of rows, which are `visited`, and of leaves
        whose places are not known."""
        rows_base, leaves_base = _base(table, ROWS), _base(table, LEAVES)
        pages, leaf_pages = max(int(touches.pages), 1), max(int(touches.leaf_pages), 1)
        values = _whole(touches.values * followed, self.chance)
        rows = _whole(touches.rows * followed, self.chance)
        leaves = _whole((touches.lookups + touches.leaves) * followed, self.chance)
        for at in range(max(values, leaves)):
            key = keys[at % len(keys)] if keys else self.chance.getrandbits(62)
            if at < leaves:
                yield self.held.touch(leaves_base | (key * SCATTER & MASK) % leaf_pages, self.now)
            if touches.ordered and keys:
                if at < rows:
                    page = rows_base | int(key / touches.per_page)
                    visited.append(page)
                    yield self._touch_ordered(page, key, rows_base, touches.writes)
                continue
            for number in range(rows * at // max(values, 1), rows * (at + 1) // max(values, 1)):
                place = (key + (number - rows * at // max(values, 1)) * STEP) * SCATTER & MASK
                page = rows_base | (place >> 20) % pages
                visited.append(page)
                yield self.held.touch(page, self.now)


def _base(table: int, part: int) -> int:
    """What the numbers of pages of a part of a table begin with."""
    return (table << 8 | part) << 64


def _whole(amount: float, chance: Random) -> int:
    """A whole number of the same mean."""
    whole = int(amount)
    return whole + (chance.random() < amount - whole)
