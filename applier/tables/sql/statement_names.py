"""What a statement changes, by name, without carrying it out: for the filters.

The tables are those that the server's parser marks as `updating` (sql/sql_yacc.yy 9.7): all that a
RENAME, DROP or multiple-table DELETE lists, the subject of a trigger; not what a SELECT or LIKE
reads from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from applier.binlog.boundaries import CONTROL_WORDS
from applier.binlog.charsets import charset_of_collation, statement_text
from applier.binlog.events import Query
from applier.binlog.selection.name_case import lower_case
from applier.binlog.selection.table_filter import SYSTEM_SCHEMAS, StatementNames, TableFilter
from applier.errors import BinlagError, ReplicationError
from applier.tables.sql.quoting import unquoted
from applier.tables.sql.sql_text import DEFAULT_LEXIS, UNREADABLE, Lexis, Parser
from applier.tables.sql.statement_kind import executed_statement, statement_kind

Name = tuple[str, str]

ROWS_HEAD = 4000
"""Characters of an INSERT that are looked at: its table stands before its rows."""
_SYSTEM_NAMES = tuple(name.encode() for name in sorted(SYSTEM_SCHEMAS))
_ROUTINES = frozenset({"PROCEDURE", "FUNCTION", "EVENT", "PACKAGE", "LIBRARY"})
_TABLES = frozenset({"TABLE", "TABLES", "VIEW", "SEQUENCE"})
_NO_TABLES = frozenset(
    "USER ROLE SERVER TABLESPACE LOGFILE UNDO RESOURCE REFERENCE INSTANCE".split()
)
_OBJECTS = _ROUTINES | _TABLES | _NO_TABLES | {"DATABASE", "SCHEMA", "INDEX", "TRIGGER"}
_DATABASE_OPTIONS = frozenset(
    "DEFAULT CHARACTER CHARSET COLLATE ENCRYPTION READ COMMENT UPGRADE".split()
)
_MODIFIERS = (
    "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "INTO", "LOCAL",
    "NO_WRITE_TO_BINLOG",
)  # fmt: skip
_NO_ALIAS = frozenset(
    """
        SET WHERE ORDER LIMIT JOIN INNER CROSS LEFT RIGHT NATURAL STRAIGHT_JOIN ON USING USE FORCE
        IGNORE
        PARTITION FOR RETURNING FROM
    """.split()
)
_BEHIND_TABLES = frozenset("WHERE GROUP HAVING ORDER LIMIT UNION FOR LOCK".split())
_NOTHING = StatementNames()
_OF_ACCOUNTS = StatementNames(accounts=True)
_QUOTED = r"(`(?:[^`]|``)+`)"
_CONSTRAINT = re.compile(
    rf"\({_QUOTED}\.{_QUOTED}, CONSTRAINT .* REFERENCES (?:{_QUOTED}\.)?{_QUOTED} \("
)
"""In errors 1451 and 1452: database and name of the child, database and name of the parent."""


def names_of(query: Query, *, lower_case_names: bool = False) -> StatementNames:
    """What a statement of a log changes. One that cannot be read counts as one about its default
    database."""
    sql, lexis = text_and_lexis(query)
    database = query.database.decode("utf-8", "surrogateescape")
    if lower_case_names:
        database, lexis = lower_case(database), replace(lexis, lower_case_names=True)
    return names_in_sql(sql, database, lexis)


def text_and_lexis(query: Query) -> tuple[str, Lexis]:
    """A statement of a log as its session wrote it, and how it is read; version comments count as
    SQL."""
    number = query.variables.client_collation
    lexis = Lexis.of(query.variables.sql_mode or 0, client=charset_of_collation(number).name)
    return statement_text(number, query.sql), lexis


class Choosing(Protocol):
    """A filter, or one that tallies."""

    def __bool__(self) -> bool: ...

    @property
    def without_accounts(self) -> bool:
        """Whether statements about accounts are not wanted."""

    def wants_statement(self, names: StatementNames) -> bool:
        """Whether a statement that changes these is wanted."""


def is_wanted(chosen: Choosing, query: Query) -> bool:
    """Whether a statement of a log is wanted."""
    takes_all = not chosen and not chosen.without_accounts and not may_name_system_schema(query)
    return takes_all or chosen.wants_statement(names_of(query))


def needs_more(only: TableFilter, number: int, query: Query) -> str | None:
    """What to do about a statement that fails since something is not there (`number`), if a filter
    left that out."""
    if not only or number not in (1049, 1051, 1146):
        return None
    left_out = ", ".join(
        ".".join(name) for name in names_of(query).tables if not only.wants_table(*name)
    )
    return (
        f"the statement also names {left_out}, which the filters leave out: name it with --table"
        if left_out
        else None
    )


def refuse_left_out(only: TableFilter, query: Query) -> None:
    """Raises ReplicationError 1235 for a statement whose SELECT reads a table that a filter leaves
    out: its rows here are not those of the source."""
    for name in names_of(query).read if only else ():
        if not only.wants_table(*name):
            read = ".".join(name)
            raise ReplicationError(
                1235,
                f"the statement reads {read}, which the filters leave out, so that its rows are not"
                " known",
                table=read,
                hint="name it with --table, or skip the statement with --skip-errors 1235",
            )


def needs_relative(
    only: TableFilter, error: ReplicationError, rewrite: Mapping[str, str]
) -> str | None:
    """What to do about a foreign key's error, if a filter left one of its two tables out.

    `rewrite`: databases of the log -> here, where the message has its names from.
    """
    found = _CONSTRAINT.search(error.message) if only and error.number in (1451, 1452) else None
    if found is None:
        return None
    database, child, other, parent = (unquoted(name or "") for name in found.groups())
    in_log = {here: log for log, here in rewrite.items()}
    pair = [
        (in_log.get(here, here), name)
        for here, name in ((database, child), (other or database, parent))
    ]
    for left_out, relative in (pair, pair[::-1]):
        if not only.wants_table(*left_out):
            name, of = ".".join(left_out), ".".join(relative)
            return (
                f"a foreign key ties {of} to {name}, which the filters leave out; a replica stops"
                f" here, too: leave {of} out as well, or do not leave {name} out"
            )
    return None


def may_name_system_schema(query: Query) -> bool:
    """Whether the names matter where no filter is given; without a look at the grammar."""
    own = query.database in _SYSTEM_NAMES
    return own or any(name in query.sql for name in _SYSTEM_NAMES)


def names_in_sql(sql: str, database: str, lexis: Lexis = DEFAULT_LEXIS) -> StatementNames:
    """What a statement changes, with the session's default database."""
    try:
        sql = executed_statement(sql)
        head = sql[:ROWS_HEAD] if statement_kind(sql) in ("INSERT", "REPLACE") else sql
        return _Reader(Parser(head, lexis), database).names()
    except (BinlagError, *UNREADABLE):
        return StatementNames(databases=(database,) if database else ())


class _Reader:
    """Reads one statement as far as its names."""

    def __init__(self, parser: Parser, database: str) -> None:
        self.parser = parser
        self.database = database

    def names(self) -> StatementNames:
        parser = self.parser
        while parser.accept("("):
            pass
        if parser.word() == "WITH":
            parser.skip_until("UPDATE", "DELETE", "INSERT", "REPLACE")
        word = parser.word()
        if word in CONTROL_WORDS:
            return StatementNames(control=True)
        parser.at += 1
        read = _STATEMENTS.get(word)
        if read is not None:
            return read(self)
        return _of_database(self.database) if word in ("DO", "SELECT", "CALL") else _NOTHING

    # names and lists of them

    def _table(self) -> StatementNames:
        return StatementNames((self._name(),))

    def _name(self) -> Name:
        while self.parser.accept_any("IF", "NOT", "EXISTS"):
            pass
        return self.parser.table_name(self.database)

    def _list(self) -> StatementNames:
        names = [self._name()]
        while self.parser.accept(","):
            names.append(self._name())
        return StatementNames(tuple(names))

    # statements

    def define(self) -> StatementNames:
        """CREATE, ALTER, DROP."""
        parser = self.parser
        verb = parser.word(-1)
        parser.accept("OR", "REPLACE")
        if parser.accept_any("USER", "ROLE"):
            return _OF_ACCOUNTS
        what = self._object()
        if what in ("DATABASE", "SCHEMA"):
            return self._of_own_database(verb)
        if what in _ROUTINES:
            parser.accept("BODY")
            database, _ = self._name()
            return _NOTHING if self._is_loadable() else _of_database(database)
        if what == "INDEX":
            return self._on_table()
        if what == "TRIGGER":
            if verb == "DROP":
                return _of_database(self._name()[0])
            return self._on_table()
        if what not in _TABLES:
            return _NOTHING
        if verb == "DROP":
            return self._list()
        names = self._table()
        if verb == "ALTER":
            return self._with_exchanged(names)
        return self._with_selected(names) if what == "TABLE" else names

    def _on_table(self) -> StatementNames:
        self.parser.skip_until("ON")
        self.parser.expect("ON")
        return self._table()

    def _object(self) -> str:
        """The word that says what is created, altered or dropped; OR REPLACE, DEFINER and others
        come before it."""
        while not self.parser.done:
            word = self.parser.word()
            self.parser.at += 1
            if word in _OBJECTS:
                return word
        return ""

    def _of_own_database(self, verb: str) -> StatementNames:
        if verb == "ALTER" and self.parser.word() in _DATABASE_OPTIONS:
            return _of_database(self.database)
        return _of_database(self._name()[1])

    def _is_loadable(self) -> bool:
        """CREATE FUNCTION … RETURNS … SONAME: of the server, not of a database."""
        return self.parser.word() == "RETURNS" and self.parser.word(2) == "SONAME"

    def _with_exchanged(self, names: StatementNames) -> StatementNames:
        """ALTER TABLE … EXCHANGE PARTITION p WITH TABLE other."""
        parser = self.parser
        for at in range(parser.at, len(parser.tokens)):
            parser.at = at
            if parser.accept("EXCHANGE", "PARTITION"):
                parser.name()
                parser.expect("WITH", "TABLE")
                return StatementNames((*names.tables, self._name()))
        return names

    def rename(self) -> StatementNames:
        parser = self.parser
        if parser.accept("USER"):
            return _OF_ACCOUNTS
        if not parser.accept_any("TABLE", "TABLES"):
            return _NOTHING
        names = [self._name()]
        while not parser.done:
            if parser.accept("WAIT"):
                parser.integer()
            elif parser.accept_any("TO", ","):
                names.append(self._name())
            elif not parser.accept("NOWAIT"):
                raise parser.refuse("expected TO")
        return StatementNames(tuple(names))

    def grant(self) -> StatementNames:
        """GRANT, REVOKE; also of privileges on tables, which these do not change."""
        return _OF_ACCOUNTS

    def set(self) -> StatementNames:
        """SET PASSWORD, SET DEFAULT ROLE; not of variables."""
        is_account = self.parser.accept("PASSWORD") or self.parser.accept("DEFAULT", "ROLE")
        return _OF_ACCOUNTS if is_account else _NOTHING

    def truncate(self) -> StatementNames:
        self.parser.accept("TABLE")
        return self._table()

    def maintain(self) -> StatementNames:
        """ANALYZE, OPTIMIZE, REPAIR, CHECK."""
        self._modifiers()
        return self._list() if self.parser.accept_any("TABLE", "TABLES") else _NOTHING

    def insert(self) -> StatementNames:
        self._modifiers()
        return self._with_selected(self._table(), ends=("VALUES", "VALUE", "SET"))

    def _with_selected(self, names: StatementNames, ends: tuple[str, ...] = ()) -> StatementNames:
        """Takes in the tables behind the FROM of a SELECT in the statement. `ends`: words that no
        SELECT follows, but rows, which may be cut."""
        parser = self.parser
        while not parser.done and parser.word() != "SELECT":
            if parser.word() in ends:
                return names
            if parser.op() == "(" and parser.word(1) != "SELECT":
                parser.parenthesized()
            else:
                parser.at += 1
        parser.skip_until("FROM")
        if not parser.accept("FROM") or parser.word() == "DUAL":
            return names
        references = self._references(*_BEHIND_TABLES)
        return replace(names, read=tuple(dict.fromkeys(references.values())))

    def load(self) -> StatementNames:
        if not self.parser.accept_any("DATA", "XML"):
            return _NOTHING
        self.parser.skip_until("INTO")
        self.parser.expect("INTO", "TABLE")
        return self._table()

    def _modifiers(self) -> None:
        while self.parser.accept_any(*_MODIFIERS):
            pass

    # statements of several tables

    def update(self) -> StatementNames:
        self._modifiers()
        references = self._references("SET")
        self.parser.expect("SET")
        everything = tuple(dict.fromkeys(references.values()))
        if len(everything) == 1:
            return StatementNames(everything)
        names = StatementNames(everything, read=everything)
        changed: dict[Name, None] = {}
        while True:
            *qualifier, _ = self.parser.dotted_name()
            found = _resolve(qualifier, references)
            if found is None:
                # a column without its table: any of them may be meant
                return names
            changed[found] = None
            self.parser.skip_until(",", "WHERE", "ORDER", "LIMIT")
            if not self.parser.accept(","):
                return replace(names, tables=tuple(changed))

    def delete(self) -> StatementNames:
        parser = self.parser
        self._modifiers()
        is_plain = parser.accept("FROM")
        targets = [self.parser.dotted_name()]
        while parser.accept(","):
            targets.append(self.parser.dotted_name())
        if is_plain and not parser.accept("USING"):
            return StatementNames((self._whole(targets[0]),))
        if not is_plain:
            parser.expect("FROM")
        references = self._references("WHERE", "ORDER", "LIMIT", "RETURNING")
        named = [_resolve(target, references) or self._whole(target) for target in targets]
        read = tuple(dict.fromkeys(references.values()))
        return StatementNames(tuple(dict.fromkeys(named)), read=read)

    def _whole(self, parts: list[str]) -> Name:
        return (parts[0], parts[1]) if len(parts) > 1 else (self.database, parts[0])

    def _references(self, *ends: str) -> dict[str, Name]:
        """The tables of a FROM clause: alias, or name, in lower case -> name."""
        parser, found, expecting = self.parser, dict[str, Name](), True
        while not parser.done and parser.word() not in ends:
            if parser.op() == "(":
                if expecting and parser.word(1) not in ("SELECT", "WITH", "VALUES", "TABLE"):
                    parser.at += 1
                else:
                    parser.parenthesized()
                    expecting = False
            elif expecting and parser.tokens[parser.at].kind in ("word", "quoted"):
                self._reference(found)
                expecting = False
            else:
                expecting = parser.op() == "," or parser.word() in ("JOIN", "STRAIGHT_JOIN")
                parser.at += 1
        return found

    def _reference(self, found: dict[str, Name]) -> None:
        parser = self.parser
        name = parser.table_name(self.database)
        if parser.op() == "(":
            return  # a table function
        if parser.accept("PARTITION"):
            parser.parenthesized()
        named = parser.accept("AS")
        kind = "" if parser.done else parser.tokens[parser.at].kind
        if named or kind == "quoted" or (kind == "word" and parser.word() not in _NO_ALIAS):
            found[parser.name().lower()] = name
        else:
            found[name[1].lower()] = name


def _of_database(database: str) -> StatementNames:
    return StatementNames(databases=(database,))


def _resolve(qualifier: list[str], references: dict[str, Name]) -> Name | None:
    """The table that the parts before a column's name, or of a table's, mean."""
    if not qualifier:
        return None
    if len(qualifier) == 2:
        return qualifier[0], qualifier[1]
    return references.get(qualifier[0].lower())


_STATEMENTS: dict[str, Callable[[_Reader], StatementNames]] = {
    "CREATE": _Reader.define, "ALTER": _Reader.define, "DROP": _Reader.define,
    "RENAME": _Reader.rename,
    "TRUNCATE": _Reader.truncate, "ANALYZE": _Reader.maintain, "OPTIMIZE": _Reader.maintain,
    "REPAIR": _Reader.maintain, "CHECK": _Reader.maintain, "INSERT": _Reader.insert,
    "REPLACE": _Reader.insert,
    "GRANT": _Reader.grant, "REVOKE": _Reader.grant, "SET": _Reader.set,
    "LOAD": _Reader.load, "UPDATE": _Reader.update, "DELETE": _Reader.delete,
}  # fmt: skip
