"""The literals of a VALUES list into stored values, column by column: rows of a dump all look
alike, and there may be millions.

What a string literal holds is in the character set of the dump's session (SET NAMES); binary leaves
its bytes as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC
from functools import lru_cache
from typing import Any

from applier.binlog.charsets import CHARSETS, charset
from applier.binlog.time_zone import time_zone
from applier.binlog.types import TYPES, from_sql
from applier.binlog.types.numbers import INTEGER_BITS
from applier.binlog.types.temporal import timestamp_from_sql
from applier.dumps.patterns import QUOTED, STRING
from applier.dumps.session import DumpSession
from applier.error_codes import Code
from applier.errors import InputError
from applier.tables.dml.value_lists import value_rows
from applier.tables.engine import MemoryTable
from applier.tables.expressions.operands import Session
from applier.tables.sql.quoting import hex_bytes
from lookup.table import Column

_VALUE = (
    rb"(NULL|-?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?"
    rb"|(?:_binary\s*+)?(?:" + STRING + rb"|" + QUOTED + rb")|0x[0-9a-fA-F]*+|[xXbB]'[0-9a-fA-F]*')"
)  # fmt: skip
Convert = Callable[[bytes], Any]
"""A literal as it stands in the dump -> the stored value."""


def insert_rows(
    table: MemoryTable,
    columns: tuple[int, ...],
    statement: bytes,
    start: int,
    session: DumpSession,
    expressions: Session,
) -> Iterator[tuple[Any, ...]]:
    """The rows of a VALUES list as stored values of `columns`. Raises InputError where the list
    cannot be read."""
    definition = table.definition
    pattern = _row_pattern(len(columns))
    batch: list[tuple[bytes, ...]] = []
    at = start
    while (match := pattern.match(statement, at)) is not None:
        at = match.end()
        batch.append(match.groups())
    client, zone = session.client, session.time_zone
    by_column = [
        _converted(definition.columns[at], values, client, zone)
        for at, values in zip(columns, zip(*batch, strict=True), strict=False)
    ]
    yield from zip(*by_column, strict=True)
    if statement[at:].strip(b" \t\r\n;"):
        text = CHARSETS[client].decode(statement[at:]).lstrip(" \t\r\n,")
        yield from value_rows(definition, columns, text, expressions)


@lru_cache(maxsize=256)
def _row_pattern(width: int) -> re.Pattern[bytes]:
    """(value, …), with the comma before it."""
    return re.compile(
        rb"\s*+(?:,\s*+)?\(\s*+" + rb"\s*+,\s*+".join([_VALUE] * width) + rb"\s*+\)",
        re.DOTALL | re.IGNORECASE,
    )


def _converted(column: Column, values: Sequence[bytes], client: str, zone: str) -> list[Any]:
    """The values of one column. Each different literal is converted once."""
    if column.type in INTEGER_BITS:
        numbers = _integers(column, values)
        if numbers is not None:
            return numbers
    convert = literal_converter(column, client, zone)
    known = {literal: convert(literal) for literal in dict.fromkeys(values)}
    return [known[literal] for literal in values]


def _integers(column: Column, values: Sequence[bytes]) -> list[Any] | None:
    """Plain numbers that the column holds; None where there are others."""
    try:
        numbers = [None if literal == b"NULL" else int(literal) for literal in values]
    except ValueError:
        return None
    there = [number for number in numbers if number is not None]
    if there:
        convert = from_sql(column)
        if (convert(min(there)), convert(max(there))) != (min(there), max(there)):
            return None
    return numbers


def literal_converter(column: Column, client: str = "utf8mb4", zone: str = "SYSTEM") -> Convert:
    """A function from a literal as it stands in a dump in the character set `client` to the stored
    value.

    `zone`: of TIMESTAMP values. Raises InputError for one that is not known here.
    """
    convert = _timestamp(column, zone) if column.type == "timestamp" else from_sql(column)
    own, spoken = charset(column.charset), CHARSETS[client]
    is_text = column.charset is not None and column.type not in ("enum", "set")
    same = (
        own.codec == spoken.codec
        or client == "binary"
        or (own.codec == "utf-8" and spoken.codec == "ascii")
    )
    as_bytes = is_text and same
    is_binary = TYPES[column.type].encoding in ("hex", "uint")
    one_byte = is_text and own.max_bytes == 1
    decode = own.decode if client == "binary" and column.charset is not None else spoken.decode
    utf8 = spoken.codec == "utf-8" or (client == "binary" and column.charset is None)

    def stored(literal: bytes) -> Any:
        if literal[-1] in b"'\"":
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
        mark = literal[-1:]
        if head in b"xX":
            return hex_bytes(literal.decode())
        if head in b"bB":
            bits = literal[2:-1].decode()
            return int(bits, 2).to_bytes((len(bits) + 7) // 8, "big") if bits else b""
        introduced = head == b"_"
        body = literal[literal.index(mark) + 1 : -1]
        if mark in body or b"\\" in body:
            body = _ESCAPES[mark].sub(_meant, body)
        if introduced or is_binary or (body.isascii() and (as_bytes or one_byte)):
            return body
        if client == "binary" and as_bytes:
            return body
        text = _utf8(body, column) if utf8 else decode(body)
        return body if as_bytes else text

    return stored


def _utf8(body: bytes, column: Column) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise InputError(
            f"text that is not UTF-8 in column `{column.name}`, and the dump does not say which"
            " character set it is in",
            code=Code.SCHEMA_ROWS,
            hint="take the dump with --default-character-set=utf8mb4",
        ) from None


_ESCAPES = {mark: re.compile(rb"\\(.)|" + mark + mark, re.DOTALL) for mark in (b"'", b'"')}
_MEANT = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}


def _meant(match: re.Match[bytes]) -> bytes:
    """What an escape in a string stands for, or a quote that is written twice."""
    if match[1] is None:
        return match[0][:1]
    return match[0] if match[1] in b"%_" else _MEANT.get(match[1], match[1])


def _timestamp(column: Column, zone: str) -> Callable[[object], Any]:
    convert = timestamp_from_sql(column, UTC if zone.upper() == "SYSTEM" else time_zone(zone))
    return lambda value: None if value is None else convert(value)
