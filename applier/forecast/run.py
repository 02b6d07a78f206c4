"""The forecast itself: one pass over a log's transactions, each priced in every scenario, each scenario with a clock of its own."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from applier.forecast.calibration import Calibration
from applier.forecast.facts import ASSUMED, TableFacts
from applier.forecast.lag import LagCurve, clock
from applier.forecast.loads import Target, TransactionLoad
from applier.forecast.pricing import Part, Price, Pricer, TableState, part_of
from applier.forecast.scenario import Scenario
from applier.forecast.units import borrowed
from lookup.decision import NOT_NEEDED

MOST_PARTS = 200_000
"""Priced parts that are kept; then all are forgotten and priced anew."""
WORST = 10
NEVER = "never"


@dataclass(slots=True)
class TableCost:
    """What one table costs in one scenario, in seconds. `lag` is the highest with which one of its transactions was committed."""

    table: str
    seconds: float = 0.0
    lookup: float = 0.0
    events: int = 0
    rows: int = 0
    reads: float = 0.0
    lag: float = 0.0
    algorithms: dict[str, float] = field(default_factory=dict)

    def as_dict(self, total: float) -> dict[str, Any]:
        """For JSON; `total` seconds are those of all tables."""
        return {
            "table": self.table,
            "seconds": self.seconds,
            "share": self.seconds / total if total else 0.0,
            "lookup_seconds": self.lookup,
            "events": self.events,
            "rows": self.rows,
            "rows_read": self.reads,
            "max_lag_seconds": self.lag,
            "algorithms": sorted(self.algorithms, key=lambda name: -self.algorithms[name]),
        }


@dataclass(frozen=True, slots=True)
class WorstTransaction:
    """A transaction and what it takes. `commit_time` is the source's, `lag` that with which the replica commits it."""

    file: str
    position: int
    gtid: str | None
    commit_time: float
    seconds: float
    lookup: float
    lag: float
    rows: int
    events: int
    tables: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "file": self.file,
            "pos": self.position,
            "gtid": self.gtid,
            "commit_time": self.commit_time,
            "seconds": self.seconds,
            "lookup_seconds": self.lookup,
            "lag_seconds": self.lag,
            "rows": self.rows,
            "events": self.events,
            "tables": list(self.tables),
        }


class ScenarioRun:
    """One scenario while the log goes by. `seconds` is the applying, on one worker; `lookup` the part that finds rows."""

    def __init__(self, scenario: Scenario, pricer: Pricer) -> None:
        self.scenario = scenario
        self.pricer = pricer
        self.clock = clock(scenario.workers, preserve_order=scenario.preserve_order)
        self.saturated = clock(scenario.workers, preserve_order=scenario.preserve_order) if scenario.workers > 1 else None
        self.curve = LagCurve()
        self.tables: dict[str, TableCost] = {}
        self.seconds = self.lookup = 0.0
        self.done = 0.0
        self.end_lag = 0.0
        self.span = 0.0
        self._worst: list[tuple[float, int, WorstTransaction]] = []
        self._count = 0

    def take(self, load: TransactionLoad, arrival: float, seconds: float, lookup: float) -> float:
        """Applies a transaction; returns the lag with which it is committed."""
        done = self.clock.take(arrival, seconds, load.last_committed, load.sequence_number)
        if self.saturated is not None:
            self.span = self.saturated.take(0.0, seconds, load.last_committed, load.sequence_number)
        else:
            self.span += seconds
        self.seconds += seconds
        self.lookup += lookup
        self.curve.add(arrival, min(max(self.done, arrival), done), done)
        if done > self.done:
            self.done = done
        self.end_lag = self.done - arrival
        self._count += 1
        lag = done - arrival
        if len(self._worst) < WORST or seconds > self._worst[0][0]:
            self._note(load, seconds, lookup, lag)
        return lag

    def charge(self, part: Part, price: Price, seconds: float, lag: float) -> None:
        """Puts a part's cost down to its table."""
        name = part.target.table
        table = self.tables.get(name) or self.tables.setdefault(name, TableCost(name))
        table.seconds += seconds
        table.lookup += price.lookup
        table.reads += price.reads
        table.events += part.events
        table.rows += part.changed
        if lag > table.lag:
            table.lag = lag
        if price.algorithm != NOT_NEEDED:
            table.algorithms[price.algorithm] = table.algorithms.get(price.algorithm, 0.0) + seconds

    def _note(self, load: TransactionLoad, seconds: float, lookup: float, lag: float) -> None:
        worst = WorstTransaction(
            load.file, load.position, load.gtid, load.commit_time, seconds, lookup, lag, load.rows, load.rows_events, load.tables
        )
        item = (seconds, -self._count, worst)
        if len(self._worst) < WORST:
            heapq.heappush(self._worst, item)
        else:
            heapq.heapreplace(self._worst, item)

    def worst(self) -> list[WorstTransaction]:
        """The transactions that take longest, the longest first."""
        return [item for _, _, item in sorted(self._worst, key=lambda one: (-one[0], -one[1]))]

    def utilisation(self, duration: float) -> float | None:
        """Seconds that the replica needs for a second of the log, were it never idle; None for a log without duration."""
        return self.span / duration if duration > 0 else None

    def catch_up(self, duration: float) -> float | str:
        """Seconds after the log's end until the replica is level, with traffic going on as it was; "never" when it cannot be."""
        load = self.utilisation(duration)
        if load is None:
            return self.end_lag
        return NEVER if load >= 1 else self.end_lag / (1 - load)


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
        self.facts = facts
        self.calibration = calibration
        prices, self._borrowed = borrowed(calibration.prices)
        self.runs = [ScenarioRun(scenario, Pricer(scenario, facts, prices, placement)) for scenario in scenarios]
        self.transactions = 0
        self.rows = 0
        self.first_commit = self.last_commit = 0.0
        self.steps_back = 0
        self.longest_step_back = 0.0
        self.statements = 0
        self.notes: dict[str, int] = {}
        self.states: dict[str, TableState] = {}
        self.targets: dict[Target, list[int]] = {}
        """Target -> [events, rows]: which event is typical, for the reasons."""
        self._priced: dict[Part, list[Price]] = {}
        self._transaction = prices["transaction"]

    @property
    def base(self) -> ScenarioRun:
        """The replica as it is."""
        return self.runs[0]

    @property
    def duration(self) -> float:
        """Seconds from the first commit on the source to the last."""
        return max(self.last_commit - self.first_commit, 0.0)

    def add(self, load: TransactionLoad) -> None:
        """Takes in the next transaction of the log."""
        if not load.complete:
            self.note(f"the transaction that starts at {load.file}:{load.position} is not complete; it is left out")
            return
        arrival = self._tick(load.commit_time)
        self.transactions += 1
        self.rows += load.rows
        self.statements += load.statements
        parts = []
        for target, applied in load.applied.items():
            state = self.states.get(target.table) or self._state(target.table)
            state.note(applied, 2 if target.kind == "update" else 1)
            part = part_of(applied, state)
            prices = self._priced.get(part) or self._price(part)
            parts.append((part, prices, applied.row_bytes))
            state.change(target.kind, applied.rows)
            seen = self.targets.get(target) or self.targets.setdefault(target, [0, 0])
            seen[0] += applied.events
            seen[1] += applied.rows
        base = self._transaction + load.statement_seconds
        for at, run in enumerate(self.runs):
            seconds, lookup = base * run.scenario.factor, 0.0
            for _, prices, row_bytes in parts:
                price = prices[at]
                seconds += price.seconds + row_bytes * price.byte_seconds
                lookup += price.lookup
            lag = run.take(load, arrival, seconds, lookup)
            if not at:
                for part, prices, row_bytes in parts:
                    run.charge(part, prices[0], prices[0].seconds + row_bytes * prices[0].byte_seconds, lag)

    def add_all(self, loads: Iterable[TransactionLoad], tick: Callable[[int], None] | None = None) -> None:
        """Takes in transactions in the order of the log. `tick` gets the number so far, once in 10,000."""
        for load in loads:
            self.add(load)
            if tick is not None and not self.transactions % 10_000:
                tick(self.transactions)

    def note(self, text: str, times: int = 1) -> None:
        """Something that was left out or assumed, and how often."""
        self.notes[text] = self.notes.get(text, 0) + times

    def assumptions(self) -> list[str]:
        """What the forecast takes for granted since nobody said, in the order it was met."""
        found = dict.fromkeys(text for run in self.runs for text in run.pricer.assumptions)
        for table, state in self.states.items():
            facts = self.facts.get(table)
            if facts is None:
                found[f"{table} is not in the schema: it counts as having a primary key"] = None
            elif facts.rows_from == ASSUMED:
                shown = f"only those that the log shows count, {state.rows:,.0f}"
                found[f"nobody said how many rows {table} has: {shown} (--rows {table}=N)"] = None
        if self._borrowed is not None and any(self._borrowed in table.algorithms for table in self.base.tables.values()):
            what = f"a {self._borrowed} was not measured on {self.calibration.server_version}"
            found[f"{what}: a row of it costs as much as one of the other scan"] = None
        if self.steps_back:
            what = f"the log's clock goes back {self.steps_back} times, {self.longest_step_back:,.3f} s at most"
            found[f"{what}: a transaction counts as committed no earlier than the one before it"] = None
        if self.statements:
            what = f"{self.statements} statements in the log's text take as long as on the source"
            found[f"{what}; a schema that they change is not followed"] = None
        return list(found)

    def _tick(self, commit: float) -> float:
        if not self.transactions:
            self.first_commit = self.last_commit = commit
        if commit < self.last_commit:
            self.steps_back += 1
            self.longest_step_back = max(self.longest_step_back, self.last_commit - commit)
        else:
            self.last_commit = commit
        return self.last_commit

    def _state(self, table: str) -> TableState:
        facts = self.facts.get(table)
        state = self.states[table] = TableState(None if facts is None else facts.rows)
        return state

    def _price(self, part: Part) -> list[Price]:
        if len(self._priced) >= MOST_PARTS:
            self._priced.clear()
        prices = self._priced[part] = [run.pricer.price(part) for run in self.runs]
        return prices
