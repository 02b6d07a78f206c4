"""A fleet's forecast as one HTML file that needs nothing else: who will be late, where the time
goes, and a section a source."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from urllib.parse import quote

from applier.errors import cannot_write
from applier.fleets.results import FleetResult, Outcome
from applier.forecast.answers.words import duration, headline, shown_times, split, when
from applier.pages.report import (
    COPY,
    STYLE,
    cost_table,
    fix_list,
    html_list,
    html_table,
    what_if_table,
)
from applier.whole_file import write_whole

MOST_HEAT_SOURCES, MOST_HEAT_TABLES = 60, 16
MOST_TABLES = 12
NEVER = "<span class=never>never</span>"
WIDTH, HEIGHT = 720, 120
_STYLE = files("applier.pages").joinpath("fleet_report.css").read_text("utf-8")
_SCRIPT = files("applier.pages").joinpath("fleet_report.js").read_text("utf-8")
"""A link to a source opens its section."""


def write_fleet_report(
    result: FleetResult, path: str | os.PathLike[str], limit: float | None = None
) -> None:
    """Raises InputError when the file cannot be written. `limit`: seconds that no source should be
    behind."""
    try:
        write_whole(path, fleet_page(result, limit))
    except OSError as error:
        raise cannot_write(error, path, "the report") from None


def fleet_page(result: FleetResult, limit: float | None = None) -> str:
    """The whole file."""
    ranked = sorted(
        (one for one in result.outcomes if one.summary is not None),
        key=lambda one: (-one.peak, one.source),
    )
    parts = [
        f"<p class=quiet>{escape(_heading(result))}</p><h1>{escape(_answer(ranked, limit))}</h1>",
        _section("Left out, since it could not be read", _failures(result.failed)),
        _section("Who will be late", _ranking(ranked, limit)),
        _section("Where the time goes: seconds of applying, by source and table", _heat(ranked)),
        _section("Each source", "".join(_source(one) for one in ranked)),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport"'
        ' content="width=device-width, initial-scale=1"><link rel="icon"'
        ' href="data:,"><title>Replica lag of a'
        f" fleet</title><style>\n{STYLE}\n{_STYLE}</style></head><body>"
        + "".join(parts)
        + f'<script type="module">\n{COPY}\n{_SCRIPT}</script></body></html>\n'
    )


def _section(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>{body}" if body else ""


def _heading(result: FleetResult) -> str:
    rows = [row for row in result.sources if row["error"] is None]
    transactions = sum(row["transactions"] for row in rows)
    log_bytes = sum(row["log_bytes"] for row in rows)
    return (
        f"Replica lag of a fleet · {len(rows):,} sources · {transactions:,} transactions ·"
        f" {_size(log_bytes)} of logs"
    )


def _size(log_bytes: int) -> str:
    return f"{log_bytes / 1e9:,.1f} GB" if log_bytes >= 1e9 else f"{log_bytes / 1e6:,.1f} MB"


def _answer(ranked: Sequence[Outcome], limit: float | None) -> str:
    if not ranked:
        return "No source could be read."
    worst = f"{ranked[0].source} is furthest behind, by up to {duration(ranked[0].peak)}."
    if limit is None:
        never = sum(one.row()["catches_up"] is False for one in ranked)
        verb = "catches" if never == 1 else "catch"
        told = (
            f"{never} of {len(ranked)} replicas never {verb} up"
            if never
            else f"All {len(ranked)} replicas catch up"
        )
        return f"{told}; {worst}"
    over = sum(one.peak > limit for one in ranked)
    return f"{over} of {len(ranked)} replicas will be more than {duration(limit)} behind; {worst}"


def _failures(failed: Sequence[Outcome]) -> str:
    return html_list(
        [
            f"{one.source}: {one.error['message']}"
            + (f" ({one.error['file']})" if one.error["file"] else "")
            for one in failed
            if one.error is not None
        ]
    )


def _ranking(ranked: Sequence[Outcome], limit: float | None) -> str:
    most = max((one.peak for one in ranked), default=0.0) or 1.0
    rows = []
    for one in ranked:
        row = one.row()
        late = duration(one.peak)
        late = f"<span class=over>{late}</span>" if limit is not None and one.peak > limit else late
        bar = f'<span class=bar style="width:{6 * one.peak / most:.2f}rem"></span>'
        rows.append([
            _link(one), f"{late} {bar}", duration(row["end_lag_seconds"]),
            duration(row["catch_up_seconds"]) if row["catches_up"] else NEVER,
            "-" if row["capacity"] is None else f"{shown_times(row['capacity'])}×",
            escape(row["worst_table"] or "-"),
            "-" if row["worst_table_share"] is None else f"{row['worst_table_share']:.0%}",
            f"{row['transactions']:,}",
        ])  # fmt: skip
    heads = (
        "source",
        "peak lag",
        "at the end",
        "catches up after",
        "traffic it carries",
        "worst table",
        "its share",
        "transactions",
    )
    return html_table(heads, rows, 1) if rows else ""


def _link(one: Outcome) -> str:
    return f'<a href="#{quote(one.source)}">{escape(one.source)}</a>'


def _heat(ranked: Sequence[Outcome]) -> str:
    """The dearest sources and tables; a cell's colour is the logarithm of its seconds."""
    seconds = {
        (one.source, row["table"]): row["seconds"] for one in ranked for row in one.table_rows()
    }
    if not seconds:
        return ""
    totals: dict[str, float] = {}
    for (_, table), spent in seconds.items():
        totals[table] = totals.get(table, 0.0) + spent
    tables = sorted(totals, key=lambda table: -totals[table])[:MOST_HEAT_TABLES]
    shown = ranked[:MOST_HEAT_SOURCES]
    most = max(seconds.values())
    head = "<th class=l></th>" + "".join(
        f"<th class=c><span>{escape(table)}</span></th>" for table in tables
    )
    lines = []
    for one in shown:
        cells = "".join(_cell(seconds.get((one.source, table)), most) for table in tables)
        lines.append(f"<tr><td class=l>{_link(one)}</td>{cells}</tr>")
    left = [f"{len(ranked) - len(shown)} more sources"] if len(ranked) > len(shown) else []
    left += [f"{len(totals) - len(tables)} more tables"] if len(totals) > len(tables) else []
    more = f"<p class=quiet>Not shown: {', '.join(left)}.</p>" if left else ""
    return f'<div class="wide heat"><table><tr>{head}</tr>{"".join(lines)}</table></div>{more}'


def _cell(spent: float | None, most: float) -> str:
    if not spent:
        return "<td></td>"
    share = max(1 + math.log10(spent / most) / 4, 0.0) if most else 0.0  # four powers of ten
    ink = "#fff" if share > 0.6 else "var(--text)"
    style = f"background:rgba(194,65,12,{0.05 + 0.95 * share:.2f});color:{ink}"
    return f'<td style="{style}">{duration(spent)}</td>'


def _source(one: Outcome) -> str:
    summary = one.summary
    assert summary is not None
    few = {**summary, "tables": summary["tables"][:MOST_TABLES]}
    parts = [
        f"<p>{escape(headline(summary))} {escape(split(summary))}</p>",
        _curve(summary["curve"]["points"]),
        f"<h3>What to do, in order</h3>{fix_list(summary['fixes'])}" if summary["fixes"] else "",
        f"<h3>What if</h3>{what_if_table(summary)}",
        f"<h3>Tables</h3>{cost_table(few)}" if few["tables"] else "",
        f"<h3>Assumed, and noted</h3>{html_list([*summary['assumptions'], *summary['notes']])}",
    ]
    title = f"<b>{escape(one.source)}</b> · up to {duration(one.peak)} behind"
    return (
        f'<details id="{escape(one.source)}"><summary>{title}</summary>{"".join(parts)}</details>'
    )


def _curve(points: Sequence[Sequence[float]]) -> str:
    """Lag over time as a picture."""
    if len(points) < 2:
        return ""
    first, last = points[0][0], points[-1][0]
    most = max(lag for _, lag in points) or 1.0
    places = [
        (WIDTH * (time - first) / ((last - first) or 1), HEIGHT - (HEIGHT - 4) * lag / most)
        for time, lag in points
    ]
    path = f"M{places[0][0]:.1f},{places[0][1]:.1f}" + "".join(
        f"H{x:.1f}V{y:.1f}" for x, y in places[1:]
    )
    text = (
        f"from {when(first)} to {when(last)} UTC; the top of the picture is {duration(most)} behind"
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Lag over time"><path'
        f' d="{path}" fill="none" stroke="var(--lag)" stroke-width="1.5"'
        f' vector-effect="non-scaling-stroke"/><path d="M0,{HEIGHT - 0.5}H{WIDTH}"'
        f' stroke="var(--edge)" stroke-width="1"/></svg>'
        f"<p class=quiet>Lag over time, {escape(text)}</p>"
    )
