"""The settings of a live replica: its variables, and whether it runs on this machine."""

from __future__ import annotations

from contextlib import closing

from applier.errors import BinlagError
from applier.forecast.conditions import KINDS, Live
from applier.mysql.connection import Server, connect
from applier.mysql.url import Endpoint

HERE = ("127.0.0.1", "::1", "localhost")
_STATUS = ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
SOURCE_ID_PLACE = 39
"""Of Source_Server_Id in the status, from 5.6 to 9.7 and in MariaDB."""


def settings_of_server(endpoint: Endpoint) -> Live:
    """What a server says of itself. Raises InputError when it cannot be reached.

    Where it refuses the question, `refused` says so and nothing is known.
    """
    is_here = endpoint.socket is not None or endpoint.host in HERE
    with closing(connect(endpoint)) as server:
        try:
            names = ", ".join(f"'{name}'" for kind in KINDS.values() for name in kind.variables)
            rows = server.texts(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
        except BinlagError as error:
            text = f"the replica does not tell its settings ({error}); the version's are assumed"
            return Live(server.version, {}, is_here, refused=text)
        variables = {str(name): str(value) for name, value in rows}
        return Live(server.version, variables, is_here, _source_id(server))


def _source_id(server: Server) -> int | None:
    """The server_id of its source; None where it has none, or does not say."""
    for statement in _STATUS:
        try:
            rows = server.texts(statement)
        except BinlagError:
            continue
        if not rows:
            return None
        text = str(rows[0][SOURCE_ID_PLACE])
        return int(text) if text.isdigit() and int(text) else None
    return None
