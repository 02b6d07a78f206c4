"""Gaps of parallel workers: found after any kill, filled once and only once, whatever the order in
which the workers committed.

The reference does not look at positions: it knows which groups were committed, since the storage
was asked to commit them.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.binlog.header import EventType
from applier.errors import ReplicationError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.interleaving import Shuffled
from applier.replica.recovery import FILL_AGAIN, nothing_initialized
from applier.replica.replica import Replica
from applier.replica.replica_status import ReplicaPositions
from applier.replica.restarts.mend import statements
from applier.replica.restarts.restart import Moment, Restart, Seen
from applier.replica.source import BinlogFiles
from checkpoints.gtid import GtidSet
from checkpoints.simulated_disk import SimulatedDisk
from tests.replica.killable_workers import CASES, KillableStorage, Stopped, rows, source, storage
from tests.replica.recovery_scenarios import events_of

GROUPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=4, max_size=40)
WORKERS = [
    ("5.6", "DATABASE"),
    ("5.7", "DATABASE"),
    ("5.7", "LOGICAL_CLOCK"),
    ("8.0", "LOGICAL_CLOCK"),
    ("9.7", "LOGICAL_CLOCK"),
]


def killed(
    configuration: ReplicaConfiguration,
    log: BinlogFiles,
    groups: int,
    seed: int,
    data: st.DataObject,
) -> tuple[SimulatedDisk, KillableStorage]:
    """What is left of a replica that received the log and was killed when it had committed some of
    its groups."""
    disk, kept = SimulatedDisk(), storage()
    replica = Replica(
        disk,
        configuration,
        log,
        kept,
        interleaving=Shuffled(seed, checkpoint_every=data.draw(st.integers(0, 6))),
        clock=int,
    )
    replica.start()
    replica.receive()
    kept.kill_after = data.draw(st.integers(1, groups), label="killed after")
    with pytest.raises(Stopped):
        replica.apply()
    return disk, kept


@pytest.mark.parametrize(("version", "parallel_type"), WORKERS)
@settings(max_examples=CASES, deadline=None)
@given(GROUPS, st.integers(0, 1 << 30), st.data())
def test_found_and_filled(
    version: str, parallel_type: str, groups: list[tuple[int, int]], seed: int, data: st.DataObject
) -> None:
    configuration = ReplicaConfiguration(
        version,
        workers=data.draw(st.integers(1, 5), label="workers"),
        parallel_type=parallel_type,
        preserve_commit_order=False,
        relay_log_info_repository=data.draw(
            st.sampled_from(["TABLE", "FILE"] if version in ("5.6", "5.7", "8.0") else ["TABLE"])
        ),
        relay_log_recovery=data.draw(
            st.booleans() if version != "5.6" else st.just(False), label="relay_log_recovery"
        ),
        sync_master_info=1,
    )
    log = source(groups, version, rotate_at=0, gtids=False)
    disk, kept = killed(configuration, log, len(groups), seed, data)
    before = list(kept.committed)
    exact = configuration.relay_log_info_repository == "TABLE"
    again = Replica(disk, configuration, log, kept, interleaving=Shuffled(seed + 1), clock=int)
    try:
        again.start()
        if exact and not configuration.relay_log_recovery:
            mark = again.status.memory.applied
            assert mark is not None
            done = position_to_group(log, mark.source_log_pos)
            after = again.status.gaps
            assert [number in before for number in range(done, done + len(after))] == list(after)
            assert max(before) < done + len(after) or not after
            assert all(number in before for number in range(done))
        again.receive()
        again.apply()
    except ReplicationError as error:
        # a file is written after the commit: the last group before the kill comes again
        assert not exact, error
        stopped = error.__cause__ if error.number == 1872 else error
        assert isinstance(stopped, ReplicationError)
        assert stopped.number == 1062
        return
    assert rows(again) == list(range(len(groups)))
    assert len(kept.committed) == len(set(kept.committed)) == len(groups)


def position_to_group(log: BinlogFiles, position: int) -> int:
    """How many groups of the log end at or before a position."""
    content = log.files["binlog.000001"]
    at, count = 4, 0
    while at < position:
        count += content[at + 4] == EventType.XID
        at += int.from_bytes(content[at + 9 : at + 13], "little")
    return count


ONE_GAP = ((0, 0), (0, 0), (1, 0), (0, 0), (2, 0))
TWO_GAPS = ((0, 0), (0, 0), (1, 1), (2, 2))
LONG_GAP = ((0, 0), (1, 0), (2, 1), *((0, distance) for distance in range(2, 40)))


def gaps_after(
    version: str,
    groups: tuple[tuple[int, int], ...] = ONE_GAP,
    kill_after: int = 2,
    **options: object,
) -> tuple[Replica, KillableStorage]:
    """A replica that was killed with the first group committed and the youngest of those that may
    run beside one another."""
    configuration = ReplicaConfiguration(
        version, preserve_commit_order=False, workers=3, sync_master_info=1, **options
    )  # type: ignore[arg-type]
    gtids = configuration.gtid_mode
    log = source(list(groups), version, rotate_at=0, gtids=gtids)
    disk, kept = SimulatedDisk(), storage()

    class Leaping:
        """The first group, then always the youngest that may run."""

        reads_ahead = True

        def next(self, runnable: int) -> int:
            return runnable - 1 if kept.committed else 0

        def checkpoint(self) -> bool:
            return False

    replica = Replica(disk, configuration, log, kept, interleaving=Leaping(), clock=int)
    replica.start()
    replica.receive()
    kept.kill_after = kill_after
    with pytest.raises(Stopped):
        replica.apply()
    return Replica(disk, configuration, log, kept, clock=int), kept


def test_until_gaps_are_filled() -> None:
    again, kept = gaps_after("5.7", relay_log_info_repository="TABLE")
    again.start()
    assert len(kept.committed) == 2
    last = max(kept.committed)
    gaps = again.status.gaps
    assert gaps[-1] is True
    assert gaps.count(False) == last - 1
    assert again.apply_until_gaps_are_filled() == len(gaps)
    assert rows(again) == list(range(last + 1))
    assert again.status.gaps == ()
    assert [worker.executed_groups for worker in again.status.persisted.workers] == [(), (), ()]


@pytest.mark.parametrize("version", ["5.6", "5.7", "8.0", "9.7"])
def test_a_worker_that_fails_makes_no_checkpoint(version: str) -> None:
    """The coordinator dies of it: the low-water mark stays, START REPLICA finds what was executed
    (9.7.4)."""
    kept = storage()
    log = source([(0, 0)] * 5, version, rotate_at=0, gtids=False)
    kept.tables["d1.t"].insert((3,))
    kept.tables.commit()
    configuration = ReplicaConfiguration(
        version, workers=2, preserve_commit_order=False, relay_log_info_repository="TABLE"
    )
    replica = Replica(SimulatedDisk(), configuration, log, kept, clock=int)
    replica.start()
    replica.receive()
    with pytest.raises(ReplicationError, match="error 1062"):
        replica.apply()
    mark = replica.status.memory.applied
    assert mark is not None
    assert position_to_group(log, mark.source_log_pos) == 0
    assert kept.committed == [0, 1, 2]
    table = replica.tables["d1.t"]
    table.delete(next(place for place, row in table.scan() if row[0] == 3))
    kept.tables.commit()
    replica.restart_applier()
    assert replica.status.gaps == (True, True, True)
    replica.apply()
    assert kept.committed == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("version", ["5.7", "9.7"])
def test_a_relay_log_left_for_its_size_makes_no_checkpoint(version: str) -> None:
    """Nobody waits for workers because of the copy of a format description at its head (5.7.29:
    held against a kill)."""
    kept = storage()
    log = source([(0, 0)] * 60, version, rotate_at=0, gtids=False)
    kept.tables["d1.t"].insert((50,))
    kept.tables.commit()
    configuration = ReplicaConfiguration(version, workers=2, preserve_commit_order=False,
                                         parallel_type="LOGICAL_CLOCK",
                                         relay_log_info_repository="TABLE",
                                         max_relay_log_size=4096)  # fmt: skip
    replica = Replica(SimulatedDisk(), configuration, log, kept, clock=int)
    replica.start()
    replica.receive()
    assert len(replica.status.relay_logs) > 3
    with pytest.raises(ReplicationError, match="error 1062"):
        replica.apply()
    mark = replica.status.memory.applied
    assert mark is not None
    assert position_to_group(log, mark.source_log_pos) == 0
    assert kept.committed == list(range(50))


def test_5_6_refuses_recovery_with_gaps() -> None:
    again, kept = gaps_after("5.6", relay_log_recovery=True, relay_log_info_repository="TABLE")
    with pytest.raises(
        ReplicationError,
        match=r"error 1872: .*cannot be executed when the replica was stopped with an error",
    ):
        again.start()
    assert len(kept.committed) == 2


@pytest.mark.parametrize("version", ["5.7", "8.0", "9.7"])
def test_later_ones_fill_them_first(version: str) -> None:
    again, _ = gaps_after(version, relay_log_recovery=True, relay_log_info_repository="TABLE")
    again.start()
    again.receive()
    again.apply()
    assert rows(again) == list(range(5))


@pytest.mark.parametrize("version", ["5.7", "8.0", "9.7"])
def test_what_stops_the_filling_leaves_nothing_initialized(version: str) -> None:
    """It stands behind the last group that was filled, in memory and on disk; the error itself is
    in the error log (5.7.29, 9.7.4)."""
    again, kept = gaps_after(
        version, TWO_GAPS, relay_log_recovery=True, relay_log_info_repository="TABLE"
    )
    assert kept.committed == [0, 3]
    kept.tables["d2.t"].insert((2,))
    kept.tables.commit()
    with pytest.raises(
        ReplicationError, match=r"error 1872: .*error 1062: .*Next: .*restart the server"
    ):
        again.start()
    status = again.status
    assert getattr(status.applier_error, "number", None) == 1062
    for stand in (status.memory, status.persisted):
        assert stand.applied is not None
        assert position_to_group(again.source, stand.applied.source_log_pos) == 2
    assert kept.committed == [0, 3, 1]


@pytest.mark.parametrize("version", ["5.7", "8.0", "9.7"])
@pytest.mark.parametrize("bytes_left", [7, 40])
def test_what_cannot_be_read_behind_the_last_gap_does_no_harm(
    version: str, bytes_left: int
) -> None:
    """UNTIL is asked with the next event at hand; where that cannot be read the gaps are filled all
    the same (5.7.29, 9.7.4)."""
    groups = (*ONE_GAP, (0, 0))
    again, kept = gaps_after(
        version, groups, relay_log_recovery=True, relay_log_info_repository="TABLE"
    )
    info = again.status.persisted
    place = max(worker.relay_position for worker in info.workers)
    assert isinstance(again.disk, SimulatedDisk)
    file = again.disk.open(place.file)
    assert file.size() > place.offset + bytes_left
    file.truncate(place.offset + bytes_left)
    file.close()
    again.start()
    begun = again.status.memory.applied
    assert begun is not None
    assert position_to_group(again.source, begun.source_log_pos) == max(kept.committed) + 1
    again.receive()
    again.apply()
    assert sorted(kept.committed) == rows(again) == list(range(len(groups)))


def test_the_commands_are_for_what_stopped_the_filling() -> None:
    """An XA transaction whose prepare was lost: made again, then the server fills the gaps at its
    next start."""
    again, _ = gaps_after("5.7", relay_log_recovery=True)
    with pytest.raises(ReplicationError) as caught, nothing_initialized(FILL_AGAIN):
        raise ReplicationError(
            1397, "Error 'XAER_NOTA: Unknown XID' on query. Query: 'XA COMMIT 'x''"
        )
    seen = Seen(ReplicaPositions(None, None), GtidSet(), GtidSet())
    found = Restart(
        again.configuration, seen, seen, None, {Moment.START: caught.value}, (), (), None, (), ()
    )
    first, *rest = statements(found)
    assert first.startswith("# execute the XA START to XA PREPARE of the transaction again")
    assert rest == ["# restart the server: it fills the gaps first", "START SLAVE;"]


@pytest.mark.parametrize("version", ["5.7", "8.0", "9.7"])
def test_auto_position_needs_no_gaps(version: str) -> None:
    again, _ = gaps_after(version, relay_log_recovery=True, gtid_mode=True, auto_position=True)
    again.start()
    assert again.status.gaps == ()
    again.receive()
    again.apply()
    assert rows(again) == list(range(5))


@pytest.mark.parametrize("version", ["5.7", "8.0", "9.7"])
def test_relay_logs_that_are_gone(version: str) -> None:
    again, kept = gaps_after(version, relay_log_info_repository="TABLE")
    disk = again.disk
    names = [name for name in disk.names() if name.startswith("relay.0")]
    assert isinstance(disk, SimulatedDisk)
    newest = disk.open(names[-1])
    newest.truncate(200)
    newest.close()
    with pytest.raises(ReplicationError, match="error 1201: "):
        again.start()
    assert len(kept.committed) == 2


@pytest.mark.parametrize(("version", "number"), [("5.7", 1594), ("8.0", 13121), ("9.7", 13121)])
def test_an_event_that_cannot_be_read_before_the_last_group_of_a_worker(
    version: str, number: int
) -> None:
    """Gaps are looked for in the next file, too; the applier fills them up to the damage (5.7.29,
    9.7.4)."""
    again, kept = gaps_after(
        version, LONG_GAP, 30, relay_log_info_repository="TABLE", max_relay_log_size=4096
    )
    disk = again.disk
    assert isinstance(disk, SimulatedDisk)
    first = disk.open("relay.000002")
    last = first.size() - 6
    first.write(last, bytes([first.read(last, 1)[0] ^ 4]))
    first.close()
    again.start()
    assert again.status.gaps == (True, False, False, *[True] * 29)
    assert len(kept.committed) == 30
    with pytest.raises(
        ReplicationError, match="the checksum of a Rotate event is wrong"
    ) as stopped:
        again.apply()
    assert stopped.value.number == number
    assert kept.committed[30:] == [1, 2]


def test_the_position_moves_with_each_statement_of_a_group_that_is_skipped() -> None:
    """No transaction is open then. The relay log ends inside of such a group, behind its rows: a
    real 5.7.29 stands there, too."""
    again, kept = gaps_after(
        "9.7", LONG_GAP, 30, relay_log_info_repository="TABLE", max_relay_log_size=4096
    )
    disk = again.disk
    assert isinstance(disk, SimulatedDisk)
    content = disk.contents()["relay.000002"]
    parts = events_of(content)
    at = len(content) - sum(map(len, parts[-2:]))
    assert [part[4] for part in parts[-3:]] == [
        EventType.WRITE_ROWS,
        EventType.XID,
        EventType.ROTATE,
    ]
    file = disk.open("relay.000002")
    file.truncate(at + 7)
    file.close()
    again.start()
    # ends of groups are counted, and one of 32 is missing
    assert again.status.gaps == (True, False, *[True] * 29)
    with pytest.raises(ReplicationError, match="ends inside an event"):
        again.apply()
    assert kept.committed[30:] == [1]
    stands = again.memory.applied
    assert stands is not None
    assert (stands.relay_log_name.removeprefix("./"), stands.relay_log_pos) == ("relay.000002", at)
    assert stands.source_log_pos == int.from_bytes(parts[-3][13:17], "little")


@pytest.mark.parametrize(("version", "parallel_type"), WORKERS)
@settings(max_examples=CASES, deadline=None)
@given(GROUPS, st.integers(0, 1 << 30), st.data())
def test_over_two_logs(
    version: str, parallel_type: str, groups: list[tuple[int, int]], seed: int, data: st.DataObject
) -> None:
    """Nothing is lost or done twice; where workers are in the source's next log and the low-water
    mark is not, START REPLICA may fail as the server's does. With auto-position and recovery nobody
    has to look, except in 5.6.
    """
    gtids = data.draw(st.booleans(), label="gtids")
    configuration = ReplicaConfiguration(
        version,
        workers=data.draw(st.integers(1, 5), label="workers"),
        parallel_type=parallel_type,
        preserve_commit_order=False,
        relay_log_info_repository="TABLE",
        relay_log_recovery=version != "5.6",
        gtid_mode=gtids,
        auto_position=gtids,
        sync_master_info=1,
    )
    log = source(
        groups,
        version,
        rotate_at=data.draw(st.integers(1, len(groups) - 1), label="second log"),
        gtids=gtids,
    )
    disk, kept = killed(configuration, log, len(groups), seed, data)
    again = Replica(disk, configuration, log, kept, interleaving=Shuffled(seed + 1), clock=int)
    try:
        again.start()
    except ReplicationError as error:
        persisted = again.status.persisted
        assert persisted.applied is not None
        assert not gtids or version == "5.6"
        assert error.number == 1201
        assert any(
            worker.source_log_name > persisted.applied.source_log_name
            for worker in persisted.workers
        )
        return
    again.receive()
    again.apply()
    assert rows(again) == list(range(len(groups)))
    assert len(kept.committed) == len(set(kept.committed)) == len(groups)
