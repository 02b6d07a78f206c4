"""A forecast in a notebook: one screen of text, or a table and a chart. The HTML asks no address
and runs no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from applier.forecast.answers.words import duration, headline, split, when

MOST_TABLES = 12
WIDTH, HEIGHT, MARGIN = 640, 160, 4
"""Of the chart, in pixels."""
MOST_POINTS = 500


def as_text(summary: Mapping[str, Any]) -> str:
    """The answer, then the tables that cost most. At most 20 lines."""
    tables = summary["tables"][:MOST_TABLES]
    width = max((len(one["table"]) for one in tables), default=0)
    lines = [headline(summary), split(summary)]
    lines += [
        f"  {one['table'].ljust(width)}  {one['share']:>6.1%}  {duration(one['seconds']):>9} "
        f" {one['rows_read']:>15,.0f} rows read"
        for one in tables
    ]
    more = len(summary["tables"]) - len(tables)
    return "\n".join(lines + [f"  … and {more:,} more tables"] * bool(more))


def as_html(summary: Mapping[str, Any]) -> str:
    """The same with a chart of the lag over time."""
    heads = ("table", "share", "seconds", "rows", "rows read", "algorithm")
    rows = [_cells(one) for one in summary["tables"][:MOST_TABLES]]
    more = len(summary["tables"]) - len(rows)
    return (
        f"<div><p><b>{escape(headline(summary))}</b></p><p>{escape(split(summary))}</p>"
        f"{_chart(summary['curve']['points'])}<table><thead>{_row(heads, 'th')}</thead><tbody>"
        + "".join(_row(cells, "td") for cells in rows)
        + "</tbody></table>"
        + (f"<p>… and {more:,} more tables</p>" if more else "")
        + "</div>"
    )


def _cells(one: Mapping[str, Any]) -> tuple[str, ...]:
    algorithms = ", ".join(one["algorithms"])
    return (
        one["table"],
        f"{one['share']:.1%}",
        f"{one['seconds']:,.3g}",
        f"{one['rows']:,}",
        f"{one['rows_read']:,.0f}",
        algorithms,
    )


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _chart(points: Sequence[Sequence[float]]) -> str:
    """Seconds behind over time, as steps, with the highest lag and both ends in words."""
    peak = max((lag for _, lag in points), default=0.0)
    if len(points) < 2 or not peak:
        return ""
    first, last = points[0][0], points[-1][0]
    step = -(-len(points) // MOST_POINTS)
    shown = [
        max(points[at : at + step], key=lambda point: point[1])
        for at in range(0, len(points), step)
    ]
    across, down = (WIDTH - 2 * MARGIN) / max(last - first, 1e-9), (HEIGHT - 2 * MARGIN) / peak
    places = [
        (MARGIN + (time - first) * across, HEIGHT - MARGIN - lag * down) for time, lag in shown
    ]
    path = f"M{places[0][0]:.1f},{places[0][1]:.1f}" + "".join(
        f"H{x:.1f}V{y:.1f}" for x, y in places[1:]
    )
    said = f"seconds behind: up to {duration(peak)}, {when(first)} to {when(last)} UTC"
    return (
        f'<figure style="margin:0"><svg viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' style="max-width:100%;height:auto" role="img" aria-label="{escape(said)}"><path'
        f' d="{path}" fill="none" stroke="#dc2626"'
        f' stroke-width="2"/></svg><figcaption>{escape(said)}</figcaption></figure>'
    )
