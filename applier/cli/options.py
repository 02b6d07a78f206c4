"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

FILES = click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False), metavar="FILE...")

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


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that pick a part of the log."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command
