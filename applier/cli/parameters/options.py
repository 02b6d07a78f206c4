"""Options that several commands share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from applier.cli.notes import note
from applier.error_codes import Code
from applier.errors import UsageError
from applier.server_versions import asked_rules, remark
from applier.sources import STANDARD_INPUT
from applier.whole_file import can_write
from lookup.versions import RULES, ServerRules

INPUT = click.Path(readable=False)
"""A file, a folder or a server: shells complete names of files; the reader of it checks it."""
DUMPS = (
    "a mysqldump (plain, .gz, .zst, .xz, or -), a folder of mydumper, MySQL Shell or skeema, or"
    " mysql://USER@HOST:PORT."
)
DEFAULT_DATABASE_HELP = (
    "Of the tables of a dump that names none. [default: the one in the dump's head]"
)
_NAMES = (
    click.option(
        "--database",
        multiple=True,
        metavar="D",
        help="Only tables of this database, whatever USE said (replicate_do_db goes by USE); "
        "% and _ as in LIKE (repeatable).",
    ),
    click.option(
        "--table",
        multiple=True,
        metavar="D.T",
        help="Only this table; % and _ as in replicate_wild_do_table (repeatable).",
    ),
    click.option(
        "--exclude-database", multiple=True, metavar="D", help="Not this database (repeatable)."
    ),
    click.option(
        "--exclude-table", multiple=True, metavar="D.T", help="Not this table (repeatable)."
    ),
)
_PARTS = (
    click.option(
        "--start-position",
        type=click.IntRange(min=4),
        metavar="N",
        help="Start at this byte of the first file.",
    ),
    click.option(
        "--stop-position",
        type=click.IntRange(min=4),
        metavar="N",
        help="Stop before the event at this byte of the last file.",
    ),
    click.option(
        "--start-datetime",
        metavar="T",
        help="Only events from this time on (UTC unless it names a zone).",
    ),
    click.option("--stop-datetime", metavar="T", help="Only events before this time."),
    click.option("--include-gtids", metavar="SET", help="Only these transactions."),
    click.option("--exclude-gtids", metavar="SET", help="Not these transactions."),
)
_REPLAY = (
    click.option(
        "--schema",
        type=INPUT,
        metavar="DUMP",
        help=f"Tables and rows before the log: {DUMPS}",
    ),
    click.option("--default-database", metavar="D", help=DEFAULT_DATABASE_HELP),
    click.option(
        "--server",
        metavar="VERSION",
        help="Whose rules: 5.6, 5.7, 8.0, 8.4, 9.7 or mariadb. [default: the log's]",
    ),
    click.option(
        "--exec-mode",
        type=click.Choice(["strict", "idempotent"]),
        default="strict",
        show_default=True,
        help="slave_exec_mode.",
    ),
    click.option(
        "--skip-errors",
        default="",
        metavar="LIST",
        help='slave_skip_errors: numbers, "all" or "ddl_exist_errors".',
    ),
    click.option(
        "--type-conversions",
        default="",
        metavar="LIST",
        help="slave_type_conversions: ALL_LOSSY, ALL_NON_LOSSY, …",
    ),
    click.option(
        "--lower-case-table-names",
        type=click.IntRange(0, 1),
        metavar="N",
        help="1: names of databases and tables are read in lower case; logs of Windows and macOS"
        " need it. [default: 0, or as a server at hand has it]",
    ),
    click.option(
        "--rewrite-db",
        multiple=True,
        metavar="A:B",
        help="Rows and statements of database A go to B; filters name A.",
    ),
)


class Number(click.FloatRange):
    """A number in a range; nan and inf are in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click does. Fails for what is not finite."""
        with suppress(ValueError):
            if not math.isfinite(float(value)):
                self.fail(f"{value!r} is not a number.", param, ctx)
        return super().convert(value, param, ctx)


def rules_of(server: str, *, offered: Iterable[str] = RULES) -> ServerRules:
    """The rules that --server names, one of the versions that are `offered`; a note where they are
    those of an older version. Raises UsageError."""
    rules, said = asked_rules(server, offered=offered), remark(server, "--server")
    if said is not None:
        note(said)
    return rules


def was_typed(name: str) -> bool:
    """Whether the user gave this parameter of the command, and did not leave it at its default."""
    return (
        click.get_current_context().get_parameter_source(name)
        is click.core.ParameterSource.COMMANDLINE
    )


def check_positions(files: Sequence[str], start: int | None, stop: int | None) -> None:
    """Of one file, --stop-position is behind --start-position; of several they are in different
    ones. Raises UsageError."""
    if len(files) == 1 and start is not None and stop is not None and stop < start:
        raise UsageError(
            f"--stop-position {stop} is before --start-position {start}",
            code=Code.OPTIONS_CLASH,
            hint="exchange them",
        )


def check_inputs(files: Sequence[str], schema: str | None, info: str | None = None) -> None:
    """Standard input is read once. Raises UsageError."""
    given = {"--schema": schema == STANDARD_INPUT, "--info": info == STANDARD_INPUT}
    taken = [name for name, is_taken in given.items() if is_taken]
    taken += ["a log", "another log"][: list(files).count(STANDARD_INPUT)]
    if len(taken) > 1:
        raise UsageError(
            f"{taken[0]} and {taken[1]} both come from standard input",
            code=Code.OPTIONS_CLASH,
            hint="give one of them as a file",
        )


def check_output(option: str, path: str | None, can: Callable[[str], bool] = can_write) -> None:
    """Asked before the work, which may take long. Raises UsageError where nothing can be written;
    `can` is can_write_into for a folder."""
    if path is not None and not can(path):
        raise UsageError(f"{option}: cannot write {path}{_why(path)}", code=Code.CANNOT_WRITE)


def _why(path: str) -> str:
    """What is known of the reason."""
    folder = Path(os.path.realpath(path)).parent
    if not folder.exists():
        return f": there is no folder {folder}"
    return "" if os.access(folder, os.W_OK) else ": Permission denied"


def replay_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that decide what a replay in memory leaves behind, those that pick a part of
    the log among them."""
    return with_options(_REPLAY, filter_options(command))


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that pick a part of the log."""
    return name_options(part_options(command))


def part_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that pick a part of the log by position, time and GTID."""
    return with_options(_PARTS, command)


def name_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --database, --table, --exclude-database and --exclude-table: the values of
    `TableFilter.of`."""
    return with_options(_NAMES, command)


def with_options(
    options: tuple[Callable[..., Any], ...], command: Callable[..., Any]
) -> Callable[..., Any]:
    """Adds options, in this order."""
    for option in reversed(options):
        command = option(command)
    return command
