"""--rows @FILE: what information_schema says, by the documented query."""

from __future__ import annotations

import csv
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from applier.errors import InputError
from applier.forecast.inventory import rows_file
from applier.forecast.inventory.facts import STATISTICS, facts_of_file
from applier.forecast.inventory.rows_file import read_rows, with_rows_file
from applier.forecast.inventory.server_facts import facts_of_server
from applier.forecast.plan import ForecastPlan, run
from applier.mysql.client.url import parse_url
from lookup.versions import RULES
from tests.forecast.logs import UPDATE, calibration, file, schema, transaction

if TYPE_CHECKING:
    from tests.servers.fixtures import ServerFactory

HEAD = "TABLE_SCHEMA,TABLE_NAME,TABLE_ROWS,AUTO_INCREMENT,INDEX_NAME,cardinality\n"
SCHEMA = """
CREATE DATABASE d; USE d;
CREATE TABLE t (a INT NOT NULL AUTO_INCREMENT PRIMARY KEY, b INT, KEY k (b));
CREATE TABLE u (a INT);
"""


def written(folder: Path, text: str) -> str:
    path = folder / "rows.csv"
    path.write_text(text)
    return str(path)


def test_rows_and_rows_per_value(tmp_path: Path) -> None:
    text = HEAD + "d,t,1000,1200,PRIMARY,1000\nd,t,1000,1200,k,50\nd,u,7,NULL,NULL,NULL\nz,t,3,,,\n"
    facts, notes = with_rows_file(
        facts_of_file(schema(tmp_path, SCHEMA)), written(tmp_path, text), RULES["9.7"]
    )
    table, bare = facts["d.t"], facts["d.u"]
    assert (table.rows, table.rows_from, bare.rows) == (1000, STATISTICS, 7)
    assert [table.rows_per_value(key) for key in table.definition.keys] == [1, 20]
    assert notes == [f"{tmp_path}/rows.csv has 1 tables that the schema lacks, z.t for one"]


def test_old_numbers_are_doubted(tmp_path: Path) -> None:
    text = HEAD + "d,t,1000,3,PRIMARY,1000\nd,t,1000,3,k,50\n"
    tables = facts_of_file(schema(tmp_path, SCHEMA))
    facts, _ = with_rows_file(tables, written(tmp_path, text), RULES["9.7"])
    assert "they are old" in facts["d.t"].doubts[0]


def test_a_number_by_hand_goes_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "table_schema\ttable_name\ttable_rows\nd\tt\t99\nd\tu\t99\n")
    facts = facts_of_file(schema(tmp_path, SCHEMA))
    log = file(tmp_path, transaction(1, b"u", UPDATE, 1))
    counts = ["d.u=5000", f"@{path}", "*=3"]
    found = run(
        ForecastPlan(files=[log], facts=facts, row_counts=counts, calibration=calibration())
    ).forecast
    assert (found.facts["d.u"].rows, found.facts["d.t"].rows) == (5000, 99)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1: the head line names no column table_schema"),
        ("table_schema,table_name\n", "no column table_rows"),
        (HEAD, "no table follows"),
        (HEAD + "d,t,1000\n", "line 2: 3 values for 6 columns"),
        (
            HEAD + "d,t,5,1,k,5\nd,t,many,1,k,5\n",
            "line 3: table_rows is 'many', which is not a number",
        ),
        (HEAD + "d,t,-1,1,k,5\n", "table_rows is '-1'"),
        (HEAD + "d,t,5,1,k,4\nd,t,6,1,l,4\n", "d.t has 6 rows here, 5 above"),
        ("table_schema,table_name,table_rows,index_name\nd,t,5,k\n", "belong together"),
        (HEAD + ",t,5,1,k,4\n", "without a name"),
        ("table_schema,table_name,table_rows,table_rows\nd,t,5,5\n", "twice"),
        (HEAD + "x,y,5,1,k,4\n", "none of the schema's tables, d.t"),
        ("table_schema,table_name,table_rows,engine\nd,t,5,x\n", "unknown column 'engine'"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=re.escape(told)) as caught:
        with_rows_file(facts_of_file(schema(tmp_path, SCHEMA)), path, RULES["9.7"])
    assert (caught.value.code, caught.value.file) == ("BL210", path)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_rows(str(tmp_path / "none.csv"))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        read_rows(str(tmp_path / "bytes"))


@pytest.mark.parametrize("version", ["5.6", "5.7", "9.7", "mariadb"])
def test_the_documented_query_says_what_a_live_server_does(
    server_factory: ServerFactory, tmp_path: Path, version: str
) -> None:
    server = server_factory(version)
    many = "INSERT INTO d.t (b) SELECT 1 FROM information_schema.columns LIMIT 300"
    server.execute(*(one for one in SCHEMA.split(";") if one.strip()), many)
    server.execute("INSERT INTO d.u VALUES (1), (2)", "ANALYZE TABLE d.t, d.u")
    query = re.search(r"SELECT .*?\n\n", inspect.getdoc(rows_file) or "", re.DOTALL)
    assert query is not None
    with (tmp_path / "rows.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(
            [
                "TABLE_SCHEMA",
                "TABLE_NAME",
                "TABLE_ROWS",
                "AUTO_INCREMENT",
                "INDEX_NAME",
                "cardinality",
            ]
        )
        writer.writerows(
            ["NULL" if one is None else one for one in row] for row in server.query(query[0])
        )
    tables = facts_of_file(schema(tmp_path, SCHEMA))
    facts, _ = with_rows_file(tables, str(tmp_path / "rows.csv"), RULES[version])
    url = parse_url(f"mysql://{server.user}@127.0.0.1:{server.port}", "--schema").with_password(
        server.password
    )
    live, _ = facts_of_server(url, ["d"])
    shown = {name: (one.rows, one.duplicates, one.doubts) for name, one in facts.items()}
    assert shown == {name: (one.rows, one.duplicates, one.doubts) for name, one in live.items()}
    assert facts["d.t"].rows is not None and facts["d.t"].rows > 100
