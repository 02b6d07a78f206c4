"""Stored values as SQL text."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from applier.binlog.types import from_sql, json
from applier.mysql.statements.literals import (
    NotExpressible,
    diff_expression,
    equals,
    exact_order,
    json_expression,
    key_equals,
    literal,
)
from lookup.table import Column

MILLISECONDS = Column("a", "datetime", scale=3)
LATIN = Column("a", "varchar", length=9, charset="latin1")


@pytest.mark.parametrize(
    ("column", "value", "sql"),
    [
        (Column("a", "bigint", unsigned=True), (1 << 64) - 1, "18446744073709551615"),
        (Column("a", "bit", length=9), 257, "257"),
        (Column("a", "set", charset="utf8mb4", labels=("x", "y")), 3, "3"),
        (Column("a", "enum", charset="utf8mb4", labels=("x", "y")), 0, "0"),
        (Column("a", "year"), 0, "'0000'"),
        (Column("a", "year"), 1, "1901"),
        (Column("a", "double"), struct.pack("<d", 0.1), "0.1e0"),
        (Column("a", "double"), struct.pack("<d", -1e300), "-1e+300"),
        (Column("a", "float"), struct.pack("<f", 1.1), "1.100000023841858e0"),
        (Column("a", "decimal", length=5, scale=2),
         from_sql(Column("a", "decimal", length=5, scale=2))("-1.50"), "-1.50"),
        (Column("a", "date"), 0, "'0000-00-00'"),
        (MILLISECONDS, from_sql(MILLISECONDS)("2024-02-30 01:02:03.5"),
         "'2024-02-30 01:02:03.500'"),
        (Column("a", "timestamp"), b"\0\0\0\0", "'0000-00-00 00:00:00'"),
        (Column("a", "time"), from_sql(Column("a", "time"))("-838:59:59"), "'-838:59:59'"),
        (Column("a", "binary", length=3), b"\x01", "_binary X'010000'"),
        (Column("a", "blob"), b"", "_binary X''"),
        (LATIN, b"\xe4'", "_latin1 X'e427'"),
        (Column("a", "text", charset="utf8mb3"), b"x", "_utf8mb3 X'78'"),
        (Column("a", "point"), b"\0\0\0\0\x01", "_binary X'0000000001'"),
        (Column("a", "inet4"), b"\x7f\0\0\x01", "'127.0.0.1'"),
    ],
)  # fmt: skip
def test_a_literal_makes_the_value(column: Column, value: Any, sql: str) -> None:
    assert literal(column, "9.7")(value) == sql
    assert literal(column, "9.7")(None) == "NULL"


def test_old_servers_know_utf8mb3_by_its_old_name() -> None:
    assert literal(Column("a", "text", charset="utf8mb3"), "5.7")(b"x") == "_utf8 X'78'"


@pytest.mark.parametrize(
    ("column", "value", "by_bytes", "by_key"),
    [
        (Column("a", "int"), 5, "`a` = 5", "`a` = 5"),
        (LATIN, b"x ", "CAST(`a` AS BINARY) = _binary X'7820'", "`a` = _latin1 X'7820'"),
        (Column("a", "set", charset="latin1", labels=("x",)), 1, "CAST(`a` AS UNSIGNED) = 1",
         "CAST(`a` AS UNSIGNED) = 1"),
        (Column("a", "geometry"), b"\xab", "HEX(`a`) = 'AB'", "HEX(`a`) = 'AB'"),
        (Column("a", "double"), b"\0" * 8, "`a` = 0.0e0 AND `a` NOT LIKE '%-%'", "`a` = 0.0e0"),
        (Column("a", "float"), b"\0\0\0\x80", "`a` = -0.0e0 AND `a` LIKE '%-%'", "`a` = -0.0e0"),
        (Column("a", "float"), struct.pack("<f", -0.5), "`a` = -0.5e0", "`a` = -0.5e0"),
        (Column("a", "float", 10, 5), struct.pack("<f", 100000.0), "`a` + 0e0 = 100000.0e0",
         "`a` + 0e0 = 100000.0e0"),
        (Column("a", "float", 10, 5), struct.pack("<f", 0.5), "`a` = 0.5e0", "`a` = 0.5e0"),
        (Column("a`b", "varbinary"), b"", "`a``b` = _binary X''", "`a``b` = _binary X''"),
    ],
)  # fmt: skip
def test_conditions(column: Column, value: Any, by_bytes: str, by_key: str) -> None:
    assert equals(column, "9.7")(value) == by_bytes
    assert key_equals(column, "9.7")(value) == by_key
    null = f"`{column.name.replace('`', '``')}` IS NULL"
    assert equals(column, "9.7")(None) == null
    assert key_equals(column, "9.7")(None) == null


def test_documents_that_are_equal_but_not_the_same_are_told_apart() -> None:
    order = exact_order(Column("a", "json"), "9.7")
    assert order is not None
    assert order(json.encode([1.0])) == f"CAST(`a` AS CHAR) = {hexed('[1.0]')} DESC"
    assert order(None) == ""
    assert exact_order(Column("a", "int"), "9.7") is None


def hexed(text: str) -> str:
    return f"_utf8mb4 X'{text.encode().hex()}'"


def test_plain_documents_are_text() -> None:
    text = '{"a": [1, null, "x"]}'
    assert json_expression({"a": [1, None, "x"]}, "9.7") == f"CAST({hexed(text)} AS JSON)"


def test_documents_with_types_of_their_own_are_built() -> None:
    decimal = json.OpaqueValue(
        json.NEWDECIMAL, bytes([3, 1]) + from_sql(Column("a", "decimal", length=3, scale=1))("-1.5")
    )
    assert json_expression({"a": [decimal, 1]}, "9.7") == (
        f"JSON_OBJECT({hexed('a')}, JSON_ARRAY(CAST(-1.5 AS DECIMAL(3,1)), CAST({hexed('1')} AS "
        "JSON)))"
    )
    assert (
        json_expression(json.OpaqueValue(15, b"L"), "9.7")
        == "JSON_EXTRACT(JSON_ARRAY(_binary X'4c'), '$[0]')"
    )


def test_a_document_may_hold_more_digits_than_a_column() -> None:
    """9.7.4 keeps the 72 digits of 0.000…0012 as they are."""
    tiny = json.OpaqueValue(json.NEWDECIMAL, bytes([73, 72]) + b"\x80" + bytes(31) + bytes([1]))
    assert json.to_text(tiny) == "0." + "0" * 71 + "1"
    with pytest.raises(NotExpressible, match="no literal makes"):
        json_expression({"a": tiny}, "9.7")


def test_a_binary_string_gets_its_type_code_or_none() -> None:
    assert json_expression([json.OpaqueValue(16, b"L")], "5.7") == "JSON_ARRAY(X'4c')"
    with pytest.raises(NotExpressible, match="type 16"):
        json_expression([json.OpaqueValue(16, b"L")], "9.7")


def test_a_time_breaks_in_5_7() -> None:
    time = json.OpaqueValue(json.TIME, bytes(8))
    assert json_expression([time], "9.7") == "JSON_ARRAY(CAST('00:00:00.000000' AS TIME(6)))"
    with pytest.raises(NotExpressible, match="type 11"):
        json_expression([time], "5.7")


def test_no_literal_makes_infinity() -> None:
    with pytest.raises(NotExpressible, match="inf"):
        literal(Column("a", "float"), "5.7")(struct.pack("<f", math.inf))


def test_a_fraction_of_a_whole_second() -> None:
    """5.7.29 rounds FROM_UNIXTIME(1.9999999) to it; the literal with seven digits would be
    .100000."""
    column = Column("a", "timestamp", scale=6)
    make = literal(column, "5.7")
    assert make(bytes.fromhex("000000010f423f")) == "'1970-01-01 00:00:01.999999'"
    with pytest.raises(NotExpressible, match=r"01\.1000000"):
        make(bytes.fromhex("000000010f4240"))


def test_changes_to_a_document() -> None:
    def change(operation: int, path: bytes, value: bytes = b"") -> bytes:
        return (
            bytes([operation, len(path)]) + path + (bytes([len(value)]) + value if value else b"")
        )

    one = json.encode(1)
    column = Column("j", "json")
    changes = (
        change(json.REPLACE, b"$.a", one)
        + change(json.INSERT, b"$[0]", one)
        + change(json.INSERT, b"$.b", one)
    )
    sql = diff_expression(column, json.JsonDiff(changes + change(json.REMOVE, b"$.c")), "9.7")
    value = f"CAST({hexed('1')} AS JSON)"
    assert sql == (
        f"JSON_REMOVE(JSON_INSERT(JSON_ARRAY_INSERT(JSON_REPLACE(`j`, {hexed('$.a')}, {value}), "
        f"{hexed('$[0]')}, {value}), "
        f"{hexed('$.b')}, {value}), {hexed('$.c')})"
    )
