"""The plan of the house: no room imports from above, no circles, modules that a reader can hold in the head.

Who may import whom stands in pyproject.toml ([tool.importlinter]): the floors, from what people touch down to what knows nobody.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from click.testing import CliRunner
from importlinter.cli import lint_imports_command

ROOT = Path(__file__).parent.parent
PACKAGES = ("applier", "checkpoints", "lookup")
FOLDERS = (*PACKAGES, "benchmarks", "docker", "examples", "scripts", "tests")
MODULE_LINES, FUNCTION_LINES = 500, 70
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("contract", ["ground-floor", "floors", "no-circles"])
def test_imports(contract: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(lint_imports_command, ["--no-cache", "--no-logo", "--contract", contract])
    assert result.exit_code == 0, result.output
    assert "Contracts: 1 kept, 0 broken." in result.output


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_fits_in_a_head(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MODULE_LINES
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES} == {}
