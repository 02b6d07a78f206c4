"""The packages' modules as syntax trees, for tests about all of them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("applier", "checkpoints", "lookup")


@cache
def trees() -> dict[Path, ast.Module]:
    """All of them, read when a test asks: each worker collects."""
    return {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
