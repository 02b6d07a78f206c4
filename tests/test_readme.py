"""The README shows the demo's figures, and links lead somewhere. What commands and Python examples
print: tests/docs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("[!.]*/*.md"), *(ROOT / "docs").glob("*/**/*.md")]
)
"""Folders with a point are the tools' own: pytest itself puts a README into one, sooner or
later."""


def test_the_demo_prints_the_table_of_the_readme() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "applier", "demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    shown = [
        line.rstrip()
        for line in re.findall(r"```\n( table .*?)```", README, re.DOTALL)[0].splitlines()
    ]
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert [line for line in shown if line not in printed] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text())
    assert [target for target in targets if not (document.parent / target).exists()] == []
