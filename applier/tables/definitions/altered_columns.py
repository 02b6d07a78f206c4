"""The columns of a table while an ALTER TABLE changes them: old names and new ones, FIRST and
AFTER.

All clauses of one ALTER TABLE call the columns that are there by their old names; what is new
(AFTER, ADD KEY) calls them by their new ones (`mysql_prepare_alter_table`, sql_table.cc). So
columns are put in their places, and names followed, when all clauses are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from applier.errors import ReplicationError
from applier.tables.definitions.named_keys import SHORT_TEXTS, KeyPartDraft
from applier.tables.row_size import column_bytes
from applier.tables.sql.sql_text import Parser
from lookup.table import Column, ForeignKey, TableDefinition

LARGE_OBJECTS = frozenset(
    f"{size}{kind}" for size in ("tiny", "", "medium", "long") for kind in ("text", "blob")
)


@dataclass(eq=False)
class AlteredColumn:
    """A column while its table is changed. `source`: its position before, None for a new one.

    `after`: the column that it is put behind, by its new name; "" for FIRST, None where no clause
    says.
    """

    column: Column
    source: int | None
    after: str | None = None
    dropped: bool = False
    redefined: bool = False
    """A clause says anew what it is, in words that call other columns by their new names."""


class AlteredColumns:
    """`kept`: those of the old definition, in its order. `placed`: the new ones, and those that a
    clause moves, in clause order."""

    def __init__(self, old: TableDefinition) -> None:
        self.old = old
        self.kept = [AlteredColumn(column, at) for at, column in enumerate(old.columns)]
        self.placed: list[AlteredColumn] = []

    def __contains__(self, name: str) -> bool:
        """Whether the table had a column of this name before, which no clause has dropped."""
        at = self.old.positions.get(name.lower())
        return at is not None and not self.kept[at].dropped

    def __getitem__(self, name: str) -> AlteredColumn:
        """The column that had this name before. Raises ReplicationError 1054."""
        at = self.old.positions.get(name.lower())
        if at is None or self.kept[at].dropped:
            raise self._unknown(name)
        return self.kept[at]

    def with_new(self, name: str) -> AlteredColumn:
        """The same, or a column of this name that a clause before adds, as ALTER and MODIFY COLUMN
        take it (seen on MariaDB 10.11.18)."""
        return self.added(name) or self[name]

    def added(self, name: str) -> AlteredColumn | None:
        """The column of this name that a clause before adds."""
        added = (
            column
            for column in self.placed
            if column.source is None and column.column.name.lower() == name.lower()
        )
        return next(added, None)

    def is_there(self, name: str) -> bool:
        """For ADD … IF NOT EXISTS: whether the table had a column of this name, dropped by now or
        not, or a clause before adds one or gives it to one (handle_if_exists_options,
        sql/sql_table.cc; seen on MariaDB 10.11.18)."""
        columns = (*self.kept, *self.placed)
        return name.lower() in self.old.positions or any(
            one.redefined and one.column.name.lower() == name.lower() for one in columns
        )

    @property
    def renamed(self) -> dict[str, str]:
        """Old name in lower case -> new name, of the columns that have another."""
        pairs = [
            (self.old.columns[at].name, column.column.name)
            for at, column in enumerate(self.kept)
            if not column.dropped
        ]
        return {old.lower(): new for old, new in pairs if old != new}

    @property
    def dropped(self) -> set[str]:
        """Names in lower case."""
        return {
            self.old.columns[at].name.lower()
            for at, column in enumerate(self.kept)
            if column.dropped
        }

    def in_places(self) -> list[AlteredColumn]:
        """All columns of the new definition in its order. Raises ReplicationError for names that
        are not there, or twice."""
        columns = [column for column in self.kept if not column.dropped]
        hidden = next((column for column in columns if column.column.hidden), None)
        for column in self.placed:
            if column.source is not None:
                columns.remove(column)
            if column.after == "":
                columns.insert(0, column)
            elif column.after is not None:
                columns.insert(self._behind(columns, column.after), column)
            else:
                columns.insert(len(columns) if hidden is None else columns.index(hidden), column)
        seen: set[str] = set()
        for column in columns:
            name = column.column.name
            if name.lower() in seen:
                raise ReplicationError(
                    1060, f"Duplicate column name '{name}'", table=self.old.full_name
                )
            seen.add(name.lower())
        return columns

    def follow_parts(self, parts: list[KeyPartDraft]) -> list[KeyPartDraft]:
        """Parts of a key that was there, by the new names; a column that is dropped leaves the
        key, if none is added with its name: then that one is in the key
        (`mysql_prepare_alter_table`; seen on 5.7.29, 9.7.4 and MariaDB 10.11.18)."""
        renamed, dropped = self.renamed, self.dropped
        followed: list[KeyPartDraft] = []
        for name, prefix, descending, expression in parts:
            if name is None or name.lower() not in dropped:
                new = None if name is None else renamed.get(name.lower(), name)
                followed.append((new, prefix, descending, expression))
            elif (added := self.added(name)) is not None:
                old = self.old.columns[self.old.positions[name.lower()]]
                part = _prefix_of_next(added.column, old, prefix)
                followed.append((name, part, descending, None))
        return followed

    def follow_foreign_keys(self, keys: list[ForeignKey]) -> list[ForeignKey]:
        """The same for foreign keys, of which one without all of its columns is gone; a new one has
        the new names already."""
        renamed, dropped = self.renamed, self.dropped
        old, followed = self.old.foreign_keys, []
        for key in keys:
            if key not in old:
                followed.append(key)
            elif not dropped & {name.lower() for name in key.columns}:
                followed.append(
                    replace(
                        key, columns=tuple(renamed.get(name.lower(), name) for name in key.columns)
                    )
                )
        return followed

    def _behind(self, columns: list[AlteredColumn], name: str) -> int:
        for at, column in enumerate(columns):
            if column.column.name.lower() == name.lower():
                return at + 1
        raise self._unknown(name)

    def _unknown(self, name: str) -> ReplicationError:
        return ReplicationError(
            1054, f"Unknown column '{name}' in '{self.old.name}'", table=self.old.full_name
        )


def _prefix_of_next(new: Column, old: Column, prefix: int | None) -> int | None:
    """How much of a column a key keeps that had another one of this name: as many characters, and
    of a number's bytes as many."""
    if new.type not in SHORT_TEXTS | LARGE_OBJECTS:
        return None
    length = prefix or (old.length if old.type in SHORT_TEXTS else column_bytes(old)) or 1
    return length if new.length is None or length < new.length else None


def with_names(column: Column, renamed: Mapping[str, str]) -> Column:
    """The column with the new names of others in its expressions."""
    expression = None if column.expression is None else rename_in(column.expression, renamed)
    default = None if column.default is None else rename_in(column.default, renamed)
    return replace(column, expression=expression, default=default)


def rename_in(expression: str, renamed: Mapping[str, str]) -> str:
    """The expression with the columns' new names in it."""
    parser = Parser(expression)
    pieces, end = [], 0
    for at, token in enumerate(parser.tokens):
        called = token.kind == "word" and parser.op(at + 1) == "("
        new = (
            renamed.get(token.value.lower())
            if token.kind in ("word", "quoted") and not called
            else None
        )
        if new is not None:
            pieces += [expression[end : token.start], "`" + new.replace("`", "``") + "`"]
            end = token.end
    return "".join([*pieces, expression[end:]])


def names_in(expression: str) -> set[str]:
    """All that may be a name in it, in lower case."""
    return {
        token.value.lower()
        for token in Parser(expression).tokens
        if token.kind in ("word", "quoted")
    }
