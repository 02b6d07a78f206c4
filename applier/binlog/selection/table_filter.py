"""Which tables of a log are wanted: --database, --table, --exclude-database, --exclude-table. One
rule for all commands.

Rows go by their table, statements by the tables that they change, as with replicate_do_table,
replicate_ignore_table and their wild forms (`Rpl_filter::tables_ok`, sql/rpl_filter.cc 9.7): the
first table that an option names decides for the whole statement. Two things differ: --database
stands for all tables of it, and what is excluded stays excluded, whatever else names it. Names are
those of the log, before --rewrite-db.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from applier.binlog.selection.name_case import lower_case
from applier.error_codes import Code
from applier.errors import UsageError
from applier.spelling import nearest

SYSTEM_SCHEMAS = frozenset(
    {"mysql", "sys", "performance_schema", "information_schema", "ndbinfo", "mtr", "binlag"}
)
"""The server's own, that of its test suite, and ours: left out unless an option names them."""
TYPES_WITH_ROWS = "('BASE TABLE', 'SYSTEM VERSIONED')"
"""What information_schema calls tables that have rows of their own, the one of MariaDB included."""
MOST_NAMES = 10_000
"""Tables of a log that are remembered for messages."""
NAMES_SHOWN = 5
_PART = re.compile(r"`(?:[^`]|``)*`|(?:\\.|[^.`\\])+", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@lru_cache(maxsize=1000)
def _expression(pattern: str) -> re.Pattern[str]:
    """A pattern as a regular expression."""
    wild = {"%": ".*", "_": "."}
    pieces = re.findall(r"\\.|.", pattern, re.DOTALL)
    return re.compile(
        "".join(wild.get(piece) or re.escape(piece[-1]) for piece in pieces), re.DOTALL
    )


@dataclass(frozen=True, slots=True)
class NamePattern:
    r"""A database, or a table of one, as an option names it.

    `%` stands for any characters, `_` for one of them; `\%` and `\_` stand for themselves.
    """

    option: str
    text: str
    database: str
    table: str | None = None

    @classmethod
    def of(cls, option: str, text: str, *, is_table: bool) -> NamePattern:
        """From an option's value. Raises UsageError for a table without a database."""
        if not is_table:
            return cls(option, text, _bare(text))
        parts = _PART.findall(text)
        if len(parts) != 2 or _PART.sub("", text) != ".":
            hint = "write it as DATABASE.TABLE; a name with a dot goes in backticks"
            raise UsageError(
                f"{option}: {text!r} is not DATABASE.TABLE", code=Code.UNKNOWN_TABLE, hint=hint
            )
        return cls(option, text, _bare(parts[0]), _bare(parts[1]))

    def names(self, database: str, table: str | None) -> bool:
        """Whether it names the table; with None, whether it may name one of that database."""
        if not _expression(self.database).fullmatch(database):
            return False
        return (
            table is None
            or self.table is None
            or _expression(self.table).fullmatch(table) is not None
        )

    def is_surprise(self, database: str, table: str) -> bool:
        """Whether it names the table only because `_` stands for any character, and has no `%`."""
        pairs = [(self.database, database), (self.table or table, table)]
        if any("%" in pattern for pattern, _ in pairs):
            return False
        return any(_ESCAPED.sub(r"\1", pattern) != name for pattern, name in pairs)

    def __str__(self) -> str:
        return f"{self.option} {self.text}"


def _bare(name: str) -> str:
    return name[1:-1].replace("``", "`") if len(name) > 1 and name[0] == name[-1] == "`" else name


@dataclass(frozen=True, slots=True)
class StatementNames:
    """What a statement changes: tables (database, table), and databases or other objects in them.

    `control`: it only begins, ends or marks a part of a transaction. `accounts`: it is about
    accounts, roles or privileges.
    """

    tables: tuple[tuple[str, str], ...] = ()
    databases: tuple[str, ...] = ()
    control: bool = False
    accounts: bool = False
    read: tuple[tuple[str, str], ...] = ()
    """The tables that the SELECT of an INSERT or CREATE TABLE reads from, and those of a join that
    changes."""


Patterns = tuple[NamePattern, ...]


@dataclass(frozen=True)
class TableFilter:
    """The names that are wanted (all if there are none) and those that are not."""

    databases: Patterns = ()
    tables: Patterns = ()
    exclude_databases: Patterns = ()
    exclude_tables: Patterns = ()
    lower_case_names: bool = False
    """lower_case_table_names=1: names that differ in case only are the same."""
    without_accounts: bool = False
    """Statements about accounts, roles and privileges are not wanted."""

    @classmethod
    def of(
        cls,
        database: str | Iterable[str] = (),
        table: str | Iterable[str] = (),
        exclude_database: str | Iterable[str] = (),
        exclude_table: str | Iterable[str] = (),
    ) -> TableFilter:
        """From the values of the options: a text, or several. Raises UsageError."""
        return cls(
            _patterns("--database", database),
            _patterns("--table", table, is_table=True),
            _patterns("--exclude-database", exclude_database),
            _patterns("--exclude-table", exclude_table, is_table=True),
        )

    def in_lower_case(self) -> TableFilter:
        """The same under lower_case_table_names=1."""
        return replace(
            self,
            databases=_lowered(self.databases),
            tables=_lowered(self.tables),
            exclude_databases=_lowered(self.exclude_databases),
            exclude_tables=_lowered(self.exclude_tables),
            lower_case_names=True,
        )

    def _name(self, name: str) -> str:
        return lower_case(name) if self.lower_case_names else name

    def __bool__(self) -> bool:
        return bool(self.patterns)

    @property
    def patterns(self) -> Patterns:
        """All of them."""
        return self.databases + self.tables + self.exclude_databases + self.exclude_tables

    @property
    def chooses(self) -> bool:
        """Whether only what is named is wanted."""
        return bool(self.databases or self.tables)

    def rule(self, database: str, table: str) -> bool | None:
        """What the options say of the table by name; None where none of them names it."""
        database, table = self._name(database), self._name(table)
        if any(one.names(database, table) for one in self.exclude_databases + self.exclude_tables):
            return False
        return (
            True
            if any(one.names(database, table) for one in self.databases + self.tables)
            else None
        )

    def wants_table(self, database: str, table: str) -> bool:
        """Whether rows of the table are wanted."""
        rule = self.rule(database, table)
        if rule is not None:
            return rule
        return not self.chooses and self._name(database) not in SYSTEM_SCHEMAS

    def wants_database(self, database: str) -> bool:
        """Whether a statement about the database, or about something in it that is no table, is
        wanted."""
        database = self._name(database)
        if any(one.names(database, None) for one in self.exclude_databases):
            return False
        if self.chooses:
            return any(one.names(database, None) for one in self.databases + self.tables)
        return database not in SYSTEM_SCHEMAS

    def wants_statement(self, names: StatementNames) -> bool:
        """Whether a statement is wanted: all of it, or nothing.

        One that names neither a table nor a database (accounts, variables) is wanted unless only
        some names are.
        """
        if names.control:
            return True
        if names.accounts and self.without_accounts:
            return False
        for database, table in names.tables:
            rule = self.rule(database, table)
            if rule is not None:
                return rule
        if names.tables:
            return any(self.wants_table(*table) for table in names.tables)
        if names.databases:
            return any(map(self.wants_database, names.databases))
        return not self.chooses


EVERYTHING = TableFilter()


def _lowered(patterns: Patterns) -> Patterns:
    return tuple(
        replace(
            one,
            database=lower_case(one.database),
            table=None if one.table is None else lower_case(one.table),
        )
        for one in patterns
    )


def _patterns(option: str, value: str | Iterable[str], *, is_table: bool = False) -> Patterns:
    texts = (value,) if isinstance(value, str) else tuple(value or ())
    return tuple(NamePattern.of(option, text, is_table=is_table) for text in texts)


@dataclass
class FilterTally:
    """What a filter met in a log: asked in place of the filter, it remembers the names and what was
    left out."""

    filter: TableFilter = EVERYTHING
    rewritten: Mapping[str, str] = field(default_factory=dict)
    """What --rewrite-db renames: who names a new one in a filter means it, though the log does
    not have it."""
    tables: dict[tuple[str, str], bool] = field(default_factory=dict)
    """(database, table) -> whether it is wanted."""
    databases: dict[str, bool] = field(default_factory=dict)
    rows_events: dict[str, int] = field(default_factory=dict)
    """System schema -> rows events that were left out; of statements, the same."""
    statements: dict[str, int] = field(default_factory=dict)
    accounts: int = 0
    """Statements about accounts that were left out."""
    nameless: int = 0
    """Statements that name neither a table nor a database, and were left out."""
    parted: dict[str, int] = field(default_factory=dict)
    """What was said of statements that name both wanted and unwanted tables."""

    def __bool__(self) -> bool:
        return bool(self.filter)

    @property
    def without_accounts(self) -> bool:
        """As the filter says."""
        return self.filter.without_accounts

    def wants_table(self, database: str, table: str) -> bool:
        """As the filter says."""
        wanted = self.filter.wants_table(database, table)
        self._met(database, table, wanted)
        return wanted

    def left_out_rows(self, database: str) -> None:
        """A rows event of an unwanted table."""
        if database in SYSTEM_SCHEMAS:
            self.rows_events[database] = self.rows_events.get(database, 0) + 1

    def wants_statement(self, names: StatementNames) -> bool:
        """As the filter says."""
        wanted = self.filter.wants_statement(names)
        for table in names.tables:
            self._met(*table, self.filter.wants_table(*table))
        for database in names.databases:
            if len(self.databases) < MOST_NAMES:
                self.databases[database] = self.filter.wants_database(database)
        if not wanted:
            self._leave_out(names)
        unwanted = [table for table in names.tables if not self.filter.wants_table(*table)]
        if unwanted and len(unwanted) < len(names.tables):
            self._part(names, unwanted, wanted=wanted)
        return wanted

    def _met(self, database: str, table: str, wanted: bool) -> None:
        if len(self.tables) < MOST_NAMES:
            self.tables[database, table] = wanted

    def _leave_out(self, names: StatementNames) -> None:
        databases = {database for database, _ in names.tables} | set(names.databases)
        for database in sorted(databases & SYSTEM_SCHEMAS):
            self.statements[database] = self.statements.get(database, 0) + 1
        if names.accounts and self.without_accounts:
            self.accounts += 1
        else:
            self.nameless += not databases

    def _part(
        self, names: StatementNames, unwanted: list[tuple[str, str]], *, wanted: bool
    ) -> None:
        others = ", ".join(f"{database}.{table}" for database, table in unwanted)
        kept = next(table for table in names.tables if table not in unwanted)
        what = "carried out" if wanted else "left out"
        done = (
            f"a statement that changes {kept[0]}.{kept[1]} was {what} as a whole; it also changes"
            f" {others}"
        )
        self.parted[done] = self.parted.get(done, 0) + 1

    # what is said at the end

    def notes(self) -> dict[str, int]:
        """What was left out, and what may surprise: text -> how often."""
        how = "name it with --database to replay it"
        found = {f"left out: {self._left_out(name)}; {how}": 1 for name in self._skipped()}
        if self.accounts:
            count = _count(self.accounts, "statement")
            found[f"left out: {count} about accounts and privileges"] = 1
        if self.nameless:
            count = _count(self.nameless, "statement")
            found[f"left out by the filters: {count} without the name of a table or database"] = 1
        found |= self.parted
        for pattern in self.filter.patterns:
            met = [
                f"{database}.{table}"
                for database, table in self.tables
                if pattern.names(database, table) and pattern.is_surprise(database, table)
            ]
            if met:
                said = ", ".join(met[:NAMES_SHOWN])
                found[
                    rf"{pattern} also names {said}: _ stands for any character, \_ for itself"
                ] = 1
        found |= dict.fromkeys(self.unmatched(), 1)
        there = {database for database, _ in self.tables} | self.databases.keys()
        for old, new in self.rewritten.items():
            if old not in there:
                found[f"--rewrite-db {old}:{new}: the log does not name {old}"] = 1
        return found

    def unmatched(self) -> list[str]:
        """A text for each name of an option that the log does not have. None where the log has too
        many names to remember."""
        if max(len(self.tables), len(self.databases)) >= MOST_NAMES:
            return []
        patterns = dict.fromkeys(self.filter.patterns)
        return [f"{one} names nothing in the log" for one in patterns if not self._is_met(one)]

    def _skipped(self) -> list[str]:
        """System schemas of which something was left out, but for those that an option excludes."""
        if self.filter.chooses:
            return []
        met = sorted(self.rows_events.keys() | self.statements.keys())
        excluded = self.filter.exclude_databases
        return [name for name in met if not any(one.names(name, None) for one in excluded)]

    def _left_out(self, database: str) -> str:
        counts = (
            (self.rows_events.get(database, 0), "rows event"),
            (self.statements.get(database, 0), "statement"),
        )
        return f"{database} ({', '.join(_count(count, what) for count, what in counts if count)})"

    def _is_met(self, pattern: NamePattern) -> bool:
        if any(pattern.names(*table) for table in self.tables):
            return True
        return pattern.table is None and any(
            pattern.names(database, None) for database in self.databases
        )

    @property
    def leaves_something(self) -> bool:
        """Whether something of the log was wanted."""
        if any(self.tables.values()):
            return True
        if self.filter.chooses:
            return any(map(self._is_met, self.filter.databases))
        return any(self.databases.values())

    def check(self) -> None:
        """Raises UsageError where the filter left nothing of the log."""
        if not self.filter or self.leaves_something or not (self.filter.chooses or self.tables):
            return
        named = ", ".join(map(str, self.filter.patterns[:NAMES_SHOWN]))
        if any(map(self._is_met, self._asked)):
            raise UsageError(
                f"{named}: what one option chooses another leaves out",
                code=Code.NOTHING_CHOSEN,
                hint="remove one of them",
            )
        what = (
            "names nothing that is in the log"
            if self.filter.chooses
            else "leaves out all that is in the log"
        )
        raise UsageError(f"{named}: {what}", code=Code.NOTHING_CHOSEN, hint=self._hint())

    @property
    def _asked(self) -> Patterns:
        return self.filter.databases + self.filter.tables

    def _hint(self) -> str:
        there = [f"{database}.{table}" for database, table in sorted(self.tables)]
        databases = sorted({database for database, _ in self.tables} | self.databases.keys())
        if any("*" in one.text for one in self._asked):
            return "% stands for any characters here, and * for itself"
        renamed = set(self.rewritten.values())
        mistaken = next((one for one in self._asked if _bare(one.database) in renamed), None)
        if mistaken is not None:
            return (
                f"filters take the log's names, before --rewrite-db; the log has {_listed(there)}"
            )
        close = [
            nearest(one.text, reversed(databases if one.table is None else there))
            for one in self._asked
        ]
        names = dict.fromkeys(name for name in close if name is not None)
        meant = f"did you mean {', '.join(names)}? " if names else ""
        return f"{meant}the log has {_listed(there or databases)}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = len(names) - NAMES_SHOWN
    return (", ".join(names[:NAMES_SHOWN]) or "no table") + (
        f" and {more:,} more" if more > 0 else ""
    )
