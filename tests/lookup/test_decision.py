"""The decision table: best usable key, option set, version -> algorithm; which keys an image makes
usable; and the reasons given."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from lookup.decision import any_column_local, decide, explain
from lookup.table import Column, Key, KeyPart, TableDefinition
from lookup.versions import (
    HASH_SCAN,
    INDEX_SCAN,
    RULES,
    TABLE_SCAN,
    outside,
    parse_row_search,
    rules_for,
)

COLUMNS = (
    Column("id", "int", nullable=False),
    Column("a", "int", nullable=False),
    Column("b", "int"),
    Column("c", "varchar", length=20, nullable=False),
    Column("g", "geometry", nullable=False),
)
ALL = range(len(COLUMNS))


def key(name: str, *columns: int, unique: bool = False, kind: str = "btree") -> Key:
    return Key(name, tuple(KeyPart(column) for column in columns), unique=unique, kind=kind)


def table(*keys: Key, engine: str = "InnoDB") -> TableDefinition:
    return TableDefinition("d", "t", COLUMNS, keys, engine=engine)


Found = tuple[str, Key | None, str]
"""Algorithm, key, and its class."""


def decided(*given: Any) -> Found:
    found = decide(*given)
    return found.algorithm, found.key, found.key_class


PRIMARY = key("PRIMARY", 0, unique=True)
UNIQUE = key("u", 1, unique=True)
UNIQUE_NULLABLE = key("un", 2, unique=True)
PLAIN = key("k", 3)
IX, TS, HI, HT = "index scan", "table scan", "hash over index", "hash over table"
OPTION_SETS = {
    "I,T,H": frozenset({INDEX_SCAN, TABLE_SCAN, HASH_SCAN}),
    "I,T": frozenset({INDEX_SCAN, TABLE_SCAN}),
    "I,H": frozenset({INDEX_SCAN, HASH_SCAN}),
    "T,H": frozenset({TABLE_SCAN, HASH_SCAN}),
    "I": frozenset({INDEX_SCAN}),
    "H": frozenset({HASH_SCAN}),
    "T": frozenset({TABLE_SCAN}),
}
BEST_KEYS: dict[str, tuple[Key, ...]] = {
    "PK": (PRIMARY, UNIQUE_NULLABLE, PLAIN),
    "promoted UK": (UNIQUE, PLAIN),
    "nullable UK": (UNIQUE_NULLABLE,),
    "K": (PLAIN,),
    "none": (),
}
TABLE = {
    #               I,T,H I,T  I,H  T,H  I    H    T
    "PK": (IX, IX, IX, HI, IX, HI, TS),
    "promoted UK": (IX, IX, IX, HI, IX, HI, TS),
    "nullable UK": (HI, IX, HI, HI, IX, HI, TS),
    "K": (HI, IX, HI, HI, IX, HI, TS),
    "none": (HT, TS, HT, HT, TS, HT, TS),
}
CELLS = [
    pytest.param(best, options, expected, id=f"{best}-{options}")
    for best, row in TABLE.items()
    for options, expected in zip(OPTION_SETS, row, strict=True)
]


@pytest.mark.parametrize("version", ["5.6", "5.7", "8.0"])
@pytest.mark.parametrize(("best", "options", "expected"), CELLS)
def test_decision_table(version: str, best: str, options: str, expected: str) -> None:
    definition = table(*BEST_KEYS[best])
    decision = decide(definition, ALL, RULES[version], OPTION_SETS[options])
    assert decision.algorithm == expected
    assert decision.key is (None if expected in (TS, HT) else definition.sorted_keys[0])


@pytest.mark.parametrize("version", ["8.4", "9.7"])
@pytest.mark.parametrize(("best", "options", "expected"), CELLS)
def test_newer_servers_are_hard_wired(version: str, best: str, options: str, expected: str) -> None:
    definition = table(*BEST_KEYS[best])
    assert decide(definition, ALL, RULES[version], OPTION_SETS[options]).algorithm == TABLE[best][2]


@pytest.mark.parametrize(
    ("version", "column"), [("5.6", 1), ("5.7", 1), ("8.0", 2), ("8.4", 2), ("9.7", 2)]
)
@pytest.mark.parametrize("best", BEST_KEYS)
def test_defaults(version: str, column: int, best: str) -> None:
    assert decide(table(*BEST_KEYS[best]), ALL, RULES[version]).algorithm == TABLE[best][column]


@pytest.mark.parametrize("version", ["5.6", "5.7", "8.0"])
@pytest.mark.parametrize("options", OPTION_SETS)
def test_blackhole_is_never_hashed(version: str, options: str) -> None:
    """HA_READ_OUT_OF_SYNC: what step 3 finds, in every option set."""
    for best, keys in BEST_KEYS.items():
        decision = decide(
            table(*keys, engine="BLACKHOLE"), ALL, RULES[version], OPTION_SETS[options]
        )
        without_hash = OPTION_SETS[options] - {HASH_SCAN} or frozenset({TABLE_SCAN})
        assert (
            decision.algorithm == decide(table(*keys), ALL, RULES[version], without_hash).algorithm
        ), best


@pytest.mark.parametrize("version", ["8.4", "9.7"])
def test_hard_wired_blackhole_takes_no_ordinary_key(version: str) -> None:
    found = {
        best: decide(table(*keys, engine="BLACKHOLE"), ALL, RULES[version]).algorithm
        for best, keys in BEST_KEYS.items()
    }
    assert found == {"PK": IX, "promoted UK": IX, "nullable UK": TS, "K": TS, "none": TS}


def test_mariadb_ignores_the_options_and_the_image() -> None:
    for options in OPTION_SETS.values():
        found = {
            best: decide(table(*keys), (), RULES["mariadb"], options).algorithm
            for best, keys in BEST_KEYS.items()
        }
        assert found == {"PK": IX, "promoted UK": IX, "nullable UK": IX, "K": IX, "none": TS}


# which key


SECOND_UNIQUE = (PRIMARY, UNIQUE)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("5.6", (TS, None, "none")),
        ("5.7", (IX, UNIQUE, "unique")),
        ("8.0", (IX, UNIQUE, "unique")),
        ("9.7", (IX, UNIQUE, "unique")),
    ],
)
def test_a_second_unique_key_is_not_seen_by_5_6(version: str, expected: Found) -> None:
    options = OPTION_SETS["I,T"]
    assert decided(table(*SECOND_UNIQUE), (1, 2), RULES[version], options) == expected


def test_primary_before_unique_before_others() -> None:
    definition = table(PLAIN, UNIQUE, PRIMARY)
    rules = RULES["9.7"]
    assert decide(definition, ALL, rules).key is PRIMARY
    assert decided(definition, (1, 2, 3), rules) == (IX, UNIQUE, "unique")
    assert decided(definition, (0, 3), rules) == (IX, PRIMARY, "primary")


def test_an_ordinary_key_of_a_table_with_a_primary_key_needs_its_columns_too() -> None:
    """So an image without the primary key makes no ordinary InnoDB key usable; a nullable UNIQUE is
    not extended."""
    assert decided(table(PRIMARY, PLAIN), (1, 2, 3), RULES["9.7"]) == (HT, None, "none")
    assert decided(table(PRIMARY, PLAIN, engine="MyISAM"), (1, 2, 3), RULES["9.7"]) == (
        HI,
        PLAIN,
        "other",
    )
    assert decided(table(PRIMARY, UNIQUE_NULLABLE), (1, 2, 3), RULES["9.7"]) == (
        HI,
        UNIQUE_NULLABLE,
        "other",
    )


def test_every_part_must_be_in_the_image() -> None:
    both = key("ab", 1, 2)
    assert decide(table(both), (1, 2), RULES["9.7"]).key is both
    assert decide(table(both), (1,), RULES["9.7"]).algorithm == HT
    assert decide(table(both), (2,), RULES["9.7"]).algorithm == HT


def test_the_first_usable_key_wins_whatever_its_cardinality() -> None:
    poor, good = key("poor", 2), key("good", 3)
    statistics = {"poor": 1000.0, "good": 1.0}
    for version in ("5.7", "8.0", "9.7"):
        assert (
            decide(
                table(poor, good), ALL, RULES[version], None, lambda key: statistics[key.name]
            ).key
            is poor
        )


@pytest.mark.parametrize("version", list(RULES))
def test_keys_that_cannot_be_read_in_order(version: str) -> None:
    for kind in ("fulltext", "hash"):
        assert decide(table(key("x", 3, kind=kind)), ALL, RULES[version]).key is None


@pytest.mark.parametrize(
    ("version", "taken"),
    [("5.6", 0), ("5.7", 2), ("8.0", 1), ("8.4", 1), ("9.7", 1), ("mariadb", 2)],
)
def test_a_spatial_key_is_taken_from_8_0_on_where_the_column_has_an_srid(
    version: str, taken: int
) -> None:
    spatial = key("s", 4, kind="spatial")
    columns = list(COLUMNS)
    columns[4] = dataclasses.replace(columns[4], srid=0)
    tables = [table(spatial), dataclasses.replace(table(spatial), columns=tuple(columns))]
    assert [decide(one, ALL, RULES[version]).key is spatial for one in tables] == [
        taken == 2,
        taken > 0,
    ]
    myisam = [dataclasses.replace(one, engine="MyISAM") for one in tables]
    assert [decide(one, ALL, RULES[version]).key for one in myisam] == [None, None]


def test_mariadb_counts_one_row_per_value_of_a_spatial_key() -> None:
    spatial, other = key("s", 4, kind="spatial"), key("o", 3)
    for keys, rows, wanted in (
        ((spatial, other), 1.0, spatial),
        ((other, spatial), 1.0, other),
        ((other, spatial), 2.0, spatial),
    ):
        assert (
            decide(table(*keys), ALL, RULES["mariadb"], None, lambda _, rows=rows: rows).key
            is wanted
        )


@pytest.mark.parametrize(
    ("version", "skipped"),
    [("5.7", False), ("8.0", True), ("8.4", True), ("9.7", True), ("mariadb", False)],
)
def test_invisible_keys(version: str, skipped: bool) -> None:
    hidden = dataclasses.replace(PLAIN, visible=False)
    assert (decide(table(hidden), ALL, RULES[version]).key is None) == skipped
    primary = dataclasses.replace(UNIQUE, visible=False)
    assert decide(table(primary), ALL, RULES[version]).key is primary, (
        "a promoted key is used, seen or not"
    )


def test_disabled_and_multi_valued_keys() -> None:
    disabled = dataclasses.replace(PLAIN, enabled=False)
    multi = dataclasses.replace(PLAIN, multi_valued=True)
    for version in ("5.7", "8.0", "9.7"):
        assert decide(table(disabled), ALL, RULES[version]).key is None
        assert decide(table(multi), ALL, RULES[version]).key is None


def test_functional_keys_are_taken_by_8_0_without_index_scan_only() -> None:
    functional = Key("f", (KeyPart(None, expression="a * 2"),))
    assert decide(table(functional), ALL, RULES["8.0"], OPTION_SETS["I,H"]).key is None
    assert decide(table(functional), ALL, RULES["8.0"], OPTION_SETS["T,H"]).key is functional
    assert decide(table(functional), ALL, RULES["9.7"], OPTION_SETS["T,H"]).key is None


# MariaDB's choice


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        ({"x": 9.0, "y": 3.0}, "y"),
        ({"x": 3.0, "y": 9.0}, "x"),
        ({"x": 3.0, "y": 3.0}, "x"),
        ({"x": 0.0, "y": 1.0}, "x"),
        ({"x": 5.0, "y": 0.0}, "x"),
    ],
)
def test_mariadb_takes_the_fewest_rows_per_value(rows: dict[str, float], chosen: str) -> None:
    definition = table(key("x", 2), key("y", 3))
    decision = decide(definition, ALL, RULES["mariadb"], None, lambda key: rows[key.name])
    assert decision.key is not None
    assert decision.key.name == chosen


def test_mariadb_takes_a_unique_key_without_null_at_once() -> None:
    definition = table(PLAIN, UNIQUE_NULLABLE, UNIQUE)
    assert decided(definition, (), RULES["mariadb"], None, lambda key: 1.0) == (
        IX,
        UNIQUE,
        "primary",
    )


# reasons


def reasons(
    version: str, columns: tuple[int, ...], *keys: Key, options: str | None = None
) -> dict[str, str]:
    row_search = None if options is None else OPTION_SETS[options]
    explanation = explain(table(*keys), columns, RULES[version], row_search, lambda key: 1.0)
    assert explanation.decision == decide(
        table(*keys), columns, RULES[version], row_search, lambda key: 1.0
    )
    return {rejection.key.name: rejection.reason for rejection in explanation.rejections}


def test_reasons_for_keys_not_taken() -> None:
    hidden = dataclasses.replace(key("hidden", 3), visible=False)
    assert reasons(
        "9.7",
        (1, 3),
        PRIMARY,
        UNIQUE_NULLABLE,
        hidden,
        key("f", 3, kind="fulltext"),
        key("s", 4, kind="spatial"),
    ) == {
        "PRIMARY": "column `id` is not in the before image",
        "un": "column `b` is not in the before image",
        "hidden": "the key is invisible",
        "f": "a FULLTEXT key cannot be read in order",
        "s": "a SPATIAL key cannot be read in order",
    }


def test_reasons_name_every_missing_column() -> None:
    assert reasons("9.7", (1,), PRIMARY, key("ab", 2, 1)) == {
        "PRIMARY": "column `id` is not in the before image",
        "ab": "column `b`, `id` is not in the before image",
    }


def test_the_key_taken_is_the_reason_for_the_others() -> None:
    assert reasons("9.7", tuple(ALL), PRIMARY, PLAIN) == {
        "k": "`PRIMARY` comes first; cardinality is not compared"
    }
    assert reasons("mariadb", (), UNIQUE, PLAIN) == {
        "k": "`u` is unique or has fewer rows per value"
    }


def test_table_scan_alone_takes_no_key() -> None:
    assert reasons("8.0", tuple(ALL), PRIMARY, options="T") == {
        "PRIMARY": "the option set scans the table whatever keys there are"
    }


def test_reason_of_5_6_for_a_second_unique_key() -> None:
    assert (
        reasons("5.6", (1,), PRIMARY, UNIQUE)["u"]
        == "5.6 looks for a second unique key in temporary tables only"
    )


# versions and options


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("5.7", "5.7"),
        ("5.7.29-log", "5.7"),
        ("5.6.24", "5.6"),
        ("5.5.62", "5.6"),
        ("8.0.46", "8.0"),
        ("8.2.0", "8.0"),
        ("8.3.0", "8.4"),
        ("8.4.4", "8.4"),
        ("9.0.1", "8.4"),
        ("9.7.4-2", "9.7"),
        ("10.11.19-MariaDB", "mariadb"),
        ("5.5.5-10.11.19-MariaDB-log", "mariadb"),
        ("11.4.2", "9.7"),
        ("10.0.1", "9.7"),
        ("10.0.38-MariaDB", "mariadb"),
        ("mariadb", "mariadb"),
    ],
)
def test_rules_for(text: str, name: str) -> None:
    assert rules_for(text).name == name


@pytest.mark.parametrize(
    ("text", "second_unique_usable", "hash_looks_again", "collisions_apply"),
    [
        ("5.7", True, False, False),
        ("5.7.22-log", False, False, False),
        ("5.7.23", True, False, False),
        ("8.0", True, True, False),
        ("8.0.11", False, False, False),
        ("8.0.16-debug", True, False, False),
        ("8.0.17", True, True, True),
        ("8.0.45", True, True, True),
        ("8.0.46", True, True, False),
        ("8.1", True, True, True),
        ("8.3.0", True, True, True),
        ("8.4.6", True, True, True),
        ("8.4.9", True, True, False),
        ("9.6", True, True, True),
        ("9.6.0", True, True, True),
        ("9.7", True, True, False),
        ("9.7.0", True, True, False),
        ("5.6.51", False, False, False),
    ],
)
def test_rules_of_a_release(
    text: str, second_unique_usable: bool, hash_looks_again: bool, collisions_apply: bool
) -> None:
    rules = rules_for(text)
    found = (rules.second_unique_usable, rules.hash_looks_again, rules.collisions_apply)
    assert found == (second_unique_usable, hash_looks_again, collisions_apply)


def test_a_release_differs_from_its_series_in_nothing_else() -> None:
    newest = RULES["8.0"]
    assert (
        dataclasses.replace(
            rules_for("8.0.11"),
            second_unique_usable=True,
            hash_looks_again=True,
            invisible_columns=True,
        )
        == newest
    )


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("5.7.44", False),
        ("8.0.22", False),
        ("8.0.23", True),
        ("8.0", True),
        ("8.4.0", True),
        ("mariadb", True),
        ("10.2.44-MariaDB", False),
        ("10.3.2-MariaDB", False),
        ("10.3.39-MariaDB", True),
        ("10.11.18-MariaDB", True),
    ],
)
def test_invisible_columns(text: str, there: bool) -> None:
    assert rules_for(text).invisible_columns is there


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("4.0", "older"),
        ("5.5.62-log", "older"),
        ("5.6", None),
        ("7.0", None),
        ("9.7.4", None),
        ("9.8.0", "newer"),
        ("13.1", "newer"),
        ("5.5.68-MariaDB", None),
        ("10.6.5", "newer"),
        ("10.6.5-MariaDB", None),
        ("mariadb", None),
    ],
)
def test_versions_outside_the_table(text: str, where: str | None) -> None:
    assert outside(text) == where


@pytest.mark.parametrize("text", ["", "eight", "8", "x.y", "8.²"])
def test_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="is not a server version"):
        rules_for(text)


def test_parse_row_search() -> None:
    assert parse_row_search("index_scan, HASH_SCAN") == OPTION_SETS["I,H"]
    for refused in ("", ",", "INDEX_SCAN,QUICK_SCAN"):
        with pytest.raises(ValueError, match="slave_rows_search_algorithms"):
            parse_row_search(refused)


def test_any_column_local() -> None:
    assert any_column_local((4, 7), 5)
    assert not any_column_local((5, 7), 5)
    assert not any_column_local((), 5)
