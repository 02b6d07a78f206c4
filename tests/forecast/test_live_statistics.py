"""Statistics of a live server against what the definition says."""

from __future__ import annotations

import pytest

import applier
from applier.forecast.inventory.facts import STATISTICS, TableFacts
from applier.forecast.inventory.server_facts import facts_of_server, judged
from applier.mysql.client.url import parse_url
from lookup.versions import RULES
from tests.servers.fixtures import ServerFactory

TABLE = (
    "CREATE TABLE d.t (id INT NOT NULL AUTO_INCREMENT, u INT NOT NULL, n INT, KEY k_id (id), "
    "UNIQUE u (u), UNIQUE n (n), KEY k (u, n));"
)

SHARED = (4, 7, 40)
"""Rows of a value."""


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
    found = judged(facts, values, following, RULES["9.7"])
    assert found.duplicates == duplicates
    assert len(found.doubts) == bool(doubt)
    assert doubt in "".join(found.doubts)
    assert all("ANALYZE TABLE d.t" in said for said in found.doubts)


@pytest.mark.parametrize("version", ["5.6", "5.7", "9.7", "mariadb"])
def test_rows_of_a_value_are_those_of_the_table(
    server_factory: ServerFactory, version: str
) -> None:
    """5.6 and MariaDB show half of them, rounded down, and at least 1."""
    server = server_factory(version)
    server.execute("CREATE DATABASE shared")
    for each in SHARED:
        rows = ",".join(f"({n // each}, {n}, {n // each})" for n in range(400 * each))
        server.execute(
            f"CREATE TABLE shared.t{each} (a INT, id INT, b INT, PRIMARY KEY (a, id), KEY b (b))",
            f"INSERT INTO shared.t{each} VALUES {rows}",
            f"ANALYZE TABLE shared.t{each}",
        )
    url = parse_url(f"mysql://{server.user}@127.0.0.1:{server.port}", "--schema")
    found, _ = facts_of_server(url.with_password(server.password), ["shared"])
    for each in SHARED:
        table = found[f"shared.t{each}"]
        assert table.duplicates["b"] == pytest.approx(each, rel=0.2)
        assert table.rows_per_prefix[0] == pytest.approx(each, rel=0.2)
