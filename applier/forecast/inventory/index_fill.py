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

from applier.forecast.inventory.facts import WIDTHS, TableFacts
from applier.forecast.inventory.pool import PAGE
from lookup.table import Key

FULL = 0.85
"""Indexes that grow in no order are filled to two thirds, those that were built in order to nine
tenths and more."""
RECORD_HEAD_BYTES, DIRECTORY_BYTES, PAGE_FRAME_BYTES = 5, 0.35, 128
"""Of a record; its part of the page directory, a slot of 2 bytes for some six; of a page."""


def leaf_fill(facts: TableFacts, key: Key) -> float | None:
    """The part of an index's leaves that its entries take. None where no server said how many
    leaves there are, or where entries have no fixed length."""
    definition, pages = facts.definition, facts.leaf_pages.get(key.name)
    if not pages or not facts.rows or definition.primary is None:
        return None
    places = dict.fromkeys((*key.columns, *definition.primary.columns))
    columns = [definition.columns[at] for at in places]
    if any(column.type not in WIDTHS or column.scale for column in columns):
        return None
    null_bytes = any(column.nullable for column in columns)
    entry = sum(WIDTHS[column.type] for column in columns) + RECORD_HEAD_BYTES + null_bytes
    return facts.rows * (entry + DIRECTORY_BYTES) / (pages * (PAGE - PAGE_FRAME_BYTES))


def full_indexes(facts: Mapping[str, TableFacts]) -> Iterator[str]:
    """Table and index of those with full leaves in tables whose updates change indexed columns."""
    for one in facts.values():
        for key in one.definition.secondary_keys if one.updated_entries else ():
            if (leaf_fill(one, key) or 0.0) >= FULL:
                yield f"{key.name} of {one.definition.full_name}"
