"""Values that the target makes itself of a row that is written as a statement: those of generated
columns and functional key parts.

On a replica they are computed in the source's session; statements of rows have a session of their
own (row_sql.SETTINGS), in which some expressions have another value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from applier.binlog.status_vars import StatusVariables
from applier.mysql.statements.literals import NotExpressible
from applier.tables.definitions.altered_columns import names_in
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from lookup.table import TableDefinition

EVALUATED = (
    SqlModeFlag.NO_UNSIGNED_SUBTRACTION
    | SqlModeFlag.PAD_CHAR_TO_FULL_LENGTH
    | SqlModeFlag.TIME_TRUNCATE_FRACTIONAL
    | SqlModeFlag.TIME_ROUND_FRACTIONAL
)
"""The modes that an expression asks when it is evaluated. Others hold when it is read, once."""
UTC_NAMES = frozenset({None, b"UTC", b"+00:00"})
"""A source says its time zone only where a statement used it."""
OF_THE_ZONE = frozenset({"unix_timestamp", "from_unixtime"})
OF_THE_BYTES = frozenset({"json_storage_size", "json_storage_free"})
"""A document that was changed in place has gaps; one that a statement writes has none."""


@dataclass(frozen=True, slots=True)
class MadeValues:
    """Whether a table has such values, whether they depend on the time zone, and why statements
    never make them all."""

    any: bool
    of_the_zone: bool
    never: str | None

    @classmethod
    def of(cls, definition: TableDefinition) -> MadeValues:
        """Those of a table."""
        expressions = list(_expressions(definition))
        moments = {c.name.lower() for c in definition.columns if c.type == "timestamp"}
        is_made = any(c.type == "timestamp" and c.expression for c in definition.columns)
        names = {name for expression in expressions for name in names_in(expression)}
        of_the_zone = is_made or bool(names & (moments | OF_THE_ZONE))
        never = None
        if names & OF_THE_BYTES:
            never = "its generated columns tell how its documents are stored"
        elif any(
            c.type == "timestamp" and c.expression and not c.nullable for c in definition.columns
        ):
            # NULL becomes the present moment in it, or an error
            never = "a generated TIMESTAMP of it is NOT NULL"
        return cls(bool(expressions), of_the_zone, never)

    def check(self, session: StatusVariables) -> None:
        """Raises NotExpressible where the source made other values than a statement would."""
        if self.never is not None:
            raise NotExpressible(self.never)
        if self.any and SqlModeFlag(session.sql_mode or 0) & EVALUATED:
            raise NotExpressible("its generated columns depend on the source's sql_mode")
        if self.of_the_zone and session.time_zone not in UTC_NAMES:
            raise NotExpressible("its generated columns depend on the source's time zone")


def _expressions(definition: TableDefinition) -> Iterator[str]:
    for column in definition.columns:
        if column.expression is not None:
            yield column.expression
    for key in definition.keys:
        yield from (part.expression for part in key.parts if part.expression is not None)
