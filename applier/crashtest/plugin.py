"""The pytest plugin: crash tests of appliers of one's own.

    @pytest.mark.crash_points(system=Consumer)
    def test_every_crash(crash):     # once for each disk that a crash of Consumer().run may leave
        crash.check()                # recover on it, and judge

    def test_all_at_once(crash_test):
        crash_test(Consumer)         # the same in one test

`Consumer` is a class or function that makes a system (`applier.crashtest.contract`). The marker and
the fixture take what `applier.crashtest.explore` takes: kinds, coverage, medium, files, expected;
and `allow`, verdicts that are no failure: allow={"re-executes"} for a consumer that promises each
transaction at least once. `--crash "process | 17 inside 8 | process"` tries that one crash only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from applier.crashtest.checkers import Verdict
    from applier.crashtest.contract import State
    from applier.crashtest.crash_runs import Make
    from applier.crashtest.explorer import Exploration, Trial
    from checkpoints.outcomes import Medium
    from checkpoints.simulated_disk import SimulatedDisk

MARKER = "crash_points"
OPTION = "--crash"
SHOWN = 5
"""Failures that a message lists."""


@dataclass(frozen=True)
class Crash:
    """One crash of a run, for a test of its own."""

    make: Make
    trial: Trial
    medium: Medium | None
    files: Mapping[str, bytes] | None
    allow: frozenset[Verdict] = frozenset()

    def again(self) -> tuple[SimulatedDisk, list[Hashable]]:
        """The disk that is left, and the work that had been acknowledged."""
        from applier.crashtest.crash_runs import crash

        return crash(
            self.make,
            self.trial.kind,
            self.trial.point,
            self.trial.outcome,
            medium=self.medium,
            files=self.files,
        )

    @property
    def disk(self) -> SimulatedDisk:
        """What the crash left; a disk of its own each time."""
        return self.again()[0]

    @property
    def acknowledged(self) -> list[Hashable]:
        """What the system had acknowledged before the crash."""
        return self.again()[1]

    def recover(self) -> State:
        """What the system makes of the disk."""
        return self.make().recover(self.disk)

    def check(self) -> None:
        """Raises AssertionError unless the system recovers, has all its work, and has it once, or
        as `allow` says."""
        __tracebackhide__ = True
        if not _is_right(self.trial, self.allow):
            raise AssertionError(str(self.trial))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that runs one crash only."""
    parser.getgroup("binlag").addoption(
        OPTION,
        metavar="PLACE",
        default=None,
        help="Only this crash, as a failed crash test showed it.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(system=…, **options): once for every different disk that a crash of system().run"
        " may leave",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs the system once, and makes a test of each different disk that a crash may leave."""
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None:
        return
    options = dict(marker.kwargs)
    make, allow = options.pop("system", None), _allowed(options.pop("allow", ()))
    if "crash" not in metafunc.fixturenames or make is None or marker.args:
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: write @pytest.mark.{MARKER}(system=…) and take the"
            " argument `crash`"
        )
    trials = _trials(metafunc.config, make, options)
    crashes = [
        Crash(make, trial, options.get("medium"), options.get("files"), allow) for trial in trials
    ]
    metafunc.parametrize("crash", crashes, ids=[trial.place for trial in trials])


@pytest.fixture
def simulated_disk() -> SimulatedDisk:
    """A disk in memory that can crash: `disk.crashes(kind)` are the disks that may be left."""
    from checkpoints.simulated_disk import SimulatedDisk

    return SimulatedDisk()


@pytest.fixture
def replica() -> Callable[..., dict[str, Any]]:
    """A function that gives the emulated replica as arguments of `crash_test`:
    crash_test(**replica(repository="FILE", recovery=False)).

    It takes `transactions`, `seed` and what `applier.crashtest.matrix.Setup` takes.
    `["make"]().server(disk)` is one to drive by hand.
    """

    def make(transactions: int = 5, seed: int = 1, **options: Any) -> dict[str, Any]:
        from applier.crashtest.matrix import Setup, WorkloadSpec
        from applier.crashtest.replica_system import ReplicaSystem, Shared, expected_state, set_up
        from checkpoints.outcomes import Medium
        from checkpoints.simulated_disk import Coverage

        setup = Setup(**options)
        configuration, shared = setup.configuration, Shared()
        workload = WorkloadSpec(transactions, seed).make(setup)
        return {
            "make": lambda: ReplicaSystem(workload, configuration, seed=seed, shared=shared),
            "files": set_up(workload, configuration),
            "expected": expected_state(workload, configuration),
            "medium": Medium(sector_bytes=512),
            "coverage": Coverage.EDGES,
        }

    return make


@pytest.fixture
def crash_test(request: pytest.FixtureRequest) -> Iterator[Callable[..., Exploration]]:
    """A function that tries all crashes of a system and raises AssertionError that lists the first
    failures, one a line."""
    from applier.crashtest.explorer import Exploration

    def run(make: Make, *, allow: Collection[str] = (), **options: Any) -> Exploration:
        __tracebackhide__ = True
        trials, allowed = _trials(request.config, make, options), _allowed(allow)
        failures = [trial for trial in trials if not _is_right(trial, allowed)]
        if failures:
            shown = [f"  {trial}" for trial in failures[:SHOWN]] + (
                ["  …"] if len(failures) > SHOWN else []
            )
            again = f'  again: {OPTION} "{failures[0].place}"'
            raise AssertionError(
                "\n".join(
                    [
                        f"{len(failures)} of {len(trials)} disks after a crash are wrong",
                        *shown,
                        again,
                    ]
                )
            )
        return Exploration(trials=trials)

    yield run


def _allowed(names: Collection[str]) -> frozenset[Verdict]:
    """The verdicts of these names. Raises pytest.UsageError for any other name."""
    from applier.crashtest.checkers import Verdict

    if isinstance(names, str) or not set(names) <= set(Verdict):
        raise pytest.UsageError(
            f"allow={names!r}: give a set of {', '.join(map(repr, map(str, Verdict)))}"
        )
    return frozenset(map(Verdict, names))


def _is_right(trial: Trial, allowed: frozenset[Verdict]) -> bool:
    from applier.crashtest.checkers import Verdict

    return trial.judgement.verdict in {Verdict.CONSISTENT, *allowed}


def _trials(config: pytest.Config, make: Make, options: dict[str, Any]) -> list[Trial]:
    from applier.crashtest.explorer import explore, parse_place, reproduce

    place = config.getoption(OPTION)
    if place is None:
        return explore(make, **options).trials
    own = {
        name: value for name, value in options.items() if name in ("medium", "files", "expected")
    }
    return [reproduce(make, *parse_place(place), **own)]
