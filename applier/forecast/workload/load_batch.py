"""Transactions that the kernel summed up at once, and how their rows events count as loads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from applier.binlog.header import Event
from applier.binlog.table_map import TableMap
from applier.binlog.transactions import TransactionKind
from applier.forecast.workload.bulk_loads import GTID_KINDS, Stretch, gtid_text
from applier.forecast.workload.row_counts import Count
from applier.forecast.workload.row_places import PlacesReader
from applier.forecast.workload.transaction_load import Applied, LoadShape, TransactionLoad
from applier.replica.scheduling import GroupMarks

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(slots=True)
class LoadPlan:
    """How rows events of one table, kind and shape are counted."""

    table_map: TableMap
    target: LoadShape
    count: Callable[[Event], Count]
    ends_statement: bool
    places: PlacesReader | None = None


@dataclass(frozen=True, slots=True)
class CountedPlan:
    """What is left of a plan once its events are counted; other processes take it."""

    target: LoadShape
    ends_statement: bool


def add_event(
    load: TransactionLoad, plan: LoadPlan | CountedPlan, count: Count, row_bytes: int
) -> None:
    """Adds a rows event to its transaction."""
    applied = load.applied.get(plan.target)
    if applied is None:
        applied = load.applied[plan.target] = Applied(plan.target)
    applied.add(count, row_bytes, plan.ends_statement)
    load.rows += count[0]
    load.rows_events += 1


class Shapes:
    """One object a shape and one number a plan for batches and loads that come from several
    processes."""

    def __init__(self) -> None:
        self.plans: dict[int, CountedPlan] = {}
        self._targets: dict[tuple[object, ...], LoadShape] = {}
        self._numbers: dict[tuple[LoadShape, bool], int] = {}

    def same(self, target: LoadShape) -> LoadShape:
        """The object that stands for a shape."""
        place = (target.table, target.kind, target.columns, target.before, target.after, target.key)
        return self._targets.setdefault(place, target)

    def number(self, plan: LoadPlan | CountedPlan) -> int:
        """The number of a plan."""
        target = self.same(plan.target)
        place = target, plan.ends_statement
        number = self._numbers.setdefault(place, len(self._numbers))
        self.plans.setdefault(number, CountedPlan(*place))
        return number


@dataclass(frozen=True)
class LoadBatch:
    """Plain transactions of one file that follow each other, as the kernel summed them up; each can
    be had as a load."""

    file: str
    stretch: Stretch
    plans: Mapping[int, LoadPlan | CountedPlan]

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

    def portable(self) -> LoadBatch:
        """The same for another process: with the plans that its events have, but for how they count
        events."""
        shapes = set(self.stretch.events[:, 0].tolist())
        plans = {at: self.plans[at] for at in sorted(shapes)}
        found = {at: CountedPlan(one.target, one.ends_statement) for at, one in plans.items()}
        return LoadBatch(self.file, self.stretch, found)

    def numbered(self, shapes: Shapes) -> LoadBatch:
        """The same with the shapes' numbers in `shapes`, which has plans for all batches of a
        log."""
        import numpy as np

        events = self.stretch.events.copy()
        numbers = {at: shapes.number(one) for at, one in self.plans.items()}
        table = np.zeros(max(numbers, default=0) + 1, np.int64)
        for at, number in numbers.items():
            table[at] = number
        events[:, 0] = table[events[:, 0]]
        stretch = Stretch(self.stretch.position, self.stretch.transactions, events)
        return LoadBatch(self.file, stretch, shapes.plans)

    def _load(self, row: Sequence[int], events: Sequence[Sequence[int]]) -> TransactionLoad:
        (
            start, end, kind, low, high, number, server_id, before, sequence, stamp, timestamp,
            commit_id, flags, _,
        ) = row  # fmt: skip
        load = TransactionLoad(
            self.file, start, self.file, end, gtid_text(kind, low, high, number),
            TransactionKind.TRANSACTION, server_id,
            stamp / 1e6 if stamp else float(timestamp), before, sequence, end - start,
        )  # fmt: skip
        if GTID_KINDS[kind] == "mariadb":
            load.marks = GroupMarks(low, commit_id, flags)
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


def commit_times(batch: LoadBatch) -> npt.NDArray[np.float64]:
    """`TransactionLoad.commit_time` of each transaction."""
    import numpy as np

    from applier.binlog.columnar.control import Summed

    rows = batch.stretch.transactions
    stamps: npt.NDArray[np.float64] = rows[:, Summed.STAMP] / 1e6
    return np.where(
        rows[:, Summed.STAMP] != 0, stamps, rows[:, Summed.TIMESTAMP].astype(np.float64)
    )
