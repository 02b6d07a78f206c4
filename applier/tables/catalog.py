"""A server's worth of tables in memory: databases, tables by name, and transactions over them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from applier.arguments import checked
from applier.binlog.selection.name_case import lower_case
from applier.errors import ReplicationError
from applier.tables.engine import Change, MemoryTable
from applier.tables.expressions.operands import PLAIN, dialect_of, unsupported
from applier.tables.foreign_keys import ForeignKeys, renamed_keys
from applier.tables.merge_tables import is_merge, moved_union
from applier.tables.special_tables import BlackholeTable, SequenceTable
from applier.tables.triggers import Triggers
from applier.tables.union_table import UnionTable
from lookup.handler import Ref, Row, traits_of
from lookup.table import TableDefinition

MOST_SHOWN = 15
"""Tables that `repr` shows."""


_MADE_UP_SCHEMAS = frozenset({"information_schema", "performance_schema", "sys"})


@dataclass(slots=True)
class Database:
    """A database and its defaults for new tables; None: the server's own."""

    name: str
    charset: str | None = None
    collation: str | None = None


def table_of(definition: TableDefinition) -> MemoryTable:
    """An empty table that stands in no set yet."""
    if is_merge(definition):
        return UnionTable(definition)
    if "SEQUENCE" in definition.options:
        return SequenceTable(definition)
    return (MemoryTable if traits_of(definition).stores_rows else BlackholeTable)(definition)


class Tables:
    """The tables of a replica in memory: `tables["db.t"]`, `in`, and iteration over them.

    Names are case-sensitive; with `lower_case_names` (lower_case_table_names=1) the statements that
    change these tables read them in lower case. Within `session` the temporary tables of one
    session hide those of the same name; iteration, `in` and dumps know none. Changes to
    transactional tables since the last commit can be rolled back; those to tables without
    transactions stay, as in a server. Not thread-safe.
    """

    def __init__(self, *, lower_case_names: bool = False) -> None:
        self.lower_case_names = lower_case_names
        self.databases: dict[str, Database] = {}
        self.dialect = PLAIN
        self.foreign_keys = ForeignKeys(self.base)
        self.triggers = Triggers()
        self.views: set[tuple[str, str]] = set()
        self._tables: dict[tuple[str, str], MemoryTable] = {}
        self._temporaries: dict[tuple[int, int], dict[tuple[str, str], MemoryTable]] = {}
        """Server id and thread -> its temporary tables."""
        self._own: dict[tuple[str, str], MemoryTable] = {}
        """Those of the session at hand."""
        self._journal: list[Change] = []
        self._savepoints: dict[str, int] = {}

    def follow(self, server: str) -> None:
        """From now on values that no statement computes, and dumps, are those of such a server.
        `server`: the name of a row of `lookup.versions.RULES`."""
        self.dialect = self.foreign_keys.dialect = dialect_of(server)

    def __iter__(self) -> Iterator[MemoryTable]:
        return iter(self._tables.values())

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        """One screen: each table with its rows and its primary key."""
        tables = sorted(self, key=lambda table: table.definition.full_name)
        lines = [
            f"Tables: {len(tables):,}, with {sum(map(len, tables)):,} rows",
            *(f"  {table!r}" for table in tables[:MOST_SHOWN]),
        ]
        more = len(tables) - MOST_SHOWN
        return "\n".join(lines + [f"  … and {more:,} more"] * (more > 0))

    def __contains__(self, full_name: str) -> bool:
        return self._lookup(full_name) is not None

    def __getitem__(self, full_name: str) -> MemoryTable:
        """The table named "database.table". Raises KeyError naming the tables that are there."""
        table = self._lookup(full_name)
        if table is None:
            known = ", ".join(sorted(table.definition.full_name for table in self)) or "none"
            raise KeyError(f"no table {full_name!r}; tables: {known}")
        return table

    def name_here(self, name: str) -> str:
        """The name of a database or table of a log as it is kept here."""
        return lower_case(name) if self.lower_case_names else name

    def get(self, database: str, name: str) -> MemoryTable | None:
        """The table that this name means to the session at hand, None when there is none."""
        own = self._own.get((database, name))
        return self._tables.get((database, name)) if own is None else own

    def base(self, database: str, name: str) -> MemoryTable | None:
        """The table of this name that is not temporary, None when there is none."""
        return self._tables.get((database, name))

    def same_kind(self, definition: TableDefinition) -> MemoryTable | None:
        """The table whose place a new one of this definition would take: a temporary one hides
        others, and is not in their way."""
        kind = self.temporary if definition.temporary else self.base
        return kind(definition.database, definition.name)

    def temporary(self, database: str, name: str) -> MemoryTable | None:
        """The temporary table of this name in the session at hand, None when there is none."""
        return self._own.get((database, name))

    def drop_views(self, names: Iterable[tuple[str, str]], *, number: int) -> None:
        """`number`: with which error the statement ended on the source. Without one, an unknown
        view stems from before the log.

        The views that are there go also where another one is missing (5.7, MariaDB). Raises
        ReplicationError with that number.
        """
        missing = sorted(set(names) - self.views)
        self.views -= set(names)
        if missing and number:
            name = ".".join(missing[0])
            raise ReplicationError(number, f"Unknown VIEW: '{name}'", table=name)

    def refuse_not_a_table(self, database: str, name: str) -> None:
        """Raises ReplicationError 1235 where the name is a view's or of a table that the server
        makes up."""
        if database.lower() in _MADE_UP_SCHEMAS:
            raise unsupported(f"a statement about {database}.{name}")
        if (database, name) in self.views:
            raise ReplicationError(
                1235,
                f"`{database}`.`{name}` is a view, and views are not evaluated in memory",
                table=f"{database}.{name}",
                hint="skip the statement with --skip-errors 1235, or replay into a test DB",
            )

    def named(self, database: str, name: str) -> MemoryTable:
        """The table that a statement names. Raises ReplicationError 1146 where there is none, 1235
        for a view and for tables that the server makes up."""
        table = self.get(database, name)
        if table is None:
            self.refuse_not_a_table(database, name)
            raise self.missing(database, name)
        return table

    def missing(self, database: str, name: str) -> ReplicationError:
        """1146 for a table that is not there; one whose name differs in case only is pointed
        out."""
        error = no_such_table(database, name)
        looked_for = lower_case(f"{database}.{name}")
        for table in self:
            if lower_case(table.definition.full_name) == looked_for:
                error.hint = (
                    f"{table.definition.full_name} is there: a source on Windows or macOS, whose"
                    " names have no case; give --lower-case-table-names 1"
                )
        return error

    @contextmanager
    def session(self, server_id: int, thread_id: int) -> Iterator[None]:
        """Names mean what they mean to this session of the source (`pseudo_thread_id`), which has
        temporary tables of its own."""
        identity, outside = (server_id, thread_id), self._own
        self._own = self._temporaries.get(identity, {})
        try:
            yield
        finally:
            if self._own:
                self._temporaries[identity] = self._own
            else:
                self._temporaries.pop(identity, None)
            self._own = outside

    def end_sessions(self) -> None:
        """The source was started anew: the temporary tables of its sessions are gone."""
        self._temporaries.clear()

    def create(self, definition: TableDefinition) -> MemoryTable:
        """A new empty table; one of the same name is replaced. Its database comes into being with
        it."""
        table = table_of(definition)
        if not definition.temporary:
            self._forget(definition.database, definition.name)
            self.databases.setdefault(definition.database, Database(definition.database))
        self._adopt(table)
        return table

    def drop(self, database: str, name: str) -> None:
        """Drops what the name means to the session at hand. Raises KeyError when nothing is
        there."""
        table = self.get(database, name)
        if table is None:
            raise KeyError(f"{database}.{name}")
        self.drop_table(table)

    def drop_table(self, table: MemoryTable) -> None:
        """Drops a table of this set, temporary or not."""
        definition = table.definition
        if not definition.temporary:
            self.triggers.forget(definition.database, definition.name)
        self._take_out(definition)

    def _take_out(self, definition: TableDefinition) -> None:
        """The table of this definition; what else knows it by its name stays."""
        name = definition.database, definition.name
        if definition.temporary:
            self._own.pop(name).replaced = True
            return
        self._forget(*name)
        del self._tables[name]

    def drop_database(self, name: str) -> None:
        """Raises KeyError when the database is not there."""
        del self.databases[name]
        self.views = {view for view in self.views if view[0] != name}
        for table in [table for table in self if table.definition.database == name]:
            self.drop_table(table)

    def rename(self, table: MemoryTable, database: str, name: str) -> None:
        """Moves a table to another name; its rows and views come along, foreign keys and triggers
        follow."""
        before = table.definition
        self._take_out(before)
        table.definition = dataclasses.replace(before, database=database, name=name)
        self._take_place(before, table, {})

    def replace(
        self,
        old: MemoryTable,
        new: MemoryTable,
        columns: Mapping[str, str] | None = None,
        *,
        children_follow: bool = True,
    ) -> None:
        """Puts `new` in the place of `old`, under the name that its own definition has.

        `columns`: old name in lower case -> new name, of those that have another; foreign keys that
        point there follow where `children_follow`.
        """
        before = old.definition
        self._take_out(before)
        self._take_place(before, new, columns or {}, children_follow=children_follow)

    def _take_place(
        self,
        before: TableDefinition,
        table: MemoryTable,
        columns: Mapping[str, str],
        *,
        children_follow: bool = True,
    ) -> None:
        """`table` is what stood under the name `before` has; foreign keys that its old self had or
        that pointed to it are its own now."""
        old = before.database, before.name
        table.definition = moved_union(renamed_keys(table.definition, before.name), before.database)
        new = table.definition.database, table.definition.name
        self._adopt(table)
        if not before.temporary and (new != old or columns):
            self.triggers.rename(old, new)
            if children_follow:
                self.foreign_keys.rename_parent(old, new, columns)
            self._hook(new)

    def copy(self) -> Tables:
        """An independent set with the same rows; cheap next to loading them again."""
        twin = Tables(lower_case_names=self.lower_case_names)
        twin.dialect = twin.foreign_keys.dialect = self.dialect
        twin.triggers = self.triggers.copy()
        twin.views = self.views.copy()
        twin.databases = {
            name: Database(name, base.charset, base.collation)
            for name, base in self.databases.items()
        }
        for table in self:
            twin._adopt(table.copy())
        return twin

    @checked()
    def dump(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Writes each table to DIRECTORY/<db>.<table>.tsv; returns the files written."""
        from applier.tables.dump import dump_tables

        return dump_tables(self, directory, self.dialect)

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
        """Hands out the changes of the open transaction (XA PREPARE); they stay in the tables,
        commit and rollback skip them."""
        changes = self._journal.copy()
        self.commit()
        return changes

    def roll_back_detached(self, changes: list[Change]) -> None:
        """Takes back a detached transaction (XA ROLLBACK).

        Raises ReplicationError 1205 when another transaction changed one of its rows, which the
        locks of a server would not let happen; nothing is taken back then.
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
                    "Lock wait timeout exceeded: another changed rows of a prepared XA transaction"
                    f" in {table.definition.full_name}",
                    table=table.definition.full_name,
                    hint="the log is damaged or has a gap: start again from a fresh dump",
                )
        self._take_back(changes)

    def _take_back(self, changes: list[Change]) -> None:
        for change in reversed(changes):
            change[0].undo(change)

    def _lookup(self, full_name: str) -> MemoryTable | None:
        direct = (
            key for key, table in self._tables.items() if table.definition.full_name == full_name
        )
        found = next(direct, None)
        return None if found is None else self._tables[found]

    def _adopt(self, table: MemoryTable) -> None:
        definition = table.definition
        name = definition.database, definition.name
        table.replaced = False
        if isinstance(table, UnionTable):
            table.find = self.get if definition.temporary else self.base
        if traits_of(definition).transactional:
            table.journal = self._journal
        if definition.temporary:
            self._own[name] = table
            return
        self._tables[name] = table
        self.foreign_keys.declare(definition)
        self._hook(
            name,
            *((key.referenced_database, key.referenced_table) for key in definition.foreign_keys),
        )

    def _hook(self, *names: tuple[str, str]) -> None:
        """Tables that foreign keys concern ask these at each change of a row; the others need
        not."""
        for name in names:
            table = self._tables.get(name)
            if table is not None:
                table.foreign_keys = (
                    self.foreign_keys if self.foreign_keys.concerns(table.definition) else None
                )

    def _forget(self, database: str, name: str) -> None:
        old = self._tables.get((database, name))
        if old is not None:
            old.replaced = True
            self.foreign_keys.forget(old.definition)


def no_such_table(database: str, name: str) -> ReplicationError:
    """1146 (ER_NO_SUCH_TABLE)."""
    return ReplicationError(
        1146,
        f"Table '{database}.{name}' doesn't exist",
        table=f"{database}.{name}",
        hint="give the tables that exist before the first event with --schema FILE.sql",
    )
