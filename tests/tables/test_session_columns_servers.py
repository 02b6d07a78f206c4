"""Stored generated columns that depend on the session's time zone, in memory and on real
servers."""

from __future__ import annotations

import pytest
from servers.server import Server

import applier
from applier.errors import ReplicationError
from applier.tables.catalog import Tables
from lookup.handler import Row
from tests.servers.fixtures import ServerFactory

SERVERS = ("5.7", "9.7", "mariadb")
COLUMNS = """id INT PRIMARY KEY, a TIMESTAMP NULL, b INT, f FLOAT(10,2) NULL,
    h INT AS (HOUR(a)) STORED, v INT AS (b + 1) VIRTUAL,
    w INT AS (h + 1) VIRTUAL, x VARCHAR(40) AS (CONCAT(a, 'x')) STORED,
    t VARCHAR(10) CHARACTER SET latin1, d DECIMAL(10,2)"""
KNOWN = (
    "ADD c INT",
    "ADD c INT, ALGORITHM=COPY",
    "ADD KEY (b)",
    "ENGINE=MyISAM",
    "MODIFY b BIGINT",
    "MODIFY f FLOAT(10,4) NULL",
    "MODIFY f DOUBLE(10,4) NULL",
    "MODIFY a TIMESTAMP(3) NULL",
    "MODIFY a DATETIME",
    "ADD s INT AS (h + HOUR(a)) STORED",
    "DROP PRIMARY KEY",
    "MODIFY t VARCHAR(10) CHARACTER SET utf8mb4",
    "MODIFY t VARCHAR(5) CHARACTER SET latin1",
    "MODIFY t CHAR(10) CHARACTER SET latin1",
    "MODIFY d DECIMAL(12,2)",
    "MODIFY f FLOAT(10,1) NULL, ADD s INT AS (id + 1) STORED",
)
NOT_KNOWN = (
    "MODIFY t VARCHAR(20) CHARACTER SET latin1",
    "MODIFY b INT FIRST",
    "ADD c INT DEFAULT 1 FIRST",
    "COMMENT = 'x', DROP COLUMN w",
)


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Server:
    return server_factory.shared(request.param)


def replayed(server: Server, tables: int, *statements: str) -> list[tuple[list[Row], list[Row]]]:
    """For each table `t0`, … the columns id, h and x in memory, and as the server sees them; it
    logs these as rows."""
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for sql in (
            "DROP DATABASE IF EXISTS zones",
            "FLUSH LOGS",
            "CREATE DATABASE zones",
            "USE zones",
            *statements,
        ):
            cursor.execute(sql)
        cursor.execute("SET SESSION binlog_format = 'ROW', time_zone = '+00:00'")
        for at in range(tables):
            cursor.execute(f"CREATE TABLE seen{at} (id INT, h INT, x VARCHAR(40))")
            cursor.execute(f"INSERT INTO seen{at} SELECT id, h, x FROM t{at}")
        cursor.execute("FLUSH LOGS")
    memory = Tables()
    result = applier.replay([server.binlog_files()[-2]], into=memory)
    assert result.error is None, result.error
    found = []
    for at in range(tables):
        table = memory[f"zones.t{at}"]
        places = [table.definition.positions[name] for name in ("id", "h", "x")]
        found.append(
            (
                [tuple(row[place] for place in places) for row in table.rows()],
                memory[f"zones.seen{at}"].rows(),
            )
        )
    return found


def filled(at: int) -> list[str]:
    return [
        "SET time_zone = '+05:00'",
        f"CREATE TABLE t{at} ({COLUMNS})",
        f"INSERT INTO t{at} (id, a, b) VALUES (1, '2020-01-01 10:00:00', 1), (2, NULL, 2)",
        "SET time_zone = '+01:00'",
    ]


def test_an_alter_table_that_copies_computes_them_in_its_own_time_zone(server: Server) -> None:
    statements = [
        sql
        for at, clause in enumerate(KNOWN)
        for sql in (*filled(at), f"ALTER TABLE t{at} {clause}")
    ]
    for ours, theirs in replayed(server, len(KNOWN), *statements):
        assert ours == theirs
    assert {theirs[0][1] for _, theirs in replayed(server, 2, *statements)} == {10, 6}


@pytest.mark.parametrize("clause", NOT_KNOWN)
def test_where_it_is_not_known_whether_it_copies_the_value_is_refused(
    server: Server, clause: str
) -> None:
    with pytest.raises(ReplicationError, match="depends on the session"):
        replayed(server, 1, *filled(0), f"ALTER TABLE t0 {clause}")


def test_statements_compute_them_in_the_time_zone_of_the_session(server: Server) -> None:
    """MySQL leaves them as they are where none of their columns is assigned; MariaDB computes
    them."""
    statements = [
        "SET SESSION binlog_format = 'STATEMENT'",
        *filled(0),
        "UPDATE t0 SET b = 7",
        "INSERT INTO t0 (id, a) VALUES (3, '2020-01-01 10:00:00')",
        *filled(1),
        "UPDATE t1 SET a = a + INTERVAL 1 HOUR, b = 5",
        "INSERT INTO t1 (id, a, b) VALUES (1, NULL, 9) ON DUPLICATE KEY UPDATE b = VALUES(b)",
        *filled(2),
        "REPLACE INTO t2 (id, a) VALUES (1, '2020-01-01 10:00:00'), (4, '2020-01-01 23:00:00')",
    ]
    for ours, theirs in replayed(server, 3, *statements):
        assert ours == theirs
