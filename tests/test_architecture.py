"""The plan of the house: no room imports from above, no circles, modules that a reader can hold in
the head.

Who may import whom stands in pyproject.toml ([tool.importlinter]): the floors, from what people
touch down to what knows nobody.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.source_trees import PACKAGES, ROOT, trees

FOLDERS = (*PACKAGES, "benchmarks", "docker", "examples", "scripts", "tests")
MODULE_LINES, FUNCTION_LINES, ROOM_MODULES = 500, 70, 25
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


OUTSIDE = [path for path in FILES if path.relative_to(ROOT).parts[0] not in PACKAGES]
"""mypy reads the packages alone."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_imports() -> None:
    """In a process of its own: import-linter configures logging, which disables every logger that
    is there."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache", "--no-logo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Contracts: [1-9]\d* kept, 0 broken", done.stdout)


@pytest.mark.parametrize("path", OUTSIDE, ids=name_of)
def test_what_a_script_imports_is_there(path: Path) -> None:
    """Of the packages' own names; nothing is run."""
    missing = [
        f"{node.module}.{one.name}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES
        for one in node.names
        if one.name not in names_in(str(node.module))
    ]
    assert missing == []


@cache
def names_in(module: str) -> set[str]:
    """All names that a module binds or spells, and the modules of a package."""
    place = ROOT.joinpath(*module.split("."))
    path = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
    words = set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return words | {one.stem for one in place.glob("*")}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_fits_in_a_head(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MODULE_LINES
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES} == {}


def test_no_room_is_crowded() -> None:
    """A folder is a room, and its listing is read at once; what has grown beyond that is rooms."""
    rooms = Counter(name_of(path.parent) for path in FILES if name_of(path).startswith(PACKAGES))
    assert {"applier", "checkpoints", "lookup", "applier/tables/ddl"} <= set(rooms)
    assert {room: modules for room, modules in rooms.items() if modules > ROOM_MODULES} == {}


@cache
def classes() -> list[tuple[Path, ast.ClassDef]]:
    """All of the packages, and where they stand."""
    return [
        (path, node)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]


def test_every_class_name_stands_once() -> None:
    """A reader who meets a name knows which class it is."""
    homes: dict[str, list[str]] = {}
    for path, node in classes():
        homes.setdefault(node.name, []).append(f"{name_of(path)}:{node.lineno}")
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def contracts(node: ast.ClassDef) -> Iterator[ast.ClassDef]:
    """Its bases, and what its docstring says that it implements."""
    names = {ast.unparse(base).partition("[")[0].split(".")[-1] for base in node.bases}
    for said in re.findall(
        r"[Ii]mplements (`?[\w.]+\w`?(?: and `[\w.]+`)*)", ast.get_docstring(node) or ""
    ):
        names.update(name.split(".")[-1] for name in re.findall(r"[\w.]*\w", said))
    return (other for _, other in classes() if other.name in names and other is not node)


def is_documented(node: ast.ClassDef, method: str) -> bool:
    """Whether the method of a class says what it does, there or in a contract of the class."""
    own = [
        part
        for part in node.body
        if isinstance(part, ast.FunctionDef) and part.name == method and ast.get_docstring(part)
    ]
    return bool(own) or any(is_documented(other, method) for other in contracts(node))


def test_public_methods_say_what_they_do() -> None:
    """ruff's D102 asks it of each method; here a method of a contract says it once, in the
    contract."""
    methods = [
        (path, node, part.name)
        for path, node in classes()
        for part in node.body
        if isinstance(part, ast.FunctionDef) and "_" not in (node.name[0], part.name[0])
    ]
    assert len(methods) > 1000, "the walk finds them"
    silent = [
        f"{name_of(path)}:{node.name}.{method}"
        for path, node, method in methods
        if not is_documented(node, method)
    ]
    assert silent == []
