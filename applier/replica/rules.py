"""What differs between servers in time and order: one row a version, one column a rule.

From the sources of 5.6.27, 5.7.42, 8.0.46, 8.4.4, 9.7.2 (sql/rpl_replica.cc, rpl_mta_submode.cc, rpl_rli_pdb.cc under their names of
then) and MariaDB 10.11.18; corrected by what real 5.6.24 and 5.7.29 replicas showed.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    """0 where replica_parallel_workers=0 means the applier without a coordinator."""
    large_event_waits: bool = True
    """An event over replica_pending_jobs_size_max waits for empty queues; before, it stops the applier (error 1864)."""
    workers_retry: bool = True
    """5.6: a worker that meets a deadlock or a lock wait timeout stops, whatever slave_transaction_retries says."""
    coordinator_sets_timestamp: bool = True
    """With workers, an event that is read sets last_source_timestamp when that is 0. In 5.6 only a checkpoint sets it."""
    checkpoint_shows_head: bool = True
    """A checkpoint sets last_source_timestamp to the time of the first group not done, 0 without one. 5.6.24: of the last one done."""
    zero_time_counts: bool = True
    """An event with header timestamp 0 sets last_source_timestamp too."""
    broken_order_stops: bool = False
    """last_committed >= sequence_number stops the applier (1756); otherwise the transaction is taken to be without both."""
    first_gap_counts: bool = True
    """The first transaction after START that does not have sequence_number 1 is a barrier of its own."""
    delays_transactions: bool = True
    """SOURCE_DELAY counts once a transaction from its immediate commit; before, for every event from its header time."""
    previous_gtids_waits: bool = False
    """By the old rule of SOURCE_DELAY the PREVIOUS_GTIDS event is delayed as well."""
    after_gtids_without_workers: bool = False
    """START REPLICA UNTIL SQL_AFTER_GTIDS runs without workers that once (note 1753)."""
    follows_caught_up: bool = False
    """MariaDB: Seconds_Behind_Master asks the applier whether it is idle, does not compare positions, and is NULL without connection."""


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
            zero_time_counts=False,
            broken_order_stops=True,
            first_gap_counts=False,
            delays_transactions=False,
            previous_gtids_waits=True,
            after_gtids_without_workers=True,
        ),
        ClockRules("8.0", 4, LOGICAL_CLOCK, True, 128 * MIB, broken_order_stops=True, after_gtids_without_workers=True),
        ClockRules("8.4", 4, LOGICAL_CLOCK, True, 128 * MIB),
        ClockRules("9.7", 4, LOGICAL_CLOCK, True, 128 * MIB, parallel_types=_LOGICAL_CLOCK_ONLY, fewest_workers=1),
        ClockRules(
            "mariadb", 0, DATABASE, False, 16 * MIB, parallel_types=frozenset(), delays_transactions=False, follows_caught_up=True
        ),
    )
}


def rules_for(version: str) -> ClockRules:
    """The rules of a version named as on the command line or as a server says it. Raises ValueError when it is no version."""
    return RULES[lookup_rules_for(version).name]
