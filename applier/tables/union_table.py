"""A MERGE table in memory: the rows of the tables in its UNION, one table behind the other
(storage/myisammrg of 5.6 to 9.7 and MariaDB).

Its own dictionaries hold the same rows as the tables below, which tell it of each change; so it is
read like any other table. Changes go to the table below, and come back from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from applier.errors import ReplicationError
from applier.tables.engine import MemoryTable
from applier.tables.expressions.operands import unsupported
from applier.tables.merge_tables import defined_alike, insert_place, union_tables
from lookup.handler import DuplicateKey, Image, ReadOnlyTable, Ref, Row
from lookup.table import Key, TableDefinition

Find = Callable[[str, str], MemoryTable | None]


class _Feed:
    """Tells a MERGE table of the changes of one table below. Implements `View`."""

    __slots__ = ("_merge", "_place")

    def __init__(self, merge: UnionTable, place: int) -> None:
        self._merge = merge
        self._place = place

    def add(self, ref: Ref, row: Row) -> None:
        self._merge.row_came((self._place, ref), row)

    def remove(self, ref: Ref, row: Row) -> None:
        self._merge.row_goes((self._place, ref), row)


class UnionTable(MemoryTable):
    """A MERGE table. A ref is (place of the table below, its ref), which is the order of a scan; in
    a key, equal values stand in this order, too (`queue_key_cmp`, myrg_queue.c).

    It is opened when its rows are first asked for, and anew when a table below was replaced. It
    keeps no key unique: only the tables below do, each for itself.
    """

    def __init__(self, definition: TableDefinition) -> None:
        self._below: list[tuple[MemoryTable, _Feed]] = []
        self._is_open = False
        self._gone = False
        self.find: Find = lambda database, name: None
        """The table below of this name; set by the set of tables that this one is in."""
        super().__init__(definition)

    def __getstate__(self) -> dict[str, Any]:
        self._close()
        return super().__getstate__()

    def _derive(self) -> None:
        super()._derive()
        self._uniques = []
        self._views = []

    @property
    def replaced(self) -> bool:
        """Also where a table below was replaced or emptied since this one was opened."""
        return self._gone or (self._is_open and self._is_stale())

    @replaced.setter
    def replaced(self, gone: bool) -> None:
        self._gone = gone
        if gone:
            self._close()

    def _is_stale(self) -> bool:
        return any(
            table.replaced or not table.is_followed(feed) or self._find(name) is not table
            for name, (table, feed) in zip(union_tables(self.definition), self._below, strict=True)
        )

    def _find(self, name: tuple[str, str]) -> MemoryTable | None:
        return self.find(*name)

    def _close(self) -> None:
        for table, feed in self._below:
            table.unfollow(feed)
        self._below = []
        self._is_open = False
        self._clear()

    def open(self) -> None:
        """Raises ReplicationError 1168 where a table below is missing or defined otherwise."""
        if self._is_open and not self._is_stale():
            return
        self._close()
        tables = [self._table_below(name) for name in union_tables(self.definition)]
        for place, table in enumerate(tables):
            feed = _Feed(self, place)
            for ref, row in table.scan():
                feed.add(ref, row)
            table.follow(feed)
            self._below.append((table, feed))
        self._is_open = True

    def _table_below(self, name: tuple[str, str]) -> MemoryTable:
        table = self._find(name)
        if table is not None and defined_alike(self.definition, table.definition):
            return table
        raise ReplicationError(
            1168,
            f"Unable to open underlying table `{name[0]}`.`{name[1]}` of"
            f" {self.definition.full_name}, which is differently defined or of non-MyISAM type or"
            " doesn't exist",
            table=self.definition.full_name,
            hint="drop the MERGE table or give it another UNION, or leave it out with"
            " --exclude-table",
        )

    def row_came(self, ref: Ref, row: Row) -> None:
        """A table below has a row more."""
        self._put(ref, row)

    def row_goes(self, ref: Ref, row: Row) -> None:
        """A table below has a row less."""
        self._remove(ref, row)

    # reading

    def __len__(self) -> int:
        """0 where the table cannot be opened."""
        return super().__len__() if self.is_readable else 0

    def scan(self) -> Iterator[tuple[Ref, Row]]:
        self.open()
        return super().scan()

    def refs(self) -> list[Ref]:
        self.open()
        return super().refs()

    @property
    def auto_increment(self) -> int:
        """The greatest number in the tables below and 1 (`handler::get_auto_increment`)."""
        at = self._auto_column
        numbers = [0] if at is None else [row[at] for row in self._rows.values()]
        return 1 + max((number for number in numbers if isinstance(number, int)), default=0)

    @auto_increment.setter
    def auto_increment(self, value: int) -> None:
        """The tables below have their own."""

    @property
    def unique_keys(self) -> list[Key]:
        """None: several of the tables below may have the same value."""
        return []

    def primary_lookup(self, columns: tuple[int, ...]) -> Callable[[Image], Ref | None]:
        key = self.definition.primary
        assert key is not None
        return self.unique_lookup(key, columns)

    def unique_lookup(self, key: Key, columns: tuple[int, ...]) -> Callable[[Image], Ref | None]:
        """Of several rows with the same value the one in the first table below."""

        def find(image: Image) -> Ref | None:
            entries = self.ordered(key)
            value = entries.value_of(image, columns)
            first, end = entries.group(value)
            return None if first == end else entries.ref_at(first)

        return find

    def reads_to(self, ref: Ref, after: Ref | None = None, *, free_slots: bool = True) -> int:
        place, own = ref
        table = self._table(place)
        if after is None:
            left, start = 0, 0
        elif after[0] == place:
            return table.reads_to(own, after[1], free_slots=free_slots)
        else:
            left, start = self._left_of(after, free_slots), after[0] + 1
        between = self._places(start, place, free_slots)
        return left + between + table.reads_to(own, free_slots=free_slots)

    def reads_to_end(self, after: Ref | None = None, *, free_slots: bool = True) -> int:
        if after is None:
            left, start = 0, 0
        else:
            left, start = self._left_of(after, free_slots), after[0] + 1
        return left + self._places(start, len(self._below), free_slots) + 1

    def _table(self, place: int) -> MemoryTable:
        return self._below[place][0]

    def _left_of(self, after: Ref, free_slots: bool) -> int:
        """What a scan that stands on `after` still reads of its table below. The call that meets
        the end of that goes on to the next (`myrg_rrnd`)."""
        return self._table(after[0]).reads_to_end(after[1], free_slots=free_slots) - 1

    def _places(self, start: int, end: int, free_slots: bool) -> int:
        """What a scan reads of the tables below from `start` up to `end`."""
        tables = [table for table, _ in self._below[start:end]]
        return sum(table.reads_to_end(free_slots=free_slots) - 1 for table in tables)

    # changing

    def insert(self, row: Row) -> Ref:
        """Into the table that INSERT_METHOD names. Raises RowError."""
        self.open()
        place = insert_place(self.definition)
        if place is None or not self._below:
            raise ReadOnlyTable(f"Table '{self.definition.name}' is read only")
        place %= len(self._below)
        return place, self._carry(place, lambda table: table.insert(row))

    def update(self, ref: Ref, row: Row) -> Ref:
        place, own = ref
        return place, self._carry(place, lambda table: table.update(own, row))

    def delete(self, ref: Ref, instead: Row | None = None) -> None:
        place, own = ref
        self._carry(place, lambda table: table.delete(own))

    def _carry(self, place: int, change: Callable[[MemoryTable], Any]) -> Any:
        """A change of a table below; a key that refuses it is the one at the same place here."""
        table, name = self._table(place), self.definition.full_name
        try:
            return change(table)
        except DuplicateKey as refused:
            at = table.definition.sorted_keys.index(refused.key)
            keys = self.definition.sorted_keys
            if at < len(keys):
                refused.key, refused.ref = keys[at], (place, refused.ref)
                raise
            raise unsupported(f"a row in the way by a key that {name} does not have") from None

    def truncate(self) -> None:
        """Empties the tables below."""
        self.open()
        tables = [table for table, _ in self._below]
        self._close()
        for table in tables:
            table.truncate()

    def copy(self) -> MemoryTable:
        return type(self)(self.definition)
