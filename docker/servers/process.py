"""One server process: its option file, and its life from the first byte of the log to the exit
status.

The process is ours: it is started here and only ever signalled through its own Popen object, so
that no other process can be hit. Nothing secret is ever an argument; the option file is readable by
its owner alone.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
from pathlib import Path

from servers.installed import Installed
from servers.table import Options

# Below the range that the kernel hands out by itself (32768 and up): no outgoing connection takes a
# port between two starts.
_PORTS = range(20_000, 32_000)


class ReservedPort:
    """A port of 127.0.0.1 that nobody listens on, and that no other `ReservedPort` of this machine
    is until `close`.

    A server that is down for a moment comes back on its port, which must not be another's
    meanwhile. The name of a socket without a file is what two processes cannot have at once; it is
    free again when the process ends.
    """

    def __init__(self) -> None:
        for port in random.sample(_PORTS, min(200, len(_PORTS))):
            held = socket.socket(socket.AF_UNIX)
            try:
                held.bind(f"\0binlag-port-{port}")
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            except OSError:
                held.close()
            else:
                self.number, self._held = port, held
                return
        raise OSError("no free port found on 127.0.0.1")

    def close(self) -> None:
        """Others may have it now."""
        self._held.close()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now, nor has reserved."""
    port = ReservedPort()
    port.close()
    return port.number


def option_text(options: Options) -> str:
    """An option file's [mysqld] section; None is an option without a value, such as
    skip_slave_start."""
    lines = ["[mysqld]"]
    for name, value in options.items():
        if value is None:
            lines.append(name)
        elif isinstance(value, bool):
            lines.append(f"{name} = {'ON' if value else 'OFF'}")
        elif isinstance(value, int):
            lines.append(f"{name} = {value}")
        else:
            lines.append(f'{name} = "{value}"')
    return "\n".join(lines) + "\n"


def common_options(server: Installed, folder: Path) -> Options:
    """What every start of this server has: where its own files are, where the data and the
    temporary files are, local TCP only."""
    flags = {
        name: value.format(root=server.root) if isinstance(value, str) else value
        for name, value in server.recipe.flags.items()
    }
    return {
        "basedir": str(server.program.parent),
        "lc_messages_dir": str(server.share),
        "character_sets_dir": str(server.share / "charsets"),
        "secure_file_priv": "",
        "datadir": str(folder / "data"),
        "tmpdir": str(folder / "tmp"),
        "pid_file": str(folder / "server.pid"),
        "log_error": str(folder / "error.log"),
        "bind_address": "127.0.0.1",
        "skip_name_resolve": True,
        # The kernel has one number of places in asynchronous queues (fs.aio-max-nr) for all of a
        # machine, containers and strangers included. MySQL 5.7 does not start where none is left;
        # the other servers do without, so that none asks for them.
        "innodb_use_native_aio": False,
        **flags,
    }


def write_private(path: Path, text: str) -> Path:
    """Writes a file that only its owner can read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return path


def launch(
    server: Installed, option_file: Path, log: Path, *arguments: str, feed: Path | None = None
) -> subprocess.Popen[bytes]:
    """Starts the server with that option file and next to no environment; `feed` becomes its
    standard input."""
    (option_file.parent / "tmp").mkdir(exist_ok=True)
    # it refuses to run as root unless it is told to
    as_root = ["--user=root"] if os.geteuid() == 0 else []
    command = [*server.command(), f"--defaults-file={option_file}", *as_root, *arguments]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "TZ": "UTC", "LC_ALL": "C"}
    with log.open("ab") as output, (feed or Path(os.devnull)).open("rb") as given:
        # A session of its own: Ctrl-C on the terminal is for the one who started it, who then ends
        # the server the clean way.
        return subprocess.Popen(
            command,
            stdin=given,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=option_file.parent,
            start_new_session=True,
        )
