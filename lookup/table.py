"""What a table looks like to the row lookup: columns, keys, and the order the server keeps keys in.

The server does not walk keys in the order of the CREATE statement. It sorts them when the table is
made (`sort_keys`, sql_table.cc, 5.6 to 9.7 alike) and may promote a unique key to primary
(`prepare_share`, dd_table_share.cc 9.7; the .frm reader in 5.x). "The first usable key wins" is
said of *that* order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

BLOB_TYPES = frozenset(
    {"tinyblob", "blob", "mediumblob", "longblob", "tinytext", "text", "mediumtext", "longtext"}
)
_VARYING_TYPES = BLOB_TYPES.union(
    """
        varchar varbinary json geometry point linestring polygon multipoint multilinestring
        multipolygon geometrycollection vector
    """.split()
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    `type` is MySQL's base type in lower case ("int", "varchar", "datetime", "json", ...; synonyms
    resolved). `length` counts characters for CHAR/VARCHAR/TEXT, bytes for BINARY/VARBINARY/BLOB,
    bits for BIT, digits for DECIMAL, dimensions for VECTOR. `scale` is DECIMAL's scale, or the
    fractional-seconds precision of a temporal type. `default` is the SQL text of the DEFAULT
    clause, None where there is none; `expression` that of a generated column.
    """

    name: str
    type: str
    length: int | None = None
    scale: int = 0
    unsigned: bool = False
    nullable: bool = True
    charset: str | None = None
    collation: str | None = None
    labels: tuple[str, ...] = ()
    default: str | None = None
    on_update: str | None = None
    auto_increment: bool = False
    generated: str | None = None
    """"virtual", "stored" or None."""
    expression: str | None = None
    invisible: bool = False
    srid: int | None = None
    system_time: str | None = None
    """MariaDB's system versioning: "start" or "end" for the two period columns."""
    hidden: bool = False
    """No SHOW CREATE TABLE tells of it: the period columns of a table WITH SYSTEM VERSIONING that
    does not name them."""
    zerofill: bool = False
    """Numbers are shown with zeros before them, up to the display width, which is `length` for
    integers."""
    compressed: bool = False
    """MariaDB keeps the values compressed; the type shows it."""

    @property
    def is_virtual(self) -> bool:
        """A generated column that is not stored."""
        return self.generated == "virtual"


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One part of a key: a column's position, or an expression (functional key part, `column` is
    then None).

    `prefix` is in characters for text and in bytes for binary types; None means the whole column.
    """

    column: int | None
    prefix: int | None = None
    descending: bool = False
    expression: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """One key. `kind` is "btree", "hash", "fulltext" or "spatial"."""

    name: str
    parts: tuple[KeyPart, ...]
    unique: bool = False
    kind: str = "btree"
    visible: bool = True
    multi_valued: bool = False
    enabled: bool = True
    generated: bool = False
    """Made for a foreign key (HA_GENERATED_KEY): it goes when a key comes that serves as well."""

    @property
    def is_primary(self) -> bool:
        """The primary key; a unique key that InnoDB promotes is not one."""
        return self.name == "PRIMARY"

    @property
    def is_functional(self) -> bool:
        """Has a part that is an expression (8.0.13)."""
        return any(part.column is None for part in self.parts)

    @property
    def has_prefix(self) -> bool:
        """Has a part that holds the beginning of a column only."""
        return any(part.prefix is not None for part in self.parts)

    @property
    def columns(self) -> tuple[int, ...]:
        """Positions of the columns, in the order of the key; expressions are left out."""
        return tuple(part.column for part in self.parts if part.column is not None)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A reference to another table. `on_delete` and `on_update`: "restrict", "cascade", "set null",
    "no action".

    `referenced_columns` is empty where the primary key is meant.
    """

    name: str
    columns: tuple[str, ...]
    referenced_database: str
    referenced_table: str
    referenced_columns: tuple[str, ...]
    on_delete: str = "restrict"
    on_update: str = "restrict"


@dataclass(frozen=True, slots=True)
class Check:
    """A CHECK constraint.

    `name` is empty where the statement gives none, `column` where it does not stand behind one.
    `enforced`: without NOT ENFORCED.
    """

    expression: str
    name: str = ""
    column: str = ""
    enforced: bool = True


@dataclass(frozen=True)
class TableDefinition:
    """A table as its CREATE statement says, plus what the server derives from it.

    `keys` stand in the order of definition; `sorted_keys` is the server's order.
    """

    database: str
    name: str
    columns: tuple[Column, ...]
    keys: tuple[Key, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    engine: str = "InnoDB"
    charset: str = "utf8mb4"
    collation: str = "utf8mb4_0900_ai_ci"
    generated_invisible_key: bool = False
    """The first column is `my_row_id`, made by sql_generate_invisible_primary_key (8.0.30+)."""
    row_format: str | None = None
    checks: tuple[Check, ...] = ()
    partitioned: bool = False
    system_versioned: bool = False
    temporary: bool = False
    options: dict[str, str] = field(default_factory=dict, compare=False)
    period: tuple[str, str, str] | None = None
    """MariaDB's PERIOD FOR: its name, and the columns of its start and end."""

    @property
    def full_name(self) -> str:
        """Database and table: "shop.orders"."""
        return f"{self.database}.{self.name}" if self.database else self.name

    @cached_property
    def positions(self) -> dict[str, int]:
        """Column name in lower case -> position."""
        return {column.name.lower(): position for position, column in enumerate(self.columns)}

    @cached_property
    def sorted_keys(self) -> tuple[Key, ...]:
        """Keys in the server's order (`sort_keys`, sql_table.cc)."""
        ranked = sorted(enumerate(self.keys), key=lambda item: (self._rank(item[1]), item[0]))
        return tuple(key for _, key in ranked)

    @cached_property
    def primary(self) -> Key | None:
        """The primary key, or the unique key that the server promotes to it; None without
        either."""
        for key in self.sorted_keys:
            if key.is_primary:
                return key
        return next((key for key in self.sorted_keys if self._promotable(key)), None)

    @cached_property
    def secondary_keys(self) -> tuple[Key, ...]:
        """All but the primary one."""
        return tuple(key for key in self.keys if key is not self.primary)

    @property
    def has_dynamic_rows(self) -> bool:
        """Whether MyISAM keeps the table in rows of varying length: it has a VARCHAR or BLOB, or
        says so."""
        if self.row_format is not None and self.row_format.upper() in ("FIXED", "DYNAMIC"):
            return self.row_format.upper() == "DYNAMIC"
        return any(column.type in _VARYING_TYPES for column in self.columns)

    def is_nullable(self, key: Key) -> bool:
        """Whether any part of the key may be NULL; an expression may."""
        return any(part.column is None or self.columns[part.column].nullable for part in key.parts)

    def is_unique_not_null(self, key: Key) -> bool:
        """Whether a value of the key stands for one row at the most, whatever the value."""
        return key.unique and not self.is_nullable(key)

    def actual_key_columns(self, key: Key) -> tuple[int, ...]:
        """The columns that must be in a before image for the key to be usable (`actual_key_parts`).

        InnoDB extends a non-unique secondary key with the primary key's columns
        (`add_pk_parts_to_sk`, sql/table.cc 9.7).
        """
        if (
            key.unique
            or self.engine.lower() != "innodb"
            or self.primary is None
            or key.kind != "btree"
        ):
            return key.columns
        extra = (column for column in self.primary.columns if column not in key.columns)
        return (*key.columns, *extra)

    def _rank(self, key: Key) -> tuple[bool, ...]:
        virtual = any(
            part.column is None or self.columns[part.column].is_virtual for part in key.parts
        )
        not_null_unique = self.is_unique_not_null(key)
        return (
            not key.unique,
            key.unique and not not_null_unique,
            not_null_unique and not key.is_primary,
            key.unique and key.has_prefix,
            key.kind == "fulltext",
            virtual,
        )

    def _promotable(self, key: Key) -> bool:
        if not self.is_unique_not_null(key) or key.has_prefix or key.is_functional:
            return False
        columns = [self.columns[column] for column in key.columns]
        # MariaDB keeps a unique key on whole large objects as an index of hashes
        return not any(column.is_virtual or column.type in BLOB_TYPES for column in columns)
