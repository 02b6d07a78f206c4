"""Statistics of a live server against what the definition says."""

from __future__ import annotations

import pytest

import applier
from applier.forecast.inventory.facts import STATISTICS, TableFacts
from applier.forecast.inventory.server_facts import judged

TABLE = (
    "CREATE TABLE d.t (id INT NOT NULL AUTO_INCREMENT, u INT NOT NULL, n INT, KEY k_id (id), "
    "UNIQUE u (u), UNIQUE n (n), KEY k (u, n));"
)


@pytest.mark.parametrize(
    ("rows", "values", "following", "duplicates", "doubt"),
    [
        (1000, {"k_id": 990, "u": 900, "n": 500, "k": 100}, 1001,
         {"k_id": 1, "u": 1, "n": 2, "k": 10}, ""),
        (750, {"k_id": 1, "u": 750, "k": 1}, 751, {"k_id": 1, "u": 1},
         "key `k_id` would have 1 values in 750 rows"),
        (900, {"k": 9}, 101, {"k_id": 1, "u": 1},
         "there would be 900 rows, and AUTO_INCREMENT gave out 100 numbers"),
        (0, {"k": 9}, 5001, {"k_id": 1, "u": 1},
         "there would be no rows, and AUTO_INCREMENT gave out 5,000 numbers"),
        (0, {}, 1, {"k_id": 1, "u": 1}, ""),
        (3, {"k_id": 0, "u": 3, "n": 0, "k": 0}, 4, {"k_id": 1, "u": 1}, ""),
        (10, {"k": 5}, 5001, {"k_id": 1, "u": 1, "k": 2}, ""),
    ],
)  # fmt: skip
def test_old_statistics_are_known_by_what_cannot_be(
    rows: float,
    values: dict[str, float],
    following: float,
    duplicates: dict[str, float],
    doubt: str,
) -> None:
    facts = TableFacts(applier.load_schema(TABLE)["d.t"].definition, rows, STATISTICS)
    found = judged(facts, values, following)
    assert found.duplicates == duplicates
    assert len(found.doubts) == bool(doubt)
    assert doubt in "".join(found.doubts)
    assert all("ANALYZE TABLE d.t" in said for said in found.doubts)
