"""A storage engine on a disk that can crash: what a commit makes durable, and what a restart finds.

Transactional tables live in memory and in a redo log, as InnoDB's do. With a binary log a commit
has two phases (MYSQL_BIN_LOG::ordered_commit): changes are prepared in the redo log, the binary log
takes the transaction, and a mark in the redo log says that it is committed. The mark is not waited
for: a restart commits a prepared transaction if the binary log has it and rolls it back if not
(ha_recover).

| option | at a commit |
|---|---|
| innodb_flush_log_at_trx_commit=1 | the redo log is written and synced before the binary log |
| 2 | written; synced once a second |
| 0 | neither; written and synced once a second |
| sync_binlog=N | the binary log is always written, and synced every N transactions; 0: never |

A second is a number of commits here, so that runs are the same each time. Non-transactional tables
are files, as MyISAM's are: each change is written at once and never synced, and no rollback reaches
it. The binary log has of each transaction only what recovery asks for. There is no checkpoint: a
restart redoes the log from the beginning, on the tables as they were at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from applier.binlog.event_bytes import event_of
from applier.binlog.events import parse
from applier.binlog.header import HEADER_LENGTH, EventType, parse_format_description
from applier.crashtest.records import Parsed, RecordFile
from applier.replica.storage import Commit, DdlGroup, RowChange, note_prepared
from applier.replica.storage import Prepared as XaPrepared
from applier.server_versions import asked_rules
from applier.tables.catalog import Tables
from applier.tables.session import StatementApplier
from checkpoints.disk import Disk
from checkpoints.gtid import GtidSet
from checkpoints.table_store import Key, MemoryTableStore, Row

REDO_LOG, BINARY_LOG, INFO_DATA, DATA_SUFFIX = (
    "ib_logfile0",
    "binlog.000001",
    "slave_info.MYD",
    ".MYD",
)
InfoWrite = tuple[str, dict[str, Any], dict[str, Any] | None]
"""Table, key, and the row that it gets; None: it is deleted."""


@dataclass(frozen=True, slots=True)
class Durability:
    """The options of the server that say when a commit is durable."""

    flush_log_at_trx_commit: int = 1
    sync_binlog: int = 1
    log_bin: bool = True
    """The replica writes a binary log of its own (log_bin and log_replica_updates)."""
    commits_per_second: int = 8


@dataclass(frozen=True, slots=True)
class Prepared:
    """A transaction in the redo log. `number` is its XID; 0: it needs no binary log and is
    committed as soon as it is there."""

    number: int
    sequence: int
    work: Hashable
    commit: Commit
    info: tuple[InfoWrite, ...]


@dataclass(frozen=True, slots=True)
class Decided:
    """The mark behind a transaction with two phases."""

    number: int
    committed: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """Changes of non-transactional tables that were written at once: the `part`-th of their
    transaction."""

    sequence: int
    work: Hashable
    part: int
    changes: tuple[RowChange, ...]


@dataclass(frozen=True, slots=True)
class _Redone:
    """What redoing a log leaves."""

    tables: Tables
    ledger: tuple[Hashable, ...]
    history: int
    info: MemoryTableStore
    prepared: XaPrepared


@dataclass
class RecoveryMemory:
    """What recoveries have worked out before, by the bytes it was worked out from."""

    parsed: Parsed = field(default_factory=Parsed)
    redone: dict[tuple[int, ...], _Redone] = field(default_factory=dict)
    """Records in order, by their identities -> what they leave when they are redone. `parsed` makes
    the same bytes the same record."""
    executed: dict[tuple[str, ...], GtidSet] = field(default_factory=dict)
    histories: dict[tuple[int, Hashable, Hashable], int] = field(default_factory=dict)
    """A history, a line of the ledger and what it changed -> the history that they make."""


def is_record_file(name: str) -> bool:
    """Whether a file is one of records, of which a start cuts off what is not whole."""
    return name in (REDO_LOG, BINARY_LOG) or name.endswith(DATA_SUFFIX)


class DurableStorage:
    """Implements applier.replica.storage.Storage. `base` are the tables at the start, which are
    never changed; `work` names what is being applied, for the ledger."""

    def __init__(
        self,
        disk: Disk,
        base: Tables,
        durability: Durability,
        *,
        version: str,
        info_transactional: bool = True,
        work: Callable[[], Hashable] = lambda: None,
        known: RecoveryMemory | None = None,
    ) -> None:
        """`known` is shared by storages on disks with the same beginnings: it only saves reading
        and redoing the same again."""
        self._disk = disk
        self._base = base
        self._durability = durability
        self._version = version
        self._work = work
        self._known = known or RecoveryMemory()
        self.info = _Info(self, transactional=info_transactional)
        self.tables = base
        self.executed_gtids = GtidSet()
        self.prepared: XaPrepared = {}
        self.ledger: list[Hashable] = []
        """What has been applied, in order, as often as it has: transactions, and parts of those on
        non-transactional tables."""
        self.history = 0
        """The ledger and each change it stands for, in order, as one number: of storages that share
        `known`, those with the same one hold the same tables. The ledger alone does not say it: of
        a transaction that was cut off, a part may have been executed."""

    # a start

    def recover(self) -> None:
        """Server start. What is not whole at the end of a file is cut off, as a server does with
        its logs."""
        self._redo = self._file(REDO_LOG)
        self._binary = self._file(BINARY_LOG) if self._durability.log_bin else None
        names = [
            name for name in self._disk.names() if name.endswith(DATA_SUFFIX) and name != INFO_DATA
        ]
        self._data = {name: self._file(name) for name in names}
        self._decide_prepared()
        self._redo.sync()
        self._commits = self._since_sync = 0
        self._part: tuple[Hashable, int] = (None, 0)
        self._open: list[InfoWrite] | None = None
        self._redo_all()

    def _file(self, name: str) -> RecordFile:
        return RecordFile(self._disk, name, self._known.parsed)

    def _decide_prepared(self) -> None:
        logged = {number for number, _ in self._binary.records} if self._binary else set()
        decided = {
            record.number: record.committed
            for record in self._redo.records
            if isinstance(record, Decided)
        }
        prepared = [record for record in self._redo.records if isinstance(record, Prepared)]
        for record in prepared:
            if record.number and record.number not in decided:
                decided[record.number] = record.number in logged
                self._redo.append(Decided(record.number, decided[record.number]))
        self._committed = [record for record in prepared if decided.get(record.number, True)]
        self._number = max([record.number for record in prepared] + list(logged), default=0)
        pieces = [piece for file in self._data.values() for piece in file.records]
        self._sequence = max([record.sequence for record in [*prepared, *pieces]], default=0)

    def _redo_all(self) -> None:
        """Goes on from the longest beginning of the log that was redone before."""
        pieces = [piece for file in self._data.values() for piece in file.records]
        records = sorted([*self._committed, *pieces], key=lambda record: record.sequence)
        chain, redone = tuple(map(id, records)), self._known.redone
        done = len(chain)
        while done and chain[:done] not in redone:
            done -= 1
        found = redone.get(chain[:done]) or _Redone(
            self._base, (), 0, MemoryTableStore(transactional=self.info.transactional), {}
        )
        self.tables, self.ledger, self.history = (
            found.tables.copy(),
            list(found.ledger),
            found.history,
        )
        self.prepared = dict(found.prepared)
        self.info.take_over(found.info)
        for record in records[done:]:
            self._redo_one(record)
        if chain not in redone:
            redone[chain] = _Redone(
                self.tables.copy(),
                tuple(self.ledger),
                self.history,
                self.info.copy(),
                dict(self.prepared),
            )
        gtids = (
            [gtid for _, gtid in self._binary.records]
            if self._binary
            else [record.commit.gtid for record in self._committed]
        )
        own = tuple(gtid for gtid in gtids if gtid is not None)
        executed = self._known.executed.get(own)
        if executed is None:
            executed = self._known.executed[own] = GtidSet(",".join(own))
        self.executed_gtids = executed

    def _redo_one(self, record: Prepared | Piece) -> None:
        if isinstance(record, Piece):
            redo_changes(self.tables, record.changes)
            self._enter((record.work, record.part), record.changes)
        else:
            for statement in record.commit.statements:
                redo_statement(self.tables, statement, self._version)
            redo_changes(self.tables, record.commit.changes)
            self.info.redo(record.info)
            note_prepared(self.prepared, record.commit)
            self._note(record.work, record.commit)
        self.tables.commit()

    def _note(self, work: Hashable, commit: Commit) -> None:
        if commit.changes or commit.statements:
            self._enter(work, (commit.changes, commit.statements))

    def _enter(self, line: Hashable, changes: Hashable) -> None:
        """A line of the ledger."""
        self.ledger.append(line)
        histories = self._known.histories
        self.history = histories.setdefault((self.history, line, changes), len(histories) + 1)

    def _with(self, gtid: str | None) -> GtidSet:
        return self.executed_gtids if gtid is None else self.executed_gtids.union(GtidSet(gtid))

    # a transaction

    def begin(self) -> None:
        self._open = []

    def write_through(self, changes: tuple[RowChange, ...]) -> None:
        work = self._work()
        for table in dict.fromkeys(change.table for change in changes):
            self._part = work, self._part[1] + 1 if self._part[0] == work else 1
            self._sequence += 1
            name = table + DATA_SUFFIX
            if name not in self._data:
                self._data[name] = self._file(name)
            own = tuple(change for change in changes if change.table == table)
            self._data[name].append(Piece(self._sequence, work, self._part[1], own))
            self._data[name].write()
            self._enter(self._part, own)

    def commit(self, commit: Commit) -> None:
        info, self._open = tuple(self._open or ()), None
        self.tables.commit()
        work = self._work()
        logged = bool(
            self._binary
            and (
                commit.changes
                or commit.statements
                or self._part[0] == work
                or self._is_new(commit.gtid)
            )
        )
        self._store(work, commit, info, logged=logged)
        self.executed_gtids = self._with(commit.gtid)
        note_prepared(self.prepared, commit)
        self._note(work, commit)
        self._part = None, 0

    def rollback(self) -> None:
        self._open = None
        self.tables.rollback()
        self.info.take_back()

    def write_info(self, write: InfoWrite) -> None:
        """A row of an info table: a part of the open transaction, or one of its own."""
        if not self.info.transactional:
            self.info.data(self._disk).append(write)
            self.info.data(self._disk).write()
        elif self._open is not None:
            self._open.append(write)
        else:
            self._store(None, Commit(None), (write,), logged=False)

    def _is_new(self, gtid: str | None) -> bool:
        return gtid is not None and not GtidSet(gtid).issubset(self.executed_gtids)

    def _store(
        self, work: Hashable, commit: Commit, info: tuple[InfoWrite, ...], *, logged: bool
    ) -> None:
        self._sequence += 1
        self._number += logged
        number = self._number if logged else 0
        self._redo.append(Prepared(number, self._sequence, work, commit, info))
        self._flush_redo()
        if self._binary and logged:
            self._binary.append((number, commit.gtid))
            self._sync_binary(self._binary)
            self._redo.append(Decided(number, True))
        self.info.keep()
        self._commits += 1
        if self._commits >= self._durability.commits_per_second:
            self._commits = 0
            self._redo.sync()

    def _flush_redo(self) -> None:
        if self._durability.flush_log_at_trx_commit == 1:
            self._redo.sync()
        elif self._durability.flush_log_at_trx_commit == 2:
            self._redo.write()

    def _sync_binary(self, binary: RecordFile) -> None:
        binary.write()
        self._since_sync += 1
        if self._durability.sync_binlog and self._since_sync >= self._durability.sync_binlog:
            self._since_sync = 0
            binary.sync()


class _Info:
    """The info tables: rows in memory, each write passed on to the storage."""

    def __init__(self, storage: DurableStorage, *, transactional: bool) -> None:
        self._storage = storage
        self.transactional = transactional
        self.clear()

    def clear(self) -> None:
        self._rows = MemoryTableStore(transactional=self.transactional)
        self._rows.begin()
        self._file: RecordFile | None = None
        if not self.transactional:
            self.redo(self.data(self._storage._disk).records)

    def data(self, disk: Disk) -> RecordFile:
        """The file of non-transactional info tables."""
        if self._file is None:
            self._file = RecordFile(disk, INFO_DATA)
        return self._file

    def copy(self) -> MemoryTableStore:
        return self._rows.copy()

    def take_over(self, rows: MemoryTableStore) -> None:
        """Rows that were worked out before; those of a non-transactional table are read from their
        file in any case."""
        self.clear()
        if self.transactional:
            self._rows = rows.copy()
            self._rows.begin()

    def rows(self, table: str) -> list[Row]:
        return self._rows.rows(table)

    def write(self, table: str, key: Key, row: Row) -> None:
        self._rows.write(table, key, row)
        self._storage.write_info((table, dict(key), dict(row)))

    def delete(self, table: str, key: Key) -> None:
        self._rows.delete(table, key)
        self._storage.write_info((table, dict(key), None))

    def redo(self, writes: Iterable[InfoWrite]) -> None:
        for table, key, row in writes:
            if row is None:
                self._rows.delete(table, key)
            else:
                self._rows.write(table, key, row)
        self.keep()

    def keep(self) -> None:
        """What was written so far is not taken back any more."""
        self._rows.begin()

    def take_back(self) -> None:
        self._rows.rollback()
        self._rows.begin()


def redo_changes(tables: Tables, changes: Iterable[RowChange]) -> None:
    """Carries out changes again, in their order."""
    for change in changes:
        change.redo(tables)


def redo_statement(tables: Tables, statement: DdlGroup, version: str) -> None:
    """Executes a DDL statement again."""
    description = parse_format_description(statement.format[HEADER_LENGTH:])
    applier = StatementApplier(tables, asked_rules(version).name)
    for data in statement.events:
        event = event_of(data, file="", position=0, checksum_length=description.checksum_length)
        parsed = parse(event, description)
        if event.type == EventType.EXECUTE_LOAD_QUERY:
            applier.load(event, parsed)
        elif event.type == EventType.QUERY:
            applier.execute(event, parsed)
        else:
            applier.prepare(parsed)
