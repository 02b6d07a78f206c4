"""How a replica finds the rows of one table: under each server version and row image, with what one
change reads.

The levels of --fail-on are rows of LEVELS. A table stands as its worst version stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lookup.cost import expected
from lookup.decision import Explanation, explain
from lookup.reasons import key_sentence, nullable_sentence, spatial_sentence
from lookup.shape import key_kind, shape_of
from lookup.table import BLOB_TYPES, Key, TableDefinition
from lookup.table_shape import NULLABLE_UNIQUE, EventShape
from lookup.versions import NEWEST, ServerRules

if TYPE_CHECKING:
    from applier.forecast.inventory.facts import TableFacts
    from applier.tables.suggestion import Duplicated, Suggestion

IMAGES = ("FULL", "MINIMAL", "NOBLOB")
MANY_ROWS = 10
"""Rows read for one changed row from which on a table counts as `many-rows`."""
ONE_CHANGE = EventShape("delete")


def before_columns(definition: TableDefinition, image: str) -> tuple[int, ...]:
    """The columns of the before image that a source with the same table writes
    (`mark_columns_per_binlog_row_image`, 9.7)."""
    everything = tuple(range(len(definition.columns)))
    if image == "FULL" or definition.primary is None:
        return everything
    key = set(definition.primary.columns)
    if image == "MINIMAL":
        return tuple(sorted(key))
    return tuple(
        at for at in everything if at in key or definition.columns[at].type not in BLOB_TYPES
    )


@dataclass(frozen=True)
class Case:
    """One table under one server version and row image. The server decides the same way for UPDATE
    and DELETE."""

    facts: TableFacts
    rules: ServerRules
    row_search: frozenset[str] | None
    image: str
    explanation: Explanation
    suggestion: Suggestion | None

    @property
    def definition(self) -> TableDefinition:
        """The table."""
        return self.facts.definition

    @property
    def server(self) -> str:
        """The name of the version."""
        return self.rules.name

    @property
    def finds_one_row(self) -> bool:
        """Whether a unique key leads to each row."""
        return self.explanation.decision.by_unique_key

    @property
    def finds_nothing(self) -> bool:
        """Whether the key leads to no row at all, which stops a replica."""
        key = self.explanation.decision.key
        return key is not None and key.kind == "spatial"

    def reads(self) -> str:
        """What one row of an event costs to find, in words."""
        if self.finds_nothing:
            return "no row is found: error 1032"
        strategy = self.explanation.decision.strategy
        assert strategy is not None
        return strategy.reads_text

    def reads_per_change(self) -> float | None:
        """Rows that a DELETE of one row reads, on average over the table; None where the numbers
        are not known."""
        if self.finds_one_row:
            return 1.0
        if self.finds_nothing:
            return None
        key, rows = self.explanation.decision.key, self.facts.rows
        if key is None and rows is None:
            return None
        if key is not None and not self.facts.known(key):
            return None
        shape, _ = shape_of(
            self.definition, before_columns(self.definition, self.image), self.rules,
            self.row_search,
            rows=rows or 1.0, rows_per_value=statistics_of(self.facts),
            null_share=self._null_share(key),
        )  # fmt: skip
        return expected(shape, ONE_CHANGE, self.rules, self.row_search).counters.rows_read

    def _null_share(self, key: Key | None) -> float:
        """Of a nullable unique key all NULLs count as one value, and no other value occurs
        twice."""
        if key is None or not key.unique:
            return 0.0
        rows, duplicates = self.facts.rows or 0.0, self.facts.rows_per_value(key)
        return (rows - rows / duplicates + 1) / rows if rows and duplicates > 1 else 0.0

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of --fail-on at which the table fails."""
        return tuple(name for name, (fails, _) in LEVELS.items() if fails(self))

    @property
    def weight(self) -> float:
        """For the order: rows read for one change. A scan of a table of unknown size comes before
        all others, and what stops a replica."""
        if self.finds_nothing:
            return math.inf
        reads = self.reads_per_change()
        if reads is not None:
            return reads
        return math.inf if self.explanation.decision.key is None else 1.0

    @property
    def is_healthy(self) -> bool:
        """Whether there is nothing to mend. ARCHIVE and BLACKHOLE tables are: no row of theirs is
        looked up."""
        return self.finds_one_row or self.suggestion is None

    def why(self) -> str:
        """One sentence about the one key that is used, or about why no key is."""
        decision = self.explanation.decision
        key = decision.key
        if key is None:
            return self._why_no_key()
        if self.finds_one_row:
            return key_sentence(self.definition, decision, self.rules)
        if key_kind(self.definition, key, decision.key_class) == NULLABLE_UNIQUE:
            return nullable_sentence(self.definition, key)
        if key.kind == "spatial":
            return spatial_sentence(key)
        if not self.facts.known(key):
            return f"Key `{key.name}` is not unique; how many rows share a value is not known."
        rows = number(self.facts.rows_per_value(key))
        return (
            f"Key `{key.name}` is not unique: a value occurs in {rows}"
            f" row{'s' * (rows != '1')} on average."
        )

    def _why_no_key(self) -> str:
        if not self.definition.keys:
            return "The table has no key."
        first = self.explanation.rejections[0]
        return f"No key is used. `{first.key.name}`: {first.reason}."

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        decision = self.explanation.decision
        return {
            "table": self.definition.full_name,
            "server": self.server,
            "row_image": self.image,
            "statements": {
                "insert": "not needed",
                "update": decision.algorithm,
                "delete": decision.algorithm,
            },
            "algorithm": decision.algorithm,
            "key": decision.key.name if decision.key else None,
            "reads": self.reads(),
            "rows": self.facts.rows,
            "rows_read_per_change": self.reads_per_change(),
            "levels": self.levels,
            "not_used": {
                rejection.key.name: rejection.reason for rejection in self.explanation.rejections
            },
            "suggestion": None if self.suggestion is None else self.suggestion.as_dict(),
        }


def _key(case: Case) -> Key | None:
    return case.explanation.decision.key


def _reads_many(case: Case) -> bool:
    reads = case.reads_per_change()
    return case.weight >= MANY_ROWS if reads is None else reads >= MANY_ROWS


LEVELS: dict[str, tuple[Callable[[Case], bool], str]] = {
    "no-key": (
        lambda case: not case.is_healthy and case.explanation.decision.key is None,
        "UPDATE and DELETE use no key and scan the table",
    ),
    "not-unique": (
        lambda case: not case.is_healthy and case.explanation.decision.key is not None,
        "the key that is used is not unique, or may hold NULL",
    ),
    "many-rows": (
        lambda case: not case.is_healthy and _reads_many(case),
        f"one change reads {MANY_ROWS} rows or more, or scans a table of unknown size",
    ),
    "no-primary-key": (
        lambda case: not any(key.is_primary for key in case.definition.keys),
        "the table has no PRIMARY KEY, whatever other key is used",
    ),
}
"""Level of --fail-on -> (whether a table fails at it, what it means)."""
SHOWN = frozenset({"no-key", "not-unique", "many-rows"})
"""Levels that are shown without being asked for."""


@dataclass(frozen=True)
class TableVerdict:
    """What is to be said of one table, whatever the versions: its worst case."""

    cases: tuple[Case, ...]

    @property
    def definition(self) -> TableDefinition:
        """The table."""
        return self.cases[0].definition

    @property
    def facts(self) -> TableFacts:
        """Its numbers."""
        return self.cases[0].facts

    @property
    def worst(self) -> Case:
        """The case that reads most."""
        return max(
            self.cases,
            key=lambda case: (
                not case.is_healthy,
                case.finds_nothing,
                case.weight,
                case.server == NEWEST,
            ),
        )

    @property
    def levels(self) -> frozenset[str]:
        """All levels at which any version fails."""
        return frozenset(level for case in self.cases for level in case.levels)

    @property
    def why(self) -> str:
        """The worst case's sentence, with its versions where others differ."""
        worst = self.worst
        servers = list(
            dict.fromkeys(case.server for case in self.cases if _key(case) == _key(worst))
        )
        every = len({case.server for case in self.cases})
        return worst.why() if len(servers) == every else f"{', '.join(servers)}: {worst.why()}"

    @property
    def fix(self) -> Suggestion | None:
        """For the newest version that needs one."""
        found = [case for case in self.cases if case.suggestion is not None and not case.is_healthy]
        return (
            max(found, key=lambda case: (case.server == NEWEST, case is self.worst)).suggestion
            if found
            else None
        )

    @property
    def order(self) -> tuple[bool, float, str]:
        """Sorts the most dangerous table first."""
        return self.worst.is_healthy, -self.worst.weight, self.definition.full_name


def verdicts(
    facts: Sequence[TableFacts],
    servers: Sequence[ServerRules],
    images: Sequence[str],
    options: frozenset[str] | None,
    duplicated: dict[str, Duplicated],
) -> list[TableVerdict]:
    """The tables, the most dangerous one first. `duplicated` looks at the rows of tables that have
    any."""
    found = [
        TableVerdict(
            tuple(cases(one, servers, images, options, duplicated.get(one.definition.full_name)))
        )
        for one in facts
    ]
    return sorted(found, key=lambda one: one.order)


def cases(
    facts: TableFacts,
    servers: Sequence[ServerRules],
    images: Sequence[str],
    options: frozenset[str] | None,
    duplicated: Duplicated | None = None,
) -> Iterator[Case]:
    """A table under each server version and row image."""
    from applier.tables.suggestion import suggestion

    definition, statistics = facts.definition, statistics_of(facts)
    for rules in servers:
        suggested = suggestion(definition, rules, options, duplicated)
        for image in images:
            explanation = explain(
                definition, before_columns(definition, image), rules, options, statistics
            )
            yield Case(facts, rules, options, image, explanation, suggested)


def statistics_of(facts: TableFacts) -> Callable[[Key], float]:
    """Key -> rows per value as the server has it: 0 where it has no statistics."""
    return lambda key: facts.duplicates.get(key.name, 0.0)


def number(value: float | None) -> str:
    """For people; "?" for a number that is not known."""
    if value is None or math.isinf(value):
        return "?"
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:,.1f}"
