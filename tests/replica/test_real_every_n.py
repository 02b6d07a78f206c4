"""sync_master_info=N with TABLE: the receiver's record is up to N - 1 events old when the replica
is killed, and may stand inside a transaction (Rpl_info_table::do_flush_info counts events, not
transactions).

A real replica that has received everything and applied nothing is killed. The emulated one, on the
same events, has to have written its record at the same event; and from there both receive the rest
again and end alike. Rows of a table without a key come twice, in one transaction and without a
word, where the record stands before their table map; behind it they are passed over.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from checkpoints.position import Position
from checkpoints.simulated_disk import SimulatedDisk
from tests.replica.real_pairs import shown
from tests.replica.test_real_cut_relay_logs import TABLE_REPOSITORIES, CutPair, emulated
from tests.servers.fixtures import ServerFactory

PERIODS = (10, 3, 7, 9) if os.environ.get("BINLAG_ALL_CASES") == "1" else (10,)
IDLE = "Slave has read all relay log; waiting for more updates"
TABLE = "CREATE TABLE d.n (a INT, b TEXT)"
TRANSACTION = (
    "BEGIN",
    "INSERT INTO d.n VALUES (1, 'x')",
    "INSERT INTO d.n VALUES (2, 'y')",
    "COMMIT",
)


@pytest.mark.parametrize("period", PERIODS)
def test_killed_between_two_records(period: int, server_factory: ServerFactory) -> None:
    options: dict[str, Any] = {
        "relay_log_purge": 1,
        "sync_master_info": period,
        **TABLE_REPOSITORIES,
    }
    with CutPair(server_factory, "5.7", **options) as pair:
        pair.prepare(TABLE, *TRANSACTION * 2)
        disk = SimulatedDisk(
            {**pair.relay_logs(), "relay.index": (pair.replica.data / "relay.index").read_bytes()}
        )
        pair.replica.start()
        rows = pair.rows()
        unbroken = emulated(pair, SimulatedDisk(), "", {}, sync_master_info=period)
        unbroken.start_at = Position("binlog.000001", 4)
        unbroken.start()
        unbroken.receive()
        persisted, memory = unbroken.status.persisted.received, unbroken.memory.received
        assert persisted is not None
        assert memory is not None
        assert memory.source_log_pos == pair.end
        assert persisted.source_log_pos == rows["slave_master_info"][0]["Master_log_pos"]
        own = emulated(pair, disk, "", rows, sync_master_info=period)
        own.start()
        assert shown(own) == pair.seen(pair.status())
        assert pair.go_on(own) == 0
        found = sorted((row[0], row[1]) for row in own.tables["d.n"].rows())
        assert found == sorted(pair.replica.query("SELECT a, b FROM d.n"))


@pytest.mark.parametrize("period", PERIODS)
def test_tables_without_transactions(period: int, server_factory: ServerFactory) -> None:
    """sync_relay_log_info=N: a group that does not end in a transaction of InnoDB is counted,
    whatever engine the record is kept in."""
    options: dict[str, Any] = {
        "relay_log_purge": 1,
        "sync_relay_log_info": period,
        **TABLE_REPOSITORIES,
    }
    with CutPair(server_factory, "5.7", **options) as pair:
        pair.source.execute(
            "CREATE DATABASE e", "CREATE TABLE e.t (a INT PRIMARY KEY, b TEXT) ENGINE=MyISAM"
        )
        pair.change_source()
        pair.run("START REPLICA")
        pair.source.execute(
            *(f"INSERT INTO e.t VALUES ({number}, 'x')" for number in range(1, 3 * period // 2))
        )
        file, end = pair.source_end()
        pair.wait(Master_Log_File=file, Exec_Master_Log_Pos=end)
        # the last position is shown before the record of it is written
        pair.wait(Slave_SQL_Running_State=IDLE)
        pair.replica.kill()
        pair.replica.start()
        real = pair.rows()["slave_relay_log_info"][0]
        unbroken = emulated(pair, SimulatedDisk(), "", {}, sync_relay_log_info=period)
        unbroken.start_at = Position("binlog.000001", 4)
        unbroken.start()
        unbroken.receive()
        unbroken.apply()
        persisted, memory = unbroken.status.persisted.applied, unbroken.memory.applied
        assert persisted is not None
        assert memory is not None
        assert memory.source_log_pos == end
        assert persisted.source_position == Position(
            real["Master_log_name"], real["Master_log_pos"]
        )
