"""The same servers as containers, by testcontainers; skipped, and counted, where no Docker engine
or image is there."""

from __future__ import annotations

import pytest
from servers.container import ContainerServer

pytestmark = pytest.mark.filterwarnings("default::ResourceWarning")


def test_container_answers_and_writes_a_row_binlog(any_container: ContainerServer) -> None:
    assert any_container.query("SELECT @@binlog_format, @@log_bin, @@server_id") == (("ROW", 1, 1),)


def test_container_survives_a_crash(any_container: ContainerServer) -> None:
    any_container.execute(
        "CREATE DATABASE kept",
        "CREATE TABLE kept.t (a INT NOT NULL PRIMARY KEY) ENGINE=InnoDB",
        "INSERT INTO kept.t VALUES (1), (2)",
    )
    port = any_container.port
    any_container.kill()
    any_container.start()
    assert any_container.port == port
    assert any_container.query("SELECT a FROM kept.t ORDER BY a") == ((1,), (2,))


def test_container_stops_the_clean_way(any_container: ContainerServer) -> None:
    any_container.stop()
    any_container.start()
    assert any_container.query("SELECT 1") == ((1,),)
