"""What goes wrong on the way into a real server: one line that says what, where and what to do; all
before it is committed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.server import Server

from tests.binlog.build import UUID_TEXT, gtid, int_image, log, query, rows, table_map, write, xid
from tests.mysql.server_support import OPTIONS
from tests.servers.fixtures import ServerFactory

Event = tuple[int, bytes]
TABLE = (
    gtid(1),
    query(b"CREATE DATABASE d", b""),
    gtid(2),
    query(b"CREATE TABLE d.t (i INT PRIMARY KEY)"),
)
SECRET = "0p3n-s3sam3"


def transaction(number: int, *events: Event) -> tuple[Event, ...]:
    return (gtid(number), query(b"BEGIN"), *events, xid())


GOOD = (*TABLE, *transaction(3, table_map(), rows(30, int_image(1))))
BAD: dict[str, tuple[tuple[Event, ...], int, tuple[str, ...]]] = {
    "unknown table id": (transaction(4, table_map(), rows(30, int_image(2), 9)), 2,
                         ("table id 9", "start at the beginning")),
    "a row that is there": (transaction(4, table_map(), rows(30, int_image(1))), 1,
                            ("error 1062", "d.t", ":4", "the tables are not as")),
    "a row that is missing": (transaction(4, table_map(), rows(32, int_image(7))), 1,
                              ("error 1032", "d.t", ":4")),
    "a table that is missing": (transaction(4, table_map(table=b"gone"), rows(30, int_image(7))), 1,
                                ("error 1146", "d.gone")),
    "a DDL statement that fails":
        ((gtid(4), query(b"CREATE TABLE d.t (i INT)")), 1, ("error 1050",)),
    "a statement that is no SQL": ((gtid(4), query(b"CREATE NONSENSE")), 1, ("error 1064",)),
    "the source lost events": ((gtid(4), (26, b"\x01\x00\x04lost")), 1,
                               ("LOST_EVENTS", "fresh dump")),
}  # fmt: skip
"""What stands behind the good transactions: exit code, and words of the one line."""


@pytest.fixture(scope="module")
def running(server_factory: ServerFactory) -> Iterator[Server]:
    server = server_factory("9.7", options=OPTIONS)
    server.execute(
        f"CREATE USER few@localhost IDENTIFIED BY '{SECRET}'",
        "GRANT ALL ON binlag.* TO few@localhost",
    )
    server.execute(
        f"CREATE USER some@localhost IDENTIFIED BY '{SECRET}'", "GRANT ALL ON *.* TO some@localhost"
    )
    server.execute("REVOKE SUPER, BINLOG_ADMIN, REPLICATION_APPLIER ON *.* FROM some@localhost")
    yield server
    server.close()


@pytest.fixture
def server(running: Server) -> Server:
    running.execute("DROP DATABASE IF EXISTS d", "DROP DATABASE IF EXISTS binlag")
    return running


def command(server: Server, *files: Path, user: str = "root") -> list[str]:
    url = f"mysql://{user}@localhost?socket={server.socket}"
    return [sys.executable, "-m", "applier", "replay", *map(str, files), "--into", url]


def run(
    server: Server,
    *files: Path,
    user: str = "root",
    password: str | None = None,
    options: tuple[str, ...] = (),
) -> tuple[int, list[str]]:
    """Exit code, and the lines on standard error; nothing that was said has the password in it."""
    secret = server.password if password is None else password
    given, environment = (
        [*command(server, *files, user=user), *options],
        {**os.environ, "BINLAG_PASSWORD": secret},
    )
    done = subprocess.run(given, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert secret not in done.stderr + done.stdout
    return done.returncode, done.stderr.splitlines()


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_in_the_log(name: str, server: Server, tmp_path: Path) -> None:
    events, code, words = BAD[name]
    good, content = log(*GOOD), log(*GOOD, *events)
    path = write(tmp_path, content)
    found, (said, where) = run(server, path)
    assert found == code
    assert all(word in said for word in ("binlog.000001", *words)), said
    assert where.startswith(
        f"binlag: everything up to binlog.000001, position {len(good)} is committed; to go on: "
        "binlag replay"
    )
    assert server.query("SELECT i FROM d.t") == ((1,),)
    columns = "Relay_log_name, Relay_log_pos, Master_log_name, Master_log_pos, binlag_transactions"
    position = ("binlog.000001", len(good))
    assert server.query(f"SELECT {columns} FROM binlag.slave_relay_log_info") == (
        (*position, *position, 3),
    )
    assert run(server, path) == (code, [said, where])


def test_a_checksum_that_is_wrong(server: Server, tmp_path: Path) -> None:
    good = log(*GOOD)
    content = bytearray(log(*GOOD, *transaction(4, table_map(), rows(30, int_image(2)))))
    content[-40] ^= 1
    code, (said, _) = run(server, write(tmp_path, bytes(content)))
    assert code == 2
    assert "checksum" in said.lower()
    assert "binlog.000001" in said
    assert server.query("SELECT Relay_log_pos FROM binlag.slave_relay_log_info") == ((len(good),),)


def test_files_with_a_gap_and_a_file_from_elsewhere(server: Server, tmp_path: Path) -> None:
    rotate = (4, b"\x04" + bytes(7) + b"binlog.000002")
    first = write(tmp_path, log(*GOOD, rotate))
    third = write(
        tmp_path, log(*transaction(4, table_map(), rows(30, int_image(2)))), "binlog.000003"
    )
    code, (said, _) = run(server, first, third)
    assert code == 2
    assert "binlog.000002" in said
    assert server.query("SELECT i FROM d.t") == ((1,),)
    other = write(tmp_path, log(*GOOD[:4], *transaction(3, table_map(), rows(30, int_image(9)))))
    code, (said,) = run(server, other)
    assert code == 2
    assert "not the file that this replay read before" in said
    assert "--replay-id" in said


@pytest.mark.parametrize("user", ["few", "some"])
def test_an_account_that_may_not(user: str, server: Server, tmp_path: Path) -> None:
    """`few` may not make the database; `some` may do all but carry out rows events, and learns that
    before anything is done."""
    code, lines = run(server, write(tmp_path, log(*GOOD)), user=user, password=SECRET)
    assert code == 1
    assert "grant the account" in lines[0]
    assert server.query("SELECT binlag_transactions FROM binlag.slave_relay_log_info") == ((0,),)


def test_a_wrong_password_and_no_server(server: Server, tmp_path: Path) -> None:
    path = write(tmp_path, log(*GOOD))
    code, (said,) = run(server, path, password="wr0ng-0ne")
    assert (code, "refuses the account" in said, "BINLAG_PASSWORD" in said) == (2, True, True)
    nowhere = [part.replace(str(server.socket), "/nowhere") for part in command(server, path)]
    done = subprocess.run(
        nowhere,
        env={**os.environ, "BINLAG_PASSWORD": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "check that the server runs" in done.stderr


def test_an_interrupt_ends_after_the_current_commit_and_says_how_to_go_on(
    server: Server, tmp_path: Path
) -> None:
    """It comes while a row is in the way of transaction 1500, which is carried out, as is the next
    one if it is made already."""
    many = [
        event
        for number in range(4, 3000)
        for event in transaction(number, table_map(), rows(30, int_image(number)))
    ]
    path = write(tmp_path, log(*GOOD, *many))
    assert run(server, path, options=("--until-gtid", f"{UUID_TEXT}:3")) == (0, [])
    one_each = [*command(server, path), "--batch", "1"]
    environment = {**os.environ, "BINLAG_PASSWORD": server.password}
    with server.connect() as somebody, somebody.cursor() as cursor:
        cursor.execute("INSERT INTO d.t VALUES (1500)")
        process = subprocess.Popen(
            one_each, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while "LOCK WAIT" not in server.query("SHOW ENGINE INNODB STATUS")[0][2]:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        somebody.rollback()
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "to go on: binlag replay" in said
    assert said.count("\n") == 1
    ((count,),) = server.query("SELECT binlag_transactions FROM binlag.slave_relay_log_info")
    assert count in (1500, 1501)
    assert server.query("SELECT COUNT(*), MAX(i) FROM d.t") == ((count - 2, count),)
    assert run(server, path)[0] == 0
    assert server.query("SELECT COUNT(*) FROM d.t") == ((2997,),)
