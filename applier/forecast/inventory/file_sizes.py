"""Rows of a live server's tables whose files are much larger than their statistics say.

An ALTER TABLE that copies makes statistics of its first rows on a 5.7.29, and nothing corrects them
until a tenth of the rows has changed: 16 rows in 2 pages, whose file has 36 MiB. A file says no
more than that they may be old, since it never shrinks; so rows are counted there, up to a limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from applier.tables.sql.quoting import quoted

LARGER = 4
"""Times that a file is larger than statistics say before anybody counts: it grows by 4 MiB."""
SMALLEST_BYTES = 4 << 20
MOST_COUNTED = 1_000_000
"""A 5.7.29 counts them in a tenth to half a second, in memory."""
_NAMES = ("innodb_tablespaces", "innodb_sys_tablespaces")
"""From 8.0 on, and before."""


def counted_rows(
    connection: Any, tables: Iterable[tuple[str, str, float]]
) -> dict[tuple[str, str], float]:
    """Table -> rows, of those (database, name, bytes by statistics) that have a file much larger.

    Rows are counted up to MOST_COUNTED. Tables that share a file, have partitions, or have a name
    that the file has in other letters are left out, as are all where the account may not see files
    (PROCESS), and those that it may not read.
    """
    from sqlalchemy import exc

    files, found = _file_bytes(connection), {}
    for database, name, said_bytes in tables:
        held = files.get(f"{database}/{name}", 0.0)
        if held >= SMALLEST_BYTES and held > LARGER * said_bytes:
            rows = f"SELECT 1 FROM {quoted(database)}.{quoted(name)} LIMIT {MOST_COUNTED}"
            try:
                counted = connection.exec_driver_sql(f"SELECT COUNT(*) FROM ({rows}) AS some")
            except exc.SQLAlchemyError:
                continue
            found[database, name] = float(counted.scalar())
    return found


def _file_bytes(connection: Any) -> dict[str, float]:
    """Name of a tablespace -> bytes of its file."""
    from sqlalchemy import exc, text

    for name in _NAMES:
        try:
            rows = connection.execute(
                text(f"SELECT name, file_size FROM information_schema.{name}")
            ).all()
        except exc.SQLAlchemyError:
            continue
        return {str(space): float(size or 0) for space, size in rows}
    return {}
