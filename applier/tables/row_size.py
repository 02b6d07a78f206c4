"""The bytes of a row in the server's own row buffer, which no table may have more than 65,535 of
(error 1118).

`create_length_to_internal_length` and `mysql_prepare_create_table` (sql/sql_table.cc, 5.6 to 9.7;
MariaDB alike): the longest value of each column, pointers in the place of BLOBs, and a bit for each
column that may be NULL.
"""

from __future__ import annotations

from applier.binlog.charsets import charset
from lookup.table import Column, TableDefinition

MOST_ROW_BYTES = 65_535
_POINTER_BYTES = 8

_FIXED = {
    "tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8, "float": 4, "double": 8,
    "year": 1, "date": 3,
    "uuid": 16, "inet6": 16, "inet4": 4,
}  # fmt: skip
_BLOB_LENGTH_BYTES = {
    "tinyblob": 1, "tinytext": 1, "blob": 2, "text": 2, "mediumblob": 3, "mediumtext": 3,
}  # fmt: skip
"""Bytes that say how long the value is; 4 for all other types that are stored as a BLOB."""
_TEMPORAL = {"time": 3, "datetime": 5, "timestamp": 4}
_DECIMAL_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Digits that do not fill a group of nine -> bytes."""
_WHOLE_BYTES = frozenset({*_FIXED, *_TEMPORAL, "char", "binary", "decimal", "bit", "enum", "set"})
"""Types of fixed length. Rows of nothing else have a further bit, which marks a deleted row."""


def row_bytes(definition: TableDefinition) -> int:
    """The length of the longest row, in bytes; BLOBs count as pointers."""
    columns = definition.columns
    bits = sum(column.nullable for column in columns) + all(
        column.type in _WHOLE_BYTES for column in columns
    )
    return sum(column_bytes(column) for column in columns) + (bits + 7) // 8


def column_bytes(column: Column) -> int:
    """The length of the longest value, in bytes."""
    kind, length = column.type, column.length or 0
    if kind in _FIXED:
        return _FIXED[kind]
    if kind in _TEMPORAL:
        return _TEMPORAL[kind] + (column.scale + 1) // 2
    if kind in ("char", "binary"):
        return length * _character_bytes(column)
    if kind in ("varchar", "varbinary"):
        longest = length * _character_bytes(column)
        return longest + (1 if longest < 256 else 2)
    if kind == "decimal":
        return sum(
            digits // 9 * 4 + _DECIMAL_BYTES[digits % 9]
            for digits in ((length or 10) - column.scale, column.scale)
        )
    if kind == "bit":
        return (length + 7) // 8
    if kind == "enum":
        return 1 if len(column.labels) < 256 else 2
    if kind == "set":
        return next(size for size in (1, 2, 3, 4, 8) if size * 8 >= len(column.labels))
    return _BLOB_LENGTH_BYTES.get(kind, 4) + _POINTER_BYTES


def _character_bytes(column: Column) -> int:
    return charset(column.charset).max_bytes if column.charset is not None else 1
