"""The log as a target takes it: whole transactions in order, with what the options leave of them.

A transaction is read to its end before it is handed out, so one that is cut off never reaches the
target. Its events stay where they are, in the mapped file; only what a compressed transaction holds
takes memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from applier.binlog.boundaries import is_begin
from applier.binlog.events import parse
from applier.binlog.follow import IndexedLogs, LogFollower
from applier.binlog.gtid_events import Gtid, MariadbGtidEvent
from applier.binlog.header import GTID_TYPES, MAGIC, Event, EventFlag, EventType, FormatDescription
from applier.binlog.reader import LogReader
from applier.binlog.selection.filters import (
    AnyGtidSet,
    check_kind,
    gtids_of,
    holds,
)
from applier.binlog.transactions import (
    MEMBER_TYPES,
    QUIET_TYPES,
    Transaction,
    TransactionKind,
    TransactionTracker,
)
from applier.error_codes import Code
from applier.errors import InputError, UsageError
from applier.options import ReplayOptions
from applier.sources import log_name
from checkpoints.position import Position

UNKNOWN = Position("", 0)
"""In a log that nothing has named yet."""
FRAME_TYPES = GTID_TYPES | {EventType.XID, EventType.XA_PREPARE, EventType.TRANSACTION_PAYLOAD}
"""What says where a transaction begins and ends; its content is the rest."""


@dataclass(frozen=True, slots=True)
class Format:
    """How the events of a file are laid out, with the event that says so."""

    fde: FormatDescription
    event: Event


@dataclass(slots=True)
class SourceTransaction:
    """A transaction or a single statement. `events` are its content without GTID, BEGIN, COMMIT and
    XID; `opening` is its BEGIN.

    `wanted` is False for one that an option leaves out: it only moves the position.
    """

    transaction: Transaction
    format: Format
    events: list[Event] = field(default_factory=list)
    opening: Event | None = None
    wanted: bool = True
    executed: bool = False
    """The target has it already: under its own GTID, or beyond the position."""
    bytes: int = 0
    source_end: Position = UNKNOWN
    """Where it ends in the source's log; no name as long as a relay log has not told."""

    @property
    def start(self) -> Position:
        """Where it begins in the log."""
        return Position(self.transaction.file, self.transaction.start)

    @property
    def end(self) -> Position:
        """Where it ends in the log."""
        return Position(self.transaction.end_file, self.transaction.end)

    @property
    def kind(self) -> TransactionKind:
        """What it turned out to be."""
        return self.transaction.kind

    @property
    def xid(self) -> str:
        """The identifier of an XA transaction as it stands in the log; "" for others."""
        return self.transaction.xid or ""

    @property
    def gtid(self) -> str | None:
        """Its GTID as text; None without one."""
        return self.transaction.gtid


class Feed:
    """Iterates over the transactions of `files` from `start` on (None: from the beginning, or from
    --start-position).

    Afterwards `unfinished` is the transaction that the end of the log cut off, if any. `until_gtid`
    is the last one wanted. Raises UsageError for GTIDs of another kind of server than the log's.
    """

    def __init__(
        self,
        files: Sequence[str],
        options: ReplayOptions,
        *,
        start: Position | None = None,
        source_file: str = "",
        until_gtid: str | None = None,
    ) -> None:
        self.options = options
        self._until = gtids_of("--until-gtid", until_gtid)
        self.unfinished: Transaction | None = None
        self.until_reached = False
        self.outside: str | None = None
        """That no transaction lies in the times of the options, with words on the log's."""
        self._goes_on, self._times = start is not None, options.times()
        first = _place_of(files, start)
        if isinstance(files, IndexedLogs) and files.follow:
            self._reader: LogReader = LogFollower(
                files,
                start=files[first] if start else None,
                verify_checksum=options.verify_checksum,
                start_position=start.offset if start else options.start_position,
            )
        else:
            self._reader = LogReader(
                files[first:],
                verify_checksum=options.verify_checksum,
                start_position=options.start_position if start is None else start.offset,
                stop_position=options.stop_position,
            )
        self.format: Format | None = None
        self._current: SourceTransaction | None = None
        self._source_file = source_file

    def on_idle(self, call: Callable[[], None]) -> None:
        """What to do each time that logs which are followed have no more for now."""
        if isinstance(self._reader, LogFollower):
            self._reader.logs.on_idle = call

    def __iter__(self) -> Iterator[SourceTransaction]:
        tracker, last = TransactionTracker(), None
        reader, begun = self._reader, tracker.feed
        for event in reader:
            type_code = event.type
            if type_code == EventType.FORMAT_DESCRIPTION and not event.flags & EventFlag.RELAY_LOG:
                self._new_format(event, tracker)
            current = self._current
            if (
                current is not None
                and type_code in QUIET_TYPES
                and type_code != EventType.TRANSACTION_PAYLOAD
            ):
                current.events.append(event)
                continue
            if type_code not in MEMBER_TYPES:
                self._follow_source(event)
                continue
            assert reader.format is not None
            opened = tracker.before_begin
            if self._times.is_over(event) and not tracker.in_transaction:
                self._say_outside("begins", event)
                return
            boundary = begun(event, reader.format)
            if boundary is not None and boundary.began is not None:
                self._begin(boundary.began)
            if self._current is not None:
                self._take(
                    event,
                    is_opening=opened and not tracker.before_begin and tracker.current is not None,
                )
            if boundary is not None and boundary.ended is not None and boundary.ended.complete:
                yield self._end(event)
                if self.until_reached:
                    return
            last = event
        self.unfinished = tracker.finish()
        self._say_outside("ends", last)

    def _say_outside(self, does: str, event: Event | None) -> None:
        """A replay that goes on behind its position has nothing to say of the log's times."""
        if not self._goes_on:
            self.outside = self._times.nothing(does, event)

    def _begin(self, transaction: Transaction) -> None:
        assert self.format is not None
        if not transaction.begin:
            raise InputError(
                "the log is entered in the middle of a transaction",
                code=Code.INSIDE_TRANSACTION,
                file=transaction.file,
                position=transaction.start,
                hint=(
                    "start at the beginning of a transaction; `binlag events` shows where they"
                    " begin"
                ),
            )
        self._current = SourceTransaction(transaction, self.format)

    def _take(self, event: Event, *, is_opening: bool) -> None:
        current = self._current
        assert current is not None
        if event.type in FRAME_TYPES:
            return
        if is_opening or (
            event.type == EventType.QUERY
            and current.opening is None
            and not current.events
            and is_begin(event)
        ):
            current.opening = event
        else:
            current.events.append(event)

    def _end(self, event: Event) -> SourceTransaction:
        ended, self._current = self._current, None
        assert ended is not None
        transaction = ended.transaction
        if (
            ended.kind in (TransactionKind.TRANSACTION, TransactionKind.ROLLED_BACK)
            and event.type == EventType.QUERY
            and ended.events
        ):
            ended.events.pop()  # COMMIT or ROLLBACK
        first = ended.events[0] if ended.events else event
        is_source_log = self._source_file == transaction.end_file
        ended.source_end = Position(
            self._source_file, transaction.end if is_source_log else event.log_pos
        )
        own = (
            transaction.start if transaction.end_file in ("", transaction.file) else first.position
        )
        ended.bytes = max(transaction.end - own, 0)
        identity = transaction.identity
        is_half = isinstance(identity, MariadbGtidEvent) and identity.is_half_alter
        in_time = self._times.takes(transaction.timestamp)
        ended.wanted = in_time and self._in_gtids(transaction) and not is_half
        self.until_reached = self._is_until(transaction)
        return ended

    def _follow_source(self, event: Event) -> None:
        """A relay log says in its rotate events which of the source's logs it goes on with; that it
        begins anew says nothing."""
        if (
            event.type == EventType.FORMAT_DESCRIPTION
            and event.position == len(MAGIC)
            and not event.flags & EventFlag.RELAY_LOG
        ):
            self._source_file = event.file
        elif (
            event.type == EventType.ROTATE
            and not event.flags & EventFlag.RELAY_LOG
            and self._source_file != event.file
        ):
            assert self._reader.format is not None
            self._source_file = parse(event, self._reader.format).file

    def _new_format(self, event: Event, tracker: TransactionTracker) -> None:
        fde, before = self._reader.format, self.format
        assert fde is not None
        self.format = Format(fde, event)
        if tracker.feed(event, fde) is not None:
            self._current = None
        current = self._current
        if current is None or before is None:
            return
        if not current.events:
            current.format = self.format
        elif replace(before.fde, created=0) != replace(fde, created=0):
            raise InputError(
                "a transaction goes on in a file of another format",
                code=Code.INSIDE_TRANSACTION,
                file=event.file,
                position=event.position,
            )

    # what is wanted

    def _is_until(self, transaction: Transaction) -> bool:
        if self._until is None:
            return False
        identity = transaction.identity
        if isinstance(identity, Gtid | MariadbGtidEvent):
            check_kind(self._until, identity)
        return transaction.gtid == str(self._until)

    def _in_gtids(self, transaction: Transaction) -> bool:
        include, exclude = self.options.include_gtids, self.options.exclude_gtids
        if include is not None and not in_set(include, transaction):
            return False
        return exclude is None or not in_set(exclude, transaction)


def in_set(gtids: AnyGtidSet, transaction: Transaction) -> bool:
    """Whether a GTID set names this transaction. One without a GTID is in no set."""
    identity = transaction.identity
    return isinstance(identity, Gtid | MariadbGtidEvent) and holds(gtids, identity)


def check_own_gtid(transaction: Transaction, *, is_mariadb: bool) -> None:
    """Raises UsageError for --gtid where the target cannot take this transaction's GTID, since the
    other kind of server gave it."""
    identity, names = transaction.identity, ("MySQL", "MariaDB")
    if transaction.gtid is not None and isinstance(identity, MariadbGtidEvent) != is_mariadb:
        raise UsageError(
            f"--gtid: {transaction.gtid} is a GTID of {names[not is_mariadb]}, "
            f"and the target is {names[is_mariadb]}",
            code=Code.OPTIONS_CLASH, hint="leave --gtid out",
        )  # fmt: skip


def _place_of(files: Sequence[str], start: Position | None) -> int:
    """Where among the files the one is that `start` names."""
    if start is None:
        return 0
    names = [log_name(file) for file in files]
    if start.file not in names:
        raise InputError(
            f"the replay stopped in {start.file}, which is not among the files given",
            code=Code.MISSING_FILES,
            file=start.file,
            position=start.offset,
            hint=(
                f"give {start.file} and the files after it, or another --replay-id for a new replay"
            ),
        )
    return names.index(start.file)
