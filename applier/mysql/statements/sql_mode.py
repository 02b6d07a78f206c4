"""SQL mode: rows travel as statements of ours, so that we choose how a row is found, whatever the
server's version.

Statements would fire triggers, would make history in MariaDB's system-versioned tables a second
time, and would mean the temporary table of the session that has a table's name; rows of such
tables, of sequences, and of tables that cannot be read travel as the log's own events, as in native
mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from applier.binlog.header import Event, EventType
from applier.binlog.refusals import unknown_table
from applier.binlog.rows import (
    DUMMY_TABLE_IDS,
    NO_FOREIGN_KEY_CHECKS,
    RELAXED_UNIQUE_CHECKS,
    RowsHead,
    RowsHeads,
)
from applier.binlog.status_vars import StatusVariables
from applier.binlog.table_map import TableMap, read_table_map
from applier.errors import InputError, ReplicationError
from applier.mysql.client.dialect import TargetDialect
from applier.mysql.client.pipeline import HEADER_BYTES, Pipeline, PipelineStatement
from applier.mysql.client.shown_definition import shown_definition
from applier.mysql.feed import Format
from applier.mysql.outcome import Remark, place_of
from applier.mysql.statements.event_sql import EventRows, Notes
from applier.mysql.statements.literals import NotExpressible
from applier.mysql.statements.made_values import MadeValues
from applier.mysql.statements.native import EVENT_BYTES, NativeRows
from applier.mysql.statements.row_sql import SETTINGS, RowSql
from applier.options import ReplayOptions
from applier.tables.images import RowImages
from applier.tables.sql.quoting import quoted
from lookup.handler import traits_of
from lookup.table import TableDefinition

SAVED = (*SETTINGS, "foreign_key_checks", "unique_checks", "timestamp")
"""Session variables that are put back behind a run of statements: the log's own statements have
theirs."""
MOVING_DEFAULTS = ("current_timestamp", "now", "localtime", "curdate", "curtime")
MOST_MAPS = 10_000
OLD_HEAD = 6
"""Bytes in the head of a table map before 5.1.4, which BINLOG does not take."""
NO_CHECK_CONSTRAINT_CHECKS = 1 << 7
"""Flag of MariaDB's rows events: the source's session had check_constraint_checks off
(sql/log_event.h 10.11)."""
NO_PRIVILEGE = frozenset({1227})
NO_SUCH_TABLE = frozenset({1049, 1146})


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the target. `definition` is None for one whose rows travel as events."""

    table_map: TableMap
    name: str
    definition: TableDefinition | None


@dataclass(slots=True)
class StatementPlan:
    """How rows events of one shape are turned into statements."""

    table: Table
    images: RowImages
    sql: RowSql
    needs_time: bool
    made: MadeValues


class SqlRows:
    """Implements `writer.RowsWriter`. `note` is told, once a time, of what was passed over."""

    looks_at_tables = True

    def __init__(
        self, pipeline: Pipeline, dialect: TargetDialect, options: ReplayOptions, note: Remark
    ) -> None:
        self.options = options
        self._pipeline = pipeline
        self._rules_version = pipeline.server.rules_version
        self._notes = Notes(options, note)
        self._native = NativeRows(dialect, options, EVENT_BYTES)
        self._note = note
        self._most_bytes = pipeline.server.packet_bytes - HEADER_BYTES
        self._checks_constraints = "check_constraint_checks" in dialect.variables
        self._saved = (*SAVED, *(["check_constraint_checks"] if self._checks_constraints else []))
        self._one_by_one = False
        self.source_session = StatusVariables()
        self._out: list[PipelineStatement] = []
        self._bytes = 0
        self._session: dict[str, str] | None = None
        """What this run has set; None while the session has its own settings."""
        self._format: Format | None = None
        self._known: dict[bytes, Table | None] = {}
        """Body of a table map -> the table, None for one that is not wanted. Its source gives a
        changed table another id."""
        self._maps: dict[int, tuple[Event, Table | None]] = {}
        self._plans: dict[RowsHead, StatementPlan] = {}

    @property
    def one_by_one(self) -> bool:
        """Whether each rows event gets statements of its own."""
        return self._one_by_one

    @one_by_one.setter
    def one_by_one(self, value: bool) -> None:
        self._one_by_one = self._native.one_by_one = value

    def describe(self, format: Format) -> list[PipelineStatement]:
        """For rows that travel as events. Most need none, so that a missing privilege matters only
        once it is needed."""
        if format.fde.post_header_length(EventType.TABLE_MAP) == OLD_HEAD:
            return []
        statements = self._native.describe(format)
        for statement in statements:
            statement.allowed |= NO_PRIVILEGE
        return statements

    def add(self, event: Event, format: Format) -> bool:
        """One event of a transaction. True: enough has come together to be sent."""
        if format is not self._format:
            self._format = format
            self._heads = RowsHeads(format.fde)
            self._known.clear()
            self._maps.clear()
            self._plans.clear()
        if event.type == EventType.TABLE_MAP:
            self._add_map(event, format)
            return False
        before, rows = len(self._out), self._heads.of(event)
        self._add_rows(event, rows, format)
        if rows.ends_statement:
            self._native.end_statement()
        self._bytes += sum(len(statement.sql) for statement in self._out[before:])
        return self._bytes >= EVENT_BYTES

    def flush(self) -> list[PipelineStatement]:
        """The statements for all that was added since the last time."""
        self._flush_native()
        self._put_settings_back()
        done, self._out, self._bytes = self._out, [], 0
        return done

    def forget_tables(self) -> None:
        """Implements `writer.RowsWriter`."""
        self._known.clear()

    def forget(self) -> None:
        """Everything that was added, and what is known of tables and session."""
        self._native.forget()
        self._out, self._bytes, self._session, self._format = [], 0, None, None

    # events

    def _add_map(self, event: Event, format: Format) -> None:
        body = event.data
        if body not in self._known:
            if len(self._known) > MOST_MAPS:
                self._known.clear()
            table_map = read_table_map(event, format.fde)
            table = (
                self._table(table_map)
                if self.options.wants(table_map.database, table_map.table)
                else None
            )
            if table is not None and table.definition is None:
                # it may be there the next time: not kept
                self._maps[table_map.table_id] = (event, table)
                return
            self._known[body] = table
        table_id = int.from_bytes(
            body[: 4 if format.fde.post_header_length(EventType.TABLE_MAP) == OLD_HEAD else 6],
            "little",
        )
        self._maps[table_id] = event, self._known[body]

    def _add_rows(self, event: Event, rows: RowsHead, format: Format) -> None:
        if rows.table_id not in self._maps:
            if rows.table_id in DUMMY_TABLE_IDS:
                return
            raise unknown_table(event, rows.table_id)
        map_event, table = self._maps[rows.table_id]
        if table is None:
            return
        if table.definition is None:
            self._add_native(map_event, event, format)
            return
        if not traits_of(table.definition).stores_rows:
            return
        self._flush_native()
        try:
            plan = self._plan(rows, table, table.definition)
            plan.made.check(self.source_session)
            made = EventRows(
                event, rows, plan.sql, self._notes, self._source_word, one_by_one=self._one_by_one
            )
            statements = made.statements(plan.images.rows(event, rows))
            if max((len(statement.sql) for statement in statements), default=0) > self._most_bytes:
                raise NotExpressible(
                    "as statements they are more than the target's max_allowed_packet"
                )
            self._set_session(event, rows, plan)
            self._out += statements
        except NotExpressible as reason:
            self._note(f"rows of {table.name} are sent as events: {reason}")
            self._add_native(map_event, event, format)
        except (ReplicationError, InputError) as error:
            error.locate(file=event.file, position=event.position, table=table.name)
            if not (isinstance(error, ReplicationError) and self.options.skips(error.number)):
                raise
            self._note(f"skipped by --skip-errors: {error.message}", place_of(event))

    def _add_native(self, map_event: Event, event: Event, format: Format) -> None:
        self._put_settings_back()
        self._native.add(map_event, format)
        self._native.add(event, format)

    @property
    def _source_word(self) -> str:
        return self.options.rules(self._rules_version).source_word

    def _flush_native(self) -> None:
        self._out += self._native.flush()

    # plans

    def _plan(self, rows: RowsHead, table: Table, definition: TableDefinition) -> StatementPlan:
        plan = self._plans.get(rows)
        if plan is None or plan.table is not table:
            images = RowImages(rows, table.table_map, definition, self.options.conversions)
            sql = RowSql(
                definition,
                rows.kind,
                images.before_columns,
                images.after_columns,
                self._rules_version,
                self.options.row_search,
            )
            missing = set(range(len(definition.columns))) - set(images.before_columns)
            defaults = (
                [(definition.columns[at].default or "").lower() for at in missing]
                if rows.kind == "write"
                else []
            )
            needs_time = any(word in default for default in defaults for word in MOVING_DEFAULTS)
            plan = self._plans[rows] = StatementPlan(
                table, images, sql, needs_time, MadeValues.of(definition)
            )
        return plan

    def _table(self, table_map: TableMap) -> Table:
        """The table as the target has it now."""
        database = self.options.rewrite.get(table_map.database, table_map.database)
        name = f"{database}.{table_map.table}"
        reason, definition = self._definition(database, table_map.table)
        if reason is not None:
            self._note(f"rows of {name} are sent as events: {reason}")
            definition = None
        return Table(table_map, name, definition)

    def _definition(self, database: str, table: str) -> tuple[str | None, TableDefinition | None]:
        """Why rows of the table cannot be statements, or how the table looks. A table that is not
        there is for the server to miss."""
        self._pipeline.settle()  # an error of what was sent before is not this table's
        try:
            create = self._show_create(f"SHOW CREATE TABLE {quoted(database)}.{quoted(table)}")
        except ReplicationError as error:
            if error.number in NO_SUCH_TABLE:
                return None, None
            raise
        try:
            definition = shown_definition(create, database, self._rules_version)
        except InputError as error:
            return f"its CREATE TABLE cannot be read ({error.message})", None
        if definition.system_versioned or any(column.system_time for column in definition.columns):
            return "it is system-versioned", None
        if definition.temporary:
            return "a temporary table of the log's sessions has its name", None
        if "SEQUENCE" in definition.options:
            return "it is a sequence", None
        where = f"EVENT_OBJECT_SCHEMA = {_text(database)} AND EVENT_OBJECT_TABLE = {_text(table)}"
        if self._pipeline.query(f"SELECT 1 FROM information_schema.TRIGGERS WHERE {where} LIMIT 1"):
            return "it has triggers, which statements would fire", None
        return None, definition

    def _show_create(self, sql: str) -> str:
        """The table's CREATE statement, in the quotes that the parser reads, whatever SQL mode the
        session has."""
        pipeline = self._pipeline
        pipeline.execute(saving(SETTINGS))
        pipeline.execute(setting(SETTINGS))
        try:
            row = pipeline.query(sql.encode("utf-8", "surrogateescape"))[0]
        except ReplicationError:
            pipeline.execute(putting_back(SETTINGS))
            raise
        pipeline.execute(putting_back(SETTINGS))
        return (row[1] or b"").decode("utf-8", "surrogateescape")

    # the session

    def _set_session(self, event: Event, rows: RowsHead, plan: StatementPlan) -> None:
        """What the event's statements need and the session does not have yet."""
        if self._session is None:
            self._session = dict(SETTINGS)
            self._out += [
                PipelineStatement(saving(self._saved)),
                PipelineStatement(setting(SETTINGS)),
            ]
        flags = rows.flags
        wanted = {
            "foreign_key_checks": str(int(not flags & NO_FOREIGN_KEY_CHECKS)),
            "unique_checks": str(int(not flags & RELAXED_UNIQUE_CHECKS)),
        }
        if self._checks_constraints:
            wanted["check_constraint_checks"] = str(int(not flags & NO_CHECK_CONSTRAINT_CHECKS))
        if plan.needs_time:
            wanted["timestamp"] = str(event.timestamp)
        changed = {
            name: value for name, value in wanted.items() if self._session.get(name) != value
        }
        if changed:
            self._session.update(changed)
            self._out.append(PipelineStatement(setting(changed)))

    def _put_settings_back(self) -> None:
        if self._session is not None:
            names = [name for name in self._saved if name in self._session]
            self._out.append(PipelineStatement(putting_back(names)))
            self._session = None


def saving(names: Iterable[str]) -> bytes:
    """Keeps session variables in user variables."""
    return ("SET " + ", ".join(f"@binlag_{name} = @@session.{name}" for name in names)).encode()


def setting(values: Mapping[str, str]) -> bytes:
    """Gives session variables values, each an expression of SQL."""
    return (
        "SET " + ", ".join(f"@@session.{name} = {value}" for name, value in values.items())
    ).encode()


def putting_back(names: Iterable[str]) -> bytes:
    """Gives session variables the values that `saving` kept."""
    return ("SET " + ", ".join(f"@@session.{name} = @binlag_{name}" for name in names)).encode()


def _text(name: str) -> str:
    return f"CONVERT(X'{name.encode('utf-8', 'surrogateescape').hex()}' USING utf8)"
