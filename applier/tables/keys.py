"""Key values and contents of rows, and the sorted and hashed views of a table that are built from
them.

A view is made when a search first asks for it and is kept up by the table from then on, so that a
table that is only ever looked up by its primary key pays for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Protocol

from sortedcontainers import SortedList

from applier.binlog.types import to_text
from applier.tables.collations.collation import SortKey, sort_key
from applier.tables.collations.weight_keys import Incomparable
from lookup.handler import Image, Ref, Row
from lookup.table import Key, KeyPart, TableDefinition

Value = tuple[Any, ...]
Extract = Callable[[Row], Value]


class Descending:
    """Turns the order of a sort key around, for a DESC key part."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Descending):
            return NotImplemented  # _Last, which knows that it is greater
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def picker(columns: tuple[int, ...]) -> Extract:
    """A function that takes `columns` out of a row, as a tuple."""
    if len(columns) == 1:
        (column,) = columns
        return lambda row: (row[column],)
    if not columns:
        return lambda row: ()
    pick: Extract = itemgetter(*columns)
    return pick


def _part_value(
    definition: TableDefinition,
    key: Key,
    part: KeyPart,
    place: int | None,
    expression: Callable[[Row], Any] | None,
) -> Callable[[Row], Any]:
    """The sort key of one key part, read at `place` of a row or image. A nullable part gives () for
    NULL and (key,) else."""
    if part.column is None or place is None:
        assert expression is not None
        evaluate = expression
        return lambda row: () if (value := evaluate(row)) is None else (value,)
    column = definition.columns[part.column]
    convert = sort_key(column, part.prefix)
    value: Callable[[Row], Any]
    if convert is None:
        value = itemgetter(place)
    else:
        value = _sort_key_of_column(definition, key, place, convert)
    if column.nullable:
        plain = value
        value = lambda row: () if row[place] is None else (plain(row),)  # noqa: E731
    if part.descending:
        ascending = value
        value = lambda row: Descending(ascending(row))  # noqa: E731
    return value


def _sort_key_of_column(
    definition: TableDefinition, key: Key, place: int, convert: SortKey
) -> Callable[[Row], Any]:
    def value(row: Row) -> Any:
        try:
            return convert(row[place])
        except Incomparable as error:
            raise error.in_key(key.name, f"{definition.database}.{definition.name}") from None

    return value


def key_extractor(
    definition: TableDefinition,
    key: Key,
    columns: tuple[int, ...] | None = None,
    expressions: Mapping[KeyPart, Callable[[Row], Any]] | None = None,
) -> Extract:
    """A function from a row (or from an image of `columns`) to the key's value: a tuple of sort
    keys, one per part.

    Raises KeyError when a key column is not among `columns`.
    """
    place = {column: column for column in range(len(definition.columns))}
    if columns is not None:
        place = {column: at for at, column in enumerate(columns)}
    parts = []
    plain = []
    for part in key.parts:
        expression = expressions.get(part) if expressions and part.column is None else None
        at = None if part.column is None else place[part.column]
        parts.append(_part_value(definition, key, part, at, expression))
        column = None if part.column is None else definition.columns[part.column]
        if (
            column is not None
            and not column.nullable
            and not part.descending
            and sort_key(column, part.prefix) is None
        ):
            plain.append(at)
    if len(plain) == len(parts):
        return picker(tuple(at for at in plain if at is not None))
    if len(parts) == 1:
        (only,) = parts
        return lambda row: (only(row),)
    if len(parts) == 2:
        first, second = parts
        return lambda row: (first(row), second(row))
    return lambda row: tuple(part(row) for part in parts)


def ref_extractor(
    definition: TableDefinition, key: Key, columns: tuple[int, ...] | None = None
) -> Callable[[Row], Ref]:
    """A function from a row (or image) to the clustered key's ref: the value itself when the key
    has one part."""
    extract = key_extractor(definition, key, columns)
    if len(key.parts) > 1:
        return extract
    (part,) = key.parts
    column = definition.columns[part.column or 0]
    if not part.descending and sort_key(column, part.prefix) is None:
        return itemgetter(part.column if columns is None else columns.index(part.column or 0))
    return lambda row: extract(row)[0]


class View(Protocol):
    """A structure over all rows of a table that follows each change."""

    def add(self, ref: Ref, row: Row) -> None:
        """A row has come."""

    def remove(self, ref: Ref, row: Row) -> None:
        """A row goes; it is as it was when it came."""


class UniqueView:
    """Key value -> ref of one unique key. Values with a NULL in them are not in it: they never
    collide. Implements `View`."""

    __slots__ = ("_extract", "_nullable", "key", "refs")

    def __init__(self, definition: TableDefinition, key: Key, extract: Extract) -> None:
        self.key = key
        self.refs: dict[Value, Ref] = {}
        self._extract = extract
        self._nullable = definition.is_nullable(key)

    def value(self, row: Row) -> Value | None:
        """The row's key value, None when it holds a NULL."""
        value = self._extract(row)
        if self._nullable and any(
            part == () or (isinstance(part, Descending) and part.value == ()) for part in value
        ):
            return None
        return value

    def add(self, ref: Ref, row: Row) -> None:
        value = self.value(row)
        if value is not None:
            self.refs[value] = ref

    def remove(self, ref: Ref, row: Row) -> None:
        value = self.value(row)
        if value is not None:
            del self.refs[value]


class OrderView:
    """All refs of the table in scan order. Implements `View`."""

    __slots__ = ("refs",)

    def __init__(self, refs: Iterable[Ref]) -> None:
        self.refs = SortedList(refs)

    def add(self, ref: Ref, row: Row) -> None:
        self.refs.add(ref)

    def remove(self, ref: Ref, row: Row) -> None:
        self.refs.remove(ref)


class _Last:
    """Greater than everything: the end of a group of equal key values."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


LAST = _Last()


class OrderedView:
    """The entries of one key in index order, as tuples (*value, ref).

    Implements lookup.handler.OrderedKey. Implements `View`.
    """

    __slots__ = ("_definition", "_entries", "_extract", "_extractors", "_key")

    def __init__(
        self,
        definition: TableDefinition,
        key: Key,
        extract: Extract,
        rows: Iterable[tuple[Ref, Row]],
    ) -> None:
        self._definition = definition
        self._key = key
        self._extract = extract
        self._extractors: dict[tuple[int, ...], Extract] = {}
        self._entries = SortedList((*extract(row), ref) for ref, row in rows)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, ref: Ref, row: Row) -> None:
        self._entries.add((*self._extract(row), ref))

    def remove(self, ref: Ref, row: Row) -> None:
        self._entries.remove((*self._extract(row), ref))

    def value_of(self, image: Image, columns: tuple[int, ...]) -> Value:
        if len(columns) == len(self._definition.columns):
            return self._extract(image)
        extract = self._extractors.get(columns)
        if extract is None:
            extract = self._extractors[columns] = key_extractor(
                self._definition, self._key, columns
            )
        return extract(image)

    def group(self, value: Value) -> tuple[int, int]:
        return self._entries.bisect_left(value), self._entries.bisect_left((*value, LAST))

    def rank(self, value: Value, ref: Ref) -> int:
        return int(self._entries.bisect_left((*value, ref)))

    def rank_after(self, value: Value, ref: Ref) -> int:
        return int(self._entries.bisect_right((*value, ref)))

    def ref_at(self, rank: int) -> Ref:
        """The row of the entry at this rank (0-based)."""
        return self._entries[rank][-1]

    def distinct(self) -> int:
        """How many different values there are; groups are skipped, not stepped through."""
        count = at = 0
        width = len(self._key.parts)
        while at < len(self._entries):
            count += 1
            at = self._entries.bisect_left((*self._entries[at][:width], LAST))
        return count


class ContentView:
    """Content of some columns -> the rows that hold it, in scan order.

    One row is kept as its bare ref; only contents that stand more than once pay for a sorted list.

    Implements `View`.
    """

    __slots__ = ("_pick", "_refs", "_whole")

    def __init__(
        self,
        columns: tuple[int, ...],
        width: int,
        rows: Iterable[tuple[Ref, Row]],
        pick: Extract | None = None,
    ) -> None:
        self._whole = columns == tuple(range(width)) and pick is None
        self._pick = pick or picker(columns)
        self._refs: dict[Image, Any] = {}
        for ref, row in rows:
            self.add(ref, row)

    def add(self, ref: Ref, row: Row) -> None:
        content = row if self._whole else self._pick(row)
        held = self._refs.setdefault(content, ref)
        if held is ref:
            return
        if isinstance(held, SortedList):
            held.add(ref)
        else:
            self._refs[content] = SortedList((held, ref))

    def remove(self, ref: Ref, row: Row) -> None:
        content = row if self._whole else self._pick(row)
        held = self._refs[content]
        if not isinstance(held, SortedList):
            del self._refs[content]
            return
        held.remove(ref)
        if len(held) == 1:
            self._refs[content] = held[0]

    def first(self, content: Image) -> Ref | None:
        """The first row in scan order that holds the content."""
        held = self._refs.get(content)
        return held[0] if isinstance(held, SortedList) else held

    def after(self, content: Image, ref: Ref) -> Ref | None:
        """The first one behind this ref."""
        held = self._refs.get(content)
        if not isinstance(held, SortedList):
            return held if held is not None and ref < held else None
        at = held.bisect_right(ref)
        return held[at] if at < len(held) else None

    def all(self, content: Image) -> Iterator[Ref]:
        """All of them in scan order."""
        held = self._refs.get(content)
        if isinstance(held, SortedList):
            yield from held
        elif held is not None:
            yield held


class EqualView:
    """Values of some columns as a key compares them -> the rows that hold them, in scan order.
    Implements `View`."""

    __slots__ = ("_contents", "_fold")

    def __init__(
        self, definition: TableDefinition, columns: tuple[int, ...], rows: Iterable[tuple[Ref, Row]]
    ) -> None:
        keys = [sort_key(definition.columns[at]) for at in columns]
        self._fold = _folder([(lambda value: value) if key is None else key for key in keys])
        pick, fold = picker(columns), self._fold
        self._contents = ContentView(
            columns, len(definition.columns), rows, lambda row: fold(pick(row))
        )

    def add(self, ref: Ref, row: Row) -> None:
        self._contents.add(ref, row)

    def remove(self, ref: Ref, row: Row) -> None:
        self._contents.remove(ref, row)

    def all(self, values: Image) -> Iterator[Ref]:
        """The rows whose columns compare equal to these values."""
        return self._contents.all(self._fold(values))


def _folder(keys: list[Callable[[Any], Any]]) -> Callable[[Image], Image]:
    return lambda values: tuple(
        None if value is None else key(value) for key, value in zip(keys, values, strict=True)
    )


SPARE_CHECKSUMS = 10_000
"""How many contents that no row has any more a table remembers, beyond as many as it has rows."""


class ChecksumView:
    """Checksum of some columns -> the contents that have it.

    Implements `View` and `lookup.handler.Checksums`.

    Contents that have gone are not taken out, since their checksum would have to be worked out
    again; when they are too many, all is forgotten and gathered anew when it is asked for.
    """

    __slots__ = ("_first", "_limit", "_pick", "_rows", "_shared", "_whole", "met", "of")

    def __init__(
        self,
        columns: tuple[int, ...],
        width: int,
        checksum: Callable[[Image], int],
        rows: Mapping[Ref, Row],
    ) -> None:
        self._whole = columns == tuple(range(width))
        self._pick = picker(columns)
        self._rows = rows
        self.of = checksum
        self.met = 0
        self._limit = -1
        """How many checksums there may be; -1: nothing is known."""
        self._first: dict[int, Image] = {}
        """Checksum -> the content that had it first."""
        self._shared: dict[int, dict[Image, None]] = {}
        """Checksum -> contents, where there are several."""

    def add(self, ref: Ref, row: Row) -> None:
        if len(self._first) > self._limit:
            self._forget()
            return
        content = row if self._whole else self._pick(row)
        value = self.of(content)
        first = self._first.setdefault(value, content)
        if first is not content or value in self._shared:
            self._note(value, content)

    def remove(self, ref: Ref, row: Row) -> None:
        """Entries of deleted rows do no harm: contents are compared anyway."""

    def learn(self, contents: list[Image]) -> list[int]:
        if len(self._first) > self._limit:
            self._gather()
        values = list(map(self.of, contents))
        if list(map(self._first.get, values)) != contents:
            for value, content in zip(values, contents, strict=True):
                self._first.setdefault(value, content)
                self._note(value, content)
        return values

    def shared(self, values: Iterable[int]) -> Mapping[int, Iterable[Image]]:
        if not self._shared:
            return {}
        return {value: self._shared[value] for value in self._shared.keys() & values}

    def _note(self, value: int, content: Image) -> None:
        """A content that is not the first with its checksum, or one that has others beside it."""
        first = self._first[value]
        if first != content:
            self._shared.setdefault(value, {first: None})[content] = None
        if value in self._shared:
            self.met += 1

    def _forget(self) -> None:
        self._first.clear()
        self._shared.clear()
        self._limit = -1
        self.met += 1

    def _gather(self) -> None:
        self._forget()
        self._limit = 2 * len(self._rows) + SPARE_CHECKSUMS
        for ref, row in self._rows.items():
            self.add(ref, row)


def key_text(definition: TableDefinition, key: Key, row: Row) -> str:
    """A key's value as the server prints it in error 1062: parts joined by dashes."""
    parts = []
    for part in key.parts:
        if part.column is None:
            parts.append("?")
            continue
        text = to_text(definition.columns[part.column])(row[part.column])
        parts.append(
            "NULL" if text is None else text if part.prefix is None else text[: part.prefix]
        )
    return "-".join(parts)
