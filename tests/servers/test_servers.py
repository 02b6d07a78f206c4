"""Each server really starts, writes what the tests of the applier read, and survives a crash."""

from __future__ import annotations

from pathlib import Path

import pytest
from servers.database import Database
from servers.server import Server, ServerError

from applier.binlog.header import EventType
from applier.binlog.reader import LogReader
from tests.servers.fixtures import ServerFactory

_ROWS = ((1, "one"), (2, "zwölf"), (3, None))
_ROW_EVENTS = {EventType.WRITE_ROWS_V1, EventType.WRITE_ROWS}


def _fill(server: Database, database: str) -> None:
    server.execute(
        f"CREATE DATABASE {database} CHARACTER SET utf8",
        f"CREATE TABLE {database}.t (a INT NOT NULL PRIMARY KEY, b VARCHAR(20)) ENGINE=InnoDB",
        f"INSERT INTO {database}.t VALUES (1, 'one'), (2, 'zwölf'), (3, NULL)",
    )


def test_says_the_version_that_was_brought(any_server: Server) -> None:
    ((version,),) = any_server.query("SELECT VERSION()")
    assert version.startswith(any_server.installed.version)
    assert any_server.installed.version.startswith(any_server.installed.recipe.expected)


def test_is_reached_over_tcp_with_the_password_only(any_server: Server) -> None:
    import pymysql

    address = {"host": any_server.host, "port": any_server.port, "unix_socket": None}
    with any_server.connect(**address) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@port")
        assert cursor.fetchall() == ((any_server.port,),)
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        any_server.connect(**address, password="")


def test_has_no_other_accounts(any_server: Server) -> None:
    users = any_server.query(
        "SELECT User, Host FROM mysql.user WHERE User NOT LIKE 'mysql.%' AND User <> 'mariadb.sys' "
        "ORDER BY Host"
    )
    assert users == (("root", "127.0.0.1"), ("root", "localhost"))


def test_keeps_its_password_out_of_the_command(any_server: Server) -> None:
    arguments = Path(f"/proc/{any_server.pid}/cmdline").read_bytes()
    assert any_server.password.encode() not in arguments


def test_takes_no_place_in_the_asynchronous_queues_of_the_machine(any_server: Server) -> None:
    assert any_server.query("SELECT @@innodb_use_native_aio") == ((0,),)


def test_writes_row_events(any_server: Server) -> None:
    _fill(any_server, "written")
    written = [event for event in LogReader(any_server.binlog_files()) if event.type in _ROW_EVENTS]
    assert len(written) == 1


def test_survives_a_crash(any_server: Server) -> None:
    _fill(any_server, "kept")
    port, pid, logs = any_server.port, any_server.pid, len(any_server.binlog_files())
    any_server.kill()
    assert not any_server.running
    any_server.start()
    assert any_server.pid != pid
    assert any_server.port == port
    assert any_server.query("SELECT a, b FROM kept.t ORDER BY a") == _ROWS
    assert len(any_server.binlog_files()) == logs + 1


def test_restarts_with_other_options(any_server: Server) -> None:
    any_server.restart(server_id=77)
    assert any_server.query("SELECT @@server_id") == ((77,),)


@pytest.mark.parametrize("name", ["5.6", "9.7"])
def test_gives_gtids_when_told(name: str, server_factory: ServerFactory) -> None:
    server = server_factory(name, gtids=True, options={"server_id": 5})
    _fill(server, "numbered")
    ((executed,),) = server.query("SELECT @@GLOBAL.gtid_executed")
    assert executed.replace("\n", "") == server.query("SELECT CONCAT(@@server_uuid, ':1-3')")[0][0]
    server.close()


def test_says_why_it_does_not_start(any_server: Server) -> None:
    server = Server(any_server.installed, options={"no_such_option": 1})
    with pytest.raises(ServerError, match="no_such_option"):
        server.start()
    assert not server.running
    server.close()


@pytest.mark.parametrize("program", ["mysql", "mariadb"])
def test_clients_come_along(program: str, server_factory: ServerFactory) -> None:
    import subprocess

    server = server_factory("mariadb" if program == "mariadb" else "9.7")
    command = server.client(
        program, "--batch", "--skip-column-names", "-e", "SELECT CURRENT_USER()"
    )
    assert server.password not in " ".join(command)
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        == "root@localhost\n"
    )
    server.close()


def test_a_folder_is_taken_up_again(tmp_path: Path, server_factory: ServerFactory) -> None:
    first = server_factory("mariadb", folder=tmp_path / "kept")
    _fill(first, "again")
    first.close()
    second = server_factory("mariadb", folder=tmp_path / "kept")
    assert second.query("SELECT a, b FROM again.t ORDER BY a") == _ROWS
    second.close()
