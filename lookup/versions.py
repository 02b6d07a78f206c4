"""What differs between servers in finding and changing rows: one row a version, one column a rule.

A row has the rules of the newest releases of its series; what earlier releases of it did otherwise is in CHANGES.

From the sources of 5.6, 5.7, 8.0, 9.7 (sql/log_event.cc) and MariaDB 10.11 (sql/log_event_server.cc), corrected by what
real 5.6.24, 5.7.29, 9.7.4 and MariaDB 10.11.19 replicas were seen to do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

INDEX_SCAN, TABLE_SCAN, HASH_SCAN = "INDEX_SCAN", "TABLE_SCAN", "HASH_SCAN"
OPTIONS = (TABLE_SCAN, INDEX_SCAN, HASH_SCAN)


@dataclass(frozen=True, slots=True)
class ServerRules:
    """The rules of one server version."""

    name: str
    row_search: frozenset[str]
    """The default of slave_rows_search_algorithms; for 8.4+ what is hard-wired, for MariaDB unused."""
    row_search_selectable: bool = True
    find_row: bool = False
    """MariaDB: no hash, the key with the best cardinality, a lookup per row."""
    second_unique_usable: bool = True
    """Up to 5.7.22 and 8.0.11 the class of unique keys is searched in internal temporary tables only (`share->uniques`, bug #81500)."""
    invisible_skipped: bool = True
    functional_needs_index_scan: bool = False
    spatial_usable: bool = False
    """5.7 takes a SPATIAL key for an ordinary one and then finds nothing in it: 1032."""
    steps_to_index_end: bool = False
    """Index scan by a non-unique key steps with index_next, not index_next_same."""
    misread_after_index_miss: bool = False
    misread_after_scan_miss: bool = False
    """After a row was not found, the after image is skipped with the before image's bitmap (fixed in 8.0)."""
    hash_looks_again: bool = True
    """Hash scan looks an updated row up again at once (8.0.17, bug #72788)."""
    collisions_apply: bool = False
    """Hash scan takes a row for a before image that only has its checksum, and updates it (bug #101828, from 8.0.17 on; for which
    releases that is seen, and for which it is inferred, stands at CHANGES)."""
    hash_order: str = "multimap"
    """In which order equal before images leave the hash: "multimap" (std::unordered_multimap) or "mysys" (mysys/hash.c)."""
    table_scan_passes: int = 2
    """How often a table scan runs through the table before a row is missing."""
    engine_side_counters: bool = True
    """InnoDB counts inside its own reads: a scan start is also a read_first and a read_key, a position read also a read_key."""
    counts_free_slots: bool = True
    """rnd_next on a deleted row of fixed length (MyISAM) is in read_rnd_next; MariaDB has read_rnd_deleted for it."""
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
            misread_after_index_miss=True,
            misread_after_scan_miss=True,
            hash_looks_again=False,
            hash_order="mysys",
            source_word="master",
        ),
        ServerRules(
            "5.7",
            _IT,
            invisible_skipped=False,
            spatial_usable=True,
            misread_after_scan_miss=True,
            hash_looks_again=False,
            hash_order="mysys",
            source_word="master",
        ),
        ServerRules("8.0", _IH, functional_needs_index_scan=True),
        ServerRules("8.4", _IH, row_search_selectable=False),
        ServerRules("9.7", _IH, row_search_selectable=False),
        ServerRules(
            "mariadb",
            frozenset(),
            row_search_selectable=False,
            find_row=True,
            invisible_skipped=False,
            table_scan_passes=1,
            engine_side_counters=False,
            counts_free_slots=False,
            source_word="master",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Change:
    """A release that changed a rule of its series: the releases of the series before it had the value `before`."""

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
    Change((8, 0, 46), "collisions_apply", before=True),
    Change((8, 4, 9), "collisions_apply", before=True),
    *(Change((*series, NEVER), "collisions_apply", before=True) for series in INNOVATION_SERIES),
)
"""The first two by the changelog in bug #81500; the third is bug #72788. What came with it, bug #101828, was reported up to 8.0.42. Seen
in sources: 8.0.39 and 8.4.6 have it, 8.0.46 and 9.7 have not. The rest is inferred from dates: the report was closed two days after 8.0.46
and 8.4.9 came out (April 2026), so all that came out before these two is taken to have it."""


_ROWS = {tuple(int(part) for part in name.split(".")): name for name in RULES if name != "mariadb"}
"""Series of MySQL -> its row."""
OLDEST, NEWEST = _ROWS[min(_ROWS)], _ROWS[max(_ROWS)]


def rules_for(version: str) -> ServerRules:
    """The rules of a version named as on the command line ("5.7", "8.0.16") or as a server says it ("5.7.29-log", "10.11.19-MariaDB").

    Versions between two rows follow the older one, a series without a release its newest one, versions behind the last row that one
    (`outside` tells); before 5.6 there was no choice of algorithm and 5.6's rules with INDEX_SCAN,TABLE_SCAN are the closest.
    Raises ValueError for what is no version.
    """
    if version in RULES:
        return RULES[version]
    asked = _series(version)
    if asked is None:
        return RULES["mariadb"]
    older = [name for number, name in sorted(_ROWS.items()) if number <= asked]
    return _as_of(RULES[older[-1] if older else OLDEST], asked, _numbers(version)[2:])


def outside(version: str) -> Literal["older", "newer"] | None:
    """Whether a version is older than all of MySQL that has a row, or newer. Raises ValueError for what is no version."""
    asked = None if version in RULES else _series(version)
    if asked is None:
        return None
    return "older" if asked < min(_ROWS) else "newer" if asked > max(_ROWS) else None


def _series(version: str) -> tuple[int, int] | None:
    """(8, 0) of 8.0.16; None for one of MariaDB's, whose series from 10.0 on have numbers that MySQL never took."""
    if "mariadb" in version.lower():
        return None
    numbers = _numbers(version)
    if len(numbers) < 2 or not all(number.isdecimal() for number in numbers[:2]):
        raise ValueError(f"{version!r} is no server version")
    asked = (int(numbers[0]), int(numbers[1]))
    return None if asked[0] in (10, 11, 12) else asked


def _numbers(version: str) -> list[str]:
    return version.split("-", maxsplit=1)[0].split(".")


def _as_of(rules: ServerRules, series: tuple[int, int], rest: list[str]) -> ServerRules:
    """The rules that a release of the series had, `rest` being what follows the series in its name; nothing: its newest one."""
    release = (*series, int(rest[0]) if rest and rest[0].isdecimal() else LAST)
    later = [change for change in CHANGES if change.release[:2] == series and release < change.release]
    before: dict[str, Any] = {change.rule: change.before for change in sorted(later, key=lambda change: change.release, reverse=True)}
    return replace(rules, **before)


def parse_row_search(text: str) -> frozenset[str]:
    """A value of slave_rows_search_algorithms, e.g. "INDEX_SCAN,HASH_SCAN". Raises ValueError as the server refuses it."""
    options = frozenset(word.strip().upper() for word in text.split(",") if word.strip())
    wrong = options - set(OPTIONS)
    if wrong or not options:
        raise ValueError(f"slave_rows_search_algorithms can't be set to {text!r}: a list of {', '.join(OPTIONS)}")
    return options
