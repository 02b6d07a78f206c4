"""A forecast's answer in sentences, the same on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def headline(summary: Mapping[str, Any]) -> str:
    """The answer in a sentence."""
    replica = summary["replica"]
    low, high = duration(summary["peak_low_seconds"]), duration(summary["peak_high_seconds"])
    text = f"The replica will be up to {duration(replica['peak_lag_seconds'])} behind ({low} to {high})"
    if replica["catch_up_seconds"] == "never":
        return text + "; with this traffic it never catches up."
    if replica["end_lag_seconds"] > 1:
        return text + f"; it catches up {duration(replica['catch_up_seconds'])} after the log's end."
    return text + "."


def split(summary: Mapping[str, Any]) -> str:
    """Finding rows apart from what large transactions take by themselves."""
    replica, ideal = summary["replica"], summary["without_lookup"]
    share = replica["lookup_seconds"] / replica["apply_seconds"] if replica["apply_seconds"] else 0.0
    return (
        f"Applying takes {duration(replica['apply_seconds'])}, {share:.0%} of it to find rows. Were rows found at once, "
        f"it would be up to {duration(ideal['peak_lag_seconds'])} behind: that is what large transactions cost by themselves."
    )


def when(time: float) -> str:
    """A time in UTC for people."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


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
