"""Statements about accounts, replayed into a server: CURRENT_USER is the source's account."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from servers.server import Server

from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.options import parse_options
from tests.mysql.server_support import endpoint
from tests.replica.real_pairs import Pair
from tests.servers.fixtures import ServerFactory

ACCOUNTS = "SELECT User, Host, Insert_priv FROM mysql.user ORDER BY 1, 2"
EVENTS = "SELECT EVENT_NAME, DEFINER, EVENT_DEFINITION FROM information_schema.EVENTS ORDER BY 1"
DATABASES = "SELECT User, Host, Db, Select_priv FROM mysql.db ORDER BY 1, 2, 3"
LAST = {
    "5.7": "REVOKE INSERT ON *.* FROM CURRENT_USER()",
    "9.7": "/* x */ DROP USER current_user()",
    "mariadb": "CREATE ROLE r WITH ADMIN current_user",
}


StartServer = Callable[[str], Server]


@pytest.fixture
def start(server_factory: ServerFactory) -> Iterator[StartServer]:
    """Starts servers that end with the test: accounts stay with a server."""
    with ExitStack() as ends:

        def started(name: str) -> Server:
            server = server_factory(name)
            ends.callback(server.close)
            return server

        yield started


@pytest.mark.parametrize("name", ["5.7", "9.7", "mariadb"])
def test_current_user_is_the_sources(name: str, start: StartServer, tmp_path: Path) -> None:
    """9.7 and MariaDB log these as they are written; the target's root would lose its name."""
    source, target = start(name), start(name)
    for account in ("u@'127.0.0.1'", "v@'127.0.0.1'"):
        source.execute(
            f"CREATE USER {account} IDENTIFIED BY 'p'",
            f"GRANT ALL ON *.* TO {account} WITH GRANT OPTION",
        )
    source.execute(
        "CREATE DATABASE d",
        *(
            f"CREATE EVENT d.{name} ON SCHEDULE EVERY 1 YEAR DO SELECT CURRENT_USER()"
            for name in ("e", "f", "g")
        ),
    )
    statements = (
        ("u", "ALTER EVENT d.e COMMENT 'of u'"),
        ("u", "ALTER DEFINER = CURRENT_USER EVENT d.f DO SELECT CURRENT_USER() + 1"),
        ("u", "ALTER DEFINER=current_user() EVENT d.g COMMENT 'of u'"),
        ("u", "REVOKE INSERT ON *.* FROM CURRENT_USER"),
        ("u", "GRANT SELECT ON d.* TO current_user()"),
        ("u", "RENAME USER current_user TO 'current_user'@localhost"),
        ("v", LAST[name]),
    )
    for user, sql in statements:
        place = {"host": "127.0.0.1", "port": source.port, "unix_socket": None}
        with source.connect(**place, user=user, password="p") as connection:
            connection.cursor().execute(sql)
    source.execute("FLUSH BINARY LOGS")
    log = shutil.copy(source.binlog_files()[0], tmp_path)
    outcome = replay_into([str(log)], endpoint(target), parse_options(), IntoOptions())
    assert outcome.error is None
    for query in (ACCOUNTS, DATABASES, EVENTS):
        assert target.query(query) == source.query(query)


def test_current_role_is_the_sources(server_factory: ServerFactory, tmp_path: Path) -> None:
    source, target = server_factory("mariadb"), server_factory("mariadb")
    source.execute(
        "CREATE DATABASE d",
        "CREATE EVENT d.e ON SCHEDULE EVERY 1 YEAR DO SELECT 1",
        "CREATE ROLE r",
        "GRANT ALL ON *.* TO r WITH GRANT OPTION",
        "GRANT r TO root@localhost",
    )
    with source.connect() as connection, connection.cursor() as cursor:
        for sql in (
            "SET ROLE r",
            "ALTER DEFINER = CURRENT_ROLE EVENT d.e DO SELECT 2",
            "GRANT SELECT ON d.* TO CURRENT_ROLE()",
        ):
            cursor.execute(sql)
    source.execute("FLUSH BINARY LOGS")
    log = shutil.copy(source.binlog_files()[0], tmp_path)
    outcome = replay_into([str(log)], endpoint(target), parse_options(), IntoOptions())
    assert outcome.error is None
    for query in (DATABASES, EVENTS):
        assert target.query(query) == source.query(query)
    assert target.query(EVENTS) == (("e", "r@", "SELECT 2"),)


@pytest.mark.parametrize("apply", ["native", "sql"])
@pytest.mark.parametrize("name", ["5.7", "9.7", "mariadb"])
def test_without_accounts(name: str, apply: str, start: StartServer, tmp_path: Path) -> None:
    """The target keeps its own: a log may change the password that the replay came in with."""
    source, target = start(name), start(name)
    source.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY)",
        "CREATE USER u@localhost IDENTIFIED BY 'p'",
        "GRANT SELECT ON d.t TO u@localhost",
        "RENAME USER u@localhost TO v@localhost",
        "REVOKE SELECT ON d.t FROM v@localhost",
        "SET PASSWORD FOR v@localhost = PASSWORD('q')"
        if name == "mariadb"
        else "ALTER USER v@localhost IDENTIFIED BY 'q'",
        "INSERT INTO d.t VALUES (1)",
        "DROP USER v@localhost",
        "CREATE USER root@'10.0.0.1'",
        "INSERT INTO d.t VALUES (2)",
        "FLUSH BINARY LOGS",
    )
    log = shutil.copy(source.binlog_files()[0], tmp_path)
    before = target.query(ACCOUNTS)
    into = IntoOptions(apply=apply, without_accounts=True)
    outcome = replay_into([str(log)], endpoint(target), parse_options(), into)
    assert outcome.error is None
    assert target.query(ACCOUNTS) == before
    assert target.query("SELECT a FROM d.t ORDER BY a") == ((1,), (2,))
    assert outcome.notes["left out: 7 statements about accounts and privileges"] == 1


def test_a_refused_account_says_how_to_go_on(start: StartServer, tmp_path: Path) -> None:
    source, target = start("9.7"), start("9.7")
    source.execute("CREATE USER u@localhost", "FLUSH BINARY LOGS")
    target.execute("CREATE USER u@localhost")
    log = shutil.copy(source.binlog_files()[0], tmp_path)
    error = replay_into([str(log)], endpoint(target), parse_options(), IntoOptions()).error
    assert "or leave statements about accounts out with --without-accounts" in str(error)


@pytest.mark.parametrize("name", ["5.7", "9.7", "mariadb"])
def test_flush_privileges_in_a_database_that_is_gone(
    name: str, start: StartServer, server_factory: ServerFactory, tmp_path: Path
) -> None:
    """A container's first start writes such a log; a replica passes it."""
    with Pair(server_factory, name, source_options={"log_bin": "binlog"}) as pair:
        source = pair.source
        source.execute("CREATE DATABASE d")
        with source.connect(database="d") as connection:
            source.execute("DROP DATABASE d")
            connection.cursor().execute("FLUSH PRIVILEGES")
        pair.change_source()
        pair.run("START REPLICA")
        file, position = pair.source_end()
        pair.wait(Relay_Master_Log_File=file, Exec_Master_Log_Pos=position)
        log = shutil.copy(source.binlog_files()[-1], tmp_path)
        target = start(name)
        outcome = replay_into([str(log)], endpoint(target), parse_options(), IntoOptions())
        assert (outcome.error, outcome.total_transactions) == (None, 3)
