"""Row images as readable values when there is no table, only the table map: what `binlag events
--rows` prints.

A table map that names, signs and labels its columns (binlog_row_metadata=FULL) gives all of it;
without that, columns are @1, @2, ... as in mysqlbinlog, integers are shown signed, ENUM and SET as
numbers, and strings as the text they look like.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from applier.binlog import wire
from applier.binlog.charsets import charset_of_collation
from applier.binlog.cursor import Cursor
from applier.binlog.header import Event, an_event
from applier.binlog.images.conversion import converter
from applier.binlog.images.partial_rows import PartialRowsReader, json_columns
from applier.binlog.images.row_decoder import Image, ImageColumn, RowsReader, rows_reader
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import SourceColumn, TableMap
from applier.binlog.types import TYPES, to_text
from applier.binlog.types.numbers import finite, float_to_python
from applier.error_codes import Code
from applier.errors import InputError
from lookup.table import Column

MOST_COLUMNS = 40_000
"""Of the tables whose decoders are kept: each takes some 2 kB, and a table map of 6 kB has
4,096."""
Value = int | float | str | None
Values = dict[str, Value]
BINARY_COLLATION = 63
WORDS = {"write": "insert", "update": "update", "delete": "delete"}
UNREADABLE = (InputError, ValueError, OverflowError, IndexError, RecursionError, zlib.error)
"""What reading a value raises where its type has no such bytes."""

PLAIN_TYPES: dict[int, str] = {
    wire.TINY: "tinyint", wire.SHORT: "smallint", wire.INT24: "mediumint", wire.LONG: "int",
    wire.LONGLONG: "bigint", wire.FLOAT: "float",
    wire.DOUBLE: "double", wire.YEAR: "year", wire.DATE: "date", wire.NEWDATE: "date",
    wire.TIME: "time", wire.DATETIME: "datetime",
    wire.TIMESTAMP: "timestamp", wire.TIMESTAMP2: "timestamp", wire.DATETIME2: "datetime",
    wire.TIME2: "time", wire.NEWDECIMAL: "decimal",
    wire.BIT: "bit", wire.ENUM: "enum", wire.SET: "set", wire.JSON: "json",
    wire.GEOMETRY: "geometry", wire.VECTOR: "vector",
}  # fmt: skip
"""Type code -> SQL type, where the type code alone says it. Strings and blobs need the
collation."""
TEMPORAL2 = frozenset({wire.TIMESTAMP2, wire.DATETIME2, wire.TIME2})
CONVERTED = frozenset(
    {
        wire.TIMESTAMP,
        wire.DATETIME,
        wire.TIME,
        wire.MARIADB_BLOB_COMPRESSED,
        wire.MARIADB_VARCHAR_COMPRESSED,
    }
)
"""Old temporal formats and compressed columns: made into what a table would store."""
NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "bit"})


def column_of(source: SourceColumn, at: int) -> Column | None:
    """The source column as SQL has it; None when only its bytes can be shown."""
    name, kind = source.name or f"@{at + 1}", source.real_type
    labels = tuple(label.decode("utf-8", "backslashreplace") for label in source.labels)
    plain = PLAIN_TYPES.get(kind)
    if plain is not None:
        length, scale = None, source.metadata if kind in TEMPORAL2 else 0
        if kind == wire.NEWDECIMAL:
            length, scale = source.metadata >> 8, source.metadata & 0xFF
        return Column(name, plain, length, scale, bool(source.unsigned), labels=labels)
    if source.collation is None:
        return None
    is_char = kind == wire.STRING
    if source.collation == BINARY_COLLATION:
        return Column(
            name,
            "binary" if is_char else "varbinary",
            wire.string_length(source.metadata) if is_char else None,
        )
    return Column(
        name, "char" if is_char else "varchar", charset=charset_of_collation(source.collation).name
    )


def _guess(data: bytes) -> str:
    """A string of unknown character set: its text, or its bytes in hexadecimal digits."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return "0x" + data.hex().upper()


def _hex(text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda stored: "0x" + text(stored)


def is_number(source: SourceColumn, column: Column) -> bool:
    """Whether the stored value is shown as the number that it is."""
    return column.type in NUMBERS or (column.type in ("enum", "set") and not source.labels)


def shown_as(source: SourceColumn, column: Column | None) -> Callable[[Any], Value]:
    """A function from a stored value that is not NULL to int, float or text."""
    if column is None:
        return _guess
    if is_number(source, column):
        return int
    if column.type == "year":
        year = to_text(column)
        return lambda stored: int(year(stored))
    if column.type in ("float", "double"):
        number = float_to_python(column)
        return lambda stored: finite(number(stored))
    convert: Callable[[Any], str] = to_text(column)
    return _hex(convert) if TYPES[column.type].encoding == "hex" else convert


@dataclass(frozen=True, slots=True)
class JsonChanges:
    """A JSON column of a partial update: the changes as the log holds them."""

    data: bytes

    @property
    def text(self) -> str:
        """JSON_REPLACE('$.a', 1) JSON_REMOVE('$.b'): the functions that mysqlbinlog prints, one by
        one, in order.

        Raises InputError for changes that cannot be read.
        """
        from applier.binlog.types import json

        cursor, parts = Cursor(self.data), []
        while cursor.left:
            operation = cursor.u8()
            path = cursor.take(cursor.packed()).decode("utf-8", "backslashreplace")
            if operation > 2:
                raise InputError(
                    f"unknown operation {operation} in a partial update of a JSON column",
                    code=Code.BAD_VALUE,
                )
            insert = "JSON_ARRAY_INSERT" if path.endswith("]") else "JSON_INSERT"
            name = ("JSON_REPLACE", insert, "JSON_REMOVE")[operation]
            value = (
                f", {json.to_text(json.decode(cursor.take(cursor.packed())))}"
                if operation != 2
                else ""
            )
            parts.append(f"{name}('{path}'{value})")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of an image: how its bytes become a value, and how that is shown. `column`: None
    where only bytes are known."""

    name: str
    source: SourceColumn
    column: Column | None
    wire: wire.Wire
    convert: Callable[[Any], Any] | None
    show: Callable[[Any], Value]

    def text_of(self, data: bytes) -> str:
        """The text of the value that these bytes are. Raises what stands in UNREADABLE."""
        stored: Any = data
        if self.wire.kind in ("int", "uint"):
            stored = int.from_bytes(data, "little", signed=self.wire.kind == "int")
        elif self.wire.kind == "bits":
            stored = int.from_bytes(data, "big")
        return value_text(self.show(stored if self.convert is None else self.convert(stored)))


@dataclass(frozen=True, slots=True)
class ShownRows:
    """The rows of events of one shape. `line`: what stands before the images of each."""

    line: str
    before: tuple[ShownColumn, ...]
    after: tuple[ShownColumn, ...] = ()


class _Plan:
    """How one shape of rows event is decoded and shown."""

    def __init__(self, rows: RowsHead, table_map: TableMap) -> None:
        self.table_map = table_map
        self.sources = table_map.columns
        self.columns = [column_of(source, at) for at, source in enumerate(self.sources)]
        self.first, self.second = rows.images_of(table_map)
        names = [source.name or f"@{at + 1}" for at, source in enumerate(self.sources)]
        shown = [
            shown_as(source, column)
            for source, column in zip(self.sources, self.columns, strict=True)
        ]
        self.names, self.shown = names, shown
        self.before = [(names[at], shown[at]) for at in self.first]
        self.after = [(names[at], shown[at]) for at in self.second]
        both = rows.kind == "update"
        columns = self.image_columns(self.first)
        if rows.partial:
            self.read: RowsReader = PartialRowsReader(
                json_columns(self.sources),
                columns,
                lambda changed: self.image_columns(self.second, changed),
            )
        else:
            self.read = rows_reader(columns, self.image_columns(self.second) if both else None)

    def image_columns(
        self, places: Sequence[int], changed: frozenset[int] = frozenset()
    ) -> list[ImageColumn]:
        columns = []
        for at in places:
            source, column = self.sources[at], self.columns[at]
            target = column if column is not None else Column("", "blob")
            convert = converter(source, target) if source.real_type in CONVERTED else None
            columns.append(
                ImageColumn(
                    wire.wire_of(source.type_code, source.metadata, bool(source.unsigned)),
                    True,
                    JsonChanges if at in changed else convert,
                )
            )
        return columns

    def shown_columns(self, places: Sequence[int]) -> tuple[ShownColumn, ...]:
        """The columns of an image, each with how it is shown."""
        images = zip(places, self.image_columns(places), strict=True)
        return tuple(
            ShownColumn(
                self.names[at],
                self.sources[at],
                self.columns[at],
                image.wire,
                image.convert,
                self.shown[at],
            )
            for at, image in images
        )


@dataclass
class RowValues:
    """Decodes rows events. Keeps what it made for a shape of event, by table map."""

    _plans: dict[tuple[int, str, bool, bytes], _Plan] = field(default_factory=dict)
    _columns: int = 0
    """In all of the plans."""

    def rows(
        self, event: Event, rows: RowsHead, table_map: TableMap
    ) -> list[tuple[Values | None, Values | None]]:
        """(before, after) of every row, each {column: value} of the columns in the image. Raises
        InputError."""
        try:
            return self._rows(event, rows, table_map)
        except InputError as error:
            error.locate(file=event.file, position=event.position, table=table_map.full_name)
            raise
        except UNREADABLE as error:
            raise InputError(
                f"a value of {an_event(event.name)} cannot be read: {error}",
                code=Code.BAD_VALUE,
                file=event.file,
                position=event.position,
                table=table_map.full_name,
                hint="the event does not fit its table map: the log is damaged",
            ) from None

    def shown(self, rows: RowsHead, table_map: TableMap, indent: str) -> ShownRows | None:
        """How rows with this head are shown, `indent` before each; None where that depends on the
        row. Raises InputError."""
        if rows.partial:
            return None
        plan = self._plan(rows, table_map)
        after = plan.shown_columns(plan.second) if rows.kind == "update" else ()
        return ShownRows(
            f"{indent}{WORDS[rows.kind]} {table_map.full_name}: ",
            plan.shown_columns(plan.first),
            after,
        )

    def _plan(self, rows: RowsHead, table_map: TableMap) -> _Plan:
        key = (id(table_map), rows.kind, rows.partial, rows.shape)
        plan = self._plans.get(key)
        if plan is None or plan.table_map is not table_map:
            self._columns += len(table_map.columns)
            if self._columns > MOST_COLUMNS:
                self._plans.clear()
                self._columns = len(table_map.columns)
            plan = self._plans[key] = _Plan(rows, table_map)
        return plan

    def _rows(
        self, event: Event, rows: RowsHead, table_map: TableMap
    ) -> list[tuple[Values | None, Values | None]]:
        plan = self._plan(rows, table_map)
        images = plan.read(event.buffer, event.body + rows.length, event.end)
        if rows.kind == "update":
            return [(_show(plan.before, image[0]), _show(plan.after, image[1])) for image in images]
        if rows.kind == "write":
            return [(None, _show(plan.before, image)) for image in images]
        return [(_show(plan.before, image), None) for image in images]


def _show(columns: Sequence[tuple[str, Callable[[Any], Value]]], image: Image) -> Values:
    return {
        name: (
            None
            if value is None
            else value.text
            if isinstance(value, JsonChanges)
            else convert(value)
        )
        for (name, convert), value in zip(columns, image, strict=True)
    }


def image_text(image: Values) -> str:
    """The columns of an image as `binlag events --rows` shows them."""
    return (
        ", ".join(f"{name}={value_text(value)}" for name, value in image.items()) or "(no columns)"
    )


def value_text(value: Value) -> str:
    """A value as it stands there: strings in quotes, their unprintable characters escaped."""
    if value is None:
        return "NULL"
    if not isinstance(value, str):
        return repr(value)
    if value.startswith("0x"):
        return value
    if not value.isprintable():
        value = "".join(
            char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
            for char in value
        )
    return "'" + value.replace("'", "''") + "'"
