"""The margin of a forecast is wider where a table is beyond what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from applier.forecast.inventory.facts import TableFacts, facts_of_file
from applier.forecast.prices.margin import LARGEST_MEASURED, margin
from applier.forecast.prices.scenario import Scenario
from lookup.versions import RULES
from tests.forecast import logs

BASE = Scenario("as it is", RULES["9.7"])
PRICES = logs.calibration(spread=0.2)


def table(folder: Path) -> TableFacts:
    return replace(facts_of_file(logs.schema(folder))["d.keyed"], in_log=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": 100.0 * LARGEST_MEASURED}, "has 100,000,000 rows"),
        ({"row_bytes": 20_000.0}, "have 20,000 bytes"),
    ],
)
def test_a_large_table_and_wide_rows_widen_it(
    change: dict[str, float], words: str, tmp_path: Path
) -> None:
    one = replace(table(tmp_path), **change)
    found, said = margin(BASE, {"d.keyed": one}, PRICES)
    assert found > 0.3
    assert len(said) == 1 and words in said[0]


def test_rows_about_as_wide_as_those_measured_do_not(tmp_path: Path) -> None:
    one = replace(table(tmp_path), row_bytes=2_000.0)
    assert margin(BASE, {"d.keyed": one}, PRICES) == (pytest.approx(0.2), [])


def test_wide_rows_that_the_log_does_not_change_do_not(tmp_path: Path) -> None:
    one = replace(table(tmp_path), row_bytes=20_000.0, in_log=False)
    assert margin(BASE, {"d.keyed": one}, PRICES) == (pytest.approx(0.2), [])
