"""Settings of a source or replica that a forecast can change, and the statement that sets each on a
server of each version.

Statements as 5.7.29, 9.7.4 and MariaDB 10.11 take them; those of 5.7 are valid throughout 8.0,
whose later releases call them old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf

from applier.forecast.prices.conditions import MIB
from applier.forecast.prices.scenario import Scenario
from applier.replica.scheduling import LOGICAL_CLOCK
from lookup.versions import HASH_SCAN, INDEX_SCAN

SOURCE, REPLICA = "source", "replica"
MORE_WORKERS = (2, 4, 8, 16)
LARGER_POOLS = (2, 4, 8, 16)
"""Times the buffer pool that there is."""
TABLE_CACHE = "table cache"
LARGER_CACHES = (2, 4, 8, 16)
"""Times the cache of open tables that there is."""
FIXED_POOL = frozenset({"5.6"})
"""Servers that take the size of the buffer pool at their start only."""

_OLD = "STOP SLAVE SQL_THREAD; SET GLOBAL {}; START SLAVE SQL_THREAD;"
_NEW = (
    "STOP REPLICA SQL_THREAD; SET GLOBAL replica_parallel_workers = {}; START REPLICA SQL_THREAD;"
)
_CLOCK = _OLD.format("slave_parallel_type = 'LOGICAL_CLOCK', GLOBAL slave_parallel_workers = {}")
WORKERS = {
    "5.6": _OLD.format("slave_parallel_workers = {}"),
    "5.7": _CLOCK,
    "8.0": _CLOCK,
    "8.4": _NEW,
    "9.7": _NEW,
    "mariadb": _OLD.format("slave_parallel_threads = {}"),
}
"""Row of `lookup.versions.RULES` -> how the number of workers is set."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Another value of a setting. Of several with the same `name` one is enough; the earlier is the
    more modest."""

    name: str
    what: str
    where: str
    sql: str
    change: Callable[[Scenario], Scenario]


def settings(now: Scenario) -> Iterator[Setting]:
    """The settings that a replica such as `now` does not have yet."""
    for workers in MORE_WORKERS:
        if workers > now.workers:
            what = f"Let {workers} workers apply what the log lets run at once."
            sql = WORKERS[now.rules.name].format(workers)
            clock = LOGICAL_CLOCK if LOGICAL_CLOCK in sql else now.parallel_type
            yield Setting("workers", what, REPLICA, sql, _workers(workers, clock))
    if now.workers > 1 and now.preserve_order and now.parallel_type == LOGICAL_CLOCK:
        what = "Let one worker apply all: several in a table without a key roll each other back."
        sql = WORKERS[now.rules.name].format(0 if now.rules.name in ("5.7", "8.0") else 1)
        yield Setting("workers", what, REPLICA, sql, lambda one: replace(one, workers=1))
    if now.syncs:
        what = (
            "Sync no commit by itself. A crash of the machine may undo the last second of commits."
        )
        sql = "SET GLOBAL innodb_flush_log_at_trx_commit = 2, GLOBAL sync_binlog = 0;"
        yield Setting("durability", what, REPLICA, sql, lambda one: replace(one, syncs=0.0))
    if now.pool_bytes != inf and now.rules.name not in FIXED_POOL:
        for times in LARGER_POOLS:
            size = int(now.pool_bytes) * times
            what = (
                f"Let {size / MIB:,.0f} MiB of the tables stay in memory, if the machine has that."
            )
            sql = f"SET GLOBAL innodb_buffer_pool_size = {size};"
            yield Setting("buffer pool", what, REPLICA, sql, _pool(size))
    if now.table_cache.tables != inf:
        for times in LARGER_CACHES:
            tables = int(now.table_cache.tables) * times
            what = (
                f"Keep {tables:,} tables open: each worker has its part of them"
                " (table_open_cache_instances)."
                if now.table_cache.instances > 1
                else f"Keep {tables:,} tables open."
            )
            sql = f"SET GLOBAL table_open_cache = {tables};"
            yield Setting(TABLE_CACHE, what, REPLICA, sql, _tables(tables))
    search = frozenset({INDEX_SCAN, HASH_SCAN})
    if now.rules.row_search_selectable and (now.row_search or now.rules.row_search) != search:
        sql = "SET GLOBAL slave_rows_search_algorithms = 'INDEX_SCAN,HASH_SCAN';"
        what = "Let an event find all of its rows in one scan."
        yield Setting("row search", what, REPLICA, sql, lambda one: replace(one, row_search=search))
    if not now.minimal_image:
        what = "Log only a row's key and what changed. Sessions that are open go on as they are."
        yield Setting(
            "row image",
            what,
            SOURCE,
            "SET GLOBAL binlog_row_image = 'MINIMAL';",
            lambda one: replace(one, minimal_image=True),
        )


def _workers(number: int, parallel_type: str) -> Callable[[Scenario], Scenario]:
    return lambda scenario: replace(scenario, workers=number, parallel_type=parallel_type)


def _tables(number: int) -> Callable[[Scenario], Scenario]:
    return lambda scenario: scenario.keeping_open(float(number))


def _pool(size: int) -> Callable[[Scenario], Scenario]:
    return lambda scenario: replace(scenario, pool_bytes=float(size))
