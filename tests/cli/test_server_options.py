"""--ssl-mode and its files in every command that connects."""

from __future__ import annotations

import importlib
from pathlib import Path

import click
import pytest

from applier.cli.main import COMMANDS
from applier.cli.parameters.server_options import MODES, NAMES, server_options
from applier.mysql.client.tls import OPTIONS, Tls, TlsMode
from applier.mysql.client.url import parse_url
from tests.cli.test_errors import Said, check, said

__all__ = ["said"]


def test_the_options_are_those_of_an_address() -> None:
    assert tuple(MODES) == tuple(TlsMode)
    assert tuple(name.replace("_", "-") for name in NAMES) == OPTIONS


def test_every_command_that_takes_a_password_has_them() -> None:
    commands: dict[str, click.Command] = {
        name: importlib.import_module(f"applier.cli.commands.{name.replace('-', '_')}").command
        for name in COMMANDS
    }
    options = {
        name: {opt for one in command.params for opt in one.opts}
        for name, command in commands.items()
    }
    connecting = {name for name, opts in options.items() if "--password-file" in opts}
    assert connecting == {name for name, opts in options.items() if "--ssl-ca" in opts}
    assert {"receive", "replay", "verify", "measure", "forecast", "explain"} <= connecting


@pytest.mark.parametrize("address", ["mysql://u@h", "mysql://u@h?socket=/s"])
def test_they_go_into_the_address(address: str) -> None:
    @server_options
    def command(source: str, other: str) -> tuple[str, str]:
        return source, other

    given = {"ssl_mode": "verify_ca", "ssl_ca": "/a&b.pem", "ssl_cert": None, "ssl_key": None}
    source, other = command(source=address, other="not an address", **given)
    assert parse_url(source).tls == Tls(TlsMode.VERIFY_CA, "/a&b.pem")
    assert other == "not an address"


def test_without_a_server(said: Said, tmp_path: Path) -> None:
    (tmp_path / "schema.sql").write_text("CREATE TABLE d.t (a INT);")
    exit_code, errors = said("explain", "schema.sql", "--ssl-mode", "REQUIRED")
    assert exit_code == 2
    check(errors, "BL304", ("--ssl-mode: no server is named", "mysql://USER@HOST:PORT"))
