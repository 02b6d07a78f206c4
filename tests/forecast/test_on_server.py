"""Cells on a real server: carried out by its own applier and by BINLOG statements; its schema read
by SQLAlchemy."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from servers.server import Server

from applier.cli.main import cli
from applier.errors import Interrupted, UsageError
from applier.forecast.inventory.index_fill import full_indexes
from applier.forecast.inventory.pool_rules import PoolRules
from applier.forecast.inventory.server_facts import facts_of_server
from applier.forecast.measurement.fit import fit
from applier.forecast.measurement.measured import Repeats
from applier.forecast.measurement.measurement_grid import Cell
from applier.forecast.measurement.on_server import ServerTarget
from applier.forecast.measurement.page_splits import is_counting
from applier.forecast.measurement.thread_clock import ThreadClock
from applier.forecast.prices.units import PLACE
from applier.mysql.client.url import Endpoint
from lookup.table_shape import NO_KEY, OTHER, PRIMARY
from tests.servers.fixtures import ServerFactory

ROOT = Path(__file__).parents[2]
CELLS = [Cell(NO_KEY, 1000, "delete", 10, 1, 20), Cell(PRIMARY, 1000, "update", 1, 1, 50),
         Cell(OTHER, 1000, "update", 5, 2, 10, 40, 10, 1, 3),
         Cell(PRIMARY, 1000, "write", 20, 1, 5)]  # fmt: skip


def endpoint(server: Server) -> Endpoint:
    return Endpoint(server.host, server.port, server.user, password=server.password)


@pytest.fixture(
    scope="module",
    params=["9.7", "mariadb", *(["5.7"] if os.environ.get("BINLAG_ALL_CASES") == "1" else [])],
)
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    options = {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0, "relay_log": "relay"}
    server = server_factory(request.param, options=options)
    yield server
    server.close()


@pytest.mark.parametrize("relay", [True, False], ids=["relay log", "BINLOG statements"])
def test_the_server_applies_a_cell(server: Server, relay: bool) -> None:
    with ServerTarget(endpoint(server), relay_folder=server.data if relay else None) as target:
        for cell in CELLS:
            measured = target.measure(cell)
            # and the second mark
            assert measured.amounts[PLACE["transaction"]] == cell.transactions + 1
            assert server.name.split()[-1] in measured.server_version
            left = server.query(
                "SELECT COUNT(*), COALESCE(SUM(filler LIKE 'z%'), 0) FROM binlag_measure.cell"
            )[0]
            assert target._filled is not None
            spent = target._filled[1]
            assert left[0] == spent.rows
            changed = {"update": spent.used.count(1), "write": 0, "delete": 0}[cell.kind]
            assert left[1] == changed
    assert server.query("SHOW DATABASES LIKE 'binlag_measure'") == ()


def test_relaxed_cells_of_mariadb_go_through_the_cache(
    server_factory: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a replica that was started relaxed. The server takes it back at its next start."""
    buffering, found = "SELECT @@GLOBAL.innodb_log_file_buffering", list[object]()
    with (
        closing(server_factory("mariadb", options={"relay_log": "relay"})) as server,
        ServerTarget(endpoint(server), relay_folder=server.data) as target,
    ):
        assert server.query(buffering) == ((0,),)
        applied = target._by_relay_log

        def asked(log: Path) -> float:
            found.append(server.query(buffering)[0][0])
            return applied(log)

        monkeypatch.setattr(target, "_by_relay_log", asked)
        target.measure(CELLS[1])
        assert set(found) == {1}


def test_a_cell_of_syncs_and_the_one_beside_it_are_applied_several_times(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their ratio counts, however long they take; of other cells only short ones."""
    plain = Cell(PRIMARY, 4_000, "update", 1, 1, 100)
    repeats = Repeats(short=1, beside=3)
    with ServerTarget(endpoint(server), relay_folder=server.data, repeats=repeats) as target:
        applied: list[Path] = []
        real = target._by_relay_log

        def noted(log: Path) -> float:
            applied.append(log)
            return real(log)

        monkeypatch.setattr(target, "_by_relay_log", noted)
        target.measure(plain)
        assert len(applied) == 1
        target.measure(replace(plain, workers=1, durable=1))
        assert len(applied) == 1 + 3 + 3


def test_splits_are_those_that_the_server_counts(server: Server) -> None:
    """It counts no longer than a cell takes. The model's number is no whole one."""
    cell = Cell(PRIMARY, 40_000, "update", 1, 1, 1_000, indexes=1, full=1)
    with ServerTarget(endpoint(server), relay_folder=server.data, repeats=Repeats(1)) as target:
        measured = target.measure(cell)
        splits = measured.amounts[PLACE["leaf split"]]
        is_mariadb = target.rules.name == "mariadb"
        assert not is_counting(target.server, mariadb=is_mariadb)
    (index,) = full_indexes(cell.facts(cell.rows))
    assert (index.leaves_split(1.0, PoolRules().splits) * 1_000).is_integer() is False
    assert splits == int(splits)
    assert 20 < splits < 1_000


def test_a_row_search_is_set_and_put_back(server: Server) -> None:
    with ServerTarget(endpoint(server), relay_folder=server.data) as target:
        cell = Cell(NO_KEY, 1000, "delete", 10, 1, 5, row_search="INDEX_SCAN,HASH_SCAN")
        if target.rules.row_search_selectable:
            before = server.query("SELECT @@GLOBAL.slave_rows_search_algorithms")
            assert target.measure(cell).amounts[PLACE["hash row"]] > 0
            assert server.query("SELECT @@GLOBAL.slave_rows_search_algorithms") == before
        else:
            with pytest.raises(UsageError, match="has no slave_rows_search_algorithms"):
                target.measure(cell)


def test_the_folder_of_another_server_is_refused(server: Server, tmp_path: Path) -> None:
    with (
        ServerTarget(endpoint(server), relay_folder=tmp_path) as target,
        pytest.raises(UsageError, match="not the data directory"),
    ):
        target.measure(CELLS[0])
    assert list(tmp_path.iterdir()) == []
    assert server.query("SHOW DATABASES LIKE 'binlag_measure'") == ()


def test_a_server_that_does_not_name_its_relay_logs_is_refused(
    server_factory: ServerFactory,
) -> None:
    server = server_factory("mariadb")
    try:
        with (
            ServerTarget(endpoint(server), relay_folder=server.data) as target,
            pytest.raises(UsageError, match="what its relay logs are called"),
        ):
            target.measure(CELLS[0])
        assert not list(server.data.glob("None*"))
    finally:
        server.close()


TOLD = """
from applier.cli.main import main
from applier.forecast.measurement.on_server import ServerTarget
table = ServerTarget._table
def tell(self, cell):
    print("a cell", flush=True)
    return table(self, cell)
ServerTarget._table = tell
main()
"""
"""`binlag` that says when a cell begins."""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("relay", [True, False], ids=["relay log", "BINLOG statements"])
def test_an_interrupt_leaves_the_server_as_it_was(
    server: Server, relay: bool, tmp_path: Path
) -> None:
    """At any moment of a cell: while its table is filled, while it is applied. The signal comes
    while an answer is awaited."""
    chance, statement = random.Random(relay), "SHOW GLOBAL VARIABLES LIKE '%parallel_workers'"
    before = server.query(statement)
    arguments = [
        "measure",
        "--into",
        f"mysql://root@127.0.0.1:{server.port}",
        "--table",
        "cells.parquet",
        "--largest",
        "20000",
    ]
    arguments += ["--relay-folder", str(server.data)] if relay else []
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BINLAG_PASSWORD": server.password}
    for _ in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", TOLD, *arguments], cwd=tmp_path, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None and process.stdout.readline() == "a cell\n"
            time.sleep(chance.uniform(0, 0.5))
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=300)
        assert process.returncode == 130, said
        assert said.splitlines()[-1] == "binlag: interrupted"
        assert server.query("SHOW DATABASES LIKE 'binlag_measure'") == ()
        assert server.query(statement) == before


def test_an_interrupt_while_the_applier_is_stopped_leaves_no_replica(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes behind a cell, when STOP REPLICA is under way."""
    called: list[tuple[str, ...]] = []
    with (
        pytest.raises(KeyboardInterrupt),
        ServerTarget(endpoint(server), relay_folder=server.data) as target,
    ):
        replication, status = target._replication, target._words("SHOW REPLICA STATUS")

        def interrupted(*statements: str) -> None:
            called.append(statements)
            if len(called) == 3:
                target.server.send(target._words(statements[0]))
                raise KeyboardInterrupt
            replication(*statements)

        monkeypatch.setattr(target, "_replication", interrupted)
        target.measure(Cell(PRIMARY, 1000, "update", 1, 1, 5))
    assert called[2] == ("STOP REPLICA", "RESET REPLICA ALL")
    assert server.query(status) == ()
    assert server.query("SHOW DATABASES LIKE 'binlag_measure'") == ()


def test_an_interrupt_while_settings_are_put_back_keeps_none(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes behind a cell, too. What the server was still to do for the connection that is given
    up does not come behind that."""
    settings = "SHOW GLOBAL VARIABLES LIKE '%parallel_workers'"
    before, set_or_put_back, given_up = server.query(settings), 0, 0
    with (
        pytest.raises(Interrupted),
        ServerTarget(endpoint(server), relay_folder=server.data) as target,
    ):
        execute = target._execute

        def interrupted(*statements: str) -> None:
            nonlocal set_or_put_back, given_up
            position = "gtid_slave_pos" in statements[0]
            set_or_put_back += statements[0].startswith("SET GLOBAL") and not position
            if set_or_put_back == 2 and not given_up:
                given_up = target.server.number
                target.server.send(f"DO SLEEP(60); SET GLOBAL {before[0][0]} = 7")
                raise Interrupted
            execute(*statements)

        monkeypatch.setattr(target, "_execute", interrupted)
        target.measure(Cell(PRIMARY, 1000, "update", 1, 1, 5))
    assert set_or_put_back == 3
    assert server.query(f"SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {given_up}") == ()
    assert server.query(settings) == before
    assert server.query("SHOW DATABASES LIKE 'binlag_measure'") == ()


def test_measurements_make_a_calibration(server: Server, tmp_path: Path) -> None:
    """The last cell is long: on a busy machine the onlooker may see nothing of the others, and what
    took no time says nothing."""
    cells = [*CELLS, Cell(NO_KEY, 20_000, "delete", 10, 1, 40)]
    with ServerTarget(endpoint(server), relay_folder=server.data) as target:
        found = fit([target.measure(cell) for cell in cells], settings=target.settings)
    assert server.name.split()[-1] in found.server_version
    assert found.settings["sync_binlog"] == "0"
    assert max(found.prices.seconds) > 0


def test_the_schema_of_a_live_server(server: Server) -> None:
    server.execute(
        "DROP DATABASE IF EXISTS live", "CREATE DATABASE live", "USE live",
        "CREATE TABLE t (id INT PRIMARY KEY, k INT, KEY k (k)) STATS_PERSISTENT=1",
        "CREATE TABLE `odd``name` (a INT)", "CREATE VIEW v AS SELECT * FROM t",
        f"INSERT INTO t VALUES {','.join(f'({n},{n % 5})' for n in range(200))}", "ANALYZE TABLE t",
    )  # fmt: skip
    facts, version = facts_of_server(endpoint(server), ["live"])
    assert version.startswith(server.name.split()[-1])
    assert set(facts) == {"live.t", "live.odd`name"}
    table = facts["live.t"]
    assert (table.rows, table.rows_from) == (200, "statistics of the server")
    assert [key.name for key in table.definition.keys] == ["PRIMARY", "k"]
    assert table.duplicates["k"] == pytest.approx(40, rel=0.2)
    server.execute("DROP DATABASE live")


def test_tables_of_binlag_are_none_of_the_schema(server: Server) -> None:
    """A server that a log was replayed into holds them."""
    server.execute("CREATE DATABASE IF NOT EXISTS binlag", "CREATE TABLE binlag.of_test (id INT)")
    server.execute("CREATE DATABASE live", "CREATE TABLE live.t (id INT)")
    try:
        assert set(facts_of_server(endpoint(server))[0]) == {"live.t"}
    finally:
        server.execute("DROP TABLE binlag.of_test", "DROP DATABASE live")


def test_a_server_that_refuses(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BINLAG_PASSWORD", "wrong")
    given = [
        "--into",
        f"mysql://root@127.0.0.1:{server.port}",
        "--table",
        str(tmp_path / "t.parquet"),
    ]
    result = CliRunner().invoke(cli, ["measure", *given], standalone_mode=False)
    assert getattr(result.exception, "exit_code", None) == 2


TICKS = os.sysconf("SC_CLK_TCK")


def written(proc: Path, *, thread: float, waited: float, process: float, machine: float) -> None:
    """These seconds as Linux shows them of thread 8 in process 7."""
    (proc / "7/task/8").mkdir(parents=True, exist_ok=True)
    (proc / "7/task/8/schedstat").write_text(f"{round(thread * 1e9)} {round(waited * 1e9)} 3\n")
    user = round(process * TICKS) - 1
    (proc / "7/stat").write_text(
        f"7 (a ) b) S {' '.join(['0'] * 10)} {user} 1 {' '.join(['0'] * 30)}\n"
    )
    (proc / "stat").write_text(
        f"cpu  {round(machine * TICKS)} 0 0 99999 99999 0 0 99999 0 0\ncpu0 1\n"
    )


@pytest.mark.parametrize(
    ("process", "machine", "expected"),
    [(14, 20, 0.0), (10, 20, 2.0), (12, 20, 1.0), (14, 22, 2 / 3)],
    ids=["its own server's threads", "others", "half of them", "a third"],
)
def test_time_in_line_for_a_processor(
    process: float, machine: float, expected: float, tmp_path: Path
) -> None:
    """What the thread waited for its own server is no time of others."""
    written(tmp_path, thread=5, waited=7, process=5, machine=11)
    clock = ThreadClock(7, 8, tmp_path)
    assert clock.in_line() == 0
    written(tmp_path, thread=10, waited=9, process=process, machine=machine)
    assert clock.in_line() == pytest.approx(expected, abs=0.02)
    (tmp_path / "7/task/8/schedstat").unlink()
    assert clock.in_line() == 0
