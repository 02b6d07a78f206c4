"""Which pages a buffer pool holds: InnoDB's list with its midpoint, by the rules of buf0lru.cc and
buf0flu.cc, which are alike in 5.7 and 9.7.

- A page that is read goes to the head of the old part, the last 3/8 of the list
  (innodb_old_blocks_pct 37). It becomes young when it is wanted again a second after its first use
  (innodb_old_blocks_time 1000) and still there. Until the first page has gone nothing moves.
- A young page moves to the head of the list when it is wanted, unless it is among the first of it.
- The page cleaner frees pages at the tail until innodb_lru_scan_depth of them are free. MySQL's
  does so once a second, and at once when a thread finds no free one: where rows are changed, the
  pages at the tail are changed ones, and have to be written first (buf_LRU_get_free_block).
  MariaDB's is woken when half as many are free (need_LRU_eviction); it writes changed pages and
  frees unchanged ones, so a changed page goes a round after it was written, unless it has been
  changed again. So a pool that reads many pages is emptied in strides (what is left of it stands
  beside `POOL_RULES`).
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import chain
from random import Random

from applier.forecast.inventory.pool_rules import USE_BESIDE_WRITE, PageCleaner
from applier.forecast.inventory.redo_log import RedoLog

OLD_SHARE = 3 / 8
OLD_TOLERANCE = 20
"""BUF_LRU_OLD_TOLERANCE: the old part is longer or shorter by so many before pages change over."""
FEWEST_PAGES = 512
"""BUF_LRU_OLD_MIN_LEN: a shorter list has no old part."""
OLD_SECONDS = 1.0
NEVER_MOVED = 0
"""What a page's clock says that was read into the old part and is young since the border moved."""
EXTENT_SHIFT = 6
"""64 pages: those of an extent are neighbours (innodb_flush_neighbors, ON in MariaDB)."""
YOUNG_SHARE = (1 - OLD_SHARE) / 4
"""Of the pool: so many pages have to go before a young page moves again."""


class MidpointLru:
    """The list of a pool of `pages`. Times are seconds, and never go back."""

    def __init__(self, pages: float, cleaner: PageCleaner, redo: RedoLog | None = None) -> None:
        self.pages, self.cleaner, self.redo = pages, cleaner, redo
        self._young = OrderedDict[int, int]()
        """Page -> how many pages had gone when it moved to the head. The last is the head."""
        self._old = OrderedDict[int, None]()
        self._first_use: dict[int, float] = {}
        self.gone = 0
        """Pages so far."""
        self._cleaned = 0.0
        self._chance = Random(1)
        self._changed = set[int]()
        """Pages that are not written yet; kept where the cleaner asks."""
        self.use_beside_write = USE_BESIDE_WRITE
        """What workers take to use a page, beside what it takes to write one."""
        self.waited_for = 0.0
        """Pages so far that workers waited for until they were written."""

    def __len__(self) -> int:
        return len(self._first_use)

    def __contains__(self, page: int) -> bool:
        return page in self._first_use

    def touch(self, page: int, now: float, *, changes: bool = True) -> bool:
        """Uses a page, and `changes` it or not; whether it had to be read."""
        if changes:
            self._change(page)
        if now - self._cleaned >= self.cleaner.seconds:
            self._clean(now)
        first_use = self._first_use.get(page)
        if first_use is None:
            self._take_free(page, now)
            if len(self._first_use) < FEWEST_PAGES:
                self._young[page] = self.gone
            else:
                self._old[page] = None
                self._balance()
            return True
        if page in self._old:
            if self.gone and now - first_use >= OLD_SECONDS:
                self._old.pop(page)
                self._to_head(page)
        elif self.gone > self._young[page] + self.pages * YOUNG_SHARE:
            self._to_head(page)
        return False

    def create(self, page: int, now: float) -> None:
        """Makes a page, which nobody reads: it begins young."""
        self._change(page)
        if now - self._cleaned >= self.cleaner.seconds:
            self._clean(now)
        if page not in self._first_use:
            self._take_free(page, now)
        self._old.pop(page, None)
        self._to_head(page)

    def _change(self, page: int) -> None:
        """Notes that a page is changed, for those who write it."""
        if self.cleaner.most_written:
            self._changed.add(page)
        if self.redo is not None:
            self.redo.change(page)

    def _take_free(self, page: int, now: float) -> None:
        """Gives the page a free one of the pool; where there are too few, the page cleaner is
        woken."""
        if len(self._first_use) > self.pages - self.cleaner.low:
            self._clean(now)
        self._first_use[page] = now

    def _to_head(self, page: int) -> None:
        self._young[page] = self.gone
        self._young.move_to_end(page)
        self._balance()

    def _clean(self, now: float) -> None:
        """A round of the page cleaner."""
        self._cleaned = now
        if self.cleaner.most_written:
            self._write()
            return
        while len(self._first_use) > self.pages - self.cleaner.free:
            page, _ = (self._old or self._young).popitem(last=False)
            del self._first_use[page]
            self.gone += 1
            if self.redo is not None:
                self.redo.forget(page)
        self._balance()

    def _write(self) -> None:
        """A round that writes changed pages and frees the others."""
        held, writing = len(self._first_use), set[int]()
        least, gone = self.pages - self.cleaner.free, list[int]()
        for page in chain(self._old, self._young):
            if held - len(gone) <= least:
                break
            if page in self._changed:
                if len(writing) >= self.cleaner.most_written:
                    break
                free = self.pages - held + len(gone)
                self._write_one(page, writing, held >= FEWEST_PAGES and free >= self.cleaner.low)
            elif page not in writing and self._chance.random() >= self.cleaner.in_use:
                gone.append(page)
        for page in gone:
            (self._old if page in self._old else self._young).pop(page)
            del self._first_use[page]
        self.gone += len(gone)
        self.waited_for += self.cleaner.waited_for(len(writing), held, self.use_beside_write)
        self._balance()

    def _write_one(self, page: int, writing: set[int], with_neighbours: bool) -> None:
        """Adds a page to those that are being written and, when asked, the changed ones around
        it."""
        self._changed.discard(page)
        writing.add(page)
        for step in (-1, 1) if with_neighbours else ():
            one = page + step
            while one in self._changed and one >> EXTENT_SHIFT == page >> EXTENT_SHIFT:
                self._changed.discard(one)
                writing.add(one)
                one += step

    def _balance(self) -> None:
        """Moves the border between young and old pages."""
        if len(self._first_use) < FEWEST_PAGES:
            return
        young, old, wanted = self._young, self._old, len(self._first_use) * OLD_SHARE
        while len(old) < wanted - OLD_TOLERANCE:
            page, _ = young.popitem(last=False)
            old[page] = None
        while len(old) > wanted + OLD_TOLERANCE:
            page, _ = old.popitem()
            young[page] = NEVER_MOVED
            young.move_to_end(page, last=False)
