"""Which key and which algorithm one rows event gets, and why the other keys were passed over.

Taken anew for each rows event, since the columns of its before image decide
(`decide_row_lookup_algorithm_and_key`, sql/log_event.cc 5.6, 5.7 and 8.0; hard-wired from 8.4 on;
`find_key`, sql/log_event_server.cc MariaDB 10.11).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from lookup.table import Key, TableDefinition, columns_usable
from lookup.versions import HASH_SCAN, INDEX_SCAN, ServerRules

NOT_NEEDED = "not needed"
BY_INDEX = "index scan"
BY_TABLE = "table scan"
HASH_OVER_INDEX = "hash over index"
HASH_OVER_TABLE = "hash over table"

NEVER_HASHED_ENGINES = frozenset({"blackhole"})
"""Engines with HA_READ_OUT_OF_SYNC."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A key that was not taken, and the reason in words. `is_unusable`: it could not have been;
    else another one came first."""

    key: Key
    reason: str
    is_unusable: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """How one rows event finds its rows.

    `algorithm` is NOT_NEEDED, BY_INDEX, BY_TABLE, HASH_OVER_INDEX or HASH_OVER_TABLE, `key` the key
    that is read (None: the table is). `key_class`: "primary", "unique", "other" or "none".
    """

    algorithm: str
    key: Key | None = None
    key_class: str = "none"


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
    without them the first usable key stands for the best.

    The order of the questions is that of `decide_row_lookup_algorithm_and_key` and
    `search_key_in_table` (sql/log_event.cc 5.6 to 8.0), and of `find_key` (sql/log_event_server.cc
    MariaDB 10.11). No row is read.
    """
    if rules.find_row:
        return _mariadb(table, rows_per_value)
    options = (
        row_search if row_search is not None and rules.row_search_selectable else rules.row_search
    )
    if INDEX_SCAN in options:
        key, key_class = _search(table, columns, rules, options, ("primary", "unique"))
        if key is not None:
            return Decision(BY_INDEX, key, key_class)
    if HASH_SCAN in options and table.engine.lower() not in NEVER_HASHED_ENGINES:
        key, key_class = _search(table, columns, rules, options, ("primary", "unique", "other"))
        return Decision(HASH_OVER_INDEX if key else HASH_OVER_TABLE, key, key_class)
    if INDEX_SCAN in options and rules.row_search_selectable:
        key, key_class = _search(table, columns, rules, options, ("primary", "unique", "other"))
        if key is not None:
            return Decision(BY_INDEX, key, key_class)
    return Decision(BY_TABLE)


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
    options = (
        row_search if row_search is not None and rules.row_search_selectable else rules.row_search
    )
    rejections = []
    for key in table.sorted_keys:
        if key is not decision.key:
            unusable = _unusable(table, key, columns, rules, options)
            rejections.append(
                Rejection(key, unusable or _passed_over(decision, rules), unusable is not None)
            )
    return Explanation(decision, tuple(rejections))


def key_class(table: TableDefinition, key: Key) -> str:
    """ "primary", "unique" (unique, no part may be NULL) or "other"; a unique key with a nullable
    part is "other"."""
    if key is table.primary:
        return "primary"
    return "unique" if table.is_unique_not_null(key) else "other"


def _search(
    table: TableDefinition,
    columns: Collection[int],
    rules: ServerRules,
    options: frozenset[str],
    classes: tuple[str, ...],
) -> tuple[Key | None, str]:
    """`search_key_in_table`: class after class, the first usable key in the table's key order. No
    cardinality is compared."""
    for wanted in classes:
        for key in table.sorted_keys:
            if (
                key_class(table, key) == wanted
                and _unusable(table, key, columns, rules, options) is None
            ):
                return key, wanted
    return None, "none"


def _unusable(
    table: TableDefinition,
    key: Key,
    columns: Collection[int],
    rules: ServerRules,
    options: frozenset[str],
) -> str | None:
    """Why a key cannot be used, None when it can."""
    kind = key_class(table, key)
    if kind == "unique" and not rules.second_unique_usable and not rules.find_row:
        return "5.6 looks for a second unique key in temporary tables only"
    if key.kind == "fulltext":
        return "a FULLTEXT key cannot be read in order"
    if key.kind == "spatial" and not rules.spatial_usable:
        return "a SPATIAL key cannot be read in order"
    if key.kind == "hash" and kind == "other":
        return "a HASH key cannot be read in order"
    if not key.enabled:
        return "the key is disabled (ALTER TABLE … DISABLE KEYS)"
    if not key.visible and rules.invisible_skipped and kind != "primary":
        return "the key is invisible"
    if key.multi_valued:
        return "a multi-valued key is never used"
    if key.is_functional and not (rules.functional_needs_index_scan and INDEX_SCAN not in options):
        return "a functional key is never used"
    if not rules.find_row:
        missing = [column for column in table.actual_key_columns(key) if column not in columns]
        if missing:
            names = ", ".join(f"`{table.columns[column].name}`" for column in missing)
            return f"column {names} is not in the before image"
    return None


def _passed_over(decision: Decision, rules: ServerRules) -> str:
    if decision.key is None:
        return "the option set scans the table whatever keys there are"
    if rules.find_row:
        return f"`{decision.key.name}` is unique or has fewer rows per value"
    return f"`{decision.key.name}` comes first; cardinality is not compared"


def _mariadb(table: TableDefinition, rows_per_value: Callable[[Key], float] | None) -> Decision:
    """`find_key`: the image's columns are ignored; a unique key without nullable parts wins, then
    the fewest rows per value."""
    best: Key | None = None
    best_rows = 0.0
    for key in table.sorted_keys:
        if key.kind in ("fulltext", "spatial", "hash") or not key.enabled or key.is_functional:
            continue
        if table.is_unique_not_null(key):
            return Decision(BY_INDEX, key, key_class(table, key))
        rows = rows_per_value(key) if rows_per_value else 0.0
        if best is None or 0 < rows < best_rows:
            best, best_rows = key, rows
    return Decision(BY_INDEX, best, "other") if best else Decision(BY_TABLE)


def any_column_local(columns: Collection[int], width: int) -> bool:
    """`is_any_column_signaled_for_table`: whether the image holds any column that the local table
    has."""
    return any(column < width for column in columns)


__all__ = [
    "BY_INDEX",
    "BY_TABLE",
    "HASH_OVER_INDEX",
    "HASH_OVER_TABLE",
    "NOT_NEEDED",
    "Decision",
    "Explanation",
    "Rejection",
    "any_column_local",
    "columns_usable",
    "decide",
    "explain",
    "key_class",
]
