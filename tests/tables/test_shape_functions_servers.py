"""Shapes from texts and coordinates, in statement format on real servers and in memory: equal or
refused."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from servers.server import Server

from tests.servers.fixtures import ServerFactory
from tests.tables.test_functions_servers import SERVERS, compared, run

ALIKE = (
    "ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('  point ( -1.5   2e3 ) ')",
    "ST_PointFromText('POINT(0.5 -0)')", "ST_GeomFromText('LINESTRING(0 0,1 1, 2 2.25)')",
    "ST_GeometryFromText('POLYGON((0 0,10 0,10 10,0 10,0 0),(4 4,6 4,6 6,4 6,4 4))')",
    "ST_PolyFromText('POLYGON((0 0,0 10,10 10,10 0,0 0))')", "ST_GeomFromText(NULL)",
    "ST_MPointFromText('MULTIPOINT(1 1, 2 2)')", "ST_GeomFromText('MULTILINESTRING((1 1,2 2))')",
    "ST_MPolyFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((5 5,9 5,9 9,5 5)))')",
    "ST_GeomCollFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(1 1,2 2))')",
    "ST_GeomFromText('POINT(1 2)', 0)", "POINT(1, 2.5)", "POINT(-1e3, NULL)", "POINT(0.1, i)",
    "ST_GeomFromText(CONCAT('POINT(', i, ' 3)'))", "ST_GeomFromText('POINT(20 30)', 4326)",
    "ST_GeomFromText('LINESTRING(-90 180, 90 -179.5)', 4326)",
    "ST_GeomFromText('POLYGON((0 0,0 10,10 10.25,10 0,0 0))', 4326)",
)  # fmt: skip
"""None of them is refused."""


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    started = server_factory(request.param, options={"character_set_server": "utf8mb4"})
    yield started
    started.close()


def number(draw: random.Random) -> str:
    return draw.choice(
        (
            str(draw.randint(-9, 9)), f"{draw.uniform(-180, 180):.{draw.randint(0, 12)}f}",
            f"{draw.uniform(-1, 1)!r}", f"{draw.randint(1, 9)}e{draw.randint(-20, 20)}", "-0", "1.",
            ".5", "+3",
        )
    )  # fmt: skip


def point(draw: random.Random) -> str:
    return f"{number(draw)}{draw.choice((' ', '  '))}{number(draw)}"


def listed(draw: random.Random, parts: list[str]) -> str:
    return "(" + draw.choice((",", ", ", " ,")).join(parts) + ")"


def line(draw: random.Random) -> str:
    return listed(draw, [point(draw) for _ in range(draw.choice((1, 2, 2, 3)))])


def ring(draw: random.Random) -> str:
    points = [point(draw) for _ in range(draw.choice((2, 3, 3, 4)))]
    return listed(draw, points if draw.random() < 0.1 else [*points, points[0]])


def polygon(draw: random.Random) -> str:
    return listed(draw, [ring(draw) for _ in range(draw.choice((1, 1, 2)))])


def shape(draw: random.Random, depth: int = 0) -> str:
    kind = draw.choice(
        ("POINT", "LineString", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "multipolygon")
        + ("GEOMETRYCOLLECTION",) * (depth < 2)
    )
    if draw.random() < 0.04:
        return draw.choice((f"{kind} EMPTY", f" {kind}  empty "))
    several = range(draw.choice((1, 2, 3)))
    body = {
        "POINT": lambda: f"({point(draw)})",
        "LineString": lambda: line(draw),
        "POLYGON": lambda: polygon(draw),
        "MULTIPOINT": lambda: listed(
            draw, [draw.choice(("{}", "{}", "({})")).format(point(draw)) for _ in several]
        ),
        "MULTILINESTRING": lambda: listed(draw, [line(draw) for _ in several]),
        "multipolygon": lambda: listed(draw, [polygon(draw) for _ in several]),
        "GEOMETRYCOLLECTION": lambda: draw.choice(
            (listed(draw, [shape(draw, depth + 1) for _ in several]), " EMPTY", "()")
        ),
    }[kind]()
    return kind + draw.choice(("", " ", "  ")) + body


def inserts(expressions: list[str]) -> Iterator[str]:
    yield "CREATE TABLE a (id INT PRIMARY KEY, i INT, g GEOMETRY, b BLOB, n INT)"
    for at, expression in enumerate(expressions):
        yield (
            f"INSERT INTO a (id, i, g, b, n) VALUES ({at}, 7, {expression}, {expression},"
            f" LENGTH({expression}))"
        )


def test_shapes_are_the_servers(server: Server) -> None:
    equal, different = compared(run(server, inserts(list(ALIKE)), ""), skip_errors="")
    assert (different, equal) == ([], len(ALIKE))


@pytest.mark.parametrize("seed", range(2))
def test_random_texts(server: Server, seed: int) -> None:
    draw = random.Random(seed)
    names = ("ST_GeomFromText", "ST_GeomFromText", "ST_PointFromText", "ST_LineFromText")
    expressions = []
    for _ in range(400):
        srid = draw.choice(("", "", "", ", 0", ", 4326", ", 101"))
        expressions.append(f"{draw.choice(names)}('{shape(draw)}'{srid})")
    equal, different = compared(run(server, inserts(expressions), ""))
    assert different == []
    assert equal > 20
