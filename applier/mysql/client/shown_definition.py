"""A table of a server as its SHOW CREATE TABLE says it, read by the parser that reads the log's."""

from __future__ import annotations

from dataclasses import replace

from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.definitions.schema import parse_create_table
from applier.tables.sql.quoting import quoted
from lookup.table import Column, TableDefinition


def shown_definition(text: str, database: str, rules_name: str) -> TableDefinition:
    """From the SHOW CREATE TABLE of a server. Raises InputError where it cannot be read.

    The text leaves nothing to a session's defaults: a server says NULL and NOT NULL of each
    TIMESTAMP, and shows defaults in the session's time zone, which is UTC. It leaves NULL out of
    AUTO_INCREMENT NULL, which a statement without the word would make NOT NULL. It shows all keys:
    with foreign_key_checks=0 MariaDB drops the one that a foreign key needs, and a statement would
    make it.
    """
    session = DdlSession(rules_name, explicit_defaults_for_timestamp=True)
    definition = parse_create_table(text, database, session.schema_rules(None))
    columns = tuple(
        replace(column, nullable=_may_be_null(column, text)) if column.auto_increment else column
        for column in definition.columns
    )
    keys = tuple(key for key in definition.keys if not key.generated)
    return replace(definition, columns=columns, keys=keys)


def _may_be_null(column: Column, text: str) -> bool:
    start = f"  {quoted(column.name)} "
    line = next((line for line in text.split("\n") if line.startswith(start)), " NOT NULL ")
    return " NOT NULL " not in line.partition("AUTO_INCREMENT")[0]
