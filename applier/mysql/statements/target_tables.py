"""What the target's tables are like, as far as it decides how their rows are sent. Asked once for
each table."""

from __future__ import annotations

from dataclasses import dataclass

from applier.mysql.client.connection import Server

_INDEXES = (
    "SELECT NON_UNIQUE=0 AND SUM(NULLABLE='YES')=0 AS IS_KEY FROM information_schema.STATISTICS"
    " WHERE TABLE_SCHEMA={0} AND TABLE_NAME={1} GROUP BY INDEX_NAME, NON_UNIQUE"
)
_TABLE = (
    f"SELECT E.TRANSACTIONS, (SELECT MAX(IS_KEY) FROM ({_INDEXES}) I) FROM"
    " information_schema.TABLES T JOIN information_schema.ENGINES E ON E.ENGINE=T.ENGINE WHERE"
    " T.TABLE_SCHEMA={0} AND T.TABLE_NAME={1}"
)
"""The last column is NULL for a table without indexes."""
_REFERRING = (
    "SELECT 1 FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE UNIQUE_CONSTRAINT_SCHEMA={0}"
    " AND REFERENCED_TABLE_NAME={1} LIMIT 1"
)
"""5.x opens every table of the server for it."""


@dataclass(frozen=True, slots=True)
class TargetTable:
    """`scanned`: it has neither a primary key nor a unique one without nullable columns, so that
    the server reads it for each rows event.

    A table that others refer to does not count as such: its changes go on in their rows, so that
    the order of all of them matters.
    """

    transactional: bool
    scanned: bool


ABSENT = TargetTable(transactional=True, scanned=False)
"""A table that is not there: the error comes when it is written to."""


class TargetTables:
    """Looks over a connection of its own; `forget` after a statement that may change a table."""

    def __init__(self, side: Server) -> None:
        self._side = side
        self._known: dict[tuple[str, str], TargetTable] = {}

    def forget(self) -> None:
        """A table may have changed."""
        self._known.clear()

    def of(self, database: str, table: str) -> TargetTable:
        """The table as the target has it; asked for once."""
        place = database, table
        if place not in self._known:
            schema, name = (
                f"CONVERT(X'{text.encode('utf-8', 'surrogateescape').hex()}' USING utf8)"
                for text in place
            )
            self._known[place] = self._ask(schema, name)
        return self._known[place]

    def _ask(self, schema: str, name: str) -> TargetTable:
        """Foreign keys need an index of the table that they refer to, so a table without any is not
        looked for among those."""
        rows = self._side.query(_TABLE.format(schema, name))
        if not rows:
            return ABSENT
        transactions, has_key = rows[0]
        scanned = has_key is None or (
            has_key == b"0" and not self._side.query(_REFERRING.format(schema, name))
        )
        return TargetTable(transactions == b"YES", scanned)
