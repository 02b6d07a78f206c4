"""How much of what the log changes stands outside of its rows' pages, from a sample of images.

InnoDB keeps a row in half a page at most: of a longer one the longest values go to pages of their
own, until the rest fits (dtuple_convert_big_rec, storage/innobase/data/data0data.cc). Such a value
is written anew only where an update changes it (calc_row_difference,
storage/innobase/handler/ha_innodb.cc); the others cost what reading their images costs.
"""

from __future__ import annotations

from collections import Counter

from applier.binlog.header import Event
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import TableMap
from applier.binlog.wire import wire_of
from applier.forecast.workload.sampled_rows import (
    ForEachHead,
    ReadRows,
    Row,
    before_and_after,
)

MOST_BYTES = 8_126
"""Of a row in its page, with 16 KB (page_zip_rec_needs_ext, storage/innobase/include)."""
SHORTEST_BYTES = 40
"""Of a value that goes out of it (BTR_EXTERN_LOCAL_STORED_MAX_SIZE); its address stays."""
ADDRESS_BYTES = 20


def outside(row: Row) -> set[int]:
    """The columns of a row whose values stand outside of its page."""
    lengths = {at: len(value) for at, value in row.items() if value is not None}
    left, found = sum(lengths.values()), set[int]()
    for at in sorted(lengths, key=lambda one: -lengths[one]):
        if left <= MOST_BYTES or lengths[at] <= SHORTEST_BYTES:
            break
        left -= lengths[at] - ADDRESS_BYTES
        found.add(at)
    return found


def written_outside(before: Row, after: Row) -> int:
    """Bytes that a change writes outside of the row's page; `before` is empty for a new row."""
    now = {**before, **after}
    return sum(
        len(now[at])
        for at in outside(now)
        if at in after and (at not in before or before[at] != after[at])
    )


class LongRows:
    """Shown rows events, it keeps for each table and kind of change how many of the images' bytes
    are written outside of their rows' pages."""

    def __init__(self) -> None:
        self._bytes = Counter[tuple[str, str]]()
        self._outside = Counter[tuple[str, str]]()
        self._readers = ForEachHead(_rows)

    def take(self, event: Event, head: RowsHead, table_map: TableMap) -> None:
        """Raises InputError for images that do not fit the table's map."""
        if head.kind == "delete":
            return
        place, length = (table_map.full_name, head.kind), event.end - event.body - head.length
        self._bytes[place] += length
        rows = self._readers.of(head, table_map) if length > MOST_BYTES else None
        if rows is not None:
            self._outside[place] += sum(written_outside(*row) for row in rows(event))

    def shares(self) -> dict[str, dict[str, float]]:
        """Table -> kind of change -> the share of its images' bytes that are written outside."""
        found: dict[str, dict[str, float]] = {}
        for (table, kind), written in self._outside.items():
            if written:
                found.setdefault(table, {})[kind] = written / self._bytes[table, kind]
        return found


def _rows(head: RowsHead, table_map: TableMap) -> ReadRows | None:
    """What of each row may be long."""
    return before_and_after(head, table_map, _varying(table_map))


def _varying(table_map: TableMap) -> frozenset[int]:
    """The columns whose values have a length of their own in the log."""
    return frozenset(
        at
        for at, one in enumerate(table_map.columns)
        if wire_of(one.type_code, one.metadata, bool(one.unsigned)).kind == "prefixed"
    )
