"""Whether an ALTER TABLE copies its rows value by value, or works in place.

It shows in three ways: a FLOAT gets its new (M,D) only in a copy, stored columns that depend on the
session are computed anew only in a copy, and a copy under another name may lose foreign keys. Seen
on 5.7.29, 9.7.4 and MariaDB 10.11.18, which agree but for what is said below.
"""

from __future__ import annotations

from dataclasses import replace

from applier.binlog.charsets import charset
from applier.tables.conversions.column_conversion import same, same_form
from applier.tables.ddl.alteration import Alteration
from applier.tables.expressions.row_expressions import literal_value
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from lookup.table import Column, TableDefinition

_KINDS_OF_KEYS = ("btree", "hash")
_LARGEST_SHORT = 255
"""Bytes of a VARCHAR whose length is one byte."""
_IN_LARGER_CHARSETS = frozenset({"ascii", "utf8", "utf8mb3"})
"""Character sets that MariaDB may widen in place."""
Pairs = list[tuple[Column, Column]]
"""Columns as they were and as they become."""


def copies_rows(change: Alteration, new: TableDefinition) -> bool | None:
    """Whether the server copies the rows; None where that is not known."""
    old = change.old
    pairs: Pairs = [
        (old.columns[at], column)
        for at, column in zip(change.sources, new.columns, strict=False)
        if at is not None
    ]
    answers = {_copies_for(*pair, change) for pair in pairs}
    if (
        change.copy_asked
        or True in answers
        or new.engine.lower() != old.engine.lower()
        or _loses_clustered_key(change, new)
        or _moves_outside_of_innodb(change, new)
        or any(column.generated and not column.is_virtual for column in _fresh(change, new))
    ):
        return True
    if None in answers or not _only_adds(change, new, pairs):
        return None
    return False


def _copies_for(old: Column, new: Column, change: Alteration) -> bool | None:
    """Whether the new form of a column makes the server copy; None where that is not known."""
    mariadb = change.rules.mariadb
    strict = change.rules.session.sql_mode & SqlModeFlag.STRICT
    if old.nullable and not new.nullable and not mariadb and not strict:
        return True
    if same(old, new) or same_form(old, new):
        return None if mariadb and old.nullable and not new.nullable else False
    if old.charset != new.charset:
        widens = mariadb and old.type == new.type and old.charset in _IN_LARGER_CHARSETS
        return None if widens else True
    if old.labels and old.type == new.type and new.labels[: len(old.labels)] == old.labels:
        return None
    if old.type == new.type and old.type in ("varchar", "varbinary"):
        return None if _bytes(old) <= _bytes(new) and (mariadb or _as_long(old, new)) else True
    return True


def _bytes(column: Column) -> int:
    each = 1 if column.charset is None else charset(column.charset).max_bytes
    return (column.length or 0) * each


def _as_long(old: Column, new: Column) -> bool:
    """Whether the lengths of their values are as long (`Field_varstring::is_equal`)."""
    return (_bytes(old) <= _LARGEST_SHORT) == (_bytes(new) <= _LARGEST_SHORT)


def _loses_clustered_key(change: Alteration, new: TableDefinition) -> bool:
    """Whether the key that InnoDB orders the rows by goes and no such key comes: MySQL copies then,
    MariaDB only where no other one is left."""
    old = change.old
    if old.primary is None or old.primary.name in {key.name for key in new.keys}:
        return False
    if new.primary is None:
        return True
    return not change.rules.mariadb and new.primary.name in {key.name for key in old.keys}


def _moves_outside_of_innodb(change: Alteration, new: TableDefinition) -> bool:
    """Whether columns or keys come, go or move in an engine that has no other way."""
    old = change.old
    moves = change.sources != [*range(len(old.columns))] or new.keys != old.keys
    return moves and old.engine.lower() != "innodb"


def _fresh(change: Alteration, new: TableDefinition) -> list[Column]:
    return [
        column
        for column, source in zip(new.columns, change.sources, strict=False)
        if source is None
    ]


def _only_adds(change: Alteration, new: TableDefinition, pairs: Pairs) -> bool:
    """Whether only columns behind the others, with a fixed default, and ordinary keys come or
    go."""
    old = change.old
    if len(pairs) < len(old.columns) or any(
        new.columns[at] is not column or not _stays(before, column)
        for at, (before, column) in enumerate(pairs)
    ):
        return False
    plain = not any(
        column.generated
        or column.auto_increment
        or (column.default and literal_value(column.default, change.rules.session) is None)
        for column in _fresh(change, new)
    )
    return plain and _differs_in_keys_only(change, new)


def _stays(old: Column, new: Column) -> bool:
    """Whether the column is as it was, but for another (M,D) of a FLOAT or a display width."""
    alike = replace(new, length=old.length, scale=old.scale) if same_form(old, new) else new
    return alike == old


def _differs_in_keys_only(change: Alteration, new: TableDefinition) -> bool:
    """Whether only ordinary keys, but for the primary one, and added columns tell the tables
    apart."""
    old = change.old
    others = [key for key in new.keys if key.is_primary or key.kind not in _KINDS_OF_KEYS]
    same_otherwise = replace(new, name=old.name, columns=old.columns, keys=old.keys)
    return (
        old.engine.lower() == "innodb"
        and all(key in old.keys for key in others)
        and (old.primary is None) == (new.primary is None)
        and change.partitions is None
        and not change.order_by
        and same_otherwise == old
    )
