"""Every fuzz target over its corpus and a fixed number of mutations of it, in a process of its own:
a crash there is a failure here.

The inputs are the same in every run; BINLAG_ALL_CASES=1 takes more of them. `tests/fuzz/run.py`
looks for new ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.guard import PAGE, guarded
from tests.fuzz.targets import CORPUS, TARGETS, corpus

ROOT = Path(__file__).parent.parent.parent
MANY = os.environ.get("BINLAG_ALL_CASES") == "1"
COUNTS = {
    "events": 150,
    "columns": 40,
    "images": 80,
    "replay": 20,
    "json": 1_000,
    "gtids": 1_000,
    "info": 200,
    "schema": 200,
}
"""Mutations a target: a second each, about."""
TIMES = 8 if MANY else 1


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", TARGETS)
def test_only_documented_errors(name: str, tmp_path: Path) -> None:
    current = tmp_path / "input"
    command = [
        sys.executable,
        "-m",
        "tests.fuzz.child",
        name,
        str(COUNTS[name] * TIMES),
        "1",
        str(current),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        kept = current.read_bytes() if current.exists() else b""
        pytest.fail(
            f"target {name} ended with {done.returncode} on {kept!r}\n{done.stderr[-3000:]}"
        )
    assert int(done.stdout) == len(list(corpus(name))) + COUNTS[name] * TIMES


def test_the_corpus_is_small() -> None:
    sizes = [path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(sizes) < 1_000_000
    assert {folder.name for folder in CORPUS.iterdir()} == set(TARGETS)


@pytest.mark.parametrize("size", [1, 100, PAGE, PAGE + 1])
def test_a_read_behind_guarded_memory_is_fatal(size: int) -> None:
    """What the targets rely on; in a process of its own, since it dies."""
    code = (
        f"import ctypes; from tests.fuzz.guard import guarded; m = guarded({size}); "
        "print(ctypes.string_at(int(m.ctypes.data), %d)[-1])"
    )
    inside = subprocess.run(
        [sys.executable, "-c", code % size], cwd=ROOT, capture_output=True, text=True, check=False
    )
    behind = subprocess.run(
        [sys.executable, "-c", code % (size + 1)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (inside.returncode, inside.stdout) == (0, "0\n")
    assert behind.returncode == -11
    assert len(guarded(size)) == size
