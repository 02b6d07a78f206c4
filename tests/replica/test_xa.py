"""XA transactions of a replica: what is prepared outlives a restart, one phase is one transaction,
an unknown one is error 1397."""

from __future__ import annotations

from typing import Any

import pytest

from applier.binlog.header import EventType
from applier.crashtest.durable import Durability, DurableStorage
from applier.errors import ReplicationError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.interleaving import Eager, InOrder
from applier.replica.replica import Replica
from applier.replica.storage import MemoryStorage
from checkpoints.gtid_slave_pos import KEY, TABLE
from checkpoints.simulated_disk import SimulatedDisk
from tests.replica.recovery_scenarios import events_of
from tests.replica.replicas import Rig, contents, replayed, source_of, tables_of

WITH_XA = "ma_xa_domains"
CAPTURES = [
    ("my57_xa", "5.7", {}),
    ("my57_xa", "5.7", {"workers": 3, "parallel_type": "DATABASE"}),
    ("my_xa", "9.7", {}),
]
GTIDS: dict[str, Any] = {"gtid_mode": True, "auto_position": True}


def with_prepared(version: str = "5.7") -> tuple[Rig, Replica, int]:
    """A replica that stands right behind the first XA PREPARE, which the XA COMMIT follows later;
    and how many groups that took."""
    rig = Rig.of("my57_xa")
    replica = rig.replica(version, **GTIDS)
    replica.receive()
    groups = 0
    while not rig.storage.prepared:
        groups += replica.apply(1)
    return rig, replica, groups


@pytest.mark.parametrize(("capture", "version", "options"), CAPTURES)
def test_a_kill_behind_any_group_changes_nothing(
    capture: str, version: str, options: dict[str, Any]
) -> None:
    rig = Rig.of(capture)
    options = GTIDS | {"relay_log_recovery": True} | options
    were_prepared = 0
    for _ in range(60):
        replica = rig.replica(version, **options)
        replica.receive()
        if not replica.apply(1):
            break
        were_prepared += bool(rig.storage.prepared)
    replica = rig.replica(version, **options)
    replica.receive()
    replica.apply()
    assert contents(replica.tables) == replayed(capture, version)
    assert were_prepared > 5


def test_rollback_of_what_was_prepared_before_a_restart() -> None:
    """The rows of a prepared transaction are in the tables until then, and go with it."""
    rig, replica, _ = with_prepared()
    (rows,) = rig.storage.prepared.values()
    before = {name: len(found) for name, found in contents(replica.tables).items()}
    again = rig.replica("5.7", **GTIDS)
    again.receive()
    again.apply()
    assert rows
    assert contents(again.tables) == replayed("my57_xa", "5.7")
    assert before != {name: len(found) for name, found in contents(again.tables).items()}


def test_what_a_crash_lost_cannot_end() -> None:
    """5.7.29 writes XA PREPARE into its binary log first: the GTID stays, the transaction goes
    (seen of kill -9)."""
    rig, _, _ = with_prepared()
    rig.storage.prepared.clear()
    again = rig.replica("5.7", **GTIDS)
    again.receive()
    with pytest.raises(ReplicationError) as caught:
        again.apply()
    assert caught.value.number == 1397
    assert "XA COMMIT X'7830'" in caught.value.message


def test_a_prepare_that_is_passed_over_prepares_nothing() -> None:
    """By position the source sends it again, and its GTID was executed: the XA COMMIT behind it has
    nothing to end (a killed 5.7.29)."""
    rig, _, _ = with_prepared()
    rig.storage.prepared.clear()
    again = Rig(rig.source, rig.storage).replica("5.7", gtid_mode=True)
    again.receive()
    with pytest.raises(ReplicationError) as caught:
        again.apply()
    assert caught.value.number == 1397


@pytest.mark.parametrize("workers", [0, 2])
def test_a_part_of_a_transaction_that_the_source_sends_again(workers: int) -> None:
    """One thread takes it back; a worker is given a ROLLBACK, which is 1399 inside of XA
    (5.7.29)."""
    rig = Rig.of("my57_xa")
    options = GTIDS | {"workers": workers, "preserve_commit_order": False}
    replica = rig.replica("5.7", **options)
    newest = replica.status.relay_logs[-1].removeprefix("./")
    while not rig.disk.contents()[newest][-120:].count(b"XA START"):
        assert replica.receive(1)
        newest = replica.status.relay_logs[-1].removeprefix("./")
    again = rig.replica("5.7", **options)
    again.receive()
    if not workers:
        again.apply()
        assert contents(again.tables) == replayed("my57_xa", "5.7")
        return
    with pytest.raises(ReplicationError, match="XAER_RMFAIL") as caught:
        again.apply()
    assert caught.value.number == 1399


def test_a_prepare_that_the_source_sends_again() -> None:
    """The receiver's record is one event behind its relay log: what comes first is an XA PREPARE
    without its XA START (5.7.29)."""
    rig = Rig.of("my57_xa")
    rig.receive_and_forget(rig.replica("5.7"), EventType.XA_PREPARE)
    again = rig.replica("5.7")
    again.receive()
    with pytest.raises(ReplicationError, match="NON-EXISTING state") as caught:
        again.apply()
    assert caught.value.number == 1399


def test_a_relay_log_that_holds_nothing_but_a_prepare() -> None:
    """Begun by FLUSH RELAY LOGS: an XA PREPARE is no end of a group there, the file goes
    (process_xa_prepare_event, 9.7.4)."""
    first = Rig.of("my_xa")
    kinds: list[int] = []
    replica = first.replica("9.7")
    while kinds[-1:] != [EventType.XA_PREPARE]:
        assert replica.receive(1)
        kinds = [part[4] for part in newest_events(first, replica)]
    of_the_group = kinds[::-1].index(EventType.GTID) + 1
    rig = Rig.of("my_xa")
    replica = rig.replica("9.7")
    while [part[4] for part in newest_events(rig, replica)] != kinds[:-of_the_group]:
        assert replica.receive(1)
    before = replica.status.memory.received
    replica.relay_log.rotate()
    replica.receive(of_the_group)
    assert newest_events(rig, replica)[-1][4] == EventType.XA_PREPARE
    again = rig.replica("9.7")
    after = again.status.memory.received
    assert before is not None and after is not None
    assert after.source_position == before.source_position
    again.receive()
    again.apply()
    assert contents(again.tables) == replayed("my_xa", "9.7")


def newest_events(rig: Rig, replica: Replica) -> list[bytes]:
    return events_of(rig.disk.contents()[replica.status.relay_logs[-1].removeprefix("./")])


def test_what_is_prepared_is_not_begun_again() -> None:
    """Executed a second time without its GTID, as from a position that was not written."""
    rig, _, _ = with_prepared()
    fresh = MemoryStorage(rig.storage.tables, prepared=rig.storage.prepared)
    again = Rig(rig.source, fresh).replica("5.7", **GTIDS)
    again.receive()
    with pytest.raises(ReplicationError) as caught:
        again.apply()
    assert caught.value.number == 1440


@pytest.mark.parametrize("workers", [0, 2])
def test_mariadb_prepares_before_it_records_the_gtid(workers: int) -> None:
    """A kill in between: the transaction is prepared and begun again, which is 1440 (seen of
    10.11.18)."""
    rig = Rig.of(WITH_XA)
    options: dict[str, Any] = {"using_gtid": "Slave_Pos", "workers": workers}
    replica = rig.replica("mariadb", **options)
    replica.receive()
    while not rig.storage.prepared:
        assert replica.apply(1)
    info = rig.storage.info
    last = max(info.rows(TABLE), key=lambda row: int(row["sub_id"]))
    info.delete(TABLE, {name: last[name] for name in KEY})
    again = rig.replica("mariadb", **options)
    with pytest.raises(ReplicationError) as caught:
        again.receive()
        again.apply()
    assert caught.value.number == 1440


def test_a_storage_that_recovers_knows_what_is_prepared() -> None:
    """XA RECOVER of the redo log: behind any group, and at the end the tables are the source's."""
    base, disk, source = tables_of("my57_xa"), SimulatedDisk(), source_of("my57_xa")
    configuration = ReplicaConfiguration("5.7", relay_log_recovery=True, **GTIDS)
    seen = 0
    for _ in range(60):
        storage = DurableStorage(disk, base, Durability(), version="5.7")
        replica = Replica(disk, configuration, source, storage, clock=int)
        replica.start()
        replica.receive()
        groups = replica.apply(1)
        left = DurableStorage(disk, base, Durability(), version="5.7")
        left.recover()
        assert left.prepared == storage.prepared
        seen += bool(left.prepared)
        if not groups:
            break
    assert seen > 5
    assert contents(storage.tables) == replayed("my57_xa", "5.7")


def test_the_low_water_mark_behind_an_error_of_a_worker() -> None:
    """It stays at the last checkpoint, and when that was is a matter of time: `Eager` makes one
    behind each group (a killed 5.7.29)."""
    rig, replica, groups = with_prepared()
    while groups < 8 or not rig.storage.prepared:
        groups += replica.apply(1)
    ends = []
    for order in (InOrder(), Eager()):
        fresh = Rig(
            rig.source, MemoryStorage(tables_of("my57_xa"), prepared=dict(rig.storage.prepared))
        )
        replica = fresh.replica("5.7", order, workers=2, parallel_type="DATABASE")
        replica.receive()
        with pytest.raises(ReplicationError) as caught:
            replica.apply()
        assert caught.value.number == 1440
        assert replica.status.memory.applied is not None
        ends.append(replica.status.memory.applied.source_log_pos)
    assert ends[0] < ends[1]
