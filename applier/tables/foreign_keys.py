"""Foreign keys as InnoDB carries them out below the replica's applier: one graph over all tables,
checks, cascades, SET NULL.

A key names its parent and the columns there, and finds them by these names: a parent that was
dropped and made anew is the parent again, and one that is renamed, or whose columns are, takes the
names in its children along (`row_rename_table_for_mysql` in 5.7 and MariaDB 10.11,
`adjust_fks_for_rename_table` in 8.0 and later; with foreign_key_checks=0, too; seen on 5.7.29,
9.7.4, MariaDB 10.11).

Up to 9.5 a cascade is done inside InnoDB, on the source and again on the replica, and is not in the
log. From 9.6 on the source logs the child rows too, before the parent's, in events that check no
foreign keys. All events have the flag USE_SQL_FOREIGN_KEY (0x10) then; a replica of 9.7 checks and
cascades as ever all the same, which changes only child rows that the source did not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice

from applier.errors import ReplicationError
from applier.tables.collations.collation import pads_with_spaces
from applier.tables.definitions.altered_columns import names_in
from applier.tables.definitions.table_draft import generated_number
from applier.tables.engine import MemoryTable
from applier.tables.expressions.defaults import row_generator
from applier.tables.expressions.operands import PLAIN, Session
from applier.tables.row_history import (
    EventTimes,
    change_row,
    current_refs,
    end_row,
    is_history,
    is_versioned,
    shows_times,
)
from applier.tables.sql.quoting import quoted
from lookup.handler import (
    CascadeTooDeep,
    NoReferencedRow,
    Ref,
    Row,
    RowError,
    RowIsReferenced,
    traits_of,
)
from lookup.table import ForeignKey, TableDefinition

Name = tuple[str, str]
"""Database and table."""
Find = Callable[[str, str], MemoryTable | None]

ACTIONS = frozenset({"cascade", "set null"})
MOST_CASCADES = 15
"""FK_MAX_CASCADE_DEL of InnoDB: so many rows may follow one another, the first one counted."""


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key between two tables that are there. `own` and `theirs`: positions in child and
    parent, in the key's order.

    `generated`: positions in the child of the generated columns that follow from `own`; a cascade
    changes them, too.
    """

    key: ForeignKey
    child: MemoryTable
    parent: MemoryTable
    own: tuple[int, ...]
    theirs: tuple[int, ...]
    generated: tuple[int, ...]
    generate: Callable[[Row], Row] | None

    def is_exact(self, action: str, *, updates: bool) -> bool:
        """Whether the child's rows are found, and changed, by values alone, as it is done here.

        InnoDB compares and copies a CHAR with the spaces that fill it. Beside a VARCHAR it
        therefore finds no row in a collation without PAD SPACE, and a cascade from CHAR to VARCHAR
        stores spaces, how many the row format and the character set decide (seen on 5.7.29, 9.7.4,
        MariaDB 10.11.18).
        """
        if self.fills_with_zeros:
            return False
        for own, theirs in zip(self.own, self.theirs, strict=True):
            child, parent = (
                self.child.definition.columns[own],
                self.parent.definition.columns[theirs],
            )
            if {child.type, parent.type} == {"char", "varchar"}:
                copied = updates and action == "cascade" and parent.type == "char"
                if copied or not pads_with_spaces(child.collation or ""):
                    return False
        return True

    @property
    def fills_with_zeros(self) -> bool:
        """Whether zeros that fill a BINARY, which are not kept here, decide which rows InnoDB
        finds: beside VARBINARY or another length."""
        for own, theirs in zip(self.own, self.theirs, strict=True):
            child, parent = (
                self.child.definition.columns[own],
                self.parent.definition.columns[theirs],
            )
            if "binary" in (child.type, parent.type) and (child.type, child.length) != (
                parent.type,
                parent.length,
            ):
                return True
        return False

    def children(self, parent_row: Row) -> list[Ref]:
        """The child's rows that point to this row of the parent; where zeros decide it, one that
        may."""
        if self.fills_with_zeros:
            return [ref for ref, _ in islice(self.child.scan(), 1)]
        values = tuple(parent_row[at] for at in self.theirs)
        if None in values:
            return []
        found = list(self.child.equal(self.own, values))
        return current_refs(self.child, found) if is_versioned(self.child.definition) else found

    def points_to_itself(self, row: Row) -> bool:
        """Whether the row is its own parent."""
        if self.parent is not self.child or self.fills_with_zeros:
            return False
        return all(
            row[own] == row[theirs] is not None
            for own, theirs in zip(self.own, self.theirs, strict=True)
        )

    def has_parent(self, child_row: Row, old: Row | None) -> bool:
        """Whether the parent has the row that this one points to.

        A row may point to itself, and on 9.7 to what it was before its update (`old`); older
        servers refuse that, so no log has it.
        """
        values = tuple(child_row[at] for at in self.own)
        if self.fills_with_zeros:  # the source has found it
            return True
        if self.parent is self.child and any(
            tuple(row[at] for at in self.theirs) == values
            for row in (child_row, old)
            if row is not None
        ):
            return True
        return any(True for _ in self.parent.equal(self.theirs, values))

    def changed(self, child_row: Row, values: tuple[object, ...]) -> Row:
        """The child's row with other values in the key's columns."""
        new = list(child_row)
        for at, value in zip(self.own, values, strict=True):
            new[at] = value
        if self.generate is not None:
            made = self.generate(tuple(new))
            for at in self.generated:
                new[at] = made[at]
        return tuple(new)


class ForeignKeys:
    """All foreign keys of a set of tables; implements `engine.References`. `enabled` follows the
    flags of the event at hand."""

    def __init__(self, find: Find) -> None:
        self.enabled = True
        self.dialect = PLAIN
        self.times = EventTimes()
        self._find = find
        self._children: dict[Name, set[Name]] = {}
        """Parent, which may not be there -> the tables whose keys name it."""
        self._downwards: dict[Name, list[Link]] = {}
        self._upwards: dict[Name, list[tuple[ForeignKey, Link | None]]] = {}
        self._updating: list[MemoryTable] = []
        self._followed: list[ForeignKey] = []
        """The keys whose cascades are under way, the innermost last."""
        self._depth = 0

    # the graph

    def declare(self, definition: TableDefinition) -> None:
        """Takes in the foreign keys of a new table."""
        for key in definition.foreign_keys:
            self._children.setdefault((key.referenced_database, key.referenced_table), set()).add(
                _name(definition)
            )
        self._forget_links()

    def forget(self, definition: TableDefinition) -> None:
        """Drops the foreign keys of a table that goes away."""
        for children in self._children.values():
            children.discard(_name(definition))
        self._forget_links()

    def has_children(self, definition: TableDefinition) -> bool:
        """Whether a foreign key points to the table."""
        return bool(self._children.get(_name(definition)))

    def concerns(self, definition: TableDefinition) -> bool:
        """Whether the table has foreign keys or one points to it."""
        return bool(definition.foreign_keys) or self.has_children(definition)

    def other_children(self, definition: TableDefinition) -> set[Name]:
        """The tables with keys that point to this one, itself left out."""
        return self._children.get(_name(definition), set()) - {_name(definition)}

    def followers(self, parent: Name, *actions: str) -> set[Name]:
        """The tables whose rows may follow those of `parent`; `actions`: on_delete, on_update."""
        reached, left = set[Name](), [parent]
        while left:
            table = self._find(*left.pop())
            links = [] if table is None else self._links_down(table)
            acting = [one for one in links if ACTIONS & {getattr(one.key, a) for a in actions}]
            left += (new := {_name(one.child.definition) for one in acting} - reached)
            reached |= new
        return reached

    def rename_parent(self, old: Name, new: Name, columns: Mapping[str, str] | None = None) -> None:
        """The keys that name `old` name `new` from now on. `columns`: old name in lower case -> new
        name, of columns that change theirs."""
        for child in sorted(self._children.get(old, ())):
            table = self._find(*child)
            if table is not None:
                table.definition = repointed(table.definition, old, new, columns or {})
        moved = self._children.pop(old, set())
        if moved:
            self._children.setdefault(new, set()).update(moved)
        self._forget_links()

    def _forget_links(self) -> None:
        self._downwards.clear()
        self._upwards.clear()

    def _link(self, key: ForeignKey, child: MemoryTable) -> Link | None:
        """None where no table serves as the parent: it is not there, its engine knows no foreign
        keys, or a column is not there."""
        parent = self._find(key.referenced_database, key.referenced_table)
        if parent is None or not traits_of(parent.definition).foreign_keys:
            return None
        own = [child.definition.positions.get(name.lower()) for name in key.columns]
        theirs = [parent.definition.positions.get(name.lower()) for name in key.referenced_columns]
        if not theirs and parent.definition.primary is not None:
            theirs = list(parent.definition.primary.columns)
        if None in own or None in theirs or len(own) != len(theirs):
            return None
        positions = tuple(at for at in own if at is not None)
        generated = _following(child.definition, positions)
        return Link(
            key=key,
            child=child,
            parent=parent,
            own=positions,
            theirs=tuple(at for at in theirs if at is not None),
            generated=generated,
            generate=row_generator(child.definition, Session.at_utc(self.dialect))
            if generated
            else None,
        )

    def _links_up(self, table: MemoryTable) -> list[tuple[ForeignKey, Link | None]]:
        name = _name(table.definition)
        links = self._upwards.get(name)
        if links is None:
            links = self._upwards[name] = [
                (key, self._link(key, table)) for key in table.definition.foreign_keys
            ]
        return links

    def _links_down(self, table: MemoryTable) -> list[Link]:
        """In the order of the keys' names, as InnoDB keeps them (`dict_foreign_compare`)."""
        name = _name(table.definition)
        links = self._downwards.get(name)
        if links is None:
            children = (self._find(*child) for child in self._children.get(name, ()))
            found = [
                self._link(key, child)
                for child in children
                if child is not None
                for key in child.definition.foreign_keys
                if (key.referenced_database, key.referenced_table) == name
            ]
            links = [link for link in found if link is not None]
            links.sort(key=lambda link: (link.child.definition.database, link.key.name))
            self._downwards[name] = links
        return links

    # rows

    def check_parents(self, table: MemoryTable, row: Row, old: Row | None = None) -> None:
        """Raises NoReferencedRow when a foreign key of the row points nowhere.

        A cascade does not check the key that it follows, because the parent is only half updated
        then (`row_ins_check_foreign_constraint`).
        """
        if not self.enabled or is_history(table.definition, row):
            return
        positions = table.definition.positions
        for key, link in self._links_up(table):
            own = [positions[name.lower()] for name in key.columns]
            values = [row[at] for at in own]
            if None in values or (old is not None and values == [old[at] for at in own]):
                continue
            if self._followed and key is self._followed[-1]:
                continue
            if link is None or not link.has_parent(row, old):
                raise NoReferencedRow(_message("add or update a child row", table.definition, key))

    def parent_deleted(self, parent: MemoryTable, row: Row, instead: Row | None = None) -> None:
        """Carries out ON DELETE for the rows that point to `row`, which has just gone, where
        `instead` does not take its place. Raises RowIsReferenced, CascadeTooDeep."""
        if not self.enabled:
            return
        with self._all_or_nothing(parent):
            for link in self._links_down(parent):
                stays = instead is not None and all(row[at] == instead[at] for at in link.theirs)
                for ref in () if stays else link.children(row):
                    self._act(link, link.key.on_delete, ref, None)

    def row_updated(self, parent: MemoryTable, old: Row, row: Row) -> None:
        """Carries out ON UPDATE for the rows that point to `old`, then checks where `row` points: a
        cascade may have made its parent.

        Raises RowIsReferenced, CascadeTooDeep, NoReferencedRow.
        """
        if not self.enabled:
            return
        self._updating.append(parent)
        try:
            with self._all_or_nothing(parent):
                for link in self._links_down(parent):
                    if all(old[at] == row[at] for at in link.theirs):
                        if link.key.on_delete in ACTIONS and _ends(parent.definition, old, row):
                            for ref in link.children(old):
                                self._act(link, link.key.on_delete, ref, None)
                        continue
                    if link.points_to_itself(old):
                        raise self._referenced(link)
                    for ref in link.children(old):
                        if link.child.get(ref) is not row:  # it points there only now
                            self._act(
                                link, link.key.on_update, ref, tuple(row[at] for at in link.theirs)
                            )
                self.check_parents(parent, row, old)
        finally:
            self._updating.pop()

    @contextmanager
    def _all_or_nothing(self, parent: MemoryTable) -> Iterator[None]:
        """A refused cascade takes back what it did, and the change of the parent before it."""
        journal = parent.journal
        mark = 0 if journal is None else len(journal) - 1
        self._depth += 1
        try:
            yield
        except RowError:
            for change in reversed(journal[mark:] if journal is not None else []):
                change[0].undo(change)
            if journal is not None:
                del journal[mark:]
            raise
        finally:
            self._depth -= 1

    def _act(self, link: Link, action: str, ref: Ref, values: tuple[object, ...] | None) -> None:
        """`values`: the parent's new key, None when the parent row goes away."""
        child = link.child
        row = child.get(ref)
        if row is None:
            return
        if not link.is_exact(action, updates=values is not None):
            raise ReplicationError(
                1235,
                f"the foreign key {link.key.name} of {link.child.definition.full_name} is between"
                " types of fixed and of varying length: what the spaces or zeros at the end do"
                " there is not supported in memory",
                table=link.parent.definition.full_name,
                hint="leave the table out with --exclude-table, or replay into a test DB",
            )
        if action not in ACTIONS:
            raise self._referenced(link)
        versioned = is_versioned(child.definition)
        ends = action == "cascade" and values is None
        if versioned:
            self._refuse_versions(link, ends=ends)
        if self._depth >= MOST_CASCADES:
            raise CascadeTooDeep(
                f"Foreign key cascade delete/update exceeds max depth of {MOST_CASCADES}."
            )
        if ends:
            if versioned:
                end_row(child, ref, row, self.times.stored)
            else:
                child.delete(ref)
            return
        if (
            child in self._updating
        ):  # `row_ins_cascade_ancestor_updates_table`: the cascade could go round for ever
            raise self._referenced(link)
        self._followed.append(link.key)
        try:
            new = link.changed(
                row, values if action == "cascade" and values else (None,) * len(link.own)
            )
            if versioned:
                change_row(child, ref, row, new, self.times.stored)
            else:
                child.update(ref, new)
        finally:
            self._followed.pop()

    def _refuse_versions(self, link: Link, *, ends: bool) -> None:
        """Raises ReplicationError 1235 for rows with a system time that come out otherwise on each
        server, or go round: of rows that refer to rows of their own table InnoDB ends only some
        (seen on 10.11.18)."""
        shown = shows_times(link.child.definition, current=not ends)
        if shown or link.child in self._updating:
            why = (
                "each server has its own microseconds in the columns of their system time"
                if shown
                else "which rows of a table that refers to itself InnoDB ends is not known"
            )
            raise ReplicationError(
                1235,
                f"the foreign key {link.key.name} of {link.child.definition.full_name} would change"
                f" rows that have a system time; that is not supported in memory: {why}",
                table=link.parent.definition.full_name,
                hint="leave the table out with --exclude-table, or replay into a test DB",
            )

    def _referenced(self, link: Link) -> RowIsReferenced:
        return RowIsReferenced(
            _message("delete or update a parent row", link.child.definition, link.key)
        )


def repointed(
    definition: TableDefinition, old: Name, new: Name, columns: Mapping[str, str]
) -> TableDefinition:
    """The child's definition after its parent, or columns of it, have another name."""

    def follow(key: ForeignKey) -> ForeignKey:
        if (key.referenced_database, key.referenced_table) != old:
            return key
        theirs = tuple(columns.get(name.lower(), name) for name in key.referenced_columns)
        return replace(
            key, referenced_database=new[0], referenced_table=new[1], referenced_columns=theirs
        )

    return replace(definition, foreign_keys=tuple(map(follow, definition.foreign_keys)))


def renamed_keys(definition: TableDefinition, old: str) -> TableDefinition:
    """The names that the server made up for foreign keys begin with the table's name, and follow
    it."""

    def follow(key: ForeignKey) -> ForeignKey:
        number = generated_number(key.name, old)
        return key if number is None else replace(key, name=f"{definition.name}_ibfk_{number}")

    return replace(definition, foreign_keys=tuple(map(follow, definition.foreign_keys)))


def _ends(definition: TableDefinition, old: Row, row: Row) -> bool:
    """Whether an update makes a row of a system-versioned table history, as its DELETE does."""
    return is_history(definition, row) and not is_history(definition, old)


def _following(definition: TableDefinition, positions: tuple[int, ...]) -> tuple[int, ...]:
    """The generated columns whose expressions name one of these columns, or a generated column that
    does."""
    names = {definition.columns[at].name.lower() for at in positions}
    found = []
    for at, column in enumerate(definition.columns):
        if column.expression is not None and names_in(column.expression) & names:
            names.add(column.name.lower())
            found.append(at)
    return tuple(found)


def _name(definition: TableDefinition) -> Name:
    return definition.database, definition.name


def _message(what: str, definition: TableDefinition, key: ForeignKey) -> str:
    """As the server words it: the parent's database is named where it is another one than the
    child's."""
    own = ", ".join(map(quoted, key.columns))
    theirs = ", ".join(map(quoted, key.referenced_columns))
    parent = quoted(key.referenced_table)
    if key.referenced_database != definition.database:
        parent = f"{quoted(key.referenced_database)}.{parent}"
    return (
        f"Cannot {what}: a foreign key constraint fails"
        f" ({quoted(definition.database)}.{quoted(definition.name)}, CONSTRAINT {quoted(key.name)}"
        f" FOREIGN KEY ({own}) REFERENCES {parent} ({theirs}))"
    )
