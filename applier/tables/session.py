"""The statements of a log, carried out on tables in memory: DDL, statement-format DML, and what
events before them set up."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from applier.binlog.charsets import (
    charset_of_collation,
    collation_name,
    has_wide_backslash,
    statement_text,
)
from applier.binlog.events import ExecuteLoadQuery, Intvar, LoadBlock, Query, Rand, UserVar
from applier.binlog.header import Event
from applier.binlog.refusals import no_loaded_file
from applier.binlog.status_vars import EXPLICIT_DEFAULTS, IF_EXISTS, StatusVariables
from applier.binlog.time_zone import from_utc, time_zone
from applier.binlog.types.numbers import decimal_to_text
from applier.binlog.wire import decimal_bytes
from applier.error_codes import Code
from applier.errors import BinlagError, InputError, ReplicationError
from applier.tables.auto_numbers import NumberSteps
from applier.tables.catalog import Tables
from applier.tables.ddl.ddl_session import COMMENT_VERSIONS, DdlSession
from applier.tables.ddl.execution import (
    DDL_STATEMENTS,
    IGNORED_STATEMENTS,
    ROUTINE_CALLS,
    apply_ddl,
)
from applier.tables.dml.load_file import load_data
from applier.tables.dml.row_writer import StatementSession
from applier.tables.dml.statements import DML_STATEMENTS, execute_statement
from applier.tables.expressions.operands import OLD_SERVERS, unsupported
from applier.tables.expressions.row_expressions import Session
from applier.tables.sql.set_statement import check_variables
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from applier.tables.sql.sql_text import UNREADABLE, reason
from applier.tables.sql.statement_kind import executed_statement, statement_kind
from lookup.versions import RULES

_IS_NULL = re.compile(r"\bIS\s+NULL\b", re.IGNORECASE)
"""Under sql_auto_is_null an AUTO_INCREMENT column is NULL where it has the last number inserted."""
_UTF8 = re.compile(r"\b_?utf8(_\w+)?\b", re.IGNORECASE)
STRING, REAL, INTEGER, DECIMAL = 0, 1, 2, 4


@dataclass
class StatementApplier:
    """`server` names the row of `lookup.versions.RULES` whose defaults hold; `rename` is
    --rewrite-db."""

    tables: Tables
    server: str
    rename: dict[str, str] = field(default_factory=dict)
    statement: StatementSession = field(default_factory=StatementSession)

    def prepare(self, parsed: Any) -> bool:
        """Takes in an event that only sets something up for the next statement; False for any
        other."""
        session = self.statement
        if isinstance(parsed, Intvar):
            if parsed.type == 2:
                session.insert_id = parsed.value
            else:
                session.expressions.last_insert_id = parsed.value
        elif isinstance(parsed, Rand):
            session.expressions.seeds = (parsed.seed1, parsed.seed2)
        elif isinstance(parsed, UserVar):
            session.expressions.variables[parsed.name.decode("utf-8", "replace").lower()] = (
                user_value(parsed)
            )
        elif isinstance(parsed, LoadBlock):
            session.files.setdefault(parsed.file_id, bytearray()).extend(parsed.data)
        else:
            return False
        return True

    def execute(self, event: Event, query: Query) -> str | None:
        """One statement. Returns a note when it was passed over. Raises ReplicationError with the
        event's place."""
        sql = self.text(query)
        kind = statement_kind(sql)
        database = self._database(query)
        try:
            self._set_session(event, query)
            check_variables(sql)
            sql = executed_statement(sql)
            if kind in DML_STATEMENTS | DDL_STATEMENTS:
                self._check_utf8(sql)
            with self._session(event, query):
                if kind in DML_STATEMENTS:
                    self._execute_dml(sql, database, query)
                    return None
                if kind in DDL_STATEMENTS or kind in IGNORED_STATEMENTS:
                    return apply_ddl(self.tables, sql, database, self._ddl_session(query))
            what = (
                "stored routines are not run in memory"
                if kind in ROUTINE_CALLS
                else "statement that is not known"
            )
            raise ReplicationError(
                1235,
                f"{what}: {sql[:80]!r}",
                hint="skip it with --skip-errors 1235, or replay into a test DB",
            )
        except (BinlagError, *UNREADABLE) as error:
            raise self._located(error, event, sql) from None

    def _check_utf8(self, sql: str) -> None:
        """Raises ReplicationError 1235 where utf8 stands for utf8mb4 (seen on 9.7.4)."""
        modes = self.statement.expressions.sql_mode
        meant = self.server != "mariadb" and modes & SqlModeFlag.INTERPRET_UTF8_AS_UTF8MB4
        if meant and (named := _UTF8.search(sql)):
            raise unsupported(f"{named[0]} under INTERPRET_UTF8_AS_UTF8MB4")

    def _execute_dml(self, sql: str, database: str, query: Query) -> None:
        """A statement that the source logged with an error, and that succeeds here, did only a part
        of its work there."""
        if query.variables.auto_is_null and _IS_NULL.search(sql):
            raise unsupported("IS NULL under sql_auto_is_null")
        execute_statement(self.tables, sql, database, self.statement)
        self.forget()
        if query.error_code:
            raise unsupported(
                f"a statement that failed on the source with error {query.error_code}: {sql[:80]}"
            )

    def load(self, event: Event, load: ExecuteLoadQuery) -> None:
        """LOAD DATA with the file that came in pieces before it. Raises InputError when it did not,
        ReplicationError for what fails."""
        data = self.statement.files.pop(load.file_id, None)
        if data is None:
            raise no_loaded_file(event, load.file_id)
        sql = self.text(load.query)
        try:
            self._set_session(event, load.query)
            with self._session(event, load.query):
                load_data(
                    self.tables,
                    sql,
                    self._database(load.query),
                    bytes(data),
                    self.statement,
                    load.duplicate_handling,
                )
        except (BinlagError, *UNREADABLE) as error:
            raise self._located(error, event, sql) from None
        self.forget()

    def _database(self, query: Query) -> str:
        """The statement's default database, by its name here."""
        name = self.tables.name_here(query.database.decode("utf-8", "surrogateescape"))
        return self.rename.get(name, name)

    @contextmanager
    def _session(self, event: Event, query: Query) -> Iterator[None]:
        """What the statement's session sees: its temporary tables, and foreign keys where it checks
        them."""
        self.tables.foreign_keys.enabled = query.variables.foreign_key_checks
        self.tables.foreign_keys.times.begin(event.timestamp)
        with self.tables.session(event.server_id, query.thread_id):
            yield

    def forget(self) -> None:
        """INSERT_ID, RAND and user variables hold for one statement."""
        self.statement.insert_id = None
        self.statement.expressions.seeds = None
        self.statement.expressions.variables = {}

    def text(self, query: Query) -> str:
        """The statement's text in the client's character set; what does not decode survives."""
        return statement_text(query.variables.client_collation, query.sql)

    def _located(self, error: Exception, event: Event, sql: str) -> ReplicationError:
        if isinstance(error, RecursionError):
            error = unsupported(reason(error))
        if not isinstance(error, ReplicationError):
            hint = error.hint if isinstance(error, BinlagError) else None
            error = ReplicationError(
                1064,
                f"{reason(error)}, in the statement {sql[:100]!r}",
                hint=hint
                or "skip the statement with --skip-errors 1064, "
                "or leave its table out with --table",
            )
        error.locate(file=event.file, position=event.position)
        return error

    def _ddl_session(self, query: Query) -> DdlSession:
        variables = query.variables
        names: tuple[str | None, str | None] = (None, None)
        if variables.charset is not None:
            number = variables.charset[2]
            names = charset_of_collation(number).name, self._collation(number)
        default = variables.default_collation_for_utf8mb4
        return DdlSession(
            executes_again=self.server == "mariadb",
            if_exists=self.server == "mariadb" and bool((variables.flags2 or 0) & IF_EXISTS),
            server=self.server,
            expressions=self.statement.expressions,
            server_charset=names[0],
            server_collation=names[1],
            utf8mb4_collation=None if default is None else self._collation(default),
            explicit_defaults_for_timestamp=self._explicit_defaults(variables),
            foreign_key_checks=variables.foreign_key_checks,
            error_code=query.error_code,
        )

    def _collation(self, number: int) -> str:
        return collation_name(number, mariadb=self.server == "mariadb")

    def _explicit_defaults(self, variables: StatusVariables) -> bool | None:
        """explicit_defaults_for_timestamp, which MariaDB keeps among the flags (10.11)."""
        if self.server == "mariadb" and variables.flags2 is not None:
            return bool(variables.flags2 & EXPLICIT_DEFAULTS)
        return variables.explicit_defaults_for_timestamp

    def _set_session(self, event: Event, query: Query) -> None:
        """What the event says of its session. NOW() is the event's timestamp in the session's time
        zone.

        Raises ReplicationError 1298 for a time zone that is not known here, 1235 for text that
        cannot be read as the server reads it.
        """
        moment = datetime.fromtimestamp(event.timestamp, UTC) + timedelta(
            microseconds=query.variables.fraction
        )
        session: Session = self.statement.expressions
        session.zone = time_zone((query.variables.time_zone or b"SYSTEM").decode("latin-1"))
        session.now = from_utc(moment, session.zone)
        session.offset = moment.astimezone(session.zone).utcoffset() or timedelta(0)
        session.sql_mode = SqlModeFlag(query.variables.sql_mode or 0)
        session.mariadb = self.server == "mariadb"
        session.old = self.server in OLD_SERVERS
        session.comment_version = COMMENT_VERSIONS.get(self.server)
        session.lower_case_names = self.tables.lower_case_names
        if query.variables.charset is not None:
            client, connection, _ = query.variables.charset
            session.client, session.collation = (
                charset_of_collation(client).name,
                self._collation(connection),
            )
            if has_wide_backslash(session.client, query.sql):
                raise unsupported(f"a backslash of two bytes from a client with {session.client}")
        session.lc_time_names = query.variables.lc_time_names or 0
        session.numbers = NumberSteps(*(query.variables.auto_increment or ()))
        self.statement.replace_keeps_children = RULES[self.server].checks_foreign_keys
        self.statement.cascades_fire = bool(query.variables.enable_cascade_triggers)
        self.statement.explicit_defaults_for_timestamp = self._explicit_defaults(query.variables)


def user_value(variable: UserVar) -> Any:
    """The value of a USER_VAR event as an expression sees it. Raises InputError."""
    raw = variable.value
    if raw is None:
        return None
    if variable.type in (REAL, INTEGER) and len(raw) != 8:
        raise InputError(f"a user variable of {len(raw)} bytes", code=Code.BAD_EVENT)
    if variable.type == DECIMAL and (len(raw) < 2 or decimal_bytes(raw[0], raw[1]) != len(raw) - 2):
        raise InputError(
            f"a user variable holds a DECIMAL of {len(raw)} bytes", code=Code.BAD_EVENT
        )
    if variable.type == REAL:
        return struct.unpack("<d", raw)[0]
    if variable.type == INTEGER:
        return int.from_bytes(raw, "little", signed=not variable.unsigned)
    if variable.type == DECIMAL:
        return Decimal(decimal_to_text(raw[0], raw[1])(raw[2:]))
    own = charset_of_collation(variable.collation)
    return raw if own.name == "binary" else own.decode(raw)
