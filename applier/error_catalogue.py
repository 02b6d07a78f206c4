"""What each code of an error means and what to do then: the rows of error_catalogue.tsv.

"BL104" is one of `applier.error_codes`, "MY-1032" the server's error 1032. Names of servers' errors
are those of MySQL 9.7 (share/messages_to_clients.txt); up to 8.0.25 many had SLAVE or MASTER for
REPLICA or SOURCE. A cell that begins with "@" stands for a text that several rows share. The pages
in docs/errors are made from here (scripts/error_pages.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

GROUPS = {
    "BL1": "Binary logs",
    "BL2": "Other files",
    "BL3": "The command line",
    "BL4": "A server as the target",
    "BL5": "Replicas: receiving, relay logs, positions",
    "BL6": "Libraries",
    "BL7": "Crash tests",
    "BL9": "The program and its machine",
    "MY-": "Replication errors, with the server's numbers",
}
"""How a code begins -> what its group is about."""
GENERAL = "MY-other"
"""The row for numbers without one: a real server as the target can answer with any."""


@dataclass(frozen=True)
class Situation:
    """What an error's page says. `next_step` is what the line of an error ends with when its place
    in the program knows nothing better."""

    code: str
    title: str
    meaning: str
    next_step: str


@cache
def catalogue() -> dict[str, Situation]:
    """Code -> situation, in the order of the pages."""
    from importlib.resources import files  # slow to load, and for errors only

    text = files("applier").joinpath("error_catalogue.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    shared = {row[0]: row[1] for row in rows if row[0].startswith("@")}
    found = {}
    for code, title, *texts in rows[len(shared) :]:
        meaning, next_step = (shared.get(text, text) for text in texts)
        number = code.removeprefix("MY-")
        found[code] = Situation(code, title, meaning, next_step.replace("{number}", number))
    return found


def situation(code: str) -> Situation:
    """The row of a code; for a number without one, the general words under its code."""
    known = catalogue()
    return known[code] if code in known else replace(known[GENERAL], code=code)
