"""MySQL's binary JSON: both container sizes, opaque values, text, paths, partial updates, and
documents that are damaged."""

from __future__ import annotations

import json as stdlib_json
import struct
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.binlog.types import ValueRefused, from_sql, json, to_text
from applier.binlog.types.json import (
    DATE,
    DATETIME,
    INSERT,
    NEWDECIMAL,
    REMOVE,
    REPLACE,
    TIME,
    TIMESTAMP,
    JsonDiff,
    OpaqueValue,
    Unsigned,
    canonical,
    decode,
    encode,
    parse_text,
    path_legs,
)
from applier.binlog.types.numbers import decimal_from_sql
from applier.errors import InputError, ReplicationError
from lookup.table import Column
from tests.binlog.build import packed

COLUMN = Column("j", "json")


def shown(data: bytes) -> str:
    return json.to_text(decode(data))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x04\x00", "null"),
        (b"\x04\x01", "true"),
        (b"\x04\x02", "false"),
        (b"\x05\xff\xff", "-1"),
        (b"\x06\xff\xff", "65535"),
        (b"\x07\x00\x00\x00\x80", "-2147483648"),
        (b"\x08\xff\xff\xff\xff", "4294967295"),
        (b"\x09" + b"\0" * 7 + b"\x80", "-9223372036854775808"),
        (b"\x0a" + b"\xff" * 8, "18446744073709551615"),
        (b"\x0b" + struct.pack("<d", 1.5), "1.5"),
        (b"\x0b" + struct.pack("<d", 1.0), "1.0"),
        (b"\x0b" + struct.pack("<d", 1e20), "1e20"),
        (b"\x0c\x00", '""'),
        (b"\x0c\x03abc", '"abc"'),
        (b"\x0c\x01\xff", '"\udcff"'),
        (b"\x0c\x81\x01" + b"x" * 129, '"' + "x" * 129 + '"'),
        (b"\x02\x00\x00\x04\x00", "[]"),
        (b"\x00\x00\x00\x04\x00", "{}"),
        (b"\x02\x02\x00\x0a\x00\x05\x01\x00\x04\x01\x00", "[1, true]"),
        (b"\x00\x01\x00\x0c\x00\x0b\x00\x01\x00\x05\x02\x00a", '{"a": 2}'),
        (b"\x03\x01\x00\x00\x00\x0d\x00\x00\x00\x07\xff\xff\xff\xff", "[-1]"),
        (b"", "null"),
    ],
)
def test_documents_byte_by_byte(raw: bytes, text: str) -> None:
    assert shown(raw) == text
    if raw and raw[0] not in (1, 3):
        assert encode(decode(raw)) == raw


@pytest.mark.parametrize(
    ("opaque", "text"),
    [
        (OpaqueValue(NEWDECIMAL, b"\x05\x02" + decimal_from_sql(5, 2)("-123.45")), "-123.45"),
        (OpaqueValue(NEWDECIMAL, b"\x41\x1e" + decimal_from_sql(65, 30)("9" * 35 + "." + "9" * 30)),
         "9" * 35 + "." + "9" * 30),
        (OpaqueValue(DATE, (((2024 * 13 + 2) << 5 | 29) << 17 << 24).to_bytes(8, "little")),
         '"2024-02-29"'),
        (
            OpaqueValue(
                DATETIME,
                ((((2024 * 13 + 2) << 5 | 29) << 17 | 12 << 12 | 34 << 6 | 56) << 24 | 5).to_bytes(
                    8, "little"
                ),
            ),
            '"2024-02-29 12:34:56.000005"',
        ),
        (OpaqueValue(TIMESTAMP, bytes(8)), '"0000-00-00 00:00:00.000000"'),
        (OpaqueValue(TIME,
                     (-((1 << 12 | 2 << 6 | 3) << 24 | 4)).to_bytes(8, "little", signed=True)),
         '"-01:02:03.000004"'),
        (OpaqueValue(252, b"abc"), '"base64:type252:YWJj"'),
        (OpaqueValue(16, b"\x05"), '"base64:type16:BQ=="'),
        (OpaqueValue(252, bytes(60)), '"base64:type252:' + "A" * 76 + '\\nAAAA"'),
    ],
)  # fmt: skip
def test_opaque_values(opaque: OpaqueValue, text: str) -> None:
    assert shown(encode(opaque)) == text
    assert decode(encode([opaque, {"k": opaque}])) == [opaque, {"k": opaque}]


@pytest.mark.parametrize(
    "data",
    [b"\x05\x09" + bytes(9), b"\x05\x02\x80", b"\xff\x02" + bytes(9), b"\x05\x02" + bytes(9)],
)
def test_a_decimal_that_does_not_fit_its_size(data: bytes) -> None:
    with pytest.raises(InputError):
        shown(encode(OpaqueValue(NEWDECIMAL, data)))


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ('{"b":1,"a":2,"cc":3}', '{"a": 2, "b": 1, "cc": 3}'),
        ('{"bb":1,"a":2}', '{"a": 2, "bb": 1}'),
        (' [ 1 ,2.50,"x" ] ', '[1, 2.5, "x"]'),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e19"),
        ("-9223372036854775809", "-9.223372036854776e18"),
        ("1e400", None),
        ('"\\u00e9\\n\\u0001/"', '"é\\n\\u0001/"'),
        ('"\\ud83d\\ude00"', '"\U0001f600"'),
        ("1.0", "1.0"),
        ("-0.0", "-0.0"),
    ],
)
def test_text_as_the_server_normalises_it(text: str, normal: str | None) -> None:
    if normal is None:
        return
    assert to_text(COLUMN)(from_sql(COLUMN)(text)) == normal
    assert to_text(COLUMN)(from_sql(COLUMN)(text.encode())) == normal


def test_of_two_members_the_version_takes_one() -> None:
    text = '{"b": {"a": 1, "a": 2}, "a": 3, "b": 4}'
    assert parse_text(text, first=True) == {"a": 3, "b": {"a": 1}}
    assert parse_text(text, first=False) == {"a": 3, "b": 4}
    with pytest.raises(ReplicationError, match="two members of one name"):
        parse_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1,]",
        "{'a':1}",
        "nul",
        "NaN",
        "Infinity",
        "[1 2]",
        '"\\ud800"',
        '{"\\udfff": 1}',
        "[" * 100_000,
    ],
)
def test_what_is_no_document(text: str) -> None:
    with pytest.raises(ValueRefused) as caught:
        from_sql(COLUMN)(text)
    assert caught.value.number == 3140


def test_depth() -> None:
    """A hundred levels are the server's limit."""
    assert shown(from_sql(COLUMN)("[" * 100 + "]" * 100)) == "[" * 100 + "]" * 100
    with pytest.raises(ValueRefused) as caught:
        from_sql(COLUMN)("[" * 101 + "]" * 101)
    assert caught.value.number == 3157


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.integers(0, (1 << 64) - 1).map(Unsigned)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=10)
    | st.builds(OpaqueValue, st.sampled_from([252, 16, 253]), st.binary(max_size=70))
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=5)
    ),
)


def ordered(document: Any) -> Any:
    """The document with the members of every object in the order of the format: by length, then by
    bytes."""
    if isinstance(document, dict):
        names = sorted(document, key=lambda name: (len(name.encode()), name.encode()))
        return {name: ordered(document[name]) for name in names}
    return [ordered(item) for item in document] if isinstance(document, list) else document


@settings(max_examples=300)
@given(DOCUMENTS)
def test_every_document_comes_back(document: Any) -> None:
    data = encode(document)
    again = decode(data)
    assert again == ordered(document)
    assert repr(again) == repr(ordered(document))
    assert canonical(data) == data


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(1 << 63), 1 << 63)
        | st.text(st.characters(codec="utf-8")),
        lambda inner: st.lists(inner, max_size=4),
    )
)
def test_text_reads_as_json_again(document: Any) -> None:
    text = shown(encode(parse_text(stdlib_json.dumps(document))))
    assert stdlib_json.loads(text) == document
    assert shown(from_sql(COLUMN)(text)) == text


@pytest.mark.parametrize(
    "document",
    [
        ["x" * 70_000],
        {"k" * 300: "v" * 70_000, "a": [1, 100_000]},
        list(range(30_000)),
        {f"k{n:05}": n for n in range(6_000)},
    ],
)
def test_large_containers(document: Any) -> None:
    """From 64 KiB on offsets take four bytes, and 32-bit integers stand in their entry."""
    data = encode(document)
    assert data[0] in (1, 3)
    assert decode(data) == document


def test_a_small_container_around_the_limit() -> None:
    kinds = set()
    for size in range(65_520, 65_540):
        data = encode(["x" * size])
        kinds.add(data[0])
        assert decode(data) == ["x" * size]
    assert kinds == {2, 3}


def test_gaps_of_updates_in_place_do_not_count() -> None:
    """["ab"] where "abcd" stood: the offset leads to the shorter string, and a gap is left behind
    it."""
    gapped = b"\x02\x01\x00\x0c\x00\x0c\x07\x00\x02abcd"
    assert decode(gapped) == ["ab"]
    assert canonical(gapped) == encode(["ab"]) != gapped


# damage


@settings(max_examples=600)
@given(DOCUMENTS.map(encode), st.data())
def test_damage_is_an_input_error_or_another_document(data: bytes, draw: st.DataObject) -> None:
    raw = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 3))):
        raw[draw.draw(st.integers(0, len(raw) - 1))] = draw.draw(st.integers(0, 255))
    raw = raw[: draw.draw(st.integers(0, len(raw)))]
    try:
        json.to_text(decode(bytes(raw)))
        encode(decode(bytes(raw)))
    except InputError:
        pass


def test_values_that_share_their_bytes_do_not_unfold() -> None:
    """Thirty arrays, each twice the next one: half a kilobyte that would be a thousand million
    values."""
    data = b"\x00\x00\x04\x00"
    for _ in range(30):
        data = struct.pack("<HHBHBH", 2, 10 + len(data), 2, 10, 2, 10) + data
    with pytest.raises(InputError, match="share"):
        decode(b"\x02" + data)


def test_a_string_in_many_places_does_not_unfold() -> None:
    count, text = 5_000, b"\x90\x4e" + b"x" * 10_000
    head = 4 + 3 * count
    body = struct.pack("<HH", count, head + len(text)) + struct.pack("<BH", 12, head) * count + text
    with pytest.raises(InputError, match="share"):
        decode(b"\x02" + body)


@pytest.mark.parametrize(
    "raw",
    [
        b"\x0d", b"\x04\x03", b"\x0c\x05ab", b"\x0c\xff\xff\xff\xff\xff",
        b"\x05\x01", b"\x0b\0", b"\x02\x01\x00\x04\x00", b"\x02\xff\xff\x08\x00",
        b"\x00\x01\x00\x0c\x00\x0b\x00\x09\x00\x05\x02\x00a", b"\x02\x01\x00\x07\x00\x0c\xff\x00",
        b"\x0f", b"\x02",
        b"\x02\x01\x00\x07\x00\x02\x00\x00",
        b"\x00\x02\x00\x13\x00\x12\x00\x01\x00\x12\x00\x01\x00\x05\x01\x00\x05\x02\x00a",
    ],
)  # fmt: skip
def test_documents_that_are_damaged(raw: bytes) -> None:
    with pytest.raises(InputError, match="corrupt"):
        decode(raw)


# paths


@pytest.mark.parametrize(
    ("path", "legs"),
    [
        ("$", []), ("$.a", ["a"]), ("$[0]", [0]), ("$.a.b[12].c", ["a", "b", 12, "c"]),
        ('$."a b"', ["a b"]), ('$."x.y"[1]', ["x.y", 1]), ('$."q\\"\\u00e9"', ['q"é']),
        ("$[last]", [("last", 0)]), ("$[last-3]", [("last", 3)]), ("$ . a [ 1 ]", ["a", 1]),
        ("$.été", ["été"]),
        ("$.a_1$", ["a_1$"]), ('$.""', [""]),
    ],
)  # fmt: skip
def test_paths(path: str, legs: list[Any]) -> None:
    assert path_legs(path) == legs


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "$.",
        "$[",
        "$[x]",
        "$[-1]",
        "$.*",
        "$[*]",
        "$**.a",
        "$[1 to 2]",
        '$."a',
        "$a",
        "$.a]",
        '$."\\x"',
        "$$",
        "x$.a",
    ],
)
def test_paths_that_name_no_single_value(path: str) -> None:
    with pytest.raises(InputError, match="names no single value"):
        path_legs(path)


# partial updates


def diff(operation: int, path: str | bytes, value: Any = None) -> bytes:
    raw = path if isinstance(path, bytes) else path.encode()
    body = bytes([operation]) + packed(len(raw)) + raw
    if operation != REMOVE:
        data = encode(value)
        body += packed(len(data)) + data
    return body


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ('{"a": 1}', diff(REPLACE, "$.a", 2), '{"a": 2}'),
        ('{"a": 1}', diff(INSERT, "$.b", [1]), '{"a": 1, "b": [1]}'),
        ('{"bb": 1}', diff(INSERT, "$.a", None), '{"a": null, "bb": 1}'),
        ('{"aa": 1}', diff(INSERT, b"$.\xff", 2), '{"\udcff": 2, "aa": 1}'),
        ('{"a": 1, "b": 2}', diff(REMOVE, "$.a"), '{"b": 2}'),
        ("[1, 2, 3]", diff(REPLACE, "$[1]", "x"), '[1, "x", 3]'),
        ("[1, 2, 3]", diff(INSERT, "$[1]", 9), "[1, 9, 2, 3]"),
        ("[1]", diff(INSERT, "$[7]", 9), "[1, 9]"),
        ("[1]", diff(INSERT, "$[99999999999999999999]", 9), "[1, 9]"),
        ("[1, 2, 3]", diff(REMOVE, "$[0]"), "[2, 3]"),
        ("[1, 2, 3]", diff(REPLACE, "$[last]", 0), "[1, 2, 0]"),
        ('{"a": {"b": [1, {"c": 2}]}}', diff(REPLACE, "$.a.b[1].c", {"d": 3}),
         '{"a": {"b": [1, {"c": {"d": 3}}]}}'),
        ('{"a": 1}', diff(REPLACE, "$", 7), "7"),
        ("[]", diff(INSERT, "$[0]", 1) + diff(INSERT, "$[1]", 2) + diff(REPLACE, "$[0]", 5),
         "[5, 2]"),
        ('{"a": 1}', b"", '{"a": 1}'),
    ],
)  # fmt: skip
def test_partial_updates(before: str, changes: bytes, after: str) -> None:
    assert shown(JsonDiff(changes).apply(from_sql(COLUMN)(before))) == after


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        ('{"a": 1}', diff(REPLACE, "$.b", 1)),
        ('{"a": 1}', diff(INSERT, "$.a", 1)),
        ('{"a": 1}', diff(REMOVE, "$.b")),
        ('{"a": 1}', diff(REMOVE, "$")),
        ('{"a": 1}', diff(INSERT, "$", 1)),
        ('{"a": 1}', diff(REPLACE, "$.a.b", 1)),
        ("[1]", diff(REPLACE, "$[1]", 1)),
        ("[1]", diff(REPLACE, "$.a", 1)),
        ("[1]", diff(REMOVE, "$[last-1]")),
        ("7", diff(INSERT, "$.a", 1)),
        ("[1]", diff(3, "$[0]", 1)),
    ],
)
def test_changes_that_do_not_fit(before: str, changes: bytes) -> None:
    """Error 3648, as ER_COULD_NOT_APPLY_JSON_DIFF."""
    with pytest.raises(ReplicationError) as caught:
        JsonDiff(changes).apply(from_sql(COLUMN)(before))
    assert caught.value.number == 3648


def test_changes_that_nest_too_deeply() -> None:
    deep = from_sql(COLUMN)("[" * 99 + "]" * 99)
    path = "$" + "[0]" * 99
    with pytest.raises(ReplicationError) as caught:
        JsonDiff(diff(INSERT, path, [[1]])).apply(deep)
    assert caught.value.number == 3157


@pytest.mark.parametrize(
    "changes",
    [
        b"\0",
        b"\0\5$",
        diff(REPLACE, "$.a", 1)[:-1],
        diff(REPLACE, "$[", 1),
        b"\0\1$\1\x0d",
    ],
)
def test_changes_that_cannot_be_read(changes: bytes) -> None:
    with pytest.raises(InputError):
        JsonDiff(changes).apply(from_sql(COLUMN)('{"a": 1}'))


@given(st.binary(max_size=40))
def test_any_bytes_as_changes(changes: bytes) -> None:
    with suppress(InputError, ReplicationError):
        JsonDiff(changes).apply(from_sql(COLUMN)('{"a": [1, {"b": "x"}]}'))


def test_a_value_in_python_is_its_text() -> None:
    """A decimal in a document shows all digits of its scale."""
    stored = encode(
        {"d": OpaqueValue(NEWDECIMAL, b"\x04\x02" + decimal_from_sql(4, 2)(Decimal("1.50")))}
    )
    assert to_text(COLUMN)(stored) == '{"d": 1.50}'
