"""The same batches without compiled kernels: the row decoders' values, column by column into Arrow.

For small logs, where loading or compiling the kernels would take longer than the work. Each value
is converted by the functions that the rest of binlag uses, so this is also what the kernels are
tested against.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from applier.binlog import wire
from applier.binlog.columnar.control import ConversionKind, RowKind
from applier.binlog.columnar.layout import (
    KIND_NAMES,
    ORIGIN_FIELDS,
    ColumnLayout,
    TableLayout,
    diff_column,
    raw_column,
    undecodable,
)
from applier.binlog.columnar.table_batch import Paths, TableBatch, Wants
from applier.binlog.header import GTID_TYPES, ROWS_TYPES, Event, EventType
from applier.binlog.images.partial_rows import PartialRowsReader
from applier.binlog.images.row_decoder import ImageColumn, rows_reader
from applier.binlog.reader import LogReader
from applier.binlog.rows import RowsHead
from applier.binlog.rows_context import RowsContext
from applier.binlog.table_map import SourceColumn, TableMap
from applier.binlog.types.numbers import decimal_to_text
from applier.binlog.types.temporal import (
    date_parts,
    datetime_parts,
    time_microseconds,
    timestamp_microseconds,
)
from applier.errors import InputError

EPOCH = datetime(1970, 1, 1)
EPOCH_DAY = date(1970, 1, 1).toordinal()
MICROSECOND = timedelta(microseconds=1)
Convert = Callable[[Any], Any]
"""A value as the row decoder leaves it -> what Arrow takes; None when Arrow has no such value."""


def read_plain(
    paths: Paths,
    wants: Wants | None,
    *,
    verify_checksum: bool,
    text: bool,
    chunk_bytes: int,
    start_position: int | None = None,
    stop_position: int | None = None,
    on_event: Callable[[Event, LogReader], bool] | None = None,
) -> Iterator[TableBatch]:
    """See read_batches, and LogReader for the positions. `on_event` is shown each event, and says
    whether its rows are to be read, if it has any."""
    state = _Plain(wants, text)
    reader = LogReader(
        paths,
        verify_checksum=verify_checksum,
        start_position=start_position,
        stop_position=stop_position,
    )
    events = iter(reader)
    while True:
        try:
            event = next(events, None)
        except InputError:
            yield from state.flush()
            raise
        if event is None:
            break
        if event.file != state.file or state.bytes >= chunk_bytes:
            yield from state.flush()
        try:
            is_wanted = on_event is None or on_event(event, reader)
            state.take(event, reader, is_wanted)
        except InputError as error:
            error.locate(file=event.file, position=event.position)
            yield from state.flush()
            raise
    yield from state.flush()


@dataclass
class _Rows:
    """Rows of one table that wait to become a batch: one list per column."""

    layout: TableLayout
    origins: list[list[int]] = field(default_factory=lambda: [[] for _ in ORIGIN_FIELDS])
    columns: list[list[Any]] = field(default_factory=list)
    diffs: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.columns = [[] for _ in self.layout.columns]


class _Plain:
    """The tables met, and the rows collected since the last flush."""

    def __init__(self, wants: Wants | None, text: bool) -> None:
        self.file = ""
        self.bytes = 0
        self._wants = wants
        self._text = text
        self._ordinal = -1
        self._gtid_position = 0
        self._layouts: dict[bytes, TableLayout] = {}
        self._context = RowsContext(self._layout)
        self._readers: dict[tuple[int, str, bytes, bool], Any] = {}
        self._pending: dict[int, _Rows] = {}

    def take(self, event: Event, reader: LogReader, is_wanted: bool) -> None:
        """Reads one event; rows only where they are wanted. Raises InputError."""
        if event.file != self.file:
            self.file, self._ordinal, self._gtid_position = event.file, -1, 0
            self._context.maps.clear()
        self._ordinal += 1
        assert reader.format is not None
        if event.type == EventType.TABLE_MAP:
            self._context.take_map(event)
        elif event.type in GTID_TYPES:
            self._gtid_position = event.position
        elif event.type == EventType.FORMAT_DESCRIPTION:
            self._context.describe(reader.format)
            self._map_head = reader.format.post_header_length(EventType.TABLE_MAP)
        elif is_wanted and event.type in ROWS_TYPES:
            self._rows(event, self._context.head_of(event))

    def _layout(self, table: TableMap, body: bytes) -> TableLayout:
        """One for all table ids under which the table is written alike."""
        id_size = 4 if self._map_head == 6 else 6
        key = body[id_size + 2 + max(self._map_head - 8, 0) :]
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = TableLayout(len(self._layouts), table, self._text)
        return layout

    def _rows(self, event: Event, rows: RowsHead) -> None:
        layout = self._context.table_of(event, rows)
        if layout is None:
            return
        if self._wants is not None and not self._wants(layout.table.database, layout.table.table):
            return
        first, second = rows.images_of(layout.table)
        pending = self._pending.get(layout.number)
        if pending is None:
            pending = self._pending[layout.number] = _Rows(layout)
        self.bytes += event.end - event.body - rows.length
        try:
            self._add(pending, event, rows, first, second)
        except InputError as error:
            error.locate(table=layout.table.full_name)
            raise

    def _add(
        self,
        pending: _Rows,
        event: Event,
        rows: RowsHead,
        first: tuple[int, ...],
        second: tuple[int, ...],
    ) -> None:
        layout = pending.layout
        size = (len(layout.columns) + 7) // 8
        bitmaps = (
            rows.shape[-2 * size :]
            if rows.kind == "update"
            else rows.shape[len(rows.shape) - size :]
        )
        before = layout.present_number(bitmaps[:size])
        key = (layout.number, rows.kind, rows.shape, rows.partial)
        read = self._readers.get(key)
        if read is None:
            images = [
                [ImageColumn(_wire(layout.table.columns[at])) for at in columns]
                for columns in (first, second)
            ]
            read = self._readers[key] = _reader(layout, rows, images, second)
        for number, row in enumerate(read(event.buffer, event.body + rows.length, event.end)):
            if rows.kind == "update":
                self._append(pending, event, number, RowKind.UPDATE_BEFORE, before, first, row[0])
                after = layout.present_number(bitmaps[size:])
                pending.diffs.extend(
                    (len(pending.origins[0]), at) for at in (row[2] if rows.partial else ())
                )
                self._append(pending, event, number, RowKind.UPDATE_AFTER, after, second, row[1])
            else:
                kind = RowKind.INSERT if rows.kind == "write" else RowKind.DELETE
                self._append(pending, event, number, kind, before, first, row)

    def _append(
        self,
        pending: _Rows,
        event: Event,
        number: int,
        kind: RowKind,
        present: int,
        columns: tuple[int, ...],
        image: tuple[Any, ...],
    ) -> None:
        origin = (
            event.position,
            self._ordinal,
            number,
            int(kind),
            event.timestamp,
            self._gtid_position,
            present,
        )
        for target, value in zip(pending.origins, origin, strict=True):
            target.append(value)
        if len(columns) == len(pending.columns):
            for column, value in zip(pending.columns, image, strict=True):
                column.append(value)
            return
        values = dict(zip(columns, image, strict=True))
        for at, column in enumerate(pending.columns):
            column.append(values.get(at))

    def flush(self) -> Iterator[TableBatch]:
        """What has been collected, as one batch a table."""
        pending, self._pending, self.bytes = self._pending, {}, 0
        for rows in pending.values():
            if rows.origins[0]:
                yield TableBatch(rows.layout.table, rows.layout.number, self.file, _batch(rows))


def _wire(column: SourceColumn) -> wire.Wire:
    return wire.wire_of(column.type_code, column.metadata, bool(column.unsigned))


def _reader(
    layout: TableLayout, rows: RowsHead, images: list[list[ImageColumn]], second: tuple[int, ...]
) -> Any:
    if rows.partial:
        return _partial_reader(layout, images, second)
    return rows_reader(images[0], images[1] if rows.kind == "update" else None)


def _partial_reader(
    layout: TableLayout, images: list[list[ImageColumn]], second: tuple[int, ...]
) -> Any:
    """Rows of PARTIAL_UPDATE_ROWS as (before, after, columns that hold a diff)."""
    read_rows = PartialRowsReader(layout.json, images[0], lambda changed: images[1])

    def read(buffer: bytes, start: int, end: int) -> list[Any]:
        rows = []
        for before, after, changed in read_rows(buffer, start, end):
            given = dict(zip(second, after, strict=True))
            rows.append(
                (before, after, [at for at in sorted(changed) if given.get(at) is not None])
            )
        return rows

    return read


def _batch(rows: _Rows) -> pa.RecordBatch:
    layout = rows.layout
    count = len(rows.origins[0])
    raw: list[tuple[int, int, bytes]] = []
    arrays = [
        _origin(item, values, layout)
        for item, values in zip(ORIGIN_FIELDS, rows.origins, strict=True)
    ]
    for at, values in enumerate(rows.columns):
        arrays.append(_column(layout, at, values, raw))
    arrays.append(raw_column(count, sorted(raw)))
    if layout.json:
        arrays.append(diff_column(count, rows.diffs))
    return pa.RecordBatch.from_arrays(arrays, schema=layout.schema)


def _origin(item: pa.Field, values: list[int], layout: TableLayout) -> pa.Array:
    if not pa.types.is_dictionary(item.type):
        return pa.array(values, pa.int64()).cast(item.type)
    labels = KIND_NAMES if item.name == "binlog_kind" else layout.present_dictionary()
    return pa.DictionaryArray.from_arrays(pa.array(values, item.type.index_type), labels)


def _column(
    layout: TableLayout, at: int, values: list[Any], raw: list[tuple[int, int, bytes]]
) -> pa.Array:
    column = layout.columns[at]
    if column.kind == ConversionKind.BYTES:
        data = pa.array(values, pa.binary())
        if at not in layout.strings:
            return data
        for row, value in undecodable(data):
            raw.append((row, at, value))
            values[row] = None
        return pa.array(values, pa.binary()).cast(pa.string())
    source = layout.table.columns[at]
    convert = CONVERSIONS[column.kind](column, source)
    converted = [None if value is None else convert(value) for value in values]
    for row, value in enumerate(values):
        if value is not None and converted[row] is None:
            raw.append((row, at, value if isinstance(value, bytes) else _bytes_of(value, source)))
    if at in layout.dictionaries:
        return pa.DictionaryArray.from_arrays(
            pa.array(converted, column.arrow.index_type), layout.dictionaries[at]
        )
    return pa.array(converted, column.arrow)


def _bytes_of(value: int, source: SourceColumn) -> bytes:
    """An integer back as it stood in the row image."""
    layout = _wire(source)
    return value.to_bytes(layout.size, "little", signed=layout.kind == "int")


def _copy(column: ColumnLayout, source: SourceColumn) -> Convert:
    if column.arrow == pa.float32():
        return lambda value: struct.unpack("<f", value)[0]
    if column.arrow == pa.float64():
        return lambda value: struct.unpack("<d", value)[0]
    return _same(column, source)


def _same(_column: ColumnLayout, _source: SourceColumn) -> Convert:
    return lambda value: value


def _unsigned(column: ColumnLayout, _source: SourceColumn) -> Convert:
    limit = column.first
    return lambda value: None if limit and value > limit else value


def _year(_column: ColumnLayout, _source: SourceColumn) -> Convert:
    return lambda value: value + 1900 if value else 0


def _date(_column: ColumnLayout, _source: SourceColumn) -> Convert:
    def convert(value: int) -> int | None:
        try:
            return date(*date_parts(value)).toordinal() - EPOCH_DAY
        except ValueError:
            return None

    return convert


def _moment(*parts: int) -> int | None:
    try:
        return (datetime(*parts) - EPOCH) // MICROSECOND  # type: ignore[arg-type]
    except ValueError:
        return None


def _datetime(_column: ColumnLayout, _source: SourceColumn) -> Convert:
    def convert(value: bytes) -> int | None:
        return _moment(*datetime_parts(value)) if value[0] & 0x80 else None

    return convert


def _timestamp(_column: ColumnLayout, _source: SourceColumn) -> Convert:
    def convert(value: bytes) -> int | None:
        microseconds = timestamp_microseconds(value)
        fraction = microseconds - int.from_bytes(value[:4], "big") * 1_000_000
        return microseconds if microseconds and fraction < 1_000_000 else None

    return convert


def _time(_column: ColumnLayout, _source: SourceColumn) -> Convert:
    """A TIME has at most 838 hours; ten bits hold more, and the two bits above them nothing."""

    def convert(value: bytes) -> int | None:
        packed = abs(int.from_bytes(value, "big") - (0x80 << 8 * (len(value) - 1)))
        shift = 8 * (len(value) - 3)
        whole, fraction = packed >> shift, packed & ((1 << shift) - 1)
        if (
            whole >> 22
            or whole >> 6 & 63 > 59
            or whole & 63 > 59
            or fraction >= (1, 100, 10_000, 1_000_000)[len(value) - 3]
        ):
            return None
        return time_microseconds(value)

    return convert


def _old_time(_column: ColumnLayout, _source: SourceColumn) -> Convert:
    def convert(value: int) -> int | None:
        hours, minutes, seconds = abs(value) // 10_000, abs(value) // 100 % 100, abs(value) % 100
        if minutes > 59 or seconds > 59:
            return None
        return ((hours * 60 + minutes) * 60 + seconds) * (-1_000_000 if value < 0 else 1_000_000)

    return convert


def _old_datetime(_column: ColumnLayout, _source: SourceColumn) -> Convert:
    def convert(value: int) -> int | None:
        day, time = divmod(value, 1_000_000)
        return _moment(
            day // 10_000,
            day // 100 % 100,
            day % 100,
            time // 10_000,
            time // 100 % 100,
            time % 100,
        )

    return convert


def _old_timestamp(_column: ColumnLayout, _source: SourceColumn) -> Convert:
    return lambda value: value * 1_000_000 if value else None


def _decimal(_column: ColumnLayout, source: SourceColumn) -> Convert:
    precision, scale = source.metadata >> 8, source.metadata & 0xFF
    text = decimal_to_text(precision, scale)
    sizes = [
        (digits, wire.DIGIT_BYTES[digits]) for digits in _digit_groups(precision - scale, scale)
    ]

    def convert(value: bytes) -> Decimal | None:
        flip = 0 if value[0] & 0x80 else 0xFF
        plain = bytes([value[0] ^ 0x80 ^ flip]) + bytes(byte ^ flip for byte in value[1:])
        at = 0
        for digits, size in sizes:
            if int.from_bytes(plain[at : at + size], "big") >= 10**digits:
                return None
            at += size
        return Decimal(text(value))

    return convert


def _digit_groups(whole: int, fraction: int) -> list[int]:
    """Digits of each group of a packed decimal."""
    before = ([whole % 9] if whole % 9 else []) + [9] * (whole // 9)
    return before + [9] * (fraction // 9) + ([fraction % 9] if fraction % 9 else [])


CONVERSIONS: dict[ConversionKind, Callable[[ColumnLayout, SourceColumn], Convert]] = {
    ConversionKind.COPY: _copy,
    ConversionKind.SIGNED24: _same,
    ConversionKind.UNSIGNED: _unsigned,
    ConversionKind.BITS: _same,
    ConversionKind.YEAR: _year,
    ConversionKind.DATE: _date,
    ConversionKind.TIME: _time,
    ConversionKind.DATETIME: _datetime,
    ConversionKind.TIMESTAMP: _timestamp,
    ConversionKind.OLD_TIME: _old_time,
    ConversionKind.OLD_DATETIME: _old_datetime,
    ConversionKind.OLD_TIMESTAMP: _old_timestamp,
    ConversionKind.DECIMAL: _decimal,
}

__all__: Sequence[str] = ["read_plain"]
