"""Which pages a buffer pool holds: InnoDB's list with its midpoint, by the rules of buf0lru.cc and
buf0flu.cc, which are alike in 5.7 and 9.7.

- A page that is read goes to the head of the old part, the last 3/8 of the list
  (innodb_old_blocks_pct 37). It becomes young when it is wanted again a second after its first use
  (innodb_old_blocks_time 1000) and still there. Until the first page has gone nothing moves.
- A young page moves to the head of the list when it is wanted, unless it is among the first of it.
- The page cleaner frees pages at the tail until innodb_lru_scan_depth of them are free. MySQL's
  does so once a second, and at once when a thread finds no free one: where rows are changed, the
  pages at the tail are changed ones, and have to be written first (buf_LRU_get_free_block).
  MariaDB's is woken when half as many are free (need_LRU_eviction). So a pool that reads many pages
  is emptied in strides (what is left of it stands beside `POOL_RULES`).
"""

from __future__ import annotations

from collections import OrderedDict

from applier.forecast.inventory.pool_rules import PageCleaner

OLD_SHARE = 3 / 8
OLD_TOLERANCE = 20
"""BUF_LRU_OLD_TOLERANCE: the old part is longer or shorter by so many before pages change over."""
FEWEST_PAGES = 512
"""BUF_LRU_OLD_MIN_LEN: a shorter list has no old part."""
OLD_SECONDS = 1.0
NEVER_MOVED = 0
"""What a page's clock says that was read into the old part and is young since the border moved."""
YOUNG_SHARE = (1 - OLD_SHARE) / 4
"""Of the pool: so many pages have to go before a young page moves again."""


class MidpointLru:
    """The list of a pool of `pages`. Times are seconds, and never go back."""

    def __init__(self, pages: float, cleaner: PageCleaner) -> None:
        self.pages, self.cleaner = pages, cleaner
        self._young = OrderedDict[int, int]()
        """Page -> how many pages had gone when it moved to the head. The last is the head."""
        self._old = OrderedDict[int, None]()
        self._first_use: dict[int, float] = {}
        self.gone = 0
        """Pages so far."""
        self._cleaned = 0.0

    def __len__(self) -> int:
        return len(self._first_use)

    def __contains__(self, page: int) -> bool:
        return page in self._first_use

    def touch(self, page: int, now: float) -> bool:
        """Uses a page; whether it had to be read."""
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
        if now - self._cleaned >= self.cleaner.seconds:
            self._clean(now)
        if page not in self._first_use:
            self._take_free(page, now)
        self._old.pop(page, None)
        self._to_head(page)

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
        while len(self._first_use) > self.pages - self.cleaner.free:
            page, _ = (self._old or self._young).popitem(last=False)
            del self._first_use[page]
            self.gone += 1
        self._balance()

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
