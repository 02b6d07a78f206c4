"""What a row of an error catalogue says, and the groups that codes fall into."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Situation:
    """What an error's page says. `next_step` is what the line of an error ends with when its place
    in the program knows nothing better."""

    code: str
    title: str
    meaning: str
    next_step: str
