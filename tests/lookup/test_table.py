"""Which order the server keeps keys in, which key it promotes, which columns InnoDB adds to a
key."""

from __future__ import annotations

import pytest

from lookup.table import Column, Key, KeyPart, TableDefinition

COLUMNS = (
    Column("id", "int", nullable=False),
    Column("a", "int", nullable=False),
    Column("b", "int"),
    Column("c", "varchar", length=20, nullable=False),
    Column("v", "int", nullable=False, generated="virtual", expression="a + 1"),
    Column("t", "text"),
)


def key(
    name: str, *columns: int, unique: bool = False, kind: str = "btree", prefix: int | None = None
) -> Key:
    return Key(name, tuple(KeyPart(column, prefix) for column in columns), unique=unique, kind=kind)


def table(*keys: Key, engine: str = "InnoDB") -> TableDefinition:
    return TableDefinition("d", "t", COLUMNS, keys, engine=engine)


PRIMARY = key("PRIMARY", 0, unique=True)
UNIQUE = key("u", 1, unique=True)
UNIQUE_NULLABLE = key("un", 2, unique=True)
UNIQUE_PREFIX = key("up", 3, unique=True, prefix=4)
UNIQUE_NULLABLE_PREFIX = key("unp", 5, unique=True, prefix=4)
PLAIN = key("k", 2)
FULLTEXT = key("f", 5, kind="fulltext")
VIRTUAL = key("kv", 4)
UNIQUE_VIRTUAL = key("uv", 4, unique=True)
FUNCTIONAL = Key("kf", (KeyPart(None, expression="a * 2"),))
UNIQUE_FUNCTIONAL = Key("uf", (KeyPart(None, expression="a * 2"),), unique=True)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(UNIQUE_NULLABLE, PLAIN, id="unique before others"),
        pytest.param(UNIQUE, UNIQUE_NULLABLE, id="not null before nullable"),
        pytest.param(PRIMARY, UNIQUE, id="PRIMARY before other unique keys"),
        pytest.param(UNIQUE, UNIQUE_PREFIX, id="whole columns before prefixes"),
        pytest.param(UNIQUE_PREFIX, UNIQUE_NULLABLE, id="not null counts more than a prefix"),
        pytest.param(
            UNIQUE_NULLABLE, UNIQUE_NULLABLE_PREFIX, id="whole columns before prefixes, nullable"
        ),
        pytest.param(PLAIN, FULLTEXT, id="FULLTEXT last"),
        pytest.param(PLAIN, VIRTUAL, id="without virtual columns before with"),
        pytest.param(VIRTUAL, FULLTEXT, id="FULLTEXT counts more than virtual"),
        pytest.param(UNIQUE, UNIQUE_VIRTUAL, id="unique without virtual columns before with"),
        pytest.param(PLAIN, FUNCTIONAL, id="a functional part is a virtual column"),
        pytest.param(UNIQUE_NULLABLE, UNIQUE_FUNCTIONAL, id="an expression may be NULL"),
    ],
)
def test_key_order(first: Key, second: Key) -> None:
    assert table(second, first).sorted_keys == (first, second)
    assert table(first, second).sorted_keys == (first, second)


def test_keys_alike_stand_in_the_order_of_their_definition() -> None:
    one, two = key("one", 3), key("two", 2)
    assert table(one, two).sorted_keys == (one, two)
    assert table(two, one).sorted_keys == (two, one)


def test_a_prefix_of_a_plain_key_does_not_matter() -> None:
    prefixed = key("kp", 3, prefix=4)
    assert table(prefixed, PLAIN).sorted_keys == (prefixed, PLAIN)


@pytest.mark.parametrize(
    ("keys", "promoted"),
    [
        pytest.param((), None, id="no keys"),
        pytest.param((UNIQUE, PRIMARY), PRIMARY, id="PRIMARY wins"),
        pytest.param((PLAIN, UNIQUE), UNIQUE, id="unique not null"),
        pytest.param((UNIQUE_NULLABLE,), None, id="nullable"),
        pytest.param((UNIQUE_PREFIX,), None, id="prefix"),
        pytest.param((UNIQUE_PREFIX, UNIQUE), UNIQUE, id="not the prefix, the other"),
        pytest.param((UNIQUE_VIRTUAL,), None, id="virtual column"),
        pytest.param((UNIQUE_FUNCTIONAL,), None, id="functional"),
        pytest.param(
            (key("u2", 3, unique=True), UNIQUE), key("u2", 3, unique=True), id="the first of two"
        ),
        pytest.param((key("un2", 1, 2, unique=True),), None, id="one part nullable"),
        pytest.param((PLAIN,), None, id="not unique"),
    ],
)
def test_primary(keys: tuple[Key, ...], promoted: Key | None) -> None:
    assert table(*keys).primary == promoted


def test_innodb_adds_the_primary_key_to_keys_that_are_not_unique() -> None:
    definition = table(PRIMARY, PLAIN, UNIQUE_NULLABLE, key("ki", 2, 0))
    assert definition.actual_key_columns(PLAIN) == (2, 0)
    assert definition.actual_key_columns(key("ki", 2, 0)) == (2, 0)
    assert definition.actual_key_columns(UNIQUE_NULLABLE) == (2,)
    assert definition.actual_key_columns(PRIMARY) == (0,)


def test_a_promoted_key_is_added_too() -> None:
    assert table(UNIQUE, PLAIN).actual_key_columns(PLAIN) == (2, 1)


def test_nothing_is_added_without_a_primary_key_or_without_innodb() -> None:
    assert table(PLAIN).actual_key_columns(PLAIN) == (2,)
    assert table(PRIMARY, PLAIN, engine="MyISAM").actual_key_columns(PLAIN) == (2,)
