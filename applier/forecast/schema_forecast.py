"""A forecast from a log and a schema: `applier.forecast`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from applier.arguments import at_least, checked, one_of
from applier.binlog.follow import LogFiles, log_files
from applier.binlog.header import FIRST_EVENT
from applier.binlog.selection.filters import LogFilter, Moment
from applier.binlog.selection.table_filter import TableFilter
from applier.forecast.inventory.facts import TableFacts, facts_of_tables
from applier.forecast.inventory.value_counts import CountRows, counted_in_memory
from applier.forecast.plan import DEFAULT_WHAT_IFS, Forecasted, ForecastPlan, run
from applier.forecast.prices.calibration import Calibration
from applier.forecast.prices.conditions import Live
from applier.mysql.contents.live_schema import is_url
from applier.schema_source import Selection, tables_of
from applier.server_versions import found_rules, remark
from lookup.versions import NEWEST

PLACEMENTS = {"anywhere": (0.0, 1.0), "oldest": (0.0, 0.0), "newest": (1.0, 1.0)}
"""From which part of a table rows are drawn, in scan order."""


@checked()
def forecast(
    files: LogFiles, schema: str | os.PathLike[str], *, server: str | None = None,
    row_search: str | None = None, row_counts: str | Iterable[str] = (),
    calibration: str | os.PathLike[str] | Calibration | None = None, workers: int | None = None,
    preserve_order: bool | None = None, settings: Mapping[str, Any] | None = None,
    what_ifs: Iterable[str] = DEFAULT_WHAT_IFS, placement: str = "anywhere",
    default_database: str | None = None, password_file: str | os.PathLike[str] | None = None,
    note: Callable[[str], None] | None = None, database: str | Iterable[str] = (),
    table: str | Iterable[str] = (), exclude_database: str | Iterable[str] = (),
    exclude_table: str | Iterable[str] = (), start_position: int | None = None,
    stop_position: int | None = None, start_datetime: Moment = None, stop_datetime: Moment = None,
    include_gtids: str | None = None, exclude_gtids: str | None = None,
) -> Forecasted:  # fmt: skip
    """How far behind a replica with these tables will be when it applies this log, and what would
    fix it.

    Options are those of `binlag forecast`. `settings`: replica settings by option name, for example
    `{"buffer_pool": 8 * 2**30}`. They are `buffer_pool` and `redo_log` (bytes), `table_open_cache`,
    `table_open_cache_instances`, `cores`,
    `read_latency` and `sync_latency` (seconds), `iops`, `innodb_flush_log_at_trx_commit`,
    `sync_binlog`, `log_replica_updates` and `parallel_type`. `schema` is a dump or a live server.
    `summary()` of the result is what --json prints. Raises InputError for what cannot be read,
    UsageError for invalid options.
    """
    at_least(FIRST_EVENT, start_position=start_position, stop_position=stop_position)
    only = TableFilter.of(database, table, exclude_database, exclude_table)
    part = LogFilter.of(
        start_datetime=start_datetime,
        stop_datetime=stop_datetime,
        include_gtids=include_gtids,
        exclude_gtids=exclude_gtids,
    )
    read = read_schema(
        schema,
        server=server,
        only=only,
        default_database=default_database,
        password_file=password_file,
        note=note,
    )
    plan = ForecastPlan(
        files=log_files(files),
        facts=read.facts,
        live=read.live,
        count_rows=read.count_rows,
        server=server_of(read.live, note) if server is None and read.live is not None else server,
        row_search=row_search,
        row_counts=[row_counts] if isinstance(row_counts, str) else list(row_counts),
        calibration=calibration,
        workers=workers,
        preserve_order=preserve_order,
        settings=settings or {},
        what_ifs=tuple(what_ifs),
        placement=PLACEMENTS[one_of("placement", placement, PLACEMENTS)],
        chosen={
            "start_position": start_position,
            "stop_position": stop_position,
            "part": part,
            "only": only,
        },
    )
    return run(plan)


class ReadSchema(NamedTuple):
    """The tables, what the live server that they were read from says of itself, and who counts
    their rows."""

    facts: dict[str, TableFacts]
    live: Live | None
    count_rows: CountRows | None


def read_schema(
    schema: str | os.PathLike[str],
    *,
    server: str | None,
    only: TableFilter,
    default_database: str | None,
    password_file: str | os.PathLike[str] | None,
    note: Callable[[str], None] | None,
) -> ReadSchema:
    """A dump, or a live server. Raises UsageError, InputError."""
    schema = os.fspath(schema)
    if not is_url(schema):
        selection = Selection(only, default_database=default_database)
        known = NEWEST if server is None else server
        tables = list(tables_of(schema, server=known, selection=selection, note=note))
        return ReadSchema(facts_of_tables(tables), None, counted_in_memory(tables))
    from applier.forecast.inventory.server_counts import counted_on_server
    from applier.forecast.inventory.server_facts import facts_of_server
    from applier.forecast.live.live_settings import settings_of_server
    from applier.mysql.client.url import find_password, parse_url

    endpoint = parse_url(schema, "schema").with_password(find_password(password_file))
    facts, _ = facts_of_server(endpoint)
    return ReadSchema(facts, settings_of_server(endpoint), counted_on_server(endpoint))


def server_of(live: Live, note: Callable[[str], None] | None) -> str:
    """The version whose rules hold for a live server; `note` is told when they are another
    version's."""
    told = remark(live.version, "the live server")
    if told is None:
        return live.version
    if note is not None:
        note(told)
    return found_rules(live.version, "the live server").name
