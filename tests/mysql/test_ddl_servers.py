"""DDL of real servers, replayed in memory: each table has the columns, keys and rows that the
server shows of it.

A case of ddl_cases.sql is a comment with its servers and a title, and statements, which are run in
a new database. None of them fails, so all are in the log. One server serves all cases of its
version.
"""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.mysql.statements.ddl import (
    commits_by_itself,
    is_atomic_create,
    passed_by_replica,
)
from applier.mysql.statements.writer import undelayed
from applier.options import parse_options
from applier.tables.catalog import Tables
from applier.tables.sql.statement_kind import is_temporary
from tests.applier.logs import replay_log
from tests.binlog.build import log, query
from tests.mysql.ddl_into_cases import INTO_CASES
from tests.mysql.server_shapes import log_of, shape_in_memory, shape_on
from tests.mysql.server_support import bodies, endpoint
from tests.servers.fixtures import ServerFactory

IGNORING = (
    "ADD PRIMARY KEY (a)",
    "ADD PRIMARY KEY (a) PARTITION BY HASH (a) PARTITIONS 3",
    "ADD UNIQUE (a)",
    "ADD PRIMARY KEY (a), ADD UNIQUE (b)",
    "ADD UNIQUE (b)",
    "ADD PRIMARY KEY (a), ADD UNIQUE (b), ENGINE=MyISAM",
)
SERVERS = {"all": ("5.7", "9.7", "mariadb"), "mysql": ("5.7", "9.7")}
_CASE = re.compile(r"-- ([^:\n]*): ([^\n]*)\n(.*?)(?=\n\n--|\Z)", re.DOTALL)


def cases() -> list[tuple[str, str, tuple[str, ...]]]:
    """(server, title, statements)"""
    found = []
    for servers, title, text in _CASE.findall(
        Path(__file__).with_name("ddl_cases.sql").read_text()
    ):
        statements = tuple(re.split(r";\s*(?:\n|\Z)", text.strip())[:-1])
        for name in servers.split():
            found += [(server, title, statements) for server in SERVERS.get(name, (name,))]
    return sorted(found)


@pytest.mark.one_case_in(5)
@pytest.mark.parametrize(
    ("server_name", "title", "statements"),
    cases(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_tables_are_as_the_server_shows_them(
    server_name: str,
    title: str,
    statements: tuple[str, ...],
    server_factory: ServerFactory,
    tmp_path: Path,
) -> None:
    server = server_factory.shared(server_name)
    file, errors = log_of(server, tmp_path, statements, "d")
    assert errors == []
    assert shape_in_memory(file, "d") == shape_on(server, "d"), title


@pytest.mark.one_case_in(5)
@pytest.mark.parametrize("apply", ["native", "sql"])
@pytest.mark.parametrize(
    ("server_name", "title", "statements"),
    INTO_CASES,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_server_takes_the_log(
    server_name: str,
    title: str,
    statements: tuple[str, ...],
    apply: str,
    server_factory: ServerFactory,
    tmp_path: Path,
) -> None:
    """The same server is source and target: what the log made is dropped before it is replayed."""
    server = server_factory.shared(server_name)
    file, errors = log_of(server, tmp_path, statements, "d")
    wanted = shape_on(server, "d")
    assert errors == []
    server.execute("DROP DATABASE d")
    replay_id = f"{title}, {apply}"
    outcome = replay_into(
        [str(file)],
        endpoint(server),
        parse_options(),
        IntoOptions(apply=apply, force=True, replay_id=replay_id),
    )
    assert outcome.error is None
    assert shape_on(server, "d") == wanted


@pytest.mark.parametrize("server_name", ["5.6", "5.7", "9.7", "mariadb"])
def test_bodies_are_the_sources(
    server_name: str, server_factory: ServerFactory, tmp_path: Path
) -> None:
    """MySQL would take what stands behind a body in the same text for a part of it."""
    statements = (
        "CREATE TABLE t (a INT)",
        "CREATE PROCEDURE p () SELECT 1 -- one",
        "CREATE FUNCTION f () RETURNS INT DETERMINISTIC RETURN 1",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
        "CREATE EVENT e ON SCHEDULE EVERY 1 YEAR DISABLE DO SELECT 1",
        "ALTER EVENT e DO SELECT 2",
        "CREATE PROCEDURE q () BEGIN SELECT 1; END",
    )
    server = server_factory.shared(server_name)
    file, errors = log_of(server, tmp_path, statements, "d")
    wanted = bodies(server, "d")
    assert (errors, len(wanted)) == ([], 5)
    server.execute("DROP DATABASE d")
    outcome = replay_into(
        [str(file)],
        endpoint(server),
        parse_options(),
        IntoOptions(force=True, replay_id="bodies"),
    )
    assert outcome.error is None
    assert bodies(server, "d") == wanted


def test_a_target_that_makes_invisible_keys(server_factory: ServerFactory, tmp_path: Path) -> None:
    """Neither the dump's tables nor the log's get them: sql_generate_invisible_primary_key is not
    for appliers."""
    server = server_factory.shared("9.7")
    file, errors = log_of(
        server,
        tmp_path,
        ("CREATE TABLE t (a INT)", "CREATE TABLE u SELECT 1 AS a", "INSERT INTO t VALUES (1)"),
        "d",
    )
    wanted = shape_on(server, "d")
    assert errors == []
    dump = tmp_path / "before.sql"
    dump.write_text("CREATE DATABASE e; USE e; CREATE TABLE s (a INT);")
    server.execute("DROP DATABASE d", "SET GLOBAL sql_generate_invisible_primary_key = ON")
    try:
        into = IntoOptions(schema=str(dump), force=True, replay_id="invisible keys")
        outcome = replay_into([str(file)], endpoint(server), parse_options(), into)
    finally:
        server.execute("SET GLOBAL sql_generate_invisible_primary_key = OFF")
    assert outcome.error is None
    assert shape_on(server, "d") == wanted
    assert [column for column, *_ in shape_on(server, "e")["s"][0]] == ["a"]
    server.execute("DROP DATABASE e")


@pytest.mark.parametrize("apply", ["native", "sql"])
def test_a_drop_that_failed_in_part_is_logged_without_its_error(
    apply: str, server_factory: ServerFactory, tmp_path: Path
) -> None:
    """By MariaDB. A replica passes over what is missing, and so does the replay; it says so."""
    server = server_factory.shared("mariadb")
    statements = (
        "CREATE TABLE t (a INT)",
        "CREATE TABLE kept (a INT)",
        "DROP TABLE t, missing",
        "CREATE SEQUENCE s",
        "DROP SEQUENCE s, missing",
        "INSERT INTO kept VALUES (1)",
    )
    file, errors = log_of(server, tmp_path, statements, "d")
    assert len(errors) == 2
    wanted = shape_on(server, "d")
    server.execute("DROP DATABASE d")
    into = IntoOptions(apply=apply, force=True, replay_id=f"drop, {apply}")
    outcome = replay_into([str(file)], endpoint(server), parse_options(), into)
    assert outcome.error is None
    assert len([note for note in outcome.notes if "missing" in note and "IDEMPOTENT" in note]) == 2
    assert shape_on(server, "d") == wanted


@pytest.mark.in_ci
def test_alter_ignore_loses_rows_of_mariadb(server_factory: ServerFactory, tmp_path: Path) -> None:
    """Not always both of two rows with the same clustered key. Another release may keep one."""
    server = server_factory.shared("mariadb")
    random, statements = Random(1), list[str]()
    for number in range(40):
        rows = [f"({random.randint(1, 8)}, {random.randint(1, 12)}, {at})" for at in range(20)]
        statements += (
            f"CREATE TABLE t{number} (a INT NOT NULL, b INT, c INT)",
            f"INSERT INTO t{number} VALUES {', '.join(rows)}",
            f"ALTER IGNORE TABLE t{number} {IGNORING[number % len(IGNORING)]}",
        )
    file, errors = log_of(server, tmp_path, statements, "d")
    assert errors == []
    assert shape_in_memory(file, "d") == shape_on(server, "d")


def test_alter_ignore_of_partitions_is_refused(tmp_path: Path) -> None:
    """A server reads them one after the other, so which rows come first is not the order here."""
    statements = (
        b"CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 2",
        b"INSERT INTO t VALUES (2), (1), (1), (3)",
        b"ALTER IGNORE TABLE t ADD UNIQUE (a)",
    )
    events = [query(sql, b"d") for sql in statements]
    _, result = replay_log(tmp_path, log(*events), Tables(), server="mariadb")
    assert result.error is not None
    assert (result.error.number, "partitions" in result.error.message) == (1235, True)


def test_what_a_replica_of_mariadb_passes() -> None:
    assert passed_by_replica("/* x */ DROP TABLE t, u") == {1051}
    assert passed_by_replica("DROP SEQUENCE s, t") == {4091}
    assert passed_by_replica("drop database d") == {1008}
    assert passed_by_replica("SET STATEMENT lock_wait_timeout = 5 FOR CREATE SCHEMA d") == {1007}
    assert passed_by_replica("DROP VIEW v") == frozenset()


def test_nothing_is_delayed() -> None:
    text = "/* ä */ insert  delayed INTO t VALUES ('INSERT DELAYED')".encode()
    assert undelayed(text) == "/* ä */ insert INTO t VALUES ('INSERT DELAYED')".encode()
    assert undelayed(b"UPDATE t SET a = 'REPLACE DELAYED'") == b"UPDATE t SET a = 'REPLACE DELAYED'"


def test_what_makes_a_table_and_its_rows_at_once() -> None:
    assert is_atomic_create("CREATE TABLE t (a int) START TRANSACTION ROW_FORMAT=DYNAMIC")
    assert is_atomic_create("create table t (a int) start transaction")
    assert not is_atomic_create(
        "CREATE TABLE t (start INT, transaction INT COMMENT 'START TRANSACTION')"
    )
    assert not is_atomic_create("START TRANSACTION")
    assert commits_by_itself("SET STATEMENT lock_wait_timeout = 5 FOR ALTER TABLE t ADD b INT")
    assert is_temporary("SET STATEMENT lock_wait_timeout = 5 FOR CREATE TEMPORARY TABLE t (a INT)")


@pytest.mark.parametrize("name", ["5.7", "9.7", "mariadb"])
def test_temporary_tables_of_a_database_that_is_gone(
    name: str, server_factory: ServerFactory
) -> None:
    """The server drops them at the end of their session, whose default database it still is."""
    source, target = (
        server_factory(name, options={"binlog_format": "STATEMENT", "server_id": number})
        for number in (1, 2)
    )
    with closing(source), closing(target):
        with closing(source.connect(autocommit=True)) as session, session.cursor() as cursor:
            for sql in ("CREATE DATABASE gone", "USE gone", "CREATE TEMPORARY TABLE t (a INT)",
                        "INSERT INTO t VALUES (1)", "DROP DATABASE gone"):  # fmt: skip
                cursor.execute(sql)
        for _ in range(200):
            if source.binlog_files()[-1].read_bytes().count(b"TEMPORARY") == 2:
                break
            time.sleep(0.05)
        source.execute("CREATE DATABASE behind")
        log = str(source.binlog_files()[-1])
        outcome = replay_into([log], endpoint(target), parse_options(), IntoOptions())
        assert outcome.error is None
        assert ("behind",) in target.query("SHOW DATABASES")
