"""The README says what is so: its Python runs and prints what stands under it, its commands exist, its figures are the demo's."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_python_example_prints_what_stands_under_it() -> None:
    code, printed = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", README, re.DOTALL)[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == re.sub(r"^    ", "", printed, flags=re.MULTILINE)


def test_the_demo_prints_the_table_of_the_readme() -> None:
    done = subprocess.run([sys.executable, "scripts/demo.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    shown = [line.rstrip() for line in re.findall(r"```\n( table .*?)```", README, re.DOTALL)[0].splitlines()]
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert [line for line in shown if line not in printed] == []


@pytest.mark.parametrize("line", re.findall(r"^    \.venv/bin/binlag (.*?)(?:  #.*)?$", README, re.MULTILINE))
def test_commands_of_the_readme_run(line: str, tmp_path: Path) -> None:
    replaced = line.replace("binlog.000123", "demo/binlog.000001").replace("before.sql", "demo/before.sql").replace("after/", str(tmp_path))
    command = [sys.executable, "-m", "applier", *shlex.split(replaced)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={"NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("document", sorted([*ROOT.glob("*.md"), *ROOT.glob("*/*.md")]), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text())
    assert [target for target in targets if not (document.parent / target).exists()] == []
