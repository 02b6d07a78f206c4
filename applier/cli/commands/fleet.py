"""`binlag fleet`: hundreds of sources at once: which replica will be late, by how much, which
tables are to blame, what to change."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from applier.cli.commands.forecast import seconds
from applier.cli.exit_codes import GATE_CROSSED
from applier.cli.notes import draws, note
from applier.cli.parameters.options import check_output
from applier.error_codes import Code
from applier.errors import UsageError
from applier.whole_file import can_write_into

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from applier.fleets.results import FleetResult, Outcome

UNREADABLE = 2
SHOWN = 30
"""Sources, and notes, that the terminal shows,"""
NAMED = 3
"""and names beside a note."""


@click.command(
    name="fleet",
    short_help=(
        "Say of hundreds of sources which replica will be late, by how much, and what to change."
    ),
)
@click.argument("fleet_file", type=click.Path(dir_okay=False), metavar="FLEET.yaml")
@click.option(
    "--output",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write Parquet tables; keep what is done.",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False),
    metavar="FILE.html",
    help="Also write one HTML file. [default: in DIR]",
)
@click.option(
    "--max-lag",
    metavar="TIME",
    help="Exit with code 3 when a source's lag would exceed this (60s, 5m, 1h).",
)
@click.option(
    "--on-error",
    type=click.Choice(["skip", "fail"]),
    default="skip",
    show_default=True,
    help="When a source cannot be read.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 1024), default=1, show_default=True, help="Processes."
)
@click.option(
    "--master", metavar="URL", help="Run as a Spark job: local[N], spark://…, yarn, k8s://…"
)
@click.option(
    "--package",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="From binlag spark-package: for executors.",
)
@click.option(
    "--spark-conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark (repeatable)."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    fleet_file: str,
    output: str | None,
    report: str | None,
    max_lag: str | None,
    on_error: str,
    jobs: int,
    master: str | None,
    package: str | None,
    spark_conf: tuple[str, ...],
    as_json: bool,
) -> int:
    """Forecasts of all sources in FLEET.yaml: their logs, schemas, row counts and replicas, on this
    machine or on stores.

    With --master, or inside spark-submit, it is a Spark job with the same numbers. With --output an
    interrupted run goes on.
    """
    from applier.fleets.run import fleet

    check_output("--output", output, can_write_into)
    report = report or (os.path.join(output, "report.html") if output is not None else None)  # noqa: PTH118 - may be anywhere
    if output is None:
        check_output("--report", report)
    limit = None if max_lag is None else seconds(max_lag)
    with _session(master, package, spark_conf, jobs) as spark:
        result = fleet(
            fleet_file,
            output=output,
            jobs=jobs,
            spark=spark,
            on_error=on_error,
            tick=_progress(as_json),
        )
    over = [] if limit is None else result.over(limit)
    if as_json:
        gate = (
            {}
            if limit is None
            else {"max_lag_seconds": limit, "over": [one.source for one in over]}
        )
        told = {
            "sources": result.sources,
            "tables": result.tables,
            "failed": [one.source for one in result.failed],
        }
        click.echo(json.dumps(told | gate, ensure_ascii=False))
    else:
        _print(result)
    if report is not None:
        from applier.pages.fleet_report import write_fleet_report

        write_fleet_report(result, report, limit)
        note(f"wrote {report}")
    for one in result.failed:
        assert one.error is not None
        note(f"source {one.source} is left out: {_error_line(one)}", source=one.source, **one.error)
    for one in over:
        note(f"over {max_lag}: {one.source}", source=one.source, peak_lag_seconds=one.peak)
    return GATE_CROSSED if over else UNREADABLE if result.failed else 0


def _error_line(outcome: Outcome) -> str:
    error = outcome.error or {}
    places = ", ".join(
        f"{name} {error[name]}"
        for name in ("file", "position", "table")
        if error.get(name) is not None
    )
    return (
        f"error {error['code']}: {error['message']}"
        + (f" ({places})" if places else "")
        + f". Next: {error['hint']}"
    )


def _progress(as_json: bool) -> Callable[[Outcome], None] | None:
    if as_json or not draws():
        return None
    done: list[str] = []

    def tick(outcome: Outcome) -> None:
        done.append(outcome.source)
        click.echo(f"\r{len(done):,} sources", nl=False, err=True)

    return tick


@contextmanager
def _session(
    master: str | None, package: str | None, settings: tuple[str, ...], jobs: int
) -> Iterator[Any]:
    """The Spark session that is asked for, or that spark-submit gives; None where this process does
    the work."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not submitted:
        if package is not None or settings:
            raise UsageError(
                "--package and --spark-conf are for Spark",
                code=Code.OPTION_MISSING,
                hint="add --master",
            )
        yield None
        return
    if jobs > 1:
        raise UsageError(
            "--jobs is for this machine; --master says how many cores Spark has",
            code=Code.OPTIONS_CLASH,
        )
    wrong = next((one for one in settings if "=" not in one), None)
    if wrong is not None:
        raise UsageError(f"--spark-conf: {wrong!r} is not NAME=VALUE", code=Code.OPTION_VALUE)
    from applier.fleets.spark import fleet_session

    spark = fleet_session(master, package, dict(one.split("=", 1) for one in settings))
    try:
        yield spark
    finally:
        spark.stop()


def _print(result: FleetResult) -> None:
    from rich import box
    from rich.table import Table

    from applier.cli.output.summary import wide_console
    from applier.forecast.answers.words import duration, shown_times

    console = wide_console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in (
        "source",
        "peak lag",
        "at the end",
        "catches up after",
        "carries",
        "worst table",
        "share",
    ):
        table.add_column(name)
    rows = [row for row in result.sources if row["error"] is None]
    for row in rows[:SHOWN]:
        table.add_row(
            row["source"],
            duration(row["peak_lag_seconds"]),
            duration(row["end_lag_seconds"]),
            duration(row["catch_up_seconds"]) if row["catches_up"] else "never",
            "-"
            if row["capacity"] is None
            else f"{shown_times(row['capacity'])} times this traffic",
            row["worst_table"] or "-",
            "-" if row["worst_table_share"] is None else f"{row['worst_table_share']:.0%}",
        )
    console.print(table)
    if len(rows) > SHOWN:
        console.print(f"and {len(rows) - SHOWN} more; --output or --json has all of them")
    fixes = sorted(
        (row for row in result.tables if row["fix"]), key=lambda row: -row["fix_gain_seconds"]
    )
    for row in fixes[:10]:
        gain = f"{row['source']}: saves {duration(row['fix_gain_seconds'])} of applying"
        console.print(f"{gain}:  {row['fix']}", soft_wrap=True)
    notes = list(result.notes.items())
    for text, names in notes[:SHOWN]:
        few, more = ", ".join(names[:NAMED]), len(names) - NAMED
        console.print(
            f"note: {few}{f' and {more} more' if more > 0 else ''}: {text}", soft_wrap=True
        )
    if len(notes) > SHOWN:
        console.print(f"and {len(notes) - SHOWN} more notes; --json has all of them")
