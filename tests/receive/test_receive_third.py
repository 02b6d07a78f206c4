"""A source, a real replica of it, and binlag as the third server: all three end with the same
GTIDs, positions and tables.

Several sessions write at the same time; meanwhile binlag's receiver is killed with SIGKILL and
ended with SIGTERM, and the source is killed once. A replay follows the relay logs all the time.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from servers.server import Server

import applier
from applier.binlog.follow import IndexedLogs
from applier.mysql.client.connection import connect
from applier.mysql.contents.verify import verify
from applier.receive.receive_folder import Folder, Start
from applier.result import ReplayResult
from checkpoints.position import Position
from tests.receive.receiving import relay_events, source_events, transactions
from tests.receive.sources import end_of_log, endpoint, executed, is_mariadb, settle, wait
from tests.servers.fixtures import ServerFactory

THOROUGH = os.environ.get("BINLAG_ALL_CASES") == "1"
PAIRS = (
    [("5.7", False), ("9.7", True), ("mariadb", False), ("mariadb", True), ("5.7", True)]
    if THOROUGH
    else [("5.7", False)]
)
"""Version, and whether binlag asks by GTID."""
SESSIONS, PAUSE_SECONDS = 3, 0.004
DEADLOCK = 1213
TABLES = (
    (
        "CREATE TABLE s.a (id INT PRIMARY KEY AUTO_INCREMENT, n INT, t VARCHAR(40), KEY (n)) "
        "ENGINE=InnoDB"
    ),
    "CREATE TABLE s.b (n INT, t VARBINARY(200), d DATETIME(3)) ENGINE=InnoDB",
)


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]}-{'gtid' if pair[1] else 'position'}")
def pair(
    request: pytest.FixtureRequest, server_factory: ServerFactory
) -> Iterator[tuple[Server, Server, bool]]:
    """Source and replica, running and connected; the replica has nothing to do yet."""
    version, by_gtid = request.param
    log: dict[str, str | int | bool | None] = (
        {"log_slave_updates": True} if version in ("5.7", "mariadb") else {}
    )
    source, replica = (
        server_factory(version, gtids=True, options={**log, "server_id": number})
        for number in (1, 2)
    )
    source.execute("CREATE DATABASE s", *TABLES)
    begin_replica(source, replica)
    yield source, replica, by_gtid
    source.close()
    replica.close()


def begin_replica(source: Server, replica: Server) -> None:
    host = (
        f"HOST='127.0.0.1', {{0}}_PORT={source.port}, {{0}}_USER='root', "
        f"{{0}}_PASSWORD='{source.password}', {{0}}_CONNECT_RETRY=1"
    )
    # by itself it gives up after ten tries, which a slow start of the source outlasts
    if replica.installed.recipe.name == "9.7":
        at = (
            f"CHANGE REPLICATION SOURCE TO SOURCE_{host.format('SOURCE')}, "
            "SOURCE_RETRY_COUNT=1000, SOURCE_SSL=1, SOURCE_AUTO_POSITION=1"
        )
        replica.execute(at, "START REPLICA")
        return
    first = source.binlog_files()[0].name
    way = (
        f"MASTER_LOG_FILE='{first}', MASTER_LOG_POS=4"
        if is_mariadb(source)
        else "MASTER_AUTO_POSITION=1"
    )
    replica.execute(f"CHANGE MASTER TO MASTER_{host.format('MASTER')}, {way}", "START SLAVE")


def status(replica: Server) -> dict[str, Any]:
    """SHOW REPLICA STATUS by the names of today."""
    new = replica.installed.recipe.name == "9.7"
    with replica.connect() as connection, connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute("SHOW REPLICA STATUS" if new else "SHOW SLAVE STATUS")
        row = cursor.fetchone()
    assert row is not None
    return {name.replace("Master", "Source"): value for name, value in row.items()}


class Load:
    """Sessions that write at the same time until they are told to end."""

    def __init__(self, source: Server, seed: int) -> None:
        self._source = source
        self._threads = [
            threading.Thread(target=self._write, args=(random.Random(seed * 100 + number),))
            for number in range(SESSIONS)
        ]
        self._end = threading.Event()
        self._committed = 0
        for thread in self._threads:
            thread.start()

    def _write(self, chance: random.Random) -> None:
        with self._source.connect() as connection, connection.cursor() as cursor:
            while not self._end.wait(PAUSE_SECONDS):
                try:
                    for statement in self._transaction(chance):
                        cursor.execute(statement)
                except pymysql.err.OperationalError as error:
                    if error.args[0] != DEADLOCK:  # with it InnoDB has rolled the transaction back
                        raise
                if chance.random() < 0.1:
                    connection.rollback()
                connection.commit()
                self._committed += 1

    def _transaction(self, chance: random.Random) -> list[str]:
        number = chance.randrange(1000)
        few = number % 50
        kinds = (
            [f"INSERT INTO s.a (n, t) VALUES ({number}, 'a{number}'), ({number + 1}, NULL)"],
            [
                (
                    f"INSERT INTO s.b VALUES ({number}, REPEAT('x', {number % 200}), "
                    f"'2026-01-01 00:00:00.{number:03d}')"
                )
            ]
            * 3,
            [
                f"UPDATE s.a SET t = 'changed' WHERE n = {few}"
                if number % 2
                else f"INSERT INTO s.a (n) VALUES ({few})"
            ],
            [f"INSERT INTO s.a (n) VALUES ({number})", f"DELETE FROM s.a WHERE id = {few}"],
        )
        return chance.choice(kinds)

    def finish(self) -> None:
        """Not before there was something to receive, however slow the source is."""
        try:
            wait(lambda: self._committed > 3 * SESSIONS)
        finally:
            self._end.set()
            for thread in self._threads:
                thread.join()


class Third:
    """binlag: a receiver as a process of its own, a replay that follows its relay logs."""

    def __init__(self, source: Server, folder: Path, *, by_gtid: bool) -> None:
        self.folder = folder
        self._url = f"mysql://{source.user}@{source.host}:{source.port}"
        self._options = [
            "--dir",
            str(folder),
            "--heartbeat",
            "1",
            *(["--auto-position"] if by_gtid else []),
        ]
        self._environment = {**os.environ, "BINLAG_PASSWORD": source.password}
        self.process = self._receive()
        self.tables = applier.Tables()
        self._end = threading.Event()
        self._results: list[ReplayResult] = []
        wait((folder / "relay-bin.index").exists)
        logs = IndexedLogs(folder / "relay-bin.index", follow=True, stopped=self._end.is_set)
        self._read = ("", 0)
        self._replay = threading.Thread(
            target=lambda: self._results.append(
                applier.replay(logs, into=self.tables, on_event=self._seen, keep_events=False)
            )
        )
        self._replay.start()

    def _receive(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "applier", "receive", self._url, *self._options],
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=None,
        )

    def _seen(self, event: Any) -> None:
        self._read = (event.file, event.position + event.length)

    def received(self) -> int:
        return sum(path.stat().st_size for path in self.folder.glob("relay-bin.0*"))

    def end_and_begin(self, *, kill: bool) -> None:
        """The receiver goes, in the midst of it if it can be, and another one begins."""
        before = self.received()
        wait(lambda: self.received() > before)
        self.process.kill() if kill else self.process.terminate()
        assert self.process.wait() == (-9 if kill else 0)
        self.process = self._receive()

    def position(self) -> Position | None:
        """None when it was read while it was written: a server's file is overwritten in place."""
        lines = (self.folder / "master.info").read_text().split("\n")
        return (
            Position(lines[1], int(lines[2])) if len(lines) > 2 and lines[2].isdecimal() else None
        )

    def finish(self, end: Position) -> ReplayResult:
        """Waits until all is received and replayed, and ends both."""
        wait(lambda: self.position() == end)
        self.process.terminate()
        assert self.process.wait() == 0
        last = Path(IndexedLogs(self.folder)[-1])
        wait(lambda: self._read == (last.name, last.stat().st_size))
        self.close()
        return self._results[0]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._end.set()
        self._replay.join()


def test_a_third_server(pair: tuple[Server, Server, bool], tmp_path: Path) -> None:
    source, replica, by_gtid = pair
    third = Third(source, tmp_path / "relay", by_gtid=by_gtid)
    try:
        for round_number in range(2):
            load = Load(source, round_number)
            try:
                for kill in (True, False, True):
                    third.end_and_begin(kill=kill)
            finally:
                load.finish()
            if round_number == 0:
                wait(lambda: third.position() == end_of_log(source))
                source.kill()
                source.start()
        source.execute("FLUSH BINARY LOGS", "INSERT INTO s.a (n) VALUES (1)")
        settle(source)
        end = end_of_log(source)
        result = third.finish(end)
    finally:
        third.close()
    wait(lambda: _executed_position(replica) == end)
    _compare(source, replica, third, result, by_gtid=by_gtid)


def _executed_position(replica: Server) -> Position:
    shown = status(replica)
    assert not shown["Last_Error"]
    return Position(shown["Relay_Source_Log_File"], shown["Exec_Source_Log_Pos"])


def _compare(
    source: Server, replica: Server, third: Third, result: ReplayResult, *, by_gtid: bool
) -> None:
    shown = status(replica)
    assert result.error is None
    assert result.incomplete_transaction is None
    # positions: executed and received
    assert (result.source_file, result.source_position) == (
        shown["Relay_Source_Log_File"],
        shown["Exec_Source_Log_Pos"],
    )
    assert third.position() == Position(shown["Source_Log_File"], shown["Read_Source_Log_Pos"])
    # transactions
    assert str(result.executed) == executed(source)
    if not is_mariadb(source):
        assert str(result.executed) == executed(replica)
        folder = Folder(third.folder, Start())
        folder.close()
        assert str(folder.progress.gtids) == executed(source)
    assert transactions(IndexedLogs(third.folder)) == transactions(source.binlog_files())
    if not by_gtid:
        assert relay_events(third.folder) == source_events(source.binlog_files())
    # tables
    for server in (source, replica):
        connection = connect(endpoint(server))
        verification = verify(connection, third.tables)
        connection.close()
        assert verification.equal, verification.as_dict()
        assert [report.table for report in verification.tables] == ["s.a", "s.b"]
    assert len(third.tables["s.a"]) > 10
