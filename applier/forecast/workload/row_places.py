"""The places that the rows of an event have in their table and its secondary indexes.

An insert writes an entry into each index, a delete marks one, an update does both where it changes
the index's columns or the primary key. The images say which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from applier.binlog.header import Event
from applier.binlog.images.row_decoder import rows_reader
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import TableMap
from applier.forecast.inventory.facts import TableFacts
from applier.forecast.inventory.key_places import Entry, KeyOrder, Spread, Values, number_of
from applier.forecast.workload.row_counts import image_columns
from lookup.table import Key


class Places(NamedTuple):
    """Of the `rows` of an event: a number for the key by which each is found or written (none for a
    scan), and entries of secondary indexes."""

    keys: list[int]
    entries: list[Entry]
    rows: int


PlacesReader = Callable[[Event], Places]
NOTHING: Spread = Spread()


def indexes_of(facts: TableFacts) -> tuple[Key, ...]:
    """The secondary indexes whose entries have a place; `Entry.number` is a place in this."""
    return tuple(
        key
        for key in facts.definition.secondary_keys
        if key.kind == "btree" and not key.is_functional and not key.multi_valued
    )


@dataclass(frozen=True, slots=True)
class _Index:
    number: int
    columns: tuple[int, ...]
    spread: Spread
    is_lookup: bool


class RowPlaces:
    """Of the rows of one table. `found_by`: the key by which a replica finds them; None for a
    scan."""

    def __init__(self, facts: TableFacts, found_by: Key | None) -> None:
        definition = facts.definition
        self._primary = () if definition.primary is None else tuple(definition.primary.columns)
        self._order: KeyOrder | None = facts.order
        self._found_by = () if found_by is None else tuple(found_by.columns)
        self._by_primary = found_by is not None and self._found_by == self._primary
        self._indexes = [
            _Index(
                at,
                tuple(key.columns),
                facts.spreads.get(key.name, NOTHING),
                found_by is not None and key.name == found_by.name,
            )
            for at, key in enumerate(indexes_of(facts))
        ]

    def reader(self, head: RowsHead, table_map: TableMap) -> PlacesReader | None:
        """A function from events that begin with `head` to their places; None for partial updates
        of JSON, whose images are not whole. Raises InputError for another table's map."""
        if head.partial:
            return None
        first, second = head.images_of(table_map)
        wanted = frozenset(self._primary).union(
            self._found_by, *(index.columns for index in self._indexes)
        )
        old = [at for at in first if at in wanted]
        new = [at for at in second if at in wanted] if head.kind == "update" else []
        before = image_columns(table_map, first, wanted)
        after = image_columns(table_map, second, wanted) if head.kind == "update" else None
        read, length, kind = rows_reader(before, after), head.length, head.kind

        def places(event: Event) -> Places:
            keys: list[int] = []
            entries: list[Entry] = []
            rows = read(event.buffer, event.body + length, event.end)
            for at, image in enumerate(rows):
                if after is None:
                    row = dict(zip(old, image, strict=True))
                    self._row(kind, row, row, keys, entries, event.position + at)
                else:
                    row = dict(zip(old, image[0], strict=True))
                    changed = {**row, **dict(zip(new, image[1], strict=True))}
                    self._row(kind, row, changed, keys, entries, event.position + at)
            return Places(keys, entries, len(rows))

        return places

    def _row(
        self,
        kind: str,
        old: dict[int, Any],
        new: dict[int, Any],
        keys: list[int],
        entries: list[Entry],
        chance: int,
    ) -> None:
        """Adds the places of one row; `chance` stands for a primary key that the image lacks."""
        primary = _values(old, self._primary)
        salt = number_of(primary) if primary else chance
        if kind == "write" or self._by_primary:
            if primary:
                keys.append(self._key(primary))
        elif found_by := _values(old, self._found_by):
            keys.append(number_of(found_by))
        moved = kind == "update" and self._primary != () and primary != _values(new, self._primary)
        for index in self._indexes:
            before, after = _values(old, index.columns), _values(new, index.columns)
            is_changed = kind != "update" or moved or before != after
            if is_changed or index.is_lookup:
                entry = self._entry(index, before, salt, primary)
                is_new = kind == "write"
                entries.append(entry._replace(is_lookup=index.is_lookup, is_new=is_new))
            if is_changed and kind == "update":
                entries.append(self._entry(index, after, salt, primary)._replace(is_new=True))

    def _key(self, primary: Values) -> int:
        return number_of(primary) if self._order is None else self._order.number(primary)

    def _entry(self, index: _Index, values: Values, salt: int, primary: Values) -> Entry:
        if index.spread.follows and self._order is not None and primary:
            return Entry(index.number, float(self._order.number(primary)), follows=True)
        return Entry(index.number, index.spread.place(values, salt))


def _values(row: dict[int, Any], columns: Sequence[int]) -> Values:
    """The values of these columns; empty where the image lacks one."""
    if any(at not in row for at in columns):
        return ()
    return tuple([row[at] for at in columns])
