"""What a replica that is behind has left to apply, and when it will have caught up.

What is left takes its seconds; meanwhile the source goes on as it did in the log, which takes the
replica `load` seconds for each second. So the backlog shrinks by 1 - load in a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from applier.forecast.lag.run import Forecast
from applier.forecast.lag.scenario_run import NEVER, ScenarioRun
from applier.forecast.live.pace import Looks, Pace
from applier.forecast.live.progress import ReplicaProgress, Underway
from applier.forecast.workload.load_batch import LoadBatch, LoadRun
from applier.forecast.workload.transaction_load import TransactionLoad

WINDOW = 4096
"""Of the transactions that are left: among them those under way are looked for."""
LEAST_SECONDS = 1.0
"""A transaction that runs for less says nothing of its pace by the rows that it has changed."""


@dataclass(frozen=True, slots=True)
class LeftTransaction:
    """A transaction that is not executed yet. `seconds` it takes one worker."""

    file: str
    position: int
    end: int
    gtid: str | None
    commit_time: float
    rows: int
    tables: tuple[str, ...]
    statement: str
    seconds: float


class Backlog:
    """Give it all transactions of a log by `take_all`: it forecasts those that the replica has not
    executed, and keeps the first of them.

    `rest` is a forecast of one scenario, for these.
    """

    def __init__(self, progress: ReplicaProgress, logs: Sequence[str], rest: Forecast) -> None:
        self.progress = progress
        self.rest = rest
        self.left: list[LeftTransaction] = []
        """The first of those that are left."""
        self.transactions_left = 0
        self._logs = [str(log) for log in logs]
        self._looks = Looks(progress, self._logs)

    def take_all(self, loads: LoadRun, seconds: Sequence[float]) -> None:
        """The next transactions, and the seconds that each takes one worker."""
        left = [
            at
            for at, (load, mine) in enumerate(zip(loads, seconds, strict=True))
            if not self._looks.take(load, mine)
        ]
        if not left:
            return
        self.transactions_left += len(left)
        for at in left[: WINDOW - len(self.left)]:
            self.left.append(_left(loads[at], seconds[at]))
        if isinstance(loads, LoadBatch):
            self.rest.add_batch(loads.chosen(left))
        else:
            self.rest.add_all([loads[at] for at in left])

    @property
    def notes(self) -> list[str]:
        """What the logs lack of what the replica has received from its source."""
        names = [PurePath(log).name for log in self._logs]
        name, position = self.progress.received
        if self.progress.source[0] not in names or not name:
            return []  # relay logs: they are what it has received
        end = Path(self._logs[names.index(name)]).stat().st_size if name in names else -1
        if end >= position:
            return []
        return [f"the replica has received more, up to {name}:{position}; that does not count"]

    def state(self, forecast: Forecast) -> dict[str, Any]:
        """For JSON: where the replica is and when it will have caught up. `forecast` is of all of
        the log: it says what the source's traffic takes."""
        current, ahead = self._current()
        self.rest.flush()
        base = self.rest.base
        at_once = base.seconds / base.span if base.span else 1.0
        load, now = forecast.base.utilisation(forecast.duration), self.progress.time
        seconds = max(base.span - ahead / at_once, 0.0)
        pace = self._looks.pace(at_once, self.left[0].commit_time) if self.left else None
        factor = pace or Pace(1.0, 1 / (1 + forecast.margin), 1 + forecast.margin)
        catch_up, low, high = (self._catch_up(seconds * one, load, one) for one in factor)
        return {
            "live": True,
            "time": now,
            "stopped": self.progress.stopped or None,
            "behind_seconds": max(now - self.left[0].commit_time, 0.0) if self.left else 0.0,
            "seconds_behind_source": self.progress.behind,
            "transactions_left": self.transactions_left,
            "seconds_left": seconds * factor.whole,
            "capacity": 1 / (load * factor.whole) if load else None,
            "pace": None if pace is None else pace.whole,
            "catch_up_seconds": catch_up,
            "catch_up_low_seconds": low,
            "catch_up_high_seconds": high,
            "caught_up_at": None if isinstance(catch_up, str) else now + catch_up,
            "transaction": current,
        }

    def _catch_up(self, seconds: float, load: float | None, factor: float) -> float | str:
        """When what is left takes so many seconds. `load`: of the replica, by the source's traffic
        at the prices, which it is slower than by a factor."""
        if not self.left:
            return 0.0
        if self.progress.stopped:
            return NEVER
        if load is None:
            return seconds
        return seconds / (1 - load * factor) if load * factor < 1 else NEVER

    def _current(self) -> tuple[dict[str, Any] | None, float]:
        """Of the transactions under way the one that has longest to go; and by how much less than
        forecast all of them have to go."""
        found = [(one, worker, _rest(one, worker)) for one, worker in self._under_way()]
        if not found:
            return None, 0.0
        done = sum(one.seconds - rest for one, _, rest in found)
        one, worker, rest = max(found, key=lambda item: item[2])
        return {
            "file": PurePath(one.file).name,
            "pos": one.position,
            "gtid": one.gtid,
            "rows": one.rows,
            "tables": list(one.tables),
            "statement": one.statement,
            "seconds": one.seconds,
            "elapsed_seconds": worker.seconds if worker else None,
            "rows_done": worker.rows if worker else None,
            "left_seconds": rest,
        }, done

    def _under_way(self) -> Iterator[tuple[LeftTransaction, Underway | None]]:
        """What workers are at; the first one left, where the replica does not say which it is."""
        if not self.left or self.progress.stopped:
            return
        workers = self.progress.under_way
        by_gtid = {one.gtid: one for one in self.left if one.gtid}
        named = [(by_gtid[one.gtid], one) for one in workers if one.gtid in by_gtid]
        if named:
            yield from named
        else:
            yield self.left[0], workers[0] if workers else None


def _left(load: TransactionLoad, seconds: float) -> LeftTransaction:
    return LeftTransaction(
        load.file, load.position, load.end, load.gtid, load.commit_time, load.rows, load.tables,
        load.statement, seconds,
    )  # fmt: skip


def _rest(one: LeftTransaction, worker: Underway | None) -> float:
    """Seconds that a transaction still takes: at its own pace where that shows, else as
    forecast."""
    if worker is None:
        return one.seconds
    if worker.rows is None or not one.rows:
        return max(one.seconds - worker.seconds, 0.0)
    if worker.rows and worker.seconds >= LEAST_SECONDS:
        return worker.seconds * max(one.rows / worker.rows - 1, 0.0)
    return one.seconds * max(1 - worker.rows / one.rows, 0.0)


def behind_from_the_start(forecast: Forecast, behind: float) -> dict[str, Any]:
    """For JSON, in the form of `Backlog.state`: a replica that begins with the log now, `behind`
    seconds after the source committed its first transaction."""
    begin, runs = forecast.first_commit + behind, forecast.runs
    catch_up, low, high = (_catch_up_from(run, forecast, begin) for run in (runs[0], *runs[2:4]))
    base = forecast.base
    load = base.utilisation(forecast.duration)
    return {
        "live": False,
        "time": begin,
        "stopped": None,
        "behind_seconds": behind,
        "seconds_behind_source": None,
        "transactions_left": forecast.transactions,
        "seconds_left": base.span,
        "capacity": 1 / load if load else None,
        "catch_up_seconds": catch_up,
        "catch_up_low_seconds": low,
        "catch_up_high_seconds": high,
        "caught_up_at": None if isinstance(catch_up, str) else begin + catch_up,
        "transaction": None,
        "pace": None,
    }


def _catch_up_from(run: ScenarioRun, forecast: Forecast, begin: float) -> float | str:
    """Seconds from `begin` on, in one scenario."""
    if run.level_at is not None:
        return run.level_at - begin
    behind_end = run.catch_up(forecast.duration)
    if isinstance(behind_end, str):
        return behind_end
    return max(forecast.last_commit + behind_end - begin, 0.0)
