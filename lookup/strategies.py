"""The ways in which a replica finds the rows of an event: a record for each.

They are asked in this order, each whether it is chosen: the order of
`decide_row_lookup_algorithm_and_key` (sql/log_event.cc 5.6 to 8.0; hard-wired from 8.4 on), which
suits `find_key` (sql/log_event_server.cc MariaDB 10.11), too. A way of its own is a record here, a
formula in `lookup.read_formulas` and, if it looks for one row at a time, a class in
`lookup.search`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from lookup import read_formulas
from lookup.key_choice import (
    BY_INDEX,
    BY_TABLE,
    HASH_OVER_INDEX,
    HASH_OVER_TABLE,
    KEY_CLASSES,
    NEVER_HASHED_ENGINES,
    UNIQUE_CLASSES,
    Decision,
    KeyQuestion,
    key_class,
)
from lookup.read_formulas import Draw, ExpectedCounters
from lookup.search import RowSearch, SearchRequest, key_search, table_search, unique_search
from lookup.versions import HASH_SCAN, INDEX_SCAN, ServerRules


class Access(Enum):
    """What a handler is asked for."""

    ROW = "the row of a unique key's value"
    VALUE = "the rows of a key's value, one after the other"
    TABLE = "the rows of the table, one after the other"


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way of finding rows."""

    name: str
    """As `--stats` prints it. Two of the ways have the server's one name."""
    access: Access
    choose: Callable[[KeyQuestion], Decision | None]
    """When it is chosen: the decision; None where the next one is asked."""
    search: Callable[[SearchRequest], RowSearch] | None
    """How it finds the row of one image; None: the images of an event are hashed and found at
    once (`lookup.hash_scan`)."""
    reads: Callable[[Draw, ServerRules], ExpectedCounters]
    """What that costs on average."""
    is_exact: Callable[[Draw], bool]
    """Whether `reads` is the cost of every event, with all of its rows missing or none."""
    reads_text: str
    """What it reads, in words."""
    expensive_text: str
    """Why that may be much: `key` is its name, `no_key` why none is used."""

    @property
    def hashes(self) -> bool:
        """The images of an event are known before the first row is read."""
        return self.search is None

    @property
    def scans(self) -> bool:
        """No key is read."""
        return self.access is Access.TABLE


def _by_unique_key(question: KeyQuestion) -> Decision | None:
    if question.rules.find_row:
        key = question.mariadb_unique()
        return Decision(BY_INDEX, key, key_class(question.table, key)) if key else None
    if INDEX_SCAN not in question.options:
        return None
    key, found = question.first_usable(UNIQUE_CLASSES)
    return Decision(BY_INDEX, key, found) if key else None


def _is_hashed(question: KeyQuestion) -> bool:
    may = HASH_SCAN in question.options and not question.rules.find_row
    return may and question.table.engine.lower() not in NEVER_HASHED_ENGINES


def _hashed_over_index(question: KeyQuestion) -> Decision | None:
    if not _is_hashed(question):
        return None
    key, found = question.first_usable(KEY_CLASSES)
    return Decision(HASH_OVER_INDEX, key, found) if key else None


def _hashed_over_table(question: KeyQuestion) -> Decision | None:
    return Decision(HASH_OVER_TABLE) if _is_hashed(question) else None


def _by_key(question: KeyQuestion) -> Decision | None:
    if question.rules.find_row:
        key = question.mariadb_best()
    elif INDEX_SCAN in question.options and question.rules.row_search_selectable:
        key, _ = question.first_usable(("other",))
    else:
        return None
    return Decision(BY_INDEX, key, "other") if key else None


def _by_table(question: KeyQuestion) -> Decision:
    return Decision(BY_TABLE)


STRATEGIES = (
    Strategy(
        name=BY_INDEX,
        access=Access.ROW,
        choose=_by_unique_key,
        search=unique_search,
        reads=read_formulas.unique_reads,
        is_exact=read_formulas.always,
        reads_text="1 row",
        expensive_text="key `{key}` is read for each row",
    ),
    Strategy(
        name=HASH_OVER_INDEX,
        access=Access.VALUE,
        choose=_hashed_over_index,
        search=None,
        reads=read_formulas.hash_over_index_reads,
        is_exact=read_formulas.exact_hash_over_index,
        reads_text="all rows with the key's values, once per event",
        expensive_text="many rows share each value of key `{key}`",
    ),
    Strategy(
        name=HASH_OVER_TABLE,
        access=Access.TABLE,
        choose=_hashed_over_table,
        search=None,
        reads=read_formulas.hash_over_table_reads,
        is_exact=read_formulas.exact_hash_over_table,
        reads_text="up to the last row, once per event",
        expensive_text="each event scans the table{no_key}",
    ),
    Strategy(
        name=BY_INDEX,
        access=Access.VALUE,
        choose=_by_key,
        search=key_search,
        reads=read_formulas.key_reads,
        is_exact=read_formulas.exact_key,
        reads_text="rows with the key's value, up to the row",
        expensive_text="key `{key}` is not unique, and many rows share each value",
    ),
    Strategy(
        name=BY_TABLE,
        access=Access.TABLE,
        choose=_by_table,
        search=table_search,
        reads=read_formulas.table_reads,
        is_exact=read_formulas.exact_table,
        reads_text="up to the row, from the top, for each row",
        expensive_text="each lookup starts at the top of the table{no_key}",
    ),
)
_OF = {(strategy.name, strategy.access is Access.ROW): strategy for strategy in STRATEGIES}


def strategy_of(decision: Decision) -> Strategy:
    """The record of a decision; NOT_NEEDED has none."""
    return _OF[decision.algorithm, decision.by_unique_key]


def strategy_named(name: str) -> Strategy:
    """The record of an algorithm by its name; of the two index scans the one that reads several
    rows."""
    return _OF[name, False]
