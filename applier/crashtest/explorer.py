"""Every crash point of a run, and what the system makes of every disk that is left.

One run is watched. At each crash point the disks that a crash may leave there are named by their content; a disk that was seen before is
not tried again, a new one is recovered on the spot, by a new object of the system, unless it differs only where no recovery looks
(`applier.crashtest.dependencies`). So a run with thousands of crash points costs one run and some hundreds of recoveries.

| kind | ends | leaves |
|---|---|---|
| process | the process, as by kill -9 | what it had written |
| os | the machine | any of what was not synced: lost, torn, reordered (`checkpoints.outcomes`) |
| full disk | nothing; one write finds no room | half of what it adds to its file; then what the system does about it, and a restart |
| I/O error | nothing; one operation fails | likewise; behind a failed fsync also the machine, with what could not be synced |

The last two change the run, so they cost one run for each operation, unless the system says that it stops there. A crash of the machine is
tried behind each change of the disk, which covers the points before and inside it: the change not done and the change torn are among its
outcomes.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from applier.crashtest.checkers import Judgement, Verdict, judge
from applier.crashtest.contract import RecoveryMistake, State, System
from applier.crashtest.dependencies import RecoveryResults, WatchedDisk, WhatCounts
from applier.error_codes import Code
from applier.errors import UsageError
from checkpoints.crash import (
    Crashed,
    CrashKind,
    CrashMoment,
    CrashPoint,
    Fault,
    Operation,
    crash_points,
    tears,
)
from checkpoints.disk import Disk
from checkpoints.errors import CheckpointError
from checkpoints.memory_disk import MemoryDisk
from checkpoints.outcomes import CrashOutcome, Medium
from checkpoints.simulated_disk import Coverage, Left, SimulatedDisk

Make = Callable[[], System]
Files = Mapping[str, bytes]
Recovered = RecoveryResults[State | Exception]
"""What became of the disks that were recovered, by what the recoveries looked at."""
QUIET_ACTIONS = frozenset({"fsync", "fsync names"})
"""Operations that add nothing to what a crash of the machine may leave."""


class Kind(StrEnum):
    """What goes wrong: the process or the machine ends, the disk is full or fails."""

    PROCESS = "process"
    OS = "os"
    FULL_DISK = "full disk"
    IO_ERROR = "I/O error"


class _Stop(BaseException):
    """Ends a run that is watched. No Exception, so that no error handler of the run goes on behind it."""

    def __init__(self, error: Exception, place: str) -> None:
        self.error = error
        self.place = place


CRASHES = {Kind.PROCESS: CrashKind.PROCESS, Kind.OS: CrashKind.OS}
FAULTS = {Kind.FULL_DISK: errno.ENOSPC, Kind.IO_ERROR: errno.EIO}


@dataclass(frozen=True, slots=True)
class Trial:
    """One crash and its judgement. Point and outcome are all that `reproduce` needs."""

    kind: Kind
    point: CrashPoint
    outcome: CrashOutcome
    acknowledged: int
    """Pieces of work that had been acknowledged by then."""
    judgement: Judgement

    @property
    def place(self) -> str:
        """The crash as one line: kind, point and outcome; `parse_place` reads it."""
        return place_of(self.kind, self.point, self.outcome)

    def __str__(self) -> str:
        return f"{self.place}: {self.judgement}"


def place_of(kind: Kind, point: CrashPoint, outcome: CrashOutcome) -> str:
    """A crash as one line."""
    return f"{kind} | {point} | {outcome}"


def parse_place(text: str) -> tuple[Kind, CrashPoint, CrashOutcome]:
    """The crash that was shown as this line (`Trial.place`). Raises UsageError for a line that is none."""
    words = [word.strip() for word in text.split("|")]
    if len(words) != 3 or words[0] not in {*Kind}:
        raise UsageError(
            f"{text!r} is not a crash", code=Code.NO_SUCH_CRASH, hint='write it as it was shown: "process | 17 inside 8 | process"'
        )
    try:
        return Kind(words[0]), CrashPoint.parse(words[1]), CrashOutcome.parse(words[2])
    except CheckpointError as error:
        raise UsageError(str(error), code=Code.NO_SUCH_CRASH) from None


@dataclass
class Exploration:
    """What became of one run."""

    operations: list[Operation] = field(default_factory=list)
    points: Counter[Kind] = field(default_factory=Counter)
    """Kind -> crash points tried."""
    trials: list[Trial] = field(default_factory=list)
    """One for each kind and different disk, in the order of the run."""
    acknowledged: list[Hashable] = field(default_factory=list)
    recoveries: int = 0
    """Recoveries that it took; the other disks differ only where nobody looked."""

    @property
    def failures(self) -> list[Trial]:
        """The trials whose outcome is not consistent."""
        return [trial for trial in self.trials if trial.judgement.verdict is not Verdict.CONSISTENT]

    @property
    def safe(self) -> bool:
        """Whether no trial failed."""
        return not self.failures

    def counts(self, kind: Kind | None = None) -> Counter[Verdict]:
        """How many trials had each outcome; of one kind of crash or of all."""
        return Counter(trial.judgement.verdict for trial in self.trials if kind in (None, trial.kind))

    def disks(self, kind: Kind) -> int:
        """How many different disks crashes of this kind left."""
        return sum(trial.kind is kind for trial in self.trials)

    def first(self, kind: Kind, verdict: Verdict) -> Trial | None:
        """The first crash of a kind that ends so."""
        return next((trial for trial in self.trials if trial.kind is kind and trial.judgement.verdict is verdict), None)


@dataclass(slots=True)
class _Seen:
    """A disk that some crash leaves: where, first and again whenever more had been acknowledged, and what became of it."""

    found: State | Exception
    places: list[tuple[int, CrashPoint, CrashOutcome]]


@dataclass
class _Explorer:
    make: Make
    kinds: frozenset[Kind]
    coverage: Coverage
    medium: Medium
    files: Files
    expected: State | None
    on_point: Callable[[], None]
    recovered: Recovered
    result: Exploration = field(default_factory=Exploration)
    seen: dict[tuple[Kind, bytes], _Seen] = field(default_factory=dict)
    last_tried: int = -1
    derived: frozenset[Kind] = frozenset()
    """The faults that are crashes of this very run."""
    what_counts: WhatCounts = lambda name: None

    def watch(self) -> SimulatedDisk:
        """The run without a fault, with all its crashes."""
        system = self.make()
        if getattr(system, "stops_on_error", False):
            self.derived = self.kinds & FAULTS.keys()
        self.what_counts = getattr(system, "what_counts", self.what_counts)
        disk = SimulatedDisk(self.files, medium=self.medium, observer=self._reached, halves=bool(self.derived))
        for work in system.run(disk):
            self.result.acknowledged.append(work)
        disk.observer = None
        end = CrashPoint(len(disk.operations), CrashMoment.AFTER)
        self._try_crashes(disk, end)
        self.result.operations = disk.operations
        points = sum(1 for _ in crash_points(disk.operations, sector_bytes=self.medium.sector_bytes))
        self.result.points.update(dict.fromkeys(self.kinds & CRASHES.keys(), points))
        return disk

    def _reached(self, disk: SimulatedDisk, point: CrashPoint) -> None:
        self.on_point()
        operation = disk.operations[-1]
        told_more = len(self.result.acknowledged) > self.last_tried
        self.last_tried = len(self.result.acknowledged)
        if told_more or (point.moment is CrashMoment.AFTER and operation.action not in QUIET_ACTIONS):
            self._try_crashes(disk, point)
        elif point.moment is CrashMoment.INSIDE and point.byte in tears(operation.offset, operation.size, self.medium.sector_bytes):
            self._try(disk, point, Kind.PROCESS, self.coverage)
        for kind in self.derived:
            if point == fault_point(operation, kind, self.medium.sector_bytes):
                self._derive(disk, operation, point, kind)

    def _derive(self, disk: SimulatedDisk, operation: Operation, point: CrashPoint, kind: Kind) -> None:
        """The operation fails here, and the system stops."""
        self.result.points[kind] += 1
        acknowledged = len(self.result.acknowledged)
        self._note(kind, next(disk.left(CrashKind.PROCESS)), acknowledged, point)
        if operation.action in QUIET_ACTIONS:
            outcome, left = disk.after_failed_fsync(operation.name)
            self._note(kind, replace(left, outcome=outcome), acknowledged, point)

    def _try_crashes(self, disk: SimulatedDisk, point: CrashPoint) -> None:
        for kind in CRASHES:
            self._try(disk, point, kind, self.coverage)

    def _try(self, disk: SimulatedDisk, point: CrashPoint, kind: Kind, coverage: Coverage) -> None:
        if kind in self.kinds:
            for left in disk.left(CRASHES[kind], coverage):
                self._note(kind, left, len(self.result.acknowledged), point)

    def _note(self, kind: Kind, left: Left, acknowledged: int, point: CrashPoint) -> None:
        known = self.seen.get((kind, left.digest))
        if known is None:
            known = self.seen[kind, left.digest] = _Seen(self._recover(left, place_of(kind, point, left.outcome)), [])
        if not known.places or known.places[-1][0] < acknowledged:
            known.places.append((acknowledged, point, left.outcome))

    def _recover(self, left: Left, place: str) -> State | Exception:
        files = self.recovered.counting(left, self.what_counts)
        found = self.recovered.find(files)
        if found is None:
            watched = WatchedDisk(MemoryDisk(left.contents()))
            try:
                found = recover(self.make, watched)
            except Exception as error:
                raise _Stop(error, place) from error
            self.recovered.add(files, watched.looked_at, found)
            self.result.recoveries += 1
        return found

    def fail(self, operations: list[Operation], kind: Kind) -> None:
        """Runs again for each operation, and lets that one fail."""
        for operation in operations:
            point = fault_point(operation, kind, self.medium.sector_bytes)
            if point is None:
                continue
            self.on_point()
            self.result.points[kind] += 1
            disk = SimulatedDisk(self.files, medium=self.medium, faults=[fault_of(point, kind)])
            acknowledged = run_until_stopped(self.make, disk)
            for outcome in fault_outcomes(disk, operation):
                self._judge_fault(kind, point, outcome, disk, acknowledged)

    def _judge_fault(self, kind: Kind, point: CrashPoint, outcome: CrashOutcome, disk: SimulatedDisk, acknowledged: list[Hashable]) -> None:
        after = disk.after(outcome)
        left = next(after.left(CrashKind.PROCESS))
        known = self._recover(left, place_of(kind, point, outcome))
        self.result.trials.append(self._trial(kind, point, outcome, acknowledged, known))

    def finish(self) -> Exploration:
        """Judges all crashes; each disk counts once, where it fails first."""
        for (kind, _), seen in self.seen.items():
            told = self.result.acknowledged
            trials = [self._trial(kind, point, outcome, told[:count], seen.found) for count, point, outcome in seen.places]
            wrong = [trial for trial in trials if trial.judgement.verdict is not Verdict.CONSISTENT]
            self.result.trials.append((wrong or trials)[0])
        self.result.trials.sort(key=lambda trial: (list(Kind).index(trial.kind), trial.point.operation))
        return self.result

    def _trial(self, kind: Kind, point: CrashPoint, outcome: CrashOutcome, acknowledged: list[Hashable], found: State | Exception) -> Trial:
        assert self.expected is not None
        return Trial(kind, point, outcome, len(acknowledged), judge(found, self.expected, acknowledged))


def explore(
    make: Make,
    *,
    kinds: Iterable[Kind] = (Kind.PROCESS, Kind.OS),
    coverage: Coverage = Coverage.CORNERS,
    medium: Medium | None = None,
    files: Files | None = None,
    expected: State | None = None,
    on_point: Callable[[], None] = lambda: None,
    recovered: Recovered | None = None,
) -> Exploration:
    """Tries every crash point of `make().run` and judges every recovery.

    `make` makes the system anew: it is called for each run and each recovery. `files` are on the disk, and durable, before the run; without
    them it is empty. `expected` is what must be there in the end; without it, what
    a restart after the whole run finds. `recovered` is shared by explorations of systems that recover alike, however their runs differ.
    Raises UsageError when not even that run adds up, RecoveryMistake for what is no refusal to start.
    """
    explorer = _Explorer(make, frozenset(kinds), coverage, medium or Medium(), files or {}, expected, on_point, recovered or Recovered())
    try:
        disk = explorer.watch()
        if explorer.result.acknowledged and not disk.operations:
            raise UsageError(
                "the run did all its work without an operation of the disk that it was given: a crash could not change anything",
                code=Code.FAILS_WITHOUT_CRASH,
                hint="keep what must survive in disk.open(…), not in open() or in memory",
            )
        if explorer.expected is None:
            explorer.expected = reference(make, disk, explorer.result.acknowledged)
        for kind in FAULTS:
            if kind in explorer.kinds - explorer.derived:
                explorer.fail(disk.operations, kind)
    except _Stop as stop:
        raise RecoveryMistake(f"{type(stop.error).__name__}: {stop.error}", stop.place) from stop.error
    return explorer.finish()


def reproduce(
    make: Make,
    kind: Kind,
    point: CrashPoint,
    outcome: CrashOutcome,
    *,
    medium: Medium | None = None,
    files: Files | None = None,
    expected: State | None = None,
) -> Trial:
    """One trial again, from its kind, point and outcome."""
    medium = medium or Medium()
    if expected is None:
        whole = SimulatedDisk(files, medium=medium)
        expected = reference(make, whole, list(make().run(whole)))
    disk, acknowledged = crash(make, kind, point, outcome, medium=medium, files=files)
    return Trial(kind, point, outcome, len(acknowledged), judge(recover(make, disk), expected, acknowledged))


def crash(
    make: Make, kind: Kind, point: CrashPoint, outcome: CrashOutcome, *, medium: Medium | None = None, files: Files | None = None
) -> tuple[SimulatedDisk, list[Hashable]]:
    """Runs until the crash; returns the disk that is left and what had been acknowledged. Raises UsageError when there is no such point."""
    medium = medium or Medium()
    crashes = kind in CRASHES
    disk = SimulatedDisk(files, medium=medium, crash_at=point if crashes else None, faults=[] if crashes else [fault_of(point, kind)])
    acknowledged = run_until_stopped(make, disk)
    last = len(disk.operations)
    if not disk.crashed and (point.operation > last or (crashes and point != CrashPoint(last, CrashMoment.AFTER))):
        raise UsageError(
            f"the run has no point {str(point)!r}: it ends with operation {last}",
            code=Code.NO_SUCH_CRASH,
            hint="name a point of this very run",
        )
    return disk.after(outcome), acknowledged


def reference(make: Make, disk: SimulatedDisk, acknowledged: list[Hashable]) -> State:
    """What a restart finds after the whole run, on its disk; it must be all the work, each piece once. Raises UsageError when it is not."""
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
    """What a new object of the system makes of a disk: its state, or its refusal to start. Raises what is neither."""
    system = make()
    refusals: tuple[type[Exception], ...] = getattr(system, "refusals", (Exception,))
    try:
        return system.recover(disk)
    except refusals as error:
        error.__context__ = error.__cause__ = None  # thousands of them are kept, their frames and disks need not be
        return error.with_traceback(None)


def run_until_stopped(make: Make, disk: SimulatedDisk) -> list[Hashable]:
    """Runs until the end, the crash or an error of the disk that ends the process; returns what was acknowledged."""
    acknowledged: list[Hashable] = []
    try:
        for work in make().run(disk):
            acknowledged.append(work)
    except (Crashed, OSError):
        pass
    return acknowledged


def fault_point(operation: Operation, kind: Kind, sector_bytes: int) -> CrashPoint | None:
    """Where an operation fails. A full disk concerns only what needs room, and takes half of what a write adds to its file; an error
    strikes a write between two sectors, if it has several, and anything else at its start."""
    done = 0
    if kind is Kind.FULL_DISK:
        if not operation.grows and operation.action != "create":
            return None
        done = operation.size - operation.grows + operation.grows // 2
    elif operation.action == "write":
        places = tears(operation.offset, operation.size, sector_bytes)
        done = places[len(places) // 2] if places else 0
    return CrashPoint(operation.number, CrashMoment.INSIDE, done) if done else CrashPoint(operation.number, CrashMoment.BEFORE)


def fault_of(point: CrashPoint, kind: Kind) -> Fault:
    """The fault of the simulated disk that makes this crash."""
    return Fault(point.operation, FAULTS[kind], point.byte)


def fault_outcomes(disk: SimulatedDisk, operation: Operation) -> Iterator[CrashOutcome]:
    """The process is restarted; behind a failed fsync the machine is, too, and has kept all that it still had to write."""
    yield CrashOutcome(CrashKind.PROCESS)
    if operation.action in QUIET_ACTIONS:
        yield next(disk.outcomes(CrashKind.OS, Coverage.EDGES))
