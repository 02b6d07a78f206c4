"""How many rows share the values that changes meet: of a dump, of a live server, by --rows, or not
known. In the table of all tests most rows share one value, and a few have one each."""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import applier
from applier.forecast.inventory.facts import facts_of_tables
from applier.forecast.inventory.server_counts import count_sql, counted_on_server
from applier.forecast.inventory.value_counts import (
    MOST_ROWS,
    MOST_VALUES,
    counted_in_memory,
    with_value_counts,
)
from applier.forecast.prices.margin import UNCOUNTED_VALUES
from applier.mysql.client.url import Endpoint
from applier.mysql.statements.literals import NotExpressible
from lookup.table import TableDefinition
from tests.binlog.build import gtid, log, query, rows, table_map, write, xid
from tests.servers.fixtures import ServerFactory

UPDATE, DELETE = 31, 32
ROWS, SHARED = 1000, 900
DATA = [(id, 7 if id < SHARED else -id) for id in range(ROWS)]
DEFINITION = "CREATE DATABASE d; CREATE TABLE d.t (id INT, k INT, KEY (k));\n"
FILL = f"INSERT INTO d.t VALUES {', '.join(map(str, DATA))};\n"


def image(row: tuple[int, int | None]) -> bytes:
    id, k = row
    return b"\0" + struct.pack("<2i", id, k) if k is not None else b"\2" + struct.pack("<i", id)


def transactions(*events: list[tuple[int, int]], kind: int = UPDATE) -> bytes:
    """Each event a transaction; updates set k to 1."""
    made: list[tuple[int, bytes]] = []
    for number, befores in enumerate(events, 1):
        images = [image(row) + image((row[0], 1)) * (kind == UPDATE) for row in befores]
        body = rows(kind, b"".join(images), width=2)
        made += [gtid(number), query(b"BEGIN"), table_map(types=b"\3\3"), body, xid()]
    return log(*made)


def told(folder: Path, content: bytes, schema: str, **options: Any) -> dict[str, Any]:
    file = folder / "schema.sql"
    file.write_text(schema)
    path = write(folder, content)
    return applier.forecast([str(path)], str(file), workers=1, **options).summary()


EVENLY = transactions(*[[row] for row in DATA[::10]])


def test_changes_of_a_dump_meet_the_rows_that_it_has(tmp_path: Path) -> None:
    """An event of one row stops at it: half of its value, and the row itself. The mean over values
    would be 9.9 rows."""
    found = told(tmp_path, EVENLY, DEFINITION + FILL)
    (table,) = found["tables"]
    mean = (SHARED * SHARED + ROWS - SHARED) / ROWS
    assert table["rows_read"] == pytest.approx(100 * (mean + 1) / 2)
    assert any(f"in {mean:,.0f} rows" in text for text in table["why"])
    assert not [text for text in found["assumptions"] if "counted" in text]


def test_what_changes_meet_is_not_what_rows_share(tmp_path: Path) -> None:
    """Only rows with values of their own are changed."""
    alone = transactions(*[[row] for row in DATA[SHARED:]])
    (table,) = told(tmp_path, alone, DEFINITION + FILL)["tables"]
    assert table["rows_read"] == 100


@pytest.mark.parametrize(
    ("server", "search", "mean"),
    [("9.7", None, (SHARED + 1) / 2), ("5.7", "INDEX_SCAN,TABLE_SCAN", (9 * SHARED + 1) / 10)],
)
def test_a_hashed_event_looks_up_each_value_once(
    server: str, search: str | None, mean: float, tmp_path: Path
) -> None:
    """An event with nine rows of one value and one of another."""
    content = transactions([*DATA[:9], DATA[-1]], kind=DELETE)
    tables = list(applier.load_schema(DEFINITION + FILL))
    options = {"server": server, "row_search": search}
    (table,) = told(tmp_path, content, DEFINITION + FILL, **options)["tables"]
    (reason,) = [one for one in table["reasons"] if "rows_per_value" in one["numbers"]]
    assert reason["numbers"]["rows_per_value"] == mean
    assert facts_of_tables(tables)["d.t"].duplicates["k"] == pytest.approx(ROWS / 101)


def test_without_rows_the_margin_is_wider(tmp_path: Path) -> None:
    found = told(tmp_path, EVENLY, DEFINITION, row_counts="*=1000")
    known = told(tmp_path, EVENLY, DEFINITION, row_counts=["*=1000", "d.t.k=50"])
    assert [
        text for text in found["assumptions"] if "of key `k` of d.t could not be counted" in text
    ]
    assert not [text for text in known["assumptions"] if "counted" in text]
    wider = found["margin"] ** 2 - known["margin"] ** 2
    assert wider == pytest.approx(UNCOUNTED_VALUES**2)
    assert known["tables"][0]["rows_read"] == pytest.approx(100 * 51 / 2)


@pytest.mark.parametrize("kind", ["PRIMARY KEY", "UNIQUE"])
def test_a_unique_key_needs_no_counts(kind: str, tmp_path: Path) -> None:
    keyed = DEFINITION.replace("id INT,", f"id INT {kind},")
    found = told(tmp_path, EVENLY, keyed, row_counts="*=1000")
    assert not [text for text in found["assumptions"] if "counted" in text]


def test_a_long_log_is_asked_for_some_values() -> None:
    """From its beginning to its end."""
    (table,) = applier.load_schema(DEFINITION)
    asked: list[Any] = []

    def count(definition: TableDefinition, key: Any, values: Any) -> list[int]:
        asked.extend(values)
        return [MOST_ROWS] + [0] * (len(values) - 1)

    facts = facts_of_tables([table])
    found = with_value_counts(facts, {("d.t", "k"): [(at,) for at in range(5000)]}, count)
    assert len(asked) == MOST_VALUES
    assert asked[0] == (0,)
    assert asked[-1] > (4900,)
    # a value that the replica does not have yet will be there once
    assert found.facts["d.t"].met["k"] == (MOST_ROWS + MOST_VALUES - 1) / MOST_VALUES
    assert "10,000 rows and more" in found.said[0]


@pytest.mark.parametrize("name", ["9.7", "5.7", "mariadb"])
def test_a_live_server_counts_as_a_dump_does(name: str, server_factory: ServerFactory) -> None:
    sql = (
        "CREATE DATABASE d; CREATE TABLE d.t (id INT, a VARCHAR(9) CHARACTER SET latin1, b INT"
        " UNSIGNED, c DECIMAL(9,2), KEY k (a, b), KEY c (c), KEY part (a(2)));"
    )
    values = ["'x', 3000000000, 1.5", "'X', 3000000000, 1.5", "NULL, 1, 2", "NULL, NULL, -2.25"]
    fill = "INSERT INTO d.t VALUES " + ", ".join(f"({at}, {values[at % 4]})" for at in range(20))
    with closing(server_factory(name)) as server:
        server.execute(*sql.rstrip(";").split("; "), fill)
        endpoint = Endpoint(server.host, server.port, server.user, password=server.password)
        live = counted_on_server(endpoint)
        (table,) = applier.load_schema(f"{sql}\n{fill};", server=name)
        memory = counted_in_memory([table])
        assert memory is not None
        for key in table.definition.keys[:2]:
            wanted = [tuple(row[at] for at in key.columns) for row in table.stored_rows()[:4]]
            counts = {"k": [10, 10, 5, 5], "c": [10, 10, 5, 5]}[key.name]
            assert live(table.definition, key, wanted) == counts
            assert memory(table.definition, key, wanted) == counts
        # no condition leads to the beginning of a text
        assert live(table.definition, table.definition.keys[2], [(b"x",)]) == ()
        server.execute("DROP TABLE d.t")
        assert live(table.definition, table.definition.keys[1], [(None,)]) == ()


def test_what_no_statement_can_ask_for() -> None:
    (table,) = applier.load_schema("CREATE DATABASE d; CREATE TABLE d.t (a TEXT, KEY (a(2)));")
    with pytest.raises(NotExpressible):
        count_sql(table.definition, table.definition.keys[0], [(b"x",)], "9.7")
