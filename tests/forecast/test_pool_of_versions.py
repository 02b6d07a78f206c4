"""What a version's replica reads into its buffer pool besides pages of tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.inventory.pool_rules import POOL_RULES
from applier.forecast.plan import ForecastPlan, run
from tests.binlog.build import gtid
from tests.forecast.logs import UPDATE, file, schema, transaction


def page_reads(folder: Path, server: str, *, anonymous: bool) -> float:
    """Of 2,000 updates of one row, beside a pool of 2 MiB."""
    updates = [
        [gtid(at, last=at, sequence=at + 1, anonymous=anonymous), *events[1:]]
        for at in range(1, 2001)
        for events in [transaction(at, b"keyed", UPDATE, at * 997 % 100_000)]
    ]
    tables = "CREATE DATABASE d; USE d; CREATE TABLE keyed (a INT NOT NULL PRIMARY KEY);"
    plan = ForecastPlan(
        files=[file(folder, *updates)], facts=facts_of_file(schema(folder, tables)), server=server,
        workers=1, row_counts=["*=100000"], settings={"buffer_pool": 2 << 20},
    )  # fmt: skip
    reads: float = run(plan).summary()["replica"]["page_reads"]
    return reads


@pytest.mark.parametrize("server", ["5.7", "9.7"])
def test_a_replica_without_a_log_of_its_own_writes_a_row_for_each_gtid(
    tmp_path: Path, server: str
) -> None:
    """5.7 into mysql.gtid_executed, whose undo log takes a page of each rollback segment in turn;
    later versions keep GTIDs in the undo log of the transaction (trx0undo.cc)."""
    with_gtids = page_reads(tmp_path, server, anonymous=False)
    without = page_reads(tmp_path, server, anonymous=True)
    assert (with_gtids > without + 1000) if server == "5.7" else (with_gtids == without)
    assert without > 2000


def test_only_mariadb_purges_by_time() -> None:
    """Its history_seconds and cut_seconds; others go by transactions, however fast they are."""
    assert [name for name, rules in POOL_RULES.items() if rules.purges_by_time] == ["mariadb"]
