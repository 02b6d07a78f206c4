"""Damaged and missing files: an error that names the file and the place, and nothing that was there
is written over."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from applier.binlog.header import EventType
from applier.errors import ReplicationError
from applier.replica.interleaving import InOrder
from applier.tables.catalog import Tables
from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.execution import apply_ddl
from checkpoints.info import RelayLogInfo
from checkpoints.info_files import parse
from checkpoints.simulated_disk import SimulatedDisk
from tests.replica.recovery_scenarios import events_of
from tests.replica.replicas import Rig, contents, replayed

DOCUMENT = Path(__file__).parents[2] / "docs" / "concepts" / "where-the-replica-stands.md"


def stopped(version: str = "5.7") -> Rig:
    """A replica that has applied half of what it has received."""
    rig = Rig.of("my57_xa")
    replica = rig.replica(version)
    replica.receive(200)
    replica.apply(10)
    replica.shutdown()
    return rig


class Youngest(InOrder):
    """The youngest group that may run, so that gaps are left."""

    def next(self, runnable: int) -> int:
        return runnable - 1


def with_file(rig: Rig, name: str, content: bytes | None) -> dict[str, bytes]:
    files = {**rig.disk.contents(), **({} if content is None else {name: content})}
    if content is None:
        del files[name]
    rig.disk = SimulatedDisk(files)
    return files


@pytest.mark.parametrize(
    ("name", "damage", "number", "message"),
    [
        ("relay-log.info", lambda data: b"", 1872, r"the file is empty.*relay-log\.info"),
        ("relay-log.info", lambda data: data.replace(b"\n0\n0\n", b"\n9999999999\n0\n"), 1872,
         r"garbled.*relay-log\.info, line 6"),
        ("master.info", lambda data: data[:12], 1201,
         r"ends before the line of Host.*master\.info, line \d"),
        ("master.info", lambda data: b"#!/bin/sh\necho\n", 1201,
         r"ends before the line of Host.*master\.info, line 3"),
    ],
)  # fmt: skip
def test_info_files(name: str, damage: object, number: int, message: str) -> None:
    rig = stopped()
    before = with_file(rig, name, damage(rig.disk.contents()[name]))  # type: ignore[operator]
    with pytest.raises(ReplicationError, match=message) as refused:
        rig.replica("5.7")
    assert refused.value.number == number
    assert rig.disk.contents() == before


def test_a_record_without_its_last_lines_is_read() -> None:
    """The server has defaults for them, and a last line without its end is no line (5.7.29)."""
    rig = stopped()
    whole = rig.disk.contents()["relay-log.info"]
    with_file(rig, "relay-log.info", whole[: whole.rindex(b"1")])
    found = rig.replica("5.7").memory.applied
    assert found == parse(RelayLogInfo, whole, "5.7").record


def test_a_missing_relay_log() -> None:
    rig = stopped()
    before = with_file(rig, "relay.000002", None)
    with pytest.raises(
        ReplicationError,
        match=r"error 1872: .*index file: \./relay\.000002; there are .*\./relay\.000003",
    ):
        rig.replica("5.7")
    kept = rig.disk.contents()
    assert [name for name in before if kept[name] != before[name]] == ["relay.index"]


@pytest.mark.parametrize(
    ("damage", "number_of", "message"),
    [
        (
            lambda data: b"this is no log" * 40,
            {"5.7": 1872, "8.0": 13117},
            r"does not start with fe 62 69 6e \(file relay\.000002",
        ),
        (
            lambda data: data[:-60] + bytes([data[-60] ^ 1]) + data[-59:],
            {"5.7": 1594, "8.0": 13121},
            r"the checksum of a \w+ event is wrong \(file relay\.000002, position \d+\)",
        ),
        (
            lambda data: data[:-40],
            {"5.7": 1594, "8.0": 13121},
            r"the file ends inside an event \(file relay\.000002, position \d+\)",
        ),
    ],
)
@pytest.mark.parametrize("version", ["5.7", "8.0"])
def test_relay_logs(damage: object, number_of: dict[str, int], message: str, version: str) -> None:
    """From 8.0 on with the numbers of what only logs show (9.7.4)."""
    rig = stopped(version)
    before = with_file(rig, "relay.000002", damage(rig.disk.contents()["relay.000002"]))  # type: ignore[operator]
    with pytest.raises(ReplicationError, match=rf"error {number_of[version]}: (?s:.*){message}"):
        rig.replica(version).apply()
    assert rig.disk.contents()["relay.000002"] == before["relay.000002"]


def test_recovery_reads_none_of_it() -> None:
    rig = stopped()
    with_file(rig, "relay.000002", b"this is no log")
    replica = rig.replica("5.7", relay_log_recovery=True)
    assert replica.recovered_from is not None
    assert replica.recovered_from.relay_log_name == "./relay.000002"
    replica.receive()
    replica.apply()
    assert replica.status.memory.applied is not None
    assert (
        replica.status.memory.applied.source_position
        == replica.status.memory.received.source_position
    )  # type: ignore[union-attr]


def test_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its example leaves behind."""
    monkeypatch.chdir(DOCUMENT.parents[2])
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    again, killed = names["again"], names["replica"]
    assert again.recovered_from.source_position <= killed.status.memory.applied.source_position
    assert again.status.memory.received.source_position == again.recovered_from.source_position
    assert again.status.relay_logs[:-1] == killed.status.relay_logs


def test_the_newest_relay_log_is_missing() -> None:
    """The next one gets its number, so that the index names it twice: the applier comes to its end
    and does not begin again."""
    rig = Rig.of("my57_xa")
    replica = rig.replica("5.7", max_relay_log_size=4096)
    replica.receive(100)
    assert replica.apply(2) == 2
    newest = replica.status.relay_logs[-1]
    rig.disk.remove(newest.removeprefix("./"))
    again = rig.replica("5.7", max_relay_log_size=4096)
    assert again.status.relay_logs.count(newest) == 2
    assert 0 < again.apply(1000) < 1000


@pytest.mark.parametrize(("version", "number"), [("5.6", 1593), ("5.7", 1593), ("8.0", 13117)])
def test_a_head_that_cannot_be_read_where_the_applier_starts(version: str, number: int) -> None:
    """The source's format description, which lies before the applier's place (init_relay_log_pos;
    5.7.29)."""
    rig = Rig.of("my57_xa")
    replica = rig.replica(version, workers=0)
    replica.receive()
    replica.apply(2)
    applied = replica.status.memory.applied
    assert applied is not None
    name = applied.relay_log_name.removeprefix("./")
    content = bytearray(rig.disk.contents()[name])
    place = content.index(b"5.7.29", 150)
    content[place] ^= 1
    with_file(rig, name, bytes(content))
    with pytest.raises(ReplicationError) as refused:
        rig.replica(version, workers=0)
    assert refused.value.number == number


def test_a_newest_relay_log_without_a_head_goes_where_an_older_one_has_a_boundary() -> None:
    """Log_sanitizer::process_logs goes on to the older file and removes what is newer (9.7.4); its
    number is given again."""
    rig = Rig.of("my57_xa")
    replica = rig.replica("9.7", max_relay_log_size=4096)
    replica.receive(100)
    replica.apply(2)
    names = replica.status.relay_logs
    newest = names[-1].removeprefix("./")
    with_file(rig, newest, rig.disk.contents()[newest][:31])
    again = rig.replica("9.7", max_relay_log_size=4096)
    assert again.status.relay_logs == names
    assert len(rig.disk.contents()[newest]) > 100
    again.receive()
    again.apply()
    assert contents(again.tables) == replayed("my57_xa", "9.7")


def test_an_empty_newest_relay_log_is_left_where_it_is() -> None:
    """It cannot be opened, so that nothing is looked over (9.7.4): the receiver goes on at its
    record, the applier stops there."""
    rig = Rig.of("my57_xa")
    replica = rig.replica("9.7", max_relay_log_size=4096)
    replica.receive(100)
    replica.apply(2)
    names = replica.status.relay_logs
    with_file(rig, names[-1].removeprefix("./"), b"")
    again = rig.replica("9.7", max_relay_log_size=4096)
    assert again.status.relay_logs[:-1] == names
    record, stand = again.status.persisted.received, again.memory.received
    assert record is not None and stand is not None
    assert stand.source_position == record.source_position
    again.receive()
    with pytest.raises(ReplicationError) as stopped:
        again.apply()
    assert stopped.value.number == 13121


@pytest.mark.parametrize(("size", "number"), [(0, 1872), (2, 1872), (16, 1201)])
def test_what_of_a_relay_log_comes_before_its_gaps(size: int, number: int) -> None:
    """1872 of what the server cannot open, then 1201 of gaps that nothing holds; of a head that is
    cut only the applier speaks (5.7.29)."""
    rig = Rig.of("my57_xa")
    options: dict[str, Any] = {
        "workers": 2,
        "parallel_type": "DATABASE",
        "relay_log_info_repository": "TABLE",
    }
    before = rig.replica("5.7", **options)
    before.receive()
    before.apply(2)
    before.shutdown()
    replica = rig.replica("5.7", Youngest(), **options)
    replica.apply(3)
    info = replica.status.persisted
    assert info.applied is not None
    assert info.applied.relay_log_pos > 16
    assert any(worker.source_log_pos > info.applied.source_log_pos for worker in info.workers)
    for name in [log.removeprefix("./") for log in replica.status.relay_logs]:
        with_file(rig, name, rig.disk.contents()[name][:size])
    with pytest.raises(ReplicationError) as refused:
        rig.replica("5.7", **options)
    assert refused.value.number == number


def test_relay_logs_without_a_place_of_the_source() -> None:
    """The receiver goes on where the applier is, however old its own record is (9.7.4)."""
    rig = Rig.of("my57_xa")
    replica = rig.replica("9.7")
    replica.receive(100)
    replica.apply()
    again = rig.replica("9.7")
    again.apply()
    assert len(again.status.relay_logs) == 1
    stand, record = again.memory, again.status.persisted.received
    assert stand.applied is not None and record is not None
    assert record.source_log_pos < stand.applied.source_log_pos
    third = rig.replica("9.7")
    assert third.memory.received is not None
    assert third.memory.received.source_position == stand.applied.source_position
    third.receive()
    third.apply()
    assert contents(third.tables) == replayed("my57_xa", "9.7")


@pytest.mark.parametrize("recovery", [False, True])
@pytest.mark.parametrize("version", ["5.6", "5.7", "9.7"])
def test_any_relay_log_that_the_index_names_is_missing(version: str, recovery: bool) -> None:
    """Their sizes are added up at the start; the new relay log is closed again (seen of 5.7.29 and
    9.7.4)."""
    rig = Rig.of("my57_xa")
    options: dict[str, Any] = {"max_relay_log_size": 4096, "relay_log_recovery": recovery}
    replica = rig.replica(version, **options)
    replica.receive(100)
    assert len(replica.status.relay_logs) > 3
    rig.disk.remove(replica.status.relay_logs[2].removeprefix("./"))
    with pytest.raises(
        ReplicationError,
        match=r"error 1872: .*relay\.000003 listed in the index, but failed to stat",
    ):
        rig.replica(version, **options)
    newest = max(name for name in rig.disk.contents() if name.startswith("relay.0"))
    assert rig.disk.contents()[newest][-23:][4] == EventType.STOP


def test_gaps_that_no_relay_log_holds_at_a_start() -> None:
    """With relay_log_recovery they are looked for while the server starts, so that START REPLICA
    finds nothing initialized (9.7.4)."""
    rig = Rig.of("my_xa")
    options: dict[str, Any] = {"workers": 2, "preserve_commit_order": False, "gtid_mode": False}
    replica = rig.replica("9.7", Youngest(), **options)
    replica.receive()
    replica.apply(3)
    newest = replica.status.relay_logs[-1].removeprefix("./")
    info = replica.status.persisted
    assert info.applied is not None
    assert any(worker.source_log_pos > info.applied.source_log_pos for worker in info.workers)
    with_file(rig, newest, b"")
    for name in replica.status.relay_logs:
        with_file(rig, name.removeprefix("./"), b"")
    with pytest.raises(ReplicationError, match="Failed during replica worker recovery") as refused:
        rig.replica("9.7", relay_log_recovery=True, **options)
    assert refused.value.number == 1872


@pytest.mark.parametrize(("workers", "number"), [(2, 1755), (0, 0)])
def test_a_group_that_begins_with_its_rows(workers: int, number: int) -> None:
    """The receiver went on inside a transaction: no worker has a database without a table map, one
    thread passes the rows over (5.7.29)."""
    rig = Rig.of("my57_xa")
    options: dict[str, Any] = {"workers": workers, "parallel_type": "DATABASE"}
    rig.receive_and_forget(rig.replica("5.7", **options), EventType.XID, events=2)
    again = rig.replica("5.7", **options)
    again.receive()
    found = 0
    try:
        again.apply()
    except ReplicationError as error:
        found = error.number
    assert found == number


@pytest.mark.parametrize(("version", "counts"), [("5.6", True), ("5.7", False)])
def test_a_gtid_whose_transaction_is_cut_off(version: str, counts: bool) -> None:
    """5.6 has it received as soon as its event is, at a restart, too, and asks for it again; later
    ones count whole groups (5.6.24)."""
    rig = Rig.of("my57_xa")
    options: dict[str, Any] = {
        "gtid_mode": True,
        "auto_position": True,
        "log_replica_updates": True,
    }
    replica = rig.replica(version, **options)
    kinds: list[int] = []
    while kinds.count(EventType.GTID) < 3:
        assert replica.receive(1)
        newest = replica.status.relay_logs[-1].removeprefix("./")
        kinds = [part[4] for part in events_of(rig.disk.contents()[newest])]
    again = rig.replica(version, **options)
    assert again.status.retrieved_gtids.count() == (3 if counts else 2)  # type: ignore[union-attr]
    again.receive()
    again.apply()
    assert contents(again.tables) == replayed("my57_xa", version)


@pytest.mark.parametrize("sql", ["\0\0\0", "BEGI\0", " C\0\0 TABLE"])
def test_a_statement_of_zeros(sql: str) -> None:
    """A syntax error, whatever else is not known here (5.6.24 with zeros at the end of a relay log
    without checksums)."""
    with pytest.raises(ReplicationError) as refused:
        apply_ddl(Tables(), sql, "d", DdlSession())
    assert refused.value.number == 1064


def test_a_receiver_before_the_first_event() -> None:
    """master.info was edited: the source refuses the position, with GTIDs it is not asked for
    (5.7.29)."""
    rig = stopped()
    lines = rig.disk.contents()["master.info"].split(b"\n")
    with_file(rig, "master.info", b"\n".join([*lines[:2], b"0", *lines[3:]]))
    with pytest.raises(ReplicationError, match="start replication from position < 4") as refused:
        rig.replica("5.7").receive()
    assert refused.value.number == 1236


def test_the_same_relay_log_twice_in_the_index() -> None:
    """It is executed twice (5.7.29, 9.7.4)."""
    rig = Rig.of("my57_xa")
    options: dict[str, Any] = {"max_relay_log_size": 4096, "relay_log_purge": False}
    replica = rig.replica("5.7", **options)
    replica.receive(100)
    replica.apply(2)
    applied = replica.status.memory.applied
    assert applied is not None
    lines = rig.disk.contents()["relay.index"].decode().splitlines(keepends=True)
    at = lines.index(f"{applied.relay_log_name}\n")
    with_file(rig, "relay.index", "".join(lines[: at + 1] + lines[at:]).encode())
    again = rig.replica("5.7", **options)
    assert again.status.relay_logs.count(applied.relay_log_name) == 2
    places = []
    while again.apply(1):
        info = again.status.memory.applied
        assert info is not None
        places.append(info.relay_position)
    assert applied.relay_position in places
    last_of_it = max(place for place in places if place.file == applied.relay_log_name)
    assert places.count(last_of_it) == 2


def test_the_applier_stays_with_its_workers() -> None:
    """The receiver's record is moved to the repository that is asked for, the applier's only where
    no worker has a record (5.6.24, 5.7.29)."""
    in_files = {"relay_log_info_repository": "FILE", "master_info_repository": "FILE"}
    in_tables: dict[str, Any] = dict.fromkeys(in_files, "TABLE")
    for workers, stays in ((0, False), (2, True)):
        rig = Rig.of("my57_xa")
        options: dict[str, Any] = {"workers": workers, "parallel_type": "DATABASE"}
        replica = rig.replica("5.7", **options, **in_files)
        replica.receive(200)
        replica.apply()
        before = replica.status.persisted.applied
        assert before is not None
        again = rig.replica("5.7", **options, **in_tables)
        assert again.status.memory.applied == before
        assert "master.info" not in rig.disk.contents()
        assert ("relay-log.info" in rig.disk.contents()) is stays
        assert bool(rig.storage.info.rows("slave_relay_log_info")) is not stays
