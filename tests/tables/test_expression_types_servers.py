"""The types of expressions that are drawn by chance: CREATE TABLE … SELECT in statement format on
real servers and in memory makes the same columns and rows, or is refused."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.server import Server

import applier
from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.type_reader import type_of
from applier.tables.definitions.schema import parse_create_table
from applier.tables.definitions.table_draft import SchemaRules
from applier.tables.expressions.expression_parser import sql_parser
from applier.tables.expressions.operands import Session
from applier.tables.expressions.visible_columns import VisibleColumns
from applier.tables.sql.sql_mode_flags import NO_MODES, SqlModeFlag
from tests.servers.chosen_cases import number_drawn
from tests.servers.fixtures import ServerFactory
from tests.tables.test_create_select_servers import STATEMENTS, logged, same_as_on_server

SERVERS = ("5.6", "5.7", "9.7", "mariadb")
STRICT = "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO"
SOURCES = """
CREATE TABLE o (t TINYINT, tn TINYINT UNSIGNED NOT NULL, sm SMALLINT, me MEDIUMINT UNSIGNED, i INT,
    n INT NOT NULL, iu INT UNSIGNED, b BIGINT, ub BIGINT UNSIGNED NOT NULL, de DECIMAL(8, 2),
    dn DECIMAL(10, 0) NOT NULL, du DECIMAL(6, 3) UNSIGNED, v VARCHAR(10),
    vn VARCHAR(20) NOT NULL DEFAULT 'x', c CHAR(5) CHARACTER SET utf8mb4, e ENUM('a', 'bcd'),
    da DATE, dt DATETIME(3), dtn DATETIME NOT NULL);
INSERT INTO o VALUES (1, 2, 3, 4, 5, 6, 7, 8, 9, 1.25, 11, 0.125, 'abc', 'x1', 'äö', 'bcd',
    '2020-02-29', '2020-01-02 03:04:05.678', '2020-01-01 10:11:12'),
    (-1, 7, -3, 9, NULL, 8, NULL, -8, 1, -99.99, 0, NULL, '', '', 'z', 'a', NULL, NULL,
    '2021-01-01'), (NULL, 1, NULL, NULL, NULL, 2, NULL, NULL, 3, NULL, 4, NULL, NULL, 'x', NULL,
    NULL, NULL, NULL, '2020-01-01');
CREATE TABLE q (m INT, k SMALLINT NOT NULL, w VARCHAR(8) NOT NULL DEFAULT 'w');
INSERT INTO q VALUES (6, 1, 'six'), (6, 2, 'half'), (NULL, 3, 'none')
""".split(";\n")
INTEGERS = ("t", "tn", "sm", "me", "i", "n", "iu", "b", "ub", "n", "i", "0", "1", "10", "100")
NUMBERS = (*INTEGERS, "de", "dn", "du", "de", "1.5")
TEXTS = ("v", "vn", "c", "e", "'abc'", "'x'", "''")
DATES = ("da", "dt", "dtn")
MOMENTS = (
    *DATES, "DATE(dt)", "da + INTERVAL 1 DAY", "dtn - INTERVAL 2 HOUR", "da + INTERVAL 1 HOUR",
    "IFNULL(da, da)", "COALESCE(dt, dtn)", "LAST_DAY(dtn)", "IF(n > 1, da, NULL)", "NOW()",
    "NOW() - INTERVAL 1 DAY", "CURDATE()",
)  # fmt: skip
OF_NUMBERS = (
    "{n} + {n}", "{n} - {n}", "{n} * {n}", "{n} / {n}", "{n} + {n}", "({n})", "IFNULL({n}, {n})",
    "COALESCE({n}, {n})", "IF({w}, {n}, {n})", "IF({w}, {n}, NULL)", "CAST({n} AS SIGNED)",
    "CASE WHEN {w} THEN {n} ELSE {n} END", "CASE WHEN {w} THEN {n} END", "CAST({n} AS UNSIGNED)",
    "CAST({n} AS DECIMAL(12,3))", "ROUND({n}, 0)", "ROUND({n}, 2)", "ABS({n})", "LENGTH({s})",
    "CHAR_LENGTH({s})", "GREATEST({n}, {n})", "LEAST({n}, {n})", "MOD({n}, 7)", "NULLIF({n}, {n})",
    "YEAR({d})", "MONTH({d})", "TO_DAYS({d})", "DATEDIFF(dt, dtn)",
)  # fmt: skip
OF_TEXTS = (
    "CONCAT({s}, {s})", "CONCAT({s}, {c})", "CONCAT({s}, {d})", "UPPER({s})", "TRIM({s})",
    "LEFT({s}, 3)", "IFNULL({s}, {s})", "COALESCE({s}, {s})", "IF({w}, {s}, {s})",
    "CONCAT_WS('-', {s}, {s})", "SUBSTRING({s}, 1, 2)", "LPAD({s}, 6, '*')", "NULLIF({s}, 'x')",
    "REPLACE({s}, 'a', 'b')", "CAST({c} AS CHAR(7))", "DATE_FORMAT({d}, '%Y-%m')",
    "CAST({s} AS CHAR(4))",
)  # fmt: skip
CONDITIONS = (
    "{n} > {c}", "{s} = 'abc'", "n = TRUE", "i <> FALSE", "n = NULL", "i <=> 5", "v IS NULL",
    "de IS NOT NULL", "n IN (1, 2, 7)", "n > 1 AND i < 9", "n BETWEEN 1 AND 5", "NOT i",
)  # fmt: skip
OF_GROUPS = (
    "COUNT(*)", "COUNT({n})", "COUNT(DISTINCT v)", "SUM({n})", "AVG({n})", "MIN({n})", "MAX({s})",
    "MAX({m})", "{a} + {a}", "{a} / {a}", "{a} * {a}", "IFNULL({a}, 0)", "COALESCE({a}, 1.5)",
    "ROUND({a}, 1)", "SUM(IF({w}, 1, 0))", "SUM(CASE WHEN {w} THEN {n} ELSE 0 END)",
    "GROUP_CONCAT(n ORDER BY n)", "BIT_XOR(n)",
)  # fmt: skip
JOINED = (
    "SELECT n, k AS x, w AS y, COUNT(*) AS z FROM o LEFT JOIN q ON n = m GROUP BY n, k, w",
    "SELECT o.*, q.* FROM o LEFT JOIN q ON n = m",
    "SELECT n + k AS x, k + 1 AS y, COALESCE(k, 0) AS z FROM o LEFT JOIN q ON n = m",
    "SELECT CHAR_LENGTH(w) AS x, CHAR_LENGTH(vn) AS y, w AS z FROM o LEFT JOIN q ON n = m",
)


def drawn(rng: random.Random, patterns: tuple[str, ...], depth: int) -> str:
    """An expression of one of the patterns, whose own are filled in likewise."""
    plain = depth <= 0 or rng.random() < 0.25
    inner: dict[str, Callable[[], str]] = {
        "n": lambda: rng.choice(NUMBERS) if plain else drawn(rng, OF_NUMBERS, depth - 1),
        "s": lambda: rng.choice(TEXTS) if plain else drawn(rng, OF_TEXTS, depth - 1),
        "w": lambda: drawn(rng, CONDITIONS, 0),
        "a": lambda: "SUM(n)" if plain else drawn(rng, OF_GROUPS, depth - 1),
        "c": lambda: rng.choice(NUMBERS),
        "d": lambda: rng.choice(DATES),
        "m": lambda: rng.choice(MOMENTS),
    }
    found = rng.choice(patterns)
    for name, make in inner.items():
        while f"{{{name}}}" in found:
            found = found.replace(f"{{{name}}}", make(), 1)
    return found


def statement(rng: random.Random) -> str:
    """A SELECT of two expressions, over rows or over groups."""
    kinds = (OF_NUMBERS, OF_NUMBERS, OF_TEXTS, OF_TEXTS, MOMENTS, CONDITIONS)
    one, two = (drawn(rng, rng.choice(kinds), rng.choice((0, 1, 1, 2))) for _ in range(2))
    if rng.random() < 0.5:
        return f"SELECT {one} AS x, {two} AS y FROM o"
    group = drawn(rng, OF_GROUPS, 1)
    if rng.random() < 0.4:
        return f"SELECT {group} AS x FROM o"
    by = rng.choice(("n", "v", "i", "e", "da", one))
    return f"SELECT {by} AS x, {group} AS y FROM o GROUP BY {by}"


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    started = server_factory(request.param, options=STATEMENTS)
    yield started
    started.close()


@pytest.mark.parametrize("sql_mode", ["", STRICT])
def test_columns_of_drawn_expressions(server: Server, sql_mode: str, tmp_path: Path) -> None:
    rng = random.Random(int(os.environ.get("SEED", "1129")))
    count = number_drawn(150)
    selects = (*JOINED, *(statement(rng) for _ in range(count)))
    tables = applier.Tables()
    log = logged(server, selects, sql_mode, sources=SOURCES)
    result = applier.replay([log], into=tables, skip_errors="1235")
    assert result.error is None, result.error
    assert same_as_on_server(server, tables, selects, tmp_path) > count * 0.5
    names = {one.definition.name for one in tables}
    assert names.issuperset(f"t{number}" for number in range(len(JOINED)))


def type_in_memory(expression: str, server: str, sql_mode: SqlModeFlag = NO_MODES) -> Any:
    definition = parse_create_table(SOURCES[0], "d", SchemaRules())
    session = DdlSession(server=server, expressions=Session(sql_mode=sql_mode))
    tokens = sql_parser(expression, session.expressions.dialect).tokens
    return type_of(tokens, VisibleColumns.of(definition), session)


@pytest.mark.parametrize("server", ["8.0", "8.4"])
def test_between_two_versions_a_type_is_known_where_both_have_it(server: str) -> None:
    same = ("COUNT(*)", "SUM(de)", "AVG(i)", "n + 1", "CONCAT(v, vn)", "IFNULL(i, 0)", "MAX(c)")
    assert [type_in_memory(one, server) is None for one in same] == [False] * len(same)
    other = ("YEAR(da)", "COALESCE(i, 0)", "CAST(t AS SIGNED)")
    assert [type_in_memory(one, server) for one in other] == [None] * len(other)
    assert None not in [type_in_memory(one, "9.7") for one in other]


@pytest.mark.parametrize(
    ("expression", "sql_mode"),
    [
        ("v || vn", SqlModeFlag.PIPES_AS_CONCAT),
        ("iu - 1", SqlModeFlag.NO_UNSIGNED_SUBTRACTION),
        ("n <=> NULL", NO_MODES),
        ("dt + INTERVAL 1.5 SECOND", NO_MODES),
        ("dt + INTERVAL n DAY", NO_MODES),
        ("v COLLATE latin1_bin", NO_MODES),
        ("_utf8mb4'a'", NO_MODES),
        ("(SELECT 1)", NO_MODES),
        ("n + @x", NO_MODES),
        ("0.5 * n", NO_MODES),
        ("MAX(YEAR(da))", NO_MODES),
    ],
)
def test_types_that_are_not_known(expression: str, sql_mode: SqlModeFlag) -> None:
    assert type_in_memory(expression, "9.7", sql_mode) is None


def test_a_condition_of_other_words_has_no_known_column() -> None:
    for expression in ("n = NULL", "v = _latin1'a'", "n IN (SELECT 1)", "n = ABS(i)"):
        assert type_in_memory(expression, "9.7").mixed
    assert not type_in_memory("n = TRUE", "9.7").nullable
