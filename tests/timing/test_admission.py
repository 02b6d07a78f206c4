"""Which transactions are executed: skip counter, GTIDs, server ids, UNTIL; and what START REPLICA
refuses."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from applier.errors import UsageError
from applier.replica.admission import Until
from applier.timing.clock import ClockConfiguration
from applier.timing.simulate import simulate
from applier.timing.timed import TimedTransaction
from checkpoints.gtid import GtidSet

UUID = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"


def log() -> list[TimedTransaction]:
    """Five transactions of five events and a second each; the third comes from server 7."""
    return [
        TimedTransaction(
            1000.0,
            1.0,
            100,
            5,
            min(number - 1, 1),
            number,
            gtid=f"{UUID}:{number}",
            server_id=7 if number == 3 else 1,
            file="binlog.000001",
            position=number * 100,
            end=(number + 1) * 100,
        )
        for number in range(1, 6)
    ]


def executed(**options: Any) -> list[int]:
    """The numbers of the transactions that were executed with work done."""
    simulation = simulate(
        log(),
        ClockConfiguration(server="8.0", start=1000.0, preserve_commit_order=False, **options),
    )
    return [
        number + 1
        for number, end in enumerate(simulation.ends)
        if end < inf and end - simulation.starts[number] > 0.5
    ]


CASES: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [1, 2, 3, 4, 5]),
    ({"skip_counter": 1}, [2, 3, 4, 5]),
    ({"skip_counter": 5}, [2, 3, 4, 5]),
    ({"skip_counter": 6}, [3, 4, 5]),
    ({"server_id": 7}, [1, 2, 4, 5]),
    ({"server_id": 7, "replicate_same_server_id": True}, [1, 2, 3, 4, 5]),
    ({"ignore_server_ids": frozenset({1})}, [3]),
    ({"executed": GtidSet(f"{UUID}:1-2:4")}, [3, 5]),
    ({"until": Until.parse("binlog.000001:300")}, [1, 2]),
    ({"until": Until.parse("binlog.000001:301")}, [1, 2, 3]),
    ({"until": Until.parse("binlog.000002:4")}, [1, 2, 3, 4, 5]),
    ({"until": Until.parse(f"before:{UUID}:3-9")}, [1, 2]),
    ({"until": Until.parse(f"after:{UUID}:2-3")}, [1, 2, 3]),
    ({"until": Until.parse(f"after:{UUID}:1"), "executed": GtidSet(f"{UUID}:1")}, []),
    ({"until": Until.parse(f"before:{UUID}:1:4"), "executed": GtidSet(f"{UUID}:1")}, []),
]


@pytest.mark.parametrize("workers", [0, 4])
@pytest.mark.parametrize(("options", "expected"), CASES, ids=str)
def test_who_is_executed(options: dict[str, Any], expected: list[int], workers: int) -> None:
    assert executed(workers=workers, **options) == expected


@pytest.mark.parametrize("workers", [0, 4])
def test_positions_move_over_what_is_left_out(workers: int) -> None:
    for options in (
        {"skip_counter": 100},
        {"ignore_server_ids": frozenset({1, 7})},
        {"executed": GtidSet(f"{UUID}:1-5")},
    ):
        simulation = simulate(
            log(), ClockConfiguration(server="8.0", start=1000.0, workers=workers, **options)
        )
        assert simulation.same_position(1001.0)
        assert simulation.seconds_behind(1001.0) == 0


def test_until_stops_the_applier() -> None:
    simulation = simulate(
        log(), ClockConfiguration(server="8.0", workers=0, until=Until.parse("binlog.000001:300"))
    )
    assert simulation.stopped_at == 1002.0
    assert simulation.seconds_behind(1001.5) is not None
    assert simulation.seconds_behind(1002.0) is None


@pytest.mark.parametrize(
    ("server", "workers"), [("5.6", 0), ("5.7", 0), ("8.0", 0), ("8.4", 4), ("9.7", 4)]
)
def test_until_after_gtids_goes_without_workers_up_to_8_0(server: str, workers: int) -> None:
    after, before = (
        ClockConfiguration(server=server, workers=4, until=Until.parse(f"{word}:{UUID}:3"))
        for word in ("after", "before")
    )
    assert (after.worker_count, before.worker_count) == (workers, 4)


@pytest.mark.parametrize(
    "options",
    [
        {"server": "9.7", "workers": 0},
        {"server": "9.7", "parallel_type": "DATABASE"},
        {"server": "5.6", "workers": 2, "parallel_type": "LOGICAL_CLOCK"},
        {"server": "5.6", "parallel_type": "LOGICAL_CLOCK"},
        {"server": "mariadb", "parallel_type": "LOGICAL_CLOCK"},
        {"server": "5.6", "preserve_commit_order": True},
        {"server": "mariadb", "preserve_commit_order": True},
        {"server": "5.7", "workers": 2, "preserve_commit_order": True, "parallel_type": "DATABASE"},
        {"server": "mariadb", "workers": 16384},
        {"server": "9.7", "max_queued_bytes": 1 << 20},
        {"server": "5.7", "domain_workers": 2},
        {"server": "8.0", "by_position": True},
        {"server": "mariadb", "domain_workers": -1},
        {"server": "no version"},
        {"checkpoint_group": 0},
    ],
    ids=str,
)
def test_what_the_server_refuses(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ClockConfiguration(**options)


def test_a_skip_counter_does_not_go_with_gtids() -> None:
    with pytest.raises(UsageError, match="gtid_mode"):
        simulate(log(), ClockConfiguration(skip_counter=1, executed=GtidSet(f"{UUID}:1")))


@pytest.mark.parametrize(
    "text", ["", "binlog.000001", "binlog.000001:x", "before:nonsense", "after:"]
)
def test_until_that_says_nothing(text: str) -> None:
    with pytest.raises(UsageError):
        Until.parse(text)
