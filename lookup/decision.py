"""Which key and which algorithm one rows event gets, and why the other keys were passed over.

Taken anew for each rows event, since the columns of its before image decide
(`decide_row_lookup_algorithm_and_key`, sql/log_event.cc 5.6, 5.7 and 8.0; hard-wired from 8.4 on;
`find_key`, sql/log_event_server.cc MariaDB 10.11). What there is to choose from, and when each is
chosen, is in `lookup.strategies`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from lookup.key_choice import KeyQuestion
from lookup.strategies import STRATEGIES, Decision
from lookup.table import Key, TableDefinition
from lookup.versions import ServerRules


@dataclass(frozen=True, slots=True)
class Rejection:
    """A key that was not taken, and the reason in words. `is_unusable`: it could not have been;
    else another one came first."""

    key: Key
    reason: str
    is_unusable: bool = True


@dataclass(frozen=True, slots=True)
class Explanation:
    """How rows are found, and why not in another way."""

    decision: Decision
    rejections: tuple[Rejection, ...]


def decide(
    table: TableDefinition,
    columns: Collection[int],
    rules: ServerRules,
    row_search: frozenset[str] | None = None,
    rows_per_value: Callable[[Key], float] | None = None,
) -> Decision:
    """The decision for an UPDATE or DELETE event whose before image holds `columns` (local
    positions, from 0).

    `row_search` is slave_rows_search_algorithms (default: the version's; without effect where a
    version has no such variable). `rows_per_value` gives the key statistics that MariaDB compares;
    without them the first usable key stands for the best. No row is read.
    """
    question = _question(table, columns, rules, row_search, rows_per_value)
    choices = ((strategy, strategy.choose(question)) for strategy in STRATEGIES)
    return next(Decision(strategy, *choice) for strategy, choice in choices if choice is not None)


def _question(
    table: TableDefinition,
    columns: Collection[int],
    rules: ServerRules,
    row_search: frozenset[str] | None,
    rows_per_value: Callable[[Key], float] | None,
) -> KeyQuestion:
    asked = row_search is not None and rules.row_search_selectable
    options = row_search if asked and row_search is not None else rules.row_search
    return KeyQuestion(table, columns, rules, options, rows_per_value)


def explain(
    table: TableDefinition,
    columns: Collection[int],
    rules: ServerRules,
    row_search: frozenset[str] | None = None,
    rows_per_value: Callable[[Key], float] | None = None,
) -> Explanation:
    """The decision, and the reason against each key that was not taken, in the server's key order.
    Arguments as for `decide`."""
    decision = decide(table, columns, rules, row_search, rows_per_value)
    question = _question(table, columns, rules, row_search, rows_per_value)
    rejections = []
    for key in table.sorted_keys:
        if key is not decision.key:
            unusable = question.why_unusable(key)
            rejections.append(
                Rejection(key, unusable or _passed_over(decision, rules), unusable is not None)
            )
    return Explanation(decision, tuple(rejections))


def _passed_over(decision: Decision, rules: ServerRules) -> str:
    if decision.key is None:
        return "the option set scans the table whatever keys there are"
    if rules.find_row:
        return f"`{decision.key.name}` is unique or has fewer rows per value"
    return f"`{decision.key.name}` comes first; cardinality is not compared"


def any_column_local(columns: Collection[int], width: int) -> bool:
    """`is_any_column_signaled_for_table`: whether the image holds any column that the local table
    has."""
    return any(column < width for column in columns)


__all__ = ["Decision", "Explanation", "Rejection", "any_column_local", "decide", "explain"]
