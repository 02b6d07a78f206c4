"""What differs between servers in time and order: one row a version, one column a rule.

From the sources of 5.6.27, 5.7.42, 8.0.46, 8.4.4, 9.7.2 (sql/rpl_replica.cc, rpl_mta_submode.cc,
rpl_rli_pdb.cc under their names of then) and MariaDB 10.11.18; corrected by what real 5.6.24 and
5.7.29 replicas showed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from applier.binlog.boundaries import ends_group, starts_group
from applier.binlog.events import Query
from applier.binlog.gtid_events import MariadbGtidEvent
from applier.binlog.header import Event, EventType
from applier.errors import ReplicationError
from lookup.versions import rules_for as lookup_rules_for

DATABASE, LOGICAL_CLOCK = "DATABASE", "LOGICAL_CLOCK"
NONE, MINIMAL, CONSERVATIVE, OPTIMISTIC, AGGRESSIVE = MODES = (
    "none", "minimal", "conservative", "optimistic", "aggressive",
)  # fmt: skip
"""slave_parallel_mode of MariaDB, from the one that ties most to the one that ties least."""
MIB = 1 << 20
MAX_QUEUED: Final = 131_072
"""Default of slave_parallel_max_queued, in bytes."""


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
    from its header time, PREVIOUS_GTIDS among them."""
    after_gtids_without_workers: bool = False
    """START REPLICA UNTIL SQL_AFTER_GTIDS runs without workers that once (note 1753)."""
    workers_most: int = 1024
    by_group_commit: bool = False
    """MariaDB: workers go by the group commits and flags of its GTID events, domain by domain;
    there are no checkpoints, and a domain always commits in the log's order."""
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
            OPTIMISTIC,
            False,
            16 * MIB,
            parallel_types=frozenset(MODES),
            has_commit_order=False,
            delays_transactions=False,
            workers_most=16383,
            by_group_commit=True,
            follows_caught_up=True,
        ),
    )
}
MOST_WORKERS = max(rules.workers_most for rules in RULES.values())
"""MariaDB's largest slave_parallel_threads; MySQL's replica_parallel_workers ends at 1024."""


def rules_for(version: str) -> ClockRules:
    """The rules of a version named as on the command line or as a server says it. Raises ValueError
    when it is no version."""
    return RULES[lookup_rules_for(version).name]


def touches_databases(event: Event) -> bool:
    """Whether an event is a statement that DATABASE scheduling asks for its databases
    (`Log_event::contains_partition_info`, sql/log_event.h)."""
    return event.type == EventType.QUERY and not (starts_group(event) or ends_group(event))


def databases_of(query: Query) -> tuple[str, ...]:
    """The databases that a statement touches; none where they were too many to list: its group
    runs alone (`Query_log_event::get_mts_dbs`)."""
    names = query.variables.updated_databases
    if names is None:
        names = (query.database,)
    return tuple(name.decode("utf-8", "surrogateescape") for name in names)


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


class GroupMarks(NamedTuple):
    """What MariaDB's GTID event says of a group for those who schedule it. `commit_id` is 0 for a
    group that was alone in its group commit."""

    domain: int = 0
    commit_id: int = 0
    flags: int = MariadbGtidEvent.TRANSACTIONAL | MariadbGtidEvent.ALLOW_PARALLEL

    @property
    def is_scheduled_apart(self) -> bool:
        """An XA transaction or half an ALTER TABLE: the server has rules of its own for them."""
        return bool(self.flags & _APART)

    @property
    def is_standalone(self) -> bool:
        """No COMMIT or XID: it begins to commit where it ends."""
        return bool(self.flags & MariadbGtidEvent.STANDALONE)


def marks_of(event: MariadbGtidEvent) -> GroupMarks:
    """The marks in a GTID event."""
    split = HALF_ALTER if event.is_half_alter else 0
    return GroupMarks(event.gtid.domain, event.commit_id or 0, event.flags | split)


HALF_ALTER: Final = 1 << 8
"""Above the flags of the event."""
_APART: Final = HALF_ALTER | MariadbGtidEvent.PREPARED_XA | MariadbGtidEvent.COMPLETED_XA
_TRANSACTIONAL: Final = MariadbGtidEvent.TRANSACTIONAL
_ALLOW_PARALLEL: Final = MariadbGtidEvent.ALLOW_PARALLEL
_WAITED: Final = MariadbGtidEvent.WAITED
_DDL: Final = MariadbGtidEvent.DDL
_MINIMAL, _OPTIMISTIC, _AGGRESSIVE = map(MODES.index, (MINIMAL, OPTIMISTIC, AGGRESSIVE))
NEW_BATCH, WAITS_FOR_COMMITS, SEVERAL_COMMITS, ALONE, NO_BATCH = 1, 2, 4, 8, -1
"""What `batch_of` says. The first two are of the group itself; the others stay with the batch."""


def batch_of(mode: int, flags: int, same_commit: bool, batch: int) -> int:
    """Whether MariaDB begins a new batch of groups with the next group of a domain.

    `mode` is a place in MODES, `flags` those of the group's GTID event, `same_commit` whether it
    was in one group commit with the group before it, `batch` what this function said of that one
    (NO_BATCH for the first). NEW_BATCH: the group waits until all before it begin to commit.
    WAITS_FOR_COMMITS: it waits until they are committed, those behind it do not. Otherwise it goes
    beside those of its batch. (rpl_parallel::do_event, sql/rpl_parallel.cc of MariaDB 10.11.)
    """
    alone = ALONE if flags & _DDL else 0
    if batch < 0:
        return NEW_BATCH | alone
    several = mode <= _MINIMAL or not same_commit or alone != 0 or batch & SEVERAL_COMMITS != 0
    if not several:
        return batch & ALONE
    if mode < _OPTIMISTIC or alone != 0 or batch & ALONE != 0:
        return NEW_BATCH | alone
    careful = mode < _AGGRESSIVE and (flags & _ALLOW_PARALLEL == 0 or flags & _WAITED != 0)
    if flags & _TRANSACTIONAL == 0 or careful:
        return SEVERAL_COMMITS | WAITS_FOR_COMMITS
    return SEVERAL_COMMITS


NO_MARKS: Final = GroupMarks()
"""A transaction that may go beside any other, alone in its group commit."""


class GroupCommitOrder:
    """The same for one domain, group by group in the log's order."""

    __slots__ = ("_batch", "_commit_id", "_mode")

    def __init__(self, mode: str) -> None:
        self._mode = MODES.index(mode)
        self._batch, self._commit_id = NO_BATCH, 0

    def take(self, marks: GroupMarks) -> int:
        """What the next group waits for, as `batch_of` says it."""
        same = marks.commit_id != 0 and marks.commit_id == self._commit_id
        self._batch = batch_of(self._mode, marks.flags, same, self._batch)
        self._commit_id = marks.commit_id
        return self._batch
