"""Page reads of a buffer pool: against what a real 9.7.4 read, and by hand."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from applier.forecast.inventory.key_places import Entry, KeyOrder
from applier.forecast.inventory.leaf_growth import EntryPlace, LeafGrowth
from applier.forecast.inventory.midpoint_lru import MidpointLru
from applier.forecast.inventory.pool import (
    NO_READS,
    NOTHING,
    BufferPool,
    IndexLeaves,
    PageReads,
    Touches,
)
from applier.forecast.inventory.pool_rules import POOL_RULES, PageCleaner, PoolRules
from applier.forecast.inventory.purge import Purge
from applier.forecast.inventory.undo_pages import AT_START, UndoPages
from applier.forecast.inventory.upper_pages import UpperPages

MIB = 1 << 20
HISTORY, CUT_AFTER = PoolRules().history, PoolRules().cut_after
REAL_PAGES, REAL_LEAVES, REAL_ROWS = 30_774, 2_626, 2_000_000
"""Of a table with 2 million rows of some 230 bytes, and its key on a number, on 9.7.4."""


def test_a_pool_keeps_some_pages_free() -> None:
    """With 64 MiB, 9.7.4 held 3,050 to 3,071 of 4,096 pages once a second; with 14 MiB it lost 870
    of 896 in a round."""
    of = POOL_RULES["9.7"].cleaner
    assert of(64 * MIB) == PageCleaner(1024, 1, 1.0)
    assert of(14 * MIB) == PageCleaner(864, 1, 1.0)
    assert of(2048 * MIB) == PageCleaner(8192, 1, 1.0)


def test_mariadb_keeps_more_pages_free() -> None:
    """What a 10.11.18 held stands beside POOL_RULES."""
    of = POOL_RULES["mariadb"].cleaner
    assert of(57 * MIB) == PageCleaner(1536, 768, most_written=2000, in_use=0.4)
    assert of(14 * MIB) == PageCleaner(853, 640, most_written=2000, in_use=0.4)
    assert of(2048 * MIB) == PageCleaner(1536, 768, most_written=2000, in_use=0.4)


def test_workers_wait_for_pages_that_are_written_where_there_are_few_others() -> None:
    of = POOL_RULES["mariadb"].cleaner(57 * MIB)
    few, more, many = (of.waited_for(1000, held) for held in (250, 7000, 500_000))
    assert 980 < few < 1000
    assert 700 < more < 800
    assert many == 0
    assert of.waited_for(1000, 7000, 2.0) == pytest.approx(1000 - 4 * (1000 - more))
    assert POOL_RULES["9.7"].cleaner(57 * MIB).waited_for(1000, 250) == 0


def test_workers_that_are_slow_at_using_pages_wait_for_fewer_writes() -> None:
    """Each update of one row takes as long as so many writes of a page."""
    found = []
    for writes in (0.5, 1000.0):
        pool = BufferPool.of(14 * MIB, POOL_RULES["mariadb"], write_seconds=1e-4)
        pool.now = 1e9
        waited = 0.0
        for key in range(3_000):
            reads = (
                pool.read(0, Touches(pages=30_000, rows=1, values=1, per_page=1), [key * 997]),
                pool.commit(1, 0),
            )
            waited += sum(one.writes for one in reads)
            pool.now += writes * 1e-4 + sum(one.writes for one in reads) * 1e-4
        assert pool.held.use_beside_write == pytest.approx(writes, rel=0.01)
        found.append(waited)
    assert found[0] > 10_000 > 500 > found[1]


def applied(pool: BufferPool, one: Touches, keys: Iterable[int], seconds: float) -> float:
    """The pages of updates of one row each that take so many seconds each."""
    read = 0.0
    for key in keys:
        read += pool.read(0, one, [key]).pages + pool.commit(1, 0).pages
        pool.now += seconds
    return read


def test_updates_by_primary_key_anywhere_in_a_large_table() -> None:
    chance, pool = random.Random(5), BufferPool.of(64 * MIB, POOL_RULES["9.7"])
    one = Touches(REAL_PAGES, 0, 1, 1, 0, 0, REAL_ROWS / REAL_PAGES, True)
    keys = [chance.randrange(1, REAL_ROWS) for _ in range(8000)]
    # 7,611 to 7,753 in three runs
    assert applied(pool, one, keys, 0.0002) == pytest.approx(7_700, rel=0.05)


def test_updates_by_a_secondary_key_with_fifty_rows_a_value() -> None:
    chance, pool = random.Random(5), BufferPool.of(64 * MIB, POOL_RULES["9.7"])
    one = Touches(REAL_PAGES, REAL_LEAVES, 25.5, 1, lookups=1)
    keys = [chance.randrange(40_000) for _ in range(600)]
    assert applied(pool, one, keys, 0.0006) == pytest.approx(15_000, rel=0.1)  # 14,935 and 15,094


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
    for key in range(0, 41_000, 10):
        pool.read(2, one, [key])
    # driven out by 4,100 pages of the third; and three of the file, the root, and one below it
    assert pool.read(0, one, [5]).pages == 1 + 3 + 1 + 1
    assert pool.read(0, one, [7]).pages == 1  # a page below the root
    assert pool.read(0, one._replace(pages=1000), [8]) == NO_READS  # none is between


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
    return IndexLeaves(pages, 500, 700, is_buffered)


def test_rows_behind_all_others_make_pages_that_nobody_reads() -> None:
    """300,000 rows of an AUTO_INCREMENT key, 80 a page; the first goes into a page that is
    there."""
    pool = BufferPool.of(64 * MIB)
    write = Touches(1e4, 0, 1, 1, per_page=80, ordered=True, writes=True)
    assert sum(pool.read(0, write, [key]).pages for key in range(1_000_000, 1_300_000, 7)) == 1
    update = write._replace(writes=False)
    assert pool.read(0, update, [1_299_000]).pages == 0  # just written
    for key in range(0, 200_000, 80):
        pool.read(0, write, [key])  # in the middle
    pool.now += 1  # the page cleaner frees 1,024 pages
    assert pool.read(0, update, [1_000_100]).pages == 1  # driven out


def test_groups_of_keys_grow_each_at_its_end() -> None:
    """The page at a group's end is full, so that it splits at once: it is read, and the page behind
    it."""
    pool, order = BufferPool.of(64 * MIB), KeyOrder(1, (1.0,))
    write = Touches(1e4, 0, 1, 1, per_page=80, ordered=True, writes=True)
    read = [
        pool.read(0, write, [order.number((group, key))]).pages
        for key in range(1000, 3000)
        for group in range(10)
    ]
    assert sum(read) == 20
    assert len(pool.held) == 20 + 10 + 10 * 25  # and the new half, and a page for each 80 rows


def test_a_full_leaf_splits_with_its_first_entry() -> None:
    """Ten leaves of 500 entries: 10 and the neighbours of the first and last are read, 10 made;
    then there is room for 249 in each half."""
    pool = BufferPool.of(64 * MIB)
    one = Touches(1e4, 0, 0, 0, indexes=(IndexLeaves(10, 500, 500),))
    places = [Entry(0, (at + 0.7) / 10, is_new=True) for at in range(10)]
    assert sum(pool.read(0, one, None, [place]).pages for place in places) == 12
    assert len(pool.held) == 12 + 10
    for _ in range(249):
        assert pool.read(0, one, None, places) == NO_READS
    assert len(pool.held) == 22
    assert pool.read(0, one, None, places) == NO_READS
    assert len(pool.held) == 22 + 10


def test_what_purge_takes_out_of_a_half_reads_both_neighbours_and_merges_it() -> None:
    held = BufferPool.of(64 * MIB).held
    growth, place = LeafGrowth(held), EntryPlace(7, 0.2, 500, 500)
    assert growth.add(place, 0.0) == 3  # the leaf, and both neighbours for the split
    assert len(held) == 3 + 1
    assert growth.remove(place, 0.0) == 0  # the other half is beside it: one full leaf again
    assert growth.add(place, 0.0) == 0
    assert len(held) == 3 + 1
    sparse = EntryPlace(100, 0.2, 251, 500)
    assert growth.remove(sparse, 0.0) == 1
    assert growth.remove(sparse, 0.0) == 2  # below half
    waiting = EntryPlace(200, 0.2, 251, 500, is_buffered=True)
    assert [growth.remove(waiting, 0.0) for _ in range(9)] == [0] * 9
    assert growth.find(waiting, 0.0) == 1
    assert growth.remove(waiting, 0.0) == 2  # it is in the pool: nothing waits


def test_purge_needs_deleted_rows_and_their_entries_once_more() -> None:
    """In a pool of 64 pages, some ninety transactions later."""
    pool = BufferPool.of(MIB)
    pool.upper = UpperPages(BufferPool.of(MIB).held, 9)  # which loses none
    delete = Touches(1e6, 0, 1, 1, per_page=1, ordered=True, deletes=True, indexes=(index(1e6),))
    kept = delete._replace(deletes=False)
    reads = []
    for one, entries in ((delete, [Entry(0, 0.5)]), (kept, [])):
        for key in range(1000):
            found = pool.read(
                0, one, [key], [entry._replace(place=key / 1000) for entry in entries]
            )
            undo = pool.commit(1, 0)
            assert undo.waits == 0
            reads.append(found.pages + undo.pages)
    assert reads[0] == 2
    end = 1000 + HISTORY
    assert sum(reads[:1000]) == 2 * 1000 + 2 * (1000 - HISTORY)
    assert sum(reads[1000:end]) == HISTORY + 2 * HISTORY
    assert sum(reads[end:]) == 1000 - HISTORY


def test_a_pool_has_the_clock_of_one_worker_and_that_of_the_replica() -> None:
    """Which waits for the source."""
    pool = BufferPool.of(64 * MIB)
    pool.work(4.0, pace=0.5)
    assert (pool.now, pool.elapsed) == (4.0, 2.0)
    pool.wait(1.0)
    assert (pool.now, pool.elapsed) == (4.0, 2.0)
    pool.wait(5.0)
    assert (pool.now, pool.elapsed) == (7.0, 5.0)


def test_purge_may_be_some_time_behind() -> None:
    """By the clock of the replica, which several workers bring through the log sooner."""
    for pace, due in ((1.0, 4), (0.5, 8)):
        held = BufferPool.of(64 * MIB).held
        purge = Purge(held, LeafGrowth(held), 0, 0.5)
        found = []
        for at in range(12):
            purge.needs([at])
            found.append(purge.commit(at / 8, pace * at / 8))
        assert found == [0] * due + [1] * (12 - due)


def test_purge_reads_the_undo_logs_of_changed_rows() -> None:
    """Of each transaction, in a pool that does not hold it until then. Their segments' headers are
    read when the history is cut off."""
    rules = PoolRules(rollback_segments=256, used_by_all=0)
    pool = BufferPool.of(2 * MIB, rules)
    waited = [pool.commit(1, 0) for _ in range(4 * CUT_AFTER)]
    late = [one.pages - one.waits for one in waited]
    assert not any(late[:HISTORY])
    cuts = late[CUT_AFTER - 1 :: CUT_AFTER]
    assert all(0.8 * 512 < one <= 512 + 1 for one in cuts)
    assert 0.6 * (len(late) - HISTORY) < sum(late) - sum(cuts) <= len(late) - HISTORY
    new = BufferPool.of(6 * MIB, rules)
    written = [new.commit(0, 1) for _ in range(2000)]
    assert sum(one.pages - one.waits for one in written) == 0


def test_leaves_of_entries_by_their_places() -> None:
    pool = BufferPool.of(64 * MIB)
    one = Touches(1e4, 0, 0, 0, indexes=(index(100), index(1000)))
    assert (
        pool.read(
            0, one, None, [Entry(0, 0.501), Entry(0, 0.509), Entry(1, 0.501), Entry(1, 0.509)]
        ).pages
        == 3
    )
    assert pool.read(0, one, None, [Entry(0, 0.505)]).pages == 0
    assert pool.read(1, one, None, [Entry(0, 0.505)]).pages == 1
    # half of the rows
    assert pool.read(2, one, None, [Entry(1, at / 1000) for at in range(500)], 0.5).pages == 1000


def test_an_index_that_follows_the_table_grows_with_it() -> None:
    pool = BufferPool.of(64 * MIB)
    write = Touches(1e4, 0, 0, 0, writes=True, indexes=(index(1000),))
    assert (
        sum(
            pool.read(0, write, None, [Entry(0, float(key), follows=True)]).pages
            for key in range(10_000)
        )
        == 1
    )


def test_a_worker_waits_for_what_the_change_buffer_merges() -> None:
    pool = BufferPool.of(64 * MIB)
    one = Touches(1e4, 0, 0, 0, indexes=(index(1000, is_buffered=True),))
    assert pool.read(0, one, None, [Entry(0, 0.1), Entry(0, 0.9)]) == PageReads(2, 2)
    assert pool.read(0, one, None, [Entry(0, 0.5, is_lookup=True)]) == PageReads(1, 1)


def test_rollback_segments_take_room_in_turn() -> None:
    """512 pages of 256 segments, which a start has read: again and again in a pool of 384 pages,
    and less room for tables in any."""
    large, small = (
        BufferPool.of(64 * MIB, PoolRules(rollback_segments=256)),
        BufferPool.of(6 * MIB, PoolRules(rollback_segments=256)),
    )
    assert sum(large.commit(1, 0).pages for _ in range(2000)) == 0
    assert sum(small.commit(1, 0).pages for _ in range(2000)) > 3000
    assert len(large.held) == 512
    assert BufferPool.of(float("inf"), PoolRules(rollback_segments=256)).commit(1, 0) == NO_READS


class Watched(MidpointLru):
    """Notes what is touched."""

    touched: tuple[int, ...] = ()

    def touch(self, page: int, now: float, *, changes: bool = True) -> bool:
        """Implements `MidpointLru`."""
        self.touched += (page,)
        return super().touch(page, now, changes=changes)


def test_mariadb_reads_all_headers_whenever_it_cuts_off_the_history() -> None:
    """Ten times a second, however few transactions there were."""
    rules = POOL_RULES["mariadb"]
    held = Watched(4096, rules.cleaner(64 * MIB))
    undo = UndoPages(rules.rollback_segments, held, rules.cut_after, rules.cut_seconds)
    headers = {-2 - AT_START * at for at in range(rules.rollback_segments)}
    for at in range(1, 6):
        undo.write(1, 0, at * 0.06)
        held.touched = ()
        undo.cut(at * 0.06, at * 0.06)
        assert headers & set(held.touched) == (headers if at % 2 == 0 else set())
        assert len(held.touched) == (len(headers) + 2 if at % 2 == 0 else 0)  # and two undo logs


def test_what_all_changes_go_through_is_read_again_when_pages_have_gone() -> None:
    """The file's three pages and two roots by the first part of a transaction, one more below each
    root by that and the next ones, until all have been used."""
    pool, leaves = BufferPool.of(4 * MIB), (3000.0, 1500.0)
    assert [pool.upper.use(1 << 72, leaves, 0.0) for _ in range(3)] == [0, 0, 0]
    for page in range(257):
        pool.held.touch(page, 0.0)
    assert pool.held.gone
    assert [pool.upper.use(1 << 72, leaves, 0.0) for _ in range(4)] == [3 + 2 + 2, 1, 0, 0]
    assert [pool.upper.use_own(2 << 72, 0.0) for _ in range(2)] == [PoolRules().used_by_all, 0]


def test_an_undo_log_is_written_on_until_three_quarters_of_its_page_are_full() -> None:
    pool = BufferPool.of(64 * MIB, PoolRules(rollback_segments=2))
    assert len(pool.held) == 4
    for _ in range(78):
        pool.commit(1, 0)
    assert len(pool.held) == 4  # 39 logs of 310 bytes in each
    for _ in range(2):
        pool.commit(1, 0)
    assert len(pool.held) == 6
    pool.commit(1000, 0)  # 60,250 bytes
    assert len(pool.held) == 6 + 4
    for _ in range(100):  # new rows: a page for each segment, which the first of them makes
        assert pool.commit(0, 1) == PageReads(0, 0)
    assert len(pool.held) == 10 + 2
