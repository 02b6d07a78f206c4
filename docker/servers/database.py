"""What a started server is to those who use it, however it was started: a place to connect to."""

from __future__ import annotations

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import pymysql

READY_SECONDS = 120.0
_POLL_SECONDS = 0.05
_LAST_LINES = 12
_RECENT_LINES = 200


class ServerError(Exception):
    """A server did not do what it was told; the message ends with the last lines of its own log."""


class Database(ABC):
    """A server that was started for us alone. As a context manager it is started on entry and gone
    afterwards."""

    name: str
    how: str
    """How it is run, in words, for the header of a report."""
    host: str = "127.0.0.1"
    port: int
    user: str = "root"
    password: str
    answer_seconds: float | None = None
    """How long a connection waits for an answer; then pymysql.err.OperationalError. None: for
    ever."""

    @abstractmethod
    def start(self) -> None:
        """Starts it and returns when it answers."""

    @abstractmethod
    def stop(self) -> None:
        """Ends it the clean way. Does nothing when it does not run."""

    @abstractmethod
    def kill(self) -> None:
        """Ends it at once (SIGKILL), as a crash would."""

    @abstractmethod
    def close(self) -> None:
        """Ends it and removes what it left behind."""

    @abstractmethod
    def log_text(self) -> str:
        """The server's error log so far."""

    def connect(self, **arguments: Any) -> pymysql.Connection[Any]:
        """A new connection as root; arguments are PyMySQL's."""
        known = {
            **self.address(),
            "user": self.user,
            "password": self.password,
            "read_timeout": self.answer_seconds,
        }
        return pymysql.connect(**{**known, **arguments})

    def address(self) -> dict[str, Any]:
        """Where to connect to, as PyMySQL's arguments."""
        return {"host": self.host, "port": self.port}

    def query(self, sql: str, database: str | None = None) -> tuple[tuple[Any, ...], ...]:
        """All rows of one statement, over a connection of its own."""
        with (
            self.connect(database=database, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(sql)
            return tuple(cursor.fetchall())

    def execute(self, *statements: str, database: str | None = None) -> None:
        """Statements one after the other over one connection, each committed by itself."""
        with (
            self.connect(database=database, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)

    def wait_until_ready(self, alive: Callable[[], bool], seconds: float = READY_SECONDS) -> None:
        """Returns when the server answers a query; ServerError when it ended, or has not answered
        after that time."""
        deadline = time.monotonic() + seconds
        while True:
            ended = not alive()
            try:
                self._probe()
                self.query("SELECT 1")
                return
            except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError) as error:
                if ended:
                    raise ServerError(
                        f"{self.name} ended instead of starting; its log says:\n{self.log_tail()}"
                    ) from None
                if time.monotonic() > deadline:
                    raise ServerError(
                        f"{self.name} does not answer after {seconds:.0f} s: {error}; its log:\n"
                        f"{self.log_tail()}"
                    ) from None
            time.sleep(_POLL_SECONDS)

    def _probe(self) -> None:
        """OSError when nobody listens. PyMySQL is not asked that: it leaves a socket open each time
        that nobody does."""
        address = self.address()
        path = address.get("unix_socket")
        with socket.socket(socket.AF_UNIX if path else socket.AF_INET) as probe:
            probe.connect(path or (address["host"], address["port"]))

    def log_tail(self) -> str:
        """The end of the server's error log, indented: the last errors, which a long shutdown may
        have left behind, and the last lines."""
        lines = self.log_text().splitlines()
        recent, end = lines[-_RECENT_LINES:-_LAST_LINES], lines[-_LAST_LINES:]
        errors = [line for line in recent if "[ERROR]" in line][-_LAST_LINES:]
        return "\n".join(f"    {line}" for line in [*errors, *end])

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
