"""How a statement's values become rows of a table: what is stored, what stands in for what does not
fit, numbers, and rows in the way."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from applier.binlog.types import ValueRefused, from_sql
from applier.errors import ReplicationError
from applier.tables.auto_numbers import refuse_no_number, stored_number
from applier.tables.definitions.altered_columns import names_in
from applier.tables.dml.fired_triggers import FiredTriggers
from applier.tables.engine import MemoryTable
from applier.tables.expressions.defaults import (
    column_default,
    default_row,
    implicit_default,
    row_generator,
)
from applier.tables.expressions.operands import (
    Dialect,
    Operand,
    OperandKind,
    Scope,
    Session,
    unsupported,
)
from applier.tables.expressions.row_expressions import compile_expression
from applier.tables.expressions.storing import storer
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from lookup.handler import DuplicateKey, NoReferencedRow, Ref, Row, traits_of
from lookup.table import Column, TableDefinition

Write = Callable[[Scope], Any]
Assignment = tuple[int, Write | None]
"""A column and what is stored in it; None: its DEFAULT."""


@dataclass
class StatementSession:
    """What the events before a statement and its own status variables set."""

    expressions: Session = field(default_factory=Session)
    insert_id: int | None = None
    explicit_defaults_for_timestamp: bool | None = None
    replace_keeps_children: bool = False
    """As in `lookup.versions.ServerRules`."""
    files: dict[int, bytearray] = field(default_factory=dict)
    """LOAD DATA files by their number."""
    cascades_fire: bool = False
    """enable_cascade_triggers (9.7): rows that a foreign key changes fire triggers."""
    changing: frozenset[tuple[str, str]] = frozenset()
    """In a trigger: the tables whose changes fired it."""


_LISTED = re.compile(r"PARTITION\s+BY\s+(RANGE|LIST)", re.IGNORECASE)
_TAKES_ALL = re.compile(
    r"LESS\s+THAN\s*(MAXVALUE|\(\s*MAXVALUE(\s*,\s*MAXVALUE)*\s*\))|\bDEFAULT\b", re.IGNORECASE
)


def _stored_before(
    definition: TableDefinition, old: Row, made: Row, assignments: list[Assignment]
) -> Row:
    """The row `made` of `old`, in which MySQL leaves a stored generated column as it is where none
    of its columns is assigned (`TABLE::mark_generated_columns`; seen on 5.7.29 and 9.7.4)."""
    written = {definition.columns[at].name.lower() for at, _ in assignments}
    written |= {column.name.lower() for column in definition.columns if column.on_update}
    row = list(made)
    for at, column in enumerate(definition.columns):
        if column.generated and names_in(column.expression or "") & written:
            written.add(column.name.lower())
        elif column.generated and not column.is_virtual:
            if column.type == "timestamp" and row[at] != old[at]:
                raise unsupported(f"the stored TIMESTAMP `{column.name}` under another time zone")
            row[at] = old[at]
    return tuple(row)


class StatementRows:
    """The rows of one statement. `ignore`: whether it says IGNORE; `within`: whether a row stands
    in the partitions that it names, None where it names none."""

    def __init__(self, session: StatementSession) -> None:
        self.session = session
        self.dialect: Dialect = session.expressions.dialect
        self.ignore = False
        self.triggers = FiredTriggers()
        self.nulls_wait = False
        """Whether the table has a BEFORE trigger, of any event: NULL may then stand in a NOT NULL
        column until it has run."""
        self.within: Callable[[Row], bool] | None = None
        self._numbered = False
        """Whether the statement has used a number of its INSERT_ID event."""
        self._given_number: Any = None
        """The stored number of the row at hand, where it was generated."""

    def writer(self, column: Column, operand: Operand) -> Write:
        """How an operand is stored; for a generated column nothing but DEFAULT or NULL may be."""
        if column.generated:
            if operand.kind is OperandKind.NULL or self.ignore:
                return lambda scope: None
            raise unsupported(f"a value for the generated column `{column.name}`")
        return storer(column, operand, self.dialect)

    def insert(
        self,
        table: MemoryTable,
        rows: list[list[Assignment]],
        *,
        replacing: bool,
        on_duplicate: list[Assignment],
        alone: bool | None = None,
    ) -> int:
        """Inserts rows of assignments; returns how many rows changed. `alone`: a single row, whose
        NULLs are errors where they may not be.

        A number that a row took and did not need goes to the next one (`restore_auto_increment`,
        sql/handler.cc).
        """
        self.refuse_checks(table.definition)
        changed = 0
        alone = len(rows) == 1 if alone is None else alone
        generate = row_generator(table.definition, self.session.expressions)
        for at, assignments in enumerate(rows):
            next_number = self.session.insert_id
            row = self._new_row(table, assignments, alone=alone, first=at == 0)
            row = self.triggers.before(None, row) or row
            row = row if generate is None else generate(row)
            self._check_partition(table, row)
            try:
                table.insert(row)
                changed += 1
                self.triggers.after(None, row)
            except DuplicateKey as duplicate:
                if replacing:
                    changed += self._replace(table, row, duplicate)
                    continue
                if not on_duplicate and not self.ignore:
                    raise
                self.session.insert_id = next_number
                if on_duplicate:
                    changed += self._update_in_the_way(table, duplicate.ref, on_duplicate, row)
            except NoReferencedRow:
                if not self.ignore:
                    raise
                self.session.insert_id = next_number
        return changed

    def _update_in_the_way(
        self, table: MemoryTable, ref: Ref, assignments: list[Assignment], inserted: Row
    ) -> int:
        """ON DUPLICATE KEY UPDATE. IGNORE leaves the row as it is where the update would make a
        duplicate of another."""
        try:
            return self.update(table, ref, assignments, inserted)
        except DuplicateKey:
            if not self.ignore:
                raise
            return 0

    def refuse_checks(self, definition: TableDefinition) -> None:
        """IGNORE leaves out the rows that a CHECK constraint refuses or that have no partition,
        which are not known here. Raises ReplicationError 1235."""
        if self.ignore and any(check.enforced for check in definition.checks):
            raise unsupported("IGNORE on a table with a CHECK constraint")
        text = definition.options.get("PARTITION", "")
        if self.ignore and _LISTED.match(text) and not _TAKES_ALL.search(text):
            raise unsupported("IGNORE on a table whose partitions do not take all rows")

    def _replace(self, table: MemoryTable, row: Row, duplicate: DuplicateKey) -> int:
        """Rows in the way go; the row of the last unique key is overwritten where nothing refers to
        it (`write_record`)."""
        instead = row if self.session.replace_keeps_children else None
        uniques = [key for key in table.definition.sorted_keys if key.unique]
        while True:
            if duplicate.key is uniques[-1] and not table.is_referenced:
                table.update(duplicate.ref, row)
                return 1
            table.delete(duplicate.ref, instead)
            try:
                table.insert(row)
                return 1
            except DuplicateKey as again:
                duplicate = again

    def _new_row(
        self, table: MemoryTable, assignments: list[Assignment], *, alone: bool, first: bool
    ) -> Row:
        definition = table.definition
        session = self.session.expressions
        base = default_row(definition, session)
        row = list(base)
        strict = self.strict(definition, first=first)
        for at, write in assignments:
            column = definition.columns[at]
            if write is None or column.generated:
                continue
            value = self.fitted(write, Scope(tuple(row), session), strict=strict)
            if value is None and not column.nullable and not column.auto_increment:
                value = self._instead_of_null(
                    column, definition, strict=strict or (alone and not self.ignore)
                )
            row[at] = value
        self._number(table, row, {at for at, _ in assignments})
        return tuple(row)

    def update(
        self, table: MemoryTable, ref: Any, assignments: list[Assignment], inserted: Row | None
    ) -> int:
        """Changes one row; returns how many rows changed. `inserted`: the row of an INSERT that
        this one was in the way of."""
        old = table.get(ref)
        assert old is not None
        new = self._assigned(table.definition, old, assignments, inserted)
        at = _auto_place(table.definition)
        if inserted is not None and at in {place for place, _ in assignments}:
            self._pass_updated(new[at])
        if new != old:
            self._check_partition(table, new)
            table.update(ref, new)
        self.triggers.after(old, new)
        return int(new != old)

    def delete(self, table: MemoryTable, ref: Ref) -> None:
        """Deletes one row, which is there."""
        old = table.get(ref)
        self.triggers.before(old, None)
        table.delete(ref)
        self.triggers.after(old, None)

    def _check_partition(self, table: MemoryTable, row: Row) -> None:
        """A row may not leave the partitions that the statement names."""
        if self.within is None or self.within(row):
            return
        if self.ignore:
            raise unsupported("IGNORE with a row outside of the partitions that are named")
        raise ReplicationError(
            1748,
            "Found a row not matching the given partition set",
            table=table.definition.full_name,
        )

    def _assigned(
        self,
        definition: TableDefinition,
        old: Row,
        assignments: list[Assignment],
        inserted: Row | None,
    ) -> Row:
        """The row after SET: each assignment sees the ones before it. ON UPDATE columns follow when
        anything changed."""
        session = self.session.expressions
        simultaneous = (
            self.dialect.mariadb and self.dialect.sql_mode & SqlModeFlag.SIMULTANEOUS_ASSIGNMENT
        )
        strict = self.strict(definition, first=True)
        row = list(old)
        for at, write in assignments:
            column = definition.columns[at]
            if column.generated:
                continue
            if write is None:
                row[at] = column_default(column, session)
                continue
            seen = old if simultaneous else tuple(row)
            value = self.fitted(
                write, Scope((*seen, *(inserted or ())), session, inserted), strict=strict
            )
            if value is None and not column.nullable:
                if column.auto_increment and inserted is not None:
                    value = implicit_default(column)  # whatever the mode (seen of 5.6 to 9.7)
                else:
                    value = self._instead_of_null(column, definition, strict=strict)
            row[at] = value
        new: Row = tuple(row)
        if self.dialect.is_modern:
            new = self._stamped(definition, old, new, assignments)
        new = self.triggers.before(old, new) or new
        if not self.dialect.is_modern:
            new = self._stamped(definition, old, new, assignments)
        generate = row_generator(definition, session)
        if generate is None:
            return new
        made = generate(new)
        return made if self.dialect.mariadb else _stored_before(definition, old, made, assignments)

    def _stamped(
        self, definition: TableDefinition, old: Row, new: Row, assignments: list[Assignment]
    ) -> Row:
        """The row with its ON UPDATE columns, where anything changed: from 8.0 on what the
        statement did decides, before that and in MariaDB what its triggers did, too (seen on
        5.7.29, 9.7.4 and 10.11.18)."""
        if new == old:
            return new
        touched = {at for at, _ in assignments}
        row = list(new)
        for at, column in enumerate(definition.columns):
            if column.on_update is not None and at not in touched:
                row[at] = storer(column, compile_expression(column.on_update), self.dialect)(
                    Scope(old, self.session.expressions)
                )
        return tuple(row)

    def strict(self, definition: TableDefinition, *, first: bool) -> bool:
        """Whether a value that does not fit is an error; `first`: in the statement's first row."""
        modes = self.dialect.sql_mode
        if self.ignore or not modes & SqlModeFlag.STRICT:
            return False
        return (
            bool(modes & SqlModeFlag.STRICT_ALL_TABLES)
            or first
            or traits_of(definition).transactional
        )

    def fitted(self, write: Write, scope: Scope, *, strict: bool) -> Any:
        """The stored value; the closest to one that does not fit where the mode allows. Raises
        ValueRefused."""
        try:
            return write(scope)
        except ValueRefused as refused:
            if strict:
                raise
            if refused.closest is None:
                raise unsupported(refused.message) from None
            return refused.closest

    def _instead_of_null(self, column: Column, definition: TableDefinition, *, strict: bool) -> Any:
        """What a NOT NULL column takes for NULL. Raises ReplicationError 1048. MariaDB takes the
        moment for a TIMESTAMP whatever explicit_defaults_for_timestamp says (seen on 10.11.18).

        5.x logs do not say: where NULL would have been an error with it, it was off.
        """
        explicit = self.session.explicit_defaults_for_timestamp
        if column.type == "timestamp" and (self.dialect.mariadb or not explicit):
            if explicit is None and not strict and not self.dialect.mariadb:
                raise unsupported(
                    f"NULL for the TIMESTAMP `{column.name}`, whose meaning "
                    "explicit_defaults_for_timestamp decides"
                )
            return column_default(
                replace(column, default=f"CURRENT_TIMESTAMP({column.scale})"),
                self.session.expressions,
            )
        if self.nulls_wait:
            raise unsupported(f"NULL for the NOT NULL column {column.name} before its triggers")
        if strict:
            raise ReplicationError(
                1048, f"Column '{column.name}' cannot be null", table=definition.full_name
            )
        return 0 if column.type == "enum" and not self.dialect.mariadb else implicit_default(column)

    def _pass_updated(self, number: Any) -> None:
        """How a number that ON DUPLICATE KEY UPDATE stores moves the next one (`write_record`):
        MySQL passes the number of the row that was to be inserted (`insert_id_consumed`); MariaDB
        goes behind any larger one."""
        if self.dialect.mariadb or number == self._given_number:
            self._pass(number)

    def _pass(self, number: Any) -> None:
        session = self.session
        if (
            self._numbered
            and session.insert_id is not None
            and isinstance(number, int)
            and number >= session.insert_id
        ):
            session.insert_id = session.expressions.numbers.after(number)

    def _number(self, table: MemoryTable, row: list[Any], given: set[int]) -> None:
        """Fills an AUTO_INCREMENT column from the INSERT_ID event, or from the table's own counter.

        NO_AUTO_VALUE_ON_ZERO is about a zero that is given, as DEFAULT does; a column that is not
        among those gets a number. A larger number that is given moves the next one only behind the
        first that was not given (`adjust_next_insert_id_after_explicit_value`, sql/handler.cc).
        """
        at = _auto_place(table.definition)
        self._given_number = None
        if at is None:
            return
        session, column = self.session, table.definition.columns[at]
        if at not in given:
            row[at] = None
        zero = (
            None
            if self.dialect.sql_mode & SqlModeFlag.NO_AUTO_VALUE_ON_ZERO
            else from_sql(column)(0)
        )
        if row[at] is not None and row[at] != zero:
            self._pass(row[at])
            return
        if session.insert_id is None and all(key.columns[0] != at for key in table.definition.keys):
            raise unsupported(f"numbers of `{column.name}` by the columns before it in its key")
        if session.changing and session.insert_id is None:
            raise unsupported(f"a number of `{column.name}` in a trigger")
        number = session.insert_id if session.insert_id is not None else table.auto_increment
        refuse_no_number(
            number, mariadb=self.dialect.mariadb, from_event=session.insert_id is not None
        )
        if row[at] is not None or not column.nullable:
            # AUTO_INCREMENT NULL uses a number up and stays NULL
            row[at] = stored_number(
                column, number, mariadb=self.dialect.mariadb, ignoring=self.ignore,
                cuts=not traits_of(table.definition).transactional,
            )  # fmt: skip
        self._given_number = row[at]
        if session.insert_id is not None:
            session.insert_id, self._numbered = session.expressions.numbers.after(number), True


def of_row(write: Write, read: Scope) -> Write:
    """Stores what another row gives, whatever the row that is written."""
    return lambda scope: write(read)


def of_value(value: Any) -> Write:
    """Stores this, which is in the column's own form."""
    return lambda scope: value


def _auto_place(definition: TableDefinition) -> int | None:
    return next((at for at, one in enumerate(definition.columns) if one.auto_increment), None)
