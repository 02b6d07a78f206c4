"""A live server's tables as a dump: its databases, definitions and rows, as one snapshot, without
mysqldump.

Values are asked for as mysqldump asks: text in utf8mb4, TIMESTAMP in UTC, binary strings as
hexadecimal digits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from applier.binlog.selection.table_filter import TYPES_WITH_ROWS
from applier.dumps.source import DumpReader, Selection
from applier.dumps.split import RawStatement
from applier.error_codes import Code
from applier.errors import UsageError
from applier.lazy_imports import needed
from applier.mysql.client.url import SCHEME, Endpoint, find_password, parse_url
from applier.tables.sql.quoting import quoted

if TYPE_CHECKING:
    from applier.mysql.client.connection import Server

STATEMENT_BYTES = 1 << 20
_TABLES = f"""SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES
WHERE TABLE_TYPE IN {TYPES_WITH_ROWS} ORDER BY TABLE_SCHEMA, TABLE_NAME"""
_COLUMNS = """SELECT COLUMN_NAME, DATA_TYPE, EXTRA FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = {database} AND TABLE_NAME = {table} ORDER BY ORDINAL_POSITION"""
_SESSION = (
    "SET NAMES utf8mb4",
    "SET TIME_ZONE='+00:00'",
    "SET SESSION SQL_MODE='NO_AUTO_VALUE_ON_ZERO'",
)
_SNAPSHOT = (
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
)
_BINARY = frozenset(
    """
        binary varbinary tinyblob blob mediumblob longblob bit geometry point linestring polygon
        multipoint multilinestring
        multipolygon geometrycollection geomcollection vector
    """.split()
)
_NUMBERS = frozenset("tinyint smallint mediumint int bigint decimal float double".split())
_ESCAPES = {0x00: "\\0", 0x0A: "\\n", 0x0D: "\\r", 0x1A: "\\Z", 0x27: "\\'", 0x5C: "\\\\"}


def is_url(source: object) -> bool:
    """Whether a schema is the address of a server."""
    return isinstance(source, str) and source.startswith(f"{SCHEME}://")


@dataclass(frozen=True)
class SchemaPlace:
    """Where a schema is: a dump, or a server whose password is in `password_file` or where
    `find_password` looks."""

    source: str | os.PathLike[str]
    password_file: str | os.PathLike[str] | None = None

    def reader(self, selection: Selection, *, rows: bool = True) -> DumpReader:
        """The statements; of a server without its rows where they are not asked for. Raises
        UsageError for a wrong address."""
        if not os.fspath(self.source):
            raise UsageError(
                "no schema is named",
                code=Code.OPTION_VALUE,
                hint="name a dump, a folder or mysql://USER@HOST:PORT",
            )
        if not is_url(self.source):
            return DumpReader(self.source, selection)
        endpoint = parse_url(str(self.source), "schema")
        endpoint = endpoint.with_password(find_password(self.password_file))
        return DumpReader(
            str(endpoint), selection, _Live(endpoint, selection, rows=rows).statements
        )


class _Live:
    def __init__(self, endpoint: Endpoint, selection: Selection, *, rows: bool) -> None:
        self._endpoint = endpoint
        self._only = selection.only
        self._rows = rows

    def statements(self) -> Iterator[RawStatement]:
        """As mysqldump would write them."""
        with needed("reading a live server's schema needs PyMySQL", "binlag[mysql]"):
            from applier.mysql.client.connection import connect
        server = connect(self._endpoint)
        try:
            for sql in (*_SESSION, *_SNAPSHOT):
                server.execute(sql)
            for sql in (*_SESSION, "SET FOREIGN_KEY_CHECKS=0"):
                yield RawStatement(sql.encode(), 1)
            yield from self._databases(server)
        finally:
            server.close()

    def _databases(self, server: Server) -> Iterator[RawStatement]:
        current = None
        for found in server.query(_TABLES):
            database, table = (_text(value) for value in found)
            if not self._only.wants_table(database, table):
                continue
            if database != current:
                current = database
                yield RawStatement(
                    _show(server, f"SHOW CREATE DATABASE IF NOT EXISTS {quoted(database)}"), 1
                )
                yield RawStatement(_bytes(f"USE {quoted(database)}"), 1)
            name = f"{quoted(database)}.{quoted(table)}"
            yield RawStatement(_show(server, f"SHOW CREATE TABLE {name}"), 1)
            if self._rows:
                yield from self._inserts(server, database, table)

    def _inserts(self, server: Server, database: str, table: str) -> Iterator[RawStatement]:
        sql = _COLUMNS.format(database=_literal(database), table=_literal(table))
        columns = [tuple(map(_text, row)) for row in server.query(_bytes(sql))]
        stored = [
            (name, kind)
            for name, kind, extra in columns
            if "GENERATED" not in extra.replace("DEFAULT_GENERATED", "").upper()
        ]
        literals = [_literal_of(kind) for _, kind in stored]
        listed = ", ".join(quoted(name) for name, _ in stored)
        head = _bytes(f"INSERT INTO {quoted(table)} ({listed}) VALUES ")
        waiting: list[bytes] = []
        size = 0
        for row in server.stream(f"SELECT {listed} FROM {quoted(database)}.{quoted(table)}"):
            values = [
                b"NULL" if value is None else literal(value)
                for literal, value in zip(literals, row, strict=True)
            ]
            waiting.append(b"(" + b",".join(values) + b")")
            size += len(waiting[-1])
            if size > STATEMENT_BYTES:
                yield RawStatement(head + b",".join(waiting), 1)
                waiting, size = [], 0
        if waiting:
            yield RawStatement(head + b",".join(waiting), 1)


def _show(server: Server, sql: str) -> bytes:
    found = server.query(_bytes(sql))[0][1]
    assert found is not None
    return bytes(found)


def _literal_of(kind: str) -> Callable[[bytes], bytes]:
    """How a value of the type is written."""
    if kind in _NUMBERS:
        return bytes
    if kind in _BINARY:
        return lambda value: b"0x" + value.hex().encode() if value else b"''"
    return _quoted_text


def _quoted_text(value: bytes) -> bytes:
    return b"'" + value.decode("latin-1").translate(_ESCAPES).encode("latin-1") + b"'"


def _literal(text: str) -> str:
    """A string in SQL, whatever it holds."""
    return f"CONVERT(X'{_bytes(text).hex()}' USING utf8)"


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
