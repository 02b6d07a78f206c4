"""The axes of the matrix: each value of sync_* is there because it does something, or because users
have it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from applier.crashtest.matrix import AXES, Setup, WorkloadSpec, families, setups
from applier.crashtest.replica_system import ReplicaSystem, set_up
from applier.crashtest.trace import trace
from applier.replica.configuration import FILE
from checkpoints.simulated_disk import SimulatedDisk

ALL_CASES = os.environ.get("BINLAG_ALL_CASES") == "1"


def test_ten_comes_up_and_the_default_does_not() -> None:
    """In the generated log of 50 transactions every 10 is a run of its own beside never and always;
    every 10,000 is never, as recorded."""
    # the options of a start have no part in a run
    axes = AXES if ALL_CASES else {**AXES, "recovery": (True,)}
    found = families(setups(Setup(), axes))
    assert len(found) == (32 if ALL_CASES else 16)
    for family in found:
        workload = WorkloadSpec().make(family[0])
        runs = {
            setup.sync: trace(
                ReplicaSystem(workload, setup.configuration),
                SimulatedDisk(set_up(workload, setup.configuration)),
            )
            for setup in family
        }
        assert list(runs) == [0, 1, 10, 10000]
        assert runs[10000] == runs[0]
        assert len(set(runs.values())) == 3, family[0]


def syncs(setup: Setup, option: str, period: int, file: str) -> int:
    """How often files of this name are synced in a run with one of the three options set so."""
    chosen: dict[str, Any] = {option: period}
    configuration = replace(setup.configuration, **chosen)
    workload = WorkloadSpec().make(setup)
    disk = SimulatedDisk(set_up(workload, configuration))
    for _ in ReplicaSystem(workload, configuration).run(disk):
        pass
    return sum(
        operation.action == "fsync" and operation.name.startswith(file)
        for operation in disk.operations
    )


@pytest.mark.parametrize(
    ("option", "file", "workers"),
    [
        ("sync_relay_log", "relay.0", 0),
        ("sync_master_info", "master.info", 0),
        ("sync_relay_log_info", "relay-log.info", 0),
        ("sync_relay_log_info", "worker-relay-log.info", 4),
    ],
)
def test_ten_comes_up_for_each_record(option: str, file: str, workers: int) -> None:
    setup = Setup(repository=FILE, workers=workers)
    never, tenth, always = (syncs(setup, option, period, file) for period in (0, 10, 1))
    assert never < tenth < always
