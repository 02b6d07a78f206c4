"""What is said when a command fails: one line with a code, a place and a next step; with --verbose,
what led there.

Every exception becomes a `BinlagError` here: those of libraries and of the ground floor by a table,
all others as an internal error. What is printed goes through `applier.masking`; values of local
variables are never printed, only the last event's type and place.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from applier.error_catalogue import GENERAL, catalogue, situation
from applier.error_codes import Code
from applier.errors import BinlagError, InputError, UsageError
from applier.masking import mask, secrets_of

if TYPE_CHECKING:
    from applier.binlog.header import Event

EXTRAS = {
    "pymysql": "mysql",
    "sqlalchemy": "mysql",
    "numpy": "arrow",
    "numba": "arrow",
    "pyarrow": "arrow",
    "scipy": "measure",
    "pyspark": "spark",
    "altair": "report",
    "prometheus_client": "metrics",
    "vl_convert": "report",
}
"""Library -> the extra that brings it."""
LIBRARIES = (
    "click",
    "sortedcontainers",
    "zstandard",
    "PyYAML",
    "PyMySQL",
    "numpy",
    "numba",
    "pyarrow",
    "pyspark",
    "SQLAlchemy",
)
"""Those whose version can matter for an error; the installed ones are named."""
LOCATED_GROUPS = ("BL1", "BL9")
"""Errors of which the last event is the place: those of logs, and mistakes."""
_PLAIN = {
    "is not a valid integer range.": "is not a whole number.",
    "is not a valid integer.": "is not a whole number.",
    "is not a valid float range.": "is not a number.",
}
"""Words of click -> plain ones."""
_UNREADABLE = re.compile(r"(?:Path|File|Directory) '(.*)' is not readable\.$")
_WRONG_KIND = {
    re.compile(r"Directory ('.*' is a file)"): r"\1, not a directory",
    re.compile(r"File ('.*' is a directory)"): r"\1, not a file",
}
"""The same of paths, which click calls by what it expected of them."""
ANY_COMMAND = "binlag COMMAND"
"""How the catalogue names the command in a next step."""
INTERNAL_ERROR = 70
"""Exit code of a mistake in the program (EX_SOFTWARE of sysexits.h)."""


@dataclass
class Running:
    """What is under way: how much is to be said, in which form, and the context of the command as
    soon as there is one."""

    verbose: bool = False
    command: click.Context | None = None
    log_json: bool = False
    """Whether all that is said beside the result is said as JSON lines."""
    log_level: str | None = None
    log_end: Callable[[], None] = lambda: None
    """Ends what --log-level and --log-json began."""

    def log_begin(self) -> None:
        """The loggers write to standard error as it is asked for by now."""
        from applier.cli.output.log_output import begin

        self.log_end()
        self.log_end = begin(self.log_level, as_json=self.log_json)


def note_command(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Callback of --verbose, which every command calls before it reads its other options."""
    running = context.find_object(Running)
    if running is not None:
        running.command = context


def tell(error: BaseException, running: Running | None = None, *, during: str = "") -> int:
    """Prints an error on stderr; its exit code. Inside a command `running` is found. `during`:
    which of several things failed."""
    context = click.get_current_context(silent=True)
    if running is None and context is not None:
        running = context.find_object(Running)
    running = running or Running()
    found = _for_command(error, running)
    told = lines(error, found, running, during)
    if running.log_json:
        from applier.cli.output.log_output import say_error

        running.log_begin()  # the command line itself may be what is wrong
        say_error(found, during=during, context=told[1:])
    else:
        for line in told:
            click.echo(line, err=True)
    return found.exit_code


class InternalError(BinlagError):
    """A mistake in binlag itself."""

    exit_code = INTERNAL_ERROR


def translated(error: BaseException) -> BinlagError:
    """The error as one that is meant for the user, located at the last event that was read where it
    does not know better."""
    found = error if isinstance(error, BinlagError) else _translated(error)
    if found.file is None and found.code.startswith(LOCATED_GROUPS):
        event = last_event(error)
        if event is not None:
            found.locate(file=event.file, position=event.position)
    return found


def _translated(error: BaseException) -> BinlagError:
    for kind, translate in _foreign().items():
        if isinstance(error, kind):
            found = translate(error)
            if found is not None:
                return found
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return InternalError(f"internal error: {message}", code=Code.INTERNAL)


def _foreign() -> dict[type[BaseException], Callable[[Any], BinlagError | None]]:
    """Exceptions of others -> how they are said; the first that fits and gives an answer."""
    from checkpoints.errors import CheckpointError
    from checkpoints.gtid import GtidError

    return {
        click.ClickException: _command_line,
        ModuleNotFoundError: _library,
        CheckpointError: lambda error: InputError(
            error.message, code=Code.BAD_RECORD, file=error.file, hint=error.hint
        ),
        GtidError: lambda error: UsageError(str(error), code=Code.GTID_SET),
        OSError: _system,
        MemoryError: lambda error: InputError("memory is used up", code=Code.NO_MEMORY),
    }


def _system(error: OSError) -> BinlagError:
    """A write to standard output fails without a name."""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = (
        "free space where the output is written, or send it elsewhere; then run the same command"
        " again"
        if is_full
        else None
    )
    return InputError(
        error.strerror or str(error), code=Code.SYSTEM, file=_name(error.filename), hint=hint
    )


def _command_line(error: click.ClickException) -> BinlagError:
    context = getattr(error, "ctx", None)
    meant = _meant(error)
    text = error.message if isinstance(error, click.NoSuchOption) else error.format_message()
    hint = (
        f"{meant or ''} see {context.command_path} --help".strip() if context is not None else meant
    )
    for words, plain in _PLAIN.items():
        text = text.replace(words, plain)
    refused = _UNREADABLE.search(text)
    if refused is not None:
        return InputError(
            "cannot read the file: Permission denied", code=Code.CANNOT_READ, file=refused[1]
        )
    for pattern, plain in _WRONG_KIND.items():
        text = pattern.sub(plain, text)
    return UsageError(" ".join(text.split()).rstrip("."), code=Code.COMMAND_LINE, hint=hint)


def _meant(error: click.ClickException) -> str | None:
    """The option, or the value of a choice, that a mistyped one may stand for."""
    from applier.cli.help import PLACES
    from applier.spelling import did_you_mean

    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        if error.ctx.parent is None and error.option_name in PLACES:
            return f"write it behind the command: binlag COMMAND {error.option_name};"
        options = [
            name.removeprefix("--")
            for parameter in error.ctx.command.get_params(error.ctx)
            for name in parameter.opts
            if name.startswith("--")
        ]
        return did_you_mean(error.option_name.lstrip("-"), options, before="--")
    kind = getattr(getattr(error, "param", None), "type", None)
    given = re.match(r"'([^']*)' is not one of", getattr(error, "message", ""))
    return (
        did_you_mean(given[1], map(str, kind.choices))
        if given and isinstance(kind, click.Choice)
        else None
    )


def _library(error: ModuleNotFoundError) -> BinlagError | None:
    """None for a module of our own: that is a mistake."""
    if error.name not in EXTRAS:
        return None
    return UsageError(
        f"this needs {error.name}",
        code=Code.NO_LIBRARY,
        hint=f"pip install 'binlag[{EXTRAS[error.name]}]'",
    )


def _name(filename: object) -> str | None:
    return os.fsdecode(filename) if isinstance(filename, str | bytes | os.PathLike) else None


def last_event(error: BaseException) -> Event | None:
    """The event that was at hand where the error came up: of the innermost call that holds one.
    None before the first event.

    Looking into the calls that failed costs nothing while all goes well, unlike remembering each
    event.
    """
    import traceback

    from applier.binlog.header import Event

    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        events = [value for value in frame.f_locals.values() if isinstance(value, Event)]
        if events:
            return max(events, key=lambda event: event.position)
    return None


def _for_command(error: BaseException, running: Running) -> BinlagError:
    """The next step names the command that runs."""
    found = translated(error)
    if running.command is not None:
        found.hint = found.next_step.replace(ANY_COMMAND, running.command.command_path)
    return found


def lines(
    error: BaseException, found: BinlagError, running: Running, during: str = ""
) -> list[str]:
    """What is printed of an error that was translated as `found`: its line, and with --verbose what
    is known about it."""
    told = [f"binlag: {during}{found}"]
    if running.verbose:
        told += [f"  {line}" for line in _context(error, found, running.command)]
    # no other line can hold one
    secrets = secrets_of() if running.verbose or isinstance(found, InternalError) else []
    return [mask(line, secrets) for line in told]


def _context(
    error: BaseException, found: BinlagError, command: click.Context | None
) -> Iterator[str]:
    import traceback

    yield f"meaning: {situation(found.code).meaning}"
    yield f"page: docs/errors/{page_of(found)}"
    event = last_event(error)
    if event is not None:
        yield (
            f"last event read: {event.name} of {event.length} bytes, {event.file}, position"
            f" {event.position}, server id {event.server_id}"
        )
    yield from (
        f"because of: {type(cause).__name__}: {' '.join(str(cause).split())}"
        for cause in _causes(error)
    )
    if command is not None:
        yield f"command: {command.command_path}"
        yield from (
            f"option {name}: {value}"
            for name, value in command.params.items()
            if value not in (None, (), False)
        )
    yield f"versions: {', '.join(_versions())}"
    if isinstance(found, InternalError):
        yield from "".join(traceback.format_exception(error)).splitlines()
    else:
        yield from (
            f"raised in {place.name}, line {place.lineno} of {place.filename}"
            for place in traceback.extract_tb(error.__traceback__)[-1:]
        )


def page_of(error: BinlagError) -> str:
    """The name of the error's page."""
    return f"{error.code if error.code in catalogue() else GENERAL}.md"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """What led to it, also where `from None` keeps it out of a traceback."""
    seen = {id(error)}
    cause = error.__cause__ or error.__context__
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _versions() -> Iterator[str]:
    import platform
    from importlib import metadata

    for name in ("binlag", *LIBRARIES):
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    yield f"Python {platform.python_version()}"
    yield platform.platform()
