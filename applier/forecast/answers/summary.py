"""A forecast as plain data: what `binlag forecast --json` prints and the report draws. Times in
seconds, points in time since 1970."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from applier.forecast.answers.words import duration
from applier.forecast.inventory.facts import ASSUMED, FROM_LOG
from applier.forecast.lag.costs import TableCost
from applier.forecast.lag.run import Forecast
from applier.forecast.lag.scenario_run import ScenarioRun
from applier.forecast.prices.heat import heat
from applier.forecast.workload.transaction_load import LoadShape
from applier.tables.suggestion import suggestion
from lookup.decision import decide
from lookup.reasons import about_used_key, hash_verdict, key_sentence, reasons
from lookup.table_shape import EventShape

OFFENDING_SHARE = 0.1
"""A table offends when it takes at least this share of all applying; the first one always does."""


@dataclass(frozen=True, slots=True)
class Offender:
    """A table that puts the replica further behind than allowed."""

    table: str
    lag: float
    share: float
    why: str

    def __str__(self) -> str:
        return (
            f"{self.table}: {duration(self.lag)} behind, {self.share:.0%} of the applying;"
            f" {self.why}"
        )


def scenario_dict(run: ScenarioRun, log_seconds: float) -> dict[str, Any]:
    """One scenario, for JSON; the log lasts `log_seconds`."""
    return {
        "name": run.scenario.name,
        "workers": run.scenario.workers,
        "peak_lag_seconds": run.curve.peak,
        "peak_at": run.curve.peak_at,
        "end_lag_seconds": run.end_lag,
        "catch_up_seconds": run.catch_up(log_seconds),
        "utilisation": run.utilisation(log_seconds),
        "capacity": log_seconds / run.span if run.span and log_seconds else None,
        "span_seconds": run.span,
        "apply_seconds": run.seconds,
        "lookup_seconds": run.lookup,
        "page_reads": run.page_reads,
        "page_read_seconds": run.page_seconds,
        "redo_log_writes": run.redo_writes,
        "redo_log_seconds": run.redo_seconds,
        "table_opens": run.table_opens,
        "table_open_seconds": run.table_open_seconds,
        "retries": run.retries,
    }


def _texts(forecast: Forecast) -> dict[str, float]:
    """What FULLTEXT indexes ask of the replica as it is."""
    found = [
        forecast.base.pricer.texts(kind.target, totals.rows)
        for kind, totals in forecast.parts.totals.items()
    ]
    return {
        "texts": sum(texts for texts, _ in found),
        "text_seconds": sum(seconds for _, seconds in found),
    }


def summarize(
    forecast: Forecast,
    *,
    low: ScenarioRun,
    high: ScenarioRun,
    ideal: ScenarioRun,
    what_ifs: Sequence[ScenarioRun],
) -> dict[str, Any]:
    """The whole forecast, for JSON: as it is, with the ends of the prices' intervals, with rows
    found at once, and the what-ifs."""
    base, log_seconds = forecast.base, forecast.duration
    tables = sorted(forecast.tables.values(), key=lambda table: -table.seconds)
    calibration = forecast.calibration
    return {
        "transactions": forecast.transactions,
        "rows": forecast.rows,
        "first_commit": forecast.first_commit,
        "last_commit": forecast.last_commit,
        "log_seconds": log_seconds,
        "server": base.scenario.rules.name,
        "replica": (
            scenario_dict(base, log_seconds)
            | _texts(forecast)
            | {"settings": forecast.conditions.as_dict() if forecast.conditions else {}}
        ),
        "conditions": forecast.conditions.sentence() if forecast.conditions else "",
        "margin": forecast.margin,
        "peak_low_seconds": low.curve.peak,
        "peak_high_seconds": high.curve.peak,
        "without_lookup": scenario_dict(ideal, log_seconds),
        "what_if": [scenario_dict(run, log_seconds) for run in what_ifs],
        "tables": [
            table.as_dict(base.seconds)
            | {
                "reasons": [reason.as_dict() for reason in table_reasons(forecast, table.table)],
                "hash_scan": verdicts(forecast, table.table),
                "why": why(forecast, table.table),
                "suggestion": _suggestion(forecast, table),
                "table_rows": forecast.states[table.table].most_rows,
                "table_rows_from": _rows_from(forecast, table.table),
            }
            for table in tables
        ],
        "besides_tables": [
            {
                "name": name,
                "seconds": seconds,
                "share": seconds / base.seconds if base.seconds else 0.0,
            }
            for name, seconds in forecast.besides_tables.items()
        ],
        "worst": [worst.as_dict() for worst in forecast.worst],
        "curve": {
            "width_seconds": base.curve.width,
            "points": [[time, lag] for time, lag in base.curve],
        },
        "curves": {run.scenario.name: [[time, lag] for time, lag in run.curve] for run in what_ifs},
        "calibration": {
            "source": calibration.source,
            "server_version": calibration.server_version,
            "target": calibration.target,
            "machine": calibration.machine,
            "date": calibration.date,
            "median_error": calibration.residuals.unseen_median,
            "p90_error": calibration.spread,
        },
        "heat": _heat(forecast, tables[0].table) if tables else None,
        "assumptions": forecast.assumptions(),
        "notes": forecast.notes,
    }


def _heat(forecast: Forecast, table: str) -> dict[str, Any]:
    """The table that costs most, had it another key, or its events another number of rows."""
    state = forecast.states[table]
    rows = max(state.usual_rows, 1.0)
    columns = max(target.columns for target in forecast.parts.targets(table))
    return {
        "table": table,
        "rows": rows,
        "cells": heat(forecast.base.pricer.prices, rows, state.row_bytes, columns),
    }


def _rows_from(forecast: Forecast, table: str) -> str:
    """Who said how many rows the table has; ASSUMED when nobody did."""
    facts = forecast.facts.get(table)
    found = ASSUMED if facts is None else facts.rows_from
    return found if found != ASSUMED or forecast.states[table].is_assumed else FROM_LOG


def _typical(forecast: Forecast, table: str) -> list[tuple[LoadShape, EventShape]]:
    """For updates and deletes of a table: the images that most events have, and the mean event."""
    found = {}
    facts, state = forecast.facts.get(table), forecast.states[table]
    of_table = forecast.parts.targets(table).items()
    for kind in ("update", "delete"):
        targets = [(target, seen) for target, seen in of_table if target.kind == kind]
        if not targets:
            continue
        events, rows, statements, values = (
            sum(getattr(seen, name) for _, seen in targets)
            for name in ("events", "rows", "statements", "values")
        )
        if rows:
            each = max(rows / max(events, 1), 1.0)
            own = None if facts is None or each > 1 else facts.own_rows.get(kind)
            place = (0.0, 1.0) if own is None else (own.mean_place(state.usual_rows),) * 2
            event = EventShape(
                kind, each, first=place[0], last=place[1],
                distinct_values=min(max(values / events, 1.0), each) if values else None,
                statement_events=max(events / max(statements, 1), 1.0),
            )  # fmt: skip
            found[kind] = max(targets, key=lambda item: item[1].events)[0], event
    return list(found.values())


def table_reasons(forecast: Forecast, table: str) -> list[Any]:
    """Why the table's rows are expensive to find; empty when they are not, or when the schema lacks
    the table."""
    facts = forecast.facts.get(table)
    if facts is None:
        return []
    scenario, state, found = forecast.base.scenario, forecast.states[table], {}
    for target, event in _typical(forecast, table):
        columns = tuple(at for at in target.before if at < len(facts.definition.columns))
        told = reasons(
            facts.definition, columns, event, scenario.rules, scenario.row_search,
            rows=max(state.usual_rows, event.rows), rows_per_value=facts.statistics,
            met=facts.met_rows,
        )  # fmt: skip
        found.update(
            {
                (reason.code, reason.key): reason
                for reason in told
                if (reason.code, reason.key) not in found
            }
        )
    return list(found.values())


def _suggestion(forecast: Forecast, cost: TableCost) -> dict[str, Any] | None:
    """What to do for a table whose rows are looked for, for JSON; None where nothing is to be done
    or the schema lacks the table."""
    facts, scenario = forecast.facts.get(cost.table), forecast.base.scenario
    if facts is None or not cost.algorithms:
        return None
    found = suggestion(facts.definition, scenario.rules, scenario.row_search)
    return None if found is None else found.as_dict() | {"lines": found.lines}


def verdicts(forecast: Forecast, table: str) -> list[str]:
    """Whether HASH_SCAN helps, for updates and for deletes of the table."""
    told = []
    if table not in forecast.facts:
        return []
    for target, event in _typical(forecast, table):
        state = forecast.states[table]
        rows = max(state.usual_rows, event.rows)
        shape = forecast.base.pricer.shape(target, rows, state.row_bytes)
        told.append(f"For {target.kind}s of {table}, {hash_verdict(shape, event).text}")
    return told


def why(forecast: Forecast, table: str) -> list[str]:
    """Sentences for people on a table whose rows are expensive to find: the key that is used, what
    it costs, whether hashing helps."""
    facts, scenario = forecast.facts.get(table), forecast.base.scenario
    found = table_reasons(forecast, table)
    if facts is None or not found:
        return []
    told = []
    for target, _ in _typical(forecast, table):
        columns = tuple(at for at in target.before if at < len(facts.definition.columns))
        decision = decide(
            facts.definition, columns, scenario.rules, scenario.row_search, facts.statistics
        )
        told += (
            [key_sentence(facts.definition, decision, scenario.rules)]
            if decision.key is not None
            else []
        )
        told += [reason.text for reason in about_used_key(found, decision)]
    return list(dict.fromkeys([*told, *verdicts(forecast, table)]))


def offenders(forecast: Forecast, limit: float) -> list[Offender]:
    """The tables to name when the replica falls further behind than `limit` seconds; empty when it
    does not."""
    base = forecast.base
    if base.curve.peak <= limit:
        return []
    tables = sorted(forecast.tables.values(), key=lambda table: -table.seconds)
    found = []
    for number, table in enumerate(tables):
        share = table.seconds / base.seconds if base.seconds else 0.0
        if number and (share < OFFENDING_SHARE or table.lag <= limit):
            continue
        told = table_reasons(forecast, table.table)
        large = "its transactions are large; its rows are found by a good key"
        text = told[0].text.removesuffix(".") if told else large
        found.append(Offender(table.table, table.lag, share, text))
    return found or [
        Offender("no table", base.curve.peak, 0.0, "statements in the log's text take that long")
    ]
