"""Rows in delimited text (tab-separated and the like) as INSERT statements: what LOAD DATA would
read, in one form with all other rows.

FIELDS and LINES as LOAD DATA has them (`read_sep_field`, sql/sql_load.cc). What a backslash means
is nearly the same in both forms, so that most fields only need quotes around them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from applier.dumps.patterns import repeated
from applier.error_codes import Code
from applier.errors import InputError
from applier.tables.sql.quoting import quoted

STATEMENT_BYTES = 1 << 20
"""Of one INSERT, about."""
READ_BYTES = 4 << 20
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_MEANT = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}


@dataclass(frozen=True)
class Delimiters:
    """FIELDS and LINES."""

    fields: bytes = b"\t"
    enclosed: bytes = b""
    escaped: bytes = b"\\"
    lines: bytes = b"\n"
    starting: bytes = b""

    def check(self, name: str) -> None:
        """Raises InputError for what is not read here."""
        if (
            self.escaped not in (b"\\", b"")
            or len(self.enclosed) > 1
            or not self.fields
            or not self.lines
            or self.starting
        ):
            raise InputError(
                "rows whose delimiters are not read here",
                code=Code.SCHEMA_ROWS,
                file=name,
                hint=(
                    "dump with the default dialect: fields ended by tabs, lines by \\n, escaped"
                    " by \\"
                ),
            )


def insert_statements(
    file: IO[bytes],
    name: str,
    table: str,
    columns: Sequence[str],
    decoded: dict[str, str],
    delimiters: Delimiters,
) -> Iterator[bytes]:
    """The rows of a file. `decoded`: column -> FROM_BASE64 or UNHEX. Raises InputError for rows
    that do not fit, or are cut off."""
    delimiters.check(name)
    literals = [_LITERALS[decoded.get(column, "")] for column in columns]
    listed = f" ({', '.join(map(quoted, columns))})" if columns else ""
    head = f"INSERT INTO {quoted(table)}{listed} VALUES ".encode("utf-8", "surrogateescape")
    rows: list[bytes] = []
    size = 0
    for number, fields in enumerate(_records(file, name, delimiters), 1):
        if len(fields) != len(columns) and columns:
            raise InputError(
                f"row {number:,} has {len(fields)} fields for {len(columns)} columns of `{table}`",
                code=Code.SCHEMA_ROWS,
                file=name,
            )
        values = zip(fields, literals if columns else [_text] * len(fields), strict=True)
        rows.append(b"(" + b",".join([literal(field) for field, literal in values]) + b")")
        size += len(rows[-1])
        if size > STATEMENT_BYTES:
            yield head + b",".join(rows)
            rows, size = [], 0
    if rows:
        yield head + b",".join(rows)


def _records(file: IO[bytes], name: str, delimiters: Delimiters) -> Iterator[list[bytes | None]]:
    line, field = _patterns(delimiters)
    data, at = b"", 0
    while True:
        piece = file.read(READ_BYTES)
        data, at = data[at:] + piece, 0
        while (match := line.match(data, at)) is not None:
            at = match.end()
            yield _fields(match[1], delimiters, field)
        if not piece:
            break
    if data[at:]:
        raise InputError("the file ends in the middle of a row", code=Code.DUMP_CUT_OFF, file=name)


def _patterns(delimiters: Delimiters) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """A line with its end; a field of one."""
    escape = rb"\\." if delimiters.escaped else rb"(?!)"
    enclosed = re.escape(delimiters.enclosed)
    inside = repeated(escape + rb"|" + enclosed * 2 + rb"|(?!" + enclosed + rb").")
    quotes = enclosed + inside + enclosed if enclosed else rb"(?!)"

    def up_to(end: bytes) -> bytes:
        return (
            rb"(" + repeated(quotes + rb"|" + escape + rb"|(?!" + re.escape(end) + rb").") + rb")"
        )

    if delimiters == Delimiters():
        line = rb"(" + repeated(rb"[^\\\n]++|\\.") + rb")\n"
    else:
        line = up_to(delimiters.lines) + re.escape(delimiters.lines)
    return re.compile(line, re.DOTALL), re.compile(
        up_to(delimiters.fields) + rb"(?:" + re.escape(delimiters.fields) + rb"|\Z)", re.DOTALL
    )


def _fields(line: bytes, delimiters: Delimiters, pattern: re.Pattern[bytes]) -> list[bytes | None]:
    if b"\\" + delimiters.fields not in line and not delimiters.enclosed:
        return [None if field == b"\\N" else field for field in line.split(delimiters.fields)]
    found: list[bytes | None] = []
    at = 0
    while True:
        match = pattern.match(line, at)
        assert match is not None
        field, at = match[1], match.end()
        found.append(
            None
            if field == b"\\N" or (delimiters.enclosed and field == b"NULL")
            else _open(field, delimiters.enclosed)
        )
        if at >= len(line) and not match[0].endswith(delimiters.fields):
            return found


def _open(field: bytes, enclosed: bytes) -> bytes:
    if enclosed and len(field) > 1 and field[:1] == enclosed == field[-1:]:
        return field[1:-1].replace(enclosed * 2, enclosed)
    return field


def _plain(field: bytes) -> bytes:
    return _ESCAPED.sub(lambda match: _MEANT.get(match[1], match[1]), field)


def _text(field: bytes | None) -> bytes:
    if field is None:
        return b"NULL"
    if b"'" in field or b"\\" in field:
        field = _ESCAPED_OR_QUOTE.sub(_for_sql, field)
    return b"'" + field + b"'"


_ESCAPED_OR_QUOTE = re.compile(rb"\\(.)|'", re.DOTALL)


def _for_sql(match: re.Match[bytes]) -> bytes:
    if match[1] is None:
        return b"\\'"
    return match[0] if match[1] not in b"%_" else match[1]


def _base64(field: bytes | None) -> bytes:
    return (
        b"NULL"
        if field is None
        else b"0x" + base64.b64decode(_plain(field)).hex().encode()
        if field
        else b"''"
    )


def _hex(field: bytes | None) -> bytes:
    return b"NULL" if field is None else b"0x" + field if field else b"''"


_LITERALS: dict[str, Callable[[bytes | None], bytes]] = {
    "": _text,
    "FROM_BASE64": _base64,
    "UNHEX": _hex,
}
