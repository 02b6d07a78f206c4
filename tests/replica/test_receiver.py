"""What the receiver writes, what it passes over, and how the applier learns of it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import pytest

from applier.binlog.event_bytes import format_body, has_checksum, make_event, rotate_body
from applier.binlog.header import EventType
from applier.crashtest.matrix import Setup, WorkloadSpec
from applier.crashtest.replica_system import ReplicaSystem
from applier.errors import ReplicationError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.replica import Replica
from applier.replica.restarts.boundaries import Followed
from applier.replica.source import BinlogFiles
from applier.replica.storage import MemoryStorage
from applier.replica.versions import replica_rules
from applier.tables.catalog import Tables
from checkpoints.gtid import GtidSet
from checkpoints.info import SourceInfo
from checkpoints.position import Position
from checkpoints.repository import TableRepository
from checkpoints.simulated_disk import SimulatedDisk
from checkpoints.sync_rules import Occasion
from tests.captures_support import CAPTURES, logs
from tests.replica.recovery_scenarios import events_of
from tests.replica.replicas import UUID, Rig, contents, replayed


class Stream:
    """A source that sends what it was told to."""

    uuid, server_id = UUID, 1

    def __init__(self, version: str = "8.0") -> None:
        self.position = 4
        rules = replica_rules(version)
        body = rotate_body("binlog.000001", 4)
        self.events = [make_event(EventType.ROTATE, body, timestamp=0, server_id=1, flags=0x20)]
        self.add(
            EventType.FORMAT_DESCRIPTION,
            format_body(rules.server_version, rules.post_header_lengths),
        )

    def add(
        self, kind: EventType, body: bytes, server_id: int = 1, *, log_pos: int | None = None
    ) -> None:
        """An event of the log; with `log_pos` one that is not in it."""
        if log_pos is None:
            self.position += 19 + len(body) + 4
        self.events.append(
            make_event(
                kind, body, timestamp=1, server_id=server_id, log_pos=log_pos or self.position
            )
        )

    def transaction(self, server_id: int = 1) -> None:
        self.add(
            EventType.ANONYMOUS_GTID, struct.pack("<B16sqBqq", 0, bytes(16), 0, 2, 0, 0), server_id
        )
        self.add(EventType.QUERY, struct.pack("<IIBHH", 1, 0, 1, 0, 0) + b"d\0BEGIN", server_id)
        self.add(EventType.XID, bytes(8), server_id)

    def dump(self, file: str, position: int) -> Iterator[bytes]:
        yield from self.events

    def dump_gtids(self, received: GtidSet) -> Iterator[bytes]:
        yield from self.events


def replica_of(stream: Stream, **options: Any) -> Replica:
    configuration = ReplicaConfiguration("8.0", workers=0, **options)
    start_at = None if "auto_position" in options else Position("binlog.000001", 4)
    replica = Replica(
        SimulatedDisk(),
        configuration,
        stream,
        MemoryStorage(Tables()),
        start_at=start_at,
        clock=int,
    )
    replica.start()
    return replica


def written(replica: Replica) -> list[tuple[EventType, int, int]]:
    """Type, server id and log_pos of what is in the newest relay log behind its own head."""
    content = replica.disk.contents()[replica.relay_log.name.removeprefix("./")]  # type: ignore[attr-defined]
    return [
        (
            EventType(data[4]),
            int.from_bytes(data[5:9], "little"),
            int.from_bytes(data[13:17], "little"),
        )
        for data in events_of(content)[2:]
    ]


def received(replica: Replica) -> int:
    stand = replica.status.memory.received
    assert stand is not None
    return stand.source_log_pos


def applied(replica: Replica) -> int:
    stand = replica.status.memory.applied
    assert stand is not None
    return stand.source_log_pos


@pytest.mark.parametrize(("options", "server_id"), [({}, 9), ({"ignore_server_ids": (77,)}, 77)])
def test_events_that_are_passed_over(options: dict[str, Any], server_id: int) -> None:
    """Of the replica itself, or of a server that it is to ignore: only the position moves, and STOP
    REPLICA tells the applier."""
    stream = Stream()
    stream.transaction()
    here = stream.position
    stream.transaction(server_id)
    replica = replica_of(stream, **options)
    replica.receive()
    assert received(replica) == stream.position
    assert [kind for kind, *_ in written(replica)].count(EventType.XID) == 1
    replica.apply()
    assert applied(replica) == here
    replica.stop()
    assert written(replica)[-1] == (EventType.ROTATE, 0, 0)
    replica.restart_applier()
    replica.apply()
    assert applied(replica) == stream.position


def test_own_events_come_back_where_that_is_wanted() -> None:
    stream = Stream()
    stream.transaction(9)
    replica = replica_of(stream, replicate_same_server_id=True)
    replica.receive()
    assert [kind for kind, *_ in written(replica)].count(EventType.XID) == 1


def test_an_ignored_source_still_rotates() -> None:
    stream = Stream()
    stream.transaction()
    replica = replica_of(stream, ignore_server_ids=(1,))
    replica.receive()
    assert [kind for kind, *_ in written(replica)] == [
        EventType.ROTATE,
        EventType.FORMAT_DESCRIPTION,
    ]
    assert received(replica) == stream.position


def test_not_written_but_told() -> None:
    """The source's previous GTIDs move the position at once; its stop event does nothing."""
    stream = Stream()
    stream.add(EventType.PREVIOUS_GTIDS, bytes(8))
    stream.events.append(
        make_event(EventType.STOP, b"", timestamp=1, server_id=1, log_pos=stream.position + 23)
    )
    replica = replica_of(stream)
    replica.receive()
    assert [kind for kind, *_ in written(replica)] == [
        EventType.ROTATE,
        EventType.FORMAT_DESCRIPTION,
        EventType.ROTATE,
    ]
    assert received(replica) == stream.position
    replica.apply()
    assert applied(replica) == stream.position


@pytest.mark.parametrize("version", [1, 2])
def test_heartbeats(version: int) -> None:
    """With auto-position the position of a heartbeat is taken over; nothing else is ever done with
    one that fits."""
    for options, ahead, expected in (
        ({"gtid_mode": True, "auto_position": True}, 5000, 5000),
        ({}, 0, None),
    ):
        stream = Stream()
        _heartbeat(
            stream, version, "binlog.000001", stream.position + ahead if not options else 5000
        )
        replica = replica_of(stream, **options)
        replica.receive()
        assert received(replica) == (expected or stream.position)
        assert [kind for kind, *_ in written(replica)].count(EventType.ROTATE) == (
            2 if expected else 1
        )


@pytest.mark.parametrize(("file", "position"), [("binlog.000002", 5000), ("binlog.000001", 50)])
def test_heartbeats_that_do_not_fit(file: str, position: int) -> None:
    stream = Stream()
    _heartbeat(stream, 1, file, position)
    replica = replica_of(stream)
    with pytest.raises(
        ReplicationError,
        match=r"error 1623: Unexpected source's heartbeat data.*the source's log is shorter",
    ):
        replica.receive()


def _heartbeat(stream: Stream, version: int, file: str, position: int) -> None:
    name = file.encode()
    if version == 1:
        stream.add(EventType.HEARTBEAT, name, log_pos=position)
    else:
        value = b"\xfc" + struct.pack("<H", position) if position > 250 else bytes([position])
        fields = bytes([1, len(name)]) + name + bytes([2, len(value)]) + value + b"\0"
        stream.add(EventType.HEARTBEAT_V2, fields, log_pos=position)


def test_an_answer_that_was_cut_off() -> None:
    stream = Stream()
    stream.transaction()
    stream.events[-1] = stream.events[-1][:-3]
    replica = replica_of(stream)
    with pytest.raises(Exception, match=r"an event of 28 bytes says it has 31"):
        replica.receive()
    assert written(replica)[-1][0] == EventType.QUERY


def test_space_limit() -> None:
    """The receiver waits until the applier has purged; it never has much more than the limit."""
    rig = Rig.of("my57_xa")
    replica = rig.replica("5.7", max_relay_log_size=4096, relay_log_space_limit=12_000)
    sizes, rounds = [], 0
    while replica.receive() + replica.apply():
        sizes.append(replica.relay_log.total_size())
        rounds += 1
    assert rounds > 3
    assert contents(replica.tables) == replayed("my57_xa", "5.7")


@pytest.mark.parametrize(("period", "expected"), [(0, 0), (1, 1.0), (10, 0.1)])
def test_sync_relay_log(period: int, expected: float) -> None:
    rig = Rig.of("my57_xa")
    replica = rig.replica("5.7", sync_relay_log=period)
    before = len(rig.disk.operations)
    events = replica.receive(300)
    assert events == 300
    operations = [
        operation
        for operation in rig.disk.operations[before:]
        if operation.name.startswith("relay.0")
    ]
    syncs = sum(operation.action == "fsync" for operation in operations)
    files = len({operation.name for operation in operations})
    assert syncs == pytest.approx(expected * events, abs=3 * files)


RESET = [
    ("5.6", False, 143, 0),
    ("5.6", True, 174, 0),
    ("5.7", False, 177, 0),
    ("5.7", True, 177, 0),
    ("9.7", True, 181, 1),
]


@pytest.mark.parametrize(("version", "gtids", "size", "kept"), RESET)
def test_reset(version: str, gtids: bool, size: int, kept: int) -> None:
    """As seen of real 5.6.24, 5.7.29 and 9.7.4: one relay log, closed; no record but, today, where
    to connect to."""
    rig = Rig.of("my57_xa")
    options: dict[str, Any] = {
        "relay_log_info_repository": "TABLE",
        "master_info_repository": "TABLE",
    }
    replica = rig.replica(version, gtid_mode=gtids, auto_position=gtids, **options)
    replica.receive()
    replica.apply(5)
    replica.stop()
    replica.reset()
    assert {name: len(content) for name, content in rig.disk.contents().items()} == {
        "relay.000001": size,
        "relay.index": 15,
    }
    assert (
        replica.storage.info.rows("slave_relay_log_info")
        == replica.storage.info.rows("slave_worker_info")
        == []
    )
    assert [
        (row["Master_log_name"], row["Master_log_pos"])
        for row in replica.storage.info.rows("slave_master_info")
    ] == [("", 4)] * kept
    assert (applied(replica), received(replica), replica.status.memory.applied.relay_log_name) == (
        0,
        4,
        "./relay.000001",
    )  # type: ignore[union-attr]
    assert isinstance(rig.source, BinlogFiles)


def test_the_record_is_flushed_behind_each_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind one that has forced it, the source's set of previous GTIDs: sync_master_info
    counts it (handle_slave_io, 5.7.29)."""
    flushed: list[Occasion] = []
    flush = TableRepository.flush

    def noted(self: TableRepository[Any], record: Any, occasion: Occasion) -> Any:
        if isinstance(record, SourceInfo):
            flushed.append(occasion)
        return flush(self, record, occasion)

    setup = Setup(sync=10)
    workload = WorkloadSpec(2).make(setup)
    replica, _ = ReplicaSystem(workload, setup.configuration).server(SimulatedDisk())
    replica.start()
    monkeypatch.setattr(TableRepository, "flush", noted)
    assert flushed.count(Occasion.EVENT) == 0
    received = replica.receive()
    assert flushed.count(Occasion.EVENT) == received > 10
    assert Occasion.CHANGE in flushed


def test_a_log_without_checksums_from_its_middle() -> None:
    """The format description comes changed, with the checksum of the unchanged one (5.7.29, 9.7.4),
    and the replica goes on."""
    source = BinlogFiles.read(logs(CAPTURES / "open" / "my56_anonymous_nochecksum"))
    name, content = next(iter(source.files.items()))
    sent = list(takewhile(bool, source.dump(name, 4)))
    second = 4 + len(events_of(content)[0])
    _rotate, description, *rest = takewhile(bool, source.dump(name, second))
    assert has_checksum(sent[1])
    assert not has_checksum(description)
    assert rest == sent[2:]
    followed = Followed()
    replica = Replica(
        SimulatedDisk(), ReplicaConfiguration("5.6"), source, MemoryStorage(Tables()),
        start_at=Position(name, second),
        clock=int, executor_of=followed.executor,
    )  # fmt: skip
    replica.start()
    replica.receive()
    replica.apply()
    assert len(followed.groups) > 1
