"""Repositories: what is kept where, when, and what a crash makes of it."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints import bitmap
from checkpoints.crash import Crashed, CrashKind, CrashPoint, Fault, crash_points
from checkpoints.disk import Disk, RealDisk
from checkpoints.errors import CheckpointError, InfoError
from checkpoints.info import RelayLogInfo, SourceInfo, WorkerInfo
from checkpoints.info_files import encode, parse
from checkpoints.info_rows import to_row
from checkpoints.outcomes import CrashOutcome, Medium
from checkpoints.position import Position
from checkpoints.repositories import Repositories
from checkpoints.repository import FileRepository, Repository, TableRepository
from checkpoints.simulated_disk import Coverage, SimulatedDisk
from checkpoints.sync_rules import Occasion, SyncOptions
from checkpoints.table_store import MemoryTableStore
from tests.checkpoints import recovery_captures as real

START = RelayLogInfo("./relay.000001", 4, "binlog.000001", 4)


def moved(number: int) -> RelayLogInfo:
    return START.at(
        Position("./relay.000002", 100 * number), Position("binlog.000001", 1000 * number)
    )


def opened(disk: Disk, period: int = 0, server: str = "5.7") -> Repository[RelayLogInfo]:
    repository = FileRepository(disk, RelayLogInfo, server, period)
    repository.read()
    return repository


@pytest.mark.parametrize("make", [RealDisk, lambda _: SimulatedDisk()], ids=["real", "simulated"])
def test_a_file(make: Callable[[Path], Disk], tmp_path: Path) -> None:
    disk = make(tmp_path)
    repository = opened(disk)
    assert repository.read() is None
    repository.flush(moved(1), Occasion.COMMIT)
    repository.flush(START, Occasion.STOP)
    assert disk.names() == ("relay-log.info",)
    assert opened(disk).read() == START
    found = FileRepository(disk, RelayLogInfo, "5.7", 0).read_file()
    assert found is not None
    assert found.stale == encode(moved(1), "5.7")[len(encode(START, "5.7")) :] == b"0\n1\n\n"
    repository.remove()
    assert disk.names() == ()
    repository.flush(START, Occasion.CHANGE)
    assert disk.names() == ("relay-log.info",)


def test_one_write_and_one_fsync() -> None:
    disk = SimulatedDisk()
    repository = opened(disk, period=2)
    for number in range(1, 4):
        repository.flush(moved(number), Occasion.COMMIT)
    assert [operation.action for operation in disk.operations] == [
        "create",
        "write",
        "write",
        "fsync",
        "write",
    ]


def test_every_crash_of_a_synced_position() -> None:
    """With sync_relay_log_info=1 the file says, after any crash of a disk with whole sectors, the
    last or the last but one position."""
    for kind in CrashKind:
        for crash in points(sector_bytes=512):
            disk, acknowledged = crashed(crash, sector_bytes=512)
            for outcome, left in disk.crashes(kind, Coverage.EVERY):
                found = opened(left).read()
                assert found in (moved(acknowledged), moved(acknowledged + 1)), (
                    str(crash),
                    str(outcome),
                )


def test_what_a_torn_position_looks_like() -> None:
    """On a disk that tears anywhere, a position overwritten in place can become one that never was:
    the counter-example is kept."""
    wrong = set()
    for crash in points(sector_bytes=1):
        disk, acknowledged = crashed(crash, sector_bytes=1)
        for _, left in disk.crashes(CrashKind.OS, Coverage.EVERY):
            found = opened(left).read()
            if found not in (moved(acknowledged), moved(acknowledged + 1)):
                assert found is not None
                wrong.add((str(found.relay_position), str(found.source_position)))
    assert ("./relay.000002:300", "binlog.000001:2000") in wrong


def workload(disk: Disk, done: Callable[[int], None]) -> None:
    repository = opened(disk, period=1)
    for number in range(2, 5):
        repository.flush(moved(number), Occasion.COMMIT)
        done(number)


def before() -> dict[str, bytes]:
    return {"relay-log.info": encode(moved(1), "5.7")}


def points(sector_bytes: int) -> list[CrashPoint]:
    disk = SimulatedDisk(before())
    workload(disk, lambda _: None)
    return list(crash_points(disk.operations, sector_bytes=sector_bytes))


def crashed(crash: CrashPoint, sector_bytes: int) -> tuple[SimulatedDisk, int]:
    """The disk of a run that was cut off, and the last position that was acknowledged."""
    disk = SimulatedDisk(
        before(), medium=Medium(sector_bytes=sector_bytes, extends_with_zeros=False), crash_at=crash
    )
    acknowledged = [1]
    with pytest.raises(Crashed):
        workload(disk, acknowledged.append)
    return disk, acknowledged[-1]


def test_an_empty_file_after_the_first_start() -> None:
    """Killed between creating the file and writing it, the server finds an empty one and does not
    start."""
    disk = SimulatedDisk(crash_at=CrashPoint.parse("1 after"))
    with pytest.raises(Crashed):
        opened(disk).flush(START, Occasion.CHANGE)
    left = disk.after(CrashOutcome(CrashKind.PROCESS))
    assert left.contents() == {"relay-log.info": b""}
    with pytest.raises(InfoError, match="empty"):
        opened(left)


@pytest.mark.parametrize("content", [b"", b"7\n./relay.000001\n4\nbin", b"[mysqld]\n", bytes(50)])
def test_bad_input_is_not_overwritten(content: bytes) -> None:
    disk = SimulatedDisk({"relay-log.info": content})
    repository = FileRepository(disk, RelayLogInfo, "5.7", 1)
    with pytest.raises(InfoError, match=r"file relay-log\.info, line \d"):
        repository.read()
    with pytest.raises(CheckpointError, match="not with success"):
        repository.flush(START, Occasion.STOP)
    assert disk.contents() == {"relay-log.info": content}
    assert disk.operations == []
    repository.remove()
    repository.flush(START, Occasion.STOP)
    assert opened(disk).read() == START


def test_a_record_that_cannot_be_written_leaves_the_file_as_it_is() -> None:
    disk = SimulatedDisk(before())
    repository = opened(disk)
    with pytest.raises(CheckpointError, match="line feed"):
        repository.flush(replace(START, relay_log_name="a\nb"), Occasion.STOP)
    with pytest.raises(CheckpointError, match="error 3077"):
        repository.flush(replace(START, channel_name="c"), Occasion.STOP)
    assert disk.contents() == before()


def test_a_full_disk_and_a_failing_fsync() -> None:
    disk = SimulatedDisk(capacity_bytes=20)
    repository = opened(disk)
    with pytest.raises(OSError, match="No space left"):
        repository.flush(START, Occasion.STOP)
    with pytest.raises(InfoError, match=r"file relay-log\.info"):
        opened(disk)
    disk = SimulatedDisk(before(), faults=[Fault(2, errno.EIO)], medium=Medium(sector_bytes=512))
    repository = opened(disk)
    with pytest.raises(OSError, match="Input/output"):
        repository.flush(moved(2), Occasion.STOP)
    assert repository.read() == moved(2), "the page cache has it"
    assert [opened(left).read() for _, left in disk.crashes(CrashKind.OS)] == [moved(1)], (
        "the disk has not"
    )


def rows_of(store: MemoryTableStore, table: str) -> list[dict[str, Any]]:
    return [dict(row) for row in store.rows(table)]


def test_a_transactional_table() -> None:
    """The position goes with the transaction, whatever N is."""
    store = MemoryTableStore()
    repository = TableRepository(store, RelayLogInfo, "8.0", 0)
    assert repository.read() is None
    repository.flush(START, Occasion.CHANGE)
    store.begin()
    assert repository.flush(moved(1), Occasion.COMMIT).writes
    assert repository.read() == moved(1)
    store.rollback()
    assert repository.read() == START
    store.begin()
    repository.flush(moved(1), Occasion.COMMIT)
    store.commit()
    store.rollback()
    assert rows_of(store, "slave_relay_log_info") == [to_row(moved(1), "8.0")]


def test_a_nontransactional_table() -> None:
    """The row stays where it was while the data move on; what is written is not taken back."""
    store = MemoryTableStore(transactional=False)
    repository = TableRepository(store, RelayLogInfo, "5.7", 3)
    repository.read()
    repository.flush(START, Occasion.CHANGE)
    seen = []
    for number in range(1, 5):
        store.begin()
        repository.flush(moved(number), Occasion.COMMIT)
        store.rollback()
        seen.append(repository.read())
    assert seen == [START, START, moved(3), moved(3)]


def test_channels_and_workers() -> None:
    store = MemoryTableStore()
    home = Repositories("9.7", SimulatedDisk(), store)
    for channel in ("", "east"):
        repository = home.relay_log_info(channel)
        repository.read()
        repository.flush(replace(START, channel_name=channel), Occasion.CHANGE)
        for number in (1, 2):
            worker = home.worker_info(number, channel)
            worker.read()
            worker.flush(
                WorkerInfo(
                    id=number, channel_name=channel, checkpoint_group_bitmap=bitmap.of([number])
                ),
                Occasion.COMMIT,
            )
    assert [(row["Channel_name"], row["Id"]) for row in store.rows("slave_worker_info")] == [
        ("", 1),
        ("", 2),
        ("east", 1),
        ("east", 2),
    ]
    assert [worker.executed_groups for worker in home.workers(2, "east")] == [(1,), (2,)]
    with pytest.raises(
        CheckpointError,
        match=re.escape(
            "mysql.slave_worker_info (Channel_name='east', Id=3) is not there, but 3 workers ran"
        ),
    ):
        home.workers(3, "east")
    with pytest.raises(CheckpointError, match="the record's Channel_name is 'west'"):
        wrong = home.relay_log_info("east")
        wrong.read()
        wrong.flush(replace(START, channel_name="west"), Occasion.STOP)
    home.worker_info(2, "east").remove()
    assert len(store.rows("slave_worker_info")) == 3


def test_worker_files() -> None:
    disk = SimulatedDisk()
    home = Repositories("5.7", disk)
    for number in (1, 2):
        repository = home.worker_info(number)
        repository.read()
        repository.flush(WorkerInfo(id=number), Occasion.GROUP_END)
    assert disk.names() == ("worker-relay-log.info.1", "worker-relay-log.info.2")
    assert [worker.id for worker in home.workers(2)] == [1, 2]
    with pytest.raises(CheckpointError, match=r"worker-relay-log\.info\.3 is not there"):
        home.workers(3)


def test_one_row_in_5_6() -> None:
    store = MemoryTableStore()
    home = Repositories(
        "5.6",
        SimulatedDisk(),
        store,
        relay_log_info_repository="table",
        master_info_repository="TABLE",
    )
    for host in ("one", "two"):
        repository = home.source_info()
        repository.read()
        repository.flush(SourceInfo(host=host), Occasion.CHANGE)
    assert [row["Host"] for row in store.rows("slave_master_info")] == ["two"]
    store.write("slave_master_info", {"Host": "three"}, to_row(SourceInfo(host="three"), "5.6"))
    with pytest.raises(CheckpointError, match="2 rows instead of one"):
        home.source_info().read()
    with pytest.raises(CheckpointError, match="channels came with"):
        home.relay_log_info("east")


@pytest.mark.parametrize(
    ("server", "options", "message"),
    [
        ("8.3.0", {"relay_log_info_repository": "FILE"}, "taken away in 8.3"),
        ("9.7", {"master_info_repository": "FILE"}, "taken away in 8.3"),
        ("5.5", {"master_info_repository": "TABLE"}, "tables came with 5.6"),
        ("8.0", {"master_info_repository": "MEMORY"}, "give FILE or TABLE"),
    ],
)
def test_options_refused_before_anything_is_read(
    server: str, options: dict[str, str], message: str
) -> None:
    disk = SimulatedDisk({"relay-log.info": b"garbage"})
    with pytest.raises(CheckpointError, match=message):
        Repositories(server, disk, MemoryTableStore(), **options)


def test_defaults_of_the_versions() -> None:
    disk, store = SimulatedDisk(), MemoryTableStore()
    for server, kept in (("5.5", "FILE"), ("5.7", "FILE"), ("8.0", "TABLE"), ("9.7", "TABLE")):
        assert Repositories(server, disk, store).relay_log_info().kept == kept
        assert Repositories(server, disk, store).source_info().counter.period == (
            0 if server == "5.5" else 10000
        )
    assert (
        Repositories("5.7", disk, options=SyncOptions(sync_relay_log_info=1))
        .worker_info(1)
        .counter.period
        == 1
    )
    with pytest.raises(CheckpointError, match="no tables to keep it in"):
        Repositories("8.0", disk)
    with pytest.raises(CheckpointError, match="error 3077"):
        Repositories("5.7", disk).source_info("east")


def test_real_sequences() -> None:
    """Real files of one replica after each other, written over each other: each is what the next
    start reads."""
    for scenario in real.scenarios():
        if "_file_" not in scenario.name:
            continue
        disk = SimulatedDisk()
        server = real.version(scenario)
        repository = FileRepository(disk, RelayLogInfo, server, 1)
        repository.read()
        for path in sorted((scenario / "raw").glob("*.relay-log.info")):
            record = parse(RelayLogInfo, path.read_bytes(), server).record
            repository.flush(record, Occasion.STOP)
            assert FileRepository(disk, RelayLogInfo, server, 1).read() == record
            assert disk.contents()["relay-log.info"].startswith(encode(record, server))


@given(
    st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**12)), min_size=1, max_size=8),
    st.integers(0, 3),
)
def test_unsynced_positions_after_a_crash(positions: list[tuple[int, int]], period: int) -> None:
    """On a disk with whole sectors an OS crash leaves a position that was written, and none older
    than the last synced one."""
    records = [
        START.at(Position("./relay.000002", relay), Position("binlog.000001", source))
        for relay, source in positions
    ]
    disk = SimulatedDisk({"relay-log.info": encode(START, "5.7")}, medium=Medium(sector_bytes=512))
    repository = opened(disk, period)
    allowed = [START]
    for record in records:
        done = repository.flush(record, Occasion.COMMIT)
        allowed = [record] if done.syncs else [*allowed, record]
    left = [opened(found).read() for _, found in disk.crashes(CrashKind.OS, Coverage.EVERY)]
    assert all(record in allowed for record in left)
    assert all(record in left for record in allowed)
