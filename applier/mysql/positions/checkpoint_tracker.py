"""The position as it moves along with the transactions that are sent, before it is written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from applier.binlog.gtid_events import Gtid, MariadbGtidEvent
from applier.binlog.reader import open_log
from applier.binlog.transactions import TransactionKind
from applier.binlog.xa import plain_xid, prepared_xid
from applier.mysql.feed import Feed, SourceTransaction
from applier.mysql.positions.checkpoint import Checkpoint, DdlMarker, mark_of
from applier.options import ReplayOptions
from applier.sources import log_name
from checkpoints.gtid import GtidSet, MariadbGtidSet, parse_gtid_set
from checkpoints.position import Position


class CheckpointTracker:
    """Begins at a checkpoint; `record` takes in each transaction, `row` is the checkpoint behind
    the last one."""

    def __init__(self, files: Iterable[str], start: Checkpoint) -> None:
        self._files = files
        self._opened: dict[str, bytes] = {}
        self.resume_from(start)

    def resume_from(self, start: Checkpoint) -> None:
        """Forgets what was recorded since."""
        self._start = start
        self._gtids: GtidSet | MariadbGtidSet | None = (
            parse_gtid_set(start.gtids) if start.gtids else None
        )
        self._run_of: tuple[str, str] | None = None
        """UUID and tag of consecutive GTIDs [start, end) that are not in the set yet: most logs
        count on, one by one."""
        self._run_start = self._run_end = 0
        self._transactions, self._bytes = start.transactions, start.log_bytes
        self._end, self._source_end = start.position, start.source
        self.pending = dict(start.pending)

    def record(self, source: SourceTransaction) -> None:
        """Takes in a transaction that was sent, or left out."""
        identity = source.transaction.identity
        if isinstance(identity, Gtid) and identity.uuid is not None:
            source_of, number = (identity.uuid, identity.tag), identity.number
            if self._run_of == source_of and self._run_end == number:
                self._run_end += 1
            else:
                self._add_run()
                self._run_of, self._run_start, self._run_end = source_of, number, number + 1
        elif isinstance(identity, MariadbGtidEvent):
            self._gtids = (
                self._gtids if isinstance(self._gtids, MariadbGtidSet) else MariadbGtidSet()
            )
            self._gtids.add(identity.gtid)
        self._transactions += source.wanted
        self._bytes += source.bytes
        if source.kind is TransactionKind.XA_PREPARE and source.wanted:
            self.pending[plain_xid(source.xid)] = (source.start.file, source.start.offset)
        elif source.kind in (TransactionKind.XA_COMMIT, TransactionKind.XA_ROLLBACK):
            self.pending.pop(prepared_xid(source.xid, self.pending), None)
        self._end, self._source_end = source.end, source.source_end

    def row(self, databases: Iterable[str], ddl: DdlMarker | None = None) -> Checkpoint:
        """The checkpoint behind the last transaction. `databases` are those that the replay made,
        `ddl` is under way."""
        self._add_run()
        end = self._end
        return Checkpoint(
            self._start.replay,
            end.file if end else "",
            end.offset if end else 0,
            self._source_end,
            "" if self._gtids is None else str(self._gtids),
            self._transactions,
            self._bytes,
            dict(self.pending),
            frozenset(databases),
            self._mark(end) if end else "",
            ddl,
        )

    def _add_run(self) -> None:
        if self._run_of is not None:
            gtids = self._gtids = self._gtids if isinstance(self._gtids, GtidSet) else GtidSet()
            gtids.add_interval(
                (self._run_of[0].lower(), self._run_of[1]), self._run_start, self._run_end
            )
            self._run_of = None

    def _mark(self, end: Position) -> str:
        log = self._opened.get(end.file)
        if (
            log is None or len(log) < end.offset
        ):  # a log that is followed grows, and others come behind it
            path = next(path for path in map(Path, self._files) if log_name(path) == end.file)
            self._opened = {end.file: open_log(path)}
            log = self._opened[end.file]
        return mark_of(log, end.offset)


class PreparedTransactions:
    """The content of XA transactions that are prepared. It is carried out when they are
    committed."""

    def __init__(self, files: Iterable[str], options: ReplayOptions) -> None:
        self._files = list(files)
        self._options = options
        self._kept: dict[str, SourceTransaction] = {}

    def keep(self, source: SourceTransaction) -> None:
        """Keeps the content of an XA transaction that was prepared."""
        self._kept[plain_xid(source.xid)] = source

    def resolve(self, commit: SourceTransaction, pending: dict[str, tuple[str, int]]) -> bool:
        """Gives an XA COMMIT the content of what it commits; False when that is not in the log."""
        xid = prepared_xid(commit.xid, pending)
        prepared = self._kept.pop(xid, None)
        if prepared is None and xid in pending:
            prepared = next(
                iter(Feed(self._files, self._options, start=Position(*pending[xid]))), None
            )
        commit.opening = None if prepared is None else prepared.opening
        commit.events = [] if prepared is None else prepared.events
        if prepared is not None:
            commit.format = prepared.format
            commit.bytes += prepared.bytes
        return prepared is not None
