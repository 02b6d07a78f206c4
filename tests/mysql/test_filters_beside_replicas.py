"""--table, --exclude-table and --database beside real replicas with replicate_do_table,
_wild_do_table, _ignore_table and _do_db.

Each case is a log of its own. A replica carries it out under a filter, and has the tables, rows and
views that a replay under the same names has, or stops with the same error.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.server import Server

import applier
from applier.binlog.types import to_python
from applier.tables.catalog import Tables
from tests.replica.real_pairs import Pair
from tests.servers.fixtures import ServerFactory

VERSIONS = ("9.7", "mariadb")
DATABASES = ("s1", "s2", "s3")
START = """
CREATE DATABASE IF NOT EXISTS s1; CREATE DATABASE IF NOT EXISTS s2;
CREATE DATABASE IF NOT EXISTS s3;
USE s2; CREATE TABLE b (i INT PRIMARY KEY); INSERT INTO b VALUES (4); USE s1;
CREATE TABLE a (i INT PRIMARY KEY);
CREATE TABLE b (i INT PRIMARY KEY); INSERT INTO a VALUES (1), (2); INSERT INTO b VALUES (3)
"""
"""The databases are on the replica before: what a filter leaves out of a log must not be missing
for another reason."""
KEY = """
SET foreign_key_checks = 0;
CREATE TABLE s1.c (i INT PRIMARY KEY, FOREIGN KEY (i) REFERENCES s2.b (i));
    SET foreign_key_checks = 1;
"""
CASES = {
    "rows across databases": (
        "USE s2; INSERT INTO s1.a VALUES (7); INSERT INTO b VALUES (8); UPDATE s1.b SET i = 9; "
        "DELETE FROM s2.b"
    ),
    "two tables at once": "UPDATE s1.a, s2.b SET a.i = a.i + 10, b.i = b.i + 20",
    "DROP of two tables, the wanted one first": "DROP TABLE s1.a, s2.b",
    "DROP of two tables, the wanted one last": "DROP TABLE s2.b, s1.a",
    "DROP IF EXISTS of tables of three databases": "DROP TABLE IF EXISTS s3.none, s2.b, s1.b",
    "TRUNCATE elsewhere": "USE s3; TRUNCATE TABLE s1.a; TRUNCATE s2.b",
    "RENAME within": "RENAME TABLE s1.a TO s1.c; INSERT INTO s1.c VALUES (11)",
    "RENAME into another database": "RENAME TABLE s1.b TO s3.b; INSERT INTO s3.b VALUES (12)",
    "RENAME out of another database": "RENAME TABLE s2.b TO s1.z; INSERT INTO s1.z VALUES (13)",
    "RENAME of two": "RENAME TABLE s2.b TO s2.c, s1.b TO s1.d",
    "CREATE LIKE from elsewhere": (
        "USE s3; CREATE TABLE l LIKE s1.a; CREATE TABLE s1.l LIKE s1.a; "
        "INSERT INTO s1.l VALUES (14)"
    ),
    "CREATE SELECT": (
        "CREATE TABLE s1.k AS SELECT i FROM s1.a; CREATE TABLE s3.k AS SELECT i FROM s1.a"
    ),
    "ALTER elsewhere": (
        "USE s2; ALTER TABLE s1.a ADD j INT DEFAULT 5; ALTER TABLE b ADD j INT DEFAULT 6"
    ),
    "ALTER RENAME": "ALTER TABLE s1.a RENAME TO s2.a; ALTER TABLE s2.b RENAME TO s1.y",
    "an index": (
        "USE s3; CREATE INDEX k ON s1.b (i); DROP INDEX k ON s1.b; CREATE UNIQUE INDEX u ON s2.b "
        "(i)"
    ),
    "views": (
        "CREATE VIEW s1.v AS SELECT i FROM s1.a; CREATE VIEW s2.v AS SELECT 1 AS i; USE s2; "
        "CREATE VIEW s1.w AS SELECT 1 AS i"
    ),
    "a view goes": (
        "CREATE VIEW s1.v AS SELECT 1 AS i; CREATE VIEW s2.v AS SELECT 1 AS i; "
        "DROP VIEW IF EXISTS s2.v, s1.v"
    ),
    "a parent elsewhere": f"{KEY} INSERT INTO s1.c VALUES (4)",
    "a parent elsewhere, unchecked": (
        f"{KEY} SET foreign_key_checks = 0; INSERT INTO s1.c VALUES (4); SET foreign_key_checks = 1"
    ),
    "a child elsewhere": f"{KEY} INSERT INTO s1.c VALUES (4); DELETE FROM s1.c; DELETE FROM s2.b",
    "a database goes": "DROP DATABASE s2; INSERT INTO s1.a VALUES (15)",
    "another database goes": "USE s2; DROP DATABASE s1",
}
FILTERS: dict[tuple[str, str], tuple[dict[str, str], ...]] = {
    ("do_table", "s1.a"): ({"table": "s1.a"},),
    ("wild_do_table", "s1.%"): ({"table": "s1.%"}, {"database": "s1"}),
    ("ignore_table", "s2.b"): ({"exclude_table": "s2.b"},),
    ("wild_ignore_table", "s2.%"): ({"exclude_table": "s2.%"}, {"exclude_database": "s2"}),
}
"""The replica's option and value -> those of a replay that mean the same."""
KINDS = ("do_table", "wild_do_table", "ignore_table", "wild_ignore_table", "do_db")
DO_DB = """
USE s1; INSERT INTO a VALUES (21); TRUNCATE b; ALTER TABLE a ADD j INT; CREATE TABLE n (i INT);
RENAME TABLE n TO m; DROP TABLE b;
CREATE VIEW v AS SELECT 1 AS i; USE s2; INSERT INTO b VALUES (22); CREATE TABLE n (i INT);
DROP TABLE b; CREATE VIEW v AS SELECT 1 AS i
"""
"""Statements about tables of their own default database: what replicate_do_db and --database agree
on."""
Contents = dict[str, Any]


class Beside:
    """A source, and a replica that carries out one of its logs under a filter."""

    def __init__(self, version: str, factory: ServerFactory) -> None:
        self.pair = Pair(factory, version)
        self.mariadb = version == "mariadb"

    def log_of(self, statements: str) -> Path:
        """The log of these statements, on an empty source."""
        source = self.pair.source
        source.execute(*(f"DROP DATABASE IF EXISTS {name}" for name in DATABASES), "FLUSH LOGS")
        file = source.binlog_files()[-1]
        source.execute(*(sql.strip() for sql in f"{START}; {statements}".split(";")))
        return file

    def replicated(self, file: Path, kind: str, text: str) -> Contents:
        """What the replica holds in the end, or the number of its error."""
        pair = self.pair
        pair.run(
            "STOP REPLICA",
            "RESET REPLICA ALL",
            *(f"DROP DATABASE IF EXISTS {name}" for name in DATABASES),
        )
        pair.run(*(f"CREATE DATABASE {name}" for name in DATABASES))
        pair.run(
            "RESET MASTER" if self.mariadb else "RESET BINARY LOGS AND GTIDS",
            *self._filters(kind, text),
        )
        word, statement, key = (
            ("MASTER", "MASTER", "")
            if self.mariadb
            else ("SOURCE", "REPLICATION SOURCE", ", GET_SOURCE_PUBLIC_KEY = 1")
        )
        wanted = {"HOST": "'127.0.0.1'", "PORT": pair.source.port, "USER": f"'{pair.source.user}'"}
        wanted |= {
            "PASSWORD": f"'{pair.source.password}'",
            "LOG_FILE": f"'{file.name}'",
            "LOG_POS": 4,
        }
        to = ", ".join(f"{word}_{name} = {value}" for name, value in wanted.items())
        pair.run(f"CHANGE {statement} TO {to}{key}", "START REPLICA")
        last, position = pair.source_end()
        while True:
            status = pair.status()
            assert not status["Last_IO_Errno"], status
            if status["Last_SQL_Errno"]:
                return {"error": status["Last_SQL_Errno"]}
            if (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]) == (last, position):
                return on_server(pair.replica)

    def _filters(self, chosen: str, chosen_text: str) -> Iterator[str]:
        for kind in KINDS:
            text = chosen_text if kind == chosen else ""
            if self.mariadb:
                yield f"SET GLOBAL replicate_{kind} = '{text}'"
            else:
                yield (
                    f"CHANGE REPLICATION FILTER REPLICATE_{kind.upper()} = "
                    f"({repr(text) if 'wild' in kind and text else text})"
                )


def on_server(server: Server) -> Contents:
    found: Contents = {}
    for database, name, kind in server.query(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE "
        f"table_schema IN {DATABASES}"
    ):
        rows = (
            None
            if kind == "VIEW"
            else sorted(server.query(f"SELECT * FROM `{database}`.`{name}`"), key=str)
        )
        found[f"{database}.{name}"] = rows
    return found


def replayed(file: Path, options: dict[str, str]) -> Contents:
    tables = Tables()
    error = applier.replay([file], into=tables, **options).error  # type: ignore[arg-type]
    if error is not None:
        return {"error": error.number}
    found: Contents = {}
    for table in tables:
        converters = [to_python(column) for column in table.definition.columns]
        rows = [
            tuple(read(value) for read, value in zip(converters, row, strict=True))
            for row in table.stored_rows()
        ]
        found[table.definition.full_name] = sorted(rows, key=str)
    return found | {".".join(name): None for name in tables.views}


@pytest.fixture(scope="module", params=VERSIONS)
def beside(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Beside]:
    beside = Beside(request.param, server_factory)
    with beside.pair:
        yield beside


@pytest.mark.one_case_in(5)
@pytest.mark.parametrize("title", CASES)
def test_a_replay_leaves_what_a_replica_leaves(title: str, beside: Beside) -> None:
    file = beside.log_of(CASES[title])
    wrong = {}
    for (kind, text), meanings in FILTERS.items():
        there = beside.replicated(file, kind, text)
        for options in meanings:
            here = replayed(file, options)
            if there != here:
                wrong[kind, *options] = (there, here)
    assert wrong == {}


def test_do_db_and_database_agree_where_statements_stay_at_home(beside: Beside) -> None:
    file = beside.log_of(DO_DB)
    assert replayed(file, {"database": "s1"}) == beside.replicated(file, "do_db", "s1")
