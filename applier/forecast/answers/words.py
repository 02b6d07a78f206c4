"""A forecast's answer in sentences, the same on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from applier.forecast.inventory.facts import ASSUMED


def headline(summary: Mapping[str, Any]) -> str:
    """The answer in a sentence."""
    replica = summary["replica"]
    low, high = duration(summary["peak_low_seconds"]), duration(summary["peak_high_seconds"])
    live = summary["now"] is not None and summary["now"]["live"]
    who = "A replica that was level when the log began would be" if live else "The replica will be"
    text = f"{who} up to {duration(replica['peak_lag_seconds'])} behind" + (
        f" ({low} to {high})" if low != high else ""
    )
    if replica["catch_up_seconds"] == "never":
        return text + "; at this rate it never catches up."
    if replica["end_lag_seconds"] > 1 and (
        live or summary["now"] is None
    ):  # else `now_lines` has said it
        return (
            text + f"; it catches up {duration(replica['catch_up_seconds'])} after the log's end."
        )
    return text + "."


def now_lines(now: Mapping[str, Any]) -> list[str]:
    """A replica that is behind already: by how much, when it will have caught up, what it is at."""
    capacity = now["capacity"]
    told = (
        ""
        if capacity is None
        else f" Capacity: {capacity:,.3g} s of the source's traffic in a second."
    )
    if not now["transactions_left"]:
        return [f"Now: the replica has applied all of the log.{told}"]
    if now["pace"] is not None:
        told += f" Its pace, measured just now: {1 / now['pace']:,.2g} of what the prices say."
    behind, left = duration(now["behind_seconds"]), f"{now['transactions_left']:,} transactions"
    text = (
        f"Now: the replica is {behind} behind and has {left} left, {duration(now['seconds_left'])}"
        " of applying; "
    )
    if now["stopped"]:
        return [f"{text}{now['stopped']}.{told}"]
    if now["catch_up_seconds"] == "never":
        return [f"{text}with the source's traffic as it is, it never catches up.{told}"]
    caught_up = (
        f"it catches up in {duration(now['catch_up_seconds'])}{_range(now)}, at"
        f" {when(now['caught_up_at'])} UTC."
    )
    current = now["transaction"]
    return [f"{text}{caught_up}{told}", *([] if current is None else [_current(current)])]


def now_line(now: Mapping[str, Any]) -> str:
    """The same in one short line, for `--follow`."""
    begin = f"{when(now['time'])} UTC: {duration(now['behind_seconds'])} behind"
    left = f"{now['transactions_left']:,} transactions left, {duration(now['seconds_left'])}"
    catch_up = now["catch_up_seconds"]
    if not now["transactions_left"]:
        outcome = "level"
    elif now["stopped"]:
        outcome = now["stopped"]
    elif isinstance(catch_up, str):
        outcome = "never catches up"
    else:
        outcome = f"catches up in {duration(catch_up)}{_range(now)}"
    capacity = "" if now["capacity"] is None else f"; capacity {now['capacity']:,.3g}"
    one = now["transaction"]
    at = f"; {one['file']}:{one['pos']}, {duration(one['left_seconds'])} to go" if one else ""
    return f"{begin}; {left}; {outcome}{capacity}{at}"


def _range(now: Mapping[str, Any]) -> str:
    """How soon and how late it may catch up."""
    low, high = duration(now["catch_up_low_seconds"]), duration(now["catch_up_high_seconds"])
    return f" ({low} to {high})" if low != high else ""


def _current(one: Mapping[str, Any]) -> str:
    """The transaction that the replica is in."""
    gtid = f", {one['gtid']}" if one["gtid"] else ""
    text = (
        f"It is in {one['file']}, position {one['pos']}{gtid}: {one['rows']:,} rows of"
        f" {changed_tables(one)}"
    )
    if one["rows_done"] is not None:
        text += f", {one['rows_done']:,.0f} of them done"
    if one["elapsed_seconds"] is not None:
        text += f", for {duration(one['elapsed_seconds'])}"
    return f"{text}; {duration(one['left_seconds'])} to go."


PARTS = {
    "commits": "commits",
    "statements": "statements in the log's text",
    "table opens": "tables that are opened again",
    "changes": "changes to rows",
}
"""What applying consists of but for finding rows -> in words."""


NAMED_SHARE = 0.1
"""Of the time, for one of WAITS to be named."""
WAITS = (
    (
        "page_read_seconds",
        "page_reads",
        "to read {:,.0f} pages that the buffer pool does not hold",
    ),
    (
        "redo_log_seconds",
        "redo_log_writes",
        (
            "to wait for {:,.0f} pages that must be written before the redo log is full"
            " (innodb_log_file_size)"
        ),
    ),
    (
        "table_open_seconds",
        "table_opens",
        (
            "to open tables again, {:,.0f} times, since more are in use than a worker keeps open"
            " (table_open_cache)"
        ),
    ),
    ("text_seconds", "texts", "to put the words of {:,.0f} texts into FULLTEXT indexes"),
)
"""Seconds of a replica, what they are for and how often, in words."""


def split(summary: Mapping[str, Any]) -> str:
    """Finding rows apart from the rest, and what that rest mostly is: large or many transactions,
    DDL."""
    replica, ideal = summary["replica"], summary["without_lookup"]
    text = f"Applying takes {duration(replica['apply_seconds'])}"
    if not replica["apply_seconds"]:
        return text + "."
    parts = {one["name"]: one["seconds"] for one in summary["besides_tables"]}
    parts["changes"] = ideal["apply_seconds"] - sum(parts.values())
    main = max(parts, key=lambda name: parts[name])
    for seconds, count, words in WAITS:
        share = replica[seconds] / replica["apply_seconds"]
        if share > NAMED_SHARE:
            text += f", {share:.0%} of it {words.format(replica[count])}"
    return lock_sentence(replica["retries"]) + (
        f"{text}, {replica['lookup_seconds'] / replica['apply_seconds']:.0%} of it to find rows."
        f" With instant lookups, applying would take {duration(ideal['apply_seconds'])}, mostly"
        f" {PARTS.get(main, main)}, and the replica would be up to"
        f" {duration(ideal['peak_lag_seconds'])} behind."
    )


def lock_sentence(retries: float) -> str:
    """What several workers in a table without a key do to each other; empty where they are not."""
    if retries < 1:
        return ""
    return (
        "Workers do not help a table without a key: a scan locks all rows that it reads, so they"
        f" wait for each other's locks. About {retries:,.0f} times a transaction is rolled back and"
        " tried again after a pause of at least a second. "
    )


def fix_title(fixes: Sequence[Mapping[str, Any]], at: int) -> str:
    """What to do, and the time that it saves: by itself, and with what stands above it."""
    one = fixes[at]
    what = one["table"] or f"{one['setting']} (a setting of the {one['where']})"
    text = f"{what}: saves {duration(one['gain_seconds'])}"
    together = duration(one["gain_seconds_with_those_before"])
    return text + (
        f" by itself, {together} together with {'those' if at > 1 else 'the one'} above"
        if at
        else ""
    )


def percentages(shares: Sequence[float]) -> list[str]:
    """Shares as percentages with one digit that add up as the shares do: what rounding leaves goes
    to the largest remainders."""
    tenths = [share * 1000 for share in shares]
    whole = [int(tenth) for tenth in tenths]
    left = round(sum(tenths)) - sum(whole)
    for at in sorted(range(len(tenths)), key=lambda at: whole[at] - tenths[at])[:left]:
        whole[at] += 1
    return [f"{tenth / 10:.1f}%" for tenth in whole]


def share_rows(summary: Mapping[str, Any], most: int) -> list[tuple[str, float, str]]:
    """(what, seconds, share) of everything that applying consists of: the first tables, the rest of
    them, commits, statements."""
    tables, rest = summary["tables"][:most], summary["tables"][most:]
    rows = [(one["table"], one["seconds"], one["share"]) for one in tables]
    if rest:
        rows.append(
            (
                f"and {len(rest)} more",
                sum(one["seconds"] for one in rest),
                sum(one["share"] for one in rest),
            )
        )
    rows += [
        (f"({one['name']})", one["seconds"], one["share"])
        for one in summary["besides_tables"]
        if one["seconds"]
    ]
    shown = percentages([share for *_, share in rows])
    return [(what, seconds, share) for (what, seconds, _), share in zip(rows, shown, strict=True)]


def rows_read(table: Mapping[str, Any]) -> str:
    """How many rows of a table are read; a lower bound where its size is not known and decides."""
    bound = "at least " if table["table_rows_from"] == ASSUMED and table["reasons"] else ""
    return f"{bound}{table['rows_read']:,.0f}"


def changed_tables(worst: Mapping[str, Any], most: int = 3) -> str:
    """What a transaction changes: its dearest tables, or the statement that it consists of."""
    names = worst["tables"][:most]
    more = len(worst["tables"]) - len(names)
    text = ", ".join(names) + (f" and {more} more" if more else "")
    return text or worst["statement"] or "-"


def when(time: float) -> str:
    """A time in UTC for people."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


def shown_times(factor: float) -> str:
    """A factor for people: 12, 1.58."""
    return f"{factor:,.{0 if factor >= 10 else 2}f}"


def duration(seconds: float | str) -> str:
    """Seconds for people."""
    if isinstance(seconds, str):
        return seconds
    if seconds < 0.01:
        return f"{seconds * 1000:.2g} ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:.1f} days"
