"""A column in another character set: CONVERT TO CHARACTER SET."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from applier.binlog.charsets import charset
from applier.errors import ReplicationError
from applier.tables.definitions.table_draft import (
    BINARY_TWINS,
    CHARACTER_TYPES,
    LONGEST_VARCHAR,
    SchemaRules,
    fit_size,
)
from lookup.table import Column, TableDefinition


def in_charset(
    column: Column,
    charset_name: str,
    collation: str | None,
    rules: SchemaRules,
    table: TableDefinition,
) -> Column:
    """The column of a table in another character set. Raises ReplicationError 1235 where its values
    would have to change."""
    if column.type not in CHARACTER_TYPES or column.charset is None:
        return column
    if charset_name == "binary" and column.type in BINARY_TWINS:
        return replace(column, type=BINARY_TWINS[column.type], charset=None, collation=None)
    wider = charset(charset_name).max_bytes > charset(column.charset).max_bytes
    grown = (
        {"tinytext": "text", "text": "mediumtext", "mediumtext": "longtext"}.get(column.type)
        if wider
        else None
    )
    if column.labels and not _labels_stay(column, charset_name):
        raise ReplicationError(
            1235,
            f"CONVERT TO CHARACTER SET {charset_name} is not supported in memory for the labels of "
            f"`{column.name}`",
            table=table.full_name,
            hint="skip it with --skip-errors 1235, or replay into a test DB",
        )
    if (
        column.type in ("varchar", "varbinary")
        and rules.modern_utf8mb4
        and charset(column.charset).max_bytes > 1
    ):
        most = charset(charset_name).max_bytes * (column.length or 0)
        grown = "text" if most > LONGEST_VARCHAR else None
    length = None if grown else column.length
    values: dict[str, Any] = {
        "type": grown or column.type,
        "length": length,
        "charset": charset_name,
    }
    fit_size(values, rules)
    return replace(column, **{"length": None, **values}, collation=collation)


def _labels_stay(column: Column, charset_name: str) -> bool:
    """Whether the labels are the same text afterwards.

    Servers take their bytes for text in the other character set: 'Ab' in utf8mb4 is one other
    character in ucs2 (seen on 5.7.29, 9.7.4, 10.11.18).
    """
    assert column.charset is not None
    before, after = charset(column.charset), charset(charset_name)
    return before.name == after.name or (
        before.pad == after.pad and "".join(column.labels).isascii()
    )
