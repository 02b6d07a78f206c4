"""What rows events need of the events before them: the one reading that a replay, a forecast, the
event list and the columnar scan share.

A table map gives a table id its columns, the head of a rows event names that id, and both hold for
one format description. Each is parsed once for the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from applier.binlog.header import Event, FormatDescription
from applier.binlog.refusals import unknown_table
from applier.binlog.rows import DUMMY_TABLE_IDS, RowsHead, RowsHeads
from applier.binlog.table_map import TableMap, read_table_map

MOST_MAPS = 10_000
"""Different table maps that are kept before all are forgotten."""
Kept = TypeVar("Kept")


class RowsContext(Generic[Kept]):
    """Table maps and heads as far as the log was read. `keep` makes of a table map, and the bytes
    it was read from, what the reader wants to have for it; `on_full` is called when these are
    forgotten.

    `maps` is table id -> that, the same object for the same bytes. `head_of` parses the head of a
    rows event, and raises InputError when it cannot be read.
    """

    __slots__ = ("_fde", "_keep", "_known", "_on_full", "head_of", "maps")

    def __init__(
        self,
        keep: Callable[[TableMap, bytes], Kept],
        *,
        on_full: Callable[[], None] = lambda: None,
    ) -> None:
        self._keep, self._on_full = keep, on_full
        self._known: dict[bytes, tuple[int, Kept]] = {}
        self.maps: dict[int, Kept] = {}

    def describe(self, fde: FormatDescription, *, begins: bool = True) -> None:
        """A format description; where a log begins with it, table ids start anew."""
        self._fde = fde
        self.head_of: Callable[[Event], RowsHead] = RowsHeads(fde).of
        if begins:
            self.maps.clear()
            self._known.clear()

    def take_map(self, event: Event) -> Kept:
        """A TABLE_MAP event: its id stands for this table from here on. Raises InputError."""
        body = event.buffer[event.body : event.end]
        known = self._known.get(body)
        if known is None:
            table_map = read_table_map(event, self._fde)
            if len(self._known) >= MOST_MAPS:
                self._known.clear()
                self._on_full()
            known = self._known[body] = table_map.table_id, self._keep(table_map, body)
        table_id, kept = known
        self.maps[table_id] = kept
        return kept

    def table_of(self, event: Event, head: RowsHead) -> Kept | None:
        """What is kept for the table of a rows event; None for one of no table, which only ends a
        statement. Raises InputError where no table map names it."""
        kept = self.maps.get(head.table_id)
        if kept is None and head.table_id not in DUMMY_TABLE_IDS:
            raise unknown_table(event, head.table_id)
        return kept


def as_it_is(table_map: TableMap, _body: bytes) -> TableMap:
    """For readers that want the table map itself."""
    return table_map
