"""What a new user meets: a clean clone, an empty home, and the README's commands in order, until
the first that fails.

    python scripts/new_user.py

It takes about two minutes; with --installs it also tries each way to install (five more).

The commands are read out of README.md. Its own folder stands for the download; what the README
calls "your own log" is the demo's, and where it says port 3306 a server of docker/servers answers,
if it is there. A command that says which extra it needs gets it, as a user would do. Printed: each
command with its seconds, the time to the first result, and what was not run and why.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docker")]

from tests.docs.blocks import Block, Step, blocks, matches  # noqa: E402
from tests.docs.pages import PORT, elsewhere  # noqa: E402
from tests.docs.session import Ran, Session, bring_readers_own, copy_files, environment  # noqa: E402

FIRST_RESULT_SECONDS = 120
INSTALLS = re.compile(r"(\.venv/bin/)?pip install ")
ADVICE = re.compile(r"Next: pip install 'binlag\[(\w+)\]'")
SHOWN_LINES = 12


def get_a_clone(folder: Path) -> None:
    """Clones the repository; where git is not there or refuses (the checkout is another user's),
    copies its files."""
    git = shutil.which("git")
    cloned = (
        subprocess.run(
            [git, "clone", "-q", str(ROOT), str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        if git
        else None
    )
    if cloned is None or cloned.returncode:
        reason = cloned.stderr.strip().partition("\n")[0] if cloned else "there is no git"
        print(f"the files are copied, not cloned: {reason}")
        shutil.rmtree(folder, ignore_errors=True)
        copy_files(folder)


class NewUser:
    """Sits before a clone and types."""

    def __init__(self, folder: Path, stack: ExitStack, *, installs: bool) -> None:
        self.clone = folder / "binlag"
        self._stack, self._installs = stack, installs
        get_a_clone(self.clone)
        bring_readers_own(self.clone)
        python = Path(sys.base_prefix) / "bin"
        variables = environment(folder / "home", self.clone / ".venv" / "bin", python)
        self.shell = stack.enter_context(closing(Session(self.clone, variables)))
        self.began = time.monotonic()
        self.first_result: float | None = None
        self.not_run: list[tuple[str, str]] = []
        self._ports: dict[str, str] = {}

    def read(self) -> bool:
        """Types what the README shows. Returns whether all of it worked."""
        for block in blocks(self.clone / "README.md"):
            for step in self._steps(block):
                reason = block.not_run or self._reason(step)
                port = PORT
                if reason is None and f":{PORT}" in step.command:
                    reason, port = self._server(block)
                if reason is not None:
                    self.not_run.append((step.command, reason))
                elif not self._type(step, port):
                    return False
        return True

    @staticmethod
    def _steps(block: Block) -> list[Step]:
        if block.kind != "python":
            return block.steps
        return [Step(f"python -c {shlex.quote(block.text)}", block.printed, block.line)]

    def _reason(self, step: Step) -> str | None:
        return None if self._installs and INSTALLS.match(step.command) else elsewhere(step)

    def _server(self, block: Block) -> tuple[str | None, str]:
        """The port of a running server; or why there is none."""
        name = block.server or "9.7"
        if name not in self._ports:
            try:
                from servers.server import Server
            except ImportError as error:
                return f"needs {error.name} to start a server", PORT
            from servers.installed import installed

            if not installed(name).there:
                return f"needs a server {name}: python docker/servers/bring.py {name}", PORT
            server = self._stack.enter_context(Server(name))
            self.shell.export("BINLAG_PASSWORD", server.password)
            self._ports[name] = str(server.port)
        return None, self._ports[name]

    def _type(self, step: Step, port: str) -> bool:
        ran = self._run(step.command, port)
        if advice := ADVICE.search(ran.printed):
            self._run(f".venv/bin/pip install -q -c constraints.txt -e '.[{advice[1]}]'", port)
            ran = self._run(step.command, port)
        if ran.code == 0 and self.first_result is None:
            self.first_result = time.monotonic() - self.began
        different = step.output is not None and not matches(step.output, ran.printed)
        if different or (ran.code != 0 and step.output is None):  # what is shown may be a refusal
            print(
                f"README.md:{step.line}: exit code {ran.code}"
                + (", and the README shows something else than:" if different else ":")
            )
            print("\n".join(ran.printed.splitlines()[-SHOWN_LINES:]))
            return False
        return True

    def _run(self, command: str, port: str) -> Ran:
        began = time.monotonic()
        ran = self.shell.run(command.replace(f":{PORT}", f":{port}"), timeout_seconds=1800)
        print(f"{time.monotonic() - began:7.1f} s  $ {command.partition(chr(10))[0]}", flush=True)
        return Ran(ran.printed.replace(f":{port}", f":{PORT}"), ran.code)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--installs", action="store_true", help="also run the commands that install"
    )
    parser.add_argument(
        "--within",
        type=float,
        default=FIRST_RESULT_SECONDS,
        metavar="SECONDS",
        help="the first result must be there",
    )
    given = parser.parse_args()
    os.environ.setdefault("BINLAG_SERVERS", str(Path.home() / ".cache" / "binlag" / "servers"))
    with tempfile.TemporaryDirectory(prefix="new-user-") as folder, ExitStack() as stack:
        user = NewUser(Path(folder), stack, installs=given.installs)
        worked = user.read()
    for command, reason in user.not_run:
        print(f"  not run  $ {command}\n           {reason}")
    if user.first_result is None:
        print("no first result")
        return 1
    print(
        f"first result after {user.first_result:.0f} s (at most {given.within:.0f}); "
        f"{'every command worked' if worked else 'stopped'}"
    )
    return 0 if worked and user.first_result <= given.within else 1


if __name__ == "__main__":
    sys.exit(main())
