"""User variables of statements, as real servers log them: what is said of them, and what they are
on the target."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from servers.server import Server

from applier.binlog.header import EventType
from applier.event_list import LogEvents
from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.options import parse_options
from tests.mysql.server_support import endpoint
from tests.servers.fixtures import ServerFactory

VALUES = (
    "''", "'a'", "_binary''", "X'00ff'", "1", "-1", "18446744073709551615", "1.5", "-0.001", "1e10",
    "0.1e0", "-1e-300", "NULL", "_latin1'x' COLLATE latin1_bin", "'é'",
)  # fmt: skip
SHAPES = (
    "POINT(1, 2.5)", "POINT(-0e0, 1e-300)", "LINESTRING(POINT(1, 1), POINT(2, 2))",
    "POLYGON(LINESTRING(POINT(0, 0), POINT(3, 0), POINT(3, 3), POINT(0, 0)))",
    "MULTIPOINT(POINT(1, 1), POINT(2, 2))",
    "MULTILINESTRING(LINESTRING(POINT(1, 1), POINT(2, 2)))",
    "MULTIPOLYGON(POLYGON(LINESTRING(POINT(0, 0), POINT(3, 0), POINT(3, 3), POINT(0, 0))))",
    "GEOMETRYCOLLECTION(POINT(1, 1), GEOMETRYCOLLECTION(POINT(2, 2)))",
    "ST_GeomFromText('POINT(1 1)', 4326)", "ST_GeomFromText('LINESTRING(1 1, 2 2)')",
)  # fmt: skip
"""MariaDB logs their types."""


@pytest.fixture(scope="module", params=("5.7", "9.7", "mariadb"))
def source(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    started = server_factory(request.param, options={"binlog_format": "STATEMENT"})
    yield started
    started.close()


def test_what_is_said_of_them(source: Server) -> None:
    values = VALUES + SHAPES * (source.installed.recipe.name == "mariadb")
    with source.connect(autocommit=True, charset="utf8mb4") as session, session.cursor() as cursor:
        for sql in ("CREATE DATABASE said", "USE said", "CREATE TABLE t (a LONGBLOB)"):
            cursor.execute(sql)
        for value in values:
            cursor.execute(f"SET @`a b` = {value}")
            cursor.execute("INSERT INTO t VALUES (@`a b`)")
        log = source.binlog_files()[-1]
        cursor.execute(f"SHOW BINLOG EVENTS IN '{log.name}'")
        theirs = [row[5] for row in cursor.fetchall() if row[2] == "User var"]
    ours = [row.info for row in LogEvents([str(log)]) if row.event.type == EventType.USER_VAR]
    assert ours == theirs
    assert len(ours) == len(values)


def test_shapes_keep_their_types(server_factory: ServerFactory) -> None:
    """The type of a variable is that of a column that is made of it."""
    source, target = (
        server_factory("mariadb", options={"binlog_format": "STATEMENT", "server_id": number})
        for number in (1, 2)
    )
    with closing(source), closing(target):
        source.execute("CREATE DATABASE shapes")
        for number, shape in enumerate(SHAPES):
            source.execute(
                f"SET @v = {shape}",
                f"CREATE TABLE shapes.t{number} AS SELECT @v AS v, ST_AsText(@v) AS text",
            )
        log = str(source.binlog_files()[-1])
        assert replay_into([log], endpoint(target), parse_options(), IntoOptions()).error is None
        for number in range(len(SHAPES)):
            for sql in (f"SHOW CREATE TABLE shapes.t{number}", f"SELECT * FROM shapes.t{number}"):
                assert target.query(sql) == source.query(sql)


def test_a_moment_that_no_session_has_can_be_skipped(server_factory: ServerFactory) -> None:
    """5.7 logs a million microseconds; the statement is refused, and goes with --skip-errors."""
    source, target = (
        server_factory("5.7", options={"binlog_format": "STATEMENT", "server_id": number})
        for number in (1, 2)
    )
    with closing(source), closing(target):
        source.execute("CREATE DATABASE moments", "CREATE TABLE moments.t (a TIMESTAMP(6) NULL)")
        for moment in ("1.9999996", "2.5"):
            source.execute(f"SET timestamp = {moment}", "INSERT INTO moments.t VALUES (NOW(6))")
        log, options = str(source.binlog_files()[-1]), IntoOptions()
        stopped = replay_into([log], endpoint(target), parse_options(), options)
        assert stopped.error is not None
        assert stopped.error.number == 1235
        skipping = parse_options(skip_errors="1235")
        assert replay_into([log], endpoint(target), skipping, options).error is None
        assert target.query("SELECT UNIX_TIMESTAMP(a) + 0e0 FROM moments.t") == ((2.5,),)
