"""`simulate`: the receiver, the applier or its coordinator and workers, one transaction after the
other.

Every thread's rules live in modules of their own; here is in which order they get their turn. See
`applier.timing.simulation` for the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from math import inf

from applier.errors import ReplicationError
from applier.replica.admission import AdmissionVerdict
from applier.timing.clock import ClockConfiguration
from applier.timing.seconds_behind import clock_difference
from applier.timing.simulated_domains import ParallelDomains
from applier.timing.simulated_parallel import Parallel
from applier.timing.simulated_single import Single
from applier.timing.simulation import Simulation
from applier.timing.timed import TimedTransaction


def simulate(
    transactions: Iterable[TimedTransaction], configuration: ClockConfiguration | None = None
) -> Simulation:
    """Runs a replica over transactions in the log's order: when each was received, executed and
    committed, in seconds.

    They are read one by one. An error of the applier is in the result (`error`, `stopped_at`), not
    raised. Raises UsageError for a configuration that the server version does not have.
    """
    configuration = configuration or ClockConfiguration()
    feed = iter(transactions)
    first = next(feed, None)
    begin = (
        first.commit - configuration.source_offset.at(first.commit) if first is not None else 0.0
    )
    start = begin if configuration.start is None else configuration.start
    simulation = Simulation(configuration, _clock_difference(configuration, start), start)
    applier = _applier(simulation)
    admission, receiver = configuration.admission, _Receiver(configuration)
    if admission is not None and admission.over:
        applier.end(start, handed_out=True)
    for transaction in chain(() if first is None else (first,), feed):
        commit, first_byte, last_byte = receiver.take(transaction)
        verdict = (
            AdmissionVerdict.EXECUTE
            if admission is None or applier.ended
            else admission.judge(transaction)
        )
        if verdict is AdmissionVerdict.STOP:
            applier.end(max(applier.now, first_byte), handed_out=True)
        if applier.ended or first_byte == inf:  # never executed
            simulation.add(commit, first_byte, last_byte, inf, inf, -1, transaction.bytes)
            continue
        try:
            start, end, worker = applier.take(transaction, first_byte, last_byte, verdict)
            if verdict is AdmissionVerdict.EMPTY:
                simulation.skipped.add(len(simulation))
        except ReplicationError as error:
            applier.fail(error)
            start, end, worker = inf, inf, -1
        simulation.add(commit, first_byte, last_byte, start, end, worker, transaction.bytes)
        if applier.now > applier.stop:
            applier.end(applier.stop)
        elif admission is not None and admission.finished:
            applier.end(end, handed_out=True)
    if not applier.ended:
        applier.drain()
    return simulation


def _applier(simulation: Simulation) -> Single | Parallel | ParallelDomains:
    configuration = simulation.configuration
    if not configuration.worker_count:
        return Single(simulation)
    return (ParallelDomains if configuration.rules.by_group_commit else Parallel)(simulation)


def _clock_difference(configuration: ClockConfiguration, start: float) -> int:
    """What is given, or what the receiver measures when it connects."""
    if configuration.clock_difference is not None:
        return configuration.clock_difference
    asked = start if configuration.connected_at is None else configuration.connected_at
    replica = asked + configuration.replica_offset.at(asked)
    source = asked + configuration.source_offset.at(asked)
    return clock_difference(replica, source, configuration.network_seconds)


class _Receiver:
    """The network and the receiver: bytes arrive in order, none before its commit."""

    def __init__(self, configuration: ClockConfiguration) -> None:
        self._offset = configuration.source_offset if configuration.source_offset else None
        self._latency = configuration.network_seconds
        self._rate = configuration.network_bytes_per_second
        self._stop = inf if configuration.receiver_stop is None else configuration.receiver_stop
        self._free = -inf

    def take(self, transaction: TimedTransaction) -> tuple[float, float, float]:
        """True time of the commit, and when its first and its last byte are in the relay log (inf:
        never)."""
        commit = transaction.commit
        if self._offset is not None:
            commit -= self._offset.at(commit)
        first = commit + self._latency
        if first < self._free:
            first = self._free
        last = first if self._rate is None else first + transaction.bytes / self._rate
        self._free = last
        return (commit, first, last) if last <= self._stop else (commit, inf, inf)
