"""Page reads of a buffer pool: against what a real 9.7.4 read, and by hand."""

from __future__ import annotations

import random

import pytest

from applier.forecast.inventory.key_places import Entry, KeyOrder
from applier.forecast.inventory.pool import NO_READS, NOTHING, BufferPool, IndexLeaves, PageReads, Touches, capacity

MIB = 1 << 20
REAL_PAGES, REAL_LEAVES, REAL_ROWS = 30_774, 2_626, 2_000_000
"""Of a table with 2 million rows of some 230 bytes, and its key on a number, on 9.7.4."""


def test_a_pool_keeps_some_pages_free() -> None:
    assert capacity(64 * MIB) == 3072  # at work it held 3,050 to 3,071
    assert capacity(8 * MIB) == 256


def test_updates_by_primary_key_anywhere_in_a_large_table() -> None:
    chance, pool = random.Random(5), BufferPool.of(64 * MIB)
    per_page = REAL_ROWS / REAL_PAGES
    one = Touches(REAL_PAGES, 0, 1, 1, 0, 0, per_page, True)
    read = sum(pool.read(0, one, [chance.randrange(1, REAL_ROWS)]).pages for _ in range(8000))
    assert read == pytest.approx(7_700, rel=0.05)  # 7,611 to 7,753 in three runs


def test_updates_by_a_secondary_key_with_fifty_rows_a_value() -> None:
    chance, pool = random.Random(5), BufferPool.of(64 * MIB)
    one = Touches(REAL_PAGES, REAL_LEAVES, 25.5, 1, lookups=1)
    read = sum(pool.read(0, one, [chance.randrange(40_000)]).pages for _ in range(600))
    assert read == pytest.approx(15_000, rel=0.1)  # 14,935 and 15,094


def test_scans_of_what_the_pool_does_not_hold_read_all_of_it_each_time() -> None:
    pool = BufferPool.of(64 * MIB)
    scan = Touches(REAL_PAGES, 0, 0, 0, 0, 0.5)
    reads = [pool.read(0, scan, None) for _ in range(12)]
    assert sum(one.pages for one in reads) == pytest.approx(184_644)  # 169,112
    assert sum(one.waits for one in reads) == pytest.approx(10_861, rel=0.01)  # 9,983
    assert pool.read(0, Touches(3000, 0, 0, 0, 0, 1.0), None) == NO_READS


def test_rows_that_change_again_are_there() -> None:
    pool = BufferPool.of(64 * MIB)
    one = Touches(1e6, 0, 1, 1, 0, 0, 10, True)
    assert [pool.read(0, one, [key]).pages for key in (5, 9, 15)] == [1, 0, 1]
    assert pool.read(1, one, [5]).pages == 1  # of another table
    for key in range(0, 31_000, 10):
        pool.read(2, one, [key])
    assert pool.read(0, one, [5]).pages == 1  # driven out by 3,100 pages of the third


def test_neighbours_share_a_page_and_hot_values_their_rows() -> None:
    pool = BufferPool.of(64 * MIB)
    assert pool.read(0, Touches(1e6, 0, 100, 100, 0, 0, 50, True), list(range(100))).pages == 2
    value = Touches(1e6, 1e4, 20, 1, lookups=1)
    first = pool.read(1, value, [7]).pages
    assert first == pytest.approx(21, abs=1)
    assert pool.read(1, value, [7]) == NO_READS
    assert pool.read(1, value, [8]).pages == pytest.approx(21, abs=1)


def test_of_many_touches_a_part_stands_for_all() -> None:
    pool = BufferPool.of(64 * MIB)
    many = Touches(1e7, 0, 200_000, 200_000, 0)
    assert pool.read(0, many, None).pages == pytest.approx(2e5, rel=0.02)


def test_without_a_pool_nothing_is_read() -> None:
    assert BufferPool.of(float("inf")).read(0, Touches(1e6, 0, 5, 5, 0), None) == NO_READS
    assert BufferPool.of(64 * MIB).read(0, NOTHING, None) == NO_READS


def index(pages: float, *, is_buffered: bool = False) -> IndexLeaves:
    return IndexLeaves(pages, 500, is_buffered)


def test_rows_behind_all_others_make_pages_that_nobody_reads() -> None:
    """300,000 rows of an AUTO_INCREMENT key, 80 a page; the first goes into a page that is there."""
    pool = BufferPool.of(64 * MIB)
    write = Touches(1e4, 0, 1, 1, per_page=80, ordered=True, writes=True)
    assert sum(pool.read(0, write, [key]).pages for key in range(1_000_000, 1_300_000, 7)) == 1
    update = write._replace(writes=False)
    assert pool.read(0, update, [1_299_000]).pages == 0  # just written
    assert pool.read(0, update, [1_000_100]).pages == 1  # driven out since
    assert pool.read(0, write, [500_000]).pages == 1  # in the middle


def test_groups_of_keys_grow_each_at_its_end() -> None:
    pool, order = BufferPool.of(64 * MIB), KeyOrder(1, 1.0)
    write = Touches(1e4, 0, 1, 1, per_page=80, ordered=True, writes=True)
    read = [pool.read(0, write, [order.number((group, key))]).pages for key in range(1000, 3000) for group in range(10)]
    assert sum(read) == 10


def test_leaves_of_entries_by_their_places() -> None:
    pool = BufferPool.of(64 * MIB)
    one = Touches(1e4, 0, 0, 0, indexes=(index(100), index(1000)))
    assert pool.read(0, one, None, [Entry(0, 0.501), Entry(0, 0.509), Entry(1, 0.501), Entry(1, 0.509)]).pages == 3
    assert pool.read(0, one, None, [Entry(0, 0.505)]).pages == 0
    assert pool.read(1, one, None, [Entry(0, 0.505)]).pages == 1
    assert pool.read(2, one, None, [Entry(1, at / 1000) for at in range(500)], 0.5).pages == 1000  # half of the rows


def test_an_index_that_follows_the_table_grows_with_it() -> None:
    pool = BufferPool.of(64 * MIB)
    write = Touches(1e4, 0, 0, 0, writes=True, indexes=(index(1000),))
    assert sum(pool.read(0, write, None, [Entry(0, float(key), follows=True)]).pages for key in range(10_000)) == 1


def test_nobody_waits_for_what_the_change_buffer_merges() -> None:
    pool = BufferPool.of(64 * MIB)
    one = Touches(1e4, 0, 0, 0, indexes=(index(1000, is_buffered=True),))
    assert pool.read(0, one, None, [Entry(0, 0.1), Entry(0, 0.9)]) == PageReads(2, 0)
    assert pool.read(0, one, None, [Entry(0, 0.5, is_lookup=True)]) == PageReads(1, 1)


def test_rollback_segments_take_room_in_turn() -> None:
    """512 pages of 256 segments, which a start has read: again and again in a pool of 192 pages, and less room for tables in any."""
    large, small = BufferPool.of(64 * MIB, 256), BufferPool.of(6 * MIB, 256)
    assert sum(large.commit() for _ in range(10_000)) == 0
    assert sum(small.commit() for _ in range(10_000)) == 20_000 - 192
    update = Touches(1e6, 0, 1, 1, per_page=1, ordered=True)
    for key in range(2560):
        large.read(0, update, [key])
        large.commit()
    assert large.read(0, update, [0]).pages == 0
    large.read(0, update, [2560])
    assert large.read(0, update, [1]).pages == 1
    assert BufferPool.of(float("inf"), 256).commit() == 0
