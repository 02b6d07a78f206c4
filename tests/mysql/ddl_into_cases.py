"""DDL that a server takes from a replay: what is there before, and what is sent."""

from __future__ import annotations

INTO_CASES = [
    (
        "mariadb",
        "INSERT DELAYED of a procedure",
        (
            "CREATE TABLE t (a INT)",
            "CREATE PROCEDURE p () INSERT DELAYED INTO t VALUES (1), (2)",
            "SET binlog_format = 'STATEMENT'",
            "CALL p()",
        ),
    ),
    (
        "mariadb",
        "a routine in sql_mode ORACLE, then rows",
        (
            "CREATE TABLE t (a INT)",
            "SET sql_mode = 'ORACLE'",
            "CREATE PROCEDURE p AS BEGIN NULL; END",
            "INSERT INTO t VALUES (1), (2)",
            "UPDATE t SET a = a + 1",
        ),
    ),
    (
        "mariadb",
        "SET STATEMENT around what commits by itself",
        (
            "CREATE TABLE t (a INT)",
            "INSERT INTO t VALUES (1)",
            "SET STATEMENT lock_wait_timeout = 5 FOR ALTER TABLE t ADD b INT DEFAULT 3",
            "INSERT INTO t VALUES (2, 4)",
        ),
    ),
    (
        "5.7",
        "a database's name and a client in koi8r",
        (
            "CREATE TABLE t (a INT)",
            "CREATE DATABASE `бд`",
            "SET character_set_client = koi8r",
            "USE `бд`".encode("koi8-r"),
            "CREATE TABLE d.u (b VARCHAR(10))",
            "INSERT INTO d.u VALUES (1)",
            "DROP DATABASE `бд`".encode("koi8-r"),
        ),
    ),
    (
        "mariadb",
        "check_constraint_checks is off for an ALTER",
        (
            "CREATE TABLE t (a INT, CHECK (a < 10))",
            "SET check_constraint_checks = 0",
            "INSERT INTO t VALUES (11)",
            "ALTER TABLE t ADD b INT DEFAULT 20 CHECK (b < 10)",
            "SET check_constraint_checks = 1",
            "CREATE TABLE u (a INT)",
            "INSERT INTO u VALUES (1)",
            "SET check_constraint_checks = 0",
            "ALTER TABLE u ADD b INT DEFAULT 20 CHECK (b < 10)",
        ),
    ),
    (
        "mariadb",
        "a system-versioned table in a session that may alter it",
        (
            "SET system_versioning_alter_history = KEEP",
            "CREATE TABLE t (a INT) WITH SYSTEM VERSIONING",
            "INSERT INTO t VALUES (1)",
            "ALTER TABLE t ADD b INT DEFAULT 3",
        ),
    ),
    (
        "mariadb",
        "rows with a history of their own",
        (
            "CREATE TABLE t (a INT) WITH SYSTEM VERSIONING",
            "SET binlog_format = STATEMENT, system_versioning_insert_history = ON",
            (
                "INSERT INTO t (a, row_start, row_end) VALUES (1, '2020-01-01', '2021-01-01'), (2, "
                "'2020-01-01', '2030-01-01')"
            ),
            "SET system_versioning_insert_history = OFF",
            "INSERT INTO t VALUES (3)",
        ),
    ),
    (
        "mariadb",
        "sql_if_exists",
        (
            "CREATE TABLE t (a INT)",
            "SET sql_if_exists = ON",
            "RENAME TABLE x TO y, t TO u",
            "DROP TABLE x",
            "DROP VIEW v",
            "DROP PROCEDURE p",
            "DROP TRIGGER g",
            "DROP DATABASE e",
            "DROP SEQUENCE s",
            "INSERT INTO u VALUES (1)",
        ),
    ),
    *(
        (
            version,
            "tables with triggers and without in one statement",
            (
                "CREATE TABLE t (a INT) ENGINE=InnoDB",
                "CREATE TABLE u (a INT) ENGINE=InnoDB",
                "CREATE TABLE v (a INT) ENGINE=InnoDB",
                (
                    "CREATE TRIGGER t1 BEFORE INSERT ON t FOR EACH ROW INSERT INTO u VALUES (NEW.a "
                    "+ 1)"
                ),
                (
                    "CREATE TRIGGER u1 BEFORE INSERT ON u FOR EACH ROW INSERT INTO v VALUES (NEW.a "
                    "+ 1)"
                ),
                "INSERT INTO t VALUES (1)",
                "INSERT INTO t VALUES (2), (3)",
                "DROP TRIGGER u1",
                (
                    "CREATE TRIGGER v1 AFTER INSERT ON v FOR EACH ROW INSERT INTO u VALUES (NEW.a "
                    "+ 10)"
                ),
                "INSERT INTO v VALUES (5)",
                "RENAME TABLE v TO w",
                "INSERT INTO t VALUES (7)",
            ),
        )
        for version in ("5.7", "9.7", "mariadb")
    ),
    (
        "mariadb",
        "an empty geometry",
        (
            "CREATE TABLE t (a INT, g GEOMETRY)",
            "INSERT INTO t VALUES (1, POINT(1, 2))",
            "SET sql_mode = ''",
            "INSERT INTO t VALUES (2, NULL)",
            "DELETE FROM t WHERE a = 2",
            "ALTER TABLE t ADD h GEOMETRY NOT NULL",
            "UPDATE t SET a = 3",
            "DELETE FROM t",
        ),
    ),
    *(
        (
            version,
            "ALTER DATABASE without a name, of a routine elsewhere",
            (
                "CREATE DATABASE e",
                "CREATE PROCEDURE e.p () ALTER DATABASE CHARACTER SET latin2",
                "CREATE TABLE t (a CHAR(1))",
                "CALL e.p()",
                "CREATE TABLE u (a CHAR(1))",
                "DROP DATABASE e",
            ),
        )
        for version in ("5.7", "9.7", "mariadb")
    ),
    (
        "9.7",
        "a foreign key to a column that is not unique",
        (
            "SET restrict_fk_on_non_standard_key = OFF",
            "CREATE TABLE p (a INT, KEY (a))",
            "CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES p (a))",
            "INSERT INTO p VALUES (1)",
        ),
    ),
    (
        "5.7",
        "NULL in AUTO_INCREMENT",
        (
            "CREATE TABLE t (a INT AUTO_INCREMENT NULL UNIQUE, b INT)",
            "INSERT INTO t VALUES (NULL, 1), (NULL, 2), (5, 3)",
        ),
    ),
    (
        "5.7",
        "generated columns of a session in another time zone",
        (
            "SET time_zone = '+03:00'",
            (
                "CREATE TABLE t (id INT PRIMARY KEY, a TIMESTAMP NULL, b VARCHAR(30) AS (CONCAT(a, "
                "'x')) STORED, c INT AS (HOUR(a)) VIRTUAL)"
            ),
            "INSERT INTO t (id, a) VALUES (1, '2020-01-01 01:00:00'), (2, NULL)",
            "UPDATE t SET a = '2020-06-01 02:00:00' WHERE id = 2",
            "DELETE FROM t WHERE id = 1",
        ),
    ),
    (
        "9.7",
        "generated columns of a session in another time zone",
        (
            "SET time_zone = '+03:00'",
            (
                "CREATE TABLE t (id INT PRIMARY KEY, a TIMESTAMP NULL, b VARCHAR(30) AS (CONCAT(a, "
                "'x')) STORED, c INT AS (HOUR(a)) VIRTUAL)"
            ),
            "INSERT INTO t (id, a) VALUES (1, '2020-01-01 01:00:00'), (2, NULL)",
            "UPDATE t SET a = '2020-06-01 02:00:00' WHERE id = 2",
            "DELETE FROM t WHERE id = 1",
        ),
    ),
    (
        "9.7",
        "generated columns that tell how a document is stored",
        (
            (
                "CREATE TABLE t (j JSON, s INT AS (JSON_STORAGE_SIZE(j)) STORED, f INT AS "
                "(JSON_STORAGE_FREE(j)))"
            ),
            """INSERT INTO t (j) VALUES ('{"a": "long enough", "b": [1, 2]}')""",
            "UPDATE t SET j = JSON_SET(j, '$.a', 'x')",
            "UPDATE t SET j = JSON_REMOVE(j, '$.b')",
        ),
    ),
    (
        "mariadb",
        "CREATE OR REPLACE TABLE from a SELECT of another type",
        (
            "CREATE TABLE t (a INT)",
            "INSERT INTO t VALUES (1)",
            "CREATE OR REPLACE TABLE t AS SELECT 1.50 AS a",
            "CREATE OR REPLACE TABLE t AS SELECT 'x' AS b, 2 AS c",
        ),
    ),
    *(
        (
            version,
            "a session in swe7",
            (
                "SET NAMES swe7",
                "CREATE TABLE t (a VARCHAR(10)) CHARACTER SET swe7",
                "INSERT INTO t VALUES ('abc')",
                "CREATE TABLE u (a INT)",
                "INSERT INTO u VALUES (1)",
            ),
        )
        for version in ("5.7", "mariadb")
    ),  # 9.7.4 refuses SHOW STATUS in such a session
    *(
        (
            version,
            "a default by its bytes",
            (
                (
                    "CREATE TABLE t (a ENUM(0xE4, '1', '2') NOT NULL DEFAULT 0xE4, b SET('ö', 'x') "
                    "DEFAULT 0xF62C78) CHARACTER SET latin1"
                ),
                "INSERT INTO t VALUES ('1', 'x')",
                "INSERT INTO t VALUES (DEFAULT, DEFAULT)",
                "ALTER TABLE t ADD c ENUM('ü', 'z') NOT NULL DEFAULT 0xFC",
            ),
        )
        for version in ("5.7", "9.7", "mariadb")
    ),
    *(
        (
            version,
            "an update that moves rows between partitions",
            (
                "CREATE TABLE t (a INT, b INT)",
                (
                    "ALTER TABLE t PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (10), "
                    "PARTITION q VALUES LESS THAN (90))"
                ),
                "INSERT INTO t VALUES (1, 1), (2, 2), (11, 3), (12, 4), (21, 5)",
                "UPDATE t SET a = a + 10",
                "UPDATE t SET a = a - 10 WHERE a > 12",
            ),
        )
        for version in ("5.7", "9.7", "mariadb")
    ),
    (
        "mariadb",
        "YEAR(2)",
        (
            "SET sql_mode = ''",
            "CREATE TABLE t (a YEAR(2), b YEAR)",
            "INSERT IGNORE INTO t VALUES (0, 0), ('0000', '0'), (1900, 1900), (2000, 2000)",
            "UPDATE t SET b = 2001 WHERE a = 0",
        ),
    ),
    (
        "mariadb",
        "a table that is system-versioned for one column",
        (
            "CREATE TABLE t (a INT WITH SYSTEM VERSIONING, b INT)",
            "INSERT INTO t VALUES (1, 2)",
            "UPDATE t SET a = 2",
        ),
    ),
    *(
        (
            version,
            "a generated TIMESTAMP without explicit defaults",
            (
                "SET explicit_defaults_for_timestamp = OFF"
                if version == "9.7"
                else "SET sql_mode = ''",
                "CREATE TABLE t (a DATETIME, b TIMESTAMP GENERATED ALWAYS AS (a) STORED NOT NULL)",
                "INSERT INTO t (a) VALUES ('2020-01-01 00:00:00')",
                "INSERT IGNORE INTO t (a) VALUES (NULL)",
                "DELETE FROM t WHERE a IS NULL",
                "INSERT IGNORE INTO t (a) VALUES (NULL)",
            ),
        )
        for version in ("5.7", "9.7")
    ),
    *(
        (
            "mariadb",
            f"explicit_defaults_for_timestamp is {value}",
            (
                f"SET explicit_defaults_for_timestamp = {value}",
                "CREATE TABLE t (a TIMESTAMP, b TIMESTAMP)",
                "INSERT INTO t VALUES ('2020-01-01 00:00:00', '2020-01-01 00:00:00')",
            ),
        )
        for value in ("ON", "OFF")
    ),
    (
        "mariadb",
        "COLLATE DEFAULT",
        (
            (
                "CREATE TABLE t (a CHAR(10) COLLATE DEFAULT, b CHAR(1) CHARACTER SET latin2 "
                "COLLATE DEFAULT) COLLATE utf8mb4_bin"
            ),
            "ALTER TABLE t ADD c CHAR(11) COLLATE DEFAULT, ADD d CHAR(1)",
        ),
    ),
    *(
        (
            version,
            "a session in UTF-32",
            (
                "SET collation_connection = utf32_general_ci",
                "CREATE TABLE t (a VARCHAR(10)) CHARACTER SET utf32",
                "INSERT INTO t VALUES ('abc')",
                "ALTER TABLE t ADD b INT",
            ),
        )
        for version in ("5.7", "9.7", "mariadb")
    ),
    *(
        (
            version,
            "ENUM without a label beside an empty one",
            (
                "SET sql_mode = ''",
                "CREATE TABLE t (i INT, c ENUM('a', '', 'b'))",
                "INSERT INTO t VALUES (1, 'zz'), (2, ''), (3, 'b'), (4, NULL)",
                "ALTER TABLE t CHANGE c c ENUM('', 'a', 'b') CHARACTER SET latin2",
                "ALTER TABLE t CHANGE c c ENUM('a', '') NOT NULL",
            ),
        )
        for version in ("5.7", "9.7", "mariadb")
    ),
    *(
        (
            version,
            "prefixes as long as their column",
            (
                (
                    "CREATE TABLE t (a VARCHAR(20) NOT NULL, b CHAR(5), c BINARY, d INT, "
                    "UNIQUE KEY (a(20)), KEY (b(5), a(19)), KEY (c(1)))"
                ),
                "INSERT INTO t VALUES ('x', 'y', 'z', 1), ('u', 'y', 'z', 2)",
                "UPDATE t SET d = 3 WHERE a = 'u'",
                "ALTER TABLE t MODIFY a VARCHAR(40) NOT NULL, ADD e INT",
                "DELETE FROM t WHERE a = 'x'",
                "ALTER TABLE t DROP KEY a, ADD KEY f (a(10))",
                "ALTER TABLE t MODIFY a VARCHAR(5) NOT NULL",
            ),
        )
        for version in ("5.7", "9.7", "mariadb")
    ),
    (
        "9.7",
        "generated columns that depend on the SQL mode",
        (
            "SET sql_mode = 'TIME_TRUNCATE_FRACTIONAL'",
            "CREATE TABLE t (a DECIMAL(10,2), u INT UNSIGNED, g TIME(1) AS (a) STORED)",
            "INSERT INTO t (a, u) VALUES (1.55, 1), (2.55, 3)",
            "DELETE FROM t WHERE u = 3",
        ),
    ),
    (
        "9.7",
        "CREATE TABLE with options and SELECT",
        (
            "CREATE TABLE t ROW_FORMAT=DYNAMIC SELECT REPEAT('a', 50) c",
            "CREATE TABLE u COMMENT='x' PARTITION BY HASH (a) PARTITIONS 3 SELECT 1 AS a",
            "INSERT INTO t VALUES ('b')",
        ),
    ),
]
