"""How full indexes are, and what updates of full ones do: a real 9.7 counts its splits and
merges."""

from __future__ import annotations

import random
import time
from contextlib import closing
from dataclasses import replace

import pytest
from servers.server import Server

from applier.forecast.inventory.facts import TableFacts
from applier.forecast.inventory.index_fill import (
    FullIndex,
    concentration,
    leaf_fill,
    names_of_full_indexes,
)
from applier.forecast.inventory.pool_rules import POOL_RULES
from applier.forecast.inventory.server_facts import facts_of_server
from applier.forecast.prices.margin import margin
from applier.forecast.prices.pricing import Part, Pricer
from applier.forecast.prices.scenario import Scenario
from applier.forecast.prices.units import PLACE, Prices
from applier.forecast.workload.transaction_load import LoadShape
from applier.mysql.client.url import Endpoint
from lookup.table import Column, Key, KeyPart, TableDefinition
from lookup.versions import RULES
from tests.forecast import logs
from tests.servers.fixtures import ServerFactory

ROWS, UPDATES, BATCHES = 30_000, 1_000, 10
KEY = Key("k", (KeyPart(1),))
SBTEST = TableDefinition(
    "sbtest", "sbtest1",
    (Column("id", "int", nullable=False), Column("k", "int", nullable=False),
     Column("c", "char", 120)),
    (Key("PRIMARY", (KeyPart(0),), unique=True), KEY),
)  # fmt: skip
FULL = TableFacts(SBTEST, 100_000.0, index_stays={"k": 1.0}, leaf_pages={"k": 84.0})
"""As sysbench makes it: k is built behind the rows."""


def test_an_index_that_was_built_behind_its_rows_is_full() -> None:
    assert leaf_fill(FULL, KEY) == pytest.approx(0.98, abs=0.02)
    assert leaf_fill(replace(FULL, leaf_pages={"k": 130.0}), KEY) == pytest.approx(0.63, abs=0.02)
    assert names_of_full_indexes({"sbtest.sbtest1": FULL}) == ["k of sbtest.sbtest1"]


@pytest.mark.parametrize(
    "other",
    [
        {"leaf_pages": {}},
        {"leaf_pages": {"k": 130.0}},
        {"rows": None},
        {"index_stays": {"k": 0.0}},
        {"index_stays": {}},
    ],
)
def test_it_does_not_matter_or_is_not_known(other: dict[str, object]) -> None:
    assert names_of_full_indexes({"sbtest.sbtest1": replace(FULL, **other)}) == []  # type: ignore[arg-type]


def part_of(kind: str, rows: int) -> Part:
    """A transaction of one event with so many rows of SBTEST."""
    shape = LoadShape("sbtest.sbtest1", kind, 3, (0, 1, 2), (0, 1, 2))
    return Part(shape, (((rows, 0), 1),), 1, 100_000.0, 190.0, 1, rows)


def amounts_asked(kind: str, rows: int, facts: TableFacts = FULL) -> tuple[float, float]:
    """Entries moved within full leaves, and leaves split, by one transaction of such rows."""
    pricer = Pricer(Scenario("as it is", RULES["9.7"]), {"sbtest.sbtest1": facts}, Prices.of({}))
    found = pricer.work(part_of(kind, rows)).amounts
    return found[PLACE["full entry"]], found[PLACE["leaf split"]]


@pytest.mark.parametrize(
    ("kind", "entries", "splits"),
    [("write", 0.0, 0.0), ("delete", 1.0, 0.0), ("update", 2.0, amounts_asked("update", 1)[1])],
)
def test_purge_takes_out_what_updates_and_deletes_leave_in_an_index(
    kind: str, entries: float, splits: float
) -> None:
    prices = Prices.of({"index entry": 1.0, "leaf split": 100.0, "byte": 1.0, "key read": 9.0})
    facts = {"sbtest.sbtest1": replace(FULL, index_changes={"k": 1.0})}
    pricer = Pricer(Scenario("slow", RULES["9.7"], factor=2.0), facts, prices)
    price = pricer.price(part_of(kind, 1))
    assert price.marked == pytest.approx(2 * (entries + 100 * splits))


COUNTS_OF_SYSBENCH = [
    ("5.7", 1, 84, 0, 58, 4_440), ("5.7", 4, 84, 0, 67, 9_327), ("5.7", 4, 84, 0, 97, 9_963),
    ("5.7", 4, 84, 0, 264, 12_535), ("5.7", 8, 167, 0, 183, 17_911), ("5.7", 4, 84, 2, 86, 6_663),
    ("5.7", 4, 84, 2, 270, 6_595), ("9.7", 1, 84, 0, 103, 1_591), ("9.7", 1, 84, 0, 161, 2_151),
    ("9.7", 4, 84, 0, 126, 5_418), ("9.7", 4, 84, 0, 225, 6_506), ("9.7", 4, 84, 0, 547, 8_171),
    ("9.7", 4, 84, 0, 930, 9_524), ("9.7", 8, 167, 0, 298, 14_540), ("9.7", 4, 84, 2, 165, 4_677),
    ("9.7", 4, 84, 2, 1_050, 6_052),
]  # fmt: skip
"""Tables, leaves of each index, rows that come or go beside each update, microseconds between two
transactions, splits by 30,000 of them: runs of `forecast_sysbench.py` with oltp_update_index and
oltp_write_only, relaxed and durable, by 1, 2 and 4 workers."""


@pytest.mark.parametrize(
    ("version", "tables", "leaves", "others", "apart", "counted"), COUNTS_OF_SYSBENCH
)
def test_leaves_split_as_often_as_purge_and_the_pace_let_them(
    version: str, tables: int, leaves: float, others: int, apart: float, counted: int
) -> None:
    rows = 30_000 / tables
    index = FullIndex("k", 1.0, leaves, rows, others * rows)
    split = 30_000 * index.leaves_split(1, POOL_RULES[version].splits, apart / 1e6)
    assert split == pytest.approx(counted, rel=0.12)


COUNTS_OF_CELLS = [
    ("5.7", 1, 10_000, 83, 112, 5_092), ("5.7", 10, 1_000, 83, 736, 3_111),
    ("5.7", 100, 100, 83, 2_960, 649), ("5.7", 1, 10_000, 332, 181, 8_092),
    ("9.7", 1, 10_000, 83, 157, 875), ("9.7", 10, 1_000, 83, 459, 200),
    ("9.7", 100, 100, 83, 1_115, 83), ("9.7", 1, 10_000, 332, 260, 4_317),
    ("mariadb", 1, 10_000, 83, 18, 111), ("mariadb", 10, 1_000, 83, 92, 87),
    ("mariadb", 100, 100, 83, 486, 83), ("mariadb", 1, 10_000, 332, 20, 360),
]  # fmt: skip
"""Rows of a transaction, transactions, leaves, microseconds between two, splits: of `measure`."""


@pytest.mark.parametrize(
    ("version", "rows", "transactions", "leaves", "apart", "counted"), COUNTS_OF_CELLS
)
def test_transactions_of_many_rows_split_less(
    version: str, rows: float, transactions: int, leaves: float, apart: float, counted: int
) -> None:
    index = FullIndex("k", 1.0, leaves, rows * transactions)
    split = transactions * index.leaves_split(rows, POOL_RULES[version].splits, apart / 1e6)
    assert 1 / 2.5 < split / counted < 2.5


COUNTED = (
    (30_000, 1, 84, 193, 2_148),
    (30_000, 1, 335, 201, 6_409),
    (30_000, 1, 1_336, 285, 13_850),
    (10_000, 1, 83, 157, 1_900),
    (1_000, 10, 83, 459, 269),
    (100, 100, 83, 1_115, 122),
)
"""Transactions, rows of each, leaves, microseconds between two and splits:
benchmarks/results/full_index_leaves_9.7.json."""


@pytest.mark.parametrize(("transactions", "rows", "leaves", "apart", "splits"), COUNTED)
def test_as_many_splits_as_a_server_counted(
    transactions: int, rows: int, leaves: int, apart: float, splits: int
) -> None:
    index = FullIndex("k", 1.0, leaves, transactions * rows)
    counted = transactions * index.leaves_split(rows, POOL_RULES["9.7"].splits, apart / 1e6)
    assert 1 / 2 < counted / splits < 2
    older = transactions * index.leaves_split(rows, POOL_RULES["5.7"].splits, apart / 1e6)
    assert older > counted, "its purge is hardly behind"


def test_each_moved_entry_counts_and_leaves_split_less_often_the_more_visits_they_have() -> None:
    assert amounts_asked("delete", 1) == (0.0, 0.0)
    splits = POOL_RULES["9.7"].splits
    first = splits.first_visits * splits.in_time(1 / 84, splits.usual_seconds)
    once = replace(FULL, log_updates=0.001)
    assert amounts_asked("update", 1, once) == (1.0, pytest.approx(first, rel=0.001))
    weary = replace(FULL, log_updates=splits.weary_visits * 84)
    assert amounts_asked("update", 1, weary) == (1.0, pytest.approx(first / 2))
    entries, splits = amounts_asked("update", 10)
    assert entries == 10.0
    assert first < splits < 10 * first
    half = replace(FULL, index_stays={"k": 0.5}, leaf_pages={"k": 83.0})
    assert amounts_asked("update", 2, half)[0] == 1.0
    assert amounts_asked("update", 1_000_000)[1] < 1


@pytest.mark.parametrize(("tables", "left"), [(1, 1.0), (2, 0.825), (4, 0.7375)])
def test_a_split_of_5_7_waits_less_for_purge_the_more_full_indexes_there_are(
    tables: int, left: float
) -> None:
    facts = {
        f"sbtest.sbtest{number}": replace(FULL, log_updates=500.0)
        for number in range(1, tables + 1)
    }
    idle = replace(FULL, index_stays={"k": 0.0}, log_updates=9.0)
    assert concentration(facts | {"sbtest.idle": idle}) == pytest.approx(1 / tables)
    prices = Prices.of({"leaf split": 1.0})
    for version, share in ("5.7", left), ("9.7", 1.0):
        found = Pricer(Scenario("as it is", RULES[version]), facts, prices)
        work = found.work(part_of("update", 1))
        price = found.price_of(work)
        assert price.splits == pytest.approx(work.amounts[PLACE["leaf split"]] * share)
        assert price.seconds == pytest.approx(price.splits)


def test_entries_of_no_fixed_length_are_not_guessed() -> None:
    by_name = Key("c", (KeyPart(2),))
    facts = replace(
        FULL, definition=replace(SBTEST, keys=(*SBTEST.keys, by_name)), leaf_pages={"c": 84.0}
    )
    assert leaf_fill(facts, by_name) is None


def test_the_margin_is_wider_and_says_so() -> None:
    base, calibration = Scenario("as it is", RULES["9.7"]), logs.calibration(spread=0.2)
    half = replace(FULL, leaf_pages={"k": 130.0})
    assert margin(base, {"sbtest.sbtest1": half}, calibration) == (pytest.approx(0.2), [])
    wide, said = margin(base, {"sbtest.sbtest1": FULL}, calibration)
    assert wide > 1.4
    priced = replace(calibration, shown=frozenset({"leaf split"}))
    assert margin(base, {"sbtest.sbtest1": FULL}, priced)[0] == pytest.approx(0.2)
    assert [line for line in said if "MERGE_THRESHOLD" in line and "k of sbtest.sbtest1" in line]


def metric(server: Server, name: str) -> int:
    return int(
        server.query(f"SELECT count FROM information_schema.innodb_metrics WHERE name = '{name}'")[
            0
        ][0]
    )


def merges(server: Server, table: str) -> int:
    """How often pages were merged while rows of a table moved to the next value of k, and purge
    kept pace."""
    draw, before = random.Random(1), metric(server, "index_page_merge_successful")
    with (
        server.connect(database="fill", autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        for _ in range(BATCHES):
            for _ in range(UPDATES // BATCHES):
                cursor.execute(f"UPDATE {table} SET k = k + 1 WHERE id = {draw.randint(1, ROWS)}")
            deadline = time.monotonic() + 10
            while metric(server, "trx_rseg_history_len") > 2 and time.monotonic() < deadline:
                time.sleep(0.02)
    return metric(server, "index_page_merge_successful") - before


def test_a_server_merges_the_pages_of_full_indexes_again_and_again(
    server_factory: ServerFactory,
) -> None:
    options = {
        "innodb_flush_log_at_trx_commit": 2,
        "sync_binlog": 0,
        "innodb_monitor_enable": "module_index,module_trx",
    }
    options |= {"innodb_purge_rseg_truncate_frequency": 1}
    with closing(server_factory("9.7", options=options)) as server:
        rows = ", ".join(f"({one}, {one * 7919 % ROWS})" for one in range(1, ROWS + 1))
        create = "CREATE TABLE {} (id INT NOT NULL PRIMARY KEY, k INT NOT NULL{})"
        server.execute(
            "CREATE DATABASE fill", "USE fill",
            create.format("grown", ", KEY k (k)"), create.format("built", ""),
            f"INSERT INTO grown VALUES {rows}", f"INSERT INTO built VALUES {rows}",
            "ALTER TABLE built ADD KEY k (k)",
            "ANALYZE TABLE grown, built",
        )  # fmt: skip
        endpoint = Endpoint(server.host, server.port, server.user, password=server.password)
        facts = {
            name: replace(one, index_stays={"k": 1.0})
            for name, one in facts_of_server(endpoint, ["fill"])[0].items()
        }
        assert names_of_full_indexes(facts) == ["k of fill.built"]
        assert merges(server, "built") > UPDATES / 10
        server.execute("ALTER TABLE fill.built COMMENT = 'MERGE_THRESHOLD=20', FORCE")
        assert merges(server, "built") < UPDATES / 100
