"""The site as built: strictly, of every page, and with nothing in a page that comes from the
network."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.session import ROOT

pytestmark = pytest.mark.in_ci
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*?\bsrc=["']?(?:https?:)?//"""
    r"""|<link\b[^>]*?\brel=["']?(?:stylesheet|preconnect)["']?[^>]*?\bhref=["']?(?:https?:)?//"""
)
"""What a browser would fetch by itself from another host."""
ELSEWHERE = {"CHANGELOG.md": "changelog.html", "benchmarks/README.md": "benchmarks/index.html"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = [
        path.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        for path in (ROOT / "docs").rglob("*.md")
    ]
    assert [page for page in [*pages, *ELSEWHERE.values()] if not (site / page).exists()] == []


def test_raw_results_and_examples_are_there(site: Path) -> None:
    files = [
        *ROOT.glob("benchmarks/results/*.json"),
        *ROOT.glob("examples/*.py"),
        *ROOT.glob("examples/notebooks/*.ipynb"),
    ]
    assert files
    assert [
        path for path in files if (site / path.relative_to(ROOT)).read_bytes() != path.read_bytes()
    ] == []


def test_every_notebook_has_a_page(site: Path) -> None:
    for path in ROOT.glob("examples/notebooks/*.ipynb"):
        first = json.loads(path.read_text())["cells"][0]["source"][0]
        assert (
            f">{first.removeprefix('# ').strip()}"
            in (site / path.relative_to(ROOT).with_suffix(".html")).read_text()
        )


def test_a_page_opens_without_a_network(site: Path) -> None:
    assert FETCHED.search('<script src="https://cdn.example/x.js"></script>')
    assert FETCHED.search('<link rel="stylesheet" href="//cdn.example/x.css">')
    pages = sorted(site.rglob("*.html"))
    assert {
        page.name: found[0] for page in pages if (found := FETCHED.search(page.read_text()))
    } == {}


def test_every_command_has_its_options_in_the_reference(site: Path) -> None:
    from applier.cli.main import COMMANDS

    text = (site / "reference" / "cli.html").read_text()
    assert [name for name in COMMANDS if f'id="binlag-{name}"' not in text] == []
