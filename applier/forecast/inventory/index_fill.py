"""How full the leaf pages of secondary indexes are, by a server's statistics.

An index that was built behind its rows (CREATE INDEX, ALTER TABLE … ADD KEY) has full leaves. The
next entry splits one into two halves; as soon as purge takes an entry out of a half, that is below
MERGE_THRESHOLD (50 % by default) and is merged with its neighbour, which makes a full one again
(btr_cur_compress_if_useful, storage/innobase/btr/btr0cur.cc). On 9.7.4, each update of sysbench's
oltp_update_index led to 0.57 splits and 0.52 merges, and took 1.8 times as long as with
MERGE_THRESHOLD=20 (0.16 and none). There the new entry stands beside the old one, so that purge
takes it out of a new half. Where entries move far, a half has grown by then: on a 9.7.4, 10,000
such updates of a full index of 83 leaves led to 500 merges.

Purge tries to merge the leaf of each entry that it takes out (0.7 to 0.95 attempts for an update,
whatever the index and the transactions). How many leaves split is another matter, counted on a
9.7.4 for 30,000 updates of one row by sysbench (2,100 splits of 84 leaves, 6,200 to 6,600 of some
335, 13,850 of 1,336) and for 10,000 by `measure` (of 83 leaves: 1,900 by single rows, 269 by ten to
a transaction, 122 by a hundred): a leaf splits less often the more often it was visited, since what
splits unevenly does not become full again, and when the next visit comes before purge has merged
it. `benchmarks/results/full_index_leaves_9.7.json` has them. Purge is late by time,
not by transactions (`Splits`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from applier.forecast.inventory.facts import LEAF_BYTES, TableFacts, entry_bytes
from applier.forecast.inventory.leaf_growth import FULL
from applier.forecast.inventory.pool_rules import Splits
from lookup.table import Key


def leaf_fill(facts: TableFacts, key: Key) -> float | None:
    """The part of an index's leaves that its entries take. None where no server said how many
    leaves there are, or where entries have no fixed length."""
    pages, width = facts.leaf_pages.get(key.name), entry_bytes(facts.definition, key)
    if not pages or not facts.rows or width is None:
        return None
    return facts.rows * width / (pages * LEAF_BYTES)


class FullIndex(NamedTuple):
    """An index with so many full leaves, and the share of updates whose entry stays in one.
    `updates`: of the table, in the whole log; `others`: rows that it writes or deletes."""

    name: str
    stays: float
    leaves: float
    updates: float
    others: float = 0.0

    def moved(self, rows: float) -> float:
        """Entries that an update of so many rows moves within a leaf."""
        return min(self.stays, 1.0) * rows

    def leaves_visited(self, rows: float) -> float:
        """In how many leaves an update of so many rows moves entries."""
        leaves, moved = max(self.leaves, 1.0), self.moved(rows)
        if leaves == 1:
            return min(moved, 1.0)
        return -leaves * math.expm1(moved * math.log1p(-1 / leaves))

    def crowding(self, rows: float) -> float:
        """How soon the next transaction comes to the leaves of this one, for `Splits.in_time`: by
        the share of them that each visits. Purge comes to one of more rows later, too, about by
        their cube root."""
        return self.leaves_visited(rows) / max(self.leaves, 1.0) * math.cbrt(rows)

    def leaves_split(self, rows: float, splits: Splits, seconds: float | None = None) -> float:
        """How many leaves a transaction that updates so many rows splits by a version's rules, on
        average over a log whose transactions are all alike and so many seconds apart."""
        visited = self.leaves_visited(rows)
        if not visited:
            return 0.0
        visits = visited / max(self.leaves, 1.0) * max(self.updates / rows, 1.0)
        visits += splits.other_visits * self.others / max(self.leaves, 1.0)
        weary = 1 + visits / splits.weary_visits
        in_time = splits.in_time(self.crowding(rows), seconds or splits.usual_seconds)
        return visited * splits.first_visits / weary * in_time


def full_indexes(facts: TableFacts) -> tuple[FullIndex, ...]:
    """Those that updates split, and purge merges again."""
    return tuple(
        FullIndex(key.name, stays, facts.leaf_pages[key.name], facts.log_updates, facts.log_others)
        for key in facts.definition.secondary_keys
        if (stays := facts.index_stays.get(key.name)) and (leaf_fill(facts, key) or 0.0) >= FULL
    )


def concentration(facts: Mapping[str, TableFacts]) -> float:
    """How likely two updates of the log meet in the same full index, 1 where there is one of them:
    the sum of the squares of their shares."""
    moved = [index.moved(index.updates) for one in facts.values() for index in full_indexes(one)]
    whole = sum(moved)
    return sum((each / whole) ** 2 for each in moved) if whole else 1.0


def names_of_full_indexes(facts: Mapping[str, TableFacts]) -> list[str]:
    """Index and table of all that the log's updates split and merge again."""
    return [
        f"{index.name} of {one.definition.full_name}"
        for one in facts.values()
        for index in full_indexes(one)
    ]
