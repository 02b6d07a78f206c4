"""Forecasts of small logs, reckoned by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from applier.errors import InputError, UsageError
from applier.forecast.answers.summary import offenders
from applier.forecast.answers.words import duration
from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.lag.run import Forecast
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.prices.calibration import (
    BESIDE,
    COORDINATOR,
    HAND_OVER,
    LACKS,
    NEW_UNITS,
    OF_A_DOUBLING,
    PAGE_READ,
    PAGE_WRITE,
    TimePrice,
    default_calibration,
    load_calibration,
)
from applier.forecast.prices.scenario import Scenario, what_if
from applier.forecast.prices.units import UNITS, Prices
from applier.forecast.workload.loads import LoadReader
from lookup.versions import RULES
from tests.binlog.build import gtid, query
from tests.forecast.logs import DELETE, UPDATE, WRITE, calibration, file, schema, transaction


def forecast(
    folder: Path, log: str, *row_counts: str, text: str | None = None, **given: Any
) -> Forecast:
    facts = facts_of_file(schema(folder) if text is None else schema(folder, text))
    return run(
        ForecastPlan(
            files=[log], facts=facts, row_counts=row_counts, calibration=calibration(), **given
        )
    ).forecast


def summary(folder: Path, log: str, *row_counts: str, **given: Any) -> dict[str, Any]:
    facts = facts_of_file(schema(folder))
    return run(
        ForecastPlan(
            files=[log], facts=facts, row_counts=row_counts, calibration=calibration(), **given
        )
    ).summary()


def test_a_row_of_a_table_without_a_key_is_scanned_for(tmp_path: Path) -> None:
    log = file(tmp_path, transaction(1, b"plain", DELETE, 7))
    found = forecast(tmp_path, log, "d.plain=999")
    base = found.base
    assert base.seconds == pytest.approx(0.001 + 0.0001 + 0.00001 + 500 * 0.001)
    assert base.lookup == pytest.approx(0.5)
    assert base.curve.peak == pytest.approx(base.seconds)
    assert found.tables["d.plain"].reads == 500
    assert list(found.tables["d.plain"].algorithms) == ["hash over table"]


def test_a_primary_key_reads_one_row(tmp_path: Path) -> None:
    log = file(tmp_path, transaction(1, b"keyed", UPDATE, 7, 8))
    base = forecast(tmp_path, log, "d.keyed=999").base
    assert base.seconds == pytest.approx(0.001 + 0.0001 + 2 * 0.00001 + 2 * 0.0001)
    assert base.lookup == pytest.approx(0.0002)


def test_each_table_that_a_transaction_changes_has_its_price(tmp_path: Path) -> None:
    """However many statements change it."""
    one, two = transaction(1, b"keyed", UPDATE, 7), transaction(1, b"other", UPDATE, 8)
    both = [*one[:-1], *one[2:-1], *two[2:]]
    prices = replace(calibration(), prices=Prices.of({"table": 0.01}))
    found = run(
        ForecastPlan(
            files=[file(tmp_path, both)],
            facts=facts_of_file(schema(tmp_path)),
            row_counts=["*=10"],
            calibration=prices,
        )
    ).forecast
    assert found.base.seconds == pytest.approx(0.02)


def test_a_large_statement_goes_through_the_table_once(tmp_path: Path) -> None:
    """Event k of 4 reads the table up to its k-th part: (1 + 2 + 3 + 4) / 4 of it, less what the
    events before deleted."""
    log = file(tmp_path, transaction(1, b"plain", UPDATE, *range(40), events=4))
    found = forecast(tmp_path, log, "d.plain=100000")
    assert found.tables["d.plain"].reads == pytest.approx(100_000 * 2.5, rel=0.08)


def test_a_replica_that_cannot_keep_up_never_catches_up(tmp_path: Path) -> None:
    log = file(
        tmp_path, *(transaction(n, b"plain", UPDATE, n, seconds=n * 0.1) for n in range(1, 51))
    )
    found = summary(tmp_path, log, "d.plain=1000")
    replica, cured = found["replica"], found["what_if"][0]
    assert replica["catch_up_seconds"] == "never"
    assert replica["utilisation"] == pytest.approx(50 * 0.5016 / 4.9, rel=0.01)
    assert cured["peak_lag_seconds"] == pytest.approx(0.0012, rel=0.05)
    assert cured["catch_up_seconds"] < 0.01
    assert found["peak_low_seconds"] < replica["peak_lag_seconds"] < found["peak_high_seconds"]
    assert found["without_lookup"]["lookup_seconds"] == 0
    assert [reason["code"] for reason in found["tables"][0]["reasons"]] == [
        "no key",
        "one row per event",
    ]
    assert found["worst"][0] | {"seconds": 0, "lookup_seconds": 0, "lag_seconds": 0} == {
        "file": "binlog.000001", "pos": found["worst"][0]["pos"], "gtid": found["worst"][0]["gtid"],
        "commit_time": 1_700_000_000.1, "seconds": 0, "lookup_seconds": 0, "lag_seconds": 0,
        "rows": 1, "events": 1, "tables": ["d.plain"], "statement": "",
    }  # fmt: skip


def test_rows_follow_inserts_and_deletes(tmp_path: Path) -> None:
    log = file(tmp_path, transaction(1, b"plain", WRITE, *range(300)),
               transaction(2, b"plain", DELETE, *range(100)),
               transaction(3, b"plain", DELETE, 150))  # fmt: skip
    found = forecast(tmp_path, log, "d.plain=99")
    assert found.states["d.plain"].rows == 99 + 300 - 101
    # The log's own rows stand behind the 99: a server reads 99 + 100 and then 150. By the mean of
    # what stands behind all 101 it is 200 and 52.
    assert found.tables["d.plain"].reads == pytest.approx(252, rel=0.01)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("primary-key", 0.00121), ("gipk", 0.00121), ("index=1", 0.00121),
        ("index=99", 0.00111 + 0.0001 * 50), ("rows=2", 0.00111 + 1.0), ("workers=4", 0.50111),
        ("primary-key:d.keyed", 0.50111), ("primary-key+rows=10", 0.00121),
        ("event-size=65536", 0.50111),
    ],
)  # fmt: skip
def test_what_if(tmp_path: Path, text: str, seconds: float) -> None:
    log = file(tmp_path, transaction(1, b"plain", DELETE, 7))
    runs = forecast(tmp_path, log, "d.plain=999", what_ifs=[text]).runs
    assert runs[0].seconds == pytest.approx(0.50111)
    assert runs[4].seconds == pytest.approx(seconds, rel=0.02)


def test_what_if_rows_were_hashed(tmp_path: Path) -> None:
    log = file(tmp_path, transaction(1, b"plain", UPDATE, *range(10)), version="5.7.29")
    found = forecast(tmp_path, log, "d.plain=1000", what_ifs=["row-search=INDEX_SCAN,HASH_SCAN"])
    assert found.tables["d.plain"].reads == pytest.approx(10 * 500, rel=0.01)
    assert found.runs[4].lookup == pytest.approx(0.001 * 10 * 1001 / 11, rel=0.01)


def test_a_scan_that_was_not_measured_costs_what_the_other_does(tmp_path: Path) -> None:
    log = file(tmp_path, transaction(1, b"plain", UPDATE, 1), version="5.7.29")
    facts = facts_of_file(schema(tmp_path))
    named = {name: calibration().prices[name] for name in UNITS if name != "scan row"}
    known = replace(calibration(), prices=Prices.of(named))
    found = run(
        ForecastPlan([log], facts=facts, row_counts=["d.plain=999"], calibration=known)
    ).forecast
    assert found.base.lookup == pytest.approx(0.5)
    assert any("table scan was not measured" in text for text in found.assumptions())
    assert "mariadb" in RULES and default_calibration("mariadb").prices["scan row"] > 0


def test_smaller_events_of_a_large_statement(tmp_path: Path) -> None:
    """Rows of 5 bytes: 256-byte events take 43 rows each, so 100 rows come in 3 events, which read
    1/3, 2/3 and all of the table."""
    log = file(tmp_path, transaction(1, b"plain", UPDATE, *range(100)))
    runs = forecast(
        tmp_path, log, "d.plain=10000", what_ifs=["event-size=256", "minimal-image"]
    ).runs
    assert runs[4].lookup == pytest.approx(0.001 * 10_000 * (1 + 2 + 3 + 4 + 5) / 5, rel=0.1)
    assert runs[5].lookup == pytest.approx(runs[0].lookup, rel=0.01)


@pytest.mark.parametrize(
    "text", ["index=x", "nothing", "workers=0", "row-search=INDEX_SCAN", "event-size=1"]
)
def test_a_what_if_that_makes_no_sense(text: str) -> None:
    with pytest.raises(UsageError, match="--what-if"):
        what_if(text, Scenario("as it is", RULES["9.7"]))


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    log = file(tmp_path, transaction(1, b"plain", UPDATE, *range(5)),
               transaction(2, b"twice", UPDATE, 1, seconds=-4),
               transaction(3, b"other", UPDATE, 1))  # fmt: skip
    found = forecast(tmp_path, log, server="9.7")
    told = found.assumptions()
    assert any("d.plain has 5 rows, the number that the log shows" in text for text in told)
    assert any("key d.twice.k" in text for text in told)
    assert any(text.startswith("d.other has a primary key") for text in told)
    assert any("goes back 1 times, 4.000 s" in text for text in told)
    assert found.steps_back == 1
    assert found.tables["d.other"].lookup == pytest.approx(0.0001)


def test_a_calibration_of_another_version_is_said(tmp_path: Path) -> None:
    log = file(tmp_path, transaction(1, b"keyed", UPDATE, 1))
    found = forecast(tmp_path, log, "*=10", server="5.7")
    assert any("calibration is of 8.0.36, the replica of 5.7" in note for note in found.notes)


def test_an_empty_log(tmp_path: Path) -> None:
    found = summary(tmp_path, file(tmp_path))
    assert found["transactions"] == 0
    assert "the log holds no complete transaction" in found["notes"]
    assert found["replica"]["peak_lag_seconds"] == 0


def test_row_counts_come_from_the_schema_file(tmp_path: Path) -> None:
    text = (
        "CREATE DATABASE d; USE d; CREATE TABLE t (a INT, b INT, KEY k (b)); "
        "INSERT INTO t VALUES (1,1),(2,1),(3,2),(4,2);"
    )
    facts = facts_of_file(schema(tmp_path, text))["d.t"]
    assert (facts.rows, facts.rows_from, dict(facts.duplicates)) == (
        4,
        "counted in the schema file",
        {"k": 2.0},
    )


@pytest.mark.parametrize(
    "text", ["d.plain", "d.plain=x", "d.plain=-1", "d.none=5", "d.twice.nokey=5"]
)
def test_row_counts_that_are_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="--rows"):
        forecast(tmp_path, file(tmp_path), text)


def test_the_gate_names_the_table(tmp_path: Path) -> None:
    log = file(
        tmp_path,
        *(
            transaction(n, b"plain" if n % 2 else b"keyed", UPDATE, n, seconds=n * 0.01)
            for n in range(1, 21)
        ),
    )
    found = forecast(tmp_path, log, "d.plain=1000", "d.keyed=1000")
    assert [one.table for one in offenders(found, 1.0)] == ["d.plain"]
    assert offenders(found, 3600) == []
    assert "has no key" in str(offenders(found, 1.0)[0])


def test_a_long_statement_crosses_the_gate_too(tmp_path: Path) -> None:
    alter = list(query(b"ALTER TABLE d.plain ADD b INT"))
    alter[1] = alter[1][:4] + (90).to_bytes(4, "little") + alter[1][8:]
    found = forecast(tmp_path, file(tmp_path, [gtid(1), (alter[0], alter[1])]))
    assert found.base.curve.peak == pytest.approx(90, rel=0.01)
    assert ["statements in the log's text" in str(one) for one in offenders(found, 60)] == [True]


def test_a_what_if_on_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no table 'd\.nothing'"):
        forecast(tmp_path, file(tmp_path), what_ifs=["primary-key:d.nothing"])


def test_distinct_values_are_counted_from_the_first_transaction_on(tmp_path: Path) -> None:
    """Ten rows with two values of a key, fifty rows each: two key reads and 99 steps at most, not
    ten times as many."""
    log = file(tmp_path, transaction(1, b"twice", UPDATE, *[1, 2] * 5))
    found = forecast(tmp_path, log, "d.twice=1000", "d.twice.k=50")
    assert 90 < found.tables["d.twice"].reads < 102


def test_more_workers_apply_what_may_run_at_once(tmp_path: Path) -> None:
    log = file(tmp_path, *(transaction(n, b"plain", UPDATE, n) for n in range(1, 9)))
    runs = forecast(tmp_path, log, "d.plain=999", what_ifs=["workers=4"]).runs
    assert runs[4].curve.peak == pytest.approx(runs[0].curve.peak)  # each depends on the one before


def test_default_calibrations_say_what_they_are_of() -> None:
    for name in RULES:
        found = default_calibration(name)
        assert found.machine and found.date and found.target == "replication applier"
        assert found.prices["transaction"] > 0
        assert found.residuals.cells > 50
        assert found.residuals.unseen_median < 0.5


def test_a_calibration_goes_to_a_file_and_back(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    calibration().save(path)
    again = load_calibration(path)
    assert again.as_dict() == calibration().as_dict()


def test_a_calibration_of_format_3_is_read_without_its_prices_of_full_indexes(
    tmp_path: Path,
) -> None:
    path, old = tmp_path / "c.json", calibration().as_dict()
    old["format"] = 3
    old["units"]["full index"] = old["units"]["full leaf"] = {"seconds": 1, "low": 1, "high": 1}
    path.write_text(json.dumps(old))
    found = load_calibration(path)
    expected, ships = calibration().prices, default_calibration(found.rules_name).prices
    for unit in chain.from_iterable(NEW_UNITS.values()):
        assert ships[unit] > 0
        expected = expected.with_more(unit, ships[unit])
    assert found.prices == expected
    assert found.assumed == (
        "the calibration is of format 3: splits of full indexes are not priced",
        f"the calibration is of format 3: {LACKS[4]}",
        f"the calibration is of format 3: {LACKS[5]}",
        f"the calibration is of format 3: {LACKS[6]}",
        f"the calibration is of format 3: {LACKS[7]}",
        *(f"the calibration is of format 3: {LACKS[one]}" for one in NEW_UNITS),
    )


@pytest.mark.parametrize(("form", "part"), [(6, OF_A_DOUBLING), (7, 1.0)])
def test_the_price_of_a_far_page_is_made_that_of_a_doubling(
    form: int, part: float, tmp_path: Path
) -> None:
    path, old = tmp_path / "c.json", calibration().as_dict()
    old["format"] = form
    old["units"]["far page"] = {"seconds": 2e-6, "low": 1e-6, "high": 3e-6}
    path.write_text(json.dumps(old))
    found = load_calibration(path)
    assert found.prices["far page"] == pytest.approx(2e-6 * part)
    assert found.high["far page"] == pytest.approx(3e-6 * part)
    assert found.assumed == tuple(
        f"the calibration is of format {form}: {LACKS[lacking]}"
        for lacking in (*range(form, 8), *NEW_UNITS)
    )


@pytest.mark.parametrize(
    ("version", "form", "lacks"),
    [
        ("10.11.18-MariaDB", 9, True),
        ("10.11.18-MariaDB", 10, False),
        ("5.7.29", 10, True),
        ("5.7.29", 9, True),
        ("5.7.29", 14, True),
        ("5.7.29", 15, False),
        ("9.7.4", 9, False),
        ("9.7.4", 14, False),
    ],
)
def test_the_coordinator_of_mariadb_and_5_7_had_the_price_of_its_workers(
    version: str, form: int, lacks: bool, tmp_path: Path
) -> None:
    path, old = tmp_path / "c.json", calibration().as_dict()
    old |= {"format": form, "server_version": version}
    old["shared"][COORDINATOR[0]] = {"processor": 33e-6, "waiting": 0.0}
    del old["shared"][BESIDE], old["shared"][HAND_OVER]
    path.write_text(json.dumps(old))
    found = load_calibration(path)
    ships = default_calibration(found.rules_name).shared
    said = f"the calibration is of format {form}: {LACKS[9]}"
    assert (said in found.assumed) == lacks
    taken = ships[COORDINATOR[0]] if lacks else TimePrice(33e-6)
    assert found.shared[COORDINATOR[0]] == taken
    for name in (BESIDE, HAND_OVER):
        assert not lacks or found.shared[name] == ships[name]


@pytest.mark.parametrize(
    ("version", "form", "lacks"),
    [("5.7.29", 11, True), ("5.7.29", 12, False), ("9.7.4", 11, False)],
)
def test_a_redo_log_of_5_7_never_was_full(
    version: str, form: int, lacks: bool, tmp_path: Path
) -> None:
    path, old = tmp_path / "c.json", calibration().as_dict()
    old |= {"format": form, "server_version": version}
    old["shared"][PAGE_WRITE] = {"processor": 0.0, "waiting": 1e-6}
    path.write_text(json.dumps(old))
    found = load_calibration(path)
    ships = default_calibration(found.rules_name).shared
    assert (f"the calibration is of format {form}: {LACKS[11]}" in found.assumed) == lacks
    assert found.shared[PAGE_WRITE] == (ships[PAGE_WRITE] if lacks else TimePrice(0.0, 1e-6))


@pytest.mark.parametrize(("form", "taken"), [(5, False), (6, True)])
def test_the_price_of_a_page_read_that_was_assumed_is_not_taken(
    form: int, taken: bool, tmp_path: Path
) -> None:
    path, old = tmp_path / "c.json", calibration().as_dict()
    old["format"] = form
    old["shared"][PAGE_READ] = {"processor": 5e-6, "waiting": 20e-6}
    path.write_text(json.dumps(old))
    found = load_calibration(path)
    ships = default_calibration(found.rules_name).shared[PAGE_READ]
    assert found.shared[PAGE_READ] == (TimePrice(5e-6, 20e-6) if taken else ships)
    assert (f"the calibration is of format 5: {LACKS[5]}" in found.assumed) == (not taken)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": 1}',
        '{"format": 2, "units": {"cup": {"seconds": 1, "low": 1, "high": 1}}}',
        "\x00",
    ],
)
def test_no_calibration(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"no calibration: .*c\.json"):
        load_calibration(path)


def test_durations_are_for_people() -> None:
    told = [duration(value) for value in (0.00012, 0.012, 5, 600, 36_000, 900_000, "never")]
    assert told == ["0.12 ms", "12 ms", "5.0 s", "10 min", "10.0 h", "10.4 days", "never"]


def test_words_that_no_sample_shows_are_said_to_cost_nothing(tmp_path: Path) -> None:
    tables = "CREATE DATABASE d; USE d; CREATE TABLE plain (a INT, b TEXT{});"
    log = file(tmp_path, transaction(1, b"plain", WRITE, 1))
    told = {}
    for keys in ("", ", FULLTEXT KEY (b)"):
        facts = facts_of_file(schema(tmp_path, tables.format(keys)))
        plan = ForecastPlan(
            loads=LoadReader([log]), facts=facts, server="8.0", calibration=calibration()
        )
        told[keys] = [text for text in run(plan).forecast.assumptions() if "FULLTEXT" in text]
    assert not told[""]
    assert len(told[", FULLTEXT KEY (b)"]) == 1
