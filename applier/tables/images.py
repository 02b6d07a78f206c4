"""The rows of an event as images in the columns of a local table.

Made once for the events that share a table map and column bitmaps, and good as long as the table's
definition stands: which columns go where, how each value is converted, what a NULL becomes that the
local column cannot hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from applier.binlog.header import Event
from applier.binlog.images.matching import match
from applier.binlog.images.partial_rows import PartialRowsReader, json_columns
from applier.binlog.images.row_decoder import ImageColumn, image_reader, rows_reader
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import TableMap
from applier.binlog.types.json import JsonDiff, canonical
from applier.binlog.wire import wire_of
from applier.tables.expressions.defaults import column_default, implicit_default
from lookup.table import Column, TableDefinition


class RowImages:
    """Reads rows events of one shape. Raises ReplicationError 1677 where a column cannot be
    converted.

    `before_columns` and `after_columns` are the local columns that the images hold; a write has its
    images in both. `bitmap_full` says that the first image holds every column of the source's
    table. `canonical_json`: JSON documents are serialized anew, so that equal ones have equal
    bytes. `source_version` is a number like 80030, 0 when it is not known.
    """

    __slots__ = (
        "_canonical_json",
        "_matching",
        "_partial",
        "_read",
        "after_columns",
        "after_reader",
        "before_columns",
        "before_reader",
        "bitmap_full",
        "definition",
        "table_map",
    )

    def __init__(
        self,
        rows: RowsHead,
        table_map: TableMap,
        definition: TableDefinition,
        conversions: frozenset[str] = frozenset(),
        *,
        canonical_json: bool = False,
        source_version: int = 0,
    ) -> None:
        self.table_map = table_map
        self.definition = definition
        self._canonical_json = canonical_json
        self._matching = match(table_map, definition, conversions, source_version=source_version)
        first, second = rows.images_of(table_map)
        self.bitmap_full = len(first) == len(table_map.columns)
        self.before_columns = self._matching.local(first)
        self.after_columns = self._matching.local(second)
        before, after = [self._column(at) for at in first], [self._column(at) for at in second]
        self._read = rows_reader(before, after if rows.kind == "update" else None)
        self.before_reader = image_reader(before)
        self.after_reader = image_reader(after)
        self._partial = PartialRowsReader(
            json_columns(table_map.columns),
            before,
            lambda changed: [self._column(at, diff=at in changed) for at in second],
        )

    def rows(self, event: Event, rows: RowsHead) -> list[Any]:
        """Images, or (before, after) pairs of an update. A JsonDiff stands where an after image
        holds changes to a document."""
        if rows.partial:
            return [
                pair[:2]
                for pair in self._partial(event.buffer, event.body + rows.length, event.end)
            ]
        return self._read(event.buffer, event.body + rows.length, event.end)

    def _column(self, at: int, *, diff: bool = False) -> ImageColumn:
        source, target = self.table_map.columns[at], self._matching.targets[at]
        if target.column is None:
            return ImageColumn(
                wire_of(source.type_code, source.metadata, bool(source.unsigned)), keep=False
            )
        local = self.definition.columns[target.column]
        wire = wire_of(source.type_code, source.metadata, local.unsigned)
        null = None if local.nullable else null_default(local, source.nullable)
        convert: Callable[[Any], Any] | None = JsonDiff if diff else target.convert
        if convert is None and local.type == "json" and self._canonical_json:
            convert = canonical
        return ImageColumn(wire, True, convert, null)


def null_default(local: Column, may_be_null: bool) -> Any:
    """What a NULL becomes in a column that cannot hold it (`Field::set_default` in `unpack_row`,
    sql/rpl_record.cc).

    A source that has no NULLs either sends one only where an image is misread; a plain default does
    then.
    """
    return (
        column_default(replace(local, nullable=False)) if may_be_null else implicit_default(local)
    )
