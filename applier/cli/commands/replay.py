"""`binlag replay`: logs in, tables out, and what each table cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from applier.cli import failures
from applier.cli.notes import draws, note
from applier.cli.parameters.metrics_options import CHANNEL, OPENMETRICS
from applier.cli.parameters.options import (
    Number,
    check_inputs,
    check_output,
    check_positions,
    replay_options,
)
from applier.cli.parameters.server_options import server_options
from applier.error_codes import Code
from applier.errors import UsageError
from applier.result import ReplayResult, RowsRecord
from applier.whole_file import can_write_into, whole_file
from lookup.versions import NEWEST

if TYPE_CHECKING:
    from applier.tables.catalog import Tables


@click.command(
    name="replay", short_help="Replay binary logs into tables and say what each table cost."
)
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@click.option(
    "--follow",
    is_flag=True,
    help="Wait for more at the end of a folder of relay logs, until Ctrl-C.",
)
@click.option(
    "--into",
    default="memory",
    metavar="TARGET",
    show_default=True,
    help="Where to: memory, or mysql://USER@HOST:PORT.",
)
@replay_options
@click.option(
    "--row-search",
    metavar="LIST",
    help="slave_rows_search_algorithms, e.g. INDEX_SCAN,HASH_SCAN. [default: the server's]",
)
@click.option(
    "--apply",
    type=click.Choice(["native", "sql"]),
    help="Into a server: the log's events or statements. [default: native]",
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    metavar="N",
    help="Into a server: source transactions per commit. [default: 256]",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Into a server: connections at the same time. [default: 4 for large transactions, else 1]",
)
@click.option(
    "--any-commit-order",
    is_flag=True,
    help="Into a server, with --workers: do not keep the log's order of commits.",
)
@click.option(
    "--gtid",
    is_flag=True,
    help="Into a server: each transaction under its own GTID; what the server has is left out.",
)
@click.option(
    "--disable-log-bin",
    is_flag=True,
    help="Into a server: write nothing of it to that server's own binary log.",
)
@click.option(
    "--reconnect-seconds",
    type=Number(min=0),
    metavar="N",
    help="Into a server: so long a lost connection is tried again, 0: not at all. [default: 60]",
)
@click.option("--until-gtid", metavar="GTID", help="Into a server: end after this transaction.")
@click.option(
    "--replay-id",
    metavar="NAME",
    help="Into a server: the name of its position. [default: server id and name of the log]",
)
@click.option(
    "--with-routines",
    is_flag=True,
    help="Into a server: the triggers, events and routines of --schema, too.",
)
@click.option(
    "--without-accounts",
    is_flag=True,
    help="Into a server: not the log's statements about accounts, roles and privileges.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Into a server: even if it has replicas, or its databases hold other data.",
)
@click.option(
    "--dry-run", is_flag=True, help="Into a server: say what would be replayed, and change nothing."
)
@click.option(
    "--dump",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write the tables afterwards, one .tsv each.",
)
@OPENMETRICS
@CHANNEL
@click.option(
    "--stats",
    type=click.Path(dir_okay=False),
    metavar="FILE.jsonl",
    help="Write one JSON object per rows event.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@server_options
def command(
    files: tuple[str, ...], follow: bool, into: str, schema: str | None,
    default_database: str | None, dump: str | None, stats: str | None, as_json: bool,
    openmetrics: str | None, channel: str | None, **options: Any,
) -> int:  # fmt: skip
    """Replay FILES, in order, into tables in memory or into a server. A folder stands for the logs
    that its index names.

    In memory each row is found as the server would find it; the handler calls that this costs are
    counted exactly. Into a server the log is replayed exactly once: the position is kept there
    (binlag.slave_relay_log_info), and the same command goes on where it ended. Exit code 0: done;
    1: the applier stopped with a replication error; 2: bad usage or unreadable input.
    """
    from applier.cli.commands.follow import figures, logs_of
    from applier.cli.commands.replay_into import (
        SERVER_OPTIONS,
        refuse_memory_options,
        refuse_server_options,
        replay_into_server,
    )

    check_inputs(files, schema)
    logs = logs_of(files, follow=follow, stop_position=options["stop_position"])
    check_positions(logs, options["start_position"], options["stop_position"])
    own = {name: options.pop(name) for name in SERVER_OPTIONS}
    if into != "memory":
        refuse_memory_options(dump=dump, stats=stats)
        given = {"password_file": None, "default_database": default_database, **options}
        given |= {name: value for name, value in own.items() if value is not None}
        with figures(logs, openmetrics, channel) as applying:
            return replay_into_server(
                logs, into, schema=schema, as_json=as_json, applying=applying, **given
            )
    password_file = own.pop("password_file")
    refuse_server_options(
        **own, password_file=None if schema and "://" in schema else password_file
    )
    check_output("--dump", dump, can_write_into)
    from applier.binlog.follow import IndexedLogs
    from applier.cli.signals import interruptible
    from applier.options import parse_options
    from applier.replay_loop import replay
    from applier.schema_source import Selection, tables_of
    from applier.tables.catalog import Tables

    parsed = parse_options(**options)
    with ExitStack() as stack:
        selection = Selection.of(parsed, default_database)
        tables = Tables()
        if schema:
            rules = options["server"] or NEWEST
            tables = tables_of(
                schema, server=rules, selection=selection, password_file=password_file, note=note
            )
        sink = stack.enter_context(_stats_file(stats))
        applying = stack.enter_context(figures(logs, openmetrics, channel))
        progress = stack.enter_context(_progress(logs)) if applying is None else applying.took_event
        if isinstance(logs, IndexedLogs) and follow:
            logs.stopped = stack.enter_context(interruptible())
        result = replay(
            logs, tables, on_rows=sink, keep_events=False, on_event=progress,
            on_start=None if applying is None else applying.began, **options,
        )  # fmt: skip
        if applying is not None:
            applying.fail(result.error)
    if dump is not None:
        _dump(tables, dump, result)
    return _tell(result, tables, as_json)


def _dump(tables: Tables, folder: str, result: ReplayResult) -> None:
    for table in tables:
        if (why := table.why_unreadable) is not None:
            name = table.definition.full_name
            result.note(f"the dump has no rows of {name}, which cannot be read: {why}")
    try:
        tables.dump(folder)
    except OSError as error:
        raise UsageError(
            f"--dump: cannot write {error.filename or folder}: {error.strerror or error}",
            code=Code.CANNOT_WRITE,
        ) from None


def _tell(result: ReplayResult, tables: Tables, as_json: bool) -> int:
    """Prints the summary; returns the exit code."""
    if as_json:
        click.echo(json.dumps(result.as_dict(), ensure_ascii=False))
    else:
        from applier.cli.output.summary import print_summary

        print_summary(result, tables)
    if result.error is not None:
        failures.tell(result.error)
        return result.error.exit_code
    return 0


@contextmanager
def _stats_file(path: str | None) -> Iterator[Callable[[Any], None] | None]:
    """A function that writes the records to `path`; None when nobody asked for them."""
    if path is None:
        yield None
        return
    with ExitStack() as stack:
        try:
            place = stack.enter_context(whole_file(path))
            file: IO[str] = stack.enter_context(
                place.open("w", encoding="utf-8", errors="backslashreplace")
            )
        except OSError as error:
            raise UsageError(
                f"--stats: cannot write {path}: {error.strerror}", code=Code.CANNOT_WRITE
            ) from None

        def write(record: RowsRecord) -> None:
            file.write(json.dumps(record.as_dict(), ensure_ascii=False) + "\n")

        yield write


@contextmanager
def _progress(files: Sequence[str]) -> Iterator[Callable[[Any], None] | None]:
    """A progress bar over the bytes of the logs, on a terminal and for logs worth it."""
    size = sum(Path(file).stat().st_size for file in files if Path(file).is_file())
    if not draws() or size < 1 << 20:
        yield None
        return
    from applier.cli.output.progress import byte_progress

    with byte_progress() as bar:
        task = bar.add_task(Path(files[0]).name, total=size)
        pending = 0

        def advance(event: Any) -> None:
            nonlocal pending
            if event.inner_index < 0:
                pending += event.length
                if pending > 1 << 20:
                    bar.update(task, advance=pending, description=event.file)
                    pending = 0

        yield advance
