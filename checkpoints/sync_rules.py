"""When a position is written, and when it is synced: the server's rules as one table.

Each object has a counter and a period: sync_relay_log for relay logs, sync_relay_log_info for what
the applier and the workers record, sync_master_info (today sync_source_info) for the receiver. A
flush is due when it is forced, or when the period is not 0 and the counter has reached it
(Rpl_info_file::do_flush_info, Rpl_info_table::do_flush_info, MYSQL_BIN_LOG::sync_binlog_file). What
a due flush does depends on where the object is kept:

| kept in | each flush | a due flush |
|---|---|---|
| file | writes | writes and fsyncs |
| file, master.info of 5.5 | nothing | writes and fsyncs |
| table | nothing | writes the row |

Nothing more happens to a table: that a row is durable is the storage engine's affair. On a
transactional one the position of a transaction is forced into that same transaction
(Xid_apply_log_event::do_apply_event, Slave_worker::commit_positions), so N does not matter there; a
non-transactional one gets it after the commit, unforced, every N or never with 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from checkpoints.errors import CheckpointError
from checkpoints.fields import FILES_IN, MYSQL, VERSIONS, column_of, product
from lookup.versions import MARIADB


class RecordStorage(StrEnum):
    """Where a record is kept."""

    FILE = "FILE"
    TABLE = "TABLE"
    NONTRANSACTIONAL_TABLE = "TABLE (non-transactional)"


class Subject(StrEnum):
    """What is written."""

    RELAY_LOG = "relay log"
    SOURCE_INFO = "source info"
    RELAY_LOG_INFO = "relay log info"
    WORKER_INFO = "worker info"


class Occasion(StrEnum):
    """Why a record is flushed."""

    EVENT = "event"
    """The receiver has queued an event."""
    COMMIT = "commit"
    """A transaction commits: XID, or a DDL statement that is atomic."""
    GROUP_END = "group end"
    """A group ends otherwise: a DDL statement that is not atomic, COMMIT as a statement, XA, a
    skipped transaction."""
    CHECKPOINT = "checkpoint"
    """The coordinator has moved its low-water mark (mta_checkpoint_routine)."""
    ROTATE = "rotate"
    """The source goes on in another log."""
    PURGE = "purge"
    """Relay logs that were applied are about to be deleted."""
    STOP = "stop"
    """STOP REPLICA, or a clean shutdown."""
    CHANGE = "change"
    """CHANGE REPLICATION SOURCE, RESET REPLICA, or the start that reads the record."""
    RECOVERY = "recovery"
    """relay_log_recovery has moved the positions."""
    OPEN = "open"
    """A new relay log has its head: magic, format description, previous GTIDs."""
    CLOSE = "close"
    """A relay log is left for the next one."""


OPTIONS: Final[Mapping[Subject, str]] = {
    Subject.RELAY_LOG: "sync_relay_log",
    Subject.SOURCE_INFO: "sync_master_info",
    Subject.RELAY_LOG_INFO: "sync_relay_log_info",
    Subject.WORKER_INFO: "sync_relay_log_info",
}
DEFAULT_PERIODS: Final[Mapping[str, int]] = {"5.5": 0} | dict.fromkeys(VERSIONS[1:], 10000)
DEFAULT_REPOSITORY: Final[Mapping[str, RecordStorage]] = dict.fromkeys(
    (*MYSQL[:3], MARIADB), RecordStorage.FILE
) | dict.fromkeys(MYSQL[3:], RecordStorage.TABLE)
_ALWAYS_FORCED = frozenset(
    {
        Occasion.CHECKPOINT,
        Occasion.ROTATE,
        Occasion.PURGE,
        Occasion.STOP,
        Occasion.CHANGE,
        Occasion.RECOVERY,
    }
)


@dataclass(frozen=True, slots=True)
class SyncRule:
    """How one subject is flushed in one place."""

    writes_each: bool
    """Every flush writes; if not, only a due one does."""
    syncs: bool
    """A due flush fsyncs what it wrote."""
    forced: frozenset[Occasion]
    """The occasions on which a flush is due whatever the counter says."""
    in_transaction: bool = False
    """The position of a commit is a part of the transaction that it speaks of."""


_FILE = SyncRule(writes_each=True, syncs=True, forced=_ALWAYS_FORCED)
_RULES: Final[Mapping[RecordStorage, SyncRule]] = {
    RecordStorage.FILE: _FILE,
    RecordStorage.TABLE: SyncRule(
        writes_each=False,
        syncs=False,
        forced=_ALWAYS_FORCED | {Occasion.COMMIT},
        in_transaction=True,
    ),
    RecordStorage.NONTRANSACTIONAL_TABLE: SyncRule(
        writes_each=False, syncs=False, forced=_ALWAYS_FORCED
    ),
}


def _relay_log(*forced: Occasion) -> SyncRule:
    return SyncRule(writes_each=True, syncs=True, forced=frozenset(forced))


_EXCEPTIONS: Final[Mapping[tuple[Subject, RecordStorage, str], SyncRule]] = {
    (Subject.SOURCE_INFO, RecordStorage.FILE, "5.5"): SyncRule(
        writes_each=False, syncs=True, forced=_ALWAYS_FORCED
    ),
    **{
        (Subject.RELAY_LOG, RecordStorage.FILE, version): _relay_log(Occasion.OPEN, Occasion.CLOSE)
        for version in (*MYSQL[:3], MARIADB)
    },
    **{
        (subject, RecordStorage.FILE, MARIADB): SyncRule(
            writes_each=True, syncs=True, forced=frozenset()
        )
        for subject in (Subject.SOURCE_INFO, Subject.RELAY_LOG_INFO)
    },
    **{
        (Subject.RELAY_LOG, RecordStorage.FILE, version): _relay_log(Occasion.OPEN)
        for version in MYSQL[3:]
    },
    **{
        (Subject.WORKER_INFO, kept, version): replace(
            rule, forced=rule.forced | {Occasion.GROUP_END}
        )
        for kept, rule in _RULES.items()
        for version in MYSQL[3:]
    },
}
"""5.5 counts before it writes master.info (rpl_mi.cc, flush_master_info). The head of a new relay
log is synced before its name goes into the index (MYSQL_BIN_LOG::open_binlog); the end of the old
one was synced by MYSQL_LOG::close up to 5.7 and is not by 8.0's IO_CACHE_ostream::close. A worker's
record of a group that ends without an XID is counted up to 5.7 and forced by 8.0 and later
(Slave_worker::slave_worker_ends_group, which calls commit_positions). MariaDB forces none of the
two files: each write counts, and the counter alone says when it is synced (flush_master_info,
Relay_log_info::flush, 10.11)."""


def rule_of(subject: Subject, kept: RecordStorage, server: str) -> SyncRule:
    """How a server version flushes a subject that is kept in this place. Raises CheckpointError for
    what the version does not have."""
    version = column_of(server)
    if kept is RecordStorage.FILE:
        if version not in FILES_IN and subject is not Subject.RELAY_LOG:
            raise CheckpointError(
                f"{product(server)} keeps {subject} in a table only",
                hint="files were taken away in 8.3: use TABLE",
            )
    elif subject is Subject.RELAY_LOG:
        raise CheckpointError("a relay log is a file", hint="use FILE")
    elif version in ("5.5", MARIADB):
        raise CheckpointError(
            f"{product(server)} keeps {subject} in a file only",
            hint="use FILE" if version == MARIADB else "tables came with 5.6: use FILE",
        )
    return _EXCEPTIONS.get((subject, kept, version), _RULES[kept])


@dataclass(frozen=True, slots=True)
class Flush:
    """What one flush did, or is to do."""

    writes: bool
    syncs: bool


class SyncCounter:
    """Counts the flushes of one object and says what each is to do. `period` may change at any
    time, as the option may.

    A period of 0 never syncs, 1 always does, N after every N flushes. Raises CheckpointError for
    one below 0.
    """

    def __init__(self, rule: SyncRule, period: int) -> None:
        if period < 0:
            raise CheckpointError(
                f"a period of {period} flushes", hint="give 0 (never), 1 (always) or N"
            )
        self.rule = rule
        self.period = period
        self.count = 0

    def flush(self, occasion: Occasion, times: int = 1) -> Flush:
        """Counts one flush, or several that are done at once. A forced one starts the count
        again."""
        due = occasion in self.rule.forced
        if not due and self.period:
            self.count += times
            due = self.count >= self.period
        if due:
            self.count = 0
        return Flush(writes=due or self.rule.writes_each, syncs=due and self.rule.syncs)


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """The three periods of a server, in flushes: 0 is never, 1 is always."""

    sync_relay_log: int = 10000
    sync_master_info: int = 10000
    sync_relay_log_info: int = 10000

    @classmethod
    def default(cls, server: str) -> SyncOptions:
        """A server's defaults."""
        period = DEFAULT_PERIODS[column_of(server)]
        return cls(period, period, period)

    def period(self, subject: Subject) -> int:
        """The one that rules an object."""
        return int(getattr(self, OPTIONS[subject]))

    def counter(self, subject: Subject, kept: RecordStorage, server: str) -> SyncCounter:
        """The counter of one object."""
        return SyncCounter(rule_of(subject, kept, server), self.period(subject))
