"""What samples of a log show of the tables that it changes, before the whole is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from applier.forecast.inventory.facts import TableFacts
from applier.forecast.inventory.value_counts import (
    Counted,
    CountRows,
    TableKey,
    with_value_counts,
)
from applier.forecast.workload.found_by import FoundBy
from applier.forecast.workload.index_changes import with_index_changes
from applier.forecast.workload.made_tables import made_tables
from applier.forecast.workload.own_rows import with_own_rows
from applier.forecast.workload.own_values import with_own_values
from applier.forecast.workload.schema import Schema


class Learned(NamedTuple):
    """The tables of a schema and those that the log makes (`made`) with what was learned of them,
    what is to be said of it, and the keys that nobody could count."""

    facts: dict[str, TableFacts]
    made: dict[str, TableFacts]
    said: list[str]
    uncounted: list[TableKey]


def learned(
    schema: Schema, files: Sequence[str], count_rows: CountRows | None, *, follows_ddl: bool
) -> Learned:
    """Of the tables of `schema`, whose rows `count_rows` counts, and where somebody `follows_ddl`
    of those that the log makes. That the log itself wrote the rows of these goes without saying."""
    if not schema.facts and not follows_ddl:
        return Learned({}, {}, [], [])
    known, changed = _sampled(schema, files, count_rows)
    made = {}
    if follows_ddl and not changed <= schema.facts.keys():
        made = made_tables(schema.facts, files, schema.rules.name)
    if not made:
        return Learned(known.facts, {}, known.said, known.uncounted)
    new, _ = _sampled(replace(schema, facts=made), files, None)
    return Learned(known.facts, new.facts, known.said, [*known.uncounted, *new.uncounted])


def _sampled(
    schema: Schema, files: Sequence[str], count_rows: CountRows | None
) -> tuple[Counted, frozenset[str]]:
    """What is known of the tables then, and the names of those that the log changes."""
    found_by = FoundBy(schema)
    sampled = with_index_changes(schema.facts, files, found_by)
    facts, said = with_own_rows(sampled.facts, files)
    counted = with_value_counts(facts, found_by.values, count_rows)
    counted = with_own_values(counted, replace(schema, facts=counted.facts), files)
    return counted._replace(said=[*counted.said, *said]), sampled.changed
