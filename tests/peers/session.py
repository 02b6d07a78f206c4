"""A script's statements on a real server: carried out in one session, in a server that holds
nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
from servers.server import Server

from applier.mysql.client.url import Endpoint
from applier.tables.sql.quoting import quoted
from tests.mysql.server_support import endpoint
from tests.peers.statements import kept_aside

SCRIPT_SECONDS = 20.0
STATEMENT_SECONDS = 8
SYSTEM = frozenset({"mysql", "information_schema", "performance_schema", "sys"})
_OPTIONS: dict[str, str | int | bool | None] = {
    "innodb_flush_log_at_trx_commit": 0, "sync_binlog": 0, "innodb_doublewrite": 0,
    "performance_schema": False, "lock_wait_timeout": 3, "innodb_lock_wait_timeout": 2,
    "local_infile": True, "log_bin_trust_function_creators": True, "event_scheduler": False,
    "max_allowed_packet": 67_108_864,
}  # fmt: skip
_LOST = (2006, 2013)
_FORGET = {"9.7": "RESET BINARY LOGS AND GTIDS"}


class ServerGone(Exception):
    """The server ended, or answers no more; the next script needs a new one."""


class PeerServer:
    """A real server with one log format, emptied for each script."""

    def __init__(self, name: str, log_format: str) -> None:
        self.name = name
        self._server = Server(name, options={**_OPTIONS, "binlog_format": log_format})
        self._server.start()
        self._admin = self._connect()

    def close(self) -> None:
        """Ends the server."""
        self._server.close()

    def carry_out(self, statements: list[str]) -> list[Path]:
        """Runs a script in an emptied server; returns its binlog files. What fails on the server is
        of no interest. Raises ServerGone."""
        try:
            self.empty()
            self.query("CREATE DATABASE test")
            session = self._connect(database="test", read_timeout=STATEMENT_SECONDS)
            number = int(_query(session, "SELECT CONNECTION_ID()")[0][0])
            _run(session, statements)
            self._wait_for_end(number)
            self.query("FLUSH BINARY LOGS")
            return self._server.binlog_files()[:-1]
        except (pymysql.err.MySQLError, OSError) as error:
            raise ServerGone(repr(error)) from None

    @property
    def endpoint(self) -> Endpoint:
        """Where a replay into this server connects to."""
        return endpoint(self._server)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, all values as bytes. Raises MySQLError, and ServerGone when the
        server answers no more."""
        try:
            return _query(self._admin, sql)
        except (pymysql.err.InterfaceError, OSError) as error:
            raise ServerGone(repr(error)) from None
        except pymysql.err.OperationalError as error:
            if error.args[0] in _LOST:
                raise ServerGone(repr(error)) from None
            raise

    def _connect(self, **arguments: Any) -> pymysql.Connection[Any]:
        connection = self._server.connect(
            charset="utf8mb4",
            use_unicode=False,
            conv={},
            autocommit=True,
            local_infile=True,
            **arguments,
        )
        connection.encoding = "latin1"  # every byte of a statement as it stands in the script
        return connection

    def empty(self) -> None:
        """Drops all databases and logs. Raises MySQLError, ServerGone."""
        for sql in ("SET sql_log_bin = 0", "SET foreign_key_checks = 0"):
            self.query(sql)
        for (name,) in self.query("SHOW DATABASES"):
            if name.decode("latin1").lower() not in SYSTEM:
                self.query(f"DROP DATABASE {quoted(name.decode('latin1'))}")
        self.query(_FORGET.get(self.name, "RESET MASTER"))
        self.query("SET sql_log_bin = 1")

    def _wait_for_end(self, number: int) -> None:
        """A session that was left rolls back, drops its temporary tables, and writes that to the
        log."""
        for round_number in range(100):
            if not self.query(f"SELECT 1 FROM information_schema.processlist WHERE id = {number}"):
                return
            if round_number == 20:
                _try(lambda: self.query(f"KILL {number}"))
            time.sleep(0.05)


def _run(session: pymysql.Connection[Any], statements: list[str]) -> None:
    """Sends the statements one after the other, until the time is up or the connection is lost."""
    end = time.monotonic() + SCRIPT_SECONDS
    try:
        for sql, instead in kept_aside(statements):
            if time.monotonic() > end or not session.open:
                break
            if not (instead and all(_try(lambda one=one: _query(session, one)) for one in instead)):  # type: ignore[misc]
                _try(lambda sql=sql: _query(session, sql))  # type: ignore[misc]
    finally:
        _try(session.close)


def _try(action: Callable[[], object]) -> bool:
    """Whether it succeeded. A statement that the server refuses is part of many scripts."""
    try:
        action()
    except (pymysql.err.MySQLError, OSError, UnicodeEncodeError, IndexError, ValueError):
        return False
    return True


def _query(connection: pymysql.Connection[Any], sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        rows = list(cursor.fetchall())
        while cursor.nextset():
            pass
        return rows
