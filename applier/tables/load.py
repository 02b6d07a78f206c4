"""A dump in SQL into tables in memory: CREATE DATABASE, USE, CREATE TABLE, INSERT … VALUES; the rest changes no table.

INSERT is read by a regular expression made for the number of columns, since dumps have millions of rows and all of them look
alike; a VALUES list that it does not match goes through the expression evaluator. Files are bytes: a dump holds binary
strings next to UTF-8 text.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import zstandard

from applier.binlog.charsets import charset
from applier.binlog.types import TYPES, from_sql
from applier.error_codes import Code
from applier.errors import BinlagError, InputError
from applier.server_versions import asked_rules
from applier.tables.catalog import Tables
from applier.tables.ddl import DDL_STATEMENTS, IGNORED_STATEMENTS, DdlSession, apply_ddl, statement_kind
from applier.tables.defaults import complete_rows, number_rows
from applier.tables.engine import MemoryTable
from applier.tables.sql_text import UNREADABLE, Parser, hex_bytes, reason, tokenize, unescape
from applier.tables.statements import DML_STATEMENTS, StatementSession, execute_statement, value_rows
from lookup.handler import DuplicateKey, Row, RowError
from lookup.table import Column
from lookup.versions import NEWEST

_PIECE = re.compile(
    rb"""'[^'\\]*(?:(?:\\.|'')[^'\\]*)*(?:'|\\?\Z)|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*(?:"|\\?\Z)|`[^`]*(?:``[^`]*)*(?:`|\Z)|/\*.*?(?:\*/|\Z)
    |\#[^\n]*|--(?=\s|\Z)[^\n]*|;|[^'"`/\#;-]+|.""",
    re.DOTALL | re.VERBOSE,
)
"""What opens is closed at the latest by the end, so that nothing is ever passed over twice: a dump may be made to be slow."""
_DELIMITER = re.compile(rb"^[ \t]*DELIMITER[ \t]+(\S+)[^\n]*\n?", re.IGNORECASE | re.MULTILINE)
_NEXT_DELIMITER = re.compile(rb"\s*DELIMITER[ \t]+(\S+)[^\n]*\n?", re.IGNORECASE)
"""Behind a statement, whose own delimiter ends on the line before."""
_IDENTIFIER = rb"(?:`[^`]*(?:``[^`]*)*`|[\w$\x80-\xff]+)"
_INSERT = re.compile(
    rb"\s*(?:INSERT|REPLACE)\s+(?:IGNORE\s+)?(?:INTO\s+)?(" + _IDENTIFIER + rb"(?:\s*\.\s*" + _IDENTIFIER + rb")?)\s*"
    rb"(?:\(([^)]*)\)\s*)?VALUES?\s*",
    re.IGNORECASE,
)
_STRING = rb"'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'"
_VALUE = rb"(NULL|-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|(?:_binary\s*)?" + _STRING + rb"|0x[0-9a-fA-F]*|[xXbB]'[0-9a-fA-F]*')"
_NAME = re.compile(rb"`([^`]*(?:``[^`]*)*)`|([\w$\x80-\xff]+)")
SESSION_STATEMENTS = frozenset(
    "COMMIT BEGIN ROLLBACK SAVEPOINT RELEASE XA PREPARE EXECUTE DEALLOCATE SHOW EXPLAIN DESCRIBE DESC HELP SIGNAL".split()
)
"""Statements that change nothing that a table holds; those of IGNORED_STATEMENTS come to them."""
_OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
    ".zst": lambda path: zstandard.open(path, "rb"),
}


def _plain(path: Path) -> IO[bytes]:
    return path.open("rb")


def load_schema(source: str | os.PathLike[str], *, server: str = NEWEST) -> Tables:
    """Tables from a file of SQL (a mysqldump; .gz, .xz, .bz2, .zst too), or from the SQL itself when `source` holds a statement.

    `server` says whose defaults hold where the SQL leaves something open. Raises UsageError for a version that is not known, InputError
    with the line of the statement.
    """
    rules = asked_rules(server)
    if isinstance(source, str) and (";" in source or "\n" in source or source.lstrip()[:7].upper() == "CREATE "):
        data, name = source.encode("utf-8", "surrogateescape"), "the given SQL"
    else:
        path = Path(source)
        name = str(path)
        try:
            with _OPENERS.get(path.suffix, _plain)(path) as file:
                data = file.read()
        except OSError as error:
            if error.errno is None:  # gzip and bz2: the content, not the system
                raise _compressed(error, name) from None
            raise InputError(f"cannot read the schema: {error.strerror}", code=Code.CANNOT_READ, file=name) from None
        except (EOFError, lzma.LZMAError, zstandard.ZstdError) as error:
            raise _compressed(error, name) from None
    return _Loader(rules.name).load(data, name)


def _compressed(error: Exception, name: str) -> InputError:
    return InputError(f"cannot decompress the schema: {error}", code=Code.SCHEMA_SQL, file=name)


class _Loader:
    def __init__(self, server: str) -> None:
        self.tables = Tables()
        self.session = DdlSession(server=server)
        self.database = ""

    def load(self, data: bytes, name: str) -> Tables:
        for offset, statement in split_statements(data.removeprefix(b"\xef\xbb\xbf")):
            try:
                self._statement(statement)
            except (BinlagError, RowError, *UNREADABLE) as error:
                line = data.count(b"\n", 0, offset) + 1
                raise InputError(
                    f"line {line}: {reason(error)}",
                    code=Code(error.situation) if isinstance(error, InputError) else Code.SCHEMA_SQL,
                    file=name,
                ) from None
        self.tables.commit()
        return self.tables

    def _statement(self, statement: bytes) -> None:
        match = _INSERT.match(statement)
        if match is not None:
            self._insert(statement, match)
            return
        text = statement.decode("utf-8", "surrogateescape").strip()
        kind = statement_kind(text)
        if kind == "USE":
            self.database = Parser(text).after("USE").name()
        elif kind in DDL_STATEMENTS:
            apply_ddl(self.tables, text, self.database, self.session)
        elif kind in DML_STATEMENTS:
            execute_statement(self.tables, text, self.database, StatementSession())
        elif kind not in IGNORED_STATEMENTS and kind not in SESSION_STATEMENTS and (kind or tokenize(text)):
            raise InputError(f"statement that is not known: {text[:60]!r}", code=Code.SCHEMA_SQL)

    def _insert(self, statement: bytes, match: re.Match[bytes]) -> None:
        names = [_unquote(piece) for piece in _NAME.findall(match[1])]
        database, name = (names[0], names[1]) if len(names) > 1 else (self.database, names[0])
        table = self.tables.get(database, name)
        if table is None:
            raise InputError(f"an INSERT into `{database}`.`{name}`, which no CREATE TABLE made", code=Code.SCHEMA_ROWS)
        columns = self._columns(table, match[2])
        rows = list(insert_rows(table, columns, statement, match.end()))
        whole = complete_rows(table.definition, columns, rows)
        auto = next((at for at, column in enumerate(table.definition.columns) if column.auto_increment), None)
        if auto is not None and (auto not in columns or any(row[columns.index(auto)] is None for row in rows)):
            # A 0 that stands in a dump is a 0: mysqldump sets NO_AUTO_VALUE_ON_ZERO.
            whole = number_rows(table.definition, whole, table.auto_increment, (None, 0) if auto not in columns else (None,))
        head = statement[: match.start(1)].upper()
        if b"REPLACE" in head or b"IGNORE" in head:
            for row in whole:
                self._insert_over(table, row, replacing=b"REPLACE" in head)
        else:
            table.load(whole)
        self.tables.commit()

    def _insert_over(self, table: MemoryTable, row: Row, *, replacing: bool) -> None:
        """REPLACE removes each row in the way, INSERT IGNORE leaves it."""
        while True:
            try:
                table.insert(row)
                return
            except DuplicateKey as duplicate:
                if not replacing:
                    return
                table.delete(duplicate.ref)

    def _columns(self, table: MemoryTable, listed: bytes | None) -> tuple[int, ...]:
        definition = table.definition
        if listed is None:
            return tuple(at for at, column in enumerate(definition.columns) if not column.invisible)
        names = [_unquote(piece) for piece in _NAME.findall(listed)]
        unknown = [name for name in names if name.lower() not in definition.positions]
        if unknown:
            raise InputError(f"unknown column `{unknown[0]}` in an INSERT into {definition.full_name}", code=Code.SCHEMA_ROWS)
        return tuple(definition.positions[name.lower()] for name in names)


def _unquote(piece: tuple[bytes, bytes]) -> str:
    return (piece[0].replace(b"``", b"`") or piece[1]).decode("utf-8", "surrogateescape")


def split_statements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(offset, statement) pairs; quotes, comments and DELIMITER are minded, comments between statements dropped."""
    at = 0
    while at < len(data):
        delimiter = _DELIMITER.search(data, at)
        end = len(data) if delimiter is None else delimiter.start()
        yield from _split_plain(data, at, end)
        if delimiter is None:
            return
        mark = delimiter[1]
        at = delimiter.end()
        while mark != b";" and at < len(data):
            nested = _NEXT_DELIMITER.match(data, at)
            if nested is not None:
                mark, at = nested[1], nested.end()
                continue
            stop = data.find(mark, at)
            stop = len(data) if stop < 0 else stop
            if data[at:stop].strip():
                yield at, data[at:stop]
            at = stop + len(mark)


def _split_plain(data: bytes, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    begin = start
    for piece in _PIECE.finditer(data, start, end):
        if data[piece.start()] == 0x3B:
            yield from _bare(data, begin, piece.start())
            begin = piece.end()
    yield from _bare(data, begin, end)


_BEFORE = re.compile(rb"(?:\s+|--(?:[ \t\r][^\n]*)?(?:\n|\Z)|\#[^\n]*(?:\n|\Z))*")


def _bare(data: bytes, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The statement without the line comments and white space before it; none where nothing else stands there."""
    before = _BEFORE.match(data, begin, end)
    assert before is not None
    statement = data[before.end() : end].rstrip()
    if statement:
        yield before.end(), statement


def insert_rows(table: MemoryTable, columns: tuple[int, ...], statement: bytes, start: int) -> Iterator[tuple[Any, ...]]:
    """The rows of a VALUES list as stored values of `columns`. Raises InputError where the list cannot be read."""
    definition = table.definition
    converters = [literal_converter(definition.columns[at]) for at in columns]
    pattern = re.compile(rb"\s*(?:,\s*)?\(\s*" + rb"\s*,\s*".join([_VALUE] * len(columns)) + rb"\s*\)", re.DOTALL | re.IGNORECASE)
    at = start
    batch: list[tuple[bytes, ...]] = []
    while (match := pattern.match(statement, at)) is not None:
        at = match.end()
        batch.append(match.groups())
    by_column = [list(map(convert, values)) for convert, values in zip(converters, zip(*batch, strict=True), strict=False)]
    yield from zip(*by_column, strict=True)
    if statement[at:].strip(b" \t\r\n;"):
        text = statement[at:].decode("utf-8", "surrogateescape").lstrip(" \t\r\n,")
        yield from value_rows(definition, columns, text)


def literal_converter(column: Column) -> Callable[[bytes], Any]:
    """A function from a literal as it stands in the dump to the stored value."""
    convert = from_sql(column)
    own = charset(column.charset)
    is_text = column.charset is not None and column.type not in ("enum", "set")
    as_bytes = is_text and own.codec in ("utf-8", "ascii")
    is_binary = TYPES[column.type].encoding in ("hex", "uint")

    def stored(literal: bytes) -> Any:
        if literal[-1] == 0x27:
            return convert(_string(literal))
        if literal[:4].upper() == b"NULL":
            return None
        if literal.lstrip(b"-").isdigit():
            return convert(int(literal))
        if literal[:2] == b"0x":
            return convert(hex_bytes(literal.decode()))
        return convert(literal.decode())

    def _string(literal: bytes) -> Any:
        head = literal[:1]
        if head in b"xX" and head != b"'":
            return hex_bytes(literal.decode())
        if head in b"bB" and literal[1:2] == b"'":
            bits = literal[2:-1].decode()
            return int(bits, 2).to_bytes((len(bits) + 7) // 8, "big") if bits else b""
        introduced = head == b"_"
        body = literal[literal.index(b"'") + 1 : -1]
        if b"'" in body:
            body = body.replace(b"''", b"'")
        if b"\\" in body:
            body = unescape(body.decode("latin-1")).encode("latin-1")
        if introduced or is_binary or as_bytes or (is_text and body.isascii() and own.max_bytes == 1):
            return body
        return body.decode("utf-8", "surrogateescape")

    return stored
