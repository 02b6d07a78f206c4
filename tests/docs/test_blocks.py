"""The reader of pages: what it takes for a command, for output, for neither."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.docs.blocks import Step, blocks, matches
from tests.docs.session import Session, environment


def test_a_session_is_commands_and_what_they_print() -> None:
    [block] = blocks("text\n\n```console\n$ echo 1 \\\n>   2\n1 2\n$ true\n$ ls\na\n\nb\n```\n")
    assert block.steps == [
        Step("echo 1 \\\n  2", "1 2", 4),
        Step("true", "", 7),
        Step("ls", "a\n\nb", 8),
    ]


def test_a_session_begins_with_a_command() -> None:
    [block] = blocks("```console\noutput\n$ ls\n```\n")
    with pytest.raises(ValueError, match="line 2: a console block begins with"):
        _ = block.steps


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("```sh\n# a comment\nmake demo\nbinlag a \\\n  b\n```", ["make demo", "binlag a \\\n  b"]),
        (
            "x:\n\n    binlag explain a.sql   # why\n    binlag events b\n",
            ["binlag explain a.sql   # why", "binlag events b"],
        ),
        ("    .venv/bin/binlag --version\n", [".venv/bin/binlag --version"]),
        ("    hours: 24\n", []),
        ("words\n    binlag explain   belongs to the paragraph\n", []),
        ("```yaml\nbinlag: 1\n```", []),
        ("```\nmake\n```", []),
    ],
)
def test_commands_alone(text: str, commands: list[str]) -> None:
    assert [step.command for block in blocks(text) for step in block.steps] == commands
    assert all(step.output is None for block in blocks(text) for step in block.steps)


def test_a_comment_directs_the_next_block_only() -> None:
    text = (
        "<!-- not run: needs a replica -->\n```console\n$ a\n```\n\n<!-- server: 9.7 -->\n\n"
        "```console\n$ b\n```\n"
    )
    text += "words\n```console\n$ c\n```\n"
    assert [(block.not_run, block.server) for block in blocks(text)] == [
        ("needs a replica", None),
        (None, "9.7"),
        (None, None),
    ]
    assert blocks("<!-- not run: no -->\nwords\n```console\n$ a\n```\n")[0].not_run is None


def test_what_python_prints_stands_right_below() -> None:
    assert blocks("```python\nprint(1)\n```\n\n    1\n    2\n")[0].printed == "1\n2"
    assert blocks("```python\nprint(1)\n```\n\n```text\n1\n```\n")[0].printed == "1"
    assert blocks("```python\nprint(1)\n```\nwords\n\n```\n1\n```\n")[0].printed is None


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb", "a \nb\n\n", True),
        ("a\nb", "a\nc\n", False),
        ("took … s", "took 1.25 s\n", True),
        ("took … s", "took 1.25 ms\n", False),
        ("a\n…\nz", "a\nb\nc\nz\n", True),
        ("a\n…", "b\n", False),
        ("", "", True),
        ("", "x\n", False),
        ("a.c", "abc\n", False),
    ],
)
def test_shown_and_printed(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) is same


def test_a_shell_keeps_its_folder_its_variables_and_the_last_exit_code(tmp_path: Path) -> None:
    with closing(Session(tmp_path, environment(tmp_path / "home"))) as session:
        assert session.run("mkdir one && cd one").code == 0
        assert session.run("basename $PWD").printed == "one\n"
        session.export("WORD", "it's $HOME")
        assert session.run('printf %s "$WORD"').printed == "it's $HOME"
        assert session.run("ls nowhere").code == 2
        assert session.run("echo $?").printed == "2\n"
        assert session.run("if").code != 0, "a command that bash cannot read"
        assert session.run("echo there; echo and there >&2").printed == "there\nand there\n"
        with pytest.raises(RuntimeError, match="the shell ended"):
            session.run("exit 3")
