"""UPDATE, DELETE and INSERT … SELECT of joined tables, in statement format on real servers and in
memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from servers.server import Server

import applier
from applier.errors import ReplicationError
from applier.tables.catalog import Tables
from applier.tables.dml.row_writer import StatementSession
from applier.tables.dml.statements import execute_statement
from applier.tables.dml.table_references import JoinedTables
from applier.tables.expressions.expression_parser import sql_parser
from applier.tables.expressions.operands import Session
from tests.servers.chosen_cases import number_drawn
from tests.tables.test_functions_servers import REFUSED, TWIN, run

SCRIPTS = """
CREATE TABLE a1 (id INT PRIMARY KEY, x INT, s VARCHAR(20), d DATETIME NULL);
CREATE TABLE b1 (id INT PRIMARY KEY, aid INT, y INT, s VARCHAR(20), KEY (aid));
CREATE TABLE c1 (id INT, n INT, s VARCHAR(40));
INSERT INTO a1 VALUES (1, 10, 'one', NULL), (2, 20, 'two', NULL), (3, 30, 'Three', NULL),
    (4, NULL, NULL, NULL);
INSERT INTO b1 VALUES (1, 1, 100, 'ONE'), (2, 2, 200, 'x'), (3, 2, 200, 'x'), (4, 9, 900, 'four'),
    (5, NULL, 1, NULL);
INSERT INTO c1 SELECT a1.id, b1.y, CONCAT(a1.s, b1.s) FROM a1, b1 WHERE a1.id = b1.aid;
INSERT INTO c1 (id, n) SELECT b.id, a1.x FROM b1 b LEFT OUTER JOIN a1 ON a1.id = b.aid
    AND a1.x > 10;
INSERT INTO c1 SELECT a.id, b.id, 'k' FROM a1 a INNER JOIN b1 b ON a.s = b.s;
INSERT INTO c1 (id, n) SELECT p.id, matrix.b1.y FROM a1 p JOIN b1 USING (id);
INSERT INTO c1 SELECT c.* FROM c1 c, b1 b WHERE c.id = b.id AND c.n = 200;
INSERT INTO c1 SELECT id, x, 'u' FROM a1 JOIN b1 USING (id) WHERE y > 100;
INSERT INTO c1 SELECT a.id, o.id, o.s FROM a1 a CROSS JOIN b1 o WHERE o.id < 3
    AND (a.id = o.id OR a.id = 4);
INSERT INTO c1 SELECT c.id, a.x, c.s FROM c1 c JOIN a1 a ON a.id = c.id;
INSERT INTO c1 SELECT a.id, b.y, NULL FROM a1 a JOIN b1 b ON a.id = b.aid ORDER BY b.id LIMIT 2;
INSERT INTO c1 SELECT p.id, r.id, 'three' FROM a1 p JOIN b1 q ON p.id = q.aid LEFT JOIN b1 r
    ON r.id = q.id + 1 AND r.aid = p.id;
UPDATE a1, b1 SET a1.x = b1.y WHERE a1.id = b1.aid;
UPDATE a1 JOIN b1 ON a1.id = b1.aid SET a1.s = CONCAT(a1.s, '-', b1.y), d = NOW() WHERE b1.y > 100;
UPDATE a1 LEFT JOIN b1 ON a1.id = b1.aid SET a1.x = -1 WHERE b1.id IS NULL;
UPDATE a1 INNER JOIN b1 USING (id) SET a1.s = 'u', b1.s = 'v' WHERE a1.id = 3;
UPDATE `a1` AS `t1` INNER JOIN `b1` AS `t2` USE INDEX (aid) ON (`t1`.`id` = `t2`.`aid`)
    SET `t2`.`s` = `t1`.`s`;
DELETE a1 FROM a1 JOIN b1 ON a1.s = b1.s WHERE b1.id = 2;
DELETE FROM b1 USING b1 LEFT JOIN a1 ON a1.id = b1.aid WHERE a1.id IS NULL;
DELETE x FROM b1 x WHERE x.id = 3;
CREATE TABLE a2 (id INT PRIMARY KEY, x INT UNSIGNED,
    ts TIMESTAMP NOT NULL DEFAULT '2001-01-01 00:00:00' ON UPDATE CURRENT_TIMESTAMP);
CREATE TABLE b2 (id BIGINT PRIMARY KEY, y SMALLINT, z INT, f VARCHAR(9) CHARACTER SET latin1);
CREATE TABLE o2 (id INT PRIMARY KEY, x INT);
INSERT INTO a2 (id, x) VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO b2 VALUES (1, 5, 1, '5'), (2, 6, 2, 'zz'), (3, 7, 3, NULL);
INSERT INTO o2 VALUES (1, 50), (2, 60);
UPDATE a2, b2 SET a2.x = b2.y, b2.z = 9 WHERE a2.id = b2.id AND b2.id < 3;
UPDATE a2 JOIN matrix.o2 oa ON oa.id = a2.id SET a2.x = oa.x + a2.x,
    a2.ts = DEFAULT WHERE a2.id = 1;
UPDATE matrix.a2, matrix.o2 SET matrix.o2.x = 7 WHERE matrix.a2.id = o2.id;
UPDATE a2 STRAIGHT_JOIN b2 SET a2.x = 3 WHERE a2.x + 1 = b2.y + 1;
DELETE a2, b2 FROM a2 INNER JOIN b2 ON b2.id = a2.id WHERE a2.id = 2;
DELETE matrix.b2 FROM b2, o2 o WHERE o.id = b2.id;
CREATE TABLE t3 (id INT PRIMARY KEY, email VARCHAR(50), KEY (email));
INSERT INTO t3 VALUES (1, 'a@x'), (2, 'A@X'), (3, 'b@x'), (4, 'c@x'), (5, NULL);
DELETE one FROM t3 one INNER JOIN t3 two WHERE one.id > two.id AND one.email = two.email;
UPDATE t3 x JOIN t3 y ON y.id = x.id - 1 SET x.email = y.email;
CREATE TABLE p4 (id INT PRIMARY KEY) ENGINE=InnoDB;
CREATE TABLE c4 (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p4 (id)) ENGINE=InnoDB;
INSERT INTO p4 VALUES (1), (2), (3);
INSERT INTO c4 VALUES (1, 1), (2, 1), (3, 2);
DELETE c, p FROM c4 c JOIN p4 p ON c.pid = p.id WHERE p.id = 1;
DELETE p4 FROM p4 LEFT JOIN c4 ON c4.pid = p4.id WHERE c4.id IS NULL;
CREATE TABLE a5 (id INT PRIMARY KEY AUTO_INCREMENT, x INT);
CREATE TABLE b5 (aid INT, y INT);
INSERT INTO b5 VALUES (1, 2), (1, 3);
INSERT INTO a5 (x) SELECT x.y FROM b5 x JOIN b5 y USING (aid, y) ORDER BY x.y
"""
UNDECIDED = (
    "UPDATE a JOIN b ON a.id = b.aid SET a.x = b.y",
    "UPDATE a JOIN b ON a.id = b.aid SET a.x = a.x + 1, a.z = a.x",
    "UPDATE a JOIN b ON a.id = b.aid SET a.x = 1, b.y = 2 WHERE a.x = 1",
    "UPDATE a JOIN b ON a.id = b.aid SET a.id = a.id + 1",
    "UPDATE a RIGHT JOIN b ON a.id = b.aid SET a.x = 1",
    "UPDATE a JOIN (b, p) ON a.id = b.aid SET a.x = 1",
    "UPDATE a NATURAL JOIN b SET a.x = 1",
    "UPDATE a, b SET a.x = RAND() WHERE a.id = b.aid",
    "DELETE p FROM p JOIN f ON f.pid = p.id JOIN a ON a.id = f.id",
)
"""Statements that stand for several results, by what the server's optimizer chooses, or that are
not read."""


def differing(tables: Tables) -> tuple[int, list[str]]:
    """How many rows are compared, and the tables that are not what they are on the server."""
    rows, wrong = 0, []
    for twin in tables:
        if twin.definition.name.startswith(TWIN):
            own = tables[f"matrix.{twin.definition.name.removeprefix(TWIN)}"]
            rows += len(twin)
            if sorted(map(repr, own.stored_rows())) != sorted(map(repr, twin.stored_rows())):
                wrong.append(own.definition.name)
    return rows, wrong


def of_script(server: Server, script: str) -> tuple[int, list[str]]:
    """`differing` of a script of which nothing may be refused."""
    statements = [*filter(None, map(str.strip, script.split(";\n")))]
    tables = Tables()
    result = applier.replay([run(server, statements, "")], into=tables)
    assert result.error is None, result.error
    return differing(tables)


def test_joins_change_what_they_change_on_the_server(server: Server) -> None:
    assert of_script(server, SCRIPTS) == (74, [])


def test_joins_drawn_by_chance(server: Server) -> None:
    count = number_drawn(160)
    assert compared_drawn(server, drawn, 1112, count) > count * 5 / 8


def compared_drawn(
    server: Server, drawn: Callable[[random.Random, int], Iterator[str]], seed: int, count: int
) -> int:
    """`compared_exactly` of so many cases that are drawn by chance."""
    rng = random.Random(seed)
    return compared_exactly(server, [one for number in range(count) for one in drawn(rng, number)])


def compared_exactly(server: Server, statements: list[str]) -> int:
    """How many tables are what they are on the server; none is anything else. Each statement has
    tables of its own; those of a refused one are told in the result."""
    tables = Tables()
    result = applier.replay([run(server, statements, "")], into=tables, skip_errors=REFUSED)
    assert result.error is None, result.error
    _, wrong = differing(tables)
    assert [table for table in wrong if f"matrix.{table}" not in result.inexact] == []
    names = [table.definition.name for table in tables]
    twins = [name.removeprefix(TWIN) for name in names if name.startswith(TWIN)]
    return sum(f"matrix.{name}" not in result.inexact for name in twins)


def drawn(rng: random.Random, number: int) -> Iterator[str]:
    """Two tables with few values, and one statement that joins them."""
    a, b = f"a{number}", f"b{number}"
    engine = rng.choice(["InnoDB", "InnoDB", "MyISAM"])
    key = rng.choice(
        ["KEY (id)", "KEY (x)", "PRIMARY KEY (k)", "PRIMARY KEY (k), KEY (x), KEY (s)"]
    )
    for table in (a, b):
        yield (
            f"CREATE TABLE {table} (k INT NOT NULL, id INT, x INT, s VARCHAR(5), {key}) "
            f"ENGINE={engine}"
        )
        rows = (
            f"({at}, {_value(rng)}, {_value(rng)}, {_text(rng)})" for at in range(rng.randint(1, 6))
        )
        yield f"INSERT INTO {table} VALUES {', '.join(rows)}"
    join = rng.choice(JOINS)
    joined = f"{a} p{join.format(b=rng.choice([a, b, b, b]))} "
    condition = " AND ".join(rng.choice(CONDITIONS) for _ in range(rng.randint(1, 2)))
    tables, word, behind = joined.partition(" WHERE")
    where = f"{word} {condition}{behind}" if word else ""
    tables = tables if word else tables + condition
    yield rng.choice(
        [
            f"UPDATE {tables} SET {rng.choice(ASSIGNMENTS)}{where}",
            f"DELETE {rng.choice(['p', 'q', 'p, q'])} FROM {tables}{where}",
            f"INSERT INTO {a} SELECT q.k + 100, p.id, q.x, p.s FROM {tables}{where}",
        ]
    )


def _value(rng: random.Random) -> str:
    return rng.choice(["NULL", "1", "1", "2", "2", "3", "7"])


def _text(rng: random.Random) -> str:
    return rng.choice(["NULL", "'a'", "'A'", "'b'", "'b '", "'1'"])


JOINS = (
    ", {b} q WHERE", " JOIN {b} q ON", " LEFT JOIN {b} q ON", " LEFT JOIN {b} q USING (id) WHERE",
    " CROSS JOIN {b} q WHERE",
)  # fmt: skip
CONDITIONS = (
    "p.id = q.id", "p.id = q.id", "p.s = q.s", "q.x = p.x", "p.x < q.x", "p.id <=> q.id",
    "(p.id = q.x OR p.x = q.id)", "p.id = 2", "q.s = 'a'", "p.s = q.s AND p.k = q.k",
    "q.id IS NULL", "q.k IS NULL", "p.id BETWEEN 1 AND q.id",
    "NOT p.id = q.id", "p.k IN (q.k, q.id)", "p.id = p.x",
)  # fmt: skip
ASSIGNMENTS = (
    "p.x = 9", "q.x = p.x", "p.s = q.s", "p.x = p.x + 1", "p.x = 5, q.x = 6",
    "p.s = 'n', q.id = p.id", "p.x = q.x * 2, p.s = 'z'",
    "q.x = q.x + p.id",
)  # fmt: skip


SCHEMA = """CREATE TABLE d.a (id INT PRIMARY KEY, x INT, z INT);
CREATE TABLE d.b (aid INT, y INT);
CREATE TABLE d.p (id INT PRIMARY KEY);
CREATE TABLE d.f (id INT, pid INT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE);
INSERT INTO d.a VALUES (1, 1, 1), (2, 2, 2);
INSERT INTO d.b VALUES (1, 5), (1, 6), (2, 7);
INSERT INTO d.p VALUES (1);
INSERT INTO d.f VALUES (1, 1);"""


@pytest.mark.parametrize("statement", UNDECIDED)
def test_what_the_order_of_reading_decides_is_refused(statement: str) -> None:
    assert_refused(SCHEMA, statement)


def assert_refused(schema: str, statement: str) -> None:
    """It is refused with 1235, and changes nothing."""
    tables = applier.load_schema(schema)
    before = [table.rows() for table in tables]
    with pytest.raises(ReplicationError) as caught:
        execute_statement(tables, statement, "d", StatementSession())
    assert caught.value.number == 1235
    assert [table.rows() for table in tables] == before


@pytest.mark.parametrize(
    ("joined", "pairs"),
    [
        ("a, b where a.id = b.aid", 3),
        ("a, b WHERE b.aid = a.id AND a.x = 1", 3),
        ("a, b WHERE (a.id = b.aid)", 3),
        ("a, b WHERE ((b.aid = a.id) AND (1))", 3),
        ("a, b WHERE (a.id = b.aid) = 0", 6),
        ("a, b WHERE IF(a.id = b.aid, 1, 2)", 6),
        ("a JOIN b ON (a.id = b.aid)", 3),
        ("a JOIN b ON a.id = b.aid && a.x < 2", 2),
        ("a JOIN b ON a.id = b.aid OR a.x = 2", 5),
        ("a LEFT JOIN b ON a.id = b.aid AND b.y = 5", 2),
        ("a LEFT JOIN b ON 1 WHERE a.id = b.aid", 6),
        ("a, b WHERE a.x BETWEEN 1 AND a.id = b.aid", 6),
        ("a, b WHERE NOT a.id = b.aid", 6),
        ("a, b WHERE a.id + 0 = b.aid", 6),
    ],
)
def test_only_rows_with_equal_columns_are_put_together(joined: str, pairs: int) -> None:
    """`pairs`: rows that WHERE is asked about."""
    tables = applier.load_schema(SCHEMA)
    parser = sql_parser(joined, Session().dialect)
    references = JoinedTables(parser, tables, "d", Session())
    references.read()
    start = parser.at
    if parser.accept("WHERE"):
        references.reader().expression()
        references.take_equalities(start)
    assert parser.done
    assert len(list(references.rows())) == pairs
