"""A server for tests and benchmarks, from nothing to the first query in a second or two.

    options = {"server_id": 7, "gtid_mode": "ON", "enforce_gtid_consistency": "ON"}
    with Server("9.7", options=options) as server:
        server.execute("CREATE DATABASE shop")
        server.kill()
        server.start()

It listens on 127.0.0.1 and on a unix socket, writes a row binlog, and is reached as root with a
random password. Only the process that is started here is ever signalled. It is gone when the block
ends, and when the interpreter does; only a SIGKILL of the interpreter leaves it running.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from servers.database import ServerError
from servers.installed import Installed, installed
from servers.local import LocalServer
from servers.process import write_private
from servers.table import Options
from servers.template import template_of


class Server(LocalServer):
    """A new server on a data directory of its own.

    `folder` keeps the data after the end (a folder that holds a data directory of the same server
    is taken up again); without it everything is temporary. `options` are lines of its option file,
    over the defaults; None stands for an option without a value.
    """

    def __init__(
        self,
        name: str | Installed,
        *,
        options: Options | None = None,
        gtids: bool = False,
        folder: Path | None = None,
    ) -> None:
        server = installed(name) if isinstance(name, str) else name
        if not server.there:
            raise ServerError(
                f"{server.recipe.name} is not in {server.folder.parent}; bring it: "
                f"{how_to_bring(server)}"
            )
        template = template_of(server)
        self._temporary = (
            tempfile.TemporaryDirectory(prefix="binlag-data-") if folder is None else None
        )
        folder = Path(self._temporary.name) if self._temporary else folder
        assert folder is not None
        folder.mkdir(parents=True, exist_ok=True)
        recipe = server.recipe
        defaults: Options = {"server_id": 1, **recipe.row_log, **(recipe.gtids if gtids else {})}
        super().__init__(
            server, folder.absolute(), template.password, {**defaults, **(options or {})}
        )
        if not self.data.exists():
            template.copy(self.data)

    def binlog_files(self) -> list[Path]:
        """The binlog files, oldest first."""
        index = self.data / f"{self.options['log_bin']}.index"
        return [self.data / Path(line).name for line in index.read_text().splitlines() if line]

    def client(self, program: str, *arguments: str, of: Installed | None = None) -> list[str]:
        """The command line of a client program that is connected to this server, such as `mysql`.

        The password is in a file that the program reads, not in the command. The programs of 9.7
        cannot log in to 5.6 and 5.7 (they have lost the old password exchange): take those of
        another server with `of`.
        """
        section = (
            f'[client]\nuser = {self.user}\npassword = "{self.password}"\n'
            f'socket = "{self.socket}"\n'
        )
        option_file = write_private(self.folder / "client.cnf", section)
        return [
            *(of or self.installed).command(program),
            f"--defaults-file={option_file}",
            *arguments,
        ]

    def close(self) -> None:
        """Ends the server; a temporary folder goes with it."""
        super().close()
        if self._temporary:
            self._temporary.cleanup()


def how_to_bring(server: Installed) -> str:
    """The command that brings this server."""
    return f"python docker/servers/bring.py {server.recipe.name}"


__all__ = ["Installed", "Server", "ServerError", "how_to_bring", "installed"]
