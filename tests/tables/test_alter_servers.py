"""ALTER TABLE over rows, in memory and on real servers: each table of the statements below ends
with the same stored values."""

from __future__ import annotations

from itertools import product

import pytest
from servers.server import Server

import applier
from tests.servers.fixtures import ServerFactory
from tests.tables.server_twins import differences, run_with_twins

SERVERS = ("5.7", "9.7", "mariadb")
IMPLICIT = """
CREATE TABLE promoted (id INT);
INSERT INTO promoted VALUES (1), (2);
SET explicit_defaults_for_timestamp = 0;
ALTER TABLE promoted ADD a TIMESTAMP(3), ADD b TIMESTAMP, ADD c TIMESTAMP NULL;
CREATE TABLE second (id INT, t TIMESTAMP NULL);
INSERT INTO second VALUES (1, NULL), (2, NULL);
ALTER TABLE second ADD a TIMESTAMP(2), ADD b TIMESTAMP;
SET explicit_defaults_for_timestamp = 1;
CREATE TABLE late (id INT, t TIMESTAMP NOT NULL);
SET explicit_defaults_for_timestamp = 0;
ALTER TABLE late ADD a TIMESTAMP FIRST, CHANGE id id INT FIRST;
INSERT INTO late (id) VALUES (1);
"""
NOW = """
SET time_zone = '+05:30';
CREATE TABLE moments (id INT);
INSERT INTO moments VALUES (1), (2);
ALTER TABLE moments ADD a TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP,
    ADD b TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    ADD c DATETIME(3) DEFAULT NOW(3), ADD d DATETIME DEFAULT CURRENT_TIMESTAMP;
CREATE TABLE literals (id INT, t TIMESTAMP NULL DEFAULT '2020-01-01 10:00:00');
SET time_zone = '-03:00';
INSERT INTO literals (id) VALUES (1);
ALTER TABLE literals ADD a TIMESTAMP NULL DEFAULT '2020-01-01 10:00:00',
    ADD b DATETIME DEFAULT '2020-01-01 10:00:00',
    ALTER t SET DEFAULT '2020-01-02 10:00:00';
INSERT INTO literals (id) VALUES (2);
"""
IMPLIED = """
CREATE TABLE implied (id INT);
INSERT INTO implied VALUES (1), (2);
ALTER TABLE implied ADD a TIMESTAMP NOT NULL DEFAULT 0, ADD b DATETIME(2) NOT NULL,
    ADD c TIME(1) NOT NULL, ADD d YEAR NOT NULL,
    ADD e SET('a','b') NOT NULL, ADD f ENUM('x','y') NOT NULL, ADD g BIT(9) NOT NULL,
    ADD h DECIMAL(10,3) NOT NULL, ADD i DOUBLE NOT NULL, ADD j VARCHAR(3) NOT NULL,
    ADD k BINARY(3) NOT NULL, ADD l BLOB NOT NULL, ADD m DATE NOT NULL, ADD n JSON NOT NULL;
"""
EXPRESSIONS = """
SET time_zone = '-03:00';
CREATE TABLE expressions (id INT);
INSERT INTO expressions VALUES (1), (2);
ALTER TABLE expressions ADD a DATE DEFAULT (CURRENT_DATE),
    ADD b TIMESTAMP NULL DEFAULT (CURRENT_TIMESTAMP),
    ADD c INT DEFAULT (UNIX_TIMESTAMP()), ADD d VARCHAR(20) DEFAULT (CONCAT('a', 1 + 1)),
    ADD e TIME DEFAULT (CURRENT_TIME);
"""
UNFIT_DEFAULTS = """
SET sql_mode = '';
CREATE TABLE unfit (id INT, a INT, d DATE);
INSERT INTO unfit VALUES (1, 1, '2024-02-28'), (2, 500, NULL), (3, NULL, NULL),
    (4, -500, '2024-12-31');
ALTER TABLE unfit ADD b TINYINT DEFAULT (a + 1), ADD c CHAR(2) NOT NULL DEFAULT (a * 1000),
    ADD e DATE NOT NULL DEFAULT (DATE_ADD(d, INTERVAL 1 DAY)), ADD f INT NOT NULL DEFAULT (a + 1),
    ADD g TINYINT UNSIGNED NOT NULL DEFAULT (a), ADD h VARCHAR(3) NOT NULL DEFAULT (CONCAT(a, 'x'));
"""
ZERO_DAY = """
SET time_zone = '+01:00';
CREATE TABLE zero_day (id INT, t TIMESTAMP DEFAULT '2012-02-00', u DATETIME DEFAULT '2012-02-00');
INSERT INTO zero_day (id) VALUES (1);
"""
SIZES = """
CREATE TABLE sizes (id INT, a VARCHAR(65536) CHARSET latin1, b VARBINARY(70000),
    c VARCHAR(40000) CHARSET utf8mb4,
    d TEXT(70000) CHARSET latin1, e TEXT(300) CHARSET latin1, f BLOB(200), g BLOB(70000),
    h TEXT(60) CHARSET utf8mb4,
    i TEXT(64) CHARSET utf8mb4, j TEXT(255) CHARSET latin1);
CREATE TABLE grown (id INT, a VARCHAR(300), b TEXT, c TINYTEXT, d MEDIUMTEXT, e VARCHAR(30000),
    f CHAR(3), g ENUM('e')) CHARSET latin1;
INSERT INTO grown VALUES (1, 'é€', 'é', 'é', 'é', 'ÿ', 'é', 'e');
ALTER TABLE grown CONVERT TO CHARACTER SET utf8mb4;
CREATE TABLE shrunk LIKE grown;
INSERT INTO shrunk SELECT * FROM grown;
ALTER TABLE shrunk CONVERT TO CHARACTER SET latin1;
CREATE TABLE wide (id INT, a TEXT, b TINYTEXT, c VARCHAR(20000)) CHARSET ucs2;
ALTER TABLE wide CONVERT TO CHARACTER SET utf8mb3;
CREATE TABLE again (id INT, a TEXT, b TINYTEXT, c VARCHAR(20000)) CHARSET utf8mb3;
ALTER TABLE again CONVERT TO CHARACTER SET utf8mb4;
CREATE TABLE bytes (id INT, a TEXT, b TINYTEXT, c VARCHAR(20), d CHAR(3)) CHARSET utf8mb4;
INSERT INTO bytes VALUES (1, 'é', '😀', 'Ω', 'ab');
ALTER TABLE bytes CONVERT TO CHARACTER SET binary;
"""
ZEROFILLS = """
CREATE TABLE zerofills (id INT, a INT ZEROFILL, b BIGINT(5) ZEROFILL, c DECIMAL(8,3) ZEROFILL,
    d FLOAT ZEROFILL, e DOUBLE(8,3) ZEROFILL,
    f SMALLINT);
INSERT INTO zerofills VALUES (1, 7, 1234567, 1.5, 2.5, 3.25, 9);
ALTER TABLE zerofills MODIFY f SMALLINT(3) ZEROFILL, MODIFY a VARCHAR(20), MODIFY c VARCHAR(20),
    MODIFY d VARCHAR(20), MODIFY e VARCHAR(20);
"""
REALS = """
CREATE TABLE alone (id INT, a FLOAT);
INSERT INTO alone VALUES (1, 1.23456), (2, 99999.99999);
ALTER TABLE alone MODIFY a FLOAT(7,3);
CREATE TABLE copied (id INT, a FLOAT, b INT);
INSERT INTO copied VALUES (1, 1.23456, 1), (2, 99999.99999, 2);
ALTER TABLE copied MODIFY a FLOAT(7,3), MODIFY b BIGINT;
CREATE TABLE rebuilt (id INT, a DOUBLE);
INSERT INTO rebuilt VALUES (1, 1.23456), (2, 99999.99999);
ALTER TABLE rebuilt MODIFY a DOUBLE(7,3), ADD c INT DEFAULT 3;
CREATE TABLE myisam (id INT, a DOUBLE) ENGINE=MyISAM;
INSERT INTO myisam VALUES (1, 1.23456), (2, 99999.99999);
ALTER TABLE myisam MODIFY a DOUBLE(7,3), ADD c INT DEFAULT 3;
CREATE TABLE myisam_alone (id INT, a DOUBLE) ENGINE=MyISAM;
INSERT INTO myisam_alone VALUES (1, 1.23456), (2, 99999.99999);
ALTER TABLE myisam_alone MODIFY a DOUBLE(7,3);
CREATE TABLE forced (id INT, a DOUBLE);
INSERT INTO forced VALUES (1, 1.23456), (2, 99999.99999);
ALTER TABLE forced MODIFY a DOUBLE(7,3), ALGORITHM=COPY;
CREATE TABLE reordered (id INT, a DOUBLE);
INSERT INTO reordered VALUES (1, 1.23456), (2, 99999.99999);
ALTER TABLE reordered MODIFY a DOUBLE(7,3) FIRST, CHANGE id id INT FIRST;
CREATE TABLE null_to_not (id INT, a DOUBLE);
INSERT INTO null_to_not VALUES (1, 1.23456), (2, NULL);
ALTER TABLE null_to_not MODIFY a DOUBLE(7,3) NOT NULL;
CREATE TABLE null_to_not_beside (id INT NULL, a DOUBLE);
INSERT INTO null_to_not_beside VALUES (1, 1.23456), (2, 99999.99999);
ALTER TABLE null_to_not_beside MODIFY a DOUBLE(7,3), MODIFY id INT NOT NULL;
CREATE TABLE with_stored (id INT, a FLOAT);
INSERT INTO with_stored VALUES (1, 1.23456), (2, 99999.99999);
ALTER TABLE with_stored MODIFY a FLOAT(7,3), ADD s INT AS (id + 1) STORED;
ALTER TABLE with_stored DROP s;
CREATE TABLE longer (id INT, a DOUBLE, b VARCHAR(10), c VARBINARY(10), d ENUM('x'),
    e VARCHAR(300) CHARACTER SET latin1);
INSERT INTO longer VALUES (1, 1.23456, 'a', 'b', 'x', 'y'), (2, 99999.99999, 'a', 'b', 'x', 'y');
ALTER TABLE longer MODIFY a DOUBLE(7,3), MODIFY b VARCHAR(20), MODIFY c VARBINARY(20),
    MODIFY d ENUM('x','y'),
    MODIFY e VARCHAR(400) CHARACTER SET latin1;
CREATE TABLE much_longer (id INT, a DOUBLE, b VARCHAR(10));
INSERT INTO much_longer VALUES (1, 1.23456, 'a'), (2, 99999.99999, 'b');
ALTER TABLE much_longer MODIFY a DOUBLE(7,3), MODIFY b VARCHAR(300);
"""
NULLS = """
CREATE TABLE nulls (id INT, a INT, b VARCHAR(3), c DATETIME, d TIMESTAMP NULL, e ENUM('x','y'),
    f SET('x'), g TIME,
    h BLOB, i BIT(3), j DECIMAL(5,2), k TIMESTAMP NULL);
INSERT INTO nulls (id) VALUES (1);
SET explicit_defaults_for_timestamp = 0;
ALTER TABLE nulls MODIFY a INT NOT NULL, MODIFY b VARCHAR(3) NOT NULL, MODIFY c DATETIME NOT NULL,
    MODIFY d TIMESTAMP NOT NULL,
    MODIFY e ENUM('y','x') NOT NULL, MODIFY f SET('x') NOT NULL, MODIFY g TIME NOT NULL,
    MODIFY h BLOB NOT NULL, MODIFY i BIT(3) NOT NULL,
    MODIFY j DECIMAL(5,2) NOT NULL;
SET explicit_defaults_for_timestamp = 1;
ALTER TABLE nulls MODIFY k TIMESTAMP NOT NULL;
"""
SHAPES = """
CREATE TABLE shapes (id INT, a POINT, b GEOMETRY, c POLYGON);
INSERT INTO shapes VALUES (1, POINT(1, 2), POINT(3, 4), NULL), (2, NULL, NULL, NULL);
ALTER TABLE shapes MODIFY a GEOMETRY, MODIFY b POINT, MODIFY c GEOMETRY;
CREATE TABLE shape_bytes (id INT, a POINT, b GEOMETRY, c LINESTRING NOT NULL);
INSERT INTO shape_bytes VALUES (1, POINT(1, 2), LINESTRING(POINT(3, 4), POINT(5, 6)),
    LINESTRING(POINT(0, 1), POINT(1, 1), POINT(2, 3)));
ALTER TABLE shape_bytes MODIFY a BLOB, MODIFY b TINYBLOB, MODIFY c LONGBLOB NOT NULL;
CREATE TABLE shapes_again LIKE shape_bytes;
INSERT INTO shapes_again SELECT * FROM shape_bytes;
ALTER TABLE shapes_again MODIFY a POINT, MODIFY b GEOMETRY, MODIFY c LINESTRING NOT NULL;
INSERT INTO shape_bytes VALUES (2, NULL, 'b', 'c');
"""
LONE_SURROGATES = """
CREATE TABLE lone (id INT, a VARCHAR(9) CHARSET ucs2, b VARCHAR(9) CHARSET ucs2,
    c VARCHAR(9) CHARSET ucs2, d CHAR(2) CHARSET ucs2);
INSERT INTO lone VALUES (1, x'DF84', x'0061DF84', x'D83CDF84', x'0061DC80'),
    (2, x'DC80D800', x'D800', x'DFFF0062', x'D8000061');
ALTER TABLE lone MODIFY a VARCHAR(9) CHARSET utf16, MODIFY b VARCHAR(9) CHARSET utf16le,
    MODIFY c VARCHAR(9) CHARSET latin1,
    MODIFY d CHAR(2) CHARSET cp1251;
"""
TOO_LONG = """
CREATE TABLE too_long (id INT, a MEDIUMTEXT CHARACTER SET latin1, b BLOB,
    c TEXT CHARACTER SET utf8mb4, d TEXT CHARACTER SET latin1,
    e MEDIUMBLOB, f TEXT CHARACTER SET latin1);
INSERT INTO too_long VALUES (1, REPEAT('abcdefg', 10000), REPEAT('x', 300), REPEAT('ä', 150),
    REPEAT('ä', 300), REPEAT('x', 65536),
    REPEAT('k', 256)), (2, 'a', 'b', 'c', 'd', 'e', 'f');
ALTER TABLE too_long MODIFY a TEXT CHARACTER SET latin1, MODIFY b TINYBLOB,
    MODIFY c TINYTEXT CHARACTER SET utf8mb4,
    MODIFY d TINYTEXT CHARACTER SET utf8mb4, MODIFY e BLOB,
    MODIFY f TINYTEXT CHARACTER SET latin1 COLLATE latin1_bin;
"""
NUMBERS = "".join(
    f"""
CREATE TABLE numbers_{at} (id INT NOT NULL, a INT, KEY (id)) ENGINE={engine};
INSERT INTO numbers_{at} VALUES (0, 1), (0, 2), (1, 3), (0, 4), (9, 5), (0, 6), (13, 7), (2, 8),
    (0, 9);
SET auto_increment_increment = {increment}, auto_increment_offset = {offset};
ALTER TABLE numbers_{at} {clause};
SET auto_increment_increment = 1, auto_increment_offset = 1;
"""
    for at, (engine, clause, (increment, offset)) in enumerate(
        product(
            ("InnoDB", "MyISAM"),
            (
                "MODIFY id INT NOT NULL AUTO_INCREMENT",
                "ADD n INT AUTO_INCREMENT UNIQUE",
                "ADD n INT AUTO_INCREMENT UNIQUE, ALGORITHM=COPY",
            ),
            ((5, 3), (5, 5), (10, 7), (5, 30)),
        )
    )
)
CHARACTER_SETS = """
CREATE TABLE added (id INT, v VARCHAR(5)) CHARACTER SET latin1;
INSERT INTO added VALUES (1, 'x'), (2, 'A');
ALTER TABLE added ADD a VARCHAR(5) DEFAULT 'x', ADD b ENUM('x') DEFAULT 'x', CHARACTER SET utf8mb4;
ALTER TABLE added ADD c CHAR(3), DEFAULT CHARACTER SET latin2, COLLATE latin2_bin;
ALTER TABLE added ADD d TEXT, CONVERT TO CHARACTER SET cp1251;
CREATE TABLE redefined (id INT, v VARCHAR(5), n INT, w CHAR(4) COLLATE latin1_bin)
    CHARACTER SET latin1;
INSERT INTO redefined VALUES (1, 'ä', 5, 'ä'), (2, 'A', 6, 'A');
ALTER TABLE redefined MODIFY n VARCHAR(9) FIRST, CHANGE v vv VARCHAR(6),
    MODIFY w CHAR(4) COLLATE latin1_bin, CHARACTER SET utf8mb4;
CREATE TABLE labels (id INT, e ENUM('a','Ab'), s SET('a','b c')) CHARACTER SET ucs2;
INSERT INTO labels VALUES (1, 'a', 'a'), (2, 'Ab', 'a,b c');
ALTER TABLE labels CONVERT TO CHARACTER SET utf16;
"""
IF_NOT_EXISTS = """
CREATE TABLE changed (id INT, b BIGINT);
INSERT INTO changed VALUES (1, 2);
ALTER TABLE changed CHANGE b e INT, ADD COLUMN IF NOT EXISTS e VARCHAR(5);
CREATE TABLE changed_away (id INT, b BIGINT);
INSERT INTO changed_away VALUES (1, 2);
ALTER TABLE changed_away CHANGE b e INT, ADD COLUMN IF NOT EXISTS b VARCHAR(5);
CREATE TABLE dropped (id INT, b BIGINT);
INSERT INTO dropped VALUES (1, 2);
ALTER TABLE dropped DROP COLUMN b, ADD COLUMN IF NOT EXISTS b VARCHAR(5);
CREATE TABLE added_twice (id INT);
INSERT INTO added_twice VALUES (1);
ALTER TABLE added_twice ADD e INT, ADD COLUMN IF NOT EXISTS e VARCHAR(5);
"""
CASES = {
    "columns that are there when they are added": (IF_NOT_EXISTS, ("mariadb",)),
    "character sets that a later clause sets": (CHARACTER_SETS, SERVERS),
    "numbers with an increment and an offset": (NUMBERS, SERVERS),
    "TEXT and BLOB that are too long": (TOO_LONG, SERVERS),
    "surrogates that stand alone": (LONE_SURROGATES, SERVERS),
    "one geometry in another": (SHAPES, SERVERS),
    "VARCHAR, TEXT and BLOB of other sizes": (SIZES, SERVERS),
    "ZEROFILL": (ZEROFILLS, SERVERS),
    "FLOAT(M,D) in place and copied": (REALS, SERVERS),
    "NULL to NOT NULL": (NULLS, SERVERS),
    "CURRENT_TIMESTAMP and literals": (NOW, SERVERS),
    "NOT NULL without a default": (IMPLIED, SERVERS),
    "implicit defaults of TIMESTAMP": (IMPLICIT, SERVERS),
    "expressions": (EXPRESSIONS, ("9.7", "mariadb")),
    "defaults of other columns that do not fit": (UNFIT_DEFAULTS, ("9.7", "mariadb")),
    "a default with a zero in its day": (ZERO_DAY, ("5.7", "9.7")),
}


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Server:
    return server_factory.shared(request.param)


@pytest.mark.parametrize("charset", ["ucs2", "utf16", "utf32", "utf16le"])
def test_labels_that_a_server_reads_anew_are_refused(server: Server, charset: str) -> None:
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in (
            "DROP DATABASE IF EXISTS read_anew",
            "FLUSH LOGS",
            "CREATE DATABASE read_anew",
            "USE read_anew",
            "SET sql_mode = ''",
            "CREATE TABLE labels (id INT, e ENUM('a','Ab')) CHARACTER SET utf8mb4",
            f"ALTER TABLE labels CONVERT TO CHARACTER SET {charset}",
        ):
            cursor.execute(statement)
        cursor.execute("SHOW CREATE TABLE labels")
        assert "enum('a','Ab')" not in cursor.fetchall()[0][1]
        cursor.execute("FLUSH LOGS")
    error = applier.replay([server.binlog_files()[-2]]).error
    assert error is not None and error.number == 1235


def test_rows_after_an_alter_table_are_those_of_the_server(server: Server) -> None:
    name = server.installed.recipe.name
    statements = ["SET sql_mode = ''", "SET timestamp = 1600000000.123456"]
    for sql, servers in CASES.values():
        if name in servers:
            statements += [statement.strip() for statement in sql.split(";\n") if statement.strip()]
    tables, said = run_with_twins(server, statements)
    assert said == []
    assert differences(tables) == []
