"""What a command says beside its result: notes, progress, and --log-level and --log-json, which
every command takes.

With --log-json all that stands on standard error is a JSON object a line, also notes and the error
that ends a command. Progress bars are drawn on a terminal where nothing else is written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from applier.cli.failures import Running

LEVELS = ("debug", "info", "warning", "error")


def running_command() -> Running:
    """What is under way; of no command, nothing special."""
    context = click.get_current_context(silent=True)
    return (context.find_object(Running) if context is not None else None) or Running()


def note(text: str, running: Running | None = None, **said: Any) -> None:
    """A line for people; with --log-json a record of `applier.cli` with what else is `said`."""
    if (running or running_command()).log_json:
        from applier.logs import logger

        logger("cli").warning("%s", text, extra=said)
    else:
        click.echo(f"binlag: {text}", err=True)


def is_logged() -> bool:
    """Whether the loggers write to standard error."""
    running = running_command()
    return running.log_json or running.log_level is not None


def draws() -> bool:
    """Whether progress is shown."""
    return sys.stderr.isatty() and not is_logged()


def log_options() -> Iterator[click.Option]:
    """--log-level and --log-json, new for each command."""
    yield click.Option(
        ["--log-level"],
        type=click.Choice(LEVELS, case_sensitive=False),
        expose_value=False,
        is_eager=True,
        callback=_level,
        help="Log to stderr at this level and above.",
    )
    yield click.Option(
        ["--log-json"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_json,
        help="The same as JSON lines: time, level, logger, message, and e.g. file, position, gtid.",
    )


def _level(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    running = context.find_object(Running)
    if value is not None and running is not None:
        running.log_level = value
        running.log_begin()


def _json(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    running = context.find_object(Running)
    if value and running is not None:
        running.log_json = True
        running.log_begin()
