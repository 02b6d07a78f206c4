"""The ways in which a replica finds the rows of an event: a record for each.

They are asked in this order, each whether it is chosen: the order of
`decide_row_lookup_algorithm_and_key` (sql/log_event.cc 5.6 to 8.0; hard-wired from 8.4 on), which
suits `find_key` (sql/log_event_server.cc MariaDB 10.11), too. A way of its own is a record here, a
formula in `lookup.read_formulas`, and a class: in `lookup.search` if it looks for one row at a
time, else in `lookup.scan_cursors`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from lookup import read_formulas
from lookup.key_choice import (
    KEY_CLASSES,
    NEVER_HASHED_ENGINES,
    NO_KEY_READ,
    UNIQUE_CLASSES,
    KeyChoice,
    KeyQuestion,
)
from lookup.read_formulas import Draw, ExpectedCounters
from lookup.scan_cursors import CursorRequest, ScanCursor, index_cursor, table_cursor
from lookup.search import RowSearch, SearchRequest, key_search, table_search, unique_search
from lookup.table import Key
from lookup.versions import HASH_SCAN, INDEX_SCAN, ServerRules

NOT_NEEDED = "not needed"
"""What stands for the algorithm where no row has to be found."""


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
    choose: Callable[[KeyQuestion], KeyChoice | None]
    """When it is chosen: the key that it reads; None where the next one is asked."""
    search: Callable[[SearchRequest], RowSearch] | None
    """How it finds the row of one image, if it looks for one at a time."""
    cursor: Callable[[CursorRequest], ScanCursor] | None
    """What it goes through for the images of an event, hashed (`lookup.hash_scan`), if it looks for
    all at once."""
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
        return self.cursor is not None

    @property
    def scans(self) -> bool:
        """No key is read."""
        return self.access is Access.TABLE


@dataclass(frozen=True, slots=True)
class Decision:
    """How one rows event finds its rows. `strategy` None: none has to be found.

    `key` is the key that is read (None: the table is), `key_class` "primary", "unique", "other" or
    "none".
    """

    strategy: Strategy | None = None
    key: Key | None = None
    key_class: str = "none"

    @property
    def algorithm(self) -> str:
        """As `--stats` prints it."""
        return NOT_NEEDED if self.strategy is None else self.strategy.name

    @property
    def by_unique_key(self) -> bool:
        """The key leads to the row at once, and the row is not compared with the image."""
        return self.strategy is not None and self.strategy.access is Access.ROW

    @property
    def hashes(self) -> bool:
        """All images of an event are known before the first row is looked for."""
        return self.strategy is not None and self.strategy.hashes


def _by_unique_key(question: KeyQuestion) -> KeyChoice | None:
    if question.rules.find_row:
        return question.mariadb_unique()
    return question.first_usable(UNIQUE_CLASSES) if INDEX_SCAN in question.options else None


def _is_hashed(question: KeyQuestion) -> bool:
    may = HASH_SCAN in question.options and not question.rules.find_row
    return may and question.table.engine.lower() not in NEVER_HASHED_ENGINES


def _hashed_over_index(question: KeyQuestion) -> KeyChoice | None:
    return question.first_usable(KEY_CLASSES) if _is_hashed(question) else None


def _hashed_over_table(question: KeyQuestion) -> KeyChoice | None:
    return NO_KEY_READ if _is_hashed(question) else None


def _by_key(question: KeyQuestion) -> KeyChoice | None:
    if question.rules.find_row:
        return question.mariadb_best()
    may = INDEX_SCAN in question.options and question.rules.row_search_selectable
    return question.first_usable(("other",)) if may else None


def _by_table(question: KeyQuestion) -> KeyChoice:
    return NO_KEY_READ


STRATEGIES = (
    Strategy(
        name="index scan",
        access=Access.ROW,
        choose=_by_unique_key,
        search=unique_search,
        cursor=None,
        reads=read_formulas.unique_reads,
        is_exact=read_formulas.always,
        reads_text="1 row",
        expensive_text="key `{key}` is read for each row",
    ),
    Strategy(
        name="hash over index",
        access=Access.VALUE,
        choose=_hashed_over_index,
        search=None,
        cursor=index_cursor,
        reads=read_formulas.hash_over_index_reads,
        is_exact=read_formulas.exact_hash_over_index,
        reads_text="all rows with the key's values, once per event",
        expensive_text="many rows share each value of key `{key}`",
    ),
    Strategy(
        name="hash over table",
        access=Access.TABLE,
        choose=_hashed_over_table,
        search=None,
        cursor=table_cursor,
        reads=read_formulas.hash_over_table_reads,
        is_exact=read_formulas.exact_hash_over_table,
        reads_text="up to the last row, once per event",
        expensive_text="each event scans the table{no_key}",
    ),
    Strategy(
        name="index scan",
        access=Access.VALUE,
        choose=_by_key,
        search=key_search,
        cursor=None,
        reads=read_formulas.key_reads,
        is_exact=read_formulas.exact_key,
        reads_text="rows with the key's value, up to the row",
        expensive_text="key `{key}` is not unique, and many rows share each value",
    ),
    Strategy(
        name="table scan",
        access=Access.TABLE,
        choose=_by_table,
        search=table_search,
        cursor=None,
        reads=read_formulas.table_reads,
        is_exact=read_formulas.exact_table,
        reads_text="up to the row, from the top, for each row",
        expensive_text="each lookup starts at the top of the table{no_key}",
    ),
)
_NAMED = {strategy.name: strategy for strategy in STRATEGIES}


def strategy_named(name: str) -> Strategy:
    """The record of an algorithm by its name; of the two index scans the one that reads several
    rows."""
    return _NAMED[name]
