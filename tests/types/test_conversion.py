"""Columns whose type differs from the source's: what is refused (1677), what each permission lets
through, and what becomes of values.

The order of two types is that of `can_convert_field_to` (sql/rpl_utility.cc).
"""

from __future__ import annotations

import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import applier
from applier.binlog.images.matching import conversion_order, match
from applier.binlog.table_map import SourceColumn, TableMap
from applier.binlog.types import from_sql, to_python
from applier.binlog.types.temporal import pack_datetime, pack_time
from applier.errors import ReplicationError
from lookup.table import Column
from tests.applier.logs import log, transaction
from tests.binlog.build import rows, table_map, write

TINY, SHORT, LONG, FLOAT, DOUBLE, TIMESTAMP, LONGLONG, INT24, DATE, TIME, DATETIME, YEAR = (
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    10,
    11,
    12,
    13,
)
(
    VARCHAR,
    BIT,
    TIMESTAMP2,
    DATETIME2,
    TIME2,
    VECTOR,
    JSON,
    NEWDECIMAL,
    ENUM,
    SET,
    BLOB,
    STRING,
    GEOMETRY,
) = (
    15,
    16,
    17,
    18,
    19,
    242,
    245,
    246,
    247,
    248,
    252,
    254,
    255,
)
NON_LOSSY, LOSSY, BOTH = (
    frozenset({"ALL_NON_LOSSY"}),
    frozenset({"ALL_LOSSY"}),
    frozenset({"ALL_LOSSY", "ALL_NON_LOSSY"}),
)


def local(definition: str) -> Column:
    tables = applier.load_schema(f"CREATE TABLE d.t (c {definition});")
    return tables["d.t"].definition.columns[0]


def two(first: int, second: int) -> int:
    """Metadata of two bytes, the first one high."""
    return first << 8 | second


def char(length: int) -> int:
    return two(STRING ^ (length & 0x300) >> 4, length & 0xFF)


ORDERS = [
    (TINY, 0, "TINYINT", 0), (TINY, 0, "TINYINT UNSIGNED", 0), (TINY, 0, "SMALLINT", -1),
    (SHORT, 0, "TINYINT", 1), (LONG, 0, "INT UNSIGNED", 0), (LONG, 0, "BIGINT", -1),
    (LONGLONG, 0, "INT", 1), (INT24, 0, "MEDIUMINT", 0), (INT24, 0, "INT", -1),
    (SHORT, 0, "MEDIUMINT", -1), (LONG, 0, "MEDIUMINT", 1), (INT24, 0, "SMALLINT", 1),
    (LONG, 0, "VARCHAR(10)", None), (LONG, 0, "DECIMAL(10,0)", None), (LONG, 0, "YEAR", None),
    (NEWDECIMAL, two(10, 2), "DECIMAL(10,2)", 0),
    (NEWDECIMAL, two(10, 2), "DECIMAL(12,0)", -1), (NEWDECIMAL, two(10, 2), "DECIMAL(10,3)", -1),
    (NEWDECIMAL, two(12, 2), "DECIMAL(10,5)", 1), (NEWDECIMAL, two(10, 2), "DOUBLE", 1),
    (NEWDECIMAL, two(10, 2), "FLOAT", 1), (NEWDECIMAL, two(10, 2), "INT", None),
    (FLOAT, 4, "FLOAT", 0), (FLOAT, 4, "DOUBLE", -1), (DOUBLE, 8, "FLOAT", 1),
    (DOUBLE, 8, "DECIMAL(65,30)", 1), (FLOAT, 4, "DECIMAL(65,30)", 1), (DOUBLE, 8, "BIGINT", None),
    (BIT, two(0, 1), "BIT(8)", 0), (BIT, two(3, 0), "BIT(8)", -1), (BIT, two(1, 1), "BIT(8)", 1),
    (BIT, two(0, 1), "TINYINT", None), (DATE, 0, "DATE", 0), (DATE, 0, "DATETIME", None),
    (YEAR, 0, "YEAR", 0), (YEAR, 0, "INT", None), (JSON, 4, "JSON", 0), (JSON, 4, "LONGTEXT", None),
    (BLOB, 4, "TINYBLOB", 0), (BLOB, 1, "LONGTEXT CHARSET latin1", 0), (GEOMETRY, 4, "GEOMETRY", 0),
    (GEOMETRY, 4, "LONGBLOB", None), (TIME2, 0, "TIME(6)", 0), (TIME2, 1, "TIME(2)", 0),
    (TIME2, 3, "TIME(6)", -1), (TIME2, 6, "TIME(3)", 1), (DATETIME2, 6, "DATETIME", 1),
    (DATETIME2, 0, "TIMESTAMP", None), (TIMESTAMP2, 3, "TIMESTAMP(4)", 0), (TIME, 0, "TIME(3)", -1),
    (DATETIME, 0, "DATETIME", -1), (TIMESTAMP, 0, "TIMESTAMP", -1),
    (TIMESTAMP, 0, "DATETIME", None), (TIME, 0, "DATE", None),
    (VARCHAR, 40, "VARCHAR(10) CHARSET utf8mb4", 0),
    (VARCHAR, 10, "VARCHAR(10) CHARSET utf8mb4", -1),
    (VARCHAR, 41, "VARCHAR(10) CHARSET utf8mb4", 1),
    (STRING, char(40), "CHAR(10) CHARSET utf8mb4", 0),
    (STRING, char(255), "CHAR(255) CHARSET latin1", 0),
    (STRING, char(1020), "CHAR(255) CHARSET utf8mb4", 0),
    (STRING, char(10), "VARCHAR(10) CHARSET latin1", -1), (VARCHAR, 10, "BINARY(10)", -1),
    (VARCHAR, 300, "TINYTEXT", 1), (VARCHAR, 300, "TEXT", -1), (BLOB, 2, "VARCHAR(100)", 1),
    (BLOB, 1, "VARBINARY(255)", -1), (STRING, char(10), "INT", None),
    (STRING, two(ENUM, 1), "ENUM('a')", 0), (STRING, two(ENUM, 2), "ENUM('a')", 1),
    (STRING, two(SET, 1), "SET('a')", 0),
    (STRING, two(SET, 1), "SET('a','b','c','d','e','f','g','h','i')", -1),
    (STRING, two(ENUM, 1), "SET('a')", None),
    (STRING, two(ENUM, 1), "VARCHAR(9)", None),
]  # fmt: skip
"""(type code, metadata, local column, order): 0 alike, -1 fits without loss, 1 lossy, None
never."""


@pytest.mark.parametrize(("code", "metadata", "definition", "order"), ORDERS)
def test_the_order_of_two_types(
    code: int, metadata: int, definition: str, order: int | None
) -> None:
    assert conversion_order(SourceColumn(code, metadata), local(definition)) == order


@pytest.mark.parametrize(("code", "metadata", "definition", "order"), ORDERS)
def test_what_each_permission_lets_through(
    code: int, metadata: int, definition: str, order: int | None
) -> None:
    """Old temporal formats need none to become new ones."""
    definitions = applier.load_schema(f"CREATE TABLE d.t (c {definition});")["d.t"].definition
    mapped = TableMap(1, 1, "d", "t", (SourceColumn(code, metadata),))
    free = code in (TIME, DATETIME, TIMESTAMP) and order is not None
    for permission, lets in ((frozenset(), 0), (NON_LOSSY, -1), (LOSSY, 1)):
        if order is not None and (free or order in (0, lets)):
            assert match(mapped, definitions, permission).local((0,)) == (0,)
        else:
            with pytest.raises(ReplicationError) as caught:
                match(mapped, definitions, permission)
            assert caught.value.number == 1677
            assert caught.value.message.startswith(
                "Column 0 of table 'd.t' cannot be converted from type '"
            )


def test_a_vector_keeps_its_dimensions() -> None:
    column = local("VECTOR(3)")
    assert conversion_order(SourceColumn(VECTOR, 4, dimensions=3), column) == 0
    assert conversion_order(SourceColumn(VECTOR, 4, dimensions=4), column) is None


def landed(
    folder: Path,
    code: int,
    metadata: bytes,
    image: bytes,
    definition: str,
    permission: str = "ALL_LOSSY,ALL_NON_LOSSY",
) -> Any:
    """What stands in the local column after one row was inserted."""
    content = log(
        *transaction(1, table_map(types=bytes([code]), metadata=metadata), rows(30, b"\0" + image))
    )
    tables = applier.load_schema(f"CREATE TABLE d.t (c {definition});")
    result = applier.replay([write(folder, content)], into=tables, type_conversions=permission)
    assert result.error is None, result.error
    (row,) = tables["d.t"].rows()
    return row[0]


@pytest.mark.parametrize(
    ("code", "raw", "definition", "permission", "value"),
    [
        (LONG, b"\xff\xff\xff\xff", "BIGINT", "ALL_NON_LOSSY", -1),
        (LONG, b"\xff\xff\xff\xff", "INT UNSIGNED", "", 4294967295),
        (LONG, b"\xff\xff\xff\xff", "BIGINT UNSIGNED", "ALL_NON_LOSSY", 0),
        (LONG, b"\xff\xff\xff\xff", "BIGINT UNSIGNED", "ALL_NON_LOSSY,ALL_UNSIGNED", 4294967295),
        (LONG, b"\xff\xff\xff\xff", "BIGINT", "ALL_NON_LOSSY,ALL_UNSIGNED", 4294967295),
        (LONG, b"\xff\xff\xff\xff", "BIGINT", "ALL_NON_LOSSY,ALL_UNSIGNED,ALL_SIGNED", -1),
        (LONG, b"\x2c\x01\0\0", "TINYINT", "ALL_LOSSY", 127),
        (LONG, b"\0\0\0\x80", "TINYINT", "ALL_LOSSY", -128),
        (TINY, b"\x80", "INT", "ALL_NON_LOSSY", -128),
        (INT24, b"\xff\xff\xff", "INT", "ALL_NON_LOSSY", -1),
        (LONGLONG, b"\xff" * 7 + b"\x7f", "INT UNSIGNED", "ALL_LOSSY", 4294967295),
    ],
)
def test_integers_of_another_width(
    tmp_path: Path, code: int, raw: bytes, definition: str, permission: str, value: int
) -> None:
    """The field of the conversion is signed unless ALL_UNSIGNED is set without ALL_SIGNED."""
    assert landed(tmp_path, code, b"", raw, definition, permission) == value


@pytest.mark.parametrize(
    ("source", "value", "definition", "shown"),
    [
        ("DECIMAL(10,2)", "123.45", "DECIMAL(10,1)", Decimal("123.5")),
        ("DECIMAL(10,2)", "-99999999.99", "DECIMAL(5,1)", Decimal("-9999.9")),
        ("DECIMAL(10,2)", "1.25", "DOUBLE", 1.25),
        ("DECIMAL(65,30)", "0." + "1" * 30, "DECIMAL(65,20)", Decimal("0." + "1" * 20)),
        ("DOUBLE", 1e39, "FLOAT", 3.4028234663852886e38),
        ("DOUBLE", 0.1, "FLOAT", struct.unpack("<f", struct.pack("<f", 0.1))[0]),
        ("DOUBLE", -2.675, "DECIMAL(5,2)", Decimal("-2.68")),
        ("DOUBLE", 1e300, "DECIMAL(5,2)", Decimal("999.99")),
        ("FLOAT", 1.5, "DOUBLE", 1.5),
        ("FLOAT", 1.5, "DECIMAL(5,2)", Decimal("1.50")),
    ],
)
def test_numbers_of_another_kind(
    tmp_path: Path, source: str, value: object, definition: str, shown: object
) -> None:
    column = local(source)
    code = {"decimal": NEWDECIMAL, "double": DOUBLE, "float": FLOAT}[column.type]
    metadata = {
        "decimal": bytes([column.length or 0, column.scale]),
        "double": b"\x08",
        "float": b"\x04",
    }[column.type]
    assert landed(tmp_path, code, metadata, from_sql(column)(value), definition) == shown


@pytest.mark.parametrize(
    ("code", "metadata", "image", "definition", "value"),
    [
        (VARCHAR, b"\x14\0", b"\x08abcdefgh", "VARCHAR(5) CHARSET latin1", "abcde"),
        (VARCHAR, b"\x14\0", b"\x08abcdefgh", "CHAR(5) CHARSET latin1", "abcde"),
        (VARCHAR, b"\x14\0", b"\x06" + "éaéb".encode(), "VARCHAR(3) CHARSET utf8mb4", "éaé"),
        (VARCHAR, b"\x14\0", b"\x05ab   ", "CHAR(20) CHARSET latin1", "ab"),
        (VARCHAR, b"\x14\0", b"\x05ab   ", "VARCHAR(200) CHARSET latin1", "ab   "),
        (VARCHAR, b"\x14\0", b"\x04ab\0\0", "BINARY(6)", b"ab\0\0\0\0"),
        (VARCHAR, b"\x14\0", b"\x02\xe9\xff", "VARCHAR(200) CHARSET latin1", "éÿ"),
        (STRING, b"\xfe\x0a", b"\x02ab", "VARCHAR(3) CHARSET latin1", "ab"),
        (STRING, b"\xfe\x0a", b"\x03abc", "CHAR(2) CHARSET latin1", "ab"),
        (BLOB, b"\x02", b"\x05\0hello", "VARCHAR(3) CHARSET latin1", "hel"),
        (BLOB, b"\x02", b"\x2c\x01" + b"x" * 300, "VARBINARY(10)", b"x" * 10),
        (VARCHAR, b"\x2c\x01", b"\x2c\x01" + b"x" * 300, "TINYTEXT CHARSET latin1", "x" * 255),
        (VARCHAR, b"\x0c\0", b"\x0cabcdefghijkl", "VARCHAR(3) CHARSET utf8mb4", "abcdefghijkl"),
    ],
)
def test_strings_of_another_length(
    tmp_path: Path, code: int, metadata: bytes, image: bytes, definition: str, value: object
) -> None:
    """A shorter column cuts, by characters of its own set; as many bytes are taken over as they are
    (the last case)."""
    assert landed(tmp_path, code, metadata, image, definition) == value


def test_too_many_bits_are_all_ones(tmp_path: Path) -> None:
    assert landed(tmp_path, BIT, b"\0\x02", b"\x01\x2c", "BIT(8)") == 255
    assert landed(tmp_path, BIT, b"\0\x02", b"\0\x2c", "BIT(8)") == 44
    assert landed(tmp_path, BIT, b"\x03\0", b"\5", "BIT(64)") == 5


@pytest.mark.parametrize(
    ("digits", "microseconds", "definition", "value"),
    [
        (6, 1_400_000, "TIME", 1_000_000),
        (6, 1_500_000, "TIME", 2_000_000),
        (6, -400_000, "TIME", 0),
        (6, -500_000, "TIME", -1_000_000),
        (6, -1_234_567, "TIME(3)", -1_235_000),
        (2, -1_230_000, "TIME(6)", -1_230_000),
        (4, -100, "TIME(6)", -100),
        (0, -3_000_000, "TIME(6)", -3_000_000),
    ],
)
def test_fractions_of_a_time(
    tmp_path: Path, digits: int, microseconds: int, definition: str, value: int
) -> None:
    """Rounded, not cut, and on both sides of zero alike."""
    found = landed(tmp_path, TIME2, bytes([digits]), pack_time(microseconds, digits), definition)
    assert found // timedelta(microseconds=1) == value


@pytest.mark.parametrize(
    ("digits", "definition", "value"),
    [
        (6, "DATETIME", datetime(2025, 1, 1)),
        (6, "DATETIME(2)", datetime(2025, 1, 1)),
        (6, "DATETIME(4)", datetime(2024, 12, 31, 23, 59, 59, 999_900)),
        (3, "DATETIME(6)", datetime(2024, 12, 31, 23, 59, 59, 999_000)),
    ],
)
def test_fractions_of_a_datetime(
    tmp_path: Path, digits: int, definition: str, value: datetime
) -> None:
    raw = pack_datetime((2024, 12, 31, 23, 59, 59, 999_900 if digits == 6 else 999_000), digits)
    assert landed(tmp_path, DATETIME2, bytes([digits]), raw, definition) == value
    zero = pack_datetime((0, 0, 0, 0, 0, 0, 0), digits)
    assert str(landed(tmp_path, DATETIME2, bytes([digits]), zero, definition)).startswith(
        "0000-00-00 00:00:00"
    )


@pytest.mark.parametrize(
    ("code", "raw", "definition", "value"),
    [
        (DATETIME, struct.pack("<Q", 20240229123456), "DATETIME(3)",
         datetime(2024, 2, 29, 12, 34, 56)),
        (DATETIME, bytes(8), "DATETIME", "0000-00-00 00:00:00"),
        (DATETIME, struct.pack("<Q", 20240000000000), "DATETIME", "2024-00-00 00:00:00"),
        (TIME, struct.pack("<i", -8385959)[:3], "TIME",
         -timedelta(hours=838, minutes=59, seconds=59)),
        (TIME, struct.pack("<i", 1)[:3], "TIME(6)", timedelta(seconds=1)),
        (TIMESTAMP, bytes(4), "TIMESTAMP", "0000-00-00 00:00:00"),
        (DATE, struct.pack("<I", 2024 << 9 | 2 << 5 | 29)[:3], "DATE", date(2024, 2, 29)),
    ],
)  # fmt: skip
def test_the_formats_before_5_6_4(
    tmp_path: Path, code: int, raw: bytes, definition: str, value: object
) -> None:
    assert landed(tmp_path, code, b"", raw, definition, "") == value


def test_a_datetime_that_is_none(tmp_path: Path) -> None:
    for number in ((1 << 64) - 1, 20241301000000, 20240101250000):
        with pytest.raises(applier.InputError, match="holds") as caught:
            landed(tmp_path, DATETIME, b"", struct.pack("<Q", number), "DATETIME", "")
        assert caught.value.table == "d.t"


# columns on one side only


def replayed(
    folder: Path, schema: str, types: bytes, image: bytes, **options: object
) -> list[tuple[Any, ...]]:
    content = log(*transaction(1, table_map(types=types), rows(30, image, width=len(types))))
    tables = applier.load_schema(schema)
    result = applier.replay([write(folder, content)], into=tables, **options)
    assert result.error is None, result.error
    return tables["d.t"].rows()


def test_columns_at_the_right_that_only_the_replica_has(tmp_path: Path) -> None:
    schema = """CREATE TABLE d.t (a INT, b VARCHAR(9) DEFAULT 'x', c INT NOT NULL,
        g INT GENERATED ALWAYS AS (a + 1) STORED,
        e ENUM('p','q') NOT NULL, d DECIMAL(5,2) DEFAULT 1.5, n INT);"""
    found = replayed(tmp_path, schema, b"\x03", b"\0\x07\0\0\0")
    assert found == [(7, "x", 0, 8, "p", Decimal("1.50"), None)]


def test_columns_at_the_right_that_only_the_source_has(tmp_path: Path) -> None:
    image = b"\0" + struct.pack("<iq", 7, 9)
    assert replayed(tmp_path, "CREATE TABLE d.t (a INT);", b"\x03\x08", image) == [(7,)]


def test_a_null_in_a_column_that_has_none(tmp_path: Path) -> None:
    """The server stores the column's default (warning 1048)."""
    content = log(*transaction(1, (19, table_map()[1][:-1] + b"\1"), rows(30, b"\1")))
    tables = applier.load_schema("CREATE TABLE d.t (a INT NOT NULL DEFAULT 5);")
    assert applier.replay([write(tmp_path, content)], into=tables).error is None
    assert tables["d.t"].rows() == [(5,)]


@given(st.integers(-(1 << 31), (1 << 31) - 1))
def test_widening_an_integer_loses_nothing(number: int) -> None:
    source = SourceColumn(LONG, 0)
    column = local("BIGINT")
    mapped = TableMap(1, 1, "d", "t", (source,))
    definition = applier.load_schema("CREATE TABLE d.t (c BIGINT);")["d.t"].definition
    (target,) = match(mapped, definition, NON_LOSSY).targets
    assert target.convert is not None
    assert to_python(column)(target.convert(number)) == number
