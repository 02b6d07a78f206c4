"""The parts of many plain transactions at once: the same parts as one by one, found by arrays.

Transactions whose events are alike but for their bytes have one recipe. What is left for each of
them is how many rows its tables had at that moment, which running sums tell.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from applier.binlog.columnar.control import GtidKind, Summed, SummedEvent
from applier.forecast.inventory.pool import PageReads
from applier.forecast.lag.apply_steps import Parts, Turns
from applier.forecast.lag.part_kinds import PartCounts, PartKind, part_kind
from applier.forecast.prices.pricing import Part
from applier.forecast.prices.table_state import TableState
from applier.forecast.workload.load_batch import LoadBatch
from applier.forecast.workload.row_counts import Count
from applier.forecast.workload.transaction_load import Applied, LoadShape

if TYPE_CHECKING:
    import numpy.typing as npt

    from applier.binlog.columnar.table_ids import Integers

    Floats = npt.NDArray[np.float64]


SIGNS = {"write": 1, "update": 0, "delete": -1}
"""Rows that a table has more for each row of an event."""


@dataclass(frozen=True, slots=True)
class Ingredient:
    """What parts have in common: a part but for its table's rows and its bytes."""

    target: LoadShape
    sizes: tuple[tuple[Count, int], ...]
    statements: int
    events: int
    rows: int
    values: int
    kind: PartKind


@dataclass(frozen=True, slots=True)
class BatchParts:
    """The parts of a batch's transactions, one after the other. `price`: what `place` gave;
    `end`: where each transaction's parts end. `rows`: of all of them."""

    price: Integers
    row_bytes: Integers
    end: Integers
    rows: int

    def for_steps(self) -> Parts:
        """As `apply_steps` takes them; no page is read."""
        columns: Any = (self.price, self.row_bytes, *(np.zeros(0) for _ in PageReads._fields))
        return Parts(*columns)


def turns_of(
    batch: LoadBatch,
    parts: BatchParts,
    arrival: array[float],
    base: float,
    domain_places: dict[int, int],
) -> Turns:
    """The transactions for `apply_steps`; `base`: seconds of one besides its rows.
    `domain_places`: a number for each domain of MariaDB, new ones at the end."""
    rows = batch.stretch.transactions
    none = np.zeros(0, np.int64)
    events, committed, sequence, commit_id, flags = (
        np.ascontiguousarray(rows[:, at])
        for at in (
            Summed.EVENTS, Summed.LAST_COMMITTED, Summed.SEQUENCE_NUMBER, Summed.COMMIT_ID,
            Summed.FLAGS,
        )
    )  # fmt: skip
    named = np.where(rows[:, Summed.KIND] == GtidKind.MARIADB, rows[:, Summed.LOW], 0)
    names, at = np.unique(named, return_inverse=True)
    places = [domain_places.setdefault(name, len(domain_places)) for name in names.tolist()]
    columns: Any = (
        arrival, np.full(len(rows), base), events, committed, sequence,
        np.asarray(places, np.int64)[at], commit_id, flags,
        rows[:, Summed.END] - rows[:, Summed.START], parts.end, np.zeros(len(rows), np.int64),
        none,
    )  # fmt: skip
    return Turns(*columns)


def servers_of(batch: LoadBatch) -> list[int]:
    """The server ids in it."""
    found: list[int] = np.unique(batch.stretch.transactions[:, Summed.SERVER_ID]).tolist()
    return found


class _Steps:
    """What `TableState.note` and `TableState.change` do for the parts of one table, one after the
    other."""

    def __init__(self, state: TableState, changed: Integers, sign: Integers) -> None:
        self.state, self.changed, self.sign = state, changed, sign
        self.after = state.rows + np.cumsum(changed * sign)
        self.before = self.after - changed * sign

    @property
    def is_plain(self) -> bool:
        """Whether rows are a sum: no table holds fewer rows than the log changes of it."""
        at_least = self.before - self.changed
        return bool((at_least[self.sign < 0 if self.state.known else self.sign <= 0] >= 0).all())

    def rounded_rows(self) -> Floats:
        """The rows for a price, at each part."""
        values, at = np.unique(self.before.astype(np.int64), return_inverse=True)
        rounded = np.array([self.state.rounded(value) for value in values.tolist()], np.float64)
        return rounded[at]

    def image_bytes(self, row_bytes: Integers) -> Floats:
        """The mean length of an image, at each part."""
        state = self.state
        rows = state.seen_rows + np.cumsum(self.changed * np.where(self.sign == 0, 2, 1))
        seen = state.seen_bytes + np.cumsum(row_bytes)
        found, first = np.full(len(rows), state.row_bytes), 0
        while (first := int(np.searchsorted(rows, state.looked_at * 1.1, "right"))) < len(rows):
            state.look(int(seen[first]), int(rows[first]))
            found[first:] = state.row_bytes
        state.seen_bytes, state.seen_rows = int(seen[-1]), int(rows[-1])
        return found

    def finish(self) -> None:
        """The state behind the last part."""
        state = self.state
        state.rows = float(self.after[-1])
        state.most_gained = max(state.most_gained, float(self.after.max()) - state.missing)


def _joined(lists: Sequence[Sequence[int]], which: Integers) -> Integers:
    """The chosen lists, one after the other."""
    lengths = np.array([len(one) for one in lists])
    starts = np.cumsum(lengths) - lengths
    flat = np.array([value for one in lists for value in one], np.int64)
    taken = lengths[which]
    ends = np.cumsum(taken)
    return flat[
        np.repeat(starts[which] - ends + taken, taken)
        + np.arange(int(ends[-1]) if len(ends) else 0)
    ]


class BatchReader:
    """Turns batches into parts. `state` is that of a table, `place` prices a part;
    `counts` gets what parts there are."""

    def __init__(
        self,
        state: Callable[[str], TableState],
        place: Callable[[Part], int],
        counts: PartCounts,
    ) -> None:
        self._state, self._place, self._counts = state, place, counts
        self._plans: object = None
        self._recipes: dict[bytes, int] = {}
        self._ingredients: list[Ingredient] = []
        self._lists: list[tuple[list[int], list[int]]] = []
        """Of each recipe its ingredients, and the part that each event belongs to."""

    def read(self, batch: LoadBatch) -> BatchParts | None:
        """The parts; None where a table's rows are not a plain sum: then one by one."""
        if self._plans is not batch.plans:
            self._plans = batch.plans
            self._recipes.clear()
        events, counts = batch.stretch.events, batch.stretch.transactions[:, Summed.EVENTS]
        recipes = self._recipes_of(batch, events, counts)
        lengths = np.array([len(parts) for parts, _ in self._lists])[recipes]
        end = np.cumsum(lengths)
        ingredients = _joined([parts for parts, _ in self._lists], recipes)
        owners = _joined([of_event for _, of_event in self._lists], recipes) + np.repeat(
            end - lengths, counts
        )
        row_bytes = np.zeros(len(ingredients), np.int64)
        np.add.at(row_bytes, owners, events[:, SummedEvent.BYTES])
        followed = self._followed(ingredients, row_bytes)
        if followed is None:
            return None
        price = self._prices(ingredients, *followed)
        self._count(ingredients, row_bytes)
        return BatchParts(price, row_bytes, end, int(events[:, SummedEvent.ROWS].sum()))

    def _followed(self, ingredients: Integers, row_bytes: Integers) -> tuple[Floats, Floats] | None:
        """For each part the rounded rows of its table and the mean length of an image, as
        `TableState` has them when the part's turn comes; the states have taken all parts in. None:
        see `read`.
        """
        names = list(dict.fromkeys(one.target.table for one in self._ingredients))
        place = {name: at for at, name in enumerate(names)}
        tables = np.array([place[one.target.table] for one in self._ingredients])[ingredients]
        changed = np.array([one.rows for one in self._ingredients])[ingredients]
        sign = np.array([SIGNS[one.target.kind] for one in self._ingredients])[ingredients]
        order = np.argsort(tables, kind="stable")
        present, starts = np.unique(tables[order], return_index=True)
        chosen = np.split(order, starts[1:])
        steps = [
            _Steps(self._state(names[at]), changed[one], sign[one])
            for at, one in zip(present, chosen, strict=True)
        ]
        if not all(one.is_plain for one in steps):
            return None
        rows, mean = np.zeros(len(ingredients)), np.zeros(len(ingredients))
        for one, at in zip(steps, chosen, strict=True):
            rows[at] = one.rounded_rows()
            mean[at] = one.image_bytes(row_bytes[at])
            one.finish()
        return rows, mean

    def _prices(self, ingredients: Integers, rows: Floats, mean: Floats) -> Integers:
        """The place of each part's price; parts that are new are priced in the log's order."""
        sizes, size_at = np.unique(rows, return_inverse=True)
        means, mean_at = np.unique(mean, return_inverse=True)
        code = (ingredients * len(sizes) + size_at) * len(means) + mean_at
        _, first, which = np.unique(code, return_index=True, return_inverse=True)
        places = np.zeros(len(first), np.int64)
        for at in np.argsort(first).tolist():
            part = int(first[at])
            one = self._ingredients[ingredients[part]]
            places[at] = self._place(
                Part(
                    one.target,
                    one.sizes,
                    one.statements,
                    float(rows[part]),
                    float(mean[part]),
                    one.events,
                    one.rows,
                )
            )
        return places[which]

    def _count(self, ingredients: Integers, row_bytes: Integers) -> None:
        """Adds up the parts of each kind."""
        count = len(self._ingredients)
        times = np.bincount(ingredients, minlength=count).tolist()
        total_bytes = np.zeros(count, np.int64)
        np.add.at(total_bytes, ingredients, row_bytes)
        for one, number, size in zip(self._ingredients, times, total_bytes.tolist(), strict=True):
            if number:
                totals = one.events * number, one.rows * number, one.statements * number
                self._counts.of(one.kind).add(number, *totals, size, one.values * number)

    def _recipes_of(self, batch: LoadBatch, events: Integers, counts: Integers) -> Integers:
        """The recipe of each transaction."""
        alike = np.ascontiguousarray(events[:, : SummedEvent.BYTES])
        text, width = alike.tobytes(), alike.itemsize * SummedEvent.BYTES
        found, start, known = [], 0, self._recipes
        for end in (np.cumsum(counts) * width).tolist():
            key = text[start:end]
            recipe = known.get(key)
            if recipe is None:
                recipe = known[key] = self._recipe(batch, events[start // width : end // width])
            found.append(recipe)
            start = end
        return np.array(found)

    def _recipe(self, batch: LoadBatch, events: Integers) -> int:
        parts: dict[LoadShape, Applied] = {}
        of_event = []
        for shape, rows, distinct, _ in events.tolist():
            plan = batch.plans[shape]
            applied = parts.get(plan.target)
            if applied is None:
                applied = parts[plan.target] = Applied(plan.target)
            applied.add((rows, distinct), 0, plan.ends_statement)
            of_event.append(list(parts).index(plan.target))
        first = len(self._ingredients)
        for target, one in parts.items():
            self._state(target.table)
            sizes = tuple(one.sizes.items())
            kind = part_kind(target, one.events, one.rows, one.statements)
            self._ingredients.append(
                Ingredient(
                    target, sizes, one.statements, one.events, one.rows, one.distinct_values, kind
                )
            )
        self._lists.append((list(range(first, len(self._ingredients))), of_event))
        return len(self._lists) - 1
