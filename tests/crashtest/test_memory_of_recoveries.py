"""What an exploration remembers saves time and nothing else: beside one that recovers every disk from scratch and to the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.crashtest import Kind
from applier.crashtest.dependencies import Known
from applier.crashtest.durable import DurableStorage
from applier.crashtest.explorer import Exploration, explore
from applier.crashtest.matrix import Setup, WorkloadSpec
from applier.crashtest.replica_system import ReplicaSystem, Shared, expected_state, set_up
from applier.replica.configuration import FILE, TABLE
from applier.replica.replica import Replica
from checkpoints.outcomes import Medium
from checkpoints.simulated_disk import Coverage

ALL_CASES = os.environ.get("BINLAG_ALL_CASES") == "1"


def explored(setup: Setup, seed: int, transactions: int, *, remembers: bool) -> Exploration:
    """With memory as the matrix has it; without, each recovery is one of a disk of its own, and nothing is known to it."""
    workload = WorkloadSpec(transactions, seed).make(setup)
    shared = Shared()
    with pytest.MonkeyPatch.context() as patch:
        if not remembers:
            patch.setattr(Known, "find", lambda self, files: None)
        return explore(
            lambda: ReplicaSystem(workload, setup.configuration, seed=seed, shared=shared if remembers else None),
            kinds=tuple(Kind),
            coverage=Coverage.EDGES,
            medium=Medium(sector_bytes=512),
            files=set_up(workload, setup.configuration),
            expected=expected_state(workload, setup.configuration),
        )


def verdicts(found: Exploration) -> list[tuple[str, str, int]]:
    return [(trial.place, str(trial.judgement.verdict), trial.acknowledged) for trial in found.trials]


SETUPS = st.builds(
    Setup,
    server=st.sampled_from(["5.6", "5.7", "8.0"]),
    repository=st.sampled_from([FILE, TABLE]),
    sync=st.sampled_from([0, 1, 10000]),
    recovery=st.booleans(),
    auto_position=st.booleans(),
    workers=st.sampled_from([0, 4]),
    engine=st.sampled_from(["InnoDB", "MyISAM"]),
)


@settings(max_examples=16 if ALL_CASES else 3)
@given(SETUPS, st.integers(0, 1000), st.integers(1, 3 if ALL_CASES else 1))
def test_what_is_remembered_changes_no_verdict(setup: Setup, seed: int, transactions: int) -> None:
    """The same crash points, the same disks, the same verdict of each, on random workloads and configurations."""
    quick, plain = (explored(setup, seed, transactions, remembers=remembers) for remembers in (True, False))
    assert verdicts(quick) == verdicts(plain)
    assert quick.points == plain.points
    assert [quick.counts(kind) for kind in Kind] == [plain.counts(kind) for kind in Kind]
    assert quick.recoveries <= plain.recoveries


def without_ledger(self: ReplicaSystem, replica: Replica, storage: DurableStorage) -> Hashable:
    return str(storage.executed_gtids.union(replica.retrieved_gtids))


def first_file_only(found: Callable[..., Any]) -> Callable[..., Any]:
    """A recovery is said to depend on less than it looked at."""
    return lambda self, files, looked_at, result: found(self, files, looked_at[:1], result)


def test_a_memory_that_confuses_recoveries_is_noticed() -> None:
    setup = Setup(repository=FILE, auto_position=False, recovery=True, engine="MyISAM")
    plain = explored(setup, 1, 2, remembers=False)
    assert verdicts(explored(setup, 1, 2, remembers=True)) == verdicts(plain)
    for owner, name, mutant in (
        (ReplicaSystem, "_standing", without_ledger),
        (Known, "add", first_file_only(Known.add)),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, mutant)
            assert verdicts(explored(setup, 1, 2, remembers=True)) != verdicts(plain), name
