"""`binlag replay --into mysql://...`: connects, looks at the target, finds where to go on, and replays."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from applier.binlog.filters import gtids_of
from applier.binlog.follow import IndexedLogs
from applier.error_codes import Code
from applier.errors import BinlagError, UsageError
from applier.logs import logger
from applier.mysql.batches import DEFAULT_BATCH, Batches, Connected
from applier.mysql.checkpoint import (
    MOST_WORKERS,
    Checkpoint,
    check_mark,
    create_checkpoint,
    lock_replay,
    lock_worker,
    read_checkpoint,
    replay_id,
)
from applier.mysql.connection import Server, connect
from applier.mysql.dialect import Dialect
from applier.mysql.done import Done
from applier.mysql.feed import Feed, SourceTransaction
from applier.mysql.keeper import Keeper, PreparedTransactions
from applier.mysql.native import EVENT_BYTES, NativeRows
from applier.mysql.outcome import Outcome
from applier.mysql.pipeline import Pipeline
from applier.mysql.replay import Replay
from applier.mysql.safety import check_target
from applier.mysql.survey import Survey
from applier.mysql.target_tables import TargetTables
from applier.mysql.url import Endpoint
from applier.mysql.writer import RowsWriter, Writer
from applier.options import ReplayOptions
from checkpoints.gtid import parse_gtid_set

_LOG = logger("replay")
MODES = ("native", "sql")
SUITED_WORKERS = 4
LARGE_BYTES = 64 << 10
"""Transactions from this mean size on are better carried out beside one another (benchmarks/into_server.py)."""
LOOK_BYTES = 1 << 20
"""How much of the log is looked at for that."""
WORKER_LOCK_WAIT_SECONDS = 1
"""A batch that waits for a row lock of a later one, which waits for its commit, gives up so soon; then they go one after the other."""


@dataclass(frozen=True)
class IntoOptions:
    """How a replay into a server goes, beside what of the log it replays."""

    apply: str = "native"
    batch: int = DEFAULT_BATCH
    workers: int | None = None
    """None: by the size of the log's transactions."""
    any_commit_order: bool = False
    gtid: bool = False
    force: bool = False
    dry_run: bool = False
    replay_id: str | None = None
    until_gtid: str | None = None
    schema: str | None = None
    disable_log_bin: bool = False
    """No session of the replay writes to the target's binary log."""


@dataclass
class Watch:
    """Who looks on. `on_rows` gets the rows counted so far, about once a second, `on_start` the outcome before it grows."""

    on_transaction: Callable[[SourceTransaction], None] = lambda source: None
    on_rows: Callable[[int], None] = lambda rows: None
    stopped: Callable[[], bool] = lambda: False
    every_seconds: float = 1.0
    on_start: Callable[[Outcome], None] = lambda outcome: None


def replay_into(files: Sequence[str], endpoint: Endpoint, options: ReplayOptions, into: IntoOptions, watch: Watch | None = None) -> Outcome:
    """Replays `files` into a server. An error that ended it is in the outcome; what is said there is committed.

    Raises UsageError and InputError for what is wrong before the first transaction.
    """
    _check_options(options, into)
    began = time.monotonic()
    outcome = Outcome(into.replay_id or replay_id(list(files)), str(endpoint), mode=into.apply, dry_run=into.dry_run)
    if watch is not None:
        watch.on_start(outcome)
    server = connect(endpoint.without_log() if into.disable_log_bin else endpoint)
    try:
        outcome.server = server.version
        _LOG.info("connected", extra={"server": str(endpoint), "version": server.version, "replay": outcome.replay})
        dialect = Dialect.of(server)
        check_target(server, dialect, force=into.force)
        if into.dry_run:
            _look(files, server, options, into, watch or Watch(), outcome)
        else:
            _replay(files, server, dialect, options, into, watch or Watch(), outcome)
    finally:
        server.close()
        outcome.seconds = time.monotonic() - began
    return outcome


def _replay(
    files: Sequence[str], server: Server, dialect: Dialect, options: ReplayOptions, into: IntoOptions, watch: Watch, outcome: Outcome
) -> None:
    start = _start(files, server, into, outcome)
    with ExitStack() as stack:
        side = stack.enter_context(closing(connect(server.endpoint)))
        run_with = Connecting(side, dialect, options, into, outcome)
        target = run_with.connected(stack, server)
        target.survey.owned |= start.databases
        keeper = Keeper(files, start)
        done = Done(outcome.replay)
        done.read(server)
        done.pass_before(start.position, files)
        count = into.workers or suited_workers(files, options, into, start)
        workers = [run_with.worker(stack, number) for number in range(1, count + 1)] if count > 1 else []
        executed = parse_gtid_set(server.value("SELECT @@GLOBAL.gtid_executed") or "") if into.gtid and not dialect.is_mariadb else None
        run = Replay(
            target,
            _batches(target, workers, keeper, outcome, done, options, into),
            keeper,
            PreparedTransactions(files, options),
            outcome,
            marker=start.ddl,
            executed=executed,
        )
        feed = Feed(files, options, start=start.position, until_gtid=into.until_gtid)
        try:
            run.run(feed, on_transaction=_ticking(watch, run), stopped=watch.stopped)
        except BinlagError as error:
            outcome.error = error
        if into.until_gtid is not None and not feed.until_reached and outcome.error is None and not outcome.interrupted:
            outcome.note(f"--until-gtid {into.until_gtid} was not met in the log")


def suited_workers(files: Sequence[str], options: ReplayOptions, into: IntoOptions, start: Checkpoint) -> int:
    """Several where transactions are large. Small ones travel together, which saves more than their server's second core can give."""
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
    target: Connected, workers: list[Connected], keeper: Keeper, outcome: Outcome, done: Done, options: ReplayOptions, into: IntoOptions
) -> Batches:
    if not workers:
        return Batches(target, keeper, outcome, done, size=into.batch, gtid=into.gtid)
    from applier.mysql.parallel import ParallelBatches
    from applier.mysql.write_sets import WriteSets

    sets, ordered = WriteSets(target.side, options), not into.any_commit_order
    return ParallelBatches(target, workers, keeper, outcome, done, sets, size=into.batch, gtid=into.gtid, ordered=ordered)


@dataclass
class Connecting:
    """Makes connections ready for the replay; a stack closes them."""

    side: Server
    dialect: Dialect
    options: ReplayOptions
    into: IntoOptions
    outcome: Outcome

    def connected(self, stack: ExitStack, server: Server) -> Connected:
        """A connection that can be written over: its session set up, its pipeline and its writer."""
        _prepare_session(server, self.dialect, self.options)
        pipeline = Pipeline(server)
        tables = TargetTables(self.side)
        rows = _rows_writer(pipeline, self.dialect, tables, self.options, self.into, self.outcome)
        writer = stack.enter_context(closing(Writer(self.dialect, self.options, rows, note=self.outcome.note)))
        survey = Survey(self.side, writer, tables, (), force=self.into.force)
        return Connected(server, self.side, self.dialect, pipeline, writer, survey)

    def worker(self, stack: ExitStack, number: int) -> Connected:
        """A connection for rows only, which needs no locks on what it does not find."""
        server = stack.enter_context(closing(connect(self.side.endpoint)))
        lock_worker(server, self.outcome.replay, number)
        server.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        server.execute(f"SET @@session.innodb_lock_wait_timeout={WORKER_LOCK_WAIT_SECONDS}")
        if self.into.apply == "native":
            server.execute("SET @@session.character_set_client=binary")  # base64 need not be looked through for characters of many bytes
        return self.connected(stack, server)


def _ticking(watch: Watch, run: Replay) -> Callable[[SourceTransaction], None]:
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


def _start(files: Sequence[str], server: Server, into: IntoOptions, outcome: Outcome) -> Checkpoint:
    """The checkpoint to go on from, made when there is none."""
    lock_replay(server, outcome.replay)
    start = read_checkpoint(server, outcome.replay)
    if start is None:
        start = Checkpoint(outcome.replay, loaded=into.schema is None)
        create_checkpoint(server, start)
    if not start.loaded:
        if into.schema is None:
            raise UsageError(
                f"the replay {outcome.replay!r} began with a dump that was not loaded to its end",
                code=Code.REPLAY_UNFINISHED,
                hint="give --schema FILE.sql again",
            )
        load = importlib.import_module("applier.mysql.load")  # the parser that it needs takes longer to import than all the rest
        start = load.load_dump(server, into.schema, start, force=into.force)
    if start.file:
        check_mark(list(files), start)
        outcome.resumed_from = str(start.position)
        _LOG.info("going on behind what is committed", extra={"file": start.file, "position": start.offset, "gtids": start.gtids or None})
    return start


def _look(files: Sequence[str], server: Server, options: ReplayOptions, into: IntoOptions, watch: Watch, outcome: Outcome) -> None:
    """--dry-run: reads the log from where the replay would go on, and changes nothing."""
    start = read_checkpoint(server, outcome.replay) or Checkpoint(outcome.replay)
    if start.file:
        check_mark(list(files), start)
        outcome.resumed_from = str(start.position)
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
    if feed.unfinished is not None:
        outcome.incomplete_transaction = f"{feed.unfinished.file}:{feed.unfinished.start}"


def _prepare_session(server: Server, dialect: Dialect, options: ReplayOptions) -> None:
    """What holds for all that is sent. A variable that the account may not set keeps its value."""
    wanted = {"completion_type": "0", dialect.accepted.applier_mode: "1"}
    if dialect.variables.get("binlog_format") == "STATEMENT":
        wanted["binlog_format"] = "'ROW'"  # rows cannot be written to a log of statements
    if options.idempotent and dialect.accepted.exec_mode:
        wanted["rbr_exec_mode"] = "'IDEMPOTENT'"
    for name, value in wanted.items():
        if name in dialect.variables or name == "rbr_exec_mode":
            server.execute(f"SET @@session.{name}={value}")


def _rows_writer(
    pipeline: Pipeline, dialect: Dialect, tables: TargetTables, options: ReplayOptions, into: IntoOptions, outcome: Outcome
) -> RowsWriter:
    limit = min(EVENT_BYTES, pipeline.server.packet_bytes // 3)
    if into.apply == "sql":
        rows: RowsWriter = importlib.import_module("applier.mysql.sql_mode").SqlRows(pipeline, dialect, options, outcome.note)
        return rows
    if options.idempotent and not dialect.accepted.exec_mode:
        raise UsageError(f"--exec-mode idempotent: {outcome.server} has no rbr_exec_mode", code=Code.VERSION_LACKS, hint="use --apply sql")
    return NativeRows(dialect, options, limit, tables if dialect.hashes else None)


def _check_options(options: ReplayOptions, into: IntoOptions) -> None:
    """Raises UsageError for options that only a replay into memory has, or that go with the other mode."""
    if into.apply not in MODES:
        raise UsageError(f"--apply: {into.apply!r} is neither native nor sql", code=Code.OPTION_VALUE)
    if into.workers is not None and not 1 <= into.workers <= MOST_WORKERS:
        raise UsageError(f"--workers: {into.workers} is not between 1 and {MOST_WORKERS}", code=Code.OPTION_VALUE)
    if into.gtid and into.disable_log_bin:
        raise UsageError(
            "--gtid and --disable-log-bin: the target keeps the GTIDs of transactions in its binary log",
            code=Code.OPTIONS_CLASH,
            hint="leave one of them out",
        )
    gtids_of("--until-gtid", into.until_gtid)
    if into.apply == "native" and options.conversions:
        raise UsageError(
            "--type-conversions: the target's own slave_type_conversions holds",
            code=Code.OPTIONS_CLASH,
            hint="SET GLOBAL it there, or use --apply sql",
        )
    if options.server is not None or options.row_search is not None:
        raise UsageError(
            "--server and --row-search: a real server follows its own rules",
            code=Code.OPTIONS_CLASH,
            hint="leave them out, or replay into memory",
        )
