"""A table whose tablespace was discarded: InnoDB knows its definition, and it has no rows until
another server's files are imported (`row_discard_tablespace_for_mysql`, 5.6 to 9.7 and MariaDB)."""

from __future__ import annotations

from applier.errors import ReplicationError
from applier.tables.engine import MemoryTable


class DiscardedTable(MemoryTable):
    """Stays so through ALTER TABLE and RENAME; MariaDB's TRUNCATE makes it an empty table again
    (seen on 5.7.29, 9.7.4, 10.11.18)."""

    def open(self) -> None:
        """Raises ReplicationError 1814."""
        name = self.definition.name
        raise ReplicationError(
            1814,
            f"Tablespace has been discarded for table '{name}'",
            table=self.definition.full_name,
            hint="the rows are in files that the log does not have: leave the table out with"
            " --exclude-table, or replay into a test DB",
        )
