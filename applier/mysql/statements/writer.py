"""A transaction of the log as SQL for the target: its rows by the mode that was chosen, its
statements in their own session."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from applier.binlog.boundaries import query_text
from applier.binlog.charsets import statement_text
from applier.binlog.events import DeleteFile, ExecuteLoadQuery, LoadBlock, Query, parse
from applier.binlog.header import ROWS_TYPES, Event, EventType, an_event
from applier.binlog.refusals import OLD_LOAD_TYPES, no_loaded_file, old_load
from applier.binlog.status_vars import StatusVariables
from applier.error_codes import Code
from applier.errors import InputError, ReplicationError
from applier.mysql.client.connection import TRANSIENT
from applier.mysql.client.dialect import TargetDialect
from applier.mysql.client.pipeline import PipelineStatement
from applier.mysql.client.session_state import SessionState
from applier.mysql.feed import Format, SourceTransaction
from applier.mysql.outcome import Remark, place_of
from applier.mysql.statements.accounts import with_invoker
from applier.mysql.statements.ddl import (
    commits_by_itself,
    drops_database,
    passed_by_replica,
    takes_account,
    temporary_drop,
)
from applier.mysql.statements.user_variables import preparation
from applier.options import ReplayOptions
from applier.tables.sql.statement_kind import is_temporary, statement_start
from applier.tables.sql.statement_names import is_wanted

ROW_TYPES = ROWS_TYPES | {EventType.TABLE_MAP}
QUIET_TYPES = frozenset(
    {
        EventType.ROWS_QUERY,
        EventType.ANNOTATE_ROWS,
        EventType.VIEW_CHANGE,
        EventType.TRANSACTION_CONTEXT,
    }
)
PREPARING_TYPES = frozenset({EventType.INTVAR, EventType.RAND, EventType.USER_VAR})
TEXT_BYTES = 1 << 20
"""Statements of a transaction are sent on when so much has come together."""
NO_DATABASE = "information_schema"
"""It is on every server, and has no table that a log could mean."""
SKIPPED_NOTE = "skipped by --skip-errors"
_DELAYED = re.compile(rb"(INSERT|REPLACE)\s+DELAYED\b", re.IGNORECASE)
REPLICA_NOTE = "passed, as a replica of MariaDB does (slave_ddl_exec_mode=IDEMPOTENT)"


class RowsWriter(Protocol):
    """How rows reach the target: as events (`native`) or as statements (`sql_mode`).

    `describe` hands out what must be sent, outside of a transaction, before events of a format are
    added. `add` gets the TABLE_MAP and rows events of a transaction in order, and says when so much
    has come together that it is time for `flush`, which hands out statements for all of them since
    the last time, to be sent in this order. `forget` drops what was added and all that is known of
    the connection's session. With `one_by_one` set, each rows event gets statements of its own.
    """

    one_by_one: bool
    looks_at_tables: bool
    """Whether `add` asks the server for tables, which statements before it may change."""
    source_session: StatusVariables
    """What the BEGIN of the transaction says of the source's session."""

    def describe(self, format: Format) -> list[PipelineStatement]:
        """What must be sent, outside of a transaction, before events of this format are added."""

    def add(self, event: Event, format: Format) -> bool:
        """A TABLE_MAP or rows event of a transaction, in order. True: enough has come together for
        a `flush`."""

    def flush(self) -> list[PipelineStatement]:
        """The statements for all that was added since the last time, to be sent in this order."""

    def forget_tables(self) -> None:
        """Drops what is known of tables: a statement may have changed what a name means."""

    def forget(self) -> None:
        """Drops what was added and all that is known of the connection's session."""


class Writer:
    """Gathers the statements of transactions; `take` hands them out."""

    def __init__(
        self,
        dialect: TargetDialect,
        options: ReplayOptions,
        rows: RowsWriter,
        *,
        note: Remark,
    ) -> None:
        self.dialect = dialect
        self.options = options
        self.rows = rows
        self.note = note
        self.ship: Callable[[list[PipelineStatement]], None] = lambda statements: None
        """Where to send what of a long transaction has come together."""
        self.state = SessionState(dialect)
        self._out: list[PipelineStatement] = []
        self._rows_state: bytes | None = None
        self._statement_bytes = 0
        self._hides_tables = False
        """Whether a statement that waits makes a temporary table, or drops one."""
        self._preparing: list[PipelineStatement] = []
        self._blocks: dict[int, bytearray] = {}
        self._files: tempfile.TemporaryDirectory[str] | None = None
        """Made for the first file of a LOAD DATA: a replay that is killed leaves it behind."""
        self.loads_files = False
        """A statement that was handed out asks for a local file."""

    def append(self, sql: bytes, event: Event | None = None) -> None:
        """A statement of our own, behind all that was added."""
        self._flush_rows()
        self._out.append(PipelineStatement(sql, event))

    def describe(self, format: Format) -> list[PipelineStatement]:
        """What must be sent between two transactions before one of this format is added."""
        return self.rows.describe(format)

    def append_all(self, statements: list[PipelineStatement]) -> None:
        """Statements of our own, behind all that was added."""
        self._flush_rows()
        self._out += statements

    def take(self) -> list[PipelineStatement]:
        """Everything added since the last time."""
        self._flush_rows()
        out, self._out, self._statement_bytes = self._out, [], 0
        self._hides_tables = False
        return out

    def forget(self) -> None:
        """After a failure or on a new connection: nothing is known of the session, and nothing is
        waiting."""
        self.rows.forget()
        self._out, self._preparing, self._statement_bytes, self._rows_state = [], [], 0, None
        self._hides_tables = False
        self._blocks.clear()
        self.state = SessionState(self.dialect, source_is_mariadb=self.state.source_is_mariadb)

    def close(self) -> None:
        """Removes the files of LOAD DATA statements."""
        if self._files is not None:
            self._files.cleanup()

    def add(self, source: SourceTransaction, allowed: frozenset[int] = frozenset()) -> None:
        """The content of a transaction, in order. `allowed` are errors of its statements that do
        not count."""
        self.state.source_is_mariadb = source.format.fde.is_mariadb
        if source.opening is not None:
            self._open(source.opening, source.format)
        add_row, format = self.rows.add, source.format
        for event in source.events:
            type_code = event.type
            if type_code in ROW_TYPES:
                if self._statement_bytes and self._may_replace_tables:
                    self.ship(self.take())
                if add_row(event, format):
                    self.ship(self.take())
            elif type_code not in QUIET_TYPES:
                self._flush_rows()
                self._statement(event, format, allowed)
                if self._statement_bytes > TEXT_BYTES:
                    self.ship(self.take())
        self._blocks.clear()

    @property
    def _may_replace_tables(self) -> bool:
        """Whether rows wait for the statement before them: CREATE OR REPLACE TABLE … SELECT, or of
        a temporary table. In MySQL there is no table before the former (and 9.7 takes no question
        behind its CREATE: 3977)."""
        return self.rows.looks_at_tables and (self.state.source_is_mariadb or self._hides_tables)

    def _flush_rows(self) -> None:
        self._out += self.rows.flush()

    def _open(self, event: Event, format: Format) -> None:
        """BEGIN: what its session was matters to rows only in a few variables, and seldom
        changes."""
        buffer, body = event.buffer, event.body
        raw = buffer[body + 11 : query_text(event)[0]]
        if raw == self._rows_state:
            return
        self._rows_state = raw
        begin = parse(event, format.fde)
        self.rows.source_session = begin.variables
        sets = self.state.for_rows(begin)
        if sets:
            self._flush_rows()
            self._out += [PipelineStatement(sql, event) for sql in sets]

    def _statement(self, event: Event, format: Format, allowed: frozenset[int]) -> None:
        type_code = event.type
        if type_code == EventType.QUERY:
            self._query(event, parse(event, format.fde), allowed)
        elif type_code in PREPARING_TYPES:
            self._preparing.append(
                PipelineStatement(preparation(parse(event, format.fde), self.dialect), event)
            )
        elif type_code in (EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK):
            block: LoadBlock = parse(event, format.fde)
            self._blocks.setdefault(block.file_id, bytearray()).extend(block.data)
        elif type_code == EventType.DELETE_FILE:
            dropped: DeleteFile = parse(event, format.fde)
            self._blocks.pop(dropped.file_id, None)
        elif type_code == EventType.EXECUTE_LOAD_QUERY:
            self._load(event, parse(event, format.fde), allowed)
        elif type_code in OLD_LOAD_TYPES:
            raise old_load(event)
        else:
            raise InputError(
                f"{an_event(event.name)} cannot be replayed",
                code=Code.CANNOT_SHIP,
                file=event.file,
                position=event.position,
            )

    def _query(self, event: Event, query: Query, allowed: frozenset[int]) -> None:
        if query.sql[:3].upper() in (b"XA ", b"XA\t"):
            # START and END: the rows of an XA transaction are carried out as an ordinary one
            return
        preparing, self._preparing = self._preparing, []
        if is_wanted(self.options.only, query):
            self._run(event, query, query.sql.rstrip(b" \t\r\n;\0"), allowed, preparing)

    def _run(
        self,
        event: Event,
        query: Query,
        sql: bytes,
        allowed: frozenset[int],
        preparing: list[PipelineStatement],
    ) -> None:
        name, text = self.target_database(query), text_of(query)
        database = name.encode("utf-8", "surrogateescape")
        self._rows_state = None
        if name and text.isascii() and (named := temporary_drop(text, name)):
            sql, database = named.encode("utf-8", "surrogateescape"), b""
        try:
            prepare = self.state.for_statement(event, query, database)
        except ReplicationError as refused:
            if refused.number not in self._skipped(allowed):
                raise
            self._passed_over(event, allowed, frozenset())(refused)
            return
        self._out += preparing
        self._out += [PipelineStatement(setting, event) for setting in prepare]
        passed = frozenset[int]()
        if query.variables.invoker is not None and takes_account(text):
            sql = with_invoker(query, sql)
        sql = undelayed(sql)
        if query.error_code:
            allowed |= {query.error_code}
        elif self.state.source_is_mariadb and self.dialect.is_mariadb:
            passed = passed_by_replica(text)
        self._out.append(
            PipelineStatement(
                sql,
                event,
                None,
                self._skipped(allowed | passed),
                on_error=self._passed_over(event, allowed, passed),
                ends_text=commits_by_itself(text),
            )
        )
        self._statement_bytes += len(sql)
        if is_temporary(text):
            self._hides_tables = True
        if self._hides_tables or commits_by_itself(text):
            self.rows.forget_tables()
        if drops_database(text):
            self.state.forget_database()

    def _skipped(self, allowed: frozenset[int]) -> frozenset[int]:
        return (
            ALL_ERRORS
            if self.options.skip_errors is None
            else allowed | (self.options.skip_errors - TRANSIENT)
        )

    def _passed_over(
        self, event: Event, allowed: frozenset[int], passed: frozenset[int]
    ) -> Callable[[ReplicationError], None]:
        def tell(error: ReplicationError) -> None:
            if error.number not in allowed:
                why = REPLICA_NOTE if error.number in passed else SKIPPED_NOTE
                self.note(f"{why}: {error.message}", place_of(event))

        return tell

    def _load(self, event: Event, load: ExecuteLoadQuery, allowed: frozenset[int]) -> None:
        """LOAD DATA with the file out of the log, which the client sends along."""
        data = self._blocks.pop(load.file_id, None)
        if data is None:
            raise no_loaded_file(event, load.file_id)
        preparing, self._preparing = self._preparing, []
        if not is_wanted(self.options.only, load.query):
            return
        if self._files is None:
            self._files = tempfile.TemporaryDirectory(prefix="binlag-load-")
        path = Path(self._files.name) / f"{event.position}-{load.file_id}"
        path.write_bytes(data)
        sql = load.query.sql
        how = (b"", b" IGNORE", b" REPLACE")[load.duplicate_handling % 3]
        name = b" LOCAL INFILE '" + str(path).encode() + b"'" + how + b" INTO"
        self.loads_files = True
        self._run(
            event,
            load.query,
            sql[: load.name_start].rstrip() + name + sql[load.name_end :],
            allowed,
            preparing,
        )

    def target_database(self, query: Query) -> str:
        """The default database of a statement as it is called on the target.

        One that is left out need not be there, and the statement names what it changes: then a name
        without a database means nothing.
        """
        database = query.database.decode("utf-8", "surrogateescape")
        if database and not self.options.only.wants_database(database):
            return NO_DATABASE
        return self.options.rewrite.get(database, database)


ALL_ERRORS = frozenset(range(1000, 7000)) - TRANSIENT


def undelayed(sql: bytes) -> bytes:
    """INSERT or REPLACE without DELAYED: an applier does not delay (`upgrade_lock_type`,
    sql/sql_insert.cc of MariaDB 10.11), and a client gets 1616 for a table of InnoDB."""
    found = _DELAYED.match(sql, statement_start(sql.decode("latin-1")))  # a character for each byte
    return sql[: found.end(1)] + sql[found.end() :] if found else sql


def text_of(query: Query) -> str:
    """The statement as text, in the character set of the client that sent it."""
    return statement_text(query.variables.client_collation, query.sql)
