"""What a live server estimates of its tables: rows, and distinct values of each key.

InnoDB samples a few pages for both; MyISAM counts. From 8.0 on information_schema keeps the numbers
for a day, unless information_schema_stats_expiry is 0 (seen on 9.7.4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from applier.mysql.client.url import Endpoint

if TYPE_CHECKING:
    from applier.mysql.client.connection import Server

_EXPIRY = "SHOW VARIABLES LIKE 'information_schema_stats_expiry'"
_TABLES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, AVG_ROW_LENGTH, AUTO_INCREMENT FROM"
    " information_schema.TABLES"
)
_KEYS = """SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, MAX(CARDINALITY)
FROM information_schema.STATISTICS GROUP BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME"""


@dataclass(frozen=True)
class TableStatistics:
    """One table. `auto_increment` is the next value, 0 without such a column; `cardinalities`: key
    -> values."""

    rows: float
    row_bytes: float
    auto_increment: float
    cardinalities: dict[str, float] = field(default_factory=dict)


def live_statistics(endpoint: Endpoint) -> tuple[dict[str, TableStatistics], str]:
    """(The numbers by full name of the table, the server's version). Raises InputError."""
    from applier.mysql.client.connection import connect

    server = connect(endpoint)
    try:
        return _read(server), server.value("SELECT VERSION()") or ""
    finally:
        server.close()


def _read(server: Server) -> dict[str, TableStatistics]:
    if server.query(_EXPIRY):
        server.execute("SET SESSION information_schema_stats_expiry = 0")
    found = {
        f"{database}.{table}": TableStatistics(
            float(rows or 0), float(row_bytes or 0), float(following or 0)
        )
        for database, table, rows, row_bytes, following in server.texts(_TABLES)
    }
    for database, table, key, cardinality in server.texts(_KEYS):
        if cardinality and f"{database}.{table}" in found:
            found[f"{database}.{table}"].cardinalities[str(key)] = float(cardinality)
    return found
