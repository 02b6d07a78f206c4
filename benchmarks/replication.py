"""A real replica of a real source, in the words of its version: what the benchmarks with both share."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "docker"))
from servers.server import Server

_OLD_WORDS = {
    "CHANGE REPLICATION SOURCE TO": "CHANGE MASTER TO", "SHOW BINARY LOG STATUS": "SHOW MASTER STATUS",
    "RESET BINARY LOGS AND GTIDS": "RESET MASTER", "SOURCE_": "MASTER_",
    "REPLICA": "SLAVE", "GET_MASTER_PUBLIC_KEY = 1, ": "",
}  # fmt: skip


@dataclass(frozen=True)
class ReplicationWords:
    """What a version calls the parts of replication. `name`: the server's, as `Server` takes it."""

    name: str

    @property
    def is_old(self) -> bool:
        return self.name in ("5.6", "5.7")

    def __call__(self, statement: str) -> str:
        """A statement in today's words, as this version writes it."""
        for word, old in _OLD_WORDS.items() if self.is_old else ():
            statement = statement.replace(word, old)
        return statement

    def variable(self, name: str) -> str:
        """A variable that has "replica" in its name today."""
        return name.replace("replica", "slave") if self.is_old else name

    def workers(self, number: int) -> int:
        """What the variable holds for so many workers: 0 is one thread in 5.x."""
        return number if number > 1 or not self.is_old else 0

    def change_source(self, source: Server) -> str:
        """The statement by which a replica fetches this source's log by GTIDs."""
        return self(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {source.port}, SOURCE_USER = 'root', "
            f"SOURCE_PASSWORD = '{source.password}', GET_SOURCE_PUBLIC_KEY = 1, SOURCE_AUTO_POSITION = 1"
        )
