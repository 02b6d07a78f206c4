"""The receiver is killed between two writes: an event is in the relay log, and its record in
slave_master_info does not say so yet.

With TABLE repositories, relay_log_recovery=0 and everything synced at once, this is the window that
a crash can hit, too small for the kills under load. A real replica that has received everything and
applied nothing is killed, its relay log ends after some event of the last transaction, and its
record says that this event is still to come. After the restart the event is there twice, and the
emulated replica has to make the same of it as the real one: a rows event does harm (1062) unless it
is the last of its statement, whose table maps end with it.
"""

from __future__ import annotations

import os
import re
from typing import Any

from applier.binlog.header import EventType
from checkpoints.simulated_disk import SimulatedDisk
from tests.replica.real_pairs import shown
from tests.replica.recovery_scenarios import events_of
from tests.replica.test_real_cut_relay_logs import TABLE_REPOSITORIES, CutPair, emulated
from tests.servers.fixtures import ServerFactory

ALL = os.environ.get("BINLAG_ALL_CASES") == "1"
LONG = 6000
"""Bytes of a row of which two do not go into one rows event (binlog_row_event_max_size)."""
CASES = [(EventType.WRITE_ROWS, -1, 0), (EventType.WRITE_ROWS, -2, 1062), (EventType.XID, -1, 0)]
MORE = [(EventType.QUERY, -1, 0), (EventType.TABLE_MAP, -1, 0), (EventType.ANONYMOUS_GTID, -1, 0)]
"""The event that comes twice, which of its type, and the number of the error."""


def fall_behind(pair: CutPair, kind: EventType, which: int) -> SimulatedDisk:
    """The killed data, as they were when this event had just been written to the relay log."""
    pair.cut(0, 0)
    newest = sorted(pair.replica.data.glob("relay.0*"))[-1]
    events = events_of(newest.read_bytes())
    last = [number for number, event in enumerate(events) if event[4] == kind][which]
    pair.cut(len(events) - 1 - last, 0)
    position = int.from_bytes(events[last][13:17], "little") - len(events[last])
    pair.replica.start()
    pair.replica.execute(f"UPDATE mysql.slave_master_info SET Master_log_pos = {position}")
    pair.replica.kill()
    kept = re.compile(r"relay\.(\d+|index)")
    return SimulatedDisk(
        {
            path.name: path.read_bytes()
            for path in pair.replica.data.iterdir()
            if kept.fullmatch(path.name)
        }
    )


def test_event_comes_twice(server_factory: ServerFactory) -> None:
    options: dict[str, Any] = {
        "relay_log_purge": 1,
        "sync_master_info": 1,
        "sync_relay_log_info": 1,
        **TABLE_REPOSITORIES,
    }
    with CutPair(server_factory, "5.7", **options) as pair:
        pair.prepare(f"INSERT INTO d.t VALUES (20, REPEAT('x', {LONG})), (21, REPEAT('x', {LONG}))")
        for kind, which, expected in CASES + (MORE if ALL else []):
            disk = fall_behind(pair, kind, which)
            pair.replica.start()
            own = emulated(pair, disk, "", pair.rows())
            own.start()
            assert shown(own) == pair.seen(pair.status()), kind
            assert pair.go_on(own) == expected, kind
            assert len(own.tables["d.t"]) == pair.replica.query("SELECT COUNT(*) FROM d.t")[0][0], (
                kind
            )
