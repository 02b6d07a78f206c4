"""Subqueries of INSERT, UPDATE, DELETE and INSERT … SELECT, in statement format on real servers and
in memory."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from servers.server import Server

import applier
from applier.tables.catalog import Tables
from tests.servers.chosen_cases import number_drawn
from tests.servers.fixtures import ServerFactory
from tests.tables.test_functions_servers import run
from tests.tables.test_joined_servers import (
    assert_refused,
    compared_drawn,
    compared_exactly,
    differing,
)

SCRIPT = """
CREATE TABLE a1 (id INT PRIMARY KEY, x BIGINT UNSIGNED, s VARCHAR(20));
CREATE TABLE b1 (aid INT, y INT, s VARCHAR(20), KEY (aid));
CREATE TABLE none1 (n INT NULL);
INSERT INTO a1 VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'Three'), (4, NULL, NULL), (5, 1, '');
INSERT INTO b1 VALUES (1, 10, 'ONE'), (2, 9, 'two '), (2, NULL, NULL), (9, 30, 'x'), (7, 7, 'y');
UPDATE a1 SET s = 'in' WHERE id IN (SELECT aid FROM b1);
UPDATE a1 SET s = CONCAT(s, '!') WHERE x IN (SELECT y FROM b1 WHERE y IS NOT NULL);
UPDATE a1 SET x = 0 WHERE x NOT IN (SELECT y FROM b1);
UPDATE a1 SET x = 7 WHERE x NOT IN (SELECT n FROM none1);
UPDATE a1 SET x = 8 WHERE NOT (id IN (SELECT n FROM none1)) AND id = 2;
DELETE FROM b1 WHERE s IN (SELECT s FROM a1);
DELETE FROM b1 WHERE aid NOT IN (SELECT a.id FROM a1 a JOIN a1 q ON q.id = a.x WHERE q.x > 5)
    OR y = 9;
INSERT INTO b1 SELECT id, x, s FROM a1 WHERE id NOT IN (SELECT n FROM none1) AND id IN
    (SELECT id FROM a1 WHERE x IN (SELECT x FROM a1 WHERE id > 1));
UPDATE a1 SET s = 'chain' WHERE id IN (SELECT aid FROM b1 WHERE aid IN (SELECT y FROM b1))
    ORDER BY id LIMIT 1;
DELETE FROM a1 WHERE (id + 1) IN (SELECT aid FROM b1) AND s IS NOT NULL;
DELETE FROM a1 WHERE id IN (SELECT 5);
CREATE TABLE c1 (id INT AUTO_INCREMENT PRIMARY KEY, n INT, s VARCHAR(20), d DECIMAL(8, 3),
    t DATETIME(3), k INT NOT NULL DEFAULT 3);
CREATE TABLE p1 (id INT PRIMARY KEY, s VARCHAR(9), d DECIMAL(9, 4), t DATETIME(6));
INSERT INTO p1 VALUES (1, 'é1', 1.2345, '2026-01-02 03:04:05.678901'), (2, NULL, NULL, NULL);
INSERT INTO c1 (n, s, d, t) VALUES
    ((SELECT id FROM p1 WHERE s = 'é1'), (SELECT s FROM p1 WHERE id = 1),
    (SELECT d FROM p1 WHERE id = 1), (SELECT t FROM p1 WHERE id = 1)),
    ((SELECT id FROM p1 WHERE id > 7), (SELECT s FROM p1 WHERE id = 2),
    1 + (SELECT d FROM p1 WHERE id = 1), (SELECT t FROM p1 WHERE id = 2));
INSERT INTO c1 SET n = (SELECT id FROM p1 WHERE id = 2) * 5,
    s = CONCAT((SELECT s FROM p1 WHERE id = 1), '?');
UPDATE c1 SET s = (SELECT s FROM p1 WHERE id = 1), n = (SELECT 4)
    WHERE n = (SELECT id FROM p1 WHERE id = 1);
UPDATE c1 SET k = k + (SELECT id FROM p1 WHERE id = 2) WHERE d > (SELECT d FROM p1 WHERE id = 1);
UPDATE c1 SET k = 1 WHERE (SELECT id FROM p1 WHERE id = 1) AND n IS NULL;
UPDATE c1 SET n = 0 WHERE s = (SELECT s FROM p1 WHERE id = 1);
REPLACE INTO c1 (id, n) VALUES
    ((SELECT id FROM p1 WHERE id = 2), (SELECT id FROM p1 WHERE id = 1));
DELETE FROM c1 WHERE id > (SELECT id FROM p1 WHERE t IS NULL);
DELETE FROM none1 WHERE n = (SELECT id FROM p1);
INSERT INTO c1 (s) SELECT s FROM p1 WHERE id = (SELECT id FROM a1 WHERE id = 2);
INSERT INTO p1 (id, s) SELECT id + 10, s FROM c1 WHERE id >= (SELECT id FROM a1 WHERE id = 1)
    ORDER BY id
"""
UNDECIDED = (
    "DELETE FROM a WHERE id IN (SELECT x FROM a)",
    "UPDATE a SET x = (SELECT z FROM a WHERE id = 1)",
    "UPDATE a SET x = (SELECT 1.5)",
    "DELETE FROM a WHERE x IN (SELECT y FROM b UNION SELECT 1)",
    "DELETE FROM a WHERE x IN (SELECT s FROM b)",
    "DELETE FROM a WHERE (id, x) IN (SELECT aid, y FROM b)",
    "DELETE FROM a WHERE x = ANY (SELECT y FROM b)",
    "DELETE FROM a WHERE EXISTS (VALUES ROW(1))",
    "DELETE FROM p WHERE id IN (SELECT pid FROM c)",
    "DELETE FROM p WHERE NOT EXISTS (SELECT 1 FROM c WHERE pid = id)",
    "DELETE FROM a WHERE x IN (SELECT y FROM b LIMIT 1)",
    "INSERT INTO a SELECT aid + 100, 1, 1 FROM b WHERE aid IN (SELECT id FROM a)",
)
"""What is not read, and what a server may read before or after it changes it."""


def test_subqueries_find_what_they_find_on_the_server(server: Server) -> None:
    tables = Tables()
    result = applier.replay([run(server, SCRIPT.strip().split(";\n"), "")], into=tables)
    assert result.error is None, result.error
    rows, wrong = differing(tables)
    assert (rows > 5, wrong) == (True, [])


@pytest.mark.parametrize("value", ["= (SELECT {})", "IN (SELECT {})"])
def test_a_subquery_that_each_row_draws_anew_is_refused(server: Server, value: str) -> None:
    rows = ", ".join(f"({number}, 1)" for number in range(20))
    draw = value.format("IF(RAND() > 0.5, 1, 2)")
    log = run(
        server,
        [
            "CREATE TABLE t (id INT PRIMARY KEY, x INT)",
            f"INSERT INTO t VALUES {rows}",
            f"UPDATE t SET x = 5 WHERE x {draw}",
        ],
        "",
    )
    error = applier.replay([log], into=Tables()).error
    assert error is not None
    assert error.number == 1235


def test_subqueries_drawn_by_chance(server: Server) -> None:
    count = number_drawn(200)
    assert compared_drawn(server, drawn, 1126, count) > count * 5 / 4


def drawn(rng: random.Random, number: int) -> Iterator[str]:
    """Two tables with few values, and one statement that looks from one into the other."""
    a, b = f"a{number}", f"b{number}"
    engine = rng.choice(["InnoDB", "InnoDB", "MyISAM"])
    key = rng.choice(["PRIMARY KEY (k)", "PRIMARY KEY (k), KEY (x), KEY (s)"])
    for table in (a, b):
        yield (
            f"CREATE TABLE {table} (k INT NOT NULL, x INT, u BIGINT UNSIGNED, s VARCHAR(5), {key}) "
            f"ENGINE={engine}"
        )
        if count := rng.choice([0, 1, 2, 4, 6]):
            rows = (
                f"({at}, {rng.choice(NUMBERS)}, {rng.choice(NUMBERS)}, {rng.choice(TEXTS)})"
                for at in range(count)
            )
            yield f"INSERT INTO {table} VALUES {', '.join(rows)}"
    column = rng.choice(["x", "u", "s", "k"])
    inner = column if column == "s" else rng.choice(["x", "u", "k"])
    within = rng.choice(["", f" WHERE {rng.choice(CONDITIONS)}", f" WHERE {inner} IS NOT NULL"])
    where = f"{column} {rng.choice(['IN', 'IN', 'NOT IN'])} (SELECT {inner} FROM {b}{within})"
    one = f"(SELECT {inner} FROM {b} WHERE k = {rng.randint(0, 5)})"
    if rng.random() < 0.3:
        where = f"{column} {rng.choice(['=', '<', '<>', '<=>'])} {one}"
    if rng.random() < 0.4:
        where = rng.choice(["{} AND {}", "{} OR {}", "NOT ({}) OR {}"]).format(
            where, rng.choice(CONDITIONS)
        )
    assignment = rng.choice(["x = 9", "s = NULL", "u = u + 1", f"{column} = {one}"])
    yield rng.choice(
        [
            f"UPDATE {a} SET {assignment} WHERE {where}",
            f"DELETE FROM {a} WHERE {where}",
            f"INSERT INTO {a} VALUES (50, {one}, 1, {one}), (51, 2, {one}, 'z')",
            f"INSERT INTO {b} SELECT k + 100, x, u, s FROM {a} WHERE "
            + where.replace(f"FROM {b}", f"FROM {a}"),
        ]
    )


def test_mariadb_reads_the_table_that_it_changes(server_factory: ServerFactory) -> None:
    rng = random.Random(int(os.environ.get("SEED", "1130")))
    statements = [one for number in range(60) for one in of_own_table(rng, f"o{number}")]
    server = server_factory("mariadb")
    try:
        assert compared_exactly(server, statements) == 60
    finally:
        server.close()


def of_own_table(rng: random.Random, name: str) -> Iterator[str]:
    """A table, rows, and statements whose subqueries read it, too."""
    yield f"CREATE TABLE {name} (k INT PRIMARY KEY, x INT, u INT, s VARCHAR(5), KEY (x))"
    rows = [
        f"({k}, {rng.choice(NUMBERS)}, {rng.choice(NUMBERS)}, {rng.choice(TEXTS)})"
        for k in range(9)
    ]
    yield f"INSERT INTO {name} VALUES {', '.join(rows)}"
    for _ in range(3):
        column, other = rng.choice((("x", "x"), ("x", "u"), ("k", "k"), ("s", "s")))
        inner = f"SELECT {other} FROM {name} WHERE {rng.choice(CONDITIONS)}"
        where = rng.choice(
            (
                f"{column} IN ({inner})", f"{column} NOT IN ({inner})", f"EXISTS ({inner})",
                f"x > (SELECT AVG(u) FROM {name})", f"x = (SELECT MAX(x) FROM {name})",
            )
        )  # fmt: skip
        assignment = rng.choice(
            ("x = x + 1", "u = 5", "s = 'n'", f"x = (SELECT COUNT(*) FROM {name})")
        )
        yield rng.choice((f"UPDATE {name} SET {assignment}", f"DELETE FROM {name}")) + (
            f" WHERE {where}"
        )


NUMBERS = ("NULL", "1", "1", "2", "3", "7")
TEXTS = ("NULL", "'a'", "'A'", "'b'", "'b '", "'1'", "''")
CONDITIONS = ("x = 1", "s = 'a'", "u > 1", "x IS NULL", "k BETWEEN 1 AND 3", "x IN (1, 3)", "1 = 0")
SCHEMA = """CREATE TABLE d.a (id INT PRIMARY KEY, x INT, z INT);
CREATE TABLE d.b (aid INT, y INT, s VARCHAR(5));
CREATE TABLE d.p (id INT PRIMARY KEY);
CREATE TABLE d.c (pid INT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE);
INSERT INTO d.a VALUES (1, 1, 1), (2, 2, 2);
INSERT INTO d.b VALUES (1, 5, '5'), (1, 6, '6'), (2, 7, NULL);"""


@pytest.mark.parametrize("statement", UNDECIDED)
def test_other_subqueries_are_refused(statement: str) -> None:
    assert_refused(SCHEMA, statement)
