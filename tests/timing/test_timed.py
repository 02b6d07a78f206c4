"""Transactions of a log with their times: what headers say, which databases, what is known of the
commit."""

from __future__ import annotations

from applier.binlog.header import Event
from applier.timing.clock import ClockConfiguration
from applier.timing.simulate import simulate
from applier.timing.timed import (
    ALL_DATABASES,
    Step,
    TimedTransaction,
    rows_cost,
    timed_transactions,
)
from tests.replica.replicas import logs_of
from tests.timing.lag_captures import LagCapture, lag_captures

CAPTURES = {capture.name: capture for capture in lag_captures()}


def of(name: str, case: str) -> tuple[LagCapture, list[TimedTransaction]]:
    capture = CAPTURES[name]
    found = capture.transactions()
    assert found, case
    return capture, found


def test_a_ddl_statement_carries_its_duration() -> None:
    _, (transaction,) = of("my57_ddl_sleep10_single", "GTID event and statement")
    assert [step.events for step in transaction.steps] == [1, 1]
    assert transaction.last_stamp == transaction.body_stamp == transaction.stamp + 10
    assert not transaction.rolls_back
    assert not transaction.timed


def test_a_transaction_of_ten_statements_keeps_their_times() -> None:
    _, (transaction,) = of("my57_row_begin_commit_single", "GTID, BEGIN, ten statements, XID")
    begun = transaction.body_stamp
    assert [step.stamp - begun for step in transaction.steps] == [
        11,
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        8,
        9,
        10,
        11,
    ]
    assert sum(step.events for step in transaction.steps) == transaction.events == 23
    assert sum(step.bytes for step in transaction.steps) == transaction.bytes == 8868 - 154
    assert transaction.databases == ("d1",)
    assert (transaction.position, transaction.end) == (154, 8868)


def test_dependencies_and_databases() -> None:
    _, found = of("my57_row_with_small_trx_mts4_logical_clock", "one large, others small")
    assert [transaction.sequence_number for transaction in found] == list(range(1, len(found) + 1))
    assert {transaction.databases for transaction in found} == {("d1",), ("d2",)}
    assert sum(transaction.starts_file for transaction in found) == 0


def test_several_files_and_commit_timestamps() -> None:
    found = list(
        timed_transactions(
            logs_of("my_oltp_compressed_rotated"), lambda event: 0.0, seconds_per_transaction=0.25
        )
    )
    files = {transaction.file for transaction in found}
    assert len(files) == sum(transaction.starts_file for transaction in found) + 1 > 1
    assert all(
        transaction.timed and transaction.original_commit is not None for transaction in found
    )
    assert {transaction.seconds for transaction in found} == {0.25}
    assert {transaction.server_id for transaction in found} == {found[0].server_id}


def test_a_log_without_commit_timestamps_never_goes_back() -> None:
    found = list(timed_transactions(logs_of("my56_anonymous_nochecksum"), lambda event: 0.0))
    commits = [transaction.commit for transaction in found]
    assert commits == sorted(commits)
    assert [transaction.sequence_number for transaction in found] == [0] * len(found)


def test_what_is_left_out_of_a_transaction_is_made_of_its_commit() -> None:
    plain = TimedTransaction(1000.75)
    assert (plain.stamp, plain.body_stamp, plain.last_stamp, plain.databases) == (
        1000,
        1000,
        1000,
        ALL_DATABASES,
    )
    ddl = TimedTransaction(1000.75, stamp=990, body_stamp=1000)
    assert (ddl.stamp, ddl.body_stamp, ddl.last_stamp) == (990, 1000, 1000)
    steps = (Step(1, 1, 1, 10, 0.0), Step(2, 2, 3, 10, 0.0), Step(3, 3, 1, 10, 0.0))
    several = TimedTransaction(1000.75, steps=steps)
    assert (several.stamp, several.body_stamp, several.last_stamp) == (1, 2, 3)


def test_costs() -> None:
    cost = rows_cost(0.001, 0.5)
    seconds: list[tuple[int, float]] = []

    def noted(event: Event) -> float:
        seconds.append((event.type, cost(event)))
        return cost(event)

    logs = logs_of("my57_xa")
    found = list(timed_transactions(logs, noted))
    assert (
        sum(transaction.seconds for transaction in found) <= sum(cost for _, cost in seconds) + 1e-6
    )
    assert {type_code for type_code, spent in seconds if spent > 0.5} >= {30}
    assert simulate(found, ClockConfiguration(server="5.7", workers=0)).end > found[-1].commit
