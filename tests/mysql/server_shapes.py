"""What a real server and the tables in memory say of the same statements: definitions, keys and
rows in one form."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from servers.server import Server

import applier
from applier.binlog.types import TYPES
from applier.binlog.types.names import column_type
from applier.tables.catalog import Tables
from applier.tables.dump import dump_lines
from lookup.table import Column, KeyPart, TableDefinition

Shape = dict[str, list[Any]]
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})


def log_of(
    server: Server, folder: Path, statements: tuple[str, ...], database: str
) -> tuple[Path, list[str]]:
    """The log of the statements in a new database, and the errors of those that the server
    refused."""
    server.execute(f"DROP DATABASE IF EXISTS `{database}`", "FLUSH BINARY LOGS")
    file = server.binlog_files()[-1]
    errors = []
    with (
        server.connect(charset="utf8mb4", autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        for sql in (f"CREATE DATABASE `{database}`", f"USE `{database}`", *statements):
            try:
                cursor.execute(sql)
            except Exception as error:
                errors.append(f"{sql}: {error}")
    server.execute("FLUSH BINARY LOGS")
    return Path(shutil.copy(file, folder)), errors


def shape_in_memory(file: Path, database: str) -> Shape:
    """The shape of each table of the database after a replay. Raises the replay's error."""
    tables = Tables()
    result = applier.replay([str(file)], into=tables)
    if result.error is not None:
        raise AssertionError(f"{result.error.number}: {result.error.message}")
    found: Shape = {}
    for table in tables:
        definition = table.definition
        if definition.database == database and "SEQUENCE" in definition.options:
            found[definition.name] = [list(table.rows())]
        elif definition.database == database:
            lines = [
                line.decode("utf-8", "surrogateescape")
                for line in dump_lines(table, tables.dialect)[1:]
            ]
            found[definition.name] = [
                _columns(definition, widths=tables.dialect.display_widths),
                _keys(definition),
                lines,
            ]
    return found


def _columns(definition: TableDefinition, *, widths: bool) -> list[tuple[Any, ...]]:
    return [
        (
            column.name, column_type(column, display_widths=widths), column.nullable,
            *_characters(column),
            column.auto_increment, bool(column.generated or column.system_time), column.invisible,
        )
        for column in definition.columns
        if not column.hidden
    ]  # fmt: skip


def _characters(column: Column) -> tuple[str | None, str | None]:
    """information_schema tells nothing of an ENUM or SET in the character set binary."""
    return (None, None) if column.charset == "binary" else (column.charset, column.collation)


def _keys(definition: TableDefinition) -> list[tuple[Any, ...]]:
    return sorted((key.name, key.unique,
                   tuple(_part(definition,
                               part) for part in key.parts if not _is_hidden(definition, part)))
                  for key in definition.keys)  # fmt: skip


def _part(definition: TableDefinition, part: KeyPart) -> tuple[str | None, int | None]:
    return None if part.column is None else definition.columns[part.column].name, part.prefix


def _is_hidden(definition: TableDefinition, part: KeyPart) -> bool:
    return part.column is not None and definition.columns[part.column].hidden


def shape_on(server: Server, database: str) -> Shape:
    """The same from the server's information_schema and a SELECT of each table."""
    tables = server.query(
        "SELECT table_name, table_type FROM information_schema.tables "
        f"WHERE table_schema='{database}' AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED', "
        "'SEQUENCE')"
    )
    return {name: _server_shape(server, database, name, kind) for name, kind in tables}


def _server_shape(server: Server, database: str, name: str, kind: str) -> list[Any]:
    if kind == "SEQUENCE":
        return [list(server.query(f"SELECT * FROM `{database}`.`{name}`"))]
    return [
        _server_columns(server, database, name),
        _server_keys(server, database, name),
        _server_rows(server, database, name),
    ]


def _server_columns(server: Server, database: str, table: str) -> list[tuple[Any, ...]]:
    rows = server.query(
        "SELECT column_name, column_type, is_nullable, character_set_name, collation_name, "
        "extra FROM information_schema.columns "
        f"WHERE table_schema='{database}' AND table_name='{table}' ORDER BY ordinal_position"
    )
    return [
        (
            name, _text(kind), nullable == "YES", _utf8(charset), _utf8(collation),
            "auto_increment" in extra,
            "GENERATED" in extra and "DEFAULT_GENERATED" not in extra, "INVISIBLE" in extra,
        )
        for name, kind, nullable, charset, collation, extra in rows
    ]  # fmt: skip


def _text(value: Any) -> str:
    text = value.decode() if isinstance(value, bytes) else str(value)
    return (
        text.replace(" zerofill", "")
        .replace("geomcollection", "geometrycollection")
        .partition(" /* ")[0]
    )


def _utf8(name: str | None) -> str | None:
    """Up to 8.0 and MariaDB 10.5 the character set of three bytes is called utf8. Of binary not all
    servers tell."""
    if name is None or name == "binary":
        return None
    head, under, tail = name.partition("_")
    return ("utf8mb3" if head == "utf8" else head) + under + tail


def _server_keys(server: Server, database: str, table: str) -> list[tuple[Any, ...]]:
    keys: dict[str, tuple[bool, list[tuple[Any, Any]]]] = {}
    for name, non_unique, column, part in server.query(
        "SELECT index_name, non_unique, column_name, IF(index_type='SPATIAL', NULL, sub_part) "
        "FROM information_schema.statistics "
        f"WHERE table_schema='{database}' AND table_name='{table}' ORDER BY index_name, "
        "seq_in_index"
    ):
        keys.setdefault(name, (not non_unique, []))[1].append((column, part))
    return sorted((name, unique, tuple(parts)) for name, (unique, parts) in keys.items())


def _server_rows(server: Server, database: str, table: str) -> list[str]:
    columns = server.query(
        "SELECT column_name, data_type FROM information_schema.columns "
        f"WHERE table_schema='{database}' AND table_name='{table}' "
        "ORDER BY ordinal_position"
    )
    shown = {
        "hex": "HEX({})",
        "uint": "{}+0",
        "double": "{}+0e0",
        "text": "CONVERT({} USING utf8mb4)",
    }
    kinds = [TYPES[_text(kind).lower()].encoding for _, kind in columns]
    cells = ", ".join(
        shown[kind].format("`" + name.replace("`", "``") + "`")
        for (name, _), kind in zip(columns, kinds, strict=True)
    )
    server.execute("SET time_zone='+00:00'")
    lines = []
    for row in server.query(f"SELECT {cells} FROM `{database}`.`{table}`"):
        lines.append(
            "\t".join(
                "\\N" if cell is None else _cell(cell, kind)
                for cell, kind in zip(row, kinds, strict=True)
            )
        )
    return sorted(lines, key=lambda line: line.encode("utf-8", "surrogateescape"))


def _cell(cell: Any, kind: str) -> str:
    if kind == "hex":
        return _text(cell)
    if kind == "double":
        return f"{cell:g}"
    text = cell.decode("utf-8") if isinstance(cell, bytes) else str(cell)
    return text.translate(_ESCAPES)
