"""Why a table is expensive: each reason appears where its cause is, with the numbers of the
formulas."""

from __future__ import annotations

import pytest

from lookup.decision import decide
from lookup.reasons import HashVerdict, Reason, about_used_key, hash_verdict, key_sentence, reasons
from lookup.table import Column, Key, KeyPart, TableDefinition
from lookup.table_shape import NULLABLE_UNIQUE, OTHER, PRIMARY, EventShape, TableShape
from lookup.versions import RULES

COLUMNS = (
    Column("id", "int", nullable=False),
    Column("code", "int"),
    Column("kind", "int", nullable=False),
)
PK = Key("PRIMARY", (KeyPart(0),), unique=True)
CODE = Key("u_code", (KeyPart(1),), unique=True)
KIND = Key("k_kind", (KeyPart(2),))
CODES = Key("k_code", (KeyPart(1),))
ONE, MANY = EventShape("delete"), EventShape("delete", 100)
OLD = frozenset({"INDEX_SCAN", "TABLE_SCAN"})


def table(*keys: Key, engine: str = "InnoDB") -> TableDefinition:
    return TableDefinition("d", "t", COLUMNS, keys, engine=engine)


def found(
    definition: TableDefinition,
    event: EventShape = MANY,
    version: str = "9.7",
    row_search: frozenset[str] | None = None,
    columns: tuple[int, ...] = (0, 1, 2),
    rows: float = 100_000,
    null_share: float = 0.0,
    **duplicates: float,
) -> dict[str, Reason]:
    told = reasons(
        definition, columns, event, RULES[version], row_search,
        rows=rows, rows_per_value=lambda key: duplicates.get(key.name, 1.0), null_share=null_share,
    )  # fmt: skip
    assert len({(reason.code, reason.key) for reason in told}) == len(told)
    return {reason.code: reason for reason in told}


def test_a_primary_key_needs_no_excuse() -> None:
    for version in RULES:
        assert found(table(PK, KIND), version=version) == {}
    assert found(table(), EventShape("write", 10)) == {}


def test_no_key_at_all() -> None:
    assert list(found(table())) == ["no key"]
    assert found(table())["no key"].text == "d.t has no key."


def test_one_row_an_event_makes_the_hash_a_scan() -> None:
    told = found(table(), ONE)
    assert list(told) == ["no key", "one row per event"]
    assert dict(told["one row per event"].numbers) == {"reads": 50_000.5}
    assert "scans the table for it, 50,000 rows on average" in told["one row per event"].text


@pytest.mark.parametrize("version", RULES)
def test_a_nullable_unique_key(version: str) -> None:
    told = found(table(CODE), version=version)
    assert told["nullable unique"].key == "u_code"
    assert "may hold NULL in `code`" in told["nullable unique"].text


@pytest.mark.parametrize("version", RULES)
def test_a_spatial_key_that_finds_nothing(version: str) -> None:
    told = found(table(Key("s", (KeyPart(0),), kind="spatial")), version=version)
    assert next(iter(told)) == (
        "spatial key" if version in ("5.7", "mariadb") else "key not usable"
    )


def test_nulls_in_a_unique_key_are_duplicates() -> None:
    told = found(table(CODE), null_share=0.9)
    assert told["useless key"].text.startswith(
        "90,000 rows have NULL in key `u_code`, so the key does not help: "
    )


def test_a_column_that_the_image_lacks() -> None:
    told = found(table(KIND), columns=(0, 1))
    assert (
        told["not in the image"].text == "Key `k_kind` is not used: the before image lacks `kind`."
    )
    behind_primary = found(table(PK), columns=(1, 2))
    assert "`id`" in behind_primary["not in the image"].text


def test_engines_and_servers_that_never_hash() -> None:
    assert "BLACKHOLE" in found(table(engine="BLACKHOLE"))["never hashed"].text
    maria = found(table(), version="mariadb")["never hashed"]
    assert dict(maria.numbers)["reads"] > 40 * dict(maria.numbers)["reads_hashed"]
    assert "MariaDB searches for each row separately." in maria.text


def test_options_that_forbid_the_better_way() -> None:
    told = found(table(), version="5.7")
    assert "lacks HASH_SCAN" in told["no hash scan"].text
    assert "no hash scan" not in found(table(), ONE, version="5.7"), "it would not help"
    assert (
        found(table(PK), version="8.0", row_search=frozenset({"TABLE_SCAN"}))["no index scan"].key
        == "PRIMARY"
    )
    assert "no index scan" not in found(
        table(KIND), version="9.7", row_search=frozenset({"TABLE_SCAN"})
    ), "9.7 has no such option"


def test_duplicates_and_a_useless_key() -> None:
    some = found(table(KIND), k_kind=50.0)
    assert list(some) == ["duplicates"]
    assert some["duplicates"].text.startswith(
        "A value of key `k_kind` stands in 50 rows, so the server reads "
    )
    useless = found(table(KIND), k_kind=50_000.0)["useless key"]
    assert dict(useless.numbers)["reads"] == pytest.approx(100_000, rel=0.02)
    assert dict(useless.numbers)["reads_by_scan"] == pytest.approx(100_000, rel=0.02)
    assert found(table(KIND), k_kind=1.0) == {}


def test_the_first_key_wins_however_bad_it_is() -> None:
    told = found(table(KIND, CODES), k_kind=5000.0, k_code=2.0)
    assert "would read less" in told["worse key first"].text
    assert "worse key first" not in found(table(CODES, KIND), k_kind=5000.0, k_code=2.0)
    assert "worse key first" not in found(
        table(KIND, CODES), version="mariadb", k_kind=5000.0, k_code=2.0
    )


def test_the_two_conditions_for_hashing() -> None:
    """No usable key or shared values; several rows an event. Only both together pay."""

    def conditions(verdict: HashVerdict) -> tuple[bool, bool, bool]:
        return verdict.no_key or verdict.shared_values, verdict.several_rows, verdict.helps

    million = TableShape(1e6)
    assert conditions(hash_verdict(million, MANY)) == (True, True, True)
    assert hash_verdict(million, MANY).factor == pytest.approx(51, rel=0.01)
    assert conditions(hash_verdict(million, ONE)) == (True, False, False)
    indexed = TableShape(1e6, OTHER, 1000)
    assert conditions(hash_verdict(indexed, EventShape("delete", 100, distinct_values=1))) == (
        True,
        True,
        True,
    )
    assert conditions(hash_verdict(indexed, EventShape("delete", 100, distinct_values=100))) == (
        False,
        True,
        False,
    )
    assert conditions(hash_verdict(indexed, ONE)) == (False, False, False)
    assert hash_verdict(TableShape(1e6, PRIMARY), MANY).factor == 1
    assert not hash_verdict(TableShape(1e6, NULLABLE_UNIQUE), MANY).helps


@pytest.mark.parametrize(
    ("shape", "event", "text"),
    [
        (TableShape(999), ONE,
         "does not help: each event changes one row, so each event still scans the table."),
        (TableShape(1000), EventShape("update", 1000),
         "helps: an event reads 1,000 rows with it and 500,500 rows without it."),
        (TableShape(1000, OTHER, 50), ONE, "does not help: each event changes one row."),
        (TableShape(1000, PRIMARY), MANY,
         "does not help: no two rows of an event share a key value."),
    ],
)  # fmt: skip
def test_verdicts_in_words(shape: TableShape, event: EventShape, text: str) -> None:
    assert hash_verdict(shape, event).text == f"HASH_SCAN {text}"


def test_the_key_that_is_used_in_a_sentence() -> None:
    def sentence(version: str, *keys: Key, columns: tuple[int, ...] = (0, 1, 2)) -> str:
        definition, rules = table(*keys), RULES[version]
        return key_sentence(definition, decide(definition, columns, rules), rules)

    assert (
        sentence("9.7", KIND, PK)
        == "`PRIMARY` is used: MySQL takes a primary key before any other key."
    )
    assert (
        sentence("mariadb", KIND, PK)
        == "`PRIMARY` is used: MariaDB takes the first unique key without NULL."
    )
    assert "treats as the primary key" in sentence("9.7", Key("u", (KeyPart(0),), unique=True))
    assert sentence("5.7", KIND, CODES).startswith("`k_kind` is used: it is the first usable key")
    assert sentence("9.7") == "The table has no key."
    assert sentence("9.7", KIND, columns=(0, 1)) == "No key is used."


def test_only_the_key_that_is_used_is_spoken_of() -> None:
    definition, rules = table(KIND, CODES), RULES["9.7"]
    told = found(definition, k_kind=5000.0, k_code=2.0)
    decision = decide(definition, (0, 1, 2), rules)
    assert {reason.key for reason in told.values()} == {"k_kind", "k_code"}
    assert {reason.key for reason in about_used_key(told.values(), decision)} == {"k_kind"}
