"""Pages that workers wait for since the redo log is full: by the rules of 5.7, a naive model, and a
real server's own count."""

from __future__ import annotations

import gzip
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers.server import Server

from applier.errors import UsageError
from applier.forecast import plan as forecast_plan
from applier.forecast.answers.words import split
from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.inventory.pool_rules import PAGE, POOL_RULES
from applier.forecast.inventory.redo_log import (
    AHEAD_PER_SECOND,
    LOW_WATER,
    WAITED_FOR,
    RedoLog,
    oldest_change_bytes,
    redo_bytes,
)
from applier.forecast.inventory.server_facts import facts_of_server
from applier.forecast.live.live_settings import settings_of_server
from applier.forecast.plan import Forecasted, ForecastPlan, run
from applier.forecast.prices.conditions import DEFAULTS, Live, conditions
from applier.forecast.prices.scenario import Scenario, what_if
from applier.forecast.prices.units import UNITS
from applier.mysql.client.url import Endpoint
from lookup.versions import RULES
from tests.forecast import logs
from tests.servers.fixtures import ServerFactory

MIB = 1 << 20


@pytest.mark.parametrize(("capacity", "age"), [(16 * MIB, 12_260_363), (96 * MIB, 78_252_727)])
def test_how_old_a_change_may_be(capacity: float, age: float) -> None:
    """Of a 5.7.29 in log_lsn_checkpoint_age while its workers waited: beyond the age from which on
    they do, and below that at which nobody may write."""
    assert oldest_change_bytes(capacity) < age < oldest_change_bytes(capacity) / WAITED_FOR
    assert oldest_change_bytes(0) == PAGE


class Naive:
    """Looks at all changed pages each time."""

    def __init__(self, capacity: float) -> None:
        self.most = oldest_change_bytes(capacity)
        self.first: dict[int, float] = {}
        self.position = self.ahead = self.now = 0.0

    def oldest(self) -> int:
        return min(self.first, key=lambda page: self.first[page])

    def age(self) -> float:
        return self.position - min(self.first.values(), default=self.position)

    def write(self, redo: float, now: float) -> int:
        self.position += redo
        share = min(self.age() / self.most, 1.0)
        if share > LOW_WATER:
            self.ahead += (now - self.now) * AHEAD_PER_SECOND * share**1.5
        for _ in range(min(int(self.ahead), len(self.first))):
            del self.first[self.oldest()]
        self.ahead, self.now = self.ahead % 1, now
        waits = 0
        while self.age() > self.most:
            del self.first[self.oldest()]
            waits += 1
        return waits


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 40), max_size=4),
            st.integers(0, 3 * MIB),
            st.integers(0, 64),
        ),
        max_size=80,
    )
)
def test_pages_are_written_in_the_order_of_their_first_change(
    steps: list[tuple[list[int], int, int]],
) -> None:
    own, naive, now = RedoLog(16 * MIB), Naive(16 * MIB), 0.0
    for pages, redo, time in steps:
        for page in pages:
            own.change(page)
            naive.first.setdefault(page, naive.position)
        now += time / 1024  # a whole number of halves: both sum up alike
        assert own.write(redo, now) == naive.write(redo, now)
    written = own.waited_for + own.written_ahead
    assert written <= sum(len(pages) for pages, _, _ in steps)


def test_a_page_that_the_pool_has_written_is_not_written_again() -> None:
    redo = RedoLog(16 * MIB)
    for page in range(10):
        redo.change(page)
    redo.forget(3)
    assert redo.write(16 * MIB, 0.0) == 9


def test_amounts_make_redo() -> None:
    amounts = dict.fromkeys(UNITS, 0.0) | {"update": 2.0, "leaf split": 1.0, "scan row": 9.0}
    assert redo_bytes(amounts) == 2 * 150 + 12_000


def test_a_5_7_says_how_large_it_is_in_all() -> None:
    assert conditions("5.7.29", {})["redo_log"] == 96 * MIB
    waiting = {name for name, rules in POOL_RULES.items() if rules.waits_for_redo}
    assert waiting == {name for name, usual in DEFAULTS.items() if "redo_log" in usual}
    told = {"innodb_log_file_size": str(256 * MIB), "innodb_log_files_in_group": "3"}
    assert conditions("5.7.29", {}, Live("5.7.29", told))["redo_log"] == 768 * MIB
    assert conditions("5.7.29", {"redo_log": "2G"})["redo_log"] == 2048 * MIB
    for version in ("9.7.4", "10.11.18-MariaDB"):
        assert "redo_log" not in conditions(version, {}, Live(version, told)).values
        with pytest.raises(UsageError, match="--redo-log: nothing of a forecast depends on it"):
            conditions(version, {"redo_log": "2G"})
    with pytest.raises(UsageError, match="no server has a redo log of 1,024 bytes"):
        conditions("5.7.29", {"redo_log": 1024})


def test_a_scenario_with_another_one() -> None:
    base = Scenario("as it is", RULES["5.7"], redo_log_bytes=96.0 * MIB)
    assert base.follows_pages
    assert what_if("redo-log=2G", base).redo_log_bytes == 2048 * MIB
    assert what_if("redo-log=2G", base).name == "redo log 2G"
    with pytest.raises(UsageError, match=r"nothing of a forecast depends on it with 9\.7"):
        what_if("redo-log=2G", Scenario("as it is", RULES["9.7"]))


def test_the_text_names_it_where_it_is_a_tenth_of_the_time() -> None:
    replica = {
        "apply_seconds": 10.0, "lookup_seconds": 1.0, "page_read_seconds": 0.0, "page_reads": 0.0,
        "retries": 0.0, "redo_log_writes": 8_000.0, "redo_log_seconds": 4.0,
        "table_opens": 0.0, "table_open_seconds": 0.0, "texts": 0.0, "text_seconds": 0.0,
    }  # fmt: skip
    summary = {
        "replica": replica,
        "without_lookup": {"apply_seconds": 9.0, "peak_lag_seconds": 9.0},
        "besides_tables": [],
    }
    assert "40% of it to wait for 8,000 pages that must be written" in split(summary)
    assert "buffer pool" not in split(summary)
    replica["redo_log_seconds"] = 0.5
    assert "must be written" not in split(summary)


def test_what_is_not_counted_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Path(logs.file(tmp_path, logs.transaction(1, b"keyed", logs.UPDATE, 1)))
    facts = facts_of_file(logs.schema(tmp_path))
    small = ForecastPlan(files=[str(log)], facts=facts, server="9.7")
    said = "changed pages are written before the redo log is full"
    assert not begins(said, run(small))
    monkeypatch.setattr(forecast_plan, "MUCH_REDO", log.stat().st_size)
    assert begins(said, run(small))
    assert not begins(said, run(replace(small, server="5.7")))
    packed = tmp_path / "log.gz"  # nobody knows how long it is
    packed.write_bytes(gzip.compress(log.read_bytes()))
    of_5_7 = replace(small, files=[str(packed)], server="5.7")
    assert begins("the log may fill the redo log", run(of_5_7))


def begins(text: str, found: Forecasted) -> bool:
    """Whether something that is assumed begins like this."""
    return any(one.startswith(text) for one in found.summary()["assumptions"])


ROWS, UPDATES = 20_000, 6_000


@pytest.mark.in_ci
def test_a_server_waits_for_about_as_many(server_factory: ServerFactory, tmp_path: Path) -> None:
    """Updates of rows anywhere, by a procedure, and what the same log is forecast to wait for when
    all of it is there at once."""
    options = {
        "innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0, "innodb_log_file_size": "4M",
        "innodb_monitor_enable": "module_buffer", "innodb_buffer_pool_size": "128M",
        "log_bin": "binlog", "server_id": 1, "binlog_format": "ROW", "binlog_row_image": "FULL",
    }  # fmt: skip
    with closing(server_factory("5.7", options=options)) as server:
        numbers = ", ".join(f"({one}, {one}, REPEAT('x', 1000))" for one in range(ROWS))
        server.execute(
            "SET sql_log_bin = 0", "CREATE DATABASE d", "USE d",
            "CREATE TABLE t (id INT PRIMARY KEY, n INT, c VARCHAR(1000))",
            f"INSERT INTO t VALUES {numbers}", "ANALYZE TABLE t",
            "CREATE PROCEDURE work(times INT) BEGIN DECLARE at INT DEFAULT 0; WHILE at < times DO"
            f" UPDATE t SET n = n + 1, c = REPEAT('y', 1000) WHERE id = (at * 7919) % {ROWS};"
            " SET at = at + 1; END WHILE; END",
            "FLUSH TABLES t FOR EXPORT", "UNLOCK TABLES", "SET sql_log_bin = 1", "FLUSH LOGS",
        )  # fmt: skip
        before = waited_for(server)
        server.execute(f"CALL d.work({UPDATES})")
        counted = waited_for(server) - before
        log = tmp_path / "binlog.000001"
        log.write_bytes(server.binlog_files()[-1].read_bytes())
        endpoint = Endpoint(server.host, server.port, server.user, password=server.password)
        facts, live = facts_of_server(endpoint, ["d"])[0], settings_of_server(endpoint)
        found = [
            run(
                ForecastPlan(
                    files=[str(log)],
                    facts=facts,
                    live=live,
                    settings={"redo_log": size},
                    what_ifs=["redo-log=8M"],
                    behind=3600.0,
                )
            ).summary()
            for size in ("8M", "2G")
        ]
    full, roomy = (one["replica"] for one in found)
    at_once, smaller = found[0]["without_lookup"], found[1]["what_if"][0]
    assert roomy["redo_log_writes"] == roomy["redo_log_seconds"] == 0
    assert counted > 100
    assert counted / 5 < full["redo_log_writes"] < counted * 5
    assert full["apply_seconds"] > roomy["apply_seconds"]
    assert at_once["apply_seconds"] == pytest.approx(full["apply_seconds"] - full["lookup_seconds"])
    assert smaller["redo_log_writes"] == full["redo_log_writes"]
    assert full["page_reads"] == full["page_read_seconds"] == 0


def waited_for(server: Server) -> int:
    """Pages that were written while somebody waited, by the server's own count."""
    name = "buffer_flush_sync_total_pages"
    where = f"FROM information_schema.innodb_metrics WHERE name = '{name}'"
    return int(server.query(f"SELECT count {where}")[0][0])
