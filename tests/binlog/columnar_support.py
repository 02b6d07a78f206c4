"""Batches as tables that compare, and row images of any shape made byte by byte."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from applier.binlog.columnar import read_batches
from applier.errors import InputError

Key = tuple[str, str, int]


def collect(paths: Sequence[Path], **options: Any) -> tuple[dict[Key, pa.Table], InputError | None]:
    """(file, table, version) -> its rows, and the error that ended the reading."""
    found: dict[Key, list[pa.RecordBatch]] = defaultdict(list)
    error = None
    try:
        for batch in read_batches(paths, **options):
            batch.data.validate(full=True)
            found[batch.file, batch.name, batch.version].append(batch.data)
    except InputError as raised:
        error = raised
    return {key: pa.Table.from_batches(batches) for key, batches in found.items()}, error


def plain(column: pa.ChunkedArray) -> list[Any]:
    """Values without their dictionaries; NaN compares by its text."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        return [None if value is None else repr(value) for value in column.to_pylist()]
    if (
        pa.types.is_timestamp(column.type)
        or pa.types.is_date(column.type)
        or pa.types.is_duration(column.type)
    ):
        return [
            (column.type, value)
            for value in column.cast(
                pa.int32() if pa.types.is_date(column.type) else pa.int64()
            ).to_pylist()
        ]
    values: list[Any] = column.to_pylist()
    return values


def assert_same(left: dict[Key, pa.Table], right: dict[Key, pa.Table]) -> None:
    assert set(left) == set(right)
    for key, table in left.items():
        other = right[key]
        assert table.schema.equals(other.schema, check_metadata=True)
        assert table.num_rows == other.num_rows
        for name, one, two in zip(table.schema.names, table.columns, other.columns, strict=True):
            assert plain(one) == plain(two), (key, name)


@dataclass(frozen=True)
class Spec:
    """A column type: its code and metadata as they stand in a table map, and what its values may
    be."""

    type_code: int
    metadata: bytes
    values: st.SearchStrategy[bytes]
    character: bool = False


def fixed(type_code: int, size: int, metadata: bytes = b"") -> Spec:
    return Spec(type_code, metadata, st.binary(min_size=size, max_size=size))


def prefixed(
    type_code: int, size: int, metadata: bytes, most: int = 40, *, character: bool = False
) -> Spec:
    values = st.one_of(st.binary(max_size=most), st.text(max_size=most // 4).map(str.encode))
    return Spec(
        type_code,
        metadata,
        values.map(lambda data: len(data).to_bytes(size, "little") + data),
        character,
    )


def decimal(precision: int, scale: int) -> Spec:
    digits = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    groups = [
        size
        for size in (
            (precision - scale) % 9,
            *[9] * ((precision - scale) // 9),
            *[9] * (scale // 9),
            scale % 9,
        )
        if size
    ]

    def pack(numbers: tuple[int, ...], negative: bool) -> bytes:
        raw = b"".join(
            number.to_bytes(digits[size], "big")
            for number, size in zip(numbers, groups, strict=True)
        )
        raw = bytes([raw[0] ^ 0x80]) + raw[1:]
        return bytes(byte ^ 0xFF for byte in raw) if negative else raw

    good = st.builds(
        pack, st.tuples(*[st.integers(0, 10**size - 1) for size in groups]), st.booleans()
    )
    size = sum(digits[group] for group in groups)
    return Spec(
        246, bytes([precision, scale]), st.one_of(good, st.binary(min_size=size, max_size=size))
    )


def datetime2(digits: int) -> Spec:
    """Sensible moments, zero dates and any bytes."""
    size = (digits + 1) // 2

    def pack(year: int, month: int, day: int, clock: tuple[int, int, int], fraction: int) -> bytes:
        whole = ((year * 13 + month) << 5 | day) << 17 | clock[0] << 12 | clock[1] << 6 | clock[2]
        most = (1, 100, 10_000, 1_000_000)[size]
        return (whole + 0x8000000000).to_bytes(5, "big") + (fraction % most).to_bytes(size, "big")

    clock = st.tuples(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
    sensible = st.builds(
        pack,
        st.integers(0, 9999),
        st.integers(0, 12),
        st.integers(0, 31),
        clock,
        st.integers(0, 999_999),
    )
    return Spec(
        18, bytes([digits]), st.one_of(sensible, st.binary(min_size=5 + size, max_size=5 + size))
    )


SPECS = [
    *[fixed(code, size) for code,
      size in ((1, 1), (2, 2), (9, 3), (3, 4), (8, 8), (13, 1), (10, 3), (14, 3), (11, 3), (12, 8),
               (7, 4))],
    fixed(4, 4, b"\x04"), fixed(5, 8, b"\x08"),
    *[fixed(16, (bits + 7) // 8, bytes([bits % 8, bits // 8])) for bits in (1, 8, 12, 24, 33, 64)],
    *[fixed(254, size, bytes([code, size])) for code,
      size in ((247, 1), (247, 2), (248, 1), (248, 2), (248, 3), (248, 4), (248, 8))],
    *[decimal(*sizes) for sizes in ((10, 2), (5, 5), (9, 0), (18, 9), (19, 0), (38, 10), (39, 20),
                                    (65, 30), (1, 0), (30, 30))],
    *[datetime2(digits) for digits in (0, 1, 2, 3, 6)],
    *[fixed(17, 4 + (digits + 1) // 2, bytes([digits])) for digits in (0, 2, 4, 6)],
    *[fixed(19, 3 + (digits + 1) // 2, bytes([digits])) for digits in (0, 1, 2, 3, 4, 5, 6)],
    prefixed(15, 1, struct.pack("<H", 200), character=True),
    prefixed(15, 2, struct.pack("<H", 300), 280, character=True),
    prefixed(254, 1, b"\xfe\x50", character=True), prefixed(252, 1, b"\x01", character=True),
    prefixed(252, 2, b"\x02", character=True),
    prefixed(252, 3, b"\x03", character=True), prefixed(252, 4, b"\x04", character=True),
    prefixed(245, 4, b"\x04"), prefixed(255, 4, b"\x04"), prefixed(242, 4, b"\x04"),
]  # fmt: skip
