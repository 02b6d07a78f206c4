"""Stored generated columns that depend on the session, such as HOUR of a TIMESTAMP, under ALTER
TABLE.

Where the server copies the rows, the session of the statement computes them anew; where it works in
place they stay. Which of the two it does is said by `applier.tables.ddl.row_copy`.
"""

from __future__ import annotations

from collections.abc import Callable

from applier.binlog.types import Unevaluated
from applier.tables.conversions.column_conversion import same_form
from applier.tables.virtual_columns import of_the_session, unknown_value
from lookup.handler import Row
from lookup.table import Column, TableDefinition


def _changes_type(old: Column, new: Column) -> bool:
    """Numbers and moments of another type or size, which no server changes in place."""
    if old.charset is not None or new.charset is not None or same_form(old, new):
        return False
    return (old.type, old.scale, old.unsigned) != (new.type, new.scale, new.unsigned)


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
