"""`binlag crashtest`: is a configuration crash-safe? Every crash point of a run, recovered and
checked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from applier.cli.exit_codes import GATE_CROSSED
from applier.cli.notes import draws, note
from applier.cli.parameters.options import (
    DEFAULT_DATABASE_HELP,
    DUMPS,
    INPUT,
    check_inputs,
    check_output,
    rules_of,
    was_typed,
)
from applier.error_codes import Code
from applier.errors import UsageError, cannot_write
from applier.logs import logger
from applier.whole_file import write_whole

if TYPE_CHECKING:
    from applier.crashtest.crash_runs import Kind
    from applier.crashtest.explorer import Trial
    from applier.crashtest.matrix import MatrixCell, Setup, WorkloadSpec

KINDS = ("process", "os", "full disk", "I/O error")
SECTOR_BYTES = 512
MOST_TRANSACTIONS = 1_000_000


def _many(
    option: str, values: list[str], text: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        option,
        multiple=True,
        type=click.Choice(values, case_sensitive=False),
        metavar="|".join(values),
        help=text,
    )


@click.command(
    name="crashtest",
    short_help="Try every crash point of a replica's run; a matrix of what is safe.",
)
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE]...")
@click.option(
    "--schema",
    type=INPUT,
    metavar="DUMP|URL",
    help=f"Tables and rows before the first event of FILEs: {DUMPS}",
)
@click.option("--default-database", metavar="D", help=DEFAULT_DATABASE_HELP)
@click.option(
    "--transactions",
    type=click.IntRange(1, MOST_TRANSACTIONS),
    default=50,
    show_default=True,
    help="Of the generated log, without FILEs.",
)
@click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    help="Of the generated log and of the order of the workers.",
)
@click.option(
    "--server",
    default="8.0",
    show_default=True,
    metavar="VERSION",
    help="The replica's version: 5.6, 5.7, 8.0, 8.4, 9.7, mariadb.",
)
@_many(
    "--repository",
    ["FILE", "TABLE"],
    "relay_log_info_repository and master_info_repository (repeatable, as all of these).",
)
@click.option(
    "--sync",
    multiple=True,
    type=click.IntRange(0),
    metavar="N",
    help=(
        "sync_relay_log, sync_relay_log_info and sync_master_info: never (0), or every N. Varied:"
        " 0, 1, 10, 10000."
    ),
)
@_many("--recovery", ["0", "1"], "relay_log_recovery.")
@_many("--position", ["file", "auto"], "File and offset, or GTID auto-position.")
@click.option(
    "--workers",
    multiple=True,
    type=click.IntRange(0, 1024),
    metavar="N",
    help="replica_parallel_workers.",
)
@_many("--engine", ["InnoDB", "MyISAM"], "Storage engine of the replicated tables.")
@_many("--kind", list(KINDS), "What goes wrong.")
@click.option(
    "--commit-order/--no-commit-order",
    default=None,
    help="replica_preserve_commit_order. [default: the version's]",
)
@click.option(
    "--flush-log",
    type=click.IntRange(0, 2),
    default=1,
    show_default=True,
    help="innodb_flush_log_at_trx_commit.",
)
@click.option(
    "--sync-binlog", type=click.IntRange(0), default=1, show_default=True, help="sync_binlog."
)
@click.option("--skip-log-bin", is_flag=True, help="The replica writes no binary log.")
@click.option(
    "--sector-bytes",
    type=click.IntRange(1),
    default=SECTOR_BYTES,
    show_default=True,
    help="What the disk writes as a whole.",
)
@click.option(
    "--coverage",
    type=click.Choice(["edges", "corners"]),
    default="edges",
    show_default=True,
    help="How much of what may be left.",
)
@click.option(
    "--require",
    multiple=True,
    metavar="AXIS=VALUE,…",
    help="These cells must be consistent, or the exit code is 3 (repeatable).",
)
@click.option(
    "--crash", metavar="PLACE", help="Only this crash of one configuration, as the matrix shows it."
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="Processes. [default: one per processor]",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the matrix as a heat map.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the cells as JSON.")
@click.option(
    "--brief",
    is_flag=True,
    help="Print one line for each position, recovery and repository, all crashes together.",
)
def command(
    files: tuple[str, ...],
    schema: str | None,
    crash: str | None,
    html: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Replicate FILES, or a generated log, on a simulated disk; crash at every point; restart,
    catch up, and check the tables.

    Options that you leave out take every value; without any option you get the full matrix. The
    matrix marks configurations that promise nothing. Exit code 0: fine; 3: a promise was broken, a
    cell of --require is not consistent, or the only configuration that was asked for is not; 2: bad
    usage or unreadable input.
    """
    from applier.crashtest.crash_points import refuse_schema
    from applier.crashtest.matrix import try_all
    from applier.crashtest.workload import captured
    from checkpoints.outcomes import Medium
    from checkpoints.simulated_disk import Coverage

    _check_outputs(crash, html, as_json=as_json, brief=options["brief"], require=options["require"])
    rules_of(options["server"])
    refuse_schema(schema, files)
    if files and was_typed("transactions"):
        raise UsageError(
            "--transactions: the log has its own",
            code=Code.OPTIONS_CLASH,
            hint="leave it out, or the log",
        )
    check_inputs(files, schema)
    workload = (
        captured(files, schema, options["server"], options["default_database"], note)
        if files
        else None
    )
    spec, setups, kinds = _plan(files, schema, workload, options)
    wanted = [_requirement(text, setups, kinds) for text in options["require"]]
    medium = Medium(sector_bytes=options["sector_bytes"])
    if crash is not None:
        return _one_crash(crash, setups, spec, medium)
    with _Progress(len(setups)) as progress:
        cells = try_all(
            setups,
            spec,
            kinds,
            medium=medium,
            coverage=Coverage(options["coverage"]),
            jobs=options["jobs"] or os.cpu_count() or 1,
            done=progress.step,
        )
    _show(cells, spec, html, as_json=as_json, brief=options["brief"])
    failed = [
        cell
        for cell in cells
        if not cell.safe
        and any(_meets(cell.setup, cell.kind, requirement) for requirement in wanted)
    ]
    alone = len(setups) == 1 and not all(cell.safe for cell in cells)
    for cell in failed:
        note(
            f"required and not consistent: {' '.join(cell.setup.arguments())} --kind"
            f" {str(cell.kind)!r}"
        )
    return GATE_CROSSED if failed or alone or any(cell.broken for cell in cells) else 0


def _check_outputs(
    crash: str | None, html: str | None, *, as_json: bool, brief: bool, require: tuple[str, ...]
) -> None:
    """Raises UsageError for those that contradict each other, for those of a matrix with --crash,
    and for a file that cannot be written."""
    if as_json and brief:
        raise UsageError(
            "--json and --brief are two outputs of one run",
            code=Code.OPTIONS_CLASH,
            hint="give one of them",
        )
    given = {"--json": as_json, "--brief": brief, "--html": html, "--require": require}
    of_matrix = next((option for option, value in given.items() if value), None)
    if crash is not None and of_matrix is not None:
        raise UsageError(
            f"{of_matrix}: one crash makes no matrix",
            code=Code.OPTIONS_CLASH,
            hint="leave it out, or --crash",
        )
    check_output("--html", html)


def _plan(
    files: tuple[str, ...], schema: str | None, workload: Any, options: dict[str, Any]
) -> tuple[WorkloadSpec, list[Setup], list[Kind]]:
    """The workload, the configurations, the kinds of crash."""
    from applier.crashtest.crash_points import configurations
    from applier.crashtest.crash_runs import Kind
    from applier.crashtest.matrix import Setup, WorkloadSpec

    chosen: dict[str, tuple[Any, ...]] = {
        "repository": tuple(value.upper() for value in options["repository"]),
        "sync": options["sync"],
        "recovery": tuple(value == "1" for value in options["recovery"]),
        "auto_position": tuple(value == "auto" for value in options["position"]),
        "workers": options["workers"],
        "engine": options["engine"],
    }
    base = Setup(
        server=options["server"],
        commit_order=options["commit_order"],
        flush_log=options["flush_log"],
        sync_binlog=options["sync_binlog"],
        log_bin=not options["skip_log_bin"],
    )
    found = configurations(base, chosen, workload)
    arguments = [*files, *(["--schema", schema] if schema else [])]
    arguments += (
        ["--default-database", options["default_database"]] if options["default_database"] else []
    )
    arguments += [] if files else ["--transactions", str(options["transactions"])]
    arguments += ["--seed", str(options["seed"])]
    if options["sector_bytes"] != SECTOR_BYTES:
        arguments += ["--sector-bytes", str(options["sector_bytes"])]
    spec = WorkloadSpec(options["transactions"], options["seed"], workload, tuple(arguments))
    return spec, found, [Kind(kind) for kind in options["kind"] or KINDS]


def _one_crash(crash: str, setups: list[Setup], spec: WorkloadSpec, medium: Any) -> int:
    from applier.crashtest.checkers import Verdict
    from applier.crashtest.explorer import parse_place
    from applier.crashtest.matrix import try_one

    if len(setups) != 1:
        raise UsageError(
            f"--crash needs one configuration, and these are {len(setups)}",
            code=Code.OPTIONS_CLASH,
            hint="copy the whole line from the matrix",
        )
    trial = try_one(setups[0], spec, parse_place(crash), medium)
    click.echo(f"{trial}\n{trial.acknowledged} transactions had been committed before the crash")
    return 0 if trial.judgement.verdict is Verdict.CONSISTENT else GATE_CROSSED


def _requirement(text: str, setups: list[Setup], kinds: list[Kind]) -> dict[str, str]:
    """ "repository=TABLE,recovery=1" as it is compared with a cell. Raises UsageError for one that
    no cell of the matrix could fail."""
    from applier.crashtest.matrix import AXES

    found = dict(part.partition("=")[::2] for part in text.split(","))
    names = {name.replace("auto_position", "position") for name in AXES} | {"kind"}
    if not all(found.values()):
        raise UsageError(
            f"--require {text}: an axis or a value is missing",
            code=Code.OPTION_VALUE,
            hint=f"write it as AXIS=VALUE,…; axes: {', '.join(sorted(names))}",
        )
    if unknown := found.keys() - names:
        raise UsageError(
            f"--require {text}: there is no axis {sorted(unknown)[0]!r}",
            code=Code.OPTION_VALUE,
            hint=f"axes: {', '.join(sorted(names))}",
        )
    if not any(_meets(setup, kind, found) for setup in setups for kind in kinds):
        raise UsageError(
            f"--require {text}: the matrix has no such cell",
            code=Code.OPTION_VALUE,
            hint="check the values; the other options may exclude this cell",
        )
    return found


def _meets(setup: Setup, kind: Kind, requirement: dict[str, str]) -> bool:
    values = {
        "repository": setup.repository,
        "sync": str(setup.sync),
        "recovery": str(int(setup.recovery)),
        "position": "auto" if setup.auto_position else "file",
        "workers": str(setup.workers),
        "engine": setup.engine,
        "kind": str(kind),
    }
    return all(values[name].lower() == value.lower() for name, value in requirement.items())


def _show(
    cells: list[MatrixCell], spec: WorkloadSpec, html: str | None, *, as_json: bool, brief: bool
) -> None:
    from applier.crashtest.heat_map import heat_map, summary
    from applier.crashtest.matrix import reproducer

    def line(setup: Setup, trial: Trial) -> str:
        return reproducer(setup, spec, trial.place)

    title = f"Crash tests of a MySQL {cells[0].setup.server} replica: {' '.join(spec.arguments)}"
    if html is not None:
        try:
            write_whole(html, heat_map(cells, title, line))
        except OSError as error:
            raise cannot_write(error, html, "the heat map") from None
    if as_json:
        shown = [cell.as_dict() for cell in cells]
        for cell, fields in zip(cells, shown, strict=True):
            for verdict, example in fields["counter_examples"].items():
                example["reproduce"] = line(
                    cell.setup,
                    next(trial for key, trial in cell.first.items() if str(key) == verdict),
                )
        click.echo(
            json.dumps(
                {"workload": list(spec.arguments), "summary": summary(cells), "cells": shown},
                ensure_ascii=False,
            )
        )
        return
    from applier.cli.output.crashtest_table import print_brief, print_matrix

    if brief:
        print_brief(cells)
    else:
        print_matrix(cells, line)


class _Progress:
    """A bar on the terminal, on standard error; nothing when that is a file."""

    def __init__(self, total: int) -> None:
        from applier.cli.output.progress import count_progress

        self._progress = count_progress()
        self._shown = draws()
        self._total, self._done = total, 0
        self._task = self._progress.add_task("configurations", total=total)

    def __enter__(self) -> _Progress:
        if self._shown:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._progress.stop()

    def step(self, setups: int) -> None:
        self._progress.advance(self._task, setups)
        self._done += setups
        logger("crashtest").info(
            "configurations are tried", extra={"configurations": self._done, "of": self._total}
        )
