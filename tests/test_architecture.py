"""The plan of the house: no room imports from above, no circles, modules that a reader can hold in the head."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = [
    ("applier.cli", 4),
    ("applier.report", 4),
    ("applier.report_charts", 4),
    ("applier.forecast", 3),
    ("applier.binlog", 1),
    ("applier.tables", 1),
    ("applier.errors", 0),
    ("applier.logs", 0),
    ("applier.error_codes", 0),
    ("applier.masking", 0),
    ("applier.server_errors", 0),
    ("applier.result", 1),
    ("applier.options", 1),
    ("applier", 2),
    ("lookup", 0),
    ("checkpoints", 0),
]
"""Package or module -> floor; the first that fits. Errors are shared by all rooms of the replica."""
MODULE_LINES, FUNCTION_LINES = 550, 80
MODULES = sorted(path for package in ("applier", "lookup", "checkpoints") for path in (ROOT / package).rglob("*.py"))


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def floor(name: str) -> int:
    return next(number for prefix, number in FLOORS if name == prefix or name.startswith(prefix + "."))


def imports(path: Path) -> set[str]:
    """Own modules that a module names, wherever in its text."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name for name in names if name.split(".")[0] in ("applier", "lookup", "checkpoints") and name != "applier"}


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_nothing_from_above(path: Path) -> None:
    own = module_name(path)
    if own in ("applier", "applier.__main__"):
        return
    assert [name for name in imports(path) if floor(name) > floor(own)] == []


@pytest.mark.parametrize("base", ["lookup", "checkpoints"])
def test_the_ground_floor_does_not_know_the_replica(base: str) -> None:
    known = {name.split(".")[0] for path in (ROOT / base).rglob("*.py") for name in imports(path)}
    assert known <= {base}


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_fits_in_a_head(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MODULE_LINES
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES} == {}
    assert ast.get_docstring(ast.parse(text)), "says what it is for"
