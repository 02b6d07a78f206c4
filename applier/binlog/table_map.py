"""TABLE_MAP: which table the rows events that follow speak of, and how its columns are laid out.

`Table_map_event` (libs/mysql/binlog/event/rows_event.cpp 9.7). The optional metadata is for
readers; a replica matches columns by position alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from applier.binlog import wire
from applier.binlog.cursor import Cursor
from applier.binlog.header import Event, FormatDescription
from applier.error_codes import Code
from applier.errors import InputError

REFERRED_BY_FOREIGN_KEY_FLAG = 0x0002
"""TM_REFERRED_FK_DB_F: a foreign key of a table in another database refers to this one; from 8.0 on
also one of this table to another database."""
GENERATED_INVISIBLE_KEY_FLAG = 0x0004
MAX_COLUMNS = 4096
"""Of a table (sql/sql_const.h, MAX_FIELDS)."""


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column as the source has it. None or () where the table map does not say.

    `metadata` keeps the bytes as they stand: one byte, two little-endian (VARCHAR), or two with the
    first one high.
    """

    type_code: int
    metadata: int = 0
    nullable: bool = True
    unsigned: bool | None = None
    name: str | None = None
    collation: int | None = None
    labels: tuple[bytes, ...] = ()
    geometry_type: int | None = None
    visible: bool | None = None
    dimensions: int | None = None

    @property
    def real_type(self) -> int:
        """The type with what hides in the metadata of STRING brought out: ENUM, SET or CHAR."""
        return wire.real_type(self.type_code, self.metadata)


@dataclass(frozen=True)
class TableMap:
    """`primary_key` holds (column, prefix) pairs, prefix 0 for the whole column; () without FULL
    metadata."""

    table_id: int
    flags: int
    database: str
    table: str
    columns: tuple[SourceColumn, ...]
    primary_key: tuple[tuple[int, int], ...] = ()

    @property
    def full_name(self) -> str:
        """Database and table: "shop.orders"."""
        return f"{self.database}.{self.table}"

    @property
    def crosses_databases(self) -> bool:
        """Whether a foreign key leads to another database: under DATABASE scheduling its rows run
        alone."""
        return bool(self.flags & REFERRED_BY_FOREIGN_KEY_FLAG)

    @property
    def has_generated_invisible_key(self) -> bool:
        """Whether the source made the primary key itself (sql_generate_invisible_primary_key,
        8.0.30)."""
        return bool(self.flags & GENERATED_INVISIBLE_KEY_FLAG)


def parse_table_map(
    buffer: bytes,
    body: int,
    end: int,
    post_header_length: int,
    *,
    server_version: str = "an old server",
) -> TableMap:
    """Raises InputError when the event cannot be read. `server_version` is for messages."""
    cursor = Cursor(buffer, body, end)
    table_id = cursor.unsigned(4 if post_header_length == 6 else 6)
    flags = cursor.u16()
    cursor.skip(max(post_header_length - 8, 0))
    database = cursor.take(cursor.packed()).decode("utf-8", "surrogateescape")
    cursor.skip(1)
    table = cursor.take(cursor.packed()).decode("utf-8", "surrogateescape")
    cursor.skip(1)
    count = cursor.packed()
    if count > MAX_COLUMNS:
        raise InputError(
            f"a table map claims {count} columns",
            code=Code.BAD_TABLE_MAP,
            table=f"{database}.{table}",
        )
    types = cursor.take(count)
    if not cursor.left:
        raise InputError(
            f"a table map of {server_version} says nothing of its columns but their types: MySQL"
            " 5.1 wrote it so before its release",
            code=Code.UNKNOWN_FORMAT,
            table=f"{database}.{table}",
            hint=(
                "replay the log on a server of that version, and take the log of a later one from"
                " there"
            ),
        )
    metadata_end = cursor.packed() + cursor.at
    columns = [SourceColumn(type_code, _metadata(cursor, type_code)) for type_code in types]
    if cursor.at != metadata_end:
        raise InputError(
            "the column metadata of a table map has the wrong length",
            code=Code.BAD_TABLE_MAP,
            table=f"{database}.{table}",
        )
    nullable = _bits(cursor.take((count + 7) // 8), count)
    columns = [replace(column, nullable=may) for column, may in zip(columns, nullable, strict=True)]
    optional = _Optional(columns)
    while cursor.left:
        kind = cursor.u8()
        optional.read(kind, Cursor(cursor.take(cursor.packed())))
    return TableMap(table_id, flags, database, table, tuple(optional.columns), optional.primary_key)


def read_table_map(event: Event, fde: FormatDescription) -> TableMap:
    """The table map of an event; its place is in the error when it cannot be read."""
    try:
        length = fde.post_header_length(event.type)
        return parse_table_map(
            event.buffer, event.body, event.end, length, server_version=fde.server_version
        )
    except InputError as error:
        error.locate(file=event.file, position=event.position)
        raise


def _metadata(cursor: Cursor, type_code: int) -> int:
    if type_code == wire.TYPED_ARRAY:
        element = cursor.u8()
        if element == wire.TYPED_ARRAY:
            raise InputError("a table map has an array of arrays", code=Code.BAD_TABLE_MAP)
        _metadata(cursor, element)
        return element
    if type_code in wire.ONE_BYTE_METADATA:
        return cursor.u8()
    if type_code in wire.LITTLE_ENDIAN_METADATA:
        return cursor.u16()
    if type_code in wire.BIG_ENDIAN_METADATA:
        return cursor.u8() << 8 | cursor.u8()
    return 0


def _bits(data: bytes, count: int, *, first_high: bool = False) -> list[bool]:
    if first_high:
        return [bool(data[at >> 3] >> (7 - (at & 7)) & 1) for at in range(count)]
    return [bool(data[at >> 3] >> (at & 7) & 1) for at in range(count)]


class _Optional:
    """Reads the optional metadata fields one by one into the columns."""

    def __init__(self, columns: list[SourceColumn]) -> None:
        self.columns = columns
        self.primary_key: tuple[tuple[int, int], ...] = ()
        self._readers: dict[int, Callable[[Cursor], None]] = {
            1: self._signedness,
            2: lambda cursor: self._default_collation(cursor, self._characters()),
            3: lambda cursor: self._collations(cursor, self._characters()),
            4: self._names,
            5: lambda cursor: self._labels(cursor, wire.SET),
            6: lambda cursor: self._labels(cursor, wire.ENUM),
            7: lambda cursor: self._each(cursor, "geometry_type", wire.GEOMETRY),
            8: lambda cursor: self._primary(cursor, prefixed=False),
            9: lambda cursor: self._primary(cursor, prefixed=True),
            10: lambda cursor: self._default_collation(cursor, self._enumerations()),
            11: lambda cursor: self._collations(cursor, self._enumerations()),
            12: self._visibility,
            13: lambda cursor: self._each(cursor, "dimensions", wire.VECTOR),
        }

    def read(self, kind: int, cursor: Cursor) -> None:
        reader = self._readers.get(kind)
        if reader is not None:
            reader(cursor)

    def _set(self, at: int, **fields: object) -> None:
        self.columns[at] = replace(self.columns[at], **fields)  # type: ignore[arg-type]

    def _of(self, *types: int) -> list[int]:
        return [at for at, column in enumerate(self.columns) if column.real_type in types]

    def _characters(self) -> list[int]:
        """VECTOR counts among them in 9.x only; it stands behind no other, so its missing entry is
        tolerated."""
        return self._of(*wire.CHARACTER_TYPES)

    def _enumerations(self) -> list[int]:
        return self._of(wire.ENUM, wire.SET)

    def _signedness(self, cursor: Cursor) -> None:
        numeric = [
            at for at, column in enumerate(self.columns) if column.real_type in wire.NUMERIC_TYPES
        ]
        bits = _bits(cursor.take((len(numeric) + 7) // 8), len(numeric), first_high=True)
        for at, unsigned in zip(numeric, bits, strict=True):
            self._set(at, unsigned=unsigned)

    def _default_collation(self, cursor: Cursor, places: list[int]) -> None:
        default = cursor.packed()
        others = {}
        while cursor.left:
            index = cursor.packed()
            others[index] = cursor.packed()
        for index, at in enumerate(places):
            self._set(at, collation=others.get(index, default))

    def _collations(self, cursor: Cursor, places: list[int]) -> None:
        vectors = [at for at in self._of(wire.VECTOR) if places is not None]
        given = []
        while cursor.left:
            given.append(cursor.packed())
        if len(given) == len(places) + len(vectors):
            places = sorted(places + vectors)
        for at, collation in zip(places, given, strict=False):
            self._set(at, collation=collation)

    def _names(self, cursor: Cursor) -> None:
        for at in range(len(self.columns)):
            self._set(at, name=cursor.take(cursor.packed()).decode("utf-8", "surrogateescape"))

    def _labels(self, cursor: Cursor, type_code: int) -> None:
        for at in self._of(type_code):
            count = cursor.packed()
            if count > cursor.left:
                raise InputError(
                    f"a table map claims {count} labels of an ENUM or SET", code=Code.BAD_TABLE_MAP
                )
            self._set(at, labels=tuple(cursor.take(cursor.packed()) for _ in range(count)))

    def _each(self, cursor: Cursor, field: str, type_code: int) -> None:
        for at in self._of(type_code):
            if cursor.left:
                self._set(at, **{field: cursor.packed()})

    def _primary(self, cursor: Cursor, *, prefixed: bool) -> None:
        key = []
        while cursor.left:
            column = cursor.packed()
            key.append((column, cursor.packed() if prefixed else 0))
        self.primary_key = tuple(key)

    def _visibility(self, cursor: Cursor) -> None:
        bits = _bits(cursor.take((len(self.columns) + 7) // 8), len(self.columns), first_high=True)
        for at, visible in enumerate(bits):
            self._set(at, visible=visible)
