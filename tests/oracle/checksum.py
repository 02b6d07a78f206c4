"""The CRC32 that a before image is hashed by, for integers and text (`make_hash_key`,
sql/rpl_utility.cc)."""

from __future__ import annotations

import zlib

from lookup.handler import Row
from lookup.table import Column, TableDefinition

INTEGERS = {"tinyint": 1, "int": 4, "bigint": 8}


def checksum(
    definition: TableDefinition, row: Row, columns: tuple[int, ...], *, null_flags: bool
) -> int:
    """Of the `columns` of a whole row; with `null_flags` the record's null bytes come first."""
    crc = zlib.crc32(null_bytes(definition, row)) if null_flags else 0
    for at in columns:
        if row[at] is not None:
            crc = zlib.crc32(stored_bytes(definition.columns[at], row[at]), crc)
    return crc


def null_bytes(definition: TableDefinition, row: Row) -> bytes:
    """One bit a nullable column, set for NULL; a record of fixed length has a one in front; bits
    left over are ones."""
    bits = "" if any(column.type == "varchar" for column in definition.columns) else "1"
    for column, value in zip(definition.columns, row, strict=True):
        if column.nullable:
            bits += "1" if value is None else "0"
    while len(bits) % 8:
        bits += "1"
    return bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, len(bits), 8))


def stored_bytes(column: Column, value: object) -> bytes:
    if isinstance(value, int):
        size = INTEGERS[column.type]
        return (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    assert isinstance(value, bytes)
    return value.ljust(column.length or 0, b" ") if column.type == "char" else value
