"""Progress on a terminal: one line that never wraps, from 40 columns on, with the rate and the time
that is left."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Column
from rich.text import Text

WIDE_COLUMNS = 80
"""Narrower terminals get a percentage in place of the bar and the amounts."""


class _Rate(ProgressColumn):
    """Things per second."""

    def render(self, task: Task) -> Text:
        return Text(
            "?/s" if task.speed is None else f"{task.speed:,.1f}/s", style="progress.data.speed"
        )


def _stderr() -> Console:
    """Names in a text are printed as they are."""
    return Console(stderr=True, markup=False, emoji=False, highlight=False)


def byte_progress(console: Console | None = None) -> Progress:
    """Of bytes. The text of the task comes last and is cut where the line ends."""
    return _line(console, (BarColumn, DownloadColumn), TransferSpeedColumn)


def count_progress(console: Console | None = None) -> Progress:
    """Of things that are counted."""
    return _line(console, (BarColumn, MofNCompleteColumn), _Rate)


def _line(console: Console | None, amounts: tuple[Any, ...], rate: Any) -> Progress:
    console = console or _stderr()
    kinds = (
        *(amounts if console.width >= WIDE_COLUMNS else (TaskProgressColumn,)),
        rate,
        TimeRemainingColumn,
    )
    return _before_text(console, kinds)


def text_progress(console: Console | None = None) -> Progress:
    """Of something without an end: the time so far, and the text of the task."""
    return _before_text(console or _stderr(), (SpinnerColumn, TimeElapsedColumn))


def _before_text(console: Console, kinds: tuple[Any, ...]) -> Progress:
    """The columns, and the text in the room that they leave."""
    columns = [kind(table_column=Column(no_wrap=True)) for kind in kinds]
    text = TextColumn(
        "{task.description}",
        markup=False,
        table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
    )
    return Progress(*columns, text, console=console, transient=True, expand=True)
