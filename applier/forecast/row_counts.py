"""How many rows a rows event holds, and how many distinct values of one key: from the table map alone.

Images are read over, not decoded, but for the key's columns. Where nothing in an image varies in length it is a division.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection

from applier.binlog import wire
from applier.binlog.cursor import Cursor
from applier.binlog.header import Event
from applier.binlog.row_decoder import ImageColumn, corrupt, image_reader, rows_reader
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import TableMap
from applier.error_codes import Code
from applier.errors import InputError

Count = tuple[int, int]
"""Rows, and distinct key values among them (0 where no key was asked for)."""


def row_counter(head: RowsHead, table_map: TableMap, key: Collection[int] | None = None) -> Callable[[Event], Count]:
    """A function from events that begin with `head` to what they hold.

    `key` names columns of the before image; values count as distinct when their bytes are, whatever the collation says.
    The function raises InputError when the images do not fit the table map.
    """
    width, first, second = head.columns()
    if width > len(table_map.columns):
        problem = f"the rows have {width} columns, the table map has {len(table_map.columns)}"
        raise InputError(problem, code=Code.BAD_ROWS, table=table_map.full_name, hint="the log is damaged; copy it again")
    wanted = frozenset(key or ())
    before = _columns(table_map, first, wanted)
    after = _columns(table_map, second, frozenset()) if head.kind == "update" else None
    if head.partial:
        assert after is not None
        json_columns = sum(table_map.columns[at].real_type == wire.JSON for at in second)
        return _partial_counter(head.length, before, after, json_columns, counted=key is not None)
    if key is None:
        size = _constant_size(table_map, first, second if head.kind == "update" else None)
        if size:
            return _division(head.length, size)
    read, length, update = rows_reader(before, after), head.length, after is not None

    def count(event: Event) -> Count:
        images = read(event.buffer, event.body + length, event.end)
        if key is None:
            return len(images), 0
        return len(images), len({image[0] for image in images} if update else set(images))

    return count


def _columns(table_map: TableMap, present: Collection[int], wanted: Collection[int]) -> list[ImageColumn]:
    columns = []
    for at in present:
        source = table_map.columns[at]
        columns.append(ImageColumn(wire.wire_of(source.type_code, source.metadata, bool(source.unsigned)), at in wanted))
    return columns


def _constant_size(table_map: TableMap, first: Collection[int], second: Collection[int] | None) -> int:
    """Bytes of a row whose images always have the same length; 0 when they may not."""
    size = 0
    for present in (first, second or ()):
        size += (len(present) + 7) // 8
        for at in present:
            source = table_map.columns[at]
            layout = wire.wire_of(source.type_code, source.metadata, bool(source.unsigned))
            if source.nullable or layout.kind == "prefixed":
                return 0
            size += layout.size
    return size


def _division(length: int, size: int) -> Callable[[Event], Count]:
    def count(event: Event) -> Count:
        rows, left = divmod(event.end - event.body - length, size)
        if left:
            raise corrupt()
        return rows, 0

    return count


def _partial_counter(
    length: int, before: list[ImageColumn], after: list[ImageColumn], json_columns: int, *, counted: bool
) -> Callable[[Event], Count]:
    """PARTIAL_UPDATE_ROWS: in front of each after image stands which JSON columns hold changes; they are as long either way."""
    read_before, read_after = image_reader(before), image_reader(after)

    def count(event: Event) -> Count:
        buffer, at, end, rows = event.buffer, event.body + length, event.end, 0
        values = set()
        try:
            while at < end:
                value, at = read_before(buffer, at)
                cursor = Cursor(buffer, at, end)
                if cursor.packed() & 1:
                    cursor.skip((json_columns + 7) // 8)
                _, at = read_after(buffer, cursor.at)
                rows += 1
                values.add(value)
        except (struct.error, IndexError):
            at = end + 1
        if at != end:
            raise corrupt()
        return rows, len(values) if counted else 0

    return count
