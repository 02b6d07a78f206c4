"""A dump into tables in memory: its definitions and rows; what else it holds changes no table.

INSERT is read by a regular expression made for the number of columns, since dumps have millions of
rows and all of them look alike; a VALUES list that it does not match goes through the expression
evaluator. Files are bytes: a dump holds binary strings next to text. The dump's own SET statements
hold: a child may come before its parent under FOREIGN_KEY_CHECKS=0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any

from applier.binlog.charsets import CHARSETS
from applier.binlog.time_zone import time_zone
from applier.binlog.types import from_sql
from applier.dumps.literals import insert_rows
from applier.dumps.source import DumpReader, DumpStatement
from applier.dumps.statement import NAME_BYTES, in_backticks, unquoted
from applier.error_codes import Code
from applier.errors import BinlagError, InputError
from applier.tables.catalog import Tables
from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.execution import DDL_STATEMENTS, IGNORED_STATEMENTS, apply_ddl
from applier.tables.dml.row_writer import StatementSession
from applier.tables.dml.statements import DML_STATEMENTS, execute_statement
from applier.tables.engine import MemoryTable
from applier.tables.expressions.defaults import complete_rows, number_rows
from applier.tables.expressions.operands import Session
from applier.tables.sql.sql_mode_flags import NO_MODES, SqlModeFlag
from applier.tables.sql.sql_text import UNREADABLE
from applier.tables.virtual_columns import unknown_value
from lookup.handler import DuplicateKey, Row, RowError
from lookup.table import TableDefinition

_NAME = re.compile(NAME_BYTES)
_ON_DUPLICATE = re.compile(rb"\)\s*+ON\s++DUPLICATE\s++KEY\s++UPDATE\b", re.IGNORECASE)
SESSION_STATEMENTS = frozenset(
    "SELECT DO CALL COMMIT BEGIN START ROLLBACK SAVEPOINT RELEASE XA PREPARE EXECUTE DEALLOCATE"
    " SHOW EXPLAIN DESCRIBE DESC HELP SIGNAL DELIMITER".split()
)
"""Statements that change nothing that a table holds; those of IGNORED_STATEMENTS come to them."""


def load_dump(
    reader: DumpReader,
    *,
    server: str,
    lower_case_names: bool = False,
    note: Callable[[str], None] | None = None,
) -> Tables:
    """The tables of a dump. `server`: a row of `lookup.versions.RULES`, whose defaults hold where
    the SQL leaves something open.

    `note` is told what was left out or assumed. Raises InputError with file and line.
    """
    return _Loader(reader, server, lower_case_names).load(note or (lambda said: None))


class _Loader:
    def __init__(self, reader: DumpReader, server: str, lower_case_names: bool) -> None:
        self.reader = reader
        self.tables = Tables(lower_case_names=lower_case_names)
        self.ddl = DdlSession(server=server)
        self.tables.follow(server)
        self.session = reader.session
        self.local_timestamps = 0

    def load(self, note: Callable[[str], None]) -> Tables:
        try:
            for statement in self.reader:
                try:
                    self._carry_out(statement)
                except (BinlagError, RowError, *UNREADABLE) as error:
                    raise self.reader.located(
                        error, complete=statement.complete or statement.kind == "other"
                    ) from None
        finally:
            self.tables.foreign_keys.enabled = True
        self.tables.commit()
        for said in self.reader.notes:
            note(said)
        if self.local_timestamps:
            note(
                f"{self.local_timestamps:,} rows with TIMESTAMP columns were read as UTC: the dump"
                " does not say its time zone (mysqldump --skip-tz-utc)"
            )
        return self.tables

    def _carry_out(self, statement: DumpStatement) -> None:
        if statement.kind == "set":
            self.tables.foreign_keys.enabled = self.session.foreign_key_checks
            return
        if statement.head is not None:
            place = statement.database, unquoted(statement.head["table"])
            database, name = map(self.tables.name_here, place)
            fires = self.tables.triggers.fired(database, name, "INSERT")
            if not fires and _ON_DUPLICATE.search(statement.sql) is None:
                self._insert(statement, statement.head, database, name)
                return
        text = self._client_text(statement.sql)
        mode = self.session.mode_flags & ~SqlModeFlag.ANSI_QUOTES  # names are in backticks here
        if statement.verb in DDL_STATEMENTS:
            ddl = replace(
                self.ddl,
                foreign_key_checks=self.session.foreign_key_checks,
                explicit_defaults_for_timestamp=self._explicit_timestamps(),
                expressions=self._expressions(mode, self._zone()),
            )
            apply_ddl(self.tables, text, self.tables.name_here(statement.database), ddl)
        elif statement.verb in DML_STATEMENTS:
            session = StatementSession(self._expressions(mode, self._zone()))
            execute_statement(self.tables, text, self.tables.name_here(statement.database), session)
        elif statement.verb not in IGNORED_STATEMENTS and statement.verb not in SESSION_STATEMENTS:
            raise InputError(f"statement that is not known: {text[:60]!r}", code=Code.SCHEMA_SQL)

    def _expressions(self, mode: SqlModeFlag = NO_MODES, zone: tzinfo = UTC) -> Session:
        return Session(
            sql_mode=mode,
            zone=zone,
            mariadb=self.ddl.is_mariadb,
            old=self.ddl.is_old,
            lower_case_names=self.tables.lower_case_names,
            is_recorded=False,
        )

    def _explicit_timestamps(self) -> bool | None:
        """None: as the server's version has it. SHOW CREATE TABLE says of each TIMESTAMP whether it
        is NULL, and its default."""
        said = self.session.explicit_defaults_for_timestamp
        return said if said is not None else self.reader.is_shown or None

    def _zone(self) -> tzinfo:
        name = self.session.time_zone
        return UTC if name.upper() == "SYSTEM" else time_zone(name)

    def _client_text(self, sql: bytes) -> str:
        own = CHARSETS[self.session.client]
        text = (
            sql.decode("utf-8", "surrogateescape")
            if sql.isascii() or own.name == "binary"
            else own.decode(sql)
        )
        return in_backticks(text) if self.session.ansi_quotes and '"' in text else text

    def _insert(
        self, statement: DumpStatement, match: re.Match[bytes], database: str, name: str
    ) -> None:
        """An INSERT or REPLACE that fires no trigger, into this table."""
        table = self.tables.get(database, name)
        if table is None:
            raise InputError(
                f"an INSERT into `{database}`.`{name}`, which no CREATE TABLE made",
                code=Code.SCHEMA_ROWS,
            )
        columns = self._columns(table, match["columns"])
        session = self._expressions(zone=self._zone())
        rows = list(insert_rows(table, columns, statement.sql, match.end(), self.session, session))
        rows = _without_nulls(table.definition, columns, rows)
        self._count_timestamps(table, columns, len(rows))
        whole = complete_rows(table.definition, columns, rows, session)
        auto = next((one for one in table.definition.columns if one.auto_increment), None)
        if auto is not None:
            at = table.definition.positions[auto.name.lower()]
            keeps_zeros = SqlModeFlag.NO_AUTO_VALUE_ON_ZERO in self.session.mode_flags
            zeros = () if keeps_zeros and at in columns else (from_sql(auto)(0),)
            if at not in columns or any(row[columns.index(at)] in (None, *zeros) for row in rows):
                start = table.auto_increment
                whole = number_rows(table.definition, whole, start, (None, *zeros))
        if statement.verb == "REPLACE" or b"IGNORE" in match.string[: match.start("table")].upper():
            for row in whole:
                self._insert_over(table, row, replacing=statement.verb == "REPLACE")
        else:
            table.load(whole)
        self.tables.commit()

    def _count_timestamps(self, table: MemoryTable, columns: tuple[int, ...], rows: int) -> None:
        if self.session.time_zone.upper() == "SYSTEM" and any(
            table.definition.columns[at].type == "timestamp" for at in columns
        ):
            self.local_timestamps += rows

    def _insert_over(self, table: MemoryTable, row: Row, *, replacing: bool) -> None:
        """REPLACE removes each row in the way, INSERT IGNORE leaves it."""
        while True:
            try:
                table.insert(row)
                return
            except DuplicateKey as duplicate:
                if not replacing:
                    return
                table.delete(duplicate.ref)

    def _columns(self, table: MemoryTable, listed: bytes | None) -> tuple[int, ...]:
        definition = table.definition
        if listed is None or not listed.strip():
            return tuple(at for at, column in enumerate(definition.columns) if not column.invisible)
        names = [unquoted(piece) for piece in _NAME.findall(listed)]
        unknown = [name for name in names if name.lower() not in definition.positions]
        if unknown:
            raise InputError(
                f"unknown column `{unknown[0]}` in an INSERT into {definition.full_name}",
                code=Code.SCHEMA_ROWS,
            )
        return tuple(definition.positions[name.lower()] for name in names)


def _without_nulls(
    definition: TableDefinition, columns: tuple[int, ...], rows: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """What a server stores where NULL is given to a NOT NULL column hangs on its settings, the
    number of rows and the moment; nobody knows it here."""
    given = [
        (place, at)
        for place, at in enumerate(columns)
        if not (column := definition.columns[at]).nullable
        and not (column.auto_increment or column.generated or column.system_time)
        and any(row[place] is None for row in rows)
    ]
    for place, at in given:
        why = f"the dump gives NULL to the NOT NULL column {definition.columns[at].name}"
        unknown = unknown_value(definition, at, why, "leave the table out with --exclude-table")
        rows = [
            row if row[place] is not None else (*row[:place], unknown, *row[place + 1 :])
            for row in rows
        ]
    return rows
