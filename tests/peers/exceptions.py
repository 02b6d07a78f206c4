"""Known exceptions: scripts whose outcome is not "equal", each with a reason. The table may only
shrink.

`exceptions.tsv` has server, format, script, outcome, reason; `showed.tsv` server, format and script
of all that ever showed something.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

HERE = Path(__file__).parent
EXCEPTIONS, SHOWED = HERE / "exceptions.tsv", HERE / "showed.tsv"
EQUAL = "equal"
GRAVE = ("difference", "crash", "hang")
NO_REASON = "-"


@dataclass(frozen=True, order=True)
class Case:
    """A script on a server with one log format."""

    server: str
    log_format: str
    script: str

    def __str__(self) -> str:
        return f"{self.server} {self.log_format} {self.script}"


@dataclass(frozen=True)
class Observed:
    """What came of a case: "equal", "difference", "refused 1235", "crash", "hang"; and the message
    or the first difference."""

    case: Case
    outcome: str
    cause: str = ""


@dataclass(frozen=True)
class KnownException:
    """A row of the table."""

    outcome: str
    reason: str


def read_exceptions(path: Path = EXCEPTIONS) -> dict[Case, KnownException]:
    """The table. Raises ValueError for a row without five cells or without a reason."""
    found = {}
    for number, cells in _rows(path):
        if len(cells) != 5 or not cells[4].strip():
            raise ValueError(
                f"{path.name}:{number}: a row has server, format, script, outcome and reason"
            )
        found[Case(*cells[:3])] = KnownException(*cells[3:])
    return found


def read_cases(path: Path = SHOWED) -> list[Case]:
    """The scripts that ever showed something."""
    return [Case(*cells[:3]) for _, cells in _rows(path)]


def read_observed(path: Path) -> list[Observed]:
    """What `write_observed` wrote."""
    return [Observed(Case(*cells[:3]), cells[3], cells[4]) for _, cells in _rows(path)]


def write_observed(path: Path, observed: Iterable[Observed]) -> None:
    """One line for each, in the order of the cases."""
    lines = (
        "\t".join((*astuple(one.case), one.outcome, _one_line(one.cause)))
        for one in sorted(observed, key=lambda one: one.case)
    )
    # a message may hold bytes that are no text
    path.write_text("".join(f"{line}\n" for line in lines), errors="backslashreplace")


def verdicts(observed: Iterable[Observed], known: Mapping[Case, KnownException]) -> list[str]:
    """What must be mended: new outcomes, other ones, and exceptions that are none any more. Empty
    when the table is true."""
    found = []
    for one in sorted(observed, key=lambda one: one.case):
        exception = known.get(one.case)
        if one.outcome == EQUAL and exception is not None:
            found.append(f"{one.case}: it is equal now; remove it from {EXCEPTIONS.name}")
        elif one.outcome != EQUAL and exception is None:
            found.append(f"{one.case}: {one.outcome}: {one.cause}")
        elif exception is not None and one.outcome != exception.outcome:
            found.append(f"{one.case}: {one.outcome}, known as {exception.outcome}: {one.cause}")
    return found


def grave(
    observed: Iterable[Observed], known: Mapping[Case, KnownException], cases: Iterable[Case]
) -> list[Observed]:
    """What fails CI: of these cases, those that end worse than the table says, in other rows, a
    crash or a hang.

    Refusals that the table lacks, rows that it need not have any more and scripts that showed
    nothing before are printed only.
    """
    wanted = set(cases)
    worse = (one for one in observed if one.case in wanted and one.outcome in GRAVE)
    return [one for one in worse if one.case not in known or known[one.case].outcome != one.outcome]


def updated(
    observed: Iterable[Observed], known: Mapping[Case, KnownException]
) -> dict[Case, KnownException]:
    """The table after these observations. Reasons are kept; a new row has the cause for a reason,
    until somebody writes a better one."""
    table = dict(known)
    for one in observed:
        before = table.pop(one.case, None)
        if one.outcome != EQUAL:
            kept = before is not None and before.outcome == one.outcome
            table[one.case] = (
                before
                if kept and before is not None
                else KnownException(one.outcome, _one_line(one.cause) or NO_REASON)
            )
    return table


def write_exceptions(table: Mapping[Case, KnownException], path: Path = EXCEPTIONS) -> None:
    """The table, in order."""
    lines = ("\t".join((*astuple(case), *astuple(table[case]))) for case in sorted(table))
    path.write_text("".join(f"{line}\n" for line in lines))


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]


def _rows(path: Path) -> Iterable[tuple[int, list[str]]]:
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if line and not line.startswith("#"):
            yield number, line.split("\t")
