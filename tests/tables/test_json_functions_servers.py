"""JSON in statement format on real servers and in memory: equal or refused."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from servers.server import Server

from tests.servers.fixtures import ServerFactory
from tests.tables.test_functions_servers import compared, run

DOCUMENTS = (
    '{"bb": 1, "a": 2}', '{"zz": {"yy": 1, "x": [2, {"m": 1, "l": 2}]}, "a": null}', "[1, 2.0, 3]",
    '"text"', "1.0", "1e2", "12345678901234567890", "-5", "true", "null", '{"a": 1.5e300}',
    '[1, "é", "\\\\n\\\\u00e9\\\\ud83d\\\\ude00"]', "[]", "{}", '{"": 0}', "0.1", "100.0", "1e20",
    '{"a": {"b": 1}, "c": 3, "a": {"b": 2}}',
    "[-0.0, 18446744073709551616, 4294967295, 4294967296, 1.25]",
)  # fmt: skip
SHAPES = (
    "CAST('{}' AS JSON)", "JSON_EXTRACT('{}', '$')", "JSON_EXTRACT('{}', '$.a')",
    "JSON_UNQUOTE(JSON_EXTRACT('{}', '$'))", "JSON_UNQUOTE(JSON_EXTRACT('{}', '$.zz'))",
    "CAST(CAST('{}' AS JSON) AS CHAR)", "CONCAT(CAST('{}' AS JSON), '')", "JSON_EXTRACT(j, '$')",
    "JSON_EXTRACT(j, '$.zz.x[1]')", "CAST(j AS CHAR)", "JSON_UNQUOTE(j)", "JSON_UNQUOTE('{}')",
    "JSON_VALID('{}')", "j",
)  # fmt: skip


@pytest.fixture(scope="module", params=("5.7", "9.7"))
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    started = server_factory(request.param, options={"character_set_server": "utf8mb4"})
    yield started
    started.close()


def inserts(expressions: list[str], documents: list[str]) -> Iterator[str]:
    """Each expression beside a document: as it is stored in JSON and in text."""
    yield "CREATE TABLE a (id INT PRIMARY KEY, j JSON, k JSON, v VARCHAR(200), n INT)"
    yield "CREATE TABLE b (id INT PRIMARY KEY, j JSON, k JSON, v VARCHAR(200), n INT)"
    for at, (expression, document) in enumerate(zip(expressions, documents, strict=True)):
        values = f"{at}, '{document}'"
        yield f"INSERT INTO a (id, j, k) VALUES ({values}, {expression})"
        yield f"INSERT INTO b (id, j, v) VALUES ({values}, {expression})"


def test_documents_through_functions(server: Server) -> None:
    pairs = [(shape, document) for shape in SHAPES for document in DOCUMENTS]
    expressions = [shape.format(document) for shape, document in pairs]
    log = run(server, inserts(expressions, [document for _, document in pairs]), "")
    equal, different = compared(log)
    assert different == []
    assert equal > 100


VALUES = (
    "1", "-5", "18446744073709551615", "TRUE", "false", "NULL", "'x'", "'é\\n\"'", "1.5e0", "2e0",
    "_latin1 0xE9", "u", "t", "v", "f", "CAST('[1, {\"b\": 2}]' AS JSON)", "JSON_ARRAY(1, u)",
    "JSON_OBJECT('k', t, 'jj', NULL)", "j", "1 = 1", "1.5", "DATE'2020-01-01'", "'{}'", "0x41", "e",
    "b", "u + 1",
)  # fmt: skip
PATHS = (
    "$", "$.a", "$.zz", "$.zz.x", "$.zz.x[1]", "$.zz.x[7]", "$.new", '$."a b"', "$[0]", "$[2]",
    "$[9]", "$[last]", "$.zz.x[last]", "$[last-1]", "$.zz.none.deep", "$.a.b", "$.zz.x[1].m",
)  # fmt: skip


MERGED = (
    "j", "j", "NULL", "'null'", "'{}'", "'[]'", "'7'", """'{"a": null}'""", """'{"a": [2]}'""",
    """'{"zz": {"x": null, "new": {"n": null, "o": 1}}, "b": "t"}'""", "'[1, [2]]'",
    """'{"a": {"b": {"c": null}}}'""", "JSON_OBJECT('a', 1)", "CAST('{\"zz\": 1}' AS JSON)",
)  # fmt: skip


def made(draw: random.Random) -> str:
    name = draw.choice(
        (
            "JSON_ARRAY", "JSON_OBJECT", "JSON_SET", "JSON_INSERT", "JSON_REPLACE", "JSON_REMOVE",
            "JSON_ARRAY_APPEND", "JSON_ARRAY_APPEND", "JSON_MERGE_PATCH", "JSON_MERGE_PRESERVE",
            "JSON_MERGE",
            "JSON_LENGTH", "JSON_EXTRACT", "JSON_UNQUOTE", "JSON_COMPACT",
        )
    )  # fmt: skip
    several = range(draw.choice((1, 1, 2, 3)))
    if name == "JSON_ARRAY":
        return f"JSON_ARRAY({', '.join(draw.choice(VALUES) for _ in several)})"
    if name == "JSON_OBJECT":
        keys = ("'a'", "'bb'", "'c'", "v", "'é'", "''")
        parts = [f"{draw.choice(keys)}, {draw.choice(VALUES)}" for _ in several]
        return f"JSON_OBJECT({', '.join(parts)})"
    if name in ("JSON_LENGTH", "JSON_COMPACT"):
        return f"{name}({draw.choice(MERGED)})"
    if name in ("JSON_EXTRACT", "JSON_UNQUOTE"):
        found = f"JSON_EXTRACT(j, '{draw.choice(PATHS)}')"
        return found if name == "JSON_EXTRACT" else f"JSON_UNQUOTE({found})"
    if name in ("JSON_MERGE_PATCH", "JSON_MERGE_PRESERVE", "JSON_MERGE"):
        parts = [draw.choice(MERGED) for _ in (0, *several)]
        return f"{name}({', '.join(parts)})"
    paths = [f"'{draw.choice(PATHS)}'" for _ in several]
    if name != "JSON_REMOVE":
        paths = [f"{path}, {draw.choice(VALUES)}" for path in paths]
    document = draw.choice(("j", "j", f"'{draw.choice(DOCUMENTS)}'"))
    return f"{name}({document}, {', '.join(paths)})"


@pytest.mark.parametrize("seed", range(2))
def test_documents_that_functions_make(server: Server, seed: int) -> None:
    equal, different = drawn(server, seed)
    assert different == []
    assert equal > 200


@pytest.fixture(scope="module")
def mariadb(server_factory: ServerFactory) -> Iterator[Server]:
    started = server_factory("mariadb", options={"character_set_server": "utf8mb4"})
    yield started
    started.close()


@pytest.mark.parametrize("seed", range(2))
def test_texts_that_functions_of_mariadb_make(mariadb: Server, seed: int) -> None:
    equal, different = drawn(mariadb, seed)
    assert different == []
    assert equal > 150


def drawn(server: Server, seed: int) -> tuple[int, list[str]]:
    """How many rows of drawn functions are equal, and the others."""
    draw = random.Random(seed)
    rows = "u INT UNSIGNED, t TINYINT(1), v VARCHAR(9), f DOUBLE, e ENUM('a', 'b'), b VARBINARY(9)"
    statements = [
        f"CREATE TABLE {name} (id INT PRIMARY KEY, {rows}, j JSON, k JSON, w VARCHAR(300))"
        for name in "ab"
    ]
    for at in range(300):
        document, expression = draw.choice(DOCUMENTS), made(draw)
        values = f"{at}, 4000000000, {draw.choice('01')}, 'v', {draw.choice(('0.5', '3', '-0.0'))}"
        for table, column in ("ak", "bw"):
            statements.append(
                f"INSERT INTO {table} (id, u, t, v, f, e, b, j, {column})"
                f" VALUES ({values}, 'a', 'x', '{document}', {expression})"
            )
    return compared(run(server, statements, ""))


def test_bytes_that_are_no_text_beside_escapes(server: Server) -> None:
    statements: list[str | bytes] = ["CREATE TABLE a (id INT PRIMARY KEY, j JSON)"]
    texts = (
        b'"\xff\\\\n"',
        b'["\xff\\\\u00e9", "\\\\ud83d\\\\ude00\xc3"]',
        b'{"\\\\t\xff": "\\\\\\\\ud83d"}',
    )
    statements += [b"INSERT INTO a VALUES (%d, '%b')" % one for one in enumerate(texts)]
    equal, different = compared(run(server, statements, ""), skip_errors="")
    assert (different, equal) == ([], 3)


def test_words_of_paths_as_names(server: Server) -> None:
    """`last`, `to` and `*` mean something in brackets only."""
    paths = ("$.last_login", "$.last", '$."one to two"', '$."a*b"', "$.total")
    statements = ["CREATE TABLE a (id INT PRIMARY KEY, j JSON)"]
    for at, path in enumerate(paths):
        statements += [
            f"INSERT INTO a VALUES ({at}, JSON_OBJECT('last', 1, 'total', 2, 'one to two', 3))",
            f"UPDATE a SET j = JSON_SET(j, '{path}', 'new') WHERE id = {at}",
        ]
    equal, different = compared(run(server, statements, ""), skip_errors="")
    assert (different, equal) == ([], len(paths))
