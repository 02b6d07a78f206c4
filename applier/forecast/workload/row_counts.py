"""How many rows a rows event holds, and how many distinct values of one key: from the table map
alone.

Images are read over, not decoded, but for the key's columns. Where nothing in an image varies in
length it is a division.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from applier.binlog import wire
from applier.binlog.header import Event
from applier.binlog.images.partial_rows import PartialRowsReader, json_columns
from applier.binlog.images.row_decoder import ImageColumn, corrupt, rows_reader
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import TableMap

Count = tuple[int, int]
"""Rows, and distinct key values among them (0 where no key was asked for)."""


@dataclass(frozen=True, slots=True)
class RowsLayout:
    """The images of a rows event. `row_bytes`: of a row, where all are equally long and no key is
    asked for; else 0.

    `has_key`: the values of the before image's columns that are kept are counted. `json_columns`:
    those of the table of a partial update, None for other events.
    """

    head_bytes: int
    row_bytes: int
    before: tuple[ImageColumn, ...]
    after: tuple[ImageColumn, ...] | None
    has_key: bool
    json_columns: tuple[int, ...] | None


def rows_layout(
    head: RowsHead, table_map: TableMap, key: Collection[int] | None = None
) -> RowsLayout:
    """Of events that begin with `head`; `key` names columns of the before image. Raises InputError
    for another table's map."""
    first, second = head.images_of(table_map)
    wanted = frozenset(key or ())
    before = image_columns(table_map, first, wanted)
    after = image_columns(table_map, second, frozenset()) if head.kind == "update" else None
    of_json = json_columns(table_map.columns) if head.partial else None
    size = 0
    if key is None and not head.partial:
        size = _constant_size(table_map, first, second if head.kind == "update" else None)
    return RowsLayout(head.length, size, before, after, key is not None, of_json)


def row_counter(layout: RowsLayout) -> Callable[[Event], Count]:
    """A function from events of this layout to what they hold.

    Values count as distinct when their bytes are, whatever the collation says.
    The function raises InputError when the images do not fit the table map.
    """
    before, after, has_key, length = layout.before, layout.after, layout.has_key, layout.head_bytes
    if layout.json_columns is not None:
        assert after is not None
        return _partial_counter(length, before, after, layout.json_columns, counted=has_key)
    if layout.row_bytes:
        return _division(length, layout.row_bytes)
    read, update = rows_reader(before, after), after is not None

    def count(event: Event) -> Count:
        images = read(event.buffer, event.body + length, event.end)
        if not has_key:
            return len(images), 0
        return len(images), len({image[0] for image in images} if update else set(images))

    return count


def image_columns(
    table_map: TableMap, present: Collection[int], wanted: Collection[int]
) -> tuple[ImageColumn, ...]:
    """The columns of an image as they are read; those that are `wanted` are kept."""
    columns = []
    for at in present:
        source = table_map.columns[at]
        columns.append(
            ImageColumn(
                wire.wire_of(source.type_code, source.metadata, bool(source.unsigned)), at in wanted
            )
        )
    return tuple(columns)


def _constant_size(
    table_map: TableMap, first: Collection[int], second: Collection[int] | None
) -> int:
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
    length: int,
    before: Sequence[ImageColumn],
    after: Sequence[ImageColumn],
    json_columns: Sequence[int],
    *,
    counted: bool,
) -> Callable[[Event], Count]:
    """PARTIAL_UPDATE_ROWS: changes of a document take their place in the image as the document
    does."""
    read = PartialRowsReader(json_columns, before, lambda changed: after)

    def count(event: Event) -> Count:
        rows = read(event.buffer, event.body + length, event.end)
        return len(rows), len({row[0] for row in rows}) if counted else 0

    return count
