"""Every place that raises an error for the user gives a code of the catalogue; every code is
raised, has a page, and says what to do."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

from applier.error_catalogue import GENERAL, GROUPS, catalogue, situation
from applier.error_codes import Code
from tests.source_trees import ROOT, trees

NUMBERS = [int(code[3:]) for code in catalogue() if code.startswith("MY-") and code != GENERAL]
"""The servers' errors that have a row."""
WITH_CODE = {"InputError", "UsageError", "ServerLost", "NotReached", "OtherLogs", "ReadOnly"}
WITH_NUMBER = {"ReplicationError", "ValueRefused"}
BORDERS = {
    "ValueError": "arguments of a Python call; the commands check or translate them",
    "KeyError": "a table that is not there, from Python",
    "AttributeError": "a name that the package does not have",
    "AssertionError": "a mistake: internal error; a failed test in the pytest plugin",
    "CheckpointError": (
        "the commands and the receiver's folder translate it, applier.cli.failures what they leave"
    ),
    "InfoError": "a CheckpointError",
    "UnreadableDocument": "the JSON functions of MariaDB refuse the statement with 1235",
    "UnknownType": "`type_of` returns None for it, and CREATE TABLE … SELECT is refused",
    "GtidError": "the options translate it, applier.cli.failures what they leave",
    "TimeoutError": "a source that is silent: the receiver's dump is a lost connection",
    "ConnectionError": "a compressed packet that is damaged: a lost connection",
    "FileNotFoundError": "a disk in memory says it like the real one",
    "yaml.constructor.ConstructorError": (
        "a YAMLError, as PyYAML raises: who reads a file says which"
    ),
    "Crashed": "the simulated crash, caught by the explorer",
    "ReadOnlyTable": "a RowError: the target gives its number",
    "NoReferencedRow": "a RowError: the target gives its number",
    "RowIsReferenced": "a RowError: the target gives its number",
    "CascadeTooDeep": "a RowError: the target gives its number",
    "Incomparable": "texts whose order is not known: the engine and the statements give 1235",
    "EOFError": "a damaged frame of zstd: open_source gives BL121",
    "NotExpressible": "the statement form turns it into an error of the event",
    "CorruptRow": "the target gives 1610",
    "UnicodeEncodeError": (
        "a character that its character set lacks, as a codec of Python says it; "
        "callers of encode know"
    ),
    "SystemExit": "the end of a command",
    "Interrupted": "Ctrl-C or SIGTERM: one line and exit code 130",
    "click.Abort": "the same, of click",
    "BrokenPipeError": "nobody reads the output: the end of the command",
    "RecoveryMistake": (
        "a mistake in the system under test, and from binlag crashtest in binlag: internal error"
    ),
    "pytest.UsageError": "pytest's own, in the plugin",
}
"""Exceptions without a code -> who turns them into an error with one, or why that is not needed."""
DYNAMIC = {
    "error.number",
    "refused.number",
    "failure.number",
    "number",
    "self.session.error_code",
    "int(number or 0)",
}
"""Numbers that are not written where they are raised: those of RowError, ValueRefused, the rules of
a version, a real server."""


def calls(names: set[str]) -> Iterator[tuple[str, ast.Call]]:
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in names
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def constants() -> dict[str, int]:
    """Names that a module gives to whole numbers."""
    found: dict[str, int] = {}
    for tree in trees().values():
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name | ast.Tuple):
                names = (
                    node.targets[0].elts
                    if isinstance(node.targets[0], ast.Tuple)
                    else [node.targets[0]]
                )
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                found.update(
                    (name.id, value.value)
                    for name, value in zip(names, values, strict=False)
                    if isinstance(name, ast.Name)
                    and isinstance(value, ast.Constant)
                    and isinstance(value.value, int)
                )
    return found


def test_every_error_of_the_user_has_a_code_of_the_catalogue() -> None:
    places = list(calls(WITH_CODE))
    wrong = []
    for place, call in places:
        given = [ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "code"]
        named = re.findall(r"\bCode\.(\w+)", " ".join(given))
        if not named or not Code.__members__.keys() >= set(named):
            wrong.append((place, given))
    assert wrong == []
    assert len(places) > 250, "the walk finds the places"


def test_every_code_is_raised() -> None:
    used = {
        node.attr
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Code"
    }
    assert set(Code.__members__) - used == set()


def test_every_number_of_a_server_is_in_the_catalogue() -> None:
    names = constants()
    unknown = []
    places = list(calls(WITH_NUMBER))
    for place, call in places:
        number = call.args[0]
        value = number.value if isinstance(number, ast.Constant) else names.get(ast.unparse(number))
        if value is None and ast.unparse(number) in DYNAMIC:
            continue
        if value not in NUMBERS:
            unknown.append((place, ast.unparse(number)))
    assert unknown == []
    assert len(places) > 60, "the walk finds the places"


def test_every_number_of_the_catalogue_is_raised_or_answered_by_a_server() -> None:
    written = {
        node.value
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, int)
    }
    assert set(NUMBERS) - written == set()


def test_nothing_else_is_raised_than_what_somebody_turns_into_a_code() -> None:
    """A name in lower case is a function that makes one of the errors above, or a caught error."""
    raised = {
        ast.unparse(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and node.exc is not None
    }
    classes = {name for name in raised if name.split(".")[-1][0].isupper()}
    assert classes - WITH_CODE - WITH_NUMBER - BORDERS.keys() == set()


def test_titles_and_codes_are_unique_and_in_order() -> None:
    rows = list(catalogue().values())
    assert len({row.title for row in rows}) == len(rows)
    assert [*catalogue()] == [
        *sorted(Code),
        *(f"MY-{number}" for number in sorted(NUMBERS)),
        GENERAL,
    ]
    assert {row.code[:3] for row in rows} == set(GROUPS)
    for row in rows:
        assert (
            row.meaning.endswith(".")
            and row.next_step
            and not row.next_step.endswith(".")
            and "{" not in row.next_step
        )


def test_a_number_without_a_row_has_a_code_and_a_next_step() -> None:
    unknown = situation("MY-4711")
    assert (unknown.code, unknown.next_step) == ("MY-4711", situation(GENERAL).next_step)
    assert "--skip-errors 1032 " in situation("MY-1032").next_step


@pytest.fixture(scope="module")
def error_pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "error_pages", ROOT / "scripts" / "error_pages.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_code_has_a_fresh_page(error_pages: ModuleType) -> None:
    """`python scripts/error_pages.py` writes them."""
    written = {
        path.name: path.read_text(encoding="utf-8")
        for path in (ROOT / "docs" / "errors").glob("*.md")
    }
    assert written == error_pages.pages()
    assert {f"{code}.md" for code in catalogue()} < written.keys()
    assert all(f"({name})" in written["index.md"] for name in written if name != "index.md")
