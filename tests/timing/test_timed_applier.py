"""An emulated replica on a clock: the same times as the simulation, and what is shown while it
works."""

from __future__ import annotations

import time

import pytest

from applier.binlog.header import Event, EventType
from applier.errors import ReplicationError
from applier.replica.replica import Replica
from applier.status.performance_schema import performance_schema
from applier.status.view import ReplicaView
from applier.timing.clock import ClockConfiguration
from applier.timing.delay import DelayGate
from applier.timing.simulate import simulate
from applier.timing.timed import timed_transactions
from checkpoints.position import Position
from tests.replica.replicas import Rig, contents, logs_of, replayed
from tests.timing.timed_applier import Clock, RealClock, SimulatedClock, TimedApplier

AFTERWARDS = 4_000_000_000.0
"""When everything has arrived, and no delay holds anything back any more."""


def cost(event: Event) -> float:
    """Whole seconds, so that times are exact. The simulation knows of no events between
    transactions."""
    return 0.0 if event.type == EventType.ROTATE else float(event.length // 16 % 5)


def timed(replica: Replica, clock: Clock, **options: int) -> TimedApplier:
    replica.receive()
    return TimedApplier(replica._threads()[1], clock, cost=cost, **options)


def end_of(replica: Replica) -> Position:
    received = replica.status.memory.received
    assert received is not None
    return received.source_position


@pytest.mark.parametrize(
    ("capture", "version"),
    [("my57_xa", "5.7"), ("my_ddl", "8.0"), ("my56_anonymous_nochecksum", "5.6")],
)
def test_the_same_curve_as_the_simulation(capture: str, version: str) -> None:
    replica = Rig.of(capture).replica(version, workers=0)
    applier = timed(replica, SimulatedClock(AFTERWARDS))
    while applier.step():
        pass
    assert contents(replica.tables) == replayed(capture, version), "on a clock it does the same"
    simulation = simulate(
        timed_transactions(logs_of(capture), cost),
        ClockConfiguration(server=version, workers=0, start=AFTERWARDS),
    )
    history = applier.timestamp.history
    moments = sorted({*history.times, *simulation.timestamp.times})
    assert len(moments) >= 2
    assert [history.at(moment) for moment in moments] == [
        simulation.timestamp.at(moment) for moment in moments
    ]
    assert applier.clock.now() == simulation.end
    assert applier.timestamp.value == 0
    assert applier.seconds_behind(end_of(replica), connected=True) == 0
    assert applier.seconds_behind(end_of(replica), connected=False) is None


def test_what_it_shows_on_its_way() -> None:
    replica = Rig.of("my_ddl").replica("8.0", workers=0)
    clock = SimulatedClock(AFTERWARDS)
    applier = timed(replica, clock, clock_difference=5)
    seen = set()
    while applier.step():
        shown = applier.seconds_behind(end_of(replica), connected=True)
        if applier.current.gtid:
            (row,) = performance_schema(ReplicaView(version="8.0", applier=applier.thread()))[
                "replication_applier_status_by_worker"
            ]
            assert (row["APPLYING_TRANSACTION"], row["SERVICE_STATE"]) == (
                applier.current.gtid,
                "ON",
            )
            assert shown == int(clock.now()) - applier.timestamp.value - 5
            seen.add(row["APPLYING_TRANSACTION_START_APPLY_TIMESTAMP"])
    assert len(seen) > 5
    assert applier.current.gtid == ""
    assert applier.last.end is not None
    assert applier.last.start is not None
    assert applier.last.immediate_commit is not None
    assert applier.last.start <= applier.last.end <= clock.now()


def test_a_delay_holds_the_applier_back() -> None:
    replica = Rig.of("my_ddl").replica("8.0", workers=0)
    transactions = list(timed_transactions(logs_of("my_ddl"), lambda event: 0.0))
    clock = SimulatedClock(transactions[0].commit)
    replica.receive()
    applier = TimedApplier(replica._threads()[1], clock, delay_seconds=3600)
    while applier.step():
        pass
    gate = DelayGate(applier.rules, 3600, 0)
    last = gate.gtid(0, transactions[-1].commit)
    assert last is not None
    assert last <= clock.now() < last + 1


def test_an_error_stops_it() -> None:
    rig = Rig.of("my57_xa")
    replica = rig.replica("5.7", workers=0)
    replica.receive()
    clock = SimulatedClock(AFTERWARDS)
    applier = timed(replica, clock)
    for _ in range(30):
        applier.step()
    for table in list(rig.storage.tables):
        table.truncate()
    with pytest.raises(ReplicationError):
        while applier.step():
            pass
    assert applier.failure.number in (1032, 1062, 1146)
    assert applier.failure.time == clock.now()
    assert applier.seconds_behind(end_of(replica), connected=True) is None
    assert applier.thread().state == "OFF"


def test_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimulatedClock(5.0)
    clock.sleep(2.5)
    clock.sleep(-1.0)
    assert clock.now() == 7.5
    real, slept = RealClock(), list[float]()
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: 1000.25)
        patch.setattr(time, "sleep", slept.append)
        real.sleep(2.5)
        assert (real.now(), slept) == (1000.25, [2.5])
