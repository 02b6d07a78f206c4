"""Which server a version is, and what differs between servers in finding and changing rows.

`ServerVersion` is the one reading of a version, and `row_name` the one way from a version to its
row: every table of rules in every room has rows named as these (5.6, 5.7, 8.0, 8.4, 9.7, mariadb)
and one column a rule. A row here has the rules of the newest releases of its series; CHANGES has
what earlier releases did otherwise.

From the sources of 5.6, 5.7, 8.0, 9.7 (sql/log_event.cc) and MariaDB 10.11
(sql/log_event_server.cc), corrected by what real 5.6.24, 5.7.29, 9.7.4 and MariaDB 10.11.19
replicas were seen to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

INDEX_SCAN, TABLE_SCAN, HASH_SCAN = "INDEX_SCAN", "TABLE_SCAN", "HASH_SCAN"
OPTIONS = (TABLE_SCAN, INDEX_SCAN, HASH_SCAN)


@dataclass(frozen=True, slots=True)
class ServerRules:
    """The rules of one server version."""

    name: str
    row_search: frozenset[str]
    """The default of slave_rows_search_algorithms; for 8.4+ what is hard-wired, for MariaDB
    unused."""
    row_search_selectable: bool = True
    find_row: bool = False
    """MariaDB: no hash, the key with the best cardinality, a lookup per row."""
    second_unique_usable: bool = True
    """Up to 5.7.22 and 8.0.11 the class of unique keys is searched in internal temporary tables
    only (`share->uniques`, bug #81500)."""
    invisible_skipped: bool = True
    functional_needs_index_scan: bool = False
    spatial_keys: Literal["none", "with an SRID", "all"] = "none"
    """Those of InnoDB that are taken for ordinary ones; nothing is found by them: 1032. From 8.0 on
    a key on a column without an SRID is never used (seen on 5.7.29, 9.7.4, MariaDB 10.11.18)."""
    steps_to_index_end: bool = False
    """Index scan by a non-unique key steps with index_next, not index_next_same."""
    misread_after_index_miss: bool = False
    misread_after_scan_miss: bool = False
    """After a row was not found, the after image is skipped with the before image's bitmap (fixed
    in 8.0)."""
    hash_looks_again: bool = True
    """Hash scan looks an updated row up again at once (8.0.17, bug #72788)."""
    collisions_apply: bool = False
    """Hash scan takes a row for a before image that only has its checksum, and updates it (bug
    #101828, from 8.0.17 on; for which releases that is seen, and for which it is inferred, stands
    at CHANGES)."""
    hash_order: str = "multimap"
    """In which order equal before images leave the hash: "multimap" (std::unordered_multimap) or
    "mysys" (mysys/hash.c)."""
    table_scan_passes: int = 2
    """How often a table scan runs through the table before a row is missing."""
    engine_side_counters: bool = True
    """InnoDB counts inside its own reads: a scan start is also a read_first and a read_key, a
    position read also a read_key."""
    counts_free_slots: bool = True
    """rnd_next on a deleted row of fixed length (MyISAM) is in read_rnd_next; MariaDB has
    read_rnd_deleted for it."""
    invisible_columns: bool = True
    """A column may be INVISIBLE: from MySQL 8.0.23 and MariaDB 10.3 on."""
    checks_foreign_keys: bool = False
    """The server and not InnoDB looks after foreign keys (innodb_native_foreign_keys is OFF; seen
    on 9.7.4): REPLACE carries out no ON DELETE for a row whose referenced values the new one has,
    too, and rows of other tables are looked up for each updated row, whatever changes."""
    halves_statistics: bool = False
    """InnoDB says half the rows of a key's value, rounded down, at least 1 (rec_per_key of
    ha_innobase::info_low; seen on 5.6.24 and MariaDB 10.11.18), and information_schema goes by
    that."""
    bulk_inserts: bool = False
    """InnoDB stores what a statement inserts into an empty table at the statement's end, where
    unique_checks and foreign_key_checks are off (MariaDB 10.7 and later)."""
    source_word: str = "source"
    """What the server calls the source in its messages."""


_IT = frozenset({INDEX_SCAN, TABLE_SCAN})
_IH = frozenset({INDEX_SCAN, HASH_SCAN})

RULES: dict[str, ServerRules] = {
    rules.name: rules
    for rules in (
        ServerRules(
            "5.6",
            _IT,
            second_unique_usable=False,
            invisible_skipped=False,
            steps_to_index_end=True,
            halves_statistics=True,
            misread_after_index_miss=True,
            misread_after_scan_miss=True,
            hash_looks_again=False,
            hash_order="mysys",
            invisible_columns=False,
            source_word="master",
        ),
        ServerRules(
            "5.7",
            _IT,
            invisible_skipped=False,
            spatial_keys="all",
            misread_after_scan_miss=True,
            hash_looks_again=False,
            hash_order="mysys",
            invisible_columns=False,
            source_word="master",
        ),
        ServerRules("8.0", _IH, functional_needs_index_scan=True, spatial_keys="with an SRID"),
        ServerRules("8.4", _IH, row_search_selectable=False, spatial_keys="with an SRID"),
        ServerRules(
            "9.7",
            _IH,
            row_search_selectable=False,
            spatial_keys="with an SRID",
            checks_foreign_keys=True,
        ),
        ServerRules(
            "mariadb",
            frozenset(),
            row_search_selectable=False,
            find_row=True,
            spatial_keys="all",
            invisible_skipped=False,
            table_scan_passes=1,
            engine_side_counters=False,
            counts_free_slots=False,
            halves_statistics=True,
            bulk_inserts=True,
            source_word="master",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Change:
    """A release that changed a rule of its series: the releases of the series before it had the
    value `before`."""

    release: tuple[int, int, int]
    rule: str
    before: bool


LAST = 1 << 30
"""In the place of a release: the newest one of its series."""
NEVER = LAST + 1
"""The series ended without the change."""

INNOVATION_SERIES = ((8, 1), (8, 2), (8, 3), *((9, minor) for minor in range(7)))
"""Those of MySQL that have no row of their own."""

CHANGES = (
    Change((5, 7, 23), "second_unique_usable", before=False),
    Change((8, 0, 12), "second_unique_usable", before=False),
    Change((8, 0, 17), "hash_looks_again", before=False),
    Change((8, 0, 17), "collisions_apply", before=False),
    Change((8, 0, 23), "invisible_columns", before=False),
    Change((8, 0, 46), "collisions_apply", before=True),
    Change((8, 4, 9), "collisions_apply", before=True),
    *(Change((*series, NEVER), "collisions_apply", before=True) for series in INNOVATION_SERIES),
)
"""The first two by the changelog in bug #81500; the third is bug #72788. What came with it, bug
#101828, was reported up to 8.0.42. Seen in sources: 8.0.39 and 8.4.6 have it, 8.0.46 and 9.7 have
not. The rest is inferred from dates: the report was closed two days after 8.0.46 and 8.4.9 came out
(April 2026), so all that came out before these two is taken to have it. Invisible columns are in
the release notes of 8.0.23."""

MARIADB_CHANGES = (
    Change((10, 3, 3), "invisible_columns", before=False),
    *(
        Change((*series, NEVER), "invisible_columns", before=False)
        for series in ((5, 5), (10, 0), (10, 1), (10, 2))
    ),
)
"""By MariaDB's documentation of invisible columns."""


MARIADB = "mariadb"
FIRST_SERIES = {"8.4": (8, 3)}
"""Row -> the first series that it speaks for, where its name does not say so: 8.3.0 removed what
8.4 lacks (info files, slave_rows_search_algorithms)."""
_NUMBERS = re.compile(r"([0-9]+)\.([0-9]+)(?:\.([0-9]+))?")


@dataclass(frozen=True, slots=True)
class ServerVersion:
    """One release of MySQL or MariaDB. In `release`, LAST stands for the newest one of the series
    that is named.

    MariaDB is known by its name alone: 10.0 without it is a MySQL of the future.
    """

    is_mariadb: bool
    release: tuple[int, int, int]

    @classmethod
    def parse(cls, text: str) -> ServerVersion:
        """A version as on the command line ("5.7", "mariadb") or as a server says it ("5.7.29-log",
        "10.11.19-MariaDB").

        Raises ValueError for a text that is not a version.
        """
        before, name, _ = text.lower().partition(MARIADB)
        found = (
            list(_NUMBERS.finditer(before))
            if name
            else [match for match in [_NUMBERS.match(text)] if match]
        )
        if not found:
            if text == MARIADB:
                return cls(True, (LAST, LAST, LAST))
            raise ValueError(f"{text!r} is not a server version")
        major, minor, patch = found[-1].groups()  # 5.5.5-10.11.19-MariaDB, as old clients are told
        return cls(bool(name), (int(major), int(minor), LAST if patch is None else int(patch)))

    @property
    def series(self) -> tuple[int, int]:
        """(8, 0) of 8.0.16."""
        return self.release[:2]


def _first_series(name: str) -> tuple[int, int]:
    return FIRST_SERIES.get(name) or ServerVersion.parse(name).series


def row_name(names: Iterable[str], version: ServerVersion) -> str | None:
    """The row that speaks for a version in a table with rows of these names: the newest that is not
    newer than the version.

    None: MariaDB has no row there, or the version is older than all rows.
    """
    if version.is_mariadb:
        return MARIADB if MARIADB in names else None
    known = [name for name in names if name != MARIADB and _first_series(name) <= version.series]
    return max(known, key=_first_series, default=None)


_SERIES = {_first_series(name): name for name in RULES if name != MARIADB}
OLDEST, NEWEST = _SERIES[min(_SERIES)], _SERIES[max(_SERIES)]


def rules_for(version: str) -> ServerRules:
    """The rules of a version, as `ServerVersion.parse` reads it.

    Versions behind the last row follow it, a series without a release follows its newest one
    (`outside` tells). Before 5.6 there was no choice of algorithm; 5.6's rules with
    INDEX_SCAN,TABLE_SCAN are the closest. Raises ValueError for a text that is not a version.
    """
    if version in RULES:
        return RULES[version]
    asked = ServerVersion.parse(version)
    return _as_of(RULES[row_name(RULES, asked) or OLDEST], asked)


def outside(version: str) -> Literal["older", "newer"] | None:
    """Whether a version is older than all of MySQL that has a row, or newer. Raises ValueError for
    a text that is not a version."""
    asked = ServerVersion.parse(version)
    if asked.is_mariadb:
        return None
    return (
        "older" if asked.series < min(_SERIES) else "newer" if asked.series > max(_SERIES) else None
    )


def _as_of(rules: ServerRules, version: ServerVersion) -> ServerRules:
    """The rules that this release of the series had."""
    release, changes = version.release, MARIADB_CHANGES if version.is_mariadb else CHANGES
    later = [
        change
        for change in changes
        if change.release[:2] == version.series and release < change.release
    ]
    before: dict[str, Any] = {
        change.rule: change.before
        for change in sorted(later, key=lambda change: change.release, reverse=True)
    }
    return replace(rules, **before)


def parse_row_search(text: str) -> frozenset[str]:
    """A value of slave_rows_search_algorithms, e.g. "INDEX_SCAN,HASH_SCAN". Raises ValueError as
    the server refuses it."""
    options = frozenset(word.strip().upper() for word in text.split(",") if word.strip())
    wrong = options - set(OPTIONS)
    if wrong or not options:
        raise ValueError(
            f"slave_rows_search_algorithms can't be set to {text!r}: a list of {', '.join(OPTIONS)}"
        )
    return options
