"""Several workers in a table without a key, in a forecast of a log: none of them gains anything."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from applier.forecast.answers.words import split
from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.lag.compiled import compiled_steps
from applier.forecast.plan import ForecastPlan, run
from tests.binlog.build import gtid
from tests.forecast.logs import DELETE, calibration, file, schema, transaction

TRANSACTIONS = 200


def independent(folder: Path, table: bytes) -> str:
    """One-row deletes of a table, all within a millisecond, that the source's log does not tie to
    each other."""
    found = []
    for number in range(1, TRANSACTIONS + 1):
        one = transaction(number, table, DELETE, number)
        stamp = struct.pack("<Q", 1_700_000_000_000_000 + number)[:7]
        found.append([gtid(number, last=min(number - 1, 1), sequence=number, rest=stamp), *one[1:]])
    return file(folder, *found)


def forecast(folder: Path, table: bytes = b"plain", **given: Any) -> Any:
    facts = facts_of_file(schema(folder))
    counts = [f"d.{table.decode()}=200"]
    return run(
        ForecastPlan(
            files=[independent(folder, table)], facts=facts, row_counts=counts,
            calibration=calibration(), server="9.7", **given,
        )
    )  # fmt: skip


def test_workers_are_slower_than_one_in_a_table_without_a_key(tmp_path: Path) -> None:
    one, two, four = (forecast(tmp_path, workers=number).forecast.base for number in (1, 2, 4))
    assert one.retries == 0
    assert two.retries == pytest.approx(TRANSACTIONS, rel=0.1)
    assert two.span == pytest.approx(TRANSACTIONS * 1.0, rel=0.2)
    assert four.retries == pytest.approx(1.3 * TRANSACTIONS, rel=0.2)
    assert one.span < four.span < two.span


def test_a_key_or_another_order_of_commits_ends_it(tmp_path: Path) -> None:
    unordered = forecast(tmp_path, workers=4, preserve_order=False).forecast.base
    alone = forecast(tmp_path, workers=1).forecast.base
    assert unordered.retries == 0
    assert unordered.span == pytest.approx(alone.span, rel=0.1)
    assert forecast(tmp_path, b"keyed", workers=4).forecast.base.retries == 0


def test_the_answer_says_so_and_the_fixes_end_it(tmp_path: Path) -> None:
    found = forecast(tmp_path, workers=4).summary()
    assert split(found).startswith("Workers do not help a table without a key")
    assert found["replica"]["retries"] > TRANSACTIONS
    assert found["fixes"][0]["table"] == "d.plain"
    assert found["fixes"][0]["gain_seconds"] > 0.9 * TRANSACTIONS / 2
    in_turn = forecast(tmp_path, workers=1).summary()["replica"]["peak_lag_seconds"]
    assert found["peak_low_seconds"] < in_turn * 1.1


def test_one_worker_is_faster_than_four(tmp_path: Path) -> None:
    four, one = (
        forecast(tmp_path, workers=4, what_ifs=["workers=1"]).forecast.runs[at] for at in (0, 4)
    )
    assert one.retries == 0 < four.retries
    assert one.span < four.span / 10


def test_compiled_steps_say_the_same(tmp_path: Path) -> None:
    plain = forecast(tmp_path, workers=4).forecast.base
    compiled_steps()
    compiled = forecast(tmp_path, workers=4).forecast.base
    assert (compiled.span, compiled.retries) == (plain.span, plain.retries)
