"""The explorer beside a naive reference: stop at every point anew, recover on every disk, count by
hand."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import closing, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.crashtest import (
    CannotStart,
    Kind,
    RecoveryMistake,
    State,
    Verdict,
    explore,
    judge,
    reproduce,
)
from applier.crashtest.explorer import parse_place
from applier.errors import ReplicationError, UsageError
from checkpoints.crash import Crashed, CrashKind, CrashMoment, CrashPoint, crash_points
from checkpoints.disk import Disk, read_file
from checkpoints.outcomes import CrashOutcome, Medium
from checkpoints.simulated_disk import Coverage, SimulatedDisk

TAME = Medium(reorders_within_files=False, extends_with_zeros=False)
ACTIONS = ("rows", "position", "sync rows", "sync position", "tell")


class Program:
    """A consumer of two transactions whose steps are given: rows are bytes appended to one file,
    the position is a byte in another."""

    def __init__(self, steps: tuple[str, ...], count: int = 2) -> None:
        self.steps = steps
        self.count = count

    def run(self, disk: Disk) -> Iterator[Hashable]:
        for number in range(len(read_file(disk, "position") or b""), self.count):
            for step in self.steps:
                if step == "tell":
                    yield number
                else:
                    self.do(disk, step, number)

    def do(self, disk: Disk, step: str, number: int) -> None:
        with closing(disk.open(step.removeprefix("sync "), create=True)) as file:
            if step.startswith("sync"):
                file.fsync()
            else:
                file.write(file.size(), b"%d" % number)

    def recover(self, disk: Disk) -> State:
        for _ in self.run(disk):
            pass
        rows = read_file(disk, "rows") or b""
        return State(tuple(int(bytes([row])) for row in rows), rows)


def naive(
    program: Program, kinds: dict[Kind, CrashKind]
) -> dict[Kind, set[tuple[Verdict, tuple[tuple[str, bytes], ...]]]]:
    """Kind -> (verdict, disk) of every crash: each point is a run of its own, each disk recovered
    each time."""
    whole = SimulatedDisk(medium=TAME)
    work = list(program.run(whole))
    found: dict[Kind, set[tuple[Verdict, tuple[tuple[str, bytes], ...]]]] = {
        kind: set() for kind in kinds
    }
    last = CrashPoint(len(whole.operations), CrashMoment.AFTER)
    for point in [*crash_points(whole.operations), last]:
        disk, told = SimulatedDisk(medium=TAME, crash_at=point), []
        try:
            for number in program.run(disk):
                told.append(number)
        except Crashed:
            pass
        for kind, crash_kind in kinds.items():
            for _, left in disk.crashes(crash_kind, Coverage.EVERY):
                files = tuple(left.contents().items())
                rows = program.recover(left).applied
                twice = len(set(rows)) < len(rows)
                verdict = (
                    Verdict.REEXECUTES
                    if twice
                    else Verdict.CONSISTENT
                    if list(rows) == work
                    else Verdict.LOSES
                )
                if set(told) - set(rows):
                    assert verdict is not Verdict.CONSISTENT
                found[kind].add((verdict, files))
    return found


@given(
    st.permutations(ACTIONS).map(tuple)
    | st.lists(st.sampled_from(ACTIONS[:4]), min_size=2, max_size=6).map(
        lambda steps: (*steps, "tell")
    )
)
def test_beside_the_naive_reference(steps: tuple[str, ...]) -> None:
    """Random orders of writing, syncing and telling: the same verdict for the same disk, every disk
    found, each trial can be run again."""
    program = Program(steps)
    kinds = {Kind.PROCESS: CrashKind.PROCESS, Kind.OS: CrashKind.OS}
    try:
        found = explore(lambda: Program(steps), medium=TAME, coverage=Coverage.EVERY)
    except UsageError:
        whole = SimulatedDisk()
        list(program.run(whole))
        assert program.recover(whole).applied != (0, 1)
        return
    expected = naive(program, kinds)
    for kind in kinds:
        trials = [trial for trial in found.trials if trial.kind is kind]
        assert {trial.judgement.verdict for trial in trials} == {
            verdict for verdict, _ in expected[kind]
        }
        assert len(trials) == len(expected[kind])
    whole = SimulatedDisk(medium=TAME)
    list(program.run(whole))
    assert (
        found.points[Kind.OS]
        == found.points[Kind.PROCESS]
        == len(list(crash_points(whole.operations)))
    )
    for trial in found.trials[:: max(1, len(found.trials) // 5)]:
        assert reproduce(lambda: Program(steps), *parse_place(trial.place), medium=TAME) == trial


def test_the_same_each_time() -> None:
    runs = [explore(lambda: Program(ACTIONS), kinds=Kind) for _ in range(2)]
    assert [str(trial) for trial in runs[0].trials] == [str(trial) for trial in runs[1].trials]


@pytest.mark.parametrize(
    ("steps", "verdicts"),
    [
        (("rows", "sync rows", "position", "sync position", "tell"),
         {Verdict.CONSISTENT, Verdict.REEXECUTES}),
        (("position", "sync position", "rows", "sync rows", "tell"),
         {Verdict.CONSISTENT, Verdict.LOSES}),
        (("rows", "position", "sync rows", "sync position", "tell"),
         {Verdict.CONSISTENT, Verdict.REEXECUTES, Verdict.LOSES}),
    ],
)  # fmt: skip
def test_order_of_position_and_data(steps: tuple[str, ...], verdicts: set[Verdict]) -> None:
    """No order of two files is right: what differs is which way it is wrong."""
    assert explore(lambda: Program(steps), kinds=[Kind.OS], medium=TAME).counts().keys() == verdicts


class Stubborn(Program):
    """Goes on after an error of the disk as if nothing had happened."""

    def do(self, disk: Disk, step: str, number: int) -> None:
        with suppress(OSError):
            super().do(disk, step, number)


def test_faults() -> None:
    """An error that ends the process is a crash like any other; one that is ignored loses what was
    acknowledged."""
    steps = ("rows", "sync rows", "position", "sync position", "tell")
    ends, ignores = (
        explore(lambda kind=kind: kind(steps, 1), kinds=[Kind.FULL_DISK, Kind.IO_ERROR])
        for kind in (Program, Stubborn)
    )
    assert ends.points == ignores.points == {Kind.FULL_DISK: 4, Kind.IO_ERROR: 6}
    assert not any("acknowledged" in str(trial.judgement) for trial in ends.trials)
    lost = [str(trial) for trial in ignores.failures if "acknowledged" in str(trial.judgement)]
    assert "full disk | 2 before | process: loses rows: acknowledged and not there: 0" in lost
    assert "I/O error | 3 before | os names=0: loses rows: acknowledged and not there: 0" in lost


class Mistaken(Program):
    """Its recovery fails in a way nobody meant, and its run goes on behind whatever is raised in
    it."""

    refusals: tuple[type[Exception], ...] = (CannotStart,)

    def do(self, disk: Disk, step: str, number: int) -> None:
        with suppress(Exception):
            super().do(disk, step, number)

    def recover(self, disk: Disk) -> State:
        if read_file(disk, "rows") == b"0" and not read_file(disk, "position"):
            raise KeyError("position")
        return super().recover(disk)


class Unsure(Mistaken):
    """Says nothing of its refusals: whatever it raises may be one."""

    refusals = (Exception,)


@pytest.mark.parametrize("kind", [Kind.PROCESS, Kind.IO_ERROR])
def test_a_mistake_is_no_verdict(kind: Kind) -> None:
    """It ends the exploration, and the crash that it names raises it again."""
    steps = ("rows", "sync rows", "position", "sync position", "tell")
    with pytest.raises(
        RecoveryMistake, match=r"KeyError: 'position' while recovering, .* again: --crash"
    ) as caught:
        explore(lambda: Mistaken(steps, 1), kinds=[kind])
    with pytest.raises(KeyError, match="position"):
        reproduce(lambda: Mistaken(steps, 1), *parse_place(caught.value.place))
    found = explore(lambda: Unsure(steps, 1), kinds=[kind])
    assert "cannot start: KeyError: 'position'" in {
        str(trial.judgement) for trial in found.failures
    }


def test_judge() -> None:
    expected = State((1, 2), "ab")
    assert str(judge(State((1, 2), "ab"), expected, [1])) == "consistent"
    assert str(judge(State((1,), "a"), expected, [1])) == "loses rows: never executed: 2"
    assert (
        str(judge(State((2,), "b"), expected, [1])) == "loses rows: acknowledged and not there: 1"
    )
    assert str(judge(State((1, 2, 2), "abb"), expected, [])) == "re-executes: executed 2 times: 2"
    assert (
        str(judge(State((1, 2, 2), "ab"), expected, []))
        == "re-executes: executed 2 times: 2, silently: the data are the same"
    )
    assert (
        str(judge(State((1, 2), "a"), expected, []))
        == "loses rows: the data differ from those of a run without a crash"
    )
    assert str(judge(State((1, 2, 3), "ab"), expected, [])).startswith(
        "re-executes: executed, but not in the workload: 3"
    )
    assert str(judge(State((1, 2, 3), "a"), expected, [])).startswith(
        "loses rows: executed, but not in the workload: 3; the data differ"
    )
    assert str(judge(State((1, 3), "a"), expected, [])).startswith("loses rows: never executed: 2")
    assert (
        str(judge(State((1,), "a"), State((1, 2, 3, 4, 5), ""), []))
        == "loses rows: never executed: 2, 3, 4 and 1 more"
    )
    assert (
        judge(ReplicationError(1062, "Duplicate entry"), expected, []).verdict is Verdict.REEXECUTES
    )
    assert judge(CannotStart("no key", number=1032), expected, []).verdict is Verdict.REEXECUTES
    assert (
        str(judge(CannotStart("gaps", number=1872), expected, []))
        == "cannot start: error 1872: gaps"
    )
    assert str(judge(ValueError("bad"), expected, [])) == "cannot start: ValueError: bad"


def test_rows_that_came_twice_are_not_lost() -> None:
    """Content that is tables: more copies of rows that should be there are a piece of work done
    twice; anything else is a loss."""
    expected = State((1,), {"t": [b"1"], "log": [b"1", b"2", b"2"]})

    def verdict(content: object) -> Verdict:
        return judge(State((1,), content), expected, []).verdict

    twice = judge(State((1,), {"t": [b"1"], "log": [b"1", b"1", b"2", b"2"]}), expected, [])
    assert str(twice) == "re-executes: rows are there more often than in a run without a crash: log"
    assert verdict({"t": [b"1", b"1"], "log": [b"1", b"2"]}) is Verdict.LOSES
    # a DELETE that is missing
    assert verdict({"t": [b"1", b"3"], "log": [b"1", b"2", b"2"]}) is Verdict.LOSES
    assert verdict({"t": [b"1", b"1"]}) is Verdict.LOSES
    assert verdict({"t": [b"1", b"1"], "log": "122"}) is Verdict.LOSES
    assert verdict({"t": [{}], "log": []}) is Verdict.LOSES


@pytest.mark.parametrize(
    "text",
    [
        "",
        "process",
        "process | 1 before",
        "fire | 1 before | process",
        "os | 1 | os names=0",
        "os | 1 before | x",
    ],
)
def test_places_refused(text: str) -> None:
    with pytest.raises(UsageError, match="Next: write it"):
        parse_place(text)


def test_a_point_of_another_run() -> None:
    for kind, point in (
        (Kind.PROCESS, CrashPoint(99, CrashMoment.BEFORE)),
        (Kind.IO_ERROR, CrashPoint(99, CrashMoment.BEFORE)),
    ):
        with pytest.raises(UsageError, match="the run has no point '99 before'"):
            reproduce(lambda: Program(ACTIONS), kind, point, CrashOutcome(CrashKind.PROCESS))
