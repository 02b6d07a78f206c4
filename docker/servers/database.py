"""What a started server is to those who use it, however it was started: a place to connect to."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import pymysql

READY_SECONDS = 120.0
_POLL_SECONDS = 0.05


class ServerError(Exception):
    """A server did not do what it was told; the message ends with the last lines of its own log."""


class Database(ABC):
    """A server that was started for us alone. As a context manager it is started on entry and gone afterwards."""

    name: str
    how: str
    """How it is run, in words, for the header of a report."""
    host: str = "127.0.0.1"
    port: int
    user: str = "root"
    password: str

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
        return pymysql.connect(**{**self.address(), "user": self.user, "password": self.password, **arguments})

    def address(self) -> dict[str, Any]:
        """Where to connect to, as PyMySQL's arguments."""
        return {"host": self.host, "port": self.port}

    def query(self, sql: str, database: str | None = None) -> tuple[tuple[Any, ...], ...]:
        """All rows of one statement, over a connection of its own."""
        with self.connect(database=database, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return tuple(cursor.fetchall())

    def execute(self, *statements: str, database: str | None = None) -> None:
        """Statements one after the other over one connection, each committed by itself."""
        with self.connect(database=database, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def wait_until_ready(self, alive: Callable[[], bool], seconds: float = READY_SECONDS) -> None:
        """Returns when the server answers a query; ServerError when it ended, or has not answered after that time."""
        deadline = time.monotonic() + seconds
        while True:
            ended = not alive()
            try:
                self.query("SELECT 1")
                return
            except (pymysql.err.OperationalError, pymysql.err.InterfaceError) as error:
                if ended:
                    raise ServerError(f"{self.name} ended instead of starting; its log says:\n{self.log_tail()}") from None
                if time.monotonic() > deadline:
                    raise ServerError(f"{self.name} does not answer after {seconds:.0f} s: {error}; its log:\n{self.log_tail()}") from None
            time.sleep(_POLL_SECONDS)

    def log_tail(self, lines: int = 25) -> str:
        """The end of the server's error log, indented."""
        return "\n".join(f"    {line}" for line in self.log_text().splitlines()[-lines:])

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
