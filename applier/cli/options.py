"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from applier.cli.notes import note
from applier.error_codes import Code
from applier.errors import UsageError
from applier.server_versions import asked_rules, remark
from applier.whole_file import can_write
from lookup.versions import ServerRules

_FILTERS = (
    click.option("--database", multiple=True, metavar="D", help="Only this database (repeatable)."),
    click.option("--table", multiple=True, metavar="D.T", help="Only this table (repeatable)."),
    click.option("--start-position", type=click.IntRange(min=4), metavar="N", help="Start at this byte of the first file."),
    click.option("--stop-position", type=click.IntRange(min=4), metavar="N", help="Stop before the event at this byte of the last file."),
    click.option("--start-datetime", metavar="T", help="Only events from this time on (UTC unless it names a zone)."),
    click.option("--stop-datetime", metavar="T", help="Only events before this time."),
    click.option("--include-gtids", metavar="SET", help="Only these transactions."),
    click.option("--exclude-gtids", metavar="SET", help="Not these transactions."),
)
_REPLAY = (
    click.option("--schema", type=click.Path(dir_okay=False), metavar="FILE.sql", help="Tables and rows before the log: a mysqldump."),
    click.option("--server", metavar="VERSION", help="Whose rules: 5.6, 5.7, 8.0, 8.4, 9.7 or mariadb. [default: the log's]"),
    click.option("--exec-mode", type=click.Choice(["strict", "idempotent"]), default="strict", show_default=True, help="slave_exec_mode."),
    click.option("--skip-errors", default="", metavar="LIST", help='slave_skip_errors: numbers, "all" or "ddl_exist_errors".'),
    click.option("--type-conversions", default="", metavar="LIST", help="slave_type_conversions: ALL_LOSSY, ALL_NON_LOSSY, …"),
    click.option("--rewrite-db", multiple=True, metavar="A:B", help="Rows and statements of database A go to B."),
)


def rules_of(server: str) -> ServerRules:
    """The rules that --server names; a note where they are those of an older version. Raises UsageError."""
    rules, said = asked_rules(server), remark(server, "--server")
    if said is not None:
        note(said)
    return rules


def check_positions(files: Sequence[str], start: int | None, stop: int | None) -> None:
    """Of one file, --stop-position is behind --start-position; of several they are in different ones. Raises UsageError."""
    if len(files) == 1 and start is not None and stop is not None and stop < start:
        raise UsageError(f"--stop-position {stop} is before --start-position {start}", code=Code.OPTIONS_CLASH, hint="exchange them")


def check_output(option: str, path: str | None, can: Callable[[str], bool] = can_write) -> None:
    """Asked before the work, which may take long. Raises UsageError where nothing can be written; `can` is can_write_into for a folder."""
    if path is not None and not can(path):
        raise UsageError(f"{option}: cannot write {path}", code=Code.CANNOT_WRITE)


def replay_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that decide what a replay in memory leaves behind, those that pick a part of the log among them."""
    return _with(_REPLAY, filter_options(command))


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that pick a part of the log."""
    return _with(_FILTERS, command)


def _with(options: tuple[Callable[..., Any], ...], command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command
