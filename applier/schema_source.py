"""Where the tables before a log come from: a dump in any form, or a live server."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from applier.arguments import checked
from applier.dumps.memory import load_dump
from applier.dumps.source import Selection
from applier.mysql.contents.live_schema import SchemaPlace
from applier.options import parse_options
from applier.server_versions import asked_rules
from applier.tables.catalog import Tables
from lookup.versions import NEWEST


@checked(parse_options)
def load_schema(
    source: str | os.PathLike[str],
    *,
    server: str = NEWEST,
    default_database: str | None = None,
    password_file: str | os.PathLike[str] | None = None,
    note: Callable[[str], None] | None = None,
    **chosen: Any,
) -> Tables:
    """Tables from a dump, from a live server, or from the SQL itself when `source` holds a
    statement.

    A dump is a file (.gz, .xz, .bz2, .zst too), "-" for standard input, or a folder of mydumper,
    MySQL Shell or skeema; a server is mysql://USER@HOST:PORT. `server` says whose defaults hold
    where the SQL leaves something open. `default_database`: of tables to which the dump gives none.
    `chosen`: database, table, exclude_database, exclude_table, rewrite_db, lower_case_table_names,
    as `applier.replay` has them. `note` is told what was left out or assumed. Raises UsageError for
    a wrong option, InputError with the line of the statement.
    """
    selection = Selection.of(parse_options(**chosen), default_database)
    return tables_of(
        source, server=server, selection=selection, password_file=password_file, note=note
    )


def tables_of(
    source: str | os.PathLike[str],
    *,
    server: str,
    selection: Selection,
    password_file: str | os.PathLike[str] | None = None,
    rows: bool = True,
    note: Callable[[str], None] | None = None,
) -> Tables:
    """The same, of what was chosen already. `rows`: those of a live server are wanted, too. Raises
    UsageError, InputError."""
    reader = SchemaPlace(source, password_file).reader(selection, rows=rows)
    return load_dump(
        reader,
        server=asked_rules(server).name,
        lower_case_names=selection.only.lower_case_names,
        note=note,
    )


__all__ = ["Selection", "load_schema", "tables_of"]
