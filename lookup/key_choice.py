"""Which key one rows event may be found by: what is asked, and the keys that can serve.

`search_key_in_table` (sql/log_event.cc 5.6 to 9.7) and `find_key` (sql/log_event_server.cc MariaDB
10.11).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from lookup.handler import traits_of
from lookup.table import Key, TableDefinition
from lookup.versions import INDEX_SCAN, ServerRules

NEVER_HASHED_ENGINES = frozenset({"blackhole"})
"""Engines with HA_READ_OUT_OF_SYNC."""

UNIQUE_CLASSES = ("primary", "unique")
KEY_CLASSES = (*UNIQUE_CLASSES, "other")
"""In the order in which they are looked through."""


KeyChoice = tuple[Key | None, str]
"""The key that is read and its class: "primary", "unique" or "other"."""
NO_KEY_READ: KeyChoice = (None, "none")
"""The table is read."""


@dataclass(frozen=True, slots=True)
class KeyQuestion:
    """A table, the columns (local positions, from 0) of an event's before image, and what decides
    which keys serve.

    `options` are slave_rows_search_algorithms, as they hold. `rows_per_value` gives the key
    statistics that MariaDB compares; without them the first usable key stands for the best.
    """

    table: TableDefinition
    columns: Collection[int]
    rules: ServerRules
    options: frozenset[str]
    rows_per_value: Callable[[Key], float] | None = None

    def first_usable(self, classes: tuple[str, ...]) -> KeyChoice | None:
        """`search_key_in_table`: class after class, the first usable key in the table's key order.
        No cardinality is compared."""
        for wanted in classes:
            for key in self.table.sorted_keys:
                if key_class(self.table, key) == wanted and self.why_unusable(key) is None:
                    return key, wanted
        return None

    def mariadb_unique(self) -> KeyChoice | None:
        """`find_key`: the image's columns are ignored, and a unique key without nullable parts
        wins."""
        unique = (key for key in self._mariadb if self.table.is_unique_not_null(key))
        return next(((key, key_class(self.table, key)) for key in unique), None)

    def mariadb_best(self) -> KeyChoice | None:
        """`find_key`, where no unique key won: the fewest rows per value."""
        best: Key | None = None
        best_rows = 0.0
        for key in self._mariadb:
            rows = self.rows_per_value(key) if self.rows_per_value else 0.0
            if key.kind == "spatial":
                rows = 1.0  # the number that InnoDB gives for it (ha_innobase::info_low)
            if best is None or 0 < rows < best_rows:
                best, best_rows = key, rows
        return None if best is None else (best, "other")

    @property
    def _mariadb(self) -> list[Key]:
        return [
            key
            for key in self.table.sorted_keys
            if key.kind not in ("fulltext", "hash")
            and (key.kind != "spatial" or self._takes_spatial(key))
            and key.enabled
            and not key.is_functional
        ]

    def _takes_spatial(self, key: Key) -> bool:
        """Nothing is known of other engines: MyISAM and Aria find rows by theirs (seen on 5.7.29,
        9.7.4 and MariaDB 10.11.18)."""
        taken = self.rules.spatial_keys
        return traits_of(self.table).spatial_finds_nothing and (
            taken == "all"
            or (taken != "none" and self.table.columns[key.columns[0]].srid is not None)
        )

    def why_unusable(self, key: Key) -> str | None:
        """The reason against a key, None when it can be used."""
        table, rules = self.table, self.rules
        kind = key_class(table, key)
        if kind == "unique" and not rules.second_unique_usable and not rules.find_row:
            return "5.6 looks for a second unique key in temporary tables only"
        if key.kind == "fulltext":
            return "a FULLTEXT key cannot be read in order"
        if key.kind == "spatial" and not self._takes_spatial(key):
            return "a SPATIAL key cannot be read in order"
        if key.kind == "hash" and kind == "other":
            return "a HASH key cannot be read in order"
        if not key.enabled:
            return "the key is disabled (ALTER TABLE … DISABLE KEYS)"
        if not key.visible and rules.invisible_skipped and kind != "primary":
            return "the key is invisible"
        if key.multi_valued:
            return "a multi-valued key is never used"
        if key.is_functional and not (
            rules.functional_needs_index_scan and INDEX_SCAN not in self.options
        ):
            return "a functional key is never used"
        if not rules.find_row:
            missing = [
                column for column in table.actual_key_columns(key) if column not in self.columns
            ]
            if missing:
                names = ", ".join(f"`{table.columns[column].name}`" for column in missing)
                return f"column {names} is not in the before image"
        return None


def key_class(table: TableDefinition, key: Key) -> str:
    """ "primary", "unique" (unique, no part may be NULL) or "other"; a unique key with a nullable
    part is "other"."""
    if key is table.primary:
        return "primary"
    return "unique" if table.is_unique_not_null(key) else "other"
