"""Rows of a live server's tables whose files are much larger than their statistics say.

An ALTER TABLE that copies makes statistics of its first rows on a 5.7.29, and nothing corrects them
until a tenth of the rows has changed: 16 rows in 2 pages, whose file has 36 MiB. A file says no
more than that they may be old, since it never shrinks; so rows are counted there, up to a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from applier.tables.sql.quoting import quoted

LARGER = 4
"""Times that a file is larger than statistics say before rows are counted: it grows by 4 MiB."""
SMALLEST_BYTES = 4 << 20
MOST_COUNTED = 1_000_000
LONGEST_SECONDS = 5
_LIMITS = (
    f"SET SESSION max_execution_time = {LONGEST_SECONDS * 1000}",
    f"SET SESSION max_statement_time = {LONGEST_SECONDS}",
)
"""Of MySQL from 5.7 on, and of MariaDB: rows that are deleted and not yet purged are read, and no
LIMIT counts them."""
_NAMES = ("innodb_tablespaces", "innodb_sys_tablespaces")
"""From 8.0 on, and before."""


def counted_rows(
    connection: Any, tables: Iterable[tuple[str, str, float]]
) -> dict[tuple[str, str], float]:
    """Table -> rows, of those (database, name, bytes by statistics) that have a file much larger.

    Rows are counted up to MOST_COUNTED. Tables that share a file, have partitions, or have a name
    that the file has in other letters are left out, as are all where the account may not see files
    (PROCESS), those that it may not read, and those that take longer than LONGEST_SECONDS.
    """
    files = _file_bytes(connection)
    doubtful = [
        (database, name)
        for database, name, said_bytes in tables
        if files.get(f"{database}/{name}", 0.0) >= max(SMALLEST_BYTES, LARGER * said_bytes)
    ]
    if doubtful:
        for limit in _LIMITS:
            rows_if_told(connection, limit)
    found = {}
    for database, name in doubtful:
        rows = f"SELECT 1 FROM {quoted(database)}.{quoted(name)} LIMIT {MOST_COUNTED}"
        counted = rows_if_told(connection, f"SELECT COUNT(*) FROM ({rows}) AS some")
        if counted is not None:
            found[database, name] = float(counted[0][0])
    return found


def _file_bytes(connection: Any) -> dict[str, float]:
    """Name of a tablespace -> bytes of its file."""
    for name in _NAMES:
        rows = rows_if_told(connection, f"SELECT name, file_size FROM information_schema.{name}")
        if rows is not None:
            return {str(space): float(size or 0) for space, size in rows}
    return {}


def rows_if_told(connection: Any, statement: str) -> Sequence[Any] | None:
    """Its rows; None where the server has no such variable or table, or refuses it."""
    from sqlalchemy import exc

    try:
        result = connection.exec_driver_sql(statement)
        return result.all() if result.returns_rows else []
    except exc.SQLAlchemyError:
        return None
