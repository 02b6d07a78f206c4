"""Transactions that wait to be applied together, as columns of numbers."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from applier.forecast.inventory.pool import PageReads
from applier.forecast.lag.apply_steps import Parts, Turns
from applier.forecast.workload.transaction_load import TransactionLoad

NO_PAGES: array[float] = array("d")


class Gathered:
    """`loads` and, for each of them, its numbers. `pools`: how many of them pages are read from.
    `needs_databases`: whether a clock looks at them."""

    def __init__(self, pools: int, needs_databases: bool) -> None:
        self.needs_databases = needs_databases
        self.database_places: dict[str, int] = {}
        self.domain_places: dict[int, int] = {}
        self._pools = pools
        self.clear()

    def __len__(self) -> int:
        return len(self.loads)

    def clear(self) -> None:
        """Forgets all of them."""
        self.loads: list[TransactionLoad] = []
        self.turns = Turns(array("d"), array("d"), *(array("q") for _ in range(10)))
        self.price: array[int] = array("q")
        self.row_bytes: array[int] = array("q")
        self.pages = [tuple(array("d") for _ in PageReads._fields) for _ in range(self._pools)]

    def part(self, price: int, row_bytes: int) -> None:
        """A part of the next transaction."""
        self.price.append(price)
        self.row_bytes.append(row_bytes)

    def reads(self, pool: int, found: Sequence[PageReads]) -> None:
        """The pages that the parts of the next transaction read from one of the pools."""
        values_of_columns = zip(*found, strict=True)  # none where there are no parts
        for column, values in zip(self.pages[pool], values_of_columns, strict=False):
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

    def parts(self, pool: int | None) -> Parts:
        """The parts, with the pages that this pool does not hold; None where none is read."""
        none = (NO_PAGES,) * len(PageReads._fields)
        return Parts(self.price, self.row_bytes, *(none if pool is None else self.pages[pool]))
