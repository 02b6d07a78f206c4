"""The live receiver against real sources: every version, by position and by GTID, what goes wrong,
and a replay that follows."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from servers.server import Server

import applier
from applier.binlog.follow import IndexedLogs
from applier.errors import BinlagError, InputError, ReplicationError
from applier.mysql.into import ReplayWatch, replay_into
from applier.mysql.into_options import IntoOptions
from applier.options import ReplayOptions
from applier.receive.receive import LiveReceiver
from applier.receive.receive_folder import Folder, Start
from applier.receive.received import ReceiveOptions, ReceiveWatch
from checkpoints.position import Position
from tests.receive.receiving import relay_events, source_events, transactions
from tests.receive.sources import (
    TO_END,
    end_of_log,
    endpoint,
    here,
    is_mariadb,
    receive,
    settle,
    wait,
)
from tests.servers.fixtures import ServerFactory

THOROUGH = os.environ.get("BINLAG_ALL_CASES") == "1"
BIG = 17 << 20
"""More than a packet of the protocol holds."""


@pytest.fixture(
    scope="module", params=["5.6", "5.7", "9.7", "mariadb"] if THOROUGH else ["5.7", "mariadb"]
)
def source(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    """One source of each version, with GTIDs."""
    server = server_factory(request.param, gtids=True, options={"max_allowed_packet": 64 << 20})
    yield server
    server.close()


def fill(server: Server, rows: int = 3, *, big: bool = False) -> None:
    """DDL and rows in two logs."""
    big_rows = f"INSERT INTO r.big VALUES (REPEAT('x', {BIG}))"
    statements = [
        "CREATE DATABASE IF NOT EXISTS r",
        "CREATE TABLE IF NOT EXISTS r.t (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(20))",
    ]
    inserts = ["INSERT INTO r.t (b) VALUES ('one'), ('zwölf')"] * rows
    if big:
        statements += [
            "CREATE TABLE r.big (b LONGBLOB) ENGINE=MyISAM",
            big_rows,
            "DROP TABLE r.big",
        ]
    server.execute(*statements, *inserts, "FLUSH BINARY LOGS", *inserts)
    settle(server)


@contextmanager
def running(receiver: LiveReceiver) -> Iterator[None]:
    """The receiver in a thread of its own; it is stopped at the end of the block, and what it
    raised is raised."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            receiver.run()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        receiver.stop()
        thread.join()
    if errors:
        raise errors[0]


# what is received


def test_byte_for_byte_from_a_position(source: Server, tmp_path: Path) -> None:
    """Two runs, two logs of the source, an event of more than 16 MB."""
    start = here(source)
    fill(source, big=True)
    first = receive(source, tmp_path, start)
    assert first.position == end_of_log(source)
    assert first.bytes > BIG
    fill(source)
    second = receive(source, tmp_path)
    assert second.position == end_of_log(source)
    assert relay_events(tmp_path) == source_events(source.binlog_files(), start.position)


def test_each_transaction_once_by_gtid(source: Server, tmp_path: Path) -> None:
    """Begun behind what is executed, gone on with, and with nothing more to come."""
    options = ReceiveOptions(to_end=True, auto_position=True)
    start, already = here(source, auto_position=True), len(transactions(source.binlog_files()))
    fill(source)
    receive(source, tmp_path, start, options)
    fill(source)
    again = receive(source, tmp_path, options=options)
    assert again.position == end_of_log(source)
    found = transactions(IndexedLogs(tmp_path))
    assert len(found) >= 14
    assert found == transactions(source.binlog_files())[already:]
    receive(source, tmp_path, options=options)
    assert transactions(IndexedLogs(tmp_path)) == found


def test_from_the_oldest_log_on(source: Server, tmp_path: Path) -> None:
    began = time.monotonic()
    received = receive(source, tmp_path)
    seconds = time.monotonic() - began
    assert received.position == end_of_log(source)
    assert received.source is not None
    assert -1 <= received.source.clock_difference_seconds <= seconds + 1, (
        "one clock; what the answer took on its way counts"
    )
    assert relay_events(tmp_path) == source_events(source.binlog_files())


def test_waits_and_goes_on_when_the_source_was_killed(source: Server, tmp_path: Path) -> None:
    start, notes = here(source), list[str]()
    receiver = LiveReceiver(
        endpoint(source),
        Folder(tmp_path, start),
        ReceiveOptions(heartbeat_seconds=0.5),
        ReceiveWatch(on_note=notes.append),
    )
    with running(receiver):
        fill(source)
        wait(lambda: receiver.progress.position == end_of_log(source))
        wait(lambda: receiver.received.heartbeats > 1)
        source.kill()
        source.start()
        fill(source)
        wait(lambda: receiver.progress.position == end_of_log(source))
    assert receiver.received.connections >= 2
    assert any("trying again in 1 s" in note for note in notes)
    assert relay_events(tmp_path) == source_events(source.binlog_files(), start.position)


def test_encrypted_when_the_source_offers_it(source: Server, tmp_path: Path) -> None:
    """5.7 and 9.7 make certificates for themselves. The password is in no file of ours."""
    sockets = []
    receiver = LiveReceiver(
        endpoint(source), Folder(tmp_path, here(source)), ReceiveOptions(), ReceiveWatch()
    )
    with running(receiver):
        wait(lambda: receiver.received.waiting)
        server = receiver._server
        assert server is not None
        sockets.append(server.socket)
    assert isinstance(sockets[0], ssl.SSLSocket) == (source.installed.recipe.name in ("5.7", "9.7"))
    assert not any(source.password.encode() in path.read_bytes() for path in tmp_path.iterdir())


def test_the_source_lists_us(source: Server, tmp_path: Path) -> None:
    folder = Folder(tmp_path, Start(position=end_of_log(source), server_id=4321))
    receiver = LiveReceiver(endpoint(source), folder, ReceiveOptions())
    listing = "SHOW REPLICAS" if source.installed.recipe.name == "9.7" else "SHOW SLAVE HOSTS"
    with running(receiver):
        wait(lambda: receiver.received.waiting)
        hosts = source.query(listing)
        own = [row for row in hosts if row[0] == 4321]
        assert [row[1] for row in own] == ["binlag"]
        if not is_mariadb(source):
            assert own[0][-1] == folder.own.uuid


# what goes wrong: one line each


def refused(
    source: Server,
    folder: Path,
    start: Start | None = None,
    options: ReceiveOptions = TO_END,
    **changes: str,
) -> BinlagError:
    with pytest.raises(BinlagError) as caught:
        receive(source, folder, start, options, **changes)
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    return caught.value


def test_the_account(source: Server, tmp_path: Path) -> None:
    source.execute("CREATE USER 'no'@'127.0.0.1' IDENTIFIED BY 'secret'")
    wrong = refused(source, tmp_path, password="wrong")
    assert "refuses the account: Access denied for user 'root'" in str(wrong)
    nobody = refused(source, tmp_path, user="no", password="secret")
    assert "no may not replicate: Access denied" in str(nobody)
    assert "GRANT REPLICATION SLAVE ON *.* TO no" in str(nobody)
    assert "secret" not in str(nobody)
    source.execute("GRANT REPLICATION SLAVE ON *.* TO 'no'@'127.0.0.1'")
    receive(source, tmp_path, here(source), user="no", password="secret")
    source.execute("DROP USER 'no'@'127.0.0.1'")


def test_nobody_there(source: Server, tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # nobody listens here, and nobody else can take the port
        with pytest.raises(InputError, match="cannot be reached"):
            receive(source, tmp_path, port=silent.getsockname()[1])


def test_ourselves(source: Server, tmp_path: Path) -> None:
    same_id = refused(source, tmp_path, Start(server_id=1))
    assert isinstance(same_id, ReplicationError)
    assert (same_id.number, "same server id, 1" in str(same_id)) == (1593, True)
    if not is_mariadb(source):
        (tmp_path / "auto.cnf").write_bytes((source.data / "auto.cnf").read_bytes())
        same_uuid = refused(source, tmp_path)
        assert isinstance(same_uuid, ReplicationError)
        assert (same_uuid.number, "same server UUID" in str(same_uuid)) == (1593, True)


@pytest.mark.in_ci
def test_another_server_than_before(source: Server, tmp_path: Path) -> None:
    """A position of one server is none of another; GTIDs are the same everywhere."""
    receive(source, tmp_path, here(source))
    if is_mariadb(source):
        source.restart(server_id=77)
        source.execute("FLUSH BINARY LOGS")
        settle(source)
    else:
        source.stop()
        (source.data / "auto.cnf").unlink()
        source.start()
    error = refused(source, tmp_path)
    assert "a position of one server means nothing on another" in str(error)
    assert receive(
        source, tmp_path, options=ReceiveOptions(to_end=True, auto_position=True)
    ).position == end_of_log(source)
    if is_mariadb(source):
        source.restart(server_id=1)


def test_a_log_that_is_not_there(source: Server, tmp_path: Path) -> None:
    """In the source's own words."""
    unknown = refused(source, tmp_path / "unknown", Start(position=Position("binlog.000999", 4)))
    beyond = refused(
        source, tmp_path / "beyond", Start(position=Position(end_of_log(source).file, 1 << 30))
    )
    for error, words in (
        (unknown, "ould not find first log"),
        (beyond, "position > file size|beyond|impossible position"),
    ):
        assert isinstance(error, ReplicationError)
        assert error.number == 1236
        assert any(word in error.message for word in words.split("|")), error.message


def purged(source: Server) -> bool:
    """Only two logs are left. One that is still read, by a dump that has just ended, is not purged,
    nor is any behind it."""
    source.execute(f"PURGE BINARY LOGS TO '{source.binlog_files()[-1].name}'")
    return len(source.binlog_files()) <= 2


def test_a_position_that_no_event_has(source: Server, tmp_path: Path) -> None:
    """The file is there: another position helps, and a fresh dump is not needed."""
    end = end_of_log(source)
    error = refused(
        source, tmp_path / "place", Start(position=Position(end.file, end.offset + 1_000_000))
    )
    assert isinstance(error, ReplicationError)
    assert error.number == 1236
    assert error.hint is not None
    assert f"SHOW BINLOG EVENTS IN '{end.file}'" in error.hint
    assert source.query(f"SHOW BINLOG EVENTS IN '{end.file}' LIMIT 1"), (
        "the next step works when it is followed"
    )


def test_a_purged_log(source: Server, tmp_path: Path) -> None:
    start = here(source, auto_position=True)
    receive(source, tmp_path / "place", here(source))
    fill(source)
    source.execute("FLUSH BINARY LOGS")
    wait(lambda: purged(source))
    by_position = refused(source, tmp_path / "place")
    by_gtid = refused(
        source, tmp_path / "gtids", start, ReceiveOptions(to_end=True, auto_position=True)
    )
    for error in (by_position, by_gtid):
        assert isinstance(error, ReplicationError)
        assert error.number == 1236
        assert "take a fresh dump" in str(error)
    assert "purged" in by_gtid.message or "Could not find GTID state" in by_gtid.message


# a replay that follows


def test_a_replay_follows_into_memory_and_into_a_server(
    server_factory: ServerFactory, tmp_path: Path
) -> None:
    """Both are as far as the source while it waits; ended and begun again, the one into the server
    goes on where it was."""
    source, target = (
        server_factory("5.7", gtids=True, options={"server_id": number}) for number in (1, 2)
    )
    receiver = LiveReceiver(endpoint(source), Folder(tmp_path / "relay", Start()), ReceiveOptions())
    ended = threading.Event()
    tables, seen = applier.Tables(), list[int]()
    with running(receiver):
        fill(source)
        wait(lambda: receiver.progress.position == end_of_log(source))
        logs = [
            IndexedLogs(tmp_path / "relay", follow=True, stopped=ended.is_set) for _ in range(2)
        ]
        memory = threading.Thread(
            target=lambda: seen.append(applier.replay(logs[0], into=tables).transactions)
        )
        watch = ReplayWatch(stopped=ended.is_set)
        options, ours = ReplayOptions(), IntoOptions()
        into = threading.Thread(
            target=lambda: seen.append(
                replay_into(logs[1], endpoint(target), options, ours, watch).transactions
            )
        )
        memory.start()
        into.start()
        count = "SELECT COUNT(*) FROM r.t"
        try:
            wait(
                lambda: (
                    bool(target.query("SHOW DATABASES LIKE 'r'"))
                    and bool(target.query("SHOW TABLES IN r"))
                )
            )
            wait(lambda: target.query(count) == source.query(count))
            fill(source)
            wait(lambda: target.query(count) == source.query(count))
            wait(lambda: "r.t" in tables and len(tables["r.t"]) == source.query(count)[0][0])
        finally:
            ended.set()
            memory.join()
            into.join()
        fill(source)
        wait(lambda: receiver.progress.position == end_of_log(source))
        again = replay_into(IndexedLogs(tmp_path / "relay"), endpoint(target), options, ours)
        assert (again.resumed_from is not None, again.error) == (True, None)
        assert target.query(count) == source.query(count)
    number = len(transactions(source.binlog_files())) - again.transactions
    assert seen == [number, number]
    assert len(tables["r.t"]) == 24
    source.close()
    target.close()
