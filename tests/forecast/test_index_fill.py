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


COUNTS_OF_5_7 = [
    (1, 10_000, 83, 4_459), (10, 1_000, 83, 2_638), (100, 100, 83, 594), (1, 10_000, 332, 6_744),
    (1, 7_500, 84, 8_903 / 4), (1, 7_500, 84, 12_644 / 4),
]  # fmt: skip
"""Rows of a transaction, transactions, leaves, splits: of `measure`, and of sysbench's
oltp_update_index, relaxed and durable."""


@pytest.mark.parametrize(("rows", "transactions", "leaves", "counted"), COUNTS_OF_5_7)
def test_leaves_of_5_7_split_more_often_as_its_purge_is_hardly_behind(
    rows: float, transactions: int, leaves: float, counted: float
) -> None:
    index = FullIndex("k", 1.0, leaves, rows * transactions)
    split = index.leaves_split(rows, POOL_RULES["5.7"].splits) * transactions
    assert split == pytest.approx(counted, rel=0.34)
    assert split > index.leaves_split(rows, POOL_RULES["9.7"].splits) * transactions


def test_rows_that_come_and_go_make_leaves_of_5_7_weary() -> None:
    """oltp_write_only: each transaction deletes a row and writes it again; 6,082 to 6,663."""
    index = FullIndex("k", 1.0, 84.0, 7_500.0, 15_000.0)
    splits = 4 * 7_500 * index.leaves_split(1, POOL_RULES["5.7"].splits)
    assert splits == pytest.approx(6_400, rel=0.15)


def test_each_moved_entry_counts_and_leaves_split_less_often_the_more_visits_they_have() -> None:
    assert amounts_asked("delete", 1) == (0.0, 0.0)
    first = 0.57 / (1 + 32 / 84)
    once = replace(FULL, log_updates=1.0)
    assert amounts_asked("update", 1, once) == (1.0, pytest.approx(first, rel=0.001))
    weary = replace(FULL, log_updates=92.0 * 84)
    assert amounts_asked("update", 1, weary) == (1.0, pytest.approx(first / 2))
    entries, splits = amounts_asked("update", 10)
    assert entries == 10.0
    assert first < splits < 10 * first
    half = replace(FULL, index_stays={"k": 0.5}, leaf_pages={"k": 83.0})
    assert amounts_asked("update", 2, half)[0] == 1.0
    assert amounts_asked("update", 1_000_000)[1] < 84 * 0.57 / 32


COUNTED = (
    (30_000, 1, 84, 2_148),
    (30_000, 1, 335, 6_409),
    (30_000, 1, 1_336, 13_850),
    (10_000, 1, 83, 1_900),
    (1_000, 10, 83, 269),
    (100, 100, 83, 122),
)
"""Transactions, rows of each, leaves and splits: benchmarks/results/full_index_leaves_9.7.json."""


@pytest.mark.parametrize(("transactions", "rows", "leaves", "splits"), COUNTED)
def test_as_many_splits_as_a_server_counted(
    transactions: int, rows: int, leaves: int, splits: int
) -> None:
    index = FullIndex("k", 1.0, leaves, transactions * rows)
    counted = transactions * index.leaves_split(rows, POOL_RULES["9.7"].splits)
    assert 1 / 2 < counted / splits < 2


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
