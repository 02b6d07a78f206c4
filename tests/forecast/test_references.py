"""Rows of other tables that a changed row has a server look up, for foreign keys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from applier.forecast.inventory.facts import TableFacts, facts_of_file
from applier.forecast.inventory.references import references, rows_looked_up
from applier.forecast.plan import ForecastPlan, run
from lookup.versions import RULES
from tests.forecast import logs

FAMILY = """
CREATE DATABASE d; USE d;
CREATE TABLE parent (a INT NOT NULL PRIMARY KEY, b INT);
CREATE TABLE child (a INT NOT NULL PRIMARY KEY, p INT, q INT,
                    FOREIGN KEY (p) REFERENCES parent (a), FOREIGN KEY (q) REFERENCES parent (a));
CREATE TABLE tree (a INT NOT NULL PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES tree (a));
"""


def family(folder: Path) -> dict[str, TableFacts]:
    return facts_of_file(logs.schema(folder, FAMILY))


def test_each_foreign_key_names_its_parent(tmp_path: Path) -> None:
    assert references(family(tmp_path)) == {"d.parent": 2, "d.tree": 1}


@pytest.mark.parametrize(
    ("table", "kind", "server", "native"),
    [
        ("parent", "write", 0, 0),
        ("parent", "update", 2, 0),
        ("parent", "delete", 2, 2),
        ("child", "write", 2, 2),
        ("child", "update", 2, 0.25),
        ("child", "delete", 0, 0),
        ("tree", "update", 2, 0),
    ],
)
def test_who_is_looked_up(
    table: str, kind: str, server: float, native: float, tmp_path: Path
) -> None:
    """`server`: on 9.7, which looks up for updates of any column; `native`: on 5.7, with a log in
    which one of four updates changes the first reference of a child."""
    facts = family(tmp_path)
    naming = references(facts)[f"d.{table}"]
    one = facts[f"d.{table}"]
    changed = replace(one, index_changes={key.name: 0.0 for key in one.definition.keys})
    if table == "child":
        changed = replace(changed, index_changes={"p": 0.25, "q": 0.0})
    assert rows_looked_up(changed, naming, kind, RULES["9.7"]) == server
    assert rows_looked_up(changed, naming, kind, RULES["5.7"]) == native


@pytest.mark.parametrize(("server", "looked_up"), [("9.7", 2), ("8.4", 0)])
def test_an_update_of_a_parent_costs_its_children(
    server: str, looked_up: int, tmp_path: Path
) -> None:
    log = logs.file(tmp_path, logs.transaction(1, b"parent", logs.UPDATE, *range(50)))
    prices = logs.calibration()
    dear = replace(prices, prices=prices.prices.with_more("foreign key", 0.001))
    seconds = [
        run(
            ForecastPlan(files=[log], facts=family(tmp_path), server=server, calibration=one)
        ).forecast.base.seconds
        for one in (prices, dear)
    ]
    assert seconds[1] - seconds[0] == pytest.approx(50 * looked_up * 0.001)
