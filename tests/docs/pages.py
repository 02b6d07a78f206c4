"""The pages whose blocks are checked, what of them is run, and what is not and why. The report's
end counts the latter."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.docs.blocks import Block, Step, blocks
from tests.docs.session import ROOT

if TYPE_CHECKING:
    import pytest

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PORT = "3306"
"""Where the pages say that a server is."""
ELSEWHERE = {
    r"(\.venv/bin/)?(pip|python3? -m pip|pipx) ": (
        "installs: tests/test_package.py installs the wheel, CI every extra"
    ),
    r"make (test|lint|docs|bench|clean)\b": "CI runs it, and this test within it",
    r"export \w+=…": "a password of the reader's own",
}
"""Commands that are run elsewhere -> where."""


def elsewhere(step: Step) -> str | None:
    """Why a command is not run here although its block is."""
    return next(
        (reason for pattern, reason in ELSEWHERE.items() if re.match(pattern, step.command)), None
    )


def must_run(page: Path, block: Block) -> bool:
    """Whether the block's commands are run: of the README all, of other pages those that show what
    they print."""
    return (
        bool(block.steps)
        and block.not_run is None
        and (block.kind == "console" or page.name == "README.md")
    )


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def left_out() -> Counter[str]:
    """Reason -> how many blocks or commands of all pages are not run for it."""
    reasons: Counter[str] = Counter()
    for page in PAGES:
        for block in blocks(page):
            if block.not_run is not None and (block.steps or block.kind == "python"):
                reasons[block.not_run] += 1
            elif must_run(page, block):
                reasons.update(reason for step in block.steps if (reason := elsewhere(step)))
    return reasons


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What of the documentation is checked, and how much of it is not, by reason."""
    found = [(page, block) for page in PAGES for block in blocks(page)]
    sessions = sum(must_run(page, block) for page, block in found)
    python = sum(block.kind == "python" and block.not_run is None for _, block in found)
    alone = sum(
        bool(block.steps) and block.kind != "console" and page.name != "README.md"
        for page, block in found
    )
    reasons = left_out()
    terminalreporter.write_line(
        f"documentation: {len(PAGES)} pages, {sessions} blocks of commands and {python} of Python; "
        f"not run: {reasons.total()}; "
        f"{alone} blocks are commands without output"
    )
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"  not run: {count}: {reason}")
