"""kill -9 of a real replica under load: the emulated one, started on the same files and rows, stands where it stands and ends as it ends.

The five setups of one thread from the recovery captures. Default: two kills; with BINLAG_ALL_CASES=1 36 over 5.6, 5.7 and 9.7. (9.7 with
recovery and positions is left out: it has workers always, fills their gaps while it starts, and so nobody sees the rows of the kill.)
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from typing import Any

import pymysql
import pytest

from applier.errors import ReplicationError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.replica import Replica
from applier.replica.source import BinlogFiles
from applier.replica.storage import MemoryStorage
from applier.tables.catalog import Tables
from applier.tables.schema import parse_create_table
from applier.tables.table_draft import SchemaRules
from checkpoints.gtid import GtidSet
from checkpoints.info_rows import key_columns
from checkpoints.simulated_disk import SimulatedDisk
from tests.checkpoints.recovery_captures import TABLES
from tests.replica.real_pairs import Pair
from tests.replica.recovery_scenarios import events_of
from tests.replica.test_real_cut_relay_logs import CutPair, shown
from tests.servers.fixtures import ServerFactory

ALL = os.environ.get("BINLAG_ALL_CASES") == "1"
SCHEMA = ("CREATE TABLE d.t (a INT PRIMARY KEY, b INT)", "CREATE TABLE d.n (a INT, b INT)")
SETUPS = {
    "FILE": ("FILE", 0, False),
    "FILE, recovery": ("FILE", 1, False),
    "TABLE": ("TABLE", 0, False),
    "TABLE, recovery": ("TABLE", 1, False),
    "FILE, recovery, GTID": ("FILE", 1, True),
    "TABLE, recovery, GTID": ("TABLE", 1, True),
}
"""Name -> repositories, relay_log_recovery, GTID auto-position."""
OLD = [name for name in SETUPS if name != "TABLE, recovery, GTID"]
CASES = [("5.7", "FILE, recovery", 1), ("5.7", "TABLE", 1)]
MORE = [
    *[(version, setup, 3) for version in ("5.6", "5.7") for setup in OLD],
    *[("9.7", setup, 3) for setup in ("TABLE", "TABLE, recovery, GTID")],
]


class KillPair(CutPair):
    """`setup` is a row of SETUPS."""

    def __init__(self, factory: ServerFactory, version: str, setup: str) -> None:
        self.repository, self.recovery, gtids = SETUPS[setup]
        old = {"relay_log_info_repository": self.repository, "master_info_repository": self.repository}
        options: dict[str, Any] = {"replica_parallel_workers": 1, "replica_preserve_commit_order": 0} if version == "9.7" else old
        Pair.__init__(self, factory, version, gtids=gtids, relay_log_purge=1, relay_log_recovery=self.recovery, sync_binlog=0, **options)

    def begin_anew(self) -> None:
        """Empty tables on both sides, and the replica runs."""
        reset = "RESET BINARY LOGS AND GTIDS" if self.version == "9.7" else "RESET MASTER"
        self.run("STOP REPLICA")
        self.replica.execute("SET sql_log_bin = 0", "DROP DATABASE IF EXISTS d", reset)
        self.run("RESET REPLICA ALL")
        self.source.execute("SET sql_log_bin = 0", "DROP DATABASE IF EXISTS d", "SET sql_log_bin = 1", reset, "CREATE DATABASE d", *SCHEMA)
        self.change_source()
        self.run("START REPLICA")
        _, self.end = self.source_end()
        self.settle()

    def kill_under_load(self, seconds: float) -> None:
        """The replica is gone; the source has what it wrote meanwhile."""
        over = threading.Event()

        def load() -> None:
            connection = pymysql.connect(host="127.0.0.1", port=self.source.port, user=self.source.user, password=self.source.password)
            number = 0
            with connection, connection.cursor() as cursor:
                while not over.is_set():
                    number += 1
                    cursor.execute("INSERT INTO d.t VALUES (%s, 0)", (number,))
                    cursor.execute("INSERT INTO d.n VALUES (%s, 1)", (number,))
                    cursor.execute("UPDATE d.t SET b = b + 1 WHERE a = %s", (random.randint(1, number),))
                    connection.commit()

        thread = threading.Thread(target=load)
        thread.start()
        time.sleep(seconds)
        self.replica.kill()
        over.set()
        thread.join()
        _, self.end = self.source_end()

    def files(self) -> dict[str, bytes]:
        """What the kill left: relay logs, their index, info files."""
        wanted = re.compile(r"relay\.\d+|relay\.index|(relay-log|master)\.info")
        return {path.name: path.read_bytes() for path in self.replica.data.iterdir() if wanted.fullmatch(path.name)}

    def contents(self) -> list[list[tuple[int, int]]]:
        return [sorted(tuple(row) for row in self.replica.query(f"SELECT a, b FROM d.{table}")) for table in ("t", "n")]


def emulated(pair: KillPair, files: dict[str, bytes]) -> Replica:
    """The replica on these files, with the rows and GTIDs that the real one has after its restart."""
    tables = Tables()
    for statement, rows in zip(SCHEMA, pair.contents(), strict=True):
        table = tables.create(parse_create_table(statement, "d", SchemaRules()))
        for values in rows:
            table.insert(values)
    tables.commit()
    gtids = str(pair.replica.query("SELECT @@GLOBAL.gtid_executed")[0][0])
    storage = MemoryStorage(tables, executed_gtids=GtidSet(gtids))
    for name, found in pair.rows().items() if pair.repository == "TABLE" else ():
        for row in found:
            key = {column: row[column] for column in key_columns(TABLES[name], pair.version)}
            storage.info.write(name, key, before_recovery(files, row) if pair.recovery and name == "slave_relay_log_info" else row)
    configuration = ReplicaConfiguration(
        pair.version,
        server_version=str(pair.replica.query("SELECT @@version")[0][0]),
        relay_log_info_repository=pair.repository,
        master_info_repository=pair.repository,
        relay_log_recovery=bool(pair.recovery),
        gtid_mode=pair.replica.query("SELECT @@GLOBAL.gtid_mode")[0][0] == "ON",
        auto_position=pair.gtids,
        workers=1 if pair.version == "9.7" else 0,
    )
    source = BinlogFiles(pair.source_files(), uuid=str(pair.source.query("SELECT @@server_uuid")[0][0]), server_id=1)
    return Replica(SimulatedDisk(files), configuration, source, storage, clock=int)


def before_recovery(files: dict[str, bytes], row: dict[str, Any]) -> dict[str, Any]:
    """The recovery has put the new relay log into the row. Its source position is the old one; where that stands was its relay position."""
    for name in sorted(name for name in files if name.startswith("relay.0")):
        at = 4
        for data in events_of(files[name]):
            at += len(data)
            if int.from_bytes(data[13:17], "little") == row["Master_log_pos"] and int.from_bytes(data[5:9], "little") == 1:
                return row | {"Relay_log_name": f"./{name}", "Relay_log_pos": at}
    raise AssertionError(row)


@pytest.mark.parametrize(("version", "setup", "times"), MORE if ALL else CASES)
def test_kill(version: str, setup: str, times: int, server_factory: ServerFactory) -> None:
    with KillPair(server_factory, version, setup) as pair:
        for _ in range(times):
            pair.begin_anew()
            pair.kill_under_load(random.uniform(0.1, 0.6))
            files = pair.files()
            pair.replica.start()
            own = emulated(pair, files)
            own.start()
            assert shown(own) == pair.seen(pair.status())
            pair.run("START REPLICA")
            real, number = pair.settle(), 0
            try:
                own.receive()
                own.apply()
            except ReplicationError as error:
                number = error.number
            assert number == real["Last_SQL_Errno"]
            assert own.status.memory.applied is not None
            assert own.status.memory.applied.source_log_pos == real["Exec_Master_Log_Pos"]
            assert [sorted(table.rows()) for table in (own.tables["d.t"], own.tables["d.n"])] == pair.contents()
