"""A forecast on the terminal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from applier.cli.output.summary import wide_console
from applier.forecast.answers.words import (
    changed_tables,
    duration,
    fix_title,
    headline,
    now_lines,
    rows_read,
    share_rows,
    split,
    when,
)

BARS = " ▁▂▃▄▅▆▇█"
CURVE_WIDTH = 72
MOST_TABLES = 15


def print_forecast(summary: Mapping[str, Any]) -> None:
    """Prints to standard output."""
    console = wide_console()
    replica = summary["replica"]
    console.print(
        f"{summary['transactions']:,} transactions, {summary['rows']:,} rows over"
        f" {duration(summary['log_seconds'])}; replica: rules of {summary['server']},"
        f" {replica['workers']} worker{'s' * (replica['workers'] != 1)}",
    )
    if summary["conditions"]:
        console.print(f"replica: {summary['conditions']}", soft_wrap=True)
    console.print()
    for line in now_lines(summary["now"]) if summary["now"] else ():
        console.print(line, style="bold", soft_wrap=True)
    console.print(headline(summary), style="bold", soft_wrap=True)
    console.print(split(summary), soft_wrap=True)
    if summary["curve"]["points"] and replica["peak_lag_seconds"] > 0:
        console.print()
        console.print(spark(summary["curve"]["points"], replica["peak_lag_seconds"]))
    console.print()
    console.print(scenario_table(summary))
    _print_fixes(console, summary)
    console.print(tables_table(summary))
    _print_reasons(console, summary["tables"], {one["table"] for one in summary["fixes"]})
    console.print(worst_table(summary["worst"]))
    for text in summary["assumptions"]:
        console.print(f"assumed: {text}", soft_wrap=True)
    for note, times in summary["notes"].items():
        console.print(
            f"note: {note}" + (f" ({times} times)" if times > 1 else ""),
            soft_wrap=True,
        )


def spark(points: Sequence[Sequence[float]], peak: float) -> str:
    """The curve in one line of blocks, with its two ends in time."""
    values = [lag for _, lag in points]
    per = max(-(-len(values) // CURVE_WIDTH), 1)
    bins = [max(values[at : at + per]) for at in range(0, len(values), per)]
    bars = "".join(
        BARS[min(round(value / peak * (len(BARS) - 1)), len(BARS) - 1)] for value in bins
    )
    return f"lag  {bars}\n     {when(points[0][0])} … {when(points[-1][0])}"


def _table(title: str, *columns: tuple[str, bool]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", title_style="bold"
    )
    for name, right in columns:
        table.add_column(name, justify="right" if right else "left")
    return table


def scenario_table(summary: Mapping[str, Any]) -> Table:
    """The what-ifs, side by side."""
    table = _table(
        "What if",
        ("replica", False),
        ("peak lag", True),
        ("lag at the end", True),
        ("catches up after", True),
        ("busy", True),
        ("applying", True),
        ("to find rows", True),
    )
    for run in (summary["replica"], *summary["what_if"]):
        busy = run["utilisation"]
        table.add_row(
            run["name"],
            duration(run["peak_lag_seconds"]),
            duration(run["end_lag_seconds"]),
            duration(run["catch_up_seconds"]),
            "-" if busy is None else f"{busy:.0%}",
            duration(run["apply_seconds"]),
            duration(run["lookup_seconds"]),
        )
    return table


def tables_table(summary: Mapping[str, Any]) -> Table:
    """What each table costs, and what is not of any table; the shares add up to 100 %."""
    shown = _table(
        "Tables",
        ("table", False),
        ("share", True),
        ("seconds", True),
        ("to find rows", True),
        ("max lag", True),
        ("rows", True),
        ("rows read", True),
        ("algorithm", False),
    )
    tables = {one["table"]: one for one in summary["tables"][:MOST_TABLES]}
    for what, seconds, share in share_rows(summary, MOST_TABLES):
        one = tables.get(what)
        if one is None:
            shown.add_row(what, share, duration(seconds), *[""] * 5)
            continue
        shown.add_row(
            what,
            share,
            duration(seconds),
            duration(one["lookup_seconds"]),
            duration(one["max_lag_seconds"]),
            f"{one['rows']:,}",
            rows_read(one),
            ", ".join(one["algorithms"]) or "-",
        )
    return shown


def _print_fixes(console: Console, summary: Mapping[str, Any]) -> None:
    fixes = summary["fixes"]
    if not fixes:
        return
    console.print("What to do, in order\n", style="bold")
    for at, one in enumerate(fixes):
        console.print(Text.assemble(f"{at + 1}. ", (fix_title(fixes, at), "bold")), soft_wrap=True)
        for text in (one["what"], f"  {one['sql']}", *(f"  {note}" for note in one["notes"])):
            console.print(f"   {text}", soft_wrap=True)
    console.print()


def _print_reasons(
    console: Console, tables: Sequence[Mapping[str, Any]], mended: Collection[str]
) -> None:
    """`mended`: tables that a fix was shown for."""
    for one in tables[:MOST_TABLES]:
        if one["share"] < 0.01 or not one["reasons"]:
            continue
        console.print(one["table"], style="bold")
        for text in one["why"]:
            console.print(f"  {text}", soft_wrap=True)
        if one["suggestion"] is not None and one["table"] not in mended:
            first, *rest = one["suggestion"]["lines"]
            for line in (first, *(f"  {line}" for line in rest)):
                console.print(f"  {line}", soft_wrap=True)
    console.print()


def worst_table(worst: Sequence[Mapping[str, Any]]) -> Table:
    """The transactions that take longest."""
    shown = _table(
        "Worst transactions",
        ("file", False),
        ("position", True),
        ("GTID", False),
        ("takes", True),
        ("to find rows", True),
        ("lag", True),
        ("rows", True),
        ("events", True),
        ("tables or statement", False),
    )
    for one in worst:
        shown.add_row(
            one["file"],
            str(one["pos"]),
            one["gtid"] or "-",
            duration(one["seconds"]),
            duration(one["lookup_seconds"]),
            duration(one["lag_seconds"]),
            f"{one['rows']:,}",
            f"{one['events']:,}",
            changed_tables(one),
        )
    return shown
