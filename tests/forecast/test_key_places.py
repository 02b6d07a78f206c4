"""Where rows and index entries stand: by hand, and by the order of real keys."""

from __future__ import annotations

import random

import pytest

import applier
from applier.forecast.inventory.facts import TableFacts, facts_of_tables
from applier.forecast.inventory.key_places import (
    FEWEST_VALUES,
    KeyOrder,
    Spread,
    key_order,
    spread_of,
)
from lookup.table import TableDefinition


def definition(columns: str) -> TableDefinition:
    tables = applier.load_schema(f"CREATE DATABASE d; CREATE TABLE d.t ({columns});")
    return tables["d.t"].definition


LINE = "w INT, d INT, o INT, l INT, PRIMARY KEY (w, d, o, l)"


@pytest.mark.parametrize(
    ("columns", "rows", "order"),
    [
        ("id INT PRIMARY KEY", (), KeyOrder(0, (1.0,))),
        ("id CHAR(36) PRIMARY KEY", (1.0,), None),
        ("a INT", (), None),
        (LINE, (), None),  # nobody said how many rows a warehouse has
        (LINE, (50_000, 5_000, 10, 1), KeyOrder(2, (10, 1))),
        # groups smaller than a page have none of their own
        (LINE, (50, 5, 2, 1), KeyOrder(0, (50, 5, 2, 1))),
        ("t CHAR(8), id INT, PRIMARY KEY (t, id)", (5_000, 1), KeyOrder(1, (1.0,))),
        ("t CHAR(8), id INT, PRIMARY KEY (t, id)", (5, 1), None),
        ("t VARCHAR(80), PRIMARY KEY (t(4))", (1.0,), None),
    ],
)
def test_how_rows_stand(columns: str, rows: tuple[float, ...], order: KeyOrder | None) -> None:
    assert key_order(definition(columns), rows, rows_per_page=100) == order


def test_neighbours_of_a_group_have_numbers_that_follow_each_other() -> None:
    order = KeyOrder(2, (10, 1))
    assert order.number((1, 2, 31, 4)) - order.number((1, 2, 30, 9)) == 5
    assert order.number((1, 2, 30, 1)) + 8 == order.number((1, 2, 30, 9))
    assert abs(order.number((1, 3, 30, 1)) - order.number((1, 2, 30, 1))) > 1 << 31


def test_all_rows_of_a_small_group_have_places_of_their_own() -> None:
    """A hundred districts of 600 customers, without pages of their own: 60,000 places, not one
    hundred."""
    order = KeyOrder(0, (6000, 600, 1))
    numbers = {order.number((w, d, c)) for w in range(10) for d in range(10) for c in range(600)}
    assert (min(numbers), max(numbers), len(numbers)) == (0, 59_999, 60_000)
    assert 6000 <= order.number((1, 0, b"name")) < 6600


def test_a_key_of_another_type_than_the_schema_says_stands_anywhere() -> None:
    order = KeyOrder(0, (1.0,))
    assert order.number((b"1a",)) != order.number((b"1b",))


def test_values_before_and_behind_an_alter_of_their_column_are_not_compared() -> None:
    pairs = [((at,), (at,)) for at in range(100)]
    assert spread_of([*pairs, *(((at,), (b"x",)) for at in range(100))]) == Spread()
    assert spread_of([*pairs, *(((b"k",), (at,)) for at in range(100))]) == Spread()
    assert 0 <= spread_of(pairs).place((b"x",), 7919) < 1
    assert spread_of([*pairs, ((), (5,))]).values[-1] == (99,)


def test_a_value_stands_where_its_share_of_the_sample_does() -> None:
    """Half of all rows have the value 500: they take half of the leaves, other values their part of
    the rest."""
    spread = spread_of([((at,), (500 if at % 2 else at,)) for at in range(1000)])
    assert spread.place((0,), 1) == pytest.approx(0, abs=0.01)
    assert spread.place((999,), 1) == pytest.approx(1, abs=0.01)
    places = [spread.place((500,), salt * 7919) for salt in range(1000)]
    assert min(places) == pytest.approx(0.25, abs=0.01)
    assert max(places) == pytest.approx(0.75, abs=0.01)
    assert len({int(place * 100) for place in places}) >= 50
    assert spread.place((200,), 5) == spread.place((200,), 5)


def test_nulls_stand_first_and_a_missing_value_anywhere() -> None:
    spread = spread_of([((at,), (None if at < 250 else at,)) for at in range(1000)])
    assert all(0 <= spread.place((None,), salt) <= 0.25 for salt in range(100))
    assert spread.place((251,), 1) == pytest.approx(0.25, abs=0.01)
    assert max(spread.place((), salt) for salt in range(100)) > 0.9


def test_few_values_say_nothing() -> None:
    spread = spread_of([((at,), (at,)) for at in range(FEWEST_VALUES - 1)])
    assert not spread.follows
    assert 0 <= spread.place((7,), 1) < 1
    assert Spread().place((7,), 1) == Spread().place((7,), 2)


def test_an_index_that_rises_or_falls_with_the_primary_key_follows_it() -> None:
    chance = random.Random(3)
    ids = chance.sample(range(100_000), 1000)
    assert spread_of([((one,), (one * 60,)) for one in ids]).follows
    assert spread_of([((one,), (-one,)) for one in ids]).follows
    assert spread_of([((one,), (one + chance.randrange(200),)) for one in ids]).follows
    assert not spread_of([((one,), (chance.random(),)) for one in ids]).follows


def test_facts_know_the_order_of_their_rows() -> None:
    facts = facts_of_tables(
        applier.load_schema("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY);")
    )["d.t"]
    assert facts.order == KeyOrder(0, (1.0,))
    assert TableFacts(definition(LINE), rows_per_prefix=(50_000, 5_000, 10, 1)).order == KeyOrder(
        2, (10, 1)
    )
