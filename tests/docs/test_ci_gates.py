"""The gates for GitHub and GitLab do what they say: their own commands, on a good schema and on one
without a key."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
CAPTURES = ROOT / "tests" / "captures" / "forecast"
GITHUB, GITLAB = (
    ROOT / "examples" / "ci" / f"{name}-schema-gate.yml" for name in ("github", "gitlab")
)


def scripts(path: Path) -> list[str]:
    """The commands of the job; installing is tests/test_package.py's."""
    told = yaml.safe_load(path.read_text())
    steps = (
        told["jobs"]["replica-lag"]["steps"]
        if "jobs" in told
        else [{"run": line} for line in told["replica-lag"]["script"]]
    )
    return [step["run"] for step in steps if "run" in step and not step["run"].startswith("pip ")]


@pytest.mark.in_ci
def test_the_gate(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "binlag").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m applier "$@"\n')
    (programs / "binlag").chmod(0o755)
    (tmp_path / "ci").mkdir()
    shutil.copy(CAPTURES / "binlog.000001", tmp_path / "ci" / "busy-hour.binlog")
    variables = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": "summary.md",
        "HOME": str(tmp_path),
    }

    def codes(schema: str) -> list[int]:
        (tmp_path / "schema.sql").write_text(schema)
        return [
            subprocess.run(
                ["bash", "-c", line], cwd=tmp_path, env=variables, check=False
            ).returncode
            for line in scripts(GITHUB)
        ]

    bad = (CAPTURES / "schema.sql").read_text()
    assert codes(bad) == [3, 3]
    good = re.sub(
        r"detail VARCHAR\(60\) NOT NULL", r"\g<0>, PRIMARY KEY (at, account, action)", bad
    )
    assert codes(good) == [0, 0]
    assert (tmp_path / "forecast.html").exists()
    assert (tmp_path / "summary.md").read_text().startswith("| table | rows | key |")


def test_both_run_the_same_commands() -> None:
    assert [line.partition(" >>")[0] for line in scripts(GITHUB)] == scripts(GITLAB)
