"""pytest plugin: real servers for tests, local ones and containers.

`server_factory(name, options=…, gtids=…)` starts a server of the test's own;
`server_factory.shared(name)` is one for all tests of the session. `any_server` runs a test once per
server of the table, `any_container` once per image. A server that is not there skips the test with
the reason; the report's end counts these. With BINLAG_REQUIRE_SERVERS=1 the test fails instead,
except for the official images of versions that nothing but an image registry has.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from servers.container import ContainerServer, engine, image_of
from servers.database import Database, ServerError
from servers.installed import all_installed, cache_folder, installed
from servers.server import Server, how_to_bring
from servers.table import IMAGES, NAMES, Options

REQUIRE = "BINLAG_REQUIRE_SERVERS"
_LACKING = "no server: "


def lacking(reason: str, *, may_be_required: bool = True) -> NoReturn:
    """Ends the test that needs a server which is not there."""
    if may_be_required and os.environ.get(REQUIRE) == "1":
        pytest.fail(f"{_LACKING}{reason} ({REQUIRE}=1)", pytrace=False)
    pytest.skip(_LACKING + reason)


@contextmanager
def there_or_lacking(*, may_be_required: bool = True) -> Iterator[None]:
    """A ServerError of the block means that something is not there."""
    reason = ""
    try:
        yield
    except ServerError as error:
        reason = str(error)
    if reason:
        lacking(reason, may_be_required=may_be_required)


class ServerFactory:
    """Starts local servers and ends them with the session."""

    def __init__(self) -> None:
        self._started: list[Database] = []
        self._shared: dict[str, Server] = {}

    def __call__(
        self,
        name: str,
        *,
        options: Options | None = None,
        gtids: bool = False,
        folder: Path | None = None,
    ) -> Server:
        """A server that was not there before, started."""
        if not installed(name).there:
            lacking(f"{name} is not in {cache_folder()}; {how_to_bring(installed(name))} brings it")
        server = Server(name, options=options, gtids=gtids, folder=folder)
        self._started.append(server)
        server.start()
        return server

    def container(
        self, name: str, *, options: Options | None = None, gtids: bool = False
    ) -> ContainerServer:
        """The same in a container."""
        with there_or_lacking(may_be_required=name in NAMES):
            image = image_of(name)
        server = ContainerServer(name, options=options, gtids=gtids, image=image)
        self._started.append(server)
        server.start()
        return server

    def shared(self, name: str) -> Server:
        """One running server of that name for the whole session: a test may only touch databases of
        its own and kill nothing."""
        if name not in self._shared:
            self._shared[name] = self(name)
        return self._shared[name]

    def close(self) -> None:
        """Ends all that were started."""
        while self._started:
            self._started.pop().close()


@pytest.fixture(scope="session")
def server_factory() -> Iterator[ServerFactory]:
    """Starts servers; they end with the session at the latest."""
    factory = ServerFactory()
    yield factory
    factory.close()


@pytest.fixture(scope="session", params=NAMES)
def any_server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    """A server of each version in turn, one for all tests that use it; parametrise it indirectly to
    choose versions."""
    server = server_factory(request.param)
    yield server
    server.close()


@pytest.fixture(scope="session", params=IMAGES)
def any_container(
    request: pytest.FixtureRequest, server_factory: ServerFactory
) -> Iterator[ContainerServer]:
    """The same in containers."""
    server = server_factory.container(request.param)
    yield server
    server.close()


def describe() -> list[str]:
    """A line for the local servers and one for the Docker engine."""
    there = [
        (
            f"{s.recipe.product} {s.version} "
            f"({'npm package' if s.recipe.npm else 'Debian ' + s.recipe.debian.suite})"
        )
        for s in all_installed()
        if s.there
    ]
    missing = [s.recipe.name for s in all_installed() if not s.there]
    local = f"servers: {', '.join(there) or 'none'}, run from {cache_folder()}" + (
        f"; not there: {', '.join(missing)}" if missing else ""
    )
    return [local, f"containers: {_describe_containers()}"]


def _describe_containers() -> str:
    try:
        with engine():
            pass
    except ServerError as error:
        return f"none, {error}"
    there = []
    for name in IMAGES:
        try:
            there.append(image_of(name))
        except ServerError:
            continue
    return f"{', '.join(there) or 'a Docker engine without images'}, by testcontainers"


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Which servers there are and how they are started."""
    return describe()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Counts the tests that had no server; and names the servers where a quiet run shows no
    header."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        if isinstance(report.longrepr, tuple) and _LACKING in report.longrepr[2]:
            reasons[report.longrepr[2].partition(_LACKING)[2]] += 1
    if config.get_verbosity() < 0:
        for line in describe():
            terminalreporter.write_line(line)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"not run: {count} test{'s' * (count != 1)}: {reason}")
