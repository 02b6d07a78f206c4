"""What a replica asks of its storage engine: tables, info tables and executed GTIDs that come back
after a crash.

The replica changes `tables` in memory and says at each commit what changed; a storage makes that
durable in its own way. `MemoryStorage` is the simplest one: it outlives the replica's process as it
is, so that every commit is durable at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from applier.tables.catalog import Tables
from applier.tables.engine import Change
from checkpoints.gtid import GtidSet
from checkpoints.table_store import MemoryTableStore, TableStore
from lookup.handler import Ref, Row


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row of one table ("database.table"): where it was and what it held, before and after.
    None: there was or is no row."""

    table: str
    ref_before: Ref | None
    before: Row | None
    ref_after: Ref | None
    after: Row | None

    def redo(self, tables: Tables) -> None:
        """Makes the change again in tables that are in the state before it."""
        table = tables[self.table]
        table.redo((table, self.ref_before, self.before, self.ref_after, self.after))


@dataclass(frozen=True, slots=True)
class DdlGroup:
    """A statement that changes tables themselves (DDL): the relay log's events of its group, to be
    executed again.

    `format` is the format description event that governs them.
    """

    format: bytes
    events: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """What one transaction leaves. Info rows that were written since `begin` belong to it as
    well."""

    gtid: str | None
    changes: tuple[RowChange, ...] = ()
    statements: tuple[DdlGroup, ...] = ()
    prepares: str | None = None
    """The XA transaction that this one prepares: `changes` are its rows, until it ends."""
    ends: str | None = None
    """The prepared XA transaction that this one commits or rolls back."""


Prepared = dict[str, tuple[RowChange, ...]]
"""The prepared XA transactions of a storage: identifier as of `applier.binlog.xa.plain_xid` ->
their rows, which are in the tables."""


class Storage(Protocol):
    """Durable tables. Between `begin` and `commit` or `rollback` a transaction is open; there is
    never more than one."""

    @property
    def tables(self) -> Tables:
        """What the applier changes; after `recover` exactly what is durable."""
        ...

    @property
    def info(self) -> TableStore:
        """mysql.slave_relay_log_info and its like. A write outside of a transaction commits by
        itself."""
        ...

    @property
    def executed_gtids(self) -> GtidSet:
        """gtid_executed, as it is durable."""

    @property
    def prepared(self) -> Prepared:
        """XA RECOVER: what was prepared and has not ended."""
        ...

    def recover(self) -> None:
        """Server start: what was committed is there, what was open is not. Changes of
        non-transactional tables that survived are."""
        ...

    def begin(self) -> None:
        """Opens a transaction, over tables and info tables."""

    def write_through(self, changes: tuple[RowChange, ...]) -> None:
        """Rows of non-transactional tables have changed, inside or outside of a transaction;
        nothing takes them back."""
        ...

    def commit(self, commit: Commit) -> None:
        """Returns when the transaction is as durable as the options promise. The tables in memory
        hold it already."""
        ...

    def rollback(self) -> None:
        """The transaction is given up; the tables in memory have taken its rows back already."""
        ...


class MemoryStorage:
    """Keeps everything in memory; give the same object to the next replica. `info_transactional`
    False: info tables in MyISAM.

    Implements `Storage`.
    """

    def __init__(
        self,
        tables: Tables,
        *,
        info_transactional: bool = True,
        executed_gtids: GtidSet | None = None,
        prepared: Prepared | None = None,
    ) -> None:
        self.tables = tables
        self.prepared: Prepared = dict(prepared or {})
        self.info = MemoryTableStore(transactional=info_transactional)
        self.executed_gtids = executed_gtids or GtidSet()

    def recover(self) -> None:
        self.tables.rollback()
        self.info.rollback()

    def begin(self) -> None:
        self.info.begin()

    def write_through(self, changes: tuple[RowChange, ...]) -> None:
        """Nothing to do: the tables are the storage."""

    def commit(self, commit: Commit) -> None:
        self.tables.commit()
        self.info.commit()
        if commit.gtid is not None:
            self.executed_gtids = self.executed_gtids.union(GtidSet(commit.gtid))
        note_prepared(self.prepared, commit)

    def rollback(self) -> None:
        self.tables.rollback()
        self.info.rollback()


def note_prepared(prepared: Prepared, commit: Commit) -> None:
    """What a commit makes of the prepared XA transactions."""
    if commit.prepares is not None:
        prepared[commit.prepares] = commit.changes
    if commit.ends is not None:
        prepared.pop(commit.ends, None)


def row_changes(journal: list[Change]) -> tuple[RowChange, ...]:
    """The journal of a transaction as changes that outlive the tables' objects."""
    return tuple(RowChange(table.definition.full_name, *rest) for table, *rest in journal)
