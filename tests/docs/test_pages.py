"""Every block of output in the documentation is what the command above it prints; every Python
example runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.blocks import Block, Step, blocks, matches
from tests.docs.pages import PAGES, PORT, elsewhere, must_run, name_of
from tests.docs.session import Ran, Session, environment, scratch_copy

if TYPE_CHECKING:
    from tests.servers.fixtures import ServerFactory

WITH_COMMANDS = [page for page in PAGES if any(must_run(page, block) for block in blocks(page))]
WITH_PYTHON = [page for page in PAGES if any(block.kind == "python" for block in blocks(page))]
RUN_PYTHON = Path(__file__).parent / "run_python.py"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scratch_copy(tmp_path_factory.mktemp("documentation"))


@pytest.fixture
def session(copy: Path, tmp_path: Path) -> Iterator[Session]:
    with closing(Session(copy, readers_own(copy, tmp_path))) as opened:
        yield opened


def readers_own(copy: Path, folder: Path) -> dict[str, str]:
    """The variables of who works in the copy: its programs, and its code rather than that of the
    checkout that is installed."""
    return environment(folder / "home", copy / ".venv" / "bin", PYTHONPATH=str(copy))


def test_the_code_is_that_of_the_tree_with_the_pages(session: Session, copy: Path) -> None:
    ran = session.run("cd / && python -c 'import applier; print(applier.__file__)'")
    assert ran.printed.strip() == str(copy / "applier" / "__init__.py")


def said(page: Path, step: Step, ran: Ran, shown: str | None) -> str:
    """What a writer needs to mend the page."""
    expected = "" if shown is None else f"\n--- the page\n{shown}"
    return (
        f"{name_of(page)}:{step.line}: {step.command}: exit code {ran.code}{expected}\n"
        f"--- printed\n{ran.printed}"
    )


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_commands_print_what_the_page_shows(
    page: Path, session: Session, request: pytest.FixtureRequest
) -> None:
    ports: dict[str, str] = {}
    for block in blocks(page):
        if must_run(page, block):
            told = _server(block, ports, session, lambda: request.getfixturevalue("server_factory"))
            _run(page, block, session, told)


def _server(
    block: Block, ports: dict[str, str], session: Session, factory: Callable[[], ServerFactory]
) -> str:
    """The port that stands for 3306 in a block; a server is started when the first block of a page
    asks for it."""
    if not any(f":{PORT}" in step.command for step in block.steps):
        return PORT
    name = block.server or "9.7"
    if name not in ports:
        server = factory()(name)
        session.export("BINLAG_PASSWORD", server.password)
        ports[name] = str(server.port)
    return ports[name]


def _run(page: Path, block: Block, session: Session, port: str) -> None:
    steps = block.steps
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if elsewhere(step) is not None:
            continue
        ran = session.run(step.command.replace(f":{PORT}", f":{port}"))
        ran = Ran(ran.printed.replace(f":{port}", f":{PORT}"), ran.code)
        asked = following is not None and "$?" in following.command
        assert ran.code == 0 or asked, said(page, step, ran, step.output)
        if step.output is not None:
            assert matches(step.output, ran.printed), said(page, step, ran, step.output)


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_python_prints_what_the_page_shows(page: Path, copy: Path, tmp_path: Path) -> None:
    """The examples of a page are one program, each block's output apart."""
    examples = [block for block in blocks(page) if block.kind == "python" and block.not_run is None]
    done = subprocess.run(
        [sys.executable, str(RUN_PYTHON)], input=json.dumps([block.text for block in examples]),
        cwd=copy, capture_output=True,
        text=True, check=False, env=readers_own(copy, tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, f"{name_of(page)}\n{done.stderr}"
    for block, printed in zip(examples, json.loads(done.stdout), strict=True):
        if block.printed is not None:
            assert matches(block.printed, printed), (
                f"{name_of(page)}:{block.line}\n--- the page\n{block.printed}\n--- printed\n"
                f"{printed}"
            )


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_is_not_run_says_why(page: Path) -> None:
    assert [block.line for block in blocks(page) if block.not_run == ""] == []
    assert not re.search(r"(?m)^    \$ ", page.read_text()), (
        "a session stands in a ```console block"
    )
