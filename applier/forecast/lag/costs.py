"""What a forecast found of tables and of the transactions that take longest."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from applier.forecast.lag.apply_steps import Charges
from applier.forecast.workload.transaction_load import TransactionLoad
from lookup.strategies import NOT_NEEDED

WORST = 10


@dataclass(slots=True)
class TableCost:
    """What one table costs in one scenario, in seconds. `lag` is the highest with which one of its
    transactions was committed."""

    table: str
    seconds: float = 0.0
    lookup: float = 0.0
    events: int = 0
    rows: int = 0
    reads: float = 0.0
    page_reads: float = 0.0
    lag: float = 0.0
    algorithms: dict[str, float] = field(default_factory=dict)

    def as_dict(self, total: float) -> dict[str, Any]:
        """For JSON; `total` seconds are those of all tables."""
        return {
            "table": self.table,
            "seconds": self.seconds,
            "share": self.seconds / total if total else 0.0,
            "lookup_seconds": self.lookup,
            "events": self.events,
            "rows": self.rows,
            "rows_read": self.reads,
            "page_reads": self.page_reads,
            "max_lag_seconds": self.lag,
            "algorithms": sorted(self.algorithms, key=lambda name: -self.algorithms[name]),
        }


@dataclass(frozen=True, slots=True)
class WorstTransaction:
    """A transaction and what it takes. `commit_time` is the source's, `lag` that with which the
    replica commits it.

    `tables`: the one that takes longest comes first. `statement`: the beginning of the first
    statement in the log's text, if any.
    """

    file: str
    position: int
    gtid: str | None
    commit_time: float
    seconds: float
    lookup: float
    lag: float
    rows: int
    events: int
    tables: tuple[str, ...]
    statement: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "file": self.file,
            "pos": self.position,
            "gtid": self.gtid,
            "commit_time": self.commit_time,
            "seconds": self.seconds,
            "lookup_seconds": self.lookup,
            "lag_seconds": self.lag,
            "rows": self.rows,
            "events": self.events,
            "tables": list(self.tables),
            "statement": self.statement,
        }


class TableCharges:
    """What each table has cost so far; `numbers` is what `apply_steps.charge` adds to."""

    def __init__(self) -> None:
        self.numbers = Charges(*(array("d") for _ in Charges._fields))
        self._tables: dict[str, int] = {}
        self._pairs: dict[tuple[str, str], int] = {}

    def place(self, table: str) -> int:
        """A table's place."""
        place = self._tables.get(table)
        if place is None:
            place = self._tables[table] = len(self._tables)
            for column in self.numbers[:-1]:
                column.append(0.0)
        return place

    def pair(self, table: str, algorithm: str) -> int:
        """The place of a table's algorithm, -1 where rows need not be found."""
        if algorithm == NOT_NEEDED:
            return -1
        pair = self._pairs.get((table, algorithm))
        if pair is None:
            pair = self._pairs[table, algorithm] = len(self._pairs)
            self.numbers.by_algorithm.append(0.0)
        return pair

    @property
    def count(self) -> int:
        """How many tables there are."""
        return len(self._tables)

    @property
    def names(self) -> list[str]:
        """The table of each place."""
        return list(self._tables)

    def costs(self) -> dict[str, TableCost]:
        """The tables, in the order in which the log came to them."""
        found = {}
        for table, at in self._tables.items():
            seconds, lookup, reads, page_reads, events, rows, lag = (
                one[at] for one in self.numbers[:-1]
            )
            found[table] = TableCost(
                table, seconds, lookup, int(events), int(rows), reads, page_reads, lag
            )
        for (table, algorithm), at in self._pairs.items():
            found[table].algorithms[algorithm] = self.numbers.by_algorithm[at]
        return found


class WorstTransactions:
    """Keeps those that take longest; the first ones of equals."""

    def __init__(self) -> None:
        self._kept: list[tuple[float, int, WorstTransaction]] = []
        self._count = 0

    @property
    def threshold(self) -> float:
        """What a transaction has to take longer than."""
        return self._kept[0][0] if len(self._kept) == WORST else -1.0

    def candidates(self, seconds: Sequence[float]) -> list[int]:
        """The places of those that may have to be kept."""
        threshold = self.threshold
        return [at for at, value in enumerate(seconds) if value > threshold]

    def keep(
        self,
        load: TransactionLoad,
        seconds: float,
        lookup: float,
        lag: float,
        by_table: Mapping[str, float],
    ) -> None:
        """Keeps a transaction; `by_table` is what each table takes of it."""
        tables = tuple(sorted(by_table, key=lambda table: -by_table[table]))
        worst = WorstTransaction(
            load.file, load.position, load.gtid, load.commit_time, seconds, lookup, lag, load.rows,
            load.rows_events, tables,
            load.statement,
        )  # fmt: skip
        self._count += 1
        item = (seconds, -self._count, worst)
        if len(self._kept) < WORST:
            heapq.heappush(self._kept, item)
        else:
            heapq.heapreplace(self._kept, item)

    def found(self) -> list[WorstTransaction]:
        """The longest first."""
        return [item for _, _, item in sorted(self._kept, key=lambda one: (-one[0], -one[1]))]
