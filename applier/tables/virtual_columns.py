"""Virtual columns whose value hangs on the session that reads them: the log has what the source's
session saw.

A server computes a virtual column when it is read (sql/field.cc of MariaDB 10.11,
`update_generated_read_fields` of MySQL). Rows are shown at +00:00 here, so these values are
computed anew for that; one that is not exact here is refused where it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Any

from applier.binlog.types import Unevaluated
from applier.errors import ReplicationError
from applier.tables.definitions.altered_columns import names_in
from applier.tables.expressions.defaults import row_generator
from applier.tables.expressions.operands import Dialect, Session
from lookup.handler import Row
from lookup.table import Column, TableDefinition

OF_THE_SESSION = frozenset(
    """
        connection_id curdate current_date current_role current_time current_timestamp current_user
        curtime database
        found_rows from_unixtime last_insert_id localtime localtimestamp now rand row_count schema
        session_user sysdate
        system_user user utc_date utc_time utc_timestamp uuid uuid_short
    """.split()
)
"""Functions with another value for each session or moment."""
_OF_THE_MOMENT = frozenset(
    """
        curdate current_date current_time current_timestamp curtime localtime localtimestamp now
        sysdate utc_date utc_time utc_timestamp
    """.split()
)
_MOMENT_IN_SECONDS = re.compile(r"\bunix_timestamp\s*\(\s*\)", re.IGNORECASE)
OF_SETTINGS = frozenset("date_format dayname format monthname time_format week".split())
"""Functions that settings of the session decide: lc_time_names, default_week_format."""


def as_read(definition: TableDefinition, rows: Sequence[Row], dialect: Dialect) -> Sequence[Row]:
    """The rows as a session at +00:00 of such a server reads them; a value that is not exact is one
    of `Unevaluated`."""
    places = of_the_session(definition) + _overwritten(definition, dialect)
    quotients, unlogged = _quotients(definition, dialect), _unlogged(definition)
    if not (places or quotients or unlogged) or not rows:
        return rows
    generate = row_generator(definition, Session.at_utc(dialect), stored=False)
    assert generate is not None
    moments = {at: _moment_value(definition, at) for at in _of_the_moment(definition)}
    found = []
    for row in rows:
        made, shown = generate(row), list(row)
        for at in places:
            shown[at] = made[at]
        for at in quotients:
            shown[at] = _same_digits(definition, at, row[at], made[at])
        for at in unlogged:
            shown[at] = made[at] if row[at] is None else row[at]
        for at, unknown in moments.items():
            shown[at] = unknown
        found.append(tuple(shown))
    return found


def _of_the_moment(definition: TableDefinition) -> list[int]:
    """The virtual columns with another value each time that they are read, which only MariaDB
    has."""
    names, found = set(_OF_THE_MOMENT), []
    for at, column in enumerate(definition.columns):
        expression = column.expression or ""
        if column.is_virtual and (
            names_in(expression) & names or _MOMENT_IN_SECONDS.search(expression)
        ):
            names.add(column.name.lower())
            found.append(at)
    return found


def _moment_value(definition: TableDefinition, at: int) -> Unevaluated:
    why = f"virtual column {definition.columns[at].name} hangs on the moment at which it is read"
    return unknown_value(definition, at, why, "leave the table out with --exclude-table")


def _overwritten(definition: TableDefinition, dialect: Dialect) -> tuple[int, ...]:
    """Virtual TEXT and BLOB columns in a key that another virtual column names: an UPDATE may log
    the new value with bytes of the old one in it (seen on 9.7.4, not on 5.7.29)."""
    if not dialect.is_modern:
        return ()
    named: set[str] = set()
    for column in definition.columns:
        if column.is_virtual:
            named |= names_in(column.expression or "")
    keyed = {at for key in definition.keys for at in key.columns}
    return tuple(
        at
        for at, column in enumerate(definition.columns)
        if column.is_virtual
        and at in keyed
        and column.name.lower() in named
        and column.type.endswith(("blob", "text"))
    )


def _unlogged(definition: TableDefinition) -> tuple[int, ...]:
    """Virtual columns without a key of MariaDB's system-versioned tables: an image under
    binlog_row_image=MINIMAL has NULL for them where the statement did not need them (seen on
    10.11.18)."""
    if not any(column.system_time for column in definition.columns):
        return ()
    keyed = {at for key in definition.keys for at in key.columns}
    return tuple(
        at for at, column in enumerate(definition.columns) if column.is_virtual and at not in keyed
    )


def _quotients(definition: TableDefinition, dialect: Dialect) -> tuple[int, ...]:
    """MariaDB's virtual columns with a division: their digits follow div_precision_increment."""
    if not dialect.mariadb:
        return ()
    return tuple(
        at
        for at, column in enumerate(definition.columns)
        if column.is_virtual and "/" in (column.expression or "")
    )


def _same_digits(definition: TableDefinition, at: int, logged: Any, made: Any) -> Any:
    """The value of the log, where a session with the default sees the same one or it is not known.

    The log does not tell div_precision_increment, and what others read hangs on whose session
    opened the table (seen on 10.11.18).
    """
    if made.__class__ is Unevaluated or logged == made:
        return logged
    why = (
        f"virtual column {definition.columns[at].name} was written under another"
        " div_precision_increment, which a log does not tell: what a server shows of it is not"
        " known"
    )
    return unknown_value(definition, at, why, "leave the table out with --exclude-table")


def unknown_value(definition: TableDefinition, at: int, why: str, hint: str) -> Unevaluated:
    """What stands in a column whose value nobody can tell: who needs it gets error 1235."""
    error = ReplicationError(1235, why, table=definition.full_name, hint=hint)
    return Unevaluated(definition.columns[at].name, error)


def of_the_session(definition: TableDefinition, *, virtual: bool = True) -> tuple[int, ...]:
    """The columns of that kind: the virtual ones, which may name one another; or the stored ones,
    which may name both.

    One that names an AUTO_INCREMENT column, which only MariaDB lets it, is among them: the log has
    what it was before the row got its number (seen on 10.11.18).
    """
    moments = {
        column.name.lower()
        for column in definition.columns
        if column.type == "timestamp" and not column.generated
    }
    known = definition.positions.keys() - moments
    names = {
        column.name.lower() for column in definition.columns if virtual and column.auto_increment
    }
    found = []
    for at, column in enumerate(definition.columns):
        counts = column.is_virtual or (column.generated and not virtual)
        if counts and _hangs_on_session(
            column, names_in(column.expression or ""), moments, names, known
        ):
            names.add(column.name.lower())
            if column.is_virtual == virtual:
                found.append(at)
    return tuple(found)


def _hangs_on_session(
    column: Column, named: set[str], moments: set[str], others: set[str], known: Set[str]
) -> bool:
    """User variables are the session's. A TIMESTAMP is shown in its time zone, and so is what is
    made of one. Of UNIX_TIMESTAMP it is the other way round: only that of a TIMESTAMP is the same
    in each."""
    if named & OF_THE_SESSION or named & others or any(name.startswith("@") for name in named):
        return True
    if "unix_timestamp" in named:
        return bool(named & known) or _MOMENT_IN_SECONDS.search(column.expression or "") is not None
    return bool(named & moments) != (column.type == "timestamp")
