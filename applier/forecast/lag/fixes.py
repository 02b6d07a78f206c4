"""What to do, in order: keys for tables and settings, each with the seconds that it takes off the
time to apply the log.

The order is greedy: first what gains most by itself, then what gains most beside that. Each step is
a forecast of the sample
of the log with the fixes so far and one more; the log is not read again. What gains nothing beside
the others is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from applier.forecast.lag.run import Forecast
from applier.forecast.prices.scenario import AddedKey, Scenario
from applier.forecast.prices.settings import SOURCE, TABLE_CACHE, settings
from applier.forecast.workload.load_sample import LoadSample
from applier.tables.suggestion import suggestion
from lookup.table_shape import PRIMARY

LEAST_SHARE = 0.01
"""Of the time to apply the log: what gains less is left out."""
MOST_TABLES = 20
MOST_FIXES = 12
AS_GOOD = 0.05
"""Of several values of a setting the most modest one is taken that gains all but this share of what
the best one gains."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that could be done. `table` is None for a setting; `where` is the server that `sql`
    is run on."""

    name: str
    table: str | None
    what: str
    where: str
    sql: str
    notes: tuple[str, ...]
    change: Callable[[Scenario], Scenario]


@dataclass(frozen=True, slots=True)
class Fix:
    """Something to do. Seconds off the time to apply the whole log: by this alone, and by this and
    the fixes before it."""

    candidate: Candidate
    gain: float
    gain_with_those_before: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        one = self.candidate
        return {
            "table": one.table,
            "setting": None if one.table else one.name,
            "what": one.what,
            "where": one.where,
            "sql": one.sql,
            "notes": list(one.notes),
            "gain_seconds": self.gain,
            "gain_seconds_with_those_before": self.gain_with_those_before,
        }


def fixes(
    forecast: Forecast, sample: LoadSample, placement: tuple[float, float] = (0.0, 1.0)
) -> list[Fix]:
    """The fixes for a replica whose forecast is done, in the order in which to do them."""
    return _Search(forecast, sample, placement).found()


def candidates(forecast: Forecast) -> list[Candidate]:
    """A key for each table whose rows take time to find, and the settings that differ."""
    base = forecast.base
    tables = sorted(forecast.tables.values(), key=lambda table: -table.lookup)[:MOST_TABLES]
    keys = [
        _key(forecast, table.table)
        for table in tables
        if table.lookup >= LEAST_SHARE * base.seconds
    ]
    others = [
        Candidate(one.name, None, one.what, one.where, one.sql, (), one.change)
        for one in settings(base.scenario)
        if one.name != TABLE_CACHE or base.table_opens
    ]
    return [key for key in keys if key is not None] + others


def _key(forecast: Forecast, table: str) -> Candidate | None:
    facts, scenario = forecast.facts.get(table), forecast.base.scenario
    found = (
        None if facts is None else suggestion(facts.definition, scenario.rules, scenario.row_search)
    )
    if found is None or found.sql is None:
        return None
    added = AddedKey(PRIMARY, table=table)
    notes = tuple(text for text in (found.duration, *found.notes) if text)
    return Candidate(
        table,
        table,
        found.finding,
        SOURCE,
        found.sql,
        notes,
        lambda one: replace(one, keys=(*one.keys, added)),
    )


class _Search:
    """Times of scenarios over the sample, and the greedy choice among candidates."""

    def __init__(
        self, forecast: Forecast, sample: LoadSample, placement: tuple[float, float]
    ) -> None:
        self.forecast = forecast
        self.placement = placement
        self.strata = sample.strata
        self.base = forecast.base.scenario
        self.whole = forecast.base.span

    def found(self) -> list[Fix]:
        left = candidates(self.forecast) if self.whole > 0 else []
        now, steps = self.base, list[tuple[Candidate, float]]()
        alone: Mapping[str, float] = {}
        while left and len(steps) < MOST_FIXES:
            gains = self._gains([one.change(now) for one in left])
            alone = alone or {one.sql: gain for one, gain in zip(left, gains, strict=True)}
            at = best_change(left, gains)
            before = steps[-1][1] if steps else 0.0
            if gains[at] - before < LEAST_SHARE * self.whole:
                break
            steps.append((left[at], gains[at]))
            now = left[at].change(now)
            left = [one for one in left if one.name != left[at].name]
        return [Fix(one, alone[one.sql], gain) for one, gain in steps]

    def _gains(self, scenarios: Sequence[Scenario]) -> list[float]:
        """Seconds that each scenario takes less for the whole log than the replica as it is."""
        totals = [0.0] * (len(scenarios) + 1)
        for stratum in self.strata:
            forecast = Forecast(
                [self.base, *scenarios],
                self.forecast.facts,
                self.forecast.calibration,
                placement=self.placement,
            )
            forecast.add_all(stratum)
            for at, run in enumerate(forecast.runs):
                totals[at] += run.span * stratum.weight
        base, *others = totals
        return [(base - total) / base * self.whole if base else 0.0 for total in others]


def best_change(left: Sequence[Candidate], gains: Sequence[float]) -> int:
    """The place of the one that gains most, or of a more modest value of the same setting that
    gains nearly as much."""
    best = max(range(len(left)), key=lambda at: gains[at])
    enough = gains[best] - AS_GOOD * abs(gains[best])  # each may cost more than it saves
    return next(
        at for at, one in enumerate(left) if one.name == left[best].name and gains[at] >= enough
    )
