"""Which scripts `check` runs: the same all day, others the next day."""

from __future__ import annotations

import random
from collections.abc import Collection
from datetime import date
from hashlib import sha256

from tests.peers.exceptions import Case

SCRIPTS = 200
"""Of a day."""
KNOWN_OF_FOUR = 3
"""So many of four have shown something before."""


def of_the_day(
    known: Collection[Case], others: Collection[Case], day: date, count: int
) -> list[Case]:
    """`count` cases: those that ever showed something in turn, so that some days run all of them,
    and others at random."""
    chosen = _in_turn(known, day, count * KNOWN_OF_FOUR // 4)
    new = sorted(set(others) - set(known))
    return chosen + random.Random(day.isoformat()).sample(new, min(count - len(chosen), len(new)))


def _in_turn(cases: Collection[Case], day: date, count: int) -> list[Case]:
    """Each day goes on where the day before ended. The order mixes servers and folders, and a new
    case moves no other one far."""
    order = sorted(set(cases), key=lambda case: sha256(str(case).encode()).digest())
    first = day.toordinal() * count % max(len(order), 1)
    return (order + order)[first : first + min(count, len(order))]
