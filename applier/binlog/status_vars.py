"""The session state that a QUERY event carries along (`Query_event`,
libs/mysql/binlog/event/statement_events.cpp 9.7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from applier.binlog.cursor import Cursor
from applier.errors import NOT_SUPPORTED, ReplicationError

OVER_MAX_DATABASES = 254
MOST_MICROSECONDS = 999_999


AUTO_IS_NULL, NO_FOREIGN_KEY_CHECKS, RELAXED_UNIQUE_CHECKS = 1 << 14, 1 << 26, 1 << 27
"""Bits of flags2 (`OPTION_…`, sql/query_options.h)."""
NO_CHECK_CONSTRAINTS = 1 << 15
"""The same of MariaDB: check_constraint_checks is off (OPTION_NO_CHECK_CONSTRAINT_CHECKS)."""
EXPLICIT_DEFAULTS = 1 << 24
"""Of MariaDB, too: explicit_defaults_for_timestamp (`OPTION_EXPLICIT_DEF_TIMESTAMP`, seen on
10.11.18)."""
IF_EXISTS, INSERT_HISTORY = 1 << 28, 1 << 30
"""Of MariaDB, too: sql_if_exists and system_versioning_insert_history (seen on 10.11.18)."""


@dataclass(frozen=True, slots=True)
class StatusVariables:
    """None where the event does not say. `unknown` is the first code that no rule here knows: the
    server stops there too."""

    flags2: int | None = None
    sql_mode: int | None = None
    catalog: bytes | None = None
    auto_increment: tuple[int, int] | None = None
    charset: tuple[int, int, int] | None = None
    """character_set_client, collation_connection, collation_server"""
    time_zone: bytes | None = None
    lc_time_names: int | None = None
    collation_database: int | None = None
    table_map_for_update: int | None = None
    source_data_written: int | None = None
    invoker: tuple[bytes, bytes] | None = None
    updated_databases: tuple[bytes, ...] | None = None
    """Empty when there were too many to list."""
    microseconds: int = 0
    explicit_defaults_for_timestamp: bool | None = None
    ddl_xid: int | None = None
    default_collation_for_utf8mb4: int | None = None
    sql_require_primary_key: bool | None = None
    default_table_encryption: bool | None = None
    enable_cascade_triggers: bool | None = None
    xid: int | None = None
    gtid_flags3: int | None = None
    unknown: int | None = None

    @property
    def client_collation(self) -> int:
        """The number of a collation of the client's character set; without one the client is taken
        for one that speaks utf8mb4."""
        return self.charset[0] if self.charset is not None else 45

    @property
    def fraction(self) -> int:
        """The microseconds of NOW(6). Raises ReplicationError 1235 for a million: 5.6.24 and 5.7.29
        log that after `SET timestamp = 1.9999996`, NOW(6) is "00:00:01.1000000" there, and no value
        of `timestamp` says the same to another server."""
        if self.microseconds > MOST_MICROSECONDS:
            raise ReplicationError(
                NOT_SUPPORTED,
                f"a statement's moment with {self.microseconds:,} microseconds",
                hint="skip the statement with --skip-errors 1235",
            )
        return self.microseconds

    @property
    def foreign_key_checks(self) -> bool:
        """The session's foreign_key_checks."""
        return not (self.flags2 or 0) & NO_FOREIGN_KEY_CHECKS

    @property
    def auto_is_null(self) -> bool:
        """The session's sql_auto_is_null."""
        return bool((self.flags2 or 0) & AUTO_IS_NULL)


def _string8(cursor: Cursor) -> bytes:
    return cursor.take(cursor.u8())


def _catalog_with_end(cursor: Cursor) -> bytes:
    text = _string8(cursor)
    cursor.skip(1)
    return text


def _databases(cursor: Cursor) -> tuple[bytes, ...]:
    count = cursor.u8()
    if count == OVER_MAX_DATABASES:
        return ()
    names = []
    for _ in range(count):
        end = cursor.buffer.find(b"\0", cursor.at, cursor.end)
        names.append(cursor.take(max(end, cursor.at) - cursor.at))
        cursor.skip(1)
    return tuple(names)


def _gtid_flags3(cursor: Cursor) -> int:
    flags = cursor.u8()
    if flags & 0x0C:
        cursor.skip(8)
    return flags


VARIABLES: dict[int, tuple[str, Callable[[Cursor], Any]]] = {
    0: ("flags2", Cursor.u32),
    1: ("sql_mode", Cursor.u64),
    2: ("catalog", _catalog_with_end),
    3: ("auto_increment", lambda cursor: (cursor.u16(), cursor.u16())),
    4: ("charset", lambda cursor: (cursor.u16(), cursor.u16(), cursor.u16())),
    5: ("time_zone", _string8),
    6: ("catalog", _string8),
    7: ("lc_time_names", Cursor.u16),
    8: ("collation_database", Cursor.u16),
    9: ("table_map_for_update", Cursor.u64),
    10: ("source_data_written", Cursor.u32),
    11: ("invoker", lambda cursor: (_string8(cursor), _string8(cursor))),
    12: ("updated_databases", _databases),
    13: ("microseconds", lambda cursor: cursor.unsigned(3)),
    16: ("explicit_defaults_for_timestamp", lambda cursor: bool(cursor.u8())),
    17: ("ddl_xid", Cursor.u64),
    18: ("default_collation_for_utf8mb4", Cursor.u16),
    19: ("sql_require_primary_key", lambda cursor: bool(cursor.u8())),
    20: ("default_table_encryption", lambda cursor: bool(cursor.u8())),
    21: ("enable_cascade_triggers", lambda cursor: bool(cursor.u8())),
    128: ("microseconds", lambda cursor: cursor.unsigned(3)),
    129: ("xid", Cursor.u64),
    130: ("gtid_flags3", _gtid_flags3),
}
"""Code -> field and how its payload is read; 14 and 15 (commit timestamps) never left a development
tree."""

EMPTY = StatusVariables()


@lru_cache(maxsize=256)
def parse_status_variables(block: bytes) -> StatusVariables:
    """The variables of one event; sessions are few, and a log's statements are many. Raises
    InputError when one runs past the end of the block."""
    if not block:
        return EMPTY
    cursor = Cursor(block)
    found: dict[str, Any] = {}
    while cursor.left:
        code = cursor.u8()
        if code not in VARIABLES:
            found["unknown"] = code
            break
        name, read = VARIABLES[code]
        found[name] = read(cursor)
    return replace(EMPTY, **found)
