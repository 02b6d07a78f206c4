"""Relay logs of ours are, event by event, those of a real replica that received the same log; and
MySQL's own reader reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from servers.installed import installed

from applier.binlog.header import EventFlag, EventType
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.replica import Replica
from applier.replica.source import BinlogFiles
from applier.replica.storage import MemoryStorage
from applier.tables.catalog import Tables
from checkpoints.simulated_disk import SimulatedDisk
from tests.replica.real_pairs import Pair
from tests.replica.recovery_scenarios import events_of
from tests.replica.replicas import Rig
from tests.servers.fixtures import ServerFactory, lacking

SIZE = 4096


def workload(pair: Pair) -> None:
    """Small and large transactions over two logs, so that relay logs are left for size and for the
    source's rotation."""
    source = pair.source
    source.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY, b TEXT)")
    source.execute(
        *(f"INSERT INTO d.t VALUES ({number}, REPEAT('x', {number * 60}))" for number in range(12))
    )
    source.execute("FLUSH BINARY LOGS")
    source.execute(
        *(
            f"INSERT INTO d.t VALUES ({number}, REPEAT('y', {number * 30}))"
            for number in range(20, 40)
        )
    )
    source.execute(
        "UPDATE d.t SET b = CONCAT(b, 'z')",
        "DELETE FROM d.t WHERE a < 5",
        "INSERT INTO d.t VALUES (90, 'z')",
    )


def shown(relay_log: bytes) -> list[tuple[object, ...]]:
    """Each event without what is the moment's: when our own events and the source's artificial ones
    were made."""
    found: list[tuple[object, ...]] = []
    for data in events_of(relay_log):
        flags, own = (
            int.from_bytes(data[17:19], "little"),
            int.from_bytes(data[5:9], "little") in (0, 9),
        )
        moment = own or flags & EventFlag.ARTIFICIAL
        body = data[19:-4]
        if data[4] == EventType.FORMAT_DESCRIPTION and own:
            body = body[:52] + bytes([any(body[52:56])]) + body[56:]
        found.append(
            (
                EventType(data[4]).name,
                flags,
                len(data),
                int.from_bytes(data[13:17], "little"),
                None if moment else data,
                body,
            )
        )
    return found


@pytest.mark.parametrize(("version", "gtids"), [("5.6", True), ("5.7", False), ("9.7", True)])
def test_like_a_real_replica(version: str, gtids: bool, server_factory: ServerFactory) -> None:
    with Pair(server_factory, version, gtids=gtids, max_relay_log_size=SIZE) as pair:
        workload(pair)
        pair.change_source()
        pair.run("START REPLICA IO_THREAD")
        file, position = pair.source_end()
        pair.wait(Master_Log_File=file, Read_Master_Log_Pos=position)
        pair.run("STOP REPLICA")
        real, files = pair.relay_logs(), pair.source_files()
        server_version = str(pair.replica.query("SELECT @@version")[0][0])
    configuration = ReplicaConfiguration(
        version,
        server_version=server_version,
        max_relay_log_size=SIZE,
        relay_log_purge=False,
        gtid_mode=gtids,
        auto_position=gtids,
    )
    disk = SimulatedDisk()
    replica = Replica(disk, configuration, BinlogFiles(files, server_id=1), MemoryStorage(Tables()))
    replica.start()
    replica.receive()
    own = {name: content for name, content in disk.contents().items() if name in real}
    assert list(own) == list(real)
    assert len(real) > 8
    for name, content in real.items():
        assert shown(own[name]) == shown(content), name


@pytest.mark.parametrize(
    ("capture", "version", "size"),
    [
        ("my_oltp_compressed_rotated", "9.7", 8192),
        ("my_tagged_gtid", "8.4", 8192),
        ("my57_xa", "5.7", 8192),
        ("my56_anonymous_nochecksum", "5.6", 0),
    ],
)
def test_mysqlbinlog_reads_them(capture: str, version: str, size: int, tmp_path: Path) -> None:
    """5.6 would split transactions for the sake of the size, which its reader warns of."""
    server = installed("9.7")
    if not server.there:
        lacking("9.7, whose mysqlbinlog reads relay logs, is not there")
    rig = Rig.of(capture)
    replica = rig.replica(version, max_relay_log_size=size, relay_log_purge=False)
    replica.receive()
    replica.apply()
    replica.shutdown()
    events = 0
    for name, content in rig.disk.contents().items():
        if name.rpartition(".")[2].isdigit():
            (tmp_path / name).write_bytes(content)
            command = [
                *server.command("mysqlbinlog"),
                "--no-defaults",
                "--verify-binlog-checksum",
                "--base64-output=decode-rows",
                "-v",
            ]
            done = subprocess.run(
                [*command, str(tmp_path / name)], capture_output=True, check=False
            )
            assert (done.returncode, done.stderr) == (0, b""), name
            events += done.stdout.count(b"# at ")
    assert events >= len(rig.relay_events(tmp_path))
