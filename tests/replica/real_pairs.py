"""A real source and a real replica of one version, to be compared with the emulated one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import pymysql.cursors
from servers.server import Server

from applier.replica.replica import Replica
from tests.servers.fixtures import ServerFactory

OLD_WORDS = {"5.6", "5.7", "mariadb"}
REPLICA_OPTIONS: dict[str, str | int | bool | None] = {
    "server_id": 9,
    "skip-slave-start": None,
    "relay-log": "relay",
    "relay-log-purge": 0,
    "log_slave_updates": True,
}


def words(version: str, statement: str) -> str:
    """A statement in the words of the version."""
    if version in OLD_WORDS:
        return (
            statement.replace("REPLICATION SOURCE TO", "MASTER TO")
            .replace("REPLICA", "SLAVE")
            .replace("SOURCE_", "MASTER_")
        )
    return statement


class Pair:
    """`options` are the replica's, `source_options` as they stand in the source's option file."""

    def __init__(
        self,
        factory: ServerFactory,
        version: str,
        *,
        gtids: bool = False,
        source_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.version = version
        self.source: Server = factory(version, gtids=gtids, options=source_options)
        given = {name.replace("_", "-"): value for name, value in options.items()}
        self.replica: Server = factory(version, options={**REPLICA_OPTIONS, **given}, gtids=gtids)
        self.gtids = gtids
        self.auto_position = gtids

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.replica.close()
        self.source.close()

    def change_source(self, more: str = "") -> None:
        position = (
            "SOURCE_AUTO_POSITION=1"
            if self.auto_position
            else "SOURCE_LOG_FILE='binlog.000001', SOURCE_LOG_POS=4"
        )
        key = "" if self.version in OLD_WORDS else ", GET_SOURCE_PUBLIC_KEY=1"
        self.run(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', "
            f"SOURCE_PORT={self.source.port}, SOURCE_USER='{self.source.user}', "
            f"SOURCE_PASSWORD='{self.source.password}', SOURCE_CONNECT_RETRY=1, "
            f"{position}{key}{more}"
        )

    def run(self, *statements: str) -> None:
        """On the replica."""
        self.replica.execute(*(words(self.version, statement) for statement in statements))

    def status(self) -> dict[str, Any]:
        """SHOW REPLICA STATUS in the old words."""
        connection = self.replica.connect(cursorclass=pymysql.cursors.DictCursor)
        try:
            with connection.cursor() as cursor:
                cursor.execute(words(self.version, "SHOW REPLICA STATUS"))
                row: dict[str, Any] = cursor.fetchone() or {}
        finally:
            connection.close()
        return {
            name.replace("Replica", "Slave").replace("Source", "Master"): value
            for name, value in row.items()
        }

    def wait(self, **fields: Any) -> dict[str, Any]:
        """Until these fields of the status have these values. Raises TimeoutError after two
        minutes."""
        return self.wait_until(lambda: fields)

    def wait_until(self, wanted: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """The same with values that may change meanwhile."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            status, fields = self.status(), wanted()
            if all(status.get(name) == value for name, value in fields.items()):
                return status
            time.sleep(0.05)
        raise TimeoutError(f"{fields} is not reached: {status}")

    def source_end(self) -> tuple[str, int]:
        files = self.source.binlog_files()
        return files[-1].name, files[-1].stat().st_size

    def source_files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.source.binlog_files()}

    def relay_logs(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(self.replica.data.glob("relay.0*"))}


def shown(replica: Replica) -> tuple[Any, ...]:
    """Of an emulated replica, what SHOW REPLICA STATUS says of a real one, and the sizes of the
    relay logs."""
    memory, status = replica.status.memory, replica.status
    assert memory.applied is not None
    assert memory.received is not None
    contents = replica.disk.contents()  # type: ignore[attr-defined]
    return (
        memory.received.source_log_name,
        memory.received.source_log_pos,
        memory.applied.relay_log_name.removeprefix("./"),
        memory.applied.relay_log_pos,
        memory.applied.source_log_name,
        memory.applied.source_log_pos,
        str(status.retrieved_gtids),
        {name: len(content) for name, content in contents.items() if name.startswith("relay.0")},
    )
