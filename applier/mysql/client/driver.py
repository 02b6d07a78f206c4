"""The driver, PyMySQL, and its connection as all of ours are made.

It is imported here alone, so that it is loaded in one way: without cryptography, which takes a
third of the time and is needed for one kind of password exchange, over connections without TLS.
"""

from __future__ import annotations

from typing import Any

from applier.lazy_imports import lazily
from applier.mysql.client.tls import context

with lazily("cryptography.hazmat.primitives"):
    import pymysql
    from pymysql.constants import CLIENT, COMMAND, CR
    from pymysql.cursors import DictCursor, SSCursor

__all__ = ["CLIENT", "COMMAND", "CR", "DictCursor", "DriverConnection", "SSCursor", "pymysql"]


class DriverConnection(pymysql.connections.Connection):
    """The driver's connection. For the mode PREFERRED the driver would load all authorities that
    this machine trusts, 40 ms of the processor for each connection, and verify nothing."""

    def _create_ssl_ctx(self, given: Any) -> Any:
        return given or context(ca=None, verifies=False)
