"""What the exec mode and the skip list let pass: the same rows and the same counts from every way
to replay a log, and from a replica.

A source's log goes over tables that differ from the source's: into memory, into a server natively
and by statements, and through a real replica with slave_exec_mode = IDEMPOTENT or
slave_skip_errors.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.server import Server

import applier
from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.mysql.outcome import TargetOutcome
from applier.options import parse_options
from applier.tables.catalog import Tables
from tests.mysql.server_support import THOROUGH, Servers, endpoint
from tests.mysql.test_sql_servers import differences, written
from tests.servers.fixtures import ServerFactory

REPLICAS = ("5.7", "9.7") if THOROUGH else ("9.7",)
SKIPPED = "1032,1062,1451,1452"
MISSING_IN_I = "let pass by --skip-errors: error 1032 on table d.i"
SETUP = """
CREATE DATABASE d
CREATE TABLE d.k (a INT PRIMARY KEY, u INT NOT NULL, b INT, c VARCHAR(9),
    UNIQUE KEY (u)) ENGINE=InnoDB
INSERT INTO d.k VALUES (1, 1, 1, 'a'), (2, 2, 2, 'b'), (3, 3, 3, 'c'), (4, 4, 4, 'd'),
    (5, 5, 5, 'e'), (6, 6, 6, 'f'), (7, 7, 7, 'g')
CREATE TABLE d.n (a INT, b VARCHAR(9)) ENGINE=InnoDB
INSERT INTO d.n VALUES (0, 'o'), (1, 'x'), (1, 'x'), (1, 'x'), (2, 'y'), (3, NULL), (4, 'z'),
    (6, 's'), (7, 't')
CREATE TABLE d.i (a INT, b INT, KEY k (a)) ENGINE=InnoDB
INSERT INTO d.i VALUES (1, 1), (1, 2), (2, 1), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7)
CREATE TABLE d.p (a INT PRIMARY KEY, b INT) ENGINE=InnoDB
CREATE TABLE d.f (a INT PRIMARY KEY, p INT, FOREIGN KEY r (p) REFERENCES d.p (a)) ENGINE=InnoDB
CREATE TABLE d.c (a INT PRIMARY KEY, p INT, FOREIGN KEY s (p) REFERENCES d.p (a) ON DELETE CASCADE
    ON UPDATE CASCADE) ENGINE=InnoDB
INSERT INTO d.p VALUES (1, 1), (2, 2), (3, 3), (8, 8), (9, 9)
INSERT INTO d.f VALUES (1, 1), (2, 2)
INSERT INTO d.c VALUES (1, 8), (2, 9), (3, 9)
"""
CHANGES = """
UPDATE d.k SET b = b + 10
INSERT INTO d.k VALUES (11, 11, 11, 'k'), (12, 12, 12, 'l'), (13, 13, 13, NULL)
UPDATE d.k SET u = u + 100 WHERE a IN (3, 4)
DELETE FROM d.k WHERE a IN (1, 2, 6)
UPDATE d.k SET a = a + 50 WHERE a = 7
INSERT INTO d.k VALUES (2, 2, 0, 'again')
DELETE FROM d.n WHERE a = 1 LIMIT 2
UPDATE d.n SET b = 'new' WHERE a IN (2, 3)
DELETE FROM d.n WHERE a = 4
INSERT INTO d.n VALUES (5, 'five'), (5, 'five')
UPDATE d.n SET b = 'new too' WHERE a IN (0, 6, 7)
DELETE FROM d.n WHERE a IN (0, 1)
UPDATE d.i SET b = b + 1 WHERE a < 3
DELETE FROM d.i WHERE a = 3
DELETE FROM d.i WHERE a = 4
UPDATE d.i SET b = b + 1 WHERE a > 4
INSERT INTO d.f VALUES (3, 3), (4, 1)
DELETE FROM d.f WHERE a = 2
DELETE FROM d.p WHERE a = 2
DELETE FROM d.p WHERE a = 8
UPDATE d.p SET a = 90 WHERE a = 9
DELETE FROM d.c WHERE a = 3
"""
APART = """
DELETE FROM d.k WHERE a IN (2, 3)
INSERT INTO d.k VALUES (12, 99, 1, 'mine'), (20, 13, 1, 'mine'), (21, 104, 0, NULL), (57, 57, 0, '')
UPDATE d.k SET c = 'other' WHERE a = 5
DELETE FROM d.n WHERE a = 1 LIMIT 2
DELETE FROM d.n WHERE a IN (0, 3)
UPDATE d.n SET b = 'Z' WHERE a = 4
DELETE FROM d.i WHERE a IN (2, 5)
UPDATE d.i SET b = 9 WHERE a = 3
DELETE FROM d.p WHERE a = 3
INSERT INTO d.f VALUES (9, 2)
INSERT INTO d.c VALUES (10, 8), (11, 9)
"""
"""What is different on the target before the log comes."""


def lines(text: str) -> tuple[str, ...]:
    return tuple(text.strip().replace("\n    ", " ").splitlines())


class Case:
    """One version: a source with its log, and targets that differ from it."""

    def __init__(self, version: str, factory: ServerFactory, folder: Path) -> None:
        self.version = version
        self.source = factory(version, options={"server_id": 11})
        self.targets = Servers(factory)
        self.log = written(self.source, folder, lines(SETUP), *lines(CHANGES))
        self.factory = factory

    def close(self) -> None:
        self.source.close()
        self.targets.close()

    def in_memory(self, **options: Any) -> tuple[applier.ReplayResult, Tables]:
        tables = applier.load_schema(
            ";\n".join((*lines(SETUP), *lines(APART))) + ";", server=self.version
        )
        return applier.replay([self.log], into=tables, **options), tables

    def target(self) -> Server:
        server = self.targets.empty(self.version)
        server.execute("SET foreign_key_checks = 0", *lines(SETUP), *lines(APART))
        return server

    def into_server(self, mode: str, **options: Any) -> tuple[TargetOutcome, Server]:
        server = self.target()
        into = IntoOptions(apply=mode, force=True, replay_id=f"{mode}-{len(options)}")
        return replay_into(
            [str(self.log)], endpoint(server), parse_options(**options), into
        ), server

    def replica(self, **options: str) -> Server:
        """A replica with these options that has carried out the log, or stopped in it."""
        word = "replica" if self.version == "9.7" else "slave"
        named = {name.replace("slave", word): value for name, value in options.items()}
        replica = self.factory(
            self.version, options={"server_id": 12, f"skip_{word}_start": None, **named}
        )
        replica.execute("SET foreign_key_checks = 0", *lines(SETUP), *lines(APART))
        source = self.source
        wanted = {
            "HOST": "'127.0.0.1'",
            "PORT": source.port,
            "USER": "'root'",
            "PASSWORD": f"'{source.password}'",
        }
        wanted |= {"LOG_FILE": f"'{self.log.name}'", "LOG_POS": 4}
        if self.version == "9.7":
            to = ", ".join(f"SOURCE_{name} = {value}" for name, value in wanted.items())
            replica.execute(
                f"CHANGE REPLICATION SOURCE TO {to}, GET_SOURCE_PUBLIC_KEY = 1", "START REPLICA"
            )
        else:
            replica.execute(
                "CHANGE MASTER TO "
                f"{', '.join(f'MASTER_{name} = {value}' for name, value in wanted.items())}",
                "START SLAVE",
            )
        self._wait(replica)
        return replica

    def _wait(self, replica: Server) -> None:
        file, position = self.source.query(
            "SHOW BINARY LOG STATUS" if self.version == "9.7" else "SHOW MASTER STATUS"
        )[0][:2]
        wanted = (file, position)
        for _ in range(1200):
            status = self.status(replica)
            if status["sql_errno"] or (status["file"], status["position"]) == wanted:
                return
            assert not status["io_errno"], status
            time.sleep(0.1)
        raise AssertionError(f"the replica does not come to {wanted}: {status}")

    def status(self, replica: Server) -> dict[str, Any]:
        new = self.version == "9.7"
        with replica.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW REPLICA STATUS" if new else "SHOW SLAVE STATUS")
            row = dict(
                zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True)
            )
        place = (
            ("Relay_Source_Log_File", "Exec_Source_Log_Pos")
            if new
            else ("Relay_Master_Log_File", "Exec_Master_Log_Pos")
        )
        return {
            "file": row[place[0]],
            "position": row[place[1]],
            "sql_errno": row["Last_SQL_Errno"],
            "sql_error": row["Last_SQL_Error"],
            "io_errno": row["Last_IO_Errno"],
        }


@pytest.fixture(scope="module", params=REPLICAS)
def case(
    request: pytest.FixtureRequest,
    server_factory: ServerFactory,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Case]:
    case = Case(request.param, server_factory, tmp_path_factory.mktemp("log"))
    yield case
    case.close()


def passed(notes: dict[str, int]) -> dict[str, int]:
    """What was let pass, and how often."""
    return {note: count for note, count in notes.items() if note.startswith("let pass by ")}


def test_idempotent(case: Case) -> None:
    result, tables = case.in_memory(exec_mode="idempotent")
    assert result.error is None
    replica = case.replica(slave_exec_mode="IDEMPOTENT")
    assert case.status(replica)["sql_errno"] == 0
    assert differences(replica, tables) == []
    replica.close()
    by_statements, server = case.into_server("sql", exec_mode="idempotent")
    assert by_statements.error is None
    assert differences(server, tables) == []
    assert passed(by_statements.notes) == passed(result.notes)
    native, server = case.into_server("native", exec_mode="idempotent")
    assert native.error is None
    assert differences(server, tables) == []


def test_skipped_errors(case: Case) -> None:
    """Where a row is missing, an index scan leaves the rest of its event, and a hash scan over the
    table does not.

    SQL mode does the same by 8.0's default; but by a key that is not unique it passes over the
    missing rows only, where a server's hash scan leaves the event at the first value that no row
    has.
    """
    result, tables = case.in_memory(skip_errors=SKIPPED)
    assert result.error is None
    replica = case.replica(slave_skip_errors=SKIPPED)
    assert case.status(replica)["sql_errno"] == 0
    assert differences(replica, tables) == []
    replica.close()
    by_8_0, tables_by_8_0 = case.in_memory(skip_errors=SKIPPED, server="8.0")
    by_statements, server = case.into_server("sql", skip_errors=SKIPPED)
    assert by_statements.error is None
    assert [table["table"] for table in differences(server, tables_by_8_0)] == ["d.i"]
    assert server.query("SELECT a, b FROM d.i ORDER BY a, b") == (
        (1, 2),
        (1, 3),
        (3, 9),
        (6, 7),
        (7, 8),
    )
    here, there = passed(by_statements.notes), passed(by_8_0.notes)
    assert here.pop(MISSING_IN_I) == 3
    assert there.pop(MISSING_IN_I) == 5
    assert here == there


def test_the_first_error_stops_all_at_the_same_event(case: Case) -> None:
    result, _ = case.in_memory()
    assert result.error is not None
    replica = case.replica()
    status = case.status(replica)
    said = re.search(r"end_log_pos (\d+)", status["sql_error"])
    assert said is not None
    assert status["sql_errno"] == result.error.number
    assert f"end_log_pos {said[1]}" in result.error.message
    replica.close()
    for mode in ("sql", "native"):
        outcome, _ = case.into_server(mode)
        error: Any = outcome.error
        assert (error.number, error.position, error.table) == (
            result.error.number,
            result.error.position,
            result.error.table,
        )


def test_rows_in_native_mode_are_not_skipped_and_it_is_said_how(case: Case) -> None:
    """The server's own slave_skip_errors holds there: a BINLOG statement cannot be told to skip."""
    first, _ = case.in_memory()
    native, _ = case.into_server("native", skip_errors=SKIPPED)
    error: Any = native.error
    assert first.error is not None
    assert (error.number, error.position) == (first.error.number, first.error.position)
    assert "--apply sql" in error.hint
