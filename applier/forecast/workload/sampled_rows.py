"""The rows events of a part of a log, for whoever looks at some of it before the whole is read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from typing import Any, Generic, TypeVar

from applier.binlog.events import Query
from applier.binlog.header import ROWS_TYPES, Event, EventType
from applier.binlog.images.row_decoder import rows_reader
from applier.binlog.reader import LogReader
from applier.binlog.rows import RowsHead
from applier.binlog.rows_context import RowsContext, as_it_is
from applier.binlog.table_map import TableMap
from applier.forecast.workload.ranges import transaction_behind
from applier.forecast.workload.row_counts import image_columns
from applier.forecast.workload.table_fates import TableFate, ddl_in, table_fates
from applier.remote import address_of
from applier.sources import STANDARD_INPUT, open_at

STRETCH_BYTES = 1 << 20
MOST_STRETCHES = 4
BEGINNING_BYTES = 64 << 20
"""Of a log, from its start, that are looked at where the order of its rows counts."""
Made = TypeVar("Made")
Row = Mapping[int, Any]
"""Values of a row as they stand in its image, by column."""
ReadRows = Callable[[Event], Iterator[tuple[Row, Row]]]


def can_be_read_again(path: str) -> bool:
    """Whether a log can be sampled before it is read as a whole: a pipe cannot."""
    return path != STANDARD_INPUT and (address_of(path) is not None or Path(path).is_file())


def size_of(file: str) -> int:
    """Bytes of a log, packed as it is. Raises InputError, OSError."""
    with closing(open_at(file)) as opened:
        return opened.size


def stretches(files: Sequence[str]) -> Iterator[tuple[str, int | None]]:
    """(File, where a transaction begins in it), spread evenly over the logs; None: its start.
    Raises InputError, OSError."""
    ends = list(accumulate(size_of(file) for file in files))
    total = ends[-1] if ends else 0
    number = min(max(total // STRETCH_BYTES, 1), MOST_STRETCHES)
    for wanted in {total * at // number: None for at in range(number)}:
        at = bisect_right(ends, wanted)
        if at < len(files):
            offset = wanted - (ends[at - 1] if at else 0)
            yield files[at], _transaction_behind(files[at], offset) if offset else None


def _transaction_behind(file: str, offset: int) -> int | None:
    with closing(open_at(file)) as opened:
        return transaction_behind(opened, offset)


def rows_events(
    reader: LogReader, most_bytes: int, seen: Callable[[Event], None] = lambda event: None
) -> Iterator[tuple[Event, RowsHead, TableMap]]:
    """Rows events with their heads and table maps, until events of so many bytes have gone by, the
    one that makes them so many included; all of these are `seen`. Raises InputError, OSError."""
    read, context = 0, RowsContext(as_it_is)
    for event in reader:
        if read > most_bytes:
            return
        read += event.end - event.body
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


def beginning(
    files: Sequence[str], ddl: Callable[[Event, Query, list[TableFate]], object]
) -> Iterator[tuple[Event, RowsHead, TableMap]]:
    """Rows events of the first BEGINNING_BYTES of a log, of its files that can be read again; `ddl`
    is shown the statements between them that may be DDL, with what they make of whole tables.
    Raises InputError, OSError."""
    readable = [file for file in files if can_be_read_again(file)]
    if not readable:
        return
    reader = LogReader(readable)

    def seen(event: Event) -> None:
        query = None if reader.format is None else ddl_in(event, reader.format)
        if query is not None:
            ddl(event, query, table_fates(query))

    yield from rows_events(reader, BEGINNING_BYTES, seen)


def before_and_after(
    head: RowsHead, table_map: TableMap, wanted: frozenset[int]
) -> ReadRows | None:
    """A function from events that begin with `head` to the wanted columns of each row, before and
    after; of a row that is written or deleted there is one image, the second one. None for partial
    updates of JSON, whose images are not whole. Raises InputError for another table's map."""
    if head.partial:
        return None
    first, second = head.images_of(table_map)
    images = [image_columns(table_map, one, wanted) for one in (first, second)]
    is_update, length = head.kind == "update", head.length
    read = rows_reader(*images) if is_update else rows_reader(images[0])
    kept = [[at for at in one if at in wanted] for one in (first, second)]

    def named(columns: Sequence[int], image: Sequence[Any]) -> Row:
        return dict(zip(columns, image, strict=True))

    def rows(event: Event) -> Iterator[tuple[Row, Row]]:
        for row in read(event.buffer, event.body + length, event.end):
            if is_update:
                yield named(kept[0], row[0]), named(kept[1], row[1])
            else:
                yield {}, named(kept[0], row)

    return rows


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
