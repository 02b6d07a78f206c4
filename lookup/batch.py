"""One rows event as the lookup gets it, how it shall be applied, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lookup.handler import Counters, Image, Row
from lookup.versions import ServerRules


class CorruptRow(Exception):
    """A row image that cannot be read (ER_SLAVE_CORRUPT_EVENT)."""


@dataclass(frozen=True, slots=True)
class RowsShape:
    """What rows events that are applied alike have in common.

    `kind` is "write", "update" or "delete". `before_columns` and `after_columns` are the local
    positions that the images hold (a write has after images only). `new_row` makes the row to store
    from the row found (None for an insert) and the after image; None: the image is the row.
    `complete` says that the after image holds every local column, `bitmap_full` that the before
    image holds every column of the *source's* table. `defaults` is the table's row of defaults,
    which the before image is laid over where a server looks at all columns (MariaDB,
    `collisions_apply`); None: NULL in every column.
    """

    kind: str
    before_columns: tuple[int, ...] = ()
    after_columns: tuple[int, ...] = ()
    new_row: Callable[[Row | None, Image], Row] | None = None
    complete: bool = True
    bitmap_full: bool = True
    defaults: Row | None = None


Misread = Callable[[int], Sequence[Any]]
"""For row i, the rows that a server reads behind it when it takes the wrong length for that row's
after image (`misread_after_*` in lookup.versions). An image that cannot be read ends them, as a
CorruptRow in its place."""


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How the applier was set up. `skip_errors` None stands for "all"."""

    rules: ServerRules
    row_search: frozenset[str] | None = None
    idempotent: bool = False
    skip_errors: frozenset[int] | None = frozenset()

    def skips(self, number: int) -> bool:
        """Whether the replica goes on behind an error of this number (slave_skip_errors)."""
        return self.skip_errors is None or number in self.skip_errors


@dataclass(frozen=True, slots=True)
class RowFailure:
    """What went wrong with one row: the server's error, its text, the handler's HA_ERR_ name, the
    row's index in the event."""

    number: int
    condition: str
    handler_error: str
    row: int


class RowsOutcome:
    """What applying one rows event did. Its counters are the caller's, so that they can be kept or
    summed.

    `error` is None when the event counts as applied; `forgiven` holds what exec mode IDEMPOTENT or
    the skip list let pass.
    """

    __slots__ = ("counters", "error", "forgiven", "rows_changed")

    def __init__(self, counters: Counters) -> None:
        self.counters = counters
        self.rows_changed = 0
        self.error: RowFailure | None = None
        self.forgiven: tuple[RowFailure, ...] = ()
