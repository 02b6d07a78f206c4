"""Every notebook of examples/notebooks runs from its first cell to its last, and is kept without
its output."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.docs.plain_english import stumbles
from tests.docs.session import ROOT, environment

RUN_NOTEBOOK = Path(__file__).parent / "run_notebook.py"
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
SHOWS = {
    "what-is-in-this-log": ["<table", "parcel", "'sent'"],
    "why-is-the-replica-late": ["<table", "<svg", "ADD COLUMN"],
}
"""Notebook -> what must be among its output."""
FETCHED = re.compile(r"\b(?:src|href)=|@import|\burl\(|https?://(?!www\.w3\.org/)")
"""What would make a browser ask another host."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """For what Jupyter writes. The names of the kernel's sockets have at most 107 characters, so it
    is not below tmp_path."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def outputs(path: Path, folder: Path) -> list[Any]:
    """What the notebook's cells show, in order."""
    done = subprocess.run(
        [sys.executable, str(RUN_NOTEBOOK), str(path), str(folder)], capture_output=True, text=True,
        check=False,
        env=environment(folder / "home", PYTHONPATH=str(ROOT)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [
        output
        for cell in nbformat.reads(done.stdout, as_version=4).cells
        for output in cell.get("outputs", ())
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, folder: Path) -> None:
    shown = outputs(path, folder)
    assert [output for output in shown if output.get("name") == "stderr"] == []
    text = "".join(map(str, shown))
    assert [part for part in SHOWS[path.stem] if part not in text] == []
    assert not FETCHED.search(text)


def test_a_cell_that_fails_is_seen(folder: Path) -> None:
    path = folder / "wrong.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")]), path)
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        outputs(path, folder)


def test_notebooks_are_kept_without_output() -> None:
    assert {path.stem for path in NOTEBOOKS} == SHOWS.keys()
    for path in NOTEBOOKS:
        for cell in nbformat.read(path, as_version=4).cells:
            assert not cell.get("outputs") and cell.get("execution_count") is None, (
                f"{path.name}: {cell.id}"
            )


def test_their_text_is_plain_english() -> None:
    texts = (
        (f"{path.name}: {cell.id}", cell.source)
        for path in NOTEBOOKS
        for cell in nbformat.read(path, as_version=4).cells
    )
    assert stumbles(texts) == []
