"""`binlag verify`: does a server hold what the log leaves behind?"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from applier.cli import failures
from applier.cli.commands.follow import logs_of
from applier.cli.notes import note
from applier.cli.parameters.options import check_inputs, check_positions, replay_options
from applier.cli.parameters.server_options import server_options
from applier.error_codes import Code
from applier.errors import NOT_SUPPORTED, ReplicationError, UsageError
from applier.options import ReplayOptions, parse_options

if TYPE_CHECKING:
    from applier.mysql.client.connection import Server
    from applier.mysql.client.url import Endpoint
    from applier.mysql.contents.verify import RowDifference, TableReport, Verification
    from applier.mysql.positions.checkpoint import Checkpoint
    from applier.result import ReplayResult

ROWS_SHOWN = 3
"""Differing rows of a table that are printed; --json has more."""
TRUSTED = (
    "rows and definitions are taken from the log (and --schema), replayed in memory; "
    "the server is the side under test"
)
VALUE_WIDTH = 60
"""Characters of a value that are printed."""


@click.command(
    name="verify", short_help="Compare a server's tables with those of the replay in memory."
)
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@click.option("--into", required=True, metavar="URL", help="The server: mysql://USER@HOST:PORT.")
@replay_options
@click.option(
    "--replay-id",
    metavar="NAME",
    help="The replay whose position on the server holds. [default: from the source and its log]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@server_options
def command(
    files: tuple[str, ...],
    into: str,
    password_file: str | None,
    schema: str | None,
    default_database: str | None,
    replay_id: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Replay FILES, in order, into tables in memory, and compare the tables of a server with them.

    The log counts up to where the server's own replay of it stands; to its end when it has none. A
    folder stands for the logs that its index names. What is trusted: the rows and definitions of
    the log (and --schema), replayed in memory; the server is under test. Every row of every table
    is compared, tables without a key too, and columns and keys of its definition. A table that
    memory does not hold exactly is "not comparable". Exit code 0: no difference; 1: the tables
    differ, or the log stops with a replication error; 2: bad usage, unreadable input, or no
    difference and a table that is not comparable.
    """
    from applier.mysql.client.connection import connect
    from applier.mysql.client.url import find_password, parse_url
    from applier.mysql.contents.verify import verify
    from applier.mysql.positions.checkpoint import read_checkpoint
    from applier.mysql.positions.checkpoint import replay_id as default_id
    from applier.replay_loop import replay
    from applier.result import ReplayResult
    from applier.schema_source import Selection, tables_of
    from applier.tables.catalog import Tables

    check_inputs(files, schema)
    parsed = parse_options(**options)
    logs = tuple(logs_of(files, follow=False, stop_position=options["stop_position"]))
    check_positions(logs, options["start_position"], options["stop_position"])
    endpoint = parse_url(into).with_password(
        find_password(password_file, ask=_ask if sys.stdin.isatty() else None)
    )
    server = connect(endpoint)
    try:
        rules = options["server"] or server.rules_version
        parsed = _with_names_of(server, options)
        selection = Selection.of(parsed, default_database)
        tables = Tables()
        if schema:
            tables = tables_of(
                schema, server=rules, selection=selection, password_file=password_file, note=note
            )
        checkpoint = read_checkpoint(server, replay_id or default_id(list(logs)))
        if checkpoint is not None:
            logs, options["stop_position"] = _recorded(server, checkpoint, logs)
        result = replay(logs, tables, keep_events=False, **options) if logs else ReplayResult()
        verification = verify(
            server,
            tables,
            _wanted(parsed),
            databases=checkpoint.databases if checkpoint else (),
            inexact=_inexact(result),
            log_rules=result.server or rules,
        )
    finally:
        server.close()
    looked_at = bool(verification.tables) or (checkpoint is not None and bool(checkpoint.databases))
    if not looked_at and result.error is None:
        raise _nothing_to_compare(endpoint)
    for text in _not_compared(parsed, [table.table for table in verification.tables]):
        note(text)
    return _tell(verification, result, as_json)


def _nothing_to_compare(endpoint: Endpoint) -> UsageError:
    return UsageError(
        f"no table to compare: neither the log nor {endpoint} has one",
        code=Code.NOTHING_CHOSEN,
        hint="give the log, and the --schema, that the server was filled with",
    )


def _with_names_of(server: Server, options: dict[str, Any]) -> ReplayOptions:
    """The options, with the server's own lower_case_table_names where none is given."""
    if options["lower_case_table_names"] is None:
        options["lower_case_table_names"] = int(server.lower_case_names)
    return parse_options(**options)


def _tell(verification: Verification, result: ReplayResult, as_json: bool) -> int:
    """Prints the result; returns the exit code."""
    if as_json:
        found = {**verification.as_dict(), "replay": result.as_dict()}
        click.echo(json.dumps(found, ensure_ascii=False))
    else:
        for line in report_lines(verification):
            click.echo(line)
    if result.error is not None:
        failures.tell(result.error, during="the replay in memory stopped: ")
    if verification.differs or (result.error is not None and result.error.number != NOT_SUPPORTED):
        return ReplicationError.exit_code
    return 0 if verification.equal and result.error is None else UsageError.exit_code


def _inexact(result: ReplayResult) -> Callable[[str, str], str | None]:
    """Why memory does not hold what a server would have of a table: a refusal, skipped or not, is
    ours and not the server's."""
    error = result.error
    if error is not None and error.number == NOT_SUPPORTED:
        return lambda database, table: f"the replay in memory stopped: {error.message}"
    known = result.inexact
    return lambda database, table: known.get(f"{database}.{table}", known.get(""))


def _recorded(
    server: Server, checkpoint: Checkpoint, files: tuple[str, ...]
) -> tuple[tuple[str, ...], int | None]:
    """The files, and the byte of the last one, up to which the server's own replay of them has
    come."""
    from applier.mysql.positions.checkpoint import check_mark
    from applier.mysql.positions.commit_ranges import CommitRanges

    done = CommitRanges(checkpoint.replay)
    done.read(server)
    done.pass_before(checkpoint.position, files)
    under_way = {
        "while its dump was loaded": not checkpoint.loaded,
        "in a DDL statement": checkpoint.ddl is not None,
        "with transactions committed beyond its position": done.is_ahead,
    }
    for what, is_so in under_way.items():
        if is_so:
            raise UsageError(
                f"the replay {checkpoint.replay!r} ended {what}",
                code=Code.REPLAY_UNFINISHED,
                hint="run it again, then verify",
            )
    if not checkpoint.file:
        return (), None
    names = [Path(file).name for file in files]
    if checkpoint.file not in names:
        raise UsageError(
            f"the replay stands in {checkpoint.file}, which is not among the files",
            code=Code.MISSING_FILES,
            hint="give all files from the first on",
        )
    check_mark(list(files), checkpoint)
    return files[: names.index(checkpoint.file) + 1], checkpoint.offset


def _ask() -> str:
    return str(click.prompt("Password", hide_input=True, default="", show_default=False, err=True))


def _wanted(options: ReplayOptions) -> Callable[[str, str], bool]:
    """--database and --table name what stands in the log; the server has it under the names that
    --rewrite-db made."""
    names = {new: old for old, new in options.rewrite.items()}
    return lambda database, table: options.wants(names.get(database, database), table)


def _not_compared(options: ReplayOptions, compared: Sequence[str]) -> list[str]:
    """A text for each --database and --table that names none of the tables that were compared."""
    names = {new: old for old, new in options.rewrite.items()}
    found = []
    for table in compared:
        database, _, name = table.partition(".")
        found.append((names.get(database, database), name))
    return [
        f"{one} names no table that was compared"
        for one in dict.fromkeys(options.only.databases + options.only.tables)
        if not any(one.names(*table) for table in found)
    ]


def report_lines(verification: Verification) -> list[str]:
    """The result for people."""
    lines = [line for table in verification.tables for line in _table_lines(table)]
    count, rows = len(verification.tables), verification.rows
    different = sum(table.differs for table in verification.tables)
    open_ones = sum(table.not_comparable is not None for table in verification.tables)
    if different:
        lines.append(f"{different} of {count:,} tables differ")
    if open_ones:
        lines.append(f"{open_ones} of {count:,} tables are not comparable")
    if lines:
        return [*lines, TRUSTED]
    return [f"no difference: {count:,} tables, {rows:,} rows"]


def _table_lines(table: TableReport) -> list[str]:
    lines = (
        [f"{table.table}: not comparable: {table.not_comparable}"] if table.not_comparable else []
    )
    if table.definition:
        lines.append(f"{table.table}: {'; '.join(table.definition)}")
    if table.problem or table.missing or table.extra:
        told = f": {table.problem}" if table.problem else ""
        counts = f"{table.missing:,} missing, {table.extra:,} too many"
        rows = f"{table.found_rows:,} rows where {table.expected_rows:,} are expected"
        lines.append(f"{table.table}{told}; {rows}, {counts}")
    lines += [f"  {_row_line(row)}" for row in table.differences[:ROWS_SHOWN]]
    hidden = max(table.missing, table.extra, len(table.differences)) - ROWS_SHOWN
    return lines + ([f"  … and {hidden:,} more"] if hidden > 0 else [])


def _row_line(row: RowDifference) -> str:
    shown = row.as_dict()
    expected, found = shown["expected"], shown["found"]
    if expected is not None and found is not None:
        same = {name: value for name, value in expected.items() if name not in shown["differing"]}
        changes = ", ".join(
            f"{name} is {_value(found[name])}, should be {_value(expected[name])}"
            for name in shown["differing"]
        )
        return f"differs: {changes}; in the row {_cells(dict(list(same.items())[:4]))}"
    return f"missing: {_cells(expected)}" if expected is not None else f"too many: {_cells(found)}"


def _cells(row: dict[str, str | None]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in row.items())


def _value(value: str | None) -> str:
    if value is None:
        return "NULL"
    return repr(value if len(value) <= VALUE_WIDTH else value[: VALUE_WIDTH - 1] + "…")
