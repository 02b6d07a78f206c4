"""The forecast itself: one pass over a log's transactions, each priced in every scenario, each
scenario with a clock of its own.

Transactions are gathered to some thousands and then applied at once (`apply_steps`), by compiled
code where the log is long.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

from applier.forecast.inventory.facts import ASSUMED, TableFacts
from applier.forecast.lag import apply_steps as steps
from applier.forecast.lag.compiled import steps_for
from applier.forecast.lag.costs import TableCharges, TableCost, WorstTransaction, WorstTransactions
from applier.forecast.lag.followed_pool import followed_pools
from applier.forecast.lag.gathered import Gathered
from applier.forecast.lag.part_kinds import PartCounts, part_kind
from applier.forecast.lag.scenario_run import ScenarioRun
from applier.forecast.prices.calibration import PAGE_WRITE, Calibration
from applier.forecast.prices.conditions import Conditions
from applier.forecast.prices.pricing import Part, Pricer, Work, part_of
from applier.forecast.prices.scenario import Scenario
from applier.forecast.prices.table_state import TableState
from applier.forecast.prices.units import borrowed
from applier.forecast.workload.load_batch import LoadBatch, LoadRun, commit_times
from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.table_fates import TableFate
from applier.forecast.workload.transaction_load import Applied, LoadShape, TransactionLoad
from lookup.strategies import NOT_NEEDED, strategy_named
from lookup.versions import INDEX_SCAN

if TYPE_CHECKING:
    from applier.forecast.lag.batch_parts import BatchReader

MOST_PARTS = 200_000
"""Priced parts that are kept; then all are forgotten and priced anew."""
AT_ONCE = 4096
"""Transactions that are gathered."""
AT_ONCE_BY_PACE = 256
"""The same where the pages that are read depend on the pace so far."""


class Keeper(Protocol):
    """Keeps transactions."""

    def take_all(self, loads: LoadRun, seconds: Sequence[float]) -> None:
        """The next transactions of the log, and the seconds that each takes the replica as it
        is."""


class Forecast:
    """Feed it transactions with `add`; the first scenario is the replica as it is."""

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        facts: Mapping[str, TableFacts],
        calibration: Calibration,
        *,
        placement: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.facts = dict(facts)
        """Of the tables as the log leaves them."""
        self.follows_definitions = False
        """Whether the transactions come from who follows what DDL makes of columns and keys."""
        self.calibration = calibration
        self.conditions: Conditions | None = None
        """Where the first scenario's settings come from, if somebody said."""
        self.margin = calibration.spread
        """Nine of ten forecasts should be off by a factor of 1 + margin at most."""
        self.assumed: list[str] = []
        prices, self._borrowed = borrowed(calibration.prices)
        self.runs: list[ScenarioRun] = []
        for scenario in scenarios:
            self.runs.append(
                ScenarioRun(
                    scenario,
                    Pricer(scenario, facts, prices, placement),
                    calibration.shared,
                    calibration.syncs,
                )
            )
        self._pools = followed_pools(self.runs, calibration.shared[PAGE_WRITE].waiting)
        by_pace = any(pool.goes_by_pace for pool in self._pools)
        self._at_once = AT_ONCE_BY_PACE if by_pace else AT_ONCE
        self.ready: Callable[[float], float] = lambda first_commit: -inf
        """The first commit on the source -> when the replica begins with the log: it may be behind
        already."""
        self.transactions = 0
        self.rows = 0
        self.first_commit = self.last_commit = 0.0
        self.steps_back = 0
        self.longest_step_back = 0.0
        self.statements = self.statement_seconds = 0
        self.notes: dict[str, int] = {}
        self.servers: set[int] = set()
        """server_id of those that ran the transactions first."""
        self.states: dict[str, TableState] = {}
        self.parts = PartCounts()
        """Which kinds of work the log has."""
        self.keepers: list[Keeper] = []
        """They get all transactions that are complete."""
        self._uses_keys = all(
            INDEX_SCAN in (one.row_search or one.rules.row_search) for one in scenarios
        )
        self._scanned: dict[str, int] = {}
        """Tables without a key that are scanned, by number."""
        self._priced: dict[Part, int] = {}
        """The places of prices."""
        self._charges = TableCharges()
        self._worst = WorstTransactions()
        self._batches: BatchReader | None = None
        self._gathered = Gathered(
            len(self._pools), any(run.clock.needs_databases for run in self.runs)
        )
        self._transaction = prices["transaction"]

    @property
    def base(self) -> ScenarioRun:
        """The replica as it is."""
        return self.runs[0]

    @property
    def tables(self) -> dict[str, TableCost]:
        """What each table costs the replica as it is."""
        return self._charges.costs()

    @property
    def worst(self) -> list[WorstTransaction]:
        """The transactions that take longest, the longest first."""
        return self._worst.found()

    @property
    def duration(self) -> float:
        """Seconds from the first commit on the source to the last."""
        return max(self.last_commit - self.first_commit, 0.0)

    @property
    def besides_tables(self) -> dict[str, float]:
        """What the replica as it is takes besides rows, in seconds."""
        factor = self.base.scenario.factor
        commits = self.transactions * (self._transaction * factor + self.base.sync)
        commits += self.base.history_seconds
        return {
            "commits": commits,
            "statements": self.statement_seconds * factor,
            "table opens": self.base.table_open_seconds,
        }

    def add(self, load: TransactionLoad) -> None:
        """Takes in the next transaction of the log. It counts from the next `flush` on."""
        if not load.complete:
            self.note(
                f"the transaction that starts at {load.file}:{load.position} is not complete; it is"
                " left out"
            )
            return
        arrival = self._tick(load.commit_time)
        self.servers.add(load.server_id)
        self.rows += load.rows
        self.statements += load.statements
        self.statement_seconds += load.statement_seconds
        for fate in load.fates:
            self._follow(fate)
        parts = [self._part(target, applied) for target, applied in load.applied.items()]
        base = self._transaction + load.statement_seconds
        if self._pools:
            begin = max(arrival, self.ready(self.first_commit))
            for place, pool in enumerate(self._pools):
                self._gathered.reads(place, pool.reads(load, parts, begin, base))
        self._gathered.transaction(load, arrival, base)
        if len(self._gathered) >= self._at_once:
            self.flush()

    def _part(self, target: LoadShape, applied: Applied) -> int:
        """Gathers a part of a transaction; the place of its price."""
        state = self._state(target.table)
        state.note(applied, 2 if target.kind == "update" else 1)
        part = part_of(applied, state)
        place = self._place(part)
        state.change(target.kind, applied.rows)
        numbers = applied.events, applied.rows, applied.statements
        totals = self.parts.of(part_kind(target, *numbers))
        totals.add(1, *numbers, applied.row_bytes, applied.distinct_values)
        self._gathered.part(place, applied.row_bytes)
        return place

    def flush(self) -> None:
        """Applies the transactions that were gathered, in every scenario."""
        gathered = self._gathered
        if not gathered:
            return
        self._make_known()
        self._apply(gathered.loads, gathered.turns, gathered.parts)
        gathered.clear()

    def add_batch(self, batch: LoadBatch) -> None:
        """Takes in many plain transactions, as `add` would one after the other."""
        from applier.forecast.lag import batch_parts  # NumPy is an extra

        self.flush()
        if self._batches is None:
            self._batches = batch_parts.BatchReader(self._state, self._place, self.parts)
        one_by_one = bool(self._pools) or self._gathered.needs_databases
        parts = None if one_by_one else self._batches.read(batch)
        if parts is None:
            for load in batch:
                self.add(load)
            return
        arrival = array("d", map(self._tick, commit_times(batch).tolist()))
        self.servers.update(batch_parts.servers_of(batch))
        self.rows += parts.rows
        found = parts.for_steps()
        turns = batch_parts.turns_of(
            batch, parts, arrival, self._transaction, self._gathered.domain_places
        )
        self._make_known()
        self._apply(batch, turns, lambda pool: found)

    def _make_known(self) -> None:
        """The scenarios have room for all tables, databases and domains so far."""
        gathered = self._gathered
        for run in self.runs:
            run.know_tables(self._charges.count)
            for clock in (run.clock, run.saturated):
                clock.know_databases(len(gathered.database_places))
                clock.know_domains(len(gathered.domain_places))

    def _apply(
        self,
        loads: LoadRun,
        turns: steps.Turns,
        parts_for: Callable[[int | None], steps.Parts],
    ) -> None:
        """Applies transactions in every scenario, hands them on, and keeps those that take
        longest."""
        # Transactions come in batches from large files only.
        do = steps_for(self.transactions, is_large=self._batches is not None)
        count = len(loads)
        ready = self.ready(self.first_commit)
        for run in self.runs:
            run.numbers.numbers[steps.READY] = ready
            parts = parts_for(run.pool_place)
            outcome = steps.Outcomes(
                *(array("d", bytes(8 * count)) for _ in steps.Outcomes._fields)
            )
            do.apply(turns, parts, run.prices, run.numbers, outcome)
            if run is self.base:
                do.charge(turns, parts, run.prices, run.numbers, outcome, self._charges.numbers)
                self._keep(loads, turns, parts, outcome)
        if len(self._priced) >= MOST_PARTS:
            self._forget_prices()

    def _keep(
        self, loads: LoadRun, turns: steps.Turns, parts: steps.Parts, outcome: steps.Outcomes
    ) -> None:
        worst, base, tables = self._worst, self.base, self._charges.names
        for at in worst.candidates(outcome.seconds):
            if outcome.seconds[at] > worst.threshold:
                by_table: dict[str, float] = {}
                for part in range(turns.part_end[at - 1] if at else 0, turns.part_end[at]):
                    table = tables[base.prices.table[parts.price[part]]]
                    by_table[table] = by_table.get(table, 0.0) + base.part_seconds(
                        parts, part, outcome.splits[at]
                    )
                worst.keep(
                    loads[at], outcome.seconds[at], outcome.lookup[at], outcome.lag[at], by_table
                )
        for keeper in self.keepers:
            keeper.take_all(loads, outcome.seconds)

    def add_all(
        self,
        loads: Iterable[TransactionLoad | LoadBatch],
        tick: Callable[[int], None] | None = None,
    ) -> None:
        """Takes in transactions in the order of the log. `tick` gets the number so far, now and
        then."""
        ticked = 0
        for found in loads.batches() if isinstance(loads, LoadReader) else loads:
            if isinstance(found, LoadBatch):
                self.add_batch(found)
            else:
                self.add(found)
            if tick is not None and self.transactions >= ticked + 10_000:
                ticked = self.transactions
                tick(ticked)
        self.flush()

    def note(self, text: str, times: int = 1) -> None:
        """Something that was left out or assumed, and how often."""
        self.notes[text] = self.notes.get(text, 0) + times

    def assumptions(self) -> list[str]:
        """What the forecast takes for granted since nobody said, in the order it was met."""
        found = dict.fromkeys(
            [*self.assumed, *(text for run in self.runs for text in run.pricer.assumptions)]
        )
        changed = self.parts.tables
        for table, state in self.states.items():
            facts = self.facts.get(table)
            if table not in changed:  # DDL alone named it
                continue
            if facts is not None and facts.has_unread_texts:
                what = f"no time is counted for the FULLTEXT index of {table}"
                found[f"{what}; a server takes some for each word"] = None
            if facts is None:
                found[f"{table} has a primary key; the schema does not have this table"] = None
            elif facts.rows_from == ASSUMED and state.is_assumed:
                rows = f"{state.most_rows:,.0f} row{'s' * (state.most_rows != 1)}"
                what = f"{table} has {rows}, the number that the log shows"
                found[
                    f"{what}; if it has more, finding rows takes longer (give --rows {table}=N)"
                ] = None
            else:
                found |= dict.fromkeys(facts.doubts)
        if self._borrowed is not None and any(
            self._borrowed in table.algorithms for table in self.tables.values()
        ):
            what = f"a {self._borrowed} was not measured on {self.calibration.server_version}"
            found[f"{what}: a row of it costs as much as one of the other scan"] = None
        if self.steps_back:
            what = (
                f"the log's clock goes back {self.steps_back} times, {self.longest_step_back:,.3f}"
                " s at most"
            )
            found[
                f"{what}: a transaction counts as committed no earlier than the one before it"
            ] = None
        if self.statements:
            text = f"{self.statements} statements in the log's text take as long as on the source"
            if not self.follows_definitions:
                text += "; columns, keys and partitions that they change are not followed"
            found[text] = None
        return list(found)

    def _tick(self, commit: float) -> float:
        """When the next transaction counts as committed."""
        if not self.transactions:
            self.first_commit = self.last_commit = commit
        self.transactions += 1
        if commit < self.last_commit:
            self.steps_back += 1
            self.longest_step_back = max(self.longest_step_back, self.last_commit - commit)
        else:
            self.last_commit = commit
        return self.last_commit

    def _state(self, table: str) -> TableState:
        state = self.states.get(table)
        if state is None:
            facts = self.facts.get(table)
            state = self.states[table] = TableState(None if facts is None else facts.rows)
            state.is_keyed = self._is_keyed(facts)
        return state

    def _is_keyed(self, facts: TableFacts | None) -> bool:
        """Whether changed rows of a table are found by its primary key, in all scenarios."""
        has_key = facts is not None and facts.definition.primary is not None
        return has_key and self._uses_keys

    def _follow(self, fate: TableFate) -> None:
        """DDL empties a table, or all of a database, or gives it another name."""
        if fate.renamed_to:
            moved, there = self._state(fate.table), self._state(fate.renamed_to)
            self.states[fate.table] = moved.renamed(there)
            self.states[fate.renamed_to] = moved
            return
        tables = [fate.table]
        if fate.database:
            tables = [one for one in {**self.facts, **self.states} if fate.is_in_database(one)]
        for table in tables:
            state = self._state(table)
            if not (fate.if_missing and state.exists):
                state.empty(is_known=fate.is_known, exists=fate.exists)

    def _place(self, part: Part) -> int:
        """Where a part's prices stand."""
        place = self._priced.get(part)
        return self._price(part) if place is None else place

    def _price(self, part: Part) -> int:
        """Prices a part in every scenario; the place of its prices."""
        asked: dict[Scenario, Work] = {}
        for run in self.runs:
            if run.work not in asked:
                asked[run.work] = run.pricer.work(part)
        place = self._priced[part] = len(self._priced)
        if part.target.facts is not None:
            self.facts[part.target.table] = part.target.facts
            self.states[part.target.table].is_keyed = self._is_keyed(part.target.facts)
        table = self._charges.place(part.target.table)
        for run in self.runs:
            price = run.pricer.price_of(asked[run.work])
            pair = (
                self._charges.pair(part.target.table, price.algorithm) if run is self.base else -1
            )
            row = (
                price.seconds,
                price.lookup,
                price.byte_seconds,
                price.reads,
                table,
                pair,
                part.events,
                part.changed,
                self._scanned_place(run, part.target.table, price.algorithm),
                price.marked,
                price.leaves_history,
                price.splits,
                price.crowding,
            )
            columns: tuple[array[Any], ...] = run.prices
            for column, value in zip(columns, row, strict=True):
                column.append(value)
        for pool in self._pools:
            pool.touches.append(asked[pool.run.work].touches)
        return place

    def _scanned_place(self, run: ScenarioRun, table: str, algorithm: str) -> int:
        """The number of a table that is scanned, whose rows are then locked; -1 if it is not."""
        is_scan = algorithm != NOT_NEEDED and strategy_named(algorithm).scans
        if not is_scan or run.scenario.found_at_once:
            return -1
        place = self._scanned.setdefault(table, len(self._scanned))
        run.clock.know_scanned(place + 1)
        run.saturated.know_scanned(place + 1)
        return place

    def _forget_prices(self) -> None:
        self._priced.clear()
        for run in self.runs:
            for column in run.prices:
                del column[:]
        for pool in self._pools:
            pool.touches.clear()
