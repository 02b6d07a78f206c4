"""Statistics of a live server against what the definition says."""

from __future__ import annotations

import pytest

import applier
from applier.forecast.inventory import file_sizes
from applier.forecast.inventory.facts import COUNTED_THERE, STATISTICS, TableFacts
from applier.forecast.inventory.file_sizes import MOST_COUNTED
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


@pytest.mark.parametrize(
    ("counted", "said"),
    [
        (5000.0, "d.t has 5,000 rows, as counted; the server's statistics are old, they say 16"),
        (float(MOST_COUNTED), "d.t has at least 1,000,000 rows"),
        (20.0, ""),
    ],
)
def test_statistics_that_say_far_fewer_rows_than_were_counted_are_old(
    counted: float, said: str
) -> None:
    known = TableFacts(
        applier.load_schema(TABLE)["d.t"].definition, 16.0, STATISTICS, row_bytes=900.0,
        leaf_pages={"PRIMARY": 1.0},
    )  # fmt: skip
    found = judged(known, {"k_id": 16, "k": 4}, 17, RULES["5.7"], counted)
    assert said in "".join(found.doubts) and bool(found.doubts) == bool(said)
    if said:
        assert (found.rows, found.rows_from) == (counted, COUNTED_THERE)
        assert (found.row_bytes, dict(found.leaf_pages)) == (None, {})
        assert found.duplicates == {"k_id": 1, "u": 1}
    else:
        assert (found.rows, found.duplicates["k"]) == (16.0, 4.0)


OF_16_ROWS = (
    "UPDATE mysql.innodb_table_stats SET n_rows = 16, clustered_index_size = 1,"
    " sum_of_other_index_sizes = 1 WHERE database_name = 'old'"
)


@pytest.mark.parametrize("version", ["5.6", "5.7", "9.7", "mariadb"])
def test_rows_are_counted_where_a_file_is_much_larger_than_its_statistics(
    server_factory: ServerFactory, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table whose rows were deleted has such a file, too, and its statistics are right. 5.6 does
    not tell how large files are, and an account without PROCESS does not see it. Nobody waits for a
    table that is locked."""
    server = server_factory(version)
    columns = "(a INT, b CHAR(250) NOT NULL, KEY k (a)) STATS_AUTO_RECALC = 0"
    server.execute("CREATE DATABASE old", "USE old")
    for table in ("copied", "emptied"):
        server.execute(f"CREATE TABLE old.{table} {columns} CHARACTER SET latin1")
        some = f"INSERT INTO old.{table} SELECT 1, 'x' FROM information_schema.columns LIMIT 400"
        more = f"INSERT INTO old.{table} SELECT a, b FROM old.{table}"
        server.execute(some, *[more] * 6)
    server.execute("DELETE FROM old.emptied LIMIT 25590", OF_16_ROWS)
    server.restart()
    server.execute(
        "CREATE USER reader@'%' IDENTIFIED BY 'p'",
        "GRANT SELECT ON old.* TO reader@'%'",
    )
    url = f"mysql://{server.user}@127.0.0.1:{server.port}"
    facts, _ = facts_of_server(parse_url(url, "--schema").with_password(server.password), ["old"])
    copied, emptied = facts["old.copied"], facts["old.emptied"]
    assert (emptied.rows, emptied.doubts) == (16.0, ())
    if version == "5.6":
        assert (copied.rows, copied.doubts) == (16.0, ())
    else:
        assert (copied.rows, copied.rows_from) == (25_600.0, COUNTED_THERE)
    reader = parse_url(f"mysql://reader@127.0.0.1:{server.port}", "--schema").with_password("p")
    facts, _ = facts_of_server(reader, ["old"])
    assert (facts["old.copied"].rows, facts["old.copied"].doubts) == (16.0, ())
    monkeypatch.setattr(
        file_sizes,
        "_LIMITS",
        ("SET SESSION max_execution_time = 200", "SET SESSION max_statement_time = 0.2"),
    )
    with server.connect() as other, other.cursor() as cursor:
        cursor.execute("LOCK TABLES old.copied WRITE, old.emptied WRITE")
        facts, _ = facts_of_server(
            parse_url(url, "--schema").with_password(server.password), ["old"]
        )
    assert (facts["old.copied"].rows, facts["old.copied"].doubts) == (16.0, ())


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


def test_tables_with_history_belong_to_the_schema(server_factory: ServerFactory) -> None:
    """information_schema calls them SYSTEM VERSIONED."""
    server = server_factory.shared("mariadb")
    server.execute(
        "CREATE OR REPLACE DATABASE kept",
        "CREATE TABLE kept.t (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
        "CREATE VIEW kept.v AS SELECT id FROM kept.t",
    )
    url = parse_url(f"mysql://{server.user}@127.0.0.1:{server.port}", "--schema")
    found, _ = facts_of_server(url.with_password(server.password), ["kept"])
    assert list(found) == ["kept.t"]
