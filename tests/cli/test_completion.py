"""Completion in real shells, after the lines that the help and the page tell to put into a shell's
start file.

In bash and zsh the Tab key is pressed on a terminal; fish has a command for what Tab would offer.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from applier.cli.commands.completion import SHELLS
from applier.cli.main import COMMANDS
from applier.cli.notes import LEVELS
from tests.docs.session import ROOT, environment

BINLAG = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m applier "$@"\n'
PAGE = ROOT / "docs" / "how-to" / "unattended.md"
START_FILES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}
TYPED = {
    "fore\t--he\t": "Usage: binlag forecast",
    "explain dem\tbef\t--csv": "shop.cart_item",
    "repl\t--exec-mode idem\tdemo/bin\t--schema demo/be\t": "10 transactions, 13 rows events",
}
"""What is typed behind `binlag `, with Tab -> what the completed command prints."""
PROMPT = "ready> "
PATIENCE_SECONDS = 120


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """A user with `binlag` on the PATH and an empty home."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "binlag").write_text(BINLAG)
    (programs / "binlag").chmod(0o755)
    return environment(tmp_path / "home", programs, PYTHONPATH=str(ROOT))


def told(text: str) -> dict[str, list[str]]:
    """Start file -> the lines for it, as the page and the help lay them out."""
    found: dict[str, list[str]] = {}
    for line, file in re.findall(
        r"^ +(?:(?:bash|zsh|fish) +)?(\S.*?) +(?:# )?in ~/([\w./]+)", text, re.MULTILINE
    ):
        found.setdefault(file, []).append(line)
    return found


def installed(shell: str) -> str:
    """Its path; a test without it is skipped."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell}: apt-get install {shell}")
    return path


def start_file(shell: str, variables: dict[str, str], more: str = "") -> None:
    """Writes it as the page says."""
    path = Path(variables["HOME"]) / START_FILES[shell]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(told(PAGE.read_text())[START_FILES[shell]]) + f"\n{more}\n")


def test_the_help_says_what_the_page_says() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "applier", "completion", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert told(done.stdout) == told(PAGE.read_text())
    assert sorted(told(done.stdout)) == sorted(START_FILES.values())
    assert START_FILES.keys() == set(SHELLS)


def test_the_function_in_bash(variables: dict[str, str]) -> None:
    """All that it offers, in order."""

    def completed(*words: str) -> list[str]:
        script = f"""eval "$(binlag completion bash)"
COMP_WORDS=({shlex.join(["binlag", *words])}) COMP_CWORD={len(words)}
_binlag_completion binlag; printf '%s\\n' "${{COMPREPLY[@]}}" """
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            env=variables,
        )
        return done.stdout.split()

    assert completed("cl") == ["clock"]
    assert completed("") == list(COMMANDS)
    assert completed("replay", "--exec-mode", "") == ["strict", "idempotent"]
    assert completed("events", "--log-level", "") == list(LEVELS)
    assert completed("forecast", "--openm") == ["--openmetrics"]


class Terminal:
    """A shell that reads keys."""

    def __init__(self, command: list[str], variables: dict[str, str]) -> None:
        self._keys, end = pty.openpty()
        self._shell = subprocess.Popen(
            command, cwd=ROOT, env=variables | {"TERM": "xterm", "COLUMNS": "500"}, stdin=end,
            stdout=end, stderr=end,
            start_new_session=True,
        )  # fmt: skip
        os.close(end)
        self._shown = ""

    def press(self, keys: str) -> None:
        """Types them."""
        os.write(self._keys, keys.encode())

    def wait_for(self, text: str) -> None:
        """Reads up to it and no further."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self._shown:
            ready, _, _ = select.select([self._keys], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{text!r} is not shown:\n{self._shown}"
            self._shown += os.read(self._keys, 1 << 16).decode(errors="replace")
        self._shown = self._shown.partition(text)[2]

    def close(self) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._keys)


@pytest.mark.parametrize(("shell", "options"), [("bash", ["--noprofile", "-i"]), ("zsh", ["-i"])])
def test_tab(shell: str, options: list[str], variables: dict[str, str]) -> None:
    command = [installed(shell), *options]
    start_file(shell, variables, f"PS1='{PROMPT}'")
    terminal = Terminal(command, variables)
    try:
        terminal.wait_for(PROMPT)
        for keys, printed in TYPED.items():
            terminal.press(f"binlag {keys}\r")
            terminal.wait_for(printed)
            terminal.wait_for(PROMPT)
    finally:
        terminal.close()


def test_fish(variables: dict[str, str]) -> None:
    fish = installed("fish")
    start_file("fish", variables)

    def offered(typed: str) -> list[str]:
        done = subprocess.run(
            [fish, "-c", f"complete -C {shlex.quote(typed)}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            env=variables,
        )
        return [line.partition("\t")[0] for line in done.stdout.splitlines()]

    assert offered("binlag fore") == ["forecast"]
    assert offered("binlag forecast --openm") == ["--openmetrics"]
    assert sorted(offered("binlag replay --exec-mode ")) == ["idempotent", "strict"]
    assert offered("binlag explain demo/be") == ["demo/before.sql"]
    assert offered("binlag replay demo/binlog.000001 --schema demo/be") == ["demo/before.sql"]
