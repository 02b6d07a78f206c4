"""Where the output goes: a pipe, a terminal, a reader that leaves; every --help."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from applier.cli.help import EXAMPLES, GROUPS, REST
from applier.cli.main import COMMANDS, cli
from tests.cli.test_replay import Run, binlag

__all__ = ["binlag"]
ROOT = Path(__file__).parent.parent.parent
BINLAG = [sys.executable, "-m", "applier"]
REPLAY = ["replay", "demo/binlog.000001", "--schema", "demo/before.sql"]
PRINTING = {
    "replay": REPLAY,
    "explain": ["explain", "demo/before.sql"],
    "events": ["events", "demo/binlog.000001", "--rows"],
    "clock": ["clock", "demo/binlog.000001"],
    "crashtest": (
        "crashtest --transactions 1 --sync 1 --workers 0 --engine InnoDB --position file "
        "--recovery 1 --jobs 1"
    ).split(),
    "completion": ["completion", "fish"],
    "--help": ["--help"],
}
ESCAPE = "\x1b"


def run(arguments: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM")
    }
    return subprocess.run(
        [*BINLAG, *arguments],
        cwd=ROOT,
        env={**kept, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def on_a_terminal(arguments: list[str], columns: int) -> str:
    """What a terminal of that width is sent, on both streams."""
    main_end, terminal = pty.openpty()
    variables = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"}
    variables.pop("NO_COLOR", None)
    with subprocess.Popen(
        [*BINLAG, *arguments],
        cwd=ROOT,
        env=variables,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        sent = b""
        while True:
            try:
                chunk = os.read(main_end, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            sent += chunk
        assert process.wait() == 0
    os.close(main_end)
    return sent.decode()


@pytest.mark.parametrize("command", ["replay", "explain", "crashtest"])
def test_a_pipe_gets_text_only_and_all_of_it(command: str) -> None:
    """No attributes, no progress, no name or number cut off, however narrow the terminal was."""
    done = run(PRINTING[command], COLUMNS="40", TERM="xterm-256color")
    assert (ESCAPE in done.stdout, "…" in done.stdout.replace("… and", ""), done.stderr) == (
        False,
        False,
        "",
    )
    assert (
        done.stdout == run(PRINTING[command], NO_COLOR="1", FORCE_COLOR="1", COLUMNS="40").stdout
    ), "NO_COLOR: no attributes at all"
    assert done.stdout == run(PRINTING[command]).stdout
    coloured = run(PRINTING[command], FORCE_COLOR="1", COLUMNS="40").stdout
    assert ESCAPE in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == done.stdout


def test_a_narrow_terminal_breaks_lines_and_cuts_nothing() -> None:
    sent = on_a_terminal(REPLAY, 60)
    assert ESCAPE in sent
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", sent)
    assert [line.rstrip() for line in plain.splitlines()] == [
        line.rstrip() for line in run(REPLAY).stdout.splitlines()
    ]


@pytest.mark.parametrize("command", PRINTING)
def test_a_reader_that_leaves(command: str) -> None:
    """`| head`: no word on standard error, and the exit code of a program that met a closed
    pipe."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*BINLAG, *PRINTING[command]],
            cwd=ROOT,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


# help


def all_commands() -> dict[str, click.Command]:
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def test_help_lists_every_command() -> None:
    shown = run(["--help"]).stdout
    sources = {
        path.stem.replace("_", "-"): path.read_text()
        for path in (ROOT / "applier" / "cli" / "commands").glob("*.py")
    }
    modules = {
        name for name, text in sources.items() if re.search(r"^@click\.command\(", text, re.M)
    }
    assert modules == set(COMMANDS) == set(all_commands())
    words = " ".join(shown.split())  # lines are broken
    assert [name for name, text in COMMANDS.items() if f" {name} {text}" not in words] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_describes_every_option(name: str, binlag: Run) -> None:
    """Each has a text; the same words stand in the list of commands; --help prints all of it."""
    command = all_commands()[name]
    assert command.short_help == COMMANDS[name]
    code, shown, err = binlag(name, "--help")
    assert (code, err) == (0, "")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{parameter.opts} has no text"
            assert [name for name in parameter.opts if name not in shown] == []
    for option in ("--verbose", "--log-level", "--log-json", "--help"):
        assert shown.count(option) == 1, "binlag --help explains them"
    assert binlag(name, "-h") == (code, shown, err)


def examples() -> list[tuple[str, str]]:
    """Commands in the texts of --help: lines that begin with `binlag`, and what stands in
    backquotes."""
    found = []
    for name, command in all_commands().items():
        texts = [
            command.help or "",
            *(
                str(parameter.help)
                for parameter in command.params
                if isinstance(parameter, click.Option)
            ),
        ]
        found += [
            (name, example)
            for text in texts
            for example in re.findall(r"`(binlag [^`]+)`|^\s*(binlag .*)$", text, re.M)
        ]
    return [(name, next(filter(None, example))) for name, example in found]


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_at_the_end_of_help(name: str, binlag: Run) -> None:
    """Three of each command. Those that need no server and no folder of the reader's run; of the
    others every option is read."""
    assert name in EXAMPLES
    shown = binlag(name, "--help")[1]
    for what, text in EXAMPLES[name]:
        assert f"  binlag {name} {text}".rstrip() + f"\n      {what}\n" in shown
        arguments = shlex.split(text)
        if "DIR" in text or "mysql://" in text:
            context = all_commands()[name].make_context(name, arguments)
            assert context.args == []
        else:
            done = run([name, *arguments])
            gate = 3 if "--fail-on" in arguments else 0
            assert done.returncode == gate, f"{text}: {done.stderr}"


def test_options_stand_in_groups() -> None:
    """Options that several commands share stand under the same heading everywhere, and none of them
    is left over."""
    shared = {
        "Input": "--schema",
        "Filters": "--table",
        "Rules": "--server",
        "Target": "--into",
        "Connection": "--ssl-ca",
        "Output": "--json",
    }
    for name in ("replay", "verify", "explain", "forecast", "events"):
        shown = run([name, "--help"]).stdout
        headings = [
            line[:-1]
            for line in shown.splitlines()
            if line.endswith(":") and not line.startswith(" ")
        ]
        assert [one for one in GROUPS if one in headings] == [
            one for one in headings if one in GROUPS
        ], "in one order"
        assert REST not in headings
        for heading, option in shared.items():
            if f"  {option}" in shown:
                assert option in shown[shown.index(f"\n{heading}:\n") :].split("\n\n")[0]


def test_binlag_alone_shows_the_uses() -> None:
    """Commands of the three uses exist, and take these options."""
    done = run([])
    assert (done.returncode, done.stderr) == (0, "")
    uses = re.findall(r"^    binlag (\w+)(.*)$", done.stdout, re.M)
    assert [name for name, _ in uses] == ["explain", "forecast", "replay", "crashtest"]
    for name, text in uses:
        assert all_commands()[name].make_context(name, shlex.split(text)).args == []


def test_the_demo_writes_its_files(tmp_path: Path) -> None:
    """The commands that it prints run as they stand."""
    done = run(["demo", "--dir", str(tmp_path / "a b")])
    assert (done.returncode, done.stderr) == (0, "")
    commands = [
        shlex.split(line) for line in done.stdout.splitlines() if line.startswith("  binlag ")
    ]
    assert [run(command[1:]).returncode for command in commands] == [0, 0]


def test_doctor() -> None:
    """Every extra of the package is told, with what it is for; a missing library is a line that
    says how to get it."""
    found = json.loads(run(["doctor", "--json"]).stdout)
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )
    assert {one["name"] for one in found["Extras"]} == extras - {
        "bench",
        "dev",
        "docs",
        "ci",
        "all",
    }
    assert found["Python and binlag"][0]["found"] == ".".join(map(str, sys.version_info[:3]))
    hide = (
        "from importlib import metadata; import applier.cli.commands.doctor as doctor; "
        "from applier.cli.main import main\n"
    )
    hide += "doctor._version = lambda name: None if name == 'scipy' else '1'\nmain(['doctor'])"
    done = subprocess.run(
        [sys.executable, "-c", hide], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(
        r"  measure +not installed: binlag measure.*\n"
        r" +pip install 'binlag\[measure\]' \(brings scipy\)\n",
        done.stdout,
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("reply x", "replay"),
        ("Explain x", "explain"),
        ("replay x --shema y", "--schema"),
        ("replay x --exec-mode stric", "strict"),
        ("explain demo/before.sql --table shop.parcl", "shop.parcel"),
        ("explain demo/before.sql --rows shop.parcl=4", "shop.parcel"),
        ("explain demo/before.sql --rows shop.parcel.orderno=4", "shop.parcel.order_no"),
        ("explain demo/before.sql --fail-on nokey", "no-key"),
        (
            (
                "forecast demo/binlog.000001 --schema demo/before.sql --what-if "
                "primary-key:shop.cartitem"
            ),
            "shop.cart_item",
        ),
        ("replay demo/binlog.000001 --schema demo/before.sql --table shop.parcl", "shop.parcel"),
    ],
)
def test_a_mistyped_name(typed: str, meant: str) -> None:
    done = run(typed.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Next: did you mean {meant}?" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_examples_of_help_run(tmp_path: Path) -> None:
    """With a folder for DIR. One that names a command alone is asked for its --help."""
    for name, example in examples():
        arguments = shlex.split(example)[1:]
        if len(arguments) == 1 or "DIR" in arguments or arguments[-1] == "--dir":
            # a name, not an example: the command and its option are there
            arguments.append("--help")
        done = run([argument for argument in arguments if argument != "--dir"])
        gate = "--fail-on" in arguments
        assert done.returncode == 3 * gate, f"{name} --help: {example}: {done.stderr}"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("events demo/binlog.000001", 0),
        (" ".join(REPLAY), 0),
        ("events demo/nothing", 2),
        ("--version", 0),
    ],
)
def test_a_stream_that_is_closed_from_the_start(closed: str, command: str, code: int) -> None:
    line = f"{shlex.join(BINLAG)} {command} {closed}"
    ended = subprocess.run(
        ["sh", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == code, ended.stderr
    assert ">&- 2" in closed or bool(ended.stdout) == (closed != ">&-" and not code), ended.stdout


def test_names_are_printed_as_they_are(tmp_path: Path) -> None:
    """Brackets and colons are marks of the library that prints tables."""
    dump = tmp_path / "odd.sql"
    dump.write_text(
        "CREATE TABLE `a:x:`.`[/]` (`[red]b` INT); CREATE TABLE `a:x:`.`[i]t` (`:smile:` INT "
        "PRIMARY KEY);"
    )
    for options, names in (
        ("--all", ["a:x:.[/]", "a:x:.[i]t"]),
        ("--all --details", ["a:x:.[/]  InnoDB", "a:x:.[i]t  InnoDB"]),
    ):
        shown = run(["explain", str(dump), *options.split()])
        assert shown.returncode == 0, shown.stderr
        assert all(name in shown.stdout for name in names), shown.stdout
    shown = run([*REPLAY, "--rewrite-db", "shop:[/]:x:", "--rewrite-db", "[b]:x:"])
    assert "[/]:x:.parcel" in shown.stdout, shown.stderr
    assert "note: --rewrite-db [b]:x:: the log does not name [b]" in shown.stdout


def test_a_terminal_is_told_names_as_they_are() -> None:
    sent = on_a_terminal([*REPLAY, "--rewrite-db", "shop:[/]:x:"], 120)
    assert "[/]:x:.parcel" in sent
