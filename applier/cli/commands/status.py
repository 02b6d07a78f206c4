"""`binlag status`: SHOW REPLICA STATUS and the performance_schema replication tables of a replica,
from what it left in a folder, or of the replays whose positions a server keeps."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from applier.cli.notes import note
from applier.cli.parameters.metrics_options import CHANNEL, OPENMETRICS, channel_of
from applier.cli.parameters.options import rules_of, was_typed
from applier.cli.parameters.server_options import server_options
from applier.error_codes import Code
from applier.errors import UsageError

if TYPE_CHECKING:
    from applier.status.view import ReplicaView

FORMATS = click.option(
    "--format",
    "form",
    type=click.Choice(["vertical", "table", "json"]),
    default="vertical",
    show_default=True,
    help="As the mysql client prints with \\G, as a table, or as JSON.",
)


@click.command(
    name="status",
    short_help=(
        "Show the replica status from the files of a folder, or from a replay's rows in a server."
    ),
)
@click.argument("place", metavar="DIR|URL", type=click.Path(file_okay=False))
@click.option(
    "--server",
    metavar="VERSION",
    help="Whose files and whose columns: 5.6, 5.7, 8.0, … [default: as the files tell]",
)
@click.option(
    "--old-names", is_flag=True, help="The columns of SHOW SLAVE STATUS where the version has both."
)
@click.option(
    "--performance-schema",
    "tables",
    is_flag=True,
    help="The performance_schema replication tables as well.",
)
@FORMATS
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@OPENMETRICS
@CHANNEL
@server_options
def command(
    place: str,
    server: str | None,
    old_names: bool,
    tables: bool,
    form: str,
    as_json: bool,
    openmetrics: str | None,
    channel: str | None,
    password_file: str | None,
) -> None:
    """Show what SHOW REPLICA STATUS would say of the replica whose info files and relay logs are in
    DIR.

    DIR is what `binlag receive --dir` writes, or a server's data directory (5.6 to 8.0 with
    repositories of type FILE). The files are read, never written. What they do not tell is NULL: a
    position is not guessed, and the lag of a replica that does not run is unknown.

    With the URL of a server, mysql://USER@HOST:PORT, it shows the replays whose positions are kept
    there, each as a channel; --channel chooses one. JSON is a list then.
    """
    form = chosen_format(form, as_json=as_json)
    if server is not None:
        rules_of(server)
    if "://" in place:
        if openmetrics is not None:
            raise UsageError(
                "--openmetrics: of a folder only", code=Code.OPTIONS_CLASH, hint="leave it out"
            )
        views = _views(place, server, channel, password_file)
        drawn = [
            "\n".join(render(view, form, old_names=old_names, tables=tables)) for view in views
        ]
        click.echo(f"[{', '.join(drawn)}]" if form == "json" else "\n".join(drawn))
        return
    from applier.receive.folder_view import view_of_folder

    folder = place
    label = channel_of(Path(folder), openmetrics, channel)
    view, notes = view_of_folder(Path(folder), server)
    if openmetrics is not None:
        from applier import metrics

        metrics.write(metrics.of_view(view, label), openmetrics)
    for line in render(view, form, old_names=old_names, tables=tables):
        click.echo(line)
    for text in notes:
        note(text)


def _views(
    url: str, version: str | None, channel: str | None, password_file: str | None
) -> Sequence[ReplicaView]:
    from applier.mysql.client.connection import connect
    from applier.mysql.client.url import find_password, parse_url
    from applier.status.server_view import views_of_server

    endpoint = parse_url(url, "status").with_password(
        find_password(password_file, ask=_ask if sys.stdin.isatty() else None)
    )
    with closing(connect(endpoint)) as server:
        views = views_of_server(server, version)
    chosen = [view for view in views if channel in (None, view.channel)]
    if not chosen:
        names = ", ".join(view.channel for view in views)
        raise UsageError(
            f"--channel: there is no replay {channel!r}",
            code=Code.OPTION_VALUE,
            hint=f"there are {names}",
        )
    return chosen


def _ask() -> str:
    return str(click.prompt("Password", hide_input=True, default="", show_default=False, err=True))


def chosen_format(form: str, *, as_json: bool) -> str:
    """What --format and --json ask for together. Raises UsageError where that is two things."""
    if as_json and form != "json" and was_typed("form"):
        raise UsageError(
            f"--json and --format {form} are two outputs",
            code=Code.OPTIONS_CLASH,
            hint="give one of them",
        )
    return "json" if as_json else form


def render(view: ReplicaView, form: str, *, old_names: bool, tables: bool) -> Iterator[str]:
    """The lines of the output. `tables`: those of performance_schema follow; JSON always has
    them."""
    from applier.cli.output import rows
    from applier.status.performance_schema import performance_schema
    from applier.status.status import show_status

    try:
        status = show_status(view, old_names=True if old_names else None)
    except ValueError as error:
        raise UsageError(str(error), code=Code.OPTION_VALUE, hint="leave out --old-names") from None
    if form == "json":
        yield json.dumps(
            {
                "server": view.version,
                "status": status,
                "workers": [_worker(info) for info in view.worker_infos],
                "performance_schema": performance_schema(view),
            },
            indent=2,
        )
        return
    draw = rows.vertical if form == "vertical" else rows.table
    yield from draw([status])
    if view.worker_infos:
        yield from ("", "workers")
        yield from rows.table([_worker(info) for info in view.worker_infos])
    for name, content in (performance_schema(view) if tables else {}).items():
        yield from ("", f"performance_schema.{name}")
        yield from draw(content)


def _worker(info: Any) -> dict[str, Any]:
    """One worker's record, with the groups since the checkpoint that it executed."""
    record = asdict(info)
    groups = " ".join(map(str, info.executed_groups))
    return {
        "id": record["id"],
        "relay_log": record["relay_log_name"],
        "relay_log_pos": record["relay_log_pos"],
        "source_log": record["source_log_name"],
        "source_log_pos": record["source_log_pos"],
        "checkpoint_relay_log_pos": record["checkpoint_relay_log_pos"],
        "checkpoint_source_log_pos": record["checkpoint_source_log_pos"],
        "executed_groups": groups,
    }
