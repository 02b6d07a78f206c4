"""The same servers as containers of a Docker engine, by testcontainers: official images, or those
that docker/build.py makes.

Where no image registry can be reached only the latter are there. testcontainers' own watchdog
container is not used for that reason; a container ends with the test session, or with `close`.
"""

from __future__ import annotations

import importlib
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from servers.database import Database, ServerError
from servers.process import free_port
from servers.table import IMAGES, NAMES, Options, recipe_of

if TYPE_CHECKING:
    from testcontainers.community.mysql import MySqlContainer

PULL = "BINLAG_PULL_IMAGES"
_STOP_SECONDS = 120
_DATABASE = "test"
_UNIX = "unix://"
_SOCKET = "unix:///var/run/docker.sock"


@contextmanager
def engine() -> Iterator[Any]:
    """A client of the Docker engine; ServerError says why there is none."""
    try:
        # By name at run time: a type checker takes this repository's folder of that name for the
        # library.
        docker = importlib.import_module("docker")
        client = docker.from_env(version=docker.constants.MINIMUM_DOCKER_API_VERSION)
    except (ImportError, AttributeError):
        raise ServerError("testcontainers is not installed") from None
    try:
        try:
            _probe(os.environ.get("DOCKER_HOST", _SOCKET))
            client.ping()
        except (docker.errors.DockerException, OSError):
            raise ServerError("no Docker engine answers") from None
        yield client
    finally:
        client.close()


def _probe(host: str) -> None:
    # The client library leaves its socket open when nobody listens on it.
    if host.startswith(_UNIX):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(host.removeprefix(_UNIX))


def image_of(name: str) -> str:
    """The first image of that server which the engine has, or which may be pulled
    ($BINLAG_PULL_IMAGES=1)."""
    with engine() as client:
        there = {tag for image in client.images.list() for tag in image.tags}
    for image in IMAGES[name]:
        if image in there:
            return image
    official = [image for image in IMAGES[name] if not image.startswith("binlag/")]
    if official and os.environ.get(PULL) == "1":
        return official[0]
    ways = [f"{PULL}=1 pulls {image}" for image in official]
    if name in NAMES:
        ways.append(f"python docker/build.py {name} builds one")
    raise ServerError(f"the Docker engine has no image of {name}; " + ", ".join(ways))


class ContainerServer(Database):
    """A server in a container of its own, with its port published on 127.0.0.1; the port stays over
    restarts."""

    def __init__(
        self,
        name: str,
        *,
        options: Options | None = None,
        gtids: bool = False,
        image: str | None = None,
    ) -> None:
        self.image = image or image_of(name)
        self.name = f"{self.image} in a container"
        self.how = f"container of {self.image}"
        self.password = secrets.token_urlsafe(18)
        self.port = 0
        recipe = recipe_of(name if name in NAMES else "9.7")
        defaults: Options = {"server_id": 1, **recipe.row_log, **(recipe.gtids if gtids else {})}
        self._arguments = [
            _argument(key, value) for key, value in {**defaults, **(options or {})}.items()
        ]
        self._container: MySqlContainer | None = None

    def start(self) -> None:
        """Makes the container the first time, else starts the one that there is."""
        if self._container is None:
            self._container = self._new()
        else:
            self._wrapped().start()
        self.wait_until_ready(self._alive)

    def stop(self) -> None:
        """SIGTERM to the server, and wait."""
        if self._container is not None:
            self._wrapped().stop(timeout=_STOP_SECONDS)

    def kill(self) -> None:
        """SIGKILL to the server."""
        if self._container is not None and self._alive():
            self._wrapped().kill()
            self._wrapped().wait()

    def close(self) -> None:
        """Removes the container and its data."""
        if self._container is not None:
            self._container.stop()
            self._container.get_docker_client().client.close()
            self._container = None

    def log_text(self) -> str:
        """What the container printed."""
        if self._container is None:
            return ""
        return b"".join(self._container.get_logs()).decode(errors="replace")

    def _new(self) -> MySqlContainer:
        from testcontainers.community.mysql import MySqlContainer
        from testcontainers.core.config import ConnectionMode, testcontainers_config

        testcontainers_config.ryuk_disabled = True
        testcontainers_config.connection_mode_override = ConnectionMode.docker_host
        self.port = free_port()
        container = MySqlContainer(
            self.image, dialect="pymysql", username="root", password=self.password, dbname=_DATABASE
        )
        container.with_command(self._arguments)
        ports: dict[Any, Any] = container.ports
        # with_bind_ports would publish it on every interface
        ports[container.port] = ("127.0.0.1", self.port)
        try:
            container.start()
        except (TimeoutError, RuntimeError) as error:
            container.stop()
            raise ServerError(f"{self.name} did not start: {error}") from None
        return container

    def _wrapped(self) -> Any:
        if self._container is None:
            raise ServerError(f"{self.name} was not started")
        return self._container.get_wrapped_container()

    def _alive(self) -> bool:
        self._wrapped().reload()
        return bool(self._wrapped().status == "running")


def _argument(name: str, value: str | int | bool | None) -> str:
    option = f"--{name.replace('_', '-')}"
    if value is None:
        return option
    return f"{option}={('OFF', 'ON')[value] if isinstance(value, bool) else value}"
