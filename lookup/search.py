"""One row at a time: index scan and table scan.

A search finds the row that a before image names and counts what a server's handler would have
counted on the way. (`do_index_scan_and_update`, `do_table_scan_and_update`, sql/log_event.cc;
`find_row`, sql/log_event_server.cc MariaDB.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lookup.handler import Counters, EngineTraits, Handler, Image, Ref, Row
from lookup.key_choice import KeyChoice
from lookup.table import Key
from lookup.versions import ServerRules

KEY_NOT_FOUND = "HA_ERR_KEY_NOT_FOUND"
END_OF_FILE = "HA_ERR_END_OF_FILE"


class RowSearch(Protocol):
    """Finds rows one by one. `missing` names the handler error of the last image that was not
    found."""

    missing: str

    def find(self, image: Image, counters: Counters) -> Ref | None:
        """The row that the image names, None when there is none. Adds to the counters what the
        search read."""


@dataclass(frozen=True, slots=True)
class ReadCosts:
    """What one read of a kind adds to the counters: a scan's start, and a lookup by the primary
    key.

    InnoDB of MySQL counts inside: rnd_next's first call goes through index_first and index_read,
    rnd_pos through index_read (ha_innobase, 5.6 to 9.7). Other engines, and every engine of
    MariaDB, count the handler call alone.
    """

    scan_first: int
    scan_key: int
    primary_rnd: int
    primary_key: int


def read_costs(handler: Handler, rules: ServerRules) -> ReadCosts:
    """What reading costs in an open table."""
    return engine_read_costs(handler.traits, rules)


def engine_read_costs(traits: EngineTraits, rules: ServerRules) -> ReadCosts:
    """What reading costs in an engine, in handler calls (see ReadCosts)."""
    inside = int(traits.clustered and rules.engine_side_counters)
    return ReadCosts(inside, inside, int(traits.clustered), inside if traits.clustered else 1)


@dataclass(slots=True)
class PrimaryLookup:
    """By the primary (or promoted) key: never compared with the image, so a row that differs
    elsewhere is taken too.

    Implements `RowSearch`.
    """

    lookup: Callable[[Image], Ref | None]
    costs: ReadCosts
    missing: str = KEY_NOT_FOUND

    def find(self, image: Image, counters: Counters) -> Ref | None:
        counters.read_rnd += self.costs.primary_rnd
        counters.read_key += self.costs.primary_key
        return self.lookup(image)


@dataclass(slots=True)
class UniqueLookup:
    """By a unique key whose value holds no NULL: never compared either. Implements `RowSearch`."""

    lookup: Callable[[Image], Ref | None]
    key: Key
    columns: tuple[int, ...]
    missing: str = KEY_NOT_FOUND

    def find(self, image: Image, counters: Counters) -> Ref | None:
        counters.read_key += 1
        return self.lookup(image)


@dataclass(slots=True)
class KeyScan:
    """By a key that may hold the value more than once: entries are stepped over until one equals
    the image.

    `to_index_end`: 5.6 and MariaDB step with index_next, past the last entry of the value, to the
    end of the index.

    Implements `RowSearch`.
    """

    handler: Handler
    columns: tuple[int, ...]
    compared: tuple[int, ...]
    key: Key
    to_index_end: bool
    end_error: str
    missing: str = KEY_NOT_FOUND

    def find(self, image: Image, counters: Counters) -> Ref | None:
        entries = self.handler.ordered(self.key)
        value = entries.value_of(image, self.columns)
        start, end = entries.group(value)
        counters.read_key += 1
        if start == end:
            self.missing = KEY_NOT_FOUND
            return None
        ref = self.handler.first_match(self.compared, pick(image, self.columns, self.compared))
        if ref is None:
            counters.read_next += (len(entries) if self.to_index_end else end) - start
            self.missing = self.end_error
            return None
        counters.read_next += entries.rank(value, ref) - start
        return ref


@dataclass(slots=True)
class NullableUnique:
    """By a unique key with nullable parts: one read when the value holds no NULL, a scan of the key
    when it does.

    Implements `RowSearch`.
    """

    unique: UniqueLookup
    scan: KeyScan
    missing: str = KEY_NOT_FOUND

    def find(self, image: Image, counters: Counters) -> Ref | None:
        held = dict(zip(self.unique.columns, image, strict=True))
        has_null = any(held[column] is None for column in self.unique.key.columns)
        search: RowSearch = self.scan if has_null else self.unique
        ref = search.find(image, counters)
        self.missing = search.missing
        return ref


@dataclass(slots=True)
class DeadKey:
    """By a key that InnoDB answers with nothing: a SPATIAL key taken for an ordinary one.
    Implements `RowSearch`."""

    missing: str = KEY_NOT_FOUND

    def find(self, image: Image, counters: Counters) -> Ref | None:
        counters.read_key += 1
        return None


@dataclass(slots=True)
class TableScan:
    """From the first row on, for each image anew; MySQL starts once more from the top before it
    gives up. Implements `RowSearch`."""

    handler: Handler
    columns: tuple[int, ...]
    compared: tuple[int, ...]
    costs: ReadCosts
    passes: int
    free_slots: bool
    missing: str = END_OF_FILE

    def find(self, image: Image, counters: Counters) -> Ref | None:
        ref = self.handler.first_match(self.compared, pick(image, self.columns, self.compared))
        passes = self.passes if ref is None else 1
        counters.read_first += passes * self.costs.scan_first
        counters.read_key += passes * self.costs.scan_key
        free = self.free_slots
        reads = (
            self.handler.reads_to_end(free_slots=free)
            if ref is None
            else self.handler.reads_to(ref, free_slots=free)
        )
        counters.read_rnd_next += passes * reads
        return ref


@dataclass(slots=True)
class WholeRow:
    """MariaDB: the search goes by the whole record, in which the columns that the image lacks have
    their defaults.

    Implements `RowSearch`.
    """

    search: RowSearch
    columns: tuple[int, ...]
    defaults: Row
    missing: str = ""

    def find(self, image: Image, counters: Counters) -> Ref | None:
        row = list(self.defaults)
        for column, value in zip(self.columns, image, strict=True):
            row[column] = value
        ref = self.search.find(tuple(row), counters)
        self.missing = self.search.missing
        return ref


def pick(image: Image, columns: tuple[int, ...], wanted: tuple[int, ...]) -> Image:
    """The part of an image that holds `wanted`, a subset of its `columns`."""
    if len(wanted) == len(columns):
        return image
    return tuple(value for column, value in zip(columns, image, strict=True) if column in wanted)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What a search is made for: the rows that images of these `columns` name, in a table.

    `compared` are the columns that a row is compared in. `chosen`: the key that is read, and its
    class.
    """

    handler: Handler
    columns: tuple[int, ...]
    compared: tuple[int, ...]
    chosen: KeyChoice
    rules: ServerRules

    @property
    def key(self) -> Key:
        """The key that is read; there is one."""
        key, _ = self.chosen
        assert key is not None
        return key

    @property
    def costs(self) -> ReadCosts:
        """What reading costs in this table."""
        return read_costs(self.handler, self.rules)


def unique_search(request: SearchRequest) -> RowSearch:
    """By a key whose value stands in one row at most."""
    key, columns, handler = request.key, request.columns, request.handler
    if key.kind == "spatial":
        return DeadKey()
    if request.chosen[1] == "primary":
        return PrimaryLookup(handler.primary_lookup(columns), request.costs)
    return UniqueLookup(handler.unique_lookup(key, columns), key, columns)


def key_search(request: SearchRequest) -> RowSearch:
    """By a key that may hold a value more than once."""
    key, columns, handler, rules = request.key, request.columns, request.handler, request.rules
    if key.kind == "spatial":
        return DeadKey()
    to_end = rules.steps_to_index_end or rules.find_row
    scan = KeyScan(handler, columns, request.compared, key, to_end, END_OF_FILE)
    if not key.unique:
        return scan
    return NullableUnique(UniqueLookup(handler.unique_lookup(key, columns), key, columns), scan)


def table_search(request: SearchRequest) -> RowSearch:
    """Through the table."""
    rules = request.rules
    return TableScan(
        request.handler,
        request.columns,
        request.compared,
        request.costs,
        rules.table_scan_passes,
        rules.counts_free_slots,
    )
