"""SQL out of scripts: what mysqltest would send, for scripts of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers.language import ScriptInterpreter
from tests.peers.statements import is_sent, kept_aside


def sql_of(folder: Path, script: str, **others: str) -> list[str]:
    for name, text in others.items():
        (folder / f"{name}.inc").write_text(text)
    (folder / "a.test").write_text(script)
    interpreter = ScriptInterpreter([folder], folder / "std_data")
    interpreter.file(folder / "a.test")
    return interpreter.statements


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("INSERT INTO t\n  VALUES (1);\nDELETE FROM t;",
         ["INSERT INTO t\n  VALUES (1)", "DELETE FROM t"]),
        ("INSERT INTO t VALUES ('a;b', \"c;'\", 'd\\';');",
         ["INSERT INTO t VALUES ('a;b', \"c;'\", 'd\\';')"]),
        ("# don't\n-- error 1062\n--echo don't;\nINSERT INTO t\n# don't\nVALUES (1);",
         ["INSERT INTO t\nVALUES (1)"]),
        (
            "delimiter //;\nCREATE TRIGGER x BEGIN A; B; END//\ndelimiter ;//\nDROP TRIGGER x;",
            ["CREATE TRIGGER x BEGIN A; B; END", "DROP TRIGGER x"],
        ),
        ("--delimiter |\nSET a = 1; |\n--delimiter ;\nDO 1;", ["SET a = 1;", "DO 1"]),
        (
            "let $a = 3;\nwhile ($a)\n{\n  eval INSERT INTO t VALUES ($a);\n  dec $a;\n}\nDO 1;",
            [*(f"INSERT INTO t VALUES ({n})" for n in (3, 2, 1)), "DO 1"],
        ),
        ("let $a = 1;\nif ($a == 1) {\nDO 1;\n}\nif ($a > 1)\n{\nDO 2;\n}\nif (!$b)\n{\nDO 3;\n}",
         ["DO 1", "DO 3"]),
        ("let $a = `SELECT 1`;\neval DO $a;\nif ($a == 1)\n{\nDO 2;\n}\nDO 3;", ["DO 3"]),
        ("perl;\nDO 1;\nEOF\nDO 2;\nwrite_file x END;\nDO 3;\nEND\nDO 4;", ["DO 2", "DO 4"]),
        ("connect (slave, x);\nDO 1;\nconnection default;\nDO 2;", ["DO 2"]),
        ("disable_parsing;\nDO 1;\nenable_parsing;\nDO 2;", ["DO 2"]),
        ("eval DO ${a}1;\nlet $a = 2;\neval DO ${a}1;", ["DO 21"]),
        ("source b.inc;\nsource include/have_x.inc;\nDO 2;", ["DO 1", "DO 2"]),
    ],
)  # fmt: skip
def test_statements_of_a_script(tmp_path: Path, script: str, statements: list[str]) -> None:
    assert sql_of(tmp_path, script, b="DO 1;") == statements


def test_files_that_source_themselves_end(tmp_path: Path) -> None:
    assert len(sql_of(tmp_path, "source b.inc;", b="DO 1;\nsource b.inc;")) == 5


def test_every_byte_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.test").write_bytes(b"INSERT INTO t VALUES ('\xe9\xff');")
    interpreter = ScriptInterpreter([tmp_path], tmp_path)
    interpreter.file(tmp_path / "a.test")
    assert [sql.encode("latin1") for sql in interpreter.statements] == [
        b"INSERT INTO t VALUES ('\xe9\xff')"
    ]


@pytest.mark.parametrize(
    ("sql", "sent"),
    [
        ("INSERT INTO t VALUES (1)", True), ("SELECT * FROM t", False), ("SELECT f1()", True),
        ("SELECT a INTO @a FROM t", True), ("SET GLOBAL x = 1", False), ("SET sql_mode = ''", True),
        ("SHUTDOWN", False), ("/* x */ GRANT ALL ON *.* TO a", False), ("CREATE USER a", False),
        ("CREATE TABLE user (a INT)", True), ("DO SLEEP(9)", False),
        ("UPDATE mysql.user SET a = 1", False), ("CREATE DEFINER = a EVENT e DO 1", False),
        ("CREATE DEFINER = a PROCEDURE p() DO 1", True), ("INSERT DELAYED t VALUES (1)", False),
        ("XA START 'a'", False),
    ],
)  # fmt: skip
def test_what_is_sent(sql: str, sent: bool) -> None:
    assert is_sent(sql) is sent


def test_most_tables_are_kept_aside() -> None:
    drops = ["DROP TABLE IF EXISTS t, `a b`.u", *["DROP TABLE t"] * 3]
    told = list(kept_aside(["DROP DATABASE d", *drops, "DO 1", "DROP DATABASE d"]))
    assert told[0] == (
        drops[0],
        ["RENAME TABLE t TO zz1_0_t", "RENAME TABLE `a b`.u TO `a b`.zz1_1_u"],
    )
    assert told[3:] == [("DROP TABLE t", []), ("DO 1", []), ("DROP DATABASE d", [])]
    assert list(kept_aside(["CREATE TEMPORARY TABLE t (a INT)", "DROP TABLE t"]))[1] == (
        "DROP TABLE t",
        [],
    )
