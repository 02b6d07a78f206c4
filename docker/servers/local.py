"""A server run from a data directory on this machine: start, clean stop, crash, start again."""

from __future__ import annotations

import subprocess
import tempfile
import weakref
from pathlib import Path
from typing import Any

from servers.database import Database, ServerError
from servers.installed import Installed
from servers.process import ReservedPort, common_options, launch, option_text, write_private
from servers.table import Options

_STOP_SECONDS = 120.0
_PORT_ATTEMPTS = 5
_PORT_TAKEN = "Address already in use"


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


class LocalServer(Database):
    """Runs `folder`/data; `folder` also gets the option file, the error log and the temporary
    files. The port stays over restarts."""

    def __init__(self, server: Installed, folder: Path, password: str, options: Options) -> None:
        self.name = f"{server.recipe.product} {server.version}"
        self.how = (
            "npm package"
            if server.recipe.npm
            else f"packages of Debian {server.recipe.debian.suite}"
        )
        self.installed = server
        self.folder = folder
        self.password = password
        self.options: dict[str, str | int | bool | None] = dict(options)
        self.port = 0
        self._reserved: ReservedPort | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._end_at_exit: weakref.finalize[Any, Any] | None = None
        # A socket's path may have 107 characters at most: that of the folder may be longer.
        self._short = tempfile.TemporaryDirectory(prefix="binlag-")

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    @property
    def socket(self) -> Path:
        """The unix socket."""
        return Path(self._short.name) / "s"

    @property
    def log(self) -> Path:
        """The error log of all starts."""
        return self.folder / "error.log"

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The server's process; ServerError when it does not run."""
        if self._process is None or self._process.poll() is not None:
            raise ServerError(f"{self.name} does not run")
        return self._process.pid

    def address(self) -> dict[str, Any]:
        """The unix socket: no key exchange, and nothing on the network. PyMySQL would load all
        certificates of the machine for each connection, 50 ms of a processor."""
        return {"unix_socket": str(self.socket), "ssl_disabled": True}

    def start(self) -> None:
        """Starts the server; another port is tried when the first one was taken meanwhile."""
        if self.running:
            raise ServerError(f"{self.name} runs already")
        fixed = bool(self.port)
        for attempt in range(_PORT_ATTEMPTS):
            if not fixed:
                self._reserve_port()
            before = self._log_size()
            self._launch()
            try:
                self.wait_until_ready(lambda: self.running)
                return
            except ServerError:
                self._finish()
                if (
                    fixed
                    or attempt + 1 == _PORT_ATTEMPTS
                    or _PORT_TAKEN not in self.log_text(before)
                ):
                    raise

    def stop(self) -> None:
        """SIGTERM and wait; ServerError, after a kill, when the server does not end."""
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise ServerError(
                f"{self.name} did not stop in {_STOP_SECONDS:.0f} s; its log:\n{self.log_tail()}"
            ) from None
        finally:
            self._finish()

    def kill(self) -> None:
        """SIGKILL to the server's own process."""
        self._finish()

    def restart(self, **options: str | int | bool | None) -> None:
        """Stops the server if it runs and starts it on the same data and port, with options added
        to those it had."""
        self.stop()
        self.options.update(options)
        self.start()

    def close(self) -> None:
        """Kills the server if it still runs; the folder stays."""
        self._finish()
        self._short.cleanup()
        if self._reserved is not None:
            self._reserved.close()

    def log_text(self, since: int = 0) -> str:
        """The error log, from that byte on."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(since)
            return file.read().decode(errors="replace")

    def _log_size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0

    def _reserve_port(self) -> None:
        if self._reserved is not None:
            self._reserved.close()
        self._reserved = ReservedPort()
        self.port = self._reserved.number

    def _launch(self) -> None:
        own = {
            **common_options(self.installed, self.folder),
            "port": self.port,
            "socket": str(self.socket),
            **self.options,
        }
        option_file = write_private(self.folder / "my.cnf", option_text(own))
        self._process = launch(self.installed, option_file, self.log)
        self._end_at_exit = weakref.finalize(self, _end, self._process)

    def _finish(self) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None
        if self._end_at_exit is not None:
            self._end_at_exit.detach()
            self._end_at_exit = None
        # A killed server leaves its lock behind; the next one would look up whose process that is.
        Path(f"{self.socket}.lock").unlink(missing_ok=True)
