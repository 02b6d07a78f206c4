"""The pages that transactions read, one after the other, in the pools that scenarios have."""

from __future__ import annotations

from collections.abc import Sequence

from applier.forecast.inventory.pool import PageReads, Touches
from applier.forecast.lag.scenario_run import ScenarioRun
from applier.forecast.prices.scenario import Scenario
from applier.forecast.workload.transaction_load import TransactionLoad


class FollowedPool:
    """A pool, and the scenario whose clock it goes by."""

    def __init__(self, run: ScenarioRun, write_seconds: float) -> None:
        self.run = run
        self.pool = run.work.pool(write_seconds)
        self.touches: list[Touches] = []
        """Of each priced part."""
        rules = run.work.pool_rules
        self.goes_by_pace = rules.purges_by_time and run.scenario.workers > 1
        """Whether the replica's clock is another than that of one worker, and counts."""
        self._gtid_rows = rules.gtid_rows

    def reads(
        self, load: TransactionLoad, parts: Sequence[int], begin: float, base: float
    ) -> list[PageReads]:
        """Pages that are read for each part of a transaction. It begins no earlier than `begin`,
        and takes `base` seconds besides its rows: the pool's clock is that of one worker, and
        purge's that of the replica, by its pace so far."""
        pool, run = self.pool, self.run
        pool.wait(begin)
        applied, new_rows, tables = list(load.applied.values()), load.new_rows, run.prices.table
        found = [
            pool.read(
                tables[part],
                self.touches[part],
                mine.keys,
                mine.entries,
                mine.placed_share,
                mine.row_bytes,
            )
            for part, mine in zip(parts, applied, strict=True)
        ]
        undo = pool.commit(load.rows - new_rows, new_rows + (self._gtid_rows if load.gtid else 0))
        if found:
            found[0] = PageReads(*map(sum, zip(found[0], undo, strict=True)))
        seconds = base * run.scenario.factor + run.sync
        seconds += run.history if load.rows > new_rows else 0.0
        seconds += sum(map(run.seconds_of, parts, (mine.row_bytes for mine in applied), found))
        pool.work(seconds, run.pace)
        return found


def followed_pools(runs: Sequence[ScenarioRun], write_seconds: float) -> list[FollowedPool]:
    """One for all scenarios that ask the same of it, whose first has the clock; `pool_place` of
    each scenario says which is its own."""
    pools: list[FollowedPool] = []
    places: dict[Scenario, int] = {}
    for run in runs:
        if run.work.follows_pages:
            place = places.setdefault(run.work.pages_as, len(pools))
            if place == len(pools):
                pools.append(FollowedPool(run, write_seconds))
            run.pool_place = place if run.scenario.waits_for_pages else None
    return pools
