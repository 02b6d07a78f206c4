"""The settings of a live replica, asked of real servers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from applier.cli.main import cli
from applier.forecast.live.live_settings import settings_of_server
from applier.forecast.prices.conditions import conditions
from applier.mysql.client.url import Endpoint
from tests.forecast.logs import UPDATE, file, transaction
from tests.servers.fixtures import ServerFactory

RELAXED = {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0, "innodb_buffer_pool_size": "64M"}


@pytest.mark.parametrize(
    ("name", "workers", "parallel_type"),
    [("9.7", 4, "LOGICAL_CLOCK"), ("5.7", 0, "DATABASE"), ("mariadb", 0, "optimistic")],
)
def test_a_server_says_what_it_is_like(
    name: str, workers: int, parallel_type: str, server_factory: ServerFactory
) -> None:
    server = server_factory(name, options=RELAXED)
    try:
        endpoint = Endpoint(server.host, server.port, server.user, password=server.password)
        live = settings_of_server(endpoint)
        found = conditions(live.version, {}, live)
        assert not found.doubts
        assert (found["workers"], found["parallel_type"]) == (workers, parallel_type)
        assert (found["innodb_flush_log_at_trx_commit"], found["sync_binlog"]) == (2, 0)
        assert found["buffer_pool"] == 64 << 20
        told = {setting for setting, one in found.values.items() if one.source == "live replica"}
        assert told >= {"workers", "sync_binlog", "buffer_pool", "log_replica_updates"}
        assert live.is_here and live.source_id is None and found.syncs == 0
    finally:
        server.close()


def test_forecast_takes_them_from_the_schema_s_server(
    server_factory: ServerFactory, tmp_path: Path
) -> None:
    server = server_factory("9.7", options={**RELAXED, "replica_parallel_workers": 2})
    try:
        server.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.plain (id INT, name VARCHAR(20)) ENGINE=InnoDB",
        )
        log = file(tmp_path, transaction(1, b"plain", UPDATE, 1))
        url = f"mysql://{server.user}@127.0.0.1:{server.port}"
        environment = {"BINLAG_PASSWORD": server.password}
        result = CliRunner().invoke(
            cli, ["forecast", log, "--schema", url, "--cores", "8", "--json"], env=environment
        )
        assert result.exit_code == 0, result.output
        settings = json.loads(result.stdout)["replica"]["settings"]
        assert settings["workers"] == {"value": 2, "from": "live replica"}
        assert settings["cores"] == {"value": 8, "from": "option"}
        assert settings["preserve_commit_order"] == {"value": True, "from": "live replica"}
    finally:
        server.close()
