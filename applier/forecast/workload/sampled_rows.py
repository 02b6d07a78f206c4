"""The rows events of a part of a log, for whoever looks at some of it before the whole is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from applier.binlog.header import ROWS_TYPES, Event, EventType
from applier.binlog.reader import LogReader
from applier.binlog.rows import RowsHead
from applier.binlog.rows_context import RowsContext, as_it_is
from applier.binlog.table_map import TableMap

Made = TypeVar("Made")


def rows_events(
    reader: LogReader, most_bytes: int, seen: Callable[[Event], None] = lambda event: None
) -> Iterator[tuple[Event, RowsHead, TableMap]]:
    """Rows events with their heads and table maps, until events of so many bytes have gone by; all
    of these are `seen`. Raises InputError, OSError."""
    read, context = 0, RowsContext(as_it_is)
    for event in reader:
        read += event.end - event.body
        if read > most_bytes:
            return
        seen(event)
        if event.type == EventType.FORMAT_DESCRIPTION:
            assert reader.format is not None
            context.describe(reader.format)
        elif event.type == EventType.TABLE_MAP:
            context.take_map(event)
        elif event.type in ROWS_TYPES:
            head = context.head_of(event)
            table_map = context.maps.get(head.table_id)
            if table_map is not None:
                yield event, head, table_map


class ForEachHead(Generic[Made]):
    """What is made of the head of rows events and their table map, kept until the map changes."""

    def __init__(self, make: Callable[[RowsHead, TableMap], Made]) -> None:
        self._make = make
        self._known: dict[RowsHead, tuple[TableMap, Made]] = {}

    def of(self, head: RowsHead, table_map: TableMap) -> Made:
        """Made anew only where it is not known."""
        known = self._known.get(head)
        if known is None or known[0] is not table_map:
            known = self._known[head] = table_map, self._make(head, table_map)
        return known[1]
