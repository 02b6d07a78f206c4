"""Keys of texts without a server: what is refused, with which words; levels, contractions and
padding that real servers showed."""

from __future__ import annotations

import pytest

import applier
from applier.errors import ReplicationError
from applier.tables.collations.collation import collation_key, is_exact
from lookup.handler import DuplicateKey

ALIKE = [
    ("utf8mb4_0900_ai_ci", "ｱ", "ア", True), ("utf8mb4_0900_ai_ci", "각", "각", True),
    ("utf8mb4_0900_ai_ci", "я", "Я", True), ("utf8mb4_0900_ai_ci", "a\x01", "a", True),
    ("utf8mb4_unicode_ci", "ﬃ", "ffi", True), ("utf8mb4_general_ci", "ﬃ", "ffi", False),
    ("utf8mb4_unicode_520_ci", "Ł", "l", True), ("utf8mb4_unicode_ci", "Ł", "l", False),
    ("utf8mb4_0900_ai_ci", "Ł", "l", True), ("utf8mb4_czech_ci", "ch", "CH", True),
    ("utf8mb4_unicode_nopad_ci", "a", "a ", False), ("utf8mb4_da_0900_ai_ci", "aa", "å", True),
    ("utf8mb4_uca1400_nopad_ai_cs", "a", "a\u0301", True),
    ("utf8mb4_uca1400_as_ci", "a", "a\u0301", False),
    ("utf8mb4_ja_0900_as_cs", "カー", "カア", False), ("utf8mb4_croatian_ci", "dž", "Dž", True),
]  # fmt: skip


@pytest.mark.parametrize(("collation", "one", "two", "alike"), ALIKE)
def test_alike(collation: str, one: str, two: str, alike: bool) -> None:
    key = collation_key(collation)
    assert (key(one.encode()) == key(two.encode())) is alike


@pytest.mark.parametrize(
    ("collation", "order"),
    [
        ("utf8mb4_czech_ci", ["c", "h", "ch", "i"]),
        ("utf8mb4_es_trad_0900_ai_ci", ["cz", "ch", "d", "lz", "ll", "m"]),
        ("utf8mb4_hu_0900_ai_ci", ["dy", "dz", "dzs", "e"]),
        ("utf8mb4_0900_as_cs", ["a", "A", "á", "Á", "b"]),
        ("utf8mb4_da_0900_as_cs", ["A", "a", "B", "z", "å"]),
    ],
)
def test_order(collation: str, order: list[str]) -> None:
    assert sorted(order, key=lambda text: collation_key(collation)(text.encode())) == order


@pytest.mark.parametrize(
    "collation",
    ["utf8mb4_bin", "latin1_swedish_ci", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf16_bin"],
)
def test_spaces_for_ever(collation: str) -> None:
    """A text that pads goes on with spaces: what comes before a space after any number of them is
    less."""
    codec = {"latin1": "latin-1", "utf16": "utf-16-be"}.get(collation.partition("_")[0], "utf-8")
    order = ["a\t", "a \t", "a  \t", "a", "a  !", "a !", "a!"]
    assert sorted(order, key=lambda text: collation_key(collation)(text.encode(codec))) == order


def test_what_is_not_known_is_refused() -> None:
    assert not is_exact("latin2_czech_cs")
    assert not is_exact("utf8mb4_klingon_ci")
    assert is_exact("utf8_general_ci")
    with pytest.raises(ReplicationError) as caught:
        collation_key("utf8mb4_0900_ai_ci")(b"\xff")
    assert caught.value.number == 1235


def test_a_key_that_cannot_be_compared_changes_nothing() -> None:
    sql = (
        "CREATE TABLE d.t (id int PRIMARY KEY, c varchar(9) CHARACTER SET latin2 COLLATE "
        "latin2_czech_cs, UNIQUE KEY u (c));"
    )
    table = applier.load_schema(sql)["d.t"]
    table.insert((1, None))
    with pytest.raises(ReplicationError) as caught:
        table.insert((2, b"a"))
    assert (caught.value.number, caught.value.table) == (1235, "d.t")
    assert (
        "key u" in caught.value.message
        and "latin2_czech_cs" in caught.value.message
        and "--skip-errors 1235" in caught.value.next_step
    )
    assert len(table) == 1


def test_unique_key_beyond_ascii() -> None:
    sql = (
        "CREATE TABLE d.t (c varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci, "
        "UNIQUE KEY u (c));"
    )
    table = applier.load_schema(sql)["d.t"]
    table.insert(("Łódź".encode(),))
    with pytest.raises(DuplicateKey):
        table.insert((b"LODZ",))
