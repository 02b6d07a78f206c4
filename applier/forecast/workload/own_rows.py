"""How often the log's changes meet rows that the log wrote itself, where those stand last.

A table of InnoDB without a key that it could be ordered by keeps its rows in the order in which
they were written (a hidden row ID), and so do the entries of one value of its secondary keys. A row
that the log wrote stands behind those that were there before: a scan reads nearly the whole table
for it, an index nearly all rows of its value, twice as many as for a row that stands anywhere.
Applications that delete a row and write it again, as sysbench's oltp_write_only does with 1,000 of
its 100,000 rows most of the time, meet such rows more often than others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sortedcontainers import SortedList

from applier.binlog.events import Query
from applier.binlog.header import Event
from applier.binlog.images.row_decoder import rows_reader
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import TableMap
from applier.errors import InputError
from applier.forecast.inventory.facts import OwnRows, TableFacts
from applier.forecast.workload.row_counts import image_columns
from applier.forecast.workload.sampled_rows import ForEachHead, beginning
from applier.forecast.workload.table_fates import TableFate
from lookup.table import TableDefinition

FEWEST_CHANGES = 100
"""Of a table's rows: fewer say little."""
TOLD_SHARE = 0.05
ImageRows = Callable[[Event], Iterable[Any]]


def stands_as_written(definition: TableDefinition) -> bool:
    """Whether rows of the table stand in the order in which they were written."""
    unique = (
        key.unique and not key.has_prefix and not definition.is_nullable(key)
        for key in definition.keys
    )
    return definition.engine.lower() == "innodb" and not any(unique)


def with_own_rows(
    facts: Mapping[str, TableFacts], files: Sequence[str]
) -> tuple[dict[str, TableFacts], list[str]]:
    """(The tables with the share of changes that meet rows of the log's own, what is to be said of
    it). What cannot be read twice, or at all, shows nothing."""
    found = dict(facts)
    in_log = [name for name, one in facts.items() if one.in_log]
    names = {name for name in in_log if stands_as_written(facts[name].definition)}
    if not names:
        return found, []
    seen = OwnRowsReader(names)
    with suppress(InputError, OSError):
        seen.read(files)
    said = []
    for name, share, own in seen.found():
        found[name] = replace(found[name], own_rows=own)
        if share >= TOLD_SHARE:
            said.append(
                f"{share:.0%} of the changes of {name} meet rows that the log itself wrote, "
                "which stand behind those that were there before"
            )
    return found, said


class OwnRowsReader:
    """The rows that a log has written into these tables and not deleted."""

    def __init__(self, tables: Collection[str]) -> None:
        self._rows = {name: _OwnTable() for name in tables}
        self._readers = ForEachHead(whole_rows)

    def found(self) -> Iterator[tuple[str, float, dict[str, OwnRows]]]:
        """Tables of which enough changes were seen, if any met a row of the log's own; or any
        changes, if all did. The share of their changes that do, and those of each kind: what is
        deleted may stand elsewhere than what is updated."""
        for name, one in self._rows.items():
            changes, met, _ = map(sum, zip(*one.tallies.values(), strict=True))
            if met and (changes >= FEWEST_CHANGES or met == changes):
                kinds = {
                    kind: OwnRows(own / changed, behind / own)
                    for kind, (changed, own, behind) in one.tallies.items()
                    if own
                }
                yield name, met / changes, kinds

    def read(self, files: Sequence[str]) -> None:
        """The beginning of a log. Raises InputError, OSError."""
        for event, head, table_map in beginning(files, self._follow):
            if table_map.full_name in self._rows:
                self._take(event, head, table_map)

    def _follow(self, _event: Event, _query: Query, fates: Iterable[TableFate]) -> None:
        """Tables are emptied, or their rows come along to another name."""
        for fate in fates:
            if fate.renamed_to in self._rows:
                self._rows[fate.renamed_to].take_over(self._rows.get(fate.table))
            for name in filter(fate.empties, self._rows):
                self._rows[name].empty()

    def _take(self, event: Event, head: RowsHead, table_map: TableMap) -> None:
        read = self._readers.of(head, table_map)
        if read is None:  # images that are not whole tell no rows apart
            del self._rows[table_map.full_name]
            return
        table = self._rows[table_map.full_name]
        for row in read(event):
            if head.kind == "write":
                table.write(row)
            elif head.kind == "update":
                table.change(*row)
            else:
                table.change(row, None)


class _OwnTable:
    """The rows that a log has written into a table, in that order."""

    def __init__(self) -> None:
        self.tallies = {"update": [0, 0, 0], "delete": [0, 0, 0]}
        """Kind -> changed rows, those of them that the log had written, what stood behind those."""
        self._places: dict[int, list[int]] = {}
        """Hash of a row -> when it was written; the first of several that are alike is found
        first."""
        self._order = SortedList[int]()
        self._written = 0

    def empty(self) -> None:
        """None of its rows is there any more."""
        self._places, self._order = {}, SortedList[int]()

    def take_over(self, other: _OwnTable | None) -> None:
        """The rows are those of another table; of one that is not followed none are known."""
        self.empty()
        if other is not None:
            self._places, self._order = other._places, other._order
            self._written = other._written

    def write(self, row: Any) -> None:
        self._places.setdefault(hash(row), []).append(self._written)
        self._order.add(self._written)
        self._written += 1

    def change(self, before: Any, after: Any) -> None:
        """Deletes a row (`after` None), or makes another of it, which keeps its place."""
        tally = self.tallies["delete" if after is None else "update"]
        tally[0] += 1
        places = self._places.get(hash(before))
        if places is None:
            return
        place = places.pop(0)
        if not places:
            del self._places[hash(before)]
        tally[1] += 1
        tally[2] += len(self._order) - 1 - self._order.index(place)
        if after is None:
            self._order.remove(place)
        else:
            self._places.setdefault(hash(after), []).append(place)


def whole_rows(head: RowsHead, table_map: TableMap) -> ImageRows | None:
    """A function from events that begin with `head` to their rows, each a tuple of all values, or a
    pair of them. None where an image lacks a column."""
    first, second = head.images_of(table_map)
    images = (first, second) if head.kind == "update" else (first,)
    every = frozenset(range(len(table_map.columns)))
    if head.partial or any(frozenset(image) != every for image in images):
        return None
    columns = [image_columns(table_map, image, every) for image in images]
    read, length = rows_reader(*columns), head.length
    return lambda event: read(event.buffer, event.body + length, event.end)
