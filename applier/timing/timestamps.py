"""Commit timestamps along a chain of replicas: what each hop writes to its own log, and which lags
they tell.

The original commit timestamp is the first server's and stays; the immediate one is taken anew by
every server when it writes the transaction to its binary log (MYSQL_BIN_LOG::write_transaction,
sql/binlog.cc 8.0 to 9.7). A server that executes what it received does not know when a transaction
without timestamps (from 5.7) was committed first: it writes 0. So does every member of a group for
a view change, which no one server began. Event headers keep the source's times, but the statement
of a DDL carries how long after the begin on the first source it was over here: that is how its lag
is passed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import floor, inf

from applier.timing.clock import ClockConfiguration
from applier.timing.simulate import simulate
from applier.timing.simulation import Simulation
from applier.timing.timed import TimedTransaction


@dataclass(frozen=True, slots=True)
class HopLag:
    """One transaction at one hop, in seconds; None where a timestamp is missing (or 0). Clocks of
    different machines are compared.

    `total` = end of apply − original commit, `hop` = end of apply − immediate commit of the server
    before, `network` = begin of queueing − the same, `queued` = begin of apply − end of queueing,
    `applied` = end − begin of apply.
    """

    total: float | None
    hop: float | None
    network: float | None
    queued: float
    applied: float


def written(
    transactions: Sequence[TimedTransaction], simulation: Simulation
) -> list[TimedTransaction]:
    """The log that the replica of a simulation writes (log_replica_updates), in the order of its
    commits.

    Transactions that commit at one time are a group commit of its own. A version before 8.0 writes
    no commit timestamps.
    """
    configuration = simulation.configuration
    timed = configuration.rules.delays_transactions
    order = sorted(
        (number for number, end in enumerate(simulation.ends) if end < inf),
        key=simulation.ends.__getitem__,
    )
    log: list[TimedTransaction] = []
    group_end, committed = -inf, 0
    for number in order:
        if simulation.workers[number] < 0 or number in simulation.skipped:
            continue
        end = simulation.ends[number]
        if end > group_end:
            group_end, committed = end, len(log)
        here = end + configuration.replica_offset.at(end)
        log.append(_rewritten(transactions[number], here, committed, len(log) + 1, timed=timed))
    return log


def _rewritten(
    transaction: TimedTransaction, commit: float, committed: int, number: int, *, timed: bool
) -> TimedTransaction:
    if not transaction.timed:
        original: float | None = 0.0
    elif transaction.original_commit is None:
        original = transaction.commit
    else:
        original = transaction.original_commit
    changed = replace(
        transaction,
        commit=commit,
        original_commit=original if timed else None,
        timed=timed,
        last_committed=committed,
        sequence_number=number,
        starts_file=False,
        errors=0,
    )
    if transaction.rolls_back:
        return changed
    stamp = max(floor(commit), transaction.last_stamp)
    steps = (
        (*transaction.steps[:-1], transaction.steps[-1]._replace(stamp=stamp))
        if transaction.steps
        else ()
    )
    return replace(changed, steps=steps, body_stamp=stamp, last_stamp=stamp)


Hop = tuple[list[TimedTransaction], Simulation]


def chain(
    transactions: Iterable[TimedTransaction], replicas: Sequence[ClockConfiguration]
) -> list[Hop]:
    """Replicas in a row, each the source of the next: what each received, and what became of it.
    Offsets of each clock are its own."""
    hops: list[Hop] = []
    log = list(transactions)
    for number, replica in enumerate(replicas):
        before = replicas[number - 1].replica_offset if number else replica.source_offset
        simulation = simulate(log, replace(replica, source_offset=before))
        hops.append((log, simulation))
        log = written(log, simulation)
    return hops


def lags(transactions: Sequence[TimedTransaction], simulation: Simulation) -> list[HopLag | None]:
    """What performance_schema tells of each transaction at a hop; None for one that was not
    executed."""
    return [
        _lag(transaction, simulation, number) for number, transaction in enumerate(transactions)
    ]


def _lag(transaction: TimedTransaction, simulation: Simulation, number: int) -> HopLag | None:
    start, end = simulation.starts[number], simulation.ends[number]
    if end == inf or simulation.workers[number] < 0:
        return None
    offset = simulation.configuration.replica_offset
    here = end + offset.at(end)
    arrived = simulation.arrivals[number] + offset.at(simulation.arrivals[number])
    original = (
        transaction.commit if transaction.original_commit is None else transaction.original_commit
    )
    known = transaction.timed
    return HopLag(
        total=here - original if known and original else None,
        hop=here - transaction.commit if known else None,
        network=arrived - transaction.commit if known else None,
        queued=start - simulation.received[number],
        applied=end - start,
    )
