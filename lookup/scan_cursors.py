"""Scans over an index or a table for the rows of a hash: they can be moved to a row ahead, and
count what the moves read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from lookup.handler import Counters, Handler, Ref
from lookup.search import END_OF_FILE, KEY_NOT_FOUND, ReadCosts
from lookup.table import Key


class ScanCursor(Protocol):
    """A scan that can be moved to a row ahead of it. Adds to the counters what the moves read.
    `end_error` names the handler error at its end."""

    end_error: str

    def groups(self) -> Iterator[Any]:
        """The key values to visit in order; one None for the table. Leaving a value reads it to its
        end."""

    def move(self, ref: Ref) -> None:
        """To this row, which stands behind the one it is at; what lies between is read."""

    def position(self) -> Ref | None:
        """The row read last, None at the start of a group."""


@dataclass(slots=True)
class TableCursor:
    """A scan of the whole table: rnd_next until a row is wanted. Implements `ScanCursor`."""

    handler: Handler
    counters: Counters
    costs: ReadCosts
    end_error: str = END_OF_FILE
    _at: Ref | None = None

    def groups(self) -> Iterator[Any]:
        self._at = None
        self.counters.read_first += self.costs.scan_first
        self.counters.read_key += self.costs.scan_key
        yield None
        self.counters.read_rnd_next += self.handler.reads_to_end(self._at)

    def move(self, ref: Ref) -> None:
        self.counters.read_rnd_next += self.handler.reads_to(ref, self._at)
        self._at = ref

    def position(self) -> Ref | None:
        return self._at


@dataclass(slots=True)
class IndexCursor:
    """`next_record_scan` with a key: index_read of a value, then index_next_same until a read
    fails, then the next value.

    `missed` is called for each value that has no entry at all; it tells whether the scan goes on.

    Implements `ScanCursor`.
    """

    handler: Handler
    counters: Counters
    key: Key
    values: list[tuple[Any, ...]]
    missed: Callable[[], bool]
    end_error: str = KEY_NOT_FOUND
    _at: Ref | None = None
    _value: tuple[Any, ...] = ()
    _start: int = 0
    """Rank of the value's first entry when it was come to; good until the first move, since rows
    change behind moves only."""

    def groups(self) -> Iterator[Any]:
        entries = self.handler.ordered(self.key)
        for value in self.values:
            self._at, self._value = None, value
            self.counters.read_key += 1
            start, end = entries.group(value)
            if start == end:
                if not self.missed():
                    return
                self.counters.read_next += 1
                continue
            self._start = start
            yield value
            left = (
                end - start - 1
                if self._at is None
                else entries.group(value)[1] - entries.rank_after(value, self._at)
            )
            self.counters.read_next += left + 1

    def move(self, ref: Ref) -> None:
        entries = self.handler.ordered(self.key)
        read = self._start + 1 if self._at is None else entries.rank_after(self._value, self._at)
        target = entries.rank(self._value, ref) + 1
        self.counters.read_next += target - read
        self._at = ref

    def position(self) -> Ref | None:
        return self._at


@dataclass(slots=True)
class DeadIndexCursor:
    """A SPATIAL key: each value is one read that finds nothing. Implements `ScanCursor`."""

    counters: Counters
    values: list[tuple[Any, ...]]
    missed: Callable[[], bool]
    end_error: str = KEY_NOT_FOUND

    def groups(self) -> Iterator[Any]:
        for _ in self.values:
            self.counters.read_key += 1
            if not self.missed():
                return
            self.counters.read_next += 1
        yield from ()

    def move(self, ref: Ref) -> None:
        raise AssertionError("a scan of nothing was moved")

    def position(self) -> Ref | None:
        return None


@dataclass(frozen=True, slots=True)
class CursorRequest:
    """What a cursor is made for. `values` are the distinct values of `key` among the hashed images;
    `missed` is called for each that has no entry, and tells whether the scan goes on."""

    handler: Handler
    counters: Counters
    costs: ReadCosts
    key: Key | None
    values: Collection[tuple[Any, ...]]
    missed: Callable[[], bool]


def table_cursor(request: CursorRequest) -> ScanCursor:
    """Over the table."""
    return TableCursor(request.handler, request.counters, request.costs)


def index_cursor(request: CursorRequest) -> ScanCursor:
    """Over the values of the key."""
    key, counters, missed = request.key, request.counters, request.missed
    assert key is not None
    if key.kind == "spatial":
        return DeadIndexCursor(counters, list(request.values), missed)
    return IndexCursor(request.handler, counters, key, sorted(request.values), missed)
