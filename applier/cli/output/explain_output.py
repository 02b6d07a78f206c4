"""What `binlag explain` prints for people and for spreadsheets: a list to act on, and the details
of single tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from applier.cli.output.markdown_text import code, plain
from applier.cli.output.summary import wide_console
from applier.forecast.inventory.table_verdicts import Case, TableVerdict, number
from applier.tables.suggestion import Suggestion
from lookup.versions import NEWEST

COLUMNS = ("table", "rows", "key", "rows read for one change")
CSV_COLUMNS = (
    "table",
    "engine",
    "rows",
    "server",
    "algorithm",
    "key",
    "rows_read_per_change",
    "levels",
    "why",
    "fix",
)
INDENT = "  "


def print_list(
    shown: Sequence[TableVerdict], healthy: int, servers: Sequence[str], *, given_all: bool
) -> None:
    """A line a table, then why, then what mends it; at the end how many tables were left out."""
    console = wide_console()
    if shown:
        lines = [_cells(one) for one in shown]
        widths = [max(map(len, column)) for column in zip(COLUMNS, *lines, strict=True)]
        console.print(_line(COLUMNS, widths), soft_wrap=True)
        for one, cells in zip(shown, lines, strict=True):
            line = _line(cells, widths)
            line.stylize("bold", 0, len(cells[0]))
            console.print(line, soft_wrap=True)
            for said in _said(one):
                console.print(Text(INDENT + said), soft_wrap=True)
        console.print()
    for said in _closing(shown, healthy, servers, given_all=given_all):
        console.print(Text(said), soft_wrap=True)


def _cells(one: TableVerdict) -> tuple[str, ...]:
    key = one.worst.explanation.decision.key
    reads = one.worst.reads_per_change()
    scans = key is None and reads is None
    return (
        one.definition.full_name,
        number(one.facts.rows),
        key.name if key else "-",
        "all" if scans else number(reads),
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> Text:
    """Numbers stand right, names left."""
    padded = [
        cell.rjust(width) if at in (1, 3) else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return Text("  ".join(padded))


def _said(one: TableVerdict) -> Iterator[str]:
    yield one.why
    yield from one.facts.doubts
    if one.fix is not None:
        yield one.fix.sql or one.fix.finding


def _closing(
    shown: Sequence[TableVerdict], healthy: int, servers: Sequence[str], *, given_all: bool
) -> Iterator[str]:
    bad = sum(not one.worst.is_healthy for one in shown)
    listed = "" if given_all or not healthy else " (--all lists them)"
    tables = "1 table finds" if healthy == 1 else f"{healthy:,} tables find"
    if healthy:
        yield f"{tables} each row by a unique key{listed}."
    fixed = any(one.fix is not None and one.fix.sql for one in shown)
    newest = NEWEST if NEWEST in servers else servers[-1]
    yield f"Rules of {', '.join(servers)}." + (
        f" Each ALTER TABLE is for {newest}." if fixed and len(servers) > 1 else ""
    )
    if bad and any(one.facts.rows is None for one in shown):
        yield (
            "Row counts are not known: give a dump with rows, mysql://USER@HOST:PORT, or --rows"
            " DATABASE.TABLE=N."
        )
    if fixed:
        yield "Before you run an ALTER TABLE: --details says what it locks and what it changes."


def print_markdown(shown: Sequence[TableVerdict], healthy: int) -> None:
    """A table for a comment on a change."""
    console = wide_console()
    lines: list[tuple[str, ...]] = [
        (*COLUMNS, "why", "fix"),
        ("---", "---:", "---", "---:", "---", "---"),
    ]
    for one in shown:
        fix = one.fix
        what = "" if fix is None else code(fix.sql) if fix.sql else plain(fix.finding)
        lines.append((*map(plain, _cells(one)), plain(one.why), what))
    if shown:
        for line in lines:
            console.print(f"| {' | '.join(line)} |", soft_wrap=True)
        console.print()
    every = (
        "Each table"
        if not shown
        else f"{healthy:,} other tables"
        if healthy != 1
        else "1 other table"
    )
    if healthy:
        console.print(
            Text(f"{every} find{'' if shown and healthy != 1 else 's'} each row by a unique key."),
            soft_wrap=True,
        )


def csv_lines(every: Sequence[TableVerdict]) -> str:
    """One record a table, all tables, under CSV_COLUMNS. An unknown number is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for one in every:
        case = one.worst
        decision, fix = case.explanation.decision, one.fix
        key = decision.key.name if decision.key else ""
        writer.writerow(
            (
                one.definition.full_name,
                one.definition.engine,
                _plain(one.facts.rows),
                case.server,
                decision.algorithm,
                key,
                _plain(case.reads_per_change()),
                " ".join(sorted(one.levels)),
                one.why,
                "" if fix is None else fix.sql or fix.finding,
            )
        )
    return out.getvalue()


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def print_details(shown: Sequence[TableVerdict]) -> None:
    """One block a table: versions and images with the same answer share a line."""
    console = wide_console()
    for one in shown:
        _print_block(console, one)


def _print_block(console: Console, one: TableVerdict) -> None:
    definition = one.definition
    key = definition.primary
    promoted = key is not None and not key.is_primary
    what = (
        "no primary key"
        if key is None
        else f"`{key.name}` promoted to primary key"
        if promoted
        else "primary key"
    )
    console.print(Text.assemble((definition.full_name, "bold"), f"  {definition.engine}, {what}"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("server", "row image", "UPDATE, DELETE", "key", "reads"):
        table.add_column(name)
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for case in one.cases:
        decision = case.explanation.decision
        answer = (decision.algorithm, decision.key.name if decision.key else "-", case.reads())
        groups.setdefault(answer, []).append(case)
    for answer, members in groups.items():
        servers = list(dict.fromkeys(case.server for case in members))
        images = list(dict.fromkeys(case.image for case in members))
        table.add_row(", ".join(servers), ", ".join(images), *answer)
    console.print(table)
    for line in (*_reasons(one.cases), *_suggestions(one.cases)):
        console.print(f"  {line}", soft_wrap=True)
    console.print()


def _reasons(found: Sequence[Case]) -> Iterator[str]:
    """A sentence on the key that is used, under its versions where they differ; where it is not
    unique, what is wrong with the others."""
    groups: dict[str, list[str]] = {}
    for case in found:
        groups.setdefault(case.why(), []).append(case.server)
    every = len({case.server for case in found})
    for sentence, servers in groups.items():
        names = list(dict.fromkeys(servers))
        yield sentence if len(names) == every else f"{', '.join(names)}: {sentence}"
    rejections = [
        one for case in found if not case.finds_one_row for one in case.explanation.rejections
    ]
    yield from dict.fromkeys(
        f"`{one.key.name}` is not used: {one.reason}." for one in rejections if one.is_unusable
    )


def _suggestions(found: Sequence[Case]) -> Iterator[str]:
    """The lines of each suggestion, under the versions that it is for where there are several."""
    groups: dict[Suggestion, list[str]] = {}
    for case in found:
        if case.suggestion is not None:
            groups.setdefault(case.suggestion, []).append(case.server)
    every = len({case.server for case in found})
    for suggested, servers in groups.items():
        names = list(dict.fromkeys(servers))
        first, *rest = suggested.lines
        yield first if len(names) == every else f"{', '.join(names)}: {first}"
        yield from (f"  {line}" for line in rest)
