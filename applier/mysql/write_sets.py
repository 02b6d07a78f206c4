"""What transactions write to, as far as it decides whether they may be carried out at the same
time.

Of each row the values of all unique keys, before and after: two transactions that have none in
common do not see each other (the idea of `Rpl_transaction_write_set_ctx` and
`Writeset_trx_dependency_tracker`, sql/rpl_write_set_handler.cc 8.0 and 9.7). A table without a key
that finds its rows is written to as a whole, and so is one where equal keys cannot be told for
certain; a table with foreign keys, or one that others refer to, meets everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from applier.binlog.charsets import charset
from applier.binlog.header import ROWS_TYPES, Event, EventType
from applier.binlog.rows import DUMMY_TABLE_IDS, RowsHead, RowsHeads
from applier.binlog.table_map import TableMap, parse_table_map
from applier.binlog.types.texts import TEXT_TYPES
from applier.errors import BinlagError
from applier.mysql.client.connection import Server
from applier.mysql.client.session_state import hex_literal, quoted
from applier.mysql.client.shown_definition import shown_definition
from applier.mysql.feed import Format, SourceTransaction
from applier.options import ReplayOptions
from applier.tables.collations.collation import is_exact
from applier.tables.images import RowImages
from applier.tables.keys import key_extractor
from lookup.table import Column, Key, TableDefinition

MOST_TABLES = 10_000
Extract = Callable[[Any], Any]


@dataclass(slots=True)
class Touched:
    """Hashes of key values; numbers of all tables, and of those that are written to as a whole; or
    `everything`."""

    keys: set[int] = field(default_factory=set)
    tables: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)
    everything: bool = False

    def meets(self, other: Touched) -> bool:
        """Whether the order of the two matters, for all that is known."""
        return (
            self.everything
            or other.everything
            or not self.keys.isdisjoint(other.keys)
            or not self.whole.isdisjoint(other.tables)
            or not other.whole.isdisjoint(self.tables)
        )

    def take(self, other: Touched) -> None:
        """Takes in what another transaction touches."""
        self.keys |= other.keys
        self.tables |= other.tables
        self.whole |= other.whole
        self.everything |= other.everything


@dataclass(frozen=True, slots=True)
class KeyedTable:
    """A table of the target. `definition` None: it is not there or cannot be read, or it has
    foreign keys."""

    number: int
    table_map: TableMap
    definition: TableDefinition | None
    keys: tuple[Key, ...] = ()
    """Its unique keys; none: it is written to as a whole."""


@dataclass(frozen=True, slots=True)
class KeyImage:
    """How the key values are read from one of an event's images: (number of the key, extract)."""

    keys: tuple[tuple[int, Extract], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """How rows events of one table and shape are read; `images` None: as a whole."""

    table: KeyedTable
    rows: RowImages
    images: tuple[KeyImage, ...] | None


class WriteSets:
    """Reads transactions. Looks at each table once, over a connection of its own; `forget` after a
    statement that may change one."""

    def __init__(self, side: Server, options: ReplayOptions) -> None:
        # in the quotes that the parser reads
        side.execute("SET @@session.sql_mode='', @@session.sql_quote_show_create=1")
        self._side = side
        self._options = options
        self._format: Format | None = None
        self._heads: RowsHeads | None = None
        self._numbers: dict[tuple[str, str], int] = {}
        self._known: dict[bytes, KeyedTable | None] = {}
        """Body of a table map -> its table, None for one that is not wanted."""
        self._shapes: dict[RowsHead, Shape] = {}

    def forget(self) -> None:
        """A table may have changed."""
        self._known.clear()
        self._shapes.clear()

    def of(self, source: SourceTransaction) -> Touched:
        """What a transaction of rows writes to. One that cannot be read meets everything, and says
        why when it is carried out."""
        if source.format is not self._format:
            self._format, self._heads = source.format, RowsHeads(source.format.fde)
            self.forget()
        touched, maps = Touched(), dict[int, bytes]()
        try:
            for event in source.events:
                if event.type == EventType.TABLE_MAP:
                    body = event.buffer[event.body : event.end]
                    maps[int.from_bytes(body[:6], "little")] = body
                elif event.type in ROWS_TYPES:
                    self._rows(event, maps, touched)
        except BinlagError:
            touched.everything = True
        return touched

    def _rows(self, event: Event, maps: dict[int, bytes], touched: Touched) -> None:
        assert self._heads is not None
        head = self._heads.of(event)
        if head.table_id not in maps:
            touched.everything |= head.table_id not in DUMMY_TABLE_IDS
            return
        table = self._table(maps[head.table_id])
        if table is None:
            return
        if table.definition is None:
            touched.everything = True
            return
        touched.tables.add(table.number)
        shape = self._shapes.get(head)
        if shape is None or shape.table is not table:
            shape = self._shapes[head] = _shape(table, table.definition, head)
        if shape.images is None:
            touched.whole.add(table.number)
            return
        for row in shape.rows.rows(event, head):
            for image, values in zip(
                shape.images, row if head.kind == "update" else (row,), strict=True
            ):
                touched.keys.update(
                    [
                        hash((table.number, number, extract(values)))
                        for number, extract in image.keys
                    ]
                )

    # tables

    def _table(self, body: bytes) -> KeyedTable | None:
        if body not in self._known:
            if len(self._known) >= MOST_TABLES:
                self.forget()
            self._known[body] = self._look(body)
        return self._known[body]

    def _look(self, body: bytes) -> KeyedTable | None:
        assert self._format is not None
        table_map = parse_table_map(
            body, 0, len(body), self._format.fde.post_header_length(EventType.TABLE_MAP)
        )
        if not self._options.wants(table_map.database, table_map.table):
            return None
        name = self._options.rewrite.get(table_map.database, table_map.database), table_map.table
        number = self._numbers.setdefault(name, len(self._numbers))
        if self._is_referred_to(*name):
            return KeyedTable(number, table_map, None)
        raw = tuple(part.encode("utf-8", "surrogateescape") for part in name)
        create = (
            self._side.query(b"SHOW CREATE TABLE " + quoted(raw[0]) + b"." + quoted(raw[1]))[0][1]
            or b""
        )
        definition = shown_definition(
            create.decode("utf-8", "surrogateescape"), name[0], self._side.rules_version
        )
        if definition.foreign_keys:
            return KeyedTable(number, table_map, None)
        return KeyedTable(number, table_map, definition, unique_keys(definition))

    def _is_referred_to(self, database: str, table: str) -> bool:
        schema, name = (
            f"CONVERT({hex_literal(part.encode('utf-8', 'surrogateescape'))} USING utf8)"
            for part in (database, table)
        )
        where = f"UNIQUE_CONSTRAINT_SCHEMA={schema} AND REFERENCED_TABLE_NAME={name}"
        return bool(
            self._side.query(
                f"SELECT 1 FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE {where} LIMIT 1"
            )
        )


def unique_keys(definition: TableDefinition) -> tuple[Key, ...]:
    """The unique keys by whose values rows are told apart; none when that cannot be done for all of
    them."""
    keys = tuple(key for key in definition.keys if key.unique)
    if definition.primary is None or definition.system_versioned:
        return ()
    parts = [part for key in keys for part in key.parts]
    sure = all(
        part.column is not None and _is_comparable(definition.columns[part.column])
        for part in parts
    )
    return keys if sure and not any(key.multi_valued for key in keys) else ()


def _is_comparable(column: Column) -> bool:
    return column.type not in TEXT_TYPES or is_exact(_collation(column))


def _collation(column: Column) -> str:
    return (column.collation or charset(column.charset).default_collation).lower()


def _shape(table: KeyedTable, definition: TableDefinition, head: RowsHead) -> Shape:
    """Whether the images tell the values of all unique keys that they change, and how."""
    rows = RowImages(head, table.table_map, definition)
    sides = (
        [rows.before_columns]
        if head.kind != "update"
        else [rows.before_columns, rows.after_columns]
    )
    images: list[list[tuple[int, Extract]]] = [[] for _ in sides]
    for number, key in enumerate(table.keys):
        changed = head.kind != "update" or not set(key.columns).isdisjoint(rows.after_columns)
        if not changed and key is not definition.primary:
            continue
        for columns, found in zip(sides, images, strict=True):
            if set(key.columns) <= set(columns):
                found.append((number, key_extractor(definition, key, columns)))
            elif changed:
                return Shape(table, rows, None)
    if not table.keys or not images[0]:
        return Shape(table, rows, None)
    return Shape(table, rows, tuple(KeyImage(tuple(found)) for found in images))
