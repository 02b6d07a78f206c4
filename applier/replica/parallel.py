"""The applier with workers: a coordinator that hands out groups, workers that commit them in an
order of their own, and the low-water mark.

Time does not pass here: which of the workers commits next, and when the coordinator's checkpoint
period has elapsed, is asked of an `Interleaving`, so that every order that a server may show can be
had, and the same one again. What may run at the same time is the server's rule (DATABASE:
Log_event::get_slave_worker; LOGICAL_CLOCK: Mts_submode_logical_clock::schedule_next_event). A group
is executed as a whole at the moment of its commit.

Positions (Slave_worker::commit_positions, mta_checkpoint_routine): each worker records its last
group and, in a bitmap that counts from the last checkpoint it has heard of, which groups it
executed; the applier's own record is the low-water mark and moves with checkpoints only. A worker
that fails kills the coordinator, which makes none on its way out (slave_worker_ends_group,
slave_stop_workers); after an error of its own it makes one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from applier.binlog.boundaries import starts_xa
from applier.binlog.events import parse
from applier.binlog.gtid_events import Gtid
from applier.binlog.header import GTID_TYPES, ROWS_TYPES, EventType
from applier.binlog.payload import payload_events
from applier.binlog.table_map import read_table_map
from applier.binlog.transactions import MEMBER_TYPES
from applier.errors import BinlagError, ReplicationError
from applier.replica.applier import Applier
from applier.replica.execute import GroupEnd
from applier.replica.interleaving import InOrder, Interleaving
from applier.replica.relay.relay_event import RelayEvent
from applier.replica.relay.relay_group import RelayGroup
from applier.replica.scheduling import DATABASE, LogicalClockOrder, databases_of, touches_databases
from checkpoints import bitmap
from checkpoints.info import RelayLogInfo, WorkerInfo
from checkpoints.position import Position
from checkpoints.repository import Repository
from checkpoints.sync_rules import Occasion


@dataclass(eq=False)
class Job:
    """One group on its way. `number` counts from the last checkpoint that the coordinator made
    before it was handed out."""

    events: list[RelayEvent]
    end: Position
    source_end: Position
    databases: frozenset[str]
    isolated: bool
    """Nothing else may run beside it."""
    last_committed: int
    sequence_number: int
    is_barrier: bool = False
    """LOGICAL_CLOCK: all groups before it have to be done first."""
    number: int = 0
    worker: int = -1
    checkpoint: RelayLogInfo | None = None
    """The low-water mark that the worker gets with this group; None: it has it already."""
    shifted: int = 0
    done: bool = False


@dataclass
class Worker:
    """`info` is what it would write; `repository` keeps it."""

    repository: Repository[WorkerInfo]
    info: WorkerInfo
    knows_checkpoint: bool = False
    shifted: int = 0
    """Groups that checkpoints took off the front since the worker got a mark."""


@dataclass
class ParallelApplier(Applier):
    """`workers` are the repositories of all workers that run or ran."""

    workers: Sequence[Repository[WorkerInfo]] = ()
    interleaving: Interleaving | None = None
    queue: deque[Job] = field(default_factory=deque)
    """The groups that are not behind the low-water mark yet, oldest first (GAQ)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._order: Interleaving = self.interleaving or InOrder()
        self._crew: list[Worker] = []
        self._waiting: deque[RelayEvent | Job] = deque()
        self._partial = RelayGroup()
        self._next_number = 0
        self._dependencies = LogicalClockOrder(self.configuration.scheduling)
        self._job: Job | None = None
        self._exhausted = False
        self._started = False

    @property
    def in_group(self) -> bool:
        """Whether a group has begun and not ended, in a worker or before one has it."""
        return super().in_group or bool(self._partial.events)

    def start(self) -> None:
        """Begins where `info` stands; nothing is queued."""
        super().start()
        self.queue.clear()
        self._waiting.clear()
        self._partial.drop()
        self._next_number = 0
        self._dependencies = LogicalClockOrder(self.configuration.scheduling)
        self._job = None
        self._started = False

    def stop(self) -> None:
        """STOP REPLICA: workers finish what lies before a group that is done, so that no gap is
        left; the rest is dropped."""
        last = max((at for at, job in enumerate(self.queue) if job.done), default=-1)
        while (
            undone := next(
                (job for at, job in enumerate(self.queue) if at <= last and not job.done), None
            )
        ) is not None:
            self._execute(undone)
        self._checkpoint()
        super().stop()
        self.queue.clear()
        self._waiting.clear()
        self._partial.drop()
        self._started = False
        self.reader.seek(self.info.relay_position)

    def step(self) -> bool:
        """One group, or one event that frames them."""
        if not self._started:
            self._start_workers()
        if self.recovery_groups:
            return super().step()
        try:
            return self._step()
        except Exception as error:
            if not isinstance(error, OSError):
                if self._job is None:
                    self._checkpoint()
                self.error = error  # type: ignore[assignment]
            raise

    def _step(self) -> bool:
        while True:
            self._hand_out()
            runnable = self._runnable()
            if runnable:
                self._execute(runnable[self._order.next(len(runnable)) if len(runnable) > 1 else 0])
                if (
                    self._order.checkpoint()
                    or len(self.queue) >= self.configuration.checkpoint_group
                ):
                    self._checkpoint()
                return True
            moved = self._checkpoint()
            head = self._waiting[0] if self._waiting else None
            if isinstance(head, RelayEvent):
                self._waiting.popleft()
                self._take(head)
                self._dependencies.new_log()
                for worker in self._crew:
                    worker.knows_checkpoint = False
            elif head is None and not moved and self._exhausted:
                return False

    # coordinator

    def _start_workers(self) -> None:
        """START REPLICA: without gaps the workers begin with clean records
        (mts_finalize_recovery)."""
        self._started = True
        if not self.recovery_groups:
            self._clear_workers()

    def gaps_filled(self) -> None:
        """START REPLICA UNTIL SQL_AFTER_MTS_GAPS is through: the workers' records are not needed
        any more."""
        self._clear_workers()

    def _clear_workers(self) -> None:
        count = self.configuration.workers or 0
        for number, repository in enumerate(self.workers, start=1):
            if repository.read() is not None and number > count:
                repository.remove()
        self._crew = []
        for number in range(1, count + 1):
            size = bitmap.empty(self.configuration.checkpoint_group)
            info = WorkerInfo(
                id=number, checkpoint_group_bitmap=size, channel_name=self.configuration.channel
            )
            worker = Worker(self.workers[number - 1], info)
            worker.repository.read()
            worker.repository.flush(info, Occasion.CHANGE)
            self._crew.append(worker)
        self.info = replace(self.info, number_of_workers=count)
        self.repository.flush(self.info, Occasion.CHANGE)
        self._next_number = 0

    def _read(self) -> RelayEvent | Job | None:
        """The next group, or the next event that stands between groups. None: neither is there as a
        whole."""
        while (relay := self._next()) is not None:
            event = relay.event
            if event.type not in MEMBER_TYPES:
                if (
                    event.type == EventType.FORMAT_DESCRIPTION
                    and self._partial.events
                    and not relay.own
                    and event.log_pos
                ):
                    self._roll_back_partial(relay)
                if (
                    event.type != EventType.PREVIOUS_GTIDS
                    and not self._partial.events
                    and not self._is_passed_by(relay)
                ):
                    return relay
                continue
            if (events := self._partial.add(relay)) is not None:
                return self._job_of(events)
        return None

    def _roll_back_partial(self, relay: RelayEvent) -> None:
        """The source sends a group of which a part is here from its beginning: the worker that has
        the part is given a ROLLBACK (coord_handle_partial_binlog_transaction), which an XA
        transaction that is not at its end refuses."""
        if any(starts_xa(member.event) for member in self._partial.events):
            raise ReplicationError(
                1399,
                "Error 'XAER_RMFAIL: The command cannot be executed when global transaction "
                "is in the ACTIVE state' on query. Query: 'ROLLBACK'",
                file=relay.event.file,
                position=relay.event.position,
            )
        self._partial.drop()

    def _is_passed_by(self, relay: RelayEvent) -> bool:
        """Whether it does not make the coordinator wait for workers: its own, or the copy of the
        source's format description at the head of a relay log that was begun for its size
        (Log_event::get_mts_execution_mode: EVENT_EXEC_ASYNC)."""
        if relay.own or relay.event.server_id == self.configuration.server_id:
            return True
        return (
            bool(self.queue)
            and relay.event.type == EventType.FORMAT_DESCRIPTION
            and relay.event.log_pos == 0
        )

    def _job_of(self, events: list[RelayEvent]) -> Job:
        last, first = events[-1], events[0]
        databases, isolated = (
            _databases(events)
            if self.configuration.parallel_type == DATABASE
            else (frozenset[str](), False)
        )
        last_committed = sequence_number = 0
        if first.event.type in GTID_TYPES:
            gtid = parse(first.event, first.format)
            if isinstance(gtid, Gtid):
                last_committed, sequence_number = gtid.last_committed, gtid.sequence_number
        source_end = Position("", last.event.log_pos)
        return Job(
            events=events,
            end=last.end,
            source_end=source_end,
            databases=databases,
            isolated=isolated,
            last_committed=last_committed,
            sequence_number=sequence_number,
        )

    def _hand_out(self) -> None:
        """Reads ahead and gives groups to workers, until a group or an event has to wait."""
        while len(self.queue) < self.configuration.checkpoint_group:
            if not self._order.reads_ahead and not all(job.done for job in self.queue):
                return
            if not self._waiting:
                found = self._read_or_finish()
                self._exhausted = found is None
                if found is None:
                    return
                self._waiting.append(found)
                if isinstance(found, Job) and self.configuration.parallel_type != DATABASE:
                    found.is_barrier = self._is_barrier(found)
            head = self._waiting[0]
            if isinstance(head, RelayEvent) or not self._may_be_handed_out(head):
                return
            self._waiting.popleft()
            self._assign(head)

    def _read_or_finish(self) -> RelayEvent | Job | None:
        """The next group or event. Where the relay log cannot be read on, the workers first execute
        what they have begun, or all, or nothing: 5.6 kills them when a part of a group was handed
        out (MTS_KILLED_GROUP)."""
        try:
            return self._read()
        except BinlagError:
            undone = [job for job in self.queue if not job.done]
            if self.configuration.rules.workers_finish_queues:
                begun = [] if self._partial.events else undone
            else:
                begun = self._heads()
            for job in undone[: undone.index(begun[-1]) + 1 if begun else 0]:
                self._execute(job)
            raise

    def _is_barrier(self, job: Job) -> bool:
        try:
            return self._dependencies.is_barrier(job.last_committed, job.sequence_number)
        except ReplicationError as error:
            event = job.events[0].event
            error.locate(file=event.file, position=event.position)
            raise

    def _may_be_handed_out(self, job: Job) -> bool:
        undone = [other for other in self.queue if not other.done]
        if not undone:
            return True
        if any(other.isolated for other in undone) or job.isolated:
            return False
        if self.configuration.parallel_type == DATABASE:
            owners = {other.worker for other in undone if other.databases & job.databases}
            return len(owners) <= 1
        if job.is_barrier or len(undone) >= len(self._crew):
            return False
        return all(other.sequence_number > job.last_committed for other in undone)

    def _assign(self, job: Job) -> None:
        job.source_end = Position(self.info.source_log_name, job.source_end.offset)
        job.worker = self._choose_worker(job)
        worker = self._crew[job.worker]
        job.number = self._next_number
        self._next_number += 1
        if not worker.knows_checkpoint:
            job.checkpoint, job.shifted = self.info, worker.shifted
            worker.knows_checkpoint, worker.shifted = True, 0
        self.queue.append(job)

    def _choose_worker(self, job: Job) -> int:
        """DATABASE: who has the database, or else the one with the fewest groups, the last of
        equals. LOGICAL_CLOCK: the first free one."""
        undone = [other for other in self.queue if not other.done]
        if self.configuration.parallel_type != DATABASE:
            busy = {other.worker for other in undone}
            return next(number for number in range(len(self._crew)) if number not in busy)
        owner = next((other.worker for other in undone if other.databases & job.databases), None)
        if owner is not None:
            return owner
        load = [
            sum(other.worker == number for other in undone) for number in range(len(self._crew))
        ]
        return max(number for number, groups in enumerate(load) if groups == min(load))

    def _runnable(self) -> list[Job]:
        """The groups that may commit now: the oldest of each worker; only the oldest of all where
        commit order is preserved."""
        jobs = self._heads()
        return jobs[:1] if self.configuration.preserve_commit_order else jobs

    def _heads(self) -> list[Job]:
        """The groups that are being executed: the oldest of each worker, in the order of the
        log."""
        found: dict[int, Job] = {}
        for job in self.queue:
            if not job.done:
                found.setdefault(job.worker, job)
        return list(found.values())

    def _checkpoint(self) -> bool:
        """mta_checkpoint_routine: the low-water mark goes to the last group before which all are
        done. Whether it moved."""
        count = 0
        while self.queue and self.queue[0].done:
            job = self.queue.popleft()
            self.info = self.info.at(job.end, job.source_end)
            count += 1
        if count:
            self._next_number -= count
            for worker in self._crew:
                worker.shifted += count
                worker.knows_checkpoint = False
            self.repository.flush(self.info, Occasion.CHECKPOINT)
        return bool(count)

    # workers

    def _execute(self, job: Job) -> None:
        self._job = job
        written = False
        for relay in job.events:
            self._position_written = False
            end = self.executor.feed(relay)
            written = written or self._position_written
            if end is not None and not written:
                self._record(job, Occasion.COMMIT if end.by_xid else Occasion.GROUP_END)
        job.done = True
        self.groups += 1
        self._job = None

    def _before_commit(self, relay: RelayEvent, end: GroupEnd) -> None:
        job = self._job
        if job is None:
            super()._before_commit(relay, end)
        elif self._crew[job.worker].repository.counter.rule.in_transaction and (
            end.by_xid or (end.ddl and self.configuration.rules.atomic_ddl)
        ):
            self._record(job, Occasion.COMMIT)
            self._position_written = True

    def _record(self, job: Job, occasion: Occasion) -> None:
        """commit_positions: what the worker writes with this group."""
        worker = self._crew[job.worker]
        info = worker.info
        executed = bitmap.with_group(
            bitmap.shifted(info.checkpoint_group_bitmap, job.shifted), job.number
        )
        if job.checkpoint is not None:
            mark = job.checkpoint
            info = replace(
                info,
                checkpoint_relay_log_name=mark.relay_log_name,
                checkpoint_relay_log_pos=mark.relay_log_pos,
                checkpoint_source_log_name=mark.source_log_name,
                checkpoint_source_log_pos=mark.source_log_pos,
            )
        worker.info = replace(
            info,
            relay_log_name=job.end.file,
            relay_log_pos=job.end.offset,
            source_log_name=job.source_end.file,
            source_log_pos=job.source_end.offset,
            checkpoint_seqno=job.number,
            checkpoint_group_bitmap=executed,
        )
        worker.repository.flush(worker.info, occasion)


def _databases(events: list[RelayEvent]) -> tuple[frozenset[str], bool]:
    """The databases that a group touches, and whether it has to run alone since it may touch any.

    Raises ReplicationError 1755 for rows that no table map is before (Log_event::get_slave_worker;
    seen of 5.7.29, whose receiver went on inside a transaction).
    """
    found: set[str] = set()
    isolated = False
    for relay in events:
        inner = (
            payload_events(relay.event)
            if relay.event.type == EventType.TRANSACTION_PAYLOAD
            else (relay.event,)
        )
        for event in inner:
            if event.type == EventType.TABLE_MAP:
                table_map = read_table_map(event, relay.format)
                found.add(table_map.database)
                isolated = isolated or table_map.crosses_databases
            elif event.type in ROWS_TYPES and not found:
                raise _not_parallel(relay)
            elif touches_databases(event):
                names = databases_of(parse(event, relay.format))
                found.update(names)
                isolated = isolated or not names
    return frozenset(found), isolated or not found


def _not_parallel(relay: RelayEvent) -> ReplicationError:
    return ReplicationError(
        1755,
        f"Cannot execute the current event group in the parallel mode. Encountered event"
        f" {relay.event.name}, relay-log name {relay.start.file}, position {relay.start.offset}"
        " which prevents execution of this event group in parallel mode. Reason: the event is a"
        " part of a group that is unsupported in the parallel execution mode.",
        file=relay.event.file,
        position=relay.event.position,
    )
