"""SHOW REPLICA STATUS and performance_schema: columns of real servers, values of real replicas'
files, and moments of a simulation."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from servers.server import Server

from applier.errors import InputError, UsageError
from applier.receive.folder_view import view_of_folder
from applier.status.failure import NO_FAILURE, ThreadFailure
from applier.status.performance_schema import TABLES, performance_schema, timestamp
from applier.status.status import column_names, old_name, show_status
from applier.status.view import NOTHING, ReplicaView, Thread
from applier.timing.clock import ClockConfiguration
from applier.timing.simulate import simulate
from applier.timing.simulation_view import view_at
from applier.timing.timed import TimedTransaction
from checkpoints.info import RelayLogInfo, SourceInfo
from tests.checkpoints.recovery_captures import scenarios, text_of, version
from tests.receive.receiving import Offline
from tests.replica.replicas import Rig, logs_of
from tests.servers.fixtures import ServerFactory

UUID = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
ZERO = "0000-00-00 00:00:00.000000"
PLACE = "HOST='127.0.0.1', {0}_USER='nobody', {0}_PORT=1"


def answer(server: Server, statement: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Columns and rows."""
    import pymysql

    with pymysql.connect(
        unix_socket=str(server.socket), user=server.user, password=server.password or ""
    ) as connection:
        cursor = connection.cursor()
        cursor.execute(statement)
        names = [column[0] for column in cursor.description or ()]
        return names, [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@pytest.mark.parametrize("name", ["5.6", "5.7", "9.7", "mariadb"])
def test_columns_and_their_order_are_the_servers(server_factory: ServerFactory, name: str) -> None:
    server = server_factory(name)
    word = "SOURCE" if name == "9.7" else "MASTER"
    change = "CHANGE REPLICATION SOURCE" if name == "9.7" else "CHANGE MASTER"
    server.execute(f"{change} TO {word}_{PLACE.format(word)}")
    columns, rows = answer(server, "SHOW REPLICA STATUS" if name == "9.7" else "SHOW SLAVE STATUS")
    assert column_names(name) == tuple(columns)
    view = fresh(name)
    assert differences(show_status(view), rows[0]) == {}
    assert sum(value is not None for value in show_status(view).values()) > 35
    for table, expected in TABLES[name].items():
        columns, rows = answer(server, f"SELECT * FROM performance_schema.{table}")
        assert expected == tuple(columns), table
        ours = performance_schema(view)[table]
        assert len(ours) == len(rows), table
        assert [differences(*pair) for pair in zip(ours, rows, strict=True)] == [{}] * len(rows), (
            table
        )
    server.close()


def fresh(version: str) -> ReplicaView:
    """A replica that knows its source and has never run, without workers."""
    idle = Thread("OFF", "", NO_FAILURE, NOTHING, NOTHING)
    source = SourceInfo(host="127.0.0.1", user_name="nobody", port=1)
    if version == "9.7":
        source = replace(source, retry_count=10, enabled_ssl=True)
    if version == "mariadb":
        source = replace(source, using_gtid="Slave_Pos")  # since 10.10, when nobody says it
    return ReplicaView(
        version=version,
        source=source,
        relay=replace(RelayLogInfo(), source_log_pos=0),
        receiver=idle,
        applier=idle,
        retrieved="",
        executed="",
        source_server_id=0,
    )


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """What is known here and other there, but for the names of relay logs."""
    known = {
        column: value
        for column, value in ours.items()
        if value is not None and not column.startswith("Relay_Log_")
    }
    return {
        column: (value, theirs[column])
        for column, value in known.items()
        if str(value) != str(theirs[column])
    }


def test_names_of_then_and_today() -> None:
    assert [
        old_name(name)
        for name in (
            "Seconds_Behind_Source",
            "Replica_IO_Running",
            "Replicate_Do_DB",
            "Get_Source_public_key",
        )
    ] == [
        "Seconds_Behind_Master",
        "Slave_IO_Running",
        "Replicate_Do_DB",
        "Get_master_public_key",
    ]
    assert "Seconds_Behind_Master" in column_names("8.0", old_names=True)
    with pytest.raises(ValueError, match="no SHOW SLAVE STATUS"):
        column_names("9.7", old_names=True)
    with pytest.raises(ValueError, match="no SHOW REPLICA STATUS"):
        column_names("5.7", old_names=False)


def test_what_is_not_known_is_null() -> None:
    status = show_status(ReplicaView(version="9.7"))
    assert {column: value for column, value in status.items() if value is not None} == {
        "Channel_Name": ""
    }
    for rows in performance_schema(ReplicaView(version="9.7")).values():
        for row in rows:
            assert {value for value in row.values() if value is not None} <= {"", 0}


# files of real replicas


def step(scenario: Path, number: int) -> tuple[dict[str, str], Path]:
    """What SHOW SLAVE STATUS said at a step, without its empty fields, and the folder with the
    files of all steps."""
    found = re.search(
        rf"^## {number}\. .*?^SHOW SLAVE STATUS.*?^```\n(.*?)^```", text_of(scenario), re.M | re.S
    )
    assert found is not None
    return dict(
        line.split(": ", 1) for line in found[1].splitlines() if ": " in line
    ), scenario / "raw"


FILE_SCENARIOS = [scenario for scenario in scenarios() if "_file_" in scenario.name]
TOLD_BY_FILES = (
    "Master_Port Connect_Retry Master_Log_File Read_Master_Log_Pos Relay_Log_File Relay_Log_Pos "
    "Relay_Master_Log_File Slave_IO_Running "
    "Slave_SQL_Running Exec_Master_Log_Pos Master_UUID SQL_Delay Master_Retry_Count Auto_Position "
    "Seconds_Behind_Master"
).split()


@pytest.mark.parametrize("scenario", FILE_SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_files_of_a_stopped_replica_tell_its_status(scenario: Path, tmp_path: Path) -> None:
    for number in (1, 3):  # after CHANGE MASTER, after STOP SLAVE
        shown, raw = step(scenario, number)
        folder = tmp_path / str(number)
        folder.mkdir()
        for path in raw.glob(f"{number}.*"):
            (folder / path.name.removeprefix(f"{number}.")).write_bytes(path.read_bytes())
        view, notes = view_of_folder(folder, version(scenario))
        ours = show_status(view)
        assert notes == []
        for column in TOLD_BY_FILES:
            if column in shown:
                assert "None" if ours[column] is None else str(ours[column]) == shown[column], (
                    column
                )
        assert len(view.worker_infos) == (4 if "mts4" in scenario.name and number == 3 else 0)


def test_relay_logs_tell_what_was_received(tmp_path: Path) -> None:
    """After kill -9 the receiver's record is old; the relay logs are not."""
    scenario = next(
        scenario for scenario in FILE_SCENARIOS if scenario.name == "my57_file_mts4_gtid_ap1_rec0"
    )
    shown, raw = step(scenario, 4)
    names = []
    for path in sorted(raw.glob("5.*")):
        name = path.name.removeprefix("5.")
        if name.endswith(".gz"):
            name = name.removesuffix(".gz")
            names.append(f"./{name}\n")
            (tmp_path / name).write_bytes(gzip.decompress(path.read_bytes()))
        else:
            (tmp_path / name).write_bytes(path.read_bytes())
    (tmp_path / "relay.index").write_text("".join(names))
    view, _ = view_of_folder(tmp_path)
    assert view.version == "5.7"
    assert view.retrieved == shown["Retrieved_Gtid_Set"]
    assert (view.source_file, str(view.read_position)) == (
        shown["Master_Log_File"],
        shown["Read_Master_Log_Pos"],
    )
    assert str(view.source_server_id) == shown["Master_Server_Id"]
    assert show_status(view)["Relay_Log_Space"] == sum(
        path.stat().st_size for path in tmp_path.glob("relay.0*")
    )


@pytest.mark.parametrize(
    ("name", "gtids"),
    [("my57_xa", True), ("my56_anonymous_nochecksum", False), ("ma_xa_domains", True)],
)
def test_the_folder_of_our_own_receiver(name: str, gtids: bool, tmp_path: Path) -> None:
    """Running as long as somebody holds its lock; of an applier nothing is known."""
    logs = logs_of(name)
    offline = Offline(tmp_path, logs)
    offline.receive()
    ended = show_status(view_of_folder(tmp_path)[0])
    receiver, _ = offline.connect()
    running = show_status(view_of_folder(tmp_path)[0])
    receiver.folder.abandon()
    position = receiver.folder.progress.position
    assert (ended["Replica_IO_Running"], running["Replica_IO_Running"]) == ("No", "Yes")
    assert (ended["Source_Log_File"], ended["Read_Source_Log_Pos"]) == (
        position.file,
        position.offset,
    )
    assert bool(ended["Retrieved_Gtid_Set"]) == gtids
    assert ended["Relay_Log_Space"] > sum(log.stat().st_size for log in logs) * 0.9
    for column in (
        "Exec_Source_Log_Pos",
        "Replica_SQL_Running",
        "Seconds_Behind_Source",
        "Executed_Gtid_Set",
    ):
        assert ended[column] is None


def test_logs_that_lay_in_a_folder_of_their_own(tmp_path: Path) -> None:
    """log_bin and relay_log with a folder: the index and the record have it in each name."""
    there = "/var/log/mysql"
    rig = Rig.of("my57_xa")
    replica = rig.replica("5.7")
    replica.receive()
    replica.apply(3)
    for name, content in rig.disk.contents().items():
        (tmp_path / name).write_bytes(content.replace(b"./relay.0", f"{there}/relay.0".encode()))
    (tmp_path / "binlog.index").write_text(f"{there}/binlog.000001\n")
    shown = show_status(view_of_folder(tmp_path)[0])
    newest = replica.status.relay_logs[-1].removeprefix("./")
    applied = replica.status.memory.applied
    assert applied is not None
    assert f"./{shown['Relay_Log_File']}" == applied.relay_log_name
    assert shown["Relay_Log_Space"] >= len(rig.disk.contents()[newest])


def test_folders_that_tell_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no replica"):
        view_of_folder(tmp_path)
    with pytest.raises(InputError, match="not a folder"):
        view_of_folder(tmp_path / "missing")
    (tmp_path / "master.info").write_bytes(b"nonsense")
    view, notes = view_of_folder(tmp_path, "5.7")
    assert view.source is None
    assert len(notes) == 1
    assert "master.info" in notes[0]


@pytest.mark.parametrize("name", ["relay-log.info", "master.info"])
def test_an_empty_info_file_is_said(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    view, notes = view_of_folder(tmp_path)
    assert (view.relay, view.source, view.version) == (None, None, "8.0")
    assert len(notes) == 1
    assert "the file is empty" in notes[0]
    assert name in notes[0]


# moments of a simulation


def log() -> list[TimedTransaction]:
    """Six transactions half a second apart, two seconds of work each, in one group commit."""
    return [
        TimedTransaction(
            1000.25 + number / 2,
            2.0,
            100,
            5,
            min(number, 1),
            number + 1,
            gtid=f"{UUID}:{number + 1}",
            original_commit=990.5,
            file="binlog.000001",
            position=number * 100 + 4,
            end=number * 100 + 104,
            errors=1 if number == 2 else 0,
        )
        for number in range(6)
    ]


def at(moment: float, **options: Any) -> ReplicaView:
    transactions = log()
    return view_at(
        simulate(transactions, ClockConfiguration(start=1000.0, clock_difference=0, **options)),
        transactions,
        moment,
    )


def test_workers_at_a_moment() -> None:
    rows = performance_schema(at(1003.3, server="9.7", workers=2, preserve_commit_order=False))
    first, second = rows["replication_applier_status_by_worker"]
    assert (first["WORKER_ID"], second["WORKER_ID"]) == (1, 2)
    assert first["LAST_APPLIED_TRANSACTION"] == f"{UUID}:1"
    assert (
        first["LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP"] == "1970-01-01 00:16:30.500000"
    )
    assert (
        first["LAST_APPLIED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP"] == "1970-01-01 00:16:40.250000"
    )
    assert first["LAST_APPLIED_TRANSACTION_START_APPLY_TIMESTAMP"] == "1970-01-01 00:16:40.250000"
    assert first["LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP"] == "1970-01-01 00:16:42.250000"
    assert (second["APPLYING_TRANSACTION"], second["LAST_APPLIED_TRANSACTION"]) == (f"{UUID}:3", "")
    assert second["LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP"] == ZERO
    coordinator = rows["replication_applier_status_by_coordinator"][0]
    assert coordinator["LAST_PROCESSED_TRANSACTION"] == f"{UUID}:3"
    assert coordinator["PROCESSING_TRANSACTION"] == f"{UUID}:4"
    received = rows["replication_connection_status"][0]
    assert received["LAST_QUEUED_TRANSACTION"] == f"{UUID}:6"
    assert received["QUEUEING_TRANSACTION"] == ""


def test_the_single_applier_is_worker_0() -> None:
    rows = performance_schema(at(1003.0, server="5.7", workers=0))
    assert rows["replication_applier_status_by_coordinator"] == []
    (worker,) = rows["replication_applier_status_by_worker"]
    assert (worker["WORKER_ID"], worker["LAST_SEEN_TRANSACTION"], worker["SERVICE_STATE"]) == (
        0,
        f"{UUID}:2",
        "ON",
    )


@pytest.mark.parametrize(
    ("moment", "read", "executed", "behind"),
    [(1000.3, 104, None, 0), (1003.0, 604, 104, 3), (1020.0, 604, 604, 0)],
)
def test_positions_at_a_moment(moment: float, read: int, executed: int | None, behind: int) -> None:
    status = show_status(at(moment, server="5.7", workers=0))
    assert (
        status["Read_Master_Log_Pos"],
        status["Exec_Master_Log_Pos"],
        status["Seconds_Behind_Master"],
    ) == (read, executed, behind)
    assert (status["Slave_IO_Running"], status["Slave_SQL_Running"]) == ("Yes", "Yes")


def test_states_and_errors_at_a_moment() -> None:
    caught_up = show_status(at(1020.0, server="5.6", workers=0))
    assert (
        caught_up["Slave_SQL_Running_State"]
        == "Slave has read all relay log; waiting for the slave I/O thread to update it"
    )
    stopped = show_status(at(1020.0, server="5.6", workers=2))
    assert (
        stopped["Slave_SQL_Running"],
        stopped["Last_SQL_Errno"],
        stopped["Seconds_Behind_Master"],
    ) == ("No", 1213, None)
    assert stopped["Last_SQL_Error_Timestamp"].startswith("700101 00:16:")
    delayed = show_status(at(1004.5, server="8.0", workers=0, delay_seconds=30))
    assert (delayed["SQL_Delay"], delayed["SQL_Remaining_Delay"]) == (30, 27)
    assert (
        delayed["Replica_SQL_Running_State"]
        == "Waiting until SOURCE_DELAY seconds after source executed event"
    )
    tables = performance_schema(at(1004.5, server="8.0", workers=0, delay_seconds=30))
    assert tables["replication_applier_status"][0]["REMAINING_DELAY"] == 27


def test_an_error_of_the_applier() -> None:
    failure = ThreadFailure(1032, "Can't find record", 1000.0)
    status = show_status(ReplicaView(version="9.7", applier=Thread("OFF", "", failure)))
    assert (status["Last_Errno"], status["Last_SQL_Error"]) == (1032, "Can't find record")


def test_a_simulation_and_its_transactions_belong_together() -> None:
    with pytest.raises(UsageError):
        view_at(simulate(log()), log()[:2], 1000.0)


def test_timestamps() -> None:
    assert [timestamp(moment) for moment in (None, 0.0, 1_700_000_000.25)] == [
        ZERO,
        ZERO,
        "2023-11-14 22:13:20.250000",
    ]
    assert [timestamp(moment, 0) for moment in (None, 1_700_000_000.25)] == [
        "0000-00-00 00:00:00",
        "2023-11-14 22:13:20",
    ]
