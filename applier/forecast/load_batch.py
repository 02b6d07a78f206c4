"""Transactions that the kernel summed up at once, and how their rows events count as loads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from applier.binlog.header import Event
from applier.binlog.table_map import TableMap
from applier.binlog.transactions import TransactionKind
from applier.forecast.bulk_loads import Stretch, gtid_text
from applier.forecast.row_counts import Count
from applier.forecast.transaction_load import Applied, LoadShape, TransactionLoad


@dataclass(slots=True)
class LoadPlan:
    """How rows events of one table, kind and shape are counted."""

    table_map: TableMap
    target: LoadShape
    count: Callable[[Event], Count]
    ends_statement: bool
    keys: Callable[[Event], list[int]] | None = None


def add_event(load: TransactionLoad, plan: LoadPlan, count: Count, row_bytes: int) -> None:
    """Adds a rows event to its transaction."""
    applied = load.applied.get(plan.target)
    if applied is None:
        applied = load.applied[plan.target] = Applied(plan.target)
    applied.add(count, row_bytes, plan.ends_statement)
    load.rows += count[0]
    load.rows_events += 1


@dataclass(frozen=True)
class LoadBatch:
    """Plain transactions of one file that follow each other, as the kernel summed them up; each can
    be had as a load."""

    file: str
    stretch: Stretch
    plans: Mapping[int, LoadPlan]

    @cached_property
    def _ends(self) -> list[int]:
        """Where each transaction's events end."""
        ends: list[int] = self.stretch.transactions[:, -1].cumsum().tolist()
        return ends

    def __len__(self) -> int:
        return len(self.stretch.transactions)

    def __iter__(self) -> Iterator[TransactionLoad]:
        first, events = 0, self.stretch.events.tolist()
        for row in self.stretch.transactions.tolist():
            yield self._load(row, events[first : first + row[-1]])
            first += row[-1]

    def __getitem__(self, at: int) -> TransactionLoad:
        first = self._ends[at - 1] if at else 0
        return self._load(
            self.stretch.transactions[at].tolist(),
            self.stretch.events[first : self._ends[at]].tolist(),
        )

    def chosen(self, places: Sequence[int]) -> LoadBatch:
        """Copies of the transactions at these places, ascending; at least one."""
        import numpy as np  # an extra; who has a batch has it

        found = self.stretch
        wanted = np.zeros(len(self), np.bool_)
        wanted[np.asarray(places, np.intp)] = True
        events = found.events[np.repeat(wanted, found.transactions[:, -1])]
        stretch = Stretch(found.position, found.transactions[wanted], events)
        return LoadBatch(self.file, stretch, self.plans)

    def _load(self, row: Sequence[int], events: Sequence[Sequence[int]]) -> TransactionLoad:
        start, end, kind, low, high, number, server_id, before, sequence, stamp, timestamp, _ = row
        load = TransactionLoad(
            self.file, start, self.file, end, gtid_text(kind, low, high, number),
            TransactionKind.TRANSACTION, server_id,
            stamp / 1e6 if stamp else float(timestamp), before, sequence, end - start,
        )  # fmt: skip
        for shape, rows, distinct, row_bytes in events:
            add_event(load, self.plans[shape], (rows, distinct), row_bytes)
        return load


LoadRun = Sequence[TransactionLoad] | LoadBatch
"""Transactions of a log that follow one another, read one by one or at once."""


def chosen(loads: LoadRun, places: Sequence[int]) -> LoadRun:
    """The transactions at these places, ascending; no object is made for those of a batch."""
    if isinstance(loads, LoadBatch):
        return loads.chosen(places)
    return [loads[at] for at in places]
