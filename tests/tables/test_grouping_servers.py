"""Aggregate functions, GROUP BY, HAVING, DISTINCT, UNION, derived tables and subqueries about the
rows around them, in statement format on real servers and in memory."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from servers.server import Server

import applier
from applier.tables.catalog import Tables
from tests.servers.chosen_cases import number_drawn
from tests.tables.test_functions_servers import run
from tests.tables.test_joined_servers import assert_refused, compared_drawn, differing

SCRIPT = """
CREATE TABLE post (id INT PRIMARY KEY, title VARCHAR(20), comments INT NOT NULL DEFAULT 0,
    latest DATETIME NULL, score DECIMAL(8, 2) NULL, KEY (title));
CREATE TABLE comment (id INT PRIMARY KEY, post_id INT NULL, author VARCHAR(10),
    points DECIMAL(6, 2), made DATETIME, KEY (post_id));
CREATE TABLE report (what VARCHAR(20), n BIGINT, points DECIMAL(20, 4), latest DATETIME NULL);
INSERT INTO post (id, title) VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'One');
INSERT INTO comment VALUES (1, 1, 'ann', 1.50, '2026-01-01 10:00:00'),
    (2, 1, 'Ann', 2.25, '2026-01-02 10:00:00'), (3, 2, 'bob', NULL, '2026-01-03 10:00:00'),
    (4, 2, 'cid', 4.00, '2026-01-04 11:12:13'), (5, NULL, NULL, 9.99, NULL),
    (6, 9, 'bob', -0.01, '2026-02-01 00:00:00');
UPDATE post SET comments = (SELECT COUNT(*) FROM comment WHERE comment.post_id = post.id);
UPDATE post p SET latest = (SELECT MAX(made) FROM comment c WHERE c.post_id = p.id),
    score = (SELECT SUM(points) FROM comment WHERE post_id = p.id) WHERE p.comments > 0;
INSERT INTO report SELECT author, COUNT(*), COALESCE(SUM(points), 0), MAX(made) FROM comment
    WHERE author <> 'ann' GROUP BY author;
INSERT INTO report (what, n) SELECT 'all', COUNT(*) FROM comment;
INSERT INTO report SELECT p.title, COUNT(c.id) AS n, SUM(c.points), MIN(c.made) FROM post p
    LEFT JOIN comment c ON c.post_id = p.id GROUP BY p.id, p.title HAVING n < 2;
INSERT INTO report (what) SELECT DISTINCT author FROM comment WHERE id > 2;
INSERT INTO report (n, latest) SELECT YEAR(made), MAX(made) FROM comment
    GROUP BY YEAR(made) HAVING COUNT(*) > 1 ORDER BY 1 DESC LIMIT 1;
UPDATE post JOIN (SELECT post_id, COUNT(*) AS n, SUM(points) total FROM comment GROUP BY post_id) c
    ON c.post_id = post.id SET comments = 10 + c.n, score = total * 2;
UPDATE comment SET points = 1 WHERE id = (SELECT last FROM (SELECT MAX(id) AS last FROM comment) x);
INSERT INTO report (what, n) SELECT 'a', 1 UNION ALL SELECT title, id FROM post UNION ALL
    SELECT NULL, COUNT(*) FROM comment;
DELETE FROM comment WHERE NOT EXISTS (SELECT 1 FROM post WHERE post.id = comment.post_id)
    AND post_id IS NOT NULL;
UPDATE comment SET points = 0 WHERE points > (SELECT AVG(score) FROM post);
UPDATE post SET title = 'quiet' WHERE id NOT IN
    (SELECT post_id FROM comment WHERE post_id IS NOT NULL AND comment.made >= post.latest);
DELETE FROM post WHERE EXISTS (SELECT * FROM comment WHERE author IN
    (SELECT what FROM report WHERE n = post.id)) OR (SELECT COUNT(*) FROM report WHERE n = id) = 2;
"""


def test_groups_are_what_they_are_on_the_server(server: Server) -> None:
    tables = Tables()
    result = applier.replay([run(server, SCRIPT.strip().split(";\n"), "")], into=tables)
    assert result.error is None, result.error
    rows, wrong = differing(tables)
    assert (rows > 12, wrong) == (True, [])


def test_groups_drawn_by_chance(server: Server) -> None:
    count = number_drawn(200)
    seed = int(os.environ.get("SEED", "1129"))
    assert compared_drawn(server, drawn, seed, count) > count * 2


NUMBERS = ("NULL", "0", "1", "1", "2", "3", "7", "-4")
TEXTS = ("NULL", "'a'", "'a'", "'A'", "'b'", "'b '", "'1'", "''")
AMOUNTS = ("NULL", "0", "1.50", "-1.50", "2.25", "0.01", "3.33")
DOUBLES = ("NULL", "0", "0.5", "1.25", "-3", "0.1")
DATES = ("NULL", "'2026-01-01'", "'2026-01-31'", "'2025-12-31'", "'2026-01-01'")
MOMENTS = ("NULL", "'2026-01-01 10:11:12.34'", "'2026-03-01'", "'1999-12-31 23:59:59.99'")
COLUMNS = (
    "k INT NOT NULL PRIMARY KEY, g INT, s VARCHAR(5), x INT, u BIGINT UNSIGNED, m DECIMAL(8, 2),"
    " f DOUBLE, d DATE, t DATETIME(2), e ENUM('b', 'a')"
)
TARGET = "a VARCHAR(40), n BIGINT, c DECIMAL(30, 10), r DOUBLE, w DATETIME(3), y VARCHAR(40), z INT"
AGGREGATES = (
    "COUNT(*)", "COUNT(p.x)", "COUNT(DISTINCT p.s)", "COUNT(DISTINCT p.x, p.g)", "SUM(p.x)",
    "SUM(p.m)", "SUM(p.u)", "SUM(p.f)", "SUM(DISTINCT p.x)", "AVG(p.x)", "AVG(p.m)", "MIN(p.s)",
    "MAX(p.s)", "MIN(p.d)", "MAX(p.t)", "MAX(p.m)", "MIN(p.f)", "COALESCE(SUM(p.x), 0) + 1",
    "SUM(p.x) * 1.5", "SUM(p.m) / COUNT(*)", "AVG(p.x) * 3", "MAX(p.x) + 1", "MIN(p.u)",
    "IF(COUNT(*) > 1, 'many', 'one')", "ROUND(AVG(p.m), 2)", "SUM(p.x * p.m)", "SUM(p.x > 1)",
    "SUM(IF(p.s = 'a', 1, 0))", "CONCAT(MAX(p.s), '-', COUNT(*))", "SUM(p.x / 3)", "MAX(p.e)",
    "YEAR(MAX(p.d))", "COUNT(*) DIV 2", "MAX(p.x) - MIN(p.x)", "SUM(p.m) - SUM(p.m)",
    "BIT_XOR(p.x)", "BIT_AND(p.u)", "BIT_OR(p.g)", "BIT_XOR(CRC32(CONCAT_WS('#', p.k, p.s)))",
    "COALESCE(LOWER(CONV(BIT_XOR(CAST(CRC32(CONCAT_WS('#', p.k, p.m)) AS UNSIGNED)), 10, 16)), 0)",
    "COALESCE(AVG(p.x), 0)", "IF(p.g, AVG(p.x), 1.5)", "AVG(p.x) / 7", "-AVG(p.m)", "AVG(p.m) + 1",
    "GREATEST(AVG(p.x), 0)", "ABS(AVG(p.x))", "AVG(p.x) > 1.3333", "AVG(DISTINCT p.x)",
    "GROUP_CONCAT(p.k ORDER BY p.k)", "GROUP_CONCAT(p.s ORDER BY p.x DESC, p.k SEPARATOR '; ')",
    "GROUP_CONCAT(DISTINCT p.x ORDER BY p.x DESC)", "GROUP_CONCAT(p.m, ':', p.d ORDER BY p.k)",
)  # fmt: skip
PLAIN = (
    "p.g", "p.s", "p.x", "p.d", "p.m", "p.f", "p.e", "UPPER(p.s)", "YEAR(p.d)", "p.x DIV 2",
    "p.m * 2", "p.m / 3", "p.x + p.g", "DATE(p.t)", "p.t", "p.u", "COALESCE(p.s, '?')",
    "CASE WHEN p.x > 1 THEN 'big' ELSE 'small' END",
)  # fmt: skip
SHARED = (
    ("p.g", "p.x", "p.k", "1", "NULL", "p.x + 1", "YEAR(p.d)", "p.u"),
    ("p.s", "'a'", "NULL", "UPPER(p.s)", "'long enough'", "CONCAT(p.s, p.x)"),
    ("p.m", "NULL", "p.m * 2", "p.x", "0.10", "1.5"),
    ("AVG(p.x)", "NULL", "p.x / 3", "p.g / 7", "SUM(p.x / 3)"),
    ("p.d", "DATE(p.t)", "NULL", "DATE '2026-02-03'"),
    ("p.t", "NULL", "p.d"),
    ("p.f", "NULL", "1e0", "p.f / 2", "p.x"),
)
CONDITIONS = (
    "{p}.x > 0",
    "{p}.s = 'a'",
    "{p}.m IS NOT NULL",
    "{p}.k < 4",
    "{p}.g IN (1, 2)",
    "1 = 0",
)
PAIRS = ("{q}.g = p.g", "{q}.x = p.x", "{q}.s = p.s", "{q}.k > p.k", "{q}.d = p.d", "{q}.u = p.x")


def drawn(rng: random.Random, number: int) -> Iterator[str]:
    """Two tables with few values, a third one for what is selected, and one statement."""
    a, b, o = (f"{letter}{number}" for letter in "abo")
    engine = rng.choice(["InnoDB", "InnoDB", "MyISAM"])
    key = rng.choice(["", ", KEY (g)", ", KEY (s), KEY (x)", ", KEY (g, x)"])
    for table in (a, b):
        yield f"CREATE TABLE {table} ({COLUMNS}{key}) ENGINE={engine}"
        if count := rng.choice([0, 1, 3, 5, 8]):
            rows = (
                f"({at}, "
                + ", ".join(
                    rng.choice(values)
                    for values in (
                        NUMBERS, TEXTS, NUMBERS, NUMBERS[:-1], AMOUNTS, DOUBLES, DATES, MOMENTS,
                        ("NULL", "'a'", "'b'"),
                    )
                )
                + ")"
                for at in range(count)
            )  # fmt: skip
            yield f"INSERT INTO {table} VALUES {', '.join(rows)}"
    yield f"CREATE TABLE {o} ({TARGET}) ENGINE={engine}"
    draw = rng.random()
    if draw < 0.5:
        yield grouped(rng, a, b, o)
    elif draw < 0.6:
        yield united(rng, a, b, o)
    else:
        yield correlated(rng, a, b)


def grouped(rng: random.Random, a: str, b: str, o: str) -> str:
    names = rng.sample(["a", "n", "c", "r", "w", "y", "z"], rng.randint(1, 4))
    keys = rng.sample(PLAIN, rng.choice([0, 1, 1, 1, 2]))
    distinct = rng.random() < 0.2
    pool = PLAIN if distinct else (*keys * 3, *AGGREGATES)
    columns = [rng.choice(pool) for _ in names]
    source = rng.choice([f"{a} p", f"{a} p", f"{a} p JOIN {b} q ON q.g = p.g"])
    sql = f"INSERT INTO {o} ({', '.join(names)}) SELECT {'DISTINCT ' * distinct}"
    sql += ", ".join(columns) + f" FROM {source}"
    if rng.random() < 0.4:
        sql += f" WHERE {rng.choice(CONDITIONS).format(p='p')}"
    if not distinct and keys:
        sql += f" GROUP BY {', '.join(keys)}"
        if rng.random() < 0.3:
            sql += f" HAVING {rng.choice(['COUNT(*) > 1', 'SUM(p.x) > 2', 'MAX(p.s) >= MIN(p.s)'])}"
    if rng.random() < 0.2:
        sql += f" ORDER BY {rng.choice(columns)}" + rng.choice(["", " DESC", " LIMIT 2"])
    return sql


def united(rng: random.Random, a: str, b: str, o: str) -> str:
    names = rng.sample(["a", "n", "c", "r", "w", "y", "z"], rng.randint(1, 3))
    pools = [rng.choice(SHARED) for _ in names]
    selects = [
        f"SELECT {', '.join(rng.choice(pool) for pool in pools)} FROM {rng.choice([a, b])} p"
        + rng.choice(["", "", f" WHERE {rng.choice(CONDITIONS).format(p='p')}"])
        for _ in range(rng.randint(2, 3))
    ]
    union = rng.choice([" UNION ALL ", " UNION ALL ", " UNION ", " UNION DISTINCT "])
    return f"INSERT INTO {o} ({', '.join(names)}) {union.join(selects)}"


def correlated(rng: random.Random, a: str, b: str) -> str:
    def condition() -> str:
        found = [rng.choice(PAIRS).format(q="q")]
        if rng.random() < 0.3:
            found.append(rng.choice(CONDITIONS).format(p="q"))
        return " AND ".join(found)

    column = rng.choice(["g", "s", "x", "u", "m", "f", "d", "t"])
    value = rng.choice(AGGREGATES).replace("p.", "q.")
    one = f"(SELECT {value} FROM {b} q WHERE {condition()})"
    derived = f"(SELECT q.g, {value} AS v FROM {b} q GROUP BY q.g)"
    own = f"(SELECT q.{column} FROM {b} q WHERE {condition()} AND q.k = {rng.randint(0, 4)})"
    where = rng.choice(
        [
            f"{rng.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {b} q WHERE {condition()})",
            f"p.{column} IN (SELECT q.{column} FROM {b} q WHERE {condition()})",
            f"p.{column} NOT IN (SELECT q.{column} FROM {b} q WHERE {condition()})",
            f"p.{column} {rng.choice(['=', '<', '>=', '<>'])} {rng.choice([one, own])}",
            f"p.k IN (SELECT k FROM (SELECT k, x FROM {a} WHERE x > 0) y WHERE y.x < 5)",
            f"EXISTS (SELECT q.g FROM {b} q WHERE {condition()} GROUP BY q.g HAVING SUM(q.x) > 1)",
        ]
    )
    return rng.choice(
        [
            f"UPDATE {a} p SET {column} = {rng.choice([one, own])}",
            f"UPDATE {a} p SET g = 5, s = 'z' WHERE {where}",
            f"UPDATE {a} p JOIN {derived} y ON y.g = p.g SET p.{column} = y.v",
            f"UPDATE {a} p JOIN {b} o ON p.g = o.g SET p.{column} = NULL WHERE {where}",
            f"DELETE p FROM {a} p WHERE {where}",
            f"DELETE FROM {a} WHERE {where}".replace("p.", f"{a}."),
            f"INSERT INTO {a} (k, {column}) SELECT p.k + 50, {own} FROM {a} p WHERE {where}",
        ]
    )


SCHEMA = """CREATE TABLE d.a (id INT PRIMARY KEY, x INT, s VARCHAR(5), r DOUBLE);
CREATE TABLE d.b (aid INT, y INT, s VARCHAR(5));
INSERT INTO d.a VALUES (1, 1, 'a', 0.1), (2, 1, 'A', 0.2), (3, 2, 'b', 0.3);
INSERT INTO d.b VALUES (1, 5, '5'), (1, 6, '6'), (2, 7, NULL);"""
UNDECIDED = (
    "INSERT INTO b (s) SELECT MIN(s) FROM a",
    "INSERT INTO b (s) SELECT DISTINCT s FROM a",
    "INSERT INTO b (s) SELECT s FROM a GROUP BY s",
    "INSERT INTO b (aid) SELECT id FROM a GROUP BY x",
    "INSERT INTO b (aid) SELECT SUM(r) FROM a",
    "INSERT INTO b (aid) SELECT COUNT(*) FROM a GROUP BY r",
    "INSERT INTO b (aid, y) SELECT x, COUNT(*) FROM a GROUP BY x WITH ROLLUP",
    "INSERT INTO b (aid) SELECT COUNT(*) OVER () FROM a",
    "INSERT INTO b (s) SELECT GROUP_CONCAT(id) FROM a",
    "INSERT INTO b (s) SELECT GROUP_CONCAT(id ORDER BY x) FROM a",
    "INSERT INTO b (s) SELECT GROUP_CONCAT(DISTINCT s ORDER BY s) FROM a",
    "INSERT INTO b (s) SELECT GROUP_CONCAT(DISTINCT x ORDER BY id) FROM a",
    "INSERT INTO b (s) SELECT GROUP_CONCAT(REPEAT('x', 99) ORDER BY id) FROM a",
    "INSERT INTO b (aid) SELECT BIT_OR(s) FROM a",
    "INSERT INTO b (aid) SELECT STD(id) FROM a",
    "INSERT INTO b (aid) SELECT DISTINCT x FROM a GROUP BY x",
    "INSERT INTO b (aid) SELECT x FROM a HAVING x > 1",
    "INSERT INTO b (aid) SELECT id FROM a UNION SELECT s FROM a",
    "INSERT INTO b (aid) SELECT id FROM a UNION ALL SELECT 1.5",
    "INSERT INTO b (s) SELECT s FROM a UNION SELECT 'B'",
    "INSERT INTO b (aid) SELECT id FROM a UNION ALL SELECT x FROM a ORDER BY 1 LIMIT 1",
    "INSERT INTO b (aid) SELECT id FROM a UNION SELECT 1 UNION ALL SELECT 1",
    "INSERT INTO b (aid) SELECT COUNT(*) AS x FROM a GROUP BY x",
    "UPDATE a SET x = (SELECT MAX(a.x) FROM b)",
    "DELETE FROM a WHERE EXISTS (SELECT 1 FROM a q WHERE q.id > a.id)",
    "INSERT INTO b (aid) VALUES ((SELECT MAX(id) FROM a WHERE a.x = y))",
)
"""What the order of the rows decides, and what is not read."""


@pytest.mark.parametrize("statement", UNDECIDED)
def test_other_groups_are_refused(statement: str) -> None:
    assert_refused(SCHEMA, statement)
