"""Ctrl-C, SIGTERM and SIGHUP at any moment: one line, exit code 130, and outputs that are complete
or not there.

What a server keeps is in tests/mysql/test_kills.py, what a receiver keeps in
tests/receive/test_receive_servers.py.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.binlog import build
from tests.hardening.runner import ROOT

ALL = os.environ.get("BINLAG_ALL_CASES") == "1"
ROUNDS = 3 if ALL else 2
MOST_ROUNDS = ROUNDS + 20
"""A command that always ends before its signal comes does not show what it does then."""
INTERRUPTED = 130
SECONDS = 300
"""Who takes longer to end hangs."""
MOMENTS = 1.5
"""Seconds in which a command is interrupted that takes far longer."""
START = """
import os, sys
from applier.__main__ import main
sys.argv[0] = "binlag"
def look(event, given):
    if event == "import" and given[0] == "applier.cli.main":
        os.write(1, b"started\\n")
sys.addaudithook(look)
main()
"""
"""From the line that it prints on a signal is the command's; before, it is the interpreter's."""


@dataclass(frozen=True)
class Case:
    """A command, and the outputs it writes: files or folders. `of_chance`: they differ from run to
    run, and take long."""

    arguments: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    of_chance: bool = False


LOG, SCHEMA = "binlog.000001", "before.sql"
CASES = {
    "replay": Case(("replay", LOG, "--schema", SCHEMA, "--dump", "dump", "--stats", "stats.jsonl"),
                   ("dump", "stats.jsonl")),
    "events": Case(("events", LOG, "--rows")),
    "parquet": Case(("events", LOG, "--parquet", "events.parquet"), ("events.parquet",)),
    "arrow": Case(("events", LOG, "--arrow", "arrow"), ("arrow",)),
    "crashtest": Case(("crashtest", "--transactions", "3", "--repository", "FILE", "--html",
                       "out.html"), ("out.html",), True),
    "measure": Case(("measure", "--quick", "--largest", "1000", "--table", "cells.parquet"),
                    ("cells.parquet",), True),
}  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that takes about a second to replay, and its tables."""
    folder = tmp_path_factory.mktemp("inputs")
    events: list[tuple[int, bytes]] = []
    for number in range(1, 501):
        rows = b"".join(
            b"\0" + struct.pack("<iH", number * 20 + at, 60) + bytes([97 + at]) * 60
            for at in range(20)
        )
        table = build.table_map(types=b"\x03\x0f", metadata=struct.pack("<H", 400))
        events += [
            build.gtid(number),
            build.query(b"BEGIN"),
            table,
            build.rows(30, rows, width=2),
            build.xid(),
        ]
    build.write(folder, build.log(*events))
    (folder / SCHEMA).write_text(
        "CREATE DATABASE d; CREATE TABLE d.t (i INT PRIMARY KEY, v VARBINARY(400));"
    )
    return folder


def start(
    case: Case, inputs: Path, folder: Path, under: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    for name in (LOG, SCHEMA):
        (folder / name).symlink_to(inputs / name)
    command = [*under, sys.executable, "-c", START, *case.arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def written(folder: Path, case: Case) -> dict[str, bytes]:
    """Relative name -> content of every output file."""
    found = {}
    for name in case.outputs:
        path = folder / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path] if path.exists() else []:
            found[str(file.relative_to(folder))] = file.read_bytes()
    return found


def whole_run(case: Case, inputs: Path, tmp_path: Path) -> tuple[dict[str, bytes], float]:
    """What the command writes when nobody interrupts it, and how long that takes."""
    folder = tmp_path / "whole"
    folder.mkdir()
    process = start(case, inputs, folder)
    began = time.monotonic()
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    return written(folder, case), time.monotonic() - began


@pytest.mark.parametrize("name", CASES if ALL else ("replay", "arrow", "crashtest"))
def test_an_interrupt_at_any_moment(name: str, inputs: Path, tmp_path: Path) -> None:
    """Every process of the terminal gets Ctrl-C, or hears that it is gone; SIGTERM goes to one."""
    case, chance = CASES[name], random.Random(name)
    complete, seconds = ({}, MOMENTS) if case.of_chance else whole_run(case, inputs, tmp_path)
    ends: list[int] = []
    while len(ends) < ROUNDS or (INTERRUPTED not in ends and len(ends) < MOST_ROUNDS):
        number = len(ends)
        folder = tmp_path / str(number)
        folder.mkdir()
        process = start(case, inputs, folder)
        # sooner if the machine has become faster meanwhile
        time.sleep(chance.uniform(0, seconds * 0.8) / max(1, number - ROUNDS))
        if number % 2:
            process.send_signal(chance.choice((signal.SIGTERM, signal.SIGHUP)))
        else:
            os.killpg(process.pid, chance.choice((signal.SIGINT, signal.SIGHUP)))
        _, said = process.communicate(timeout=SECONDS)
        assert process.returncode in (INTERRUPTED, 0, 3), said
        ends.append(process.returncode)
        if process.returncode == INTERRUPTED:
            assert [line for line in said.splitlines() if "cells" not in line] == [
                "binlag: interrupted"
            ]
        check_outputs(case, written(folder, case), complete)
    assert INTERRUPTED in ends


def check_outputs(case: Case, found: dict[str, bytes], complete: dict[str, bytes]) -> None:
    assert not [name for name in found if ".partial" in name]
    if not case.of_chance:
        assert all(complete[name] == content for name, content in found.items())
    for name, content in found.items():
        if name.endswith(".parquet"):
            assert content[-4:] == b"PAR1"
        if name.endswith(".html"):
            assert content.rstrip().endswith(b"</html>")


IN_A_WORKER = """
import contextlib, multiprocessing.util, os, signal
from applier.__main__ import main
def interrupt(given):
    with contextlib.suppress(FileExistsError):
        os.mkdir("once")
        os.killpg(0, signal.SIGINT)
multiprocessing.util.register_after_fork(main, interrupt)
main()
"""


def test_an_interrupt_before_a_worker_listens(tmp_path: Path) -> None:
    """The first one that is there gives the Ctrl-C that reaches all of them, before anything of its
    own has run."""
    command = [
        sys.executable,
        "-c",
        IN_A_WORKER,
        "crashtest",
        "--transactions",
        "3",
        "--repository",
        "FILE",
        "--jobs",
        "2",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, check=False, timeout=SECONDS,
        start_new_session=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "binlag: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["once"]


MOST_CELLS = 9
"""A run's cells, so that there are some left for the last round's however late its signals come."""
KEPT = f"""
import time
from applier.cli.main import main
from applier.forecast.measurement.measured import MeasurementFile
add, save, told = MeasurementFile.add, MeasurementFile.save, []
def add_or_wait(self, one):
    if len(told) == {MOST_CELLS}:
        time.sleep({SECONDS})
    add(self, one)
def tell_and_save(self):
    told.append(len(self.all))
    print(told[-1], flush=True)
    save(self)
MeasurementFile.add, MeasurementFile.save = add_or_wait, tell_and_save
main()
"""
"""`binlag` that says how many cells are measured before it writes them, and waits for the signal
when it has as many as it may."""


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name
)
def test_every_measured_cell_is_kept(number: signal.Signals, tmp_path: Path) -> None:
    """A kill may lose the one that is being written; the next run measures what is missing, and no
    more."""
    from applier.forecast.measurement.measured import read_parquet

    chance, kept = random.Random(number), 0
    for _ in range(ROUNDS):
        process = subprocess.Popen(
            # no line is read too many
            [sys.executable, "-c", KEPT, "measure", "--largest", "1000", "--table",
             "cells.parquet"], bufsize=0,
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(3)]
        time.sleep(chance.uniform(0, 0.1))
        process.send_signal(number)
        rest, said = process.communicate(timeout=SECONDS)
        assert process.returncode == (-number if number == signal.SIGKILL else INTERRUPTED), said
        told += map(int, rest.split())
        assert told[0] == kept + 1, "it goes on where it ended"
        found = read_parquet(tmp_path / "cells.parquet")
        kept = len(found)
        assert len({one.place for one in found}) == kept, "none is measured twice"
        assert told[-1] - kept in ((0, 1) if number == signal.SIGKILL else (0,))


def processes_of(session: int) -> list[int]:
    """The processes that a command and its children are."""
    found = []
    for place in Path("/proc").iterdir():
        try:
            state, _, _, its = place.joinpath("stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # no process, or one that has just ended
        if int(its) == session and state != "Z":
            found.append(int(place.name))
    return found


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are looked for in /proc"
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_no_worker_outlives_the_command(number: signal.Signals, tmp_path: Path) -> None:
    """Of a signal that reaches one process only; a kill cannot be answered, so workers look after
    themselves."""
    command = [
        sys.executable,
        "-m",
        "applier",
        "crashtest",
        "--transactions",
        "3",
        "--jobs",
        "2",
        "--html",
        "out.html",
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    wait_until(lambda: len(processes_of(process.pid)) == 3)
    process.send_signal(number)
    process.wait(timeout=SECONDS)
    wait_until(lambda: not processes_of(process.pid))
    assert list(tmp_path.iterdir()) == []


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.02)


def test_a_command_under_nohup_goes_on(inputs: Path, tmp_path: Path) -> None:
    case = CASES["events"]
    whole, _ = whole_run(case, inputs, tmp_path)
    process = start(case, inputs, tmp_path, under=("nohup",))
    os.killpg(process.pid, signal.SIGHUP)
    _, said = process.communicate(timeout=SECONDS)
    assert (process.returncode, said, written(tmp_path, case)) == (0, "", whole)
