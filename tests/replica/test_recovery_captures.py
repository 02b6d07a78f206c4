"""Sixty real replicas were killed and restarted: from what the kill left, the emulated one comes to
the same files, rows and errors."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from applier.binlog.event_bytes import make_event
from applier.binlog.header import EventType
from applier.binlog.transactions import MEMBER_TYPES, TransactionTracker
from applier.errors import ReplicationError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.execute import Executor
from applier.replica.relay.relay_event import RelayEvent
from applier.replica.relay.relay_index import RelayLogIndex
from applier.replica.relay.relay_log import RelayLogWriter
from applier.replica.relay.relay_reader import FIRST_EVENT, RelayLogReader
from applier.replica.replica import Replica
from applier.replica.source import BinlogFiles
from applier.replica.storage import MemoryStorage
from checkpoints import bitmap
from checkpoints.gtid import GtidSet
from checkpoints.info import RelayLogInfo, WorkerInfo
from checkpoints.info_files import parse
from checkpoints.info_rows import from_row, key_columns
from checkpoints.position import Position
from checkpoints.simulated_disk import SimulatedDisk
from tests.checkpoints.recovery_captures import SERVERS, TABLES, folder
from tests.replica.recovery_scenarios import (
    Scenario,
    Step,
    all_scenarios,
    empty_tables,
    events_of,
    source_of,
)

SCENARIOS = all_scenarios()
INFO_FILES = re.compile(r"(relay-log|master|worker-relay-log)\.info.*")


def disk_after_kill(scenario: Scenario) -> SimulatedDisk:
    killed = scenario.killed
    files = {
        name: content
        for name, content in killed.files.items()
        if INFO_FILES.fullmatch(name) or name in killed.sizes
    }
    return SimulatedDisk({**files, "relay.index": killed.index.encode()})


def storage_after_kill(scenario: Scenario) -> MemoryStorage:
    """The info rows and GTIDs of the kill; the tables get their rows by executing what was
    executed."""
    shown = scenario.before_kill
    storage = MemoryStorage(
        empty_tables(), executed_gtids=GtidSet(shown.status.get("Executed_Gtid_Set", ""))
    )
    for table, rows in shown.rows.items():
        record = TABLES[table]
        for row in rows:
            key = {column: row[column] for column in key_columns(record, scenario.server)}
            storage.info.write(
                table, key, _before_recovery(scenario, row) if record is RelayLogInfo else row
            )
    return storage


def _before_recovery(scenario: Scenario, row: dict[str, Any]) -> dict[str, Any]:
    """One thread and relay_log_recovery=1: nobody saw the row before the recovery wrote the new
    relay log into it; its source position is the same, and the relay position is where that
    position stands."""
    if scenario.parallel or not scenario.recovery:
        return row
    name, position = _place(scenario, (row["Master_log_name"], row["Master_log_pos"]))
    return row | {"Relay_log_name": name, "Relay_log_pos": position}


def _place(scenario: Scenario, source: tuple[str, int]) -> tuple[str, int]:
    for name in sorted(scenario.killed.sizes):
        at = FIRST_EVENT
        for data in events_of(scenario.killed.files[name]):
            at += len(data)
            if (
                int.from_bytes(data[13:17], "little") == source[1]
                and int.from_bytes(data[5:9], "little") != 9
            ):
                return f"./{name}", at
    raise AssertionError(source)


def restart(scenario: Scenario, source: BinlogFiles) -> Replica:
    new = scenario.restarted.files.get(max(scenario.restarted.sizes), bytes(8))
    started = int.from_bytes(new[4:8], "little")
    storage = storage_after_kill(scenario)
    execute_what_was_executed(scenario, storage)
    return Replica(
        disk_after_kill(scenario), scenario.configuration(), source, storage, clock=lambda: started
    )


def infos(scenario: Scenario) -> tuple[RelayLogInfo, list[WorkerInfo]]:
    """The applier's record and those of the workers at the kill."""
    if scenario.tables:
        rows = scenario.before_kill.rows
        workers = [
            from_row(WorkerInfo, row, scenario.server) for row in rows.get("slave_worker_info", [])
        ]
        row = _before_recovery(scenario, rows["slave_relay_log_info"][0])
        return from_row(RelayLogInfo, row, scenario.server), workers
    files = scenario.killed.files
    found = [content for name, content in sorted(files.items()) if name.startswith("worker")]
    return parse(RelayLogInfo, files["relay-log.info"], scenario.server).record, [
        parse(WorkerInfo, content, scenario.server).record for content in found
    ]


def groups_in(scenario: Scenario) -> list[list[RelayEvent]]:
    """The groups in the relay logs of the kill, from the oldest file on."""
    disk = disk_after_kill(scenario)
    index = RelayLogIndex(disk, "relay")
    index.open()
    reader, tracker = RelayLogReader(disk, index), TransactionTracker()
    reader.seek(Position(index.names[0], FIRST_EVENT))
    found: list[list[RelayEvent]] = [[]]
    while (relay := reader.read() or (reader.read() if reader.move_on() else None)) is not None:
        if relay.event.type in MEMBER_TYPES:
            found[-1].append(relay)
            tracker.feed(relay.event, relay.format)
            if not tracker.in_transaction:
                found.append([])
    return found[:-1]


def executed_at_kill(scenario: Scenario) -> list[bool]:
    """Which of these groups were executed: all before the applier's position, and those in a
    worker's bitmap, which counts the groups after the checkpoint that the worker knows."""
    info, workers = infos(scenario)
    groups = groups_in(scenario)
    executed = [group[-1].end <= info.relay_position for group in groups]
    for worker in workers:
        if worker.relay_log_name:
            checkpoint = Position(worker.checkpoint_relay_log_name, worker.checkpoint_relay_log_pos)
            after = [number for number, group in enumerate(groups) if group[-1].end > checkpoint]
            for bit in bitmap.groups(worker.checkpoint_group_bitmap):
                executed[after[bit]] = True
    return executed


def execute_what_was_executed(scenario: Scenario, storage: MemoryStorage) -> None:
    """Brings the tables to the moment of the kill."""
    executor = Executor(
        MemoryStorage(storage.tables), scenario.server, before_commit=lambda relay, end: None
    )
    for group, executed in zip(groups_in(scenario), executed_at_kill(scenario), strict=True):
        for relay in group if executed else ():
            executor.feed(relay)


def counts(scenario: Scenario, replica: Replica) -> dict[str, int]:
    """Rows by table. What came with a log of the source that is no longer in the relay logs is five
    rows of each table t."""
    missing = 0 if "relay.000002" in scenario.killed.sizes else 5
    return {
        table.definition.full_name: len(table) + (missing if table.definition.name == "t" else 0)
        for table in replica.tables
    }


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_restart(scenario: Scenario) -> None:
    """Server start after the kill, before START SLAVE."""
    expected = scenario.restarted
    replica = restart(scenario, source_of(scenario))
    error = 0
    try:
        replica.start()
    except ReplicationError as raised:
        error = raised.number
    assert error == scenario.restarted.start_error
    check_files(replica, expected)
    check_positions(replica, expected)
    assert counts(scenario, replica) == expected.counts
    if not scenario.tables:
        for name in ("relay-log.info", "master.info"):
            assert replica.disk.contents()[name] == expected.files[name]  # type: ignore[attr-defined]
    else:
        check_rows(replica, expected)


def check_files(replica: Replica, expected: Step) -> None:
    contents = replica.disk.contents()  # type: ignore[attr-defined]
    assert {
        name: len(content) for name, content in contents.items() if name.startswith("relay.0")
    } == expected.sizes
    assert contents["relay.index"].decode() == expected.index
    for name in expected.sizes:
        if name in expected.files:
            assert contents[name] == expected.files[name], name


def check_positions(replica: Replica, expected: Step) -> None:
    stand = replica.status.memory
    assert stand.applied is not None
    assert stand.received is not None
    shown = (
        (stand.received.source_log_name, stand.received.source_log_pos),
        (stand.applied.relay_log_name.removeprefix("./"), stand.applied.relay_log_pos),
        (stand.applied.source_log_name, stand.applied.source_log_pos),
    )
    status = expected.status
    assert shown == (
        (status.get("Master_Log_File", ""), int(status["Read_Master_Log_Pos"])),
        (status["Relay_Log_File"], int(status["Relay_Log_Pos"])),
        (status.get("Relay_Master_Log_File", ""), int(status["Exec_Master_Log_Pos"])),
    )
    assert str(replica.status.retrieved_gtids) == status.get("Retrieved_Gtid_Set", "").replace(
        " ", ""
    )


def check_rows(replica: Replica, expected: Step, *, but: str = "") -> None:
    for table, rows in expected.rows.items():
        assert table == but or [dict(row) for row in replica.storage.info.rows(table)] == rows, (
            table
        )


def check_step(scenario: Scenario, replica: Replica, expected: Step) -> None:
    """Positions, relay logs and records; which worker did what is a matter of time where any free
    one is taken (LOGICAL_CLOCK)."""
    check_positions(replica, expected)
    contents = replica.disk.contents()  # type: ignore[attr-defined]
    assert {
        name: len(content) for name, content in contents.items() if name.startswith("relay.0")
    } == expected.sizes
    assert contents["relay.index"].decode() == expected.index
    if scenario.tables:
        check_rows(replica, expected, but="slave_worker_info" if "mts4lc" in scenario.name else "")
        return
    for name, content in expected.files.items():
        if INFO_FILES.fullmatch(name) and not (
            "mts4lc" in scenario.name and name.startswith("worker")
        ):
            assert contents[name] == content, name


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_catch_up(scenario: Scenario) -> None:
    """START SLAVE until everything of the source is there, or an error ends it; then a clean
    shutdown and another start."""
    expected = scenario.caught_up
    replica = restart(scenario, source_of(scenario, expected))
    error = 0
    try:
        replica.start()
        replica.receive()
        replica.apply()
    except ReplicationError as raised:
        error = raised.number
    assert error == (int(expected.status["Last_SQL_Errno"]) or scenario.restarted.start_error)
    check_step(scenario, replica, expected)
    after = scenario.step("clean shutdown")
    replica.shutdown()
    again = Replica(replica.disk, replica.configuration, replica.source, replica.storage)
    try:
        again.start()
    except ReplicationError as raised:
        assert raised.number == scenario.restarted.start_error
    check_step(scenario, again, after)


def kills() -> list[tuple[str, dict[str, Any]]]:
    """The kills under load of one-threaded replicas with info files: version, and what was seen."""
    found = []
    for path in sorted((folder() / "crash").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            seen = json.loads(line)
            if seen["combo"] in ("FILE0", "FILE1", "GTID1"):
                found.append((SERVERS[path.name[:4]], seen))
    return found


def stand_in(version: str, size: int) -> bytes:
    """A relay log of this size; the kills under load did not keep theirs."""
    disk = SimulatedDisk()
    writer = RelayLogWriter(disk, ReplicaConfiguration(version), clock=int)
    writer.open()
    content = disk.contents()["relay.000001"]
    filler = size - len(content) - 23
    return (
        content
        if filler < 0
        else content + make_event(EventType.ROWS_QUERY, bytes(filler), timestamp=1, server_id=1)
    )


def test_restart_after_kills_under_load() -> None:
    """72 kills: from the info files alone, the positions after the restart."""
    seen_kills = kills()
    assert len(seen_kills) == 72
    for version, seen in seen_kills:
        files = {
            name: text.encode("latin-1")
            for name, text in seen["after_kill"].items()
            if text is not None
        }
        logs = {
            name: stand_in(version, size)
            for name, size in seen["relay_files"].items()
            if name != "relay.index"
        }
        gtids = seen["combo"] == "GTID1"
        configuration = ReplicaConfiguration(
            version,
            relay_log_info_repository="FILE",
            master_info_repository="FILE",
            relay_log_recovery=seen["combo"] != "FILE0",
            gtid_mode=gtids,
            auto_position=gtids,
            workers=0,
        )
        source = BinlogFiles({})
        replica = Replica(
            SimulatedDisk({**files, **logs}),
            configuration,
            source,
            MemoryStorage(empty_tables()),
            clock=int,
        )
        replica.start()
        memory, shown = replica.status.memory, seen["restart"]
        assert memory.applied is not None
        assert memory.received is not None
        assert (memory.received.source_log_name, memory.received.source_log_pos) == (
            shown["Master_Log_File"],
            shown["Read_Master_Log_Pos"],
        )
        assert memory.applied.relay_log_name == f"./{shown['Relay_Log_File']}"
        assert memory.applied.relay_log_pos == shown["Relay_Log_Pos"]
        assert memory.applied.source_log_name == shown["Relay_Master_Log_File"]
        assert memory.applied.source_log_pos == shown["Exec_Master_Log_Pos"]
