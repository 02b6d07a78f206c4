"""Rows of key values on a live server, by point reads of the index."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from applier.errors import BinlagError
from applier.forecast.inventory.key_places import Values
from applier.forecast.inventory.value_counts import MOST_ROWS, CountRows
from applier.mysql.client.connection import connect
from applier.mysql.client.url import Endpoint
from applier.mysql.statements.literals import NotExpressible, key_equals
from applier.mysql.statements.row_sql import SETTINGS
from applier.tables.sql.quoting import quoted
from lookup.table import Key, TableDefinition


def counted_on_server(endpoint: Endpoint) -> CountRows:
    """By point reads of the index, one statement for each key. It counts nothing where the account
    may not read the table, or where no condition leads to a value (a prefix, an expression)."""

    def count(definition: TableDefinition, key: Key, values: Sequence[Values]) -> Sequence[int]:
        try:
            with closing(connect(endpoint)) as server:
                named = ", ".join(f"{name} = {value}" for name, value in SETTINGS.items())
                server.execute(f"SET SESSION {named}")
                statement = count_sql(definition, key, values, server.rules_version)
                return [int(str(rows)) for (rows,) in server.texts(statement)]
        except (BinlagError, NotExpressible):
            return ()

    return count


def count_sql(
    definition: TableDefinition, key: Key, values: Sequence[Values], rules_version: str
) -> str:
    """One SELECT with a row for each value: MOST_ROWS at most. Raises NotExpressible."""
    if key.has_prefix or key.is_functional:
        raise NotExpressible(f"no condition on a column leads to values of {key.name}")
    conditions = [key_equals(definition.columns[at], rules_version) for at in key.columns]
    table = f"{quoted(definition.database)}.{quoted(definition.name)}"
    return " UNION ALL ".join(
        f"SELECT COUNT(*) FROM (SELECT 1 FROM {table} FORCE INDEX ({quoted(key.name)}) WHERE "
        + " AND ".join(meets(one) for meets, one in zip(conditions, value, strict=True))
        + f" LIMIT {MOST_ROWS}) AS met"
        for value in values
    )
