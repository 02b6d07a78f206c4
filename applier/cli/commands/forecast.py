"""`binlag forecast`: how far behind a replica of this schema will be, why, and what would mend
it."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from applier.cli.commands.follow import logs_of
from applier.cli.exit_codes import GATE_CROSSED
from applier.cli.notes import draws, note
from applier.cli.parameters.metrics_options import OPENMETRICS
from applier.cli.parameters.options import (
    DEFAULT_DATABASE_HELP,
    DUMPS,
    INPUT,
    Number,
    check_inputs,
    check_output,
    check_positions,
    filter_options,
)
from applier.cli.parameters.replica_options import replica_options
from applier.cli.parameters.server_options import server_options
from applier.error_codes import Code
from applier.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from applier.cli.output.forecast_gate import Gate, GateVerdict
    from applier.forecast.inventory.facts import TableFacts
    from applier.forecast.live.progress import ReplicaProgress
    from applier.forecast.plan import ForecastPlan
    from applier.forecast.prices.conditions import Live
    from applier.forecast.workload.transaction_load import TransactionLoad
    from applier.mysql.client.url import Endpoint

SETTINGS = (
    "cores", "buffer_pool", "redo_log", "read_latency", "sync_latency", "iops",
    "table_open_cache", "table_open_cache_instances",
    "innodb_flush_log_at_trx_commit", "sync_binlog", "log_replica_updates", "parallel_type",
)  # fmt: skip
"""Options of the replica that go by the names of `conditions.KINDS`."""
_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
MOST_SECONDS = 3_155_760_000.0
"""A hundred years."""
LEAST_LOOK_SECONDS, MOST_LOOK_SECONDS = 2.0, 20.0
LOOK_SHARE = 0.2
"""From the first look at a live replica to the last, of the time that it is behind: what it
applied meanwhile is its pace. On two cores that a 9.7.4 shared with its source, the pace of 6 s was
11 % off that of the rest at the median, that of 12 s 9 % (41 % and 28 % at worst). The time to
catch up is twice as far off where the source's traffic takes half of the replica, and more
beyond. A replica that has caught up as large a share before is so quick that less will do."""
_PLACEMENTS = ("anywhere", "oldest", "newest")
WHAT_IF_HELP = (
    "Also forecast with this changed (repeatable; join several by +): primary-key[:D.T], gipk, "
    "index=N, row-search=LIST, minimal-image, event-size=BYTES, workers=N, rows=FACTOR, durable, "
    "relaxed, buffer-pool=SIZE, redo-log=SIZE, table-open-cache=N, cores=N. [default: primary-key]"
)


def seconds(text: str, option: str = "--max-lag") -> float:
    """ "60s", "5m", "1.5h" or plain seconds. Raises UsageError."""
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([a-z]*)", text.strip().lower())
    unit = _UNITS.get(match[2]) if match else None
    found = float(match[1]) * unit if match and unit is not None else math.inf
    if found > MOST_SECONDS:
        raise UsageError(
            f"{option}: {text!r} is not a time",
            code=Code.OPTION_VALUE,
            hint="write it as 60s, 5m or 1h",
        )
    return found


@click.command(
    name="forecast",
    short_help="Say how far behind a replica will be, why, and what a key would change.",
)
@click.argument("files", nargs=-1, type=click.Path(), metavar="FILE...")
@filter_options
@click.option("--schema", type=INPUT, metavar="DUMP|URL", help=f"The replica's tables: {DUMPS}")
@click.option(
    "--replica",
    metavar="URL",
    help="The live replica: its tables, its settings, and how far it is; stands in for --schema.",
)
@click.option(
    "--behind",
    metavar="TIME",
    help="The replica is so far behind as it begins with the log (90s, 5m, 2h).",
)
@click.option(
    "--follow",
    is_flag=True,
    help="With --replica: where it is, in one line every 5 seconds, until interrupted.",
)
@click.option("--default-database", metavar="D", help=DEFAULT_DATABASE_HELP)
@click.option(
    "--workload",
    type=click.Path(dir_okay=False),
    metavar="FILE.yaml",
    help="A described workload instead of a log.",
)
@click.option(
    "--rows",
    "row_counts",
    multiple=True,
    metavar="D.T=N|@FILE",
    help="Rows of a table; *=N for the rest; D.T.KEY=N rows per value; "
    "@FILE.csv: what information_schema says.",
)
@click.option(
    "--calibration",
    type=click.Path(dir_okay=False),
    metavar="FILE.json",
    help="From binlag measure. [default: one that ships]",
)
@click.option(
    "--server",
    metavar="VERSION",
    help="The replica's rules: 5.6, 5.7, 8.0, 8.4, 9.7, mariadb. [default: the log's]",
)
@click.option("--row-search", metavar="LIST", help="slave_rows_search_algorithms (up to 8.0).")
@replica_options
@click.option(
    "--placement",
    type=click.Choice(_PLACEMENTS),
    default="anywhere",
    show_default=True,
    help="Where changed rows stand.",
)
@click.option("--what-if", "what_ifs", multiple=True, metavar="CHANGE", help=WHAT_IF_HELP)
@click.option(
    "--max-lag",
    metavar="TIME",
    help="Exit with code 3 when the lag would exceed this (60s, 5m, 1h).",
)
@click.option(
    "--baseline",
    type=click.Path(dir_okay=False),
    metavar="FILE.json",
    help="Exit with code 3 only when it is worse than this earlier --json output of the same log.",
)
@click.option(
    "--tolerance",
    type=Number(min=0),
    metavar="PERCENT",
    help="With --baseline: what is not worse yet. [default: 5]",
)
@click.option(
    "--junit",
    type=click.Path(dir_okay=False),
    metavar="FILE.xml",
    help="Also write the gate as a JUnit file.",
)
@OPENMETRICS
@click.option(
    "--report",
    type=click.Path(dir_okay=False),
    metavar="FILE.html",
    help="Also write one self-contained HTML file.",
)
@click.option("--markdown", is_flag=True, help="Print Markdown, for a comment on a change.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@server_options
def command(
    files: tuple[str, ...], as_json: bool, markdown: bool, max_lag: str | None,
    baseline: str | None, tolerance: float | None, junit: str | None, report: str | None,
    openmetrics: str | None, follow: bool, **given: Any,
) -> int:  # fmt: skip
    """How far behind a replica will be that applies the log in FILE..., by the cost of finding each
    row.

    Needs the replica's schema; row counts come from its INSERTs, from a live server, or from
    --rows.
    """
    from applier.forecast.answers.summary import offenders
    from applier.forecast.plan import run

    for option, path in (("--report", report), ("--openmetrics", openmetrics), ("--junit", junit)):
        check_output(option, path)
    if openmetrics is not None:
        from applier.metrics import check_name

        check_name(openmetrics)
    if as_json and markdown:
        raise UsageError("--json and --markdown: one output", code=Code.OPTIONS_CLASH)
    gate = _gate(max_lag, baseline, tolerance)
    if junit is not None and not gate:
        raise UsageError(
            "--junit: nothing can fail",
            code=Code.OPTION_MISSING,
            hint="add --max-lag TIME or --baseline FILE.json",
        )
    if follow:
        others = {
            "--max-lag": max_lag,
            "--baseline": baseline,
            "--report": report,
            "--markdown": markdown,
            "--behind": given["behind"],
        }
        _follow(
            files, as_json, openmetrics, [name for name, value in others.items() if value], **given
        )
    plan = _plan(files, **given)
    found = run(plan, _progress(as_json or markdown))
    summary = found.summary()
    verdict = gate.judge(
        summary, [] if gate.limit is None else offenders(found.forecast, gate.limit)
    )
    _print(summary, verdict, as_json=as_json, markdown=markdown)
    if openmetrics is not None:
        from applier import metrics

        metrics.write(metrics.of_forecast(summary), openmetrics)
    if junit is not None:
        from applier.cli.output.forecast_gate import write_junit

        write_junit(verdict, summary, junit)
    if report is not None:
        from applier.pages.report import write_report

        write_report(summary, report)
        note(f"wrote {report}")
    for text, told in verdict.failures:
        note(text, **told)
    return GATE_CROSSED if verdict.failed else 0


def _follow(
    files: tuple[str, ...], as_json: bool, openmetrics: str | None, others: list[str], **given: Any
) -> NoReturn:
    """Ends with an interrupt, or with an error."""
    if given["replica"] is None or not files:
        raise UsageError(
            "--follow needs a replica and its logs",
            code=Code.OPTION_MISSING,
            hint="add --replica URL, and name the logs",
        )
    if others:
        raise UsageError(
            f"--follow and {others[0]}: a line says where the replica is, no more",
            code=Code.OPTIONS_CLASH,
        )
    from applier.cli.commands.forecast_follow import follow

    replica = _endpoint(given["replica"], "--replica", given["password_file"])
    follow(
        _plan(files, **given),
        replica,
        lambda: logs_of(files),
        as_json=as_json,
        openmetrics=openmetrics,
    )


def _gate(max_lag: str | None, baseline: str | None, tolerance: float | None) -> Gate:
    from applier.cli.output.forecast_gate import Gate
    from applier.forecast.answers.baseline import TOLERANCE, load_baseline

    if tolerance is not None and baseline is None:
        raise UsageError(
            "--tolerance: nothing to compare with",
            code=Code.OPTION_MISSING,
            hint="add --baseline FILE.json",
        )
    limit = None if max_lag is None else seconds(max_lag)
    kept = None if baseline is None else load_baseline(baseline)
    return Gate(
        limit,
        max_lag or "",
        kept,
        baseline or "",
        TOLERANCE if tolerance is None else tolerance / 100,
    )


def _print(summary: dict[str, Any], verdict: GateVerdict, *, as_json: bool, markdown: bool) -> None:
    if as_json:
        click.echo(json.dumps(summary | verdict.as_dict(), ensure_ascii=False))
    elif markdown:
        from applier.cli.output.forecast_markdown import markdown as written

        click.echo(written(summary, verdict), nl=False)
    else:
        from applier.cli.output.forecast_text import print_forecast

        print_forecast(summary)


def _progress(quiet: bool) -> Any:
    if quiet or not draws():
        return None
    return lambda transactions: click.echo(f"\r{transactions:,} transactions", nl=False, err=True)


def _not_one_traffic(are_both: bool) -> UsageError:
    if are_both:
        return UsageError(
            "log files and --workload exclude each other",
            code=Code.OPTIONS_CLASH,
            hint="leave one of them out",
        )
    return UsageError(
        "forecast needs binlog files or --workload, one of them", code=Code.OPTION_MISSING
    )


def _plan(
    files: tuple[str, ...],
    *,
    schema: str | None,
    workload: str | None,
    replica: str | None,
    default_database: str | None,
    password_file: str | None,
    placement: str,
    behind: str | None,
    **given: Any,
) -> ForecastPlan:
    from applier.forecast.plan import ForecastPlan
    from applier.forecast.schema_forecast import PLACEMENTS, read_schema, server_of

    late = None if behind is None else seconds(behind, "--behind")
    if bool(files) == bool(workload):
        raise _not_one_traffic(bool(files))
    if replica is not None:
        _endpoint(replica, "--replica", password_file)
    schema = replica if schema is None else schema
    if files and schema is None:
        raise UsageError(
            "forecast needs --schema, the replica's tables and keys",
            code=Code.OPTION_MISSING,
            hint="add --schema: a file of mysqldump --no-data, or mysql://USER@HOST:PORT",
        )
    settings = {name: given.pop(name) for name in SETTINGS}
    durable = given.pop("durable")
    if durable is not None:
        redo, binary = "innodb_flush_log_at_trx_commit", "sync_binlog"
        clash = next((name for name in (redo, binary) if settings.get(name) is not None), None)
        if clash is not None:
            option, other = "--durable" if durable else "--relaxed", clash.replace("_", "-")
            raise UsageError(
                f"{option} sets --{other}, too", code=Code.OPTIONS_CLASH, hint="give one of them"
            )
        settings |= {redo: 1, binary: 1} if durable else {redo: 2, binary: 0}
    check_inputs(files, schema)
    files = tuple(logs_of(files)) if files else ()
    chosen = _chosen(files, given)
    facts: dict[str, TableFacts] = {}
    live = count_rows = None
    if schema is not None:
        facts, live, count_rows = read_schema(
            schema, server=given["server"], only=chosen["only"], default_database=default_database,
            password_file=password_file, note=note,
        )  # fmt: skip
    live = _live(replica, password_file) if replica is not None else live
    loads: Iterable[TransactionLoad] | None = None
    if workload is not None:
        from applier.forecast.workload.traffic import read_described

        loads = read_described(workload, facts)
        facts = dict(loads.facts)
    if given["server"] is None and live is not None:
        given["server"] = server_of(live, note)
    is_live = replica is not None and workload is None and late is None
    progress = (
        _progress_of(_endpoint(replica, "--replica", password_file), files)
        if replica is not None and is_live
        else None
    )
    return ForecastPlan(
        files=files, loads=loads, facts=facts, live=live, settings=settings,
        placement=PLACEMENTS[placement], chosen=chosen, progress=progress, behind=late,
        count_rows=count_rows, **given,
    )  # fmt: skip


def _progress_of(replica: Endpoint, files: Sequence[str]) -> ReplicaProgress | None:
    """How far the replica is, by several looks; None with a note where the logs are not those that
    it applies."""
    from applier.forecast.live.live_progress import OtherLogs, read_progress
    from applier.forecast.live.pace import LOOKS

    try:
        first = read_progress(replica, files)
        if first.stopped or not first.behind:
            return first
        looks, pause = [first], first.behind * LOOK_SHARE
        for _ in range(LOOKS):
            time.sleep(min(max(pause, LEAST_LOOK_SECONDS), MOST_LOOK_SECONDS) / LOOKS)
            looks.append(read_progress(replica, files))
            if (looks[-1].behind or 0.0) <= first.behind * (1 - LOOK_SHARE):
                break
        return replace(looks[-1], earlier=looks[:-1])
    except OtherLogs as error:
        note(f"{error.message}; the forecast does not say where it is now")
        return None


def _chosen(files: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
    """Takes the options that pick a part of the log out of the others."""
    from applier.binlog.selection.filters import LogFilter
    from applier.binlog.selection.table_filter import TableFilter

    names = [given.pop(name) for name in ("database", "table", "exclude_database", "exclude_table")]
    positions = {name: given.pop(name) for name in ("start_position", "stop_position")}
    part = {
        name: given.pop(name)
        for name in ("start_datetime", "stop_datetime", "include_gtids", "exclude_gtids")
    }
    if not files and (
        any(names) or any(value is not None for value in (*positions.values(), *part.values()))
    ):
        raise UsageError(
            "--workload: there is no log to pick a part of",
            code=Code.OPTIONS_CLASH,
            hint="leave the filters out",
        )
    check_positions(
        files, **{name.removesuffix("_position"): value for name, value in positions.items()}
    )
    return {**positions, "part": LogFilter.of(**part), "only": TableFilter.of(*names)}


def _live(url: str, password_file: str | None) -> Live:
    from applier.forecast.live.live_settings import settings_of_server

    return settings_of_server(_endpoint(url, "--replica", password_file))


def _endpoint(url: str, option: str, password_file: str | None) -> Endpoint:
    from applier.mysql.client.url import find_password, parse_url

    return parse_url(url, option).with_password(find_password(password_file))
