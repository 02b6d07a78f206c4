"""What goes wrong before any command begins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("library", "command", "extra"),
    [
        ("pymysql", ["receive", "mysql://u@127.0.0.1:1", "--dir", "x"], "mysql"),
        ("pyarrow", ["measure", "--table", "cells.parquet"], "arrow"),
    ],
)
def test_a_library_that_is_not_installed_is_named(
    library: str, command: list[str], extra: str, tmp_path: Path
) -> None:
    """Each in a process of its own, in which importing the library fails."""
    hide = (
        f"import sys; sys.modules[{library!r}] = None; from applier.cli.main import main; "
        f"main({command!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", hide], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr.splitlines()[-1]
        == f"binlag: error BL601: this needs {library}. Next: pip install 'binlag[{extra}]'"
    )
