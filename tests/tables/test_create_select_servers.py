"""CREATE TABLE … SELECT in statement format on real servers and in memory: the same columns and
rows, or refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from servers.server import Server

import applier
from applier.binlog.types.names import column_type
from lookup.table import Column
from tests.peers.contents import differences, server_tables
from tests.servers.fixtures import ServerFactory

SERVERS = ("5.6", "5.7", "9.7", "mariadb")
SOURCES = """
CREATE TABLE s (i INT, n INT NOT NULL, v VARCHAR(10), d DATETIME(3),
    u BIGINT UNSIGNED NOT NULL DEFAULT 7, e ENUM('a', 'b'), y TINYINT(1), k INT UNIQUE);
INSERT INTO s VALUES (1, 2, 'x', '2020-01-02 03:04:05.678', 9, 'b', 1, 5),
    (NULL, 3, NULL, NULL, 8, NULL, NULL, 4), (7, 4, 'zz', '2021-01-01', 7, 'a', 0, NULL);
CREATE TABLE p (a INT AUTO_INCREMENT PRIMARY KEY, b CHAR(5) CHARACTER SET latin1,
    c DECIMAL(8, 2) NOT NULL DEFAULT 1.50);
INSERT INTO p VALUES (1, 'one', 2.25), (2, 'two', -1), (9, NULL, 0);
CREATE TABLE x (f BIT(5) DEFAULT b'101', h BIT(3) NOT NULL);
CREATE TABLE w (a BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, b TINYINT(1) DEFAULT 1, c SMALLINT(4)
    ZEROFILL, d FLOAT(7,3) NOT NULL, e DOUBLE DEFAULT 1.5, f BIT(5),
    g YEAR DEFAULT 2001, h TIME(2), i DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE
    CURRENT_TIMESTAMP, j VARCHAR(20) CHARACTER SET utf8 COLLATE utf8_bin NOT NULL DEFAULT 'x''y',
    k TEXT, l BLOB NOT NULL, m SET('p', 'q') DEFAULT 'p,q', n BINARY(3), o VARBINARY(7),
    q DECIMAL(6,2) UNSIGNED DEFAULT NULL, r MEDIUMTEXT CHARACTER SET latin1, t DATE,
    u CHAR(3) COMMENT 'said', PRIMARY KEY (a), UNIQUE (b, c), KEY (j));
INSERT INTO w VALUES (1, 0, 7, 1.25, 2, 3, 1999, '01:02:03.04', '2020-01-01', 'j', 'k', 'l', 'q',
    'n', 'o', 1.5, 'r', '2020-02-02', 'u'), (5, 1, NULL, -1, NULL, 31, NULL, NULL, '2021-01-01', '',
    NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL)
""".split(";\n")
EXACT = (
    "SELECT 1", "SELECT 1 AS c", "SELECT -1 AS c", "SELECT 0 AS c", "SELECT 12345678 AS c",
    "SELECT -99999999 AS c", "SELECT 1234567890 AS c", "SELECT 999999999999999999 AS c",
    "SELECT TRUE AS c, FALSE AS d", "SELECT TRUE", "SELECT 1, 2, 3", "SELECT 1, -2",
    "SELECT true AS a, False AS b", "SELECT +1.5, (i), ((s.n)) FROM s",
    "SELECT DISTINCT i FROM s", "SELECT DISTINCT v, n FROM s", "SELECT n, v FROM s GROUP BY n, v",
    "SELECT - 1", "SELECT DATE  '2010-01-01'", "SELECT +1", "SELECT NOW( )",
    "SELECT I, s.N FROM s", "SELECT `I` FROM s",
    "SELECT NAME_CONST('x', 'abc' COLLATE 'utf8mb4_bin')",
    "SELECT 'abc' AS c", "SELECT 'abc', \"x y\"", "SELECT ' abc'", "SELECT _latin1'abc' AS c",
    "SELECT _utf8mb4'abc' AS c", "SELECT 'äöü' AS c", "SELECT N'abc' AS c",
    "SELECT 1.5", "SELECT -1.5 AS c", "SELECT .25 AS c",
    "SELECT 0.50 AS c", "SELECT 12345.678 AS c", "SELECT 1e0 AS c", "SELECT -1.5e3 AS c",
    "SELECT x'4132' AS c", "SELECT 0x41", "SELECT b'101' AS c", "SELECT DATE'2010-01-01'",
    "SELECT TIME'10:00:00' AS c", "SELECT TIME'10:00:00.12' AS c",
    "SELECT TIMESTAMP'2010-01-01 00:00:00' AS c", "SELECT TIMESTAMP'2010-01-01 00:00:00.123' AS c",
    "SELECT NOW() AS c", "SELECT NOW(3) AS c, CURRENT_TIMESTAMP AS d, CURDATE(), CURRENT_DATE",
    "SELECT LOCALTIME AS c, LOCALTIMESTAMP AS d, UTC_TIMESTAMP() AS e, UTC_DATE() AS f",
    "SELECT NAME_CONST('x', 1)", "SELECT NAME_CONST('x', 'abc') AS c", "SELECT 1 WHERE 1 = 0",
    "SELECT NAME_CONST('x', _utf8mb4'abc' COLLATE utf8mb4_bin) AS c",
    "SELECT 1 AS a FROM DUAL", "SELECT 1 AS 'a b'",
    "SELECT * FROM w", "SELECT a AS x, u AS z, w.* FROM w WHERE a = 9",
    "SELECT j, k FROM w ORDER BY a",
    "SELECT * FROM s", "SELECT i, n, v FROM s", "SELECT s.i AS j, 5 AS f FROM s WHERE n > 2",
    "SELECT STRAIGHT_JOIN i, v FROM s", "SELECT SQL_BIG_RESULT i FROM s",
    "SELECT v, d, u, e, y, 'new' AS state FROM s", "SELECT i, i AS j FROM s ORDER BY n",
    "SELECT p.b, s.n FROM p JOIN s ON p.a = s.n", "SELECT p.b, s.v FROM p LEFT JOIN s ON p.a = s.n",
    "SELECT a, b, c FROM p", "SELECT a FROM p WHERE b = 'one'", "SELECT NOW() AS t, a FROM p",
    "SELECT a, 'x' AS f FROM p ORDER BY a LIMIT 2",
    "(a INT) SELECT 1 AS a", "(a INT) SELECT 1 AS b, 2 AS c", "(a VARCHAR(3)) SELECT 12 AS a",
    "(a INT, b INT, KEY (a), KEY (b)) SELECT 1 AS a, 2 AS b",
    "(z INT NOT NULL DEFAULT 4, a BIGINT PRIMARY KEY) SELECT a, c FROM p",
    "(i BIGINT, n2 INT, x CHAR(3)) SELECT i + 1 i, n * 2 n2, CONCAT(v, '!') x FROM s",
    "(w VARCHAR(20)) SELECT CONCAT(v, '!') AS w, i FROM s",
    "(c DECIMAL(2, 1) NOT NULL, PRIMARY KEY (c)) SELECT 2.1 c",
    "(f ENUM('a', 'b')) AS SELECT 'a' AS f", "ENGINE=MyISAM SELECT 42 a",
    "(a INT AUTO_INCREMENT PRIMARY KEY) SELECT a, b FROM p",
    "(g INT AS (a + 1)) SELECT a FROM p", "AS (SELECT 1 AS a)",
    "SELECT n + 1 AS c FROM s", "SELECT COUNT(*) AS c FROM s", "SELECT UPPER(v) AS c FROM s",
    "SELECT COUNT(*), MAX(i) FROM s", "SELECT e, SUM(n * 2.5) AS total FROM s GROUP BY e",
    "SELECT s.n, p.a AS b FROM s LEFT JOIN p ON s.n = p.a", "SELECT 1 + 1 AS c",
    "SELECT s.n FROM p LEFT JOIN s ON p.a = s.n", "SELECT v COLLATE latin1_bin IS NULL FROM s",
    "SELECT IF(1, NOW(), NULL) AS c", "SELECT NOW() + INTERVAL 1 DAY AS c",
    "SELECT CAST('2001-01-01' AS DATE) AS c", "SELECT LEAST(NOW(), NOW()) AS c",
)  # fmt: skip
"""Behind CREATE TABLE t…; none of them is refused where the server takes it."""
OLD_ONLY = (
    "SELECT NULL AS c",
    "SELECT f FROM x",
    "SELECT h FROM x",
    "SELECT NAME_CONST('x', NULL)",
)
"""In 9.7.4 a VARBINARY(0), BINARY(0) in the others; and a BIT has another default there."""
REFUSED = (
    "SELECT 123456789 AS c", "SELECT -1234567890 AS c", "SELECT '' AS c", "SELECT 007 AS c",
    "SELECT FLOOR(n) AS c FROM s", "SELECT n DIV 2 AS c FROM s", "SELECT HEX(v) AS c FROM s",
    "SELECT v COLLATE latin1_bin AS c FROM s", "SELECT n FROM s UNION SELECT 1",
    "SELECT IFNULL(v, 1) AS c FROM s", "SELECT SUBSTRING(v, 2) AS c FROM s",
    "SELECT -n AS c FROM s",
    "SELECT (SELECT 1) AS c", "SELECT CONCAT(v, n + 1) AS c FROM s",
    "SELECT n FROM (SELECT n FROM s) AS q",
    "(a INT AUTO_INCREMENT PRIMARY KEY) SELECT b FROM p", "SELECT (1) AS c",
)  # fmt: skip


STATEMENTS: dict[str, str | int | bool | None] = {
    "innodb_flush_log_at_trx_commit": 0,
    "sync_binlog": 0,
    "character_set_server": "latin1",
    "binlog_format": "STATEMENT",
}
"""Options of a server that logs statements."""


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    started = server_factory(request.param, options=STATEMENTS)
    yield started
    started.close()


def logged(
    server: Server, selects: tuple[str, ...], sql_mode: str, sources: list[str] = SOURCES
) -> Path:
    """The log of a CREATE TABLE t<number> of each."""
    with server.connect(autocommit=True, charset="utf8mb4") as connection:
        cursor = connection.cursor()
        cursor.execute(
            "SET SESSION sql_mode = %s, timestamp = 1600000000.123456, time_zone = '+02:00'",
            (sql_mode,),
        )
        for statement in ("DROP DATABASE IF EXISTS d", "FLUSH LOGS", "CREATE DATABASE d", "USE d"):
            cursor.execute(statement)
        for statement in sources:
            cursor.execute(statement)
        for number, select in enumerate(selects):
            try:
                cursor.execute(f"CREATE TABLE t{number} {select}")
            except pymysql.MySQLError:  # not in the log then
                continue
        cursor.execute("FLUSH LOGS")
    return server.binlog_files()[-2]


def plain(default: str | None, collation: str | None) -> tuple[str | None, str | None]:
    """A default and a collation in one spelling."""
    if default in (None, "NULL"):
        default = None
    else:
        default = re.sub(r"(?i)^(current_timestamp)\(\)", r"\1", default).upper()
        default = default.strip("'").replace("''", "'")
    return default, re.sub("^utf8_", "utf8mb3_", collation) if collation else None


def shown(column: Column, server: str) -> tuple[Any, ...]:
    return (
        column.name,
        column_type(column, display_widths=server != "9.7"),
        "YES" if column.nullable else "NO",
        *plain(column.default, column.collation),
    )


def on_server(server: Server, table: str) -> list[tuple[Any, ...]]:
    said = server.query(
        "SELECT column_name, column_type, is_nullable, column_default, collation_name"
        f" FROM information_schema.columns WHERE table_schema = 'd' AND table_name = '{table}'"
        " ORDER BY ordinal_position"
    )
    return [(*head, *plain(default, collation)) for *head, default, collation in said]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("sql_mode", ["", "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE"])
def test_columns_and_rows_are_the_servers(server: Server, sql_mode: str, tmp_path: Path) -> None:
    name = server.installed.recipe.name
    selects = EXACT + (OLD_ONLY if name != "9.7" else ())
    tables = applier.Tables()
    result = applier.replay([logged(server, selects, sql_mode)], into=tables)
    assert result.error is None, result.error
    equal = same_as_on_server(server, tables, selects, tmp_path)
    assert equal == len(server.query("SHOW TABLES FROM d")) > 60


def same_as_on_server(
    server: Server, tables: applier.Tables, selects: tuple[str, ...], folder: Path
) -> int:
    """How many tables there are in memory, all with the columns and rows that they have on the
    server; a dump of them goes into the folder."""
    tables.dump(folder)
    with server.connect(
        charset="utf8mb4", use_unicode=False, conv={}, autocommit=True
    ) as connection:
        cursor = connection.cursor()

        def query(sql: str) -> list[tuple[Any, ...]]:
            cursor.execute(sql)
            return list(cursor.fetchall())

        ours = {f"d.{one.definition.name}": one.definition.columns for one in tables}
        theirs = [one for one in server_tables(query) if one.name in ours]
    assert {one.name for one in theirs} == ours.keys()
    assert differences(theirs, folder) == []
    name = server.installed.recipe.name
    for table, columns in ours.items():
        number = table.removeprefix("d.t")
        if number.isdigit():
            found = [shown(column, name) for column in columns]
            assert found == on_server(server, f"t{number}"), selects[int(number)]
    return len(ours)


def test_what_is_not_known_is_refused(server: Server) -> None:
    refused = REFUSED + (OLD_ONLY if server.installed.recipe.name == "9.7" else ())
    tables = applier.Tables()
    result = applier.replay([logged(server, refused, "")], into=tables, skip_errors="1235")
    assert result.error is None, result.error
    assert sorted(table.definition.name for table in tables) == ["p", "s", "w", "x"]
    assert len(result.inexact) == len(refused)


VERSIONED = (
    "WITH SYSTEM VERSIONING AS SELECT 0 AS z, i FROM s",
    "(a INT) WITH SYSTEM VERSIONING AS SELECT 1 AS a, 2 AS b",
    "(a INT, x CHAR(3)) WITH SYSTEM VERSIONING SELECT 2 AS b",
)


@pytest.mark.parametrize("server", ["mariadb"], indirect=True)
def test_the_hidden_columns_of_a_versioned_table_are_the_last(server: Server) -> None:
    """Those of the row's time; `SHOW COLUMNS` does not show them."""
    tables = applier.Tables()
    result = applier.replay([logged(server, VERSIONED, "")], into=tables)
    assert result.error is None, result.error
    for number in range(len(VERSIONED)):
        columns = tables[f"d.t{number}"].definition.columns
        visible = [one.name for one in columns if not one.hidden]
        assert visible == [row[0] for row in server.query(f"SHOW COLUMNS FROM d.t{number}")]
        assert [one.name for one in columns[len(visible) :]] == ["row_start", "row_end"]
