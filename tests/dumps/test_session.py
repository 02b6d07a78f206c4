"""The dump's own session: its SET statements, its character set, the database of its tables, and
where it ends."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

import applier
from applier.cli.main import cli
from applier.errors import InputError, ReplicationError

CHILD_FIRST = """CREATE TABLE a_child (id INT PRIMARY KEY, p INT, \
FOREIGN KEY (p) REFERENCES b_parent (id));
INSERT INTO a_child VALUES (1, 1);
CREATE TABLE b_parent (id INT PRIMARY KEY);
INSERT INTO b_parent VALUES (1);
"""


def test_a_child_may_come_before_its_parent() -> None:
    off = (
        "/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;\n"
        "USE d;\n"
    )
    back = "/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;\n"
    tables = applier.load_schema(off + CHILD_FIRST + back)
    assert tables["d.a_child"].rows() == [(1, 1)]
    with pytest.raises(
        InputError, match=r"line 8: Cannot add or update a child row.*FOREIGN_KEY_CHECKS=0"
    ):
        applier.load_schema(off + CHILD_FIRST + back + "INSERT INTO a_child VALUES (2, 9);")
    with pytest.raises(InputError, match="Next: put SET FOREIGN_KEY_CHECKS=0 before"):
        applier.load_schema("USE d;" + CHILD_FIRST)


@pytest.mark.parametrize(
    ("head", "literal", "stored"),
    [
        (b"SET NAMES utf8mb4", "'é'".encode(), "é"),
        (b"SET NAMES latin1", b"'\xe9\\n'", "é\n"),
        (
            b"SET @old = @@character_set_client; SET NAMES latin1; SET character_set_client = @old",
            "'é'".encode(),
            "é",
        ),
        (b"SET NAMES binary", "'é'".encode(), "é"),
        (b"SET NAMES cp1251", b"'\xff'", "я"),
        (b"SET NAMES latin1 COLLATE latin1_bin, @a = 1", b"_binary '\xc3\xa9'", "é"),
    ],
)
def test_text_is_in_the_character_set_of_the_dump(head: bytes, literal: bytes, stored: str) -> None:
    sql = (
        head
        + b"; CREATE TABLE d.t (c VARCHAR(9) CHARACTER SET utf8mb4); INSERT INTO d.t VALUES ("
        + literal
        + b");"
    )
    assert applier.load_schema(sql.decode("utf-8", "surrogateescape"))["d.t"].rows() == [(stored,)]


def test_a_vector_is_read_from_its_bytes() -> None:
    """As mysqldump of 9.x writes it, without --hex-blob and with it."""
    sql = (
        b"CREATE TABLE d.t (v VECTOR(3)); SET NAMES utf8mb4; INSERT INTO d.t VALUES "
        rb"(_binary '\0\0"
        b"\x80?"
        rb"\0\0\0@\0\0@@'), (0x0000803F), (NULL);"
    )
    rows = applier.load_schema(sql.decode("utf-8", "surrogateescape"))["d.t"].rows()
    assert rows == [(struct.pack("<3f", 1, 2, 3),), (struct.pack("<f", 1),), (None,)]
    for wrong in ("0x0000803F0000803F0000803F0000803F", "'abc'", "0x0000C07F"):
        with pytest.raises(InputError, match=r"column 'v'|'v' cannot"):
            applier.load_schema(f"CREATE TABLE d.t (v VECTOR(3)); INSERT INTO d.t VALUES ({wrong})")


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SET NAMES sjis; INSERT INTO d.t VALUES ('é')", "text in sjis"),
        (
            "SET SQL_MODE='NO_BACKSLASH_ESCAPES'; INSERT INTO d.t VALUES ('\\\\')",
            "NO_BACKSLASH_ESCAPES",
        ),
        (
            "SET FOREIGN_KEY_CHECKS=IF(1,0,1); INSERT INTO d.t VALUES ('a'); SET @a = 1",
            "foreign_key_checks",
        ),
        ("SET NAMES klingon; INSERT INTO d.t VALUES ('a')", "character_set_client"),
        (
            (
                "SET TIME_ZONE='Mars/Base'; CREATE TABLE d.m (t TIMESTAMP); "
                "INSERT INTO d.m VALUES ('2024-01-01')"
            ),
            "time zone",
        ),
    ],
)
def test_what_is_not_known_of_the_session_is_refused(sql: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        applier.load_schema(f"CREATE TABLE d.t (c VARCHAR(9));\n{sql};")


def test_timestamps_are_in_the_time_zone_of_the_dump() -> None:
    notes: list[str] = []
    sql = """CREATE TABLE d.t (t TIMESTAMP NULL); SET TIME_ZONE='+02:00';
    INSERT INTO d.t VALUES ('2024-01-01 02:00:00');
    SET TIME_ZONE='+00:00'; INSERT INTO d.t VALUES ('2024-01-01 01:00:00');"""
    rows = applier.load_schema(sql, note=notes.append)["d.t"].rows()
    assert [row[0] for row in rows] == [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (0, 1)]
    assert notes == []
    applier.load_schema(
        "CREATE TABLE d.t (t TIMESTAMP NULL); INSERT INTO d.t VALUES (NULL), (NULL);",
        note=notes.append,
    )
    assert [note[:40] for note in notes] == ["2 rows with TIMESTAMP columns were read "]


def test_names_in_double_quotes() -> None:
    sql = """SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO,ANSI';
    CREATE TABLE "d"."t" ("a" INT, "g" INT AS ("a" + 1), "c" VARCHAR(9) DEFAULT 'x"');
    INSERT INTO "d"."t" ("a") VALUES (4);"""
    assert applier.load_schema(sql)["d.t"].rows() == [(4, 5, 'x"')]
    plain = applier.load_schema(
        """CREATE TABLE d.t (c VARCHAR(9)); INSERT INTO d.t VALUES ("a\\"b"), ("a""b"), ('a"b');"""
    )
    assert plain["d.t"].rows() == [('a"b',)] * 3


# the database of the tables

BARE = "CREATE TABLE t (a INT PRIMARY KEY);\nINSERT INTO t VALUES (1);\n"


@pytest.mark.parametrize(
    ("head", "options", "name"),
    [
        ("-- MySQL dump 10.13\n--\n-- Host: localhost    Database: shop\n", {}, "shop.t"),
        ("-- phpMyAdmin SQL Dump\n--\n-- Database: `my shop`\n--\n", {}, "my shop.t"),
        ("", {"default_database": "d"}, "d.t"),
        ("-- Host: localhost    Database: shop\n", {"default_database": "d"}, "d.t"),
        ("", {"database": "only"}, "only.t"),
        ("USE used;\n", {"default_database": "d"}, "used.t"),
        ("-- Host: localhost    Database: shop\n", {"rewrite_db": "shop:other"}, "other.t"),
    ],
)
def test_the_database_of_a_dump_without_any(
    tmp_path: Path, head: str, options: dict[str, str], name: str
) -> None:
    path = tmp_path / "dump.sql"
    path.write_text(head + BARE + "-- Dump completed\n")
    tables = applier.load_schema(path, **options)
    assert [table.definition.full_name for table in tables] == [name]


def test_without_a_database_the_error_names_the_option(tmp_path: Path) -> None:
    path = tmp_path / "dump.sql"
    path.write_text(BARE)
    with pytest.raises(InputError, match="--default-database NAME") as caught:
        applier.load_schema(path)
    assert (caught.value.code, caught.value.file) == ("BL304", str(path))
    shown = CliRunner().invoke(cli, ["explain", str(path), "--server", "9.7", "--details", "--all"])
    assert shown.output.startswith("t  InnoDB, primary key\n")


# what is left out, and where a dump ends


def test_filters_and_new_names_hold_for_the_dump() -> None:
    sql = """CREATE DATABASE shop; CREATE DATABASE old; USE shop;
    DROP TABLE IF EXISTS a, b; CREATE TABLE a (x INT);
    CREATE TABLE b (x INT, FOREIGN KEY (x) REFERENCES `shop`.`a` (x));
    INSERT INTO a VALUES (1); INSERT INTO shop.b VALUES (1); CREATE TABLE old.c (x INT);
    CREATE TABLE mysql.user (x INT);
    CREATE TRIGGER t1 BEFORE INSERT ON a FOR EACH ROW SET @a = 1;"""
    notes: list[str] = []
    everything = applier.load_schema(sql, note=notes.append)
    assert [table.definition.full_name for table in everything] == ["shop.a", "shop.b", "old.c"]
    assert notes == [
        "left out of the given SQL: mysql (1 table); name it with --database to load it"
    ]
    part = applier.load_schema(sql, exclude_table="shop.b", rewrite_db="shop:new")
    assert [table.definition.full_name for table in part] == ["new.a", "old.c"]
    assert sorted(part.databases) == ["new", "old"]
    renamed = applier.load_schema(sql, database="shop", rewrite_db="shop:new")
    assert renamed["new.b"].definition.foreign_keys[0].referenced_database == "new"
    assert (len(renamed["new.b"]), sorted(renamed.databases)) == (1, ["new"])
    assert [table.definition.full_name for table in applier.load_schema(sql, table="%.c")] == [
        "old.c"
    ]


HEAD = "-- MySQL dump 10.13  Distrib 8.0.36\n"
WHOLE = f"{HEAD}CREATE TABLE d.t (a INT, b VARCHAR(9));\nINSERT INTO d.t VALUES (1,'x'),(2,'y');\n"


@pytest.mark.parametrize(
    "content",
    [WHOLE[: WHOLE.index("'y'") + 1], WHOLE[:-4], WHOLE[: WHOLE.index("INT,") + 4], WHOLE[:-2]],
)
def test_a_dump_that_ends_in_the_middle_of_a_statement(tmp_path: Path, content: str) -> None:
    path = tmp_path / "cut.sql"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        applier.load_schema(path)
    assert (caught.value.code, caught.value.file) == ("BL208", str(path))
    assert caught.value.message.startswith(
        f"line {2 if 'INSERT' not in content else 3}: the dump ends in the middle of a statement"
    )


def test_a_dump_that_may_be_cut_off_is_said(tmp_path: Path) -> None:
    path, notes = tmp_path / "cut.sql", list[str]()
    path.write_text(WHOLE)
    assert len(applier.load_schema(path, note=notes.append)["d.t"]) == 2
    path.write_text(WHOLE + "-- Dump completed on 2026-11-22\n")
    applier.load_schema(path, note=notes.append)
    assert notes == [
        f"{path} does not end with `-- Dump completed`, as its head promises: it may be cut off"
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"--\n-- PostgreSQL database dump\n--\n", "PostgreSQL"), (b"PGDMP\x01\x0e", "PostgreSQL"),
        (b"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n", "SQLite"),
        (b"\xfebin\x00\x00\x00\x00", "a binary log"),
        (b'<?xml version="1.0"?>\n<mysqldump>', "--xml"), (b"\x00\x01\x02\x03", "not text"),
        (b"", "the dump is empty"),
        (b"-- MySQL dump 10.13\n\n", "the dump is empty"),
    ],
)  # fmt: skip
def test_what_is_no_dump(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "schema.sql"
    path.write_bytes(content)
    done = CliRunner().invoke(cli, ["explain", str(path), "--details"], standalone_mode=False)
    assert isinstance(done.exception, InputError)
    assert says in done.exception.message
    assert done.exception.exit_code == 2


def test_standard_input() -> None:
    arguments = ["explain", "-", "--server", "9.7", "--details", "--all"]
    shown = CliRunner().invoke(cli, arguments, input="CREATE TABLE d.t (a INT PRIMARY KEY);")
    assert shown.output.startswith("d.t  InnoDB, primary key\n")
    for command in (
        ["replay", "-"],
        ["forecast", "-"],
        ["verify", "-", "--into", "mysql://root@localhost"],
        ["recover", ".", "--source", "-"],
        ["recover", ".", "--info", "-"],
    ):
        done = CliRunner().invoke(
            cli, [*command, "--schema", "-"], standalone_mode=False, input="x"
        )
        assert "both come from standard input" in str(done.exception)


def test_a_filter_spares_the_rest_of_the_database() -> None:
    sql = (
        "DROP DATABASE IF EXISTS d; CREATE DATABASE d; USE d; CREATE TABLE a (x INT); "
        "CREATE TABLE b (x INT);"
    )
    notes: list[str] = []
    assert [
        table.definition.name
        for table in applier.load_schema(sql, exclude_table="d.b", note=notes.append)
    ] == ["a"]
    assert notes == ["a filter is given: DROP DATABASE d of the given SQL was left out"]


def test_a_timestamp_of_show_create_table_has_no_hidden_default(tmp_path: Path) -> None:
    """explicit_defaults_for_timestamp=ON on a 5.7: what is off by default there changed the dump's
    tables (5.7.29)."""
    table = "CREATE TABLE d.t (a timestamp NOT NULL, b timestamp NULL DEFAULT NULL);\n"
    path = tmp_path / "dump.sql"
    for head, hidden in (
        ("", True),
        ("-- MySQL dump 10.13  Distrib 5.7.29\n", False),
        ("/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;\n", False),
        ("SET explicit_defaults_for_timestamp = 1;\n", False),
        ("-- MySQL dump 10.13\nSET explicit_defaults_for_timestamp = OFF;\n", True),
    ):
        path.write_text(f"{head}{table}-- Dump completed\n")
        column = applier.load_schema(path, server="5.7")["d.t"].definition.columns[0]
        assert (head, column.on_update is not None) == (head, hidden)


def test_a_default_of_a_float_with_digits() -> None:
    """Kamailio's acc.duration; digits beyond those of the column are rounded."""
    create = (
        "CREATE TABLE d.t (id INT, a FLOAT(10,3) NOT NULL DEFAULT '0.000', b DOUBLE(5,2) "
        "NOT NULL DEFAULT 12, c DOUBLE(5,2) DEFAULT '0.125');"
    )
    assert applier.load_schema(create + "INSERT INTO d.t (id) VALUES (1);")["d.t"].rows() == [
        (1, 0.0, 12.0, 0.12)
    ]


UNKNOWN = """CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL DEFAULT 1,
    at DATETIME DEFAULT CURRENT_TIMESTAMP, day DATE DEFAULT (CURRENT_DATE), n TEXT, KEY (at));
INSERT INTO d.t VALUES (1, 1, '2001-01-01', '2001-01-01', 'x');
"""


@pytest.mark.parametrize(
    "insert",
    [
        "(id) VALUES (2)",
        "(id, at) VALUES (2, '2001-01-01')",
        "(id, at, day) VALUES (2, NOW(), '2001-01-01')",
        "(at, day, n) VALUES ('2001-01-01', '2001-01-01', UUID())",
        "(at, day, n) VALUES ('2001-01-01', '2001-01-01', LAST_INSERT_ID())",
        "(at, day, n) VALUES ('2001-01-01', '2001-01-01', f(1))",
        "(a, at, day) VALUES (NULL, '2001-01-01', '2001-01-01')",
    ],
)
def test_what_a_dump_leaves_to_the_server_that_loads_it_is_not_guessed(
    insert: str, tmp_path: Path
) -> None:
    """Nobody needs such a value to explain a table; the rows themselves are refused."""
    path = tmp_path / "seed.sql"
    path.write_text(f"{UNKNOWN}INSERT INTO d.t {insert};\n-- Dump completed\n")
    tables = applier.load_schema(path)
    with pytest.raises(ReplicationError) as caught:
        tables["d.t"].rows()
    assert caught.value.number == 1235
    assert CliRunner().invoke(cli, ["explain", str(path)]).exit_code == 0


def test_an_insert_of_a_dump_that_updates() -> None:
    """Adminer's INSERT+UPDATE."""
    sql = "CREATE TABLE d.t (id INT PRIMARY KEY, n INT); INSERT INTO d.t VALUES (1, 1);"
    sql += (
        "INSERT INTO d.t (id, n) VALUES\n(1,\t5),\n(2,\t6)\nON DUPLICATE KEY UPDATE n = VALUES(n);"
    )
    assert applier.load_schema(sql)["d.t"].rows() == [(1, 5), (2, 6)]


def test_timestamps_beside_expressions_are_in_the_time_zone_of_the_dump() -> None:
    sql = "SET time_zone = '+02:00'; CREATE TABLE d.t (id INT PRIMARY KEY, at TIMESTAMP NULL);"
    sql += "INSERT INTO d.t VALUES (1 + 1, '2024-01-01 02:00:00'), (1, '2024-01-01 02:00:00');"
    sql += "INSERT INTO d.t VALUES (1, NULL) ON DUPLICATE KEY UPDATE at = '2024-01-01 03:00:00';"
    assert applier.load_schema(sql)["d.t"].rows() == [
        (1, datetime(2024, 1, 1, 1, tzinfo=UTC)),
        (2, datetime(2024, 1, 1, tzinfo=UTC)),
    ]


def test_variables_put_back_with_ifnull() -> None:
    """HeidiSQL's last lines."""
    sql = "SET @OLD_TIME_ZONE = @@TIME_ZONE; SET TIME_ZONE = '+00:00'; SET @OLD_SQL_MODE = 'ANSI';"
    sql += "SET TIME_ZONE = IFNULL(@OLD_TIME_ZONE, 'system'), SQL_MODE = IFNULL(@NONE, '');"
    sql += 'CREATE TABLE d.t (a TEXT); INSERT INTO d.t VALUES ("x");'
    sql += "SET SQL_MODE = IFNULL(@OLD_SQL_MODE, ''); INSERT INTO \"d\".\"t\" VALUES ('y');"
    assert applier.load_schema(sql)["d.t"].rows() == [("x",), ("y",)]
