"""Signals before the command line is there: while Python imports it, and wherever a command is in
its own imports.

A process sends the signal to itself at one of its imports, so that every moment can be tried, one
by one. Signals that come from outside at any time are held to less: before the first line of binlag
runs they are Python's.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.hardening.runner import ROOT

ALL = os.environ.get("BINLAG_ALL_CASES") == "1"
INTERRUPTED = 130
BEGIN = (
    "import sys; from applier.__main__ import main; sys.argv = ['binlag', *sys.argv[1:]]; main()"
)
"""What the installed script does."""
AT_IMPORT = """
import os, sys
which, number, heard = int(sys.argv[1]), int(sys.argv[2]), 0
del sys.argv[1:3]
def look(event, given):
    global heard
    # main() listens from the import of applier.cli.main on
    # the error's own page is looked up when the command has ended, by importlib.resources
    if event == "import" and not given[0].startswith("importlib.") and (
        heard or given[0] == "applier.cli.main"
    ):
        heard += 1
        if heard == which:
            os.kill(os.getpid(), number)
        elif which == 0:
            os.write(2, b"\\a")
sys.addaudithook(look)
"""
"""Signal `number` at the import of that number, counted from 1; with 0 a BEL for each."""
HELP, LONGER = ("--help",), ("explain", "absent.sql")


def run(
    which: int, number: int, *arguments: str, sender: str = AT_IMPORT
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", sender + BEGIN, str(which), str(number), *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("arguments", [HELP, LONGER], ids=["help", "explain"])
def test_a_signal_at_any_import(arguments: tuple[str, ...]) -> None:
    """The command line's own imports, then those of a command (`explain` imports a SQL parser)."""
    imports = run(0, 0, *arguments).stderr.count("\a")
    assert imports > 50
    tries = (
        range(1, imports + 1, 5)
        if ALL
        else sorted({1, *random.Random(1).sample(range(2, imports), 8)})
    )
    for turn, which in enumerate(tries):
        done = run(which, (signal.SIGINT, signal.SIGTERM)[turn % 2], *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (
            INTERRUPTED,
            "",
            "binlag: interrupted\n",
        ), which


BETWEEN = """
import os, sys
from click.core import Context
which, number, seen = int(sys.argv[1]), int(sys.argv[2]), 0
del sys.argv[1:3]
ends = {Context.__enter__.__code__, Context.__exit__.__code__, Context.close.__code__}
def look(frame, event, given):
    global seen
    if frame.f_code not in ends:
        return None
    if event == "line":
        seen += 1
        if seen == which:
            os.kill(os.getpid(), number)
        elif which == 0:
            os.write(2, b"\\a")
    return look
sys.settrace(look)
"""
"""The same at a line of click's own steps around a command."""


def test_a_signal_between_the_steps_of_click() -> None:
    """Click writes an empty line where it meets a KeyboardInterrupt there."""
    steps = run(0, 0, *LONGER, sender=BETWEEN).stderr.count("\a")
    assert steps > 5
    for which in range(1, steps + 1, 1 if ALL else 3):
        done = run(which, signal.SIGINT, *LONGER, sender=BETWEEN)
        assert (done.returncode, done.stderr) == (INTERRUPTED, "binlag: interrupted\n"), which


DROPPED = """
import signal, threading, time
from threading import Timer
from applier.cli.signals import Interrupted, interrupts
class Dropped:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
class Late(Timer):
    def start(self):
        threading.Timer = Timer
        super().start()
        self.join()
{late}
with interrupts(at_the_end=False):
    try:
        Dropped()
        time.sleep(300)
    except Interrupted:
        print("heard")
"""


@pytest.mark.parametrize("late", ["", "threading.Timer = Late"], ids=["as it goes", "stalled"])
def test_a_signal_where_python_drops_exceptions(late: str) -> None:
    """As in the callback that importlib has on its locks: it is raised again outside of it. Not
    within, where it would be dropped for good, however long the machine stalls there."""
    program = DROPPED.format(late=late)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "heard\n", "")


def test_an_early_signal_as_json() -> None:
    """Standard error is JSON lines and nothing else, whenever the signal comes: also where click
    would write an empty line."""
    for which in (1, 10, 100):
        done = run(which, signal.SIGINT, "explain", "absent.sql", "--log-json")
        assert done.returncode == INTERRUPTED
        assert [json.loads(line)["message"] for line in done.stderr.split("\n")[:-1]] == [
            "interrupted"
        ]


@pytest.mark.parametrize("begin", [("-c", BEGIN), ("-m", "applier")], ids=["script", "module"])
def test_a_signal_from_outside_at_any_moment(begin: tuple[str, str]) -> None:
    """What is not binlag's answer is that of Python's start: nothing of binlag stands in the
    traceback but the line that begins it. There Python may also drop a Ctrl-C, with a word, and go
    on."""
    chance, answers = random.Random(1), 0
    command, began = [sys.executable, *begin, *LONGER], time.monotonic()
    subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=300)
    whole = time.monotonic() - began
    for turn in range(30 if ALL else 12):
        number = (signal.SIGINT, signal.SIGTERM)[turn % 2]
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        time.sleep(chance.uniform(0, whole))
        process.send_signal(number)
        out, said = process.communicate(timeout=300)
        if process.returncode == INTERRUPTED:
            answers += 1
            assert (out, said) == ("", "binlag: interrupted\n")
        elif process.returncode == 2:
            *dropped, last = said.splitlines()
            assert last.startswith("binlag: error BL101: ")
            assert not dropped or (
                number == signal.SIGINT and dropped[0].startswith("Exception ignored in: ")
            ), said
        else:
            assert process.returncode in (-number, 1)
        if process.returncode != INTERRUPTED:
            assert "applier/cli" not in said
            assert out == ""
    assert answers
