"""The forecast's clock on a machine: N workers that share its cores, its disk and the sync of its
log.

What a transaction waits for before it may begin is the one policy of scheduling
(`applier.replica.scheduling`, or the databases that it changes); `clock_steps` is how long it then
takes:

- its processor part, at the speed that the cores leave it. While all workers are busy, the
  coordinator of LOGICAL_CLOCK asks again and again for a free one (`get_free_worker`,
  sql/rpl_mta_submode.cc 5.7 to 9.7), so it holds a core of its own, as far as there are two. On a
  real 9.7.4 with two cores, four workers were 1.0 to 1.2 times one for that reason;
- its waiting part, reads of pages: workers wait side by side, but the disk gives so many a second,
  and all share what the server's other threads take to make room in the buffer pool, and stop
  while those threads write pages that they need;
- purge, which wants a core for the entries of indexes that it marked or moved. Without syncs that
  is part of the price of rows, and a single worker leaves purge its core during each sync;
- a scan of a table without a key: one worker at a time is in the table, and where commits keep the
  log's order, others are rolled back and sleep (`scan_locks`);
- its commit, which syncs the redo log and then the binary log. Those that are ready while a log is
  synced share its next sync, and one log is synced while others wait for the other one (binary log
  group commit: `process_flush_stage_queue` and `sync_binlog_file`, sql/binlog.cc 5.7 to 9.7;
  MariaDB's `write_transaction_to_binlog_events`). Syncs vary as an exponential distribution does:
  plain files beside each other vary less, 0.2 to 0.6 of their mean, but then each also takes a
  quarter longer while the other is synced, which comes to the same for two workers and for four.

Workers of MariaDB cost each other more. Beside others the same rows take two to three times the
processor (they wait for each other's latches and for memory that the reading thread took), and a
thread that waited, for its turn to commit or for a sync, must be woken: measured on 10.11.18 with
two cores, where none of 1, 2, 4 and 8 workers was faster than one without syncs.

Those of 5.7 cost more for each transaction and event that they get (`worker_rules`). Where its
coordinator waits for those of a group commit it sleeps (`wait_for_last_committed_trx`), and must be
woken, as must the worker then.

A transaction takes its turn in the log's order; the cores' work is a sum, not a queue, so that one
pass over the log is the whole simulation.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection
from dataclasses import dataclass
from math import inf

from applier.replica.scheduling import (
    DATABASE,
    LOGICAL_CLOCK,
    MAX_QUEUED,
    MINIMAL,
    MODES,
    NO_BATCH,
    NO_MARKS,
    NONE,
    GroupMarks,
)
from applier.timing import clock_steps as steps
from applier.timing.clock_steps import Clock
from applier.timing.scan_locks import contentions
from applier.timing.worker_rules import ALONE, AT_NO_COST, WorkerRules


def spins(parallel_type: str, workers: int) -> bool:
    """Whether the coordinator asks for a free worker without pause."""
    return parallel_type == LOGICAL_CLOCK and workers > 1


@dataclass(frozen=True, slots=True)
class Machine:
    """What workers share. Seconds.

    `spins`: the coordinator holds a core while no worker is free. A commit is over `sync_waiting`
    after its processor part `sync_processor`; both 0 where nothing is synced. `synced_logs`: the
    redo log, and the binary log at each or some of the commits. Of MariaDB's workers: `beside` is
    what a second of a transaction costs more while others are applied, `hand_over` passes until a
    thread that waited is awake. `worker_rules` are those of its version.
    """

    cores: float = inf
    spins: bool = False
    sync_processor: float = 0.0
    sync_waiting: float = 0.0
    coordinator_transaction: float = 0.0
    coordinator_event: float = 0.0
    reads_per_second: float = inf
    synced_logs: float = 1.0
    beside: float = 0.0
    hand_over: float = 0.0
    worker_rules: WorkerRules = ALONE

    @property
    def worker_cores(self) -> float:
        """Cores that are left for the workers when all are at work."""
        return max(self.cores - 1, self.cores / 2) if self.spins else self.cores

    @property
    def sync(self) -> float:
        """Seconds of a commit's sync without contention."""
        return self.sync_processor + self.sync_waiting


@dataclass(slots=True)
class Turn:
    """What a transaction asks for: seconds of a processor, seconds of waiting for `reads` pages,
    and what it depends on."""

    processor: float
    waiting: float = 0.0
    reads: float = 0.0
    events: int = 0
    last_committed: int = 0
    sequence_number: int = 0
    databases: Collection[str] = ()
    scanned: int = -1
    """The number of the table without a key that it scans, and the seconds of that."""
    scan: float = 0.0
    marks: GroupMarks = NO_MARKS
    log_bytes: int = 0
    room: float = 0.0
    """Seconds of a processor that other threads of the server need for those reads."""
    stopped: float = 0.0
    """Seconds of the waiting in which all workers that read pages stand still."""
    marked: float = 0.0
    """Seconds of the processor part for entries of indexes that purge takes out later."""


DEPENDENCIES = {
    LOGICAL_CLOCK: steps.BY_LOGICAL_CLOCK,
    DATABASE: steps.BY_DATABASE,
    **dict.fromkeys(MODES, steps.BY_GROUP_COMMIT),
    NONE: steps.SERIAL,
}
"""replica_parallel_type, or MariaDB's slave_parallel_mode."""


class WorkClock:
    """N workers on one machine. `numbers` is what `clock_steps.take` goes on with."""

    def __init__(
        self,
        workers: int = 1,
        *,
        preserve_order: bool = True,
        parallel_type: str = "LOGICAL_CLOCK",
        machine: Machine | None = None,
        in_turn: bool = False,
    ) -> None:
        """`in_turn`: workers that scan the same table reach it in the log's order."""
        machine = machine or Machine()
        workers = 1 if parallel_type == NONE else workers
        several = workers > 1
        mode = DEPENDENCIES[parallel_type if several else NONE]
        by_group = mode == steps.BY_GROUP_COMMIT
        cores = min(machine.worker_cores, float(workers))
        wakes = machine.spins and machine.worker_rules.wakes
        by_type = machine.worker_rules.handed if several else {}
        handed = by_type.get(parallel_type, AT_NO_COST)
        redo_sync = machine.sync / max(machine.synced_logs, 1.0)
        numbers = [0.0] * steps.CLOCK_NUMBERS
        for place, value in {
            steps.MODE: mode,
            steps.QUEUES: mode != steps.BY_LOGICAL_CLOCK,
            steps.SEVERAL: several,
            steps.KEEPS_ORDER: preserve_order or not several,
            steps.CORES: cores,
            steps.SHARES_CORES: cores < workers,
            steps.READS_PER_SECOND: machine.reads_per_second,
            steps.REDO_SYNC: redo_sync,
            steps.LOG_SYNC: machine.sync - redo_sync,
            steps.SYNC_PROCESSOR: machine.sync_processor,
            steps.COORDINATOR_TRANSACTION: machine.coordinator_transaction,
            steps.COORDINATOR_EVENT: machine.coordinator_event,
            steps.REDO_START: -inf,
            steps.REDO_END: -inf,
            steps.LOG_START: -inf,
            steps.LOG_END: -inf,
            steps.IS_FIRST: True,
            steps.FIRST_MARK: -1,
            steps.GROUP_MODE: MODES.index(parallel_type) if parallel_type in MODES else 0,
            steps.ONE_DOMAIN: parallel_type == MINIMAL,
            steps.MOST_QUEUED: MAX_QUEUED,
            steps.BESIDE: machine.beside if by_group else 0.0,
            steps.WOKEN: machine.hand_over if by_group else 0.0,
            steps.HANDED: machine.hand_over if wakes else 0.0,
            steps.IN_WORKER: handed.rows_factor,
            steps.TAKEN_TRANSACTION: handed.taken(
                machine.coordinator_transaction, handed.transactions, workers
            ),
            steps.TAKEN_EVENT: handed.taken(machine.coordinator_event, handed.events, workers),
            steps.PURGE_WORK: machine.worker_rules.purge_work if machine.sync else 0.0,
            steps.LEFT_WAITING: max(1 - cores / workers, 0.0),
        }.items():
            numbers[place] = float(value)
        self.needs_databases = mode == steps.BY_DATABASE
        self._overtakes = (
            several and preserve_order and mode == steps.BY_LOGICAL_CLOCK and not in_turn
        )
        marks = [0.0] * (steps.WINDOW if mode == steps.BY_LOGICAL_CLOCK else 1)
        rows: tuple[list[float], ...]
        rows = numbers, [0.0] * workers, marks, [], [], [], [], [], [-1.0] * workers
        self.numbers = Clock(*(array("d", row) for row in rows))
        self._databases: dict[str, int] = {}
        self._domains: dict[int, int] = {}
        self.know_domains(1)

    @property
    def syncs(self) -> int:
        """How often a log was synced."""
        return int(self.numbers.numbers[steps.SYNCS])

    def take(self, arrival: float, turn: Turn) -> float:
        """When a transaction is committed that came at `arrival`."""
        databases = [
            self._databases.setdefault(name, len(self._databases)) for name in turn.databases
        ]
        self.know_databases(len(self._databases))
        self.know_scanned(turn.scanned + 1)
        marks = turn.marks
        domain = self._domains.setdefault(marks.domain, len(self._domains))
        self.know_domains(len(self._domains))
        numbers = (
            arrival, turn.processor, turn.waiting, turn.reads, turn.events, turn.last_committed,
            turn.sequence_number, 0, len(databases), turn.scanned, turn.scan, domain,
            marks.commit_id, marks.flags, turn.log_bytes, turn.room, turn.stopped,
            turn.marked,
        )  # fmt: skip
        return steps.take(self.numbers, numbers, databases)

    @property
    def retries(self) -> float:
        """How often transactions are rolled back and tried again, as expected."""
        return self.numbers.numbers[steps.RETRIES]

    def know_scanned(self, count: int) -> None:
        """There are so many tables without a key that are scanned."""
        places = count * len(self.numbers.workers)
        self.numbers.scanned.extend([0.0] * (places - len(self.numbers.scanned)))
        if count and self._overtakes and not len(self.numbers.contention):
            for row in contentions(len(self.numbers.workers)):
                for one in row:
                    self.numbers.contention.extend((one.seconds, one.retries))

    def know_databases(self, count: int) -> None:
        """There are so many databases."""
        self.numbers.until.extend([0.0] * (count - len(self.numbers.until)))

    def know_domains(self, count: int) -> None:
        """There are so many domains of MariaDB."""
        clock = self.numbers
        for _ in range(len(clock.domains) // steps.DOMAIN_NUMBERS, count):
            row = [0.0] * steps.DOMAIN_NUMBERS
            row[steps.BATCH], row[steps.PLACE], row[steps.COMMITTING] = NO_BATCH, -1, -inf
            clock.domains.extend(row)
            clock.places.extend([-1.0] * len(clock.workers))
