"""The replica under crash tests: what is promised holds after every crash, what is not has a
counter-example that can be run again."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.crashtest import Kind, State, Trial, Verdict, explore, judge, reproduce
from applier.crashtest.crash_runs import crash
from applier.crashtest.explorer import Exploration, parse_place
from applier.crashtest.log_maker import MYISAM
from applier.crashtest.matrix import Setup, WorkloadSpec
from applier.crashtest.replica_system import ReplicaSystem, Shared, expected_state, set_up
from applier.crashtest.workload import captured, content_of, generated
from applier.replica.configuration import FILE, TABLE
from applier.replica.replica import Replica
from checkpoints.outcomes import Medium
from checkpoints.simulated_disk import Coverage, SimulatedDisk
from tests.captures_support import CAPTURES

ALL_CASES = os.environ.get("BINLAG_ALL_CASES") == "1"
MEDIUM = Medium(sector_bytes=512)
TRANSACTIONS = 8 if ALL_CASES else 2


class Bench:
    """One configuration with its workload."""

    def __init__(self, setup: Setup, seed: int = 1, transactions: int = TRANSACTIONS) -> None:
        self.setup = setup
        self.workload = WorkloadSpec(transactions, seed).make(setup)
        self.files = set_up(self.workload, setup.configuration)
        self.expected = expected_state(self.workload, setup.configuration)
        self.seed = seed

    def system(self, shared: Shared | None = None, *, stops: bool = True) -> ReplicaSystem:
        system = ReplicaSystem(
            self.workload, self.setup.configuration, seed=self.seed, shared=shared
        )
        system.stops_on_error = stops
        return system

    def explore(self, *kinds: Kind, stops: bool = True) -> Exploration:
        shared = Shared()
        return explore(
            lambda: self.system(shared, stops=stops),
            kinds=kinds or (Kind.PROCESS, Kind.OS),
            coverage=Coverage.EDGES,
            medium=MEDIUM,
            files=self.files,
            expected=self.expected,
        )

    def again(self, trial: Trial) -> Trial:
        return reproduce(
            self.system,
            *parse_place(trial.place),
            medium=MEDIUM,
            files=self.files,
            expected=self.expected,
        )


@pytest.mark.parametrize(
    "setup",
    [
        Setup(repository=FILE, auto_position=True, recovery=True),
        Setup(repository=TABLE, auto_position=False, recovery=True),
        Setup(repository=FILE, auto_position=True, recovery=True, workers=4),
        Setup(
            server="5.7", repository=TABLE, auto_position=False, recovery=True, workers=4, sync=1
        ),
        Setup(server="9.7", repository=TABLE, auto_position=True, recovery=True, workers=4),
    ],
    ids=lambda setup: " ".join(setup.arguments()),
)
def test_what_is_promised_holds(setup: Setup) -> None:
    """The seeds' two conclusions, with workers and without: consistent after every crash."""
    bench = Bench(setup)
    found = bench.explore(*Kind)
    assert all(setup.promise(kind) for kind in Kind)
    assert [str(trial) for trial in found.failures] == []
    assert set(found.points) == set(Kind) and all(found.points.values())
    assert bench.expected.content == bench.workload.expected
    assert len(bench.expected.applied) == TRANSACTIONS


@pytest.mark.parametrize("recovery", [False, True])
@pytest.mark.parametrize("workers", [0, 4])
def test_what_mariadb_promises(workers: int, recovery: bool) -> None:
    """By GTID nothing is lost and nothing executed twice; while START SLAVE deletes relay logs, a
    crash leaves an index that names them."""
    setup = Setup("mariadb", FILE, auto_position=True, recovery=recovery, workers=workers)
    bench = Bench(setup)
    found = bench.explore(*Kind)
    assert all(setup.promise(kind) for kind in Kind)
    assert set(found.counts()) == {Verdict.CONSISTENT, Verdict.CANNOT_START}
    wrong = [trial for trial in found.failures if "error 1201: " not in trial.judgement.detail]
    assert [str(trial) for trial in wrong] == []
    assert bench.expected.content == bench.workload.expected
    first = found.first(Kind.PROCESS, Verdict.CANNOT_START)
    assert first is not None
    assert bench.again(first) == first


@pytest.mark.parametrize(
    ("setup", "kind", "verdicts"),
    [
        (Setup("mariadb", FILE, auto_position=False, recovery=True), Kind.PROCESS,
         {Verdict.REEXECUTES}),
        (Setup("mariadb", FILE, auto_position=False, recovery=False, workers=4), Kind.OS,
         {Verdict.REEXECUTES, Verdict.CANNOT_START}),
        (Setup(repository=FILE, auto_position=False, recovery=True), Kind.PROCESS,
         {Verdict.REEXECUTES}),
        (Setup(repository=TABLE, auto_position=False, recovery=False), Kind.PROCESS,
         {Verdict.REEXECUTES, Verdict.CANNOT_START}),
        (Setup(repository=FILE, auto_position=True, recovery=False), Kind.OS,
         {Verdict.CANNOT_START}),
        (Setup(repository=TABLE, auto_position=False, recovery=True, workers=4), Kind.OS,
         {Verdict.CANNOT_START}),
    ],
    ids=lambda value: " ".join(value.arguments()) if isinstance(value, Setup) else None,
)  # fmt: skip
def test_what_is_not_promised_has_counter_examples(
    setup: Setup, kind: Kind, verdicts: set[Verdict]
) -> None:
    """Each of them is the same when it is run again from its line, without anything that the
    exploration remembered."""
    bench = Bench(setup)
    assert setup.promise(kind) is None
    found = bench.explore(kind)
    assert verdicts <= set(found.counts())
    for verdict in verdicts:
        trial = found.first(kind, verdict)
        assert trial is not None
        assert bench.again(trial) == trial


def test_numbers_of_the_servers_errors() -> None:
    """1062 for what is executed twice, 13121 for a torn relay log (8.0), 1872 for workers whose
    relay logs were lost."""
    texts = []
    for setup in (
        Setup(repository=TABLE, auto_position=False, recovery=False),
        Setup(repository=TABLE, auto_position=False, recovery=True, workers=4),
    ):
        texts += [trial.judgement.detail for trial in Bench(setup).explore().failures]
    for number in (1062, 13121, 1872):
        assert any(text.startswith(f"error {number}: ") for text in texts)


def test_a_table_without_transactions_promises_nothing() -> None:
    setup = Setup(engine=MYISAM, auto_position=True, recovery=True, repository=TABLE)
    found = Bench(setup).explore()
    assert [setup.promise(kind) for kind in Kind] == [None] * 4
    assert {Verdict.REEXECUTES, Verdict.LOSES} & set(found.counts())


def test_an_unsafe_commit_promises_nothing() -> None:
    """Relaxed durability loses committed transactions, or their GTIDs, when the machine crashes."""
    setup = Setup(auto_position=True, recovery=True, repository=TABLE, flush_log=2)
    assert setup.promise(Kind.OS) is None
    found = Bench(setup, transactions=6).explore(Kind.OS)
    assert Verdict.LOSES in found.counts()


def test_faults_are_crashes_of_a_system_that_stops() -> None:
    """What is derived from one run is what running again for each operation gives."""
    bench = Bench(Setup(repository=FILE, auto_position=True, recovery=False), transactions=1)
    kinds = Kind.FULL_DISK, Kind.IO_ERROR
    derived, real = bench.explore(*kinds), bench.explore(*kinds, stops=False)
    assert derived.points == real.points
    assert {(trial.kind, str(trial.judgement)) for trial in derived.trials} == {
        (trial.kind, str(trial.judgement)) for trial in real.trials
    }
    for trial in derived.trials[::15]:
        assert bench.again(trial) == trial


class NaiveServer:
    """Restarts and catches up in one go, remembers nothing, and counts what it finds by hand."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def verdict(self, trial: Trial) -> Verdict:
        system = self.bench.system()
        disk, acknowledged = crash(
            system_of(system),
            trial.kind,
            trial.point,
            trial.outcome,
            medium=MEDIUM,
            files=self.bench.files,
        )
        replica, storage = system.server(disk)
        try:
            replica.start()
            replica.receive()
            replica.apply()
        except Exception as error:
            number = getattr(error, "number", None)
            return Verdict.REEXECUTES if number in (1032, 1062) else Verdict.CANNOT_START
        return self.count(
            replica,
            [str(entry) for entry in storage.ledger],
            [str(entry) for entry in acknowledged],
        )

    def count(self, replica: Replica, ledger: list[str], acknowledged: list[str]) -> Verdict:
        if len(ledger) != len(set(ledger)):
            return Verdict.REEXECUTES
        content, asked = (
            content_of(replica.tables),
            [str(entry) for entry in self.bench.expected.applied],
        )
        if not set(asked) | set(acknowledged) <= set(ledger):
            return Verdict.LOSES
        if not all(
            self.comes_twice(content[table], rows)
            for table, rows in self.bench.workload.expected.items()
        ):
            return Verdict.LOSES
        same = content == self.bench.workload.expected and sorted(ledger) == sorted(asked)
        return Verdict.CONSISTENT if same else Verdict.REEXECUTES

    def comes_twice(self, found: list[bytes], expected: list[bytes]) -> bool:
        """Every row that should be there is, and what is left over are such rows again."""
        left = list(found)
        for row in expected:
            if row not in left:
                return False
            left.remove(row)
        return set(left) <= set(expected)


def system_of(system: ReplicaSystem) -> Callable[[], ReplicaSystem]:
    return lambda: system


SETUPS = st.builds(
    Setup,
    server=st.sampled_from(["5.6", "5.7", "8.0"]),
    repository=st.sampled_from([FILE, TABLE]),
    sync=st.sampled_from([0, 1, 3, 10000]),
    recovery=st.booleans(),
    auto_position=st.booleans(),
    workers=st.sampled_from([0, 3]),
    engine=st.sampled_from(["InnoDB", "InnoDB", "MyISAM"]),
    flush_log=st.sampled_from([1, 1, 0, 2]),
    sync_binlog=st.sampled_from([1, 1, 0, 2]),
)


@settings(max_examples=10 if ALL_CASES else 3)
@given(SETUPS, st.integers(0, 1000), st.data())
def test_random_workloads_and_crashes_beside_a_naive_server(
    setup: Setup, seed: int, data: st.DataObject
) -> None:
    """Random configurations, workloads and crashes: the verdict is the naive one's, and no promise
    is ever broken."""
    bench = Bench(setup, seed, transactions=2)
    found = bench.explore()
    assert found.trials
    for at in data.draw(st.lists(st.integers(0, len(found.trials) - 1), min_size=6, max_size=6)):
        trial = found.trials[at]
        assert NaiveServer(bench).verdict(trial) is trial.judgement.verdict, trial.place
    for trial in found.failures:
        assert setup.promise(trial.kind) is None, str(trial)


def test_an_event_that_comes_twice_stops_nothing() -> None:
    """Without recovery, behind a crash between an event and the receiver's record: whatever stops
    the replica is an error of a server."""
    bench = Bench(
        Setup(server="5.7", repository=TABLE, auto_position=False, recovery=False, sync=1),
        transactions=2,
    )
    stopped = [
        trial
        for trial in bench.explore().failures
        if trial.judgement.verdict is Verdict.CANNOT_START
    ]
    assert stopped
    assert [
        str(trial) for trial in stopped if not trial.judgement.detail.startswith("error 1594")
    ] == []


def test_a_captured_log_may_be_the_workload() -> None:
    """The names of transactions are places in the source's log."""
    workload = generated(3, gtids=False, seed=5)
    assert len(set(workload.names.values())) == 3
    assert all(name.startswith("binlog.00000") for name in workload.names.values())
    other = dataclasses.replace(workload, name="captured")
    assert other.expected == workload.expected
    assert judge(State(("a",), 1), State(("a",), 1), []).verdict is Verdict.CONSISTENT


def test_ddl_of_a_real_log_comes_back() -> None:
    """A restart redoes the statements of a real log of DDL, CREATE TABLE … SELECT among them, where
    table and rows are one transaction."""
    folder = CAPTURES / "open" / "my_ddl"
    workload = captured([folder / "binlog.000001"], str(folder / "before.sql"), "9.7")
    configuration = Setup(server="9.7", workers=1).configuration
    disk = SimulatedDisk(set_up(workload, configuration))
    done = list(ReplicaSystem(workload, configuration).run(disk))
    found = ReplicaSystem(workload, configuration).recover(disk)
    assert found.content == workload.expected
    assert list(found.applied) == done
