"""The driver's connection, as all of ours are made."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from applier.mysql.client.tls import context


class DriverConnection(Connection):
    """The driver's connection. For the mode PREFERRED the driver would load all authorities that
    this machine trusts, 40 ms of the processor for each connection, and verify nothing."""

    def _create_ssl_ctx(self, given: Any) -> Any:
        return given or context(ca=None, verifies=False)
