"""Virtual columns that a log has wrong: what a dump shows of them is what the server shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from servers.server import Server

import applier
from applier.errors import ReplicationError
from applier.tables.catalog import Tables
from tests.servers.fixtures import ServerFactory

COLUMNS = """a {base}, b {base}, c INT, v {virtual} AS (a - b) VIRTUAL,
    w {virtual} AS (a / b) VIRTUAL, x {virtual} AS (w / v) VIRTUAL,
    KEY k (c, v(5)), KEY k2 (c, x(5))"""


@pytest.fixture(scope="module", params=["5.7", "9.7", "mariadb"])
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Server:
    return server_factory.shared(request.param)


def replayed(server: Server, *statements: str) -> tuple[Tables, list[tuple[object, ...]]]:
    """What the statements leave in memory, and the rows of the last one, a SELECT behind them. They
    run in row format in database `virtual_columns`, which is new."""
    *logged, select = statements
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for sql in (
            "DROP DATABASE IF EXISTS virtual_columns",
            "FLUSH LOGS",
            "CREATE DATABASE virtual_columns",
            "USE virtual_columns",
            "SET SESSION binlog_format = ROW",
            *logged,
            "FLUSH LOGS",
            select,
        ):
            cursor.execute(sql)
        rows = list(cursor.fetchall())
    memory = Tables()
    result = applier.replay([server.binlog_files()[-2]], into=memory)
    assert result.error is None, result.error
    return memory, rows


def dumped(server: Server, base: str, virtual: str, folder: Path) -> tuple[str, object]:
    """Column v of the only row in a dump, and on the server."""
    memory, ((theirs,),) = replayed(
        server,
        "SET SESSION sql_mode = ''",
        f"CREATE TABLE t ({COLUMNS.format(base=base, virtual=virtual)})",
        "INSERT INTO t (a, b, c) VALUES (7, 0, 0)",
        "UPDATE t SET a = 50",
        "SELECT CAST(v AS CHAR) FROM t",
    )
    memory.dump(folder)
    columns, row = (folder / "virtual_columns.t.tsv").read_text().splitlines()
    place = [column.split(":")[0] for column in columns.split("\t")].index("v")
    cell = row.split("\t")[place]
    return (
        bytes.fromhex(cell).decode() if columns.split("\t")[place].endswith(":hex") else cell
    ), theirs


@pytest.mark.parametrize("virtual", ["BLOB", "TEXT", "VARCHAR(50)"])
def test_one_in_a_key_that_another_one_names(server: Server, virtual: str, tmp_path: Path) -> None:
    """9.7.4 logs "70" for the BLOB: the old value's byte lies over the new value's."""
    ours, theirs = dumped(server, "INT", virtual, tmp_path)
    assert ours == theirs == "50"


def test_one_of_a_versioned_table_in_minimal_images(
    server_factory: ServerFactory, tmp_path: Path
) -> None:
    """MariaDB's images have NULL for a virtual column that the statement did not need."""
    memory, theirs = replayed(
        server_factory.shared("mariadb"),
        "SET SESSION binlog_row_image = MINIMAL",
        """CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), b INT,
            v VARCHAR(9) AS (UPPER(a)) VIRTUAL, w VARCHAR(9) AS (REVERSE(v)) VIRTUAL,
            x VARCHAR(9) AS (UPPER(a)) VIRTUAL, KEY (x)) WITH SYSTEM VERSIONING""",
        "INSERT INTO t (id, a) VALUES (1, 'ab'), (2, 'cd'), (3, 'ef'), (4, NULL)",
        "UPDATE t SET b = 5 WHERE id = 2",
        "DELETE FROM t WHERE id = 3",
        "SELECT v, w, x FROM t ORDER BY id",
    )
    memory.dump(tmp_path)
    _, *rows = (tmp_path / "virtual_columns.t.tsv").read_text().splitlines()
    ours = [
        tuple(None if cell == "\\N" else cell for cell in row.split("\t")[3:6])
        for row in sorted(rows)
    ]
    assert ours == theirs == [("AB", "BA", "AB"), ("CD", "DC", "CD"), (None, None, None)]


@pytest.mark.parametrize("expression", ["CURDATE()", "UNIX_TIMESTAMP()", "@n + 1"])
def test_one_that_nobody_can_tell(
    server_factory: ServerFactory, expression: str, tmp_path: Path
) -> None:
    """MariaDB lets it hang on the moment at which it is read, and on variables of the reader."""
    memory, _ = replayed(
        server_factory.shared("mariadb"),
        "SET @n = 5",
        f"CREATE TABLE t (a INT, v INT AS ({expression}) VIRTUAL, w INT AS (v) VIRTUAL)",
        "INSERT INTO t (a) VALUES (1)",
        "SELECT a FROM t",
    )
    with pytest.raises(ReplicationError) as caught:
        memory.dump(tmp_path)
    assert caught.value.number == 1235
