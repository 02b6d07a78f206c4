"""`binlag measure`: what a replica's work costs on a machine, as a table of cells and a calibration
for `binlag forecast`."""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from applier.cli.notes import draws, note
from applier.cli.parameters.options import check_output, rules_of
from applier.cli.parameters.server_options import server_options
from applier.error_codes import Code
from applier.errors import UsageError
from lookup.versions import NEWEST

if TYPE_CHECKING:
    from applier.forecast.measurement.measured import Measured, MeasurementFile, MeasurementTarget
    from applier.forecast.measurement.measurement_grid import Cell

MOST_ROWS = 100_000_000
"""Of a table that is measured: some 20 GB."""


@click.command(
    name="measure", short_help="Measure what applying costs on a server, for binlag forecast."
)
@click.option(
    "--into",
    default="memory",
    show_default=True,
    metavar="memory|URL",
    help="mysql://user@host:port: a server of no other use.",
)
@click.option(
    "--relay-folder",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="The server's data directory, if it runs here: measures its replication applier itself, "
    "not BINLOG statements.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False),
    metavar="FILE.json",
    help="Write the calibration there (not for memory).",
)
@click.option(
    "--table",
    "table_file",
    type=click.Path(dir_okay=False),
    metavar="FILE.parquet",
    help="Keep the cells there; none is measured twice.",
)
@click.option(
    "--server",
    default=NEWEST,
    show_default=True,
    metavar="VERSION",
    help="For memory: whose rules.",
)
@click.option(
    "--row-search",
    multiple=True,
    metavar="LIST",
    help="slave_rows_search_algorithms to measure (repeatable; up to 8.0).",
)
@click.option(
    "--largest",
    type=click.IntRange(1000, MOST_ROWS),
    default=100_000,
    show_default=True,
    metavar="N",
    help=(
        "Rows of the largest table; two have up to 400,000, the one beside a small buffer pool"
        " 1,000,000."
    ),
)
@click.option("--quick", is_flag=True, help="Usual transactions, and some other cells.")
@click.option(
    "--from",
    "fleet_folder",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Measure the work of a fleet, from binlag fleet --output DIR, after the cells of --quick.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="With --from: begin no more of the fleet's cells after so many minutes.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Measure each cell N times.",
)
@click.option(
    "--master",
    metavar="URL",
    help="Measure as a Spark job: local[2], spark://… [default: in this process]",
)
@server_options
def command(
    into: str,
    output: str | None,
    table_file: str | None,
    master: str | None,
    rounds: int,
    fleet_folder: str | None,
    minutes: float | None,
    **given: Any,
) -> int:
    """Makes tables of many shapes, applies events to them and times that.

    With --relay-folder, the 187 cells of a 9.7 take 10 to 12 minutes on two cores, longer on a busy
    machine. --quick measures 53 of them.

    With --from, the work of a fleet is measured, too: what costs most comes first, with the keys
    and sizes of its tables and the events and rows of its transactions.

    With --into memory the result is exact handler counts and the emulator's own seconds; a
    calibration needs a real server.
    """
    from applier.forecast.measurement.measured import MeasurementFile

    if into == "memory" and output is not None:
        raise UsageError(
            "--output: seconds in memory are the emulator's, no server's",
            code=Code.OPTIONS_CLASH,
            hint="--into mysql://user@host:port",
        )
    if into == "memory" and given["relay_folder"] is not None:
        raise UsageError(
            "--relay-folder: tables in memory have none",
            code=Code.OPTIONS_CLASH,
            hint="--into mysql://user@host:port",
        )
    if table_file is None and output is None:
        raise UsageError(
            "measure needs --table or --output, or nothing would be kept", code=Code.OPTION_MISSING
        )
    _check_fleet(fleet_folder, minutes, master, quick=given["quick"])
    check_output("--table", table_file)
    check_output("--output", output)
    keeper = MeasurementFile(table_file)
    with ExitStack() as stack:
        given["quick"] |= fleet_folder is not None
        target, cells = _target(into, stack, is_alone=master is None, **given)
        kept = len(keeper.all)
        until = None if minutes is None else time.monotonic() + 60 * minutes
        theirs = [] if fleet_folder is None else _fleet_cells(fleet_folder, target, **given)
        try:
            for number in range(rounds):
                _measure(target, cells, keeper, master, number)
                _measure(target, theirs, keeper, master, number, until)
        finally:
            keeper.save()
        note(f"{len(keeper.all) - kept} cells measured" + (f", {kept} were there" if kept else ""))
        if output is not None:
            calibrate(keeper.all, target, output)
    return 0


def _check_fleet(
    folder: str | None, minutes: float | None, master: str | None, *, quick: bool
) -> None:
    clash = None
    if minutes is not None and folder is None:
        clash = "--minutes", "it limits the cells of a fleet", "give --from DIR"
    elif minutes is not None and master is not None:
        clash = "--minutes", "a Spark job measures all cells", "leave out --master"
    elif quick and folder is not None:
        clash = "--quick", "--from measures these cells and those of the fleet", "leave it out"
    if clash is not None:
        option, why, hint = clash
        raise UsageError(f"{option}: {why}", code=Code.OPTIONS_CLASH, hint=hint)


def _fleet_cells(
    folder: str, target: MeasurementTarget, *, row_search: tuple[str, ...], largest: int, **_: Any
) -> list[Cell]:
    """The cells of a fleet, the dearest first."""
    from applier.forecast.measurement.fleet_grid import fleet_grid, read_shapes
    from lookup.versions import rules_for

    rules = rules_for(target.server_version)
    found = fleet_grid(
        read_shapes(folder), rules, largest=largest, row_search=row_search[0] if row_search else ""
    )
    for said in found.notes:
        note(said)
    return list(found.cells)


def _target(
    into: str,
    stack: ExitStack,
    *,
    relay_folder: str | None,
    server: str,
    row_search: tuple[str, ...],
    largest: int,
    quick: bool,
    password_file: str | None,
    is_alone: bool,
) -> tuple[MeasurementTarget, list[Cell]]:
    from applier.forecast.measurement.measured import Memory, repeats_of
    from applier.forecast.measurement.measurement_grid import LOOKUP_ROWS, grid
    from applier.forecast.measurement.scale_up import spread
    from lookup.versions import rules_for

    beside: list[Cell] = []  # each with the same cell under easier conditions
    if into == "memory":
        rules_of(server)
        target: MeasurementTarget = Memory(server)
        searches = _row_searches(row_search, server)
    else:
        from applier.forecast.measurement.on_server import ServerTarget
        from applier.forecast.measurement.pool_reads import pool_cells
        from applier.forecast.measurement.scale_up import scale_up_cells
        from applier.mysql.client.url import find_password, parse_url

        endpoint = parse_url(into).with_password(find_password(password_file))
        on_server = ServerTarget(endpoint, relay_folder=relay_folder, is_alone=is_alone)
        target = stack.enter_context(on_server)
        searches = _row_searches(row_search, on_server.server_version)
        on_server.repeats = repeats_of(len(searches), quick=quick)
        if is_alone:
            rows = min(largest, LOOKUP_ROWS)
            beside += scale_up_cells(rows, workers=on_server.runs_workers, quick=quick)
            if on_server.resizes_pool and largest >= LOOKUP_ROWS:
                beside += pool_cells(workers=on_server.runs_workers)
    rules = rules_for(target.server_version)
    units = grid(rules, largest=largest, row_searches=searches, quick=quick)
    return target, spread(beside, units)


def _row_searches(given: tuple[str, ...], server_version: str) -> tuple[str, ...]:
    """Those that are measured: by default each that the version knows."""
    from lookup.versions import rules_for

    selectable = rules_for(server_version).row_search_selectable
    if given and not selectable:
        raise UsageError(
            f"--row-search: {server_version} has no slave_rows_search_algorithms",
            code=Code.VERSION_LACKS,
        )
    return given or (("INDEX_SCAN,TABLE_SCAN", "INDEX_SCAN,HASH_SCAN") if selectable else ("",))


def _measure(
    target: MeasurementTarget,
    cells: list[Cell],
    keeper: MeasurementFile,
    master: str | None,
    number: int,
    until: float | None = None,
) -> None:
    """A round; each cell is kept as soon as it is measured. No cell begins after `until`."""
    from applier.forecast.measurement.measured import measure_all

    done = list(keeper.all)
    known = {one.place for one in done}
    missing = sum((target.name, target.server_version, cell, number) not in known for cell in cells)
    with click.progressbar(
        length=missing, label="cells", file=sys.stderr, hidden=not draws()
    ) as bar:

        def tick(one: Measured) -> None:
            keeper.add(one)
            bar.update(1)

        if master is not None:
            from applier.forecast.spark_measure import measure_with_spark

            measure_with_spark(cells, target, done, tick, master=master, number=number)
        else:
            for _ in measure_all(cells, target, done, tick, number):
                missing -= 1
                if missing and until is not None and time.monotonic() >= until:
                    note(f"--minutes: {missing} cells of the fleet are not measured")
                    break


def calibrate(done: list[Measured], target: MeasurementTarget, output: str) -> None:
    """Fits prices to what was measured on a target, writes them, and says how well they fit."""
    from applier.forecast.measurement.fit import STEADY, fit

    mine = [
        one
        for one in done
        if (one.target, one.server_version) == (target.name, target.server_version)
    ]
    is_here = getattr(target, "relay_folder", None) is not None
    cores = os.cpu_count() if is_here else None
    calibration = fit(mine, settings=getattr(target, "settings", {}), cores=cores)
    calibration.save(output)
    residuals = calibration.residuals
    note(
        f"wrote {output}: {residuals.cells} cells of {calibration.server_version}; relative error"
        f" {residuals.median:.0%} at the median, of cells left out {residuals.unseen_median:.0%},"
        f" nine of ten below {residuals.unseen_p90:.0%}"
    )
    if is_here and residuals.median > STEADY:
        note(
            f"the machine was not steady: half of the cells are more than {STEADY:.0%} off the"
            " prices, which makes the error bar wider; measure again when nothing else runs, or"
            " with --rounds 3"
        )
