"""`python -m tests.replica.kills` ends when it is asked to, with its processes and their
servers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pymysql.err import MySQLError
from servers.installed import installed

from tests.replica.kills.__main__ import of_setup
from tests.replica.kills.pair import KillPair
from tests.replica.kills.setups import Kill, Setup
from tests.servers.fixtures import lacking

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60
"""Long after which what has not ended does not end."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_processes_and_servers(number: signal.Signals) -> None:
    """SIGTERM once ended neither: its exception was taken for the result of a task."""
    if not installed("mariadb").there:
        lacking("mariadb is not there")
    command = [
        sys.executable,
        "-m",
        "tests.replica.kills",
        "check",
        "--count",
        "30",
        "--seed",
        "1",
        "--versions",
        "mariadb",
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        # one of the pool, and a server at least
        while len(started := descendants(process.pid)) < 2:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(SECONDS) == (1 if number == signal.SIGTERM else -number)
        end = time.monotonic() + SECONDS
        while running(started) and time.monotonic() < end:
            time.sleep(0.05)
        assert not running(started)
    finally:
        process.kill()


@pytest.mark.in_ci
def test_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It once kept the command for ever; its kill is not comparable, the next one has other
    servers."""
    if not installed("mariadb").there:
        lacking("mariadb is not there")
    stopped = list[int]()

    def stop(pair: KillPair) -> tuple[Any, ...]:
        if not stopped:
            stopped.append(pair.replica.pid)
            os.kill(pair.replica.pid, signal.SIGSTOP)
        return real(pair)

    real = KillPair.at_start
    monkeypatch.setattr(KillPair, "at_start", stop)
    monkeypatch.setattr("tests.replica.kills.pair.ANSWER_SECONDS", 10.0)
    first, second = of_setup(
        Setup("mariadb", "FILE", "FILE", parallel_type="optimistic"),
        [Kill(("plain",), 1, 0.1, False)] * 2,
        "1",
        None,
    )
    assert first[2] is None
    assert "timed out" in first[3]
    assert second[2] is not None
    assert not Path(f"/proc/{stopped[0]}").exists()


def test_a_pair_that_cannot_be_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    """5.6 refuses CHANGE MASTER behind the kill of workers with gaps (1802): the next kill has
    other servers, and counts."""
    if not installed("mariadb").there:
        lacking("mariadb is not there")
    pairs = list[KillPair]()

    def begin(pair: KillPair, sessions: int) -> None:
        pairs.append(pair)
        if len(pairs) == 2:
            raise MySQLError(1802, "CHANGE MASTER cannot be executed")
        real(pair, sessions)

    real = KillPair.begin
    monkeypatch.setattr(KillPair, "begin", begin)
    found = of_setup(
        Setup("mariadb", "FILE", "FILE", parallel_type="optimistic"),
        [Kill(("plain",), 1, 0.1, False)] * 2,
        "1",
        None,
    )
    assert [(agreement is not None, problem) for _, _, agreement, problem in found] == [
        (True, ""),
        (True, ""),
    ]
    assert [pair is pairs[0] for pair in pairs] == [True, True, False]


def descendants(pid: int) -> dict[int, str]:
    """Processes below one, with the moments of their starts: a number may be given again."""
    found: dict[int, str] = {}
    for child in _children(pid):
        found |= {child: _started(child), **descendants(child)}
    return found


def _children(pid: int) -> list[int]:
    paths = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for path in paths for word in _text(path).split()]


def running(processes: dict[int, str]) -> list[int]:
    """Those that have not ended."""
    return [pid for pid, started in processes.items() if started and _started(pid) == started]


def _started(pid: int) -> str:
    """ "" for one that is not there or waits for its parent only."""
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return "" if not fields or fields[0] == "Z" else fields[19]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
