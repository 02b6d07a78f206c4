"""Commands of binlag in processes of their own, with bounded memory and time, without starting an
interpreter for each.

A small server forks for every command; what the command takes is what its process grows by.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SECONDS = 300
"""A command on input of a few bytes that takes longer hangs."""
LIMIT = 3 << 30
"""Bytes of address space that a command may add; malloc of claimed sizes shows here even if nobody
touches them."""

PR_SET_THP_DISABLE = 41  # linux/prctl.h


@dataclass(frozen=True)
class Done:
    """How a command ended. `grown` in bytes: the peak of its resident memory beyond the server's.
    `said` is standard error."""

    code: int
    said: str
    out: str
    grown: int


class Runner:
    """Context manager: runs commands."""

    def __enter__(self) -> Runner:
        command = [sys.executable, "-m", "tests.hardening.runner"]
        self._server = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate(timeout=SECONDS)

    def run(self, *arguments: str | Path, limit: int = LIMIT) -> Done:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(
            json.dumps([[str(argument) for argument in arguments], limit]) + "\n"
        )
        self._server.stdin.flush()
        return Done(*json.loads(self._server.stdout.readline()))


def without_huge_pages() -> None:
    """The kernel gives and takes them as it sees fit, two megabytes at a time: what this process
    grows by would be chance."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _serve() -> None:
    import applier.cli.commands.events
    import applier.cli.commands.replay
    import applier.cli.commands.status
    import applier.cli.main
    import applier.replay_loop
    import applier.schema_source  # noqa: F401

    without_huge_pages()
    for line in sys.stdin:
        arguments, limit = json.loads(line)
        with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as said:
            before = resident()
            child = os.fork()
            if child == 0:
                _run(arguments, limit, out.fileno(), said.fileno())
            _, status, usage = os.wait4(child, 0)
            texts = []
            for file in (said, out):
                file.seek(0)
                texts.append(file.read(1 << 20).decode("utf-8", "replace"))
            print(
                json.dumps(
                    [
                        os.waitstatus_to_exitcode(status),
                        *texts,
                        max(usage.ru_maxrss * 1024 - before, 0),
                    ]
                ),
                flush=True,
            )


def _run(arguments: list[str], limit: int, out: int, said: int) -> None:
    from applier.cli.main import main

    os.dup2(out, 1)
    os.dup2(said, 2)
    signal.alarm(SECONDS)
    allowed = _address_space() + limit
    resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
    code = 99
    try:
        main(arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 98
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
