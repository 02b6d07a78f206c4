"""Stored generated columns that depend on the session, such as HOUR of a TIMESTAMP, under ALTER
TABLE.

Where the server copies the rows, the session of the statement computes them anew; where it works in
place they stay. Which of the two it does is known here for some changes only (seen on 5.7.29,
9.7.4 and MariaDB 10.11.18).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest

from applier.binlog.types import Unevaluated
from applier.tables.conversions.column_conversion import same_form
from applier.tables.ddl.alteration import Alteration
from applier.tables.expressions.row_expressions import literal_value
from applier.tables.virtual_columns import of_the_session, unknown_value
from lookup.handler import Row
from lookup.table import Column, TableDefinition

_KINDS_OF_KEYS = ("btree", "hash")


def rebuilds(change: Alteration, new: TableDefinition) -> bool | None:
    """Whether the server copies the rows value by value; None where that is not known."""
    old = change.old
    pairs = list(zip_longest(new.columns, change.sources))
    fresh = [column for column, source in pairs if source is None]
    changed = any(
        source is not None and _changes_type(old.columns[source], column)
        for column, source in pairs
    )
    stored = any(column.generated and not column.is_virtual for column in fresh)
    if change.copy_asked or new.engine.lower() != old.engine.lower() or changed or stored:
        return True
    plain = not any(
        column.generated
        or column.auto_increment
        or (column.default and literal_value(column.default, change.rules.session) is None)
        for column in fresh
    )
    in_front = len(new.columns) >= len(old.columns) and all(
        _stays(*pair) for pair in zip(old.columns, new.columns, strict=False)
    )
    return False if in_front and plain and _differs_in_keys_only(change, new) else None


def _changes_type(old: Column, new: Column) -> bool:
    """Numbers and moments of another type or size, which no server changes in place."""
    if old.charset is not None or new.charset is not None or same_form(old, new):
        return False
    return (old.type, old.scale, old.unsigned) != (new.type, new.scale, new.unsigned)


def _stays(old: Column, new: Column) -> bool:
    """Whether the column is as it was, but for another (M,D) of a FLOAT or a display width."""
    alike = replace(new, length=old.length, scale=old.scale) if same_form(old, new) else new
    return alike == old


def _differs_in_keys_only(change: Alteration, new: TableDefinition) -> bool:
    """Whether only ordinary keys, but for the primary one, and added columns tell the tables
    apart."""
    old = change.old
    others = [key for key in new.keys if key.is_primary or key.kind not in _KINDS_OF_KEYS]
    same = replace(new, name=old.name, columns=old.columns, keys=old.keys)
    return (
        old.engine.lower() == "innodb"
        and all(key in old.keys for key in others)
        and (old.primary is None) == (new.primary is None)
        and change.partitions is None
        and not change.order_by
        and same == old
    )


def settled(
    old: TableDefinition, new: TableDefinition, sources: list[int | None], copied: bool | None
) -> Callable[[Row, Row], Row] | None:
    """A function of an old row and the new one as the session computes it, whose result has what
    the server has; None where no column depends on the session.

    A value that hangs on `copied` being None is one of `Unevaluated`.
    """
    places = [
        (at, source)
        for at in of_the_session(new, virtual=False)
        if (source := sources[at] if at < len(sources) else None) is not None
        and not _changes_type(old.columns[source], new.columns[at])
    ]
    if copied or not places:
        return None

    def settle(before: Row, made: Row) -> Row:
        row = list(made)
        for at, source in places:
            if copied is None and made[at] != before[source]:
                row[at] = _unknown(new, at)
            else:
                row[at] = before[source]
        return tuple(row)

    return settle


def _unknown(definition: TableDefinition, at: int) -> Unevaluated:
    why = (
        f"the generated column {definition.columns[at].name} depends on the session, and whether"
        " this ALTER TABLE computes it again is not known; that is not supported in memory"
    )
    hint = "leave the table out with --exclude-table, or replay into a test DB"
    return unknown_value(definition, at, why, hint)
