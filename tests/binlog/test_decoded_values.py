"""Every value of every row image against what `mysqlbinlog -vv` printed for the same log.

mysqlbinlog's own forms: integers without a sign rule, TIMESTAMP as seconds, DATE with colons, ENUM
by number, SET and BIT as bits, strings byte by byte with control characters escaped, VECTOR to six
digits. They are brought to the stored value's side.
"""

from __future__ import annotations

import json
import lzma
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from applier.binlog import wire
from applier.binlog.header import ROWS_TYPES, Event, EventType
from applier.binlog.images.row_decoder import ImageColumn, image_reader
from applier.binlog.images.row_values import RowValues
from applier.binlog.reader import LogReader
from applier.binlog.rows import RowsHead, read_rows
from applier.binlog.table_map import SourceColumn, TableMap, read_table_map
from tests.captures_support import captures, logs

VALUE = re.compile(rb"###   @(\d+)=(.*)", re.DOTALL)
COMMENT = re.compile(
    rb"(.*?) +/\* [A-Z0-9/ ]+(?:\([^)]*\))?(?: bytes\))? meta=\d+ nullable=\d is_null=\d \*/$",
    re.DOTALL,
)
START = re.compile(rb"### (INSERT INTO|UPDATE|DELETE FROM) ")
GIVES_UP = b"!! Don't know how to handle column type="
"""mysqlbinlog of MySQL says this of GEOMETRY and prints no more of the event."""
STRINGS = frozenset(
    {wire.STRING, wire.VARCHAR, wire.VAR_STRING, wire.BLOB, wire.GEOMETRY, wire.JSON}
)
INTEGER_BITS = {wire.TINY: 8, wire.SHORT: 16, wire.INT24: 24, wire.LONG: 32, wire.LONGLONG: 64}
NAMED_ESCAPES = {8: b"\\b", 9: b"\\t", 10: b"\\n", 12: b"\\f", 13: b"\\r", 39: b"\\'", 92: b"\\\\"}

Image = dict[int, bytes]


def printed_images(log: Path) -> Iterator[Image]:
    """{column: text} of each image in the order of the log, without the comments."""
    text = lzma.decompress(Path(f"{log}.decoded.txt.xz").read_bytes())
    image: Image | None = None
    for line in text.split(b"\n"):
        if START.match(line) or line in (b"### WHERE", b"### SET"):
            if image is not None and line in (b"### WHERE", b"### SET"):
                yield image
            image = {} if line in (b"### WHERE", b"### SET") else image
        elif (match := VALUE.match(line)) is not None and image is not None:
            commented = COMMENT.match(match[2])
            image[int(match[1])] = match[2] if commented is None else commented[1]
    if image is not None:
        yield image


def stored_images(
    event: Event, rows: RowsHead, table_map: TableMap
) -> Iterator[tuple[tuple[int, ...], tuple[Any, ...]]]:
    """(columns, values as they stand in the event) of each image; not for partial updates."""
    _, first, second = rows.columns()
    readers = [
        (places, image_reader([ImageColumn(plain_wire(table_map.columns[at])) for at in places]))
        for places in ([first, second] if rows.kind == "update" else [first])
    ]
    position = event.body + rows.length
    while position < event.end:
        for places, read in readers:
            values, position = read(event.buffer, position, event.end)
            yield places, values


def plain_wire(column: SourceColumn) -> wire.Wire:
    return wire.wire_of(column.type_code, column.metadata, False)


def escaped(data: bytes, *, named: bool) -> bytes:
    """`my_b_write_quoted` (sql/log_event.cc); MySQL's has names for some and also escapes quotes
    and backslashes."""
    return (
        b"'"
        + b"".join(
            (NAMED_ESCAPES.get(byte) if named else None)
            or (bytes([byte]) if byte > 31 else b"\\x%02x" % byte)
            for byte in data
        )
        + b"'"
    )


def number(text: bytes) -> int:
    return int(text.split(b" ")[0])


def bits(text: bytes) -> str:
    return text.decode()[2:-1]


def agrees(column: SourceColumn, stored: Any, shown: Any, text: bytes, *, named: bool) -> bool:
    """Whether a value and its line say the same. `stored` as in the event, `shown` as --rows shows
    it."""
    kind = column.real_type
    if stored is None or text == b"NULL":
        return stored is None and shown is None and text == b"NULL"
    if kind in INTEGER_BITS:
        return (number(text) - shown) % (1 << INTEGER_BITS[kind]) == 0 and number(text) in (
            stored,
            stored % (1 << INTEGER_BITS[kind]),
        )
    if kind in (wire.FLOAT, wire.DOUBLE):
        value = struct.unpack("<f" if kind == wire.FLOAT else "<d", stored)[0]
        close = (
            float(text) == shown == value
            if kind == wire.DOUBLE
            else abs(float(text) - value) <= abs(value) * 1e-5
        )
        return close and struct.pack("<f" if kind == wire.FLOAT else "<d", shown) == stored
    if kind == wire.JSON:
        # a document that is only a string is printed without quotes
        plain = json.loads(shown) if shown.startswith('"') else shown
        return escaped(plain.encode("utf-8", "surrogateescape"), named=named) == text
    if kind in STRINGS:
        return escaped(stored, named=named) == text
    if kind == wire.BIT:
        return int(bits(text), 2) == stored == shown
    if kind == wire.SET:
        return (
            int.from_bytes(int(bits(text), 2).to_bytes(len(bits(text)) // 8, "big"), "little")
            == stored
        )
    if kind == wire.ENUM:
        return number(text) == stored
    if kind == wire.YEAR:
        return number(text) == 1900 + stored and shown == (1900 + stored if stored else 0)
    if kind == wire.TIMESTAMP2:
        return timestamp(stored, column.metadata, text)
    if kind == wire.VECTOR:
        floats = [f"{value:.5e}" for value in struct.unpack(f"<{len(stored) // 4}f", stored)]
        return (
            "[" + ",".join(floats) + "]" == text.decode() and shown == "0x" + stored.hex().upper()
        )
    if kind == wire.DATE:
        return shown.replace("-", ":") == text.decode()[1:-1]
    if kind in (wire.TIME2, wire.DATETIME2):
        return f"'{shown}'" == text.decode()
    return shown == text.decode()


def timestamp(stored: bytes, digits: int, text: bytes) -> bool:
    seconds, _, fraction = text.decode().partition(".")
    width = (digits + 1) // 2 * 2
    return int.from_bytes(stored[:4], "big") == int(seconds) and int.from_bytes(
        stored[4:], "big"
    ) == int((fraction or "0").ljust(width, "0"))


def gives_up(text: Image) -> bool:
    return any(line.startswith(GIVES_UP) for line in text.values())


def compare_partial(
    table_map: TableMap, shown: list[dict[str, Any]], printed: Iterator[Image]
) -> int:
    """Partial updates: which columns each image holds, and where a JSON column holds changes.
    Returns the number of images."""
    names = [column.name or f"@{at + 1}" for at, column in enumerate(table_map.columns)]
    for number_of_images, image in enumerate(shown):
        text = next(printed)
        places = [names.index(name) for name in image]
        assert [at - 1 for at in sorted(text)] == places[: len(text) if gives_up(text) else None]
        for at, value in zip(places, image.values(), strict=True):
            if text.get(at + 1, b"").startswith(b"JSON_"):
                assert value.startswith("JSON_") and "('$" in value
        if gives_up(text):
            return number_of_images
    return len(shown)


@pytest.mark.parametrize(
    "log",
    [log for capture in captures() for log in logs(capture)],
    ids=lambda path: f"{path.parts[-2]}/{path.name}",
)
def test_values_are_those_that_mysqlbinlog_prints(log: Path) -> None:
    printed, reader, maps, values, count = printed_images(log), LogReader([log]), {}, RowValues(), 0
    for event in reader:
        assert reader.format is not None
        named = not reader.format.is_mariadb
        if event.type == EventType.TABLE_MAP:
            table_map = read_table_map(event, reader.format)
            maps[table_map.table_id] = table_map
        if event.type not in ROWS_TYPES:
            continue
        rows = read_rows(event, reader.format)
        table_map = maps[rows.table_id]
        shown = [
            image
            for pair in values.rows(event, rows, table_map)
            for image in pair
            if image is not None
        ]
        if rows.partial:
            count += compare_partial(table_map, shown, printed)
            continue
        for (places, image), values_shown in zip(
            stored_images(event, rows, table_map), shown, strict=True
        ):
            text = next(printed)
            gave_up = gives_up(text)
            assert [at - 1 for at in sorted(text)] == list(places[: len(text) if gave_up else None])
            for at, stored, value in zip(places, image, values_shown.values(), strict=True):
                if gave_up and text[at + 1].startswith(GIVES_UP):
                    break
                column = table_map.columns[at]
                assert agrees(column, stored, value, text[at + 1], named=named), (
                    event,
                    at,
                    column,
                    stored,
                    value,
                    text[at + 1],
                )
            count += 1
            if gave_up:
                break
    assert next(printed, None) is None
    assert count or not maps
