"""Why rows events on a table are expensive, in words with the numbers in them; each from the
decision and the formulas of cost.

Two questions. `reasons`: what stands between a table and a lookup that reads one row.
`hash_verdict`: whether HASH_SCAN helps, which it does under two conditions only: (1) no key is
usable, or the rows of one event share key values; (2) one event changes several rows. Both are
computed for the events at hand, and what they come to, in reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from lookup.cost import Expected, expected
from lookup.decision import explain
from lookup.key_choice import NEVER_HASHED_ENGINES
from lookup.shape import shape_of
from lookup.strategies import Decision
from lookup.table import Key, TableDefinition
from lookup.table_shape import (
    NO_KEY,
    NULLABLE_UNIQUE,
    OTHER,
    PRIMARY,
    UNIQUE,
    EventShape,
    TableShape,
)
from lookup.versions import HASH_SCAN, INDEX_SCAN, RULES, TABLE_SCAN, ServerRules

WITHOUT_HASH = frozenset({INDEX_SCAN, TABLE_SCAN})
WITH_HASH = frozenset({INDEX_SCAN, HASH_SCAN})
REFERENCE = RULES["8.0"]
"""Has both ways of finding rows; on other servers the comparison says what the way not taken would
cost."""
FEW_READS = 2.0
"""Reads per row up to which nothing is worth a word."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One fact. `code` is for machines and does not change; `numbers` are those in the text."""

    code: str
    text: str
    key: str | None = None
    numbers: tuple[tuple[str, float], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "code": self.code,
            "text": self.text,
            "key": self.key,
            "numbers": dict(self.numbers),
        }


@dataclass(frozen=True, slots=True)
class HashVerdict:
    """Whether HASH_SCAN helps events of a shape. Reads are per event; `rows_per_value` are rows of
    one event.

    `no_key` or `shared_values` is the first condition, `several_rows` the second.
    """

    no_key: bool
    shared_values: bool
    several_rows: bool
    rows_per_event: float
    rows_per_value: float
    reads_with: float
    reads_without: float

    @property
    def helps(self) -> bool:
        """Whether fewer rows are read with HASH_SCAN than without."""
        return self.reads_with < self.reads_without * (1 - 1e-9)

    @property
    def factor(self) -> float:
        """How many times fewer reads with HASH_SCAN; below 1 it costs more."""
        return self.reads_without / self.reads_with if self.reads_with else 1.0

    @property
    def text(self) -> str:
        """What HASH_SCAN does for these events, and the one reason, in a sentence."""
        reads = (
            f"an event reads {_count(self.reads_with, 'row')} with it and"
            f" {_count(self.reads_without, 'row')} without it."
        )
        if self.helps:
            return f"HASH_SCAN helps: {reads}"
        if self.reads_with > self.reads_without * (1 + 1e-9):
            return f"HASH_SCAN makes it worse: {reads}"
        return f"HASH_SCAN does not help: {self._no_help}"

    @property
    def _no_help(self) -> str:
        if self.no_key and not self.several_rows:
            return "each event changes one row, so each event still scans the table."
        if not self.several_rows:
            return "each event changes one row."
        if not self.no_key and not self.shared_values:
            return "no two rows of an event share a key value."
        return "an event reads as many rows without it."

    def as_dict(self) -> dict[str, Any]:
        """For JSON; numbers as they are, not rounded."""
        return {
            "helps": self.helps,
            "no_key": self.no_key,
            "shared_values": self.shared_values,
            "several_rows": self.several_rows,
            "rows_per_event": self.rows_per_event,
            "rows_per_value": self.rows_per_value,
            "reads_with": self.reads_with,
            "reads_without": self.reads_without,
            "text": self.text,
        }


def hash_verdict(table: TableShape, event: EventShape) -> HashVerdict:
    """Compares INDEX_SCAN,HASH_SCAN with INDEX_SCAN,TABLE_SCAN for updates or deletes of this
    shape.

    With a primary or NOT NULL unique key both are an index scan, and HASH_SCAN changes nothing.
    """
    with_hash = expected(table, event, REFERENCE, WITH_HASH)
    without = expected(table, event, REFERENCE, WITHOUT_HASH)
    is_grouped = with_hash.key != "none" and with_hash.strategy and with_hash.strategy.hashes
    values = with_hash.counters.read_key if is_grouped else event.rows
    per_value = event.rows / max(values, 1.0)
    return HashVerdict(
        no_key=table.key == NO_KEY,
        shared_values=table.key not in (NO_KEY, PRIMARY, UNIQUE) and per_value > 1.005,
        several_rows=event.rows > 1,
        rows_per_event=event.rows,
        rows_per_value=per_value,
        reads_with=with_hash.counters.rows_read,
        reads_without=without.counters.rows_read,
    )


def key_sentence(definition: TableDefinition, decision: Decision, rules: ServerRules) -> str:
    """Which key finds rows, and why that one, in a sentence."""
    if decision.key is None:
        return "No key is used." if definition.keys else "The table has no key."
    word = (
        "promoted"
        if decision.key_class == "primary" and not decision.key.is_primary
        else decision.key_class
    )
    return f"`{decision.key.name}` is used: {_WHY_USED[rules.find_row, word]}"


_WHY_USED = {
    (False, "primary"): "MySQL takes a primary key before any other key.",
    (
        False,
        "promoted",
    ): "it is the first unique key without NULL, which MySQL treats as the primary key.",
    (False, "unique"): "it is the first usable unique key without NULL.",
    (False, "other"): (
        "it is the first usable key in the server's order. MySQL does not compare how many rows a"
        " value has."
    ),
    (True, "primary"): "MariaDB takes the first unique key without NULL.",
    (True, "promoted"): "MariaDB takes the first unique key without NULL.",
    (True, "unique"): "MariaDB takes the first unique key without NULL.",
    (True, "other"): "MariaDB takes the key with the fewest rows per value.",
}
"""(MariaDB's way, class of the key) -> why it is taken."""


def about_used_key(found: Collection[Reason], decision: Decision) -> list[Reason]:
    """The reasons about the one key that is used and about the table; all of them where no key is
    used."""
    if decision.key is None:
        return list(found)
    return [reason for reason in found if reason.key in (None, decision.key.name)]


def reasons(
    definition: TableDefinition,
    columns: Collection[int],
    event: EventShape,
    rules: ServerRules,
    row_search: frozenset[str] | None = None,
    *,
    rows: float,
    rows_per_value: Callable[[Key], float] | None = None,
    met: Callable[[Key], float] | None = None,
    null_share: float = 0.0,
) -> list[Reason]:
    """Why updates or deletes of this shape, with `columns` in their before image, read more than
    the rows they change.

    The cause comes first. Empty where a lookup reads one row, and for a write. `rows_per_value` and
    `met` as `shape_of` takes them.
    """
    if event.kind == "write":
        return []
    shape, decision = shape_of(
        definition,
        columns,
        rules,
        row_search,
        rows=rows,
        rows_per_value=rows_per_value,
        met=met,
        null_share=null_share,
    )
    if decision.by_unique_key:
        return []
    cost = expected(shape, event, rules, row_search)
    found = _of_keys(definition, columns, rules, row_search, rows_per_value)
    found += _of_server(definition, decision, shape, event, cost, rules, row_search)
    found += _of_duplicates(decision, shape, event, cost, rules)
    if decision.hashes and decision.key is None and event.rows < 2:
        found.append(_one_row(cost, event))
    return found


def _of_keys(
    definition: TableDefinition,
    columns: Collection[int],
    rules: ServerRules,
    row_search: frozenset[str] | None,
    rows_per_value: Callable[[Key], float] | None,
) -> list[Reason]:
    """What is wrong with each key, in the server's order of keys."""
    if not definition.keys:
        return [Reason("no key", f"{definition.full_name} has no key.")]
    explanation = explain(definition, columns, rules, row_search, rows_per_value)
    rejected = {id(rejection.key): rejection.reason for rejection in explanation.rejections}
    taken = explanation.decision.key
    found = []
    for key in definition.sorted_keys:
        missing = (
            ()
            if rules.find_row
            else [at for at in definition.actual_key_columns(key) if at not in columns]
        )
        if key.unique and definition.is_nullable(key) and not key.is_functional and not missing:
            found.append(_nullable(definition, key))
        elif id(key) not in rejected:
            if key is taken and key.kind == "spatial":
                found.append(Reason("spatial key", spatial_sentence(key), key.name))
        elif missing:
            names = ", ".join(f"`{definition.columns[at].name}`" for at in missing)
            found.append(
                Reason(
                    "not in the image",
                    f"Key `{key.name}` is not used: the before image lacks {names}.",
                    key.name,
                )
            )
        elif taken is None or not _comes_behind(definition, key, taken):
            found.append(
                Reason(
                    "key not usable",
                    f"Key `{key.name}` is not used: {rejected[id(key)]}.",
                    key.name,
                )
            )
        elif rows_per_value is not None and rows_per_value(key) * FEW_READS < rows_per_value(taken):
            found.append(_better_behind(key, taken, rows_per_value))
    return found


def _comes_behind(definition: TableDefinition, key: Key, taken: Key) -> bool:
    order = definition.sorted_keys
    return order.index(key) > order.index(taken)


def spatial_sentence(key: Key) -> str:
    """What a SPATIAL key does that a server takes for an ordinary one."""
    return (
        f"Key `{key.name}` is SPATIAL: InnoDB finds no row by it, and a replica stops with error"
        " 1032 at the first UPDATE or DELETE."
    )


def _nullable(definition: TableDefinition, key: Key) -> Reason:
    return Reason("nullable unique", nullable_sentence(definition, key), key.name)


def nullable_sentence(definition: TableDefinition, key: Key) -> str:
    """Why a unique key does not find single rows."""
    names = ", ".join(
        f"`{definition.columns[at].name}`" for at in key.columns if definition.columns[at].nullable
    )
    return (
        f"Unique key `{key.name}` may hold NULL in {names}, so the server treats it as a key with"
        " duplicates."
    )


def _better_behind(key: Key, taken: Key, rows_per_value: Callable[[Key], float]) -> Reason:
    chosen, better = rows_per_value(taken), rows_per_value(key)
    text = (
        f"Key `{taken.name}` is used ({_count(chosen, 'row')} per value) because it comes first."
        f" Key `{key.name}` ({_count(better, 'row')} per value) would read less, but the server"
        " does not compare them."
    )
    return Reason(
        "worse key first",
        text,
        key.name,
        (("rows_per_value", chosen), ("rows_per_value_behind", better)),
    )


def _of_server(
    definition: TableDefinition,
    decision: Decision,
    shape: TableShape,
    event: EventShape,
    cost: Expected,
    rules: ServerRules,
    row_search: frozenset[str] | None,
) -> list[Reason]:
    """What the server, its options or the engine forbid, with what that costs."""
    options = (
        row_search if row_search is not None and rules.row_search_selectable else rules.row_search
    )
    found = []
    if not rules.find_row and INDEX_SCAN not in options and definition.primary is not None:
        text = (
            "slave_rows_search_algorithms lacks INDEX_SCAN, so the server does not look up rows by"
            " the primary key."
        )
        found.append(Reason("no index scan", text, definition.primary.name))
    if decision.hashes:
        return found
    never = definition.engine.lower() in NEVER_HASHED_ENGINES
    if not (never or rules.find_row or HASH_SCAN not in options):
        return found
    if never:
        return [
            *found,
            Reason(
                "never hashed",
                f"The server never hashes rows of engine {definition.engine}, which stores none.",
            ),
        ]
    hashed = expected(shape, event, REFERENCE, WITH_HASH).counters.rows_read
    numbers = (("reads", cost.counters.rows_read), ("reads_hashed", hashed))
    compared = (
        f"An event reads {_count(numbers[0][1], 'row')}; with hashing it would read"
        f" {_number(hashed)}."
    )
    if rules.find_row:
        found.append(
            Reason(
                "never hashed",
                f"MariaDB searches for each row separately. {compared}",
                None,
                numbers,
            )
        )
    elif hashed < numbers[0][1]:
        text = (
            "slave_rows_search_algorithms lacks HASH_SCAN, so the server searches for each row"
            f" separately. {compared}"
        )
        found.append(Reason("no hash scan", text, None, numbers))
    return found


def _of_duplicates(
    decision: Decision, shape: TableShape, event: EventShape, cost: Expected, rules: ServerRules
) -> list[Reason]:
    """Many rows with the same key value: what the key is still good for beside a scan of the
    table."""
    if decision.key is None or shape.key not in (OTHER, NULLABLE_UNIQUE):
        return []
    reads = cost.counters.rows_read
    if reads / event.rows <= FEW_READS:
        return []
    group = shape.rows_per_value if shape.key == OTHER else shape.null_share * shape.rows
    scan = expected(
        replace(shape, key=NO_KEY), event, rules, None if rules.find_row else WITH_HASH
    ).counters.rows_read
    numbers = (("rows_per_value", group), ("reads", reads), ("reads_by_scan", scan))
    name, per_row = decision.key.name, reads / event.rows
    what = (
        f"A value of key `{name}` stands in {_count(group, 'row')}"
        if shape.key == OTHER
        else f"{_count(group, 'row')} have NULL in key `{name}`"
    )
    if decision.hashes and reads >= scan / FEW_READS:
        text = (
            f"{what}, so the key does not help: an event reads {_count(reads, 'row')} by it, and"
            f" {_number(scan)} by a scan of the table."
        )
        return [Reason("useless key", text, name, numbers)]
    return [
        Reason(
            "duplicates",
            f"{what}, so the server reads {_count(per_row, 'row')} for each row that it changes.",
            name,
            numbers,
        )
    ]


def _one_row(cost: Expected, event: EventShape) -> Reason:
    per_row = cost.counters.rows_read / event.rows
    text = (
        f"Each event changes one row and scans the table for it, {_count(per_row, 'row')} on"
        " average."
    )
    return Reason("one row per event", text, None, (("reads", per_row),))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.2g}"


def _count(value: float, word: str) -> str:
    return f"{_number(value)} {word}" + ("" if value == 1 else "s")
