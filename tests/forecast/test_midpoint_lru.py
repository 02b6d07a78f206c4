"""The list of a buffer pool: by hand, by the rules of buf0lru.cc."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from applier.forecast.inventory.midpoint_lru import FEWEST_PAGES, OLD_TOLERANCE, MidpointLru
from applier.forecast.inventory.pool_rules import PageCleaner

PAGES = 2000


def full(free: float = 1) -> MidpointLru:
    """Of pages 0 to 1999, all read at once, one page of which has gone."""
    lru = MidpointLru(PAGES, PageCleaner(free, seconds=1.0))
    assert all(lru.touch(page, 0.0) for page in range(PAGES + 1))
    return lru


def held(lru: MidpointLru, pages: range) -> int:
    return sum(page in lru for page in pages)


def test_pages_that_are_read_once_drive_out_old_pages_only() -> None:
    """5/8 of the pool are young, however many pages of a scan go by."""
    lru = full()
    before = [page for page in range(PAGES) if page in lru]
    for page in range(10_000, 20_000):
        lru.touch(page, 0.1)
    assert abs(sum(page in lru for page in before) - PAGES * 5 / 8) <= OLD_TOLERANCE + 1


def test_a_page_becomes_young_a_second_after_its_first_use() -> None:
    early, late = full(), full()
    for lru, now in ((early, 0.9), (late, 1.1)):
        lru.touch(5000, 0.1 if lru is late else 0.5)
        assert not lru.touch(5000, now)
        assert not lru.touch(5000, 1.2)
        for page in range(10_000, 10_000 + PAGES):
            lru.touch(page, 1.3)
    assert 5000 not in early
    assert 5000 in late


def test_a_young_page_that_is_wanted_moves_to_the_head() -> None:
    wanted, other = full(), full()
    for lru in (wanted, other):
        for page in range(3000, 3000 + PAGES // 2):
            lru.create(page, 0.5)
        if lru is wanted:
            lru.touch(3000, 0.6)
        for page in range(6000, 6000 + PAGES * 7 // 8):
            lru.create(page, 0.7)
    assert 3000 in wanted
    assert 3000 not in other


def test_the_cleaner_frees_pages_once_a_second() -> None:
    lru = MidpointLru(PAGES, PageCleaner(500, seconds=1.0))
    for page in range(PAGES - 100):
        lru.touch(page, 0.5)
    assert len(lru) == PAGES - 100
    lru.touch(9001, 1.5)
    assert len(lru) == PAGES - 500 + 1
    for page in range(10_000, 10_400):
        lru.touch(page, 1.6)
    assert len(lru) == PAGES - 500 + 401


def test_a_pool_that_is_full_is_emptied_in_strides() -> None:
    """The cleaner is woken when there is no free page, and frees as many as it does in its time."""
    lru = full(free=500)
    assert len(lru) == PAGES - 500 + 1
    for page in range(10_000, 10_499):
        lru.touch(page, 0.1)
    assert len(lru) == PAGES
    lru.create(20_000, 0.1)
    assert len(lru) == PAGES - 500 + 1


def test_a_cleaner_that_is_woken_early_leaves_pages_free() -> None:
    """MariaDB's, woken when half of what it frees is left, whatever the time."""
    lru, most = MidpointLru(PAGES, PageCleaner(600, low=300)), 0
    for page in range(20_000):
        lru.touch(page, float(page))
        most = max(most, len(lru))
        assert page < PAGES - 300 or len(lru) > PAGES - 600
    assert most == PAGES - 300 + 1


HELD = PAGES - 299


def filled(changes: Callable[[int], bool], step: int = 2) -> MidpointLru:
    """A list that MariaDB's page cleaner goes through when the next page is read; `changes` says of
    which page."""
    lru = MidpointLru(PAGES, PageCleaner(600, low=300, most_written=700))
    for page in range(HELD):
        lru.touch(-step * page, 0.0, changes=changes(page))
    return lru


def two_rounds(changed_between: int | None) -> set[int]:
    """Pages that go when all have been changed at first, and one of them once more."""
    lru = filled(lambda _: True)
    before = [page for page in range(0, -2 * HELD, -2) if page in lru]
    lru.touch(-2 * PAGES, 0.0)
    assert len(lru) == HELD + 1
    assert lru.waited_for == lru.cleaner.waited_for(700, HELD)
    if changed_between is not None:
        lru.touch(changed_between, 0.0)
    lru.touch(-2 * PAGES - 2, 0.0)
    assert len(lru) == PAGES - 600 + 1
    return {page for page in before if page not in lru}


def test_changed_pages_are_written_first_and_go_a_round_later() -> None:
    """MariaDB's cleaner frees what it finds unchanged: the first round writes as many as it may and
    frees none; the next one frees those, but for a page that was changed once more."""
    gone = two_rounds(None)
    assert len(gone) == HELD + 1 - (PAGES - 600)
    again = min(gone)
    others = two_rounds(again)
    assert len(others) == len(gone)
    assert gone - others == {again}


def test_a_round_leaves_pages_that_are_in_use() -> None:
    lru = MidpointLru(PAGES, PageCleaner(PAGES - 1, low=300, most_written=700, in_use=0.4))
    for page in range(HELD + 1):
        lru.touch(page, 0.0, changes=False)
    assert lru.waited_for == 0
    assert len(lru) == pytest.approx(0.4 * HELD, rel=0.1)


def test_a_page_that_nobody_changed_is_not_written() -> None:
    lru = filled(lambda _: False)
    lru.touch(-2 * PAGES, 0.0)
    assert lru.waited_for == 0
    assert len(lru) == PAGES - 600 + 1


@pytest.mark.parametrize(("some_are_free", "more"), [(False, 0), (True, 63)])
def test_changed_neighbours_of_an_extent_are_written_together(
    some_are_free: bool, more: int
) -> None:
    """Only once half of the pages that are wanted are free."""
    lru = filled(lambda page: page % 50 > 0 or not some_are_free, step=1)
    lru.touch(-2 * PAGES, 0.0)
    least, most = (lru.cleaner.waited_for(700 + one, HELD) for one in (0, more))
    assert least <= lru.waited_for <= most
    assert (lru.waited_for > least) == some_are_free


def test_a_short_list_has_no_old_part() -> None:
    lru = MidpointLru(FEWEST_PAGES - 1, PageCleaner(1))
    for page in range(FEWEST_PAGES - 1):
        lru.touch(page, 0.0)
    lru.touch(0, 0.0)
    lru.touch(1000, 0.0)
    assert 0 not in lru
    lru.touch(1, 0.0)
