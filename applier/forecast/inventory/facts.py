"""What is known of the replica's tables: definition, rows, rows per key value; and where each
number comes from.

Numbers come from --rows, from a live server's information_schema, from INSERTs in the schema file,
or are taken from the log for want of better: then they are a lower bound, and the forecast says
that it was assumed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from applier.error_codes import Code
from applier.errors import ReplicationError, UsageError
from applier.forecast.inventory.key_places import KeyOrder, Spread, key_order
from applier.forecast.inventory.pool import ENTRY_BYTES
from applier.forecast.inventory.pool_rules import PAGE
from applier.spelling import did_you_mean
from lookup.table import Key, TableDefinition
from lookup.versions import NEWEST

if TYPE_CHECKING:
    from applier.dumps.source import Selection
    from applier.tables.engine import MemoryTable

T = TypeVar("T")

GIVEN = "given"
COUNTED = "counted in the schema file"
STATISTICS = "statistics of the server"
COUNTED_THERE = "counted on the server"
FROM_LOG = "counted in the log, which makes or empties the table"
ASSUMED = "assumed"
ROW_HEAD_BYTES = 25
"""InnoDB's header and hidden columns of a row."""
PAGE_BYTES = 15_000
"""What InnoDB fills of a page of 16 KB when rows come in order."""
ENTRIES_OF_A_CHANGE = 2
"""Of a secondary index: the old one is marked as deleted, the new one is written."""


@dataclass(frozen=True, slots=True)
class OwnRows:
    """The `share` of a table's updates or deletes that meet rows which the log wrote. `behind`:
    rows that stand behind such a row, on average."""

    share: float
    behind: float

    def place(self, rows: float) -> float:
        """Where such a row stands in a table of so many, from 0 to 1."""
        return max(1 - self.behind / max(rows, 1.0), 0.0)

    def first_place(self, rows: float, changed: float) -> float:
        """Where the first of so many neighbours stands, of which the middle one stands there."""
        return max(self.place(rows) - (changed - 1) / (2 * max(rows, 1.0)), 0.0)

    def mean_place(self, rows: float) -> float:
        """Where a changed row stands, if those that the log did not write stand anywhere."""
        return self.share * self.place(rows) + (1 - self.share) / 2


class Texts(NamedTuple):
    """What a changed row brings into FULLTEXT indexes, on average: `texts`, and their `words`, each
    once for each time that the number of different ones must be doubled (`full_text`)."""

    texts: float
    words: float


NO_TEXTS = Texts(0.0, 0.0)


@dataclass(frozen=True)
class TableFacts:
    """One table. `rows` None: nobody said. `rows_per_value`: key name -> rows that share a value,
    None where nobody said."""

    definition: TableDefinition
    rows: float | None = None
    rows_from: str = ASSUMED
    duplicates: Mapping[str, float] = field(default_factory=dict)
    row_bytes: float | None = None
    index_changes: Mapping[str, float] | None = None
    """Secondary index -> the share of the log's updates that change it; None where no log showed
    it."""
    index_stays: Mapping[str, float] = field(default_factory=dict)
    """Secondary index -> the share of the log's updates that change it and whose new entry comes
    into the leaf that the old one leaves."""
    in_log: bool = False
    """Whether a sample of the log changes its rows."""
    own_rows: Mapping[str, OwnRows] = field(default_factory=dict)
    """Kind of change -> those that meet rows of the log's own, in a table that keeps the order of
    writing."""
    log_updates: float = 0.0
    """Updates of its rows in the whole log, by a sample of it; 0 where no log showed one."""
    log_others: float = 0.0
    """Rows that the log writes into it or deletes, likewise."""
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    """Secondary index -> where its values stand, by a sample of the log."""
    leaf_pages: Mapping[str, float] = field(default_factory=dict)
    """Index -> its leaf pages, where a server's statistics say; the table's own is PRIMARY."""
    rows_per_prefix: tuple[float, ...] = ()
    """Rows that share the first 1, 2, … columns of the primary key; empty where nobody said."""
    long_shares: Mapping[str, float] = field(default_factory=dict)
    """Kind of change -> the share of its images' bytes that are written outside of their rows'
    pages (`long_rows`)."""
    texts: Mapping[str, Texts] = field(default_factory=dict)
    """Kind of change -> what it brings into FULLTEXT indexes."""
    met: Mapping[str, float] = field(default_factory=dict)
    """Key -> rows that share the value of a changed row, on average over the changes, where
    somebody counted them or --rows says."""
    doubts: tuple[str, ...] = ()
    """What speaks against these numbers, in words."""

    def rows_per_value(self, key: Key) -> float:
        """1 where nothing is known: `known` tells."""
        return max(self.duplicates.get(key.name, 1.0), 1.0)

    @property
    def has_unread_texts(self) -> bool:
        """Whether an index takes each word of changed rows, and no sample of the log shows any."""
        return not self.in_log and any(key.kind == "fulltext" for key in self.definition.keys)

    @property
    def updated_entries(self) -> float | None:
        """Entries of secondary indexes that an update of a row writes or marks as deleted."""
        changes = self.index_changes
        return None if changes is None else ENTRIES_OF_A_CHANGE * sum(changes.values())

    @property
    def order(self) -> KeyOrder | None:
        """How the rows stand in the table."""
        return key_order(self.definition, self.rows_per_prefix, self.rows_per_page())

    def rows_per_page(self, row_bytes: float = 0.0) -> float:
        """Of the table: by a server's statistics, else by the length of a row."""
        pages = self.leaf_pages.get("PRIMARY")
        if pages and self.rows:
            return max(self.rows / pages, 0.1)
        if self.row_bytes:  # a live server's counts what pages leave empty
            return max(PAGE / self.row_bytes, 0.1)
        return stored_per_page(max(row_bytes, padded_bytes(self.definition)))

    def met_rows(self, key: Key) -> float:
        """Rows that share the value of a changed row; the mean over values where nobody knows."""
        return self.met.get(key.name, self.rows_per_value(key))

    def known(self, key: Key) -> bool:
        """Whether somebody said how many rows share a value of the key."""
        return key.name in self.duplicates or key.name in self.met

    def altered(self, definition: TableDefinition) -> TableFacts:
        """The same table with other columns and keys: what is known of a key holds as long as it
        has the same columns, what is known of changed indexes as long as there is no new one."""
        before, now = _columns_of_keys(self.definition), _columns_of_keys(definition)
        kept = {name for name, columns in now.items() if before.get(name) == columns}
        primary = before.get("PRIMARY") == now.get("PRIMARY")
        changes = self.index_changes if now.keys() <= before.keys() else None
        return replace(
            self,
            definition=definition,
            duplicates=_of(kept, self.duplicates),
            met=_of(kept, self.met),
            index_changes=None if changes is None else _of(kept, changes),
            index_stays=_of(kept, self.index_stays),
            spreads=_of(kept, self.spreads),
            leaf_pages=_of(kept | {"PRIMARY"}, self.leaf_pages),
            rows_per_prefix=self.rows_per_prefix if primary else (),
            own_rows=self.own_rows if primary else {},
        )

    def changed_as(self, other: TableFacts) -> TableFacts:
        """This table, changed by the log as `other`, which has the same keys."""
        return replace(
            self,
            duplicates={**self.duplicates, **other.duplicates},
            met={**self.met, **other.met},
            index_changes=other.index_changes,
            index_stays=other.index_stays,
            in_log=other.in_log,
            own_rows=other.own_rows,
            log_updates=other.log_updates,
            log_others=other.log_others,
            long_shares=other.long_shares,
            texts=other.texts,
            spreads=other.spreads,
        )

    @property
    def statistics(self) -> Callable[[Key], float]:
        """Key -> rows that share a value of it, as `lookup` asks for."""
        return partial(_rows_per_value, self)


def _columns_of_keys(definition: TableDefinition) -> dict[str, list[str]]:
    return {
        key.name: [definition.columns[at].name for at in key.columns] for key in definition.keys
    }


def _of(names: set[str], numbers: Mapping[str, T]) -> dict[str, T]:
    return {name: number for name, number in numbers.items() if name in names}


def stored_per_page(row_bytes: float) -> float:
    """Rows of so many bytes in a page."""
    return max(PAGE_BYTES / (row_bytes + ROW_HEAD_BYTES), 0.1)


WIDTHS = {
    "tinyint": 1,
    "smallint": 2,
    "mediumint": 3,
    "int": 4,
    "bigint": 8,
    "float": 4,
    "double": 8,
    "datetime": 5,
    "timestamp": 4,
}


ENTRY_HEAD_BYTES = 5.5
"""Of an entry of a secondary index: its header, and its part of the page's directory."""
LEAF_BYTES = 16_250
"""What entries can fill of a leaf of 16 KB."""


def entry_bytes(definition: TableDefinition, key: Key) -> float | None:
    """What an entry of a secondary index takes, with the primary key; None where columns of varying
    length are in it."""
    primary = () if definition.primary is None else definition.primary.columns
    columns = [definition.columns[at] for at in dict.fromkeys([*key.columns, *primary])]
    if not primary or any(column.type not in WIDTHS for column in columns):
        return None
    return ENTRY_HEAD_BYTES + sum(WIDTHS[column.type] for column in columns)


def padded_bytes(definition: TableDefinition) -> float:
    """What a row takes at least, but for its header: InnoDB pads CHAR to its length (in characters
    of one byte), a log's image does not."""
    columns = (column for column in definition.columns if column.generated != "virtual")
    return float(
        sum(
            (
                (column.length or 1)
                if column.type in ("char", "binary")
                else WIDTHS.get(column.type, 1)
            )
            for column in columns
        )
    )


def table_bytes(facts: TableFacts) -> float:
    """What a table and its secondary indexes take in the buffer pool, roughly; 0 where nobody said
    how many rows it has."""
    indexes = len(facts.definition.secondary_keys)
    return (facts.rows or 0.0) * (
        (facts.row_bytes or padded_bytes(facts.definition) + ROW_HEAD_BYTES) + indexes * ENTRY_BYTES
    )


def _rows_per_value(facts: TableFacts, key: Key) -> float:
    return facts.rows_per_value(key)


def facts_of_file(
    path: str | os.PathLike[str],
    *,
    server: str = NEWEST,
    selection: Selection | None = None,
    note: Callable[[str], None] | None = None,
) -> dict[str, TableFacts]:
    """The tables of a dump, by full name. Rows that its INSERTs make are counted; a dump without
    any leaves them unknown.

    `note` is told what was left out of the dump.
    """
    from applier.schema_source import Selection, tables_of

    return facts_of_tables(
        tables_of(path, server=server, selection=selection or Selection(), note=note)
    )


def facts_of_tables(tables: Iterable[MemoryTable]) -> dict[str, TableFacts]:
    """Tables in memory, by full name. If none holds a row, the numbers of rows are unknown."""
    chosen = list(tables)
    filled = any(len(table) for table in chosen)
    found = {}
    for table in chosen:
        definition = table.definition
        usable = [
            key
            for key in definition.keys
            if not key.is_functional and not key.multi_valued and key.kind == "btree"
        ]
        duplicates = _duplicates(table, usable) if len(table) else {}
        rows = float(len(table)) if filled else None
        found[definition.full_name] = TableFacts(
            definition, rows, COUNTED if filled else ASSUMED, duplicates
        )
    return found


def _duplicates(table: MemoryTable, keys: Iterable[Key]) -> dict[str, float]:
    """Key name -> rows that share a value; without the keys of which a value is not known, such as
    NOW() in a dump."""
    found = {}
    for key in keys:
        with suppress(ReplicationError):
            found[key.name] = table.rows_per_value(key)
    return found


def with_rows(facts: dict[str, TableFacts], given: Iterable[str]) -> dict[str, TableFacts]:
    """`given` are texts such as "shop.orders=1000000", "*=50000" for tables that nobody counted,
    "shop.orders.k_status=200" for a key.

    Raises UsageError for any other text.
    """
    changed = dict(facts)
    for text in given:
        name, sign, number = text.rpartition("=")
        try:
            value = float(number.replace("_", ""))
        except ValueError:
            value = -1.0
        if not sign or not 0 <= value < math.inf:
            raise UsageError(
                f"--rows: {text!r} is not a number of rows",
                code=Code.OPTION_VALUE,
                hint="write it as db.table=1000000, or *=1000000 for the rest",
            )
        if name == "*":
            changed |= {
                at: replace(one, rows=value, rows_from=GIVEN)
                for at, one in changed.items()
                if one.rows is None
            }
        elif name in changed:
            changed[name] = replace(changed[name], rows=value, rows_from=GIVEN)
        else:
            table, _, key = name.rpartition(".")
            if table not in changed or key not in {
                one.name for one in changed[table].definition.keys
            }:
                known = (
                    [f"{table}.{one.name}" for one in changed[table].definition.keys]
                    if table in changed
                    else changed
                )
                what = "table has no key" if table in changed else "schema has no table"
                hint = did_you_mean(name, known)
                raise UsageError(f"--rows: the {what} {name!r}", code=Code.UNKNOWN_TABLE, hint=hint)
            one = changed[table]
            changed[table] = replace(
                one, duplicates={**one.duplicates, key: value}, met={**one.met, key: value}
            )
    return changed
