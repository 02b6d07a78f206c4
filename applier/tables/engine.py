"""One table in memory, with the handler behaviour of InnoDB or MyISAM.

Rows are kept by *ref*: the clustered key of an InnoDB table with a primary (or promoted) key, the
hidden row id of one without, the slot in the data file of a MyISAM table. Refs sort in scan order.
Lookups by key are dictionary reads; positions come from order statistics (`applier.tables.keys`),
so that what a scan would have read is known without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from applier.binlog.types import to_python
from applier.errors import ReplicationError
from applier.tables.keys import (
    ChecksumView,
    ContentView,
    EqualView,
    Extract,
    OrderedView,
    OrderView,
    UniqueView,
    View,
    key_extractor,
    key_text,
    ref_extractor,
)
from lookup.handler import DuplicateKey, Image, Ref, Row, traits_of
from lookup.table import Key, TableDefinition

MAX_CONTENT_VIEWS = 8
"""Different column sets a table keeps content views, and views of checksums, for; the oldest goes
first."""

_DERIVED = frozenset(
    "_clustered_ref _uniques _views _order _ordered _contents _equal _checksums".split()
)
Change = tuple["MemoryTable", Ref | None, Row | None, Ref | None, Row | None]
"""What undoing needs: table, ref and row before, ref and row after; None where there was or is no
row."""


class References(Protocol):
    """What a table asks of the foreign keys that it has or that point to it. Each raises RowError,
    and then nothing has changed."""

    enabled: bool
    """The rows event that is being applied checks foreign keys."""

    def has_children(self, definition: TableDefinition) -> bool:
        """Whether a foreign key points to the table."""

    def check_parents(self, table: MemoryTable, row: Row) -> None:
        """Before a row is added: whether each foreign key points to a row. Raises
        NoReferencedRow."""

    def row_updated(self, parent: MemoryTable, old: Row, row: Row) -> None:
        """After `old` has become `row`: carries out ON UPDATE, then checks whether each foreign key
        points to a row."""

    def parent_deleted(self, parent: MemoryTable, row: Row, instead: Row | None = None) -> None:
        """After `row` has gone: carries out ON DELETE for the keys to which a row that comes
        `instead` does not give the same values. Raises RowIsReferenced."""


class MemoryTable:
    """One table in memory. Implements lookup.handler.Handler. Not thread-safe.

    A row is a tuple of stored values, one for each column; `rows` hands out Python values instead.
    A ref names a row, and sorts as a scan meets it. What a search would have read is known without
    reading it: O(log n) a search.
    """

    def __init__(self, definition: TableDefinition) -> None:
        traits = traits_of(definition)
        self.definition = definition
        self.traits = traits
        self.journal: list[Change] | None = None
        self.foreign_keys: References | None = None
        self.replaced = False
        """The table went away or changed its name or definition: what was worked out for it no
        longer holds."""
        self._slots = not traits.clustered
        self._counts_free_slots = (
            self._slots
            and definition.engine.lower() == "myisam"
            and not definition.has_dynamic_rows
        )
        self._clustered: Key | None = definition.primary if traits.clustered else None
        self._auto_column = next(
            (at for at, column in enumerate(definition.columns) if column.auto_increment), None
        )
        self._clear()

    def _clear(self) -> None:
        self.auto_increment = 1
        self.had_deletes = False  # so that InnoDB may have pages for it though no row is left
        self._rows: dict[Ref, Row] = {}
        self._next_ref = 0
        self._free_refs: list[int] = []
        self._statistics: dict[str, tuple[int, float]] = {}
        self._derive()

    def _derive(self) -> None:
        """What follows from the definition and the rows: _DERIVED, as without rows."""
        definition = self.definition
        clustered = self._clustered
        self._clustered_ref = None if clustered is None else ref_extractor(definition, clustered)
        self._uniques = [
            UniqueView(definition, key, self._extractor(key))
            for key in definition.sorted_keys
            if key.unique
            and key is not self._clustered
            and key.kind in ("btree", "hash")
            and not key.multi_valued
        ]
        self._views: list[View] = list(self._uniques)
        self._order: OrderView | None = None
        self._ordered: dict[str, OrderedView] = {}
        self._contents: dict[tuple[int, ...], ContentView] = {}
        self._equal: dict[tuple[int, ...], EqualView] = {}
        self._checksums: dict[tuple[tuple[int, ...], bool], ChecksumView] = {}

    def __getstate__(self) -> dict[str, Any]:
        """For another process: without what holds functions."""
        return {name: value for name, value in vars(self).items() if name not in _DERIVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._derive()
        for view in self._uniques:
            for ref, row in self._rows.items():
                view.add(ref, row)

    # reading

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, ref: Ref) -> Row | None:
        """The row of a ref, None when it is gone."""
        return self._rows.get(ref)

    def scan(self) -> Iterator[tuple[Ref, Row]]:
        """(ref, row) in scan order, over the table as it is at the start."""
        rows = self._rows
        for ref in self.refs():
            row = rows.get(ref)
            if row is not None:
                yield ref, row

    def refs(self) -> list[Ref]:
        """All refs in scan order."""
        return list(self._order.refs) if self._order is not None else sorted(self._rows)

    def stored_rows(self) -> list[Row]:
        """The rows as stored values, in scan order."""
        return [self._rows[ref] for ref in self.refs()]

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows in scan order, as tuples of Python values."""
        converters = [to_python(column) for column in self.definition.columns]
        return [
            tuple(convert(value) for convert, value in zip(converters, row, strict=True))
            for row in self.stored_rows()
        ]

    @property
    def unique_keys(self) -> list[Key]:
        """Those of columns whose values one row has at the most."""
        clustered = [] if self._clustered is None else [self._clustered]
        return clustered + [view.key for view in self._uniques if not view.key.is_functional]

    def primary_lookup(self, columns: tuple[int, ...]) -> Callable[[Image], Ref | None]:
        key = self.definition.primary
        assert key is not None
        if self._clustered is None:
            return self.unique_lookup(key, columns)
        extract = ref_extractor(self.definition, key, columns)

        def find(image: Image) -> Ref | None:
            ref = extract(image)
            return ref if ref in self._rows else None

        return find

    def unique_lookup(self, key: Key, columns: tuple[int, ...]) -> Callable[[Image], Ref | None]:
        extract = key_extractor(self.definition, key, columns)
        at = next(at for at, view in enumerate(self._uniques) if view.key is key)
        return lambda image: self._uniques[at].refs.get(extract(image))

    def first_match(self, columns: tuple[int, ...], image: Image) -> Ref | None:
        return self._content(columns).first(image)

    def next_match(self, columns: tuple[int, ...], image: Image, after: Ref) -> Ref | None:
        return self._content(columns).after(image, after)

    def matches(self, columns: tuple[int, ...], image: Image) -> Iterable[Ref]:
        return self._content(columns).all(image)

    def equal(self, columns: tuple[int, ...], values: Image) -> Iterable[Ref]:
        """The rows whose `columns` compare equal to `values`, by their collations, in scan
        order."""
        key = self.definition.primary
        if (
            key is not None
            and key.columns == tuple(sorted(columns))
            and not key.has_prefix
            and self._clustered is key
        ):
            image = tuple(value for _, value in sorted(zip(columns, values, strict=True)))
            ref = self.primary_lookup(key.columns)(image)
            return () if ref is None else (ref,)
        view = self._equal.get(columns)
        if view is None:
            view = self._equal[columns] = EqualView(self.definition, columns, self._rows.items())
            self._views.append(view)
        return view.all(values)

    def checksums(
        self, columns: tuple[int, ...], make: Callable[[], Callable[[Image], int]], *, flags: bool
    ) -> ChecksumView:
        """The checksums of the contents of `columns`, with the function of the first call."""
        view = self._checksums.get((columns, flags))
        if view is None:
            if len(self._checksums) >= MAX_CONTENT_VIEWS:
                self._views.remove(self._checksums.pop(next(iter(self._checksums))))
            view = self._checksums[columns, flags] = ChecksumView(
                columns, len(self.definition.columns), make(), self._rows
            )
            self._views.append(view)
        return view

    def reads_to(self, ref: Ref, after: Ref | None = None, *, free_slots: bool = True) -> int:
        if self._counts_free_slots and free_slots:
            return int(ref) - (-1 if after is None else int(after))
        refs = self._scan_order()
        return (
            int(refs.bisect_left(ref)) + 1 - (0 if after is None else int(refs.bisect_right(after)))
        )

    def reads_to_end(self, after: Ref | None = None, *, free_slots: bool = True) -> int:
        if self._counts_free_slots and free_slots:
            return self._next_ref - (-1 if after is None else int(after))
        refs = self._scan_order()
        return len(refs) + 1 - (0 if after is None else int(refs.bisect_right(after)))

    def ordered(self, key: Key) -> OrderedView:
        view = self._ordered.get(key.name)
        if view is None:
            view = self._ordered[key.name] = OrderedView(
                self.definition, key, self._extractor(key), self._rows.items()
            )
            self._views.append(view)
        return view

    def __repr__(self) -> str:
        """The name, the rows, and the key that finds a single one."""
        key = self.definition.primary
        names = [self.definition.columns[at].name for at in key.columns] if key is not None else []
        what = f"primary key ({', '.join(names)})" if names else "no primary key"
        return f"{self.definition.full_name}: {len(self):,} rows, {what}"

    def rows_per_value(self, key: Key) -> float:
        """Rows of the table over distinct values of the key; 0 for an empty table, as without
        statistics.

        Worked out anew when a tenth of the rows have come or gone, as InnoDB's automatic statistics
        are.
        """
        rows, value = self._statistics.get(key.name, (0, 0.0))
        if abs(len(self._rows) - rows) * 10 > rows:
            view = self.ordered(key)
            rows, value = len(view), len(view) / max(view.distinct(), 1)
            self._statistics[key.name] = rows, value
        return value if self._rows else 0.0

    @property
    def is_referenced(self) -> bool:
        return self.foreign_keys is not None and self.foreign_keys.has_children(self.definition)

    # views of others

    def open(self) -> None:
        """Before its rows are read or changed. Raises ReplicationError where that cannot be."""

    @property
    def is_readable(self) -> bool:
        """Whether `open` lets it be read."""
        return self.why_unreadable is None

    @property
    def why_unreadable(self) -> str | None:
        """The server's words and number, where `open` does not let it be read."""
        try:
            self.open()
        except ReplicationError as error:
            return f"{error.message} ({error.number})"
        return None

    def follow(self, view: View) -> None:
        """The view is told of each change of a row from now on, until TRUNCATE."""
        self._views.append(view)

    def unfollow(self, view: View) -> None:
        """The view is told of no more changes."""
        self._views = [other for other in self._views if other is not view]

    def is_followed(self, view: View) -> bool:
        """Whether the view has been told of everything since `follow`."""
        return any(other is view for other in self._views)

    # changing

    def insert(self, row: Row) -> Ref:
        """Adds a row of stored values; returns its ref. Raises DuplicateKey or NoReferencedRow, and
        then nothing has changed."""
        rows = self._rows
        if self._clustered_ref is not None:
            ref = self._clustered_ref(row)
            if ref in rows:
                raise self._duplicate(self._clustered, ref, row)
        else:
            ref = None
        for unique in self._uniques:
            value = unique.value(row)
            if value is not None and value in unique.refs:
                raise self._duplicate(unique.key, unique.refs[value], row)
        if self.foreign_keys is not None:
            self.foreign_keys.check_parents(self, row)
        if ref is None:
            ref = self._new_ref()
        self._put(ref, row)
        if self.journal is not None:
            self.journal.append((self, None, None, ref, row))
        if self._auto_column is not None:
            self._note_auto_increment(row[self._auto_column])
        return ref

    def update(self, ref: Ref, row: Row) -> Ref:
        """Puts a row in the place of another; returns its ref, which is a new one where the
        clustered key changed. Raises RowError."""
        old = self._rows[ref]
        new_ref = ref if self._clustered_ref is None else self._clustered_ref(row)
        if new_ref != ref and new_ref in self._rows:
            raise self._duplicate(self._clustered, new_ref, row)
        for unique in self._uniques:
            value = unique.value(row)
            if value is not None and unique.refs.get(value, ref) != ref:
                raise self._duplicate(unique.key, unique.refs[value], row)
        self._replace(ref, old, new_ref, row)
        if self.journal is not None:
            self.journal.append((self, ref, old, new_ref, row))
        if self.foreign_keys is not None:
            self.foreign_keys.row_updated(self, old, row)
        return new_ref

    def delete(self, ref: Ref, instead: Row | None = None) -> None:
        """Removes a row. `instead`: as `References.parent_deleted` has it. Raises RowIsReferenced,
        and then nothing has changed."""
        row = self._rows[ref]
        self._remove(ref, row)
        self.had_deletes = True
        if self._slots:
            self._free_refs.append(ref)
        if self.journal is not None:
            self.journal.append((self, ref, row, None, None))
        if self.foreign_keys is not None:
            self.foreign_keys.parent_deleted(self, row, instead)

    def truncate(self) -> None:
        """Removes all rows without a trace for rollback, as the server's TRUNCATE does."""
        self._clear()

    def load(self, rows: Iterable[Row]) -> None:
        """Inserts many rows into the table."""
        insert = self.insert
        for row in rows:
            insert(row)

    def undo(self, change: Change) -> None:
        """Takes back one change of the journal; changes must come back in reverse order."""
        _, ref, row, new_ref, new_row = change
        if new_ref is None or new_row is None:
            self._put(ref, row)
        elif ref is None or row is None:
            self._remove(new_ref, new_row)
        else:
            self._replace(new_ref, new_row, ref, row)

    def redo(self, change: Change) -> None:
        """Makes a change of the journal again, in a table that is as it was before it. What comes
        later finds the same places free."""
        _, ref, row, new_ref, new_row = change
        if new_ref is None or new_row is None:
            assert ref is not None and row is not None
            self._remove(ref, row)
            if self._slots:
                self._free_refs.append(ref)
        elif ref is None or row is None:
            self._put(new_ref, new_row)
            if self._clustered_ref is None:
                self._take_ref(new_ref)
            if self._auto_column is not None:
                self._note_auto_increment(new_row[self._auto_column])
        else:
            self._replace(ref, row, new_ref, new_row)

    def copy(self) -> MemoryTable:
        """An independent table with the same rows. O(rows) for the dictionaries, none for the rows
        themselves."""
        twin = type(self)(self.definition)
        twin._rows = self._rows.copy()
        twin._next_ref = self._next_ref
        twin._free_refs = self._free_refs.copy()
        twin.auto_increment = self.auto_increment
        twin.had_deletes = self.had_deletes
        for own, other in zip(twin._uniques, self._uniques, strict=True):
            own.refs = other.refs.copy()
        return twin

    # inside

    def _put(self, ref: Ref, row: Row | None) -> None:
        assert row is not None
        done = 0
        try:
            for view in self._views:
                view.add(ref, row)
                done += 1
        except ReplicationError:  # a key that cannot be compared
            for view in self._views[:done]:
                view.remove(ref, row)
            raise
        self._rows[ref] = row

    def _remove(self, ref: Ref, row: Row) -> None:
        del self._rows[ref]
        for view in self._views:
            view.remove(ref, row)

    def _replace(self, ref: Ref, old: Row, new_ref: Ref, row: Row) -> None:
        for view in self._views:
            view.remove(ref, old)
        if new_ref != ref:
            del self._rows[ref]
        try:
            self._put(new_ref, row)
        except ReplicationError:
            self._put(ref, old)
            raise

    def _new_ref(self) -> int:
        """The next hidden row id; in a table with slots the slot freed last."""
        if self._free_refs:
            return self._free_refs.pop()
        self._next_ref += 1
        return self._next_ref - 1

    def _take_ref(self, ref: Any) -> None:
        if ref in self._free_refs:
            self._free_refs.remove(ref)
        self._next_ref = max(self._next_ref, ref + 1)

    def _note_auto_increment(self, value: Any) -> None:
        if isinstance(value, int) and value >= self.auto_increment:
            self.auto_increment = value + 1

    def _duplicate(self, key: Key | None, ref: Ref, row: Row) -> DuplicateKey:
        assert key is not None
        return DuplicateKey(key, ref, key_text(self.definition, key, row))

    def _scan_order(self) -> Any:
        if self._order is None:
            self._order = OrderView(self._rows)
            self._views.append(self._order)
        return self._order.refs

    def _content(self, columns: tuple[int, ...]) -> ContentView:
        view = self._contents.get(columns)
        if view is None:
            if len(self._contents) >= MAX_CONTENT_VIEWS:
                self._views.remove(self._contents.pop(next(iter(self._contents))))
            view = self._contents[columns] = ContentView(
                columns, len(self.definition.columns), self._rows.items()
            )
            self._views.append(view)
        return view

    def _extractor(self, key: Key) -> Extract:
        if not key.is_functional:
            return key_extractor(self.definition, key)
        from applier.tables.expressions.row_expressions import key_expression

        expressions = {
            part: key_expression(self.definition, part) for part in key.parts if part.column is None
        }
        return key_extractor(self.definition, key, None, expressions)
