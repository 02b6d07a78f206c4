"""What an event asks for, in units: steps in a secondary index, where they lead, and what deleting
on the way adds."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from applier.forecast.prices.units import PLACE, RowWork, event_amounts
from lookup.cost import expected
from lookup.table_shape import NULLABLE_UNIQUE, OTHER, PRIMARY, EventShape, TableShape
from lookup.versions import RULES

LARGE = RowWork(95, 7, 1, 400_000)
"""Of 48 MB, where caches are taken to hold 8."""


def asked(
    key: str,
    kind: str,
    rows: int,
    work: RowWork = LARGE,
    rows_per_value: float = 1.0,
    version: str = "9.7",
) -> dict[str, float]:
    """The units of one event, by name."""
    shape = TableShape(work.table_rows, key, rows_per_value, row_bytes=work.row_bytes)
    found = expected(shape, EventShape(kind, rows), RULES[version])
    return dict(zip(PLACE, event_amounts(found, kind, rows, work), strict=True))


def test_each_step_to_a_row_of_the_same_value_is_a_far_page() -> None:
    found = asked(OTHER, "update", 30, rows_per_value=5)
    reads = found["secondary read"] + found["next"]
    assert reads == pytest.approx(30 * 6, rel=0.03)
    assert found["far page"] == pytest.approx(reads * math.log2(48 / 8), rel=1e-9)
    assert found["page"] < reads
    assert (found["hash row"], found["hash byte"], found["hash value"]) == (
        0,
        reads * 95,
        reads * 7,
    )
    assert asked(OTHER, "update", 30, RowWork(95, 7, 1, 50_000), 5)["far page"] == 0


def test_all_tables_of_the_log_share_the_caches() -> None:
    alone, beside = (RowWork(95, 7, 1, 400_000, log_bytes=size) for size in (0.0, 192e6))
    own = replace(beside, steps_share=False)
    assert asked(OTHER, "update", 30, own, 5) == asked(OTHER, "update", 30, alone, 5)
    assert asked(PRIMARY, "update", 30, own) == asked(PRIMARY, "update", 30, beside)
    assert (
        asked(OTHER, "update", 30, beside, 5)["far page"]
        / asked(OTHER, "update", 30, alone, 5)["far page"]
    ) == pytest.approx(math.log2(192 / 8) / math.log2(48 / 8))


def test_rows_found_by_a_unique_key_come_page_by_page() -> None:
    for key in (PRIMARY, NULLABLE_UNIQUE):
        found = asked(key, "delete", 10_000)
        assert found["page"] < 3200 < found["key read"] + found["secondary read"]
        assert found["far page"] == pytest.approx(found["page"] * math.log2(48 / 8), rel=1e-9)
        assert found["marked read"] == 0


@pytest.mark.parametrize(("rows", "rows_per_value"), [(1, 5), (30, 5), (2000, 50), (40_000, 20)])
def test_reads_behind_a_deleted_row_of_the_same_value(rows: int, rows_per_value: int) -> None:
    """Held against events drawn by chance: each value is read to its end, and one read beyond; all
    count as deleted from alike."""
    values = 400_000 // rows_per_value
    chance, reads, behind = random.Random(1), 0, 0
    for _ in range(max(2000 // rows, 1)):
        deleted: dict[int, set[int]] = {}
        for row in chance.sample(range(400_000), rows):
            deleted.setdefault(row % values, set()).add(row // values)
        reads += len(deleted) * (rows_per_value + 1)
        behind += sum(rows_per_value - min(places) for places in deleted.values())
    found = asked(OTHER, "delete", rows, rows_per_value=rows_per_value)
    assert found["marked read"] / (found["secondary read"] + found["next"]) == pytest.approx(
        behind / reads, rel=0.07
    )


def test_updates_and_single_lookups_mark_nothing() -> None:
    assert asked(OTHER, "update", 30, rows_per_value=5)["marked read"] == 0
    assert asked(OTHER, "delete", 30, rows_per_value=5, version="5.7")["marked read"] == 0
