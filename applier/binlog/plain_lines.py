"""Between the listing of events and the kernel that writes plain ones: who is told what, and where
each goes on.

The listing reads an event; the kernel learns from it, and takes the events behind it as far as it
can. Then the listing's tracker and table maps are brought to where the kernel stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from applier.binlog.describe import describe, describe_map, one_line
from applier.binlog.header import (
    HEADER,
    HEADER_LENGTH,
    ROWS_TYPES,
    Event,
    EventType,
    FormatDescription,
)
from applier.binlog.images.row_values import RowValues
from applier.binlog.reader import LogReader
from applier.binlog.rows import read_rows
from applier.binlog.table_map import TableMap
from applier.binlog.transactions import TransactionTracker

if TYPE_CHECKING:
    from applier.binlog.columnar.text.text_lines import LineWriter

SMALLEST_LOG_BYTES = 4_000_000
"""For less the kernel is not worth its start,"""
WORTH_COMPILING_BYTES = 64_000_000
"""and for less than this not its compilation, which takes some ten seconds once."""
MOST_MAPS = 1000
"""Table maps that the kernel is told of before it forgets all."""


class PlainLines:
    """Follows one listing. `width`: of the column with the file's name."""

    def __init__(
        self, reader: LogReader, values: RowValues, *, with_rows: bool, width: int
    ) -> None:
        self._reader, self._values = reader, values
        self._with_rows, self._width = with_rows, width
        self._compiled: LineWriter | None = None
        self._is_on = False
        self._bodies: dict[int, bytes] = {}

    def learn(
        self, event: Event, fde: FormatDescription, maps: dict[int, TableMap], *, is_boundary: bool
    ) -> None:
        """An event that the listing has read; `maps` are the table maps of the transaction at
        hand."""
        if event.type == EventType.FORMAT_DESCRIPTION:
            self._begin(event, fde)
        elif self._is_on and self._compiled is not None:
            if is_boundary:
                self._compiled.clear_tables()
            if event.inner_index >= 0:
                return
            if event.type == EventType.TABLE_MAP:
                self._learn_map(self._compiled, event, maps)
            elif event.type in ROWS_TYPES:
                self._learn_head(self._compiled, event, fde, maps)

    def _begin(self, event: Event, fde: FormatDescription) -> None:
        self._is_on = False
        if self._compiled is None:
            self._compiled = _compiled(len(event.buffer))
        if self._compiled is not None:
            name = f"{event.file:{self._width}}  "
            verify = self._reader.verify_checksum
            self._is_on = self._compiled.start(
                fde, verify=verify, with_rows=self._with_rows, file=name
            )
        self._bodies.clear()

    def _learn_map(self, compiled: LineWriter, event: Event, maps: dict[int, TableMap]) -> None:
        body = event.data
        table_map = maps[int.from_bytes(body[: compiled.id_bytes], "little")]
        if len(self._bodies) >= MOST_MAPS:
            self._bodies.clear()
            compiled.forget()
        self._bodies[table_map.table_id] = body
        compiled.add_table(body, table_map, one_line(describe_map(table_map)))

    def _learn_head(
        self, compiled: LineWriter, event: Event, fde: FormatDescription, maps: dict[int, TableMap]
    ) -> None:
        rows = read_rows(event, fde)
        table_map, body = maps.get(rows.table_id), self._bodies.get(rows.table_id)
        if table_map is None or body is None:
            return
        text = event.buffer[event.body : event.body + rows.length]
        if compiled.may_add(body, rows, text):
            shown = (
                self._values.shown(rows, table_map, " " * (self._width + 4))
                if self._with_rows
                else None
            )
            compiled.add_head(body, rows, text, one_line(describe(event, fde)), shown)

    def behind(
        self,
        event: Event,
        fde: FormatDescription,
        tracker: TransactionTracker,
        maps: dict[int, TableMap],
    ) -> Iterator[str]:
        """The lines of the events behind this one. Raises InputError for a value that cannot be
        read."""
        compiled, reader = self._compiled, self._reader
        if compiled is None or not self._is_on or not self._ends_at_reader(event):
            return
        compiled.attach(event.buffer)
        position = reader.position
        for lines in compiled.run(position, reader.limit, tracker.state):
            yield lines.text
            if lines.bad is not None:
                bad = self._event(event, lines.bad.position, fde)
                self._values.rows(bad, lines.bad.head, lines.bad.table_map)
            reader.position = lines.position
        if reader.position == position:
            return
        left = compiled.left()
        if left.ended or left.heads:
            maps.clear()
        if left.ended or (left.heads and tracker.current is None):
            tracker.finish()
        for at in left.heads:
            tracker.feed(self._event(event, at, fde), fde)
        maps.update(left.tables)

    def _ends_at_reader(self, event: Event) -> bool:
        """Whether the event's buffer is the file's, and what follows in it comes next."""
        plain = event.inner_index < 0 and event.type == event.stored_type
        is_before_start = self._reader.position < (self._reader.start_position or 0)
        return plain and event.type != EventType.TRANSACTION_PAYLOAD and not is_before_start

    def _event(self, other: Event, position: int, fde: FormatDescription) -> Event:
        """The event at a position of the same file."""
        header = HEADER.unpack_from(other.buffer, position)
        end = position + header[3] - fde.checksum_length
        return Event(other.file, position, header, other.buffer, position + HEADER_LENGTH, end)


def _compiled(log_bytes: int) -> LineWriter | None:
    """The kernel, where it is worth it for a log of that size."""
    if log_bytes < SMALLEST_LOG_BYTES or find_spec("numba") is None or find_spec("numpy") is None:
        return None
    from applier.binlog.columnar.cache import cached_file
    from applier.binlog.columnar.text.text_lines import LineWriter

    return (
        LineWriter()
        if log_bytes >= WORTH_COMPILING_BYTES or cached_file("lines") is not None
        else None
    )
