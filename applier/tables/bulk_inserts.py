"""InnoDB's bulk inserts of MariaDB: rows that a statement writes into an empty table while neither
unique_checks nor foreign_key_checks is on are stored at the statement's end, and no other event of
the statement finds them.

Such an event comes of REPLACE, ON DUPLICATE KEY UPDATE and triggers. The source stores their rows
at once, a replica, for which each event stands by itself, in bulk: it stops with 1032
(row_ins_clust_index_entry_low, storage/innobase/row/row0ins.cc; seen on 10.11.18). Of two rows
with the same unique key, which a replica may have where the source has none, it hears at the
statement's end: 1180, which --skip-errors 1062 does not pass over (seen there, too).
"""

from __future__ import annotations

from applier.binlog.rows import NO_FOREIGN_KEY_CHECKS, RELAXED_UNIQUE_CHECKS, RowsHead
from applier.tables.catalog import table_of
from applier.tables.engine import MemoryTable
from applier.tables.expressions.operands import unsupported
from lookup.batch import ApplyOptions, RowFailure, RowsOutcome
from lookup.handler import DuplicateKey, traits_of

UNCHECKED = NO_FOREIGN_KEY_CHECKS | RELAXED_UNIQUE_CHECKS
ER_ERROR_DURING_COMMIT = 1180


class BulkInserts:
    """The tables that the statement at hand fills."""

    def __init__(self) -> None:
        self._seen: dict[MemoryTable, MemoryTable] = {}
        """Table -> what the statement's other events see of it: no rows."""
        self._ended = False
        self._duplicate: RowFailure | None = None

    def seen(self, table: MemoryTable, rows: RowsHead) -> MemoryTable:
        """The table as this event finds it.

        Raises ReplicationError 1235 where the table had rows that InnoDB may not have purged yet.
        """
        if self._ended:
            self._seen.clear()
            self._duplicate = None
        self._ended = rows.ends_statement
        found = table
        if rows.kind != "write":
            found = self._seen.get(table, table)
        elif not len(table):
            # also where a statement that was cut off and rolled back had filled it
            self._seen.pop(table, None)
            if rows.flags & UNCHECKED == UNCHECKED and _takes_bulk(table):
                self._seen[table] = table_of(table.definition)
        if found is not table and table.had_deletes:
            name = table.definition.full_name
            raise unsupported(f"rows of {name} that one statement writes in bulk and changes")
        return found

    def settle(
        self, table: MemoryTable, rows: RowsHead, outcome: RowsOutcome, options: ApplyOptions
    ) -> None:
        """Keeps the duplicate that an event wrote until the statement's last event, whose error it
        is."""
        if rows.kind == "write" and table in self._seen:
            for failure in (outcome.error, *outcome.forgiven):
                if failure is not None and failure.number == DuplicateKey.number:
                    self._duplicate = RowFailure(
                        ER_ERROR_DURING_COMMIT,
                        'Got error 1 "Operation not permitted" during COMMIT',
                        "",
                        failure.row,
                    )
                    outcome.error, outcome.forgiven = None, ()
        if self._duplicate is not None and rows.ends_statement:
            if options.skips(self._duplicate.number):
                outcome.forgiven += (self._duplicate,)
            else:
                outcome.error = self._duplicate


def _takes_bulk(table: MemoryTable) -> bool:
    definition = table.definition
    return traits_of(definition).bulk_inserts and not (
        definition.partitioned or definition.system_versioned
    )
