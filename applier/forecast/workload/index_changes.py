"""How many secondary indexes the log's updates change, from a sample of their images.

A changed index costs two entries, one marked as deleted and one written somewhere else, so an
update of an indexed column is far dearer than one of another column. What reads the whole log
counts rows and does not compare images; a few stretches of it are enough for a mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from applier.binlog.header import Event
from applier.binlog.images.row_decoder import rows_reader
from applier.binlog.reader import LogReader
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import TableMap
from applier.errors import InputError
from applier.forecast.inventory.facts import TableFacts
from applier.forecast.inventory.key_places import FEWEST_VALUES, Spread, Values, spread_of
from applier.forecast.workload.found_by import FoundBy
from applier.forecast.workload.full_text import FullText
from applier.forecast.workload.long_rows import LongRows
from applier.forecast.workload.row_counts import image_columns
from applier.forecast.workload.sampled_rows import (
    STRETCH_BYTES,
    ForEachHead,
    Row,
    before_and_after,
    can_be_read_again,
    rows_events,
    size_of,
    stretches,
)
from applier.sources import MAGIC_BYTES, open_at, packing
from lookup.table import TableDefinition

PRIMARY = "PRIMARY"
ImageValues = Callable[[Event], Iterator[tuple[Values, dict[str, Values]]]]
"""The primary key and the values of each secondary index of rows, as far as the images have
them."""
Move = tuple[Values, Values]
"""The values of an index before and after; empty where an image lacks one."""
Changed = Callable[[Event], Iterator[dict[str, Move]]]
"""The secondary indexes that each row of an event changes."""


class Sampled(NamedTuple):
    """The tables with what a sample of the log shows of them, and the names of all tables that it
    changes."""

    facts: dict[str, TableFacts]
    changed: frozenset[str]


def with_index_changes(
    facts: Mapping[str, TableFacts], files: Sequence[str], found_by: FoundBy | None = None
) -> Sampled:
    """`found_by` is shown the sample's events, too. What cannot be read twice (a pipe) or at all
    shows nothing: who reads the whole log says why."""
    found = dict(facts)
    wanted = {name: one.definition for name, one in facts.items() if one.definition.secondary_keys}
    sample = _Sample(wanted, found_by)
    with suppress(InputError, OSError):
        readable = [file for file in files if can_be_read_again(file)]
        sample.log_bytes = sum(map(size_of, readable))
        for path, start in stretches(readable):
            sample.read(path, start)
    for name in sample.met & facts.keys():
        found[name] = replace(found[name], in_log=True)
    for name, changes in sample.index_changes().items():
        found[name] = replace(found[name], index_changes=changes)
    for name, rows in sample.rows.items():
        found[name] = replace(found[name], log_updates=rows * sample.stands_for)
    for name, rows in sample.others.items():
        found[name] = replace(found[name], log_others=rows * sample.stands_for)
    for name, shares in sample.long_rows.shares().items():
        if name in found:
            found[name] = replace(found[name], long_shares=shares)
    for name, texts in sample.full_text.texts().items():
        found[name] = replace(found[name], texts=texts)
    for name, spreads in sample.spreads().items():
        stays = sample.stays(name, spreads, facts[name].leaf_pages)
        found[name] = replace(found[name], spreads=spreads, index_stays=stays)
    return Sampled(found, frozenset(sample.met))


def log_bytes(files: Sequence[str]) -> float:
    """Of a log in these files; without end where one can be read once only, or is packed."""
    with suppress(InputError, OSError):
        if all(map(can_be_read_again, files)):
            return sum(map(_unpacked_size, files))
    return inf


def _unpacked_size(file: str) -> float:
    with closing(open_at(file)) as opened:
        return inf if packing(opened.read_at(MAGIC_BYTES, 0)) is not None else opened.size


class _Sample:
    """What the updates of these tables, which have secondary indexes, change, as far as they were
    read."""

    def __init__(self, tables: Mapping[str, TableDefinition], found_by: FoundBy | None) -> None:
        self.tables, self._found_by = tables, found_by
        self.met = set[str]()
        """All tables whose rows are changed."""
        self.rows = Counter[str]()
        """Table -> rows of updates whose images could be compared."""
        self.others = Counter[str]()
        """Table -> rows that are written or deleted."""
        self.long_rows, self.full_text = LongRows(), FullText(tables)
        self.log_bytes = self._read_bytes = 0
        self._moves: dict[tuple[str, str], list[Move]] = {}
        """(Table, index) -> the updates that change it."""
        self._pairs: dict[tuple[str, str, bool], list[tuple[Values, Values]]] = {}
        """(Table, index, whether rows are new) -> (primary key, value) of rows."""
        self._readers = ForEachHead(self._values_reader)
        self._changed = ForEachHead(self._changes_reader)

    def read(self, path: str, start: int | None) -> None:
        """The updates of one stretch. Raises InputError, OSError."""
        reader = LogReader([path], start_position=start)
        for event, head, table_map in rows_events(reader, STRETCH_BYTES, self._count_bytes):
            self._rows(event, head, table_map)

    def _count_bytes(self, event: Event) -> None:
        self._read_bytes += event.length * (event.inner_index < 0)

    @property
    def stands_for(self) -> float:
        """How many times the sample the whole log is. A compressed file, whose size says little, is
        as large as what was read of it at least."""
        return max(self.log_bytes / max(self._read_bytes, 1), 1.0)

    def index_changes(self) -> dict[str, dict[str, float]]:
        """Table -> secondary index -> the share of updates that change it."""
        return {
            table: {
                key.name: len(self._moves.get((table, key.name), ())) / rows
                for key in self.tables[table].secondary_keys
            }
            for table, rows in self.rows.items()
        }

    def stays(
        self, table: str, spreads: Mapping[str, Spread], leaf_pages: Mapping[str, float]
    ) -> dict[str, float]:
        """Secondary index -> the share of a table's updates that move its entry within one of its
        leaves, for indexes whose leaves are known."""
        return {
            index: sum(spread.share_page(*move, leaf_pages[index]) for move in moves)
            / self.rows[table]
            for index, spread in spreads.items()
            if index in leaf_pages and (moves := self._moves.get((table, index)))
        }

    def spreads(self) -> dict[str, dict[str, Spread]]:
        """Table -> secondary index -> where its values stand: by rows that were there before, or
        by new ones where those are few."""
        found: dict[str, dict[str, Spread]] = {}
        for table, index in dict.fromkeys(one[:2] for one in self._pairs):
            old, new = (
                self._pairs.get((table, index, False), []),
                self._pairs.get((table, index, True), []),
            )
            pairs = old if len(old) >= FEWEST_VALUES else old + new
            if len(pairs) >= FEWEST_VALUES:
                found.setdefault(table, {})[index] = spread_of(pairs)
        return found

    def _rows(self, event: Event, head: RowsHead, table_map: TableMap) -> None:
        self.met.add(table_map.full_name)
        self.long_rows.take(event, head, table_map)
        if table_map.full_name not in self.tables:
            return
        if head.kind == "update":
            self._update(event, head, table_map)
        self.full_text.take(event, head, table_map)
        self._values(event, head, table_map)
        if self._found_by is not None and head.kind != "write":
            self._found_by.take(event, head, table_map)

    def _values(self, event: Event, head: RowsHead, table_map: TableMap) -> None:
        """Keeps the values of indexes of an event's first images."""
        read = self._readers.of(head, table_map)
        if read is None:
            return
        for primary, values in read(event):
            self.others[table_map.full_name] += head.kind != "update"
            for index, value in values.items():
                place = table_map.full_name, index, head.kind == "write"
                self._pairs.setdefault(place, []).append((primary, value))

    def _values_reader(self, head: RowsHead, table_map: TableMap) -> ImageValues | None:
        return image_values(head, table_map, _index_columns(self.tables[table_map.full_name]))

    def _changes_reader(self, head: RowsHead, table_map: TableMap) -> Changed | None:
        return changed_indexes(head, table_map, self.tables[table_map.full_name])

    def _update(self, event: Event, head: RowsHead, table_map: TableMap) -> None:
        name = table_map.full_name
        if (changed := self._changed.of(head, table_map)) is not None:
            for moves in changed(event):
                self.rows[name] += 1
                for index, move in moves.items():
                    self._moves.setdefault((name, index), []).append(move)


def changed_indexes(
    head: RowsHead, table_map: TableMap, definition: TableDefinition
) -> Changed | None:
    """A function from updates that begin with `head` to the secondary indexes that each row
    changes. None for partial updates of JSON, whose images are not whole. Raises InputError for
    another table's map."""
    keys = {key.name: tuple(key.columns) for key in definition.secondary_keys}
    primary = frozenset(() if definition.primary is None else definition.primary.columns)
    wanted = frozenset[int]().union(primary, *keys.values())
    read = before_and_after(head, table_map, wanted)
    if read is None:
        return None

    def of_row(was: Row, written: Row) -> dict[str, Move]:
        differing, now = _differing(was, written.items()), {**was, **written}
        moves = not differing.isdisjoint(primary)
        return {
            name: (_values_at(key, was), _values_at(key, now))
            for name, key in keys.items()
            if moves or not differing.isdisjoint(key)
        }

    def changed(event: Event) -> Iterator[dict[str, Move]]:
        for row in read(event):
            yield of_row(*row)

    return changed


def _values_at(columns: Sequence[int], row: Mapping[int, Any]) -> Values:
    """Empty where the row lacks one of them."""
    return tuple(row[at] for at in columns) if all(at in row for at in columns) else ()


def _index_columns(definition: TableDefinition) -> dict[str, tuple[int, ...]]:
    """Secondary index -> its columns; the primary key has the name PRIMARY."""
    found = {key.name: tuple(key.columns) for key in definition.secondary_keys}
    return found | {
        PRIMARY: () if definition.primary is None else tuple(definition.primary.columns)
    }


def image_values(
    head: RowsHead, table_map: TableMap, columns: Mapping[str, Sequence[int]]
) -> ImageValues | None:
    """A function from events that begin with `head` to the values in the first image of each row.
    None for partial updates of JSON. Raises InputError for another table's map."""
    if head.partial:
        return None
    first, second = head.images_of(table_map)
    wanted = frozenset[int]().union(*columns.values())
    kept = [at for at in first if at in wanted]
    after = image_columns(table_map, second, frozenset()) if head.kind == "update" else None
    read, length = rows_reader(image_columns(table_map, first, wanted), after), head.length
    whole = {name: at for name, at in columns.items() if set(at) <= set(first)}

    def values(event: Event) -> Iterator[tuple[Values, dict[str, Values]]]:
        for image in read(event.buffer, event.body + length, event.end):
            row = dict(zip(kept, image if after is None else image[0], strict=True))
            found = {name: tuple([row[one] for one in at]) for name, at in whole.items()}
            yield found.pop(PRIMARY, ()), found

    return values


def _differing(before: Mapping[int, Any], after: Iterable[tuple[int, Any]]) -> set[int]:
    """Columns that have another value; one that the before image leaves out is there because it
    was changed (binlog_row_image MINIMAL)."""
    return {at for at, value in after if at not in before or before[at] != value}
