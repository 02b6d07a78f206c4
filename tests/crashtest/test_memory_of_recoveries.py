"""What an exploration remembers saves time and nothing else: beside one that recovers every disk
from scratch and to the end."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from applier.crashtest import Kind, State
from applier.crashtest.dependencies import RecoveryResults
from applier.crashtest.durable import DurableStorage
from applier.crashtest.explorer import Exploration, Recovered, explore
from applier.crashtest.matrix import Setup, WorkloadSpec
from applier.crashtest.replica_system import ReplicaSystem, Shared, expected_state, set_up
from applier.crashtest.trace import trace
from applier.replica.configuration import FILE, TABLE
from applier.replica.replica import Replica
from checkpoints.disk import Disk, read_file
from checkpoints.outcomes import Medium
from checkpoints.simulated_disk import Coverage, SimulatedDisk

ALL_CASES = os.environ.get("BINLAG_ALL_CASES") == "1"


@dataclasses.dataclass
class Memory:
    """What the explorations of one family of configurations share."""

    shared: Shared = dataclasses.field(default_factory=Shared)
    recovered: Recovered = dataclasses.field(default_factory=Recovered)


def explored(
    setup: Setup, seed: int, transactions: int, *, remembers: bool, memory: Memory | None = None
) -> Exploration:
    """With memory as the matrix has it; without, each recovery is one of a disk of its own, and
    nothing is known to it."""
    workload = WorkloadSpec(transactions, seed).make(setup)
    memory = memory or Memory()
    with pytest.MonkeyPatch.context() as patch:
        if not remembers:
            patch.setattr(RecoveryResults, "find", lambda self, files: None)
        return explore(
            lambda: ReplicaSystem(
                workload,
                setup.configuration,
                seed=seed,
                shared=memory.shared if remembers else None,
            ),
            kinds=tuple(Kind),
            coverage=Coverage.EDGES,
            medium=Medium(sector_bytes=512),
            files=set_up(workload, setup.configuration),
            expected=expected_state(workload, setup.configuration),
            recovered=memory.recovered,
        )


def verdicts(found: Exploration) -> list[tuple[str, str, int]]:
    return [
        (trial.place, str(trial.judgement.verdict), trial.acknowledged) for trial in found.trials
    ]


SETUPS = st.builds(
    lambda server, repository, **rest: Setup(
        server, FILE if server == "mariadb" else repository, **rest
    ),
    server=st.sampled_from(["5.6", "5.7", "8.0", "mariadb"]),
    repository=st.sampled_from([FILE, TABLE]),
    recovery=st.booleans(),
    auto_position=st.booleans(),
    workers=st.sampled_from([0, 4]),
    engine=st.sampled_from(["InnoDB", "MyISAM"]),
)


BEGUN = Setup(
    "5.6", FILE, sync=10000, recovery=False, auto_position=True, workers=4, engine="MyISAM"
)
"""A GTID counts as received there as soon as its transaction begins."""


@pytest.mark.in_ci
@settings(max_examples=3 if ALL_CASES else 1)
@example(BEGUN, 2, 3, 3 if ALL_CASES else 1)
@given(
    SETUPS,
    st.sampled_from([1, 1, 2, 5]),
    st.integers(0, 1000),
    st.integers(1, 3 if ALL_CASES else 1),
)
def test_what_is_remembered_changes_no_verdict(
    setup: Setup, period: int, seed: int, transactions: int
) -> None:
    """The same crash points, the same disks, the same verdict of each, on random workloads and
    configurations; one memory for a whole family, as the matrix has it, beside none at all. Runs
    that are said to be the same are."""
    memory = Memory()
    found: dict[bytes, Exploration] = {}
    for member in (dataclasses.replace(setup, sync=sync) for sync in (0, 10000, period)):
        quick = explored(member, seed, transactions, remembers=True, memory=memory)
        run = traced(member, seed, transactions)
        if run not in found:
            found[run] = explored(member, seed, transactions, remembers=False)
        plain = found[run]
        assert verdicts(quick) == verdicts(plain)
        assert quick.points == plain.points
        assert [quick.counts(kind) for kind in Kind] == [plain.counts(kind) for kind in Kind]
        assert quick.recoveries <= plain.recoveries
    assert len(found) < 3, (
        "10000 flushes do not come together in so short a run: it does to its disk what it does "
        "with 0"
    )


def traced(setup: Setup, seed: int, transactions: int) -> bytes:
    workload = WorkloadSpec(transactions, seed).make(setup)
    return trace(
        ReplicaSystem(workload, setup.configuration, seed=seed),
        SimulatedDisk(set_up(workload, setup.configuration)),
    )


def test_a_trace_tells_runs_apart() -> None:
    """By the files at the start, each operation, each byte written, and the moment of each
    acknowledgement."""

    class Steps:
        def __init__(self, *steps: str) -> None:
            self.steps = steps

        def run(self, disk: Disk) -> Iterator[Hashable]:
            for step in self.steps:
                action, _, name = step.partition(" ")
                if action == "tell":
                    yield name
                elif action in ("rename", "remove"):
                    getattr(disk, action)(*name.split())
                elif action == "names":
                    disk.fsync_names()
                else:
                    file = disk.open("a", create=True)
                    {
                        "write": lambda file=file, name=name: file.write(
                            file.size(), name.encode()
                        ),
                        "sync": file.fsync,
                    }.get(action, lambda file=file: file.truncate(0))()

        def recover(self, disk: Disk) -> State:
            return State(())

    programs = [
        ("write x", "tell 1"), ("write y", "tell 1"), ("tell 1", "write x"), ("write x", "tell 2"),
        ("write x", "sync", "tell 1"), ("write x", "tell 1", "sync"), ("write x", "cut", "tell 1"),
        ("write x", "rename a b", "tell 1"), ("write x", "remove a", "tell 1"),
        ("write x", "names", "tell 1"), ("write xy", "tell 1"), ("write x", "write y", "tell 1"),
    ]  # fmt: skip
    digests = [trace(Steps(*steps), SimulatedDisk()) for steps in programs]
    digests.append(trace(Steps(*programs[0]), SimulatedDisk({"a": b""})))
    assert len(set(digests)) == len(digests)
    assert [trace(Steps(*steps), SimulatedDisk()) for steps in programs] == digests[:-1]


class Lines:
    """Writes lines into a file. A start cuts off a line that is not whole."""

    def run(self, disk: Disk) -> Iterator[Hashable]:
        file = disk.open("lines", create=True)
        for number in range(3):
            file.write(file.size(), b"%05d\n" % number)
            file.fsync()
            yield number

    def recover(self, disk: Disk) -> State:
        whole = self.whole_part(read_file(disk, "lines") or b"")
        file = disk.open("lines", create=True)
        file.truncate(len(whole))
        done = [int(line) for line in whole.split()]
        return State((*done, *range(len(done), 3)))

    @staticmethod
    def whole_part(content: bytes) -> bytes:
        return content[: content.rfind(b"\n") + 1]


class LinesThatCount(Lines):
    """Says so."""

    def what_counts(self, name: str) -> Callable[[bytes], bytes] | None:
        return self.whole_part if name == "lines" else None


def test_disks_that_differ_in_what_a_start_cuts_off_are_recovered_once() -> None:
    """The torn line makes another disk, with a verdict of its own, and no recovery more."""
    plain, quick = (
        explore(make, medium=Medium(sector_bytes=1)) for make in (Lines, LinesThatCount)
    )
    assert verdicts(quick) == verdicts(plain)
    assert plain.recoveries > quick.recoveries == 5, "no file; no line, one, two and three"


def first_file_only(found: Callable[..., Any]) -> Callable[..., Any]:
    """A recovery is said to depend on less than it looked at."""
    return lambda self, files, looked_at, result: found(self, files, looked_at[:1], result)


def ledger_only(self: DurableStorage, line: Hashable, changes: Hashable) -> None:
    """Takes what a transaction did for what it is called."""
    enter(self, line, None)


enter = DurableStorage._enter


def half_counts(self: ReplicaSystem, name: str) -> Callable[[bytes], bytes]:
    """A start is said to go by less of a file than it does."""
    return lambda content: content[: len(content) // 2]


def without(*left_out: int) -> Callable[[Replica], Hashable]:
    """A standing behind the start that leaves something out."""
    whole = Replica.standing_behind_start

    def standing(self: Replica) -> Hashable:
        parts = whole(self)
        assert isinstance(parts, tuple)
        return tuple(part for at, part in enumerate(parts) if at not in left_out)

    return standing


APPLIED, RECEIVED, GTIDS, UNREAD = 0, 1, 2, 4


@functools.cache
def plainly(setup: Setup) -> list[tuple[str, str, int]]:
    return verdicts(explored(setup, 1, 2, remembers=False))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("owner", "name", "mutant", "setup"),
    [
        (DurableStorage, "_enter", ledger_only,
         Setup(repository=FILE, auto_position=False, recovery=False)),
        (ReplicaSystem, "what_counts", half_counts, Setup(repository=FILE, auto_position=False)),
        (RecoveryResults, "add", first_file_only(RecoveryResults.add),
         Setup(repository=FILE, auto_position=False)),
        (Replica, "standing_behind_start", without(APPLIED, RECEIVED),
         Setup(repository=FILE, auto_position=False)),
        (Replica, "standing_behind_start", without(UNREAD),
         Setup(repository=FILE, auto_position=False, recovery=False)),
        (Replica, "standing_behind_start", without(GTIDS, UNREAD),
         Setup(repository=FILE, recovery=False)),
    ],
    ids=["changes", "contents", "files", "positions", "relay logs", "GTIDs"],
)  # fmt: skip
def test_a_memory_that_confuses_recoveries_is_noticed(
    owner: type, name: str, mutant: Callable[..., Any], setup: Setup
) -> None:
    plain = plainly(setup)
    assert verdicts(explored(setup, 1, 2, remembers=True)) == plain
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, mutant)
        assert verdicts(explored(setup, 1, 2, remembers=True)) != plain, name
