"""MariaDB's bulk inserts: what a real replica makes of statements that write rows into an empty
table and change them, and what a replay in memory does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import applier
from tests.replica.mariadb_pairs import MariadbPair
from tests.servers.fixtures import ServerFactory

UNCHECKED = "SET foreign_key_checks = 0, unique_checks = 0"
TABLE = "CREATE TABLE t (a INT PRIMARY KEY, b INT)"
ON_DUPLICATE = "INSERT INTO t VALUES (1, 1), (2, 1), (1, 5) ON DUPLICATE KEY UPDATE b = b + 1"
FIRED = "INSERT INTO u VALUES (1), (2)"
DOUBLE = "INSERT INTO t VALUES (1, 1), (1, 2)"
SAME_B = "INSERT INTO t VALUES (1, 1), (2, 1)"
LONG_ROWS = (
    "INSERT INTO t SELECT seq, REPEAT('x', 4000) FROM seq_1_to_10 UNION ALL SELECT 3, 'y'"
    " UNION ALL SELECT seq, REPEAT('y', 4000) FROM seq_21_to_30"
)


def trigger(body: str) -> tuple[str, ...]:
    return (
        "CREATE TABLE u (a INT)",
        f"CREATE TRIGGER g AFTER INSERT ON u FOR EACH ROW BEGIN {body}; END",
        UNCHECKED,
        FIRED,
    )


STOPPED: dict[str, tuple[str, ...]] = {
    "ON DUPLICATE KEY UPDATE": (TABLE, UNCHECKED, ON_DUPLICATE),
    "a unique key": ("CREATE TABLE t (a INT UNIQUE, b INT)", UNCHECKED, ON_DUPLICATE),
    "REPLACE": (TABLE, UNCHECKED, "REPLACE INTO t VALUES (1, 1), (2, 1), (1, 5)"),
    "two unique keys": (
        "CREATE TABLE t (a INT PRIMARY KEY, b INT UNIQUE)",
        UNCHECKED,
        "REPLACE INTO t VALUES (1, 1), (2, 2), (3, 1)",
    ),
    "TRUNCATE": (TABLE, "INSERT INTO t VALUES (7, 7)", "TRUNCATE t", UNCHECKED, ON_DUPLICATE),
    "rolled back": (
        TABLE, "BEGIN", "INSERT INTO t VALUES (7, 7)", "ROLLBACK", UNCHECKED, ON_DUPLICATE,
    ),
    "UPDATE in a trigger": (TABLE, *trigger("INSERT INTO t VALUES (NEW.a, 1); UPDATE t SET b = 2")),
    "DELETE in a trigger": (TABLE, *trigger("INSERT INTO t VALUES (NEW.a, 1); DELETE FROM t")),
    "no key": (
        "CREATE TABLE t (a INT, b INT)",
        *trigger("INSERT INTO t VALUES (NEW.a, 1); UPDATE t SET b = 2"),
    ),
    "a foreign key": (
        "CREATE TABLE p (a INT PRIMARY KEY)",
        "CREATE TABLE t (a INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES p (a))",
        UNCHECKED,
        ON_DUPLICATE,
    ),
    "CREATE TABLE … REPLACE SELECT": (
        UNCHECKED,
        "CREATE TABLE t (a INT UNIQUE) REPLACE SELECT 1 AS a, 2 AS b UNION SELECT 1 AS a, 3 AS c",
    ),
}  # fmt: skip
"""The replica finds no row: 1032."""
CARRIED_OUT: dict[str, tuple[str, ...]] = {
    "rows before": (TABLE, "INSERT INTO t VALUES (7, 7)", UNCHECKED, ON_DUPLICATE),
    "an earlier statement of the transaction": (
        TABLE, UNCHECKED, "BEGIN", "INSERT INTO t VALUES (1, 1), (2, 1)", "UPDATE t SET b = 3",
        "INSERT INTO t VALUES (3, 1), (3, 5) ON DUPLICATE KEY UPDATE b = b + 1", "COMMIT",
    ),
    "unique_checks alone": (TABLE, "SET unique_checks = 0", ON_DUPLICATE),
    "foreign_key_checks alone": (TABLE, "SET foreign_key_checks = 0", ON_DUPLICATE),
    "partitions": (f"{TABLE} PARTITION BY HASH (a) PARTITIONS 3", UNCHECKED, ON_DUPLICATE),
    "system versions": (f"{TABLE} WITH SYSTEM VERSIONING", UNCHECKED, ON_DUPLICATE),
    "MyISAM": (f"{TABLE} ENGINE=MyISAM", UNCHECKED, ON_DUPLICATE),
    "another table": (
        TABLE,
        "CREATE TABLE v (a INT PRIMARY KEY, b INT)",
        "INSERT INTO v VALUES (1, 1)",
        *trigger("INSERT INTO t VALUES (NEW.a, 1); UPDATE v SET b = b + 2"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def pair(server_factory: ServerFactory) -> Iterator[MariadbPair]:
    with MariadbPair(server_factory) as found:
        found.change_source()
        found.run("START REPLICA")
        yield found


def log_of(pair: MariadbPair, statements: tuple[str, ...]) -> Path:
    pair.source.execute("DROP TABLE IF EXISTS d.t", "FLUSH BINARY LOGS")
    file = pair.source.binlog_files()[-1]
    pair.source.execute("CREATE OR REPLACE DATABASE d", "USE d", *statements)
    return file


def replicated(pair: MariadbPair) -> int:
    """The error that the replica stops with, 0 for none; it is level afterwards."""
    file, position = pair.source_end()
    while True:
        status = pair.status()
        number = int(status["Last_SQL_Errno"])
        if number:
            pair.wait(Slave_SQL_Running="No")  # the error is told before the thread has ended
            pair.run("SET GLOBAL sql_slave_skip_counter = 1", "START REPLICA")
        if number or (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]) == (
            file,
            position,
        ):
            pair.settle()
            return number


@pytest.mark.parametrize(
    ("title", "number"), [*((one, 1032) for one in STOPPED), *((one, 0) for one in CARRIED_OUT)]
)
def test_memory_stops_where_the_replica_does(pair: MariadbPair, title: str, number: int) -> None:
    file = log_of(pair, STOPPED[title] if number else CARRIED_OUT[title])
    tables = applier.Tables()
    error = applier.replay([file], into=tables).error
    assert (replicated(pair), error.number if error else 0) == (number, number)
    if not number:
        rows = sorted(row[:2] for row in tables["d.t"].rows())
        assert rows == sorted(pair.replica.query("SELECT a, b FROM d.t"))


def test_a_table_that_had_rows_is_refused(pair: MariadbPair) -> None:
    """Whether InnoDB has purged them by then is not in the log."""
    before = (TABLE, "INSERT INTO t VALUES (7, 7)", "DELETE FROM t", UNCHECKED)
    error = applier.replay([log_of(pair, (*before, ON_DUPLICATE))], into=applier.Tables()).error
    assert error is not None and error.number == 1235
    replicated(pair)


OWN_KEY: dict[str, tuple[str, str, tuple[str, ...], int]] = {
    "a primary key": ("a INT, b INT", "PRIMARY KEY (a)", (UNCHECKED, DOUBLE), 1180),
    "a unique key": ("a INT PRIMARY KEY, b INT", "UNIQUE KEY (b)", (UNCHECKED, SAME_B), 1180),
    "several events": ("a INT, b TEXT", "PRIMARY KEY (a)", (UNCHECKED, LONG_ROWS), 1180),
    "a later statement": (
        "a INT, b INT", "PRIMARY KEY (a)",
        (UNCHECKED, "BEGIN", "INSERT INTO t VALUES (1, 1)", DOUBLE, "COMMIT"), 1062,
    ),
    "an earlier statement": (
        "a INT, b INT", "PRIMARY KEY (a)",
        (UNCHECKED, "BEGIN", DOUBLE, "INSERT INTO t VALUES (7, 1)", "COMMIT"), 1180,
    ),
    "checks": ("a INT, b INT", "PRIMARY KEY (a)", (DOUBLE,), 1062),
}  # fmt: skip
"""The source's columns, the replica's key, statements, and the replica's error."""


@pytest.mark.parametrize("title", OWN_KEY)
def test_a_duplicate_is_the_statements_error(pair: MariadbPair, title: str) -> None:
    columns, key, statements, number = OWN_KEY[title]
    log_of(pair, (f"CREATE TABLE t ({columns})",))
    pair.settle()
    pair.replica.execute("SET sql_log_bin = 0", f"ALTER TABLE d.t ADD {key}")
    pair.source.execute("FLUSH BINARY LOGS", "USE d", *statements)
    file = pair.source.binlog_files()[-1]
    said = str(pair.wait(Slave_SQL_Running="No")["Last_SQL_Error"])
    for skipped in ("", "1062"):
        schema = f"CREATE TABLE d.t ({columns}, {key});"
        tables = applier.load_schema(schema, server="mariadb")
        error = applier.replay([file], into=tables, skip_errors=skipped).error
        if skipped and number == 1062:
            assert error is None
        else:
            assert error is not None and error.number == number
            assert error.message.startswith(said.replace("Write_rows_v1", "Write_rows"))
            assert len(tables["d.t"]) == 0
    replicated(pair)


def test_exec_mode_idempotent_inserts_row_by_row(pair: MariadbPair) -> None:
    file = log_of(pair, (TABLE, UNCHECKED, ON_DUPLICATE))
    tables = applier.Tables()
    assert applier.replay([file], into=tables, exec_mode="idempotent").error is None
    assert sorted(tables["d.t"].rows()) == [(1, 2), (2, 1)]
    replicated(pair)
