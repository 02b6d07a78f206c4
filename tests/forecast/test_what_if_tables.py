"""A what-if changes the tables that it names and no others; what the forecast says of tables,
transactions and what it assumes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from applier.cli.commands.forecast import WHAT_IF_HELP
from applier.forecast.answers.words import changed_tables, percentages, rows_read, share_rows
from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.prices.scenario import WHAT_IFS
from tests.binlog.build import gtid, query
from tests.forecast.logs import BEGIN, DELETE, UPDATE, WRITE, calibration, file, schema, transaction

TABLES = """
CREATE DATABASE d; USE d;
CREATE TABLE twice (a INT, KEY k (a));
CREATE TABLE plain (a INT);
CREATE TABLE other (a INT);
CREATE TABLE keyed (a INT NOT NULL PRIMARY KEY);
"""
COUNTS = ("d.twice=1000", "d.twice.k=100", "d.plain=1000", "d.other=1000", "d.keyed=1000")


def forecast(folder: Path, log: str, counts: Sequence[str] = COUNTS, **given: Any) -> Any:
    return run(
        ForecastPlan(
            files=[log],
            facts=facts_of_file(schema(folder, TABLES)),
            row_counts=counts,
            calibration=calibration(),
            **given,
        )
    )


def three_tables(folder: Path) -> str:
    """Rows with the same key value in one table, a row of two tables without a key."""
    deletes = (
        transaction(number, table, DELETE, 7) for number, table in ((2, b"plain"), (3, b"other"))
    )
    return file(folder, transaction(1, b"twice", UPDATE, *[7] * 20), *deletes)


def test_a_key_for_one_table_leaves_the_others_alone(tmp_path: Path) -> None:
    found = forecast(
        tmp_path,
        three_tables(tmp_path),
        what_ifs=["primary-key:d.keyed", "index:d.plain=1", "primary-key:d.plain"],
    )
    base, nothing, index, primary = (found.forecast.runs[at].lookup for at in (0, 4, 5, 6))
    assert nothing == base, "the log's own distinct values hold for every table that gets no key"
    assert base - index == pytest.approx(base - primary)
    assert base - primary == pytest.approx(0.5, rel=0.01)


def test_several_keys_add_up(tmp_path: Path) -> None:
    texts = [
        "primary-key:d.plain",
        "primary-key:d.other",
        "primary-key:d.plain+primary-key:d.other",
        "primary-key:d.plain+index=10",
    ]
    found = forecast(tmp_path, three_tables(tmp_path), what_ifs=texts)
    base, plain, other, both, mixed = (found.forecast.runs[at].lookup for at in (0, 4, 5, 6, 7))
    assert base - both == pytest.approx((base - plain) + (base - other))
    assert plain > mixed > both - base
    assert (
        found.summary()["what_if"][2]["name"]
        == "add a primary key on d.plain, add a primary key on d.other"
    )


def test_work_is_priced_once_for_scenarios_of_the_same_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from applier.forecast.prices.pricing import Pricer

    seen = []
    work = Pricer.work
    monkeypatch.setattr(
        Pricer, "work", lambda self, part: seen.append(self.scenario.name) or work(self, part)
    )  # type: ignore[func-returns-value]
    forecast(tmp_path, three_tables(tmp_path))
    assert seen == ["as it is", "add a primary key"] * 3


def test_a_table_of_unknown_size_has_few_prices(tmp_path: Path) -> None:
    """Its size changes with each INSERT; parts of a transaction are told apart by two digits of
    it."""
    log = file(
        tmp_path, *(transaction(number, b"plain", WRITE, number) for number in range(1, 500))
    )
    assert len(forecast(tmp_path, log, ()).forecast._priced) < 150


def test_what_is_not_known_is_assumed_and_said(tmp_path: Path) -> None:
    log = file(
        tmp_path,
        transaction(1, b"plain", WRITE, 1),
        *(transaction(number, b"plain", DELETE, number) for number in range(2, 12)),
    )
    summary = forecast(tmp_path, log, ()).summary()
    (plain,) = summary["tables"]
    assert (plain["table_rows"], plain["table_rows_from"]) == (10, "assumed")
    assert rows_read(plain).startswith("at least ")
    assert any(
        text.startswith("d.plain has 10 rows, the number that the log shows")
        for text in summary["assumptions"]
    )
    (given,) = forecast(tmp_path, log, ("d.plain=1000",)).summary()["tables"]
    assert (given["table_rows"], given["table_rows_from"]) == (1001, "given")
    assert rows_read(given)[0].isdigit()


def test_the_dearest_tables_of_a_transaction_come_first(tmp_path: Path) -> None:
    cheap = [
        event
        for name in (b"keyed", b"twice", b"other")
        for event in transaction(1, name, WRITE, 1)[2:-1]
    ]
    whole = transaction(1, b"plain", DELETE, 7)
    worst = forecast(tmp_path, file(tmp_path, [*whole[:2], *cheap, *whole[2:]])).summary()["worst"][
        0
    ]
    assert worst["tables"][0] == "d.plain"
    assert (
        changed_tables(worst) == f"d.plain, {worst['tables'][1]}, {worst['tables'][2]} and 1 more"
    )


def test_a_statement_is_named_without_its_password(tmp_path: Path) -> None:
    sql = b"ALTER TABLE d.plain\n  ADD COLUMN a_rather_long_name VARCHAR(200) NOT NULL DEFAULT 'x'"
    secret = b"CREATE USER u IDENTIFIED BY 'hidden'"
    insert = [gtid(3), BEGIN, query(b"INSERT INTO t VALUES (1)"), query(b"COMMIT")]
    log = file(tmp_path, [gtid(1), query(sql)], [gtid(2), query(secret)], insert)
    shown = [changed_tables(one) for one in forecast(tmp_path, log).summary()["worst"]]
    alter = "ALTER TABLE d.plain ADD COLUMN a_rather_long_name VARCHAR(2…"
    assert shown == [alter, "CREATE USER u IDENTIFIED BY ***", "INSERT INTO t VALUES (1)"]


def test_shares_add_up(tmp_path: Path) -> None:
    summary = forecast(tmp_path, three_tables(tmp_path)).summary()
    rows = share_rows(summary, 2)
    assert [what for what, *_ in rows] == ["d.plain", "d.other", "and 1 more", "(commits)"]
    assert sum(seconds for _, seconds, _ in rows) == pytest.approx(
        summary["replica"]["apply_seconds"]
    )
    assert sum(float(share.rstrip("%")) for *_, share in rows) == pytest.approx(100)


@pytest.mark.parametrize(
    "shares", [[1 / 3] * 3, [1 / 7] * 7, [0.99951, 0.00049], [1.0], [0.0, 0.0], []]
)
def test_percentages(shares: list[float]) -> None:
    shown = [float(text.rstrip("%")) for text in percentages(shares)]
    assert sum(shown) == pytest.approx(100 if sum(shares) else 0)
    assert all(abs(found - share * 100) <= 0.1 for found, share in zip(shown, shares, strict=True))


def test_help_names_every_what_if() -> None:
    named = WHAT_IF_HELP[WHAT_IF_HELP.index(":") : WHAT_IF_HELP.index(". [")]
    assert {
        word.strip(" :").partition("[")[0].partition("=")[0] for word in named.split(",")
    } == set(WHAT_IFS)
