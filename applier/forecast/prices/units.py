"""What a replica's time is made of: units, each with a price in seconds. Linear, so that prices can
be fitted and added up.

An event's time is the sum over the units of amount times price. The amounts come from `lookup.cost`
(handler calls) and from the event itself. Scans have prices of their own: a table scan compares
each row it reads (`record_compare`), a hash scan works out a hash over all of its columns
(`Hash_slave_rows::make_hash_key`, sql/log_event.cc), and both read its bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from applier.forecast.inventory.facts import PAGE_BYTES, ROW_HEAD_BYTES
from lookup.cost import Expected
from lookup.strategies import STRATEGIES, Access
from lookup.table_shape import OTHER

UNITS: dict[str, str] = {
    "transaction": "one transaction: begin, commit, the replica's position",
    "history": (
        "one transaction that updates or deletes: the undo log of old rows that purge goes through,"
        " which one that only inserts does not leave behind"
    ),
    "table": (
        "one table that a transaction changes, by inserts, updates or deletes: a metadata lock, an"
        " undo log, what the processor's caches hold of it"
    ),
    "table open": (
        "one table that a worker opens since the cache of open tables was full of others"
        " (table_open_cache)"
    ),
    "statement": "one statement: its table map, tables opened, locked and closed again",
    "event": "one rows event: read, memory, end of a batch of rows",
    "byte": "one byte of row images in the log: read, unpack",
    "long byte": (
        "one byte of a new value that stands outside of its row's page, since the row does not fit"
        " half of it: pages made and filled, and written to the redo log"
    ),
    "insert": "one row inserted",
    "update": "one row updated in place",
    "delete": "one row deleted",
    "value": "one column of a changed row's image: unpacked, compared, packed again",
    "index entry": "one entry of a secondary index written or marked",
    "foreign key": "one row of another table looked up for a foreign key of a changed row",
    "text": "one text that a FULLTEXT index takes in: read again at the commit",
    "word": (
        "one word of such a text, for each time that the number of different words must be doubled"
        " beyond 16"
    ),
    "full entry": (
        "one entry moved within a full leaf of a secondary index: purge takes the old one out and"
        " tries to merge the leaf"
    ),
    "leaf split": "one such leaf that splits, and is merged again when the old entries are gone",
    "page": "one page of rows that an event's keys lead to: found, latched, locked, brought near",
    "far page": (
        "what such a page costs more for each time that the log's tables are twice as large as what"
        " the processor's caches hold; steps in a secondary index come to another page each time"
    ),
    "key read": "one row found by its primary or unique key",
    "secondary read": "one key read in a secondary index, and its row",
    "next": "one step in a secondary index, and its row",
    "marked read": (
        "one row read by its key behind one of the same value that this event deleted: asked"
        " whether another transaction has it"
    ),
    "hashed row": "one before image put into the hash and taken out again",
    "scan start": "one scan begun",
    "scan row": "one row read by a table scan and compared",
    "scan byte": "one byte of such a row",
    "scan value": "one column of such a row",
    "hash row": "one row read by a hash scan over the table, its hash looked up",
    "hash byte": (
        "one byte of a row whose hash is worked out: read by such a scan, or by a hash scan over an"
        " index"
    ),
    "hash value": "one column of such a row",
    "ghost": "one deleted row that its own transaction still steps over",
}
"""Unit -> what it stands for. The order is that of amounts."""
LOOKUP_UNITS = tuple(UNITS)[tuple(UNITS).index("page") :]
"""Spent on finding rows; the rest is spent on changing them, whatever the keys. In order: sums are
the same in every process."""
ENTRY_UNITS = "index entry", "full entry", "leaf split"
"""Spent on entries of secondary indexes."""
PLACE = {name: place for place, name in enumerate(UNITS)}
EVENTS_OF_ROWS, EVENTS_AROUND = 2, 3
"""Of a log: a rows event with its table map; GTID, BEGIN and the commit of a transaction."""
Amounts = tuple[float, ...]
"""One number for each unit."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds for each unit."""

    seconds: tuple[float, ...]

    @classmethod
    def of(cls, named: dict[str, float]) -> Prices:
        """From names and seconds; a unit that is not named costs nothing."""
        return cls(tuple(named.get(name, 0.0) for name in UNITS))

    def __getitem__(self, unit: str) -> float:
        return self.seconds[PLACE[unit]]

    def with_more(self, unit: str, seconds: float) -> Prices:
        """The same with another price of a unit, none below zero."""
        found = list(self.seconds)
        found[PLACE[unit]] = max(found[PLACE[unit]] + seconds, 0.0)
        return Prices(tuple(found))

    def cost(self, amounts: Amounts) -> tuple[float, float]:
        """(Seconds in all, those of them spent on finding rows)."""
        lookup = sum(amounts[PLACE[name]] * self[name] for name in LOOKUP_UNITS)
        return (
            sum(amount * price for amount, price in zip(amounts, self.seconds, strict=True)),
            lookup,
        )

    def entries(self, amounts: Amounts) -> float:
        """Seconds for entries of secondary indexes, a part of the cost."""
        return sum(amounts[PLACE[name]] * self[name] for name in ENTRY_UNITS)


SCANS = {
    False: ("scan row", "scan byte", "scan value"),
    True: ("hash row", "hash byte", "hash value"),
}
"""Whether a scan of the table hashes -> its units. They are alike: both read rows one after the
other."""


def borrowed(prices: Prices) -> tuple[Prices, str | None]:
    """(Prices where a scan that was not measured costs what the other one does, the algorithm of
    that scan).

    A server knows one of them only, but a what-if may ask for the other.
    """
    for lacking, other in ((False, True), (True, False)):
        if any(prices[unit] for unit in SCANS[lacking]) or not any(
            prices[unit] for unit in SCANS[other]
        ):
            continue
        seconds = list(prices.seconds)
        for unit, like in zip(SCANS[lacking], SCANS[other], strict=True):
            seconds[PLACE[unit]] = prices[like]
        lent = (one.name for one in STRATEGIES if one.scans and one.hashes is lacking)
        return Prices(tuple(seconds)), next(lent)
    return prices, None


def amounts(**named: float) -> Amounts:
    """Amounts by name, with an underscore for a space. Raises ValueError for a unit that there is
    not."""
    wrong = [name for name in named if name.replace("_", " ") not in PLACE]
    if wrong:
        raise ValueError(f"no unit {wrong[0]!r}")
    return tuple(named.get(name.replace(" ", "_"), 0.0) for name in UNITS)


CACHE_BYTES = 8_000_000
"""What the processor's caches hold of tables. A step in a secondary index of a 9.7.4 took 0.7 µs
among 10 MB of rows, 1.2 to 1.5 among 24 to 40 MB, 2.3 to 2.6 among 92 to 230 MB, 3.3 among 460."""


@dataclass(frozen=True, slots=True)
class RowWork:
    """What one row of an event's table weighs: bytes stored, columns, index entries that a change
    of it touches.

    `table_rows`: those of the table, `share` of which is the part that the event's rows stand in.
    `log_bytes`: of all tables that the log changes, which share the caches; `steps_share`: for
    steps in a secondary index, too.
    """

    row_bytes: float
    columns: int = 1
    index_entries: float = 0.0
    table_rows: float = 0.0
    share: float = 1.0
    log_bytes: float = 0.0
    steps_share: bool = True

    def doublings(self, *, steps: bool = False) -> float:
        """How often what the caches hold must be doubled until the tables fit: for rows found by
        their own key, or for `steps` in a secondary index."""
        table_bytes = self.table_rows * (self.row_bytes + ROW_HEAD_BYTES)
        beside = 0.0 if steps and not self.steps_share else self.log_bytes
        return math.log2(max(table_bytes, beside, CACHE_BYTES) / CACHE_BYTES)

    def pages(self, reads: float) -> float:
        """How many pages hold that many rows drawn from the event's part of the table."""
        pages = max(
            self.table_rows * self.share * (self.row_bytes + ROW_HEAD_BYTES) / PAGE_BYTES, 1.0
        )
        return -math.expm1(reads * math.log1p(-1 / pages)) * pages if pages > 1 else min(reads, 1.0)


def event_amounts(
    expected: Expected, kind: str, rows: float, work: RowWork, ghosts: float = 0.0
) -> Amounts:
    """The amounts of one event but for its bytes in the log. `ghosts`: rows that its transaction
    deleted before and its scan steps over."""
    counted, strategy, images = expected.counters, expected.strategy, 2 if kind == "update" else 1
    named = {
        "event": 1.0, kind if kind != "write" else "insert": rows,
        "value": rows * images * work.columns,
        "index_entry": rows * work.index_entries,
    }  # fmt: skip
    if strategy is None:
        return amounts(**named)
    if strategy.access is Access.ROW:
        named["key_read"], named["page"] = rows, work.pages(rows)
    elif strategy.access is Access.VALUE:
        reads = counted.read_key + counted.read_next
        named["secondary_read"], named["next"], named["page"] = (
            counted.read_key,
            counted.read_next,
            work.pages(reads),
        )
        if strategy.hashes:
            named |= {
                "hashed_row": rows,
                "hash_byte": reads * work.row_bytes,
                "hash_value": reads * work.columns,
            }
        if expected.key == OTHER:
            named["far_page"] = reads * work.doublings(steps=True)
            named["marked_read"] = (
                _marked(reads, rows, counted.read_key)
                if strategy.hashes and kind == "delete"
                else 0.0
            )
    else:
        read, scans = counted.read_rnd_next, 1.0 if strategy.hashes else rows
        of_row, of_byte, of_value = (unit.replace(" ", "_") for unit in SCANS[strategy.hashes])
        named |= {
            "hashed_row": rows if strategy.hashes else 0.0, "scan_start": scans,
            of_row: read, of_byte: read * work.row_bytes, of_value: read * work.columns,
            "ghost": ghosts * scans,
        }  # fmt: skip
    named.setdefault("far_page", named.get("page", 0.0) * work.doublings())
    return amounts(**named)


def _marked(reads: float, rows: float, values: float) -> float:
    """How many of the reads come behind a row that the event deleted, when it deletes `rows`
    anywhere among those of so many key values.

    From its first deleted row on, each row of a value costs a second search in the clustered index:
    the row before was marked as deleted, so the page of the secondary index may hold more that this
    transaction changed, and InnoDB asks the row itself whose it is
    (lock_sec_rec_read_check_and_lock to row_vers_impl_x_locked, storage/innobase; a sixth of such
    an event's time in a profile of 9.7). Of a value with m rows, c of them deleted, the first
    deleted one is the (m+1)/(c+1)-th on average; one more read finds the value's end.
    """
    return reads * rows / (rows + values)
