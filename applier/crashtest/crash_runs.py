"""One run of the system until it ends, crashes or meets a fault; and a recovery of what is left."""

from __future__ import annotations

import errno
from collections.abc import Callable, Hashable, Iterator, Mapping
from enum import StrEnum

from applier.crashtest.checkers import Verdict, judge
from applier.crashtest.contract import State, System
from applier.error_codes import Code
from applier.errors import UsageError
from checkpoints.crash import (
    Crashed,
    CrashKind,
    CrashMoment,
    CrashPoint,
    Fault,
    Operation,
    tears,
)
from checkpoints.disk import Disk
from checkpoints.outcomes import CrashOutcome, Medium
from checkpoints.simulated_disk import Coverage, SimulatedDisk

Make = Callable[[], System]
Files = Mapping[str, bytes]
QUIET_ACTIONS = frozenset({"fsync", "fsync names"})
"""Operations that add nothing to what a crash of the machine may leave."""


class Kind(StrEnum):
    """What goes wrong: the process or the machine ends, the disk is full or fails."""

    PROCESS = "process"
    OS = "os"
    FULL_DISK = "full disk"
    IO_ERROR = "I/O error"


CRASHES = {Kind.PROCESS: CrashKind.PROCESS, Kind.OS: CrashKind.OS}
FAULTS = {Kind.FULL_DISK: errno.ENOSPC, Kind.IO_ERROR: errno.EIO}


def crash(
    make: Make,
    kind: Kind,
    point: CrashPoint,
    outcome: CrashOutcome,
    *,
    medium: Medium | None = None,
    files: Files | None = None,
) -> tuple[SimulatedDisk, list[Hashable]]:
    """Runs until the crash; returns the disk that is left and what had been acknowledged. Raises
    UsageError when there is no such point."""
    medium = medium or Medium()
    crashes = kind in CRASHES
    disk = SimulatedDisk(
        files,
        medium=medium,
        crash_at=point if crashes else None,
        faults=[] if crashes else [fault_of(point, kind)],
    )
    acknowledged = run_until_stopped(make, disk)
    last = len(disk.operations)
    if not disk.crashed and (
        point.operation > last or (crashes and point != CrashPoint(last, CrashMoment.AFTER))
    ):
        raise UsageError(
            f"the run has no point {str(point)!r}: it ends with operation {last}",
            code=Code.NO_SUCH_CRASH,
            hint="name a point of this very run",
        )
    return disk.after(outcome), acknowledged


def reference(make: Make, disk: SimulatedDisk, acknowledged: list[Hashable]) -> State:
    """What a restart finds after the whole run, on its disk; it must be all the work, each piece
    once. Raises UsageError when it is not."""
    found = recover(make, disk.after(CrashOutcome(CrashKind.PROCESS)))
    if isinstance(found, Exception):
        raise UsageError(
            f"the system does not even start after a run without a crash: {found}",
            code=Code.FAILS_WITHOUT_CRASH,
            hint="fix run or recover",
        ) from found
    judgement = judge(found, State(tuple(acknowledged), found.content), acknowledged)
    if judgement.verdict is not Verdict.CONSISTENT:
        raise UsageError(
            f"run and recover do not agree even without a crash: {judgement}",
            code=Code.FAILS_WITHOUT_CRASH,
            hint="yield what State.applied will hold",
        )
    return found


def recover(make: Make, disk: Disk) -> State | Exception:
    """What a new object of the system makes of a disk: its state, or its refusal to start. Raises
    what is neither."""
    system = make()
    refusals: tuple[type[Exception], ...] = getattr(system, "refusals", (Exception,))
    try:
        return system.recover(disk)
    except refusals as error:
        error.__context__ = error.__cause__ = (
            None  # thousands of them are kept, their frames and disks need not be
        )
        return error.with_traceback(None)


def run_until_stopped(make: Make, disk: SimulatedDisk) -> list[Hashable]:
    """Runs until the end, the crash or an error of the disk that ends the process; returns what was
    acknowledged."""
    acknowledged: list[Hashable] = []
    try:
        for work in make().run(disk):
            acknowledged.append(work)
    except (Crashed, OSError):
        pass
    return acknowledged


def fault_point(operation: Operation, kind: Kind, sector_bytes: int) -> CrashPoint | None:
    """Where an operation fails. A full disk concerns only what needs room, and takes half of what a
    write adds to its file; an error strikes a write between two sectors, if it has several, and
    anything else at its start."""
    done = 0
    if kind is Kind.FULL_DISK:
        if not operation.grows and operation.action != "create":
            return None
        done = operation.size - operation.grows + operation.grows // 2
    elif operation.action == "write":
        places = tears(operation.offset, operation.size, sector_bytes)
        done = places[len(places) // 2] if places else 0
    return (
        CrashPoint(operation.number, CrashMoment.INSIDE, done)
        if done
        else CrashPoint(operation.number, CrashMoment.BEFORE)
    )


def fault_of(point: CrashPoint, kind: Kind) -> Fault:
    """The fault of the simulated disk that makes this crash."""
    return Fault(point.operation, FAULTS[kind], point.byte)


def fault_outcomes(disk: SimulatedDisk, operation: Operation) -> Iterator[CrashOutcome]:
    """The process is restarted; behind a failed fsync the machine is, too, and has kept all that it
    still had to write."""
    yield CrashOutcome(CrashKind.PROCESS)
    if operation.action in QUIET_ACTIONS:
        yield next(disk.outcomes(CrashKind.OS, Coverage.EDGES))
