"""`binlag events FILE...`: every event of binary or relay logs, as text, JSON lines or a Parquet
file."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from applier.binlog.selection.table_filter import FilterTally, TableFilter
from applier.cli.notes import note
from applier.cli.parameters.options import check_positions, filter_options
from applier.error_codes import Code
from applier.errors import UsageError
from applier.lazy_imports import needed
from applier.sources import log_name

if TYPE_CHECKING:
    from applier.binlog.listing import Listing
    from applier.event_list import LogEvents

COLUMNS = ("File", "Position", "Event_type", "Server_id", "End_log_pos", "Info")
TYPE_WIDTH = 20
"""The widest name of a common event type."""


@click.command("events", short_help="List every event of binary logs: text, JSON lines or Parquet.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event.")
@click.option("--rows", "with_rows", is_flag=True, help="Decode row values as well.")
@click.option(
    "--parquet",
    "parquet",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write a Parquet file, one row per event.",
)
@click.option(
    "--arrow",
    "arrow",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Write the row images into DIR, one Arrow file per table.",
)
@filter_options
@click.option("--verify/--no-verify", default=True, help="Verify checksums (default: yes).")
def command(
    files: tuple[str, ...],
    as_json: bool,
    with_rows: bool,
    parquet: str | None,
    arrow: str | None,
    **options: Any,
) -> None:
    """Show every event of binary logs or relay logs, in order.

    The text has the columns of SHOW BINLOG EVENTS; an event out of a compressed transaction stands
    at the position of its payload. A transaction without an end, as a crash leaves it, is said on
    the last line.
    """
    from applier.cli.commands.follow import logs_of

    files = tuple(logs_of(files))
    check_positions(files, options["start_position"], options["stop_position"])
    options["only"] = TableFilter.of(
        *(options.pop(name) for name in ("database", "table", "exclude_database", "exclude_table"))
    )
    if sum((as_json, parquet is not None, arrow is not None)) > 1:
        raise UsageError(
            "--json, --parquet and --arrow are three outputs of one run",
            code=Code.OPTIONS_CLASH,
            hint="give one of them",
        )
    if arrow is not None:
        _write_arrow(arrow, files, options)
    elif parquet is not None:
        _write_parquet(parquet, files, options)
    else:
        _print(files, options, as_json=as_json, with_rows=with_rows)


def _print(
    files: tuple[str, ...], options: dict[str, Any], *, as_json: bool, with_rows: bool
) -> None:
    from applier.binlog.describe import one_line
    from applier.binlog.listing import Listing
    from applier.tables.sql.statement_names import names_of

    listing = Listing(files, with_rows=with_rows, names_of=names_of, **options)
    output = sys.stdout
    if isinstance(output, io.TextIOWrapper):
        output.reconfigure(errors="backslashreplace")
    write = output.write
    if as_json:
        for listed in listing:
            write(json.dumps(listed.as_dict(), ensure_ascii=False) + "\n")
        _warn(listing)
        output.flush()
        return
    width = max(len(log_name(name)) for name in files)
    header = _line(width, *COLUMNS) + "\n"
    for part in listing.with_lines(width):
        write(header)
        header = ""
        if isinstance(part, str):
            write(part)
            continue
        event = part.event
        write(
            _line(
                width,
                event.file,
                event.position,
                event.name,
                event.server_id,
                event.log_pos,
                one_line(part.info),
            )
            + "\n"
        )
        for row in part.row_lines():
            write(f"{'':{width}}    {row}\n")
    output.flush()
    _warn(listing)


def _line(
    width: int, file: str, position: object, name: str, server_id: object, end: object, info: str
) -> str:
    head = f"{file:{width}}  {position:>10}  {name:{TYPE_WIDTH}}"
    return f"{head}  {server_id:>10}  {end:>11}  {info}".rstrip()


def _warn(read: Listing | LogEvents) -> None:
    for message in filter(None, (read.incomplete, read.nothing, *read.unmatched)):
        note(message)


def _write_arrow(directory: str, files: tuple[str, ...], options: dict[str, Any]) -> None:
    """Whole logs only: the kernels decode rows by the file, without looking at transactions."""
    from applier.binlog.columnar.export import export

    only, verify = FilterTally(options.pop("only")), options.pop("verify")
    asked = next((name for name, value in options.items() if value), None)
    if asked is not None:
        flag = f"--{asked.replace('_', '-')}"
        raise UsageError(
            f"--arrow writes whole logs; {flag} does not go with it",
            code=Code.OPTIONS_CLASH,
            hint="choose tables with --table",
        )
    found = export(files, directory, file_format="arrow", tables=only, verify_checksum=verify)
    if not found:
        note(f"the log has no row images{' of these tables' if only else ''}")
    for message in only.unmatched() if found else ():
        note(message)
    for written in found:
        click.echo(
            f"{written.path}: {written.rows:,} row images of {written.database}.{written.table}"
        )


def _write_parquet(target: str, files: tuple[str, ...], options: dict[str, Any]) -> None:
    from applier.event_list import LogEvents, arrow_schema
    from applier.whole_file import whole_file

    with needed("--parquet needs pyarrow", "binlag[arrow]"):
        import pyarrow.parquet as pq
    events, schema = LogEvents(files, **options), arrow_schema()
    with _opened(
        whole_file(target), lambda place: pq.ParquetWriter(place, schema), target
    ) as writer:
        for batch in events.batches():
            writer.write_batch(batch)
    _warn(events)


@contextmanager
def _opened(
    file: AbstractContextManager[Path],
    make: Callable[[Path], AbstractContextManager[Any]],
    target: str,
) -> Iterator[Any]:
    from applier.errors import cannot_write

    with ExitStack() as stack:
        try:
            writer = stack.enter_context(make(stack.enter_context(file)))
        except OSError as error:
            raise cannot_write(error, target, "the file") from None
        yield writer
