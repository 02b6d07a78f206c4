"""Several workers leave behind what one does: logs whose transactions depend on each other, on real
servers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from servers.server import Server

from applier.mysql import parallel
from applier.mysql.client.connection import TRANSIENT
from applier.mysql.into import ReplayWatch, replay_into
from applier.mysql.into_options import IntoOptions
from applier.mysql.outcome import TargetOutcome
from applier.mysql.positions import checkpoint
from applier.options import parse_options
from tests.mysql.server_support import OPTIONS, endpoint
from tests.mysql.workload import Workload, make, rows
from tests.servers.fixtures import ServerFactory

ALL = os.environ.get("BINLAG_ALL_CASES") == "1"
VERSIONS = ("9.7", "5.7", "5.6", "mariadb") if ALL else ("9.7", "mariadb")
"""9.7 writes a clock of write sets, 5.7 one of commit order, 5.6 and MariaDB none."""
WAYS: tuple[dict[str, Any], ...] = (
    {"workers": 1, "batch": 7},
    {"workers": 2, "batch": 5},
    {"workers": 4, "batch": 3},
    {"workers": 4, "batch": 3, "any_commit_order": True},
    {"workers": 3, "batch": 2, "apply": "sql"},
    {"workers": 3, "batch": 2, "apply": "sql", "any_commit_order": True},
)
WAYS_OF = {"9.7": WAYS, "mariadb": WAYS[2:4]}
CASES = [(version, way) for version in VERSIONS for way in (WAYS if ALL else WAYS_OF[version])]
PARALLEL: dict[str, Any] = {"workers": 4, "batch": 2}


class Made:
    """A server of each version, with the log that was written on it."""

    def __init__(self, factory: ServerFactory, folder: Path) -> None:
        self._factory = factory
        self._folder = folder
        self._made: dict[str, tuple[Server, Workload]] = {}

    def of(self, version: str) -> tuple[Server, Workload]:
        if version not in self._made:
            server = self._factory(version, options=OPTIONS)
            self._made[version] = server, make(server, self._folder, 300 if ALL else 160)
        server, workload = self._made[version]
        server.execute("DROP DATABASE IF EXISTS w", "DROP DATABASE IF EXISTS binlag")
        return server, workload


@pytest.fixture(scope="module")
def made(server_factory: ServerFactory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    made = Made(server_factory, tmp_path_factory.mktemp("logs"))
    yield made
    for server, _ in made._made.values():
        server.close()


def go(
    server: Server, workload: Workload, watch: ReplayWatch | None = None, **into: Any
) -> TargetOutcome:
    return replay_into(
        [str(workload.log)], endpoint(server), parse_options(), IntoOptions(**into), watch
    )


def left_over(server: Server) -> int:
    return int(server.query("SELECT COUNT(*) FROM binlag.done")[0][0])


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("version", "way"), CASES, ids=str)
def test_the_tables_are_the_same(version: str, way: dict[str, Any], made: Made) -> None:
    server, workload = made.of(version)
    outcome = go(server, workload, **way)
    assert outcome.error is None
    assert rows(server) == workload.rows
    assert left_over(server) == 0
    assert (outcome.file, outcome.position) == (
        workload.log.name,
        go(server, workload, **way).position,
    )
    assert go(server, workload, **way).total_transactions == outcome.transactions


@pytest.mark.parametrize("version", VERSIONS)
def test_batches_do_overlap(version: str, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    server, workload = made.of(version)
    most = 0
    land = parallel.ParallelBatches._land

    def counting(batches: parallel.ParallelBatches) -> None:
        nonlocal most
        most = max(most, len(batches._flights))
        land(batches)

    monkeypatch.setattr(parallel.ParallelBatches, "_land", counting)
    go(server, workload, workers=3, batch=1)
    assert most == 3


@pytest.mark.parametrize("any_order", [False, True], ids=["ordered", "any order"])
def test_an_error_in_the_middle_leaves_all_before_it_and_the_rest_goes_on(
    any_order: bool, made: Made
) -> None:
    server, workload = made.of("9.7")
    seen = 0

    def halfway() -> bool:
        nonlocal seen
        seen += 1
        return seen >= workload.transactions // 2

    first = go(
        server, workload, ReplayWatch(stopped=halfway), **PARALLEL, any_commit_order=any_order
    )
    assert first.error is None
    server.execute("RENAME TABLE w.counter TO w.elsewhere")
    second = go(server, workload, **PARALLEL, any_commit_order=any_order)
    assert getattr(second.error, "number", 0) == 1146
    assert second.error is not None
    assert second.error.position is not None
    assert first.position <= second.position < second.error.position
    again = go(server, workload, workers=1)
    assert (again.transactions, again.position, str(again.error)) == (
        0,
        second.position,
        str(second.error),
    )
    server.execute("RENAME TABLE w.elsewhere TO w.counter")
    last = go(server, workload, **PARALLEL, any_commit_order=any_order)
    assert last.error is None
    assert rows(server) == workload.rows
    assert left_over(server) == 0


@pytest.mark.parametrize("any_order", [False, True], ids=["ordered", "any order"])
def test_a_row_lock_in_the_way_is_waited_for(any_order: bool, made: Made) -> None:
    server, workload = made.of("9.7")
    blocker = server.connect()
    reached = threading.Event()

    def block() -> None:
        assert reached.wait(120)
        with blocker.cursor() as cursor:
            while not holds_rows(cursor):
                pass
            time.sleep(1.5)  # longer than a worker waits for a lock
            cursor.execute("ROLLBACK")

    thread = threading.Thread(target=block)
    thread.start()
    seen = 0

    def looking(_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == 60:
            reached.set()

    outcome = go(
        server,
        workload,
        ReplayWatch(on_transaction=looking),
        **PARALLEL,
        any_commit_order=any_order,
    )
    thread.join()
    blocker.close()
    assert outcome.error is None
    assert rows(server) == workload.rows


def holds_rows(cursor: Any) -> bool:
    """Locks rows of the workload one after the other. The batches do so, too, in another order:
    where each waits for the other, either may be the one that is rolled back."""
    try:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE w.counter SET n = n WHERE id < 10")
    except pymysql.err.OperationalError as error:
        if error.args[0] not in TRANSIENT:
            raise
        return False
    return True


def test_a_worker_that_is_killed_ends_the_run_and_nothing_is_lost(made: Made) -> None:
    """Two of them. They are known by the locks that say that they work for the replay."""
    server, workload = made.of("9.7")
    locks = [
        checkpoint.lock_name(checkpoint.replay_id([str(workload.log)]), worker) for worker in (1, 2)
    ]
    seen = 0

    def killing(_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == 90:
            for lock in locks:
                ((session,),) = server.query(f"SELECT IS_USED_LOCK('{lock}')")
                server.execute(f"KILL {session}")

    watch = ReplayWatch(on_transaction=killing)
    outcome = go(server, workload, watch, **PARALLEL, reconnect_seconds=0)
    assert outcome.error is not None
    assert "was lost" in str(outcome.error)
    assert go(server, workload, **PARALLEL).error is None
    assert rows(server) == workload.rows
