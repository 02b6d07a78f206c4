"""What lag a replica has over time, in bounded memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, MutableSequence
from math import isnan, nan

WIDTH, START, COUNT, PEAK, PEAK_AT, CURVE_NUMBERS = range(6)
"""Places in a curve's numbers. START is NaN before the first transaction; COUNT values are in
use."""

Numbers = MutableSequence[float]


def add_lag(curve: Numbers, values: Numbers, commit: float, begin: float, done: float) -> None:
    """A transaction that the source committed at `commit` was the oldest that was missing from
    `begin` to `done`. `values` has a place for each stretch that there may be."""
    if isnan(curve[START]):
        curve[START] = commit
    lag = done - commit
    if lag > curve[PEAK]:
        curve[PEAK], curve[PEAK_AT] = lag, done
    start = curve[START]
    last = int((done - start) / curve[WIDTH])
    while last >= len(values):
        _double(curve, values)
        last = int((done - start) / curve[WIDTH])
    curve[COUNT] = max(curve[COUNT], last + 1)
    values[last] = max(values[last], lag)
    width = curve[WIDTH]
    for at in range(int((begin - start) / width), last):
        values[at] = max(values[at], (at + 1) * width + start - commit)


def _double(curve: Numbers, values: Numbers) -> None:
    """Makes one stretch of two."""
    count = int(curve[COUNT])
    for at in range(0, count, 2):
        values[at // 2] = max(values[at], values[at + 1]) if at + 1 < count else values[at]
    for at in range((count + 1) // 2, count):
        values[at] = 0.0
    curve[COUNT] = (count + 1) // 2
    curve[WIDTH] *= 2


STEPS = (_double, add_lag)
"""What a compiler has to know of."""


class LagCurve:
    """Lag over time in bounded memory: the highest value of each stretch; stretches double when
    there are too many."""

    def __init__(self, most: int = 480) -> None:
        self.numbers = array("d", [0.0] * CURVE_NUMBERS)
        self.numbers[WIDTH], self.numbers[START] = 1.0, nan
        self.all_values = array("d", [0.0] * most)

    def add(self, commit: float, begin: float, done: float) -> None:
        """See `add_lag`."""
        add_lag(self.numbers, self.all_values, commit, begin, done)

    @property
    def values(self) -> list[float]:
        """The highest lag of each stretch."""
        return self.all_values[: int(self.numbers[COUNT])].tolist()

    @property
    def width(self) -> float:
        """Seconds of a stretch."""
        return self.numbers[WIDTH]

    @property
    def peak(self) -> float:
        """The highest lag, in seconds."""
        return self.numbers[PEAK]

    @property
    def peak_at(self) -> float:
        """When the transaction with the highest lag was committed; 0 when there was none."""
        return self.numbers[PEAK_AT]

    def __iter__(self) -> Iterator[tuple[float, float]]:
        """(Seconds since 1970 at which a stretch begins, the highest lag in it)."""
        start = self.numbers[START]
        for at, value in enumerate(self.values):
            yield start + at * self.width, value
