"""The tables and column bitmaps met so far, as the scan kernel finds them and as Python knows them.

The kernel reads the arrays by address. They grow by being replaced; who still decodes with an older one holds it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from applier.binlog.columnar.control import Id, Image, Scan, SchemaEntry, ShapeEntry
from applier.binlog.columnar.layout import TableLayout
from applier.binlog.cursor import Cursor
from applier.binlog.table_map import parse_table_map
from applier.error_codes import Code
from applier.errors import InputError

Integers = npt.NDArray[np.int64]
MAX_SHAPES = 32_767
FIRST_IDS = 256


def address(data: npt.NDArray[Any]) -> int:
    """Where the numbers of an array stand in memory."""
    return int(data.ctypes.data)


class Registry:
    """Everything about tables that outlives a chunk. `bind` writes the addresses into a scan control block."""

    def __init__(self, names: frozenset[str] | None, text: bool) -> None:
        self.names = names
        self.text = text
        self.layouts: list[TableLayout] = []
        self._by_body: dict[bytes, int] = {}
        self._kept: dict[bytes, npt.NDArray[np.uint8]] = {}
        self._ids = np.full((FIRST_IDS, Id.SIZE_OF_ENTRY), -1, np.int64)
        self._id_count = 0
        self._schemas = np.zeros((16, SchemaEntry.SIZE_OF_ENTRY), np.int64)
        self._shapes = np.zeros((64, ShapeEntry.SIZE_OF_ENTRY), np.int64)
        self.images = np.zeros((64, 2, Image.SIZE_OF_ENTRY), np.int64)
        """Two entries a shape; the decode kernel's view of it."""
        self._shape_count = 0
        self._columns: list[Integers] = []

    def bind(self, control: Integers) -> None:
        """Writes the addresses of all this into a scan control block, for the next chunk."""
        control[Scan.IDS] = address(self._ids)
        control[Scan.IDS_MASK] = len(self._ids) - 1
        control[Scan.SCHEMAS] = address(self._schemas)
        control[Scan.SHAPES] = address(self._shapes)

    def forget_ids(self) -> None:
        """Table ids mean nothing beyond the file (or the server's run) that they stand in."""
        self._ids[:] = -1
        self._id_count = 0

    def add_table_map(self, body: bytes, post_header_length: int) -> None:
        """Takes a TABLE_MAP event's body; raises InputError when it cannot be read."""
        id_size = 4 if post_header_length == 6 else 6
        start = id_size + 2 + max(post_header_length - 8, 0)
        key = body[start:]
        number = self._by_body.get(key)
        if number is None:
            number = self._new_layout(body, post_header_length)
            self._by_body[key] = number
        self._set_id(int.from_bytes(body[:id_size], "little"), number, self._keep(key))

    def _new_layout(self, body: bytes, post_header_length: int) -> int:
        table = parse_table_map(body, 0, len(body), post_header_length)
        number = len(self.layouts)
        if number == len(self._schemas):
            self._schemas = _doubled(self._schemas)
        wanted = self.names is None or table.full_name in self.names
        try:
            layout = TableLayout(number, table, self.text)
        except InputError as error:
            error.locate(table=table.full_name)
            raise
        self.layouts.append(layout)
        self._schemas[number, SchemaEntry.FIRST_SHAPE] = -1
        self._schemas[number, SchemaEntry.WANTED] = wanted
        return number

    def _keep(self, data: bytes) -> npt.NDArray[np.uint8]:
        """The bytes at an address that stays; equal bytes are kept once."""
        kept = self._kept.get(data)
        if kept is None:
            kept = self._kept[data] = np.frombuffer(data + b"\0", np.uint8)
        return kept

    def _set_id(self, table_id: int, number: int, body: npt.NDArray[np.uint8]) -> None:
        if 2 * self._id_count >= len(self._ids):
            old = self._ids[self._ids[:, Id.SCHEMA] >= 0]
            self._ids = np.full((2 * len(self._ids), Id.SIZE_OF_ENTRY), -1, np.int64)
            for entry in old:
                self._ids[self._slot(int(entry[Id.TABLE_ID]))] = entry
        slot = self._slot(table_id)
        if self._ids[slot, Id.SCHEMA] < 0:
            self._id_count += 1
        self._ids[slot] = (table_id, number, address(body), len(body) - 1)

    def _slot(self, table_id: int) -> int:
        mask = len(self._ids) - 1
        slot = table_id & mask
        while self._ids[slot, Id.SCHEMA] >= 0 and self._ids[slot, Id.TABLE_ID] != table_id:
            slot = (slot + 1) & mask
        return slot

    def add_shape(self, number: int, head: bytes, bitmaps: int) -> None:
        """Takes width and column bitmaps of a rows event for layout `number`.

        Raises InputError for a rows event that does not fit its table map.
        """
        layout = self.layouts[number]
        cursor = Cursor(head)
        width = cursor.packed()
        if width != len(layout.columns):
            raise InputError(
                f"a rows event has {width} columns, its table map {len(layout.columns)}", code=Code.BAD_ROWS, table=layout.table.full_name
            )
        if self._shape_count == len(self._shapes):
            self._shapes = _doubled(self._shapes)
            self.images = _doubled(self.images)
        shape = self._shape_count
        for half in range(bitmaps):
            self.images[shape, half] = self._image(layout, cursor.take((width + 7) // 8), width)
        entry = self._schemas[number]
        self._shapes[shape] = (entry[SchemaEntry.FIRST_SHAPE], address(self._keep(head)), len(head), bitmaps)
        entry[SchemaEntry.FIRST_SHAPE] = shape
        self._shape_count += 1

    def _image(self, layout: TableLayout, bitmap: bytes, width: int) -> tuple[int, int, int, int, int]:
        bits = int.from_bytes(bitmap, "little")
        present = [at for at in range(width) if bits >> at & 1]
        absent = [at for at in range(width) if not bits >> at & 1]
        number = layout.present_number(bitmap)
        if number > MAX_SHAPES:
            raise InputError("a table has too many different column bitmaps", code=Code.TOO_LARGE, table=layout.table.full_name)
        columns = np.array([*present, *absent, 0], np.int64)
        self._columns.append(columns)
        return len(present), address(columns), len(absent), address(columns) + 8 * len(present), number


def _doubled(data: Integers) -> Integers:
    return np.concatenate([data, np.zeros_like(data)])
