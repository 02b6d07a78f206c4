"""Tables of a live server, by SQLAlchemy: definitions by SHOW CREATE TABLE, rows and index cardinalities from information_schema.

Both numbers are InnoDB's estimates (from a few sampled pages); for MyISAM the rows are exact.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from applier.error_codes import Code
from applier.errors import InputError, UsageError
from applier.forecast.facts import STATISTICS, TableFacts
from applier.mysql.url import Endpoint
from applier.server_versions import found_rules
from applier.tables.load import load_schema

SYSTEM = ("mysql", "sys", "information_schema", "performance_schema", "ndbinfo")
_TABLES = """
SELECT table_schema, table_name, table_rows, avg_row_length FROM information_schema.tables
WHERE table_type = 'BASE TABLE' AND table_schema NOT IN :system ORDER BY table_schema, table_name
"""
_KEYS = """
SELECT table_schema, table_name, index_name, MAX(cardinality) FROM information_schema.statistics
WHERE table_schema NOT IN :system GROUP BY table_schema, table_name, index_name
"""


def facts_of_server(endpoint: Endpoint, databases: Collection[str] = ()) -> tuple[dict[str, TableFacts], str]:
    """(The tables of a server by full name, its version). Raises InputError when it cannot be reached or read."""
    try:
        import sqlalchemy
        from sqlalchemy import bindparam, text
    except ImportError:
        raise UsageError(
            "reading a live server's schema needs SQLAlchemy", code=Code.NO_LIBRARY, hint="pip install 'binlag[mysql]'"
        ) from None
    engine = sqlalchemy.create_engine(_url(endpoint), connect_args={"unix_socket": endpoint.socket} if endpoint.socket else {})
    try:
        with engine.connect() as connection:
            version = str(connection.execute(text("SELECT VERSION()")).scalar())
            system = {"system": list(SYSTEM)}
            listed = connection.execute(text(_TABLES).bindparams(bindparam("system", expanding=True)), system).all()
            keys = connection.execute(text(_KEYS).bindparams(bindparam("system", expanding=True)), system).all()
            wanted = [row for row in listed if not databases or row[0] in databases]
            created = [connection.exec_driver_sql(f"SHOW CREATE TABLE {_quoted(row[0])}.{_quoted(row[1])}").all()[0][1] for row in wanted]
    except sqlalchemy.exc.SQLAlchemyError as error:
        told = str(getattr(error, "orig", error))
        hint = "check the address, the account and its privileges"
        raise InputError(f"cannot read the schema of {endpoint}: {told}", code=Code.NOT_REACHED, hint=hint) from None
    finally:
        engine.dispose()
    definitions = _load(wanted, created, version)
    cardinalities: dict[tuple[str, str], dict[str, float]] = {}
    for database, table, key, cardinality in keys:
        if cardinality:
            cardinalities.setdefault((database, table), {})[key] = float(cardinality)
    facts = {}
    for database, table, rows, row_bytes in wanted:
        name, count = f"{database}.{table}", float(rows or 0)
        found = cardinalities.get((database, table), {})
        duplicates = {key: max(count / value, 1.0) for key, value in found.items()}
        facts[name] = replace(definitions[name], rows=count, rows_from=STATISTICS, duplicates=duplicates, row_bytes=float(row_bytes or 0))
    return facts, version


def _load(wanted: Collection[Any], created: Collection[str], version: str) -> dict[str, TableFacts]:
    sql, current = ["SET FOREIGN_KEY_CHECKS=0"], None
    for (database, *_), statement in zip(wanted, created, strict=True):
        if database != current:
            sql += [f"CREATE DATABASE IF NOT EXISTS {_quoted(database)}", f"USE {_quoted(database)}"]
            current = database
        sql.append(statement)
    tables = load_schema(";\n".join(sql) + ";\n", server=found_rules(version, "the server").name)
    return {table.definition.full_name: TableFacts(table.definition) for table in tables}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _url(endpoint: Endpoint) -> Any:
    from sqlalchemy import URL

    return URL.create("mysql+pymysql", endpoint.user, endpoint.password, endpoint.host, endpoint.port, query={"charset": "utf8mb4"})
