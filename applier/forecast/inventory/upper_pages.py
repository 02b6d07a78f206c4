"""Pages that all changes go through, and that a small pool loses all the same: those above the
leaves of an index, headers and inodes of files, and a few of the server's own.

A round of the page cleaner that empties the pool takes them too (`midpoint_lru`). In 105 rounds of
a pool of 896 pages a 9.7.4 that changed two tables read 1,172 pages above leaves and 1,550 of the
others (buffer_page_read_% of innodb_metrics): 26 in a round; in 78 of another load 28.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from applier.forecast.inventory.midpoint_lru import MidpointLru

FAN_OUT = 1200
"""Leaves below a page: entries of some 13 bytes, for a key of four."""
OF_A_FILE = 3
"""The header, the bitmap of the change buffer and the inodes."""
OF_WORKERS = 1 / 2
"""The part of the reads that a worker waits for: purge goes through the same pages."""


class UpperPages:
    """Of all tables. Until the first pages have gone from the pool, none is read."""

    def __init__(self, held: MidpointLru, used_by_all: int) -> None:
        self.held, self.used_by_all = held, used_by_all
        self._gone = 0
        self._uses: dict[int, int] = {}
        """Since pages have last gone: what the numbers of a table's pages begin with -> uses."""
        self._all_read: set[int] = set()
        """Those of which no page is left to be read."""

    def are_read(self, base: int) -> bool:
        """Whether nothing is read for a table. `base`: what the numbers of its pages begin with."""
        if self._gone != self.held.gone:
            self._gone = self.held.gone
            self._uses.clear()
            self._all_read.clear()
        return not self._gone or base in self._all_read

    def use(self, base: int, leaves: Sequence[float], now: float) -> int:
        """A part of a transaction uses a table whose indexes have so many leaves: the first one
        since pages have gone its file's pages and the roots, and each of them one more page below
        each root. How many are read."""
        if self.are_read(base):
            return 0
        uses = self._uses[base] = self._uses.get(base, 0) + 1
        first = OF_A_FILE + len(leaves)
        read = self._touch(base, range(first), now) if uses == 1 else 0
        below = [at for at, one in enumerate(leaves) if uses <= one / FAN_OUT]
        if not below:
            self._all_read.add(base)
        return read + self._touch(base, (first + uses * len(leaves) + at for at in below), now)

    def use_own(self, base: int, now: float) -> int:
        """A transaction uses the server's own; how many are read."""
        if self.are_read(base):
            return 0
        self._all_read.add(base)
        return self._touch(base, range(self.used_by_all), now)

    def _touch(self, base: int, pages: Iterable[int], now: float) -> int:
        return sum(self.held.touch(base | page, now, changes=False) for page in pages)
