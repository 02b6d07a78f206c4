"""MariaDB's master.info and relay-log.info: what a real replica writes comes back byte for byte,
and it reads ours, damaged ones too."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from applier.cli.main import main
from checkpoints.errors import CheckpointError, InfoError
from checkpoints.info import RelayLogInfo, SourceInfo
from checkpoints.info_files import encode, parse, versions_of
from tests.checkpoints.recovery_captures import overwritten
from tests.checkpoints.test_real_servers import RECORDS, RELAY, SOURCE, expected, status
from tests.replica.mariadb_pairs import MariadbPair
from tests.servers.fixtures import ServerFactory

VERSION = "mariadb"
FULL = SourceInfo(
    "mbinlog.000009", 654321, "db.example", "u", "p", 4444, 7, ssl_ca="/x/ca",
    heartbeat_period=3.25, ignored_server_ids=(3, 9),
    using_gtid="Slave_Pos", do_domain_ids=(0, 7),
)  # fmt: skip
APPLIED = RelayLogInfo("./relay.000001", 4, "mbinlog.000007", 123456, 12)


@pytest.mark.parametrize("using_gtid", ["no", "slave_pos", "current_pos"])
def test_files_of_a_real_replica(using_gtid: str, server_factory: ServerFactory) -> None:
    """Behind each step of its life: both files are read and written again as they are, and say what
    the status says."""
    domains = {
        "no": "",
        "slave_pos": ", DO_DOMAIN_IDS=(0, 7)",
        "current_pos": ", IGNORE_DOMAIN_IDS=(5)",
    }[using_gtid]
    more = f", IGNORE_SERVER_IDS=(3, 9){domains}"
    with MariadbPair(server_factory, using_gtid=using_gtid) as pair:
        pair.source.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
        pair.change_source(more)
        first = same(pair)
        assert first.using_gtid.lower() == using_gtid
        assert first.do_domain_ids == ((0, 7) if using_gtid == "slave_pos" else ())
        assert first.ignore_domain_ids == ((5,) if using_gtid == "current_pos" else ())
        pair.run("START REPLICA")
        pair.settle()
        same(pair)
        pair.source.execute(
            "INSERT INTO d.t VALUES (1)", "FLUSH LOGS", "INSERT INTO d.t VALUES (2)"
        )
        pair.settle()
        same(pair)
        pair.run("STOP REPLICA")
        stands(pair, same(pair))
        pair.change_source(", IGNORE_SERVER_IDS=(), MASTER_HEARTBEAT_PERIOD=1.5")
        assert same(pair).heartbeat_period == 1.5
        pair.replica.stop()
        pair.replica.start()
        stands(pair, same(pair))


def same(pair: MariadbPair) -> SourceInfo:
    for name, record in RECORDS.items():
        data = (pair.replica.data / name).read_bytes()
        read = parse(record, data, VERSION)
        assert read.encode() == data
        assert parse(record, data, VERSION, as_server=True) == read
        assert versions_of(record, data) == (VERSION,)
    return parse(SourceInfo, (pair.replica.data / SOURCE).read_bytes(), VERSION).record


def stands(pair: MariadbPair, source: SourceInfo) -> None:
    shown, relay = (
        pair.status(),
        parse(RelayLogInfo, (pair.replica.data / RELAY).read_bytes(), VERSION).record,
    )
    assert (shown["Master_Log_File"], shown["Read_Master_Log_Pos"]) == (
        source.source_log_name,
        source.source_log_pos,
    )
    assert (shown["Relay_Master_Log_File"], shown["Exec_Master_Log_Pos"]) == (
        relay.source_log_name,
        relay.source_log_pos,
    )
    assert shown["Using_Gtid"] == source.using_gtid


def damages() -> dict[str, tuple[str, bytes]]:
    relay, source = encode(APPLIED, VERSION), encode(FULL, VERSION)
    without = source.replace(b"using_gtid=2\n", b"")
    return {
        "nothing": (RELAY, relay),
        "cut inside the source position": (RELAY, relay[: relay.index(b"123456") + 3]),
        "no delay": (RELAY, relay.removesuffix(b"12\n")),
        "zeros at the end": (RELAY, relay[:20] + bytes(len(relay) - 20)),
        "a file of 5.5": (RELAY, relay.removeprefix(b"5\n")),
        "source: no key": (SOURCE, source[: source.index(b"using_gtid")]),
        "source: no marker": (SOURCE, source.removesuffix(b"END_MARKER\n")),
        "source: cut inside a key": (SOURCE, source[: source.index(b"do_domain_ids") + 4]),
        "source: keys in another order": (
            SOURCE,
            without.replace(b"END", b"other=3\nusing_gtid=2\nusing_gtid=1\nEND"),
        ),
        "source: key behind the marker": (SOURCE, without + b"using_gtid=2\n"),
        "source: too few server ids": (SOURCE, source.replace(b"2 3 9", b"4 3 9")),
    }


def test_a_real_server_reads_ours(server_factory: ServerFactory) -> None:
    server = server_factory(
        VERSION, options={"server_id": 9, "skip-slave-start": None, "relay-log": "relay"}
    )
    server.execute(
        "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_LOG_FILE='mbinlog.000001', "
        "MASTER_LOG_POS=4"
    )
    server.stop()
    good = {RELAY: encode(APPLIED, VERSION), SOURCE: encode(FULL, VERSION)}
    for damage, (name, data) in damages().items():
        given = good | {name: data}
        for file, content in given.items():
            (server.data / file).write_bytes(content)
        server.start()
        shown = status(server)
        server.stop()
        if expected(name, data, VERSION) is None:
            assert (server.data / name).read_bytes() == data, damage
            continue
        read = {
            file: parse(RECORDS[file], content, VERSION, as_server=True).record
            for file, content in given.items()
        }
        agrees(shown, read[RELAY], read[SOURCE], damage)
        for file, content in given.items():
            assert (server.data / file).read_bytes() == overwritten(
                content, encode(read[file], VERSION)
            ), damage


def agrees(shown: dict[str, Any], relay: RelayLogInfo, source: SourceInfo, damage: str) -> None:
    assert (shown["Relay_Log_Pos"], shown["Exec_Master_Log_Pos"]) == (
        relay.relay_log_pos,
        relay.source_log_pos,
    ), damage
    assert (shown["Relay_Master_Log_File"], shown["SQL_Delay"]) == (
        relay.source_log_name,
        relay.sql_delay,
    ), damage
    assert (shown["Master_Log_File"], shown["Read_Master_Log_Pos"]) == (
        source.source_log_name,
        source.source_log_pos,
    ), damage
    assert (shown["Master_Host"], shown["Master_Port"]) == (source.host, source.port), damage
    assert (shown["Using_Gtid"], shown["Replicate_Do_Domain_Ids"].replace(" ", "")) == (
        source.using_gtid,
        ",".join(map(str, source.do_domain_ids)),
    ), damage


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b"END_MARKER", b"END"), "END_MARKER is missing"),
        ((b"using_gtid=2", b"using_gtid=3"), "garbled: 3 is no number of a label between 0 and 2"),
        ((b"using_gtid", b"use_gtid"), "does not begin with b'using_gtid='"),
        ((b"2 3 9\n\n", b"2 3 9\nx\n"), "in a line that the server keeps free"),
    ],
)
def test_what_no_server_writes(change: tuple[bytes, bytes], message: str) -> None:
    with pytest.raises(InfoError, match=message):
        parse(SourceInfo, encode(FULL, VERSION).replace(*change, 1), VERSION, file="master.info")


def test_what_only_one_of_the_two_has() -> None:
    with pytest.raises(CheckpointError, match="MariaDB has no Enabled_auto_position"):
        encode(SourceInfo(enabled_auto_position=True), VERSION)
    with pytest.raises(
        CheckpointError, match=r"MySQL 5\.7 has no Using_gtid, which is 'Slave_Pos'"
    ):
        encode(replace(FULL, do_domain_ids=()), "5.7")
    with pytest.raises(CheckpointError, match="MariaDB has no Number_of_workers"):
        encode(RelayLogInfo(number_of_workers=4), VERSION)


def old_words(name: str) -> str:
    """As `Pair.status` has it."""
    return name.replace("Replica", "Slave").replace("Source", "Master")


@pytest.mark.parametrize("using_gtid", ["no", "slave_pos"])
def test_status_of_a_data_directory(
    using_gtid: str, server_factory: ServerFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """`binlag status` beside SHOW SLAVE STATUS of the server that was started on the same files."""
    with MariadbPair(server_factory, using_gtid=using_gtid) as pair:
        pair.source.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
        pair.change_source(
            ", IGNORE_SERVER_IDS=(3)" + (", DO_DOMAIN_IDS=(0, 7)" if using_gtid != "no" else "")
        )
        pair.run("START REPLICA")
        pair.settle()
        pair.replica.kill()
        with pytest.raises(SystemExit) as end:
            main(["status", str(pair.replica.data), "--json", "--old-names"])
        assert end.value.code == 0
        told = json.loads(capsys.readouterr().out)
        pair.replica.start()
        real = pair.status()
    assert told["server"] == VERSION
    moved = {"Relay_Log_Space", "Gtid_IO_Pos", "Master_Server_Id"}
    differences = {
        name: (value, real[old_words(name)])
        for name, value in told["status"].items()
        if value is not None and name not in moved and str(value) != str(real[old_words(name)])
    }
    assert differences == {}
    assert {
        "Using_Gtid",
        "Replicate_Do_Domain_Ids",
        "Exec_Master_Log_Pos",
        "Relay_Log_File",
        "Master_Log_File",
    } <= {name for name, value in told["status"].items() if value is not None}
