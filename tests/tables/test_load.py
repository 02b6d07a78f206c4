"""Dumps into tables: every kind of literal, what changes no table, and what cannot be read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from decimal import Decimal
from pathlib import Path

import pytest
import zstandard

import applier
from applier.dumps.split import split_statements
from applier.errors import InputError

DUMP = """-- MySQL dump 10.13  Distrib 8.0.36; it's a comment
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!50503 SET NAMES utf8mb4 */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */ /*!80016 \
DEFAULT ENCRYPTION='N' */;

USE `shop`;
DROP TABLE IF EXISTS `item`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
CREATE TABLE `item` (
  `id` int NOT NULL AUTO_INCREMENT,
  `name` varchar(20) DEFAULT NULL, -- with ; in it
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=9 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
LOCK TABLES `item` WRITE;
/*!40000 ALTER TABLE `item` DISABLE KEYS */;
INSERT INTO `item` VALUES (1,'a;b'),(2,'it\\'s'),(3,'it''s'),(4,NULL);
INSERT INTO `item` (`name`, `id`) VALUES ('x\\n\\t\\\\\\0\\Z"',5);
/*!40000 ALTER TABLE `item` ENABLE KEYS */;
UNLOCK TABLES;
/*!50001 CREATE VIEW `v` AS SELECT 1 AS `id`*/;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`r`@`%`*/ /*!50003 TRIGGER `tr` BEFORE INSERT \
ON `item` FOR EACH ROW BEGIN
  SET NEW.name = 'x;'; INSERT INTO gone VALUES (1);
END */;;
DELIMITER ;
CREATE DEFINER=`r`@`%` PROCEDURE p() SELECT 1;
"""


def test_a_mysqldump() -> None:
    tables = applier.load_schema(DUMP)
    assert [table.definition.full_name for table in tables] == ["shop.item"]
    assert tables["shop.item"].rows() == [
        (1, "a;b"),
        (2, "it's"),
        (3, "it's"),
        (4, None),
        (5, 'x\n\t\\\0\x1a"'),
    ]
    assert tables["shop.item"].auto_increment == 9
    assert tables.databases["shop"].charset == "utf8mb4"
    assert tables.changes == 0


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".xz", lzma.compress),
        (".bz2", bz2.compress),
        (".zst", zstandard.compress),
        ("", bytes),
    ],
)
def test_packed_files(tmp_path: Path, suffix: str, pack: object) -> None:
    path = tmp_path / f"dump.sql{suffix}"
    path.write_bytes(pack(DUMP.encode()))  # type: ignore[operator]
    assert len(applier.load_schema(path)["shop.item"]) == 5


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zst"])
def test_a_packed_file_that_is_none(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"dump.sql{suffix}"
    path.write_bytes(b"CREATE TABLE d.t (a int);")
    assert len(applier.load_schema(path)) == 1
    for content in (b"", gzip.compress(DUMP.encode() * 99)[:-20], b"x"):
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            applier.load_schema(path)
        assert caught.value.file == str(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        applier.load_schema(tmp_path / "gone.sql")
    assert caught.value.file == str(tmp_path / "gone.sql")
    with pytest.raises(InputError):
        applier.load_schema(tmp_path)


@pytest.mark.parametrize(
    ("kind", "literal", "value"),
    [
        ("int", "-5", -5), ("int", "'7'", 7), ("int", "NULL", None),
        ("int unsigned", "4294967295", 4294967295), ("int", "1.5", 2), ("int", "2+3", 5),
        ("int", "DEFAULT", 42), ("bigint unsigned", "18446744073709551615", (1 << 64) - 1),
        ("decimal(10,2)", "1.005", Decimal("1.01")), ("decimal(5,2)", "-.5", Decimal("-0.50")),
        ("double", "1e10", 1e10),
        ("float", "'1.5'", 1.5),
        ("varchar(9)", "'a''b'", "a'b"), ("varchar(9)", "'\\%\\_'", "\\%\\_"),
        ("varchar(9)", "_utf8mb4'x'", "x"),
        ("varchar(9)", "CONCAT('a','b')", "ab"),
        ("varchar(9)", "0x414243", "ABC"), ("varchar(9)", "'中é'", "中é"),
        ("varchar(9) charset latin1", "'é'", "é"),
        ("char(5)", "'ab  '", "ab"),
        ("varbinary(9)", "0xDEADBEEF", b"\xde\xad\xbe\xef"),
        ("varbinary(9)", "_binary '\\0\\'a'", b"\0'a"),
        ("varbinary(9)", "x'4142'", b"AB"),
        ("varbinary(9)", "''", b""), ("varbinary(9)", "0x", b""),
        ("blob", "_binary 'a\\\\b\nc'", b"a\\b\nc"),
        ("binary(3)", "'a'", b"a\0\0"),
        ("bit(9)", "b'101010101'", 341), ("bit(9)", "_binary '\u0001'", 1),
        ("enum('a','b')", "'b'", "b"), ("enum('a','b')", "2", "b"),
        ("set('a','b','c')", "'c,a'", "a,c"), ("year", "2024", 2024), ("year", "0", 0),
        ("year", "'0'", 2000), ("bit(9)", "5", 5), ("bit(9)", "'5'", 53),
        ("set('a','b')", "3", "a,b"), ("varchar(9)", "007", "7"),
        ("date", "'2024-00-00'", "2024-00-00"),
        ("time(3)", "'-01:02:03.5'", None),
        ("json", "'{\"b\": 1, \"a\": [true, null]}'", '{"a": [true, null], "b": 1}'),
        ("json", "'\"\\\\u00e9\\\\n\"'", '"é\\n"'), ("timestamp", "'2024-01-01 00:00:00'", None),
        ("geometry", "0x00000000010100000000000000000000000000000000000000", None),
    ],
)  # fmt: skip
def test_literals(kind: str, literal: str, value: object) -> None:
    default = " DEFAULT 42" if literal == "DEFAULT" else ""
    tables = applier.load_schema(
        f"CREATE TABLE d.t (k int, c {kind}{default}, z int); INSERT INTO d.t VALUES "
        f"(1,{literal},3),(2,{literal},3);"
    )
    first, second = tables["d.t"].rows()
    assert first[1] == second[1]
    assert (first[0], first[2], second[0]) == (1, 3, 2)
    if value is not None or literal == "NULL":
        assert first[1] == value
    else:
        assert first[1] is not None


def test_columns_that_an_insert_leaves_out() -> None:
    tables = applier.load_schema(
        """CREATE TABLE d.t (a int, g int GENERATED ALWAYS AS (a * 2) STORED,
        v int AS (g + 1) VIRTUAL, h int DEFAULT 5 INVISIBLE,
        d varchar(3) DEFAULT 'x');
        INSERT INTO d.t (a) VALUES (1); INSERT INTO d.t (`d`, a, h) VALUES ('y', 2, 6);
        INSERT INTO d.t VALUES (3, DEFAULT, DEFAULT,
        'z');"""
    )
    assert tables["d.t"].rows() == [(1, 2, 3, 5, "x"), (2, 4, 5, 6, "y"), (3, 6, 7, 5, "z")]


def test_bytes_that_are_no_utf8() -> None:
    """mysqldump writes binary strings as they are; latin1 text stays readable."""
    head = (
        b"CREATE TABLE d.t (b varbinary(9), u varchar(9) CHARSET utf8mb4); INSERT INTO d.t VALUES "
    )
    tables = applier.load_schema(
        (head + b"('\xff\\0\xfe', 'a');").decode("utf-8", "surrogateescape")
    )
    assert tables["d.t"].rows() == [(b"\xff\0\xfe", "a")]
    text = (head + b"('', 'a\xffb');").decode("utf-8", "surrogateescape")
    with pytest.raises(InputError, match="text that is not UTF-8 in column `u`"):
        applier.load_schema(text)
    tables = applier.load_schema("SET NAMES binary; " + text)
    assert tables["d.t"].rows() == [(b"", b"a\xffb")]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("INSERT INTO d.gone VALUES (1)", "no CREATE TABLE"),
        ("INSERT INTO d.t VALUES (1,2)", "2 values for 1 columns"),
        ("INSERT INTO d.t (zz) VALUES (1)", "unknown column `zz`"),
        ("INSERT INTO d.t VALUES ('abc')", "abc"),
        ("INSERT INTO d.t VALUES (1),(", "more was expected"),
        ("INSERT INTO d.t VALUES (1) garbage", "garbage"),
        ("INSERT INTO d.t VALUES (99999999999)", "Out of range"),
        ("INSERT INTO d.k VALUES (1),(1)", "Duplicate entry '1' for key"),
        ("CREATE TABLE d.t (a int)", "already exists"),
        ("ALTER TABLE d.t DROP COLUMN zz", "check that column"),
        ("INSERT INTO d.t VALUES (1), x", "x"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded(sql: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        applier.load_schema(
            "CREATE TABLE d.t (a int);\nCREATE TABLE d.k (a int PRIMARY KEY);\n-- a comment\n\n"
            f"{sql};\n"
        )
    assert caught.value.message.startswith("line 5: ")
    assert says in caught.value.message
    assert caught.value.file is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "GRANT ALL ON *.* TO x",
        "SET @a = 1",
        "ANALYZE TABLE t",
        "CREATE USER x",
        "CREATE VIEW v AS SELECT 1",
        "CALL p()",
    ],
)
def test_what_changes_no_table(sql: str) -> None:
    assert len(applier.load_schema(f"{sql};\nCREATE TABLE d.t (a int);")) == 1


def test_what_stands_behind_a_trigger_is_not_lost() -> None:
    """mysqldump goes back to the usual delimiter before the next table."""
    tables = applier.load_schema(
        DUMP
        + (
            "USE `shop`; CREATE TABLE `later` (`a` int);\n"
            "INSERT INTO `later` VALUES (1),('2'),('1.5'),(0x03);\n"
        )
    )
    assert tables["shop.later"].rows() == [(1,), (2,), (2,), (3,)]


def test_every_statement_that_changes_rows_counts() -> None:
    sql = """CREATE TABLE d.t (a int PRIMARY KEY, b int); USE d;
    INSERT INTO t SET a = 1, b = 2; INSERT INTO t VALUES (2, 3), (3, 4), (4, 5);
    UPDATE t SET b = b * 10 WHERE a > 1; DELETE FROM t WHERE a = 3;
    REPLACE INTO t VALUES (4, 0); INSERT IGNORE INTO t VALUES (4, 9), (5, 5);
    DROP TABLE IF EXISTS u; CREATE TABLE u (z int); INSERT INTO u VALUES (1); TRUNCATE u;
    RENAME TABLE u TO v;
    CREATE TABLE w (x int); DROP TABLE w; CREATE TABLE w (y int);"""
    tables = applier.load_schema(sql)
    assert tables["d.t"].rows() == [(1, 2), (2, 30), (4, 0), (5, 5)]
    assert (len(tables["d.v"]), [column.name for column in tables["d.w"].definition.columns]) == (
        0,
        ["y"],
    )


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO d.t SELECT STD(a) FROM d.t",
        "GARBAGE in",
        "LOAD DATA INFILE 'x' INTO TABLE d.t",
        "DROP TABLE d.gone",
        "UPDATE d.gone SET a = 1",
    ],
)
def test_no_statement_is_dropped_without_a_word(sql: str) -> None:
    with pytest.raises(InputError, match="line 2: "):
        applier.load_schema(f"CREATE TABLE d.t (a int);\n{sql};")


def test_the_head_of_a_mariadb_dump() -> None:
    head = (
        "/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump 10.19\n--\n-- Host: x\n"
        "/*!40101 SET NAMES utf8mb4 */;\n/*M!100616 SET @a=1 */;\n"
    )
    assert len(applier.load_schema(head + "--\nCREATE TABLE d.t (a int);")) == 1


def test_an_empty_dump() -> None:
    for text in (";", "-- empty\n", "\n\n", "/* nothing */;"):
        assert len(applier.load_schema(text)) == 0


def test_statements_and_their_lines() -> None:
    data = (
        b'-- one\nA \'x;y\' `;` "\\";" -- c;\n;\n# z;\nB /* ; */ C;\n\nDELIMITER //\nD;E//\n'
        b"DELIMITER ;\nF"
    )
    found = [(raw.line, raw.sql, raw.complete) for raw in split_statements(io.BytesIO(data))]
    assert found == [
        (2, b'A \'x;y\' `;` "\\";" -- c;', True),
        (5, b"B /* ; */ C", True),
        (8, b"D;E", True),
        (10, b"F", False),
    ]


def test_copies_are_independent() -> None:
    tables = applier.load_schema(DUMP)
    twin = tables.copy()
    twin["shop.item"].truncate()
    assert (len(tables["shop.item"]), len(twin["shop.item"])) == (5, 0)


def test_a_key_error_names_the_tables() -> None:
    with pytest.raises(KeyError, match=r"no table 'shop\.x'; tables: shop\.item"):
        applier.load_schema(DUMP)["shop.x"]


def test_rows_without_a_number_get_the_next_one() -> None:
    create = "CREATE TABLE d.t (id int AUTO_INCREMENT PRIMARY KEY, a int) AUTO_INCREMENT=5;"
    left_out = applier.load_schema(
        create + "INSERT INTO d.t (a) VALUES (1), (2); INSERT INTO d.t (a) VALUES (3);"
    )
    assert left_out["d.t"].rows() == [(5, 1), (6, 2), (7, 3)]
    null = applier.load_schema(
        create + "INSERT INTO d.t VALUES (NULL, 1), (9, 2), (NULL, 3), (0, 4);"
    )
    assert sorted(null["d.t"].rows()) == [(5, 1), (9, 2), (10, 3), (11, 4)]
