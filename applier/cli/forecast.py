"""`binlag forecast`: how far behind a replica of this schema will be, why, and what would mend it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import click

from applier.cli.notes import draws, note
from applier.cli.options import check_output
from applier.cli.status import OPENMETRICS
from applier.error_codes import Code
from applier.errors import UsageError
from applier.server_versions import found_rules, remark
from lookup.versions import NEWEST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from applier.forecast.facts import TableFacts
    from applier.forecast.loads import TransactionLoad
    from applier.forecast.plan import Plan

GATE_CROSSED = 3
_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
PLACEMENTS = {"anywhere": (0.0, 1.0), "oldest": (0.0, 0.0), "newest": (1.0, 1.0)}
WHAT_IF_HELP = (
    "Also forecast with this changed (repeatable; join several by +): primary-key[:D.T], gipk, index=N, row-search=LIST, "
    "minimal-image, event-size=BYTES, workers=N, rows=FACTOR. [default: primary-key]"
)


def seconds(text: str) -> float:
    """ "60s", "5m", "1.5h" or plain seconds. Raises UsageError."""
    match = re.fullmatch(r"([0-9.]+)\s*([a-z]*)", text.strip().lower())
    try:
        return float(match[1]) * _UNITS[match[2]] if match else float("nan") + int("x")
    except (ValueError, KeyError):
        raise UsageError(f"--max-lag: {text!r} is no time", code=Code.OPTION_VALUE, hint="write it as 60s, 5m or 1h") from None


@click.command(name="forecast", short_help="Say how far behind a replica will be, why, and what a key would change.")
@click.argument("files", nargs=-1, type=click.Path(dir_okay=False), metavar="FILE...")
@click.option("--schema", metavar="FILE.sql|URL", help="The replica's tables: a mysqldump, or mysql://user@host:port for a live server.")
@click.option("--workload", type=click.Path(dir_okay=False), metavar="FILE.yaml", help="A described workload instead of a log.")
@click.option("--rows", "row_counts", multiple=True, metavar="D.T=N", help="Rows of a table; *=N for the rest; D.T.KEY=N rows per value.")
@click.option("--calibration", type=click.Path(dir_okay=False), metavar="FILE.json", help="From binlag measure. [default: one that ships]")
@click.option("--server", metavar="VERSION", help="The replica's rules: 5.6, 5.7, 8.0, 8.4, 9.7, mariadb. [default: the log's]")
@click.option("--row-search", metavar="LIST", help="slave_rows_search_algorithms (up to 8.0).")
@click.option("--workers", type=click.IntRange(1, 1024), default=1, show_default=True, help="Applier workers.")
@click.option("--preserve-commit-order/--no-preserve-commit-order", "preserve_order", default=True, show_default=True,
              help="replica_preserve_commit_order.")  # fmt: skip
@click.option("--placement", type=click.Choice(list(PLACEMENTS)), default="anywhere", show_default=True, help="Where changed rows stand.")
@click.option("--what-if", "what_ifs", multiple=True, metavar="CHANGE", help=WHAT_IF_HELP)
@click.option("--max-lag", metavar="TIME", help="Exit with code 3 when the lag would exceed this (60s, 5m, 1h).")
@OPENMETRICS
@click.option("--report", type=click.Path(dir_okay=False), metavar="FILE.html", help="Also write one self-contained HTML file.")
@click.option("--password-file", type=click.Path(dir_okay=False), metavar="FILE", help="The password for a live server's schema.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(files: tuple[str, ...], as_json: bool, max_lag: str | None, report: str | None, openmetrics: str | None, **given: Any) -> int:
    """How far behind a replica will be that applies the log in FILE..., by the cost of finding each row.

    Needs the replica's schema; row counts come from its INSERTs, from a live server, or from --rows.

    \b
    binlag forecast demo/binlog.000001 --schema demo/before.sql
    binlag forecast demo/binlog.000001 --schema demo/before.sql --rows '*=1000000' --max-lag 1h --json
    """
    from applier.cli.forecast_text import print_forecast
    from applier.forecast.plan import run
    from applier.forecast.summary import offenders

    check_output("--report", report)
    check_output("--openmetrics", openmetrics)
    limit = None if max_lag is None else seconds(max_lag)
    plan = _plan(files, **given)
    found = run(plan, _progress(as_json))
    summary = found.summary()
    offending = [] if limit is None else offenders(found.forecast, limit)
    if as_json:
        gate = {} if limit is None else {"max_lag_seconds": limit, "offenders": [vars_of(one) for one in offending]}
        click.echo(json.dumps(summary | gate, ensure_ascii=False))
    else:
        print_forecast(summary)
    if openmetrics is not None:
        from applier import metrics

        metrics.write(metrics.of_forecast(summary), openmetrics)
    if report is not None:
        from applier.report import write_report

        write_report(summary, report)
        note(f"wrote {report}")
    for one in offending:
        note(f"over {max_lag}: {one}", **vars_of(one))
    return GATE_CROSSED if offending else 0


def vars_of(offender: Any) -> dict[str, Any]:
    """A table behind which lag builds up, for JSON."""
    return {"table": offender.table, "max_lag_seconds": offender.lag, "share": offender.share, "why": offender.why}


def _progress(as_json: bool) -> Any:
    if as_json or not draws():
        return None
    return lambda transactions: click.echo(f"\r{transactions:,} transactions", nl=False, err=True)


def _plan(
    files: tuple[str, ...],
    *,
    schema: str | None,
    workload: str | None,
    password_file: str | None,
    placement: str,
    **given: Any,
) -> Plan:
    from applier.forecast.plan import Plan

    if bool(files) == bool(workload):
        raise UsageError("forecast needs binlog files or --workload, one of them", code=Code.OPTION_MISSING, hint="binlag forecast --help")
    if files and schema is None:
        raise UsageError(
            "forecast needs --schema: which keys do the replica's tables have?",
            code=Code.OPTION_MISSING,
            hint="mysqldump --no-data, or mysql://…",
        )
    facts, version = _facts(schema, given["server"], password_file)
    loads: Iterable[TransactionLoad] | None = None
    if workload is not None:
        from applier.forecast.described import read_described

        loads = read_described(workload, facts)
        facts = dict(loads.facts)
    if given["server"] is None:
        given["server"] = version
    return Plan(files=files, loads=loads, facts=facts, placement=PLACEMENTS[placement], **given)


def _facts(schema: str | None, server: str | None, password_file: str | None) -> tuple[dict[str, TableFacts], str | None]:
    """The tables, and the version of the server that they were read from."""
    if schema is None:
        return {}, None
    if "://" not in schema:
        from applier.forecast.facts import facts_of_file

        return facts_of_file(schema, server=NEWEST if server is None else server), None
    from applier.forecast.live import facts_of_server
    from applier.mysql.url import find_password, parse_url

    endpoint = parse_url(schema, "--schema")
    facts, version = facts_of_server(endpoint.with_password(find_password(password_file)))
    said = remark(version, "the server of --schema")
    if said is None:
        return facts, version
    note(said)
    return facts, found_rules(version, "the server of --schema").name
