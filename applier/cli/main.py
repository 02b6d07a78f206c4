"""`binlag`: the command line. Commands are imported when they are used, so that --help is quick."""

from __future__ import annotations

import importlib
import io
import os
import sys
from typing import Any

import click

COMMANDS = {
    "replay": "Replay binary logs into tables and say what each table cost.",
    "events": "List every event of binary logs: text, JSON lines or Parquet.",
    "receive": "Receive the log of a live source into relay logs, as a replica does.",
    "status": "Show the replica status that the files of a folder tell.",
    "clock": "Show Seconds_Behind_Source next to the true lag, over time, on a simulated clock.",
    "verify": "Compare a server's tables with those of the replay in memory.",
    "explain": "Say which key and algorithm each table of a schema gets, and why.",
    "crashtest": "Try every crash point of a replica's run; a matrix of what is safe.",
    "forecast": "Say how far behind a replica will be, why, and what a key would change.",
    "measure": "Measure what applying costs on a server, for binlag forecast.",
}
"""Command -> its line in --help; the command itself is `command` in applier/cli/<name>.py."""

EXTRAS = {
    "pymysql": "mysql",
    "sqlalchemy": "mysql",
    "numpy": "arrow",
    "numba": "arrow",
    "pyarrow": "arrow",
    "scipy": "measure",
    "pyspark": "spark",
    "altair": "report",
    "vl_convert": "report",
}
"""Library -> the extra that brings it."""
INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"applier.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option("0.1.0", prog_name="binlag")
def cli() -> None:
    """A MySQL replica applier emulator.

    Replays captured binary logs, finds every row the way the server would, and says what it cost.
    """


def main(arguments: list[str] | None = None) -> Any:
    """Runs the command line and ends the process with its exit code: 0, 1 the applier stopped, 2 bad input, 3 a gate was crossed."""
    from applier.errors import BinlagError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names in a log need not be UTF-8
    try:
        code = cli.main(args=arguments, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = 2
    except click.exceptions.Abort:
        code = INTERRUPTED
    except BinlagError as error:
        if os.environ.get("BINLAG_DEBUG"):
            raise
        click.echo(f"binlag: {error}", err=True)
        code = error.exit_code
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        click.echo(f"binlag: this needs {error.name}. Next: pip install 'binlag[{EXTRAS[error.name]}]'", err=True)
        code = 2
    except KeyboardInterrupt:
        click.echo("binlag: interrupted", err=True)
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code if isinstance(code, int) else 0)
