"""The driver, PyMySQL, and its connection as all of ours are made.

It is imported here alone, so that it is loaded in one way: without cryptography, which takes a
third of the time and is needed for one kind of password exchange, over connections without TLS.
"""

from __future__ import annotations

import io
import select
from typing import Any

from applier.lazy_imports import lazily
from applier.mysql.client.tls import context

with lazily("cryptography.hazmat.primitives"):
    import pymysql
    from pymysql.constants import CLIENT, COMMAND, CR
    from pymysql.cursors import DictCursor, SSCursor

__all__ = ["CLIENT", "COMMAND", "CR", "DictCursor", "DriverConnection", "SSCursor", "pymysql"]


class DriverConnection(pymysql.connections.Connection):
    """The driver's connection. It can only send a statement and wait for its answer; here are the
    two halves, other commands and the socket, by the driver's private names. They are used nowhere
    else, and tests/mysql/test_driver.py fails where a release of the driver lacks one."""

    _sock: Any
    _result: Any
    _local_infile: bool

    def _create_ssl_ctx(self, given: Any) -> Any:
        """For the mode PREFERRED the driver would load all authorities that this machine trusts, 40
        ms of the processor for each connection, and verify nothing."""
        return given or context(ca=None, verifies=False)

    def _get_server_information(self) -> None:
        """Waits for the greeting no longer than for the connection: a tunnel whose server is down
        takes the connection and says nothing. (The server's own client has one limit for both.)"""
        greeting, seconds = select.poll(), self.connect_timeout
        assert seconds is not None, "each connection of ours has a limit"
        greeting.register(self._sock, select.POLLIN)
        if not greeting.poll(1000 * seconds):
            raise TimeoutError(f"connected, and nothing came for {seconds:g} s")
        super()._get_server_information()  # type: ignore[misc]

    def _request_authentication(self) -> None:
        self.on_greeting()
        super()._request_authentication()  # type: ignore[misc]
        self.on_admission()

    def on_greeting(self) -> None:
        """The server has named its capabilities, and `client_flag` is not sent yet."""

    def on_admission(self) -> None:
        """The server has let us in."""

    @property
    def socket(self) -> Any:
        """What the connection reads from, None when it is closed; its replacement reads into
        buffers (`io.RawIOBase`)."""
        return self._sock

    @socket.setter
    def socket(self, replacement: Any) -> None:
        self._sock = replacement
        self._rfile = io.BufferedReader(replacement)

    @property
    def rows(self) -> tuple[tuple[bytes | None, ...], ...]:
        """The rows of the last answer."""
        return () if self._result is None else self._result.rows or ()

    @property
    def has_more_answers(self) -> bool:
        """The server said that another answer follows the last one."""
        return bool(self._result.has_next)

    def command(self, code: int, payload: bytes | str) -> None:
        """Sends a command. What a statement is answered comes by `next_result`."""
        self._execute_command(code, payload)  # type: ignore[attr-defined]

    def acknowledgement(self) -> None:
        """Waits for the answer to a command that is no statement. Raises the server's error."""
        self._read_packet()  # type: ignore[no-untyped-call]

    def allow_files(self, allowed: bool) -> None:
        """Whether the server may ask for a local file from now on."""
        self._local_infile = allowed
