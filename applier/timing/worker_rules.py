"""What several workers cost beside the only thread of a replica, as data: a row for each version.

All of it was seen on real servers with two cores; where no server was asked, as of 5.6, it is what
the next version has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from applier.replica.scheduling import DATABASE, LOGICAL_CLOCK

AS_PRICED = 4
"""Workers for whom the coordinator's prices say what a hand-over takes."""


@dataclass(frozen=True, slots=True)
class Handed:
    """What a worker takes of a processor beside the only thread: `rows_factor` times as much for
    the rows; for each transaction, and each event, that the coordinator hands to it, so many times
    what that takes of the coordinator, where there are AS_PRICED workers. `eased`: the power with
    which that falls as there are more of them."""

    rows_factor: float = 1.0
    transactions: float = 0.0
    events: float = 0.0
    eased: float = 0.0

    def taken(self, coordinator: float, times: float, workers: int) -> float:
        """Seconds that one of so many workers takes for what takes the coordinator so long."""
        return coordinator * times * math.pow(AS_PRICED / workers, self.eased)


AT_NO_COST = Handed()


@dataclass(frozen=True, slots=True)
class WorkerRules:
    """Of one version.

    `handed`: by replica_parallel_type, where that has been seen. `wakes`: a coordinator that slept
    behind the transactions of a group commit must be woken, as must the worker then. `purge_work`:
    seconds of a processor that purge takes for each that workers spent on marked entries of
    indexes, beside several workers that wait for syncs; 0 where the prices of rows hold it.
    """

    handed: Mapping[str, Handed] = field(default_factory=dict)
    wakes: bool = False
    purge_work: float = 0.0


ALONE = WorkerRules()
"""Several workers that cost what the only thread does."""
_HANDED = {DATABASE: Handed(1.1, 0.5, 0.5), LOGICAL_CLOCK: Handed(1.0, 1.0, 1.0, eased=0.5)}
_BESIDE_PURGE = WorkerRules(purge_work=1.0)
WORKER_RULES = {
    "5.6": WorkerRules(_HANDED),
    "5.7": WorkerRules(_HANDED, wakes=True),
    **dict.fromkeys(("8.0", "8.4", "9.7", "mariadb"), _BESIDE_PURGE),
}
"""Version -> its rules.

- Workers of a 5.7.29 with two cores: 52 cells from one row in a transaction to 4,000, and
  sysbench's loads, each beside the same with the only thread (docs/design/forecast-accuracy.md).
  How a hand-over eases with more workers: eleven runs of `binlag measure` on several days.
- Purge of a 9.7.4 took 1.8 s of the processor for 30,000 updates of an indexed column and 0.5 s for
  as many of others; the entries of the index took the only worker of a replica 1.7 s.
"""
