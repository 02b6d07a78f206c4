"""The columns that an expression may name: of one table, or of tables that are joined.

All of them stand in one row, table by table; in a subquery behind those of the SELECT or statement
around it.
"""

from __future__ import annotations

from dataclasses import dataclass

from applier.errors import ReplicationError
from applier.tables.expressions.operands import unsupported
from lookup.table import Column, TableDefinition

UNKNOWN_COLUMN = 1054


@dataclass(frozen=True, slots=True)
class VisibleTable:
    """A table under the name that qualifies its columns; `start`: where they begin in the row;
    `outer`: an outer join may leave them NULL."""

    definition: TableDefinition
    start: int
    outer: bool = False

    def is_named(self, qualifiers: list[str]) -> bool:
        """Whether [[database.]table.] means this table."""
        own = [self.definition.database, self.definition.name]
        return all(
            one.lower() == two.lower()
            for one, two in zip(reversed(qualifiers), reversed(own), strict=False)
        )


class VisibleColumns:
    """`around`: what a subquery may name, too, where it has no column of this name itself.
    `shared`: names in USING, which mean the first table that has them. `read`: positions that
    expressions named."""

    def __init__(self, around: VisibleColumns | None = None) -> None:
        self.around = around
        self.tables: list[VisibleTable] = []
        self.shared: set[str] = set()
        self.read: set[int] = set()
        self.start: int = 0 if around is None else around.width
        """Where the columns of the own tables begin."""
        self.width: int = self.start

    @property
    def reads_around(self) -> bool:
        """Whether expressions named a column of a SELECT or statement around this one."""
        return any(at < self.start for at in self.read)

    @classmethod
    def of(cls, definition: TableDefinition) -> VisibleColumns:
        """Those of one table."""
        found = cls()
        found.add(definition)
        return found

    def add(self, definition: TableDefinition, *, outer: bool = False) -> VisibleTable:
        """One more table, behind the others."""
        table = VisibleTable(definition, self.width, outer)
        self.tables.append(table)
        self.width += len(definition.columns)
        return table

    def find(self, names: list[str]) -> tuple[int, Column]:
        """The position in the row of [[database.]table.]column, and the column.

        Raises ReplicationError: 1054 for one that is not there, 1235 where several tables have one
        of this name.
        """
        found = self._places(names)
        if not found and self._places(names[-1:]):
            raise unsupported(f"the column {'.'.join(names)}")
        if not found:
            raise ReplicationError(
                UNKNOWN_COLUMN, f"Unknown column '{'.'.join(names)}' in 'field list'"
            )
        if not self._is_one(names, found):
            raise unsupported(f"the column {'.'.join(names)}, which several tables have")
        return found[0]

    def use(self, names: list[str]) -> tuple[int, Column]:
        """As `find`, for an expression."""
        around = self.around
        if around is not None and not self._places(names) and around._knows(names):
            found = around.use(names)
        else:
            found = self.find(names)
        self.read.add(found[0])
        return found

    def place(self, names: list[str]) -> tuple[int, Column] | None:
        """As `find`, around this one, too; None where that raises an error."""
        found = self._places(names)
        if not found and self.around is not None:
            return self.around.place(names)
        return found[0] if found and self._is_one(names, found) else None

    def may_be_null(self, names: list[str]) -> bool:
        """Whether [[database.]table.]column may be NULL in a row, though its definition may not
        say so."""
        place = self.place(names)
        if place is None:
            return True
        at, column = place
        own = [table for table in self.tables if table.start <= at]
        return column.nullable or not own or own[-1].outer

    def _knows(self, names: list[str]) -> bool:
        """Whether a column has this name here or around this one."""
        here = bool(self._places(names))
        return here or (self.around is not None and self.around._knows(names))

    def _is_one(self, names: list[str], found: list[tuple[int, Column]]) -> bool:
        return len(found) == 1 or (len(names) == 1 and names[0].lower() in self.shared)

    def _places(self, names: list[str]) -> list[tuple[int, Column]]:
        own = names[-1].lower()
        return [
            (table.start + table.definition.positions[own],
             table.definition.columns[table.definition.positions[own]])
            for table in self.tables
            if own in table.definition.positions and table.is_named(names[:-1])
        ]  # fmt: skip
