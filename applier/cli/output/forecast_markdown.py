"""A forecast as Markdown, for a comment on a change: the answer, what got worse, what to do; the
rest folded away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from applier.cli.output.markdown_text import plain
from applier.forecast.answers.words import (
    duration,
    fix_title,
    headline,
    now_lines,
    rows_read,
    share_rows,
    split,
)

if TYPE_CHECKING:
    from applier.cli.output.forecast_gate import GateVerdict

MOST_TABLES = 15


def markdown(summary: Mapping[str, Any], verdict: GateVerdict) -> str:
    """The whole text."""
    return "\n".join(_lines(summary, verdict)) + "\n"


def _lines(summary: Mapping[str, Any], verdict: GateVerdict) -> Iterator[str]:
    outcome = {True: " fails", False: " passes"}[verdict.failed] if verdict.gate else ""
    now = now_lines(summary["now"]) if summary["now"] else []
    yield from (f"### Replica lag forecast{outcome}", "")
    for line in (*now, headline(summary)):
        yield from (f"**{plain(line)}**", "")
    yield from (plain(split(summary)), "")
    if verdict.failures:
        yield from (*(f"- {plain(text)}" for text, _ in verdict.failures), "")
    yield from _fixes(summary["fixes"])
    yield from ("<details><summary>Tables</summary>", "")
    yield from _tables(summary, verdict.gate.baseline)
    yield from ("", "</details>", "")
    notes = [f"assumed: {text}" for text in summary["assumptions"]]
    notes += [f"note: {text}" for text in summary["notes"]]
    if notes:
        yield from ("<details><summary>Assumed, and noted</summary>", "")
        yield from (f"- {plain(text)}" for text in notes)
        yield from ("", "</details>")


def _fixes(fixes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if fixes:
        yield from ("#### What to do, in order", "")
    for at, one in enumerate(fixes):
        fence = "````" if "```" in one["sql"] else "```"
        yield f"{at + 1}. **{plain(fix_title(fixes, at))}**<br>{plain(one['what'])}"
        yield from ("", f"   {fence}sql", f"   {one['sql']}", f"   {fence}", "")
        yield from (*(f"   - {plain(note)}" for note in one["notes"]), "")


def _tables(summary: Mapping[str, Any], baseline: Mapping[str, Any] | None) -> Iterator[str]:
    tables = {one["table"]: one for one in summary["tables"][:MOST_TABLES]}
    before = {one["table"]: one["seconds"] for one in (baseline or {"tables": ()})["tables"]}
    was = " was |" if baseline else ""
    yield f"| table | share | seconds |{was} to find rows | rows | rows read | algorithm |"
    yield "|---|--:|--:|" + "--:|" * bool(baseline) + "--:|--:|--:|---|"
    for what, seconds, share in share_rows(summary, MOST_TABLES):
        one = tables.get(what)
        cells = [plain(what), share, duration(seconds)]
        if baseline:
            cells.append(duration(before[what]) if what in before else "")
        if one is None:
            cells += [""] * 4
        else:
            algorithm = ", ".join(one["algorithms"]) or "-"
            find = duration(one["lookup_seconds"])
            cells += [find, f"{one['rows']:,}", rows_read(one), algorithm]
        yield f"| {' | '.join(cells)} |"
