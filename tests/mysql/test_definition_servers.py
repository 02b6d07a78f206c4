"""verify compares definitions: a real server that carried out the same statements is never blamed,
and one that was changed is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import applier
from applier.cli.main import main
from applier.mysql.contents.verify import verify
from applier.tables.catalog import Tables
from tests.mysql.server_support import Servers, connection
from tests.servers.fixtures import ServerFactory

VERSIONS = ("5.7", "9.7", "mariadb")

SHAPES = """
CREATE DATABASE d CHARACTER SET latin1
USE d
CREATE TABLE numbers (a TINYINT(1), b BOOL, c INT(5) ZEROFILL, e INT UNSIGNED ZEROFILL,
    f INTEGER UNSIGNED NOT NULL, g BIGINT(20), h DEC,
    i NUMERIC(8,3) UNSIGNED, j FLOAT(7,3), k FLOAT(30), l REAL, m BIT, n BIT(1), o DOUBLE UNSIGNED,
    p YEAR(4), q YEAR)
CREATE TABLE texts (a VARCHAR(10), b CHAR, c TEXT(100), d VARCHAR(9) CHARACTER SET utf8mb4,
    e CHAR(3) CHARACTER SET utf8 COLLATE utf8_bin,
    f ENUM('a', 'b ', 'it''s'), g SET('x', 'y') COLLATE latin1_bin, h CHAR(4) BINARY,
    i VARCHAR(4) CHARACTER SET binary, j NCHAR(3),
    k VARBINARY(3), l MEDIUMBLOB, m VARCHAR(5) COLLATE utf8mb4_unicode_ci, n CHAR BYTE,
    o LONG VARCHAR) DEFAULT CHARSET=latin1
CREATE TABLE wide (a VARCHAR(10), b VARCHAR(10) CHARACTER SET latin1, j JSON) CHARACTER SET utf8mb4
CREATE TABLE greek (a VARCHAR(10)) COLLATE greek_bin
CREATE TABLE plain_utf8 (a VARCHAR(10), b TEXT CHARACTER SET latin1) CHARSET utf8
CREATE TABLE defaults (a INT DEFAULT 1, b INT NOT NULL DEFAULT '1', c DECIMAL(5,2) DEFAULT .5,
    d VARCHAR(9) DEFAULT 'it''s',
    e CHAR(3) NOT NULL DEFAULT '', f DATE DEFAULT '2024-01-01', g BOOL DEFAULT TRUE,
    h BIT(3) DEFAULT b'101', i FLOAT DEFAULT 1e1,
    j DATETIME DEFAULT NOW(), k DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3)
    ON UPDATE CURRENT_TIMESTAMP(3), l VARCHAR(9) DEFAULT NULL,
    m ENUM('a', 'b') DEFAULT 'b', n INT DEFAULT -5, o TIME DEFAULT '01:00:00', p YEAR DEFAULT 2000,
    q VARBINARY(4) DEFAULT 0x41)
CREATE TABLE times (a TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    b TIMESTAMP NULL, c DATETIME(6), d TIME(2),
    e TIMESTAMP(3) NULL DEFAULT LOCALTIMESTAMP(3), f TIMESTAMP NULL DEFAULT '2020-01-01 00:00:00')
CREATE TABLE `keys` (a INT, b VARCHAR(10) NOT NULL, c TEXT, e VARCHAR(20) CHARACTER SET utf8mb4,
    f INT NOT NULL, g POINT NOT NULL,
    KEY (b), UNIQUE (a), KEY whole (b(10)), KEY part (b(3), c(5)), INDEX USING HASH (f),
    FULLTEXT words (c), SPATIAL KEY (g),
    KEY (a, b), UNIQUE u (e, f), PRIMARY KEY (f, b), KEY (b)) ENGINE=InnoDB
CREATE TABLE hashed (a INT, b INT, KEY (a), UNIQUE USING BTREE (b)) ENGINE=MEMORY
CREATE TABLE serials (id SERIAL, a INT UNIQUE, b INT UNIQUE KEY, c INT)
CREATE TABLE numbered (id INT AUTO_INCREMENT, a INT, KEY (id)) AUTO_INCREMENT=7 COMMENT 'some'
CREATE TABLE numbered_null (id INT AUTO_INCREMENT NULL, KEY (id))
CREATE TABLE made (a INT PRIMARY KEY, b INT AS (a + 1), c INT GENERATED ALWAYS AS (a * 2) STORED,
    d VARCHAR(9) AS (CONCAT('x', a)) VIRTUAL, KEY (c))
CREATE TABLE parent (a INT PRIMARY KEY, b INT, UNIQUE (b))
CREATE TABLE child (a INT, b INT, c INT, FOREIGN KEY (a) REFERENCES parent (a),
    CONSTRAINT named FOREIGN KEY (b) REFERENCES parent (b),
    CONSTRAINT more FOREIGN KEY own (c) REFERENCES parent (a))
CREATE TABLE parts (a INT NOT NULL, b INT, KEY (b)) PARTITION BY HASH (a) PARTITIONS 3
CREATE TABLE twin LIKE `keys`
CREATE TABLE changed (a INT, b VARCHAR(10), c INT, KEY (c))
ALTER TABLE changed ADD COLUMN x INT FIRST, ADD y BIGINT AFTER a, MODIFY b TEXT,
    CHANGE c C2 BIGINT NOT NULL
ALTER TABLE changed ADD PRIMARY KEY (c2), ADD INDEX (x, a), DROP COLUMN y
ALTER TABLE changed CONVERT TO CHARACTER SET utf8mb4
CREATE UNIQUE INDEX later ON changed (x)
ALTER TABLE child ADD INDEX mine (b, a)
CREATE TABLE pairs (a INT, b INT, UNIQUE (a, b)) ENGINE=InnoDB
CREATE TABLE two_keys (a INT, b INT, CONSTRAINT k1 FOREIGN KEY (a) REFERENCES parent (a),
    FOREIGN KEY (a, b) REFERENCES pairs (a, b))
""".strip()

ZERO_MONTH = [
    "SET sql_mode = 'NO_ZERO_IN_DATE'",
    (
        "CREATE TABLE d.zero_month (a DATE DEFAULT '2012-02-00', b DATETIME DEFAULT '2012-00-01 "
        "10:00:00', c DATE DEFAULT '2012-01-02')"
    ),
    "SET sql_mode = DEFAULT",
]
VERSION_SHAPES = {
    "5.7": ZERO_MONTH,
    "9.7": [
        *ZERO_MONTH,
        (
            "CREATE TABLE d.modern (a INT DEFAULT (1 + 1), b INT INVISIBLE, c JSON, f VECTOR(3), "
            "g POINT NOT NULL SRID 4326, SPATIAL KEY (g))"
        ),
        (
            "CREATE TABLE d.modern_keys (a INT, b INT, h VARCHAR(36) DEFAULT (UUID()), "
            "KEY (a DESC), KEY ((a + 1)), KEY (b) INVISIBLE)"
        ),
    ],
    "mariadb": [
        (
            "CREATE TABLE d.modern (a INT DEFAULT (1 + 1), b INT INVISIBLE DEFAULT 3, c JSON, "
            "e TEXT COMPRESSED, f UUID, g INET6)"
        ),
        (
            "CREATE TABLE d.modern_keys (a INT, h TEXT DEFAULT 'x', UNIQUE (h), i CHAR(36) "
            "DEFAULT UUID(), k INT PRIMARY KEY, KEY (a DESC))"
        ),
        "CREATE TABLE d.versioned (a INT PRIMARY KEY, b INT UNIQUE) WITH SYSTEM VERSIONING",
    ],
}

CHANGES: dict[str, list[str] | None] = {
    "ALTER TABLE changed MODIFY a BIGINT":
        ["column `a`: bigint on the server, int after the replay"],
    "ALTER TABLE changed MODIFY a INT UNSIGNED NOT NULL":
        ["column `a`: int unsigned, NOT NULL on the server, int, NULL after the replay"],
    "ALTER TABLE changed MODIFY a INT AFTER b":
        ["the columns stand as x, b, a, c2 on the server, as x, a, b, c2 after the replay"],
    "ALTER TABLE changed MODIFY a INT DEFAULT 7":
        ["column `a`: DEFAULT 7 on the server, no DEFAULT after the replay"],
    "ALTER TABLE changed MODIFY a INT ZEROFILL":
        ["column `a`: int(10) unsigned zerofill on the server, int after the replay"],
    "ALTER TABLE changed ADD more CHAR(3)": ["column `more`: char(3) on the server only"],
    "ALTER TABLE changed DROP INDEX later": ["key `later`: UNIQUE (x) after the replay only"],
    "ALTER TABLE changed DROP INDEX later, ADD INDEX later (x)":
        ["key `later`: (x) on the server, UNIQUE (x) after the replay"],
    "ALTER TABLE changed DROP INDEX later, ADD UNIQUE other (x)": [
        "key on UNIQUE (x): named `other` on the server, `later` after the replay"
    ],
    "ALTER TABLE changed DROP PRIMARY KEY": ["key `PRIMARY`: (C2) after the replay only"],
    "ALTER TABLE changed ADD INDEX many (b(4))": ["key `many`: (b(4)) on the server only"],
    "ALTER TABLE changed MODIFY b MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin": None,
}  # fmt: skip
"""Statement of the server only -> what is told of the table; None: that the collation differs,
whose name hangs on the version."""


@pytest.fixture(scope="module")
def servers(server_factory: ServerFactory) -> Iterator[Servers]:
    servers = Servers(server_factory)
    yield servers
    servers.close()


def _statements(version: str) -> list[str]:
    joined = SHAPES.replace("\n    ", " ").splitlines()
    return [*joined, *VERSION_SHAPES[version]]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_statements_make_the_same_definitions(
    version: str, servers: Servers, tmp_path: Path
) -> None:
    """The server's own log is replayed; then the server is changed behind its back."""
    server = servers.empty(version)
    server.execute("FLUSH BINARY LOGS")
    file = server.binlog_files()[-1]
    server.execute(*_statements(version))
    server.execute("FLUSH BINARY LOGS")
    log = Path(shutil.copy(file, tmp_path))
    tables = Tables()
    assert applier.replay([log], into=tables).error is None
    with closing(connection(server)) as target:
        first = verify(target, tables)
        assert {report.table: report.as_dict() for report in first.tables if not report.equal} == {}
        assert len(first.tables) >= 17
        wrong = {}
        server.execute("SET sql_log_bin = 0", "USE d", "RENAME TABLE changed TO original")
        for statement, told in CHANGES.items():
            again = [
                "DROP TABLE IF EXISTS changed",
                "CREATE TABLE changed LIKE original",
                statement,
            ]
            server.execute("SET sql_log_bin = 0", "USE d", *again)
            reports = [report for report in verify(target, tables).tables if report.definition]
            said = [(report.table, report.definition) for report in reports]
            expected = (
                told
                if told is not None
                else said[0][1]
                if "_bin on the server, " in str(said)
                else ["the collation"]
            )
            if said != [("d.changed", expected)]:
                wrong[statement] = said
        assert wrong == {}


def test_a_refusal_is_no_difference(
    servers: Servers,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What memory does not carry out says nothing of a server, nor does what was made of it
    since."""
    server = servers.empty("9.7")
    server.execute("CREATE DATABASE d", "FLUSH BINARY LOGS")
    file = server.binlog_files()[-1]
    server.execute(
        "SET SESSION binlog_format = 'STATEMENT'",
        "CREATE TABLE d.fine (a INT)",
        "INSERT INTO d.fine VALUES (1)",
        "CREATE TABLE d.refused (a VARCHAR(9))",
        "INSERT INTO d.refused VALUES (SOUNDEX('Hello'))",
        "RENAME TABLE d.refused TO d.moved",
        "INSERT INTO d.fine VALUES (2)",
    )
    server.execute("FLUSH BINARY LOGS")
    log = str(shutil.copy(file, tmp_path))
    monkeypatch.setenv("BINLAG_PASSWORD", server.password)
    arguments = [
        "verify",
        log,
        "--into",
        f"mysql://root@localhost?socket={server.socket}",
        "--json",
    ]
    assert _verify(arguments, capsys) == (
        2,
        {"d.fine": (False, True), "d.moved": (False, True), "d.refused": (False, True)},
    )
    skipping = [*arguments, "--skip-errors", "1235"]
    assert _verify(skipping, capsys) == (2, {"d.fine": (False, False), "d.moved": (False, True)})
    server.execute("ALTER TABLE d.fine MODIFY a BIGINT")
    assert _verify(skipping, capsys) == (1, {"d.fine": (True, False), "d.moved": (False, True)})


def _verify(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, tuple[bool, bool]]]:
    """Exit code, and of each table whether it differs and whether it is not comparable."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    tables = json.loads(capsys.readouterr().out)["tables"]
    return ended.value.code, {
        table["table"]: (
            any(table[what] for what in ("definition", "missing", "extra", "problem")),
            table["not_comparable"] is not None,
        )
        for table in tables
    }
