"""How many rows share the values of a key that a log's changes look up, where the log wrote those
rows itself and nobody else can count them: a job fills a table and changes it batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from applier.binlog.events import Query
from applier.binlog.header import Event
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import TableMap
from applier.errors import InputError
from applier.forecast.inventory.key_places import Values
from applier.forecast.inventory.value_counts import Counted, TableKey
from applier.forecast.workload.own_rows import whole_rows
from applier.forecast.workload.sampled_rows import ForEachHead, beginning
from applier.forecast.workload.schema import Schema
from applier.forecast.workload.table_fates import TableFate
from lookup.table import Key

Move = tuple[Values | None, Values | None]
MOST_OTHERS = 0.1
"""Of look-ups, those of rows that the log did not write."""


def with_own_values(counted: Counted, schema: Schema, files: Sequence[str]) -> Counted:
    """Of tables of which nobody knows the rows: those that the log has written by then with the
    value of a changed row, at least one, on average over what the beginning of the log looks up.
    The key still counts as uncounted where many of the rows that are changed are others. `schema`:
    of `counted.facts`."""
    facts = dict(counted.facts)
    seen = _OwnValues(schema)
    if not seen.tables:
        return counted
    with suppress(InputError, OSError):  # who reads the whole log says why
        seen.read(files)
    known = set[TableKey]()
    for table, one in seen.tables.items():
        is_known = one.looked_up > 0 and one.others <= MOST_OTHERS * one.looked_up
        if is_known or one.met > one.looked_up:
            facts[table] = replace(facts[table], met={**facts[table].met, one.key.name: one.mean})
        if is_known:
            known.add((table, one.key.name))
    left = [one for one in counted.uncounted if one not in known]
    return counted._replace(facts=facts, uncounted=left)


class _KeyRows:
    """The rows that the log has written into a table of so many columns, by their values of one
    key."""

    def __init__(self, key: Key, columns: int) -> None:
        self.key, self.columns = key, columns
        self.rows = Counter[Values]()
        self.moves: list[Move] = []
        """Of the statement at hand."""
        self.looked_up = self.met = self.others = 0
        """Look-ups, the rows that those values had, and look-ups of rows that the log did not
        write."""

    @property
    def mean(self) -> float:
        """Rows of a value that is looked up."""
        return self.met / self.looked_up

    def value(self, row: Sequence[Any]) -> Values:
        return tuple([row[at] for at in self.key.columns])

    def take_over(self, other: _KeyRows | None) -> None:
        """The rows are those of another table; of one with another key, or that is not followed,
        none are known."""
        is_alike = other is not None and other.key.columns == self.key.columns
        self.rows = other.rows if other is not None and is_alike else Counter()

    def look_up(self, value: Values) -> None:
        there = self.rows[value]
        self.looked_up += 1
        self.met += max(there, 1)
        self.others += there <= 0

    def settle(self) -> None:
        """The rows are those behind the statement: in front of it stood those that it goes
        through."""
        for before, after in self.moves:
            if before is not None:
                self.rows[before] -= 1
            if after is not None:
                self.rows[after] += 1
        self.moves.clear()


class _OwnValues:
    """Shown the beginning of a log, it follows the rows of tables that are found by a key whose
    values nobody counted."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.tables: dict[str, _KeyRows] = {}
        for table, one in schema.facts.items():
            whole = tuple(range(len(one.definition.columns)))
            key = schema.key_of(table, whole) if one.rows is None else None
            if key is not None and not one.known(key):
                self.tables[table] = _KeyRows(key, len(whole))
        self._rows = ForEachHead(whole_rows)
        self._hashes = ForEachHead(self._looks_up_at_once)

    def read(self, files: Sequence[str]) -> None:
        """Raises InputError, OSError."""
        for event, head, table_map in beginning(files, self._follow):
            table = self.tables.get(table_map.full_name)
            if table is not None:
                self._take(table, event, head, table_map)

    def _follow(self, _event: Event, _query: Query, fates: Iterable[TableFate]) -> None:
        """Tables are emptied, or their rows come along to another name."""
        for fate in fates:
            if fate.renamed_to in self.tables:
                self.tables[fate.renamed_to].take_over(self.tables.get(fate.table))
            for name in filter(fate.empties, self.tables):
                self.tables[name].rows = Counter()

    def _take(self, table: _KeyRows, event: Event, head: RowsHead, table_map: TableMap) -> None:
        if len(table_map.columns) != table.columns:
            return  # before or behind the definition that is followed
        read = self._rows.of(head, table_map)
        if read is None:  # images that are not whole tell no rows apart
            del self.tables[table_map.full_name]
            return
        moves = [_values(table, head.kind, row) for row in read(event)]
        befores = [before for before, _ in moves if before is not None]
        at_once = self._hashes.of(head, table_map)
        for value in dict.fromkeys(befores) if at_once else befores:
            table.look_up(value)
        table.moves += moves
        if at_once or head.ends_statement:
            table.settle()

    def _looks_up_at_once(self, head: RowsHead, table_map: TableMap) -> bool:
        """Whether each value of an event is looked up once."""
        decision = self._schema.decision_of(table_map.full_name, head.columns()[1])
        return decision is not None and decision.strategy is not None and decision.strategy.hashes


def _values(table: _KeyRows, kind: str, row: Any) -> Move:
    """The key's values before and after an event; None where there is no row."""
    if kind == "update":
        before, after = row
        return table.value(before), table.value(after)
    return (None, table.value(row)) if kind == "write" else (table.value(row), None)
