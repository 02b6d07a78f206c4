"""Named cases in which Seconds_Behind_Source is not the lag: what the source did, and replicas that
show it.

Each comes from one of the articles the project started from; `expected` numbers are in
tests/timing/test_scenarios.py. `binlag clock --scenario NAME` prints one,
docs/concepts/seconds-behind.md shows them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from applier.timing.clock import ClockConfiguration, Offset
from applier.timing.simulate import simulate
from applier.timing.simulation import Simulation
from applier.timing.timed import Step, TimedTransaction

START = 1_700_000_000
"""When each scenario begins: a whole second."""


@dataclass(frozen=True)
class LagScenario:
    """`transactions()` makes the source's log anew; `replicas` are run over it, by name. `seconds`
    is how long to look."""

    name: str
    title: str
    transactions: Callable[[], Iterator[TimedTransaction]]
    replicas: dict[str, ClockConfiguration]
    seconds: int
    variants: tuple[
        tuple[str, Callable[[], Iterator[TimedTransaction]], ClockConfiguration], ...
    ] = ()
    """Further replicas that get another log: the source was set up in another way."""

    def run(self) -> dict[str, Simulation]:
        """Replica -> its simulation."""
        usual = {
            name: simulate(self.transactions(), self._from_start(replica))
            for name, replica in self.replicas.items()
        }
        return usual | {
            name: simulate(log(), self._from_start(replica)) for name, log, replica in self.variants
        }

    @staticmethod
    def _from_start(replica: ClockConfiguration) -> ClockConfiguration:
        return replica if replica.start is not None else replace(replica, start=float(START))


SINGLE = ClockConfiguration(server="8.0", workers=0)
WORKERS = ClockConfiguration(server="8.0", workers=4)
WORKERS_57 = ClockConfiguration(server="5.7", workers=4)
WORKERS_56 = ClockConfiguration(server="5.6", workers=4)
SLOW_CHECKPOINTS = replace(WORKERS, checkpoint_period_seconds=60.0)
SMALL_BYTES, SMALL_EVENTS = 300, 5


def small(
    at: float,
    number: int,
    *,
    seconds: float = 0.001,
    committed: int | None = None,
    database: str = "d",
) -> TimedTransaction:
    """A transaction of one row, the `number`-th of the log; it depends on the one before."""
    committed = number - 1 if committed is None else committed
    return TimedTransaction(
        at, seconds, SMALL_BYTES, SMALL_EVENTS, committed, number, databases=(database,)
    )


def long_ddl() -> Iterator[TimedTransaction]:
    """ALTER TABLE that runs from second 5 to 35: its events carry the begin, the statement also the
    30 seconds it took."""
    begun = START + 5
    steps = (Step(begun, begun, 1, 65, 0.0), Step(begun + 30, begun, 1, 120, 30.1))
    yield TimedTransaction(
        begun + 30.2, 30.1, 185, 2, 0, 1, steps=steps, databases=("d",), rolls_back=False
    )


def long_statement() -> Iterator[TimedTransaction]:
    """One UPDATE of many rows, from second 5 to 35, committed by itself: all events carry its
    begin."""
    begun = START + 5
    yield TimedTransaction(
        begun + 30.2, 30.1, 40_000_000, 5000, 0, 1, stamp=begun, databases=("d",)
    )


def held_open() -> Iterator[TimedTransaction]:
    """BEGIN and an UPDATE at second 5, which take 5 seconds on the replica; COMMIT ten minutes
    later."""
    begun, committed = START + 5, START + 605
    steps = (
        Step(committed, committed, 1, 65, 0.0),
        Step(begun, begun, 40, 300_000, 5.0),
        Step(committed, committed, 1, 31, 0.0),
    )
    yield TimedTransaction(committed + 0.2, 5.0, 300_096, 42, 0, 1, steps=steps, databases=("d",))


def three_inserts() -> Iterator[TimedTransaction]:
    """Three small transactions in one second, by hand."""
    for number, at in enumerate((5.1, 5.3, 5.5), start=1):
        yield small(START + at, number)


def steady() -> Iterator[TimedTransaction]:
    """Four small transactions each second, for three minutes: no replica has any trouble with
    them."""
    for number in range(1, 721):
        yield small(START + 5 + number / 4, number)


def busy_then_calm() -> Iterator[TimedTransaction]:
    """A DDL of a minute, then nothing: there is a lag to be shown."""
    begun = START + 5
    steps = (Step(begun, begun, 1, 65, 0.0), Step(begun + 10, begun, 1, 120, 60.0))
    yield TimedTransaction(
        begun + 10.0, 60.0, 185, 2, 0, 1, steps=steps, databases=("d",), rolls_back=False
    )


def more_than_the_network() -> Iterator[TimedTransaction]:
    """Two megabytes a second for a minute, and a network that takes one."""
    for number in range(1, 241):
        yield TimedTransaction(
            START + 5 + number / 4, 0.005, 500_000, 60, number - 1, number, databases=("d",)
        )


def large_among_small() -> Iterator[TimedTransaction]:
    """Five small transactions a second that depend on nothing, and among them one that takes a
    minute."""
    for number in range(1, 601):
        at = START + 5 + number / 5
        if number == 51:
            yield replace(
                small(at, number, seconds=60.0, committed=1, database="large"),
                bytes=80_000_000,
                events=10_000,
            )
        else:
            yield small(at, number, committed=max(min(number - 1, 1), 0), database="d")


def group_commits(delay_seconds: float) -> Callable[[], Iterator[TimedTransaction]]:
    """500 transactions a second for 30 seconds that each take the replica 4 ms, and how the
    source's group commit ties them.

    A group is what comes in while the one before is synced (1.5 ms) and
    binlog_group_commit_sync_delay waits.
    """

    def log() -> Iterator[TimedTransaction]:
        closes, first = 0.0, 1
        for number in range(1, 15_001):
            came = START + 5 + number / 500
            if came > closes:
                closes, first = came + 0.0015 + delay_seconds, number
            yield small(closes, number, seconds=0.004, committed=first - 1)

    return log


SCENARIOS: dict[str, LagScenario] = {
    scenario.name: scenario
    for scenario in (
        LagScenario(
            "ddl",
            "ALTER TABLE of 30 seconds",
            long_ddl,
            {
                "no workers": SINGLE,
                "5.7 and later, workers": WORKERS_57,
                "5.6, workers": WORKERS_56,
            },
            75,
        ),
        LagScenario(
            "large-transaction",
            "One statement of 30 seconds that changes rows",
            long_statement,
            {
                "no workers": SINGLE,
                "5.7 and later, workers": WORKERS_57,
                "5.6, workers": WORKERS_56,
            },
            75,
        ),
        LagScenario(
            "held-open",
            "A transaction held open for ten minutes",
            held_open,
            {"no workers": SINGLE, "workers": WORKERS},
            630,
        ),
        LagScenario(
            "checkpoint-period",
            "replica_checkpoint_period of 60 seconds",
            three_inserts,
            {"300 ms (default)": WORKERS, "60 s": SLOW_CHECKPOINTS},
            260,
            (("60 s, steady load", steady, SLOW_CHECKPOINTS),),
        ),
        LagScenario(
            "wrong-clock",
            "The replica's clock is set while it replicates",
            busy_then_calm,
            {
                "clock left alone": SINGLE,
                "set back by an hour": replace(
                    SINGLE, replica_offset=Offset(((0, 0), (START + 40, -3600)))
                ),
                "set ahead by an hour": replace(
                    SINGLE, replica_offset=Offset(((0, 0), (START + 40, 3600)))
                ),
            },
            90,
        ),
        LagScenario(
            "slow-network",
            "A network slower than the source",
            more_than_the_network,
            {
                "1 MB/s": replace(SINGLE, network_bytes_per_second=1e6),
                "1 MB/s, workers": replace(WORKERS, network_bytes_per_second=1e6),
            },
            140,
        ),
        LagScenario(
            "gap",
            "A large transaction that the others overtake",
            large_among_small,
            {
                "order not kept": replace(WORKERS, preserve_commit_order=False),
                "order kept": WORKERS,
                "order not kept, group of 64": replace(
                    WORKERS, preserve_commit_order=False, checkpoint_group=64
                ),
            },
            140,
        ),
        LagScenario(
            "group-commit-delay",
            "binlog_group_commit_sync_delay on the source",
            group_commits(0.0),
            {"no delay, 4 workers": WORKERS},
            100,
            (
                ("20 ms, 4 workers", group_commits(0.02), WORKERS),
                ("20 ms, no workers", group_commits(0.02), SINGLE),
            ),
        ),
    )
}
