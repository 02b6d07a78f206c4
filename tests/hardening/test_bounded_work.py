"""Input that was made to be slow: each of these once took time in the square or the cube of its
length, or never ended.

Every case is large enough that more than a few steps a byte would run into the time limit by far,
on any machine.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

import applier
from applier.binlog.listing import Listing
from applier.binlog.reader import LogReader
from applier.binlog.transactions import group
from applier.binlog.types.json import path_legs
from applier.dumps.split import split_statements
from applier.errors import InputError, ReplicationError
from applier.tables.dml.row_writer import StatementSession
from applier.tables.dml.statements import execute_statement
from applier.tables.expressions.patterns.like import like
from applier.tables.sql.sql_text import tokenize
from applier.tables.sql.statement_kind import statement_kind
from tests.applier.fuzz import time_limit
from tests.applier.logs import INT_TABLE
from tests.binlog.build import gtid, log, query, table_map, write, xid

ALL = os.environ.get("BINLAG_ALL_CASES") == "1"
SIZE = 200_000 if ALL else 50_000
SQL: dict[str, str] = {
    "escaped quotes that nobody closes": "'" + "\\'" * SIZE,
    "doubled quotes that nobody closes": '"' + 'a""' * SIZE,
    "a backslash at the end": "'" + "\\'" * SIZE + "\\",
    "names that nobody closes": "`" + "``" * SIZE,
    "comments that nobody closes": "/*" * SIZE,
    "comments of no server that nobody closes": "/*M!999999 " * SIZE,
    "carriage returns": "\r" * SIZE + "INSERT INTO",
    "blank lines": "\n" * SIZE + "x",
    "line comments": "-- \n#\n" * (SIZE // 4),
    "digits": "1" * SIZE + "x",
    "open parentheses": "(" * (SIZE // 4),
    "an INSERT of digits": "INSERT INTO t VALUES (" + "1" * SIZE + "x",
    "an INSERT of blanks": "INSERT INTO t VALUES " + " " * SIZE + "x",
    "an INSERT of quotes": "INSERT INTO t VALUES ('" + "\\'" * SIZE,
    "an INSERT of parentheses": "INSERT INTO t VALUES " + "(" * (SIZE // 4),
    "delimiters": "DELIMITER ;;\n" * (SIZE // 10),
    "a sum of many": "INSERT INTO t VALUES (1" + "+1" * 5_000 + ")",
    "nested parentheses": "CREATE TABLE n (i INT DEFAULT ("
    + "(" * 5_000
    + "1"
    + ")" * 5_000
    + "))",
    "nested calls": "INSERT INTO t VALUES (" + "ABS(" * 5_000 + "1" + ")" * 5_000 + ")",
    "a length of many digits": "CREATE TABLE n (i INT(" + "9" * 5_000 + "))",
    "a number of many digits": "INSERT INTO t VALUES (" + "9" * 5_000 + ")",
    "hexadecimal digits, an odd number": "INSERT INTO t VALUES (0x" + "F" * 4_999 + ")",
}
HEAD = "CREATE DATABASE d; USE d; CREATE TABLE t (i INT);"
HARMLESS = {
    "comments of no server that nobody closes", "carriage returns", "blank lines", "line comments",
    "delimiters", "nested parentheses",
}  # fmt: skip
"""Nothing in them is lost, and nothing wrong: a default is read when it is needed."""
REFUSED_WHEN_READ = {"nested calls"}
"""The row of a dump stands there, and whoever needs its value is refused."""
WRONG = [name for name in SQL if name not in HARMLESS and "odd number" not in name]
IN_A_LOG = WRONG if ALL else ["nested calls", "digits"]


@pytest.mark.parametrize("name", SQL)
def test_sql(name: str) -> None:
    """One line of error at the latest after a pass or two. Nothing is left out without a word."""
    sql = SQL[name]
    with time_limit():
        tokenize(sql)
        statement_kind(sql)
        try:
            list(split_statements(io.BytesIO(sql.encode())))
            tables = applier.load_schema(f"{HEAD}\n{sql}")
        except InputError as error:
            assert "\n" not in str(error)
            assert error.message.startswith("line ")
        else:
            if name in REFUSED_WHEN_READ:
                with pytest.raises(ReplicationError):
                    tables["d.t"].rows()
                return
            assert name in HARMLESS
            assert not len(tables["d.t"])


@pytest.mark.parametrize("name", IN_A_LOG)
def test_statements_of_a_log(name: str, tmp_path: Path) -> None:
    """The same in a QUERY event: an error of the applier, with its place."""
    statement = SQL[name].encode()
    content = log(gtid(1), query(b"BEGIN"), query(statement), xid())
    with time_limit():
        result = applier.replay(
            [write(tmp_path, content)],
            into=applier.load_schema("CREATE DATABASE d; USE d; CREATE TABLE t (i INT)"),
        )
    assert result.error is not None
    assert result.error.position is not None


def test_nothing_behind_an_open_comment_is_left_out_silently() -> None:
    with pytest.raises(InputError, match="line 2"):
        applier.load_schema(f"{HEAD}\n/* no end; INSERT INTO t VALUES (1);")


@pytest.mark.parametrize(
    ("value", "pattern", "holds"),
    [
        ("abc", "abc", True), ("abc", "ABC", True), ("abc", "ab", False), ("abc", "a%", True),
        ("abc", "%c", True), ("abc", "%b%", True), ("abc", "_b_", True), ("abc", "__", False),
        ("", "%", True), ("", "", True), ("a", "%%", True), ("a%c", "a\\%c", True),
        ("abc", "a\\%c", False), ("a\nb", "a_b", True), ("aab", "%ab", True),
        ("abab", "ab%ab", True), ("aba", "ab%ba", False),
        ("a" * 50_000, "%a" * 2_000 + "%b", False), ("a" * 5_000 + "b", "%a" * 2_000 + "%b", True),
    ],
)  # fmt: skip
def test_like(value: str, pattern: str, holds: bool) -> None:
    with time_limit():
        assert like(value, pattern) is holds


@pytest.mark.parametrize(
    "path",
    [
        "$[last" + " " * SIZE,
        "$[1" + " " * SIZE,
        "$." + '"' + '\\"' * SIZE,
        "$[" + "9" * 5_000 + "]",
    ],
)
def test_json_paths(path: str) -> None:
    with time_limit(), pytest.raises(InputError):
        path_legs(path)


def test_an_xa_statement_of_blanks(tmp_path: Path) -> None:
    statement = b"XA START '" + b" " * 580 + b"x"
    path = write(tmp_path, log(*[query(statement)] * 50))
    with time_limit():
        list(group(LogReader([path])))


@pytest.mark.parametrize("kind", [23, 30, 31])
def test_a_rows_event_of_more_columns_than_any_table_has(kind: int, tmp_path: Path) -> None:
    """A bitmap of a megabyte is really there; looking at each of its bits would be 10^13 steps."""
    head = struct.pack("<IHH", 1, 0, 1) + (struct.pack("<H", 2) if kind >= 30 else b"")
    body = head + b"\xfd" + struct.pack("<I", 8_000_000)[:3] + bytes(2_000_000)
    path = write(tmp_path, log(gtid(1), table_map(), (kind, body)))
    readers: list[Callable[[], object]] = [
        lambda: list(Listing([str(path)], with_rows=True)),
        lambda: applier.replay([path], into=applier.load_schema(INT_TABLE)),
    ]
    for read in readers:
        with time_limit(), pytest.raises(InputError, match="claims 8000000 columns") as caught:
            read()
        assert caught.value.position is not None


def test_many_values_of_many_labels() -> None:
    labels = ", ".join(f"'l{at}'" for at in range(5_000))
    tables = applier.load_schema(f"CREATE TABLE d.t (e ENUM({labels}));")
    values = ", ".join(["('l4999')", "('L4999 ')", "(5000)"] * 7_000)
    with time_limit():
        execute_statement(tables, f"INSERT INTO t VALUES {values}", "d", StatementSession())
    assert set(tables["d.t"].stored_rows()) == {(5_000,)}
