"""The charts of a forecast's report, as Vega-Lite specifications: lag over time, cost by table,
what finding a row costs.

They scale with the page (`width: container`), so that a phone shows them too; `--report` puts them
into a page, `images` writes SVG and PNG of the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from applier.forecast.answers.words import duration
from applier.lazy_imports import needed
from applier.page_colours import LIGHT

LINES = ("lag", "cured", "other-1", "other-2", "other-3", "other-4")
"""The colours of curves, that of the replica as it is first."""
CLOCK = {"hours": "%H:%M", "minutes": "%H:%M"}
"""Times of day as logs and servers write them; days and seconds as Vega writes them."""
MOST_TABLES = 12
Chart = dict[str, Any]
Colours = Mapping[str, str]


def charts(summary: Mapping[str, Any], colours: Colours = LIGHT) -> dict[str, Chart]:
    """Name -> specification; only those that have something to show. `colours` are LIGHT for a
    picture, VARIABLES for a page. Raises UsageError without altair."""
    with needed("the report needs altair and vl-convert", "binlag[report]"):
        import altair
    found = {}
    if summary["curve"]["points"]:
        found["lag"] = _lag(altair, summary, colours)
    if summary["tables"]:
        found["tables"] = _tables(altair, summary, colours)
    if summary["heat"] and summary["heat"]["cells"]:
        found["heat"] = _heat(altair, summary["heat"])
    return {name: chart | {"config": _config(colours)} for name, chart in found.items()}


def _lag(altair: Any, summary: Mapping[str, Any], colours: Colours) -> Chart:
    curves = {"as it is": summary["curve"]["points"], **summary["curves"]}
    rows = [
        {
            "time": datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%S"),
            "lag": lag,
            "replica": name,
        }
        for name, points in curves.items()
        for time, lag in points
    ]
    names = list(curves)
    drawn = [colours[name] for name in LINES][: len(names)]
    base = altair.Chart(altair.Data(values=rows)).mark_line(interpolate="step-after", strokeWidth=2)
    return _done(
        base.encode(
            x=altair.X("time:T", title="time (UTC)", axis=altair.Axis(format=CLOCK)),
            y=altair.Y("lag:Q", title="seconds behind"),
            color=altair.Color(
                "replica:N",
                scale=altair.Scale(domain=names, range=drawn),
                legend=altair.Legend(orient="top", title=None, columns=2),
            ),
            tooltip=["replica:N", "time:T", altair.Tooltip("lag:Q", format=",.1f")],
        ),
        280,
    )


def _tables(altair: Any, summary: Mapping[str, Any], colours: Colours) -> Chart:
    rows = []
    for one in summary["tables"][:MOST_TABLES]:
        rows.append(
            {
                "table": one["table"],
                "seconds": one["lookup_seconds"],
                "for": "finding rows",
                "order": 0,
            }
        )
        rows.append(
            {
                "table": one["table"],
                "seconds": one["seconds"] - one["lookup_seconds"],
                "for": "changing rows",
                "order": 1,
            }
        )
    chart = altair.Chart(altair.Data(values=rows)).mark_bar()
    scale = altair.Scale(
        domain=["finding rows", "changing rows"], range=[colours["lag"], colours["rest"]]
    )
    return _done(
        chart.encode(
            x=altair.X("seconds:Q", title="seconds of applying"),
            y=altair.Y("table:N", sort=None, title=None, axis=altair.Axis(labelLimit=140)),
            color=altair.Color(
                "for:N", scale=scale, legend=altair.Legend(orient="top", title=None)
            ),
            order="order:Q",
            tooltip=["table:N", "for:N", altair.Tooltip("seconds:Q", format=",.2f")],
        ),
        28 * max(len(rows) // 2, 2) + 20,
    )


def _heat(altair: Any, heat: Mapping[str, Any]) -> Chart:
    rows = [
        cell | {"microseconds": cell["seconds"] * 1e6, "shown": _short(cell["seconds"])}
        for cell in heat["cells"]
    ]
    dark = 3000 * min(row["microseconds"] for row in rows)
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=altair.X(
            "rows_per_event:O", title="rows an event changes", axis=altair.Axis(labelAngle=0)
        ),
        y=altair.Y(
            "way:N",
            sort=None,
            title=None,
            axis=altair.Axis(labelLimit=150, labelExpr="split(datum.label, ', ')"),
        ),  # two lines
    )
    colour = altair.Color(
        "microseconds:Q", scale=altair.Scale(type="log", scheme="orangered"), legend=None
    )
    ink = altair.condition(
        altair.datum.microseconds > dark, altair.value("white"), altair.value("black")
    )
    text = base.mark_text(fontSize=11).encode(text="shown:N", color=ink)
    return _done(
        base.mark_rect().encode(color=colour) + text, 40 * len({row["way"] for row in rows})
    )


def _short(seconds: float) -> str:
    if seconds >= 1e-3:
        return duration(seconds)
    return f"{seconds * 1e6:.0f} µs" if seconds >= 1e-5 else f"{seconds * 1e6:.2g} µs"


def _done(chart: Any, height: int) -> Chart:
    specification: Chart = chart.properties(width="container", height=height).to_dict()
    specification["autosize"] = {"type": "fit-x", "contains": "padding"}
    # another font than the one at hand may be wider
    specification["padding"] = {"left": 12, "right": 5, "top": 5, "bottom": 5}
    return specification


def _config(colours: Colours) -> dict[str, Any]:
    """Everything but the marks."""
    words = {"labelColor": colours["text"], "titleColor": colours["text"]}
    return {
        "background": colours["paper"],
        "view": {"stroke": colours["line"]},
        "axis": words
        | {
            "domainColor": colours["edge"],
            "tickColor": colours["edge"],
            "gridColor": colours["line"],
        },
        "legend": words,
    }


def images(summary: Mapping[str, Any], folder: Path, *, width: int = 760) -> list[Path]:
    """Writes each chart as SVG and PNG, without a browser; the files. Raises UsageError when
    vl-convert is not installed."""
    with needed("charts as images need vl-convert", "binlag[report]"):
        import vl_convert
    written = []
    for name, specification in charts(summary).items():
        sized = specification | {"width": width}
        for suffix, content in (
            (".svg", vl_convert.vegalite_to_svg(sized).encode()),
            (".png", vl_convert.vegalite_to_png(sized, scale=2)),
        ):
            path = folder / f"{name}{suffix}"
            path.write_bytes(content)
            written.append(path)
    return written
