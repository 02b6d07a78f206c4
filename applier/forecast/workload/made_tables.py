"""Tables that a log makes and nobody else knows, ahead of the reading of the whole: so that a
sample of the log can be asked about them as about others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from applier.binlog.events import Query
from applier.binlog.header import Event
from applier.binlog.reader import LogReader
from applier.errors import InputError
from applier.forecast.inventory.facts import TableFacts
from applier.forecast.workload.followed_definitions import FollowedDefinitions
from applier.forecast.workload.sampled_rows import (
    STRETCH_BYTES,
    beginning,
    can_be_read_again,
    rows_events,
    stretches,
)
from applier.forecast.workload.table_fates import table_fates


def made_tables(
    facts: Mapping[str, TableFacts], files: Sequence[str], server: str
) -> dict[str, TableFacts]:
    """The tables that `facts` lack and the first BEGINNING_BYTES of a log make, by name, each as it
    was at last. Nothing where a sample of the log changes no such table, or where it cannot be read
    twice, or at all."""
    readable = [file for file in files if can_be_read_again(file)]
    definitions = FollowedDefinitions(facts, server)

    def follow(event: Event, query: Query) -> None:
        definitions.follow(event, query, table_fates(query))

    with suppress(InputError, OSError):
        if _sampled_tables(readable) <= facts.keys():
            return {}
        for _ in beginning(readable, follow):
            pass
    return {name: one for name, one in definitions.last.items() if name not in facts}


def _sampled_tables(files: Sequence[str]) -> set[str]:
    """The tables that a sample of the log changes. Raises InputError, OSError."""
    found = set[str]()
    for path, start in stretches(files):
        reader = LogReader([path], start_position=start)
        found.update(table_map.full_name for *_, table_map in rows_events(reader, STRETCH_BYTES))
    return found
