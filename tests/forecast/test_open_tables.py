"""Tables that a worker has to open again, since its cache is full of others."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.errors import UsageError
from applier.forecast.answers.words import split
from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.inventory.table_cache import TABLE_CACHE_RULES, TableCache
from applier.forecast.lag.open_tables import has_to_open, know_tables, no_tables
from applier.forecast.plan import Forecasted, ForecastPlan, run
from applier.forecast.prices.calibration import Calibration, default_calibration
from applier.forecast.prices.scenario import Scenario, what_if
from lookup.versions import RULES
from tests.forecast import logs

TABLES = 12
"""Of the logs here."""
CACHE_OF_FIVE = {"table_open_cache": 20, "table_open_cache_instances": 1}
"""On 9.7, which has fifteen tables of its own in it."""


class NaiveCaches:
    """As the server does it, by Python's own ordered dict: a table that is opened goes behind all
    others, and of a full cache the first one goes."""

    def __init__(self, count: int, capacity: int) -> None:
        self.caches = [OrderedDict[int, None]() for _ in range(count)]
        self.capacity = capacity

    def has_to_open(self, cache: int, table: int) -> bool:
        tables = self.caches[cache]
        was_full = len(tables) >= self.capacity
        is_open = table in tables
        if is_open:
            del tables[table]
        elif was_full:
            tables.popitem(last=False)
        tables[table] = None
        return was_full and not is_open


@given(
    st.integers(1, 3),
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 8)), max_size=120),
)
def test_the_table_that_was_used_longest_ago_is_closed(
    caches: int, capacity: int, used: list[tuple[int, int]]
) -> None:
    opened, naive = no_tables(caches), NaiveCaches(caches, capacity)
    known = 0
    for cache, table in used:
        if table >= known:  # tables come one after the other, as a log names them
            table, known = known, known + 1
            know_tables(opened, known)
        at = cache % caches
        assert has_to_open(opened, at, table, float(capacity)) == naive.has_to_open(at, table)


@pytest.mark.parametrize(
    ("rules", "cache", "left"),
    [
        ("9.7", TableCache(4000, 16), 235),
        ("5.7", TableCache(2000, 16), 124),
        ("mariadb", TableCache(250), 249),
        ("9.7", TableCache(16, 16), 1),
        ("9.7", TableCache(), inf),
    ],
)
def test_a_worker_has_its_part_of_the_cache(rules: str, cache: TableCache, left: float) -> None:
    assert cache.tables_of_the_log(TABLE_CACHE_RULES[rules]) == left


@pytest.mark.parametrize(("workers", "caches"), [(1, 1), (4, 4), (20, 16)])
def test_workers_beyond_the_instances_share_them(workers: int, caches: int) -> None:
    scenario = Scenario("", RULES["9.7"], workers=workers, table_cache=TableCache(4000, 16))
    assert scenario.table_caches == caches


def one_after_the_other(folder: Path, rounds: int = 10) -> tuple[str, str]:
    """A log of inserts into TABLES tables in turn, and its schema."""
    transactions = [
        logs.transaction(1 + at, b"t%d" % (at % TABLES), logs.WRITE, at, seconds=at)
        for at in range(rounds * TABLES)
    ]
    log = logs.file(folder, *transactions)
    names = "".join(f"CREATE TABLE t{at} (a INT NOT NULL PRIMARY KEY);" for at in range(TABLES))
    return log, logs.schema(folder, f"CREATE DATABASE d; USE d; {names}")


def priced(seconds: float = 0.5) -> Calibration:
    """Prices with one of a table that is opened."""
    found = logs.calibration(version="9.7.4")
    return replace(found, prices=found.prices.with_more("table open", seconds))


def forecast(
    folder: Path, settings: dict[str, int], workers: int = 1, **given: object
) -> Forecasted:
    log, schema = one_after_the_other(folder)
    plan = ForecastPlan(
        files=[log], facts=facts_of_file(schema), server="9.7", workers=workers, settings=settings,
        calibration=priced(), **given,
    )  # fmt: skip
    return run(plan)


def test_tables_in_turn_are_opened_each_time_when_one_has_no_room(tmp_path: Path) -> None:
    done = forecast(tmp_path, CACHE_OF_FIVE)
    replica = done.summary()["replica"]
    assert replica["table_opens"] == TABLES * 10 - 5  # the first five found room
    assert replica["table_open_seconds"] == pytest.approx(0.5 * replica["table_opens"])
    besides = {one["name"]: one["seconds"] for one in done.summary()["besides_tables"]}
    assert besides["table opens"] == replica["table_open_seconds"]
    roomy = forecast(tmp_path, {**CACHE_OF_FIVE, "table_open_cache": 15 + TABLES})
    assert roomy.summary()["replica"]["table_opens"] == 0
    assert done.forecast.base.seconds - roomy.forecast.base.seconds == pytest.approx(
        replica["table_open_seconds"]
    )


def test_a_larger_cache_is_a_fix_and_a_what_if(tmp_path: Path) -> None:
    done = forecast(tmp_path, CACHE_OF_FIVE, what_ifs=["table-open-cache=40"])
    told = done.summary()
    assert told["what_if"][0]["name"] == "table_open_cache 40"
    assert told["what_if"][0]["table_opens"] == 0
    fix = told["fixes"][0]
    assert fix["setting"] == "table cache"
    assert fix["sql"] == "SET GLOBAL table_open_cache = 40;"
    assert fix["gain_seconds"] == pytest.approx(told["replica"]["table_open_seconds"], rel=0.01)
    assert "to open tables again, 115 times" in split(told)


def test_each_worker_has_tables_of_its_own(tmp_path: Path) -> None:
    settings = {"table_open_cache": 4 * 20, "table_open_cache_instances": 4}
    one, four = (forecast(tmp_path, settings, workers) for workers in (1, 4))
    # Every worker comes to each fourth table of twelve, three in all: these stay open.
    assert four.summary()["replica"]["table_opens"] == 0
    assert one.summary()["replica"]["table_opens"] > 0


def test_a_cache_of_no_tables_is_refused() -> None:
    with pytest.raises(UsageError, match="less than 1"):
        what_if("table-open-cache=0", Scenario("", RULES["9.7"]))


@pytest.mark.parametrize("rules", ["5.6", "5.7", "8.0", "8.4", "9.7", "mariadb"])
def test_the_prices_that_ship_have_one_for_it(rules: str) -> None:
    assert default_calibration(rules).prices["table open"] > 0


def test_small_tables_with_a_key_have_few_prices(tmp_path: Path) -> None:
    """Each of the inserts finds its table larger by a row."""
    log, schema = one_after_the_other(tmp_path, rounds=50)
    facts = facts_of_file(schema)
    plan = ForecastPlan(files=[log], facts=facts, row_counts=["*=100"], calibration=priced())
    assert len(run(plan).forecast._priced) == TABLES  # each of some 100 rows
