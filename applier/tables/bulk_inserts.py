"""InnoDB's bulk inserts of MariaDB: rows that a statement writes into an empty table while neither
unique_checks nor foreign_key_checks is on are stored at the statement's end, and no other event of
the statement finds them.

Such an event comes of REPLACE, ON DUPLICATE KEY UPDATE and triggers. The source stores their rows
at once, a replica, for which each event stands by itself, in bulk: it stops with 1032
(row_ins_clust_index_entry_low, storage/innobase/row/row0ins.cc; seen on 10.11.18).
"""

from __future__ import annotations

from applier.binlog.rows import NO_FOREIGN_KEY_CHECKS, RELAXED_UNIQUE_CHECKS, RowsHead
from applier.tables.catalog import table_of
from applier.tables.engine import MemoryTable
from applier.tables.expressions.operands import unsupported
from lookup.handler import traits_of

UNCHECKED = NO_FOREIGN_KEY_CHECKS | RELAXED_UNIQUE_CHECKS


class BulkInserts:
    """The tables that the statement at hand fills."""

    def __init__(self) -> None:
        self._seen: dict[MemoryTable, MemoryTable] = {}
        """Table -> what the statement's other events see of it: no rows."""

    def seen(self, table: MemoryTable, rows: RowsHead) -> MemoryTable:
        """The table as this event finds it.

        Raises ReplicationError 1235 where the table had rows that InnoDB may not have purged yet.
        """
        found = table
        if rows.kind != "write":
            found = self._seen.get(table, table)
        elif not len(table):
            # also where a statement that was cut off and rolled back had filled it
            self._seen.pop(table, None)
            if rows.flags & UNCHECKED == UNCHECKED and _takes_bulk(table):
                self._seen[table] = table_of(table.definition)
        if rows.ends_statement:
            self._seen.clear()
        if found is not table and table.had_deletes:
            name = table.definition.full_name
            raise unsupported(f"rows of {name} that one statement writes in bulk and changes")
        return found


def _takes_bulk(table: MemoryTable) -> bool:
    definition = table.definition
    return traits_of(definition).bulk_inserts and not (
        definition.partitioned or definition.system_versioned
    )
