"""`binlag replay --into mysql://...` on the terminal: progress, Ctrl-C, and the summary at the
end."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from applier.cli import failures
from applier.cli.notes import draws, note
from applier.cli.signals import interruptible
from applier.error_codes import Code
from applier.errors import UsageError

if TYPE_CHECKING:
    from applier.mysql.feed import SourceTransaction
    from applier.mysql.into import ReplayWatch
    from applier.mysql.outcome import TargetOutcome
    from applier.receive.applier_progress import ApplierProgress

INTERRUPTED = 130
DRAWS_PER_SECOND = 10
SERVER_OPTIONS = (
    "apply",
    "batch",
    "workers",
    "any_commit_order",
    "gtid",
    "disable_log_bin",
    "until_gtid",
    "replay_id",
    "password_file",
    "force",
    "dry_run",
    "with_routines",
    "without_accounts",
    "reconnect_seconds",
)
"""Options of the command that only a server as target has."""


def replay_into_server(
    files: Sequence[str],
    url: str,
    *,
    password_file: str | None,
    as_json: bool,
    applying: ApplierProgress | None,
    **given: Any,
) -> int:
    """The command for a target that is a server. Returns the exit code. `applying` is told what
    happens."""
    from applier.binlog.follow import IndexedLogs
    from applier.mysql.client.url import find_password, parse_url
    from applier.mysql.into import replay_into
    from applier.mysql.into_options import IntoOptions
    from applier.options import parse_options

    own = {name: given.pop(name) for name in IntoOptions.__dataclass_fields__ if name in given}
    options, into = parse_options(**given), IntoOptions(**own, password_file=password_file)
    endpoint = parse_url(url)
    endpoint = endpoint.with_password(
        find_password(password_file, ask=_ask if sys.stdin.isatty() else None)
    )
    with interruptible() as stopped, _progress(files, stopped) as watch:
        if isinstance(files, IndexedLogs):
            files.stopped = stopped
        outcome = replay_into(
            files, endpoint, options, into, watch if applying is None else _told(watch, applying)
        )
        if applying is not None:
            applying.fail(outcome.error)
    if as_json:
        click.echo(json.dumps(outcome.as_dict(), ensure_ascii=False))
    else:
        _print(outcome)
    return _end(outcome, followed=isinstance(files, IndexedLogs) and files.follow)


def _told(watch: ReplayWatch, applying: ApplierProgress) -> ReplayWatch:
    """Two who look on."""

    def on_transaction(source: SourceTransaction) -> None:
        watch.on_transaction(source)
        applying.took_transaction(source)

    return replace(watch, on_transaction=on_transaction, on_start=applying.began)


def _ask() -> str:
    return str(click.prompt("Password", hide_input=True, default="", show_default=False, err=True))


def _end(outcome: TargetOutcome, *, followed: bool) -> int:
    if outcome.error is not None:
        failures.tell(outcome.error)
        if outcome.file is not None:
            said = (
                f"everything up to {outcome.file}, position {outcome.position} is committed;"
                f" {_resume()}"
            )
            note(said, file=outcome.file, position=outcome.position)
        return outcome.error.exit_code
    if outcome.interrupted:
        place = (
            "before the first commit"
            if outcome.file is None
            else f"after {outcome.file}, position {outcome.position}"
        )
        said = f"stopped {place}; {_resume()}"
        note(said, file=outcome.file, position=outcome.position)
        return 0 if followed else INTERRUPTED
    return 0


def _resume() -> str:
    return f"to go on: {shlex.join(['binlag', *sys.argv[1:]])}"


def _print(outcome: TargetOutcome) -> None:
    """The summary on standard output."""
    rate = outcome.transactions / outcome.seconds if outcome.seconds else 0
    what = "would replay" if outcome.dry_run else "replayed"
    if outcome.resumed_from is not None:
        click.echo(f"resumed from {outcome.resumed_from}")
    click.echo(
        f"{what} {outcome.transactions:,} transactions, {outcome.bytes:,} bytes"
        + (
            ""
            if outcome.dry_run
            else (
                f", {outcome.rows:,} rows in {outcome.commits:,} commits, {outcome.seconds:.1f} s"
                f" ({rate:,.0f}/s)"
            )
        )
        + f"; {outcome.target}, {outcome.server}, {outcome.mode} mode, replay id {outcome.replay}"
    )
    for text, count in outcome.notes.items():
        click.echo(f"note: {text}" + (f" ({count} times)" if count > 1 else ""))
    if outcome.error is None and not outcome.interrupted and outcome.file is not None:
        click.echo(
            f"done: {outcome.file}, position {outcome.position}"
            + (f", {outcome.gtids}" if outcome.gtids else "")
        )


@contextmanager
def _progress(files: Sequence[str], stopped: Callable[[], bool]) -> Iterator[ReplayWatch]:
    """A line with bytes, transactions, rows per second, the time that is left and the current GTID;
    on a terminal only."""
    from applier.mysql.into import ReplayWatch

    sizes = {Path(file).name: Path(file).stat().st_size for file in files if Path(file).is_file()}
    if not draws():
        yield ReplayWatch(stopped=stopped, say=note)
        return
    from applier.cli.output.progress import byte_progress

    with byte_progress() as bar:
        yield _Line(bar, sizes, stopped).watch()


class _Line:
    """What is shown while a replay runs."""

    def __init__(self, bar: Any, sizes: dict[str, int], stopped: Callable[[], bool]) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=sum(sizes.values()))
        names = list(sizes)
        self._before = {
            name: sum(sizes[other] for other in names[: names.index(name)]) for name in names
        }
        self._stopped = stopped
        self._transactions = self._rows = 0
        self._rows_per_second = 0.0
        self._drawn = self._counted = time.monotonic()

    def watch(self) -> ReplayWatch:
        from applier.mysql.into import ReplayWatch

        return ReplayWatch(self._on_transaction, self._on_rows, self._stopped, say=note)

    def _on_transaction(self, source: SourceTransaction) -> None:
        self._transactions += 1
        now = time.monotonic()
        if now - self._drawn < 1 / DRAWS_PER_SECOND:
            return
        self._drawn = now
        end = source.end
        text = (
            f"{self._transactions:,} transactions, {self._rows_per_second:,.0f} rows/s "
            f" {source.gtid or end}"
        )
        self._bar.update(
            self._task, completed=self._before.get(end.file, 0) + end.offset, description=text
        )

    def _on_rows(self, rows: int) -> None:
        now = time.monotonic()
        self._rows_per_second = (rows - self._rows) / max(now - self._counted, 1e-3)
        self._rows, self._counted = rows, now


def refuse_memory_options(**given: Any) -> None:
    """Raises UsageError for options that only tables in memory have."""
    for name, value in given.items():
        if value:
            raise UsageError(
                f"--{name}: only a replay into memory has that",
                code=Code.OPTIONS_CLASH,
                hint="leave it out, or replay with --into memory",
            )


def refuse_server_options(**given: Any) -> None:
    """Raises UsageError for options that only a server as target has."""
    for name, value in given.items():
        if value:
            raise UsageError(
                f"--{name.replace('_', '-')}: only a replay into a server has that",
                code=Code.OPTIONS_CLASH,
                hint="add --into mysql://USER@HOST:PORT",
            )
