"""Commit timestamps through chains and groups; SOURCE_DELAY by its old and its new rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from applier.replica.scheduling import RULES
from applier.status.performance_schema import performance_schema
from applier.timing.clock import ClockConfiguration, Offset
from applier.timing.delay import DelayGate, Naps, nap_seconds
from applier.timing.simulate import simulate
from applier.timing.simulation_view import view_at
from applier.timing.timed import Step, TimedTransaction
from applier.timing.timestamps import chain, lags

SINGLE = ClockConfiguration(server="8.0", workers=0, network_seconds=0.5)


def ddl(begun: int, seconds: int) -> TimedTransaction:
    steps = (Step(begun, begun, 1, 65, 0.0), Step(begun + seconds, begun, 1, 100, float(seconds)))
    return TimedTransaction(
        float(begun + seconds), float(seconds), 165, 2, 0, 1, steps=steps, rolls_back=False
    )


def test_original_stays_and_immediate_is_each_servers_own() -> None:
    hops = chain([TimedTransaction(1000.25, 2.0, 100, 5, 0, 1)], [SINGLE, SINGLE, SINGLE])
    received = [log[0] for log, _ in hops]
    assert [transaction.commit for transaction in received] == [1000.25, 1002.75, 1005.25]
    assert [transaction.original_commit for transaction in received] == [None, 1000.25, 1000.25]
    told = [lags(log, simulation)[0] for log, simulation in hops]
    assert [(lag.total, lag.hop, lag.network, lag.queued, lag.applied) for lag in told if lag] == [
        (2.5, 2.5, 0.5, 0.0, 2.0),
        (5.0, 2.5, 0.5, 0.0, 2.0),
        (7.5, 2.5, 0.5, 0.0, 2.0),
    ]


def test_a_chain_counts_from_the_first_source_for_rows_and_from_the_hop_before_for_ddl() -> None:
    single = replace(SINGLE, clock_difference=0)
    rows = chain([TimedTransaction(1000.0, 10.0, 100, 5, 0, 1)], [single, single])[1][1]
    assert rows.seconds_behind(1011.1) == 11
    statement = chain([ddl(1000, 10)], [single, single])[1][1]
    assert statement.seconds_behind(1021.1) == 1


def test_a_view_change_has_no_original() -> None:
    view_change = TimedTransaction(1000.0, 0.1, 100, 4, 0, 1, original_commit=0.0)
    hops = chain([view_change], [SINGLE, SINGLE])
    assert [log[0].original_commit for log, _ in hops] == [0.0, 0.0]
    lag = lags(*hops[1])[0]
    assert lag is not None
    assert (lag.total, lag.hop) == (None, 0.6000000000000227)
    row = performance_schema(view_at(hops[1][1], hops[1][0], 1010.0))[
        "replication_applier_status_by_worker"
    ][0]
    assert row["LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP"] == "0000-00-00 00:00:00.000000"
    assert (
        row["LAST_APPLIED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP"] == "1970-01-01 00:16:40.600000"
    )


@pytest.mark.parametrize(
    ("versions", "originals", "timed"),
    [
        (["8.0", "9.7", "8.4"], [None, 1000.0, 1000.0], [True, True, True]),
        (["5.7", "8.0", "8.0"], [None, None, 0.0], [True, False, True]),
        (["8.0", "5.7", "8.0"], [None, 1000.0, None], [True, True, False]),
    ],
)
def test_versions_without_timestamps_in_the_chain(
    versions: list[str], originals: list[float | None], timed: list[bool]
) -> None:
    replicas = [replace(SINGLE, server=version, workers=1) for version in versions]
    hops = chain([TimedTransaction(1000.0, 1.0, 100, 5, 0, 1)], replicas)
    assert [log[0].original_commit for log, _ in hops] == originals
    assert [log[0].timed for log, _ in hops] == timed


def test_workers_make_group_commits_for_the_next_hop() -> None:
    log = [
        TimedTransaction(1000.0, seconds, 100, 5, min(number, 1), number + 1)
        for number, seconds in enumerate((1.0, 5.0, 1.0, 1.0))
    ]
    hops = chain(log, [ClockConfiguration(server="8.0", workers=4), SINGLE])
    assert [(each.last_committed, each.sequence_number) for each in hops[1][0]] == [
        (0, 1),
        (1, 2),
        (1, 3),
        (1, 4),
    ]


def test_clocks_that_differ_show_in_the_lags() -> None:
    hops = chain(
        [TimedTransaction(1000.0, 1.0, 100, 5, 0, 1)],
        [replace(SINGLE, replica_offset=Offset.of(100.0)), SINGLE],
    )
    assert [lag.hop for log, simulation in hops if (lag := lags(log, simulation)[0])] == [
        101.5,
        -98.5,
    ]
    assert [
        simulation.true_lag(moment)
        for (_, simulation), moment in zip(hops, (1001.0, 1002.5), strict=True)
    ] == [1.0, 1.0]


# SOURCE_DELAY


@pytest.mark.parametrize(
    ("server", "commit", "gtid_waits", "others_wait"),
    [
        ("5.7", None, 1065, 1062),
        ("5.7", 1003.5, 1065, 1062),
        ("8.0", 1003.5, 1064, None),
        ("8.0", 1003.0, 1063, None),
        ("8.0", None, 1065, 1062),
    ],
)
def test_old_and_new_rule(
    server: str, commit: float | None, gtid_waits: int, others_wait: int | None
) -> None:
    """The old one counts from header time with the clocks' difference (here 2), the new one from
    the commit, rounded up."""
    gate = DelayGate(RULES[server], 60, 2)
    assert gate.gtid(1003, commit) == gtid_waits
    assert gate.event(1000) == others_wait


def test_the_first_gtid_event_decides_for_good() -> None:
    gate = DelayGate(RULES["8.0"], 60, 0)
    assert gate.event(1000) == 1060, "not known yet: the old rule"
    assert gate.gtid(1000, 1000.5) == 1061
    assert gate.event(1000) is None
    assert DelayGate(RULES["8.0"], 0, 0).gtid(1000, 1000.5) is None


def test_naps_are_whole_seconds() -> None:
    assert [nap_seconds(until, 1000.9) for until in (None, 999, 1000, 1001, 1060)] == [
        0,
        0,
        0,
        1,
        60,
    ]
    naps = Naps()
    naps.add(10.0, 15.0, 115)
    assert [naps.remaining(at, 100.0 + at) for at in (9.0, 10.0, 12.5, 15.0)] == [None, 5, 3, None]


@pytest.mark.parametrize(
    ("server", "workers"), [("8.0", 0), ("8.0", 4), ("5.7", 0), ("5.7", 4), ("9.7", 1)]
)
def test_a_delayed_replica_stays_that_far_behind(server: str, workers: int) -> None:
    log = [
        TimedTransaction(1000.0 + number, 0.01, 100, 5, number, number + 1) for number in range(100)
    ]
    simulation = simulate(
        log, ClockConfiguration(server=server, workers=workers, delay_seconds=30, start=1000.0)
    )
    assert all(
        30.0 <= end - commit <= 31.1
        for end, commit in zip(simulation.ends, simulation.commits, strict=True)
    )
    shown = [simulation.seconds_behind(1040.5 + number) for number in range(50)]
    assert {29, 30, 31} >= {value if value is not None else -1 for value in shown}, (
        "the next event's time counts while it waits"
    )
    assert simulation.naps.remaining(1005.0, 1005.0) == 25


def test_by_the_old_rule_later_statements_of_a_transaction_wait_again() -> None:
    steps = (
        Step(1020, 1020, 1, 65, 0.0),
        Step(1000, 1000, 2, 100, 0.1),
        Step(1010, 1010, 2, 100, 0.1),
        Step(1020, 1020, 1, 31, 0.0),
    )
    log = [TimedTransaction(1020.0, 0.2, 296, 6, 0, 1, steps=steps)]
    old = simulate(log, ClockConfiguration(server="5.7", workers=0, delay_seconds=60))
    new = simulate(log, ClockConfiguration(server="8.0", workers=0, delay_seconds=60))
    assert old.naps.untils == [1080]
    assert [round(simulation.ends[0], 3) for simulation in (old, new)] == [1080.2, 1080.2]
    five_six = [replace(log[0], steps=steps[1:])]
    waits = simulate(five_six, ClockConfiguration(server="5.6", workers=0, delay_seconds=60))
    assert waits.naps.untils == [1060, 1070, 1080]


def test_the_replicas_wrong_clock_moves_the_old_rule_not_and_the_new_rule() -> None:
    """The old rule adds the difference that was measured; the new one takes the replica's clock for
    right."""
    log = [TimedTransaction(1000.0, 0.1, 100, 5, 0, 1)]
    ahead = Offset.of(20.0)
    ends = [
        simulate(
            log,
            ClockConfiguration(server=server, workers=0, delay_seconds=60, replica_offset=ahead),
        ).ends[0]
        for server in ("5.7", "8.0")
    ]
    assert [round(end, 1) for end in ends] == [1060.1, 1040.1]
