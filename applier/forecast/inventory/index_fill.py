"""How full the leaf pages of secondary indexes are, by a server's statistics.

An index that was built behind its rows (CREATE INDEX, ALTER TABLE … ADD KEY) has full leaves. The
next entry splits one into two halves; as soon as purge takes an entry out of a half, that is below
MERGE_THRESHOLD (50 % by default) and is merged with its neighbour, which makes a full one again
(btr_cur_compress_if_useful, storage/innobase/btr/btr0cur.cc). On 9.7.4, each update of sysbench's
oltp_update_index led to 0.57 splits and 0.52 merges, and took 1.8 times as long as with
MERGE_THRESHOLD=20 (0.16 and none). There the new entry stands beside the old one, so that purge
takes it out of a new half. Where entries move far, a half has grown by then: on a 9.7.4, 10,000
such updates of a full index of 83 leaves led to 500 merges, sysbench's 30,000 to 6,500.

It costs once for a transaction, since purge goes by transactions, and once for each leaf that it
splits. One update in a transaction took 43 µs more, ten took 80 and, on a machine that was twice as
slow that day, one took 120, ten 580 and a hundred 2,700 µs, in 83 leaves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from applier.forecast.inventory.facts import LEAF_BYTES, TableFacts, entry_bytes
from applier.forecast.inventory.leaf_growth import FULL
from lookup.table import Key


def leaf_fill(facts: TableFacts, key: Key) -> float | None:
    """The part of an index's leaves that its entries take. None where no server said how many
    leaves there are, or where entries have no fixed length."""
    pages, width = facts.leaf_pages.get(key.name), entry_bytes(facts.definition, key)
    if not pages or not facts.rows or width is None:
        return None
    return facts.rows * width / (pages * LEAF_BYTES)


class FullIndex(NamedTuple):
    """An index with so many full leaves, and the share of updates whose entry stays in one."""

    name: str
    stays: float
    leaves: float

    def split_chance(self, rows: float) -> float:
        """The chance that an update of so many rows moves an entry within a leaf."""
        return float(1 - (1 - min(self.stays, 1.0)) ** rows)

    def leaves_split(self, rows: float) -> float:
        """In how many leaves an update of so many rows moves entries."""
        leaves = max(self.leaves, 1.0)
        moved = min(self.stays, 1.0) * rows
        if leaves == 1:
            return min(moved, 1.0)
        return -leaves * math.expm1(moved * math.log1p(-1 / leaves))


def full_indexes(facts: TableFacts) -> tuple[FullIndex, ...]:
    """Those that updates split, and purge merges again."""
    return tuple(
        FullIndex(key.name, stays, facts.leaf_pages[key.name])
        for key in facts.definition.secondary_keys
        if (stays := facts.index_stays.get(key.name)) and (leaf_fill(facts, key) or 0.0) >= FULL
    )


def names_of_full_indexes(facts: Mapping[str, TableFacts]) -> list[str]:
    """Index and table of all that the log's updates split and merge again."""
    return [
        f"{index.name} of {one.definition.full_name}"
        for one in facts.values()
        for index in full_indexes(one)
    ]
