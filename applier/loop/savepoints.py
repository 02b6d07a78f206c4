"""SAVEPOINT, ROLLBACK TO SAVEPOINT and RELEASE SAVEPOINT, as QUERY events bring them."""

from __future__ import annotations

import re

from applier.binlog.events import Query
from applier.errors import ReplicationError
from applier.tables.catalog import Tables
from applier.tables.sql.quoting import unquoted

_STATEMENT = re.compile(
    rb"\s*(SAVEPOINT|ROLLBACK\s+(?:WORK\s+)?TO(?:\s+SAVEPOINT)?|RELEASE\s+SAVEPOINT)\s+(.*)",
    re.IGNORECASE | re.DOTALL,
)


def carry_out_savepoint(tables: Tables, query: Query) -> bool:
    """Whether the statement is one of them; it is carried out then. Raises ReplicationError 1305
    for a savepoint that was not set."""
    match = _STATEMENT.match(query.sql)
    if match is None:
        return False
    word = match[1].upper()
    name = unquoted(match[2].decode("utf-8", "surrogateescape").strip()).lower()
    if word == b"SAVEPOINT":
        tables.savepoint(name)
    elif word.startswith(b"ROLLBACK"):
        try:
            tables.rollback_to(name)
        except KeyError:
            raise ReplicationError(1305, f"SAVEPOINT {name} does not exist") from None
    return True
