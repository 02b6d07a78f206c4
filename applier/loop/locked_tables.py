"""The tables of a statement, as a replica's applier locks them for its rows events.

The applier walks its list as far as it had tables before they were opened. Opening a MERGE table
puts the tables below it into the list, right behind it, so that as many at the list's end are not
walked: their rows are passed over without an error (`Rows_log_event::do_apply_event`; seen on
5.7.29, 9.7.4, MariaDB 10.11.18).
"""

from __future__ import annotations

from collections.abc import Callable

from applier.binlog.table_map import TableMap
from applier.errors import ReplicationError
from applier.tables.engine import MemoryTable
from applier.tables.merge_tables import is_merge, union_tables

Find = Callable[[TableMap], MemoryTable | None]


class LockedTables:
    """Those of the statement that is being read. `find`: the table of a table map."""

    __slots__ = ("_find", "_maps", "_passed_over", "is_last")

    def __init__(self, find: Find) -> None:
        self._find = find
        self.is_last = False
        """The rows event at hand ends its statement: the next table map is of another one."""
        self._maps: list[TableMap] = []
        self._passed_over: list[str] | None = None

    def add(self, table_map: TableMap) -> None:
        """The next table of the statement, or the first one of the next."""
        if self.is_last:
            self.is_last = False
            self._maps.clear()
            self._passed_over = None
        self._maps.append(table_map)

    def check(self, table_map: TableMap) -> None:
        """Raises ReplicationError 1235 for rows that a replica passes over: they are on the source,
        not on its replicas."""
        if len(self._maps) < 2:
            return
        if self._passed_over is None:
            self._passed_over = self._beyond_the_list()
        if table_map.full_name in self._passed_over:
            raise ReplicationError(
                1235,
                f"rows of {table_map.full_name} in one statement with a MERGE table: a replica"
                " passes over them without an error",
                hint="pass over them, too, with --skip-errors 1235",
            )

    def _beyond_the_list(self) -> list[str]:
        places, walked = [], 0
        for table_map in reversed(self._maps):
            places.append((walked, table_map.full_name))
            walked += 1
            table = self._find(table_map)
            if table is not None and is_merge(table.definition):
                walked += len(union_tables(table.definition))
        return [name for place, name in places if place >= len(self._maps)]
