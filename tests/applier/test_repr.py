"""What a notebook shows of results: one screen, and for a forecast a table and a chart that ask no
address."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import applier
from applier.event_list import LogEvents
from applier.forecast.answers.notebook import MOST_TABLES, as_html, as_text
from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.plan import ForecastPlan, run

DEMO = Path(__file__).parent.parent.parent / "demo"
SCREEN = 20
"""Lines."""


def test_a_replay_and_its_tables() -> None:
    tables = applier.load_schema(DEMO / "before.sql")
    assert repr(tables) == (
        "Tables: 2, with 5,000 rows\n  shop.cart_item: 2,500 rows, no primary key\n"
        "  shop.parcel: 2,500 rows, no primary key"
    )
    result = applier.replay([DEMO / "binlog.000001"], into=tables, server="5.7")
    first, *costs = repr(result).splitlines()
    assert first.startswith("ReplayResult: 10 transactions, ")
    assert first.endswith("; rules of 5.7; no error")
    assert 1 <= len(costs) < SCREEN
    assert re.match(
        r"  shop\.\w+ +(update|delete) +table scan +\d+ rows +[\d,]+ rows read$", costs[0]
    )


def test_many_tables_are_one_screen() -> None:
    tables = applier.load_schema(
        "".join(f"CREATE TABLE d.t{at} (a INT PRIMARY KEY);" for at in range(300))
    )
    lines = repr(tables).splitlines()
    assert len(lines) <= SCREEN
    assert (lines[1], lines[-1]) == ("  d.t0: 0 rows, primary key (a)", "  … and 285 more")


def test_public_names_are_listed() -> None:
    assert {"replay", "load_schema", "Tables"} <= set(dir(applier))
    assert not [name for name in dir(applier) if name.startswith("_") and name != "__version__"]


def test_an_explained_schema() -> None:
    verdicts = applier.explain(DEMO / "before.sql", server="5.7")
    assert repr(verdicts) == (
        "SchemaVerdicts: 2 tables, rules of 5.7\n"
        "  shop.cart_item: rows read for one change: 1,250. The table has no key.\n"
        "  shop.parcel: rows read for one change: 10. Key `order_no` is not unique: "
        "a value occurs in 20 rows on average."
    )


def test_an_explained_schema_of_many_tables_is_one_screen(tmp_path: Path) -> None:
    (tmp_path / "schema.sql").write_text(
        "CREATE DATABASE d; USE d;" + "".join(f"CREATE TABLE t{at} (a INT);" for at in range(300))
    )
    lines = repr(applier.explain(tmp_path / "schema.sql")).splitlines()
    assert len(lines) <= SCREEN
    assert lines[0] == "SchemaVerdicts: 300 tables, rules of 5.6, 5.7, 8.0, 8.4, 9.7, mariadb"
    assert lines[1] == "  d.t0: rows read for one change: ?. The table has no key."
    assert lines[-1].endswith("more tables")


def test_a_forecast() -> None:
    captures = Path(__file__).parent.parent / "captures" / "forecast"
    facts = facts_of_file(captures / "schema.sql")
    done = run(
        ForecastPlan(
            files=[str(captures / "binlog.000001")], facts=facts, row_counts=["*=10000000"]
        )
    )
    text = repr(done)
    assert text.startswith("The replica will be up to ")
    assert len(text.splitlines()) <= SCREEN
    assert "shop.audit_log" in text
    html = done._repr_html_()
    tree = ElementTree.fromstring(html)
    assert [cell.text for row in tree.iter("tr") for cell in row][:2] == ["table", "share"]
    assert tree.find(".//svg/path") is not None
    assert not re.search(r"https?:|src=|<script|@import|url\(", html), "no outside request"


def test_a_forecast_of_many_tables_and_of_odd_names() -> None:
    done = run(
        ForecastPlan(files=[str(DEMO / "binlog.000001")], facts=facts_of_file(DEMO / "before.sql"))
    )
    summary = done.summary()
    odd = [summary["tables"][0] | {"table": f"d.<b>{at}&"} for at in range(1000)]
    assert len(as_text(summary | {"tables": odd}).splitlines()) <= SCREEN
    tree = ElementTree.fromstring(as_html(summary | {"tables": odd}))
    assert len(list(tree.iter("tr"))) == MOST_TABLES + 1
    assert (
        ElementTree.fromstring(as_html(summary | {"curve": {"points": []}})).find(".//svg") is None
    )


def test_events_name_their_logs_and_what_can_be_done_with_them() -> None:
    """Nothing is read: the files need not be there."""
    told = repr(applier.events([f"binlog.00000{number}" for number in range(1, 6)]))
    assert told.startswith("LogEvents: binlog.000001, binlog.000002, binlog.000003 and 2 more\n")
    assert all(hasattr(LogEvents, name) for name in re.findall(r"\.(to_\w+)\(\)", told))
    assert repr(applier.events("demo/binlog.000001")).startswith("LogEvents: demo/binlog.000001\n")
