"""A statement with a NUL at its end, as MariaDB's mysqlslap sends them: servers take it for the
end, two of them for a syntax error."""

from __future__ import annotations

import pymysql
import pytest
from servers.server import Server

from tests.tables.test_functions_servers import compared, run

STATEMENTS = (
    "CREATE TABLE ended (id INT PRIMARY KEY, v VARCHAR(9) DEFAULT 'x')\0",
    "INSERT INTO ended (id) VALUES (1), (2);\0",
    "ALTER TABLE ended ADD w INT DEFAULT 7\0",
    "UPDATE ended SET v = 'y' WHERE id = 2\0",
    "CREATE TABLE too AS SELECT * FROM ended\0",
    "DELETE FROM ended WHERE id = 1\0",
)


def test_a_nul_ends_a_statement(server: Server) -> None:
    log = run(server, STATEMENTS, "")
    assert b"'y' WHERE id = 2\0" in log.read_bytes()
    rows_of_both_tables = 1 + 2
    assert compared(log, skip_errors="") == (rows_of_both_tables, [])


def test_two_do_not(server: Server) -> None:
    error = pytest.raises(pymysql.err.ProgrammingError, match="1064")
    with server.connect() as connection, connection.cursor() as cursor, error:
        cursor.execute("CREATE DATABASE ended\0\0")
