"""Text in every character set, binary strings, ENUM, SET, and MariaDB's UUID and INET types."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.binlog.charsets import (
    CHARSETS,
    charset,
    charset_of_collation,
    charset_of_collation_name,
)
from applier.binlog.types import ValueRefused, from_sql, to_python, to_text
from applier.tables.collations.collation import sort_key
from applier.tables.collations.weight_keys import Incomparable
from lookup.table import Column


def text(
    kind: str = "varchar",
    length: int | None = 100,
    name: str = "utf8mb4",
    collation: str | None = None,
) -> Column:
    return Column("c", kind, length=length, charset=name, collation=collation)


SAMPLES = {
    "latin1": ("é€ß\x81", b"\xe9\x80\xdf\x81"), "utf8mb3": ("é€", b"\xc3\xa9\xe2\x82\xac"),
    "utf8mb4": ("\U0001f600", b"\xf0\x9f\x98\x80"), "ucs2": ("é", b"\0\xe9"),
    "utf16": ("\U0001f600", b"\xd8\x3d\xde\x00"), "utf16le": ("é", b"\xe9\0"),
    "utf32": ("é", b"\0\0\0\xe9"), "cp1251": ("Ж", b"\xc6"), "koi8r": ("Ж", b"\xf6"),
    "gbk": ("中", b"\xd6\xd0"), "big5": ("中", b"\xa4\xa4"),
    "sjis": ("あ\\", b"\x82\xa0\x81\x5f"),
    "euckr": ("한", b"\xc7\xd1"), "ujis": ("あ", b"\xa4\xa2"),
    "gb18030": ("\U0001f600", b"\x94\x39\xfc\x36"), "cp850": ("é", b"\x82"),
    "latin2": ("ł", b"\xb3"), "greek": ("α", b"\xe1"), "hebrew": ("א", b"\xe0"),
    "cp932": ("あ", b"\x82\xa0"), "tis620": ("ก", b"\xa1"), "ascii": ("a", b"a"),
    "cp1250": ("ł", b"\xb3"), "latin5": ("ğ", b"\xf0"), "latin7": ("ā", b"\xe2"),
    "macroman": ("é", b"\x8e"),
}  # fmt: skip


def test_latin1_lacks_the_controls_that_cp1252_has_letters_for() -> None:
    """MariaDB 10.11.18 stores a question mark for them; five codes of cp1252 have no letter."""
    assert from_sql(text(name="latin1"))("\x81\x8d\x8f\x90\x9d") == b"\x81\x8d\x8f\x90\x9d"
    with pytest.raises(ValueRefused):
        from_sql(text(name="latin1"))("\x9a")


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("kind", ["char", "varchar", "text"])
def test_characters_and_their_bytes(name: str, kind: str) -> None:
    shown, raw = SAMPLES[name]
    column = text(kind, None if kind == "text" else 100, name)
    assert from_sql(column)(shown) == raw
    assert to_text(column)(raw) == shown
    assert to_python(column)(raw) == shown


@pytest.mark.parametrize("name", [name for name in CHARSETS if name != "binary"])
def test_the_space_that_pads(name: str) -> None:
    column = text("char", 10, name)
    own = charset(name)
    assert from_sql(column)("ab   ") == own.encode("ab")
    assert from_sql(column)("   ") == b""
    assert from_sql(text("varchar", 10, name))("ab ") == own.encode("ab ")


def test_text_that_does_not_decode_stays_bytes() -> None:
    column = text()
    assert to_python(column)(b"a\xff") == b"a\xff"
    assert to_text(column)(b"a\xff").encode("utf-8", "surrogateescape") == b"a\xff"
    assert from_sql(column)(to_text(column)(b"a\xff")) == b"a\xff"


def test_a_character_that_the_column_does_not_have() -> None:
    with pytest.raises(ValueRefused) as caught:
        from_sql(text(name="latin1"))("中")
    assert caught.value.number == 1366


@pytest.mark.parametrize(
    ("name", "value"),
    [("utf8mb4", "éé\U0001f600é"), ("latin1", "éaéb"), ("ucs2", "abcd"), ("gbk", "中中中中")],
)
def test_too_long_text_is_counted_in_characters(name: str, value: str) -> None:
    column = text("varchar", 3, name)
    assert from_sql(column)(value[:3]) == charset(name).encode(value[:3])
    with pytest.raises(ValueRefused) as caught:
        from_sql(column)(value)
    assert (caught.value.number, caught.value.closest) == (1406, charset(name).encode(value[:3]))


def test_the_limits_of_texts_are_bytes() -> None:
    for kind, limit in (("tinytext", 255), ("text", 65535)):
        column = text(kind, None)
        assert len(from_sql(column)("x" * limit)) == limit
        with pytest.raises(ValueRefused) as caught:
            from_sql(column)("x" * (limit + 1))
        assert len(caught.value.closest) == limit  # type: ignore[arg-type]


@given(
    st.sampled_from([name for name in CHARSETS if name != "binary"]),
    st.binary(max_size=20),
    st.integers(0, 8),
)
def test_any_bytes_in_any_character_set(name: str, raw: bytes, prefix: int) -> None:
    """What does not decode is shown somehow and cut somewhere; it sorts or is refused."""
    own = charset(name)
    assert raw.startswith(own.cut(raw, prefix))
    assert own.cut(raw, 0) == b""
    to_text(text(name=name))(raw).encode("utf-8", "surrogateescape")
    for collation in (
        None,
        f"{own.name}_bin",
        f"{own.name}_unicode_ci",
        f"{own.name}_general_ci",
        f"{own.name}_nopad_bin",
    ):
        key = sort_key(text(name=name, collation=collation), prefix)
        assert key is not None
        try:
            assert isinstance(key(raw), bytes)
        except Incomparable as refused:
            assert refused.number == 1235
    try:
        stored = from_sql(text("varchar", 5, name))(raw)
    except ValueRefused as refused:
        assert isinstance(refused.closest, bytes)
    else:
        assert stored == raw


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_utf8_comes_back(value: str) -> None:
    for name in ("utf8mb4", "utf16", "utf16le", "utf32"):
        column = text(name=name)
        assert to_python(column)(from_sql(column)(value)) == value


def test_collations_name_their_character_set() -> None:
    numbers = {
        8: "latin1",
        28: "gbk",
        33: "utf8mb3",
        46: "utf8mb4",
        63: "binary",
        255: "utf8mb4",
        309: "utf8mb4",
        1024 + 46: "utf8mb4",
    }
    assert {number: charset_of_collation(number).name for number in numbers} == numbers
    assert charset_of_collation(60_000).name == "binary"
    assert charset_of_collation_name("utf8_bin") == "utf8mb3"
    assert charset_of_collation_name("utf8mb4_0900_ai_ci") == "utf8mb4"


# binary strings


def test_binary_is_padded_with_zeros_when_it_is_read() -> None:
    column = Column("c", "binary", length=4)
    assert from_sql(column)(b"a\0b\0") == b"a\0b"
    assert to_python(column)(b"a\0b") == b"a\0b\0"
    assert to_text(column)(b"a\0b") == "61006200"


def test_varbinary_keeps_what_it_gets() -> None:
    column = Column("c", "varbinary", length=4)
    assert from_sql(column)(b"a\0\0") == b"a\0\0"
    assert to_text(column)(b"\xff\0") == "FF00"
    with pytest.raises(ValueRefused) as caught:
        from_sql(column)(b"abcde")
    assert (caught.value.number, caught.value.closest) == (1406, b"abcd")


# ENUM, SET


ENUM = Column("c", "enum", labels=("a", "B", "", "ü", "2"), charset="utf8mb4")
SET = Column("c", "set", labels=("a", "b", "c"), charset="utf8mb4")


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("a", 1),
        ("b", 2),
        ("B", 2),
        ("", 3),
        ("Ü", 4),
        ("2", 5),
        (2, 2),
        ("1", 1),
        (0, 0),
        (b"a", 1),
        ("a ", 1),
    ],
)
def test_enum(value: object, stored: int) -> None:
    assert from_sql(ENUM)(value) == stored


def test_enum_labels_and_numbers() -> None:
    assert [to_text(ENUM)(at) for at in range(7)] == ["", "a", "B", "", "ü", "2", ""]
    assert to_python(Column("c", "enum"))(3) == 3


@pytest.mark.parametrize("value", ["x", "9", b"x"])
def test_enum_labels_that_are_none(value: object) -> None:
    with pytest.raises(ValueRefused) as caught:
        from_sql(ENUM)(value)
    assert (caught.value.number, caught.value.closest) == (1265, 0)


@pytest.mark.parametrize(
    ("value", "stored"), [("", 0), ("a", 1), ("c,a", 5), ("A,B", 3), (7, 7), ("a,a", 1), ("5", 5)]
)
def test_set(value: object, stored: int) -> None:
    assert from_sql(SET)(value) == stored


def test_set_as_text() -> None:
    assert [to_text(SET)(mask) for mask in (0, 1, 5, 7)] == ["", "a", "a,c", "a,b,c"]
    many = Column("c", "set", labels=tuple(f"m{at}" for at in range(64)), charset="ascii")
    assert from_sql(many)("m63,m0") == 1 << 63 | 1
    assert to_text(many)(1 << 63 | 1) == "m0,m63"


def test_a_set_with_a_label_too_many() -> None:
    with pytest.raises(ValueRefused) as caught:
        from_sql(SET)("a,x,b")
    assert (caught.value.number, caught.value.closest) == (1265, 3)


# MariaDB


@given(st.binary(min_size=16, max_size=16))
def test_uuids_come_back(raw: bytes) -> None:
    """Whatever version they are; text that reads like a UUID in the order of the index is refused
    (NULL, warning 1292)."""
    column = Column("c", "uuid")
    shown = str(uuid.UUID(bytes=raw))
    if raw[6] & 0xC0 == 0x80 and 1 <= raw[8] >> 4 <= 5:
        with pytest.raises(ValueRefused):
            from_sql(column)(shown)
        return
    assert (
        from_sql(column)(shown)
        == from_sql(column)(shown.upper())
        == from_sql(column)(raw)
        == raw.rstrip(b"\0")
    )
    assert to_text(column)(from_sql(column)(shown)) == shown


@pytest.mark.parametrize(
    "shown",
    [
        "72b0315d-15ed-495e-a4e3-ec918c4dfa62",
        "a626906f-28ef-165d-9bc9-dd33695efd42",
        "1c9af600-062b-f0fc-1826-29c64b6702cd",
    ],
)
def test_a_uuid_stands_in_the_log_as_in_its_text(shown: str) -> None:
    """Seen in the logs of a real MariaDB 10.11.19: version 4, version 1, no version."""
    assert from_sql(Column("c", "uuid"))(shown).hex() == shown.replace("-", "")


def test_a_uuid_that_a_real_server_refused() -> None:
    with pytest.raises(ValueRefused) as caught:
        from_sql(Column("c", "uuid"))("3032f5b0-1775-9be2-151b-e0c76774acb4")
    assert caught.value.number == 1292


def test_the_nil_uuid_and_no_uuid() -> None:
    column = Column("c", "uuid")
    assert from_sql(column)("00000000-0000-0000-0000-000000000000") == b""
    assert to_text(column)(b"") == "00000000-0000-0000-0000-000000000000"
    with pytest.raises(ValueRefused) as caught:
        from_sql(column)("not-a-uuid")
    assert caught.value.number == 1292


@pytest.mark.parametrize(
    ("kind", "shown", "stored"),
    [
        ("inet4", "192.168.0.1", b"\xc0\xa8\0\1"),
        ("inet4", "10.0.0.0", b"\x0a"),
        ("inet6", "::", b""),
        ("inet6", "::1", bytes(15) + b"\1"),
        ("inet6", "2001:db8::1", b"\x20\x01\x0d\xb8" + bytes(11) + b"\1"),
        ("inet6", "::ffff:192.0.2.1", bytes(10) + b"\xff\xff\xc0\x00\x02\x01"),
        ("inet6", "::ffff:10.0.0.9", bytes(10) + b"\xff\xff\x0a\0\0\x09"),
        ("inet6", "::192.0.2.1", bytes(12) + b"\xc0\x00\x02\x01"),
    ],
)
def test_addresses(kind: str, shown: str, stored: bytes) -> None:
    column = Column("c", kind)
    assert from_sql(column)(shown) == stored
    assert to_text(column)(stored) == shown


@pytest.mark.parametrize(
    ("kind", "shown"), [("inet4", "::1"), ("inet4", "300.1.1.1"), ("inet6", "x"), ("inet4", "")]
)
def test_addresses_that_are_none(kind: str, shown: str) -> None:
    with pytest.raises(ValueRefused) as caught:
        from_sql(Column("c", kind))(shown)
    assert caught.value.number == 1292


def test_null_is_null_in_every_type() -> None:
    from applier.binlog.types import TYPES

    for kind in TYPES:
        column = Column(
            "c",
            kind,
            length=5,
            charset="utf8mb4" if kind in ("char", "varchar", "text", "enum", "set") else None,
        )
        assert (from_sql(column)(None), to_python(column)(None), to_text(column)(None)) == (
            None,
            None,
            None,
        )


@pytest.mark.parametrize(("name", "char", "code"), [("eucjpms", "№", 2), ("cp932", "ⅰ", 2)])
def test_characters_with_several_codes_are_cut_whole(name: str, char: str, code: int) -> None:
    own = charset(name)
    data = own.encode(f"a{char}b{char}")
    assert len(data) == 2 + 2 * code
    assert own.decode(own.cut(data, 2)) == f"a{char}"
    assert own.decode(own.whole(data, 1 + code)) == f"a{char}"
