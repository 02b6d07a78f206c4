"""binlag's own image, and the compose file: valid, and a replica that really follows."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pymysql
import pytest
from servers.container import engine, image_of
from servers.process import ReservedPort

from tests.servers.fixtures import ServerFactory, lacking, there_or_lacking

ROOT = Path(__file__).resolve().parents[2]
_OWN_IMAGE = "binlag/binlag:latest"
_FOLLOWS_SECONDS = 600.0


def _compose() -> list[str]:
    plugin = (
        subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
        if shutil.which("docker")
        else None
    )
    if plugin is not None and plugin.returncode == 0:
        return ["docker", "compose"]
    alone = shutil.which("docker-compose")
    if not alone:
        lacking("docker compose is not installed")
    return [alone]


def _image(name: str) -> str:
    with there_or_lacking(), engine() as client:
        there = {tag for image in client.images.list() for tag in image.tags}
    if name not in there:
        lacking(f"the Docker engine has no {name}; python docker/build.py binlag builds it")
    return name


def test_compose_file_is_valid() -> None:
    environment = {**os.environ, "MYSQL_ROOT_PASSWORD": "x"}
    command = [*_compose(), "-f", str(ROOT / "docker/compose.yaml"), "config", "--services"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == ["follow", "replica", "source"]


def test_compose_file_wants_a_password() -> None:
    environment = {
        name: value for name, value in os.environ.items() if name != "MYSQL_ROOT_PASSWORD"
    }
    command = [*_compose(), "-f", str(ROOT / "docker/compose.yaml"), "config"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "choose a password for root" in done.stderr


def test_own_image_reads_a_log() -> None:
    log = ROOT / "tests/captures/open/my57_xa/binlog.000001"
    command = [
        "docker",
        "run",
        "--rm",
        "--network=none",
        "-v",
        f"{log.parent}:/logs:ro",
        _image(_OWN_IMAGE),
        "events",
        f"/logs/{log.name}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Server ver: 5.7.29-log" in done.stdout


def test_own_image_replays_into_a_server_and_verifies(server_factory: ServerFactory) -> None:
    image = _image(_OWN_IMAGE)
    server = server_factory.container("9.7")
    environment = {**os.environ, "BINLAG_PASSWORD": server.password}
    capture = ROOT / "tests/captures/open/my_nokey_duplicates"
    run = [
        "docker",
        "run",
        "--rm",
        "--network=host",
        "-e",
        "BINLAG_PASSWORD",
        "-v",
        f"{capture}:/logs:ro",
        image,
    ]
    arguments = [
        "/logs/binlog.000001",
        "--schema",
        "/logs/before.sql",
        "--into",
        f"mysql://root@127.0.0.1:{server.port}",
        "--json",
    ]
    for apply, replayed in (("native", True), ("sql", False)):
        done = subprocess.run(
            [*run, "replay", *arguments, "--apply", apply],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        # the second run goes on where the first one ended
        assert (json.loads(done.stdout)["transactions"] > 0) is replayed
    done = subprocess.run(
        [*run, "verify", *arguments], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["equal"]
    server.close()


@pytest.fixture(
    params=[("9.7", "--gtid-mode=ON --enforce-gtid-consistency=ON"), ("mariadb", "")],
    ids=["9.7", "mariadb"],
)
def composed(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """Source and replica of compose.yaml; the environment that it was started with."""
    name, options = request.param
    with there_or_lacking():
        image = image_of(name)
    _image(_OWN_IMAGE)
    command = [
        *_compose(),
        "-p",
        f"binlag-{secrets.token_hex(4)}",
        "-f",
        str(ROOT / "docker/compose.yaml"),
    ]
    with closing(ReservedPort()) as source, closing(ReservedPort()) as replica:
        environment = {
            **os.environ,
            "BINLAG_IMAGE": image,
            "BINLAG_OPTIONS": options,
            "BINLAG_SOURCE_PORT": str(source.number),
            "BINLAG_REPLICA_PORT": str(replica.number),
            "MYSQL_ROOT_PASSWORD": secrets.token_hex(12),
        }
        try:
            subprocess.run(
                [*command, "up", "-d", "--no-build"],
                env=environment,
                capture_output=True,
                check=True,
            )
            yield environment
        finally:
            subprocess.run(
                [*command, "down", "-v", "--timeout", "1"],
                env=environment,
                capture_output=True,
                check=True,
            )


def test_replica_of_the_compose_file_follows(composed: dict[str, str]) -> None:
    def query(port: str, *statements: str) -> tuple[tuple[object, ...], ...]:
        password = composed["MYSQL_ROOT_PASSWORD"]
        connection = pymysql.connect(
            host="127.0.0.1", port=int(port), user="root", password=password, autocommit=True
        )
        with connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return tuple(cursor.fetchall())

    def eventually(port: str, *statements: str) -> tuple[tuple[object, ...], ...]:
        deadline = time.monotonic() + _FOLLOWS_SECONDS
        while True:
            try:
                return query(port, *statements)
            except pymysql.err.Error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)

    source, replica = composed["BINLAG_SOURCE_PORT"], composed["BINLAG_REPLICA_PORT"]
    # The replica starts from the source's position when it is told: what is written before that is
    # not its business.
    status = "SHOW SLAVE STATUS" if "mariadb" in composed["BINLAG_IMAGE"] else "SHOW REPLICA STATUS"
    deadline = time.monotonic() + _FOLLOWS_SECONDS
    while not eventually(replica, status):
        assert time.monotonic() < deadline
        time.sleep(0.3)
    query(
        source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (a INT PRIMARY KEY)",
        "INSERT INTO shop.t VALUES (1), (2)",
    )
    eventually(replica, "SELECT a FROM shop.t LIMIT 1")
    deadline = time.monotonic() + _FOLLOWS_SECONDS
    while (rows := query(replica, "SELECT a FROM shop.t ORDER BY a")) != ((1,), (2,)):
        assert time.monotonic() < deadline, rows
        time.sleep(0.1)
