"""The triggers that one statement fires, row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lookup.handler import Row


@dataclass(slots=True)
class FiringRow:
    """The row at hand, which OLD and NEW mean: None where it was not there, or will not be."""

    old: Row | None = None
    new: Row | None = None


Program = Callable[[], None]
"""What a trigger does to the row at hand and to other tables."""


@dataclass(slots=True)
class FiredTriggers:
    """`changes_tables`: whether one of them does more than set columns of its row; `needs_order`:
    whether what they do together hangs on the order of the rows; `sets_variables` and
    `reads_variables`: of the user."""

    row: FiringRow = field(default_factory=FiringRow)
    programs: dict[str, list[Program]] = field(default_factory=lambda: {"BEFORE": [], "AFTER": []})
    changes_tables: bool = False
    needs_order: bool = False
    sets_variables: bool = False
    reads_variables: bool = False

    def before(self, old: Row | None, new: Row | None) -> Row | None:
        """Fires those before the change; returns the new row as they leave it."""
        return self._run("BEFORE", old, new)

    def after(self, old: Row | None, new: Row | None) -> None:
        """Fires those behind the change."""
        self._run("AFTER", old, new)

    def _run(self, time: str, old: Row | None, new: Row | None) -> Row | None:
        programs = self.programs[time]
        if not programs:
            return new
        self.row.old, self.row.new = old, new
        for program in programs:
            program()
        return self.row.new
