"""What purge reads once more: undo logs, and the pages of deleted rows and changed index entries.

It follows some transactions behind, or some time (`PoolRules`). It reads the undo log of each
transaction. For a deleted row, or one of which an index entry changed, it needs the row's page and
the entry's leaf, too (row0purge.cc). No worker waits for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from applier.forecast.inventory.leaf_growth import EntryPlace, LeafGrowth
from applier.forecast.inventory.midpoint_lru import MidpointLru

MOST_PAGES = 20_000
"""That they need: behind larger transactions purge does not lag by as many."""


class Deleted(NamedTuple):
    """By one transaction: pages that purge needs, and entries that it takes out."""

    pages: list[int]
    entries: list[EntryPlace]
    at: float = 0.0
    """When it ended, in seconds of the replica's clock."""

    @property
    def page_count(self) -> int:
        """Pages, at most."""
        return len(self.pages) + len(self.entries)


class Purge:
    """So many transactions and seconds behind those of one replica."""

    def __init__(
        self, held: MidpointLru, growth: LeafGrowth, history: int, seconds: float = 0.0
    ) -> None:
        self.held, self.growth, self.history, self.seconds = held, growth, history, seconds
        self._under_way = Deleted([], [])
        self._history: deque[Deleted] = deque()
        self._pages = 0

    def needs(self, pages: Sequence[int], entries: Sequence[EntryPlace] = ()) -> None:
        """The transaction under way has deleted something here."""
        self._under_way.pages.extend(pages)
        self._under_way.entries.extend(entries)

    def commit(self, now: float, elapsed: float) -> int:
        """A transaction ends, by the pool's clock and by the replica's; how many pages are read for
        those that it is time for."""
        self._history.append(self._under_way._replace(at=elapsed))
        self._pages += self._under_way.page_count
        self._under_way = Deleted([], [])
        read = 0
        while self._is_due(elapsed) or self._pages > MOST_PAGES:
            done = self._history.popleft()
            self._pages -= done.page_count
            read += sum(self.growth.remove(place, now) for place in done.entries)
            read += sum(self.held.touch(page, now, changes=False) for page in done.pages)
        return read

    def _is_due(self, elapsed: float) -> bool:
        """Whether it is time for the oldest transaction."""
        history = self._history
        return len(history) > self.history and elapsed - history[0].at >= self.seconds
