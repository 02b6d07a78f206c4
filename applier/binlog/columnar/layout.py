"""What becomes of a table in Arrow: for each column type of the log a kind, a width and an Arrow
type, as rows of a table.

A batch has three groups of columns. First where each row comes from:

    binlog_position       file position of the rows event, or of the payload event that it was in
    binlog_event          number of the event in the file, from 0; a payload's count one by one
    binlog_row            number of the row in its event; the two images of an update share it
    binlog_kind           insert, update_before, update_after, delete
    binlog_timestamp      the event's, seconds
    binlog_gtid_position  file position of the GTID event before it, 0 when there was none
    binlog_present        bitmap of the columns in the image, lowest bit first; others are NULL

Then the source's columns (named @1, @2, ... unless binlog_row_metadata was FULL), in natural types
and without loss: integers by signedness, DECIMAL as decimal128 or, beyond 38 digits, decimal256,
BIT, ENUM and SET as unsigned integers (an ENUM as a dictionary when its labels are known), TIME as
duration, text of utf8 or ascii columns as string, other bytes as binary. Then what the natural
types cannot hold:

    binlog_raw            list of (column, bytes) as they stood in the row image: values that are
                          NULL in their column because Arrow has no such value (zero and invalid
                          dates, the zero TIMESTAMP, text that is not UTF-8)
    binlog_diff           only with JSON columns: list of those that hold a diff, not a document

Dates that the calendar lacks are rare, so natural types with a list beside them serve more readers
than raw integers for all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import pyarrow as pa

from applier.binlog import wire
from applier.binlog.charsets import charset_of_collation
from applier.binlog.columnar.control import ConversionKind, RowKind
from applier.binlog.table_map import SourceColumn, TableMap


def byte_strings(values: Sequence[bytes], kind: pa.DataType) -> pa.Array:
    """An array of byte strings, or of text. (pa.array imports pandas for a list, where it is
    installed.)"""
    offsets = struct.pack(f"<{len(values) + 1}i", *accumulate(map(len, values), initial=0))
    return pa.Array.from_buffers(
        kind, len(values), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    )


KIND_NAMES = byte_strings([kind.name.lower().encode() for kind in RowKind], pa.string())
ORIGIN_FIELDS = (
    pa.field("binlog_position", pa.int64(), nullable=False),
    pa.field("binlog_event", pa.int64(), nullable=False),
    pa.field("binlog_row", pa.int32(), nullable=False),
    pa.field("binlog_kind", pa.dictionary(pa.int8(), pa.string()), nullable=False),
    pa.field("binlog_timestamp", pa.timestamp("s", "UTC"), nullable=False),
    pa.field("binlog_gtid_position", pa.int64(), nullable=False),
    pa.field("binlog_present", pa.dictionary(pa.int16(), pa.binary()), nullable=False),
)
RAW_FIELD = pa.field(
    "binlog_raw", pa.list_(pa.struct([("column", pa.int32()), ("bytes", pa.binary())]))
)
DIFF_FIELD = pa.field("binlog_diff", pa.list_(pa.int32()))

UTF8_CHARSETS = frozenset({"utf8mb4", "utf8mb3", "ascii"})
DECIMAL128_DIGITS = 38


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """How one column is decoded: `size` bytes in the row image (or of a length), `width` bytes in
    Arrow. See `ConversionKind`."""

    kind: ConversionKind
    size: int
    width: int
    arrow: pa.DataType
    first: int = 0
    second: int = 0


def _width(size: int) -> int:
    return 1 if size == 1 else 2 if size == 2 else 4 if size <= 4 else 8


_UNSIGNED = {1: pa.uint8(), 2: pa.uint16(), 4: pa.uint32(), 8: pa.uint64()}
_SIGNED = {1: pa.int8(), 2: pa.int16(), 4: pa.int32(), 8: pa.int64()}


def _integer(column: SourceColumn, size: int) -> ColumnLayout:
    width = _width(size)
    if column.unsigned:
        return ColumnLayout(
            ConversionKind.COPY if size == width else ConversionKind.UNSIGNED,
            size,
            width,
            _UNSIGNED[width],
        )
    return ColumnLayout(
        ConversionKind.COPY if size == width else ConversionKind.SIGNED24,
        size,
        width,
        _SIGNED[width],
    )


def _bits(_column: SourceColumn, size: int) -> ColumnLayout:
    return ColumnLayout(ConversionKind.BITS, size, _width(size), _UNSIGNED[_width(size)])


def _set(_column: SourceColumn, size: int) -> ColumnLayout:
    return ColumnLayout(ConversionKind.UNSIGNED, size, _width(size), _UNSIGNED[_width(size)])


def _enum(column: SourceColumn, size: int) -> ColumnLayout:
    """Code 0 is the empty string of an invalid value, so the codes are indexes into the labels with
    it in front."""
    plain = _UNSIGNED[_width(size)]
    arrow = pa.dictionary(plain, pa.binary()) if column.labels else plain
    return ColumnLayout(ConversionKind.UNSIGNED, size, _width(size), arrow, len(column.labels))


def _decimal(column: SourceColumn, size: int) -> ColumnLayout:
    precision, scale = column.metadata >> 8, column.metadata & 0xFF
    if precision <= DECIMAL128_DIGITS:
        return ColumnLayout(
            ConversionKind.DECIMAL,
            size,
            16,
            pa.decimal128(max(precision, 1), scale),
            precision - scale,
            scale,
        )
    return ColumnLayout(
        ConversionKind.DECIMAL, size, 32, pa.decimal256(precision, scale), precision - scale, scale
    )


def _bytes(_column: SourceColumn, size: int) -> ColumnLayout:
    return ColumnLayout(ConversionKind.BYTES, size, 0, pa.binary())


def _fixed(
    kind: ConversionKind, width: int, arrow: pa.DataType, *, fraction: bool = False
) -> Callable[[SourceColumn, int], ColumnLayout]:
    return lambda column, size: ColumnLayout(
        kind, size, width, arrow, column.metadata if fraction else 0
    )


LAYOUTS: dict[int, Callable[[SourceColumn, int], ColumnLayout]] = {
    wire.TINY: _integer,
    wire.SHORT: _integer,
    wire.INT24: _integer,
    wire.LONG: _integer,
    wire.LONGLONG: _integer,
    wire.YEAR: _fixed(ConversionKind.YEAR, 2, pa.int16()),
    wire.FLOAT: _fixed(ConversionKind.COPY, 4, pa.float32()),
    wire.DOUBLE: _fixed(ConversionKind.COPY, 8, pa.float64()),
    wire.DATE: _fixed(ConversionKind.DATE, 4, pa.date32()),
    wire.NEWDATE: _fixed(ConversionKind.DATE, 4, pa.date32()),
    wire.TIME: _fixed(ConversionKind.OLD_TIME, 8, pa.duration("us")),
    wire.DATETIME: _fixed(ConversionKind.OLD_DATETIME, 8, pa.timestamp("us")),
    wire.TIMESTAMP: _fixed(ConversionKind.OLD_TIMESTAMP, 8, pa.timestamp("us", "UTC")),
    wire.TIME2: _fixed(ConversionKind.TIME, 8, pa.duration("us"), fraction=True),
    wire.DATETIME2: _fixed(ConversionKind.DATETIME, 8, pa.timestamp("us"), fraction=True),
    wire.TIMESTAMP2: _fixed(ConversionKind.TIMESTAMP, 8, pa.timestamp("us", "UTC"), fraction=True),
    wire.NEWDECIMAL: _decimal,
    wire.BIT: _bits,
    wire.ENUM: _enum,
    wire.SET: _set,
}
"""Real type -> layout; every type that is not here has a length before its bytes."""


def is_text(column: SourceColumn) -> bool:
    """Whether the column's bytes are UTF-8 by its character set."""
    return (
        column.collation is not None
        and charset_of_collation(column.collation).name in UTF8_CHARSETS
    )


def layout_of(column: SourceColumn) -> ColumnLayout:
    """Raises InputError for a type that no row image can hold."""
    value = wire.wire_of(column.type_code, column.metadata, bool(column.unsigned))
    rule = LAYOUTS.get(column.real_type, _bytes)
    return rule(column, value.size)


@dataclass
class TableLayout:
    """One version of one table: its table map, and what its batches look like. `number` counts the
    versions met."""

    number: int
    table: TableMap
    text: bool
    columns: list[ColumnLayout] = field(init=False)
    present: dict[bytes, int] = field(default_factory=dict)
    """bitmap of an image's columns -> its number in binlog_present"""

    def __post_init__(self) -> None:
        self.columns = [layout_of(column) for column in self.table.columns]

    @cached_property
    def json(self) -> list[int]:
        """Positions of the JSON columns: a partial update has a bit for each."""
        return [at for at, column in enumerate(self.table.columns) if column.real_type == wire.JSON]

    @cached_property
    def strings(self) -> frozenset[int]:
        """Positions of the columns that are given as string."""
        return frozenset(
            at
            for at, (column, layout) in enumerate(
                zip(self.table.columns, self.columns, strict=True)
            )
            if self.text
            and layout.kind == ConversionKind.BYTES
            and column.real_type in wire.CHARACTER_TYPES
            and is_text(column)
        )

    @cached_property
    def dictionaries(self) -> dict[int, pa.Array]:
        """Position of an ENUM with labels -> its dictionary."""
        return {
            at: byte_strings([b"", *self.table.columns[at].labels], pa.binary())
            for at, layout in enumerate(self.columns)
            if pa.types.is_dictionary(layout.arrow)
        }

    @cached_property
    def schema(self) -> pa.Schema:
        """What the batches look like: where each row comes from, then its columns before and
        after."""
        names = {item.name for item in (*ORIGIN_FIELDS, RAW_FIELD, DIFF_FIELD)}
        fields = []
        for at, (column, layout) in enumerate(zip(self.table.columns, self.columns, strict=True)):
            name = column.name or f"@{at + 1}"
            while name in names:
                name += "_"
            names.add(name)
            arrow = pa.string() if at in self.strings else layout.arrow
            fields.append(pa.field(name, arrow, metadata=_describe(column)))
        last = [RAW_FIELD, DIFF_FIELD] if self.json else [RAW_FIELD]
        table = {"database": self.table.database, "table": self.table.table}
        return pa.schema(
            [*ORIGIN_FIELDS, *fields, *last],
            metadata={key: _encoded(value) for key, value in table.items()},
        )

    def present_number(self, bitmap: bytes) -> int:
        """The number that stands for this set of columns present in an image, in
        `present_dictionary`."""
        return self.present.setdefault(bitmap, len(self.present))

    def present_dictionary(self) -> pa.Array:
        """The sets of columns present that were met so far, as bitmaps."""
        return byte_strings(list(self.present), pa.binary())


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _describe(column: SourceColumn) -> dict[str, str | bytes]:
    """What Arrow's type does not say about the source's column, as metadata of the field."""
    described: dict[str, str | bytes] = {
        "mysql.type": str(column.real_type),
        "mysql.metadata": str(column.metadata),
    }
    if column.unsigned is not None:
        described["mysql.unsigned"] = str(column.unsigned).lower()
    if column.collation is not None:
        described["mysql.collation"] = str(column.collation)
    if column.labels:
        described["mysql.labels"] = b"\0".join(column.labels)
    if column.geometry_type is not None:
        described["mysql.geometry"] = str(column.geometry_type)
    return described


Notes = Sequence[tuple[int, int, bytes]]
"""(row, column, bytes), ascending rows"""


def raw_column(rows: int, notes: Notes) -> pa.Array:
    """binlog_raw; most batches have nothing to put there."""
    if not notes:
        return pa.nulls(rows, RAW_FIELD.type)
    values: list[list[dict[str, object]] | None] = [None] * rows
    for row, column, data in notes:
        entry = values[row]
        if entry is None:
            entry = values[row] = []
        entry.append({"column": column, "bytes": data})
    return pa.array(values, RAW_FIELD.type)


def diff_column(rows: int, notes: Sequence[tuple[int, int]]) -> pa.Array:
    """binlog_diff, out of (row, column)."""
    if not notes:
        return pa.nulls(rows, DIFF_FIELD.type)
    values: list[list[int] | None] = [None] * rows
    for row, column in notes:
        values[row] = [*(values[row] or []), column]
    return pa.array(values, DIFF_FIELD.type)


def undecodable(data: pa.Array) -> list[tuple[int, bytes]]:
    """(row, bytes) of the values of a binary array that are not UTF-8."""
    wrong = []
    for row, value in enumerate(data.to_pylist()):
        if value is not None:
            try:
                value.decode("utf-8")
            except UnicodeDecodeError:
                wrong.append((row, value))
    return wrong
