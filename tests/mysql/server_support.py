"""Captures on real servers: what the log's own tools leave behind."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from servers.installed import installed
from servers.server import Server

from applier.mysql.client.connection import Server as Connection
from applier.mysql.client.connection import connect
from applier.mysql.client.url import Endpoint
from tests.captures_support import logs
from tests.servers.fixtures import ServerFactory

OWN = frozenset({"mysql", "information_schema", "performance_schema", "sys", "test"})
THOROUGH = os.environ.get("BINLAG_ALL_CASES") == "1" or "BINLAG_CAPTURES" in os.environ
VERSIONS = ("5.6", "5.7", "9.7", "mariadb") if THOROUGH else ("9.7",)
"""Of tests that do the same on each version; each has captures of its own to replay in any case."""
OPTIONS: dict[str, str | int | bool | None] = {
    "log_bin_trust_function_creators": True,
    "local_infile": True,
    "innodb_flush_log_at_trx_commit": 0,  # no test that uses these servers crashes them
    "sync_binlog": 0,
}


def version_of(capture: Path) -> str:
    version = str(json.loads((capture / "meta.json").read_text())["server"])
    return "mariadb" if "mariadb" in version.lower() else ".".join(version.split(".")[:2])


class Servers:
    """One server a version, emptied for each capture."""

    def __init__(self, factory: ServerFactory) -> None:
        self._factory = factory
        self._servers: dict[str, Server] = {}

    def empty(self, version: str) -> Server:
        """The server of that version, without any database of an earlier test."""
        if version not in self._servers:
            self._servers[version] = self._factory(version, options=OPTIONS)
        server = self._servers[version]
        names = [row[0] for row in server.query("SHOW DATABASES")]
        server.execute(
            "SET foreign_key_checks = 0",
            *(f"DROP DATABASE `{name}`" for name in names if name not in OWN),
        )
        return server

    def close(self) -> None:
        for server in self._servers.values():
            server.close()


def client(server: Server) -> list[str]:
    """A command that reads SQL from standard input. MySQL's own client of 9.7 cannot log in to 5.6
    and 5.7."""
    ours = server.installed.recipe.name == "9.7"
    return server.client(
        "mysql" if ours else "mariadb",
        "--binary-mode",
        "--local-infile=1",
        of=installed("9.7" if ours else "mariadb"),
    )


def load_before(server: Server, capture: Path) -> None:
    """The tables as they were before the first event."""
    with (capture / "before.sql").open("rb") as sql:
        subprocess.run(client(server), stdin=sql, capture_output=True, check=True)


def pipe(server: Server, capture: Path) -> None:
    """mysqlbinlog FILES | mysql."""
    if server.installed.recipe.name == "mariadb":
        command = [*installed("mariadb").command("mariadb-binlog"), "--no-defaults"]
    else:
        command = [*installed("9.7").command("mysqlbinlog"), "--no-defaults", "--skip-gtids"]
    with subprocess.Popen(
        [*command, *map(str, logs(capture))], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as decoder:
        done = subprocess.run(
            client(server), stdin=decoder.stdout, capture_output=True, check=False
        )
    assert done.returncode == 0, done.stderr[-500:]
    assert decoder.returncode == 0


def endpoint(server: Server) -> Endpoint:
    return Endpoint(user=server.user, socket=str(server.socket), password=server.password)


def connection(server: Server) -> Connection:
    return connect(endpoint(server))


def bodies(server: Server, database: str) -> list[tuple[str, str]]:
    """Name and body of each routine, trigger and event."""
    kinds = (
        ("ROUTINES", "ROUTINE", "ROUTINE_DEFINITION"),
        ("TRIGGERS", "TRIGGER", "ACTION_STATEMENT"),
        ("EVENTS", "EVENT", "EVENT_DEFINITION"),
    )
    return [
        row
        for view, kind, body in kinds
        for row in server.query(
            f"SELECT {kind}_NAME, {body} FROM information_schema.{view} "
            f"WHERE {kind}_SCHEMA = '{database}' ORDER BY 1"
        )
    ]
