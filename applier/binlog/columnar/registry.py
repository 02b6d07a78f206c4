"""The tables and column bitmaps met so far, as the scan kernel finds them and as Python knows them.

The kernel reads the arrays by address. They grow by being replaced; who still decodes with an older
one holds it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from applier.binlog.columnar.control import Image, Scan, SchemaEntry, ShapeEntry
from applier.binlog.columnar.layout import TableLayout
from applier.binlog.columnar.table_batch import Wants
from applier.binlog.columnar.table_ids import Integers, TableIds
from applier.binlog.cursor import Cursor
from applier.binlog.rows import check_width
from applier.binlog.table_map import parse_table_map
from applier.error_codes import Code
from applier.errors import InputError

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
MAX_SHAPES = 32_767


def address(data: np.ndarray[Any, Any]) -> int:
    """Where the numbers of an array stand in memory."""
    return int(data.ctypes.data)


class Registry:
    """Everything about tables that outlives a chunk. `bind` writes the addresses into a scan
    control block."""

    def __init__(self, wants: Wants | None, text: bool) -> None:
        self.wants = wants
        self.text = text
        self.layouts: list[TableLayout] = []
        self._by_body: dict[bytes, int] = {}
        self._kept: dict[bytes, Bytes] = {}
        self._ids = TableIds()
        self._schemas = np.zeros((16, SchemaEntry.SIZE_OF_ENTRY), np.int64)
        self._shapes = np.zeros((64, ShapeEntry.SIZE_OF_ENTRY), np.int64)
        self.images = np.zeros((64, 2, Image.SIZE_OF_ENTRY), np.int64)
        """Two entries a shape; the decode kernel's view of it."""
        self._shape_count = 0
        self._columns: list[Integers] = []

    def bind(self, control: Integers) -> None:
        """Writes the addresses of all this into a scan control block, for the next chunk."""
        control[Scan.IDS] = address(self._ids.entries)
        control[Scan.IDS_MASK] = len(self._ids.entries) - 1
        control[Scan.SCHEMAS] = address(self._schemas)
        control[Scan.SHAPES] = address(self._shapes)

    def forget_ids(self) -> None:
        """Table ids mean nothing beyond the file (or the server's run) that they stand in."""
        self._ids.forget()

    def add_table_map(self, body: bytes, post_header_length: int) -> None:
        """Takes a TABLE_MAP event's body; raises InputError when it cannot be read."""
        id_size = 4 if post_header_length == 6 else 6
        start = id_size + 2 + max(post_header_length - 8, 0)
        key = body[start:]
        number = self._by_body.get(key)
        if number is None:
            number = self._new_layout(body, post_header_length)
            self._by_body[key] = number
        kept = self._keep(key)
        self._ids.set(
            int.from_bytes(body[:id_size], "little"), number, address(kept), len(kept) - 1
        )

    def _new_layout(self, body: bytes, post_header_length: int) -> int:
        table = parse_table_map(body, 0, len(body), post_header_length)
        number = len(self.layouts)
        if number == len(self._schemas):
            self._schemas = _doubled(self._schemas)
        wanted = self.wants is None or self.wants(table.database, table.table)
        try:
            layout = TableLayout(number, table, self.text)
        except InputError as error:
            error.locate(table=table.full_name)
            raise
        self.layouts.append(layout)
        self._schemas[number, SchemaEntry.FIRST_SHAPE] = -1
        self._schemas[number, SchemaEntry.WANTED] = wanted
        return number

    def _keep(self, data: bytes) -> Bytes:
        """The bytes at an address that stays; equal bytes are kept once."""
        kept = self._kept.get(data)
        if kept is None:
            kept = self._kept[data] = np.frombuffer(data + b"\0", np.uint8)
        return kept

    def add_shape(self, number: int, head: bytes, bitmaps: int) -> None:
        """Takes width and column bitmaps of a rows event for layout `number`.

        Raises InputError for a rows event that does not fit its table map.
        """
        layout = self.layouts[number]
        cursor = Cursor(head)
        width = cursor.packed()
        check_width(width, layout.table)
        if self._shape_count == len(self._shapes):
            self._shapes = _doubled(self._shapes)
            self.images = _doubled(self.images)
        shape = self._shape_count
        for half in range(bitmaps):
            self.images[shape, half] = self._image(layout, cursor.take((width + 7) // 8), width)
        entry = self._schemas[number]
        self._shapes[shape] = (
            entry[SchemaEntry.FIRST_SHAPE],
            address(self._keep(head)),
            len(head),
            bitmaps,
        )
        entry[SchemaEntry.FIRST_SHAPE] = shape
        self._shape_count += 1

    def _image(
        self, layout: TableLayout, bitmap: bytes, width: int
    ) -> tuple[int, int, int, int, int]:
        bits = int.from_bytes(bitmap, "little")
        present = [at for at in range(width) if bits >> at & 1]
        absent = [at for at in range(width) if not bits >> at & 1]
        number = layout.present_number(bitmap)
        if number > MAX_SHAPES:
            raise InputError(
                "a table has too many different column bitmaps",
                code=Code.TOO_LARGE,
                table=layout.table.full_name,
            )
        columns = np.array([*present, *absent, 0], np.int64)
        self._columns.append(columns)
        return (
            len(present),
            address(columns),
            len(absent),
            address(columns) + 8 * len(present),
            number,
        )


def _doubled(data: Integers) -> Integers:
    return np.concatenate([data, np.zeros_like(data)])
