"""Sizes counted in bounded memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from applier.forecast.prices.table_state import three_digits
from tests.forecast.distribution import Distribution

SIZES = st.lists(st.one_of(st.integers(0, 2000), st.integers(0, 10**12)), max_size=60)


def counted(sizes: list[int]) -> Distribution:
    distribution = Distribution()
    for size in sizes:
        distribution.add(size)
    return distribution


@given(st.integers(0, 10**15))
def test_three_digits_are_half_a_percent_off_at_most(size: int) -> None:
    assert (
        three_digits(size) == size
        if size < 1000
        else abs(three_digits(size) - size) <= size * 0.005
    )
    assert three_digits(three_digits(size)) == three_digits(size)


@given(SIZES)
def test_count_total_and_ends_are_exact(sizes: list[int]) -> None:
    found = counted(sizes)
    assert (found.count, found.total) == (len(sizes), sum(sizes))
    assert (found.least, found.most) == (min(sizes, default=0), max(sizes, default=0))
    assert sum(times for _, times in found) == len(sizes)


@given(SIZES, st.sampled_from((0.0, 0.25, 0.5, 0.95, 1.0)))
def test_quantiles(sizes: list[int], share: float) -> None:
    if not sizes:
        assert counted(sizes).quantile(share) == 0
        return
    rank = max(-(-int(share * 100) * len(sizes) // 100), 1)
    exact = sorted(sizes)[rank - 1]
    assert abs(counted(sizes).quantile(share) - exact) <= exact * 0.005


@given(SIZES, SIZES)
def test_merging_is_counting_both(first: list[int], second: list[int]) -> None:
    merged = counted(first)
    merged.merge(counted(second))
    assert merged == counted(first + second)


def test_memory_does_not_grow_with_the_sizes() -> None:
    found = counted(list(range(0, 2_000_000, 7)))
    assert len(found.buckets) <= 1000 + 900 * 4
