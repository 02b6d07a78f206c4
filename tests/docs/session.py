"""What a reader has in hand: a copy of the repository's files, an empty home, and one shell that
keeps its folder and variables."""

from __future__ import annotations

import os
import secrets
import select
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LEFT_OUT = (
    ".git",
    ".venv",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    ".servers",
    "site",
    "dist",
    "build",
    "*.egg-info",
)
READERS_OWN = {
    "binlog.000123": ("demo/binlog.000001", 39594),
    "binlog.000124": ("demo/binlog.000001", 154),
    "before.sql": ("demo/before.sql", None),
}
"""What the README calls the reader's own logs and dump -> what stands for them: a file, and how
many bytes of it. The first log ends without naming the next, as after a crash; the second has begun
and holds no transaction yet."""
_BINLAG = "#!{python}\nimport sys\nfrom applier.cli.main import main\nsys.exit(main())\n"
_PYTHON = '#!/bin/sh\nexec {python} "$@"\n'


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command printed, on both streams as a terminal shows them, and its exit code."""

    printed: str
    code: int


class Session:
    """One bash. What a command exports or where it goes is there for the next one."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], cwd=folder, env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def run(self, command: str, *, timeout_seconds: float = 1800) -> Ran:
        """Runs a command. Raises TimeoutError, and RuntimeError when it ends the shell."""
        assert self._shell.stdin is not None
        mark = secrets.token_hex(8)
        # `$?` within the command is the exit code of the one before.
        line = (
            f"eval {shlex.quote(command)} </dev/null; code=$?; printf '\\n%s %d\\n' {mark} $code; "
            "(exit $code)\n"
        )
        self._shell.stdin.write(line.encode())
        self._shell.stdin.flush()
        printed, _, code = self._read(
            f"\n{mark} ".encode(), command, time.monotonic() + timeout_seconds
        ).rpartition(f"\n{mark} ".encode())
        return Ran(printed.decode(errors="backslashreplace"), int(code))

    def _read(self, mark: bytes, command: str, deadline: float) -> bytes:
        """Reads up to the line that begins with `mark`."""
        assert self._shell.stdout is not None
        descriptor, found = self._shell.stdout.fileno(), b""
        while mark not in found or not found.endswith(b"\n"):
            ready, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"no end of: {command}\n{found.decode(errors='replace')}")
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                raise RuntimeError(
                    f"the shell ended in: {command}\n{found.decode(errors='replace')}"
                )
            found += chunk
        return found

    def export(self, name: str, value: str) -> None:
        """Sets a variable for the commands to come."""
        self.run(f"export {name}={shlex.quote(value)}")

    def close(self) -> None:
        assert self._shell.stdin is not None and self._shell.stdout is not None
        self._shell.stdin.close()
        try:
            self._shell.wait(10)
        except subprocess.TimeoutExpired:
            self._shell.kill()
            self._shell.wait()
        self._shell.stdout.close()


def copy_files(to: Path) -> None:
    """The repository's files without what was made from them."""
    shutil.copytree(ROOT, to, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)


def scratch_copy(folder: Path) -> Path:
    """A copy of the repository's files whose `.venv/bin` has the `python` and `binlag` that run
    now; `make` finds it complete."""
    copy = folder / "binlag"
    copy_files(copy)
    programs = copy / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, text in {"python": _PYTHON, "binlag": _BINLAG}.items():
        (programs / name).write_text(text.format(python=sys.executable))
        (programs / name).chmod(0o755)
    (copy / ".venv" / ".run").touch()
    bring_readers_own(copy)
    return copy


def bring_readers_own(folder: Path) -> None:
    """Puts what stands for the reader's own files into a copy of the repository."""
    for name, (source, size) in READERS_OWN.items():
        (folder / name).write_bytes((folder / source).read_bytes()[:size])


def environment(home: Path, *programs: Path, **more: str) -> dict[str, str]:
    """A new user's variables: an empty home, no cache, what is given, and of those around only what
    a machine needs to reach others."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.lower().endswith("_proxy") or name.startswith(("PIP_", "SSL_"))
    }
    home.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([*map(str, programs), os.environ.get("PATH", os.defpath)])
    return {
        **kept,
        "HOME": str(home),
        "PATH": path,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        **more,
    }
