"""Time of the replica: how far the machines' clocks are from true time, and what is asked of a
simulation."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from applier.error_codes import Code
from applier.errors import UsageError
from applier.replica.admission import Admission, Until
from applier.replica.scheduling import LOGICAL_CLOCK, MAX_QUEUED, NONE, RULES, ClockRules
from applier.server_versions import asked_rules
from checkpoints.gtid import GtidSet
from lookup.versions import NEWEST


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a machine's clock is ahead of true time, in seconds: (from this true time on,
    offset), the first one from ever."""

    changes: tuple[tuple[float, float], ...] = ()

    def __bool__(self) -> bool:
        return any(offset for _, offset in self.changes)

    def at(self, moment: float) -> float:
        """Of a clock that was never set: 0."""
        if not self.changes:
            return 0.0
        found = bisect_right(self.changes, moment, key=lambda change: change[0])
        return self.changes[max(found - 1, 0)][1]

    @classmethod
    def of(cls, value: float | Sequence[tuple[float, float]]) -> Offset:
        """A clock that is wrong by so much all the time, or from moments on."""
        return cls(((0.0, float(value)),) if isinstance(value, int | float) else tuple(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockConfiguration:
    """A replica in time. None stands for the server version's default. Seconds, bytes, bytes per
    second.

    Raises UsageError for what that server refuses at START REPLICA.
    """

    server: str = NEWEST
    workers: int | None = None
    """replica_parallel_workers: 0 is an applier without coordinator."""
    parallel_type: str | None = None
    preserve_commit_order: bool | None = None
    checkpoint_period_seconds: float = 0.3
    """replica_checkpoint_period; 0: by time no checkpoints at all."""
    checkpoint_group: int = 512
    pending_jobs_size_max: int | None = None
    domain_workers: int = 0
    """slave_domain_parallel_threads of MariaDB; 0: a domain may have all threads."""
    max_queued_bytes: int = MAX_QUEUED
    """slave_parallel_max_queued of MariaDB: what may be queued for one thread."""
    by_position: bool = False
    """MASTER_USE_GTID=No of MariaDB: all domains are one to its workers."""
    transaction_retries: int | None = None
    delay_seconds: int = 0
    """SOURCE_DELAY."""

    network_seconds: float = 0.0
    """From the source's commit until the first byte is in the relay log."""
    network_bytes_per_second: float | None = None
    """None: as fast as needed."""
    coordinator_seconds: float = 0.0
    """What reading and handing out a transaction takes the coordinator."""
    coordinator_seconds_per_byte: float = 0.0

    start: float | None = None
    """START REPLICA, in true time; None: before the first transaction."""
    stop: float | None = None
    """STOP REPLICA SQL_THREAD."""
    receiver_stop: float | None = None
    """From then on nothing arrives."""
    source_offset: Offset = field(default_factory=Offset)
    replica_offset: Offset = field(default_factory=Offset)
    connected_at: float | None = None
    """When the receiver asked the source for its time; None: at the start."""
    clock_difference: int | None = None
    """clock_diff_with_source where it is known; None: what the receiver measures."""
    monotonic: bool = False
    """Keep last_source_timestamp when a GTID event would set it back (a patch for group
    replication, not in MySQL)."""
    counts_relay_events: bool = False
    """Bug #72376: the PREVIOUS_GTIDS event at the head of a relay log counts with the replica's own
    time."""

    server_id: int | None = None
    """The replica's own: it executes nothing of its own unless `replicate_same_server_id`."""
    replicate_same_server_id: bool = False
    ignore_server_ids: frozenset[int] = frozenset()
    skip_counter: int = 0
    executed: GtidSet | None = None
    until: Until | None = None

    def __post_init__(self) -> None:
        rules = self.rules
        if self.worker_count < rules.fewest_workers:
            raise UsageError(
                f"{rules.name} has no applier without workers",
                code=Code.CONFIGURATION,
                hint=f"use {rules.fewest_workers} worker or more",
            )
        if self.worker_count > rules.workers_most:
            raise UsageError(
                f"{rules.name} takes {rules.workers_most:,} workers at most",
                code=Code.CONFIGURATION,
                hint="use fewer",
            )
        self._check_domains()
        if self.parallel_type is not None and self.parallel_type not in rules.parallel_types:
            known = ", ".join(sorted(rules.parallel_types))
            raise UsageError(
                f"{rules.name} has no replica_parallel_type={self.parallel_type}",
                code=Code.CONFIGURATION,
                hint=f"it has {known}" if known else "remove it",
            )
        if self.preserve_commit_order:
            self._check_commit_order()
        if (
            self.checkpoint_group < 1
            or self.checkpoint_period_seconds < 0
            or self.delay_seconds < 0
            or self.skip_counter < 0
        ):
            raise UsageError(
                "a checkpoint group is 1 or more; period, delay and skip counter are not negative",
                code=Code.CONFIGURATION,
            )

    def _check_commit_order(self) -> None:
        """START REPLICA fails otherwise (check_slave_sql_config_conflict, sql/rpl_replica.cc 5.7 to
        8.4)."""
        if not self.rules.has_commit_order:
            raise UsageError(
                f"{self.rules.name} has no preserve_commit_order",
                code=Code.CONFIGURATION,
                hint="remove it",
            )
        if self.worker_count and self.scheduling != LOGICAL_CLOCK:
            raise UsageError(
                "preserve_commit_order is not supported with parallel_type=DATABASE",
                code=Code.CONFIGURATION,
                hint="use LOGICAL_CLOCK",
            )

    def _check_domains(self) -> None:
        if self.domain_workers < 0 or self.max_queued_bytes < 0:
            raise UsageError(
                "workers of a domain and queued bytes are not negative", code=Code.CONFIGURATION
            )
        asked = self.domain_workers or self.by_position or self.max_queued_bytes != MAX_QUEUED
        if asked and not self.rules.by_group_commit:
            raise UsageError(
                f"{self.rules.name} has no domains and no slave_parallel_max_queued",
                code=Code.CONFIGURATION,
                hint="remove --domain-workers, --max-queued and --by-position",
            )

    @property
    def rules(self) -> ClockRules:
        """What the server version decides. Raises UsageError for one that is not known."""
        return RULES[asked_rules(self.server).name]

    @property
    def worker_count(self) -> int:
        """Workers that run; 0: one thread reads and applies."""
        if self.rules.after_gtids_without_workers and self.until is not None and self.until.after:
            return 0
        if self.scheduling == NONE:
            return 0
        return self.rules.workers if self.workers is None else self.workers

    @property
    def scheduling(self) -> str:
        """slave_parallel_type, or slave_parallel_mode of MariaDB, as it holds."""
        return self.parallel_type or self.rules.parallel_type

    @property
    def commit_order(self) -> bool:
        """Whether workers commit in the source's order. 8.0 and later keep it for LOGICAL_CLOCK and
        more than one worker only."""
        wanted = (
            self.rules.preserve_commit_order
            if self.preserve_commit_order is None
            else self.preserve_commit_order
        )
        return wanted and self.scheduling == LOGICAL_CLOCK

    @property
    def pending_bytes_max(self) -> int:
        """slave_pending_jobs_size_max, as it holds, in bytes."""
        return (
            self.rules.pending_jobs_size_max
            if self.pending_jobs_size_max is None
            else self.pending_jobs_size_max
        )

    @property
    def retries(self) -> int:
        """slave_transaction_retries, as it holds."""
        return (
            self.rules.transaction_retries
            if self.transaction_retries is None
            else self.transaction_retries
        )

    @property
    def admission(self) -> Admission | None:
        """Who is let through; None when everybody is."""
        if not (
            self.skip_counter
            or self.executed
            or self.until
            or self.ignore_server_ids
            or self.server_id is not None
        ):
            return None
        own = None if self.replicate_same_server_id else self.server_id
        return Admission(own, self.ignore_server_ids, self.skip_counter, self.executed, self.until)
