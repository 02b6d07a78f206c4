"""What a replay in memory makes of statements beside what a real server made of them.

The server runs the statements, then writes each table's rows into a twin, whose log therefore holds
the rows as the server stores them. After a replay of the whole log, table and twin stand in memory
side by side and can be compared value by value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from servers.server import Server

import applier
from applier.binlog.types import to_text
from applier.binlog.types.names import zerofill_width
from applier.tables.catalog import Tables
from applier.tables.engine import MemoryTable

DATABASE = "alters"
SUFFIX = "__of_the_server"
Difference = tuple[str, str, str | None, str | None]
"""table, column and the row's first value, what is in memory, what the server has"""


def run_with_twins(server: Server, statements: Iterable[str]) -> tuple[Tables, list[str]]:
    """Replays what the statements left in the log. They run in database `alters`, which is new;
    what fails on the server is told."""
    said = []
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION max_error_count = 65535")
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute("FLUSH LOGS")
        for statement in (
            f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4",
            f"USE {DATABASE}",
            *statements,
        ):
            try:
                cursor.execute(statement)
            except Exception as error:
                said.append(f"{statement[:100]}: {error}")
        cursor.execute("SET SESSION sql_mode = '', time_zone = '+00:00', foreign_key_checks = 0")
        if server.installed.recipe.name == "mariadb":
            cursor.execute("SET SESSION check_constraint_checks = 0")
        cursor.execute("SHOW TABLES")
        for (table,) in cursor.fetchall():
            cursor.execute(f"SHOW CREATE TABLE `{table}`")
            create = cursor.fetchall()[0][1]
            cursor.execute(create.replace(f"`{table}`", f"`{table}{SUFFIX}`", 1))
            cursor.execute(f"INSERT INTO `{table}{SUFFIX}` SELECT * FROM `{table}`")
        cursor.execute("FLUSH LOGS")
    tables = Tables()
    result = applier.replay([server.binlog_files()[-2]], into=tables)
    assert result.error is None, result.error
    return tables, said


def differences(tables: Tables) -> list[Difference]:
    """Where tables and their twins differ: definitions first, then values."""
    found: list[Difference] = []
    for twin in tables:
        if twin.definition.name.endswith(SUFFIX):
            found += _of_table(
                tables[f"{DATABASE}.{twin.definition.name.removesuffix(SUFFIX)}"], twin
            )
    return found


def _of_table(table: MemoryTable, twin: MemoryTable) -> list[Difference]:
    name, own, theirs = table.definition.name, table.definition.columns, twin.definition.columns
    shapes = [tuple(_shape(column) for column in columns) for columns in (own, theirs)]
    if len(own) != len(theirs):
        return [(name, "columns", str(len(own)), str(len(theirs)))]
    found: list[Difference] = [
        (name, column.name, str(one), str(two))
        for column, one, two in zip(own, *shapes, strict=True)
        if one != two
    ]
    rows = [sorted(side.stored_rows(), key=lambda row: row[0]) for side in (table, twin)]
    if [row[0] for row in rows[0]] != [row[0] for row in rows[1]]:
        return [*found, (name, "rows", str(len(rows[0])), str(len(rows[1])))]
    for one, two in zip(*rows, strict=True):
        for at, column in enumerate(theirs):
            if one[at] != two[at]:
                found.append(
                    (
                        name,
                        f"{column.name} of {one[0]}",
                        _text(own[at], one[at]),
                        _text(column, two[at]),
                    )
                )
    return found


def _shape(column: Any) -> tuple[Any, ...]:
    length = None if column.type.endswith("int") and not column.zerofill else column.length
    if column.zerofill:
        length = zerofill_width(column)
    return (
        column.name,
        column.type,
        length,
        column.scale,
        column.unsigned,
        column.nullable,
        column.charset,
        column.labels,
        column.zerofill,
    )


def _text(column: Any, value: Any) -> str | None:
    try:
        shown = to_text(column)(value)
    except Exception as error:
        return f"{value!r} ({error})"
    return None if shown is None else str(shown)
