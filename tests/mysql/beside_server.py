"""Statements on a real server, its log replayed into tables in memory, and both sets of tables
beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pymysql
from servers.server import Server

import applier
from applier.result import ReplayResult
from applier.tables.catalog import Tables

NAMES = """SELECT table_schema, table_name FROM information_schema.tables
    WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"""
OWN = frozenset({"mysql", "information_schema", "performance_schema", "sys", "test"})
SETTINGS = ("SET sql_mode=''", "SET time_zone='+00:00'")
"""Of each session before the statements, so that the three servers have the same ones."""

Rows = list[tuple[Any, ...]]


class Beside:
    """`statements` on an emptied server, then the replay of what it logged.

    A statement is SQL for session 0, or (session, SQL). One that the server refuses is part of the
    case: its number is in `errors`. A table is a list of its columns' names and its rows, sorted.
    """

    def __init__(
        self,
        server: Server,
        statements: Sequence[str | tuple[int, str]],
        *,
        log_format: str = "ROW",
    ) -> None:
        self.errors: list[int] = []
        _empty(server)
        self._run(server, statements, log_format)
        self.server_tables = _server_tables(server)
        server.execute("FLUSH BINARY LOGS")
        self.tables = Tables()
        self.result: ReplayResult = applier.replay(server.binlog_files()[:-1], into=self.tables)
        self.memory_tables = {
            table.definition.full_name: _memory_table(table) for table in self.tables
        }

    @property
    def difference(self) -> str:
        """What is not the same, in words; empty where all is."""
        if self.result.error is not None:
            return f"{self.result.error.number} {self.result.error.message}"
        server, memory = self.server_tables, self.memory_tables
        names = [
            name for name in sorted({*server, *memory}) if server.get(name) != memory.get(name)
        ]
        return "; ".join(
            f"{name}: {server.get(name)} on the server, {memory.get(name)} in memory"
            for name in names
        )

    def _run(
        self, server: Server, statements: Sequence[str | tuple[int, str]], log_format: str
    ) -> None:
        sessions: dict[int, Any] = {}
        try:
            for statement in statements:
                number, sql = (0, statement) if isinstance(statement, str) else statement
                if number not in sessions:
                    connection = sessions[number] = server.connect(database="d", autocommit=True)
                    for setting in (*SETTINGS, f"SET SESSION binlog_format={log_format}"):
                        connection.cursor().execute(setting)
                try:
                    sessions[number].cursor().execute(sql)
                except pymysql.err.Error as error:
                    self.errors.append(int(error.args[0]))
        finally:
            for connection in sessions.values():
                connection.close()


def _empty(server: Server) -> None:
    names = [row[0] for row in server.query("SHOW DATABASES")]
    reset = (
        "RESET BINARY LOGS AND GTIDS" if server.installed.recipe.name == "9.7" else "RESET MASTER"
    )
    server.execute(
        "SET foreign_key_checks=0",
        *(f"DROP DATABASE `{name}`" for name in names if name not in OWN),
        reset,
    )
    server.execute("CREATE DATABASE d")


def _server_tables(server: Server) -> dict[str, tuple[list[str], Rows]]:
    found = {}
    names = server.query(NAMES)
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for database, name in names:
            if database in OWN:
                continue
            cursor.execute(f"SELECT * FROM `{database}`.`{name}`")
            columns = [column[0] for column in cursor.description]
            found[f"{database}.{name}"] = columns, _sorted(cursor.fetchall())
    return found


def _memory_table(table: Any) -> tuple[list[str], Rows]:
    return [column.name for column in table.definition.columns], _sorted(
        tuple(map(_plain, row)) for row in table.rows()
    )


def _sorted(rows: Any) -> Rows:
    return sorted((tuple(row) for row in rows), key=repr)


def _plain(value: Any) -> Any:
    """A TIMESTAMP as the client shows it, whose session is in UTC."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
