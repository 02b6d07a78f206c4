"""How a server's buffer pool works, as data: a row for each version.

The sources are those of the servers: buf0flu.cc, buf0lru.cc, trx0purge.cc, trx0rseg.cc.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

PAGE = 16 * 1024
FEWEST_HELD = 256
"""BUF_LRU_MIN_LEN: pages that the page cleaner leaves in an instance."""
LARGE_POOL, INSTANCES = 1 << 30, 8


@dataclass(frozen=True, slots=True)
class PageCleaner:
    """Frees pages of a pool until `free` of them are, when fewer than `low` are free or, if that is
    sooner, after `seconds`."""

    free: float
    low: float = 1.0
    seconds: float = math.inf


@dataclass(frozen=True, slots=True)
class PoolRules:
    """Of one version.

    `scan_depth`: innodb_lru_scan_depth, pages that the page cleaner keeps free in each instance. It
    is woken when a share `woken_below` of them is free, and goes round every `round_seconds`.
    `held_share`: it leaves FEWEST_HELD pages, or this share of a smaller pool. `rollback_segments`:
    those that transactions take turns in. `own_pages`: in the pool of a new server that has just
    started, besides those of rollback segments. `history`: transactions that purge is behind.
    `change_buffer`: whether changes of secondary indexes wait there by default.
    """

    scan_depth: int = 1024
    woken_below: float = 0.0
    round_seconds: float = 1.0
    held_share: float = 1.0
    instances: int = INSTANCES
    rollback_segments: int = 0
    own_pages: int = 0
    history: int = 440
    change_buffer: bool = False

    def cleaner(self, pool_bytes: float) -> PageCleaner:
        """What frees pages of a pool of so many bytes."""
        pages = pool_bytes / PAGE
        instances = self.instances if pool_bytes >= LARGE_POOL else 1
        held = min(float(FEWEST_HELD * instances), pages * self.held_share)
        most, free = max(pages - held, 1.0), float(self.scan_depth * instances)
        low = max(min(free * self.woken_below, most), 1.0)
        return PageCleaner(min(free, most), low, self.round_seconds)


_MYSQL = {
    "5.6": PoolRules(rollback_segments=128, own_pages=60, change_buffer=True),
    "5.7": PoolRules(rollback_segments=96, own_pages=60, change_buffer=True),
    "8.0": PoolRules(rollback_segments=256, own_pages=450, change_buffer=True),
    "8.4": PoolRules(rollback_segments=256, own_pages=450),
    "9.7": PoolRules(rollback_segments=256, own_pages=450),
}
_MARIADB = PoolRules(
    scan_depth=1536,
    woken_below=1 / 2,
    round_seconds=math.inf,
    held_share=1 / 20,
    instances=1,
    rollback_segments=128,
    own_pages=60,
    history=1000,
)
POOL_RULES = _MYSQL | {"mariadb": _MARIADB}
"""Version -> its rules.

- innodb_rollback_segments is 128, of which 5.7 takes 32 for temporary tables; 8.0 and later have
  as many in each of two undo tablespaces.
- A 9.7.4 that has just started holds 967 pages, a 5.7.29 225, a MariaDB 10.11.18 277
  (Innodb_buffer_pool_pages_data).
- The history of a 9.7.4 that applied updates grew to 440 to 470 and fell to 30, again and again, as
  it is cut off once in 128 rounds of purge (docs/design/accuracy.md); that of a MariaDB 10.11.18
  was 10 to 2,200, 200 to 500 in a small pool.
- A MariaDB 10.11.18 with 57 MiB held 2,076 to 2,772 of 3,608 pages, one with 14 MiB 120 to 240 of
  886 (need_LRU_eviction, buf_flush_LRU_list_batch).
- innodb_change_buffering is "all" by default, "none" from 8.4 on and in MariaDB from 10.5.15 on.
"""
UNKNOWN = PoolRules()
"""A server of which nothing is known but how MySQL's pools work."""
