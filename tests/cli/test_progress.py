"""Progress stays on one line at every width from 40 columns on, and shows a rate and the time that
is left."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.progress import Progress

from applier.cli.output.progress import byte_progress, count_progress, text_progress

TEXT = (
    "binlog.000123, 1,234,567 transactions, 98,765 rows/s, "
    "3e11fa47-71ca-11e1-9e33-c80aa9429562:1234567"
)


@pytest.mark.parametrize("made", [byte_progress, count_progress, text_progress])
@pytest.mark.parametrize("columns", [40, 60, 79, 80, 100, 200])
def test_one_line_at_every_width(made: Callable[[Console], Progress], columns: int) -> None:
    console = Console(file=io.StringIO(), width=columns, force_terminal=True, color_system=None)
    clock = iter(range(0, 10_000, 2))
    progress = made(console)
    progress.get_time = lambda: float(next(clock))
    total = 5_000_000_000 if made is byte_progress else 500
    task = progress.add_task(TEXT, total=total)
    for _ in range(5):
        progress.advance(task, total * 2 // 25)
    lines = console.render_lines(progress.get_renderable(), pad=False)
    shown = ["".join(part.text for part in line) for line in lines]
    assert len(shown) == 1
    assert len(shown[0]) <= columns
    if made is not text_progress:
        assert "/s" in shown[0]
        assert "0:00:" in shown[0]
        assert ("40%" in shown[0]) == (columns < 80)
