"""Virtual columns that a log has wrong: what a dump shows of them is what the server shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from servers.server import Server

import applier
from applier.tables.catalog import Tables
from tests.servers.fixtures import ServerFactory

COLUMNS = """a {base}, b {base}, c INT, v {virtual} AS (a - b) VIRTUAL,
    w {virtual} AS (a / b) VIRTUAL, x {virtual} AS (w / v) VIRTUAL,
    KEY k (c, v(5)), KEY k2 (c, x(5))"""


@pytest.fixture(scope="module", params=["5.7", "9.7", "mariadb"])
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Server:
    return server_factory.shared(request.param)


def dumped(server: Server, base: str, virtual: str, folder: Path) -> tuple[str, str]:
    """Column v of the only row in a dump, and on the server."""
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for sql in (
            "DROP DATABASE IF EXISTS virtual_columns",
            "FLUSH LOGS",
            "CREATE DATABASE virtual_columns",
            "USE virtual_columns",
            "SET SESSION binlog_format = ROW, sql_mode = ''",
            f"CREATE TABLE t ({COLUMNS.format(base=base, virtual=virtual)})",
            "INSERT INTO t (a, b, c) VALUES (7, 0, 0)",
            "UPDATE t SET a = 50",
            "FLUSH LOGS",
            "SELECT CAST(v AS CHAR) FROM t",
        ):
            cursor.execute(sql)
        ((theirs,),) = cursor.fetchall()
    memory = Tables()
    result = applier.replay([server.binlog_files()[-2]], into=memory)
    assert result.error is None, result.error
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
