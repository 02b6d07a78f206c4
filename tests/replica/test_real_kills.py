"""kill -9 of a real replica under load: the emulated one, started on the same files and rows,
stands where it stands and ends as it ends.

The five setups of the recovery captures, and workers that leave gaps. Default: two kills; with
BINLAG_ALL_CASES=1 26 over 5.6, 5.7 and 9.7. Rows of info tables are read from a copy of the killed
data, in a server that finds no relay log there: a start with relay_log_recovery=1 changes them, and
where workers left gaps (9.7 has a worker always) it fills these before anybody can look.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import threading
import time
from dataclasses import dataclass
from typing import Any

import pymysql
import pytest

from applier.replica.configuration import ReplicaConfiguration
from applier.replica.replica import Replica
from applier.replica.scheduling import LOGICAL_CLOCK, rules_for
from applier.replica.source import BinlogFiles
from applier.replica.storage import MemoryStorage
from applier.tables.catalog import Tables
from applier.tables.definitions.schema import parse_create_table
from applier.tables.definitions.table_draft import SchemaRules
from checkpoints.gtid import GtidSet
from checkpoints.info_rows import key_columns
from checkpoints.simulated_disk import SimulatedDisk
from tests.checkpoints.recovery_captures import TABLES
from tests.replica.real_pairs import Pair, shown
from tests.replica.test_real_cut_relay_logs import CutPair
from tests.servers.fixtures import ServerFactory

ALL = os.environ.get("BINLAG_ALL_CASES") == "1"
SCHEMA = ("CREATE TABLE d.t (a INT PRIMARY KEY, b INT)", "CREATE TABLE d.n (a INT, b INT)")


@dataclass(frozen=True)
class Setup:
    """How the replica is set up; `sessions` write at the same time, so that as many workers have
    something to do."""

    repository: str
    recovery: int
    gtids: bool = False
    sessions: int = 1


SETUPS = {
    "FILE": Setup("FILE", 0),
    "FILE, recovery": Setup("FILE", 1),
    "TABLE": Setup("TABLE", 0),
    "TABLE, recovery": Setup("TABLE", 1),
    "FILE, recovery, GTID": Setup("FILE", 1, gtids=True),
    "TABLE, recovery, GTID": Setup("TABLE", 1, gtids=True),
    "TABLE, recovery, workers": Setup("TABLE", 1, sessions=4),
}
OLD = [name for name in SETUPS if name not in ("TABLE, recovery, GTID", "TABLE, recovery, workers")]
NEW = [name for name, setup in SETUPS.items() if setup.repository == "TABLE"]
CASES = [("5.7", "FILE, recovery", 1), ("5.7", "TABLE", 1)]
MORE = [
    *[(version, setup, 2) for version in ("5.6", "5.7") for setup in OLD],
    ("5.7", "TABLE, recovery, workers", 2),
    *[("9.7", setup, 1) for setup in NEW],
]


@dataclass(frozen=True)
class Killed:
    """What the kill left: relay logs, their index and info files; rows of the info tables and of
    `d`; executed GTIDs."""

    files: dict[str, bytes]
    infos: dict[str, list[dict[str, Any]]]
    contents: list[list[tuple[int, int]]]
    gtids: str


class KillPair(CutPair):
    """`setup` is a row of SETUPS."""

    def __init__(self, factory: ServerFactory, version: str, setup: str) -> None:
        self.factory, self.setup = factory, SETUPS[setup]
        self.workers = max(
            self.setup.sessions if self.setup.sessions > 1 else 0, rules_for(version).fewest_workers
        )
        repository = self.setup.repository
        options: dict[str, Any] = {"slave_parallel_workers": self.workers}
        if version == "9.7":
            options = {"replica_parallel_workers": self.workers, "replica_preserve_commit_order": 0}
        else:
            options |= {
                "relay_log_info_repository": repository,
                "master_info_repository": repository,
            }
        if version == "5.7":
            options["slave_parallel_type"] = LOGICAL_CLOCK
        recovery = {"relay_log_recovery": self.setup.recovery}
        Pair.__init__(
            self,
            factory,
            version,
            gtids=self.setup.gtids,
            relay_log_purge=1,
            sync_binlog=0,
            **recovery,
            **options,
        )

    def begin_anew(self) -> None:
        """Empty tables on both sides, and the replica runs."""
        reset = "RESET BINARY LOGS AND GTIDS" if self.version == "9.7" else "RESET MASTER"
        self.run("STOP REPLICA")
        self.replica.execute("SET sql_log_bin = 0", "DROP DATABASE IF EXISTS d", reset)
        self.run("RESET REPLICA ALL")
        self.source.execute(
            "SET sql_log_bin = 0",
            "DROP DATABASE IF EXISTS d",
            "SET sql_log_bin = 1",
            reset,
            "CREATE DATABASE d",
            *SCHEMA,
        )
        self.change_source()
        self.run("START REPLICA")
        _, self.end = self.source_end()
        self.settle()

    def kill_under_load(self, seconds: float) -> None:
        """The replica is gone; the source has what it wrote meanwhile."""
        over = threading.Event()
        threads = [
            threading.Thread(target=self._load, args=(over, number * 1_000_000))
            for number in range(self.setup.sessions)
        ]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.replica.kill()
        over.set()
        for thread in threads:
            thread.join()
        _, self.end = self.source_end()

    def _load(self, over: threading.Event, first: int) -> None:
        connection = pymysql.connect(
            host="127.0.0.1",
            port=self.source.port,
            user=self.source.user,
            password=self.source.password,
        )
        number = first
        with connection, connection.cursor() as cursor:
            while not over.is_set():
                number += 1
                cursor.execute("INSERT INTO d.t VALUES (%s, 0)", (number,))
                cursor.execute("INSERT INTO d.n VALUES (%s, 1)", (number,))
                cursor.execute(
                    "UPDATE d.t SET b = b + 1 WHERE a = %s", (random.randint(first + 1, number),)
                )
                connection.commit()

    def start_again(self) -> Killed:
        """Restarts the replica; its threads do not run. Returns what was there before."""
        wanted = re.compile(r"relay\.\d+|relay\.index|(relay-log|master)\.info")
        files = {
            path.name: path.read_bytes()
            for path in self.replica.data.iterdir()
            if wanted.fullmatch(path.name)
        }
        found = self._read_copy() if self.setup.repository == "TABLE" else None
        self.replica.start()
        return Killed(files, *(found or ({}, self.contents(), self.executed())))

    def _read_copy(
        self,
    ) -> tuple[dict[str, list[dict[str, Any]]], list[list[tuple[int, int]]], str]:
        """InnoDB recovers in the copy as in the original. Without relay logs the replica is not set
        up there: no info row is touched."""
        original, folder = self.replica, self.replica.folder / "copy"
        shutil.copytree(original.data, folder / "data")
        self.replica = self.factory(
            self.version, options=original.options | {"relay-log": "none"}, folder=folder
        )
        try:
            return self.rows(), self.contents(), self.executed()
        finally:
            self.replica.close()
            self.replica = original
            shutil.rmtree(folder)

    def executed(self) -> str:
        return str(self.replica.query("SELECT @@GLOBAL.gtid_executed")[0][0])

    def contents(self) -> list[list[tuple[int, int]]]:
        return [
            sorted(tuple(row) for row in self.replica.query(f"SELECT a, b FROM d.{table}"))
            for table in ("t", "n")
        ]


def emulated(pair: KillPair, killed: Killed) -> Replica:
    """The replica as the kill left it."""
    tables = Tables()
    for statement, rows in zip(SCHEMA, killed.contents, strict=True):
        table = tables.create(parse_create_table(statement, "d", SchemaRules()))
        for values in rows:
            table.insert(values)
    tables.commit()
    storage = MemoryStorage(tables, executed_gtids=GtidSet(killed.gtids))
    for name, found in killed.infos.items():
        for row in found:
            storage.info.write(
                name,
                {column: row[column] for column in key_columns(TABLES[name], pair.version)},
                row,
            )
    configuration = ReplicaConfiguration(
        pair.version,
        server_version=str(pair.replica.query("SELECT @@version")[0][0]),
        relay_log_info_repository=pair.setup.repository,
        master_info_repository=pair.setup.repository,
        relay_log_recovery=bool(pair.setup.recovery),
        gtid_mode=pair.replica.query("SELECT @@GLOBAL.gtid_mode")[0][0] == "ON",
        auto_position=pair.setup.gtids,
        workers=pair.workers,
        parallel_type=LOGICAL_CLOCK if pair.version != "5.6" else None,
        preserve_commit_order=False,
    )
    source = BinlogFiles(
        pair.source_files(), uuid=str(pair.source.query("SELECT @@server_uuid")[0][0]), server_id=1
    )
    return Replica(SimulatedDisk(killed.files), configuration, source, storage, clock=int)


@pytest.mark.parametrize(("version", "setup", "times"), MORE if ALL else CASES)
def test_kill(version: str, setup: str, times: int, server_factory: ServerFactory) -> None:
    with KillPair(server_factory, version, setup) as pair:
        for _ in range(times):
            pair.begin_anew()
            pair.kill_under_load(random.uniform(0.1, 0.6))
            own = emulated(pair, pair.start_again())
            own.start()
            assert shown(own) == pair.seen(pair.status())
            pair.go_on(own)
            assert [
                sorted(table.rows()) for table in (own.tables["d.t"], own.tables["d.n"])
            ] == pair.contents()
