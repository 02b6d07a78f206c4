"""Counts of sizes: exact up to 999, three significant digits above.

So a quantile is off by half a percent at most, and two distributions add up to the same one
whatever the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from applier.forecast.prices.table_state import three_digits


class Distribution:
    """How often each size occurred. `count`, `total`, `least` and `most` are exact."""

    __slots__ = ("buckets", "count", "least", "most", "total")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.count = 0
        self.total = 0
        self.least = 0
        self.most = 0

    def add(self, value: int, times: int = 1) -> None:
        """A size that occurred so often."""
        place = three_digits(value)
        self.buckets[place] = self.buckets.get(place, 0) + times
        if value > self.most:
            self.most = value
        if value < self.least or not self.count:
            self.least = value
        self.count += times
        self.total += value * times

    def merge(self, other: Distribution) -> None:
        """Takes in what another part of the log had."""
        if not other.count:
            return
        for place, times in other.buckets.items():
            self.buckets[place] = self.buckets.get(place, 0) + times
        self.least = min(self.least, other.least) if self.count else other.least
        self.most = max(self.most, other.most)
        self.count += other.count
        self.total += other.total

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """(size, how often), sizes ascending."""
        return iter(sorted(self.buckets.items()))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Distribution)
            and self.as_dict() == other.as_dict()
            and self.buckets == other.buckets
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def mean(self) -> float:
        """The mean, 0 when nothing occurred."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> int:
        """The smallest size that at least this share of all does not exceed; 0 when there is
        none."""
        if share <= 0 or not self.count:
            return self.least
        seen = 0
        for size, times in self:
            seen += times
            if seen >= share * self.count:
                return max(min(size, self.most), self.least)
        return self.most

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "min": self.least,
            "median": self.quantile(0.5),
            "p95": self.quantile(0.95),
            "max": self.most,
            "mean": round(self.mean, 3),
        }
