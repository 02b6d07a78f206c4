"""Whether a forecast is worse than one that was kept: what `--baseline FILE.json` asks.

Both are of the same log and of the same prices, so whatever differs comes from the schema, the
number
of rows or the replica's settings. Anything else is refused: seconds would not be comparable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from applier.error_codes import Code
from applier.errors import InputError, cannot_read
from applier.forecast.answers.words import duration

HINT = "write it again without the change: binlag forecast … --json >FILE.json"
SAME_LOG = ("transactions", "rows", "first_commit", "last_commit")
SAME_PRICES = ("server_version", "target", "machine", "date")
TOLERANCE = 0.05
"""A growth by less than this share is not worse, as by a column more."""
LEAST_LAG = 0.001
"""Seconds: nobody sees a lag that grew by less."""
LEAST_SHARE = 0.001
"""Of the time to apply the log: what a table grew by less does not matter."""


@dataclass(frozen=True, slots=True)
class Worse:
    """Something that takes longer than before: a table's rows, or the lag of the replica (`table`
    None)."""

    table: str | None
    seconds: float
    before: float
    why: str = ""

    def __str__(self) -> str:
        now, then = duration(self.seconds), duration(self.before)
        what = f"{self.table} takes {now}" if self.table else f"the replica is up to {now} behind"
        ratio = self.seconds / self.before if self.before else 0.0
        times = f" ({ratio:,.{0 if ratio >= 10 else 2}f} times)" if ratio else ""
        return f"{what}, was {then}{times}" + (f"; {self.why}" if self.why else "")

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "table": self.table,
            "seconds": self.seconds,
            "seconds_before": self.before,
            "why": self.why or None,
        }


def load_baseline(path: str) -> dict[str, Any]:
    """What `binlag forecast --json` printed. Raises InputError."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        if _is_forecast(found):
            return dict(found)
        problem = "it is not the output of binlag forecast --json"
    except OSError as error:
        raise cannot_read(error, path, "baseline", HINT) from None
    except ValueError:
        problem = "it is not JSON"
    raise InputError(f"no baseline: {problem}", code=Code.BASELINE, file=path, hint=HINT)


def _is_forecast(found: Any) -> bool:
    try:
        numbers = [found[name] for name in SAME_LOG] + [found["replica"]["peak_lag_seconds"]]
        numbers += [found["replica"]["apply_seconds"], *(one["seconds"] for one in found["tables"])]
        texts = [found["calibration"][name] for name in SAME_PRICES]
        texts += [one["table"] for one in found["tables"]]
    except (KeyError, TypeError):
        return False
    are_numbers = all(isinstance(one, int | float) for one in numbers)
    return are_numbers and all(isinstance(one, str) for one in texts)


def worse(
    summary: Mapping[str, Any], baseline: Mapping[str, Any], path: str, tolerance: float = TOLERANCE
) -> list[Worse]:
    """What is worse: the replica first, then its tables, the one that lost most first.

    Raises InputError for a baseline of another log, or of other prices.
    """
    _refuse_another(summary, baseline, path)
    return list(_worse(summary, baseline, 1 + tolerance))


def _worse(
    summary: Mapping[str, Any], baseline: Mapping[str, Any], factor: float
) -> Iterator[Worse]:
    lag, lag_before = (one["replica"]["peak_lag_seconds"] for one in (summary, baseline))
    if lag > lag_before * factor and lag - lag_before >= LEAST_LAG:
        yield Worse(None, lag, lag_before)
    before = {one["table"]: one["seconds"] for one in baseline["tables"]}
    least = LEAST_SHARE * baseline["replica"]["apply_seconds"]
    grown = [(one, before.get(one["table"], 0.0)) for one in summary["tables"]]
    for one, then in sorted(grown, key=lambda pair: pair[1] - pair[0]["seconds"]):
        if one["seconds"] > then * factor and one["seconds"] - then > least:
            why = one["reasons"][0]["text"].removesuffix(".") if one["reasons"] else ""
            yield Worse(one["table"], one["seconds"], then, why)


def _refuse_another(summary: Mapping[str, Any], baseline: Mapping[str, Any], path: str) -> None:
    problem = ""
    if any(summary[name] != baseline[name] for name in SAME_LOG):
        counts = (f"{one['transactions']:,} transactions" for one in (baseline, summary))
        problem = "it is of another log: {}, this one {}".format(*counts)
    prices, others = summary["calibration"], baseline["calibration"]
    if any(prices[name] != others[name] for name in SAME_PRICES):
        problem = f"its prices are of {others['server_version']}, {others['date']}, not of "
        problem += f"{prices['server_version']}, {prices['date']}"
    if problem:
        raise InputError(
            f"the baseline does not fit: {problem}", code=Code.BASELINE, file=path, hint=HINT
        )
