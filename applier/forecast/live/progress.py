"""How far a replica is with its source's logs, and which of their transactions it has executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

from applier.forecast.workload.transaction_load import TransactionLoad
from checkpoints.gtid import GtidError, GtidSet

Place = tuple[str, int]
"""A log's name without its folder, and a position in it."""


@dataclass(frozen=True, slots=True)
class Underway:
    """What a worker is at: the transaction's GTID if it has one, for how many seconds, rows so
    far."""

    gtid: str
    seconds: float
    rows: float | None


@dataclass(frozen=True)
class ReplicaProgress:
    """A replica at one moment. `time` is its own clock, in seconds since 1970.

    `source` and `relay`: up to where it executed, in the source's logs and in its own relay logs;
    `received`: up to where it received. `executed`: its GTIDs, empty without any. `behind` is what
    the server itself says, None for NULL. `stopped`: why nothing is applied, "" while it is.
    `earlier`: looks at the same replica some seconds before, the first one first; what it executed
    since then shows its pace.
    """

    time: float
    source: Place
    relay: Place
    received: Place
    executed: GtidSet
    behind: float | None
    stopped: str = ""
    under_way: Sequence[Underway] = ()
    earlier: Sequence[ReplicaProgress] = ()


class Executed:
    """Which transactions of these logs a replica has executed: by GTID where the log has them and
    the replica keeps them, else by position in the source's logs or in its relay logs."""

    def __init__(self, progress: ReplicaProgress, logs: Sequence[str]) -> None:
        self.progress = progress
        self._number = {PurePath(log).name: number for number, log in enumerate(logs)}
        place = progress.source if progress.source[0] in self._number else progress.relay
        self._until = self._number.get(place[0], -1), place[1]

    def __call__(self, load: TransactionLoad) -> bool:
        if load.gtid and self.progress.executed:
            known = self._by_gtid(load.gtid)
            if known is not None:
                return known
        end = load.end_file or load.file
        return (self._number[PurePath(end).name], load.end) <= self._until

    def _by_gtid(self, gtid: str) -> bool | None:
        """None for what is no GTID of MySQL."""
        source, _, number = gtid.rpartition(":")
        known = _source(source)
        if known is None:
            return None
        uuid, tag = known
        return self.progress.executed.contains(uuid, int(number), tag)


@lru_cache(maxsize=64)
def _source(text: str) -> tuple[str, str] | None:
    """UUID and tag of a GTID, by its text but for the number: a log has few."""
    try:
        (((uuid, tag), _),) = GtidSet(f"{text}:1")
    except (GtidError, ValueError):
        return None
    return uuid, tag
