"""What to do, in order: each fix with what it gains by itself and together with those above it."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from applier.forecast.answers.words import fix_title, split
from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.inventory.table_cache import TableCache
from applier.forecast.lag.fixes import Candidate, best_change, fixes
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.prices.scenario import Scenario
from applier.forecast.prices.settings import settings
from applier.forecast.workload import load_sample
from lookup.versions import RULES
from tests.binlog.build import gtid, query
from tests.forecast.logs import DELETE, UPDATE, WRITE, calibration, file, schema, transaction
from tests.replica.real_pairs import words

if TYPE_CHECKING:
    from tests.servers.fixtures import ServerFactory

TABLES = """
CREATE DATABASE d; USE d;
CREATE TABLE plain (a INT);
CREATE TABLE other (a INT);
CREATE TABLE keyed (a INT NOT NULL PRIMARY KEY);
"""
COUNTS = ("d.plain=1000", "d.other=500", "d.keyed=1000")


def forecast(folder: Path, log: str, counts: tuple[str, ...] = COUNTS, **given: Any) -> Any:
    facts = facts_of_file(schema(folder, TABLES))
    return run(
        ForecastPlan(
            files=[log], facts=facts, row_counts=counts, calibration=calibration(), **given
        )
    )


def busy(folder: Path, count: int = 5) -> str:
    """Deletes from two tables without a key, one of which is larger, and from one with a key; one
    after the other."""
    names = [b"plain", b"other", b"keyed"] * count
    return file(
        folder, *(transaction(number, name, DELETE, number) for number, name in enumerate(names, 1))
    )


def shown(found: Any) -> list[tuple[str, float, float]]:
    return [
        (one["table"] or one["setting"], one["gain_seconds"], one["gain_seconds_with_those_before"])
        for one in found.summary()["fixes"]
    ]


def test_the_dearest_table_comes_first_and_gains_add_up(tmp_path: Path) -> None:
    found = forecast(tmp_path, busy(tmp_path), workers=16)
    (first, gain, together), (second, other, both) = shown(found)
    assert (first, second) == ("d.plain", "d.other")
    base = found.forecast.base.span
    assert gain == together and gain > other
    assert both == pytest.approx(gain + other)
    alone = [
        run.span
        for run in forecast(
            tmp_path, busy(tmp_path), workers=16, what_ifs=["primary-key:d.plain", "primary-key"]
        ).forecast.runs
    ]
    assert gain == pytest.approx(base - alone[4])
    assert both == pytest.approx(base - alone[5])


def test_what_gains_nothing_is_not_shown(tmp_path: Path) -> None:
    log = file(tmp_path, *(transaction(number, b"keyed", UPDATE, number) for number in range(1, 5)))
    assert shown(forecast(tmp_path, log)) == []
    assert shown(forecast(tmp_path, file(tmp_path))) == []


def test_workers_help_what_the_log_lets_run_at_once(tmp_path: Path) -> None:
    """Eight transactions that depend on none: with four workers 3/4 is saved, with eight 7/8, with
    sixteen no more."""
    stamp = struct.pack("<Q", 1_700_000_000_000_000)[:7]
    free = [transaction(number, b"keyed", UPDATE, number) for number in range(2, 10)]
    free = [[gtid(at, last=1, sequence=at, rest=stamp), *one[1:]] for at, one in enumerate(free, 2)]
    found = forecast(
        tmp_path,
        file(tmp_path, transaction(1, b"keyed", UPDATE, 1), *free),
        workers=1,
        settings={"cores": 16},
    )
    ((name, gain, together),) = shown(found)
    assert (name, gain) == ("workers", together)
    (fix,) = found.summary()["fixes"]
    assert (
        "replica_parallel_workers = 8;" in fix["sql"] or "slave_parallel_workers = 8;" in fix["sql"]
    )
    assert gain == pytest.approx(found.forecast.base.span * 7 / 9, rel=0.05)
    assert fix_title([fix], 0).startswith("workers (a setting of the replica): saves")


def test_a_scan_for_many_rows_at_once(tmp_path: Path) -> None:
    """5.7 looks for each row from the top; a key gains more, and hashing gains nothing beside
    it."""
    log = file(tmp_path, transaction(1, b"plain", UPDATE, *range(50)), version="5.7.29")
    (first, *others) = forecast(tmp_path, log).summary()["fixes"]
    assert first["table"] == "d.plain" and others == []
    nothing = schema(
        tmp_path, TABLES.replace("(a INT)", "(a INT) ENGINE=CSV")
    )  # no ALTER TABLE is known for it
    found = run(
        ForecastPlan(
            files=[log], facts=facts_of_file(nothing), row_counts=COUNTS, calibration=calibration()
        )
    )
    assert [one["sql"] for one in found.summary()["fixes"]] == [
        "SET GLOBAL slave_rows_search_algorithms = 'INDEX_SCAN,HASH_SCAN';"
    ]


def test_the_log_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = forecast(tmp_path, busy(tmp_path))
    Path(found.sample.strata[0].loads[0].file).unlink(missing_ok=True)
    (tmp_path / "binlog.000001").unlink()
    assert len(shown(found)) >= 2


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_sample, "STRETCH", 8)
    monkeypatch.setattr(load_sample, "MOST_STRETCHES", 4)
    monkeypatch.setattr(load_sample, "DEAREST", 6)


@pytest.mark.usefixtures("small")
def test_a_long_log_is_a_sample_with_its_dearest_transactions(tmp_path: Path) -> None:
    """One transaction in a thousand takes most of the time: none of that is lost, and nothing else
    is counted too often."""
    cheap = [transaction(number, b"keyed", UPDATE, number) for number in range(1, 400)]
    dear = [transaction(400 + number, b"plain", DELETE, number) for number in range(3)]
    found = forecast(tmp_path, file(tmp_path, *cheap[:200], *dear, *cheap[200:]), workers=16)
    dearest, others = found.sample.strata
    assert len(dearest.loads) == 6 and len(others.loads) <= 4 * 8
    positions = [load.position for load in others.loads]
    assert positions == sorted(positions)
    assert shown(found)[0][:2] == ("d.plain", pytest.approx(3 * 0.5, rel=0.05))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("count", [1, 8, 31, 32, 33, 64, 65, 500, 1001])
def test_a_sample_stands_for_all_seconds(tmp_path: Path, count: int) -> None:
    log = file(
        tmp_path, *(transaction(number, b"keyed", WRITE, number) for number in range(1, count + 1))
    )
    sample = forecast(tmp_path, log).sample
    assert sum(len(one.loads) * one.weight for one in sample.strata) == pytest.approx(count)
    assert sum(len(one.loads) for one in sample.strata) <= 4 * 8 + 6


def test_the_rest_is_named(tmp_path: Path) -> None:
    many = forecast(
        tmp_path,
        file(tmp_path, *(transaction(number, b"keyed", UPDATE, number) for number in range(1, 9))),
    ).summary()
    assert "mostly commits" in split(many)
    alter = [
        (header, body[:4] + struct.pack("<I", 60) + body[8:])
        for header, body in [query(b"ALTER TABLE d.plain ADD b INT")]
    ]
    assert "mostly statements in the log's text" in split(
        forecast(tmp_path, file(tmp_path, [gtid(1), *alter])).summary()
    )
    large = forecast(
        tmp_path, file(tmp_path, transaction(1, b"keyed", WRITE, *range(1000)))
    ).summary()
    assert "mostly changes to rows" in split(large)
    assert split(forecast(tmp_path, file(tmp_path)).summary()) == "Applying takes 0 ms."


def test_commits_that_are_synced(tmp_path: Path) -> None:
    """Many small transactions wait for the disk, unless nothing is synced already."""
    log = file(tmp_path, *(transaction(n, b"keyed", UPDATE, n) for n in range(1, 20)))
    plan = ForecastPlan(files=[log], facts=facts_of_file(schema(tmp_path, TABLES)), workers=1)
    (fix, *_) = run(plan).summary()["fixes"]
    assert fix["setting"] == "durability"
    assert fix["sql"] == "SET GLOBAL innodb_flush_log_at_trx_commit = 2, GLOBAL sync_binlog = 0;"
    relaxed = {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0}
    fixes_then = run(replace(plan, settings=relaxed)).summary()["fixes"]
    assert "durability" not in {one["setting"] for one in fixes_then}


def test_tables_larger_than_the_buffer_pool(tmp_path: Path) -> None:
    """Each update reads a page of its own from the disk; a larger pool keeps it for the next
    time."""
    values = [n * 997 % 100_000 for n in range(200)]
    log = file(
        tmp_path, *(transaction(n, b"keyed", UPDATE, v) for n, v in enumerate(values * 2, 1))
    )
    settings_then = {
        "buffer_pool": 1 << 20,
        "read_latency": 0.01,
        "innodb_flush_log_at_trx_commit": 2,
        "sync_binlog": 0,
    }
    plan = ForecastPlan(
        files=[log], facts=facts_of_file(schema(tmp_path, TABLES)), workers=1,
        row_counts=["*=100000"], settings=settings_then,
    )  # fmt: skip
    found = {one["setting"]: one for one in run(plan).summary()["fixes"]}
    assert found["buffer pool"]["sql"].startswith("SET GLOBAL innodb_buffer_pool_size = ")
    assert found["buffer pool"]["gain_seconds"] > 0.1


def statements(version: str) -> Iterator[str]:
    rules = RULES[version]
    search = frozenset({"TABLE_SCAN"}) if rules.row_search_selectable else None
    now = Scenario(
        "as it is", rules, search, syncs=2.0, pool_bytes=float(8 << 20),
        table_cache=TableCache(2_000.0, 16),
    )  # fmt: skip
    assert len({one.name for one in settings(now)}) == 5 + rules.row_search_selectable
    for one in settings(now):
        yield from (part.strip() for part in re.split(r";\s*", one.sql) if part)


@pytest.mark.parametrize("version", ["5.7", "9.7", "mariadb"])
def test_a_server_takes_the_statements(server_factory: ServerFactory, version: str) -> None:
    server = server_factory(version, options={"server_id": 9})
    change = "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=1, SOURCE_USER='a'"
    server.execute(words("5.7" if version == "mariadb" else version, change))
    for sql in statements(version):
        server.execute(sql)
    assert [
        int(value) for value in server.query("SELECT @@GLOBAL.binlog_row_image = 'MINIMAL'")[0]
    ] == [1]


def test_fixes_of_a_forecast_without_time(tmp_path: Path) -> None:
    found = forecast(tmp_path, file(tmp_path))
    assert fixes(found.forecast, found.sample) == []


def test_nothing_is_to_be_done_where_each_change_costs_more_than_it_saves() -> None:
    one, two = (
        Candidate(name, None, "", "", "", (), lambda scenario: scenario) for name in ("a", "b")
    )
    assert best_change([one, two], [-2.0, -1.0]) == 1
    assert best_change([one, one], [0.0, 0.0]) == 0
    assert best_change([one, one, two], [9.6, 10.0, 9.9]) == 0
