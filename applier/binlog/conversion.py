"""Values of a source column's type into those of a local column of another type (`copy_field`, sql/field_conv.cc)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from applier.binlog import wire
from applier.binlog.charsets import charset
from applier.binlog.payload import MAX_EVENT_BYTES
from applier.binlog.table_map import SourceColumn
from applier.binlog.types import ValueRefused, from_sql
from applier.binlog.types.numbers import decimal_to_text, float_to_python, integer_range
from applier.binlog.types.temporal import pack_datetime, pack_time, pack_timestamp
from applier.binlog.types.texts import strip_pad
from applier.errors import InputError
from lookup.table import Column

Convert = Callable[[Any], Any]

ZLIB_METHOD = 8
_FIXED = {wire.TIMESTAMP2: 4, wire.DATETIME2: 5, wire.TIME2: 3}


def converter(source: SourceColumn, local: Column, *, unsigned: bool = False) -> Convert | None:
    """A function on stored values that are not NULL; None when the value stays as it is."""
    kind = source.real_type
    old = {wire.TIMESTAMP: _old_timestamp, wire.DATETIME: _old_datetime, wire.TIME: _old_time}.get(kind)
    if old is not None and local.type in ("timestamp", "datetime", "time"):
        return old(local)
    if kind in _FIXED:
        return _fraction(_FIXED[kind], (source.metadata + 1) // 2, (local.scale + 1) // 2)
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
    """The event's bytes are read with the local sign; another width converts as signed unless told otherwise."""
    sizes = {wire.TINY: "tinyint", wire.SHORT: "smallint", wire.INT24: "mediumint", wire.LONG: "int", wire.LONGLONG: "bigint"}
    theirs = sizes.get(source.real_type)
    if theirs is None or theirs == local.type:
        return None
    bits = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}[theirs]
    low, high = integer_range(local)

    def convert(value: int) -> int:
        if not unsigned and value >= 1 << (bits - 1):
            value -= 1 << bits
        return min(max(value, low), high)

    return convert


def _fraction(base: int, theirs: int, own: int) -> Convert | None:
    if theirs == own:
        return None
    if theirs < own:
        return lambda value: value + bytes(own - theirs) if base != 3 else _widen_time(value, own)
    return lambda value: value[: base + own]


def _widen_time(value: bytes, own: int) -> bytes:
    from applier.binlog.types.temporal import time_microseconds

    return pack_time(time_microseconds(value), own * 2)


def _decimal(source: SourceColumn, local: Column) -> Convert | None:
    precision, scale = source.metadata >> 8, source.metadata & 0xFF
    if local.type == "decimal" and (precision, scale) == (local.length or 10, local.scale):
        return None
    return _through_text(decimal_to_text(precision, scale), local)


def _float(source: SourceColumn, local: Column) -> Convert | None:
    theirs = "float" if source.real_type == wire.FLOAT else "double"
    return None if theirs == local.type else _through_text(float_to_python(Column("", theirs)), local)


def _through_text(read: Convert, local: Column) -> Convert:
    write = from_sql(local)

    def convert(value: Any) -> Any:
        try:
            return write(read(value))
        except ValueRefused as refused:
            return refused.closest

    return convert


def _string(source: SourceColumn, local: Column) -> Convert | None:
    """Between CHAR, VARCHAR and BLOB: bytes stay, a CHAR or BINARY loses its padding, a shorter column cuts."""
    if source.real_type not in (wire.STRING, wire.VARCHAR, wire.VAR_STRING, wire.BLOB):
        return None
    if local.type == "char" and source.real_type != wire.STRING:
        pad = charset(local.charset).pad
        return lambda value: strip_pad(value, pad)
    if local.type == "binary" and source.real_type != wire.STRING:
        return lambda value: value.rstrip(b"\0")
    return None


def _decompress(value: bytes) -> bytes:
    """MariaDB's COMPRESSED columns: a byte of method (high half: 0 plain, 8 zlib) and flags, the size, then the data.

    `uncompress_zlib` (sql/field_comp.cc, 10.11): the low three bits say how many bytes the size takes, big-endian; bit 3 that
    the stream has no zlib header. Never more is unpacked than the size says.
    """
    if not value or value[0] >> 4 == 0:
        return value[1:]
    width = value[0] & 0x07
    if value[0] >> 4 != ZLIB_METHOD or len(value) < 1 + width:
        raise InputError("a COMPRESSED column does not start with a known compression header")
    size = int.from_bytes(value[1 : 1 + width], "big")
    if size > MAX_EVENT_BYTES:
        raise InputError(f"a COMPRESSED column claims {size} bytes")
    try:
        unpacker = zlib.decompressobj(-15 if value[0] & 0x08 else 15)
        plain = unpacker.decompress(value[1 + width :], size + 1)
    except zlib.error as error:
        raise InputError(f"a COMPRESSED column cannot be decompressed: {error}") from None
    if len(plain) != size or not unpacker.eof:
        raise InputError(f"a COMPRESSED column does not have the {size} bytes that it claims")
    return plain


def _old_timestamp(local: Column) -> Convert:
    return lambda value: pack_timestamp(value * 1_000_000, local.scale)


def _old_datetime(local: Column) -> Convert:
    def convert(value: int) -> bytes:
        day, clock = divmod(value, 1_000_000)
        parts = (day // 10000, day // 100 % 100, day % 100, clock // 10000, clock // 100 % 100, clock % 100, 0)
        if local.type == "timestamp":
            moment = datetime(*parts[:6], tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
            return pack_timestamp(moment // timedelta(microseconds=1), local.scale)
        return pack_datetime(parts, local.scale)

    return convert


def _old_time(local: Column) -> Convert:
    def convert(value: int) -> bytes:
        clock = abs(value)
        seconds = clock // 10000 * 3600 + clock // 100 % 100 * 60 + clock % 100
        return pack_time((-seconds if value < 0 else seconds) * 1_000_000, local.scale)

    return convert
