"""The server that most comparisons of statements run on; modules with other options have theirs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from servers.server import Server

from tests.servers.fixtures import ServerFactory
from tests.tables.test_functions_servers import SERVERS


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    started = server_factory(
        request.param, options={"innodb_flush_log_at_trx_commit": 0, "sync_binlog": 0}
    )
    yield started
    started.close()
