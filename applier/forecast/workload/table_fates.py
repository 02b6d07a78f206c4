"""What DDL in a log makes of whole tables: how many rows they have is known again behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from applier.binlog.boundaries import query_text
from applier.binlog.events import Query, parse
from applier.binlog.header import Event, EventType, FormatDescription
from applier.binlog.selection.table_filter import StatementNames
from applier.errors import BinlagError
from applier.tables.sql.sql_text import UNREADABLE, Parser
from applier.tables.sql.statement_kind import executed_statement, is_temporary, statement_kind
from applier.tables.sql.statement_names import names_in_sql, text_and_lexis

_TABLES, _DATABASES = ("TABLE", "TABLES"), ("DATABASE", "SCHEMA")
_MAY_BE_DDL = re.compile(
    rb"[\s(]*(?:/\*|#|--|SET\s|CREATE|DROP|TRUNCATE|RENAME|ALTER)", re.IGNORECASE
)
_BEGINNING = 64
"""Bytes of a statement in which its first word stands."""
_PARTS = ("COLUMN", "INDEX", "KEY")
"""What else ALTER TABLE … RENAME may name."""


class TableFate(NamedTuple):
    """A table `database.table` has no rows behind a statement, or another name.

    `database`: all tables of one, where `table` is empty. `exists`: whether there is a table behind
    it. `is_known`: whether it has no rows for certain; not where a statement fills it in the log's
    text. `if_missing`: only where it did not exist (CREATE TABLE IF NOT EXISTS).
    """

    table: str
    renamed_to: str = ""
    database: str = ""
    exists: bool = True
    is_known: bool = True
    if_missing: bool = False

    def empties(self, table: str) -> bool:
        """Whether a table of this name has none of its rows behind it for certain."""
        return not self.if_missing and (table == self.table or self.is_in_database(table))

    def is_in_database(self, table: str) -> bool:
        """Whether a table is one of those in `database`."""
        return bool(self.database) and table.startswith(f"{self.database}.")


def ddl_in(event: Event, format_description: FormatDescription) -> Query | None:
    """An event's statement where it may be DDL; most are looked at no further than their first
    word."""
    if event.type != EventType.QUERY:
        return None
    start, end = query_text(event)
    if _MAY_BE_DDL.match(event.buffer[start : min(end, start + _BEGINNING)]) is None:
        return None
    query = parse(event, format_description)
    assert isinstance(query, Query)
    return query


def table_fates(query: Query) -> list[TableFate]:
    """What a statement of a log makes of whole tables, one after the other. A temporary table is
    none of the replica's, and of a statement that cannot be read nothing is known."""
    sql, lexis = text_and_lexis(query)
    sql = executed_statement(sql)
    read = _FATES.get(statement_kind(sql))
    if read is None or is_temporary(sql):
        return []
    database = query.database.decode("utf-8", "surrogateescape")
    try:
        names = names_in_sql(sql, database, lexis)
        parser = Parser(sql, lexis)
        parser.at += 1
        return list(read(parser, names, database))
    except (BinlagError, *UNREADABLE):
        return []


def _create(parser: Parser, names: StatementNames, _database: str) -> Iterator[TableFate]:
    parser.accept("OR", "REPLACE")
    if parser.accept("TABLE"):
        is_cautious = parser.word() == "IF"
        for table in _tables(names):
            yield TableFate(table, is_known=not names.read, if_missing=is_cautious)


def _drop(parser: Parser, names: StatementNames, _database: str) -> Iterator[TableFate]:
    what = parser.word()
    if what in _TABLES:
        yield from (TableFate(table, exists=False) for table in _tables(names))
    elif what in _DATABASES:
        yield from (TableFate("", database=one, exists=False) for one in names.databases)


def _truncate(_parser: Parser, names: StatementNames, _database: str) -> Iterator[TableFate]:
    yield from map(TableFate, _tables(names))


def _rename(parser: Parser, names: StatementNames, _database: str) -> Iterator[TableFate]:
    if parser.word() in _TABLES:
        tables = _tables(names)
        yield from map(TableFate, tables[::2], tables[1::2])


def _alter(parser: Parser, names: StatementNames, database: str) -> Iterator[TableFate]:
    tables = _tables(names)
    while tables and not parser.done:
        parser.skip_until("RENAME")
        if parser.accept("RENAME") and parser.word() not in _PARTS:
            if not parser.accept_any("TO", "AS"):
                parser.accept("=")
            yield TableFate(tables[0], ".".join(parser.table_name(database)))


def _tables(names: StatementNames) -> list[str]:
    return [".".join(name) for name in names.tables]


_FATES = {
    "CREATE": _create,
    "DROP": _drop,
    "TRUNCATE": _truncate,
    "RENAME": _rename,
    "ALTER": _alter,
}
