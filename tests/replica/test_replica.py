"""A replica catches up: its tables are the source's, its positions the source's end, whatever its
options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from applier.errors import ReplicationError, UsageError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.interleaving import Shuffled
from checkpoints.position import Position
from tests.replica.replicas import Rig, contents, replayed

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("my_oltp_compressed_rotated", "9.7", {"workers": 1}),
    ("my_oltp_compressed_rotated", "8.0", {"workers": 4, "gtid_mode": True, "auto_position": True}),
    ("my_tagged_gtid", "9.7",
     {"workers": 3, "preserve_commit_order": False, "gtid_mode": True, "auto_position": True}),
    ("my57_xa", "5.7", {}),
    ("my57_xa", "5.7",
     {"workers": 3, "parallel_type": "DATABASE", "relay_log_info_repository": "TABLE"}),
    ("my_ddl", "8.0", {"workers": 0, "relay_log_info_repository": "FILE"}),
    ("my_statement_mixed", "8.0", {"workers": 3, "preserve_commit_order": False}),
    ("my56_anonymous_nochecksum", "5.6", {"workers": 3, "relay_log_info_repository": "TABLE"}),
    ("my56_anonymous_nochecksum", "5.6", {"max_relay_log_size": 4096}),
    ("my57_xa", "5.7", {"max_relay_log_size": 4096, "relay_log_purge": False}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("capture", "version", "options"), CASES, ids=lambda value: str(value).replace(" ", "")
)
def test_catches_up(capture: str, version: str, options: dict[str, Any], tmp_path: Path) -> None:
    rig = Rig.of(capture)
    replica = rig.replica(version, Shuffled(7), **options)
    assert replica.receive() > 0
    applied = replica.apply()
    assert contents(replica.tables) == replayed(capture, version)
    replica.shutdown()
    status = replica.status
    assert status.memory.applied is not None
    assert status.memory.received is not None
    assert status.persisted.applied == status.memory.applied
    assert (
        status.memory.applied.source_position
        == status.memory.received.source_position
        == status.persisted.received.source_position
    )  # type: ignore[union-attr]
    again = rig.replica(version, Shuffled(7), **options)
    assert again.apply() == 0
    assert contents(again.tables) == replayed(capture, version)
    assert applied > 40
    assert rig.relay_events(tmp_path)


def test_in_small_steps_it_is_the_same() -> None:
    steps, whole = Rig.of("my57_xa"), Rig.of("my57_xa")
    replica = steps.replica("5.7")
    while replica.receive(3) or replica.apply(1):
        replica.apply(1)
    other = whole.replica("5.7")
    other.receive()
    other.apply()
    assert contents(replica.tables) == contents(other.tables)
    assert replica.status.memory == other.status.memory
    newest = replica.status.relay_logs[-1].removeprefix("./")
    assert steps.disk.contents()[newest] == whole.disk.contents()[newest]


def test_a_log_that_the_source_no_longer_has() -> None:
    rig = Rig.of("my57_xa")
    replica = rig.replica("5.7", start_at=Position("binlog.000009", 4))
    with pytest.raises(
        ReplicationError,
        match=r"error 1236: .*Could not find first log file.*binlog\.000001 to binlog\.000003",
    ):
        replica.receive()
    assert isinstance(replica.status.receiver_error, ReplicationError)


def test_gtids_that_the_source_has_purged() -> None:
    rig = Rig.of("my57_xa")
    del rig.source.files["binlog.000001"]
    replica = rig.replica("5.7", gtid_mode=True, auto_position=True)
    with pytest.raises(ReplicationError, match=r"error 1236: .*purged required binary logs"):
        replica.receive()


@pytest.mark.parametrize(
    ("version", "options", "message"),
    [
        ("9.7", {"relay_log_info_repository": "FILE"}, "has no relay_log_info_repository=FILE"),
        ("8.4", {"master_info_repository": "FILE"}, "files were taken away in 8.3"),
        ("9.7", {"workers": 0}, "takes 1 to 1024"),
        ("9.7", {"parallel_type": "DATABASE"}, "has no parallel_type=DATABASE"),
        ("5.6", {"parallel_type": "LOGICAL_CLOCK"}, "it has DATABASE"),
        ("5.6", {"preserve_commit_order": True, "workers": 2}, r"came with 5\.7\.5"),
        ("8.0", {"auto_position": True}, "error 1777"),
        ("8.0", {"max_relay_log_size": 100}, "4096 bytes"),
        ("5.5", {}, "5.5 is older than 5.6"),
        ("8.0", {"sync_relay_log": -1}, "sync_relay_log=-1"),
    ],
)
def test_refused_before_anything_is_read(
    version: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        ReplicaConfiguration(version, **options)
