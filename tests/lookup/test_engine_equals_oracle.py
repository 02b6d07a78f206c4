"""The fast lookup does what a naive, literal one does: rows in scan order, counters, errors; and
checksums are the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applier.tables import keys
from lookup.handler import Image, Ref, Row
from lookup.hash_scan import HashScan
from lookup.server_hash import row_checksum
from lookup.table import TableDefinition
from lookup.versions import RULES
from tests.oracle.cases import (
    Case,
    cases,
    cut,
    defaults_of,
    definitions,
    outcomes,
    overlay,
    rows_of,
    tables_of_twins,
)
from tests.oracle.checksum import checksum

QUICK = settings(
    max_examples=max(200, settings().max_examples), suppress_health_check=list(HealthCheck)
)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("version", [*RULES, "8.0.16", "8.0.42"])
def test_fast_and_naive_engine_do_the_same(version: str) -> None:
    @QUICK
    @given(cases((version,)))
    def compare(case: Case) -> None:
        fast, naive = outcomes(case)
        assert fast == naive

    compare()


def test_collisions_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug #101828, with a hash that has two values only."""

    def weak(
        definition: TableDefinition, columns: tuple[int, ...], nulls: frozenset[int] | None
    ) -> Callable[[Image], int]:
        strong = row_checksum(definition, columns, nulls)
        return lambda image: strong(image) & 1

    monkeypatch.setattr("lookup.hash_scan.row_checksum", weak)
    monkeypatch.setattr(
        "tests.oracle.entries.checksum",
        lambda *arguments, **named: checksum(*arguments, **named) & 1,
    )

    @QUICK
    @given(cases(("8.0.42",)))
    def compare(case: Case) -> None:
        fast, naive = outcomes(case)
        assert fast == naive

    compare()


@pytest.mark.parametrize("spare", [0, keys.SPARE_CHECKSUMS])
@pytest.mark.parametrize("version", ["8.0.42", "9.7"])
def test_real_collisions_do_the_same(
    version: str, spare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug #101828 with contents whose CRC32 really is the same. Without spare room checksums are
    forgotten in the middle of an event."""
    monkeypatch.setattr(keys, "SPARE_CHECKSUMS", spare)
    taken = []
    look = HashScan._taken_for

    def noted(scan: HashScan, ref: Ref, buffer: Row | None) -> tuple[Image | None, Row | None]:
        found = look(scan, ref, buffer)
        taken.append(found[0] is not None)
        return found

    monkeypatch.setattr(HashScan, "_taken_for", noted)

    @QUICK
    @given(cases((version,), tables_of_twins()))
    def compare(case: Case) -> None:
        fast, naive = outcomes(case)
        assert fast == naive

    compare()
    assert any(taken) == (version == "8.0.42")


@QUICK
@given(definition=definitions(), data=st.data())
def test_checksums_of_images(definition: TableDefinition, data: st.DataObject) -> None:
    """Of whole rows, and of the first columns of a row whose other columns have their defaults."""
    row = data.draw(rows_of(definition))
    columns = tuple(range(data.draw(st.integers(1, len(row)))))
    defaults = defaults_of(definition)
    image = cut(row, columns)
    completed = overlay(defaults, columns)(None, image)
    nulls = frozenset(
        column for column in range(len(columns), len(row)) if defaults[column] is None
    )
    assert row_checksum(definition, columns, nulls)(image) == checksum(
        definition, completed, columns, null_flags=True
    )
    assert row_checksum(definition, columns, None)(image) == checksum(
        definition, completed, columns, null_flags=False
    )
