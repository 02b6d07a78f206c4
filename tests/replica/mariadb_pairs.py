"""A real source and a real replica of MariaDB."""

from __future__ import annotations

import time
from typing import Any

from servers.server import Server

from tests.replica.real_pairs import Pair
from tests.servers.fixtures import ServerFactory

VERSION = "mariadb"


def change_master(source: Server, using_gtid: str) -> str:
    """The statement that makes a replica of a server."""
    place = (
        "MASTER_LOG_FILE='mbinlog.000001', MASTER_LOG_POS=4"
        if using_gtid == "no"
        else f"MASTER_USE_GTID={using_gtid}"
    )
    return (
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={source.port}, "
        f"MASTER_USER='{source.user}', "
        f"MASTER_PASSWORD='{source.password}', MASTER_CONNECT_RETRY=1, {place}"
    )


def wait_for_checkpoint(source: Server, seconds: float = 120) -> None:
    """Until the source's log is whole: behind FLUSH LOGS a thread of its own adds a
    Binlog_checkpoint event, which may come seconds behind the last transaction. Raises
    TimeoutError."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        file = source.binlog_files()[-1].name
        events = source.query(f"SHOW BINLOG EVENTS IN '{file}'")
        checkpoints = [row[5] for row in events if row[2] == "Binlog_checkpoint"]
        if checkpoints[-1:] == [file]:
            return
        time.sleep(0.05)
    raise TimeoutError(f"{file} has no checkpoint of its own")


class MariadbPair(Pair):
    """`using_gtid`: MASTER_USE_GTID."""

    def __init__(self, factory: ServerFactory, *, using_gtid: str = "no", **options: Any) -> None:
        super().__init__(factory, VERSION, **options)
        self.using_gtid = using_gtid

    def change_source(self, more: str = "") -> None:
        self.replica.execute(change_master(self.source, self.using_gtid) + more)

    def settle(self) -> dict[str, Any]:
        """Until all of the source's log is applied."""
        wait_for_checkpoint(self.source)
        status = self.wait_until(self._applied)
        time.sleep(0.05)  # the records are written behind the position that the status shows
        return status

    def _applied(self) -> dict[str, Any]:
        file, position = self.source_end()
        return {
            "Relay_Master_Log_File": file,
            "Exec_Master_Log_Pos": position,
            "Slave_SQL_Running": "Yes",
        }
