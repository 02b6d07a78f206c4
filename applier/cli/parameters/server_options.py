"""The options of every command that connects: --password-file, and --ssl-mode, --ssl-ca, --ssl-cert
and --ssl-key as MySQL's own clients have them.

The latter go into the address of the server, where they may stand as well:
mysql://USER@HOST?ssl-mode=VERIFY_CA&ssl-ca=ca.pem
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import click

from applier.cli.parameters.options import with_options
from applier.error_codes import Code
from applier.errors import UsageError

MODES = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
_FILE = click.Path(dir_okay=False)
_OPTIONS = (
    click.option(
        "--password-file",
        type=_FILE,
        metavar="FILE",
        help="Of a server: the password is this file's first line.",
    ),
    click.option(
        "--ssl-mode",
        type=click.Choice(MODES, case_sensitive=False),
        help="How the connection to a server is encrypted.",
    ),
    click.option(
        "--ssl-ca",
        type=_FILE,
        metavar="FILE",
        help="The authority that signed the server's certificate (PEM).",
    ),
    click.option(
        "--ssl-cert", type=_FILE, metavar="FILE", help="The client's own certificate (PEM)."
    ),
    click.option(
        "--ssl-key", type=_FILE, metavar="FILE", help="The key of the client's certificate (PEM)."
    ),
)
NAMES = ("ssl_mode", "ssl_ca", "ssl_cert", "ssl_key")
SCHEME = "mysql://"


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options. The command gets its server's address with those of the connection in it.
    Raises UsageError where no server is named."""

    @functools.wraps(command)
    def with_address(**given: Any) -> Any:
        chosen = {name: value for name in NAMES if (value := given.pop(name)) is not None}
        addresses = [
            name
            for name, value in given.items()
            if isinstance(value, str) and value.startswith(SCHEME)
        ]
        for_server = [
            *chosen,
            *(["password_file"] if given.get("password_file") is not None else []),
        ]
        if for_server and not addresses:
            option = "--" + for_server[0].replace("_", "-")
            hint = f"name one by its address, {SCHEME}USER@HOST:PORT"
            raise UsageError(f"{option}: no server is named", code=Code.OPTION_MISSING, hint=hint)
        return command(**given | {name: _with_options(given[name], chosen) for name in addresses})

    return with_options(_OPTIONS, with_address)


def _with_options(address: str, chosen: dict[str, str]) -> str:
    if not chosen:
        return address
    options = "&".join(f"{name.replace('_', '-')}={quote(value)}" for name, value in chosen.items())
    return f"{address}{'&' if '?' in address else '?'}{options}"
