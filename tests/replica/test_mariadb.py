"""The emulated replica of MariaDB over committed captures, and its table of positions, without a
server."""

from __future__ import annotations

from typing import Any

import pytest

from applier.errors import UsageError
from applier.replica.configuration import ReplicaConfiguration
from checkpoints.errors import InfoError
from checkpoints.gtid import MariadbGtid
from checkpoints.gtid_slave_pos import BATCH, TABLE, GtidSlavePos, position
from checkpoints.info import RelayLogInfo
from checkpoints.table_store import MemoryTableStore
from tests.replica.replicas import Rig, contents, replayed

CAPTURE, WITH_XA = "ma_ddl", "ma_xa_domains"


def committed(rig: Rig) -> dict[str, list[Any]]:
    """The rows without those of prepared transactions, which nobody sees."""
    found = contents(rig.storage.tables)
    for changes in rig.storage.prepared.values():
        for change in changes:
            found[change.table].remove(change.after)
    return found


@pytest.mark.parametrize("capture", [CAPTURE, WITH_XA])
@pytest.mark.parametrize(
    ("using_gtid", "recovery"), [("No", False), ("No", True), ("Slave_Pos", False)]
)
def test_killed_behind_some_groups(capture: str, using_gtid: str, recovery: bool) -> None:
    """Between groups, a kill loses nothing: the next start goes on, and ends with the rows of a
    plain replay."""
    rig = Rig.of(capture)
    replica = rig.replica("mariadb", using_gtid=using_gtid)
    groups = 0
    for _ in range(8):
        replica.receive(40)
        groups += replica.apply(3)
        replica = rig.replica("mariadb", using_gtid=using_gtid, relay_log_recovery=recovery)
    replica.receive()
    replica.apply()
    assert groups >= 8
    assert committed(rig) == replayed(capture, "mariadb")
    assert str(replica.status.executed_gtids) == str(rig.source.domains_at(*rig.source.end()))


def test_the_position_is_within_the_transaction() -> None:
    """What is taken back takes the position along."""
    rig = Rig.of(CAPTURE)
    replica = rig.replica("mariadb", using_gtid="Slave_Pos")
    replica.receive()
    replica.apply(5)
    before = str(replica.status.executed_gtids)
    store = MemoryTableStore()
    slave_pos = GtidSlavePos(store)
    slave_pos.record(MariadbGtid(0, 1, 1))
    store.begin()
    slave_pos.record(MariadbGtid(0, 1, 2))
    assert str(slave_pos.position) == "0-1-2"
    store.rollback()
    assert str(slave_pos.position) == "0-1-1"
    assert before and replica.apply(1) == 1
    assert str(replica.status.executed_gtids) != before


def test_old_rows_go() -> None:
    store = MemoryTableStore()
    slave_pos = GtidSlavePos(store)
    for number in range(1, BATCH + 2):
        slave_pos.record(MariadbGtid(0, 1, number))
    assert len(store.rows(TABLE)) == BATCH + 1
    slave_pos.clean_up()
    assert [row["seq_no"] for row in store.rows(TABLE)] == [BATCH + 1]
    slave_pos.record(MariadbGtid(3, 2, 1))
    slave_pos.record(MariadbGtid(3, 1, 9))
    slave_pos.record(MariadbGtid(3, 2, 2))
    again = GtidSlavePos(store)
    again.load()
    assert str(again.position) == f"0-1-{BATCH + 1},3-2-2"
    assert len(store.rows(TABLE)) == 2
    again.record(MariadbGtid(3, 2, 3))
    assert str(again.position).endswith("3-2-3")
    with pytest.raises(InfoError, match="None is not a number"):
        position([{"domain_id": 0, "sub_id": 1, "server_id": 1}])


def test_records_are_not_written_by_gtid() -> None:
    """With MASTER_USE_GTID relay-log.info stays where the source's last rotate event left it."""
    rig = Rig.of(CAPTURE)
    replica = rig.replica("mariadb", using_gtid="Slave_Pos")
    replica.receive()
    replica.apply(6)
    kept, memory = replica.status.persisted.applied, replica.status.memory.applied
    assert isinstance(kept, RelayLogInfo)
    assert isinstance(memory, RelayLogInfo)
    assert kept.source_log_pos < memory.source_log_pos
    replica.stop()
    assert replica.status.persisted.applied == memory


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 4, "parallel_type": "DATABASE"}, "has no parallel_type=DATABASE"),
        ({"gtid_mode": True}, "MariaDB has no gtid_mode"),
        ({"using_gtid": "Sometimes"}, "using_gtid='Sometimes'"),
        ({"relay_log_info_repository": "TABLE"}, "MariaDB has no relay_log_info_repository=TABLE"),
    ],
)
def test_what_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ReplicaConfiguration("mariadb", **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"MySQL 5\.7 has no MASTER_USE_GTID"):
        ReplicaConfiguration("5.7", using_gtid="Slave_Pos")
