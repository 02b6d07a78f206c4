"""What differs between servers in time and order: one row a version, one column a rule.

From the sources of 5.6.27, 5.7.42, 8.0.46, 8.4.4, 9.7.2 (sql/rpl_replica.cc, rpl_mta_submode.cc,
rpl_rli_pdb.cc under their names of then) and MariaDB 10.11.18; corrected by what real 5.6.24 and
5.7.29 replicas showed.
"""

from __future__ import annotations

from dataclasses import dataclass

from applier.errors import ReplicationError
from lookup.versions import rules_for as lookup_rules_for

DATABASE, LOGICAL_CLOCK = "DATABASE", "LOGICAL_CLOCK"
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ClockRules:
    """The rules of one server version. The first six are defaults of system variables."""

    name: str
    workers: int
    parallel_type: str
    preserve_commit_order: bool
    pending_jobs_size_max: int
    transaction_retries: int = 10
    parallel_types: frozenset[str] = frozenset({DATABASE, LOGICAL_CLOCK})
    fewest_workers: int = 0
    """0 where replica_parallel_workers=0 means the applier without a coordinator. 8.4 still has it,
    deprecated."""
    has_commit_order: bool = True
    """replica_preserve_commit_order came with 5.7.5; MariaDB has slave_parallel_mode instead."""
    commit_order_needs_binlog: bool = False
    """5.7 refuses to start with it but without log_bin and log_slave_updates; 8.0.19 needs
    neither."""
    large_event_waits: bool = True
    """An event over replica_pending_jobs_size_max waits for empty queues; before, it stops the
    applier (error 1864)."""
    workers_retry: bool = True
    """5.6: a worker that meets a deadlock or a lock wait timeout stops, whatever
    slave_transaction_retries says."""
    coordinator_sets_timestamp: bool = True
    """With workers, an event that is read sets last_source_timestamp when that is 0. In 5.6 only a
    checkpoint sets it."""
    checkpoint_shows_head: bool = True
    """A checkpoint sets last_source_timestamp to the time of the first group not done, 0 without
    one. 5.6.24: of the last one done."""
    zero_time_counts: bool = True
    """An event with header timestamp 0 sets last_source_timestamp too."""
    broken_order_stops: bool = False
    """last_committed >= sequence_number stops the applier (1756); otherwise the transaction is
    taken to be without both."""
    first_gap_counts: bool = True
    """The first transaction after START that does not have sequence_number 1 is a barrier of its
    own."""
    delays_transactions: bool = True
    """SOURCE_DELAY counts once a transaction from its immediate commit; before, for every event
    from its header time."""
    previous_gtids_waits: bool = False
    """By the old rule of SOURCE_DELAY the PREVIOUS_GTIDS event is delayed as well."""
    after_gtids_without_workers: bool = False
    """START REPLICA UNTIL SQL_AFTER_GTIDS runs without workers that once (note 1753)."""
    follows_caught_up: bool = False
    """MariaDB: Seconds_Behind_Master asks the applier whether it is idle, does not compare
    positions, and is NULL without connection."""


_DATABASE_ONLY, _LOGICAL_CLOCK_ONLY = frozenset({DATABASE}), frozenset({LOGICAL_CLOCK})

RULES: dict[str, ClockRules] = {
    rules.name: rules
    for rules in (
        ClockRules(
            "5.6",
            0,
            DATABASE,
            False,
            16 * MIB,
            parallel_types=_DATABASE_ONLY,
            has_commit_order=False,
            large_event_waits=False,
            workers_retry=False,
            coordinator_sets_timestamp=False,
            checkpoint_shows_head=False,
            zero_time_counts=False,
            delays_transactions=False,
            previous_gtids_waits=True,
            after_gtids_without_workers=True,
        ),
        ClockRules(
            "5.7",
            0,
            DATABASE,
            False,
            16 * MIB,
            commit_order_needs_binlog=True,
            zero_time_counts=False,
            broken_order_stops=True,
            first_gap_counts=False,
            delays_transactions=False,
            previous_gtids_waits=True,
            after_gtids_without_workers=True,
        ),
        ClockRules(
            "8.0",
            4,
            LOGICAL_CLOCK,
            True,
            128 * MIB,
            broken_order_stops=True,
            after_gtids_without_workers=True,
        ),
        ClockRules("8.4", 4, LOGICAL_CLOCK, True, 128 * MIB),
        ClockRules(
            "9.7",
            4,
            LOGICAL_CLOCK,
            True,
            128 * MIB,
            parallel_types=_LOGICAL_CLOCK_ONLY,
            fewest_workers=1,
        ),
        ClockRules(
            "mariadb",
            0,
            DATABASE,
            False,
            16 * MIB,
            parallel_types=frozenset(),
            has_commit_order=False,
            delays_transactions=False,
            follows_caught_up=True,
        ),
    )
}


def rules_for(version: str) -> ClockRules:
    """The rules of a version named as on the command line or as a server says it. Raises ValueError
    when it is no version."""
    return RULES[lookup_rules_for(version).name]


def is_out_of_order(last_committed: int, sequence_number: int, previous: int) -> bool:
    """Whether the numbers of a transaction do not follow those of the one before it.

    (`Mts_submode_logical_clock::schedule_next_event`, sql/rpl_mta_submode.cc 5.7 to 9.7.)
    """
    return sequence_number != 0 and (
        last_committed >= sequence_number or sequence_number <= previous
    )


def waits_for_all(
    last_committed: int, sequence_number: int, previous: int, gap_counts: bool
) -> bool:
    """Whether a transaction waits for all before it; if not, for those up to `last_committed`.

    `previous`: sequence_number of the one before; 0 at the start, in a new log and behind a barrier
    without numbers.
    """
    gap = gap_counts and sequence_number > previous + 1
    return sequence_number == 0 or last_committed == 0 or gap or previous == 0


class LogicalClockOrder:
    """LOGICAL_CLOCK: takes the transactions of a log one by one, in the log's order, and says what
    each waits for.

    The one reading of last_committed and sequence_number, for the emulated workers, the clock and
    the forecast (`Mts_submode_logical_clock::schedule_next_event`, sql/rpl_mta_submode.cc 5.7 to
    9.7).

    `rules` None: numbers that are out of order make a barrier, as where the server does not stop
    for them.
    """

    __slots__ = ("_first_gap_counts", "_is_first", "_stops", "previous")

    def __init__(self, rules: ClockRules | None = None) -> None:
        self._stops = rules is not None and rules.broken_order_stops
        self._first_gap_counts = rules is None or rules.first_gap_counts
        self._is_first = True
        self.previous = 0
        """sequence_number of the transaction before; 0 at the start, in a new log and behind a
        barrier without numbers."""

    def new_log(self) -> None:
        """The source began another log: its sequence numbers begin at 1 again."""
        self.previous = 0

    def is_barrier(self, last_committed: int, sequence_number: int) -> bool:
        """Whether the next transaction waits for all before it. If not, it waits for those up to
        `last_committed`.

        Raises ReplicationError 1756 where the server stops because the numbers are out of order;
        the place is the caller's to add.
        """
        first, previous = self._is_first, self.previous
        if not first and is_out_of_order(last_committed, sequence_number, previous):
            if self._stops:
                raise ReplicationError(
                    1756,
                    f"the coordinator cannot run it in parallel: last_committed {last_committed},"
                    f" sequence_number {sequence_number} behind {previous}",
                )
            last_committed = sequence_number = 0
        self.previous, self._is_first = sequence_number, False
        return waits_for_all(
            last_committed, sequence_number, previous, self._first_gap_counts or not first
        )
