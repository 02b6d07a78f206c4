"""How a server's buffer pool and its pages work, as data: a row for each version.

The sources are those of the servers: buf0flu.cc, buf0lru.cc, trx0purge.cc, trx0rseg.cc.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

PAGE = 16 * 1024
FEWEST_HELD = 256
"""BUF_LRU_MIN_LEN: of a shorter list the page cleaner frees nothing."""
LARGE_POOL, INSTANCES = 1 << 30, 8
DOUBLEWRITE_PAGES = 128
"""Written together (buf_dblwr_t): a MariaDB 10.11.18 wrote 124 at a time, 15,764 pages in 127."""
USE_BESIDE_WRITE = 0.5
"""What workers take to use a page, beside what it takes to write one, where nobody has seen them
use any: 10 to 28 µs in sysbench's loads and the cells of `pool_reads`, and 31 to 44."""


@dataclass(frozen=True, slots=True)
class Splits:
    """How often updates split a full leaf of an index: a share `first_visits` of its first visits,
    half of that after `weary_visits`, and half where the next visit comes after `purge_seconds`,
    since purge has not merged it by then. An entry of a new or deleted row makes a leaf weary as so
    many `other_visits`. `usual_seconds` lie between two transactions where nobody says more.
    `waits_for_purge`: the share of a split's price, which cells of one index show, that is waiting
    until purge is done in the same index."""

    first_visits: float
    weary_visits: float
    purge_seconds: float
    usual_seconds: float
    other_visits: float = 0.0
    waits_for_purge: float = 0.0

    def beside_others(self, concentration: float) -> float:
        """What a split costs where updates change several full indexes (`index_fill.concentration`)
        for what one costs in the only one."""
        return 1 - self.waits_for_purge * (1 - concentration)

    def in_time(self, crowding: float, seconds: float) -> float:
        """Which part of the splits is left where the next transaction comes so many seconds later
        (`FullIndex.crowding`)."""
        return part_in_time(crowding * self.purge_seconds, seconds)


def part_in_time(late: float, seconds: float) -> float:
    """What is left of splits where purge is so late and the next visit comes after some seconds."""
    return 1 / (1 + late / seconds)


@dataclass(frozen=True, slots=True)
class PageCleaner:
    """Frees pages of a pool until `free` of them are, when fewer than `low` are free or, if that is
    sooner, after `seconds`.

    Changed pages are written and freed, or, where a round writes `most_written` at most, written
    and left to the next round (MariaDB's buf_flush_LRU_list_batch), as is a share `in_use` of the
    others."""

    free: float
    low: float = 1.0
    seconds: float = math.inf
    most_written: int = 0
    in_use: float = 0.0

    def waited_for(
        self, written: int, held: int, use_beside_write: float = USE_BESIDE_WRITE
    ) -> float:
        """Pages that workers wait for while a round writes so many of those that are held: nobody
        changes a page until it is written, so that they come to a stop at the first that is under
        way, sooner the fewer others there are, and the quicker they use them. Nobody waits where
        pages are freed at once."""
        if not self.most_written:
            return 0.0
        uses_until_stopped = held / DOUBLEWRITE_PAGES
        at_work = uses_until_stopped * use_beside_write / DOUBLEWRITE_PAGES
        return written * max(1 - at_work, 0.0)


@dataclass(frozen=True, slots=True)
class PoolRules:
    """Of one version.

    `scan_depth`: innodb_lru_scan_depth, pages that the page cleaner keeps free in each instance. It
    is woken when a share `woken_below` of them is free, and goes round every `round_seconds`.
    `left`: pages that a round leaves at least; fewer than FEWEST_HELD, as that counts those that
    are still being written. `left_share`: of the pool, where it is fewer. `most_written`: as in
    PageCleaner, and `in_use`. `rollback_segments`: those that transactions take turns in.
    `own_pages`: in the pool of a new server that has just started, besides those of rollback
    segments; `used_by_all`: of these, by every transaction (the transaction system's, and those of
    the files of undo logs). `history`, `history_seconds`: how far purge is behind, in transactions
    and in time. `cut_after`: transactions of which the history is cut off at once. `cut_seconds`:
    it is cut off that often, and all headers are read. `gtid_rows`: that the replica writes for a
    transaction's GTID (mysql.gtid_executed, where it has no binary log of its own).
    `change_buffer`: whether changes of secondary indexes wait there by default.
    `splits`: of full leaves. `steps_share_caches`: a step in a secondary index costs more the
    larger all tables of a log are, not the larger its own table is. `waits_for_redo`: workers wait
    for pages that must be written before the redo log is full (`redo_log`).
    """

    scan_depth: int = 1024
    woken_below: float = 0.0
    round_seconds: float = 1.0
    left: int = 32
    left_share: float = 1.0
    most_written: int = 0
    in_use: float = 0.0
    instances: int = INSTANCES
    rollback_segments: int = 0
    own_pages: int = 0
    used_by_all: int = 9
    history: int = 90
    history_seconds: float = 0.0
    cut_after: int = 420
    cut_seconds: float = math.inf
    gtid_rows: int = 0
    change_buffer: bool = False
    steps_share_caches: bool = True
    waits_for_redo: bool = False
    splits: Splits = Splits(0.78, 64.0, 0.0088, 0.0002, 0.3)

    @property
    def purges_by_time(self) -> bool:
        """Whether it matters how fast the replica is for what purge reads."""
        return self.history_seconds > 0.0 or self.cut_seconds < math.inf

    def cleaner(self, pool_bytes: float) -> PageCleaner:
        """What frees pages of a pool of so many bytes."""
        pages = pool_bytes / PAGE
        instances = self.instances if pool_bytes >= LARGE_POOL else 1
        left = int(min(self.left, pages * self.left_share - 1))
        most, free = max(pages - left * instances, 1.0), float(self.scan_depth * instances)
        low = max(min(free * self.woken_below, pages - FEWEST_HELD * instances), 1.0)
        free = min(free, most)
        return PageCleaner(free, low, self.round_seconds, self.most_written, self.in_use)


_OLD = PoolRules(
    own_pages=60,
    history=10,
    cut_after=160,
    change_buffer=True,
    waits_for_redo=True,
    splits=Splits(0.72, 133.0, 0.0016, 0.0001, 1.0, waits_for_purge=0.35),
)
_MYSQL = {
    "5.6": replace(_OLD, rollback_segments=128),
    "5.7": replace(_OLD, rollback_segments=96, gtid_rows=1),
    "8.0": PoolRules(rollback_segments=256, own_pages=450, change_buffer=True),
    "8.4": PoolRules(rollback_segments=256, own_pages=450),
    "9.7": PoolRules(rollback_segments=256, own_pages=450),
}
_MARIADB = PoolRules(
    scan_depth=1536,
    woken_below=1 / 2,
    round_seconds=math.inf,
    left=FEWEST_HELD,
    left_share=1 / 20,
    most_written=2000,
    in_use=0.4,
    instances=1,
    rollback_segments=128,
    own_pages=60,
    used_by_all=3,
    history=0,
    history_seconds=0.5,
    cut_seconds=0.1,
    steps_share_caches=False,
    splits=Splits(1.0, 2.0, 0.0, 0.0001),
)
POOL_RULES = _MYSQL | {"mariadb": _MARIADB}
"""Version -> its rules.

- innodb_rollback_segments is 128, of which 5.7 takes 32 for temporary tables; 8.0 and later have
  as many in each of two undo tablespaces.
- A 9.7.4 that has just started holds 967 pages, a 5.7.29 225, a MariaDB 10.11.18 277
  (Innodb_buffer_pool_pages_data).
- Purge of a 9.7.4 was 70 to 150 transactions behind (trx_rw_commits without
  purge_upd_exist_or_extern_records). The length of its history is another thing: it grew to 440 to
  470 and fell to 30, again and again, as it is cut off once in 128 rounds of purge
  (innodb_purge_rseg_truncate_frequency), of 3.2 transactions each; a 5.7.29 had 1.3 to 1.9 in each,
  and a history of 110 to 140. That of a MariaDB 10.11.18 was 30 to 1,500 where it applied 850
  transactions a second, 1,000 to 2,700 with 2,800 and 2,000 to 5,000 with 7,700, in rounds of 75 to
  100.
- With 14 MiB, which are 896 pages, a round freed 857 and 870 of them on a 9.7.4 (two loads; 66,860
  in 78 rounds and 91,366 in 105, buffer_LRU_batch_% of innodb_metrics), 775 and 835 on a 5.7.29.
- A MariaDB begins a round above FEWEST_HELD pages (need_LRU_eviction) and ends it at a twentieth of
  the pool, or at innodb_io_capacity_max (2,000) pages written. A 10.11.18 held 120 to 290 of 886;
  with 57 MiB it freed some 750 in each of 14 rounds and wrote 1,300 to 2,000, for 60 ms.
- Of 314 pages that a round with 14 MiB looks at, 136 are neither written nor freed
  (buffer_LRU_batch_% of innodb_metrics): 2 of 5 that are not changed, besides those on their way.
- Each call of its purge reads the headers of all rollback segments (trx_purge_truncate_history): 8
  a second where a read takes 0.5 ms more, 10 to 28 else.
- A step in a secondary index takes a MariaDB 10.11.18 0.8 µs among 10 MB of rows, 1.1 among 24, 1.7
  among 92 and 2.4 among 230 (75 and 200 rows a value), and 0.9 to 1.6 in a table of 24 MB whose
  transactions change three others as well. A 9.7.4 has 2.7 there, as if it were one of 96 MB.
- Splits of sysbench's 30,000 updates of 84 to 1,336 full leaves (oltp_update_index), and of its
  oltp_write_only, come within 12 % of what 5.7.29 and 9.7.4 counted in all of some 60 runs of each
  on several days, from 58 to 930 µs between two transactions, by 1, 2 and 4 workers, durable and
  not: 9,021 to 13,246 and 5,119 to 9,524 for four indexes of 84 leaves. Purge of a 5.7.29 is hardly
  behind, that of a 9.7.4 nearly as long as its thread may sleep (10 ms, SRV_PURGE_MAX_TIMEOUT).
  A split took a 5.7.29 140 to 180 µs where all were in one index, 107 to 123 in four (one worker,
  with room in the redo log), 98 to 110 in eight: with fewer it waits for purge, which holds the
  index while it merges.
  Leaves of a MariaDB 10.11.18 split once or twice each, and then no more: 167 of one index, 416 to
  1,515 of four.
- innodb_change_buffering is "all" by default, "none" from 8.4 on and in MariaDB from 10.5.15 on.
"""
UNKNOWN = PoolRules()
"""A server of which nothing is known but how MySQL's pools work."""
