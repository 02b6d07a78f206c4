"""Transactions in batches: many of the source to one commit, the position with them, and what
happens when one of them fails.

A batch that fails is rolled back and taken once more, transaction by transaction and event by
event, so that the error names its place and all before it is committed. While the server works on
one batch the next one is made; what is under way is known to be committed when the server took the
text after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from applier.error_codes import Code
from applier.errors import BinlagError, InputError, ReplicationError
from applier.logs import logger
from applier.mysql.client.connection import MISSING_PRIVILEGE, TRANSIENT, Server
from applier.mysql.client.dialect import TargetDialect
from applier.mysql.client.pipeline import Pipeline, PipelineStatement
from applier.mysql.feed import SourceTransaction
from applier.mysql.footprint import Footprint
from applier.mysql.outcome import TargetOutcome
from applier.mysql.positions.checkpoint import TABLE, DdlMarker, read_checkpoint
from applier.mysql.positions.checkpoint_tracker import CheckpointTracker
from applier.mysql.positions.commit_ranges import CommitRanges
from applier.mysql.statements.native import AUTOMATIC_GTIDS, set_gtid_next
from applier.mysql.statements.writer import Writer
from checkpoints.gtid import MariadbGtid

_LOG = logger("replay")
DEFAULT_BATCH = 256
BATCH_BYTES = 1 << 20
"""A batch ends after so many bytes of events, however few its transactions are."""
MOST_RETRIES = 10
BEGIN = b"START TRANSACTION"
"""In sql_mode=ORACLE of MariaDB, which a statement of the log may leave behind, BEGIN opens a block
of statements."""
COMMIT = PipelineStatement(b"COMMIT")


@dataclass
class Connected:
    """What belongs to one connection to the target."""

    server: Server
    side: Server
    """A second connection, for questions: what they cost is not in the first one's counters, and
    they wait for nothing."""
    dialect: TargetDialect
    pipeline: Pipeline
    writer: Writer
    survey: Footprint


class Batches:
    """Takes what can be rolled back. `gtid` gives each transaction its own GTID on the target, and
    thereby a commit of its own."""

    def __init__(
        self,
        target: Connected,
        keeper: CheckpointTracker,
        outcome: TargetOutcome,
        done: CommitRanges,
        *,
        size: int,
        gtid: bool,
    ) -> None:
        self.target = target
        self.keeper = keeper
        self.outcome = outcome
        self.done = done
        self.own_rows = 0
        """Rows of the replay's own tables that were written."""
        self.gtid = gtid
        self.size = 1 if gtid else size
        self.final = False
        """The next failure ends the replay: it is known to be no accident, or cannot be rolled
        back."""
        self._open: list[SourceTransaction] = []
        self._open_bytes = 0
        self._under_way: list[SourceTransaction] = []
        self._retries = 0
        target.writer.ship = self.send

    def add(self, source: SourceTransaction) -> None:
        """Into the open batch; one that is not wanted moves the position only."""
        try:
            self._append(source)
        except ReplicationError as error:
            self._recover(error, source)

    def finish(self) -> None:
        """Commits what is open and waits for it."""
        self._insist(self._complete)

    def quiet(self) -> None:
        """Waits for what was sent, without a commit."""
        self._insist(self._settle)

    def connections(self) -> list[Connected]:
        """All that work on the target."""
        return [self.target]

    def forget_tables(self) -> None:
        """A statement may have changed a table."""
        self.target.survey.forget_tables()

    def without_done(self, source: SourceTransaction) -> SourceTransaction:
        """The transaction, or only its place in the log when an earlier run carried it out beyond
        the position."""
        return (
            replace(source, events=[], opening=None, executed=True)
            if self.done.covers(source.start)
            else source
        )

    def alone(
        self,
        source: SourceTransaction,
        *,
        opening: tuple[bytes, ...] = (),
        ending: tuple[bytes, ...] = (),
        position_inside: bool = False,
        allowed: frozenset[int] = frozenset(),
    ) -> None:
        """Between two commits of its own, the position inside of its transaction or behind it. A
        failure is final."""
        self.finish()
        final, self.final = self.final, True
        writer = self.target.writer
        # it is not tried again: it must name its row at once
        one_by_one, writer.rows.one_by_one = (writer.rows.one_by_one, True)
        writer.append_all(writer.describe(source.format))
        for sql in (*self._gtid_next(source), *opening):
            writer.append(sql)
        self._open.append(source)
        writer.add(source, allowed)
        self.keeper.record(source)
        statements, ends = writer.take(), [PipelineStatement(sql) for sql in ending]
        tail = (
            [self._position(), *ends, *self._gtid_over()]
            if position_inside
            else [*ends, *self._gtid_over(), self._position()]
        )
        writer.rows.one_by_one = one_by_one
        self.send([*self._answered(statements), *tail])
        self._under_way, self._open = self._open, []
        self.target.pipeline.settle()
        self._confirm()
        self.final = final

    def mark(self, marker: DdlMarker | None) -> None:
        """Writes the position as it is, with or without a marker."""
        self.target.pipeline.execute(self.keeper.row(self.target.survey.owned, marker).update())

    def send(self, statements: list[PipelineStatement]) -> None:
        """Sends a text. All before it is carried out then."""
        target = self.target
        if target.writer.loads_files:
            target.writer.loads_files = False
            target.pipeline.settle()
            with target.server.sending_files():
                target.pipeline.send(statements)
                target.pipeline.settle()
        else:
            target.pipeline.send(statements)
        self._confirm()

    # the batch

    def _append(self, source: SourceTransaction) -> None:
        description = self.target.writer.describe(source.format) if source.wanted else []
        if description:
            self._commit()
            self.target.writer.append_all(description)
        if not self._open:
            for sql in (*self._gtid_next(source), BEGIN):
                self.target.writer.append(sql)
        self._open.append(source)
        if source.wanted:
            self.target.writer.add(source)
            self._open_bytes += source.bytes
        self.keeper.record(source)
        if (
            len(self._open) >= self.size
            or self._open_bytes >= BATCH_BYTES
            or self.target.writer.rows.one_by_one
        ):
            self._commit()

    def _complete(self) -> None:
        """Commits what is open, waits for it, and drops what says of parts beyond the position that
        they are done: it is behind them."""
        self._commit()
        self.target.pipeline.settle()
        self._confirm()
        passed = self.done.end_of_passed()
        if passed is not None:
            self.own_rows += self.target.pipeline.execute(passed)
            self.done.forget_passed()

    def _settle(self) -> None:
        self.target.pipeline.settle()

    def _commit(self) -> None:
        """Sends the rest of the open batch and its commit."""
        if not self._open:
            return
        statements = self._answered(self.target.writer.take())
        self.send([*statements, self._position(), COMMIT, *self._gtid_over()])
        self._under_way, self._open, self._open_bytes = self._open, [], 0

    def _answered(self, statements: list[PipelineStatement]) -> list[PipelineStatement]:
        """Carries out statements whose answers decide whether there is a commit; returns what may
        be sent together with it."""
        if not any(statement.check is not None for statement in statements):
            return statements
        self.send(statements)
        self.target.pipeline.settle()
        return []

    def _confirm(self) -> None:
        """What was under way is committed."""
        if not self._under_way:
            return
        outcome, end = self.outcome, self._under_way[-1].end
        for source in self._under_way:
            outcome.transactions += source.wanted
            outcome.bytes += source.bytes
            outcome.gtid = source.gtid or outcome.gtid
            self.done.pass_by(source.end)
        outcome.commits += 1
        self.own_rows += 1
        outcome.file, outcome.position = end.file, end.offset
        self._under_way, self._retries = [], 0
        said = {
            "file": end.file,
            "position": end.offset,
            "gtid": outcome.gtid,
            "transactions": outcome.transactions,
        }
        _LOG.debug("committed", extra=said)

    def _position(self) -> PipelineStatement:
        return PipelineStatement(
            self.keeper.row(self.target.survey.owned).update(), check=self._one_row
        )

    def _one_row(self, matched: int) -> None:
        if matched != 1:
            raise self._row_is_gone()

    def _row_is_gone(self) -> InputError:
        return InputError(
            f"the row of {self.outcome.replay!r} in {TABLE} is gone",
            code=Code.REPLAY_ROW,
            hint="it was deleted: start again on an empty server",
        )

    # GTIDs on the target

    def _gtid_next(self, source: SourceTransaction) -> list[bytes]:
        gtid = source.gtid
        if not self.gtid or gtid is None or source.executed:
            return []
        if self.target.dialect.is_mariadb:
            own = MariadbGtid.parse(gtid)
            return [
                f"SET @@session.gtid_domain_id={own.domain}, @@session.server_id={own.server_id},"
                f" gtid_seq_no={own.sequence}".encode()
            ]
        return [set_gtid_next(gtid)]

    def _gtid_over(self) -> list[PipelineStatement]:
        return (
            [PipelineStatement(AUTOMATIC_GTIDS)]
            if self.gtid and not self.target.dialect.is_mariadb
            else []
        )

    # failures

    def _insist(self, work: Callable[[], None]) -> None:
        """Until it goes through: what a failure gave back is under way again, by whatever way it
        went, and may fail as well."""
        while True:
            try:
                work()
                return
            except ReplicationError as error:
                self._recover(error)

    def _recover(self, error: ReplicationError, added: SourceTransaction | None = None) -> None:
        """Rolls back and takes what is not committed once more. Raises the error when it comes
        again."""
        if self.final or error.number in MISSING_PRIVILEGE:
            self.final = True
            raise error
        waiting = added is None or self._holds(added)
        sources = self.roll_back()
        if added is not None and not waiting:
            sources.append(added)  # the error was an earlier one's, and came before it was taken in
        said: dict[str, Any] = {"number": error.number, "transactions": len(sources)}
        if sources:
            said |= {
                "file": sources[0].start.file,
                "position": sources[0].start.offset,
                "gtid": sources[0].gtid,
            }
        if error.number in TRANSIENT and self._retries < MOST_RETRIES:
            self._retries += 1
            _LOG.warning(
                "another session was in the way; trying again",
                extra={**said, "tries": self._retries},
            )
            time.sleep(0.05 * self._retries)
            for source in sources:
                self.add(source)
            return
        _LOG.info("a batch was refused; taking it again event by event", extra=said)
        rows = self.target.writer.rows
        self.final = rows.one_by_one = True
        try:
            for source in sources:
                self.add(source)
            self.finish()
            self.final = False
        finally:
            rows.one_by_one = False

    def _holds(self, source: SourceTransaction) -> bool:
        """Whether the transaction is among those that a rollback gives back."""
        return any(one is source for one in (*self._under_way, *self._open))

    def roll_back(self) -> list[SourceTransaction]:
        """Goes back to what is committed, and returns what is not."""
        sources = [*self._under_way, *self._open]
        self._under_way, self._open, self._open_bytes = [], [], 0
        self.target.pipeline.abandon()
        for statement in self._gtid_over():
            self.target.pipeline.execute(statement.sql)
        self.target.writer.forget()
        start = read_checkpoint(self.target.server, self.outcome.replay)
        if start is None:
            raise self._row_is_gone()
        self.keeper.resume_from(start)
        ends = [source.end for source in sources]
        if start.position in ends:
            behind = ends.index(start.position) + 1
            self._under_way, sources = sources[:behind], sources[behind:]
            self._confirm()
        return sources

    def end_before(self, error: BinlagError, failed: SourceTransaction | None) -> None:
        """After an error that is no answer to a batch: commits the transactions before the one that
        failed."""
        sources = self.roll_back()
        _name_transaction(error, [*sources, *([failed] if failed else [])])
        if self.final:
            return
        self.final = True
        for source in sources:
            if source is not failed:
                self.add(source)
        self.finish()


def _name_transaction(error: BinlagError, sources: list[SourceTransaction]) -> None:
    """Says which transaction an error is in, when that has a GTID."""
    for source in sources:
        if (
            source.gtid
            and error.position is not None
            and (error.file, error.position) >= (source.start.file, source.start.offset)
        ):
            within = error.file != source.end.file or error.position < source.end.offset
            if within and source.gtid not in error.message:
                error.message += f", in the transaction {source.gtid}"
