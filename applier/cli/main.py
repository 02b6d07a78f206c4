"""`binlag`: the command line. Commands are imported when they are used, so that --help is quick."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from applier.cli import failures
from applier.cli.help import START, grouped
from applier.cli.notes import log_options, note
from applier.cli.signals import interrupts
from applier.error_codes import Code
from applier.errors import Interrupted, UsageError
from applier.garbage import no_cycle_collection
from applier.spelling import did_you_mean

COMMANDS = {
    "replay": "Replay binary logs into tables and say what each table cost.",
    "events": "List every event of binary logs: text, JSON lines or Parquet.",
    "receive": "Receive the log of a live source into relay logs, as a replica does.",
    "status": (
        "Show the replica status from the files of a folder, or from a replay's rows in a server."
    ),
    "recover": "Say what a crashed replica does at its next start.",
    "clock": "Show Seconds_Behind_Source next to the true lag, over time, on a simulated clock.",
    "verify": "Compare a server's tables with those of the replay in memory.",
    "explain": "List the tables that make a replica read too much, why, and the fix.",
    "crashtest": "Try every crash point of a replica's run; a matrix of what is safe.",
    "forecast": "Say how far behind a replica will be, why, and what a key would change.",
    "fleet": (
        "Say of hundreds of sources which replica will be late, by how much, and what to change."
    ),
    "spark-package": "Pack what Spark's executors need for binlag fleet.",
    "measure": "Measure what applying costs on a server, for binlag forecast.",
    "demo": "Replay a real log under each way to find rows, and show what a key changes.",
    "doctor": "Show which optional parts are installed, and what they are for.",
    "completion": "Print the script that completes commands in bash, zsh or fish.",
}
"""Command -> its line in --help; the command itself is `command` in applier/cli/commands/<name>.py,
with an underscore for a dash."""
INTERRUPTED = 130
CLOSED_OUTPUT = 141
"""As a shell shows a program that ended because nobody reads its output any more: `| head`."""
VERBOSE = "--verbose"
COMMON = frozenset({VERBOSE, "--log-level", "--log-json"})
"""Options that every command takes."""


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, None when there is none."""
        if cmd_name not in COMMANDS:
            return None
        with no_cycle_collection():
            module = importlib.import_module(f"applier.cli.commands.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        _take_common_options(command)
        return grouped(command, COMMON)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; an unknown name is answered with the one that may be meant."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            hint = f"{did_you_mean(args[0], COMMANDS) or ''} see binlag --help".strip()
            raise UsageError(f"No such command {args[0]!r}", code=Code.COMMAND_LINE, hint=hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands and what they do, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """As click calls it. While Spark runs, its own handler answers Ctrl-C, by a
        KeyboardInterrupt."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None


def _take_common_options(command: click.Command) -> None:
    """Every command takes them, before or behind its name."""
    if VERBOSE not in [name for parameter in command.params for name in parameter.opts]:
        said = (
            "When something fails, say more: what led there, the options, the versions. Never a"
            " password."
        )
        command.params.append(
            click.Option(
                [VERBOSE],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=failures.note_command,
                help=said,
            )
        )
        command.params.extend(log_options())


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option("0.1.0", prog_name="binlag")
@click.pass_context
def cli(context: click.Context) -> None:
    """A MySQL replica applier emulator.

    It replays captured binary logs, finds every row the way the server would, and counts what that
    costs.
    """
    if context.invoked_subcommand is None:
        click.echo(START, nl=False)


_take_common_options(cli)


def _open_closed_streams() -> None:
    """A shell's `>&-` leaves no stream at all, and the next file that is opened its number: what
    would be written there goes nowhere, as in Python's own print."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115


def main(
    arguments: list[str] | None = None, *, interrupted: Callable[[], bool] = lambda: False
) -> Any:
    """Runs the command line and ends the process with its exit code. `interrupted`: whether a
    signal came before this could hear one.

    0 done, 1 the applier stopped, 2 bad input, 3 a gate was crossed, 70 a mistake in binlag, 130
    interrupted, 141 nobody reads the output.
    """
    given = sys.argv[1:] if arguments is None else arguments
    running = failures.Running(verbose=VERBOSE in given, log_json="--log-json" in given)
    _open_closed_streams()
    output = sys.stdout
    for stream in (output, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names in a log need not be UTF-8
    try:
        with interrupts(at_the_end=arguments is None):
            if interrupted():
                raise Interrupted
            code = cli.main(args=given, prog_name="binlag", standalone_mode=False, obj=running)
    except click.exceptions.NoArgsIsHelpError as help_text:
        help_text.show()
        code = help_text.exit_code
    except (click.exceptions.Abort, Interrupted):
        if running.log_json:
            running.log_begin()  # it may be over already, or not yet begun
        elif sys.stderr.isatty():
            click.echo(err=True)  # behind the ^C that the terminal shows
        note("interrupted", running)
        code = INTERRUPTED
    except SystemExit as end:
        # click puts another one there when nobody reads it
        code = end.code if sys.stdout is output else CLOSED_OUTPUT
    except Exception as error:
        code = failures.tell(error, running)
    finally:
        running.log_end()
    sys.exit(code if isinstance(code, int) else 0)
