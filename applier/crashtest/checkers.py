"""Two checkers that know nothing of each other, and the verdict of both.

The ledger checker counts pieces of work: an acknowledged one must not be missing, none may be there
twice. The content checker compares the data with those of a run without a crash. A wrong ledger
with right data is a failure (a transaction that was silently executed twice), and so are wrong data
with a right ledger (a transaction of which a part is missing).

Not checked: the order of independent pieces of work, and what a reader could have seen between
crash and recovery. Of several equal rows, one that was not deleted looks like one that was inserted
twice, and is taken for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from applier.crashtest.contract import CannotStart, State
from applier.errors import ReplicationError

SHOWN = 3
"""Pieces of work that a message names."""
REEXECUTION_ERRORS = frozenset({1032, 1062})
"""ER_KEY_NOT_FOUND and ER_DUP_ENTRY: how strict row-based replication notices that a transaction
was executed before."""


class Verdict(StrEnum):
    """What became of the data."""

    CONSISTENT = "consistent"
    REEXECUTES = "re-executes"
    """A piece of work, or a part of one, is executed twice or unasked: silently, or it stops with a
    duplicate key (1062) or a row that is not there (1032)."""
    LOSES = "loses rows"
    CANNOT_START = "cannot start"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a state is worth, and in words what is wrong with it."""

    verdict: Verdict
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.verdict}: {self.detail}" if self.detail else str(self.verdict)


CONSISTENT = Judgement(Verdict.CONSISTENT)


def check_ledger(state: State, expected: State, acknowledged: Collection[Hashable]) -> Judgement:
    """Each piece of work once; `acknowledged` ones are named first when they are missing.

    One that was not expected, while none is missing, is a part of another that came again within
    its transaction: `judge` asks the data whether anything is lost.
    """
    counts = Counter(state.applied)
    twice = [work for work, count in counts.items() if count > 1]
    if twice:
        return Judgement(Verdict.REEXECUTES, f"executed {counts[twice[0]]} times: {_named(twice)}")
    lost = [work for work in acknowledged if work not in counts]
    if lost:
        return Judgement(Verdict.LOSES, f"acknowledged and not there: {_named(lost)}")
    missing = [work for work in expected.applied if work not in counts]
    if missing:
        return Judgement(Verdict.LOSES, f"never executed: {_named(missing)}")
    unknown = counts.keys() - set(expected.applied)
    if unknown:
        return Judgement(
            Verdict.REEXECUTES,
            f"executed, but not in the workload: {_named(sorted(unknown, key=repr))}",
        )
    return CONSISTENT


def check_content(state: State, expected: State) -> Judgement:
    """The data of a run without a crash. Rows that are all there, some of them too often, were
    inserted twice; anything else is a loss."""
    if state.content == expected.content:
        return CONSISTENT
    tables = _too_often(state.content, expected.content)
    if tables:
        return Judgement(
            Verdict.REEXECUTES,
            f"rows are there more often than in a run without a crash: {_named(tables)}",
        )
    return Judgement(Verdict.LOSES, "the data differ from those of a run without a crash")


def _too_often(found: Any, expected: Any) -> list[str]:
    """The tables with more copies of their rows than there should be, where that is all that is
    wrong; [] for content of another form than table -> list of rows."""
    if not (_is_tables(found) and _is_tables(expected)) or found.keys() != expected.keys():
        return []
    try:
        counts = {table: (Counter(found[table]), Counter(rows)) for table, rows in expected.items()}
    except TypeError:  # rows that cannot be counted
        return []
    if any(has.keys() != should.keys() or should - has for has, should in counts.values()):
        return []
    return [str(table) for table, (has, should) in counts.items() if has != should]


def _is_tables(content: Any) -> bool:
    return isinstance(content, Mapping) and all(isinstance(rows, list) for rows in content.values())


def judge(
    found: State | Exception, expected: State, acknowledged: Collection[Hashable]
) -> Judgement:
    """The verdict on one recovery: its state, or what it raised."""
    if isinstance(found, Exception):
        return _judge_error(found)
    ledger = check_ledger(found, expected, acknowledged)
    if ledger.verdict is Verdict.CONSISTENT:
        return check_content(found, expected)
    if found.content == expected.content:
        return Judgement(ledger.verdict, f"{ledger.detail}, silently: the data are the same")
    if ledger.verdict is Verdict.REEXECUTES and len(set(found.applied)) == len(
        found.applied
    ):  # unasked; what came twice explains any data
        content = check_content(found, expected)
        if content.verdict is Verdict.LOSES:
            return Judgement(Verdict.LOSES, f"{ledger.detail}; {content.detail}")
    return ledger


def _judge_error(error: Exception) -> Judgement:
    number = error.number if isinstance(error, CannotStart | ReplicationError) else None
    verdict = Verdict.REEXECUTES if number in REEXECUTION_ERRORS else Verdict.CANNOT_START
    known = isinstance(error, CannotStart | ReplicationError)
    return Judgement(verdict, str(error) if known else f"{type(error).__name__}: {error}")


def _named(work: Collection[Hashable]) -> str:
    names = [str(piece) for piece in work]
    return ", ".join(names[:SHOWN]) + (
        f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    )
