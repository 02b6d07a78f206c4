"""Draws the pictures of the documentation into docs/images: python scripts/figures.py. Needs the
extra `report`.

Each comes from the code that it explains: what finding a row costs from `lookup.cost`, the forecast
from the log in tests/captures/forecast and a real replica's lag from benchmarks/results, the
clock's scenarios from `binlag clock`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair
import vl_convert
from click.testing import CliRunner

from applier.cli.commands.clock import command as clock
from applier.cli.commands.forecast import command as forecast
from applier.pages.report_charts import charts
from applier.timing.scenarios import SCENARIOS
from lookup.cost import expected
from lookup.table_shape import NO_KEY, OTHER, PRIMARY, EventShape, TableShape
from lookup.versions import RULES, parse_row_search

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
MEASURED_LAG = ROOT / "benchmarks" / "results" / "lag_beside_replica_9.7.json"
CAPTURE = ROOT / "tests" / "captures" / "forecast"
SIZES = [10**exponent for exponent in range(2, 9)]
EVENTS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
ROWS_PER_VALUE, MILLION = 20.0, 1_000_000
OLD, NEW = parse_row_search("INDEX_SCAN,TABLE_SCAN"), parse_row_search("INDEX_SCAN,HASH_SCAN")
WAYS = {
    "table scan": (NO_KEY, OLD, 50),
    "hash over table, 50 rows an event": (NO_KEY, NEW, 50),
    "index scan, 20 rows a value": (OTHER, OLD, 50),
    "hash over index, 20 rows a value": (OTHER, NEW, 50),
    "primary key": (PRIMARY, NEW, 50),
}
"""Name -> the table's best key, slave_rows_search_algorithms, rows that an event changes."""
COLOURS = ["#7f1d1d", "#f59e0b", "#2563eb", "#38bdf8", "#0f766e"]
WIDTH, HEIGHT = 520, 300


def read_per_row(key: str, options: frozenset[str], event_rows: float, table_rows: float) -> float:
    """Rows that a replica of 8.0 reads for each row that an UPDATE changes; the rows stand anywhere
    in the table."""
    table = TableShape(table_rows, key, min(ROWS_PER_VALUE, table_rows) if key == OTHER else 1.0)
    cost = expected(
        table,
        EventShape("update", min(event_rows, table_rows), order="random"),
        RULES["8.0"],
        options,
    )
    return cost.counters.rows_read / cost.counters.rows_changed


def cost_by_table_size() -> dict[str, Any]:
    rows = [
        {"rows": size, "way": way, "read": read_per_row(key, options, event, size)}
        for way, (key, options, event) in WAYS.items()
        for size in SIZES
    ]
    return _lines(rows, "rows:Q", "rows in the table", list(WAYS))


def cost_by_event_size() -> dict[str, Any]:
    names = {"table scan": OLD, "hash over table": NEW}
    rows = [
        {"rows": event, "way": way, "read": read_per_row(NO_KEY, options, event, MILLION)}
        for way, options in names.items()
        for event in EVENTS
    ]
    return _lines(
        rows, "rows:Q", "rows that one event changes", list(names), ["#7f1d1d", "#f59e0b"]
    )


def _lines(
    rows: list[dict[str, Any]],
    x: str,
    title: str,
    names: list[str],
    colours: list[str] | None = None,
) -> dict[str, Any]:
    """Lines over two logarithmic axes, each with its name in the legend, in the order of the
    names."""
    scale, axis = (
        altair.Scale(type="log"),
        altair.Axis(format="~s", values=[10**power for power in range(9)]),
    )
    chart = altair.Chart(altair.Data(values=rows)).mark_line(point=True, strokeWidth=2)
    encoded = chart.encode(
        x=altair.X(x, title=title, scale=scale, axis=axis),
        y=altair.Y("read:Q", title="rows read for each row changed", scale=scale, axis=axis),
        color=altair.Color(
            "way:N",
            sort=names,
            scale=altair.Scale(domain=names, range=colours or COLOURS),
            legend=altair.Legend(
                title=None, orient="bottom", columns=2, columnPadding=50, labelLimit=260
            ),
        ),
    )
    specification: dict[str, Any] = encoded.properties(width=WIDTH, height=HEIGHT).to_dict()
    return specification


def forecast_of_capture() -> Iterator[tuple[str, dict[str, Any]]]:
    """The charts of the forecast that the README shows."""
    arguments = [str(CAPTURE / "binlog.000001"), "--schema", str(CAPTURE / "schema.sql"), "--json"]
    counts = ["--rows", "shop.audit_log=100000000", "--rows", "*=500000"]
    summary = json.loads(
        CliRunner().invoke(forecast, arguments + counts, catch_exceptions=False).stdout
    )
    last = max(time for time, _ in summary["curve"]["points"])
    for points in summary["curves"].values():
        # a replica that has caught up stays level while the other one is still at work
        points.append([last, 0.0])
    for name, chart in charts(summary).items():
        yield ("forecast" if name == "lag" else f"forecast-{name}"), chart | {"width": 640}


def forecast_beside_replica() -> dict[str, Any]:
    """The forecast's curve and the lag of a real replica, as benchmarks/lag_beside_replica.py
    measured them."""
    rows = [
        {"time": time, "lag": lag, "what": f"{curve['keys']}: {name}"}
        for curve in json.loads(MEASURED_LAG.read_text())["curves"]
        for name, key in (
            ("forecast", "forecast"),
            ("Seconds_Behind_Source of the replica", "measured"),
        )
        for time, lag in curve[key]
    ]
    names = list(dict.fromkeys(row["what"] for row in rows))
    chart = altair.Chart(altair.Data(values=rows)).mark_line(strokeWidth=2)
    encoded = chart.encode(
        x=altair.X("time:Q", title="seconds since the load began"),
        y=altair.Y("lag:Q", title="seconds behind"),
        color=altair.Color(
            "what:N",
            sort=names,
            scale=altair.Scale(domain=names, range=["#0f766e", "#5eead4", "#7f1d1d", "#f59e0b"]),
            legend=altair.Legend(
                title=None, orient="bottom", columns=2, columnPadding=40, labelLimit=300
            ),
        ),
    )
    specification: dict[str, Any] = encoded.properties(width=WIDTH, height=HEIGHT).to_dict()
    return specification


def main() -> int:
    pictures = {
        "cost-by-table-size": cost_by_table_size(),
        "cost-by-event-size": cost_by_event_size(),
        "forecast-beside-replica": forecast_beside_replica(),
        **dict(forecast_of_capture()),
    }
    for name, specification in pictures.items():
        specification["background"] = "white"
        (IMAGES / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(specification))
    for name in SCENARIOS:
        path = IMAGES / f"clock-{name}.svg"
        CliRunner().invoke(
            clock, ["--scenario", name, "--every", "1", "--plot", str(path)], catch_exceptions=False
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
