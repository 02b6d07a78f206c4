"""What a server's tables hold, and how binlag's tables differ from that."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql

from applier.mysql.contents.verify import OWN_DATABASE
from applier.tables.dump import TYPE_WIDTH, file_name
from applier.tables.sql.quoting import quoted
from tests.peers.session import SYSTEM

MOST_ROWS = 60_000
_HEX = frozenset(
    """binary varbinary tinyblob blob mediumblob longblob geometry point linestring polygon
    multipoint multilinestring multipolygon geomcollection geometrycollection vector""".split()
)
_EXPRESSIONS = {
    "hex": "HEX({})",
    "bit": "{} + 0",
    "float": "{} + 0e0",
    "double": "{} + 0e0",
    "text": "{}",
}
_UNESCAPED = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"0": b"\0"}
_INTEGER = re.compile(r"((?:tiny|small|medium|big)?int|year)\(\d+\)")

Row = tuple[Any, ...]
Query = Callable[[str], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class ServerColumn:
    """A column as the server shows it. `kind` is a row of _EXPRESSIONS."""

    name: str
    type: str
    kind: str


@dataclass(frozen=True)
class ServerTable:
    """A table on the server. `rows` is None where there are too many to compare, or the server
    cannot read them."""

    name: str
    file: str
    columns: tuple[ServerColumn, ...]
    rows: list[Row] | None


def server_tables(query: Query) -> list[ServerTable]:
    """All tables of all databases but the server's own."""
    for sql in ("SET NAMES utf8mb4", "SET time_zone = '+00:00'", "SET sql_mode = ''"):
        query(sql)
    names = query(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type IN ('BASE "
        "TABLE', 'SYSTEM VERSIONED')"
    )
    decoded = [(database.decode(), table.decode()) for database, table in names]
    return [
        _server_table(query, *name) for name in sorted(decoded) if name[0].lower() not in SYSTEM
    ]


def _server_table(query: Query, database: str, table: str) -> ServerTable:
    said = query(
        "SELECT column_name, data_type, column_type FROM information_schema.columns WHERE "
        f"table_schema = BINARY {_literal(database)} AND table_name = BINARY {_literal(table)} "
        "ORDER BY ordinal_position"
    )
    columns = tuple(_column(*(value.decode("utf-8", "replace") for value in one)) for one in said)
    name = f"{quoted(database)}.{quoted(table)}"
    try:
        count = int(query(f"SELECT COUNT(*) FROM {_sent(name)}")[0][0])
        chosen = ", ".join(
            _EXPRESSIONS[column.kind].format(_sent(quoted(column.name))) for column in columns
        )
        rows = query(f"SELECT {chosen} FROM {_sent(name)}") if count <= MOST_ROWS else None
    except pymysql.err.MySQLError:  # a table that the server itself cannot read
        rows = None
    return ServerTable(f"{database}.{table}", file_name(database, table), columns, rows)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{_sent(escaped)}'"


def _sent(text: str) -> str:
    """Text for a connection that takes each character for a byte."""
    return text.encode().decode("latin1")


def _column(name: str, data_type: str, column_type: str) -> ServerColumn:
    kind = data_type.lower()
    if kind in _HEX:
        return ServerColumn(name, column_type, "hex")
    return ServerColumn(name, column_type, kind if kind in ("bit", "float", "double") else "text")


def differences(tables: Iterable[ServerTable], folder: Path) -> list[str]:
    """In what binlag's dump in `folder` differs: "kind: table", the kinds being those of the
    exceptions' table. Empty where equal."""
    dumped = {path.name: path for path in folder.glob("*.tsv")}
    found = []
    for table in tables:
        path = dumped.pop(table.file, None)
        if path is None:
            found.append(f"table missing: {table.name}")
        elif table.rows is not None:
            found += _of_table(table, path.read_bytes().split(b"\n")[:-1])
    return found + [f"table too many: {name}" for name in dumped]


def _of_table(table: ServerTable, lines: list[bytes]) -> list[str]:
    head = [cell.rsplit(":", 2) for cell in lines[0].decode("utf-8", "replace").split("\t")]
    if [cell[0] for cell in head] != [column.name for column in table.columns]:
        return [f"columns differ: {table.name}"]
    found = []
    for column, (_, column_type, _) in zip(table.columns, head, strict=True):
        if not _same_type(column.type, column_type):
            found.append(
                f"type differs: {table.name}.{column.name}: {column.type}, binlag {column_type}"
            )
    assert table.rows is not None
    return found + _of_rows(table, table.rows, map(_cells, lines[1:]), "binlag")


def server_differences(source: Iterable[ServerTable], target: Iterable[ServerTable]) -> list[str]:
    """In what the tables of a second server differ, in the same words."""
    there = {table.name: table for table in target if table.name.partition(".")[0] != OWN_DATABASE}
    found = []
    for table in source:
        other = there.pop(table.name, None)
        if other is None:
            found.append(f"table missing: {table.name}")
        elif other.columns != table.columns:
            found.append(f"columns differ: {table.name}")
        elif table.rows is not None and other.rows is not None:
            found += _of_rows(table, table.rows, other.rows, "the target")
    return found + [f"table too many: {name}" for name in there]


def _of_rows(table: ServerTable, rows: list[Row], others: Iterable[Row], whose: str) -> list[str]:
    theirs = Counter(_normal(row, table.columns) for row in rows)
    ours = Counter(_normal(row, table.columns) for row in others)
    if theirs.total() != ours.total():
        return [f"row count differs: {table.name}: {theirs.total()}, {whose} {ours.total()}"]
    if theirs == ours:
        return []
    only, surplus = next(iter(theirs - ours)), next(iter(ours - theirs))
    at = next((at for at, (a, b) in enumerate(zip(only, surplus, strict=True)) if a != b), 0)
    column = table.columns[at]
    where = f"{table.name}.{column.name} {column.type}"
    return [f"values differ: {where}: {only[at]!r:.80}, {whose} {surplus[at]!r:.80}"]


def _same_type(theirs: str, ours: str) -> bool:
    """binlag's header shows the first 60 characters. Display widths of integers are no part of a
    value."""
    plain = [
        _INTEGER.sub(r"\1", text.lower().replace("geomcollection", "geometrycollection"))[
            : TYPE_WIDTH - 8
        ]
        for text in (theirs, ours)
    ]
    return plain[0] == plain[1]


def _cells(line: bytes) -> Row:
    """The values of a line of the dump: NULL is None, escapes are resolved."""
    unescaped = (
        re.sub(rb"\\(.)", lambda match: _UNESCAPED.get(match[1], match[1]), cell, flags=re.DOTALL)
        for cell in line.split(b"\t")
    )
    return tuple(
        None if cell == b"\\N" else value
        for cell, value in zip(line.split(b"\t"), unescaped, strict=True)
    )


def _normal(row: Row, columns: tuple[ServerColumn, ...]) -> Row:
    """Values that compare: floating-point numbers as numbers, -0 as 0, hex digits in one case."""
    return tuple(
        None if value is None else _value(bytes(value), column.kind)
        for value, column in zip(row, columns, strict=True)
    )


def _value(text: bytes, kind: str) -> object:
    if kind in ("float", "double"):
        number = float(text)
        if kind == "float" and abs(number) < 3.5e38:
            number = struct.unpack("<f", struct.pack("<f", number))[0]
        return number or 0.0
    return text.upper() if kind == "hex" else text
