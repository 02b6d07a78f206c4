"""A forecast as one HTML file that needs nothing else: no network, no server; charts are drawn by a
script inside it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from applier.errors import cannot_write
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
from applier.lazy_imports import needed
from applier.page_colours import COLOURS, VARIABLES
from applier.pages.report_charts import charts
from applier.whole_file import write_whole

STYLE = COLOURS + files("applier.pages").joinpath("report.css").read_text("utf-8")
COPY = files("applier.pages").joinpath("report.js").read_text("utf-8")
"""A page opened as a file may be kept from the clipboard; then the selected text is copied the old
way."""
TITLES = {"lag": "Lag over time", "tables": "Cost by table", "heat": "What finding one row costs"}
MOST_ROWS = 50
"""Tables in a table."""


def write_report(summary: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Raises UsageError where a package is missing, InputError when the file cannot be written."""
    text = page(summary)
    try:
        write_whole(path, text)
    except OSError as error:
        raise cannot_write(error, path, "the report") from None


def page(summary: Mapping[str, Any]) -> str:
    """The whole file."""
    drawn = charts(summary, VARIABLES)
    parts = [
        f"<p class=quiet>{_heading(summary)}</p>{_now(summary)}",
        f"<h1>{escape(headline(summary))}</h1><p>{escape(split(summary))}</p>",
        *(_chart(name, summary) for name in drawn if name == "lag"),
        _section("What if", what_if_table(summary)),
        _section("What to do, in order", fix_list(summary["fixes"])),
        *(_chart(name, summary) for name in drawn if name == "tables"),
        _section("Tables", cost_table(summary)),
        _section("Why", _reasons(summary["tables"], {one["table"] for one in summary["fixes"]})),
        *(_chart(name, summary) for name in drawn if name == "heat"),
        _section("Worst transactions", _worst(summary["worst"])),
        _section("Assumed, and noted", html_list([*summary["assumptions"], *summary["notes"]])),
        _section("Prices", f"<p class=quiet>{_prices(summary['calibration'])}</p>"),
    ]
    data = json.dumps(drawn).replace("</", "<\\/")
    script = (
        f"{_bundle()}\nfor (const [name, chart] of Object.entries({data})) window.draw('#' + name,"
        f" chart);\n{COPY}"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport"'
        ' content="width=device-width, initial-scale=1"><link rel="icon"'
        f' href="data:,"><title>Replica lag forecast</title><style>\n{STYLE}</style></head><body>'
        + "".join(parts)
        + f'<script type="module">{script}</script></body></html>\n'
    )


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and the embedder as one module, with `window.draw(selector,
    specification)`."""
    with needed("the report needs altair and vl-convert", "binlag[report]"):
        import vl_convert
    draw = """
    window.drawn = 0;
    window.draw = (selector, chart) => vegaEmbed(selector, chart, {actions: false, renderer: "svg"})
        .then(() => { window.drawn += 1; })
        .catch((error) => {
            document.querySelector(selector).textContent = String(error);
            throw error;
        });
    """
    return str(vl_convert.javascript_bundle(draw)).replace("</script", "<\\/script")


def _heading(summary: Mapping[str, Any]) -> str:
    span = (
        f"{when(summary['first_commit'])} to {when(summary['last_commit'])} UTC"
        if summary["transactions"]
        else "no transaction"
    )
    what = f"{summary['transactions']:,} transactions, {summary['rows']:,} rows"
    return escape(f"Replica lag forecast · {what} · {span} · rules of {summary['server']}")


def _section(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>{body}" if body else ""


def _chart(name: str, summary: Mapping[str, Any]) -> str:
    title = TITLES[name]
    if name == "heat":
        heat = summary["heat"]
        title += f": {heat['table']} with its {heat['rows']:,.0f} rows"
    return f'<h2>{escape(title)}</h2><div class="chart" id="{name}"></div>'


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """A table whose first `left` columns are words. On a phone each row is a list of heads and
    values, so no column is out of sight."""

    def cell(at: int, text: str) -> str:
        return f'<td{" class=l" if at < left else ""} data-head="{escape(heads[at])}">{text}</td>'

    head = "".join(
        f"<th{' class=l' if at < left else ''}>{text}</th>" for at, text in enumerate(heads)
    )
    body = "".join(
        f"<tr>{''.join(cell(at, text) for at, text in enumerate(row))}</tr>" for row in rows
    )
    return (
        f'<div class="wide"><table class="rows"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def what_if_table(summary: Mapping[str, Any]) -> str:
    """The replica as it is and as it could be."""
    rows = []
    for run in (summary["replica"], *summary["what_if"]):
        catch_up = duration(run["catch_up_seconds"])
        rows.append([
            escape(run["name"]), duration(run["peak_lag_seconds"]),
            duration(run["end_lag_seconds"]),
            f"<span class=never>{catch_up}</span>" if catch_up == "never" else catch_up,
            duration(run["apply_seconds"]), duration(run["lookup_seconds"]),
        ])  # fmt: skip
    return html_table(
        ("replica", "peak lag", "at the end", "catches up after", "applying", "to find rows"),
        rows,
        1,
    )


def cost_table(summary: Mapping[str, Any]) -> str:
    """What applying consists of, the dearest tables first."""
    tables = {one["table"]: one for one in summary["tables"][:MOST_ROWS]}
    rows = []
    for what, seconds, share in share_rows(summary, MOST_ROWS):
        one = tables.get(what)
        rest = [""] * 5 if one is None else [
            duration(one["lookup_seconds"]), duration(one["max_lag_seconds"]), f"{one['rows']:,}",
            rows_read(one),
            escape(", ".join(one["algorithms"])) or "-",
        ]  # fmt: skip
        rows.append([escape(what), share, duration(seconds), *rest])
    return (
        html_table(
            (
                "table",
                "share",
                "seconds",
                "to find rows",
                "max lag",
                "rows",
                "rows read",
                "algorithm",
            ),
            rows,
            1,
        )
        if rows
        else ""
    )


def _now(summary: Mapping[str, Any]) -> str:
    lines = now_lines(summary["now"]) if summary["now"] else []
    return "".join(f"<p><b>{escape(line)}</b></p>" for line in lines)


def fix_list(fixes: Sequence[Mapping[str, Any]]) -> str:
    """What to do, in order; its buttons need COPY."""
    items = [
        f"<li><b>{escape(fix_title(fixes, at))}</b><p>{escape(one['what'])}</p>"
        f"<div class=sql><pre>{escape(one['sql'])}</pre><button"
        f" type=button>Copy</button></div>{html_list(one['notes'])}</li>"
        for at, one in enumerate(fixes)
    ]
    return f"<ol>{''.join(items)}</ol>" if items else ""


def _reasons(tables: Sequence[Mapping[str, Any]], mended: Collection[str]) -> str:
    """`mended`: tables that a fix was shown for."""
    found = []
    for one in tables:
        if one["reasons"]:
            suggested = (
                one["suggestion"]["lines"]
                if one["suggestion"] is not None and one["table"] not in mended
                else []
            )
            told = [*one["why"], *suggested]
            found.append(f"<p><b>{escape(one['table'])}</b></p>" + html_list(told))
    return "".join(found)


def html_list(texts: Sequence[str]) -> str:
    """Texts as a list, each once."""
    return (
        "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in dict.fromkeys(texts)) + "</ul>"
        if texts
        else ""
    )


def _worst(worst: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [escape(one["file"]), escape(changed_tables(one)), str(one["pos"]),
            f"<span class=id>{escape(one['gtid'] or '-')}</span>", duration(one["seconds"]),
         duration(one["lookup_seconds"]), duration(one["lag_seconds"]), f"{one['rows']:,}",
         f"{one['events']:,}"]
        for one in worst
    ]  # fmt: skip
    heads = (
        "file",
        "tables or statement",
        "position",
        "GTID",
        "takes",
        "to find rows",
        "lag",
        "rows",
        "events",
    )
    return html_table(heads, rows, 2) if rows else ""


def _prices(calibration: Mapping[str, Any]) -> str:
    return escape(
        f"{calibration['source']}: measured on {calibration['server_version']}"
        f" ({calibration['target']}), {calibration['machine']}, {calibration['date']}; error on"
        f" unseen cells {calibration['median_error']:.0%} at the median, nine of ten below"
        f" {calibration['p90_error']:.0%}"
    )
