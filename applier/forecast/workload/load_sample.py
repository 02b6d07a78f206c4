"""Transactions that stand for a whole log, so that it can be priced again without reading it again,
in bounded memory.

A short log is kept as it is. Of a long one there remain its dearest transactions, each for itself,
and stretches of consecutive
transactions at equal distances, which stand for all others: neighbours depend on each other, so
single ones would not do.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from applier.forecast.workload.load_batch import LoadBatch, LoadRun, chosen
from applier.forecast.workload.transaction_load import TransactionLoad

STRETCH = 256
"""Transactions in a stretch."""
MOST_STRETCHES = 32
DEAREST = 256


@dataclass(frozen=True, slots=True)
class Stratum:
    """Transactions in the log's order, and how many times their seconds are those of the
    transactions that they stand for."""

    runs: Sequence[LoadRun]
    weight: float

    def __iter__(self) -> Iterator[TransactionLoad | LoadBatch]:
        """As `Forecast.add_all` takes them."""
        for run in self.runs:
            if isinstance(run, LoadBatch):
                yield run
            else:
                yield from run

    @property
    def loads(self) -> list[TransactionLoad]:
        """Each as an object of its own."""
        return [load for run in self.runs for load in run]


@dataclass(frozen=True, slots=True)
class KeptRun:
    """Transactions of a stretch, numbered from `first` on in the log, and the seconds of each."""

    first: int
    seconds: Sequence[float]
    loads: LoadRun

    def without(self, numbers: set[int]) -> KeptRun | None:
        """The same but for these transactions, so that numbers no longer follow each other; None
        where none is left."""
        places = [at for at in range(len(self.seconds)) if self.first + at not in numbers]
        if len(places) == len(self.seconds):
            return self
        if not places:
            return None
        return KeptRun(self.first, [self.seconds[at] for at in places], chosen(self.loads, places))


class LoadSample:
    """Feed it every transaction of a log with the seconds that it takes; `strata` are what stands
    for all of them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._count = 0
        self._distance = 1
        """One stretch of so many is kept."""
        self._stretches: list[list[KeptRun]] = []
        self._dearest: list[tuple[float, int, TransactionLoad]] = []

    def take_all(self, loads: LoadRun, seconds: Sequence[float]) -> None:
        """The next transactions of the log."""
        self._keep_dearest(loads, seconds)
        at, count = 0, len(seconds)
        while at < count:
            number, place = divmod(self._count, STRETCH)
            end = min(at + STRETCH - place, count)
            if not number % self._distance:
                if not place:
                    self._begin()
                kept = KeptRun(self._count, seconds[at:end], chosen(loads, range(at, end)))
                self._stretches[-1].append(kept)
            self._count += end - at
            at = end
        for its_seconds in seconds:
            self.seconds += its_seconds

    def _keep_dearest(self, loads: LoadRun, seconds: Sequence[float]) -> None:
        dearest = self._dearest
        floor = dearest[0][0] if len(dearest) >= DEAREST else -inf
        for at in [at for at, value in enumerate(seconds) if value > floor]:
            if len(dearest) < DEAREST:
                heapq.heappush(dearest, (seconds[at], self._count + at, loads[at]))
            elif seconds[at] > dearest[0][0]:
                heapq.heapreplace(dearest, (seconds[at], self._count + at, loads[at]))

    def _begin(self) -> None:
        self._stretches.append([])
        if len(self._stretches) > MOST_STRETCHES:  # the new one has an even place and stays
            self._stretches = self._stretches[::2]
            self._distance *= 2

    @property
    def strata(self) -> list[Stratum]:
        """All transactions of a short log; of a long one the dearest, and stretches of the
        others."""
        kept = [run for stretch in self._stretches for run in stretch]
        if sum(len(run.seconds) for run in kept) == self._count:
            return [Stratum([run.loads for run in kept], 1.0)]
        dearest = sorted(self._dearest, key=lambda item: item[1])
        apart = {number for _, number, _ in dearest}
        others = [left for run in kept if (left := run.without(apart)) is not None]
        rest = self.seconds - sum(seconds for seconds, *_ in dearest)
        seen = sum(seconds for run in others for seconds in run.seconds)
        return [
            Stratum([[load for *_, load in dearest]], 1.0),
            Stratum([run.loads for run in others], rest / seen if seen else 1.0),
        ]
