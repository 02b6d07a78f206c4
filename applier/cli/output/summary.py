"""The end of a replay in words: a table of what each table cost, and the notes."""

from __future__ import annotations

import errno
import os

from rich import box
from rich.console import Console
from rich.table import Table

from applier.cli.output.advice import EXPENSIVE, advice
from applier.result import Cost, ReplayResult
from applier.tables.catalog import Tables
from lookup.strategies import NOT_NEEDED

WIDTH = 1000
"""Columns: more than any table has."""


def print_summary(result: ReplayResult, tables: Tables) -> None:
    """Prints to standard output."""
    console = wide_console()
    costs = sorted(result.costs.values(), key=lambda cost: (-cost.rows_read, cost.table, cost.kind))
    console.print(
        f"{result.transactions:,} transactions, {sum(cost.events for cost in costs):,} rows events,"
        f" {result.rows:,} rows; rules of {result.server or 'no server'},"
        f" {result.row_search or 'no row was looked up'}",
    )
    if costs:
        console.print(cost_table(costs))
    for line in advice(result, tables):
        console.print(line, soft_wrap=True)
    for note, count in result.notes.items():
        console.print(
            f"note: {note}" + (f" ({count} times)" if count > 1 else ""),
            soft_wrap=True,
        )
    if result.error is None and result.last_file is not None:
        console.print(f"done: {result.last_file}, position {result.last_position}")


class _Output(Console):
    """Standard output. Text is printed as it is, whatever brackets and colons a name has. A reader
    that has gone away ends the command as for every other way to print."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, "the reader closed the pipe")


def wide_console() -> Console:
    """A console on standard output whose lines are as wide as they need to be: no table is cut, the
    terminal breaks long lines.

    Attributes only on a terminal, or when FORCE_COLOR says so; none at all with NO_COLOR.
    """
    return _Output(
        width=WIDTH,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        emoji=False,
        highlight=False,
    )


def cost_table(costs: list[Cost]) -> Table:
    """What the rows events of each table cost, as a table for people."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, right in (
        ("table", False),
        ("event", False),
        ("algorithm", False),
        ("key", False),
        ("events", True),
        ("rows", True),
        ("changed", True),
        ("rows read", True),
        ("per row", True),
    ):
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for cost in costs:
        per_row = cost.reads_per_change
        table.add_row(
            cost.table,
            cost.kind,
            cost.algorithm,
            cost.key or "-",
            f"{cost.events:,}",
            f"{cost.rows:,}",
            f"{cost.rows_changed:,}",
            f"{cost.rows_read:,}",
            "-" if per_row is None or cost.algorithm == NOT_NEEDED else f"{per_row:,.1f}",
            style=(
                "bold"
                if per_row is not None and per_row >= EXPENSIVE and cost.algorithm != NOT_NEEDED
                else ""
            ),
        )
    return table
