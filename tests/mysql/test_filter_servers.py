"""Filters of a replay into a server: by the tables that statements name, without the server's own
schemas, never in silence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from applier.errors import UsageError
from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.mysql.outcome import TargetOutcome
from applier.options import parse_options
from tests.applier.logs import ints, transaction
from tests.binlog.build import gtid, log, query, rows, table_map, write
from tests.mysql.server_support import Servers, endpoint
from tests.servers.fixtures import ServerFactory

CONTENT = log(
    gtid(1), query(b"CREATE DATABASE shop", b""), gtid(2),
    query(b"CREATE TABLE shop.t (a INT PRIMARY KEY)", b"elsewhere"),
    gtid(3), query(b"CREATE TABLE other.u (a INT)", b"elsewhere"),
    *transaction(4, table_map(database=b"shop"), rows(30, ints(1))),
    *transaction(5, table_map(2, database=b"mysql", table=b"gone"), rows(30, ints(2), 2)),
    gtid(6), query(b"TRUNCATE shop.t", b"elsewhere"),
    *transaction(7, table_map(database=b"shop"), rows(30, ints(3))),
)  # fmt: skip


@pytest.fixture(scope="module")
def servers(server_factory: ServerFactory) -> Iterator[Servers]:
    servers = Servers(server_factory)
    yield servers
    servers.close()


@pytest.mark.parametrize("mode", ["native", "sql"])
def test_filters(servers: Servers, tmp_path: Path, mode: str) -> None:
    server, path = servers.empty("9.7"), write(tmp_path, CONTENT)

    def go(**options: object) -> TargetOutcome:
        into = IntoOptions(apply=mode, force=True)
        return replay_into([str(path)], endpoint(server), parse_options(**options), into)  # type: ignore[arg-type]

    with pytest.raises(UsageError, match="names nothing that is in the log"):
        go(table="shop.T")
    assert server.query("SHOW DATABASES LIKE 'shop'") == ()
    outcome = go(exclude_database=["other", "elsewhere"])
    assert outcome.error is None
    assert "left out: mysql (1 rows event); name it with --database to replay it" in outcome.notes
    assert server.query("SELECT a FROM shop.t") == ((3,),)


def test_a_misspelt_name_behind_a_start_that_failed(servers: Servers, tmp_path: Path) -> None:
    server = servers.empty("9.7")
    path = write(tmp_path, log(*transaction(1, table_map(database=b"shop"), rows(30, ints(1)))))

    def go(**options: object) -> TargetOutcome:
        return replay_into(
            [str(path)], endpoint(server), parse_options(**options), IntoOptions(force=True)
        )  # type: ignore[arg-type]

    failed = go()
    assert failed.error is not None
    assert failed.error.number in (1049, 1146)
    with pytest.raises(UsageError, match="names nothing that is in the log"):
        go(table="shop.tt")
