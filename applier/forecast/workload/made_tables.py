"""Tables that a log makes and nobody else knows, ahead of the reading of the whole: so that a
sample of the log can be asked about them as about others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from applier.errors import InputError
from applier.forecast.inventory.facts import TableFacts
from applier.forecast.workload.followed_definitions import FollowedDefinitions
from applier.forecast.workload.sampled_rows import beginning


def made_tables(
    facts: Mapping[str, TableFacts], files: Sequence[str], server: str
) -> dict[str, TableFacts]:
    """The tables that `facts` lack and the first BEGINNING_BYTES of a log make, by name, each as it
    was at last. Nothing where it cannot be read twice, or at all."""
    definitions = FollowedDefinitions(facts, server)
    with suppress(InputError, OSError):
        for _ in beginning(files, definitions.follow):
            pass
    return {name: one for name, one in definitions.last.items() if name not in facts}
