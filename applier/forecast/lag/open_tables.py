"""Which tables an applier's workers find open, and which they have to open again.

A server keeps open tables in a cache of several instances, and each thread uses one of them
(`Table_cache_manager::get_cache`, sql/table_cache.h: thread_id modulo the instances). So a worker
has no more than a part of table_open_cache, of which the table that was used longest ago goes first
(`Table_cache::free_unused_tables_if_necessary`). With 300 tables at random, a 9.7.4 with its
default of 4,000 in 16 instances opened 5,016 of 24,000 again, a 5.7.29 with 2,000 in 16 opened
14,000.

A cache is taken to be full of other tables of the log when the log begins: the first use of a table
costs nothing until as many are open as it holds.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

CLOSED, NONE = -2, -1
OLDEST, NEWEST, COUNT, CACHE_NUMBERS = range(4)
"""Places in `OpenTables.ends`, of each cache."""


class OpenTables(NamedTuple):
    """The caches of a scenario, each a list from the table that was used longest ago to the last
    one. `older` and `newer`: the neighbours of each table in each cache, tables one after the
    other; CLOSED for a table that is not in it, NONE at the ends."""

    older: array[int]
    newer: array[int]
    ends: array[int]


def no_tables(caches: int) -> OpenTables:
    """So many caches, for no table yet."""
    return OpenTables(array("q"), array("q"), array("q", [NONE, NONE, 0] * caches))


def know_tables(opened: OpenTables, count: int) -> None:
    """Has room for so many tables."""
    caches = len(opened.ends) // CACHE_NUMBERS
    more = count * caches - len(opened.older)
    for column in (opened.older, opened.newer):
        column.extend([CLOSED] * more)


def has_to_open(opened: OpenTables, cache: int, table: int, capacity: float) -> bool:
    """A worker uses a table, the next one of its cache. Whether another has to be closed for it."""
    older, newer, ends = opened.older, opened.newer, opened.ends
    caches, end = len(ends) // CACHE_NUMBERS, cache * CACHE_NUMBERS
    here = table * caches + cache
    closes = older[here] == CLOSED and ends[end + COUNT] >= capacity
    if older[here] != CLOSED:
        _take_out(opened, cache, table)
    elif closes:
        _take_out(opened, cache, ends[end + OLDEST])
    last = ends[end + NEWEST]
    older[here], newer[here] = last, NONE
    if last == NONE:
        ends[end + OLDEST] = table
    else:
        newer[last * caches + cache] = table
    ends[end + NEWEST] = table
    ends[end + COUNT] += 1
    return closes


def _take_out(opened: OpenTables, cache: int, table: int) -> None:
    older, newer, ends = opened.older, opened.newer, opened.ends
    caches, end = len(ends) // CACHE_NUMBERS, cache * CACHE_NUMBERS
    here = table * caches + cache
    before, behind = older[here], newer[here]
    if before == NONE:
        ends[end + OLDEST] = behind
    else:
        newer[before * caches + cache] = behind
    if behind == NONE:
        ends[end + NEWEST] = before
    else:
        older[behind * caches + cache] = before
    older[here] = newer[here] = CLOSED
    ends[end + COUNT] -= 1


STEPS = (_take_out, has_to_open)
"""What a compiler has to know."""
