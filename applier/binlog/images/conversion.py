"""Values of a source column's type into those of a local column of another type (`copy_field`,
sql/field_conv.cc)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from applier.binlog import wire
from applier.binlog.charsets import charset
from applier.binlog.payload import MAX_EVENT_BYTES
from applier.binlog.table_map import SourceColumn
from applier.binlog.types import ValueRefused, from_sql, to_text
from applier.binlog.types.numbers import decimal_to_text, float_to_python, integer_range
from applier.binlog.types.temporal import (
    number_to_parts,
    pack_datetime,
    pack_time,
    pack_timestamp,
)
from applier.binlog.types.temporal_parse import in_range
from applier.error_codes import Code
from applier.errors import InputError
from lookup.table import Column

Convert = Callable[[Any], Any]

ZLIB_METHOD = 8
_TEMPORAL = {wire.TIMESTAMP2: "timestamp", wire.DATETIME2: "datetime", wire.TIME2: "time"}


def converter(source: SourceColumn, local: Column, *, unsigned: bool = False) -> Convert | None:
    """A function on stored values that are not NULL; None when the value stays as it is."""
    kind = source.real_type
    old = {wire.TIMESTAMP: _old_timestamp, wire.DATETIME: _old_datetime, wire.TIME: _old_time}.get(
        kind
    )
    if old is not None and local.type in ("timestamp", "datetime", "time"):
        return old(local)
    if kind in _TEMPORAL:
        return _fraction(_TEMPORAL[kind], source.metadata, local)
    if kind == wire.BIT:
        return _bit(source, local)
    if local.type in ("tinyint", "smallint", "mediumint", "int", "bigint"):
        return _integer(source, local, unsigned)
    if kind == wire.NEWDECIMAL:
        return _decimal(source, local)
    if kind in (wire.FLOAT, wire.DOUBLE):
        return _float(source, local)
    if kind in (wire.MARIADB_BLOB_COMPRESSED, wire.MARIADB_VARCHAR_COMPRESSED):
        return _decompress
    return _string(source, local)


def _integer(source: SourceColumn, local: Column, unsigned: bool) -> Convert | None:
    """The event's bytes are read with the local sign; another width converts as signed unless told
    otherwise."""
    sizes = {
        wire.TINY: "tinyint",
        wire.SHORT: "smallint",
        wire.INT24: "mediumint",
        wire.LONG: "int",
        wire.LONGLONG: "bigint",
    }
    theirs = sizes.get(source.real_type)
    if theirs is None or theirs == local.type:
        return None
    bits = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}[theirs]
    low, high = integer_range(local)

    def convert(value: int) -> int:
        value &= (1 << bits) - 1
        if not unsigned and value >= 1 << (bits - 1):
            value -= 1 << bits
        return min(max(value, low), high)

    return convert


def _fraction(kind: str, digits: int, local: Column) -> Convert | None:
    """Fewer digits are rounded (`Field_temporal::store_time`); as many bytes stay as they are."""
    if (digits + 1) // 2 == (local.scale + 1) // 2:
        return None
    return _through_text(to_text(Column(local.name, kind, scale=digits)), local)


def _bit(source: SourceColumn, local: Column) -> Convert | None:
    """Too many bits become all ones (`Field_bit::store`)."""
    theirs, own = (source.metadata & 0xFF) * 8 + (source.metadata >> 8), local.length or 1
    most = (1 << own) - 1
    return (lambda value: min(value, most)) if theirs > own else None


def _decimal(source: SourceColumn, local: Column) -> Convert | None:
    precision, scale = source.metadata >> 8, source.metadata & 0xFF
    if local.type == "decimal" and (precision, scale) == (local.length or 10, local.scale):
        return None
    return _through_text(decimal_to_text(precision, scale), local)


def _float(source: SourceColumn, local: Column) -> Convert | None:
    theirs = "float" if source.real_type == wire.FLOAT else "double"
    return (
        None if theirs == local.type else _through_text(float_to_python(Column("", theirs)), local)
    )


def _through_text(read: Convert, local: Column) -> Convert:
    write = from_sql(local)

    def convert(value: Any) -> Any:
        try:
            return write(read(value))
        except ValueRefused as refused:
            return refused.closest

    return convert


def _string(source: SourceColumn, local: Column) -> Convert | None:
    """Between CHAR, VARCHAR and BLOB: bytes stay, a CHAR or BINARY loses its padding, a shorter
    column cuts.

    Bytes are never taken from one character set to another: the conversion's field has the target's
    (`create_conversion_table`).
    """
    kind = SAME_AS.get(source.real_type, source.real_type)
    if kind not in (wire.STRING, wire.VARCHAR, wire.VAR_STRING, wire.BLOB):
        return None
    own = STRING_WIRES.get(local.type)
    if own is None or (
        own == kind and (kind == wire.BLOB or source_bytes(source) == local_bytes(local))
    ):
        return None
    return _through_text(lambda value: value, local)


STRING_WIRES = {
    "char": wire.STRING, "binary": wire.STRING, "varchar": wire.VARCHAR, "varbinary": wire.VARCHAR,
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), wire.BLOB),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), wire.BLOB),
}  # fmt: skip
SAME_AS = {
    wire.NEWDATE: wire.DATE,
    wire.MARIADB_BLOB_COMPRESSED: wire.BLOB,
    wire.MARIADB_VARCHAR_COMPRESSED: wire.VARCHAR,
    wire.TINY_BLOB: wire.BLOB,
    wire.MEDIUM_BLOB: wire.BLOB,
    wire.LONG_BLOB: wire.BLOB,
}
"""Types that are compared as another one."""


def source_bytes(source: SourceColumn) -> int:
    """The most bytes that a value of the source's string column may have."""
    if source.real_type == wire.STRING:
        return wire.string_length(source.metadata)
    if SAME_AS.get(source.real_type, source.real_type) == wire.BLOB:
        return int((1 << 8 * source.metadata) - 1)
    if source.real_type == wire.MARIADB_VARCHAR_COMPRESSED:
        return source.metadata - 1  # the byte that says how it is compressed
    return source.metadata


def local_bytes(local: Column) -> int:
    """The most bytes that a value of the local column may have."""
    blob = {"tiny": 1, "medium": 3, "long": 4}
    if local.type.endswith(("text", "blob")):
        return int(
            (1 << 8 * next((size for name, size in blob.items() if local.type.startswith(name)), 2))
            - 1
        )
    fixed = {"uuid": 16, "inet6": 16, "inet4": 4}
    if local.type in fixed:
        return fixed[local.type]
    width = charset(local.charset).max_bytes if local.charset else 1
    return (local.length if local.length is not None else 1) * width


def _decompress(value: bytes) -> bytes:
    """MariaDB's COMPRESSED columns: a byte of method (high half: 0 plain, 8 zlib) and flags, the
    size, then the data.

    `uncompress_zlib` (sql/field_comp.cc, 10.11): the low three bits say how many bytes the size
    takes, big-endian; bit 3 that the stream has no zlib header. Never more is unpacked than the
    size says.
    """
    if not value or value[0] >> 4 == 0:
        return value[1:]
    width = value[0] & 0x07
    if value[0] >> 4 != ZLIB_METHOD or len(value) < 1 + width:
        raise InputError(
            "a COMPRESSED column does not start with a known compression header",
            code=Code.BAD_VALUE,
        )
    size = int.from_bytes(value[1 : 1 + width], "big")
    if size > MAX_EVENT_BYTES:
        raise InputError(f"a COMPRESSED column claims {size} bytes", code=Code.BAD_VALUE)
    try:
        unpacker = zlib.decompressobj(-15 if value[0] & 0x08 else 15)
        plain = unpacker.decompress(value[1 + width :], size + 1)
    except zlib.error as error:
        raise InputError(
            f"a COMPRESSED column cannot be decompressed: {error}", code=Code.BAD_VALUE
        ) from None
    if len(plain) != size or not unpacker.eof:
        raise InputError(
            f"a COMPRESSED column does not have the {size} bytes that it claims",
            code=Code.BAD_VALUE,
        )
    return plain


def _old_timestamp(local: Column) -> Convert:
    return lambda value: pack_timestamp(value * 1_000_000, local.scale)


def _old_datetime(local: Column) -> Convert:
    def convert(value: int) -> bytes:
        parts = number_to_parts(value)
        if not in_range(parts):
            raise InputError(f"a DATETIME of the old format holds {value}", code=Code.BAD_VALUE)
        return pack_datetime(parts, local.scale)

    return convert


def _old_time(local: Column) -> Convert:
    def convert(value: int) -> bytes:
        clock = abs(value)
        seconds = clock // 10000 * 3600 + clock // 100 % 100 * 60 + clock % 100
        return pack_time((-seconds if value < 0 else seconds) * 1_000_000, local.scale)

    return convert
