"""Chunks decoded into record batches by the decode kernel, several chunks at a time.

All buffers of a batch lie in one block of memory, made large enough from what earlier batches of
the table needed. Memory that is never written costs nothing, so the estimate is generous; when it
was too small, the batch ends early and a next one goes on. Kernels run without Python's lock, so
threads decode while the next chunk is scanned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from applier.binlog.columnar.cache import load_kernel
from applier.binlog.columnar.control import Col, ConversionKind, Decode, DecodeStatus, Note, Ref
from applier.binlog.columnar.layout import (
    DIFF_FIELD,
    KIND_NAMES,
    ORIGIN_FIELDS,
    ColumnLayout,
    TableLayout,
    diff_column,
    raw_column,
    undecodable,
)
from applier.binlog.columnar.registry import Bytes, Registry, address
from applier.binlog.columnar.scanner import Chunk, Scanner
from applier.binlog.columnar.table_batch import Paths, TableBatch, Wants
from applier.binlog.columnar.table_ids import Integers
from applier.binlog.images.partial_rows import unknown_options
from applier.error_codes import Code
from applier.errors import InputError

SLACK = 64
"""Room behind the bytes of a column; the kernel copies short strings in blocks."""
NOTES = 4096
MOST_BYTES = 0x7FFF_FF00
"""Offsets are 32 bits."""
ORIGIN_WIDTHS = (8, 8, 4, 1, 8, 8, 2)
ORIGIN_FIRST = Decode.OUT_POSITION
HINT = "the event does not fit its table map: the log is damaged"


def read_fast(
    paths: Paths,
    wants: Wants | None,
    *,
    verify_checksum: bool,
    text: bool,
    chunk_bytes: int,
    threads: int,
) -> Iterator[TableBatch]:
    """See read_batches. Raises InputError."""
    registry = Registry(wants, text)
    chunks = Scanner(
        paths, registry, verify_checksum=verify_checksum, chunk_bytes=chunk_bytes
    ).chunks()
    decoder = Decoder(registry)
    if threads <= 1:
        for chunk in chunks:
            yield from decoder.chunk(chunk)
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[list[TableBatch]]] = deque()
        failed: InputError | None = None
        while failed is None:
            try:
                chunk = next(chunks)
            except StopIteration:
                break
            except InputError as error:
                failed = error
                break
            pending.append(pool.submit(decoder.chunk, chunk))
            if len(pending) > threads:
                yield from pending.popleft().result()
        while pending:
            yield from pending.popleft().result()
        if failed is not None:
            raise failed


@dataclass
class _Needs:
    """What batches of a table needed so far, per byte of its rows events."""

    rows: float
    bytes: dict[int, float]


class Arena:
    """The memory of one batch: origin columns and source columns, each buffer on a boundary of 64
    bytes."""

    def __init__(
        self, layout: TableLayout, template: Integers, rows: int, capacities: dict[int, int]
    ) -> None:
        self.rows = rows
        self.columns = template.copy()
        self._size = 0
        self.origins = [self._place(width * rows) for width in ORIGIN_WIDTHS]
        places = []
        for at, column in enumerate(layout.columns):
            text = column.kind == ConversionKind.BYTES
            data = self._place(capacities[at] + SLACK if text else column.width * rows)
            places.append(
                (data, self._place((rows + 7) // 8), self._place(4 * rows + 4) if text else 0)
            )
        memory = np.empty(self._size + 64, np.uint8)
        self.base = -address(memory) % 64
        start = address(memory) + self.base
        self.memory = memory
        self.buffer = pa.py_buffer(memory)
        self.places = places
        for at, (data, valid, offsets) in enumerate(places):
            entry = self.columns[at]
            entry[Col.DATA], entry[Col.VALID], entry[Col.OFFSETS] = (
                start + data,
                start + valid,
                start + offsets,
            )
            entry[Col.CAPACITY] = capacities.get(at, 0) + SLACK
            if layout.columns[at].kind == ConversionKind.BYTES:
                memory[self.base + offsets : self.base + offsets + 4] = 0
        self.start = start

    def _place(self, size: int) -> int:
        place = self._size
        self._size += -(-size // 64) * 64
        return place

    def slice(self, place: int, size: int) -> pa.Buffer:
        """A part of the memory as a buffer of Arrow, without a copy; `place` and `size` in
        bytes."""
        return self.buffer.slice(self.base + place, size)

    def used(self, at: int, row: int) -> int:
        """Bytes of a string column before `row`."""
        offset = self.base + self.places[at][2] + 4 * row
        return int(self.memory[offset : offset + 4].view(np.int32)[0])


class Decoder:
    """Decodes chunks; safe to use from several threads (what it learns about sizes may be lost,
    never wrong)."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._decode = load_kernel("decode").call
        self._templates: dict[int, Integers] = {}
        self._needs: dict[int, _Needs] = {}

    def chunk(self, chunk: Chunk) -> list[TableBatch]:
        """The batches of a chunk, in the order in which its tables come first in the log."""
        refs = chunk.refs[: chunk.count]
        numbers, first = np.unique(refs[:, Ref.SCHEMA], return_index=True)
        batches: list[TableBatch] = []
        for number in numbers[np.argsort(first)]:
            layout = self._registry.layouts[int(number)]
            order = np.flatnonzero(refs[:, Ref.SCHEMA] == number)
            for data in _Job(self, layout, chunk, order).batches():
                batches.append(TableBatch(layout.table, layout.number, chunk.file, data))
        return batches

    def template(self, layout: TableLayout) -> Integers:
        """The column description for the kernel, but for the addresses."""
        found = self._templates.get(layout.number)
        if found is None:
            found = np.zeros((max(len(layout.columns), 1), Col.SIZE_OF_ENTRY), np.int64)
            for at, column in enumerate(layout.columns):
                json = layout.json.index(at) if at in layout.json else -1
                found[at, : Col.JSON + 1] = (
                    column.kind,
                    column.size,
                    column.width,
                    column.first,
                    column.second,
                    json,
                )
            self._templates[layout.number] = found
        return found

    def needs(self, layout: TableLayout) -> _Needs:
        """First a guess: no NULLs, and every string column may take all bytes."""
        found = self._needs.get(layout.number)
        if found is None:
            least = (len(layout.columns) + 7) // 8 + sum(
                column.size
                for column, source in zip(layout.columns, layout.table.columns, strict=True)
                if not source.nullable
            )
            texts = [
                at
                for at, column in enumerate(layout.columns)
                if column.kind == ConversionKind.BYTES
            ]
            found = _Needs(1 / max(least, 1), {at: min(1.0, 16 / len(texts)) for at in texts})
            self._needs[layout.number] = found
        return found


class _Job:
    """All events of one table in one chunk."""

    def __init__(
        self, decoder: Decoder, layout: TableLayout, chunk: Chunk, order: Integers
    ) -> None:
        self.layout = layout
        self.chunk = chunk
        self.order = order
        self.decoder = decoder
        self.needs = decoder.needs(layout)
        self.sizes = chunk.refs[order, Ref.END] - chunk.refs[order, Ref.START]
        self.notes: Integers = np.empty((NOTES, Note.SIZE_OF_ENTRY), np.int64)
        control = self.control = np.zeros(Decode.SIZE_OF_BLOCK, np.int64)
        control[Decode.REFS] = address(chunk.refs)
        control[Decode.ORDER] = address(order)
        control[Decode.COUNT] = len(order)
        control[Decode.IMAGES] = address(chunk.images)
        control[Decode.JSON_COLUMNS] = len(layout.json)
        control[Decode.NOTES] = address(self.notes)
        control[Decode.NOTES_CAPACITY] = NOTES

    def batches(self) -> Iterator[pa.RecordBatch]:
        control = self.control
        least: dict[int, int] = {}
        while control[Decode.AT] < len(self.order):
            at = int(control[Decode.AT])
            arena = self._arena(int(self.sizes[at:].sum()), least)
            control[[Decode.ROW, Decode.NOTES_COUNT]] = 0
            status = self.decoder._decode(address(control))
            if status >= DecodeStatus.CORRUPT:
                self._corrupt(status)
            rows = int(control[Decode.ROW])
            if status == DecodeStatus.BYTES_FULL:
                self._grow(
                    int(control[Decode.DETAIL]),
                    int(control[Decode.DETAIL_LENGTH]),
                    least if rows == 0 else {},
                )
            elif status == DecodeStatus.ROWS_FULL:
                self.needs.rows *= 1.5
            if rows:
                if status == DecodeStatus.DONE and at == 0:
                    self._learn(arena, rows)
                yield self._batch(arena, rows)

    def _arena(self, size: int, least: dict[int, int]) -> Arena:
        rows = int(size * self.needs.rows * 1.1) + 64
        capacities = {
            at: min(max(int(size * share * 1.1) + 256, least.get(at, 0)), MOST_BYTES)
            for at, share in self.needs.bytes.items()
        }
        arena = Arena(self.layout, self.decoder.template(self.layout), rows, capacities)
        control = self.control
        control[Decode.ROW_CAPACITY] = rows
        control[Decode.COLUMNS] = address(arena.columns)
        for at, place in enumerate(arena.origins):
            control[ORIGIN_FIRST + at] = arena.start + place
        return arena

    def _grow(self, column: int, room: int, least: dict[int, int]) -> None:
        """The next batch gets more room for a string column; `least` when not even one row had
        enough."""
        self.needs.bytes[column] = self.needs.bytes[column] * 1.5 + 0.001
        if least.get(column, 0) >= MOST_BYTES:
            raise InputError(
                "a value has more than 2 GiB",
                code=Code.TOO_LARGE,
                file=self.chunk.file,
                table=self.layout.table.full_name,
            )
        least[column] = min(room + 256, MOST_BYTES)

    def _learn(self, arena: Arena, rows: int) -> None:
        size = int(self.sizes.sum())
        if size < 4096:
            return
        self.needs.rows = rows / size * 1.05
        for at in self.needs.bytes:
            self.needs.bytes[at] = arena.used(at, rows) / size * 1.05

    def _corrupt(self, status: int) -> None:
        ref = self.chunk.refs[self.order[int(self.control[Decode.AT])]]
        error = InputError("a row image runs past the end of its event", code=Code.BAD_VALUE)
        if status == DecodeStatus.BAD_JSON_OPTIONS:
            error = unknown_options()
        error.hint = HINT
        error.locate(
            file=self.chunk.file, position=int(ref[Ref.POSITION]), table=self.layout.table.full_name
        )
        raise error

    def _batch(self, arena: Arena, rows: int) -> pa.RecordBatch:
        layout = self.layout
        raw: list[tuple[int, int, bytes]] = []
        diffs: list[tuple[int, int]] = []
        for row, column, code, start, length in self.notes[
            : int(self.control[Decode.NOTES_COUNT])
        ].tolist():
            if code == 0:
                raw.append((row, column, self._bytes_at(start, length)))
            else:
                diffs.append((row, column))
        arrays = self._origins(arena, rows)
        for at, column in enumerate(layout.columns):
            arrays.append(_array(arena, layout, at, column, rows, raw))
        arrays.append(raw_column(rows, sorted(raw)))
        if layout.json:
            arrays.append(diff_column(rows, diffs) if diffs else pa.nulls(rows, DIFF_FIELD.type))
        return pa.RecordBatch.from_arrays(arrays, schema=layout.schema)

    def _bytes_at(self, start: int, length: int) -> bytes:
        """Bytes at an address inside one of the chunk's buffers."""
        for buffer in self.chunk.keep:
            offset = start - address(buffer)
            if 0 <= offset <= len(buffer) - length:
                return bytes(buffer[offset : offset + length])
        raise AssertionError("a value stands outside the chunk")

    def _origins(self, arena: Arena, rows: int) -> list[pa.Array]:
        arrays = []
        for item, place, width in zip(ORIGIN_FIELDS, arena.origins, ORIGIN_WIDTHS, strict=True):
            buffers = [None, arena.slice(place, width * rows)]
            if pa.types.is_dictionary(item.type):
                labels = (
                    KIND_NAMES if item.name == "binlog_kind" else self.layout.present_dictionary()
                )
                indices = pa.Array.from_buffers(item.type.index_type, rows, buffers)
                arrays.append(pa.DictionaryArray.from_arrays(indices, labels, safe=False))
            else:
                arrays.append(pa.Array.from_buffers(item.type, rows, buffers))
        return arrays


def _array(
    arena: Arena,
    layout: TableLayout,
    at: int,
    column: ColumnLayout,
    rows: int,
    raw: list[tuple[int, int, bytes]],
) -> pa.Array:
    data, valid, offsets = arena.places[at]
    validity = arena.slice(valid, (rows + 7) // 8) if arena.columns[at, Col.NULLS] else None
    if column.kind == ConversionKind.BYTES:
        buffers = [
            validity,
            arena.slice(offsets, 4 * rows + 4),
            arena.slice(data, arena.used(at, rows)),
        ]
        return (
            _text(buffers, rows, at, raw)
            if at in layout.strings
            else pa.Array.from_buffers(column.arrow, rows, buffers)
        )
    buffers = [validity, arena.slice(data, column.width * rows)]
    if at in layout.dictionaries:
        indices = pa.Array.from_buffers(column.arrow.index_type, rows, buffers)
        return pa.DictionaryArray.from_arrays(indices, layout.dictionaries[at], safe=False)
    return pa.Array.from_buffers(column.arrow, rows, buffers)


def _text(
    buffers: list[pa.Buffer | None], rows: int, at: int, raw: list[tuple[int, int, bytes]]
) -> pa.Array:
    """A string column; what is not UTF-8 goes to `raw` and is NULL."""
    array = pa.Array.from_buffers(pa.string(), rows, buffers)
    try:
        array.validate(full=True)
        return array
    except pa.ArrowInvalid:
        data = pa.Array.from_buffers(pa.binary(), rows, buffers)
    wrong = undecodable(data)
    raw.extend((row, at, value) for row, value in wrong)
    values: list[bytes | None] = data.to_pylist()
    for row, _ in wrong:
        values[row] = None
    return pa.array(values, pa.binary()).cast(pa.string())


__all__ = ["Bytes", "read_fast"]
