"""`binlag events FILE...`: every event of binary or relay logs, as text, JSON lines or a Parquet file."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from applier.cli.notes import note
from applier.cli.options import check_positions
from applier.error_codes import Code
from applier.errors import UsageError

if TYPE_CHECKING:
    from applier.binlog.listing import Listed

COLUMNS = ("File", "Position", "Event_type", "Server_id", "End_log_pos", "Info")
TYPE_WIDTH = 20
"""The widest name of a common event type."""


@click.command("events", short_help="List every event of binary logs: text, JSON lines or Parquet.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event.")
@click.option("--rows", "with_rows", is_flag=True, help="Decode row values as well.")
@click.option("--parquet", "parquet", metavar="FILE", type=click.Path(dir_okay=False), help="Write a Parquet file, one row per event.")
@click.option(
    "--arrow", "arrow", metavar="DIR", type=click.Path(file_okay=False), help="Write the row images into DIR, one Arrow file per table."
)
@click.option("--start-position", type=click.IntRange(min=0), metavar="N", help="Begin at this offset of the first file.")
@click.option("--stop-position", type=click.IntRange(min=0), metavar="N", help="Stop before the event at this offset of the last file.")
@click.option("--start-datetime", metavar="T", help="Begin with the first event at or after this time (UTC unless an offset is given).")
@click.option("--stop-datetime", metavar="T", help="Stop before the first event at or after this time.")
@click.option("--include-gtids", metavar="SET", help="Only transactions of this GTID set.")
@click.option("--exclude-gtids", metavar="SET", help="No transactions of this GTID set.")
@click.option("--database", "databases", multiple=True, metavar="D", help="Only events of this database (may be repeated).")
@click.option("--table", "tables", multiple=True, metavar="D.T", help="Only table maps and rows of this table (may be repeated).")
@click.option("--verify/--no-verify", default=True, help="Verify checksums (default: yes).")
def command(files: tuple[str, ...], as_json: bool, with_rows: bool, parquet: str | None, arrow: str | None, **options: Any) -> None:
    """Show every event of binary logs or relay logs, in order.

    The text has the columns of SHOW BINLOG EVENTS; an event out of a compressed transaction stands at the position of its payload.
    A transaction without an end, as a crash leaves it, is said on the last line.

    \b
    binlag events demo/binlog.000001
    binlag events demo/binlog.000001 --table shop.parcel --rows --json
    """
    check_positions(files, options["start_position"], options["stop_position"])
    if sum((as_json, parquet is not None, arrow is not None)) > 1:
        raise UsageError("--json, --parquet and --arrow are three outputs of one run", code=Code.OPTIONS_CLASH, hint="give one of them")
    if arrow is not None:
        _write_arrow(arrow, files, options)
    elif parquet is not None:
        _write_parquet(parquet, files, options)
    else:
        _print(files, options, as_json=as_json, with_rows=with_rows)


def _print(files: tuple[str, ...], options: dict[str, Any], *, as_json: bool, with_rows: bool) -> None:
    from applier.binlog.listing import Listing

    listing = Listing(files, with_rows=with_rows, **options)
    output = sys.stdout
    if isinstance(output, io.TextIOWrapper):
        output.reconfigure(errors="backslashreplace")
    write = output.write
    if as_json:
        for listed in listing:
            write(json.dumps(listed.as_dict(), ensure_ascii=False) + "\n")
        _warn(listing.incomplete)
        output.flush()
        return
    width = max(len(Path(name).name) for name in files)
    header = _line(width, *COLUMNS) + "\n"
    for listed in listing:
        event = listed.event
        write(header)
        header = ""
        write(_line(width, event.file, event.position, event.name, event.server_id, event.log_pos, listed.info) + "\n")
        for row in listed.row_lines():
            write(f"{'':{width}}    {row}\n")
    output.flush()
    _warn(listing.incomplete)


def _line(width: int, file: str, position: object, name: str, server_id: object, end: object, info: str) -> str:
    shown = "".join(char if char.isprintable() else _escaped(char) for char in info) if not info.isprintable() else info
    return f"{file:{width}}  {position:>10}  {name:{TYPE_WIDTH}}  {server_id:>10}  {end:>11}  {shown}".rstrip()


def _escaped(char: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char) or char.encode("unicode_escape", "surrogatepass").decode()


def _warn(message: str | None) -> None:
    if message is not None:
        note(message)


def _write_arrow(directory: str, files: tuple[str, ...], options: dict[str, Any]) -> None:
    """Whole logs only: the kernels decode rows by the file, without looking at transactions."""
    from applier.binlog.columnar.export import export

    tables, verify = options.pop("tables"), options.pop("verify")
    asked = next((name for name, value in options.items() if value), None)
    if asked is not None:
        flag = "--database" if asked == "databases" else f"--{asked.replace('_', '-')}"
        raise UsageError(
            f"--arrow writes whole logs; {flag} does not go with it", code=Code.OPTIONS_CLASH, hint="choose tables with --table"
        )
    for written in export(files, directory, file_format="arrow", tables=tables or None, verify_checksum=verify):
        click.echo(f"{written.path}: {written.rows:,} row images of {written.database}.{written.table}")


BATCH = 65536
"""Events per row group of a Parquet file."""


def _write_parquet(target: str, files: tuple[str, ...], options: dict[str, Any]) -> None:
    from applier.binlog.listing import Listing
    from applier.whole_file import whole_file

    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError("--parquet needs pyarrow", code=Code.NO_LIBRARY, hint="pip install 'binlag[arrow]'") from None
    fields: dict[str, tuple[Any, Callable[[Listed], Any]]] = {
        "file": (pa.string(), lambda listed: listed.event.file),
        "position": (pa.int64(), lambda listed: listed.event.position),
        "end_log_pos": (pa.int64(), lambda listed: listed.event.log_pos),
        "type": (pa.string(), lambda listed: listed.event.name),
        "timestamp": (pa.timestamp("s", tz="UTC"), lambda listed: listed.event.timestamp),
        "server_id": (pa.int64(), lambda listed: listed.event.server_id),
        "gtid": (pa.string(), lambda listed: listed.gtid),
        "database": (pa.string(), lambda listed: listed.database),
        "table": (pa.string(), lambda listed: listed.table),
        "rows": (pa.int64(), lambda listed: listed.row_count),
        "event_bytes": (pa.int64(), lambda listed: listed.event.length),
    }
    schema = pa.schema([(name, kind) for name, (kind, _) in fields.items()])
    listing = Listing(files, count_rows=True, **options)
    with whole_file(target) as place, _opened(lambda: pq.ParquetWriter(place, schema), target) as writer:
        for batch in _batches(iter(listing)):
            columns = [pa.array([read(listed) for listed in batch], kind) for kind, read in fields.values()]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    _warn(listing.incomplete)


def _opened(make: Callable[[], AbstractContextManager[Any]], target: str) -> AbstractContextManager[Any]:
    from applier.errors import InputError

    try:
        return make()
    except OSError as error:
        raise InputError(f"cannot write the file: {error.strerror or error}", code=Code.CANNOT_WRITE, file=target) from None


def _batches(listed: Iterator[Listed]) -> Iterator[list[Listed]]:
    batch: list[Listed] = []
    for item in listed:
        batch.append(item)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
