"""Records and indexes of relay logs that are gone, edited by hand or kept in the other repository:
what a real replica makes of each at its next start, and the emulated one of the same files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from applier.replica.scheduling import DATABASE, LOGICAL_CLOCK, OPTIMISTIC
from applier.replica.source import BinlogFiles
from tests.replica.kills.agreement import compare
from tests.replica.kills.pair import KillPair, Left
from tests.replica.kills.setups import MARIADB, SMALL_RELAY_LOG, Setup
from tests.servers.fixtures import ServerFactory

INFO = "relay-log.info"
SESSIONS = 1


@dataclass(frozen=True)
class Edit:
    """What is done to the files of a killed replica; `statements` to its tables."""

    files: Callable[[Path], object] = lambda folder: None
    statements: tuple[str, ...] = ()
    moves_records: bool = False
    """The options name the other repository at the next start."""


def changed(name: str, change: Callable[[bytes], bytes]) -> Edit:
    def edit(folder: Path) -> None:
        path = folder / name
        path.write_bytes(change(path.read_bytes()))

    return Edit(edit)


def index(change: Callable[[bytes], bytes]) -> Edit:
    return changed("relay.index", change)


def line(number: int, text: bytes, name: str = INFO) -> Edit:
    """One line of a record, from 1 on."""

    def change(data: bytes) -> bytes:
        lines = data.split(b"\n")
        lines[number - 1] = text
        return b"\n".join(lines)

    return changed(name, change)


def gone(pattern: str) -> Edit:
    def edit(folder: Path) -> None:
        for path in folder.glob(pattern):
            path.unlink()

    return Edit(edit)


def row(change: str) -> Edit:
    return Edit(statements=(f"UPDATE mysql.slave_relay_log_info SET {change}",))


INDEXES = {
    "without ./": index(lambda text: text.replace(b"./", b"")),
    "lines of another system": index(lambda text: text.replace(b"\n", b"\r\n")),
    "the last line without its end": index(lambda text: text[:-1]),
    "an empty line in front": index(lambda text: b"\n" + text),
    "the last line twice": index(lambda text: text + text.splitlines(keepends=True)[-1]),
    "one more line": index(lambda text: text + b"./relay.000099\n"),
    "no index": gone("relay.index"),
    "no relay log and no index": gone("relay.*"),
}
FILES = INDEXES | {
    "no record of the applier": gone(INFO),
    "a count that is none": line(1, b"4"),
    "its lines of another system": changed(INFO, lambda text: text.replace(b"\n", b"\r\n")),
    "a relay log without ./": changed(INFO, lambda text: text.replace(b"./", b"")),
    "no relay log": line(2, b""),
    "position 0": line(3, b"0"),
    "a position below 0": line(3, b"-5"),
    "a position behind the end": line(3, b"99999"),
    "no delay": line(6, b"x"),
    "no heartbeat": line(16, b"x", "master.info"),
    "no list of servers": line(18, b"x", "master.info"),
    "no answer to auto-position": line(23, b"x", "master.info"),
    "workers without records": line(7, b"4"),
    "moved to the other repository": Edit(moves_records=True),
}  # fmt: skip
TABLES = INDEXES | {
    "no record of the applier": Edit(statements=("DELETE FROM mysql.slave_relay_log_info",)),
    "position 0": row("Relay_log_pos = 0"),
    "a position behind the end": row("Relay_log_pos = 99999"),
    "workers without records": row("Number_of_workers = 4"),
}
OF_MARIADB = {
    name: edit for name, edit in FILES.items() if "workers" not in name and "repository" not in name
}
CASES: dict[tuple[str, str], dict[str, Edit]] = {
    ("5.6", "FILE"): FILES,
    ("5.7", "FILE"): FILES,
    ("5.7", "TABLE"): TABLES | {"moved to the other repository": Edit(moves_records=True)},
    ("9.7", "TABLE"): TABLES,
    (MARIADB, "FILE"): OF_MARIADB,
}
ALL_CASES = os.environ.get("BINLAG_ALL_CASES") == "1"
IN_CI = ("no record of the applier", "the last line twice", "moved to the other repository")
PARALLEL_TYPES = {"5.6": DATABASE, MARIADB: OPTIMISTIC}
OTHER = {"FILE": "TABLE", "TABLE": "FILE"}


@pytest.mark.in_ci
@pytest.mark.parametrize("recovery", [False, True] if ALL_CASES else [False])
@pytest.mark.parametrize(("version", "repository"), CASES)
def test_each_edit(
    version: str, repository: str, recovery: bool, server_factory: ServerFactory
) -> None:
    workers = 1 if version == "9.7" else 0
    setup = Setup(
        version,
        repository,
        repository,
        recovery=recovery,
        workers=workers,
        parallel_type=PARALLEL_TYPES.get(version, LOGICAL_CLOCK),
        relay_log_bytes=SMALL_RELAY_LOG,
        sync_every=1,
        purges=False,
    )
    with KillPair(server_factory, setup) as pair:
        stopped_behind_its_receiver(pair)
        kept = pair.replica.folder / "kept"
        shutil.copytree(pair.replica.data, kept)
        left = pair.left()
        found = {
            name: what_differs(pair, setup, kept, left, edit)
            for name, edit in CASES[version, repository].items()
            if ALL_CASES or name in IN_CI
        }
    assert {name: differences for name, differences in found.items() if differences} == {}


def stopped_behind_its_receiver(pair: KillPair) -> None:
    """Killed with several relay logs, of which the applier has not executed all."""
    pair.begin(SESSIONS)
    insert(pair, 12)
    pair.settle()
    pair.run("STOP REPLICA SQL_THREAD")
    insert(pair, 8, first=12)
    file, position = pair.source_end()
    pair.wait(Master_Log_File=file, Read_Master_Log_Pos=position)
    pair.replica.kill()


def insert(pair: KillPair, count: int, first: int = 0) -> None:
    statements = (
        f"INSERT INTO d1.t VALUES ({number}, 0, REPEAT('x', 60))"
        for number in range(first, first + count)
    )
    pair.source.execute(*statements)


def what_differs(pair: KillPair, setup: Setup, kept: Path, left: Left, edit: Edit) -> object:
    """`left`: what the kill left before the edit; one of the files changes no row."""
    if pair.replica.running:
        pair.replica.kill()
    shutil.rmtree(pair.replica.data)
    shutil.copytree(kept, pair.replica.data)
    pair.configure(setup)
    if edit.statements:
        pair.replica.start()
        pair.replica.execute(*edit.statements)
        pair.replica.kill()
    edit.files(pair.replica.data)
    left = pair.left() if edit.statements else replace(left, files=pair.files())
    if edit.moves_records:
        other = OTHER[setup.repository]
        setup = replace(setup, repository=other, source_repository=other)
        pair.configure(setup)
    pair.replica.start()
    version = str(pair.replica.query("SELECT @@version")[0][0])
    start, real = pair.at_start(), pair.go_on()
    uuid = "" if pair.version == MARIADB else str(pair.source.query("SELECT @@server_uuid")[0][0])
    source = BinlogFiles(pair.source_files(), uuid=uuid, server_id=1)
    return compare(left, setup, source, version, start, real).differences
