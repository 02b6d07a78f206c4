"""A disk in memory that can crash, fill up and fail, and that knows every state in which a crash
may leave it.

It keeps two things of each file: what the programs see, and what was there at the last fsync with
the list of changes since. A crash of the process leaves what the programs see. A crash of the
machine leaves any of `outcomes`; `after` is the disk that the next start finds.

Operations are numbered from 1. A run is cut off at a `crash_at`, or watched by an `observer` that
is called at every crash point with the disk in just that state: it can take the disks `after` every
outcome there and then, so that one run shows all crashes.

After a failed fsync the changes that it should have kept stay visible and never reach the disk,
whatever fsync says later: Linux marks such pages as clean. That is the worst case; a real disk may
have kept some.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from checkpoints.crash import Crashed, CrashKind, CrashMoment, CrashPoint, Fault, Operation, tears
from checkpoints.disk import plain
from checkpoints.errors import CheckpointError
from checkpoints.inodes import Inode, NameChange
from checkpoints.outcomes import (
    Change,
    CrashOutcome,
    FileRemains,
    Medium,
    Truncate,
    Write,
    choices,
    edges,
)

NOTHING_KEPT = FileRemains()
Observer = Callable[["SimulatedDisk", CrashPoint], None]


class Coverage(StrEnum):
    """How many outcomes are tried."""

    EVERY = "every"
    """All combinations: the product of what may be left of each file."""
    CORNERS = "corners"
    """Each file in each of its states while all others are kept, and while all others are lost."""
    EDGES = "edges"
    """All kept; each file alone lost; all lost; the file changed last alone kept; and what may be
    left of its last change in both worlds. The number does not grow with the run."""


@dataclass(frozen=True, slots=True)
class Left:
    """One different disk that a crash may leave, with an outcome that leads to it. `digest` is the
    same for the same files."""

    outcome: CrashOutcome
    digest: bytes
    files: Mapping[str, bytes]
    """Name -> digest of the content."""
    contents: Callable[[], dict[str, bytes]]
    """Makes the files that the next start finds."""


class SimulatedDisk:
    """One folder of files in memory. `files` are there, and durable, from the beginning.
    Implements `disk.Disk`."""

    def __init__(
        self,
        files: Mapping[str, bytes] | None = None,
        *,
        medium: Medium | None = None,
        capacity_bytes: int | None = None,
        crash_at: CrashPoint | None = None,
        faults: Iterable[Fault] = (),
        observer: Observer | None = None,
        halves: bool = False,
    ) -> None:
        """With `halves` the observer also sees each write with half of what it adds to its file, as
        a full disk may leave it."""
        self.medium = medium or Medium()
        self.capacity_bytes = capacity_bytes
        self.crash_at = crash_at
        self.observer = observer
        self.halves = halves
        self.operations: list[Operation] = []
        self.crashed = False
        self._faults = {fault.operation: fault for fault in faults}
        self._numbers = itertools.count(1)
        self._names: dict[str, Inode] = {}
        for name, content in sorted((files or {}).items()):
            self._names[plain(name)] = Inode(
                next(self._numbers), bytearray(content), bytes(content)
            )
        self._durable_names = dict(self._names)
        self._pending_names: list[NameChange] = []
        self._changed_last = 0

    # What programs do with it

    def open(self, name: str, *, create: bool = False) -> SimulatedFile:
        self._alive()
        name = plain(name)
        if name not in self._names:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            with self._operation("create", name):
                self._rename_in_cache(NameChange(name, Inode(next(self._numbers))))
        return SimulatedFile(self, name, self._names[name])

    def names(self) -> tuple[str, ...]:
        self._alive()
        return tuple(sorted(self._names))

    def rename(self, old: str, new: str) -> None:
        self._alive()
        old, new = plain(old), plain(new)
        inode = self._existing(old)
        if old == new:
            return
        with self._operation("rename", f"{old} to {new}"):
            self._rename_in_cache(NameChange(new, inode, old))

    def remove(self, name: str) -> None:
        self._alive()
        name = plain(name)
        self._existing(name)
        with self._operation("remove", name):
            self._rename_in_cache(NameChange(name, None))

    def fsync_names(self) -> None:
        with self._operation("fsync names", ""):
            self._keep_names(len(self._pending_names))

    def contents(self) -> dict[str, bytes]:
        """All files as the programs see them."""
        return {name: bytes(inode.cached) for name, inode in sorted(self._names.items())}

    # What a crash leaves of it

    def outcomes(
        self, kind: CrashKind, coverage: Coverage = Coverage.CORNERS
    ) -> Iterator[CrashOutcome]:
        """The states in which a crash at this moment may leave the disk, always in the same
        order."""
        if kind is CrashKind.PROCESS:
            yield CrashOutcome(kind)
            return
        files = {inode.number: self._choices(inode, coverage) for inode in self._changed()}
        last_name = len(self._pending_names)
        names = (
            sorted({0, max(0, last_name - 1), last_name})
            if coverage is Coverage.EDGES
            else range(last_name + 1)
        )
        if coverage is Coverage.EVERY:
            for count in names:
                for kept in itertools.product(*files.values()):
                    yield CrashOutcome(kind, count, dict(zip(files, kept, strict=True)))
            return
        seen = set()
        for lost in (False, True):
            base = {
                number: options[0] if lost else FileRemains(_longest(options))
                for number, options in files.items()
            }
            last = 0 if lost else len(self._pending_names)
            for outcome in itertools.chain(
                (CrashOutcome(kind, last, base),),
                (CrashOutcome(kind, count, base) for count in names),
                (
                    CrashOutcome(kind, last, base | {number: kept})
                    for number, kept in self._alone(files, coverage, lost=lost)
                ),
                (
                    CrashOutcome(kind, last_name, base | {number: kept})
                    for number, kept in self._alone(files, coverage, lost=lost)
                ),
            ):
                remains = outcome.names, tuple(outcome.files.items())
                if remains not in seen:
                    seen.add(remains)
                    yield outcome

    def after(self, outcome: CrashOutcome) -> SimulatedDisk:
        """The disk that the next start finds. It is whole: no crash point, no faults, everything on
        it durable."""
        return self._holding(self._contents_after(outcome))

    def crashes(
        self, kind: CrashKind, coverage: Coverage = Coverage.CORNERS
    ) -> Iterator[tuple[CrashOutcome, SimulatedDisk]]:
        """Every different disk that a crash at this moment may leave, each with one outcome that
        leads to it."""
        return (
            (left.outcome, self._holding(left.contents())) for left in self.left(kind, coverage)
        )

    def left(self, kind: CrashKind, coverage: Coverage = Coverage.CORNERS) -> Iterator[Left]:
        """As `crashes`, but makes only those disks that are asked for, and only while the run
        stands where it is."""
        return self._left_by(self.outcomes(kind, coverage))

    def _left_by(self, outcomes: Iterable[CrashOutcome]) -> Iterator[Left]:
        seen = set()
        named: dict[int, list[tuple[str, Inode]]] = {}
        for outcome in outcomes:
            if outcome.names not in named:
                named[outcome.names] = sorted(self._names_left(outcome).items())
            files = {name: self._digest(inode, outcome) for name, inode in named[outcome.names]}
            whole = hashlib.blake2b(repr(files).encode(), digest_size=16).digest()
            if whole not in seen:
                seen.add(whole)
                yield Left(outcome, whole, files, functools.partial(self._contents_after, outcome))

    def _digest(self, inode: Inode, outcome: CrashOutcome) -> bytes:
        kept = (
            None
            if outcome.kind is CrashKind.PROCESS
            else outcome.files.get(inode.number, NOTHING_KEPT)
        )
        digest = inode.digests.get(kept)
        if digest is None:
            content = inode.cached if kept is None else self._left(inode, outcome)
            digest = inode.digests[kept] = hashlib.blake2b(content, digest_size=16).digest()
        return digest

    def _contents_after(self, outcome: CrashOutcome) -> dict[str, bytes]:
        process = outcome.kind is CrashKind.PROCESS
        left = self._names_left(outcome)
        return {
            name: bytes(inode.cached) if process else self._left(inode, outcome)
            for name, inode in left.items()
        }

    def _holding(self, files: Mapping[str, bytes]) -> SimulatedDisk:
        return SimulatedDisk(files, medium=self.medium, capacity_bytes=self.capacity_bytes)

    def after_failed_fsync(self, name: str) -> tuple[CrashOutcome, Left]:
        """The machine crashes when an fsync of this file ("": of the names) has failed and all else
        was kept.

        The outcome is that of a disk on which it did fail, where there is nothing left to choose
        for that file.
        """
        outcome = next(self.outcomes(CrashKind.OS, Coverage.EDGES))
        number = self._names[name].number if name else 0
        failed = replace(
            outcome, files={other: kept for other, kept in outcome.files.items() if other != number}
        )
        lost = replace(
            outcome,
            files={
                other: FileRemains() if other == number else kept
                for other, kept in outcome.files.items()
            },
        )
        return failed, next(iter(self._left_by([lost])))

    # How it works

    def _alive(self) -> None:
        if self.crashed:
            raise Crashed(None)

    def _existing(self, name: str) -> Inode:
        if name not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return self._names[name]

    def _alone(
        self, files: Mapping[int, list[FileRemains]], coverage: Coverage, *, lost: bool
    ) -> Iterator[tuple[int, FileRemains]]:
        """The files that are each in a state of its own while all others are kept, or lost."""
        for number, options in files.items():
            if not lost or coverage is not Coverage.EDGES or number == self._changed_last:
                yield from ((number, kept) for kept in options)

    def _choices(self, inode: Inode, coverage: Coverage) -> list[FileRemains]:
        if coverage is not Coverage.EDGES:
            return list(choices(inode.pending, self.medium, len(inode.durable)))
        if inode.number == self._changed_last:
            return list(edges(inode.pending, self.medium, len(inode.durable)))
        return [FileRemains(0), FileRemains(len(inode.pending))]

    def _names_left(self, outcome: CrashOutcome) -> dict[str, Inode]:
        if outcome.kind is CrashKind.PROCESS:
            return self._names
        names = dict(self._durable_names)
        for change in self._pending_names[: outcome.names]:
            change.apply(names)
        return names

    def _left(self, inode: Inode, outcome: CrashOutcome) -> bytes:
        kept = outcome.files.get(inode.number)
        if kept is None and inode.pending:
            raise CheckpointError(
                f"the outcome {str(outcome)!r} says nothing of file {inode.number}",
                hint="use an outcome of this disk",
            )
        return (kept or NOTHING_KEPT).apply(inode.durable, inode.pending, self.medium.block_bytes)

    def _changed(self) -> list[Inode]:
        """The files with changes that a crash may lose and whose names may be left."""
        named = [
            *self._durable_names.values(),
            *(change.inode for change in self._pending_names if change.inode is not None),
        ]
        found = {inode.number: inode for inode in named if inode.pending}
        return [found[number] for number in sorted(found)]

    def _rename_in_cache(self, change: NameChange) -> None:
        change.apply(self._names)
        self._pending_names.append(change)

    def _keep_names(self, count: int) -> None:
        for change in self._pending_names[:count]:
            change.apply(self._durable_names)
        del self._pending_names[:count]

    def _operation(
        self, action: str, name: str, offset: int = 0, size: int = 0, grows: int = 0
    ) -> _Step:
        self._alive()
        operation = Operation(len(self.operations) + 1, action, name, offset, size, grows)
        self.operations.append(operation)
        return _Step(self, operation)

    def _reach(self, point: CrashPoint) -> None:
        if self.observer is not None:
            self.observer(self, point)
        if point == self.crash_at:
            self.crashed = True
            raise Crashed(point)

    def _write(self, inode: Inode, name: str, offset: int, data: bytes) -> None:
        with self._operation(
            "write", name, offset, len(data), self._grows(inode, offset, len(data))
        ) as step:
            for byte in self._cuts(step.operation):
                self._reach_inside(
                    inode,
                    Write(offset, data[:byte]),
                    CrashPoint(step.operation.number, CrashMoment.INSIDE, byte),
                )
            room = self._room(inode, offset, len(data))
            if step.fault or room < len(data):
                done = min(room, step.fault.done) if step.fault else room
                if done:
                    self._change(inode, Write(offset, data[:done]))
                raise _error(step.fault.number if step.fault else errno.ENOSPC, name)
            if data:
                self._change(inode, Write(offset, bytes(data)))

    def _change(self, inode: Inode, change: Change) -> None:
        inode.change(change)
        self._changed_last = inode.number

    def _cuts(self, operation: Operation) -> list[int]:
        cuts = (
            set(tears(operation.offset, operation.size, self.medium.sector_bytes))
            if self.observer
            else set()
        )
        if self.halves:
            cuts.add(operation.size - operation.grows + operation.grows // 2)
        if self.crash_at and (self.crash_at.operation, self.crash_at.moment) == (
            operation.number,
            CrashMoment.INSIDE,
        ):
            cuts.add(self.crash_at.byte)
        return sorted(cut for cut in cuts if 0 < cut < operation.size)

    def _reach_inside(self, inode: Inode, part: Write, point: CrashPoint) -> None:
        """Does a part of a write for as long as it takes to look at it."""
        size = len(inode.cached)
        old = bytes(inode.cached[part.offset : part.offset + len(part.data)])
        inode.change(part)
        self._reach(point)
        inode.take_back(size, part.offset, old)

    def _grows(self, inode: Inode, offset: int, size: int) -> int:
        has, block = len(inode.cached), self.medium.block_bytes
        return size if offset >= has else max(0, offset + size - -(-has // block) * block)

    def _room(self, inode: Inode, offset: int, size: int) -> int:
        """How many bytes of a write fit onto the disk."""
        if self.capacity_bytes is None:
            return size
        used = sum(len(other.cached) for other in self._names.values() if other is not inode)
        return max(0, min(size, max(self.capacity_bytes - used, len(inode.cached)) - offset))

    def _truncate(self, inode: Inode, name: str, size: int) -> None:
        with self._operation("truncate", name, size=size):
            self._change(inode, Truncate(size))

    def _fsync(self, inode: Inode, name: str) -> None:
        with self._operation("fsync", name) as step:
            if step.fault:
                inode.keep(inode.durable)
                raise _error(step.fault.number, name)
            everything = FileRemains(len(inode.pending))
            inode.keep(everything.apply(inode.durable, inode.pending, self.medium.block_bytes))
            if self.medium.fsync_names:
                own = [
                    number
                    for number, change in enumerate(self._pending_names, 1)
                    if change.inode is inode
                ]
                self._keep_names(max(own, default=0))


class _Step:
    """An operation while it happens: crash points at both ends, and the fault that strikes it."""

    def __init__(self, disk: SimulatedDisk, operation: Operation) -> None:
        self._disk = disk
        self.operation = operation
        self.fault = disk._faults.get(operation.number)

    def __enter__(self) -> _Step:
        self._disk._reach(CrashPoint(self.operation.number, CrashMoment.BEFORE))
        if self.fault and self.operation.action not in ("write", "fsync"):
            raise _error(self.fault.number, self.operation.name)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, OSError):
            self._disk._reach(CrashPoint(self.operation.number, CrashMoment.AFTER))


class SimulatedFile:
    """An open file of a simulated disk. Implements `disk.DiskFile`."""

    def __init__(self, disk: SimulatedDisk, name: str, inode: Inode) -> None:
        self._disk = disk
        self._name = name
        self._inode = inode

    @property
    def name(self) -> str:
        return self._name

    def size(self) -> int:
        self._disk._alive()
        return len(self._inode.cached)

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        self._disk._alive()
        return bytes(self._inode.cached[offset : None if size is None else offset + size])

    def write(self, offset: int, data: bytes | memoryview) -> None:
        self._disk._write(self._inode, self._name, offset, bytes(data))

    def truncate(self, size: int) -> None:
        self._disk._truncate(self._inode, self._name, size)

    def fsync(self) -> None:
        self._disk._fsync(self._inode, self._name)

    def close(self) -> None:
        """Closing keeps nothing: only fsync does."""


def _longest(options: Iterable[FileRemains]) -> int:
    return max(kept.changes for kept in options)


def _error(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)
