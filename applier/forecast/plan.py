"""A forecast from its options: which scenarios there are, where transactions come from, and which calibration is used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from applier.error_codes import Code
from applier.errors import UsageError
from applier.forecast.calibration import Calibration, default_calibration, load_calibration
from applier.forecast.facts import TableFacts, with_rows
from applier.forecast.loads import LoadReader, Schema, TransactionLoad
from applier.forecast.run import Forecast
from applier.forecast.scenario import Scenario, what_if
from applier.forecast.summary import summarize
from applier.options import row_search_of
from applier.server_versions import asked_rules, found_rules, remark
from lookup.table import Key, TableDefinition
from lookup.versions import NEWEST, ServerRules

DEFAULT_WHAT_IFS = ("primary-key",)


@dataclass(frozen=True)
class Plan:
    """What to forecast: the options of `binlag forecast`, read.

    `loads` stands in for `files` where there is no log. `facts`: "database.table" -> what is known of the table on the replica.
    `server`, `row_search`: the replica's, None for the log's own and the version's default. `row_counts`: "D.T=N" each.
    `workers`, `preserve_order`: replica_parallel_workers, replica_preserve_commit_order. `what_ifs`: other scenarios, in the words of
    --what-if. `placement`: from which part of a table rows are drawn in scan order, 0 and 1 for anywhere.
    """

    files: Sequence[str] = ()
    loads: Iterable[TransactionLoad] | None = None
    facts: Mapping[str, TableFacts] | None = None
    server: str | None = None
    row_search: str | None = None
    row_counts: Sequence[str] = ()
    calibration: str | Calibration | None = None
    workers: int = 1
    preserve_order: bool = True
    what_ifs: Sequence[str] = DEFAULT_WHAT_IFS
    placement: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Forecasted:
    """A forecast that is done; `summary` is what --json prints."""

    forecast: Forecast
    what_ifs: int

    def summary(self) -> dict[str, Any]:
        """What --json prints. Seconds throughout."""
        runs = self.forecast.runs
        return summarize(self.forecast, ideal=runs[1], low=runs[2], high=runs[3], what_ifs=runs[4 : 4 + self.what_ifs])


def run(plan: Plan, tick: Callable[[int], None] | None = None) -> Forecasted:
    """Reads the log once, and prices each transaction in every scenario. `tick` gets the transactions so far, now and then.

    Raises InputError for a log or calibration that cannot be read, UsageError for options that do not fit.
    """
    rules, remarks = _rules(plan)
    base = Scenario("as it is", rules, row_search_of(plan.row_search, plan.server), plan.workers, plan.preserve_order)
    facts = with_rows(dict(plan.facts or {}), plan.row_counts)
    reader = LoadReader(plan.files, schema=_schema(facts, base)) if plan.loads is None else None
    calibration, notes = _calibration(plan.calibration, base)
    scenarios = [
        base,
        replace(base, name="rows found at once", found_at_once=True),
        replace(base, name="low", factor=max(1 - calibration.spread, 0.1)),
        replace(base, name="high", factor=1 + calibration.spread),
        *(what_if(text, base) for text in plan.what_ifs or DEFAULT_WHAT_IFS),
    ]
    unknown = sorted({table for one in scenarios for table in one.tables or () if table not in facts})
    if unknown:
        raise UsageError(f"--what-if: the schema has no table {unknown[0]!r}", code=Code.UNKNOWN_TABLE)
    forecast = Forecast(scenarios, facts, calibration, placement=plan.placement)
    forecast.add_all(reader if reader is not None else plan.loads or (), tick)
    if plan.facts is not None and forecast.states and not forecast.states.keys() & facts.keys():
        raise UsageError(f"--schema: it has none of the log's tables, {min(forecast.states)} for one", code=Code.NO_TABLES)
    for note in remarks + notes:
        forecast.note(note)
    for note, times in (reader.notes if reader is not None else {}).items():
        forecast.note(note, times)
    if not forecast.transactions:
        forecast.note("the log holds no complete transaction")
    return Forecasted(forecast, len(scenarios) - 4)


def _version(files: Sequence[str]) -> str:
    """The server that wrote the log; the latest for a log that does not begin."""
    reader = LoadReader(files)
    next(iter(reader), None)
    return reader.server_version or NEWEST


def _rules(plan: Plan) -> tuple[ServerRules, list[str]]:
    """The replica's rules, and what is to be said of its version."""
    if plan.server is not None:
        rules, said = asked_rules(plan.server), remark(plan.server, "--server")
    else:
        version = _version(plan.files) if plan.loads is None else NEWEST
        rules, said = found_rules(version, "the log"), remark(version, "the log")
    return rules, [said] if said is not None else []


def _calibration(given: str | Calibration | None, base: Scenario) -> tuple[Calibration, list[str]]:
    """The calibration, and what is to be said of it."""
    if given is None:
        calibration = default_calibration(base.rules.name)
        where = f"{calibration.server_version} on {calibration.machine}"
        notes = [f"no --calibration: prices of {where}; binlag measure gives those of your machine"]
    else:
        calibration = given if isinstance(given, Calibration) else load_calibration(given)
        notes = []
    if calibration.rules_name != base.rules.name:
        notes.append(f"the calibration is of {calibration.server_version}, the replica of {base.rules.name}: seconds are a guess")
    return calibration, notes


def _schema(facts: Mapping[str, TableFacts], base: Scenario) -> Schema:
    """What the reader looks at to count distinct key values."""

    def rows_per_value(definition: TableDefinition, key: Key) -> float:
        return facts[definition.full_name].rows_per_value(key)

    return Schema({name: one.definition for name, one in facts.items()}, base.rules, base.row_search, rows_per_value)
