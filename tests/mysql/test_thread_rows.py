"""Rows of slave_worker_info and slave_master_info beside the position, as a real replica has them,
and shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from servers.server import Server

from applier.cli.main import main
from applier.mysql.client.connection import connect
from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.mysql.positions.thread_rows import infos, source_of
from applier.options import parse_options
from checkpoints.info import SourceInfo, WorkerInfo
from checkpoints.info_files import encode
from checkpoints.position import Position
from tests.captures_support import CAPTURES, logs
from tests.mysql.server_support import Servers, endpoint
from tests.receive.receiving import Offline
from tests.servers.fixtures import ServerFactory

CAPTURE = {
    "5.6": "my56_anonymous_nochecksum",
    "5.7": "my57_xa",
    "9.7": "my_nokey_duplicates",
    "mariadb": "ma_ddl",
}
SOURCE = SourceInfo(
    source_log_name="binlog.000007", source_log_pos=4711, host="db.example", user_name="repl",
    user_password="secret",
    uuid="8a94f357-aab4-11df-86ab-c80aa9429562", heartbeat_period=2.5,
)  # fmt: skip


@pytest.fixture(scope="module")
def servers(server_factory: ServerFactory) -> Iterator[Servers]:
    made = Servers(server_factory)
    yield made
    made.close()


def received(folder: Path, version: str) -> list[str]:
    """Relay logs of the version's capture, with the master.info of a receiver beside them."""
    Offline(folder, logs(CAPTURES / "open" / CAPTURE[version])).receive()
    (folder / "master.info").write_bytes(encode(SOURCE, "8.0"))
    return [str(path) for path in sorted(folder.glob("relay-bin.0*"))]


def replay(server: Server, version: str, files: list[str], workers: int) -> Position:
    into = IntoOptions(
        schema=str(CAPTURES / "open" / CAPTURE[version] / "before.sql"),
        batch=1, force=True, workers=workers, replay_id="r",
    )  # fmt: skip
    outcome = replay_into(files, endpoint(server), parse_options(), into)
    assert outcome.error is None
    return Position(str(outcome.file), outcome.position)


def kept(server: Server) -> tuple[list[WorkerInfo], list[SourceInfo], int]:
    connected = connect(endpoint(server))
    found = infos(connected, WorkerInfo, "r"), infos(connected, SourceInfo, "r")
    connected.close()
    [(count,)] = server.query("SELECT Number_of_workers FROM binlag.slave_relay_log_info")
    return *found, int(count)


@pytest.mark.parametrize("version", CAPTURE)
def test_the_rows_are_a_servers(version: str, servers: Servers, tmp_path: Path) -> None:
    server = servers.empty(version)
    files = received(tmp_path, version)
    end = replay(server, version, files, workers=3)
    workers, sources, count = kept(server)
    assert [(info.id, info.channel_name) for info in workers] == [(1, "r"), (2, "r"), (3, "r")]
    assert count == 3
    assert all(
        info.relay_position.offset <= end.offset
        for info in workers
        if info.relay_log_name == end.file
    )
    [source] = sources
    assert (source.host, source.user_name, source.uuid, source.heartbeat_period) == (
        "db.example", "repl", SOURCE.uuid, 2.5,
    )  # fmt: skip
    assert (source.source_position, source.channel_name) == (SOURCE.source_position, "r")
    assert source.user_password == ""
    assert replay(server, version, files, workers=1) == end
    assert kept(server) == ([], sources, 0)


def test_status_shows_them(
    servers: Servers,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = servers.empty("9.7")
    end = replay(server, "9.7", received(tmp_path, "9.7"), workers=2)
    monkeypatch.setenv("BINLAG_PASSWORD", server.password)
    with pytest.raises(SystemExit):
        main(["status", f"mysql://root@localhost?socket={server.socket}", "--json"])
    [channel] = json.loads(capsys.readouterr().out)
    expected = {
        "Source_Host": "db.example", "Source_User": "repl", "Source_Log_File": "binlog.000007",
        "Read_Source_Log_Pos": 4711, "Source_UUID": SOURCE.uuid, "Relay_Log_Pos": end.offset,
        "Source_Info_File": "binlag.slave_master_info",
    }  # fmt: skip
    assert {name: channel["status"][name] for name in expected} == expected
    assert [worker["id"] for worker in channel["workers"]] == [1, 2]


def test_a_log_that_is_no_relay_log_has_no_source(tmp_path: Path) -> None:
    """master.info beside binary logs is that of the server which wrote them."""
    [log] = logs(CAPTURES / "open" / CAPTURE["9.7"])
    copy = tmp_path / "binlog.000001"
    copy.write_bytes(log.read_bytes())
    (tmp_path / "master.info").write_bytes(encode(SOURCE, "8.0"))
    assert source_of([str(copy)]) is None
    files = received(tmp_path / "relay", "9.7")
    assert source_of(files) == replace(SOURCE, user_password="")
    (tmp_path / "relay" / "master.info").write_bytes(b"\0" * 100)
    assert source_of(files) is None
