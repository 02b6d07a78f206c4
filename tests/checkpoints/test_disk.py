"""The disks: the simulated one beside the real one, and beside a naive model that keeps a snapshot
after every step."""

from __future__ import annotations

import errno
import itertools
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.crash import (
    Crashed,
    CrashKind,
    CrashMoment,
    CrashPoint,
    Fault,
    crash_points,
    tears,
)
from checkpoints.disk import Disk, RealDisk, plain, read_file
from checkpoints.errors import CheckpointError
from checkpoints.memory_disk import MemoryDisk
from checkpoints.outcomes import CrashOutcome, FileRemains, Medium
from checkpoints.simulated_disk import Coverage, SimulatedDisk

NAMES = ("a", "b", "c")
TAME = Medium(reorders_within_files=False, extends_with_zeros=False)

Step = tuple[str, str, int, bytes]
STEPS = st.tuples(
    st.sampled_from(
        ["write", "write", "write", "truncate", "fsync", "rename", "remove", "fsync names"]
    ),
    st.sampled_from(NAMES),
    st.integers(0, 6),
    st.binary(min_size=0, max_size=5),
)
PROGRAMS = st.lists(STEPS, max_size=7)


def run(disk: Disk, steps: list[Step]) -> Iterator[None]:
    """A program of random steps; what it does to a file that is not there creates the file or is
    left out."""
    for action, name, number, data in steps:
        if action == "write":
            with closing(disk.open(name, create=True)) as file:
                file.write(number, data)
        elif action == "fsync names":
            disk.fsync_names()
        elif name in disk.names():
            if action == "truncate":
                with closing(disk.open(name)) as file:
                    file.truncate(number)
            elif action == "fsync":
                with closing(disk.open(name)) as file:
                    file.fsync()
            elif action == "rename":
                disk.rename(name, NAMES[number % 3])
            else:
                disk.remove(name)
        yield


class Naive:
    """Keeps every file as it was after each step since its last fsync, and all names likewise."""

    def __init__(self, fsync_names: bool) -> None:
        self.fsync_names = fsync_names
        self.names: list[dict[str, int]] = [{}]
        self.snapshots: dict[int, list[bytes]] = {}
        self.torn: dict[int, list[bytes]] = {}
        self.touched: list[int | None] = []
        """Which file each snapshot of names after the first is about."""

    def do(self, steps: list[Step]) -> None:
        for action, name, number, data in steps:
            now = dict(self.names[-1])
            if action == "write":
                if name not in now:
                    now[name] = len(self.snapshots)
                    self.snapshots[now[name]], self.torn[now[name]] = [b""], []
                    self.names.append(now)
                    self.touched.append(now[name])
                for done in (1, len(data) // 2, len(data) - 1):
                    if 0 < done < len(data):
                        self.torn[now[name]].append(self.written(now[name], number, data[:done]))
                if data:
                    self.snapshots[now[name]].append(self.written(now[name], number, data))
            elif action == "fsync names":
                self.names, self.touched = self.names[-1:], []
            elif name in now:
                self.do_to(now, action, name, number)

    def do_to(self, now: dict[str, int], action: str, name: str, number: int) -> None:
        file = now[name]
        if action == "truncate":
            self.snapshots[file].append(self.snapshots[file][-1][:number].ljust(number, b"\0"))
        elif action == "fsync":
            self.snapshots[file], self.torn[file] = self.snapshots[file][-1:], []
            if self.fsync_names and file in self.touched:
                last = len(self.touched) - self.touched[::-1].index(file)
                self.names, self.touched = self.names[last:], self.touched[last:]
        elif action == "remove":
            del now[name]
            self.names.append(now)
            self.touched.append(None)
        elif name != NAMES[number % 3]:
            now[NAMES[number % 3]] = now.pop(name)
            self.names.append(now)
            self.touched.append(file)

    def written(self, file: int, offset: int, data: bytes) -> bytes:
        content = self.snapshots[file][-1]
        return content[:offset].ljust(offset, b"\0") + data + content[offset + len(data) :]

    def cached(self) -> dict[str, bytes]:
        return {name: self.snapshots[file][-1] for name, file in self.names[-1].items()}

    def crashes(self) -> set[tuple[tuple[str, bytes], ...]]:
        found = set()
        for names in self.names:
            for contents in itertools.product(
                *({*self.snapshots[file], *self.torn[file]} for file in names.values())
            ):
                found.add(tuple(sorted(zip(names, contents, strict=True))))
        return found


def states(
    disk: SimulatedDisk, kind: CrashKind, coverage: Coverage
) -> set[tuple[tuple[str, bytes], ...]]:
    return {tuple(left.contents().items()) for _, left in disk.crashes(kind, coverage)}


@given(PROGRAMS)
def test_simulated_and_real(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        real, simulated = RealDisk(folder), SimulatedDisk()
        for _ in zip(run(real, steps), run(simulated, steps), strict=True):
            assert real.names() == simulated.names()
            assert {name: read_file(real, name) for name in real.names()} == simulated.contents()
            for name in real.names():
                with real.open(name) as file:
                    assert file.size() == simulated.open(name).size()
                    assert file.read(2, 3) == simulated.open(name).read(2, 3)
        assert {
            path.name: path.read_bytes() for path in Path(folder).iterdir()
        } == simulated.contents()


@given(PROGRAMS)
def test_memory_and_simulated(steps: list[Step]) -> None:
    memory, simulated = MemoryDisk({"./c": b"there"}), SimulatedDisk({"./c": b"there"})
    before = memory.open("c")
    for _ in zip(run(memory, steps), run(simulated, steps), strict=True):
        assert memory.names() == simulated.names()
        assert memory.contents() == simulated.contents()
        for name in memory.names():
            with closing(memory.open(name)) as file:
                assert (file.name, file.size(), file.read(2, 3)) == (
                    name,
                    simulated.open(name).size(),
                    simulated.open(name).read(2, 3),
                )
    assert before.read() == before.read(0, before.size())
    for missing in (memory.open, memory.remove, lambda name: memory.rename(name, "a")):
        with pytest.raises(FileNotFoundError) as error:
            missing("./not there")
        assert (error.value.errno, error.value.filename) == (errno.ENOENT, "not there")


@given(PROGRAMS, st.booleans())
def test_crashes_beside_the_naive_model(steps: list[Step], fsync_names: bool) -> None:
    """The tame disk leaves exactly the states that the naive model has; the wild one leaves those
    and others."""
    naive = Naive(fsync_names)
    naive.do(steps)
    tame = SimulatedDisk(
        medium=Medium(
            reorders_within_files=False, extends_with_zeros=False, fsync_names=fsync_names
        )
    )
    wild = SimulatedDisk(medium=Medium(block_bytes=2, fsync_names=fsync_names))
    for _ in zip(run(tame, steps), run(wild, steps), strict=True):
        pass
    assert states(tame, CrashKind.PROCESS, Coverage.EVERY) == {
        tuple(sorted(naive.cached().items()))
    }
    every = states(tame, CrashKind.OS, Coverage.EVERY)
    assert every == naive.crashes()
    corners = states(tame, CrashKind.OS, Coverage.CORNERS)
    assert corners <= every
    edges = states(tame, CrashKind.OS, Coverage.EDGES)
    assert edges <= corners
    assert states(wild, CrashKind.OS, Coverage.EDGES) <= states(
        wild, CrashKind.OS, Coverage.CORNERS
    )
    lost = {name: naive.snapshots[file][0] for name, file in naive.names[0].items()}
    assert {tuple(sorted(naive.cached().items())), tuple(sorted(lost.items()))} <= edges
    assert tuple(sorted(naive.cached().items())) in corners
    assert naive.crashes() <= states(wild, CrashKind.OS, Coverage.EVERY)


@given(PROGRAMS)
def test_every_byte_that_is_left_was_written(steps: list[Step]) -> None:
    """Whatever a wild disk leaves: each byte is of the durable file, of a later write, or a zero in
    a place that the file has grown by."""
    disk = SimulatedDisk({"a": b"durable"}, medium=Medium(block_bytes=2))
    for _ in run(disk, steps):
        pass
    bytes_written = {
        0,
        *b"durable",
        *(byte for action, _, _, data in steps if action == "write" for byte in data),
    }
    for _, left in disk.crashes(CrashKind.OS, Coverage.CORNERS):
        for name, content in left.contents().items():
            assert name in NAMES
            assert set(content) <= bytes_written


@given(PROGRAMS)
def test_outcomes_as_text(steps: list[Step]) -> None:
    """An outcome is a line of text that leads to the same disk again, and all come in the same
    order each time."""
    disks = [SimulatedDisk({"a": b"durable"}, medium=Medium(block_bytes=2)) for _ in range(2)]
    for _ in zip(run(disks[0], steps), run(disks[1], steps), strict=True):
        pass
    for kind in CrashKind:
        first, second = ([str(outcome) for outcome in disk.outcomes(kind)] for disk in disks)
        assert first == second
        assert len(set(first)) == len(first)
        for outcome in disks[0].outcomes(kind):
            again = CrashOutcome.parse(str(outcome))
            assert again == outcome
            assert disks[1].after(again).contents() == disks[0].after(outcome).contents()


@given(PROGRAMS)
def test_crash_points(steps: list[Step]) -> None:
    """A run that is cut off at a point has the disk that an observer saw at that point; the
    observer changes nothing."""
    seen: dict[CrashPoint, dict[str, bytes]] = {}
    watched = SimulatedDisk(
        medium=TAME, observer=lambda disk, point: seen.__setitem__(point, disk.contents())
    )
    plain_run = SimulatedDisk(medium=TAME)
    for _ in zip(run(watched, steps), run(plain_run, steps), strict=True):
        pass
    assert watched.contents() == plain_run.contents()
    assert states(watched, CrashKind.OS, Coverage.EVERY) == states(
        plain_run, CrashKind.OS, Coverage.EVERY
    )
    points = list(crash_points(plain_run.operations))
    assert points == list(seen)
    for point in points:
        assert CrashPoint.parse(str(point)) == point
        disk = SimulatedDisk(medium=TAME, crash_at=point)
        with pytest.raises(Crashed) as caught:
            for _ in run(disk, steps):
                pass
        assert caught.value.point == point
        with pytest.raises(Crashed):
            disk.names()
        assert disk.after(CrashOutcome(CrashKind.PROCESS)).contents() == seen[point]


def test_an_info_file_overwritten_in_place() -> None:
    """The example of the module: a position of 8 bytes replaced by one of 3, never synced."""
    disk = SimulatedDisk({"info": b"12345678"}, medium=TAME)
    disk.open("info").write(0, b"999")
    left = {str(outcome): found.contents()["info"] for outcome, found in disk.crashes(CrashKind.OS)}
    assert left == {
        "os names=0 1=1": b"99945678",
        "os names=0 1=0": b"12345678",
        "os names=0 1=0+1": b"92345678",
        "os names=0 1=0+2": b"99345678",
    }


def test_edges_do_not_grow() -> None:
    """However many changes of a file are pending: nothing, all, and what may be left of the last
    one."""
    disk = SimulatedDisk({"info": b"0000"}, medium=TAME)
    for number in range(1, 9):
        disk.open("info").write(0, b"%d000" % number * 2)
    left = [str(found.outcome) for found in disk.left(CrashKind.OS, Coverage.EDGES)]
    assert left == ["os names=0 1=8", "os names=0 1=0", "os names=0 1=7", "os names=0 1=7+1"]
    assert [len(found.contents()["info"]) for found in disk.left(CrashKind.OS, Coverage.EDGES)] == [
        8,
        4,
        8,
        8,
    ]


def test_files_are_lost_independently() -> None:
    """The later write to one file may be there without the earlier one to the other."""
    disk = SimulatedDisk({"relay": b"", "info": b"0"}, medium=TAME)
    disk.open("relay").write(0, b"event")
    disk.open("info").write(0, b"5")
    assert (("info", b"5"), ("relay", b"")) in states(disk, CrashKind.OS, Coverage.CORNERS)
    disk.open("relay").fsync()
    assert states(disk, CrashKind.OS, Coverage.EVERY) == {
        (("info", number), ("relay", b"event")) for number in (b"0", b"5")
    }


def test_a_hole_between_blocks() -> None:
    """A later block may be there without an earlier one, not a later write to the same block."""
    disk = SimulatedDisk({"log": b""}, medium=Medium(block_bytes=4, extends_with_zeros=False))
    log = disk.open("log")
    for offset in (0, 2, 4):
        log.write(offset, b"xy")
    left = {dict(state)["log"] for state in states(disk, CrashKind.OS, Coverage.EVERY)}
    assert left == {
        b"",
        b"x",
        b"xy",
        b"xyx",
        b"xyxy",
        b"xyxyx",
        b"xyxyxy",
        b"\0\0\0\0xy",
        b"xyxy\0\0",
    }


def test_a_file_longer_than_its_data() -> None:
    disk = SimulatedDisk({"log": b"head"}, medium=Medium(reorders_within_files=False))
    disk.open("log").write(4, b"event")
    assert b"head\0\0\0\0\0" in {
        dict(state)["log"] for state in states(disk, CrashKind.OS, Coverage.EVERY)
    }


@pytest.mark.parametrize("fsync_names", [False, True])
def test_a_new_file_needs_its_name(fsync_names: bool) -> None:
    disk = SimulatedDisk(medium=Medium(fsync_names=fsync_names, extends_with_zeros=False))
    file = disk.open("new", create=True)
    file.write(0, b"x")
    assert states(disk, CrashKind.OS, Coverage.EVERY) == {(), (("new", b""),), (("new", b"x"),)}
    file.fsync()
    kept = {(("new", b"x"),)}
    assert states(disk, CrashKind.OS, Coverage.EVERY) == (kept if fsync_names else kept | {()})
    disk.fsync_names()
    assert states(disk, CrashKind.OS, Coverage.EVERY) == kept


def test_a_rename_is_all_or_nothing() -> None:
    disk = SimulatedDisk({"index": b"old", "index.new": b"new"})
    disk.rename("./index.new", "index")
    assert states(disk, CrashKind.OS, Coverage.EVERY) == {
        (("index", b"old"), ("index.new", b"new")),
        (("index", b"new"),),
    }


def test_a_full_disk() -> None:
    """A write stops where the disk ends; overwriting in place always fits."""
    disk = SimulatedDisk({"a": b"1234"}, capacity_bytes=8)
    with pytest.raises(OSError, match="No space left on device") as caught:
        disk.open("b", create=True).write(0, b"567890")
    assert caught.value.errno == errno.ENOSPC
    assert disk.contents() == {"a": b"1234", "b": b"5678"}
    disk.open("a").write(0, b"abcd")
    disk.remove("b")
    disk.open("a").write(4, b"efgh")
    assert disk.contents() == {"a": b"abcdefgh"}


def test_faults() -> None:
    disk = SimulatedDisk(
        {"a": b"1234"},
        faults=[Fault(1, errno.EIO, done=2), Fault(3), Fault(5, errno.EROFS)],
        medium=TAME,
    )
    file = disk.open("a")
    with pytest.raises(OSError, match="Input/output error"):
        file.write(0, b"abcd")
    assert file.read() == b"ab34"
    file.write(0, b"wxyz")
    with pytest.raises(OSError, match="Input/output error"):
        file.fsync()
    file.fsync()
    assert file.read() == b"wxyz"
    assert states(disk, CrashKind.OS, Coverage.EVERY) == {(("a", b"1234"),)}, (
        "a failed fsync is not made good by the next"
    )
    with pytest.raises(OSError, match="Read-only"):
        disk.rename("a", "b")
    assert [str(operation) for operation in disk.operations] == [
        "1 write a 4 bytes at 0",
        "2 write a 4 bytes at 0",
        "3 fsync a",
        "4 fsync a",
        "5 rename a to b",
    ]


def test_an_error_handler_does_not_outlive_the_crash() -> None:
    disk = SimulatedDisk(crash_at=CrashPoint(2, CrashMoment.INSIDE, 3))
    with pytest.raises(Crashed, match="crashed at 2 inside 3"):
        try:
            disk.open("a", create=True).write(0, b"abcdef")
        except Exception:
            disk.remove("a")
    assert disk.after(CrashOutcome(CrashKind.PROCESS)).contents() == {"a": b"abc"}


def test_tears() -> None:
    assert tears(0, 1, 1) == ()
    assert tears(0, 2, 1) == (1,)
    assert tears(0, 100, 1) == (1, 50, 99)
    assert tears(500, 1100, 512) == (12, 524, 1036)
    assert tears(512, 512, 512) == ()


@pytest.mark.parametrize("name", ["", ".", "..", "./", "a/b", "/etc/passwd", "./../x", "a\0b"])
def test_names_refused(name: str, tmp_path: Path) -> None:
    disks: tuple[Disk, ...] = (RealDisk(tmp_path), SimulatedDisk())
    for disk in disks:
        with pytest.raises(CheckpointError, match="not the name of a file"):
            disk.open(name, create=True)


def test_names() -> None:
    assert plain("./relay.000001") == plain("relay.000001") == "relay.000001"


def test_missing_files(tmp_path: Path) -> None:
    disks: tuple[Disk, ...] = (RealDisk(tmp_path), SimulatedDisk())
    for disk in disks:
        assert read_file(disk, "a") is None
        with pytest.raises(FileNotFoundError):
            disk.open("a")
        with pytest.raises(FileNotFoundError):
            disk.rename("a", "b")
        with pytest.raises(FileNotFoundError):
            disk.remove("a")


@pytest.mark.parametrize("text", ["", "1", "x before", "1 inside", "1 before 2", "1 never"])
def test_crash_points_refused(text: str) -> None:
    with pytest.raises(CheckpointError, match="not a crash point"):
        CrashPoint.parse(text)


@pytest.mark.parametrize(
    "text",
    ["", "os", "process 1=2", "os names=x", "os names=1 2=", "os names=1 x=1", "os names=1 2=1+"],
)
def test_outcomes_refused(text: str) -> None:
    with pytest.raises(CheckpointError, match="not an outcome"):
        CrashOutcome.parse(text)


def test_an_outcome_of_another_disk_is_refused() -> None:
    disk = SimulatedDisk({"a": b""})
    disk.open("a").write(0, b"x")
    with pytest.raises(CheckpointError, match="says nothing of file 1"):
        disk.after(CrashOutcome(CrashKind.OS))
    disk.open("a").truncate(0)
    with pytest.raises(CheckpointError, match="cannot be torn"):
        disk.after(CrashOutcome(CrashKind.OS, 0, {1: FileRemains(1, torn=1)}))
