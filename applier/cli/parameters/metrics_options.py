"""--openmetrics, for every command that runs for long or looks at a replica, and --channel."""

from __future__ import annotations

from pathlib import Path

import click

from applier.error_codes import Code
from applier.errors import UsageError

OPENMETRICS = click.option(
    "--openmetrics",
    type=click.Path(dir_okay=False),
    metavar="FILE.prom",
    help="Also write gauges for Prometheus' textfile collector (needs binlag[metrics]).",
)
CHANNEL = click.option(
    "--channel",
    metavar="NAME",
    help="With --openmetrics: the label `channel`. [default: the name of DIR]",
)


def channel_of(folder: Path, openmetrics: str | None, channel: str | None) -> str:
    """The label of a folder's gauges. Raises UsageError for one that nothing would bear."""
    if channel is not None and openmetrics is None:
        raise UsageError(
            "--channel: no gauges are written",
            code=Code.OPTION_MISSING,
            hint="add --openmetrics FILE.prom",
        )
    return folder.resolve().name if channel is None else channel
