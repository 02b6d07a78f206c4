"""The crash-test matrix on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from applier.crashtest.explorer import Trial
    from applier.crashtest.matrix import MatrixCell, Setup

EXAMPLES_SHOWN = 3
BRIEF_AXES = 3
"""Position, recovery and repository: the axes of a line of the brief table."""
LETTERS = {"cannot start": "S", "re-executes": "R", "loses rows": "L"}
STYLES = {
    "consistent": "green",
    "cannot start": "magenta",
    "re-executes": "yellow",
    "loses rows": "red",
}


def print_matrix(cells: list[MatrixCell], reproducer: Callable[[Setup, Trial], str]) -> None:
    """The table, a line that sums it up, and the first counter-examples; all of them are in --json
    and --html."""
    from rich.table import Table
    from rich.text import Text

    from applier.cli.output.summary import wide_console
    from applier.crashtest.heat_map import ROW, grid, summary

    rows, columns, found = grid(cells)
    table = Table(*ROW, title_justify="left")
    for engine, workers, kind in columns:
        table.add_column(f"{engine}\n{workers} workers\n{kind}", justify="right")
    for at, row in enumerate(rows):
        shown = [found.get((row, column)) for column in columns]
        texts = [
            Text("") if cell is None else Text(_text(cell), STYLES[str(cell.worst)])
            for cell in shown
        ]
        table.add_row(*row, *texts, end_section=at + 1 == len(rows) or row[:2] != rows[at + 1][:2])
    wide_console().print(table)
    click.echo(
        "✓ consistent (· nothing is promised); on so many disks S cannot start,\nR re-executes, L"
        " loses rows; ! a broken promise"
    )
    click.echo("\n".join(summary(cells)))
    unsafe = sorted((cell for cell in cells if not cell.safe), key=lambda cell: not cell.broken)
    for cell in unsafe[:EXAMPLES_SHOWN]:
        trial = cell.first[cell.worst]
        promise = f"promised ({cell.promised})" if cell.promised else "nothing is promised"
        click.echo(f"\n{promise}; {trial.judgement}\n  {reproducer(cell.setup, trial)}")
    if len(unsafe) > EXAMPLES_SHOWN:
        click.echo(
            f"\n… and {len(unsafe) - EXAMPLES_SHOWN:,} more: --html FILE or --json has a line for"
            " each"
        )


def print_brief(cells: list[MatrixCell]) -> None:
    """A line for each position, recovery and repository, a column for each engine and number of
    workers: all that any sync and any kind of crash ends in. As a table in Markdown."""
    from applier.crashtest.heat_map import ROW, row_of, summary

    found: dict[tuple[str, ...], dict[str, list[MatrixCell]]] = {}
    for cell in cells:
        column = f"{cell.setup.engine}, {cell.setup.workers} workers"
        found.setdefault(row_of(cell.setup)[:BRIEF_AXES], {}).setdefault(column, []).append(cell)
    columns = list(dict.fromkeys(column for row in found.values() for column in row))
    lines: list[tuple[str, ...]] = [
        (*ROW[:BRIEF_AXES], *columns),
        ("---",) * (BRIEF_AXES + len(columns)),
    ]
    lines += [
        (*row, *(_brief(of_row.get(column, [])) for column in columns))
        for row, of_row in found.items()
    ]
    for line in lines:
        click.echo(f"| {' | '.join(line)} |")
    click.echo(
        "\n✓ consistent, (✓) though nothing is promised; S cannot start, R re-executes,\nL loses"
        " rows; ! a broken promise"
    )
    click.echo("\n".join(summary(cells)))


def _brief(cells: list[MatrixCell]) -> str:
    letters = "".join(
        sorted(
            {
                LETTERS[str(verdict)]
                for cell in cells
                for verdict in cell.counts
                if str(verdict) in LETTERS
            }
        )
    )
    if not cells or letters:
        return letters + "!" * any(cell.broken for cell in cells)
    return "✓" if all(cell.promised for cell in cells) else "(✓)"


def _text(cell: MatrixCell) -> str:
    if cell.safe:
        return "✓" if cell.promised else "✓·"
    counts = [
        f"{LETTERS[str(verdict)]}{count}"
        for verdict, count in cell.counts.items()
        if str(verdict) in LETTERS
    ]
    return " ".join(sorted(counts)) + ("!" if cell.broken else "")
