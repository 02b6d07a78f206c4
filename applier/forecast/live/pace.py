"""At what pace a replica applies: what it executed between several looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from applier.forecast.live.progress import Executed, ReplicaProgress
from applier.forecast.workload.transaction_load import TransactionLoad

LOOKS = 5
"""That are worth keeping besides the last."""
LEAST_SEEN = 20
"""Transactions that a replica has to apply between two looks at it for its pace to count."""
LEAST_SECONDS = 1.0
"""From the first look to the last."""


class Pace(NamedTuple):
    """By what factor a replica is slower than the prices say: on the whole, and between the looks
    where it was fastest and slowest."""

    whole: float
    fastest: float
    slowest: float


class Looks:
    """Give it each transaction by `take`. `progress` is the last look; of the earlier ones those
    in the same logs count."""

    def __init__(self, progress: ReplicaProgress, logs: Sequence[str]) -> None:
        looks = [one for one in progress.earlier if _logs(one) == _logs(progress)] + [progress]
        self._times = [one.time for one in looks]
        self._executed = [Executed(one, logs) for one in looks]
        self._seen = [0] * len(looks)
        self._seconds = [0.0] * len(looks)
        """By the prices, of what was executed at this look and not at the one before."""

    def take(self, load: TransactionLoad, seconds: float) -> bool:
        """Whether the replica has executed it. It takes one worker so many seconds."""
        if not self._executed[-1](load):
            return False
        at = next(at for at, executed in enumerate(self._executed) if executed(load))
        self._seen[at] += 1
        self._seconds[at] += seconds
        return True

    def pace(self, at_once: float, next_commit: float) -> Pace | None:
        """None where it applied little, or may have been idle: the transaction that is next,
        committed then, has to be older than the first look. `at_once`: how many workers' seconds
        go by in a second."""
        took, seconds = self._times[-1] - self._times[0], sum(self._seconds[1:])
        if next_commit > self._times[0] or sum(self._seen[1:]) < LEAST_SEEN or not seconds:
            return None
        if took < LEAST_SECONDS:
            return None
        paces = [between * at_once / mine if mine else inf for between, mine in self._intervals()]
        return Pace(took * at_once / seconds, min(paces), max(paces))

    def _intervals(self) -> list[tuple[float, float]]:
        """Seconds from one look to a later one, and those of what was executed by the prices: as
        many looks on as it takes to see enough. What is left at the end goes with the last."""
        found: list[tuple[float, float]] = []
        took, seen, seconds = 0.0, 0, 0.0
        for at, (before, now) in enumerate(pairwise(self._times), 1):
            took, seen = took + now - before, seen + self._seen[at]
            seconds += self._seconds[at]
            if seen >= LEAST_SEEN:
                found.append((took, seconds))
                took, seen, seconds = 0.0, 0, 0.0
        last = found.pop()
        return [*found, (last[0] + took, last[1] + seconds)]


def _logs(look: ReplicaProgress) -> tuple[str, str]:
    return look.source[0], look.relay[0]
