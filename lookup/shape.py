"""From a table to its shape (`lookup.table_shape`) and back: the kind of its best key, and the
decision for a kind of key.

How a table's keys are chosen is `lookup.decision`'s business: `decision_for` asks it for the
smallest table that has such a key. The shapes' own names can be had from here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache

from lookup.decision import decide
from lookup.strategies import Decision
from lookup.table import Column, Key, KeyPart, TableDefinition
from lookup.table_shape import (
    NO_KEY,
    NULLABLE_UNIQUE,
    OTHER,
    PRIMARY,
    UNIQUE,
    EventShape,
    TableShape,
    cut,
)
from lookup.versions import ServerRules


def shape_of(
    definition: TableDefinition,
    columns: Collection[int],
    rules: ServerRules,
    row_search: frozenset[str] | None = None,
    *,
    rows: float,
    rows_per_value: Callable[[Key], float] | None = None,
    met: Callable[[Key], float] | None = None,
    null_share: float = 0.0,
    identical_rows: float = 1.0,
    row_bytes: float = 0.0,
) -> tuple[TableShape, Decision]:
    """The shape of a real table for events whose before image holds `columns`, and the decision it
    comes from.

    The shape holds for these rules and options: with others the best key may be another one.
    Without `rows_per_value` every value of a key counts as standing in one row. `met`: the same
    over the values that events name, where they are not the mean ones that a server knows.
    """
    decision = decide(definition, columns, rules, row_search, rows_per_value)
    kind = key_kind(definition, decision.key, decision.key_class)
    duplicates, shared = 1.0, met or rows_per_value
    if kind in (OTHER, NULLABLE_UNIQUE) and decision.key is not None and shared is not None:
        duplicates = max(shared(decision.key), 1.0)
    return (
        TableShape(
            rows,
            kind,
            duplicates if kind == OTHER else 1.0,
            null_share if kind in (OTHER, NULLABLE_UNIQUE) else 0.0,
            identical_rows,
            definition.engine,
            unique_keys=sum(key.unique for key in definition.keys),
            columns=len(definition.columns),
            row_bytes=row_bytes,
        ),
        decision,
    )


def key_kind(definition: TableDefinition, key: Key | None, key_class: str) -> str:
    """One of KEY_KINDS for a key of the decision."""
    if key is None:
        return NO_KEY
    return (
        NULLABLE_UNIQUE
        if key_class == "other" and key.unique and definition.is_nullable(key)
        else key_class
    )


def decision_for(
    table: TableShape, rules: ServerRules, row_search: frozenset[str] | None = None
) -> Decision:
    """The decision for events that make the shape's key usable."""
    return _decision(table.key, table.engine, rules, row_search)


@lru_cache(maxsize=1024)
def _decision(
    kind: str, engine: str, rules: ServerRules, row_search: frozenset[str] | None
) -> Decision:
    if kind == UNIQUE and not rules.second_unique_usable:
        kind = NO_KEY
    return decide(_sample(kind, engine), (0, 1), rules, row_search)


@lru_cache(maxsize=256)
def _sample(kind: str, engine: str) -> TableDefinition:
    """The smallest table whose best key is of this kind. A key on a prefix is not promoted to
    primary."""
    prefix = 4 if kind == UNIQUE else None
    name = "PRIMARY" if kind == PRIMARY else "k"
    keys = () if kind == NO_KEY else (Key(name, (KeyPart(0, prefix),), unique=kind != OTHER),)
    first = Column("a", "varchar", 8, nullable=kind == NULLABLE_UNIQUE, charset="latin1")
    return TableDefinition("sample", "sample", (first, Column("b", "int")), keys, engine=engine)


__all__ = ["EventShape", "TableShape", "cut", "decision_for", "key_kind", "shape_of"]
