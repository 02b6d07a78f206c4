"""The end of rows of system-versioned tables that still hold (MariaDB)."""

from __future__ import annotations

from applier.binlog.types.temporal import pack_timestamp

END_OF_TIME = pack_timestamp(((1 << 31) - 1) * 1_000_000 + 999_999, 6)
"""The end of a system-versioned row that still holds (MariaDB: 2038-01-19 03:14:07.999999 UTC)."""
ENDS_OF_TIME = frozenset(
    {END_OF_TIME, pack_timestamp(((1 << 32) - 1) * 1_000_000 + 999_999, 6), (1 << 64) - 1}
)
"""The same from MariaDB 11.5 on, and of tables that are versioned by transaction numbers."""
