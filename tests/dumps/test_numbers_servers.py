"""AUTO_INCREMENT numbers of a dump: what a server makes of it when it loads it, and what memory
does."""

from __future__ import annotations

import pytest

import applier
from applier.errors import BinlagError
from tests.servers.fixtures import ServerFactory

KEEPS = "SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO'"
TABLE = "CREATE TABLE d.t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)"
DUMPS = {
    "zeros are numbered": (TABLE, "INSERT INTO d.t VALUES (0, 1), (0, 2), (7, 3), (0, 4)"),
    "a zero stays": (KEEPS, TABLE, "INSERT INTO d.t VALUES (0, 1), (3, 2)"),
    "NULL is numbered": (KEEPS, TABLE, "INSERT INTO d.t VALUES (0, 1), (NULL, 2), (9, 3)"),
    "no column": (KEEPS, TABLE, "INSERT INTO d.t (a) VALUES (1), (2)"),
    "a column list": (TABLE, "INSERT INTO d.t (a, id) VALUES (1, 5), (2, 0), (3, NULL)"),
    "behind rows": (TABLE, "INSERT INTO d.t VALUES (4, 1)", "INSERT INTO d.t VALUES (0, 2)"),
    "a counter": (TABLE + " AUTO_INCREMENT=50", "INSERT INTO d.t VALUES (0, 1), (9, 2), (0, 3)"),
    "REPLACE": (TABLE, "REPLACE INTO d.t VALUES (0, 1), (1, 2), (0, 3)"),
    "mode taken back": (
        KEEPS, TABLE, "INSERT INTO d.t VALUES (0, 1)", "SET SQL_MODE=''",
        "INSERT INTO d.t VALUES (0, 2)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("version", ["5.6", "5.7", "9.7", "mariadb"])
def test_zeros_are_the_servers(version: str, server_factory: ServerFactory) -> None:
    server = server_factory(version)
    try:
        for title, statements in DUMPS.items():
            server.execute("DROP DATABASE IF EXISTS d", "CREATE DATABASE d", *statements)
            tables = applier.load_schema(";\n".join(statements) + ";", server=version)
            wanted = sorted(server.query("SELECT id, a FROM d.t"))
            assert sorted(tables["d.t"].rows()) == wanted, title
    finally:
        server.close()


@pytest.mark.parametrize("value", ["0", "NULL"])
def test_numbers_of_a_double_are_refused(value: str) -> None:
    sql = TABLE.replace("INT NOT", "DOUBLE NOT") + f";\nINSERT INTO d.t VALUES ({value}, 1);"
    with pytest.raises(BinlagError, match=r"numbers of the double column `id`"):
        applier.load_schema(sql, server="5.7")
