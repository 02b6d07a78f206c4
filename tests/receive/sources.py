"""Real servers as sources: where they are, what they have, and receiving from them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from servers.server import Server

from applier.mysql.client.url import Endpoint
from applier.receive.receive import LiveReceiver
from applier.receive.receive_folder import Folder, Start
from applier.receive.received import Received, ReceiveOptions
from checkpoints.gtid import parse_gtid_set
from checkpoints.position import Position

TO_END = ReceiveOptions(to_end=True)


def is_mariadb(server: Server) -> bool:
    return server.installed.recipe.name == "mariadb"


def endpoint(server: Server, **changes: str | int) -> Endpoint:
    return Endpoint(
        **{
            "host": server.host,
            "port": server.port,
            "user": server.user,
            "password": server.password,
            **changes,
        }
    )  # type: ignore[arg-type]


def end_of_log(server: Server) -> Position:
    last = server.binlog_files()[-1]
    return Position(last.name, last.stat().st_size)


def executed(server: Server) -> str:
    (value,) = server.query(
        f"SELECT @@GLOBAL.{'gtid_binlog_pos' if is_mariadb(server) else 'gtid_executed'}"
    )[0]
    return str(value).replace("\n", "")


def here(server: Server, *, auto_position: bool = False) -> Start:
    """From the present end of the source's log on."""
    return (
        Start(gtids=parse_gtid_set(executed(server)))
        if auto_position
        else Start(position=end_of_log(server))
    )


def receive(
    server: Server,
    folder: Path,
    start: Start | None = None,
    options: ReceiveOptions = TO_END,
    **changes: str | int,
) -> Received:
    opened = Folder(folder, start or Start(), auto_position=options.auto_position)
    return LiveReceiver(endpoint(server, **changes), opened, options).run()


def wait(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.02)


def settle(server: Server) -> None:
    """MariaDB notes in a new log, some time after the first transactions in it, that the old ones
    are not needed for recovery any more."""
    if is_mariadb(server):
        last = server.binlog_files()[-1].name
        wait(
            lambda: any(
                row[2] == "Binlog_checkpoint" and row[5] == last
                for row in server.query(f"SHOW BINLOG EVENTS IN '{last}'")
            )
        )
