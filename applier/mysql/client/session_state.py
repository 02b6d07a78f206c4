"""The session that a statement of the log ran in, set up on the target: only what differs from the
statement before is sent.

As `Query_log_event::do_apply_event` (sql/log_event.cc 5.6 to 9.7, MariaDB 10.11) sets it on a
replica. What an event does not say stays as it is, but for the few variables whose absence means
their default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from applier.binlog.events import Query
from applier.binlog.header import Event
from applier.binlog.status_vars import (
    EXPLICIT_DEFAULTS,
    IF_EXISTS,
    INSERT_HISTORY,
    NO_CHECK_CONSTRAINTS,
    RELAXED_UNIQUE_CHECKS,
    StatusVariables,
)
from applier.mysql.client.dialect import TargetDialect

SUPPRESS_USE, THREAD_SPECIFIC = 0x8, 0x4
_PSEUDO_THREAD = re.compile(rb"pseudo_thread_id", re.IGNORECASE)
"""A statement that reads it is not marked as THREAD_SPECIFIC; a replica sets it for each one."""
COMMON_SQL_MODES = (1 << 32) - 1
"""Bits that mean the same to MySQL and MariaDB."""
FALLBACK_COLLATION = 45
"""utf8mb4_general_ci: every server has it."""
MARIADB_FLAGS = {
    "check_constraint_checks": (NO_CHECK_CONSTRAINTS, 0),
    "explicit_defaults_for_timestamp": (EXPLICIT_DEFAULTS, 1),
    "sql_if_exists": (IF_EXISTS, 1),
    "system_versioning_insert_history": (INSERT_HISTORY, 1),
}
"""Session variable -> its bit of flags2, and the value that the bit stands for."""


class SessionState:
    """What the target's session is set to. A new one for each connection."""

    def __init__(self, dialect: TargetDialect, *, source_is_mariadb: bool = False) -> None:
        self.dialect = dialect
        self.source_is_mariadb = source_is_mariadb
        self._set: dict[str, str] = {}
        self._database: bytes | None = None
        self._known: dict[tuple[StatusVariables, bool], tuple[tuple[str, str], ...]] = {}

    def for_statement(self, event: Event, query: Query, database: bytes) -> list[bytes]:
        """What must be sent before a statement; `database` is its default database as it is called
        on the target."""
        wanted = dict(self._assignments(query.variables, for_rows=False))
        fraction = query.variables.fraction
        wanted["timestamp"] = (
            f"{event.timestamp}.{fraction:06d}" if fraction else str(event.timestamp)
        )
        if event.flags & THREAD_SPECIFIC or _PSEUDO_THREAD.search(query.sql):
            wanted["pseudo_thread_id"] = str(query.thread_id)
        # ALTER DATABASE may leave the name to the session; the others may have no database yet, and
        # that of FLUSH may be gone, which a replica does not ask (`set_thd_db`, sql/log_event.cc)
        verb = query.sql[:5].upper()
        suppressed = verb == b"FLUSH" or (event.flags & SUPPRESS_USE and verb != b"ALTER")
        if not database or suppressed or database == self._database:
            return self._difference(wanted)
        self._database = database
        if database.isascii():
            return [*self._difference(wanted), b"USE " + quoted(database)]
        # its name is in UTF-8, whatever the statement's client sends
        self._set.pop("character_set_client", None)
        in_utf8 = b"SET @@session.character_set_client=utf8"
        return [in_utf8, b"USE " + quoted(database), *self._difference(wanted)]

    def for_rows(self, query: Query) -> list[bytes]:
        """What rows behind this BEGIN depend on: generated columns and checks are evaluated in the
        session."""
        return self._difference(dict(self._assignments(query.variables, for_rows=True)))

    def forget_database(self) -> None:
        """After a statement that may have dropped it."""
        self._database = None

    def _difference(self, wanted: dict[str, str]) -> list[bytes]:
        changed = {name: value for name, value in wanted.items() if self._set.get(name) != value}
        if not changed:
            return []
        self._set.update(changed)
        return [
            (
                "SET " + ", ".join(f"@@session.{name}={value}" for name, value in changed.items())
            ).encode()
        ]

    def _assignments(
        self, variables: StatusVariables, *, for_rows: bool
    ) -> tuple[tuple[str, str], ...]:
        place = variables, for_rows
        if place not in self._known:
            if len(self._known) > 1000:
                self._known.clear()
            found = _ROWS_RULES if for_rows else _STATEMENT_RULES
            pairs = [pair for rule in found for pair in rule(self, variables)]
            self._known[place] = tuple(
                (name, value) for name, value in pairs if name in self.dialect.variables
            )
        return self._known[place]

    # one rule per status variable

    def _flags(self, variables: StatusVariables) -> Iterator[tuple[str, str]]:
        flags = variables.flags2
        if flags is not None:
            yield "foreign_key_checks", str(int(variables.foreign_key_checks))
            yield "unique_checks", str(int(not flags & RELAXED_UNIQUE_CHECKS))
            yield "sql_auto_is_null", str(int(variables.auto_is_null))
            if self.source_is_mariadb:
                for name, (bit, value) in MARIADB_FLAGS.items():
                    yield name, str(value if flags & bit else 1 - value)

    def _sql_mode(self, variables: StatusVariables) -> Iterator[tuple[str, str]]:
        mode = variables.sql_mode
        if mode is not None:
            yield (
                "sql_mode",
                str(
                    mode
                    if self.source_is_mariadb == self.dialect.is_mariadb
                    else mode & COMMON_SQL_MODES
                ),
            )

    def _time_zone(self, variables: StatusVariables) -> Iterator[tuple[str, str]]:
        if variables.time_zone is not None:
            yield "time_zone", f"_latin1'{variables.time_zone.decode('latin-1')}'"

    def _charset(self, variables: StatusVariables) -> Iterator[tuple[str, str]]:
        if variables.charset is not None:
            names = ("character_set_client", "collation_connection", "collation_server")
            yield from zip(names, map(self._collation, variables.charset), strict=True)

    def _collation(self, number: int) -> str:
        return str(number if number in self.dialect.collations else FALLBACK_COLLATION)

    def _collation_database(self, variables: StatusVariables) -> Iterator[tuple[str, str]]:
        number = variables.collation_database
        yield "collation_database", "DEFAULT" if number is None else self._collation(number)

    def _auto_increment(self, variables: StatusVariables) -> Iterator[tuple[str, str]]:
        increment, offset = variables.auto_increment or (1, 1)
        yield "auto_increment_increment", str(increment)
        yield "auto_increment_offset", str(offset)

    def _lc_time_names(self, variables: StatusVariables) -> Iterator[tuple[str, str]]:
        yield "lc_time_names", str(variables.lc_time_names or 0)

    def _utf8mb4_default(self, variables: StatusVariables) -> Iterator[tuple[str, str]]:
        number = variables.default_collation_for_utf8mb4
        if number is not None:
            yield "default_collation_for_utf8mb4", self._collation(number)

    def _switches(self, variables: StatusVariables) -> Iterator[tuple[str, str]]:
        for name in (
            "explicit_defaults_for_timestamp",
            "sql_require_primary_key",
            "default_table_encryption",
            "enable_cascade_triggers",
        ):
            value = getattr(variables, name)
            if value is not None:
                yield name, str(int(value))


Rule = Callable[[SessionState, StatusVariables], Iterator[tuple[str, str]]]
_ROWS_RULES: tuple[Rule, ...] = (SessionState._sql_mode, SessionState._time_zone)
_STATEMENT_RULES: tuple[Rule, ...] = (
    *_ROWS_RULES,
    SessionState._flags,
    SessionState._charset,
    SessionState._collation_database,
    SessionState._auto_increment,
    SessionState._lc_time_names,
    SessionState._utf8mb4_default,
    SessionState._switches,
)


def quoted(name: bytes) -> bytes:
    """A name in backquotes."""
    return b"`" + name.replace(b"`", b"``") + b"`"


def hex_literal(value: bytes) -> str:
    """Bytes as a literal that no character set touches."""
    return f"X'{value.hex()}'"
