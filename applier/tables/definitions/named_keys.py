"""The keys of a table while it is made or altered: by the names of their columns, then by
positions, and those that servers make for foreign keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from applier.binlog.charsets import charset
from applier.errors import ReplicationError
from applier.tables.conversions.conversion_rules import GEOMETRIES
from applier.tables.expressions.row_expressions import Session
from lookup.table import Column, Key, KeyPart, TableDefinition

TINY, TINY_BYTES = frozenset({"tinytext", "tinyblob"}), 255
"""The large objects that hold less than an engine puts into a key, and what they hold."""
SHORT_TEXTS = frozenset({"char", "varchar", "binary", "varbinary"})
"""Types that a key can hold as a whole; their lengths count what prefixes count."""
POINT_BYTES = 25


class KeyRules(Protocol):
    """What is asked of `SchemaRules`."""

    @property
    def mariadb(self) -> bool:
        """Whether the server is one."""

    @property
    def session(self) -> Session:
        """Whether the server is of 5.x."""


KeyPartDraft = tuple[str | None, int | None, bool, str | None]
"""Column name, prefix, descending, expression."""


@dataclass
class NamedKey:
    """A key whose parts are (column name, prefix, descending, expression) yet."""

    name: str | None
    parts: list[KeyPartDraft]
    unique: bool = False
    kind: str = "btree"
    visible: bool = True
    if_not_exists: bool = False
    generated: bool = False
    """Made for a foreign key by an earlier statement; that of this one is of kind "foreign"."""

    @property
    def is_generated(self) -> bool:
        """Made for a foreign key."""
        return self.generated or self.kind == "foreign"


def named_key(key: Key, definition: TableDefinition) -> NamedKey:
    """A key that is there, by the names of its columns."""
    parts: list[KeyPartDraft] = [
        (
            None if part.column is None else definition.columns[part.column].name,
            part.prefix,
            part.descending,
            part.expression,
        )
        for part in key.parts
    ]
    return NamedKey(key.name, parts, key.unique, key.kind, key.visible, generated=key.generated)


def resolve_keys(
    named: list[NamedKey], columns: Sequence[Column], table: str, rules: KeyRules
) -> list[Key]:
    """Names to positions in `columns`; keys without a name get the one the server makes up. Foreign
    keys add a key where none serves. `table`: its full name, for errors. Raises ReplicationError
    1061, 1068, 1072."""
    keys: list[Key] = []
    positions = {column.name.lower(): at for at, column in enumerate(columns)}
    ordinary = [key for key in named if key.kind != "foreign"]
    order = ordinary + [key for key in named if key.kind == "foreign"]
    for at, key in enumerate(order):
        placed = [_part(item, positions, table) for item in key.parts]
        parts = tuple(_fitting(part, columns, rules, key.kind) for part in placed)
        if key.is_generated and any(
            _serves_for(other, key, rules, is_behind=place > at)
            for place, other in enumerate(order)
            if place != at
        ):
            continue
        taken = {other.name.lower() for other in keys}
        if key.name is not None and key.name.lower() in taken:
            number, what = (
                (1068, "Multiple primary key defined")
                if key.name == "PRIMARY"
                else (1061, f"Duplicate key name '{key.name}'")
            )
            raise ReplicationError(number, what, table=table)
        name = key.name or _key_name(key, taken)
        multi_valued = any(" array" in (expression or "").lower() for *_, expression in key.parts)
        keys.append(
            Key(
                name,
                parts,
                key.unique,
                _kind(key, parts, columns, rules),
                key.visible,
                multi_valued,
                generated=key.is_generated,
            )
        )
    return keys


def _kind(
    key: NamedKey, parts: Sequence[KeyPart], columns: Sequence[Column], rules: KeyRules
) -> str:
    """From 8.0 on any key of a geometry is a SPATIAL one (seen on 9.7.4, not on 5.7.29 and MariaDB
    10.11.18). One with a prefix is of another server's dump: 8.0 refuses it (1089)."""
    if key.kind not in ("btree", "foreign"):
        return key.kind
    first = parts[0]
    whole = first.column is not None and first.prefix is None
    is_shape = whole and columns[first.column or 0].type in GEOMETRIES
    return "spatial" if is_shape and not (rules.mariadb or rules.session.old) else "btree"


def _serves_for(other: NamedKey, generated: NamedKey, rules: KeyRules, *, is_behind: bool) -> bool:
    """Whether a key begins with the whole columns of one that was made for a foreign key
    (`foreign_key_prefix`, sql/sql_class.cc).

    A descending part does not serve since 8.0, a key USING HASH not on MariaDB, and no FULLTEXT key
    serves for a new foreign key. Of two that were made for foreign keys the longer one stays, of
    equal ones the last. (Seen on 5.6.24, 5.7.29, 9.7.4, MariaDB 10.11.18.)
    """
    if other.kind == "fulltext" and generated.kind == "foreign":
        return False
    if rules.mariadb and other.kind == "hash":
        return False
    wanted = [(name or "").lower() for name, *_ in generated.parts]
    start = other.parts[: len(wanted)]
    in_order = rules.mariadb or rules.session.old
    serves = [(name or "").lower() for name, *_ in start] == wanted and all(
        prefix is None and (in_order or not descending) for _, prefix, descending, _ in start
    )
    return serves and (not other.is_generated or is_behind or len(other.parts) > len(wanted))


def _part(
    item: tuple[str | None, int | None, bool, str | None], positions: dict[str, int], table: str
) -> KeyPart:
    name, prefix, descending, expression = item
    if name is None:
        return KeyPart(None, None, descending, expression)
    at = positions.get(name.lower())
    if at is None:
        raise ReplicationError(1072, f"Key column '{name}' doesn't exist in table", table=table)
    return KeyPart(at, prefix, descending)


def _fitting(part: KeyPart, columns: Sequence[Column], rules: KeyRules, kind: str) -> KeyPart:
    """A POINT is in a key that is no SPATIAL one with its 25 bytes, whatever the statement says
    (MAX_LEN_GEOM_POINT_FIELD; up to 5.7 and in MariaDB). A prefix is cut to what the column holds
    (`mysql_prepare_create_table`, sql/sql_table.cc).

    MySQL counts in characters of the greatest width, outside of strict mode and for keys that are
    not unique; else it refuses the statement. MariaDB counts in bytes and cuts at any time. A
    prefix as long as its column is the whole column, and so is one that an ALTER left longer than
    that (`mysql_prepare_alter_table`).
    (Seen on 5.7.29, 9.7.4, MariaDB 10.11.18.)
    """
    if part.column is None:
        return part
    is_old = rules.mariadb or rules.session.old
    column = columns[part.column]
    if column.type == "point" and kind == "btree" and is_old:
        return replace(part, prefix=POINT_BYTES)
    if part.prefix is None:
        return part
    if column.type in SHORT_TEXTS and part.prefix >= (column.length or 1):
        return replace(part, prefix=None)
    if column.type not in TINY:
        return part
    own = column.charset
    width = charset(own).max_bytes if own is not None and not rules.mariadb else 1
    return replace(part, prefix=min(part.prefix, TINY_BYTES // width))


def _key_name(key: NamedKey, taken: set[str]) -> str:
    """`make_unique_key_name`: the first column's name, then with _2, _3, …"""
    base = key.parts[0][0] or "functional_index"
    if base.lower() not in taken and base.lower() != "primary":
        return base
    return next(
        f"{base}_{number}" for number in range(2, 200) if f"{base}_{number}".lower() not in taken
    )
