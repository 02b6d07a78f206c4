"""`binlag replay --into mysql://...`: connects, looks at the target, finds where to go on, and
replays."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace

from applier.binlog.follow import IndexedLogs
from applier.error_codes import Code
from applier.errors import BinlagError, InputError, ReplicationError, UsageError
from applier.logs import logger
from applier.mysql.batches import Batches, Connected
from applier.mysql.client.connection import Server, connect
from applier.mysql.client.dialect import TargetDialect, without_generated_keys
from applier.mysql.client.pipeline import Pipeline
from applier.mysql.client.safety import check_target
from applier.mysql.client.url import Endpoint
from applier.mysql.feed import Feed, SourceTransaction
from applier.mysql.footprint import Footprint
from applier.mysql.into_options import IntoOptions, check_options
from applier.mysql.outcome import TargetOutcome
from applier.mysql.positions.checkpoint import (
    Checkpoint,
    check_mark,
    create_checkpoint,
    lock_replay,
    lock_worker,
    read_checkpoint,
    replay_id,
    take_over,
)
from applier.mysql.positions.checkpoint_tracker import CheckpointTracker, PreparedTransactions
from applier.mysql.positions.commit_ranges import CommitRanges
from applier.mysql.positions.reconnect import Patience, Sessions, is_not_yet, is_passing
from applier.mysql.positions.thread_rows import keep, source_of
from applier.mysql.replay import Replay
from applier.mysql.statements.native import EVENT_BYTES, NativeRows
from applier.mysql.statements.target_tables import TargetTables
from applier.mysql.statements.writer import RowsWriter, Writer
from applier.mysql.transaction_tally import TransactionTally, check_filters
from applier.options import ReplayOptions
from applier.sources import STANDARD_INPUT
from checkpoints.gtid import parse_gtid_set

_LOG = logger("replay")
SUITED_WORKERS = 4
LARGE_BYTES = 64 << 10
"""Transactions from this mean size on are better carried out beside one another
(benchmarks/into_server.py)."""
LOOK_BYTES = 1 << 20
"""How much of the log is looked at for that."""
WORKER_LOCK_WAIT_SECONDS = 1
"""A batch that waits for a row lock of a later one, which waits for its commit, gives up so soon;
then they go one after the other."""


@dataclass
class ReplayWatch:
    """What is called while a replay runs. `on_rows` gets the rows counted so far, about once a
    second, `on_start` the outcome before it grows."""

    on_transaction: Callable[[SourceTransaction], None] = lambda source: None
    on_rows: Callable[[int], None] = lambda rows: None
    stopped: Callable[[], bool] = lambda: False
    every_seconds: float = 1.0
    on_start: Callable[[TargetOutcome], None] = lambda outcome: None
    say: Callable[[str], None] = lambda text: None
    """Gets a line for the user about what happens meanwhile."""


def replay_into(
    files: Sequence[str],
    endpoint: Endpoint,
    options: ReplayOptions,
    into: IntoOptions,
    watch: ReplayWatch | None = None,
) -> TargetOutcome:
    """Replays `files` into a server. An error that ended it is in the outcome; what is said there
    is committed.

    Raises UsageError and InputError for what is wrong before the first transaction.
    """
    check_options(options, into)
    options = replace(options, only=replace(options.only, without_accounts=into.without_accounts))
    began = time.monotonic()
    outcome = TargetOutcome(
        into.replay_id or replay_id(list(files)),
        str(endpoint),
        mode=into.apply,
        dry_run=into.dry_run,
    )
    watch = watch or ReplayWatch()
    watch.on_start(outcome)
    place = endpoint.without_log() if into.disable_log_bin else endpoint
    try:
        if into.dry_run:
            with closing(connect(place)) as server:
                _met(server, outcome, force=into.force)
                _look(files, server, options, into, watch, outcome)
        else:
            Into(files, place, options, into, watch, outcome).run()
    finally:
        outcome.seconds = time.monotonic() - began
    return outcome


def _met(server: Server, outcome: TargetOutcome, *, force: bool) -> TargetDialect:
    """Raises UsageError for a server that is no target."""
    outcome.server = server.version
    _LOG.info(
        "connected",
        extra={"server": str(server.endpoint), "version": server.version, "replay": outcome.replay},
    )
    dialect = TargetDialect.of(server)
    check_target(server, dialect, force=force)
    return dialect


@dataclass
class Into:
    """One replay into a server, over as many connections as that takes."""

    files: Sequence[str]
    endpoint: Endpoint
    options: ReplayOptions
    into: IntoOptions
    watch: ReplayWatch
    outcome: TargetOutcome

    def __post_init__(self) -> None:
        self._tally = TransactionTally(self.options.tally())
        self._sessions = Sessions(self.outcome.replay)
        self._start: Checkpoint | None = None

    def run(self) -> None:
        """To the end of the log, an error, or the user's wish."""
        with closing(connect(self.endpoint)) as server:
            dialect = _met(server, self.outcome, force=self.into.force)
            if server.lower_case_names:
                self.options = replace(self.options, only=self.options.only.in_lower_case())
                self._tally = TransactionTally(self.options.tally())
            self._sessions.add(server)
            error = self._replay(server, dialect)
        patience = Patience(self.into.reconnect_seconds, self.watch.stopped)
        while error is not None and is_passing(error) and not patience.is_over():
            self.watch.say(f"{error.message}; trying again for {patience.seconds:g} s")
            error = self._reconnect(patience, error)
        if error is not None and is_passing(error) and patience.seconds and self.watch.stopped():
            self.outcome.interrupted = True
        else:
            self.outcome.error = error

    def _reconnect(self, patience: Patience, lost: BinlagError) -> BinlagError | None:
        """Goes on over new connections. Returns what ends that: `lost` itself when there is no
        connection in time."""
        while patience.wait():
            try:
                with closing(connect(self.endpoint)) as server:
                    dialect = _met(server, self.outcome, force=self.into.force)
                    if self._go_back(server):
                        patience.renew()
                    onwards = self._start.onwards if self._start else "from the beginning"
                    self.watch.say(
                        f"connected to {self.endpoint} again at attempt {patience.tries}; "
                        f"continuing {onwards}"
                    )
                    self.outcome.reconnects += 1
                    patience.tries = 0
                    return self._replay(server, dialect)
            except BinlagError as refused:
                _LOG.info("not yet", extra={"tries": patience.tries, "reason": refused.message})
                if not is_not_yet(refused):
                    return refused
        return lost

    def _go_back(self, server: Server) -> bool:
        """To what is committed, wherever that is. Whether it is more than when the run before
        began."""
        self._sessions.end(server)
        self._sessions.add(server)
        if self._start is None:
            return False
        lock_replay(server, self.outcome.replay)
        before, start = self._start, read_checkpoint(server, self.outcome.replay)
        if start is None:
            raise InputError(
                f"the server at {self.endpoint} has no position of {self.outcome.replay!r}",
                code=Code.REPLAY_ROW,
                hint="it is another server than the one that was lost, and no replica of it",
            )
        check_mark(list(self.files), start)
        self._start = start
        outcome, first = self.outcome, self._first
        outcome.transactions = start.transactions - first.transactions
        outcome.bytes = start.log_bytes - first.log_bytes
        self._tally.go_back_to(outcome.transactions)
        return start != before

    def _replay(self, server: Server, dialect: TargetDialect) -> BinlagError | None:
        """Over this connection, and those that belong to it. Returns what ended it, if not the end
        of the log: a server that goes away while they are made, too."""
        try:
            if self._start is None:
                self._first = self._start = self._begin(server)
            return self._replay_from(self._start, server, dialect)
        except BinlagError as error:
            is_once = self._start is None and self.into.schema == STANDARD_INPUT
            if is_once or not is_passing(error):
                raise
            return error

    def _begin(self, server: Server) -> Checkpoint:
        begun = read_checkpoint(server, self.outcome.replay)
        if begun is None or not begun.transactions:
            check_filters(self.files, self.options)
        start = _start(self.files, server, self.options, self.into, self.outcome)
        self.outcome.file, self.outcome.position = start.file or None, start.offset
        return start

    def _replay_from(
        self, start: Checkpoint, server: Server, dialect: TargetDialect
    ) -> BinlagError | None:
        files = self.files
        options = self.options
        into = self.into
        outcome = self.outcome
        with ExitStack() as stack:
            side = stack.enter_context(closing(connect(server.endpoint)))
            run_with = Connecting(side, dialect, options, into, outcome, self._sessions)
            target = run_with.connected(stack, server)
            target.survey.owned |= start.databases
            keeper = CheckpointTracker(files, start)
            done = CommitRanges(outcome.replay)
            done.read(server)
            done.pass_before(start.position, files)
            count = into.workers or suited_workers(files, options, into, start)
            workers = (
                [run_with.worker(stack, number) for number in range(1, count + 1)]
                if count > 1
                else []
            )
            keep(server, outcome.replay, len(workers), source_of(files))
            executed = (
                parse_gtid_set(server.value("SELECT @@GLOBAL.gtid_executed") or "")
                if into.gtid and not dialect.is_mariadb
                else None
            )
            run = Replay(
                target,
                _batches(target, workers, keeper, outcome, done, options, into),
                keeper,
                PreparedTransactions(files, options),
                outcome,
                self._tally,
                marker=start.ddl,
                executed=executed,
            )
            feed = Feed(
                files,
                options,
                start=start.position,
                source_file=start.source.file,
                until_gtid=into.until_gtid,
            )
            try:
                run.run(feed, on_transaction=_ticking(self.watch, run), stopped=self.watch.stopped)
            except BinlagError as error:
                return error
            if into.until_gtid is not None and not feed.until_reached and not outcome.interrupted:
                outcome.note(f"--until-gtid {into.until_gtid} was not met in the log")
        return None


def suited_workers(
    files: Sequence[str], options: ReplayOptions, into: IntoOptions, start: Checkpoint
) -> int:
    """Several where transactions are large. Small ones travel together, which saves more than their
    server's second core can give."""
    if into.apply != "native" or into.gtid or (isinstance(files, IndexedLogs) and files.follow):
        return 1
    count = size = 0
    try:
        for source in Feed(files, options, start=start.position):
            count, size = count + source.wanted, size + source.wanted * source.bytes
            if size >= LOOK_BYTES:
                break
    except BinlagError:
        return 1  # the replay meets it again, and says it
    return SUITED_WORKERS if size > LARGE_BYTES * max(count, 1) else 1


def _batches(
    target: Connected,
    workers: list[Connected],
    keeper: CheckpointTracker,
    outcome: TargetOutcome,
    done: CommitRanges,
    options: ReplayOptions,
    into: IntoOptions,
) -> Batches:
    if not workers:
        return Batches(target, keeper, outcome, done, size=into.batch, gtid=into.gtid)
    from applier.mysql.parallel import ParallelBatches
    from applier.mysql.write_sets import WriteSets

    sets, ordered = WriteSets(target.side, options), not into.any_commit_order
    return ParallelBatches(
        target,
        workers,
        keeper,
        outcome,
        done,
        sets,
        size=into.batch,
        gtid=into.gtid,
        ordered=ordered,
    )


@dataclass
class Connecting:
    """Makes connections ready for the replay; a stack closes them."""

    side: Server
    dialect: TargetDialect
    options: ReplayOptions
    into: IntoOptions
    outcome: TargetOutcome
    sessions: Sessions

    def connected(self, stack: ExitStack, server: Server) -> Connected:
        """A connection that can be written over: its session set up, its pipeline and its
        writer."""
        _prepare_session(server, self.dialect, self.options)
        pipeline = Pipeline(server)
        tables = TargetTables(self.side)
        rows = _rows_writer(pipeline, self.dialect, tables, self.options, self.into, self.outcome)
        writer = stack.enter_context(
            closing(Writer(self.dialect, self.options, rows, note=self.outcome.note))
        )
        survey = Footprint(self.side, writer, tables, (), force=self.into.force)
        return Connected(server, self.side, self.dialect, pipeline, writer, survey)

    def worker(self, stack: ExitStack, number: int) -> Connected:
        """A connection for rows only, which needs no locks on what it does not find."""
        server = stack.enter_context(closing(connect(self.side.endpoint)))
        self.sessions.add(server)
        lock_worker(server, self.outcome.replay, number)
        server.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        server.execute(f"SET @@session.innodb_lock_wait_timeout={WORKER_LOCK_WAIT_SECONDS}")
        if self.into.apply == "native":
            # base64 need not be looked through for characters of many bytes
            server.execute("SET @@session.character_set_client=binary")
        return self.connected(stack, server)


def _ticking(watch: ReplayWatch, run: Replay) -> Callable[[SourceTransaction], None]:
    """Tells the watcher of each transaction, and asks the server for the rows now and then."""
    told = time.monotonic()

    def tick(source: SourceTransaction) -> None:
        nonlocal told
        watch.on_transaction(source)
        now = time.monotonic()
        if now - told >= watch.every_seconds:
            told = now
            watch.on_rows(run.rows())

    return tick


def _start(
    files: Sequence[str],
    server: Server,
    options: ReplayOptions,
    into: IntoOptions,
    outcome: TargetOutcome,
) -> Checkpoint:
    """The checkpoint to go on from, made when there is none."""
    lock_replay(server, outcome.replay)
    take_over(server, outcome.replay)
    start = read_checkpoint(server, outcome.replay)
    if start is None:
        start = Checkpoint(outcome.replay, loaded=into.schema is None)
        create_checkpoint(server, start)
    if into.schema is not None and start.is_untouched:
        start = replace(start, loaded=False)  # an earlier run without a dump came to nothing
    if not start.loaded:
        if into.schema is None:
            raise UsageError(
                f"the replay {outcome.replay!r} began with a dump that was not loaded to its end",
                code=Code.REPLAY_UNFINISHED,
                hint="give --schema FILE.sql again",
            )
        # the parser that it needs takes longer to import than all the rest
        load = importlib.import_module("applier.mysql.contents.load")
        dump = load.DumpOptions(
            load.Selection.of(options, into.default_database), into.with_routines, into.force
        )
        start = load.load_dump(
            server, load.SchemaPlace(into.schema, into.password_file), start, dump, outcome.note
        )
    if start.file:
        check_mark(list(files), start)
        outcome.resumed_from = str(start.position)
        _LOG.info(
            "continuing after the last commit",
            extra={"file": start.file, "position": start.offset, "gtids": start.gtids or None},
        )
    return start


def _look(
    files: Sequence[str],
    server: Server,
    options: ReplayOptions,
    into: IntoOptions,
    watch: ReplayWatch,
    outcome: TargetOutcome,
) -> None:
    """--dry-run: reads the log from where the replay would go on, and changes nothing."""
    start = read_checkpoint(server, outcome.replay) or Checkpoint(outcome.replay)
    if start.file:
        check_mark(list(files), start)
        outcome.resumed_from = str(start.position)
    else:
        check_filters(files, options)
    outcome.total_transactions = start.transactions
    feed = Feed(files, options, start=start.position, until_gtid=into.until_gtid)
    try:
        for source in feed:
            watch.on_transaction(source)
            outcome.transactions += source.wanted
            outcome.bytes += source.bytes
            outcome.gtid = source.gtid or outcome.gtid
            outcome.file, outcome.position = source.end.file, source.end.offset
            if watch.stopped():
                outcome.interrupted = True
                break
    except BinlagError as error:
        outcome.error = error
    if feed.outside is not None:
        outcome.note(feed.outside)
    if feed.unfinished is not None:
        outcome.incomplete_transaction = f"{feed.unfinished.file}:{feed.unfinished.start}"


STANDARD_KEYS, ALTER_HISTORY = "restrict_fk_on_non_standard_key", "system_versioning_alter_history"
"""A replica makes foreign keys to columns that are not unique (9.7.4), and alters system-versioned
tables (MariaDB 10.11.18), whatever these say; the source's session is not logged."""


def _prepare_session(server: Server, dialect: TargetDialect, options: ReplayOptions) -> None:
    """What holds for all that is sent."""
    wanted = {
        "completion_type": "0",
        dialect.accepted.applier_mode: "1",
        ALTER_HISTORY: "'KEEP'",
    }
    if dialect.variables.get("binlog_format") == "STATEMENT":
        wanted["binlog_format"] = "'ROW'"  # rows cannot be written to a log of statements
    if options.idempotent and dialect.accepted.exec_mode:
        wanted["rbr_exec_mode"] = "'IDEMPOTENT'"
    for name, value in wanted.items():
        if name in dialect.variables or name == "rbr_exec_mode":
            server.execute(f"SET @@session.{name}={value}")
    without_generated_keys(server, dialect)
    if dialect.is_on(STANDARD_KEYS):
        with suppress(ReplicationError):  # without the privilege the target's own value holds
            server.execute(f"SET @@session.{STANDARD_KEYS}=0")


def _rows_writer(
    pipeline: Pipeline,
    dialect: TargetDialect,
    tables: TargetTables,
    options: ReplayOptions,
    into: IntoOptions,
    outcome: TargetOutcome,
) -> RowsWriter:
    limit = min(EVENT_BYTES, pipeline.server.packet_bytes // 3)
    if into.apply == "sql":
        rows: RowsWriter = importlib.import_module("applier.mysql.statements.sql_mode").SqlRows(
            pipeline, dialect, options, outcome.note
        )
        return rows
    if options.idempotent and not dialect.accepted.exec_mode:
        raise UsageError(
            f"--exec-mode idempotent: {outcome.server} has no rbr_exec_mode",
            code=Code.VERSION_LACKS,
            hint="use --apply sql",
        )
    return NativeRows(dialect, options, limit, tables if dialect.hashes else None)
