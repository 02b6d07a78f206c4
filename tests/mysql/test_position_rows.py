"""The position of a replay is a row of slave_relay_log_info: as a real replica has it, taken over
from before, and shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.server import Server

from applier.cli.main import main
from applier.mysql.feed import UNKNOWN, Feed
from applier.mysql.into import ReplayWatch, replay_into
from applier.mysql.into_options import IntoOptions
from applier.mysql.outcome import TargetOutcome
from applier.options import parse_options
from checkpoints.info import RelayLogInfo
from checkpoints.info_rows import columns, from_row
from checkpoints.position import Position
from tests.captures_support import CAPTURES, logs
from tests.mysql.server_support import VERSIONS, Servers, endpoint
from tests.servers.fixtures import ServerFactory

OF = {
    "5.6": "my56_anonymous_nochecksum",
    "5.7": "my57_xa",
    "9.7": "my_nokey_duplicates",
    "mariadb": "ma_ddl",
}
"""Version -> a capture of it."""
RELAY = CAPTURES / "open" / "my_relay_until_gtid"
OLD_TABLE = """CREATE TABLE binlag.position (
  replay VARCHAR(64) CHARACTER SET utf8 COLLATE utf8_bin NOT NULL PRIMARY KEY,
  file VARCHAR(512) CHARACTER SET utf8 NOT NULL,
  `offset` BIGINT UNSIGNED NOT NULL, gtids LONGTEXT CHARACTER SET ascii NOT NULL,
  transactions BIGINT UNSIGNED NOT NULL,
  state LONGTEXT CHARACTER SET utf8 NOT NULL) ENGINE=InnoDB"""
"""As it was made before."""


@pytest.fixture(scope="module")
def servers(server_factory: ServerFactory) -> Iterator[Servers]:
    made = Servers(server_factory)
    yield made
    made.close()


def replay(server: Server, version: str, *, transactions: int | None = None) -> TargetOutcome:
    """To the end of the log, or so many transactions of it."""
    left = [transactions]

    def stopped() -> bool:
        left[0] = None if left[0] is None else left[0] - 1
        return left[0] is not None and left[0] <= 0

    capture = CAPTURES / "open" / OF[version]
    into = IntoOptions(schema=str(capture / "before.sql"), batch=1, force=True)
    return replay_into(
        [str(log) for log in logs(capture)],
        endpoint(server),
        parse_options(),
        into,
        ReplayWatch(stopped=stopped),
    )


def row(server: Server) -> dict[str, object]:
    names = [
        name
        for (name,) in server.query(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'binlag' "
            "AND TABLE_NAME = 'slave_relay_log_info' ORDER BY ORDINAL_POSITION"
        )
    ]
    [values] = server.query("SELECT * FROM binlag.slave_relay_log_info")
    return dict(zip(names, values, strict=True))


def contents(server: Server) -> list[tuple[object, ...]]:
    return [
        server.query(f"CHECKSUM TABLE `{database}`.`{name}`")[0]
        for database, name in server.query(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT "
            "IN "
            "('mysql', 'sys', 'test', 'binlag', 'information_schema', 'performance_schema') "
            "ORDER BY 1, 2"
        )
    ]


def test_where_a_transaction_of_a_relay_log_ends_on_the_source() -> None:
    """As the real replica's row has it that stopped there."""
    state = json.loads((RELAY / "state_1_until.json").read_text())["slave_relay_log_info"][0]
    files = [str(RELAY / "relay_1_until" / f"relay.00000{number}") for number in range(1, 9)]
    relay = Position(state["Relay_log_name"].removeprefix("./"), state["Relay_log_pos"])
    source = Position(state["Master_log_name"], state["Master_log_pos"])
    found = {one.end: one.source_end for one in Feed(files, parse_options())}
    assert found[relay] == source
    behind = {
        one.end: one.source_end
        for one in Feed(files, parse_options(), start=relay, source_file=source.file)
    }
    assert behind == {end: found[end] for end in behind}
    unknown = [one.source_end.file for one in Feed(files, parse_options(), start=relay)]
    assert unknown[0] == UNKNOWN.file
    assert unknown[-1] == found[max(behind, key=str)].file


@pytest.mark.parametrize("version", VERSIONS)
def test_the_row_is_a_servers(version: str, servers: Servers) -> None:
    server = servers.empty(version)
    outcome = replay(server, version)
    assert outcome.error is None
    found = row(server)
    own = columns(RelayLogInfo, "9.7")
    assert tuple(found) == (*own, "binlag_gtids", "binlag_transactions", "binlag_state")
    info = from_row(RelayLogInfo, {name: found[name] for name in own}, "9.7")
    place = Position(str(outcome.file), outcome.position)
    assert info == RelayLogInfo(channel_name=outcome.replay).at(place, place)
    assert found["binlag_transactions"] == outcome.total_transactions


@pytest.mark.parametrize("version", VERSIONS)
def test_a_position_of_an_older_binlag_is_taken_over(version: str, servers: Servers) -> None:
    server = servers.empty(version)
    replay(server, version)
    whole, end = contents(server), row(server)
    server = servers.empty(version)
    first = replay(server, version, transactions=3)
    assert first.interrupted
    before = row(server)
    server.execute(
        OLD_TABLE,
        "INSERT INTO binlag.position SELECT Channel_name, Relay_log_name, Relay_log_pos, "
        "binlag_gtids, binlag_transactions, binlag_state "
        "FROM binlag.slave_relay_log_info",
        "INSERT INTO binlag.position VALUES ('another', 'x', 4, '', 0, '{}')",
        "DROP TABLE binlag.slave_relay_log_info",
    )
    then = replay(server, version)
    assert then.error is None
    assert then.resumed_from == f"{before['Relay_log_name']}:{before['Relay_log_pos']}"
    assert (contents(server), row(server)) == (whole, end)
    assert server.query("SELECT replay FROM binlag.position") == (("another",),)


def test_status_shows_the_replays_of_a_server(
    servers: Servers,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = servers.empty("9.7")
    monkeypatch.setenv("BINLAG_PASSWORD", server.password)
    url = f"mysql://root@localhost?socket={server.socket}"

    def status(*options: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["status", url, *options])
        return int(end.value.code or 0), *capsys.readouterr()

    code, _, said = status()
    assert (code, "keeps no position of a replay" in said) == (2, True)
    outcome = replay(server, "9.7")
    code, shown, _ = status("--json")
    [channel] = json.loads(shown)
    assert code == 0
    expected = {
        "Channel_Name": outcome.replay,
        "Relay_Log_File": outcome.file,
        "Relay_Log_Pos": outcome.position,
        "Relay_Source_Log_File": outcome.file,
        "Exec_Source_Log_Pos": outcome.position,
        "Replica_SQL_Running": "No",
        "Replica_IO_Running": None,
        "Executed_Gtid_Set": outcome.gtids,
    }
    assert {name: channel["status"][name] for name in expected} == expected
    assert channel["server"] == "9.7"
    code, shown, _ = status()
    assert f"Exec_Source_Log_Pos: {outcome.position}" in shown
    server.execute(
        "INSERT INTO binlag.slave_relay_log_info SELECT 14, 'x.000001', 4, 'y.000002', 5, 0, 0, 1, "
        "'other', NULL, NULL, 0, "
        "'STREAM', 'OFF', '', '', 0, '{}'"
    )
    assert [one["status"]["Channel_Name"] for one in json.loads(status("--json")[1])] == sorted(
        [outcome.replay, "other"]
    )
    assert len(json.loads(status("--json", "--channel", "other")[1])) == 1
    assert "there is no replay 'none'" in status("--channel", "none")[2]
