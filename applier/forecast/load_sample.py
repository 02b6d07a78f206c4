"""Transactions that stand for a whole log, so that it can be priced again without reading it again,
in bounded memory.

A short log is kept as it is. Of a long one there remain its dearest transactions, each for itself,
and stretches of consecutive
transactions at equal distances, which stand for all others: neighbours depend on each other, so
single ones would not do.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from applier.forecast.load_batch import LoadRun
from applier.forecast.transaction_load import TransactionLoad

STRETCH = 256
"""Transactions in a stretch."""
MOST_STRETCHES = 32
DEAREST = 256


@dataclass(frozen=True, slots=True)
class Stratum:
    """Transactions in the log's order, and how many times their seconds are those of the
    transactions that they stand for."""

    loads: Sequence[TransactionLoad]
    weight: float


class LoadSample:
    """Feed it every transaction of a log with the seconds that it takes; `strata` are what stands
    for all of them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._count = 0
        self._distance = 1
        """One stretch of so many is kept."""
        self._stretches: list[list[tuple[float, int, TransactionLoad]]] = []
        self._dearest: list[tuple[float, int, TransactionLoad]] = []

    def take_all(self, loads: LoadRun, seconds: Sequence[float]) -> None:
        """The next transactions of the log."""
        for at, its_seconds in enumerate(seconds):
            number, place = divmod(self._count, STRETCH)
            is_kept = not number % self._distance
            is_dear = len(self._dearest) < DEAREST or its_seconds > self._dearest[0][0]
            if is_kept or is_dear:
                self._keep((its_seconds, self._count, loads[at]), is_kept, is_dear, not place)
            self._count += 1
            self.seconds += its_seconds

    def _keep(
        self, item: tuple[float, int, TransactionLoad], is_kept: bool, is_dear: bool, is_first: bool
    ) -> None:
        if is_kept:
            if is_first:
                self._begin()
            self._stretches[-1].append(item)
        if is_dear and len(self._dearest) < DEAREST:
            heapq.heappush(self._dearest, item)
        elif is_dear:
            heapq.heapreplace(self._dearest, item)

    def _begin(self) -> None:
        self._stretches.append([])
        if len(self._stretches) > MOST_STRETCHES:  # the new one has an even place and stays
            self._stretches = self._stretches[::2]
            self._distance *= 2

    @property
    def strata(self) -> list[Stratum]:
        """All transactions of a short log; of a long one the dearest, and stretches of the
        others."""
        kept = [item for stretch in self._stretches for item in stretch]
        if len(kept) == self._count:
            return [Stratum([load for *_, load in kept], 1.0)]
        dearest = sorted(self._dearest, key=lambda item: item[1])
        apart = {number for _, number, _ in dearest}
        others = [item for item in kept if item[1] not in apart]
        rest = self.seconds - sum(seconds for seconds, *_ in dearest)
        seen = sum(seconds for seconds, *_ in others)
        return [
            Stratum([load for *_, load in dearest], 1.0),
            Stratum([load for *_, load in others], rest / seen if seen else 1.0),
        ]
