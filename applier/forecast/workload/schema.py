"""What the readers of a log know of the replica's tables, and how it finds their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from applier.forecast.inventory.facts import TableFacts
from applier.forecast.workload.row_places import RowPlaces
from applier.forecast.workload.transaction_load import Columns
from lookup.decision import decide
from lookup.strategies import Decision
from lookup.table import Key
from lookup.versions import ServerRules


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of the replica, and the rules it finds rows by: which key's values are worth
    counting. `has_places`: the place of each row counts, since the buffer pool does not hold the
    tables all."""

    facts: Mapping[str, TableFacts]
    rules: ServerRules
    row_search: frozenset[str] | None = None
    has_places: bool = False

    def places_of(self, table: str, kind: str, columns: Columns) -> RowPlaces | None:
        """Who knows the places of rows of these events; None where nobody asks for them."""
        facts = self.facts.get(table) if self.has_places else None
        if facts is None:
            return None
        if kind == "write":
            return RowPlaces(facts, facts.definition.primary)
        return RowPlaces(facts, self._decision(facts, columns).key)

    def key_of(self, table: str, columns: Columns) -> Key | None:
        """The key that may name several rows; None for one that names one, and for a scan."""
        decision = self.decision_of(table, columns)
        return None if decision is None else decision.key

    def decision_of(self, table: str, columns: Columns) -> Decision | None:
        """How a replica finds rows by a key that may name several; None where it does not."""
        facts = self.facts.get(table)
        if facts is None:
            return None
        decision = self._decision(facts, columns)
        if (
            decision.key is None
            or decision.key_class != "other"
            or not set(decision.key.columns) <= set(columns)
        ):
            return None
        return decision

    def _decision(self, facts: TableFacts, columns: Columns) -> Decision:
        """The key and algorithm for events whose before images have these columns."""
        definition = facts.definition
        local = tuple(at for at in columns if at < len(definition.columns))
        return decide(definition, local, self.rules, self.row_search, facts.statistics)
