"""What a kernel that reads plain transactions knows of a file: its table maps and the heads of its
rows events.

It is told of each by the slow reader, which has met it before. Entries stand in memory that stays
where it is; the arrays grow by being replaced, so their addresses are given to the kernel before
each run.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from applier.binlog.header import HEADER_LENGTH, ROWS_TYPES, EventType, FormatDescription
from applier.binlog.rows import RowsHead

if TYPE_CHECKING:
    from applier.binlog.columnar.table_ids import Integers

MOST_SHAPES = 64
"""Heads of one table map that the kernel knows; it looks through all of them."""


class KnownHeads:
    """Control block, table ids and heads. Blocks and heads begin as `Loads` and `SummedShape`
    do."""

    def __init__(self, block_items: int, shape_items: int) -> None:
        import numpy as np

        from applier.binlog.columnar.checksum_tables import crc_tables
        from applier.binlog.columnar.control import Loads
        from applier.binlog.columnar.table_ids import TableIds

        self._np, self._item = np, Loads
        self._crc = crc_tables()
        self._classes = _classes()
        self._control: Integers = np.zeros(block_items, np.int64)
        self._ids = TableIds()
        self._source: Any = None
        self._buffer: Any = None
        self._keep: list[Any] = []
        self._maps: dict[bytes, int] = {}
        self._bodies: list[int] = []
        """Address of each table map's bytes."""
        self._heads: dict[tuple[int, int, bytes], int] = {}
        self._shapes: Integers = np.zeros((64, shape_items), np.int64)
        self._first_shapes: Integers = np.full(16, -1, np.int64)
        self._shape_counts: list[int] = []

    def begin(self, fde: FormatDescription, *, verify: bool) -> bool:
        """A file with this format description. False: its layout is not the kernel's."""
        if fde.header_length != HEADER_LENGTH or any(
            fde.post_header_length(kind) == 6 for kind in ROWS_TYPES
        ):
            return False
        self.forget()
        item, control = self._item, self._control
        control[item.TRAILER], control[item.VERIFY] = fde.checksum_length, verify
        control[item.CRC_TABLES] = ctypes.addressof(self._crc)
        control[item.CLASSES] = address(self._classes)
        control[item.ID_SIZE] = 4 if fde.post_header_length(EventType.TABLE_MAP) == 6 else 6
        return True

    def attach(self, buffer: bytes) -> None:
        """The file's content, as far as it is there."""
        if buffer is not self._source:
            self._source, self._buffer = buffer, self._np.frombuffer(buffer, self._np.uint8)
            control = self._control
            control[self._item.BUFFER], control[self._item.SIZE] = (
                address(self._buffer),
                len(self._buffer),
            )

    def forget(self) -> None:
        """All table maps and heads."""
        self._ids.forget()
        self._keep.clear()
        self._maps.clear()
        self._bodies.clear()
        self._heads.clear()
        self._shape_counts.clear()
        self._first_shapes[:] = -1

    def add_map(self, body: bytes, table_id: int) -> int:
        """A table map event's body: its id stands for it from here on. Its number."""
        number = self._maps.get(body)
        if number is None:
            number = self._maps[body] = len(self._maps)
            self._shape_counts.append(0)
            self._bodies.append(self._kept(body))
            if number == len(self._first_shapes):
                more = self._np.full(number, -1, self._np.int64)
                self._first_shapes = self._np.concatenate([self._first_shapes, more])
        self._ids.set(table_id, number, self._bodies[number], len(body))
        return number

    def may_add(self, map_body: bytes, head: RowsHead, text: bytes) -> bool:
        """Whether a rows event's head, whose bytes are `text`, is new behind this table map, and
        has room."""
        table = self._maps.get(map_body)
        if table is None or (table, head.event_type, text) in self._heads:
            return False
        return self._shape_counts[table] < MOST_SHAPES

    def number_of(self, map_body: bytes, head: RowsHead, text: bytes) -> int | None:
        """The number of a head that was added."""
        return self._heads.get((self._maps.get(map_body, -1), head.event_type, text))

    def _add_shape(
        self, map_body: bytes, head: RowsHead, text: bytes, rest: tuple[int, ...]
    ) -> int:
        """The number of a head that `may_add` allowed; `rest` is its entry behind the head's
        length."""
        table, number = self._maps[map_body], len(self._heads)
        if number == len(self._shapes):
            self._shapes = self._np.concatenate([self._shapes, self._np.zeros_like(self._shapes)])
        self._shapes[number] = (
            self._first_shapes[table],
            head.event_type,
            self._kept(text),
            len(text),
            *rest,
        )
        self._first_shapes[table] = number
        self._shape_counts[table] += 1
        self._heads[table, head.event_type, text] = number
        return number

    def _bind(self, position: int, limit: int) -> None:
        """Where to read, and where the arrays stand now."""
        item, control = self._item, self._control
        control[item.IDS], control[item.IDS_MASK] = (
            address(self._ids.entries),
            len(self._ids.entries) - 1,
        )
        control[item.SHAPES], control[item.FIRST_SHAPES] = (
            address(self._shapes),
            address(self._first_shapes),
        )
        control[item.POSITION], control[item.LIMIT] = position, limit

    def _kept(self, data: bytes) -> int:
        """Address of a copy that stays; eight bytes more can be read."""
        return self._kept_array(self._np.frombuffer(data + bytes(8), self._np.uint8))

    def _kept_array(self, array: Any) -> int:
        self._keep.append(array)
        return address(array)


def address(array: Any) -> int:
    """Where the items of an array stand in memory."""
    return int(array.ctypes.data)


def _classes() -> Any:
    """Event type -> what the kernels do with it inside a transaction."""
    import numpy as np

    from applier.binlog.columnar.control import LoadsClass

    classes = np.zeros(256, np.uint8)
    classes[sorted(ROWS_TYPES)] = LoadsClass.ROWS
    for event_type, category in {
        EventType.GTID: LoadsClass.GTID, EventType.ANONYMOUS_GTID: LoadsClass.GTID,
        EventType.MARIADB_GTID: LoadsClass.MARIADB_GTID, EventType.QUERY: LoadsClass.QUERY,
        EventType.TABLE_MAP: LoadsClass.TABLE_MAP, EventType.XID: LoadsClass.XID,
        EventType.ROWS_QUERY: LoadsClass.QUIET, EventType.ANNOTATE_ROWS: LoadsClass.QUIET,
    }.items():  # fmt: skip
        classes[event_type] = category
    return classes
