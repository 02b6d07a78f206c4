"""Rows of PARTIAL_UPDATE_ROWS: an after image may hold changes to a JSON document instead of the
document.

In front of each after image stand its value options, and with PARTIAL_JSON_UPDATES one bit for each
JSON column of the table, whether the image has that column or not (`start_partial_bits_reader`,
sql/rpl_record.cc 8.0 to 9.7).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from applier.binlog.cursor import Cursor
from applier.binlog.images.row_decoder import Image, ImageColumn, ImageReader, image_reader
from applier.binlog.table_map import SourceColumn
from applier.binlog.wire import JSON
from applier.error_codes import Code
from applier.errors import InputError

PARTIAL_JSON_UPDATES = 1
Changed = frozenset[int]
"""The columns of which an after image holds changes."""


def json_columns(columns: Sequence[SourceColumn]) -> tuple[int, ...]:
    """The columns of a table that a bit of the value options stands for."""
    return tuple(at for at, column in enumerate(columns) if column.real_type == JSON)


def unknown_options() -> InputError:
    """What is said of value options that no server writes; the place is the caller's to add."""
    return InputError(
        "a partial update has unknown options before its after image", code=Code.BAD_VALUE
    )


class PartialRowsReader:
    """Reads the rows of events of one shape. `after` gives the columns of an after image with
    changes of some."""

    def __init__(
        self,
        json_columns: Sequence[int],
        before: Sequence[ImageColumn],
        after: Callable[[Changed], Sequence[ImageColumn]],
    ) -> None:
        self._json_columns = json_columns
        self._bitmap_bytes = (len(json_columns) + 7) // 8
        self._read_before = image_reader(before)
        self._after = after
        self._after_readers: dict[Changed, ImageReader] = {}

    def __call__(self, buffer: bytes, start: int, end: int) -> list[tuple[Image, Image, Changed]]:
        """(before, after, columns with changes) of all rows between. Raises InputError."""
        at, found = start, []
        while at < end:
            before, at = self._read_before(buffer, at, end)
            changed, at = self._changed(buffer, at, end)
            after, at = self._reader(changed)(buffer, at, end)
            found.append((before, after, changed))
        return found

    def _changed(self, buffer: bytes, at: int, end: int) -> tuple[Changed, int]:
        cursor = Cursor(buffer, at, end)
        options = cursor.packed()
        if options & ~PARTIAL_JSON_UPDATES:
            raise unknown_options()
        bits = int.from_bytes(cursor.take(self._bitmap_bytes), "little") if options else 0
        places = enumerate(self._json_columns)
        return frozenset(column for place, column in places if bits >> place & 1), cursor.at

    def _reader(self, changed: Changed) -> ImageReader:
        reader = self._after_readers.get(changed)
        if reader is None:
            reader = self._after_readers[changed] = image_reader(self._after(changed))
        return reader
