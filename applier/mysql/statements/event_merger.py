"""Rows events of a table without a usable key, joined: the server reads the table once for many of
them.

A server that hashes (HASH_SCAN, what 8.0 and later do) reads such a table once for each rows event,
however few rows that has (`Rows_log_event::do_hash_scan`, sql/log_event.cc 8.0 and 9.7). Events of
one kind that follow one another travel as one event, then, also those of other transactions of the
batch, and one scan finds the rows of all of them.

The rows end as they would one event after the other, each in its place. Deletes take the first of
equal rows in the order of the scan either way. Updates are joined only while none looks for a row
that another one looks for, too, or leaves behind: the hash would choose between those in an order
of its own.
"""

from __future__ import annotations

import struct
from typing import Any

from applier.binlog.header import HEADER_LENGTH, Event
from applier.binlog.images.row_decoder import ImageColumn, RowsReader, rows_reader
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import TableMap
from applier.binlog.wire import wire_of

LENGTH = slice(9, 13)
"""Of an event's length in its header."""
FLAGS_AT = HEADER_LENGTH + 6
"""Of the flags in a rows event, behind a table id of six bytes."""
JOINED_KINDS = frozenset({"update", "delete"})


class EventMerger:
    """The rows event at the end of `pieces`, which others may join: up to its flags, their low
    byte, the rest, its checksum.

    `shipped` is an event as the target takes it, `checksum_length` the bytes at its end that are no
    row data. The checksum does not fit any more; the server does not look at it.
    """

    __slots__ = (
        "_after",
        "_at",
        "_before",
        "_checksum_length",
        "_first",
        "_pieces",
        "_read",
        "_shape",
        "_table_map",
    )

    def __init__(
        self,
        pieces: list[bytes],
        shipped: bytes,
        flags: bytes,
        event: Event,
        head: RowsHead,
        table_map: TableMap,
        checksum_length: int,
    ) -> None:
        end = len(shipped) - checksum_length
        self._pieces, self._at, self._checksum_length = pieces, len(pieces), checksum_length
        self._shape = _shape(event, head)
        self._table_map = table_map
        self._first: Event | None = event
        self._read: RowsReader | None = None
        self._before: set[Any] = set()
        self._after: set[Any] = set()
        pieces += (shipped[:FLAGS_AT], flags, shipped[FLAGS_AT + 1 : end], shipped[end:])

    def take(self, shipped: bytes, event: Event, head: RowsHead) -> bool:
        """Joins an event to those before it where the rows end alike; says whether it did."""
        if head.kind not in JOINED_KINDS or head.partial or _shape(event, head) != self._shape:
            return False
        if head.kind == "update" and not self._is_apart(event, head):
            return False
        end = len(shipped) - self._checksum_length
        rows = shipped[end - (event.end - event.body - head.length) : end]
        first = self._pieces[self._at]
        length = int.from_bytes(first[LENGTH], "little") + len(rows)
        self._pieces[self._at] = (
            first[: LENGTH.start] + struct.pack("<I", length) + first[LENGTH.stop :]
        )
        self._pieces.insert(len(self._pieces) - 1, rows)
        return True

    def _is_apart(self, event: Event, head: RowsHead) -> bool:
        """Whether an update looks for no row that those before it look for or leave behind, and
        leaves none that they look for."""
        if self._first is not None:
            self._before, self._after = self._images(self._first, head)
            self._first = None
        before, after = self._images(event, head)
        if not (self._before.isdisjoint(before | after) and self._after.isdisjoint(before)):
            return False
        self._before |= before
        self._after |= after
        return True

    def _images(self, event: Event, head: RowsHead) -> tuple[set[Any], set[Any]]:
        """The before and the after images of an update."""
        if self._read is None:
            self._read = images_reader(self._table_map, head)
        images = self._read(event.buffer, event.body + head.length, event.end)
        return {before for before, _ in images}, {after for _, after in images}


def images_reader(table_map: TableMap, head: RowsHead) -> RowsReader:
    """Reads a rows event into (before, after) pairs that are equal where the images are."""
    _, *sides = head.columns()
    columns = [
        ImageColumn(wire_of(one.type_code, one.metadata, unsigned=False))
        for one in table_map.columns
    ]
    before, after = ([columns[at] for at in side] for side in sides)
    return rows_reader(before, after)


def _shape(event: Event, head: RowsHead) -> tuple[int, int, bytes]:
    """What events have in common that can be joined; their flags, which all of a group share, are
    not in it."""
    return event.type, head.table_id, event.buffer[event.body + 8 : event.body + head.length]
