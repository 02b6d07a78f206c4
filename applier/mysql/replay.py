"""Replays a log into a server: exactly once, in the order of the log.

    Feed -> transactions -> Survey (may we? can it be rolled back?) -> Batches -> Writer -> Pipeline

What the server can roll back goes in batches, the position with them. What it cannot - DDL, tables
without transactions - goes alone, between two positions; of a DDL statement a marker tells a later
run whether it was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from applier.binlog.events import Query, parse
from applier.binlog.header import EventType
from applier.binlog.refusals import lost_events
from applier.binlog.transactions import TransactionKind
from applier.error_codes import Code
from applier.errors import BinlagError, InputError, ReplicationError
from applier.mysql.batches import BEGIN, Batches, Connected
from applier.mysql.client.connection import ServerLost
from applier.mysql.client.row_count import RowCount
from applier.mysql.feed import Feed, SourceTransaction, check_own_gtid, in_set
from applier.mysql.outcome import TargetOutcome
from applier.mysql.positions.checkpoint import DdlMarker
from applier.mysql.positions.checkpoint_tracker import CheckpointTracker, PreparedTransactions
from applier.mysql.statements.ddl import (
    ALREADY_DONE,
    FORMULA,
    commits_by_itself,
    fingerprint,
    is_atomic_create,
)
from applier.mysql.statements.writer import text_of
from applier.mysql.transaction_tally import TransactionTally
from applier.tables.sql.statement_kind import is_temporary
from applier.tables.sql.statement_names import is_wanted, names_of
from checkpoints.gtid import GtidSet, MariadbGtidSet

NOT_TRANSACTIONAL = (
    "tables without transactions are written: what they saw last may be there twice or in part"
    " after a crash"
)
"""Said once: the position cannot be committed together with them."""
ROWS_LOST = (
    "the connection was lost: rows that were written over it since they were last counted are not"
    " among those counted"
)
TEMPORARY_LOST = (
    "the log's temporary tables were lost with the connection: see what the log does with them"
)
DONE_BEFORE = "a DDL statement that was under way when the last run ended had been carried out"


class Replay:
    """One run into one server."""

    def __init__(
        self,
        target: Connected,
        batches: Batches,
        keeper: CheckpointTracker,
        prepared: PreparedTransactions,
        outcome: TargetOutcome,
        tally: TransactionTally,
        *,
        marker: DdlMarker | None = None,
        executed: GtidSet | MariadbGtidSet | None = None,
    ) -> None:
        self.target = target
        self.batches = batches
        self.keeper = keeper
        self.prepared = prepared
        self.outcome = outcome
        self.count = RowCount([connected.pipeline for connected in batches.connections()])
        self.tally = tally
        self._marker = marker
        """Of the DDL statement that was under way when the run before ended."""
        self._executed = executed
        """Transactions that the server has under their own GTIDs."""
        self._rows_before = outcome.rows
        self._unrepeatable: str | None = None
        """Why what is under way cannot go on over another connection."""
        self._made_temporary = False

    def run(
        self,
        feed: Feed,
        *,
        on_transaction: Callable[[SourceTransaction], None],
        stopped: Callable[[], bool],
    ) -> None:
        """All of the feed. Raises BinlagError; all that is complete before it is committed then."""
        taking: SourceTransaction | None = None
        feed.on_idle(self.batches.finish)
        try:
            for source in feed:
                taking = source
                self._take(source)
                taking = None  # what fails from here on is the log behind it, or a whole batch
                on_transaction(source)
                if stopped():
                    break
            self.outcome.interrupted = stopped()
            self.batches.finish()
        except ServerLost as error:
            self._lost(error)
            raise
        except BinlagError as error:
            if taking is not None:
                error.locate(file=taking.start.file, position=taking.start.offset)
            self.batches.end_before(error, taking)
            self._sum_up()
            raise
        self._sum_up()
        self._say_what_is_left(feed)

    def _lost(self, error: ServerLost) -> None:
        """Its counters went with the connection."""
        self.outcome.note(ROWS_LOST)
        why = self._unrepeatable or (TEMPORARY_LOST if self._made_temporary else None)
        if why is not None:
            error.is_final, error.hint = True, f"{why}; then the same command again"

    def _sum_up(self) -> None:
        row = self.keeper.row(self.target.survey.owned)
        outcome = self.outcome
        outcome.file = row.file or None
        outcome.position = row.offset
        outcome.gtids = row.gtids
        outcome.total_transactions = row.transactions
        self.rows()
        outcome.notes.update(self.tally.tally.notes())

    def rows(self) -> int:
        """Rows written, changed and deleted so far; what was rolled back and done again counts
        twice."""
        self.batches.quiet()
        self.outcome.rows = self._rows_before + self.count.rows(self.batches.own_rows)
        return self.outcome.rows

    def _say_what_is_left(self, feed: Feed) -> None:
        if feed.outside is not None:
            self.outcome.note(feed.outside)
        if feed.unfinished is not None and not self.outcome.interrupted:
            place = f"{feed.unfinished.file}:{feed.unfinished.start}"
            self.outcome.incomplete_transaction = place
            self.outcome.note(
                f"the transaction that starts at {place} is not complete in the log; it is left out"
            )
        for xid in self.keeper.pending:
            self.outcome.note(
                f"XA transaction {xid} is prepared and neither committed nor rolled back: its rows"
                " wait for its end"
            )

    # one transaction

    def _take(self, source: SourceTransaction) -> None:
        kind = source.kind
        if kind is TransactionKind.XA_COMMIT and not self.prepared.resolve(
            source, self.keeper.pending
        ):
            self.outcome.note(
                "an XA transaction is committed whose content is not in the log: nothing of it is"
                " replayed"
            )
        if self.batches.gtid:
            check_own_gtid(source.transaction, is_mariadb=self.target.dialect.is_mariadb)
        if (
            source.wanted
            and self._executed is not None
            and in_set(self._executed, source.transaction)
        ):
            source.wanted, source.executed = self._was_done_by_this_replay(source), True
        if kind is TransactionKind.XA_PREPARE and source.wanted:
            self.prepared.keep(source)
        source = self.batches.without_done(source)
        if source.wanted:
            self.tally.take(source)
        if not source.wanted:
            self.batches.add(source)
        elif source.executed:
            self._move(source)
        elif kind is TransactionKind.INCIDENT:
            raise lost_events(source.events[-1], source.format.fde)
        elif kind in (TransactionKind.XA_PREPARE, TransactionKind.XA_ROLLBACK):
            self._move(source)
        else:
            self._carry_out(source)

    def _was_done_by_this_replay(self, source: SourceTransaction) -> bool:
        """Of one that the target has: whether it was carried out beyond the position, so that it
        counts."""
        marker = self._marker
        under_way = marker is not None and (marker.file, marker.offset) == (
            source.start.file,
            source.start.offset,
        )
        return under_way or self.batches.done.covers(source.start)

    def _move(self, source: SourceTransaction) -> None:
        """Only the position moves, and what is prepared."""
        self.batches.add(replace(source, events=[], opening=None))

    def _carry_out(self, source: SourceTransaction) -> None:
        queries = list(self._queries(source))
        committing = next(
            (
                query
                for query in queries
                if commits_by_itself(text_of(query)) or is_atomic_create(text_of(query))
            ),
            None,
        )
        can_roll_back = self.target.survey.can_roll_back(source)
        if committing is not None:
            self._ddl(source, committing)
        elif source.kind is TransactionKind.ROLLED_BACK:
            self.batches.alone(source, opening=(BEGIN,), ending=(b"ROLLBACK",))
        elif source.kind is TransactionKind.STATEMENT and any(
            is_temporary(text_of(query)) for query in queries
        ):
            self._made_temporary = True
            self.batches.alone(source)
        elif can_roll_back:
            self.batches.add(source)
        else:
            self.outcome.notes.setdefault(NOT_TRANSACTIONAL, 1)
            self._unrepeatable = (
                "see whether the tables without transactions have what the log has at"
                f" {source.start}"
            )
            self.batches.alone(source, opening=(BEGIN,), ending=(b"COMMIT",), position_inside=True)
            self._unrepeatable = None

    def _queries(self, source: SourceTransaction) -> Iterable[Query]:
        """Its statements, as far as they are wanted."""
        for event in source.events:
            if event.type == EventType.QUERY:
                query: Query = parse(event, source.format.fde)
                if is_wanted(self.target.writer.options.only, query):
                    yield query

    # statements that commit by themselves

    def _ddl(self, source: SourceTransaction, query: Query) -> None:
        """With a marker before it, by which a later run knows whether it was done."""
        self.batches.finish()
        start = source.start
        before = fingerprint(
            self.target.side, text_of(query), self.target.writer.target_database(query)
        )
        old, self._marker = self._marker, None
        allowed: frozenset[int] = frozenset()
        if old is not None and (old.file, old.offset) == (start.file, start.offset):
            _check_formula(old)
            if old.fingerprint != before:
                self.outcome.note(DONE_BEFORE)
                self._move(source)
                return
            allowed = ALREADY_DONE
        rows = self.rows()
        self.batches.mark(DdlMarker(start.file, start.offset, before))
        try:
            ending = (b"COMMIT",) if is_atomic_create(text_of(query)) else ()
            self.batches.alone(source, ending=ending, allowed=allowed)
        except ReplicationError as error:
            error.hint = error.hint or _way_on(error.number, query)
            self.batches.roll_back()
            if (
                error.position is not None
            ):  # the statement's own error; without a place it is that of the position behind it
                # the server says that it was not done: there is nothing to recognise
                self.batches.mark(None)
            raise
        finally:
            self.batches.forget_tables()
        if not is_atomic_create(text_of(query)):
            self.count.leave_out_since(rows - self._rows_before, self.batches.own_rows)


def _way_on(number: int, query: Query) -> str:
    """What to do about a DDL statement that the target refuses."""
    leave_out = (
        "leave statements about accounts out with --without-accounts"
        if names_of(query).accounts
        else f"pass over it with --skip-errors {number}"
    )
    return f"make it possible on the target, or {leave_out}"


def _check_formula(marker: DdlMarker) -> None:
    if not marker.fingerprint.startswith(FORMULA):
        raise InputError(
            "another version of binlag was stopped at this DDL statement, and this one cannot tell"
            " whether it was carried out",
            code=Code.REPLAY_ROW,
            hint="look at the table, then go on with that version, or start again",
        )
