"""Tables as .tsv files that compare byte for byte: a header `name:type:encoding`, then the rows
sorted bytewise.

Encodings: text (the server's text in UTF-8), hex, uint (BIT as a decimal number), double (shortest
text that reads back). Tab, newline, carriage return, backslash and NUL are escaped with a
backslash; NULL is \\N.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from applier.binlog.types import TYPES, json, to_python, to_text
from applier.binlog.types.names import column_type, zerofill_width
from applier.binlog.types.numbers import double_text
from applier.binlog.types.temporal import ENDS_OF_TIME
from applier.tables.expressions.operands import PLAIN, Dialect
from applier.tables.virtual_columns import as_read
from applier.whole_file import whole_files
from lookup.handler import Row
from lookup.table import Column

if TYPE_CHECKING:
    from applier.tables.engine import MemoryTable

TYPE_WIDTH = 60
"""Characters of a column type that the header shows."""
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})


def file_name(database: str, table: str) -> str:
    """The name of a table's file; other than letters, digits and _ in the table's name stands as
    @xxxx."""
    escaped = re.sub(r"[^0-9A-Za-z_]", lambda char: f"@{ord(char[0]):04x}", table)
    return f"{database.replace('/', '@002f')}.{escaped}.tsv"


def _double_text(column: Column, *, old_server: bool) -> Callable[[Any], str | None]:
    """A text that reads back to the same number. 5.x and MariaDB are asked for the number plus
    zero, which has no sign when it is zero."""
    read = to_python(column)

    def convert(stored: Any) -> str | None:
        value = read(stored)
        if value is None:
            return None
        return double_text(value or 0.0 if old_server else value)

    return convert


def _cell_text(column: Column, *, old_server: bool) -> Callable[[Any], str | None]:
    if TYPES[column.type].encoding == "double":
        return _double_text(column, old_server=old_server)
    if column.type == "json" and old_server:
        return lambda stored: (
            None if stored is None else json.to_text(json.decode(stored), point=False)
        )
    return to_text(column)


def _cell(column: Column, *, old_server: bool) -> Callable[[Any], str]:
    text, width = _cell_text(column, old_server=old_server), zerofill_width(column)
    escape = TYPES[column.type].encoding == "text"

    def convert(stored: Any) -> str:
        shown: str | None = text(stored)
        if shown is None:
            return "\\N"
        return shown.translate(_ESCAPES).rjust(width, "0") if escape else shown

    return convert


def dump_lines(table: MemoryTable, dialect: Dialect = PLAIN) -> list[bytes]:
    """The header and the sorted rows of one table, without line ends; of a table that cannot be
    read the header alone."""
    definition = table.definition
    columns = [(at, column) for at, column in enumerate(definition.columns) if not column.hidden]
    header = "\t".join(
        f"{column.name}:{column_type(column, display_widths=dialect.display_widths)[:TYPE_WIDTH]}"
        f":{TYPES[column.type].encoding}"
        for _, column in columns
    )
    cells = [(at, _cell(column, old_server=dialect.display_widths)) for at, column in columns]
    rows = sorted(
        "\t".join(cell(row[at]) for at, cell in cells).encode("utf-8", "surrogateescape")
        for row in (current_rows(table, dialect) if table.is_readable else ())
    )
    return [header.encode("utf-8", "surrogateescape"), *rows]


def current_rows(table: MemoryTable, dialect: Dialect) -> Sequence[Row]:
    """The rows of a table as a session at +00:00 reads them; of a system-versioned one those that
    are not history.

    Raises ReplicationError 1168 for a MERGE table that cannot be read.
    """
    end = next(
        (at for at, column in enumerate(table.definition.columns) if column.system_time == "end"),
        None,
    )
    rows = table.stored_rows()
    current = rows if end is None else [row for row in rows if row[end] in ENDS_OF_TIME]
    return as_read(table.definition, current, dialect)


def dump_tables(
    tables: Iterable[MemoryTable], directory: str | os.PathLike[str], dialect: Dialect
) -> list[Path]:
    """Writes one file per table into `directory`, which is made when it is not there. Returns the
    files. That of a table that cannot be read holds its columns alone.

    `dialect`: whose values and names of types they have. MariaDB's sequences are not tables and get
    no file.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with whole_files(folder) as place:  # all files get their names when the last one is written
        for table in tables:
            definition = table.definition
            if "SEQUENCE" not in definition.options:
                path = folder / file_name(definition.database, definition.name)
                lines = dump_lines(table, dialect)
                place(path.name).write_bytes(b"".join(line + b"\n" for line in lines))
                written.append(path)
    return written
