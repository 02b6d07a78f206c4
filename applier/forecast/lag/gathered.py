"""Transactions that wait to be applied together, as columns of numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence

from applier.forecast.inventory.pool import PageReads
from applier.forecast.lag.apply_steps import Parts, Turns
from applier.forecast.prices.scenario import Scenario
from applier.forecast.workload.transaction_load import TransactionLoad

NO_PAGES: array[float] = array("d")


class Gathered:
    """`loads` and, for each of them, its numbers. `needs_databases`: whether a clock looks at
    them."""

    def __init__(self, works: Iterable[Scenario], needs_databases: bool) -> None:
        self.needs_databases = needs_databases
        self.database_places: dict[str, int] = {}
        self.domain_places: dict[int, int] = {}
        self._works = tuple(works)
        self.clear()

    def __len__(self) -> int:
        return len(self.loads)

    def clear(self) -> None:
        """Forgets all of them."""
        self.loads: list[TransactionLoad] = []
        self.turns = Turns(array("d"), array("d"), *(array("q") for _ in range(10)))
        self.price: array[int] = array("q")
        self.row_bytes: array[int] = array("q")
        self.pages = {work: tuple(array("d") for _ in PageReads._fields) for work in self._works}

    def part(self, price: int, row_bytes: int) -> None:
        """A part of the next transaction."""
        self.price.append(price)
        self.row_bytes.append(row_bytes)

    def reads(self, found: Mapping[Scenario, Sequence[PageReads]]) -> None:
        """The pages that the parts of the next transaction read, for each pool."""
        for work, reads in found.items():
            values_of_columns = zip(*reads, strict=True)  # none where there are no parts
            for column, values in zip(self.pages[work], values_of_columns, strict=False):
                column.extend(values)

    def transaction(self, load: TransactionLoad, arrival: float, base: float) -> None:
        """The transaction of these parts. `base`: seconds besides rows."""
        turns = self.turns
        self.loads.append(load)
        turns.arrival.append(arrival)
        turns.base.append(base)
        turns.events.append(load.rows_events)
        turns.last_committed.append(load.last_committed)
        turns.sequence_number.append(load.sequence_number)
        marks = load.marks
        turns.domain.append(self.domain_places.setdefault(marks.domain, len(self.domain_places)))
        turns.commit_id.append(marks.commit_id)
        turns.flags.append(marks.flags)
        turns.log_bytes.append(load.log_bytes)
        turns.part_end.append(len(self.price))
        if self.needs_databases:
            places = self.database_places
            turns.databases.extend(places.setdefault(name, len(places)) for name in load.databases)
        turns.database_end.append(len(turns.databases))

    def parts(self, work: Scenario | None) -> Parts:
        """The parts, with the pages that this pool does not hold; None where none is read."""
        none = (NO_PAGES,) * len(PageReads._fields)
        return Parts(self.price, self.row_bytes, *(self.pages.get(work, none) if work else none))
