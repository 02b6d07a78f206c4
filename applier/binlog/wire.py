"""How a column's value stands in a row image: the types of the log as rows of a table.

libs/mysql/binlog/event/rows_event.cpp and sql/field.cc (`Field_*::pack`), 5.6 to 9.7. A type and
its table map metadata give a `Wire`: how many bytes, and what stored value comes out of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from applier.error_codes import Code
from applier.errors import InputError

DECIMAL, TINY, SHORT, LONG, FLOAT, DOUBLE, NULL, TIMESTAMP, LONGLONG, INT24 = range(10)
DATE, TIME, DATETIME, YEAR, NEWDATE, VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2, TYPED_ARRAY = (
    range(10, 21)
)
VECTOR, JSON, NEWDECIMAL, ENUM, SET = 242, 245, 246, 247, 248
TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB, VAR_STRING, STRING, GEOMETRY = range(249, 256)
MARIADB_BLOB_COMPRESSED, MARIADB_VARCHAR_COMPRESSED = 140, 141

DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
NUMERIC_TYPES = frozenset(
    {TINY, SHORT, INT24, LONG, LONGLONG, YEAR, FLOAT, DOUBLE, DECIMAL, NEWDECIMAL}
)
CHARACTER_TYPES = frozenset({STRING, VAR_STRING, VARCHAR, BLOB, TINY_BLOB, MEDIUM_BLOB, LONG_BLOB})


@dataclass(frozen=True, slots=True)
class Wire:
    """`kind` says how the bytes become a stored value:

    "int", "uint": little-endian of `size` bytes; "bits": big-endian; "bytes": as they stand;
    "prefixed": `size` bytes of length, then that many bytes.
    """

    kind: str
    size: int


DIGITS_IN_JSON = 81
"""Nine groups of nine (DECIMAL_BUFF_LENGTH): what a DECIMAL in a JSON document may have, before and
behind the point (seen on 9.7.4)."""


def decimal_bytes(precision: int, scale: int, most: int = 65, most_behind: int = 38) -> int:
    """Bytes of a DECIMAL (`decimal_bin_size`, strings/decimal.c). A column of MariaDB has up to 38
    digits behind the point, one of MySQL 30.

    Raises InputError for what no DECIMAL can be.
    """
    whole = precision - scale
    if whole < 0 or not 1 <= precision <= most or scale > most_behind:
        raise InputError(f"DECIMAL({precision},{scale}) in a table map", code=Code.BAD_TABLE_MAP)
    return whole // 9 * 4 + DIGIT_BYTES[whole % 9] + scale // 9 * 4 + DIGIT_BYTES[scale % 9]


def string_length(metadata: int) -> int:
    """Maximum bytes of a CHAR or BINARY; metadata as the two bytes stand, first byte high."""
    high, low = metadata >> 8, metadata & 0xFF
    return ((high << 4 & 0x300) ^ 0x300) + low


def real_type(type_code: int, metadata: int) -> int:
    """ENUM and SET hide behind STRING; their type is the high byte of the metadata."""
    return metadata >> 8 if type_code == STRING and metadata >> 8 in (ENUM, SET) else type_code


def _fraction(metadata: int) -> int:
    if metadata > 6:
        raise InputError(
            f"{metadata} digits of fractional seconds in a table map", code=Code.BAD_TABLE_MAP
        )
    return (metadata + 1) // 2


def _prefix(most: int) -> Wire:
    return Wire("prefixed", 1 if most <= 255 else 2)


def _blob(metadata: int) -> Wire:
    if not 1 <= metadata <= 4:
        raise InputError(
            f"a length of {metadata} bytes for a BLOB in a table map", code=Code.BAD_TABLE_MAP
        )
    return Wire("prefixed", metadata)


def _fixed(kind: str, size: int) -> Callable[[int, bool], Wire]:
    wire = Wire(kind, size)
    return lambda metadata, unsigned: wire


def _integer(size: int) -> Callable[[int, bool], Wire]:
    signed, plain = Wire("int", size), Wire("uint", size)
    return lambda metadata, unsigned: plain if unsigned else signed


def _bits(odd: int, whole: int) -> Wire:
    if odd > 7 or not 1 <= 8 * whole + odd <= 64:
        raise InputError(f"a BIT of {8 * whole + odd} bits in a table map", code=Code.BAD_TABLE_MAP)
    return Wire("bits", whole + (1 if odd else 0))


def _enumeration(metadata: int, _unsigned: bool) -> Wire:
    size = metadata & 0xFF
    if not 1 <= size <= 8:
        raise InputError(f"an ENUM or SET of {size} bytes in a table map", code=Code.BAD_TABLE_MAP)
    return Wire("uint", size)


WIRES: dict[int, Callable[[int, bool], Wire]] = {
    TINY: _integer(1),
    SHORT: _integer(2),
    INT24: _integer(3),
    LONG: _integer(4),
    LONGLONG: _integer(8),
    YEAR: _fixed("uint", 1),
    FLOAT: _fixed("bytes", 4),
    DOUBLE: _fixed("bytes", 8),
    DATE: _fixed("uint", 3),
    NEWDATE: _fixed("uint", 3),
    TIME: _fixed("int", 3),
    DATETIME: _fixed("uint", 8),
    TIMESTAMP: _fixed("uint", 4),
    TIMESTAMP2: lambda metadata, unsigned: Wire("bytes", 4 + _fraction(metadata)),
    DATETIME2: lambda metadata, unsigned: Wire("bytes", 5 + _fraction(metadata)),
    TIME2: lambda metadata, unsigned: Wire("bytes", 3 + _fraction(metadata)),
    NEWDECIMAL: lambda metadata, unsigned: Wire(
        "bytes", decimal_bytes(metadata >> 8, metadata & 0xFF)
    ),
    BIT: lambda metadata, unsigned: _bits(metadata >> 8, metadata & 0xFF),
    ENUM: _enumeration,
    SET: _enumeration,
    STRING: lambda metadata, unsigned: _prefix(string_length(metadata)),
    VAR_STRING: lambda metadata, unsigned: _prefix(metadata),
    VARCHAR: lambda metadata, unsigned: _prefix(metadata),
    MARIADB_VARCHAR_COMPRESSED: lambda metadata, unsigned: _prefix(metadata),
    BLOB: lambda metadata, unsigned: _blob(metadata),
    TINY_BLOB: lambda metadata, unsigned: _blob(metadata),
    MEDIUM_BLOB: lambda metadata, unsigned: _blob(metadata),
    LONG_BLOB: lambda metadata, unsigned: _blob(metadata),
    MARIADB_BLOB_COMPRESSED: lambda metadata, unsigned: _blob(metadata),
    JSON: lambda metadata, unsigned: _blob(metadata),
    GEOMETRY: lambda metadata, unsigned: _blob(metadata),
    VECTOR: lambda metadata, unsigned: _blob(metadata),
    TYPED_ARRAY: lambda metadata, unsigned: _blob(4),
}


def wire_of(type_code: int, metadata: int, unsigned: bool) -> Wire:
    """Raises InputError for a type that no row image can hold."""
    rule = WIRES.get(real_type(type_code, metadata))
    if rule is None:
        raise InputError(
            f"column type {type_code} in a table map is unknown", code=Code.BAD_TABLE_MAP
        )
    return rule(metadata, unsigned)


ONE_BYTE_METADATA = frozenset(
    {
        FLOAT,
        DOUBLE,
        BLOB,
        TINY_BLOB,
        MEDIUM_BLOB,
        LONG_BLOB,
        MARIADB_BLOB_COMPRESSED,
        JSON,
        GEOMETRY,
        VECTOR,
    }
) | {
    TIMESTAMP2,
    DATETIME2,
    TIME2,
}
LITTLE_ENDIAN_METADATA = frozenset({VARCHAR, VAR_STRING, MARIADB_VARCHAR_COMPRESSED})
BIG_ENDIAN_METADATA = frozenset({BIT, NEWDECIMAL, STRING, ENUM, SET})
"""Two bytes, first byte high: BIT is bits, bytes; NEWDECIMAL precision, scale; STRING real type and
length."""
