"""A forecast from its options: which scenarios there are, where transactions come from, and which
calibration is used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from applier.binlog.selection.table_filter import EVERYTHING
from applier.error_codes import Code
from applier.errors import InputError, UsageError
from applier.forecast.answers.notebook import as_html, as_text
from applier.forecast.answers.summary import summarize
from applier.forecast.inventory.facts import TableFacts, table_bytes
from applier.forecast.inventory.redo_log import MOST_REDO, oldest_change_bytes
from applier.forecast.inventory.rows_file import with_counts
from applier.forecast.inventory.table_cache import TableCache
from applier.forecast.inventory.value_counts import CountRows
from applier.forecast.lag.compiled import compiled_steps
from applier.forecast.lag.fixes import fixes
from applier.forecast.lag.part_kinds import shape_rows
from applier.forecast.lag.run import Forecast
from applier.forecast.live.backlog import Backlog, behind_from_the_start
from applier.forecast.live.progress import ReplicaProgress
from applier.forecast.prices.calibration import (
    PAGE_READ,
    SYNC,
    Calibration,
    default_calibration,
    load_calibration,
)
from applier.forecast.prices.conditions import LIVE, OPTION, PRICES, Conditions, Live, conditions
from applier.forecast.prices.margin import margin
from applier.forecast.prices.scenario import Scenario, what_if
from applier.forecast.workload.bulk_loads import WORTH_COMPILING_BYTES, compiled_loads
from applier.forecast.workload.followed_definitions import FollowedDefinitions
from applier.forecast.workload.index_changes import log_bytes
from applier.forecast.workload.learned import Learned, learned
from applier.forecast.workload.load_batch import LoadBatch
from applier.forecast.workload.load_sample import LoadSample
from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.schema import Schema
from applier.forecast.workload.transaction_load import TransactionLoad
from applier.mysql.transaction_tally import check_filters
from applier.options import ReplayOptions, row_search_of
from applier.server_versions import asked_rules, found_rules, remark
from applier.spelling import did_you_mean
from lookup.versions import NEWEST, ServerRules, parse_row_search

DEFAULT_WHAT_IFS = ("primary-key",)
MUCH_REDO = 50_000_000
"""Bytes of a log whose changes may fill a redo log of 100 MiB."""
OTHER_SCHEMA = (
    "give the dump that the log belongs to; where the log makes its tables in a way that is not "
    "followed: binlag replay LOG --into URL, then --schema URL"
)


@dataclass(frozen=True)
class ForecastPlan:
    """What to forecast: the options of `binlag forecast`, read.

    `loads` stands in for `files` where there is no log. `facts`: "database.table" -> what is known
    of the table on the replica. `server`, `row_search`: the replica's, None for the log's own and
    the version's default. `row_counts`: "D.T=N" or "@FILE" each. `workers`, `preserve_order`:
    replica_parallel_workers, replica_preserve_commit_order; `settings`: more of the replica and its
    machine, by the names of `conditions.KINDS`; `live`: what a live replica says of them.
    `what_ifs`: other scenarios, in the words of --what-if. `placement`: from which part of a table
    rows are drawn in scan order, 0 and 1 for anywhere. `chosen`: what of the log counts, in the
    options of `LoadReader`. `progress`: how far a live replica is with these files; `behind`:
    seconds that a replica is behind when the log begins. `count_rows`: counts the replica's rows of
    a key value; None where there are none to be counted.
    """

    files: Sequence[str] = ()
    loads: Iterable[TransactionLoad | LoadBatch] | None = None
    facts: Mapping[str, TableFacts] | None = None
    server: str | None = None
    row_search: str | None = None
    row_counts: Sequence[str] = ()
    calibration: str | os.PathLike[str] | Calibration | None = None
    workers: int | None = None
    preserve_order: bool | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    live: Live | None = None
    what_ifs: Sequence[str] = DEFAULT_WHAT_IFS
    placement: tuple[float, float] = (0.0, 1.0)
    chosen: Mapping[str, Any] = field(default_factory=dict)
    progress: ReplicaProgress | None = None
    behind: float | None = None
    count_rows: CountRows | None = None


@dataclass(frozen=True, repr=False)
class Forecasted:
    """A forecast that is done, and the transactions that stand for its log; `summary` is what
    --json prints."""

    forecast: Forecast
    what_ifs: int
    sample: LoadSample
    plan: ForecastPlan
    backlog: Backlog | None = None

    def summary(self) -> dict[str, Any]:
        """What --json prints. Seconds throughout."""
        runs = self.forecast.runs
        told = summarize(
            self.forecast,
            ideal=runs[1],
            low=runs[2],
            high=runs[3],
            what_ifs=runs[4 : 4 + self.what_ifs],
        )
        told["fixes"] = [
            fix.as_dict() for fix in fixes(self.forecast, self.sample, self.plan.placement)
        ]
        return told | {"now": self.now()}

    def shapes(self) -> list[dict[str, Any]]:
        """Which kinds of work the log has, what takes most first; see `part_kinds.COLUMNS`."""
        return shape_rows(self.forecast.parts, self.forecast.states, self.forecast.base.pricer)

    def now(self) -> dict[str, Any] | None:
        """How far behind the replica is when the forecast begins, and when it will have caught up.
        None if that was not given."""
        if self.backlog is not None:
            return self.backlog.state(self.forecast)
        if self.plan.behind is None:
            return None
        return behind_from_the_start(self.forecast, self.plan.behind)

    def __repr__(self) -> str:
        """The answer on one screen."""
        return as_text(self.summary())

    def _repr_html_(self) -> str:
        """For notebooks: a table and a chart."""
        return as_html(self.summary())


def run(plan: ForecastPlan, tick: Callable[[int], None] | None = None) -> Forecasted:
    """Reads the log once, and prices each transaction in every scenario. `tick` gets the
    transactions so far, now and then.

    Raises InputError for a log or calibration that cannot be read, UsageError for options that do
    not fit.
    """
    start = _start(plan)
    base, calibration = start.base, start.calibration
    follows_ddl = plan.loads is None
    schema = _schema(plan, start.facts, base)
    known = learned(schema, plan.files, plan.count_rows, follows_ddl=follows_ddl)
    facts = known.facts
    reader = _reader(plan, known, base) if follows_ddl else None
    uncounted = [f"key `{key}` of {table}" for table, key in known.uncounted]
    spread, wider = margin(base, facts, calibration, uncounted)
    scenarios = [
        base,
        replace(base, name="rows found at once", found_at_once=True),
        replace(base, name="low", factor=1 / (1 + spread), in_turn=True),
        replace(base, name="high", factor=1 + spread),
        *_what_ifs(plan, base),
    ]
    unknown = sorted(
        {table for one in scenarios for table in one.named_tables if table not in facts}
    )
    if unknown:
        hint = did_you_mean(unknown[0], facts)
        raise UsageError(
            f"--what-if: the schema has no table {unknown[0]!r}", code=Code.UNKNOWN_TABLE, hint=hint
        )
    forecast = Forecast(scenarios, facts, calibration, placement=plan.placement)
    forecast.conditions, forecast.margin = start.known, spread
    forecast.follows_definitions = follows_ddl
    forecast.assumed.extend(
        [*calibration.assumed, *known.said, *wider, *_uncounted_redo(base, plan)]
    )
    forecast.keepers.append(sample := LoadSample())
    backlog = None
    if plan.progress is not None:
        backlog = Backlog(
            plan.progress,
            plan.files,
            Forecast([base], facts, calibration, placement=plan.placement),
        )
        forecast.keepers.append(backlog)
    if plan.behind is not None:
        late = plan.behind
        forecast.ready = lambda first_commit: first_commit + late
    forecast.add_all(reader if reader is not None else plan.loads or (), tick)
    changed = forecast.parts.tables
    if plan.facts is not None and changed and not changed & forecast.facts.keys():
        raise UsageError(
            f"the schema has none of the log's tables, such as {min(changed)}",
            code=Code.NO_TABLES,
            hint=OTHER_SCHEMA,
        )
    if not forecast.rows:
        _check_chosen(plan)
    for note in [*start.notes, *start.known.doubts, *([] if backlog is None else backlog.notes)]:
        forecast.note(note)
    if reader is not None:
        for note, times in {**reader.notes, **dict.fromkeys(reader.unmatched, 1)}.items():
            forecast.note(note, times)
    _note_other_source(plan, forecast)
    if not forecast.transactions:
        forecast.note("the log holds no complete transaction")
    return Forecasted(forecast, len(scenarios) - 4, sample, plan, backlog)


def _note_other_source(plan: ForecastPlan, forecast: Forecast) -> None:
    source = None if plan.live is None else plan.live.source_id
    if source is not None and forecast.servers and source not in forecast.servers:
        theirs = ", ".join(map(str, sorted(forecast.servers)))
        forecast.note(
            f"the log's transactions are of server_id {theirs}, the replica's source is {source}:"
            " it may be another's log"
        )


def _reader(plan: ForecastPlan, known: Learned, base: Scenario) -> LoadReader:
    """Reads the log from its beginning, and follows its DDL."""
    definitions = FollowedDefinitions(known.facts, base.rules.name, known.made)
    schema = _schema(plan, definitions.facts, base)
    return LoadReader(
        plan.files, schema=schema, tolerant=True, definitions=definitions, **plan.chosen
    )


def load_reader(
    plan: ForecastPlan, files: Sequence[str], start: int | None = None, stop: int | None = None
) -> LoadReader:
    """Reads a part of the log as `run` reads all of it; its transactions, one part after the other,
    can be the `loads` of a plan. They do not know what DDL of the parts before makes of keys."""
    start_of = _start(plan)
    schema = _schema(plan, start_of.facts, start_of.base)
    return LoadReader(
        files, schema=schema, tolerant=True, start_position=start, stop_position=stop, **plan.chosen
    )


def compile_ahead(log_bytes: int) -> None:
    """Compiles what forecasts of so many bytes of logs are worth together, where each log may be
    too short by itself; next to nothing where it was compiled on this machine before."""
    if log_bytes >= WORTH_COMPILING_BYTES and compiled_loads() is not None:
        compiled_steps()


@dataclass(frozen=True)
class _Start:
    """What is known before the log is read."""

    base: Scenario
    facts: dict[str, TableFacts]
    calibration: Calibration
    known: Conditions
    notes: list[str]


def _start(plan: ForecastPlan) -> _Start:
    rules, remarks, version = _rules(plan)
    facts, said = with_counts(plan.facts or {}, plan.row_counts, rules)
    calibration, notes = _calibration(plan.calibration, rules)
    given = row_search_of(plan.row_search, plan.server)
    known = _conditions(plan, version, calibration, rules)
    calibration = calibration.with_own_log(bool(known["log_replica_updates"]))
    base = _base(rules, given or _told_row_search(known), known)
    base = _in_memory(base, facts, plan.files)
    notes = [*remarks, *said, *notes, *_priced_syncs(known, calibration)]
    return _Start(base, facts, calibration, known, notes)


def _told_row_search(known: Conditions) -> frozenset[str] | None:
    """What the caller or the live replica says of it; None for the version's default."""
    told = known.values.get("row_search")
    if told is None or told.source not in (OPTION, LIVE):
        return None
    return parse_row_search(told.value)


def _version(files: Sequence[str]) -> str:
    """The server that wrote the log; the latest for a log that does not begin."""
    reader = LoadReader(files, tolerant=True)
    next(iter(reader), None)
    return reader.server_version or NEWEST


def _rules(plan: ForecastPlan) -> tuple[ServerRules, list[str], str]:
    """The replica's rules, what is to be said of its version, and the version."""
    if plan.server is not None:
        version = plan.server
        rules = asked_rules(plan.server)
        said = remark(plan.server, "--server")
    else:
        version = _version(plan.files) if plan.loads is None else NEWEST
        rules, said = found_rules(version, "the log"), remark(version, "the log")
    return rules, [said] if said is not None else [], version


def _conditions(
    plan: ForecastPlan, version: str, calibration: Calibration, rules: ServerRules
) -> Conditions:
    """The replica and its machine, from whoever knows them."""
    options = {
        "workers": plan.workers,
        "preserve_commit_order": plan.preserve_order,
        "row_search": plan.row_search if rules.row_search_selectable else None,
    }
    given = {
        **plan.settings,
        **{name: value for name, value in options.items() if value is not None},
    }
    shared = calibration.shared
    measured = {
        "cores": calibration.cores,
        "read_latency": shared[PAGE_READ].waiting,
        "sync_latency": shared[SYNC].seconds,
    }
    return conditions(version, given, plan.live, measured=measured, cores_here=os.cpu_count())


def _base(rules: ServerRules, row_search: frozenset[str] | None, known: Conditions) -> Scenario:
    """The replica as it is."""
    return Scenario(
        "as it is",
        rules,
        row_search,
        known.workers,
        bool(known["preserve_commit_order"]),
        parallel_type=known["parallel_type"],
        cores=float(known["cores"]),
        syncs=known.syncs,
        binary_log=bool(known["log_replica_updates"]),
        pool_bytes=float(known["buffer_pool"]),
        redo_log_bytes=known.get("redo_log", inf),
        table_cache=TableCache(
            float(known["table_open_cache"]), known.get("table_open_cache_instances", 1)
        ),
        read_seconds=known["read_latency"],
        sync_seconds=known["sync_latency"],
        reads_per_second=known["iops"] or inf,
    )


def _in_memory(base: Scenario, facts: Mapping[str, TableFacts], files: Sequence[str]) -> Scenario:
    """The same with a pool without end where all tables of known size fit into it, and with a redo
    log without end where a log in these files cannot fill it: then nobody has to follow pages."""
    total = sum(table_bytes(one) for one in facts.values())
    if total <= base.pool_bytes:
        base = replace(base, pool_bytes=inf)
    if base.redo_log_bytes == inf or not files:
        return base
    is_small = log_bytes(files) * MOST_REDO <= oldest_change_bytes(base.redo_log_bytes)
    return replace(base, redo_log_bytes=inf) if is_small else base


def _what_ifs(plan: ForecastPlan, base: Scenario) -> list[Scenario]:
    """The other scenarios that are asked for. Raises UsageError."""
    return [what_if(text, base) for text in plan.what_ifs or DEFAULT_WHAT_IFS]


def _calibration(
    given: str | os.PathLike[str] | Calibration | None, rules: ServerRules
) -> tuple[Calibration, list[str]]:
    """The calibration, and what is to be said of it."""
    if given is None:
        calibration = default_calibration(rules.name)
        where = f"{calibration.server_version} on {calibration.machine}"
        notes = [f"no --calibration: prices of {where}; binlag measure gives those of your machine"]
    else:
        calibration = given if isinstance(given, Calibration) else load_calibration(given)
        notes = []
    if calibration.rules_name != rules.name:
        notes.append(
            f"the calibration is of {calibration.server_version}, the replica of {rules.name}:"
            " seconds are a guess"
        )
    return calibration, notes


def _priced_syncs(known: Conditions, calibration: Calibration) -> list[str]:
    """What is to be said of a disk that is known, where prices were measured with durable
    commits."""
    if not calibration.syncs or known.values["sync_latency"].source == PRICES:
        return []
    why = "the calibration was measured with durable commits"
    return [f"{why}: its price of a transaction holds their syncs, sync_latency changes none of it"]


def _check_chosen(plan: ForecastPlan) -> None:
    """Asked where no row was priced: a name that is misspelt, or a time outside of the log, must
    not pass as a lag of 0. Who
    excludes all has no such doubt.

    Raises UsageError.
    """
    part, only = plan.chosen.get("part"), plan.chosen.get("only")
    if part is not None and part.nothing is not None and plan.loads is None:
        raise UsageError(
            part.nothing,
            code=Code.NOTHING_CHOSEN,
            hint="change --start-datetime or --stop-datetime; times are UTC without a zone",
        )
    gtids = None if part is None else part.include_gtids
    if not plan.files or not ((only and only.chooses) or gtids is not None):
        return
    with suppress(InputError):  # of a log that is cut off: the forecast says so
        check_filters(plan.files, ReplayOptions(only=only or EVERYTHING, include_gtids=gtids))


def _uncounted_redo(base: Scenario, plan: ForecastPlan) -> list[str]:
    """What is taken for granted of a log that may fill the redo log."""
    if base.pool_rules.waits_for_redo or plan.loads is not None:
        return []
    if not MUCH_REDO <= log_bytes(plan.files) < inf:
        return []
    what = "changed pages are written before the redo log is full and no worker waits for them"
    return [f"{what}: that is not counted for {base.rules.name}"]


def _schema(plan: ForecastPlan, facts: Mapping[str, TableFacts], base: Scenario) -> Schema:
    """What the reader looks at to count distinct key values, and to say which pages are used."""
    asked = (base, *_what_ifs(plan, base))
    has_places = any(one.follows_pages for one in asked)
    return Schema(facts, base.rules, base.row_search, has_places)
