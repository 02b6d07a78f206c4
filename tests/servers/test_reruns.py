"""A failing test of real processes gets a second run with fixtures of its own; a second failure, or
a fourth flaky test, fails the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hardening.runner import ROOT

MODULE = """
import subprocess
import pytest

made = []

@pytest.fixture(scope="module")
def server():
    made.append(len(made))
    yield made[-1]

@pytest.mark.parametrize("number", range({flaky}))
def test_of_a_server(server, number):
    assert server > number  # each failure makes the module's server anew

def test_that_never_passes():
    assert {passes}
"""


@pytest.mark.parametrize(
    "flaky, passes, code, said",
    [
        (3, True, 0, "4 passed, 3 rerun"),
        (4, True, 1, "4 tests are flaky, more than 3: this run fails"),
        (1, False, 1, "1 failed, 1 passed, 2 rerun"),
    ],
)
def test_run_again(tmp_path: Path, flaky: int, passes: bool, code: int, said: str) -> None:
    tmp_path.joinpath("test_it.py").write_text(MODULE.format(flaky=flaky, passes=passes))
    environment = {**os.environ, "BINLAG_RERUN": "1", "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.servers.reruns",
        "-p",
        "no:cacheprovider",
        "test_it.py",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, said in done.stdout) == (code, True), done.stdout
    assert done.stdout.count("flaky, to be mended") == flaky
