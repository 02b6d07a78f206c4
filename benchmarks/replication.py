"""A real replica of a real source, in the words of its version: what the benchmarks with both
share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "docker"))
from servers.server import Server

LOOK_SECONDS = 0.01
_OLD_WORDS = {
    "CHANGE REPLICATION SOURCE TO": "CHANGE MASTER TO",
    "SHOW BINARY LOG STATUS": "SHOW MASTER STATUS",
    "RESET BINARY LOGS AND GTIDS": "RESET MASTER", "SOURCE_": "MASTER_",
    "REPLICA": "SLAVE",
}  # fmt: skip


@dataclass(frozen=True)
class ReplicationWords:
    """What a version calls the parts of replication. `name`: the server's, as `Server` takes it."""

    name: str

    @property
    def is_mariadb(self) -> bool:
        return self.name == "mariadb"

    @property
    def is_old(self) -> bool:
        return self.name in ("5.6", "5.7") or self.is_mariadb

    def __call__(self, statement: str) -> str:
        """A statement in today's words, as this version writes it."""
        for word, old in _OLD_WORDS.items() if self.is_old else ():
            statement = statement.replace(word, old)
        return statement

    def variable(self, name: str) -> str:
        """A variable that has "replica" in its name today."""
        if self.is_mariadb:
            name = name.replace("replica_parallel_workers", "slave_parallel_threads")
        return name.replace("replica", "slave") if self.is_old else name

    def workers(self, number: int) -> int:
        """What the variable holds for so many workers: 0 is one thread in 5.x."""
        return number if number > 1 or not self.is_old else 0

    def change_source(self, source: Server) -> str:
        """The statement by which a replica fetches this source's log by GTIDs."""
        by_gtids = "MASTER_USE_GTID = slave_pos" if self.is_mariadb else "SOURCE_AUTO_POSITION = 1"
        secure = "" if self.is_old else "GET_SOURCE_PUBLIC_KEY = 1, "
        return self(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {source.port}, "
            "SOURCE_USER = 'root', "
            f"SOURCE_PASSWORD = '{source.password}', {secure}{by_gtids}"
        )

    def executed(self, server: Server) -> str:
        """The GTIDs of all that this server has executed."""
        variable = "gtid_binlog_pos" if self.is_mariadb else "gtid_executed"
        return str(server.query(f"SELECT @@GLOBAL.{variable}")[0][0]).replace("\n", "")

    def wait_for(self, replica: Server, gtids: str) -> None:
        """Until a replica has executed these. It is asked now and then: a session that waits inside
        the server is woken by each commit, and takes a processor from the applier."""
        found = f"SELECT GTID_SUBSET('{gtids}', @@GLOBAL.gtid_executed)"
        if self.is_mariadb:
            found = f"SELECT @@GLOBAL.gtid_slave_pos = '{gtids}'"
        with replica.connect(autocommit=True) as connection, connection.cursor() as cursor:
            while not (cursor.execute(found) and cursor.fetchone()[0]):
                time.sleep(LOOK_SECONDS)


def forecast(
    replica: Server, *arguments: str | Path, option: str = "--schema", calibration: str | None
) -> dict[str, Any]:
    """What `binlag forecast` says, with logs and options as `arguments`; `option` names the
    replica, which tells its settings and the sizes of its tables."""
    address = f"mysql://root@127.0.0.1:{replica.port}"
    given = [sys.executable, "-m", "applier", "forecast", *map(str, arguments), "--json"]
    given += [option, address, *(["--calibration", calibration] if calibration else [])]
    environment = {**os.environ, "BINLAG_PASSWORD": replica.password}
    done = subprocess.run(given, check=True, capture_output=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
