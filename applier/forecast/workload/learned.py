"""What samples of a log show of the tables that it changes, before the whole is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from applier.forecast.inventory.value_counts import Counted, CountRows, with_value_counts
from applier.forecast.workload.found_by import FoundBy
from applier.forecast.workload.index_changes import with_index_changes
from applier.forecast.workload.made_tables import made_tables
from applier.forecast.workload.own_rows import with_own_rows
from applier.forecast.workload.own_values import with_own_values
from applier.forecast.workload.schema import Schema

NOTHING = Counted({}, [], [])


def learned(schema: Schema, files: Sequence[str], count_rows: CountRows | None = None) -> Counted:
    """Of the tables of `schema`, whose rows `count_rows` counts."""
    found_by = FoundBy(schema)
    sampled, said = with_own_rows(with_index_changes(schema.facts, files, found_by), files)
    counted = with_value_counts(sampled, found_by.values, count_rows)
    counted = with_own_values(counted, replace(schema, facts=counted.facts), files)
    return counted._replace(said=[*counted.said, *said])


def learned_of_made(schema: Schema, files: Sequence[str]) -> Counted:
    """Of the tables that a log makes and `schema` lacks. That the log itself wrote their rows goes
    without saying."""
    made = made_tables(schema.facts, files, schema.rules.name)
    return learned(replace(schema, facts=made), files)._replace(said=[]) if made else NOTHING
