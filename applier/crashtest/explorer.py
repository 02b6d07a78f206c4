"""Every crash point of a run, and what the system makes of every disk that is left.

One run is watched. At each crash point the disks that a crash may leave there are named by their
content; a disk that was seen before is not tried again, a new one is recovered on the spot, by a
new object of the system, unless it differs only where no recovery looks
(`applier.crashtest.dependencies`). So a run with thousands of crash points costs one run and some
hundreds of recoveries.

| kind | ends | leaves |
|---|---|---|
| process | the process, as by kill -9 | what it had written |
| os | the machine | any of what was not synced: lost, torn, reordered (`checkpoints.outcomes`) |
| full disk | nothing; one write finds no room | half of what it adds to its file; a restart |
| I/O error | nothing; one operation fails | likewise; behind a failed fsync the machine, too |

What the system does about a full or failing disk comes before the restart; behind a failed fsync
the machine may go down as well, with what could not be synced.

The last two change the run, so they cost one run for each operation, unless the system says that it
stops there. A crash of the machine is tried behind each change of the disk, which covers the points
before and inside it: the change not done and the change torn are among its outcomes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace

from applier.crashtest.checkers import Judgement, Verdict, judge
from applier.crashtest.contract import RecoveryMistake, State
from applier.crashtest.crash_runs import (
    CRASHES,
    FAULTS,
    QUIET_ACTIONS,
    Files,
    Kind,
    Make,
    crash,
    fault_of,
    fault_outcomes,
    fault_point,
    recover,
    reference,
    run_until_stopped,
)
from applier.crashtest.dependencies import RecoveryResults, WatchedDisk, WhatCounts
from applier.error_codes import Code
from applier.errors import UsageError
from checkpoints.crash import (
    CrashKind,
    CrashMoment,
    CrashPoint,
    Operation,
    crash_points,
    tears,
)
from checkpoints.errors import CheckpointError
from checkpoints.memory_disk import MemoryDisk
from checkpoints.outcomes import CrashOutcome, Medium
from checkpoints.simulated_disk import Coverage, Left, SimulatedDisk

Recovered = RecoveryResults[State | Exception]
"""What became of the disks that were recovered, by what the recoveries looked at."""


class _Stop(BaseException):
    """Ends a run that is watched. No Exception, so that no error handler of the run goes on behind
    it."""

    def __init__(self, error: Exception, place: str) -> None:
        self.error = error
        self.place = place


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
    """The crash that was shown as this line (`Trial.place`). Raises UsageError for a line that is
    none."""
    words = [word.strip() for word in text.split("|")]
    if len(words) != 3 or words[0] not in {*Kind}:
        raise UsageError(
            f"{text!r} is not a crash",
            code=Code.NO_SUCH_CRASH,
            hint='write it as it was shown: "process | 17 inside 8 | process"',
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
    """Recoveries that it took; the other disks differ only in what no recovery read."""

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
        return Counter(
            trial.judgement.verdict for trial in self.trials if kind in (None, trial.kind)
        )

    def disks(self, kind: Kind) -> int:
        """How many different disks crashes of this kind left."""
        return sum(trial.kind is kind for trial in self.trials)

    def first(self, kind: Kind, verdict: Verdict) -> Trial | None:
        """The first crash of a kind that ends so."""
        return next(
            (
                trial
                for trial in self.trials
                if trial.kind is kind and trial.judgement.verdict is verdict
            ),
            None,
        )


@dataclass(slots=True)
class _Seen:
    """A disk that some crash leaves: where, first and again whenever more had been acknowledged,
    and what became of it."""

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
        disk = SimulatedDisk(
            self.files, medium=self.medium, observer=self._reached, halves=bool(self.derived)
        )
        for work in system.run(disk):
            self.result.acknowledged.append(work)
        disk.observer = None
        end = CrashPoint(len(disk.operations), CrashMoment.AFTER)
        self._try_crashes(disk, end)
        self.result.operations = disk.operations
        points = sum(
            1 for _ in crash_points(disk.operations, sector_bytes=self.medium.sector_bytes)
        )
        self.result.points.update(dict.fromkeys(self.kinds & CRASHES.keys(), points))
        return disk

    def _reached(self, disk: SimulatedDisk, point: CrashPoint) -> None:
        self.on_point()
        operation = disk.operations[-1]
        told_more = len(self.result.acknowledged) > self.last_tried
        self.last_tried = len(self.result.acknowledged)
        if told_more or (
            point.moment is CrashMoment.AFTER and operation.action not in QUIET_ACTIONS
        ):
            self._try_crashes(disk, point)
        elif point.moment is CrashMoment.INSIDE and point.byte in tears(
            operation.offset, operation.size, self.medium.sector_bytes
        ):
            self._try(disk, point, Kind.PROCESS, self.coverage)
        for kind in self.derived:
            if point == fault_point(operation, kind, self.medium.sector_bytes):
                self._derive(disk, operation, point, kind)

    def _derive(
        self, disk: SimulatedDisk, operation: Operation, point: CrashPoint, kind: Kind
    ) -> None:
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
            known = self.seen[kind, left.digest] = _Seen(
                self._recover(left, place_of(kind, point, left.outcome)), []
            )
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

    def _judge_fault(
        self,
        kind: Kind,
        point: CrashPoint,
        outcome: CrashOutcome,
        disk: SimulatedDisk,
        acknowledged: list[Hashable],
    ) -> None:
        after = disk.after(outcome)
        left = next(after.left(CrashKind.PROCESS))
        known = self._recover(left, place_of(kind, point, outcome))
        self.result.trials.append(self._trial(kind, point, outcome, acknowledged, known))

    def finish(self) -> Exploration:
        """Judges all crashes; each disk counts once, where it fails first."""
        for (kind, _), seen in self.seen.items():
            told = self.result.acknowledged
            trials = [
                self._trial(kind, point, outcome, told[:count], seen.found)
                for count, point, outcome in seen.places
            ]
            wrong = [trial for trial in trials if trial.judgement.verdict is not Verdict.CONSISTENT]
            self.result.trials.append((wrong or trials)[0])
        self.result.trials.sort(
            key=lambda trial: (list(Kind).index(trial.kind), trial.point.operation)
        )
        return self.result

    def _trial(
        self,
        kind: Kind,
        point: CrashPoint,
        outcome: CrashOutcome,
        acknowledged: list[Hashable],
        found: State | Exception,
    ) -> Trial:
        assert self.expected is not None
        return Trial(
            kind, point, outcome, len(acknowledged), judge(found, self.expected, acknowledged)
        )


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

    `make` makes the system anew: it is called for each run and each recovery. `files` are on the
    disk, and durable, before the run; without them it is empty. `expected` is what must be there in
    the end; without it, what a restart after the whole run finds. `recovered` is shared by
    explorations of systems that recover alike, however their runs differ. Raises UsageError when
    not even that run adds up, RecoveryMistake for what is no refusal to start.
    """
    explorer = _Explorer(
        make=make,
        kinds=frozenset(kinds),
        coverage=coverage,
        medium=medium or Medium(),
        files=files or {},
        expected=expected,
        on_point=on_point,
        recovered=recovered or Recovered(),
    )
    try:
        disk = explorer.watch()
        if explorer.result.acknowledged and not disk.operations:
            raise UsageError(
                "the run did all its work without an operation of the disk that it was given: a "
                "crash could not change anything",
                code=Code.FAILS_WITHOUT_CRASH,
                hint="keep what must survive in disk.open(…), not in open() or in memory",
            )
        if explorer.expected is None:
            explorer.expected = reference(make, disk, explorer.result.acknowledged)
        for kind in FAULTS:
            if kind in explorer.kinds - explorer.derived:
                explorer.fail(disk.operations, kind)
    except _Stop as stop:
        raise RecoveryMistake(
            f"{type(stop.error).__name__}: {stop.error}", stop.place
        ) from stop.error
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
    return Trial(
        kind, point, outcome, len(acknowledged), judge(recover(make, disk), expected, acknowledged)
    )
