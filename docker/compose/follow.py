"""Makes `replica` follow `source` from the source's present position, in the words of the version
that they run."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import pymysql

_PATIENCE_SECONDS = 180.0

# From that version on: how a replica is told whom to follow, started, and asked. MariaDB has kept
# the words of old.
_NEW = (
    (
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='source', SOURCE_USER='root', "
        "SOURCE_PASSWORD=%s, SOURCE_LOG_FILE=%s, SOURCE_LOG_POS=%s,"
        " SOURCE_CONNECT_RETRY=1, GET_SOURCE_PUBLIC_KEY=1"
    ),
    "START REPLICA",
    "SHOW REPLICA STATUS",
    "SHOW BINARY LOG STATUS",
)
_OLD = (
    (
        "CHANGE MASTER TO MASTER_HOST='source', MASTER_USER='root', MASTER_PASSWORD=%s, "
        "MASTER_LOG_FILE=%s, MASTER_LOG_POS=%s,"
        " MASTER_CONNECT_RETRY=1"
    ),
    "START SLAVE",
    "SHOW SLAVE STATUS",
    "SHOW MASTER STATUS",
)
_BETWEEN = (*_NEW[:3], _OLD[3])
_WORDS = (((8, 2), _NEW), ((8, 0), _BETWEEN), ((0, 0), _OLD))


def connect(host: str) -> Any:
    """A connection as soon as the server answers."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return pymysql.connect(
                host=host,
                user="root",
                password=os.environ["MYSQL_ROOT_PASSWORD"],
                cursorclass=pymysql.cursors.DictCursor,
            )
        except pymysql.err.OperationalError as error:
            if time.monotonic() > deadline:
                sys.exit(f"{host} does not answer: {error}")
            time.sleep(0.5)


def words_of(version: str) -> tuple[str, str, str, str]:
    """The statements for that version."""
    if "MariaDB" in version:
        return _OLD
    major, minor = (int(part) for part in version.split(".")[:2])
    return next(words for since, words in _WORDS if (major, minor) >= since)


def main() -> int:
    """0 when both threads of the replica run."""
    with (
        connect("source") as source,
        connect("replica") as replica,
        source.cursor() as ask,
        replica.cursor() as tell,
    ):
        ask.execute("SELECT VERSION() AS version")
        change, start, status, position = words_of(ask.fetchone()["version"])
        ask.execute(position)
        at = ask.fetchone()
        tell.execute(change, (os.environ["MYSQL_ROOT_PASSWORD"], at["File"], at["Position"]))
        tell.execute(start)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            tell.execute(status)
            running = {
                name: value
                for name, value in tell.fetchone().items()
                if name.endswith(("_IO_Running", "_SQL_Running"))
            }
            if set(running.values()) == {"Yes"}:
                sys.stdout.write(f"the replica follows from {at['File']}:{at['Position']}\n")
                return 0
            time.sleep(0.5)
    sys.stderr.write(f"the replica does not run: {running}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
