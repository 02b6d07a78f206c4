"""Tables that change their names, columns and relations: real servers and tables in memory side by
side.

Each case is SQL of our own; what the server has in its tables afterwards is what the replay of its
log has to have. CI runs each case on each server; elsewhere each server takes its share of them.
"""

from __future__ import annotations

import pytest
from servers.server import Server

from tests.mysql.beside_server import Beside
from tests.mysql.partition_cases import PARTITIONS
from tests.mysql.server_support import THOROUGH
from tests.mysql.structure_cases import (
    ALL,
    FOREIGN_KEYS,
    OTHER_DATABASES,
    PLAIN,
    SELECTS,
    SELF,
    SOURCE,
    Statements,
)

SERVERS = ("5.7", "9.7", "mariadb")
NAMES: dict[str, Statements] = {
    "swap rename column": [
        *PLAIN,
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a",
        "UPDATE t SET a=a+1 WHERE id=1",
        "INSERT INTO t (id,a,b) VALUES (3,1,2)",
    ],
    "swap change": [
        *PLAIN,
        "ALTER TABLE t CHANGE a b INT, CHANGE b a INT",
        "UPDATE t SET a=a+1 WHERE id=1",
    ],
    "change and add after new": [
        *PLAIN,
        "ALTER TABLE t CHANGE a z INT, ADD n INT DEFAULT 5 AFTER z",
        "UPDATE t SET z=3 WHERE id=1",
    ],
    "change and add after old": [
        *PLAIN,
        "ALTER TABLE t CHANGE a z INT, ADD n INT DEFAULT 5 AFTER a",
    ],
    "change after": [
        *PLAIN,
        "ALTER TABLE t CHANGE a z INT AFTER b, MODIFY id INT FIRST",
        "UPDATE t SET z=3 WHERE id=1",
    ],
    "rename and add same": [
        *PLAIN,
        "ALTER TABLE t CHANGE a z INT, ADD a INT DEFAULT 7",
        "UPDATE t SET z=3 WHERE id=1",
    ],
    "drop and rename to it": [
        *PLAIN,
        "ALTER TABLE t DROP a, CHANGE b a INT",
        "UPDATE t SET a=a+1 WHERE id=1",
    ],
    "alter new name": [
        *PLAIN,
        "ALTER TABLE t CHANGE a z INT, ALTER z SET DEFAULT 9",
    ],
    "alter old name": [
        *PLAIN,
        "ALTER TABLE t CHANGE a z INT, ALTER a SET DEFAULT 9",
    ],
    "rename col, alter": [
        *PLAIN,
        "ALTER TABLE t RENAME COLUMN a TO z, ALTER b SET DEFAULT 9",
        "INSERT INTO t (id) VALUES (5)",
    ],
    "add key on new name": [
        *PLAIN,
        "ALTER TABLE t CHANGE a z INT, ADD UNIQUE (z)",
        "DELETE FROM t WHERE z=20",
    ],
    "add key on old name": [
        *PLAIN,
        "ALTER TABLE t CHANGE a z INT, ADD UNIQUE (a)",
    ],
    "gcol": [
        "CREATE TABLE t (a INT, b INT AS (a+1) STORED) ENGINE=InnoDB",
        "INSERT INTO t (a) VALUES (1)",
        "ALTER TABLE t CHANGE a c INT, CHANGE b b INT AS (c+1) STORED",
        "INSERT INTO t (c) VALUES (5)",
    ],
    "gcol follow": [
        "CREATE TABLE t (a INT, b INT AS (a+1) STORED) ENGINE=InnoDB",
        "INSERT INTO t (a) VALUES (1)",
        "ALTER TABLE t CHANGE a c INT",
        "INSERT INTO t (c) VALUES (5)",
        "ALTER TABLE t ADD d INT DEFAULT 4, FORCE",
    ],
    "gcol swap": [
        "CREATE TABLE t (a INT, x INT, b INT AS (a+1) VIRTUAL) ENGINE=InnoDB",
        "INSERT INTO t (a,x) VALUES (1,2)",
        "ALTER TABLE t CHANGE a x INT, CHANGE x a INT",
        "INSERT INTO t (a,x) VALUES (5,6)",
    ],
    "default expr follow": [
        "CREATE TABLE t (a INT, b INT DEFAULT (a+1)) ENGINE=InnoDB",
        "INSERT INTO t (a) VALUES (1)",
        "ALTER TABLE t CHANGE a c INT",
        "INSERT INTO t (c) VALUES (5)",
    ],
    "check follow": [
        "CREATE TABLE t (a INT, b INT, CHECK (a > b)) ENGINE=InnoDB",
        "INSERT INTO t VALUES (1,0)",
        "ALTER TABLE t CHANGE a c INT",
        "INSERT INTO t VALUES (5,4)",
    ],
    "add after add": [
        *PLAIN,
        "ALTER TABLE t ADD x INT AFTER id, ADD y INT AFTER x, ADD w INT FIRST",
    ],
    "move onto moved": [
        *PLAIN,
        "ALTER TABLE t MODIFY b INT FIRST, MODIFY a INT AFTER b",
    ],
    "move after moved later": [
        *PLAIN,
        "ALTER TABLE t MODIFY a INT AFTER b, MODIFY b INT FIRST",
    ],
    "rename index swap": [
        *PLAIN,
        "ALTER TABLE t RENAME INDEX ka TO kb, RENAME INDEX kb TO ka",
        "UPDATE t SET a=a+1 WHERE id=1",
    ],
    "rename table and swap": [
        *PLAIN,
        "ALTER TABLE t RENAME TO u, CHANGE a b INT, CHANGE b a INT",
        "UPDATE u SET a=9",
    ],
    "fk child swap": [
        "CREATE TABLE p (id INT PRIMARY KEY) ENGINE=InnoDB",
        (
            "CREATE TABLE c (a INT, b INT, FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE) "
            "ENGINE=InnoDB"
        ),
        "INSERT INTO p VALUES (1),(2)",
        "INSERT INTO c VALUES (1,2)",
        "ALTER TABLE c CHANGE a b INT, CHANGE b a INT",
        "INSERT INTO c (a,b) VALUES (77,2)",
        "DELETE FROM p WHERE id=1",
    ],
    "fk parent swap": [
        "CREATE TABLE p (x INT PRIMARY KEY, y INT, KEY(y)) ENGINE=InnoDB",
        "CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES p (x) ON DELETE CASCADE) ENGINE=InnoDB",
        "INSERT INTO p VALUES (1,2),(2,1)",
        "INSERT INTO c VALUES (1)",
        "ALTER TABLE p CHANGE x y INT, CHANGE y x INT",
        "DELETE FROM p WHERE y=2",
        "DELETE FROM p WHERE y=1",
    ],
    "drop fk and column": [
        "CREATE TABLE p (id INT PRIMARY KEY) ENGINE=InnoDB",
        (
            "CREATE TABLE c (a INT, b INT, CONSTRAINT k FOREIGN KEY (a) REFERENCES p (id) "
            "ON DELETE CASCADE) ENGINE=InnoDB"
        ),
        "INSERT INTO p VALUES (1)",
        "INSERT INTO c VALUES (1,2)",
        "ALTER TABLE c DROP FOREIGN KEY k, DROP COLUMN a",
        "DELETE FROM p",
    ],
    "views": [
        "CREATE TABLE t (a INT)",
        "CREATE VIEW v AS SELECT * FROM t",
        "RENAME TABLE v TO v2",
        "CREATE TABLE v (a INT)",
        "INSERT INTO v2 VALUES (3)",
        "CREATE TABLE IF NOT EXISTS v2 (a INT)",
        "DROP VIEW v2",
        "CREATE TABLE v2 (b INT)",
        "INSERT INTO v2 VALUES (5)",
        "DROP TABLE v2",
        "CREATE OR REPLACE VIEW v2 AS SELECT 1 AS a",
    ],
    "temp": [
        "CREATE TABLE t (a int)",
        "INSERT INTO t VALUES (1)",
        "CREATE TEMPORARY TABLE t (b int)",
        "INSERT INTO t VALUES (2)",
        "DROP TEMPORARY TABLE IF EXISTS t",
        "DROP TEMPORARY TABLE IF EXISTS t",
        "CREATE TEMPORARY TABLE x (a int)",
        "DROP TABLE x",
        "CREATE TEMPORARY TABLE x (a int)",
        "INSERT INTO t VALUES (7)",
    ],
    "temp two sessions": [
        "CREATE TABLE t (a int)",
        "CREATE TEMPORARY TABLE t (b int)",
        (1, "INSERT INTO t VALUES (1)"),
        "INSERT INTO t VALUES (2)",
        (1, "CREATE TEMPORARY TABLE t (c int, d int)"),
        (1, "INSERT INTO t VALUES (3,4)"),
        "ALTER TABLE t ADD z INT",
        "UPDATE t SET z=1",
        "DROP TABLE t",
        "INSERT INTO t VALUES (5)",
        "TRUNCATE t",
        (1, "TRUNCATE t"),
        (1, "DROP TEMPORARY TABLE t"),
        "INSERT INTO t VALUES (6)",
    ],
    "temp rename": [
        "CREATE TABLE t (a int)",
        "INSERT INTO t VALUES (1)",
        "CREATE TEMPORARY TABLE t (b int)",
        "ALTER TABLE t RENAME TO u",
        "INSERT INTO u VALUES (2)",
        "INSERT INTO t VALUES (3)",
        "CREATE TEMPORARY TABLE k LIKE t",
        "CREATE TABLE n LIKE k",
        "CREATE TABLE m LIKE t",
        "INSERT INTO m VALUES (4)",
    ],
}

FORMATS = (
    {name: ALL for name in NAMES if name.startswith("temp")}
    | dict.fromkeys(SELECTS, ALL)
    | {"statement fmt": ("STATEMENT",)}
)
"""Of the others: ROW."""
CASES = {**FOREIGN_KEYS, **NAMES, **SELECTS, **OTHER_DATABASES, **PARTITIONS}


@pytest.mark.parametrize("any_server", SERVERS, indirect=True)
def test_the_tables_are_the_servers(any_server: Server) -> None:
    differences = {}
    first = SERVERS.index(any_server.installed.recipe.name)
    names = list(CASES) if THOROUGH else list(CASES)[first :: len(SERVERS)]
    for name, statements in ((name, CASES[name]) for name in names):
        for log_format in FORMATS.get(name, ("ROW",)):
            difference = Beside(any_server, statements, log_format=log_format).difference
            if difference:
                differences[name, log_format] = difference
    assert differences == {}


@pytest.mark.parametrize("any_server", SERVERS, indirect=True)
def test_cascades_go_as_deep_as_innodb_follows(any_server: Server) -> None:
    """Fifteen rows one after the other are followed, sixteen are an error (3008; 1296 in MariaDB),
    which leaves all as it was."""
    for rows, errors in ((15, 0), (16, 1)):
        chain = ", ".join(f"({at}, {at - 1})" for at in range(1, rows))
        beside = Beside(
            any_server,
            [SELF, f"INSERT INTO s VALUES (0, 0), {chain}", "DELETE FROM s WHERE pk = 0"],
        )
        assert (beside.difference, len(beside.errors)) == ("", errors)


@pytest.mark.parametrize("any_server", SERVERS, indirect=True)
def test_a_statement_on_a_view_is_refused(any_server: Server) -> None:
    beside = Beside(
        any_server,
        ["CREATE TABLE t (a INT)", "CREATE VIEW v AS SELECT * FROM t", "INSERT INTO v VALUES (3)"],
        log_format="STATEMENT",
    )
    assert beside.result.error is not None
    assert (beside.result.error.number, beside.result.error.table) == (1235, "d.v")


@pytest.mark.parametrize(
    "select",
    [
        "(id VARCHAR(5)) SELECT id FROM o",
        "SELECT 1 AS a",
        "SELECT id, 'x' AS b FROM o",
        "SELECT 1 + 1 AS a",
        "SELECT COUNT(*) FROM o",
        "SELECT id + 1 AS b FROM o",
    ],
)
def test_what_a_select_makes_of_expressions_is_the_servers(select: str, any_server: Server) -> None:
    statements: Statements = [*SOURCE, f"CREATE TABLE t {select}"]
    found = Beside(any_server, statements, log_format="STATEMENT")
    assert (found.result.error, found.difference) == (None, "")


@pytest.mark.parametrize("any_server", SERVERS[:1], indirect=True)
@pytest.mark.parametrize(
    "select",
    [
        "SELECT id DIV 2 AS a FROM o",
        "SELECT HEX(id) AS a FROM o",
        "SELECT (SELECT 1) AS a",
    ],
)
def test_what_a_select_makes_of_other_expressions_is_refused_in_statement_format(
    select: str, any_server: Server
) -> None:
    statements: Statements = [*SOURCE, f"CREATE TABLE t {select}"]
    refused = Beside(any_server, statements, log_format="STATEMENT").result.error
    assert refused is not None
    assert refused.number == 1235
    assert Beside(any_server, statements).difference == ""
