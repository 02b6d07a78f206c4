"""A server's worth of tables in memory: databases, tables by name, and transactions over them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from applier.errors import ReplicationError
from applier.tables.engine import Change, MemoryTable
from applier.tables.foreign_keys import ForeignKeys
from lookup.handler import Ref, Row, traits_of
from lookup.table import TableDefinition


@dataclass(slots=True)
class Database:
    """A database and its defaults for new tables; None: the server's own."""

    name: str
    charset: str | None = None
    collation: str | None = None


class Tables:
    """The tables of a replica in memory: `tables["db.t"]`, `in`, and iteration over them.

    Names are case-sensitive, as with lower_case_table_names=0. Changes to transactional tables since the last commit can be rolled
    back; those to tables without transactions stay, as in a server. Not thread-safe.
    """

    def __init__(self) -> None:
        self.databases: dict[str, Database] = {}
        self.display_widths = False
        """Dumps write integer types as 5.x and MariaDB do, with a display width."""
        self.foreign_keys = ForeignKeys(self.get)
        self._tables: dict[tuple[str, str], MemoryTable] = {}
        self._journal: list[Change] = []
        self._savepoints: dict[str, int] = {}

    def __iter__(self) -> Iterator[MemoryTable]:
        return iter(self._tables.values())

    def __len__(self) -> int:
        return len(self._tables)

    def __contains__(self, full_name: str) -> bool:
        return self._lookup(full_name) is not None

    def __getitem__(self, full_name: str) -> MemoryTable:
        """The table named "database.table". Raises KeyError naming the tables that are there."""
        table = self._lookup(full_name)
        if table is None:
            known = ", ".join(sorted(table.definition.full_name for table in self)) or "none"
            raise KeyError(f"no table {full_name!r}; tables: {known}")
        return table

    def get(self, database: str, name: str) -> MemoryTable | None:
        """The table of this name, None when there is none."""
        return self._tables.get((database, name))

    def create(self, definition: TableDefinition) -> MemoryTable:
        """A new empty table; one of the same name is replaced. Its database comes into being with it."""
        self._forget(definition.database, definition.name)
        self.databases.setdefault(definition.database, Database(definition.database))
        table = MemoryTable(definition)
        self._adopt(table)
        return table

    def drop(self, database: str, name: str) -> None:
        """Raises KeyError when the table is not there."""
        if (database, name) not in self._tables:
            raise KeyError(f"{database}.{name}")
        self._forget(database, name)
        self._tables.pop((database, name)).replaced = True

    def drop_database(self, name: str) -> None:
        """Raises KeyError when the database is not there."""
        del self.databases[name]
        for key in [key for key in self._tables if key[0] == name]:
            self.drop(*key)

    def rename(self, table: MemoryTable, database: str, name: str) -> None:
        """Moves a table to another name; its rows and views come along."""
        old = table.definition
        self._forget(old.database, old.name)
        self._tables.pop((old.database, old.name)).replaced = True
        table.definition = dataclasses.replace(old, database=database, name=name)
        self._adopt(table)

    def replace(self, old: MemoryTable, new: MemoryTable) -> None:
        """Puts `new` in the place of `old`, under the name that its own definition has."""
        self.drop(old.definition.database, old.definition.name)
        self._forget(new.definition.database, new.definition.name)
        self._adopt(new)

    def copy(self) -> Tables:
        """An independent set with the same rows; cheap next to loading them again."""
        twin = Tables()
        twin.display_widths = self.display_widths
        twin.databases = {name: Database(name, base.charset, base.collation) for name, base in self.databases.items()}
        for table in self:
            twin._adopt(table.copy())
        return twin

    def dump(self, directory: str | Path) -> list[Path]:
        """Writes each table to DIRECTORY/<db>.<table>.tsv; returns the files written."""
        from applier.tables.dump import dump_tables

        return dump_tables(self, directory, display_widths=self.display_widths)

    # transactions

    @property
    def changes(self) -> int:
        """Row changes of transactional tables since the last commit."""
        return len(self._journal)

    @property
    def journal(self) -> list[Change]:
        """These changes, oldest first."""
        return self._journal.copy()

    def commit(self) -> None:
        """What was changed since the last commit stays; its savepoints are gone."""
        del self._journal[:]
        if self._savepoints:
            self._savepoints.clear()

    def rollback(self) -> None:
        """What was changed since the last commit is taken back."""
        self.rollback_to_mark(0)
        self._savepoints.clear()

    def rollback_to_mark(self, mark: int) -> None:
        """Takes back the changes made since `changes` had the value `mark`."""
        self._take_back(self._journal[mark:])
        del self._journal[mark:]

    def savepoint(self, name: str) -> None:
        """SAVEPOINT; one of the same name is forgotten."""
        self._savepoints[name.lower()] = len(self._journal)

    def rollback_to(self, name: str) -> None:
        """Raises KeyError when there is no such savepoint."""
        self.rollback_to_mark(self._savepoints[name.lower()])

    def detach(self) -> list[Change]:
        """Hands out the changes of the open transaction (XA PREPARE); they stay in the tables, commit and rollback skip them."""
        changes = self._journal.copy()
        self.commit()
        return changes

    def roll_back_detached(self, changes: list[Change]) -> None:
        """Takes back a detached transaction (XA ROLLBACK).

        Raises ReplicationError 1205 when another transaction changed one of its rows, which the locks of a server would not
        let happen; nothing is taken back then.
        """
        left: dict[tuple[MemoryTable, Ref], Row | None] = {}
        for table, ref, _, new_ref, row in changes:
            if ref is not None:
                left[table, ref] = None
            if new_ref is not None:
                left[table, new_ref] = row
        for (table, ref), row in left.items():
            if table.replaced or table.get(ref) != row:
                raise ReplicationError(
                    1205,
                    f"Lock wait timeout exceeded: another changed rows of a prepared XA transaction in {table.definition.full_name}",
                    table=table.definition.full_name,
                    hint="the log is damaged or has a gap: start again from a fresh dump",
                )
        self._take_back(changes)

    def _take_back(self, changes: list[Change]) -> None:
        for change in reversed(changes):
            change[0].undo(change)

    def _lookup(self, full_name: str) -> MemoryTable | None:
        direct = (key for key in self._tables if f"{key[0]}.{key[1]}" == full_name)
        found = next(direct, None)
        return None if found is None else self._tables[found]

    def _adopt(self, table: MemoryTable) -> None:
        definition = table.definition
        table.replaced = False
        self._tables[definition.database, definition.name] = table
        if traits_of(definition).transactional:
            table.journal = self._journal
        self.foreign_keys.declare(definition)
        names = [(key.referenced_database, key.referenced_table) for key in definition.foreign_keys]
        for name in [(definition.database, definition.name), *names]:
            related = self._tables.get(name)
            if related is not None:
                related.foreign_keys = self.foreign_keys if self.foreign_keys.concerns(related.definition) else None

    def _forget(self, database: str, name: str) -> None:
        old = self._tables.get((database, name))
        if old is not None:
            old.replaced = True
            self.foreign_keys.forget(old.definition)
