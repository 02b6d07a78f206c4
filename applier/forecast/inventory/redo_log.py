"""Changed pages that must be written before the redo log is full.

The redo log is a ring. What a page was changed by may not be overwritten until the page is written
itself, so the oldest change of all pages in the pool must not be further back than a part of the
ring (`log_calc_max_ages`, log0log.cc of 5.7). The page cleaner writes ahead of that, the faster the
further back it is (`af_get_pct_for_lsn`, buf0flu.cc), but by its defaults no more than some 1,000
pages a second (innodb_io_capacity_max). Beyond, whoever wants to change something waits while pages
are written (log_free_check). 9.7 may write ten times as many, and has workers wait only where they
fill the ring within a second or two.

docs/design/forecast-accuracy.md, "A redo log that is full", has what a 5.7.29 wrote and waited for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from applier.forecast.inventory.pool_rules import PAGE

SAFETY = 9 / 10
KEPT_FREE_PAGES = 4 * 10 + 8
"""LOG_CHECKPOINT_FREE_PER_THREAD for ten threads, and LOG_CHECKPOINT_EXTRA_FREE."""
AHEAD_PER_SECOND = 1_000.0
"""Of the page cleaner at most: 750 to 1,080 in twelve runs of a 5.7.29 with its defaults."""
LOW_WATER = 1 / 10
"""innodb_adaptive_flushing_lwm: below, it writes none ahead."""
STEEPNESS = 1.5
WAITED_FOR = 15 / 16
"""LOG_POOL_PREFLUSH_RATIO_SYNC: from this part of the margin on."""
REDO_BYTES: Mapping[str, float] = {
    "insert": 150.0,
    "update": 150.0,
    "delete": 150.0,
    "index entry": 60.0,
    "leaf split": 12_000.0,
}
"""Unit -> bytes of redo, besides those of transactions and what is in rows' images.

A 5.7.29 wrote 885 bytes for a transaction of oltp_update_non_index, 660 of oltp_insert, 4,440 of
oltp_write_only with 0.22 splits, 5,160 of oltp_update_index with 0.34 and 8,040 with 0.56 (log
sequence numbers): a split and its merge copy the entries of a page."""
MOST_REDO = 10.0
"""Bytes for one of the log: 8.3 in oltp_update_index, whose leaves split again and again."""
TRANSACTION_BYTES = 200.0
"""Begin, undo log, commit, the row of mysql.gtid_executed."""


def redo_bytes(amounts: Mapping[str, float]) -> float:
    """Of rows, entries and splits; `amounts` by the names of units."""
    return sum(amounts[unit] * one for unit, one in REDO_BYTES.items())


def oldest_change_bytes(capacity: float) -> float:
    """How far back the oldest change of a page may be in a redo log of this size, in bytes of redo;
    beyond, pages are written first."""
    margin = (capacity * SAFETY - KEPT_FREE_PAGES * PAGE) * SAFETY
    return max(margin * WAITED_FOR, PAGE)


@dataclass(slots=True)
class RedoLog:
    """Which pages are changed and not written, the one whose first change is oldest first."""

    capacity: float
    position: float = 0.0
    """Bytes of redo so far."""
    written_ahead: int = 0
    """Pages so far that nobody waited for."""
    waited_for: int = 0
    """Pages so far that workers waited for."""
    _ahead: float = 0.0
    """Of a page that the cleaner is at."""
    _looked: float = 0.0
    _changed: OrderedDict[int, float] = field(default_factory=OrderedDict)
    """Page -> the position of its first change."""
    _most: float = field(init=False)
    """How far back that may be."""

    def __post_init__(self) -> None:
        self._most = oldest_change_bytes(self.capacity)

    def change(self, page: int) -> None:
        """A page is changed."""
        self._changed.setdefault(page, self.position)

    def forget(self, page: int) -> None:
        """A page was written for another reason."""
        self._changed.pop(page, None)

    def write(self, redo_bytes: float, now: float) -> int:
        """Some redo is written until now, in seconds; for how many pages a worker waits."""
        self.position += redo_bytes
        self._write_ahead(now - self._looked)
        self._looked, waits = now, 0
        while self._age > self._most:
            self._changed.popitem(last=False)
            waits += 1
        self.waited_for += waits
        return waits

    @property
    def _age(self) -> float:
        """How far back the oldest change is."""
        return self.position - next(iter(self._changed.values()), self.position)

    def _write_ahead(self, seconds: float) -> None:
        share = min(self._age / self._most, 1.0)
        if share > LOW_WATER:
            self._ahead += seconds * AHEAD_PER_SECOND * share**STEEPNESS
        while self._ahead >= 1 and self._changed:
            self._ahead -= 1
            self._changed.popitem(last=False)
            self.written_ahead += 1
        self._ahead %= 1
