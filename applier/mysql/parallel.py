"""Several connections at once: the rows of a batch are carried out while those of the batches
before it are.

A batch may overlap with those before it that none of its transactions depends on. That is the log's
own word (LOGICAL_CLOCK: all up to its `last_committed`); where the log says nothing (5.6, MariaDB)
or says "wait", the rows themselves are looked at (`write_sets`).

    lane 1   rows of batch 1 . . commit
    lane 2     rows of batch 2 . . . . commit
    lane 3        rows of batch 3 . . . . . . commit

Commits in order keep the position row a single low-water mark: what it says is done, nothing behind
it is. Without order each batch commits by itself, together with a row in `binlag.done` (`done`)
that says which part of the log beyond the mark it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from applier.binlog.header import EventType
from applier.binlog.transactions import TransactionKind
from applier.errors import ReplicationError
from applier.mysql.batches import BEGIN, COMMIT, Batches, Connected
from applier.mysql.client.connection import first_ready
from applier.mysql.client.pipeline import PipelineStatement
from applier.mysql.feed import Format, SourceTransaction
from applier.mysql.outcome import TargetOutcome
from applier.mysql.positions.checkpoint import Checkpoint
from applier.mysql.positions.checkpoint_tracker import CheckpointTracker
from applier.mysql.positions.commit_ranges import CommitRanges, Range
from applier.mysql.positions.thread_rows import worker_update
from applier.mysql.write_sets import Touched, WriteSets

ALONE = frozenset(
    {
        EventType.QUERY,
        EventType.EXECUTE_LOAD_QUERY,
        EventType.BEGIN_LOAD_QUERY,
        EventType.APPEND_BLOCK,
    }
)
"""Statements: what they read and write is not in the log."""
FLIGHT_BYTES = 256 << 10
"""A batch ends after so many. Less than on one connection: the longer it is, the more there is that
one behind it may have to wait for."""
ASK_BYTES = 256 << 10
"""Of rows that are read to see whether the log's clock says "wait" without need. One of write sets
(8.0 and later) is seldom refuted: then no more is read than this and `ASK_PART` of the log. As long
as one of four bytes was read with profit, questions go on."""
ASK_PART = 1 / 32
MOST_KEPT_BYTES = 8 << 20
"""Statements of one long transaction that are sent together, in bytes of SQL."""
MARK_EVERY = 16
"""Batches that are committed without order before the low-water mark is written."""


@dataclass(slots=True, eq=False)
class Flight:
    """A batch on one connection: a run of transactions of one file.

    `needs` is the number of the last batch that must be committed before its rows may be carried
    out; `first` the sequence number of its first transaction, 0 where the log has none. `row` is
    the checkpoint behind it.
    """

    worker: Connected
    number: int
    file: str
    format: Format
    first: int
    needs: int = 0
    bytes: int = 0
    sources: list[SourceTransaction] = field(default_factory=list)
    touched: Touched | None = None
    row: Checkpoint | None = None
    part: Range | None = None
    parts: list[PipelineStatement] = field(default_factory=list)
    """Of a long transaction: made, not sent."""
    part_bytes: int = 0
    tail: list[PipelineStatement] = field(default_factory=list)
    """What is still to be sent once the rows are carried out."""
    landed: bool = False


class ParallelBatches(Batches):
    """Batches on connections of their own. What is not rows alone goes over the first one, with
    nothing beside it."""

    def __init__(
        self,
        target: Connected,
        workers: list[Connected],
        keeper: CheckpointTracker,
        outcome: TargetOutcome,
        done: CommitRanges,
        write_sets: WriteSets,
        *,
        size: int,
        gtid: bool,
        ordered: bool,
    ) -> None:
        super().__init__(target, keeper, outcome, done, size=size, gtid=gtid)
        self._workers = workers
        self._write_sets = write_sets
        self._ordered = ordered
        self._number = 0
        """Of the last batch that was begun."""
        self._flights: list[Flight] = []
        """Rows were sent, in the order of the log; the commit of the last one may be under way."""
        self._building: Flight | None = None
        self._committing: Flight | None = None
        self._low = keeper.row(target.survey.owned)
        """Behind all that is committed without a gap."""
        self._unmarked: list[Flight] = []
        """Committed up to here without a gap, but the position is not written yet."""
        self._taken_bytes = 0
        self._vain_bytes = self._useful_bytes = 0
        """What was read because the log's clock said "wait": the rows said so, too, or that there
        is no need."""
        for worker in workers:
            worker.writer.ship = self._ship_part

    def add(self, source: SourceTransaction) -> None:
        try:
            if self.final or self._retries or not self._may_overlap(source):
                self._land_all()
                self._append(source)
            else:
                if self._open or self._under_way:
                    super()._complete()
                self._join(source)
        except ReplicationError as error:
            self._recover(error, source)

    def connections(self) -> list[Connected]:
        return [self.target, *self._workers]

    def forget_tables(self) -> None:
        super().forget_tables()
        self._write_sets.forget()

    def _holds(self, source: SourceTransaction) -> bool:
        flights = [*self._flights, *([self._building] if self._building else [])]
        return super()._holds(source) or any(
            one is source for flight in flights for one in flight.sources
        )

    def roll_back(self) -> list[SourceTransaction]:
        """Transactions that are committed beyond the position come back without their content."""
        flights = [*self._flights, *([self._building] if self._building else [])]
        self._flights, self._building, self._committing = [], None, None
        for worker in self._workers:
            worker.pipeline.abandon()
            for statement in self._gtid_over():
                worker.pipeline.execute(statement.sql)
            worker.writer.forget()
        if self._unmarked:
            self.target.pipeline.abandon()
            self._write_mark()
        self.done.read(self.target.server)
        sources = [self.without_done(source) for flight in flights for source in flight.sources]
        self._under_way = [*sources, *self._under_way]
        return super().roll_back()

    def _may_overlap(self, source: SourceTransaction) -> bool:
        """Rows of an XA transaction are carried out at its end, where the numbers do not say what
        they depend on."""
        if source.kind is TransactionKind.XA_COMMIT or source.start.file != source.end.file:
            return False
        return not any(event.type in ALONE for event in source.events)

    # a batch

    def _join(self, source: SourceTransaction) -> None:
        flight = self._building
        if flight is not None and (
            flight.file != source.start.file or flight.format is not source.format
        ):
            self._take_off()
            flight = None
        if flight is None:
            flight = self._begin(source)
        self._look_back(flight, source)
        flight.sources.append(source)
        if source.wanted:
            flight.worker.writer.add(source)
            flight.bytes += source.bytes
        self.keeper.record(source)
        if len(flight.sources) >= self.size or flight.bytes >= FLIGHT_BYTES:
            self._take_off()

    def _begin(self, source: SourceTransaction) -> Flight:
        """A batch on a connection that has nothing to do."""
        worker = self._free_worker()
        self._number += 1
        flight = Flight(
            worker,
            self._number,
            source.start.file,
            source.format,
            source.transaction.sequence_number,
        )
        self._building = flight
        worker.writer.append_all(worker.writer.describe(source.format))
        for sql in (*self._gtid_next(source), BEGIN):
            worker.writer.append(sql)
        return flight

    def _look_back(self, flight: Flight, source: SourceTransaction) -> None:
        """Finds the last batch that the transaction depends on."""
        touched: Touched | None = None
        transaction = source.transaction
        self._taken_bytes += source.bytes
        for earlier in reversed(self._flights):
            if earlier.number <= flight.needs:
                return
            clocked = bool(
                transaction.sequence_number and earlier.first and earlier.format is flight.format
            )
            if earlier.landed or (clocked and transaction.last_committed < earlier.first):
                continue
            if (
                clocked
                and self._vain_bytes
                > ASK_BYTES + self._taken_bytes * ASK_PART + 3 * self._useful_bytes
            ):
                flight.needs = earlier.number
                return
            read = (source.bytes if touched is None else 0) + (
                earlier.bytes if earlier.touched is None else 0
            )
            if touched is None:
                touched = self._write_sets.of(source)
            if touched.meets(self._touched(earlier)):
                flight.needs = earlier.number
            if clocked and flight.needs == earlier.number:
                self._vain_bytes += read
            elif clocked:
                self._useful_bytes += read

    def _touched(self, flight: Flight) -> Touched:
        if flight.touched is None:
            flight.touched = Touched()
            for source in flight.sources:
                flight.touched.take(self._write_sets.of(source))
        return flight.touched

    def _take_off(self) -> None:
        """Sends the rows of the batch once all is committed that they depend on."""
        flight = self._building
        if flight is None:
            return
        self._wait_for(flight)
        flight.row = self.keeper.row(self.target.survey.owned)
        statements = [*flight.parts, *flight.worker.writer.take()]
        worker = self._workers.index(flight.worker) + 1
        own = worker_update(self.outcome.replay, worker, flight.row, self._low)
        ends = [PipelineStatement(own, check=self._one_row), COMMIT, *self._gtid_over()]
        if self._ordered:
            flight.tail = [PipelineStatement(flight.row.update(), check=self._one_row), *ends]
        else:
            flight.part = self.done.add(
                flight.file, flight.sources[0].start.offset, flight.sources[-1].end.offset
            )
            flight.tail = [PipelineStatement(self.done.insert(flight.part)), *ends]
            if not any(statement.check is not None for statement in statements):
                statements, flight.tail = [*statements, *flight.tail], []
        flight.worker.pipeline.send(statements)
        self._building = None
        self._flights.append(flight)

    def _wait_for(self, flight: Flight) -> None:
        while any(
            earlier.number <= flight.needs and not earlier.landed for earlier in self._flights
        ):
            self._land()

    def _ship_part(self, statements: list[PipelineStatement]) -> None:
        """A part of a long transaction. It is kept for the rest: a part that was sent would have to
        be waited for before the next one."""
        flight = self._building
        assert flight is not None
        flight.parts += statements
        flight.part_bytes += sum(len(statement.sql) for statement in statements)
        if flight.part_bytes >= min(MOST_KEPT_BYTES, flight.worker.server.packet_bytes // 2):
            self._wait_for(flight)
            flight.worker.pipeline.send(flight.parts)
            flight.parts, flight.part_bytes = [], 0

    def _free_worker(self) -> Connected:
        while True:
            busy = {id(flight.worker) for flight in self._flights if not flight.landed}
            free = next((worker for worker in self._workers if id(worker) not in busy), None)
            if free is not None:
                return free
            self._land()

    # commits

    def _complete(self) -> None:
        self._land_all()
        super()._complete()

    def _settle(self) -> None:
        for worker in self._workers:
            worker.pipeline.settle()
        super()._settle()

    def _land_all(self) -> None:
        self._take_off()
        while self._flights:
            self._land()
        if self._unmarked:
            self._write_mark()

    def _land(self) -> None:
        """Waits until something is committed."""
        if self._ordered:
            self._land_next()
        else:
            self._land_any()

    def _land_next(self) -> None:
        """Takes in the commit that is under way, or sends that of the oldest batch behind it.

        Whichever answers first: a worker that has committed has nothing to do until it gets the
        next batch.
        """
        before = self._committing
        flight = next((flight for flight in self._flights if flight is not before), None)
        rows_first = flight is not None and (
            before is None or first_ready([before.worker.server, flight.worker.server]) == 1
        )
        if flight is not None and rows_first:
            flight.worker.pipeline.settle()
        if before is not None:
            before.worker.pipeline.settle()
            self._flights.remove(before)
            self._landed(before)
            self._committing = None
        if flight is not None and rows_first:
            self._committing = flight
            flight.worker.pipeline.send(flight.tail)

    def _land_any(self) -> None:
        """Takes in the first batch whose answer is there; all that is committed without a gap moves
        the low-water mark."""
        waiting = [flight for flight in self._flights if not flight.landed]
        flight = waiting[first_ready([flight.worker.server for flight in waiting])]
        flight.worker.pipeline.settle()
        if flight.tail:
            flight.worker.pipeline.send(flight.tail)
            flight.tail = []
            return
        flight.landed = True
        while self._flights and self._flights[0].landed:
            first = self._flights.pop(0)
            self._unmarked.append(first)
            self._landed(first)
        if len(self._unmarked) >= MARK_EVERY:
            self._write_mark()

    def _landed(self, flight: Flight) -> None:
        self._under_way = flight.sources
        self._confirm()
        self.own_rows += 1  # of the worker
        if flight.row is not None:
            self._low = flight.row

    def _write_mark(self) -> None:
        """The low-water mark, and with it an end of the rows that say what was done up to it."""
        row = self._unmarked[-1].row
        assert row is not None
        passed = self.done.delete(
            [flight.part.number for flight in self._unmarked if flight.part is not None]
        )
        pipeline = self.target.pipeline
        pipeline.execute(BEGIN)
        self._one_row(pipeline.execute(row.update()))
        self.own_rows += 1 + pipeline.execute(passed)
        pipeline.execute(b"COMMIT")
        self._unmarked = []
