"""Bug #101828 costs nothing while no checksums collide: what is hashed and asked for, and what is
remembered."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from applier.tables import keys
from applier.tables.engine import MemoryTable
from lookup.batch import ApplyOptions, RowsShape
from lookup.handler import Counters, Image, Row
from lookup.rows import RowsPlan
from lookup.server_hash import row_checksum
from lookup.table import Column, Key, KeyPart, TableDefinition
from lookup.versions import rules_for

ROWS, CHANGED = 200, 50
WITH_BUG, WITHOUT = "8.0.42", "8.0.46"


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Image]:
    """Every content whose checksum was worked out."""
    done: list[Image] = []

    def counting(
        definition: TableDefinition, columns: tuple[int, ...], nulls: frozenset[int] | None
    ) -> Callable[[Image], int]:
        checksum = row_checksum(definition, columns, nulls)

        def counted(image: Image) -> int:
            done.append(image)
            return checksum(image)

        return counted

    monkeypatch.setattr("lookup.hash_scan.row_checksum", counting)
    return done


def table_of(count: int, *key_columns: int) -> MemoryTable:
    columns = tuple(Column(name, "int") for name in "abc")
    table = MemoryTable(
        TableDefinition(
            "d", "t", columns, tuple(Key(f"k{at}", (KeyPart(at),)) for at in key_columns)
        )
    )
    table.load((at, at % 20, 0) for at in range(count))
    return table


def update(table: MemoryTable, version: str, rows: list[tuple[Row, Row]]) -> Counters:
    counters = Counters()
    plan = RowsPlan(
        table, RowsShape("update", (0, 1, 2), (0, 1, 2)), ApplyOptions(rules_for(version))
    )
    outcome = plan.apply(rows, counters)
    assert outcome.error is None and outcome.rows_changed == len(rows)
    return counters


def changes(first: int, count: int, old: int) -> list[tuple[Row, Row]]:
    return [((at, at % 20, old), (at, at % 20, old + 1)) for at in range(first, first + count)]


@pytest.mark.parametrize("key_columns", [(), (1,)])
def test_each_content_is_hashed_when_it_comes_and_when_it_is_looked_for(
    key_columns: tuple[int, ...], hashed: list[Image]
) -> None:
    table, other = table_of(ROWS, *key_columns), table_of(ROWS, *key_columns)
    for event in range(3):
        hashed.clear()
        counters = update(table, WITH_BUG, changes(event * CHANGED, CHANGED, 0))
        assert len(hashed) == 2 * CHANGED + (ROWS if event == 0 else 0)
        assert counters == update(other, WITHOUT, changes(event * CHANGED, CHANGED, 0))
    assert table.stored_rows() == other.stored_rows()


@pytest.mark.parametrize("version", [WITHOUT, "8.0.16", "9.7"])
def test_other_versions_hash_nothing(version: str, hashed: list[Image]) -> None:
    update(table_of(ROWS), version, changes(0, CHANGED, 0))
    assert not hashed


def test_contents_of_the_past_are_forgotten(
    monkeypatch: pytest.MonkeyPatch, hashed: list[Image]
) -> None:
    monkeypatch.setattr(keys, "SPARE_CHECKSUMS", 100)
    table = table_of(CHANGED)
    for event in range(40):
        update(table, WITH_BUG, changes(0, CHANGED, event))
        (view,) = table._checksums.values()
        assert len(view._first) <= 2 * CHANGED + 100 + CHANGED
    assert len(hashed) <= 40 * CHANGED * 3
    for at in range(1_000):
        table.delete(table.insert((at, -1, -1)))
    assert len(view._first) <= 2 * CHANGED + 101
