"""Plain transactions of a log, many at a time: summed up by a compiled kernel, given out as loads.

What the kernel needs to know of a table map or of the head of a rows event comes from the slow
reader, which has met it in a transaction before. So both give the same loads; the slow one reads
whatever the kernel stops for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING
from uuid import UUID

from applier.binlog.columnar.known_heads import KnownHeads, address
from applier.binlog.images.row_decoder import ImageColumn
from applier.binlog.rows import RowsHead
from applier.forecast.workload.row_counts import RowsLayout

if TYPE_CHECKING:
    from applier.binlog.columnar.table_ids import Integers

SMALLEST_LOG_BYTES = 4_000_000
"""For less the kernel is not worth its start,"""
WORTH_COMPILING_BYTES = 64_000_000
"""and for less than this not its compilation, which takes some seconds once."""
TRANSACTIONS = 4096
EVENTS = 32_768
VALUES = 1 << 16
GTID_KINDS = ("none", "mysql", "mariadb")


@dataclass(frozen=True, slots=True)
class Stretch:
    """What the kernel found, up to `position`: transactions and their rows events as arrays, a row
    each.

    Columns as `Summed` and `SummedEvent` name them; the shape of an event is what `add_head` was
    given.
    """

    position: int
    transactions: Integers
    events: Integers


def smallest_log_bytes() -> int:
    """How long a log has to be for the kernel."""
    if find_spec("numba") is None or find_spec("numpy") is None:
        return WORTH_COMPILING_BYTES
    from applier.binlog.columnar.cache import cached_file

    at_hand = kernel.cache_info().currsize or cached_file("loads") is not None
    return SMALLEST_LOG_BYTES if at_hand else WORTH_COMPILING_BYTES


@cache
def kernel() -> Callable[[int], int]:
    """The kernel; once it is there, also where no folder can keep it, nothing has to compile it."""
    from applier.binlog.columnar.cache import load_kernel

    return load_kernel("loads").call


def compiled_loads() -> BulkLoads | None:
    """The kernel and its memory; None where Numba is not installed."""
    if find_spec("numba") is None or find_spec("numpy") is None:
        return None
    return BulkLoads()


class BulkLoads(KnownHeads):
    """Runs the kernel over one file after the other. Table maps and heads are those of the file
    since `begin`."""

    def __init__(self) -> None:
        import numpy as np

        from applier.binlog.columnar.control import (
            Loads,
            LoadsStatus,
            Summed,
            SummedEvent,
            SummedShape,
        )

        super().__init__(Loads.SIZE_OF_BLOCK, SummedShape.SIZE_OF_ENTRY)
        self._kernel, self._status = kernel(), LoadsStatus
        self._transactions: Integers = np.zeros((TRANSACTIONS, Summed.SIZE_OF_ENTRY), np.int64)
        self._events: Integers = np.zeros((EVENTS, SummedEvent.SIZE_OF_ENTRY), np.int64)
        self._values: Integers = np.zeros((VALUES, 2), np.int64)
        item, control = self._item, self._control
        control[item.TRANSACTIONS] = address(self._transactions)
        control[item.TRANSACTIONS_CAPACITY] = TRANSACTIONS
        control[item.EVENTS], control[item.EVENTS_CAPACITY] = address(self._events), EVENTS
        control[item.VALUES], control[item.VALUES_MASK] = address(self._values), VALUES - 1

    def add_head(
        self, map_body: bytes, head: RowsHead, text: bytes, layout: RowsLayout
    ) -> int | None:
        """A rows event's head, whose bytes are `text`, behind a table map. Its number; None: the
        kernel does not take it."""
        after = layout.after or ()
        if layout.json_columns is not None or not (layout.before or after):
            return None
        if not self.may_add(map_body, head, text):
            return self.number_of(map_body, head, text)
        columns = self._columns(layout.before), len(layout.before), self._columns(after), len(after)
        return self._add_shape(map_body, head, text, (layout.row_bytes, *columns, layout.has_key))

    def run(self, position: int, limit: int) -> Iterator[Stretch]:
        """Plain transactions from `position` on, up to one that the kernel does not take."""
        item, control = self._item, self._control
        self._bind(position, limit)
        while True:
            status = self._kernel(address(control))
            count, events = int(control[item.TRANSACTIONS_COUNT]), int(control[item.EVENTS_COUNT])
            if count:
                yield Stretch(
                    int(control[item.POSITION]),
                    self._transactions[:count].copy(),
                    self._events[:events].copy(),
                )
            if status != self._status.FULL:
                return

    def _columns(self, columns: tuple[ImageColumn, ...]) -> int:
        """Address of the columns of an image, as `image_end` reads them."""
        entries = [
            column.wire.size << 2 | column.keep << 1 | (column.wire.kind == "prefixed")
            for column in columns
        ]
        return self._kept_array(self._np.array([*entries, 0], self._np.int64))


def gtid_text(kind: int, low: int, high: int, number: int) -> str | None:
    """The text of a GTID as the kernel notes it; see `Summed`."""
    if kind == GTID_KINDS.index("mysql"):
        return f"{_uuid_text(low, high)}:{number}"
    return f"{low}-{high}-{number & 0xFFFFFFFFFFFFFFFF}" if kind else None


@lru_cache(maxsize=256)
def _uuid_text(low: int, high: int) -> str:
    return str(
        UUID(bytes=low.to_bytes(8, "little", signed=True) + high.to_bytes(8, "little", signed=True))
    )
