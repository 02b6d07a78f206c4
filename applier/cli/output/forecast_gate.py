"""The gate of `binlag forecast` for CI: what crosses it, and the same as a JUnit file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from applier.errors import cannot_write, one_line
from applier.forecast.answers.baseline import TOLERANCE, Worse, worse
from applier.forecast.answers.summary import Offender
from applier.whole_file import write_whole

REPLICA = "the replica"
"""The test case that is of no table."""


@dataclass(frozen=True)
class Gate:
    """The limits. A replica that is over `limit` already may stay so with a baseline: it fails when
    both are crossed.

    `limit` in seconds, `shown` as it was given; `baseline` is what was read from `path`.
    """

    limit: float | None = None
    shown: str = ""
    baseline: Mapping[str, Any] | None = None
    path: str = ""
    tolerance: float = TOLERANCE

    def __bool__(self) -> bool:
        return self.limit is not None or self.baseline is not None

    def judge(self, summary: Mapping[str, Any], offending: Sequence[Offender]) -> GateVerdict:
        """`offending`: the tables to name where the lag is over the limit."""
        if self.baseline is None:
            return GateVerdict(self, offending, ())
        found = worse(summary, self.baseline, self.path, self.tolerance)
        return GateVerdict(self, offending, found)


@dataclass(frozen=True)
class GateVerdict:
    """What a forecast crosses."""

    gate: Gate
    offending: Sequence[Offender]
    worse: Sequence[Worse]

    @property
    def failed(self) -> bool:
        """Whether the build is to fail."""
        if self.gate.baseline is None:
            return bool(self.offending)
        return bool(self.worse) and (self.gate.limit is None or bool(self.offending))

    @property
    def failures(self) -> list[tuple[str, dict[str, Any]]]:
        """(What is wrong, the same as data) for each table, and for the replica whose `table` is
        None; empty when it passes."""
        if not self.failed:
            return []
        if self.gate.baseline is None:
            over = f"over {self.gate.shown}"
            return [(f"{over}: {one}", offender_dict(one)) for one in self.offending]
        than = f"worse than {self.gate.path}"
        return [(f"{than}: {one}", one.as_dict()) for one in self.worse]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: `offenders` are over the limit, `worse` than the baseline."""
        found: dict[str, Any] = {}
        if self.gate.limit is not None:
            found["max_lag_seconds"] = self.gate.limit
            found["offenders"] = [offender_dict(one) for one in self.offending]
        if self.gate.baseline is not None:
            found["baseline"] = self.gate.path
            found["worse"] = [one.as_dict() for one in self.worse]
        return found


def offender_dict(one: Offender) -> dict[str, Any]:
    """A table behind which lag builds up."""
    return {"table": one.table, "max_lag_seconds": one.lag, "share": one.share, "why": one.why}


def write_junit(
    verdict: GateVerdict, summary: Mapping[str, Any], path: str | os.PathLike[str]
) -> None:
    """One test case for the replica and one for each table. Raises InputError."""
    failures = {told["table"] or REPLICA: text for text, told in verdict.failures}
    names = [REPLICA, *(one["table"] for one in summary["tables"])]
    names += [name for name in failures if name not in names]
    suite = ElementTree.Element(
        "testsuite", name="binlag forecast", tests=str(len(names)), failures=str(len(failures))
    )
    for name in names:
        case = ElementTree.SubElement(suite, "testcase", classname="binlag.forecast")
        case.set("name", one_line(name))
        if name in failures:
            failure = ElementTree.SubElement(case, "failure", message=one_line(failures[name]))
            failure.text = "\n".join(one_line(text) for text in _told(summary, name))
    whole = ElementTree.Element("testsuites")
    whole.append(suite)
    ElementTree.indent(whole)
    text = ElementTree.tostring(whole, encoding="utf-8", xml_declaration=True)
    try:
        write_whole(path, text + b"\n")
    except OSError as error:
        raise cannot_write(error, path, "the JUnit file") from None


def _told(summary: Mapping[str, Any], table: str) -> list[str]:
    """Why a table takes long, and what to do about it."""
    why = [text for one in summary["tables"] if one["table"] == table for text in one["why"]]
    return why + [one["sql"] for one in summary["fixes"] if one["table"] == table]
