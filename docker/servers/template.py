"""A data directory that is initialised once per server and copied for every new one: a copy takes a
tenth of a second, not ten.

The template belongs to the user who made it. Root may log in from this machine only, with a random
password that is kept beside the data and is the same for all copies.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from servers.database import ServerError
from servers.installed import Installed
from servers.local import LocalServer
from servers.locks import locked
from servers.process import common_options, launch, option_text, write_private

_SECONDS = 300.0

# What an initialised server must not share with its copies.
_OWN = ("auto.cnf", "ib_buffer_pool", "*.pid", "*.err", "*.lower-test")


@dataclass(frozen=True)
class Template:
    """An initialised data directory."""

    folder: Path

    @property
    def data(self) -> Path:
        """The data directory to copy."""
        return self.folder / "data"

    @property
    def password(self) -> str:
        """Root's password in every copy."""
        return (self.folder / "password").read_text()

    def copy(self, to: Path) -> None:
        """A new data directory."""
        _copy(self.data, to)


def _copy(data: Path, to: Path) -> None:
    """What is all zeros takes no room in the copy, and a file system that can share blocks does."""
    subprocess.run(
        ["cp", "-a", "--reflink=auto", "--sparse=always", data, to], check=True, capture_output=True
    )


def template_of(server: Installed) -> Template:
    """The template of a server that was brought; it is made when there is none. ServerError shows
    the log of a failure."""
    folder = server.folder / "template"
    with locked(server.folder / "template.lock"):
        if not (folder / "password").exists():
            part = server.folder / "template.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(mode=0o700)
            password = secrets.token_urlsafe(18)
            _initialise(server, part)
            _create_accounts(server, part, password)
            for pattern in _OWN:
                for path in part.glob(f"data/{pattern}"):
                    path.unlink()
            _copy(part / "data", part / "sparse")
            shutil.rmtree(part / "data")
            (part / "sparse").rename(part / "data")
            write_private(part / "password", password)
            part.rename(folder)
    return Template(folder)


def _initialise(server: Installed, part: Path) -> None:
    if server.recipe.initialise == "initialize":
        _run(server, part, "--initialize-insecure")
        return
    (part / "data" / "mysql").mkdir(parents=True)
    feed = part / "bootstrap.sql"
    feed.write_text(
        "use mysql;\n"
        + "\n".join(
            (server.share / name).read_text(encoding="utf-8") for name in server.recipe.scripts
        )
    )
    _run(server, part, "--bootstrap", feed=feed)
    feed.unlink()


def _create_accounts(server: Installed, part: Path, password: str) -> None:
    """Starts the server once with the accounts' statements as its init file; that root can log in
    shows that they were carried out."""
    statements = write_private(
        part / "accounts.sql", "\n".join(server.recipe.accounts).format(password=password) + "\n"
    )
    first = LocalServer(
        server, part, password, {"init_file": str(statements), "skip_log_bin": None}
    )
    try:
        first.start()
        first.stop()
    finally:
        first.close()
    statements.unlink()


def _run(server: Installed, part: Path, argument: str, feed: Path | None = None) -> None:
    log = part / "error.log"
    process = launch(
        server,
        write_private(part / "my.cnf", option_text(common_options(server, part))),
        log,
        argument,
        feed=feed,
    )
    try:
        status = process.wait(_SECONDS)
    finally:
        process.kill()
        process.wait()
    if status != 0:
        raise ServerError(
            f"{server.recipe.name} could not be initialised; its log:\n"
            f"{log.read_text(errors='replace')[-4000:]}"
        )
