"""A real server takes over from the emulated replica: it reads our relay logs and info files and
goes on where we stopped."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from applier.replica.configuration import ReplicaConfiguration
from applier.replica.replica import Replica
from applier.replica.source import BinlogFiles
from applier.replica.storage import MemoryStorage
from applier.tables.catalog import Tables
from applier.tables.definitions.schema import parse_create_table
from applier.tables.definitions.table_draft import SchemaRules
from checkpoints.disk import RealDisk
from checkpoints.info import SourceInfo
from checkpoints.info_files import encode, parse
from tests.replica.real_pairs import Pair
from tests.servers.fixtures import ServerFactory

TABLE = "CREATE TABLE d.t (a INT PRIMARY KEY, b INT)"


@pytest.mark.parametrize(("version", "recovery", "applied"), [("5.6", 0, 5), ("5.7", 1, 3)])
def test_goes_on(
    version: str, recovery: int, applied: int, server_factory: ServerFactory, tmp_path: Path
) -> None:
    with Pair(server_factory, version, relay_log_recovery=recovery) as pair:
        for server in (pair.source, pair.replica):
            server.execute("SET sql_log_bin = 0", "CREATE DATABASE d", TABLE)
        pair.source.execute(
            *(f"INSERT INTO d.t VALUES ({number}, 0)" for number in range(8)),
            "UPDATE d.t SET b = a * 7",
        )
        uuid = str(pair.source.query("SELECT @@server_uuid")[0][0])
        tables = Tables()
        tables.create(parse_create_table(TABLE, "d", SchemaRules()))
        configuration = ReplicaConfiguration(
            version, server_version=str(pair.replica.query("SELECT @@version")[0][0])
        )
        source = BinlogFiles(pair.source_files(), uuid=uuid, server_id=1)
        ours = Replica(RealDisk(tmp_path), configuration, source, MemoryStorage(tables))
        ours.start()
        ours.receive()
        assert ours.apply(applied) == applied
        ours.shutdown()

        pair.replica.execute(
            "SET sql_log_bin = 0",
            *(f"INSERT INTO d.t VALUES ({a}, {b})" for a, b in tables["d.t"].rows()),
        )
        pair.replica.stop()
        for path in tmp_path.iterdir():
            shutil.copy(path, pair.replica.data)
        received = pair.replica.data / "master.info"
        record = parse(SourceInfo, received.read_bytes(), version).record
        login = {
            "host": "127.0.0.1",
            "port": pair.source.port,
            "user_name": pair.source.user,
            "user_password": pair.source.password,
        }
        received.write_bytes(encode(replace(record, **login), version))
        pair.replica.start()
        shown, memory = pair.status(), ours.status.memory
        assert memory.applied is not None
        assert shown["Exec_Master_Log_Pos"] == memory.applied.source_log_pos
        assert shown["Relay_Log_File"] == (
            "relay.000003" if recovery else memory.applied.relay_log_name.removeprefix("./")
        )
        pair.source.execute("INSERT INTO d.t VALUES (100, 100)")
        pair.run("START REPLICA")
        _, end = pair.source_end()
        pair.wait(Exec_Master_Log_Pos=end, Last_SQL_Errno=0)
        assert pair.replica.query("SELECT * FROM d.t ORDER BY a") == pair.source.query(
            "SELECT * FROM d.t ORDER BY a"
        )
