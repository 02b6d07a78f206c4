"""The head of a rows event: which table, which columns the images hold, where the row data stands.

`Rows_event` (libs/mysql/binlog/event/rows_event.cpp 9.7), versions 1 and 2. Decoding the rows is
`row_decoder`'s.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from applier.binlog.cursor import Cursor
from applier.binlog.header import Event, EventType, FormatDescription, an_event
from applier.binlog.table_map import MAX_COLUMNS, TableMap
from applier.error_codes import Code
from applier.errors import InputError

MAX_HEADS = 10_000
_HEAD_V2 = struct.Struct("<IHHH").unpack_from
_HEAD_V1 = struct.Struct("<IHH").unpack_from
_HEAD_SHORT = struct.Struct("<IH").unpack_from
STATEMENT_END = 0x01
NO_FOREIGN_KEY_CHECKS = 0x02
RELAXED_UNIQUE_CHECKS = 0x04
DUMMY_TABLE_IDS = frozenset({0xFFFFFF, 0xFFFFFFFFFFFF})
"""A rows event for no table, which only ends a statement."""

KINDS: dict[int, str] = {
    EventType.WRITE_ROWS_V1: "write",
    EventType.UPDATE_ROWS_V1: "update",
    EventType.DELETE_ROWS_V1: "delete",
    EventType.WRITE_ROWS: "write",
    EventType.UPDATE_ROWS: "update",
    EventType.DELETE_ROWS: "delete",
    EventType.PARTIAL_UPDATE_ROWS: "update",
}


@dataclass(slots=True, eq=False)
class RowsHead:
    """What a rows event says before its rows; one object stands for all events that begin with the
    same bytes.

    `shape` is the width and the column bitmaps as they stand: what two events must share to be
    decoded alike. The row data is what follows the first `length` bytes of the body. `partial`
    marks PARTIAL_UPDATE_ROWS.
    """

    event_type: int
    table_id: int
    flags: int
    kind: str
    partial: bool
    shape: bytes
    length: int
    ends_statement: bool = field(init=False)
    """The statement is over behind this event, and its table maps with it."""

    def __post_init__(self) -> None:
        self.ends_statement = bool(self.flags & STATEMENT_END)

    def columns(self) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """(width, columns of the first image, columns of the second); the two are the same unless
        it is an update."""
        cursor = Cursor(self.shape)
        width = cursor.packed()
        size = (width + 7) // 8
        first = _present(cursor.take(size), width)
        return width, first, _present(cursor.take(size), width) if self.kind == "update" else first

    def images_of(self, table_map: TableMap) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The columns of both images. Raises InputError for the map of another table."""
        width, first, second = self.columns()
        check_width(width, table_map)
        return first, second


def check_width(width: int, table_map: TableMap) -> None:
    """Raises InputError where the rows have another number of columns than their table map."""
    if width != len(table_map.columns):
        raise InputError(
            f"a rows event has {width} columns where its table map has {len(table_map.columns)}",
            code=Code.BAD_ROWS,
            table=table_map.full_name,
        )


def _present(bitmap: bytes, width: int) -> tuple[int, ...]:
    bits = int.from_bytes(bitmap, "little")
    return tuple(at for at in range(width) if bits >> at & 1)


def parse_rows_head(event: Event, fde: FormatDescription) -> RowsHead:
    """Raises InputError when the head cannot be read."""
    buffer, at, end = event.buffer, event.body, event.end
    try:
        if event.type >= EventType.WRITE_ROWS:
            low, high, flags, extra = _HEAD_V2(buffer, at)
            table_id = low | high << 32
            at += 8 + extra
            if extra < 2:
                raise InputError(
                    f"{an_event(event.name)} has an extra header of {extra} bytes",
                    code=Code.BAD_ROWS,
                    file=event.file,
                    position=event.position,
                )
        elif fde.post_header_length(event.type) == 6:
            table_id, flags = _HEAD_SHORT(buffer, at)
            at += 6
        else:
            low, high, flags = _HEAD_V1(buffer, at)
            table_id = low | high << 32
            at += 8
    except struct.error:
        at = end + 1
        table_id = flags = 0
    start = at
    width = buffer[at] if at < end else 0
    at += 1
    if width >= 251:
        cursor = Cursor(buffer, start, end)
        width = cursor.packed()
        at = cursor.at
    if width > MAX_COLUMNS:
        raise InputError(
            f"{an_event(event.name)} claims {width} columns",
            code=Code.BAD_ROWS,
            file=event.file,
            position=event.position,
        )
    kind = KINDS[event.type]
    at += (width + 7) // 8 * (2 if kind == "update" else 1)
    if at > end:
        raise InputError(
            f"{an_event(event.name)} ends inside its head",
            code=Code.BAD_ROWS,
            file=event.file,
            position=event.position,
        )
    partial = event.type == EventType.PARTIAL_UPDATE_ROWS
    return RowsHead(event.type, table_id, flags, kind, partial, buffer[start:at], at - event.body)


def read_rows(event: Event, fde: FormatDescription) -> RowsHead:
    """The head of a rows event; its place is in the error when it cannot be read."""
    try:
        return parse_rows_head(event, fde)
    except InputError as error:
        error.locate(file=event.file, position=event.position)
        raise


class RowsHeads:
    """The heads of a log's rows events, each parsed once. Holds for one format description."""

    __slots__ = ("_fde", "_heads", "_latest")

    def __init__(self, fde: FormatDescription) -> None:
        self._fde = fde
        self._heads: dict[tuple[int, bytes], RowsHead] = {}
        self._latest: dict[int, dict[bytes, tuple[bytes, RowsHead]]] = {
            int(event_type): {} for event_type in KINDS
        }
        """Event type, then table id and flags -> the head met last; tables seldom change theirs."""

    def of(self, event: Event) -> RowsHead:
        """The head of an event. Raises InputError when it cannot be read."""
        buffer, body = event.buffer, event.body
        latest = self._latest[event.type].get(buffer[body : body + 8])
        if latest is not None:
            known, head = latest
            behind = body + head.length
            if behind <= event.end and buffer[body:behind] == known:
                return head
        return self._parse(event)

    def _parse(self, event: Event) -> RowsHead:
        head = read_rows(event, self._fde)
        known = event.buffer[event.body : event.body + head.length]
        if len(self._heads) >= MAX_HEADS:
            self._heads.clear()
            self._latest = {int(event_type): {} for event_type in KINDS}
        head = self._heads.setdefault((event.type, known), head)
        self._latest[event.type][known[:8]] = known, head
        return head
