"""What a transaction touches, before it does: its databases, which must be ours, and whether its
tables can be rolled back."""

from __future__ import annotations

import re
from collections.abc import Iterable

from applier.binlog.events import Query, parse
from applier.binlog.header import Event, EventType, FormatDescription
from applier.binlog.table_map import read_table_map
from applier.mysql.client.connection import Server
from applier.mysql.client.safety import SYSTEM_SCHEMAS, foreign_data, holds_data
from applier.mysql.feed import SourceTransaction
from applier.mysql.statements.ddl import names_in
from applier.mysql.statements.target_tables import TargetTables
from applier.mysql.statements.writer import Writer, text_of
from applier.tables.sql.statement_names import is_wanted

_DML = re.compile(r"\s*(INSERT|REPLACE|UPDATE|DELETE|LOAD)\b", re.IGNORECASE)


class Footprint:
    """Looks at each table once, over a connection of its own. Raises UsageError for a database that
    holds data of somebody else."""

    def __init__(
        self,
        side: Server,
        writer: Writer,
        tables: TargetTables,
        owned: Iterable[str],
        *,
        force: bool,
    ) -> None:
        self.side = side
        self.tables = tables
        self.writer = writer
        self.owned = set(owned)
        self.force = force
        self._maps: dict[bytes, bool] = {}
        """Body of a table map -> whether its table can be rolled back."""

    def forget_tables(self) -> None:
        """After a statement that may have changed a table."""
        self._maps.clear()
        self.tables.forget()

    def can_roll_back(self, source: SourceTransaction) -> bool:
        """Whether all that the transaction touches is transactional."""
        can, known, fde = True, self._maps, source.format.fde
        for event in source.events:
            if event.type == EventType.TABLE_MAP:
                body = event.buffer[event.body : event.end]
                found = known.get(body)
                if found is None:
                    found = known[body] = self._look_at_map(event, fde)
                can = can and found
            elif event.type in (EventType.QUERY, EventType.EXECUTE_LOAD_QUERY):
                can = self._look_at_query(event, fde) and can
        return can

    def own(self, database: str) -> None:
        """Takes a database for the replay's own, when it may. Raises BinlagError for one that holds
        other data."""
        if not database or database in self.owned or database in SYSTEM_SCHEMAS:
            return
        if not self.force and holds_data(self.side, database):
            raise foreign_data(self.side, database)
        self.owned.add(database)

    def _look_at_map(self, event: Event, fde: FormatDescription) -> bool:
        options = self.writer.options
        table_map = read_table_map(event, fde)
        if not options.wants(table_map.database, table_map.table):
            return True
        database = options.rewrite.get(table_map.database, table_map.database)
        self.own(database)
        return self.tables.of(database, table_map.table).transactional

    def _look_at_query(self, event: Event, fde: FormatDescription) -> bool:
        parsed = parse(event, fde)
        query: Query = parsed if isinstance(parsed, Query) else parsed.query
        if query.sql[:10].upper() in (b"SAVEPOINT ", b"ROLLBACK T") or not is_wanted(
            self.writer.options.only, query
        ):
            return True
        database = self.writer.target_database(query)
        self.own(database)
        for name in query.variables.updated_databases or ():
            text = name.decode("utf-8", "surrogateescape")
            self.own(self.writer.options.rewrite.get(text, text))
        sql = text_of(query)
        if not _DML.match(sql):
            return True
        return all(self.tables.of(*name).transactional for name in names_in(sql[:2000], database))
