"""Foreign keys as InnoDB carries them out below the replica's applier: checks, cascades, SET NULL.

Up to 9.5 a cascade is done inside InnoDB, on the source and again on the replica, and is not in the log. From 9.6 on the
source logs the child rows too, before the parent's, in events that check no foreign keys. All events have the flag USE_SQL_FOREIGN_KEY
(0x10) then; a replica of 9.7 checks and cascades as ever all the same, which changes only child rows that the source did not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from applier.tables.engine import MemoryTable
from lookup.handler import NoReferencedRow, Ref, Row, RowError, RowIsReferenced
from lookup.table import ForeignKey, TableDefinition

Find = Callable[[str, str], MemoryTable | None]


class ForeignKeys:
    """All foreign keys of a set of tables; implements `engine.References`. `enabled` follows the flags of the rows event at hand."""

    def __init__(self, find: Find) -> None:
        self.enabled = True
        self._find = find
        self._children: dict[tuple[str, str], list[tuple[tuple[str, str], ForeignKey]]] = {}

    def declare(self, definition: TableDefinition) -> None:
        """Takes in the foreign keys of a new table."""
        child = (definition.database, definition.name)
        for key in definition.foreign_keys:
            self._children.setdefault((key.referenced_database, key.referenced_table), []).append((child, key))

    def forget(self, definition: TableDefinition) -> None:
        """Drops the foreign keys of a table that goes away."""
        child = (definition.database, definition.name)
        for links in self._children.values():
            links[:] = [link for link in links if link[0] != child]

    def has_children(self, definition: TableDefinition) -> bool:
        """Whether a foreign key points to the table."""
        return bool(self._children.get((definition.database, definition.name)))

    def concerns(self, definition: TableDefinition) -> bool:
        """Whether the table has foreign keys or one points to it."""
        return bool(definition.foreign_keys) or self.has_children(definition)

    def check_parents(self, definition: TableDefinition, row: Row, old: Row | None = None) -> None:
        """Raises NoReferencedRow when a foreign key of the row points nowhere."""
        if not self.enabled:
            return
        for key in definition.foreign_keys:
            values = tuple(row[definition.positions[name.lower()]] for name in key.columns)
            if None in values or (old is not None and values == tuple(old[definition.positions[name.lower()]] for name in key.columns)):
                continue
            if not self._has_parent(key, values, definition, row):
                raise NoReferencedRow(_message("add or update a child row", definition, key))

    def parent_deleted(self, parent: MemoryTable, ref: Ref, row: Row) -> None:
        """Carries out ON DELETE for the rows that point to `row`. Raises RowIsReferenced."""
        if not self.enabled:
            return
        with self._all_or_nothing(parent):
            for child, key, children in self._referring(parent.definition, row):
                for child_ref in children:
                    if child is parent and child_ref == ref:
                        continue
                    self._act(key.on_delete, child, child_ref, key, None)

    def parent_updated(self, parent: MemoryTable, old: Row, row: Row) -> None:
        """Carries out ON UPDATE for the rows that point to `old`. Raises RowIsReferenced."""
        if not self.enabled:
            return
        with self._all_or_nothing(parent, own_change=True):
            for child, key, children in self._referring(parent.definition, old):
                columns = [parent.definition.positions[name.lower()] for name in key.referenced_columns]
                if all(old[column] == row[column] for column in columns):
                    continue
                for child_ref in children:
                    self._act(key.on_update, child, child_ref, key, tuple(row[column] for column in columns))

    @contextmanager
    def _all_or_nothing(self, parent: MemoryTable, *, own_change: bool = False) -> Iterator[None]:
        """A refused cascade takes back what it did, and with `own_change` the change of the parent before it."""
        journal = parent.journal
        mark = 0 if journal is None else len(journal) - own_change
        try:
            yield
        except RowError:
            for change in reversed(journal[mark:] if journal is not None else []):
                change[0].undo(change)
            if journal is not None:
                del journal[mark:]
            raise

    def _has_parent(self, key: ForeignKey, values: tuple[object, ...], definition: TableDefinition, row: Row) -> bool:
        parent = self._find(key.referenced_database, key.referenced_table)
        if parent is None:
            return False
        columns = tuple(parent.definition.positions[name.lower()] for name in key.referenced_columns)
        if parent.definition is definition and tuple(row[column] for column in columns) == values:
            return True
        ordered = sorted(zip(columns, values, strict=True), key=lambda pair: pair[0])
        places, image = tuple(column for column, _ in ordered), tuple(value for _, value in ordered)
        primary = parent.definition.primary
        if primary is not None and set(primary.columns) == set(places) and not primary.has_prefix:
            return parent.primary_lookup(places)(image) is not None
        return parent.first_match(places, image) is not None

    def _referring(self, definition: TableDefinition, row: Row) -> list[tuple[MemoryTable, ForeignKey, list[Ref]]]:
        found = []
        for name, key in self._children.get((definition.database, definition.name), ()):
            child = self._find(*name)
            if child is None:
                continue
            pairs = sorted(
                (child.definition.positions[own.lower()], row[definition.positions[theirs.lower()]])
                for own, theirs in zip(key.columns, key.referenced_columns, strict=True)
            )
            columns, image = tuple(column for column, _ in pairs), tuple(value for _, value in pairs)
            children = list(child.matches(columns, image)) if None not in image else []
            if children:
                found.append((child, key, children))
        return found

    def _act(self, action: str, child: MemoryTable, ref: Ref, key: ForeignKey, values: tuple[object, ...] | None) -> None:
        """`values`: the parent's new key, None when the parent row goes away."""
        row = child.get(ref)
        if row is None:
            return
        if action == "cascade" and values is None:
            child.delete(ref)
            return
        if action not in ("cascade", "set null"):
            raise RowIsReferenced(_message("delete or update a parent row", child.definition, key))
        new = list(row)
        for at, name in enumerate(key.columns):
            new[child.definition.positions[name.lower()]] = values[at] if action == "cascade" and values else None
        child.update(ref, tuple(new))


def _message(what: str, definition: TableDefinition, key: ForeignKey) -> str:
    own = ", ".join(f"`{name}`" for name in key.columns)
    theirs = ", ".join(f"`{name}`" for name in key.referenced_columns)
    return (
        f"Cannot {what}: a foreign key constraint fails (`{definition.database}`.`{definition.name}`, CONSTRAINT `{key.name}` "
        f"FOREIGN KEY ({own}) REFERENCES `{key.referenced_table}` ({theirs}))"
    )
