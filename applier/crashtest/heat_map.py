"""The matrix as one HTML page that needs nothing else: configurations down, crashes across,
counter-examples below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from html import escape
from importlib.resources import files
from typing import Any

from applier.crashtest.checkers import Verdict
from applier.crashtest.explorer import Trial
from applier.crashtest.matrix import SEVERITY, MatrixCell, Setup
from applier.page_colours import COLOURS

ROW = ("position", "relay_log_recovery", "repository", "sync")
COLUMN = ("engine", "workers", "crash")
SIGNS = {
    Verdict.CONSISTENT: "✓",
    Verdict.CANNOT_START: "stops",
    Verdict.REEXECUTES: "twice",
    Verdict.LOSES: "loses",
}
CLASSES = {
    Verdict.CONSISTENT: "ok",
    Verdict.CANNOT_START: "stop",
    Verdict.REEXECUTES: "twice",
    Verdict.LOSES: "lost",
}

_STYLE = COLOURS + files("applier.crashtest").joinpath("heat_map.css").read_text("utf-8")


def row_of(setup: Setup) -> tuple[str, ...]:
    """What a line of the matrix is named by."""
    return (
        "auto" if setup.auto_position else "file",
        str(int(setup.recovery)),
        setup.repository,
        str(setup.sync),
    )


def column_of(cell: MatrixCell) -> tuple[str, ...]:
    """Where a cell stands in the map: engine, workers and kind of crash."""
    return cell.setup.engine, str(cell.setup.workers), str(cell.kind)


def grid(
    cells: Iterable[MatrixCell],
) -> tuple[
    list[tuple[str, ...]],
    list[tuple[str, ...]],
    dict[tuple[tuple[str, ...], tuple[str, ...]], MatrixCell],
]:
    """Rows, columns and the cells by both; in the order in which they come."""
    found = {(row_of(cell.setup), column_of(cell)): cell for cell in cells}
    return (
        list(dict.fromkeys(row for row, _ in found)),
        list(dict.fromkeys(column for _, column in found)),
        found,
    )


def heat_map(cells: list[MatrixCell], title: str, reproducer: Callable[[Setup, Trial], str]) -> str:
    """The page."""
    return "".join(
        [
            (
                '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport"'
                ' content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
                f"<title>{escape(title)}</title><style>{_STYLE}</style>"
            ),
            f"<h1>{escape(title)}</h1><p>{'<br>'.join(map(escape, summary(cells)))}</p>",
            _legend(),
            _table(cells),
            "<h2>Counter-examples</h2><p>Each line shows its crash again.</p><ol>",
            *(
                _example(number, cell, reproducer)
                for number, cell in enumerate(cells)
                if not cell.safe
            ),
            "</ol></html>\n",
        ]
    )


def summary(cells: list[MatrixCell]) -> list[str]:
    """The matrix in some lines. Crash points and disks of cells that share an exploration count
    once."""
    own = [cell for cell in cells if cell.same_as is None]
    points, disks = sum(cell.points for cell in own), sum(cell.disks for cell in own)
    safe, promised = (
        sum(cell.safe for cell in cells),
        sum(cell.promised is not None for cell in cells),
    )
    return [
        (
            f"cells: {len(cells):,}; crash points: {points:,}; different disks that are left:"
            f" {disks:,}"
        ),
        f"consistent after every crash: {safe:,}; not: {len(cells) - safe:,}",
        (f"promised: {promised:,}; broken promises: {sum(cell.broken for cell in cells):,}"),
        *shared(cells),
    ]


def shared(cells: Iterable[MatrixCell]) -> list[str]:
    """A line for each value of sync_* that writes and syncs in some configurations exactly as
    another value does."""
    setups = {cell.setup: cell.same_as for cell in cells}
    total = Counter(setup.sync for setup in setups)
    pairs = Counter((setup.sync, same.sync) for setup, same in setups.items() if same is not None)
    return [
        f"sync={sync}: same writes and syncs as sync={other}, tried once, in {count} of"
        f" {total[sync]} configurations"
        for (sync, other), count in pairs.items()
    ]


def _legend() -> str:
    shown = [
        '<span class="ok">✓ consistent, as promised</span>',
        '<span class="ok luck">✓ consistent, though nothing is promised</span>',
        '<span class="stop">stops: cannot start</span>',
        '<span class="twice">twice: re-executes</span>',
        '<span class="lost">loses rows</span>',
        '<span class="broken">a promise was broken</span>',
    ]
    return (
        f'<p class="legend">{"".join(shown)}</p><p>A cell shows the worst verdict and how many of'
        " its disks are not consistent.</p>"
    )


def _table(cells: list[MatrixCell]) -> str:
    rows, columns, found = grid(cells)
    numbers = {id(cell): number for number, cell in enumerate(cells)}

    def heads(at: int) -> str:
        return "".join(f"<th>{escape(column[at])}</th>" for column in columns)

    head = [
        f'<tr><th colspan="{len(ROW)}">{name}</th>{heads(at)}</tr>'
        for at, name in enumerate(COLUMN[:-1])
    ]
    head.append(f"<tr>{''.join(f'<th>{name}</th>' for name in ROW)}{heads(-1)}</tr>")
    body = []
    for row in rows:
        shown = (found.get((row, column)) for column in columns)
        texts = ("<td></td>" if cell is None else _cell(cell, numbers[id(cell)]) for cell in shown)
        body.append(
            f"<tr>{''.join(f'<th>{escape(value)}</th>' for value in row)}{''.join(texts)}</tr>"
        )
    return f'<div class="wide"><table>{"".join(head)}{"".join(body)}</table></div>'


def _cell(cell: MatrixCell, number: int) -> str:
    classes = [CLASSES[cell.worst]]
    classes += ["broken"] if cell.broken else ["luck"] if cell.safe and not cell.promised else []
    wrong = sum(
        count for verdict, count in cell.counts.items() if verdict is not Verdict.CONSISTENT
    )
    counts = ", ".join(
        f"{verdict}: {cell.counts[verdict]}" for verdict in SEVERITY if cell.counts[verdict]
    )
    same = "" if cell.same_as is None else f"\nsame writes and syncs as sync={cell.same_as.sync}"
    tip = escape(
        f"{' '.join(cell.setup.arguments())}\n{cell.points} crash points, {cell.disks}"
        f" disks\n{counts}{same}",
        quote=True,
    )
    text = f"{SIGNS[cell.worst]} {wrong}" if wrong else SIGNS[cell.worst]
    inside = f'<a href="#c{number}">{text}</a>' if wrong else text
    return f'<td class="{" ".join(classes)}" title="{tip}">{inside}</td>'


def _example(number: int, cell: MatrixCell, reproducer: Callable[[Setup, Trial], str]) -> str:
    setup = cell.setup
    values = zip(ROW + COLUMN, row_of(setup) + column_of(cell), strict=True)
    name = ", ".join(f"{word} {value}" for word, value in values)
    promise = f"promised ({cell.promised})" if cell.promised else "nothing is promised"
    lines: list[Any] = [f'<li id="c{number}">{escape(name)}: {promise}<ul>']
    for verdict in reversed(SEVERITY[1:]):
        trial = cell.first.get(verdict)
        if trial is not None:
            detail = escape(f"{cell.counts[verdict]} × {trial.judgement}")
            lines.append(f"<li>{detail}<br><code>{escape(reproducer(setup, trial))}</code></li>")
    return "".join([*lines, "</ul></li>"])
