"""A storage engine as the row lookup sees it.

The server's handler is stepwise: rnd_next, index_next_same, one call a row, each call counted. An
engine in memory can tell *where* a row stands without stepping over the rows before it, so this
contract speaks of positions instead: how many rows does a scan read until it meets this row? The
searches add those distances to the counters. What a real server pays in reads is then exact to the
row and costs O(log n).

A *ref* names a row inside its table and sorts in scan order: the clustered key, the hidden row id,
or the slot in the data file. It is opaque to the searches but for its order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from lookup.table import Key, TableDefinition

Ref = Any
"""Comparable and hashable; None never names a row."""

Row = tuple[Any, ...]
"""One stored value per local column."""

Image = tuple[Any, ...]
"""The stored values of the columns that an image holds, in local column order."""


class Counters:
    """The server's Handler_* status counters, in handler calls. An instance holds those that moved;
    the others are zero."""

    read_first: int = 0
    read_key: int = 0
    read_next: int = 0
    read_rnd: int = 0
    read_rnd_next: int = 0
    write: int = 0
    update: int = 0
    delete: int = 0

    def add(self, other: Counters) -> None:
        """Takes in the calls of another part of the work."""
        if other.read_first:
            self.read_first += other.read_first
        if other.read_key:
            self.read_key += other.read_key
        if other.read_next:
            self.read_next += other.read_next
        if other.read_rnd:
            self.read_rnd += other.read_rnd
        if other.read_rnd_next:
            self.read_rnd_next += other.read_rnd_next
        if other.write:
            self.write += other.write
        if other.update:
            self.update += other.update
        if other.delete:
            self.delete += other.delete

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counters) and self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        counts = (f"{name}={count}" for name, count in self.as_dict().items() if count)
        return f"Counters({', '.join(counts)})"

    def as_dict(self) -> dict[str, int]:
        """Calls by counter, those that stand at zero too; the names are the server's without
        `Handler_`."""
        return {name: getattr(self, name) for name in COUNTER_NAMES}

    @property
    def rows_read(self) -> int:
        """Rows (and misses) that the engine was asked for while searching.

        A primary key lookup of InnoDB counts twice in the server (read_rnd and read_key) but reads
        one row.
        """
        return (
            max(self.read_key - self.read_rnd - self.read_first, 0)
            + self.read_next
            + self.read_rnd
            + self.read_rnd_next
        )


COUNTER_NAMES = tuple(Counters.__annotations__)


@dataclass(frozen=True, slots=True)
class EngineTraits:
    """What the searches need to know of a storage engine."""

    clustered: bool = False
    """HA_PRIMARY_KEY_REQUIRED_FOR_POSITION: a row is fetched by its primary key as by its position
    (InnoDB)."""
    stores_rows: bool = True
    transactional: bool = False
    duplicate_position: bool = False
    """HA_DUPLICATE_POS: a refused insert tells the position of the row in the way (MyISAM)."""
    foreign_keys: bool = False
    """HTON_SUPPORTS_FOREIGN_KEYS; elsewhere a foreign key is read, gets its index, and is
    forgotten."""
    spatial_finds_nothing: bool = False
    """A SPATIAL key that is read for a single value finds no row (InnoDB)."""
    bulk_inserts: bool = False
    """`ServerRules.bulk_inserts` are its own (InnoDB)."""
    shows_others: bool = False
    """The rows stand in other tables (MERGE)."""


ENGINES: dict[str, EngineTraits] = {
    "innodb": EngineTraits(
        clustered=True,
        transactional=True,
        foreign_keys=True,
        spatial_finds_nothing=True,
        bulk_inserts=True,
    ),
    "rocksdb": EngineTraits(clustered=True, transactional=True),
    "myisam": EngineTraits(duplicate_position=True),
    "aria": EngineTraits(duplicate_position=True),
    "memory": EngineTraits(duplicate_position=True),
    "blackhole": EngineTraits(stores_rows=False),
    "archive": EngineTraits(),
    "csv": EngineTraits(),
    "merge": EngineTraits(duplicate_position=True, shows_others=True),
    "mrg_myisam": EngineTraits(duplicate_position=True, shows_others=True),
}


def engine_traits(engine: str) -> EngineTraits:
    """The traits of an engine; one that is not known counts as InnoDB, the server's default."""
    return ENGINES.get(engine.lower(), ENGINES["innodb"])


def traits_of(definition: TableDefinition) -> EngineTraits:
    """The traits of the table's engine."""
    return engine_traits(definition.engine)


class RowError(Exception):
    """The engine refused to change a row. `number` is the server's error, `handler_error` its
    HA_ERR_ name."""

    number = 0
    handler_error = ""


class DuplicateKey(RowError):
    """A unique key already holds the value; `ref` is the row that holds it."""

    number = 1062
    handler_error = "HA_ERR_FOUND_DUPP_KEY"

    def __init__(self, key: Key, ref: Ref, value: str = "") -> None:
        super().__init__(f"Duplicate entry '{value}' for key '{key.name}'")
        self.key = key
        self.ref = ref


class ReadOnlyTable(RowError):
    """The table takes no new rows: a MERGE table without an INSERT_METHOD."""

    number = 1036
    handler_error = "HA_ERR_TABLE_READONLY"


class NoReferencedRow(RowError):
    """A foreign key of the row points to no row."""

    number = 1452
    handler_error = "HA_ERR_NO_REFERENCED_ROW"


class RowIsReferenced(RowError):
    """A foreign key of another row points to this one."""

    number = 1451
    handler_error = "HA_ERR_ROW_IS_REFERENCED"


class CascadeTooDeep(RowError):
    """ON DELETE or ON UPDATE goes through more rows, one after the other, than InnoDB follows."""

    number = 3008
    handler_error = "HA_ERR_FK_DEPTH_EXCEEDED"


class OrderedKey(Protocol):
    """The entries of one key in index order: by key value, then by ref.

    Key values are sort keys: equal when the column's collation says so, NULL smallest.
    """

    def value_of(self, image: Image, columns: tuple[int, ...]) -> tuple[Any, ...]:
        """The key value that the image would be looked up with; every key column must be among
        `columns`."""

    def group(self, value: tuple[Any, ...]) -> tuple[int, int]:
        """Ranks (0-based, end exclusive) of the entries with this key value; equal when there are
        none. O(log n)."""

    def rank(self, value: tuple[Any, ...], ref: Ref) -> int:
        """How many entries stand before (value, ref). O(log n)."""

    def rank_after(self, value: tuple[Any, ...], ref: Ref) -> int:
        """How many entries stand before or on (value, ref), whether it is still there or not. O(log
        n)."""

    def __len__(self) -> int: ...


class Checksums(Protocol):
    """Which contents of some columns have the same checksum: those of the table's rows, and those
    that `learn` got."""

    @property
    def of(self) -> Callable[[Image], int]:
        """The checksum of a content."""

    @property
    def met(self) -> int:
        """Rises when a row comes that may have the checksum of another content; as long as it
        stands still none has come."""

    def learn(self, contents: list[Image]) -> list[int]:
        """Takes in the before images of an event. Returns their checksums."""

    def shared(self, values: Iterable[int]) -> Mapping[int, Iterable[Image]]:
        """Those of the checksums that several contents have, with these contents, some of which may
        have gone."""


class Handler(Protocol):
    """One open table. Raises RowError from the three methods that change rows; a refused change
    leaves no trace."""

    definition: TableDefinition
    traits: EngineTraits

    @property
    def is_referenced(self) -> bool:
        """Whether a foreign key of any table points to this one."""

    def get(self, ref: Ref) -> Row | None:
        """The row, or None when there is none (any more). O(1)."""

    def primary_lookup(self, columns: tuple[int, ...]) -> Callable[[Image], Ref | None]:
        """A function from images of `columns` to the row with that primary (or promoted) key value.
        O(1) a call."""

    def unique_lookup(self, key: Key, columns: tuple[int, ...]) -> Callable[[Image], Ref | None]:
        """The same for another unique key; a value with a NULL in it finds nothing. O(1) a call."""

    def first_match(self, columns: tuple[int, ...], image: Image) -> Ref | None:
        """The first row in scan order whose `columns` equal the image byte for byte. O(1)."""

    def next_match(self, columns: tuple[int, ...], image: Image, after: Ref) -> Ref | None:
        """The first such row behind `after`. O(log n)."""

    def matches(self, columns: tuple[int, ...], image: Image) -> Iterable[Ref]:
        """All such rows in scan order."""

    def checksums(
        self, columns: tuple[int, ...], make: Callable[[], Callable[[Image], int]], *, flags: bool
    ) -> Checksums:
        """The checksums of the contents of `columns`; built at first use with the function that
        `make` makes, kept up from then on.

        `flags` says which of two functions for these columns it is: whether NULL flags are in the
        checksum.
        """

    def reads_to(self, ref: Ref, after: Ref | None = None, *, free_slots: bool = True) -> int:
        """rnd_next calls that a scan standing on `after` (None: before the first row) makes until
        it has read `ref`. O(log n).

        `free_slots` says whether reads that meet a deleted row's place count, where the engine has
        such places.
        """

    def reads_to_end(self, after: Ref | None = None, *, free_slots: bool = True) -> int:
        """The same until the call that answers end of file, that call included."""

    def ordered(self, key: Key) -> OrderedKey:
        """The key's entries in order; built at first use, kept up from then on."""

    def rows_per_value(self, key: Key) -> float:
        """rec_per_key of the whole key as fresh statistics would say (MariaDB's choice of a key
        depends on it)."""

    def insert(self, row: Row) -> Ref:
        """Adds a row and returns where it stands. Raises DuplicateKey."""

    def update(self, ref: Ref, row: Row) -> Ref:
        """Returns the ref after the change: a row moves when its clustered key does."""

    def delete(self, ref: Ref) -> None:
        """Removes the row. Raises RowIsReferenced."""
