"""Functions, operators, casts and the storing of values, in statement format on real servers and in
memory: equal or refused.

The server writes its rows into a twin in row format afterwards, so that the log holds what it
stored.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import pymysql
import pytest
from servers.server import Server

import applier
from applier.binlog.types import to_text
from applier.tables.catalog import Tables
from applier.tables.engine import MemoryTable
from tests.servers.fixtures import ServerFactory
from tests.tables import function_matrix

SERVERS = ("5.7", "9.7", "mariadb")
CASES = (
    None
    if os.environ.get("BINLAG_EVERY_VALUE") == "1"
    else 1_200
    if os.environ.get("BINLAG_ALL_CASES") == "1"
    else 300
)
"""Of each matrix, drawn by a fixed seed."""
TWIN = "twin_of_"
REFUSED = "1235"
ER_TABLE_EXISTS_ERROR = 1050
Scripts = tuple[tuple[tuple[str, ...], str], ...]
"""Statements in statement format, and the servers that know them."""


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    options: dict[str, str | int | bool | None] = {
        "innodb_flush_log_at_trx_commit": 0,
        "sync_binlog": 0,
        "character_set_server": "utf8mb4",
    }
    started = server_factory(request.param, options=options)
    yield started
    started.close()


def run(server: Server, statements: Iterable[str | bytes], sql_mode: str) -> Path:
    """The log of the statements in statement format, and of twins of the tables in row format."""
    with (
        server.connect(autocommit=True, charset="utf8mb4") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "SET SESSION sql_mode = %s, timestamp = 1600000000.123456, binlog_format = STATEMENT",
            (sql_mode,),
        )
        cursor.execute("DROP DATABASE IF EXISTS matrix")
        cursor.execute("FLUSH LOGS")
        cursor.execute("CREATE DATABASE matrix CHARACTER SET utf8mb4")
        cursor.execute("USE matrix")
        for statement in statements:
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:  # not in the log then
                assert error.args[0] != ER_TABLE_EXISTS_ERROR, statement
        cursor.execute("SET SESSION binlog_format = ROW, sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
        if server.installed.recipe.name == "mariadb":
            cursor.execute("SET SESSION check_constraint_checks = 0")
        cursor.execute("SHOW TABLES")
        for (table,) in cursor.fetchall():
            cursor.execute(f"CREATE TABLE {TWIN}{table} LIKE {table}")
            cursor.execute(
                "SELECT column_name FROM information_schema.columns"
                " WHERE table_schema = 'matrix' AND table_name = %s"
                " AND COALESCE(generation_expression, '') = '' ORDER BY ordinal_position",
                (table,),
            )
            names = ", ".join(f"`{name}`" for (name,) in cursor.fetchall())
            cursor.execute(f"INSERT INTO {TWIN}{table} ({names}) SELECT {names} FROM {table}")
        cursor.execute("FLUSH LOGS")
    return server.binlog_files()[-2]


def sampled(statements: Iterable[str]) -> list[str]:
    given = list(statements)
    if CASES is None:
        return given
    inserts = [statement for statement in given if statement.startswith("INSERT")]
    chosen = set(random.Random(12).sample(inserts, CASES))
    return [
        statement
        for statement in given
        if not statement.startswith("INSERT") or statement in chosen
    ]


def compared(log: Path, skip_errors: str = REFUSED) -> tuple[int, list[str]]:
    """How many rows are equal, and which are not. Rows of statements that were refused and skipped
    are left out."""
    tables = Tables()
    result = applier.replay([log], into=tables, skip_errors=skip_errors)
    assert result.error is None, result.error
    equal, different = 0, []
    for twin in tables:
        name = twin.definition.name
        if name.startswith(TWIN):
            table = tables[f"matrix.{name.removeprefix(TWIN)}"]
            found, wrong = of_table(table, twin)
            equal += found
            if not skip_errors and len(table) != len(twin):
                wrong.append(
                    f"{table.definition.name}: {len(table)} rows, the server has {len(twin)}"
                )
            different += wrong
    return equal, different


def compared_scripts(
    server: Server, scripts: Scripts, first: str, divider: str = "\0"
) -> tuple[int, list[str]]:
    """`compared` for scripts, and the parts of one that a divider stands between: each behind
    `first` and with tables of its own. Nothing of them may be refused."""
    equal, different = 0, []
    for servers, script in scripts:
        for part in script.split(divider) if server.installed.recipe.name in servers else ():
            statements = [*filter(None, map(str.strip, part.split(";\n")))]
            log = run(server, [first, *statements, "SET sql_mode = ''"], "")
            found, wrong = compared(log, skip_errors="")
            equal += found
            different += [f"{statements[:1]}: {one}" for one in wrong]
    return equal, different


def of_table(table: MemoryTable, twin: MemoryTable) -> tuple[int, list[str]]:
    own = {row[0]: row for row in table.stored_rows()}
    theirs = {row[0]: row for row in twin.stored_rows()}
    assert not own.keys() - theirs.keys()
    wrong = []
    for number, row in own.items():
        for column, mine, right in zip(twin.definition.columns, row, theirs[number], strict=True):
            if mine != right:
                texts = [to_text(column)(value) for value in (mine, right)]
                wrong.append(
                    f"{table.definition.name} {number} {column.name}: {texts[0]!r}, "
                    f"the server has {texts[1]!r}"
                )
    return len(own), wrong


def test_functions_give_what_the_server_gives(server: Server) -> None:
    equal, different = compared(run(server, sampled(function_matrix.statements()), ""))
    assert different == []
    assert equal > (CASES or 8_000) // 4


@pytest.mark.parametrize(
    "sql_mode", ["", "STRICT_TRANS_TABLES", "NO_ZERO_IN_DATE,NO_ZERO_DATE", "ALLOW_INVALID_DATES"]
)
def test_values_are_stored_as_the_server_stores_them(server: Server, sql_mode: str) -> None:
    equal, different = compared(run(server, sampled(function_matrix.stores()), sql_mode))
    assert different == []
    assert equal > (CASES or 5_000) // 4


MALFORMED = (
    "SET NAMES utf8mb4",
    "CREATE TABLE t (id INT PRIMARY KEY, a BLOB, b BINARY(6), c VARBINARY(9), d TEXT)",
    (
        b"INSERT INTO t (id, a, b, c) VALUES (1, '\xff\\0x', '\xc3\xa4\xff', 'a\xe2\x82'), (2, "
        b"'a', 'b', '\xfe'), (3, '\xff', 'c', 'd')"
    ),
    b"UPDATE t SET a = '\x80' WHERE c = 'a\xe2\x82'",
    b"UPDATE t SET d = 'found' WHERE b IN ('\xff', '\xc3\xa4\xff\\0\\0\\0')",
    b"DELETE FROM t WHERE a = '\xff'",
    b"INSERT INTO t (id, d) VALUES (4, '\xff')",
    b"INSERT INTO t (id, a) VALUES (5, UPPER('\xff'))",
    b"UPDATE t SET a = 'text' WHERE d = '\xff'",
    "SET NAMES utf8mb3",
    "INSERT INTO t (id, a) VALUES (6, '\U0001f600')",
    "SET NAMES utf8mb4",
)
"""Literals that are no text in the connection's character set, as the log has the BLOB parameters
of prepared statements."""


def test_literals_that_are_no_text(server: Server) -> None:
    """Bytes for columns of bytes; as text they are refused."""
    log = run(server, MALFORMED, "")
    tables = Tables()
    assert applier.replay([log], into=tables, skip_errors=REFUSED).error is None
    equal, different = of_table(tables["matrix.t"], tables["matrix.twin_of_t"])
    assert different == []
    assert [row[0] for row in tables["matrix.t"].rows()] == [1, 2, 6]
    assert equal == 3
