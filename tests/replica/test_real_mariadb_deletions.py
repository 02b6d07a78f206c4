"""START SLAVE of MariaDB by GTID deletes the relay logs: what a crash in the middle of that leaves,
and what the next start makes of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pymysql
import pytest

from applier.errors import BinlagError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.replica import Replica
from applier.replica.source import BinlogFiles
from applier.replica.storage import MemoryStorage
from applier.tables.catalog import Tables
from checkpoints.gtid_slave_pos import COLUMNS, KEY, TABLE
from checkpoints.simulated_disk import SimulatedDisk
from tests.replica.mariadb_pairs import VERSION, MariadbPair
from tests.servers.fixtures import ServerFactory

FILES = re.compile(r"relay\.\d+|relay\.index|(relay-log|master)\.info")


def logs(folder: Path) -> list[Path]:
    return sorted(folder.glob("relay.0*"))


def first(folder: Path) -> None:
    logs(folder)[0].unlink()


def all_of_them(folder: Path) -> None:
    for path in logs(folder):
        path.unlink()


def index_too(folder: Path) -> None:
    all_of_them(folder)
    (folder / "relay.index").write_bytes(b"")


def next_not_yet_in_the_index(folder: Path) -> None:
    index_too(folder)
    (folder / "relay.000001").write_bytes(b"")


def next_in_the_index(folder: Path) -> None:
    next_not_yet_in_the_index(folder)
    (folder / "relay.index").write_bytes(b"./relay.000001\n")


DELETIONS: dict[Callable[[Path], None], dict[bool, int]] = {
    first: {False: 1201, True: 1201},
    all_of_them: {False: 1201, True: 1201},
    index_too: {False: 1201, True: 0},
    next_not_yet_in_the_index: {False: 0, True: 0},
    next_in_the_index: {False: 0, True: 0},
}
"""What is done -> relay_log_recovery -> the error of START SLAVE."""


@pytest.mark.parametrize("recovery", [False, True])
def test_a_crash_while_relay_logs_are_deleted(
    recovery: bool, server_factory: ServerFactory
) -> None:
    with MariadbPair(server_factory, using_gtid="slave_pos", relay_log_recovery=recovery) as pair:
        pair.source.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY)",
            "INSERT INTO d.t VALUES (1)",
        )
        pair.change_source()
        pair.run("START REPLICA")
        pair.settle()
        pair.replica.kill()
        folder = pair.replica.data
        kept = files_of(folder)
        for delete, numbers in DELETIONS.items():
            for path in folder.iterdir():
                if FILES.fullmatch(path.name):
                    path.unlink()
            for name, content in kept.items():
                (folder / name).write_bytes(content)
            delete(folder)
            left = files_of(folder)
            number = started(pair)
            assert (number, delete) == (numbers[recovery], delete)
            assert emulated(pair, left, recovery=recovery) == number
            pair.replica.kill()


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if FILES.fullmatch(path.name)}


def started(pair: MariadbPair) -> int:
    pair.replica.start()
    try:
        pair.run("START REPLICA")
    except pymysql.err.MySQLError as error:
        return int(error.args[0])
    pair.settle()
    return 0


def emulated(pair: MariadbPair, left: dict[str, bytes], *, recovery: bool) -> int:
    storage = MemoryStorage(Tables())
    for values in pair.replica.query(f"SELECT {', '.join(COLUMNS)} FROM mysql.{TABLE}"):
        row = dict(zip(COLUMNS, values, strict=True))
        storage.info.write(TABLE, {name: row[name] for name in KEY}, row)
    configuration = ReplicaConfiguration(
        VERSION, using_gtid="slave_pos", relay_log_recovery=recovery
    )
    source = BinlogFiles(pair.source_files(), server_id=1)
    replica = Replica(SimulatedDisk(left), configuration, source, storage)
    try:
        replica.start()
        replica.receive()
        replica.apply()
    except BinlagError as error:
        return int(getattr(error, "number", -1))
    return 0
