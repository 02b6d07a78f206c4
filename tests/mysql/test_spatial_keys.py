"""Tables whose rows a server looks for by a SPATIAL key: where InnoDB finds none, memory stops at
the same event."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from servers.server import Server

from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.options import parse_options
from tests.mysql.beside_server import Beside
from tests.mysql.server_support import endpoint

SHAPES = {
    "a SPATIAL key": ("g POINT NOT NULL, SPATIAL KEY s (g)", ""),
    "with an SRID": ("g POINT NOT NULL /*!80003 SRID 0 */, SPATIAL KEY s (g)", ""),
    "before another key": ("g POINT NOT NULL /*!80003 SRID 0 */, SPATIAL KEY s (g), KEY k (a)", ""),
    "behind another key": ("g POINT NOT NULL /*!80003 SRID 0 */, KEY k (a), SPATIAL KEY s (g)", ""),
    "before a unique key": (
        "g POINT NOT NULL /*!80003 SRID 0 */, SPATIAL KEY s (g), UNIQUE KEY k (a)",
        "",
    ),
    "beside a primary key": (
        "g POINT NOT NULL /*!80003 SRID 0 */, SPATIAL KEY s (g), b INT AUTO_INCREMENT PRIMARY KEY",
        "",
    ),
    "an ordinary key": ("g POINT NOT NULL /*!80003 SRID 0 */, KEY s (g(25))", ""),
    "a key without its kind": ("g POINT NOT NULL /*!80003 SRID 0 */, KEY s (g)", ""),
    "MyISAM": ("g POINT NOT NULL /*!80003 SRID 0 */, SPATIAL KEY s (g)", "MyISAM"),
}
CHANGES = ("DELETE FROM t WHERE a < 3", "UPDATE t SET a = a + 10")


@pytest.mark.in_ci
@pytest.mark.parametrize("any_server", ["5.7", "9.7", "mariadb"], indirect=True)
def test_memory_stops_where_the_server_stops(any_server: Server, tmp_path: Path) -> None:
    ends: dict[str, tuple[object, object]] = {}
    for name, (columns, engine) in SHAPES.items():
        for change in CHANGES:
            rows = [
                f"INSERT INTO t (a, g) VALUES ({n}, ST_GeomFromText('POINT({n} {n})', 0))"
                for n in (1, 2, 3)
            ]
            create = f"CREATE TABLE t (a INT, {columns}) ENGINE={engine or 'InnoDB'}"
            beside = Beside(any_server, [create, *rows, change])
            memory, logs = (
                beside.result.error,
                [shutil.copy(log, tmp_path) for log in any_server.binlog_files()[:-1]],
            )
            if memory is None:
                assert beside.difference == "", (name, change)
            any_server.execute("DROP DATABASE d", "DROP DATABASE IF EXISTS binlag")
            server = replay_into(
                logs, endpoint(any_server), parse_options(), IntoOptions(force=True)
            ).error
            ends[f"{name}, {change}"] = tuple(
                error and (error.number, error.position) for error in (memory, server)
            )  # type: ignore[assignment]
    assert {case: end for case, end in ends.items() if end[0] != end[1]} == {}
    assert 0 < sum(end[0] is not None for end in ends.values()) < len(ends)
