"""Rows that a statement finds by a unique key: which rows are looked at, and that none is
missed."""

from __future__ import annotations

import pytest

import applier
from applier.tables.dml.equalities import refs_by_unique_key
from applier.tables.dml.row_selection import RowSelection
from applier.tables.expressions.expression_parser import ExpressionParser
from applier.tables.expressions.operands import PLAIN, Session
from applier.tables.sql.sql_text import Parser

KEYED = """CREATE TABLE d.t (a int, b varchar(9) COLLATE utf8mb4_general_ci,
  c char(5) COLLATE latin1_bin,
  d bigint unsigned, e text, PRIMARY KEY (a, b), UNIQUE KEY (c), UNIQUE KEY (d), UNIQUE KEY (e(2)));
INSERT INTO d.t VALUES (1, 'x', 'a', 5, 'aa1'), (1, 'Y', 'A', NULL, 'ab2'),
    (-2, 'x', 'é', 77, 'ac3'),
  (3, '', '', 0, NULL);"""


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("a = 1 AND b = 'X '", [0]),
        ("b = 'y' AND (`a` = '1')", [1]),
        ("t.a IN (3, -2, 1) AND d.t.b IN ('', 'x')", [2, 0, 3]),
        ("c = 'a'", [0]),
        ("'é' = c", [2]),
        ("c = '日本'", None),
        ("d in (0, 5)", [0, 3]),
        ("77 = d", [2]),
        ("d = -1", []),
        ("d = 5 AND d = 0", [0]),
        ("e = 'aa1' AND a = 1", [0]),
        ("e = 'aax'", [0]),
        ("a = 1", None),
        ("a = 1 AND b = 'x' OR d = 0", None),
        ("NOT d = 5", None),
        ("d = 5.0", None),
        ("d = 5 + 0", None),
        ("d <=> 5", None),
        ("d = 5 IS NULL", None),
        ("d BETWEEN 5 AND 7 AND d = 5", None),
    ],
)
def test_rows_that_are_looked_at(condition: str, kept: list[int] | None) -> None:
    """None: all. What the condition leaves of them is what it leaves of all rows."""
    table = applier.load_schema(KEYED)["d.t"]
    keys = [(1, "x"), (1, "Y"), (-2, "x"), (3, "")]
    reader = ExpressionParser(Parser(f"WHERE {condition}"), table.definition, PLAIN)
    selection = RowSelection.read(reader)
    refs = refs_by_unique_key(table, selection.wanted)
    if kept is None or refs is None:
        assert refs is kept
    else:
        found = [
            row[:2] for ref, row in zip(table.refs(), table.rows(), strict=True) if ref in refs
        ]
        assert found == sorted(keys[at] for at in kept)
    if condition.isascii():
        every = selection.chosen(table.scan(), Session())
        assert selection.refs(table, Session()) == [ref for ref, _ in every]
