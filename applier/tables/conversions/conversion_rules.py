"""What decides how a value becomes one of another type: families of types, and the statement's
session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any

from applier.binlog.types.temporal_parse import DateRules
from applier.tables.expressions.moment_rules import cuts_fractions, date_rules, longest_time
from applier.tables.expressions.operands import Dialect
from applier.tables.sql.sql_mode_flags import NO_MODES, SqlModeFlag
from lookup.table import Column

Store = Callable[[Any], Any]

FAMILIES = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), "integer"),
    **dict.fromkeys(("float", "double"), "real"),
    **{
        name: name
        for name in (
            "decimal",
            "bit",
            "year",
            "date",
            "time",
            "datetime",
            "timestamp",
            "enum",
            "set",
            "json",
        )
    },
    **dict.fromkeys(("char", "varchar"), "text"),
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), "clob"),
    **dict.fromkeys(("binary", "varbinary"), "binary"),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), "blob"),
}
"""Type -> family; a type that is not here is converted into nothing else."""


GEOMETRIES = frozenset(
    """
        geometry point linestring polygon multipoint multilinestring multipolygon geometrycollection
    """.split()
)
"""Types whose values stay as they are in one another; what does not fit is an error of the
statement."""


@dataclass(frozen=True, slots=True)
class ConversionRules:
    """The session of the statement that converts. `flavour`: "5.x", "8.0+" or "mariadb"."""

    flavour: str = "8.0+"
    sql_mode: SqlModeFlag = NO_MODES
    zone: tzinfo = UTC
    now: datetime = field(default=datetime(1970, 1, 1))
    """The statement's moment in its time zone: a TIME that becomes a DATETIME is one of that
    day."""
    copies: bool = True
    """Whether the statement copies rows value by value; a rebuild in place leaves each as it is."""

    @property
    def truncates(self) -> bool:
        """Whether fractions of a second are cut, not rounded."""
        return cuts_fractions(self.sql_mode, mariadb=self.rounds_as_mariadb)

    @property
    def rounds_as_mariadb(self) -> bool:
        """A fraction that would be carried beyond the last moment is cut there (`round_moment`)."""
        return self.flavour == "mariadb"

    @property
    def longest_time(self) -> int:
        """Of a TIME, in microseconds."""
        return longest_time(mariadb=self.rounds_as_mariadb)

    def dates(self, column: Column) -> DateRules:
        """Which dates the column takes."""
        return date_rules(column, self.dialect)

    @property
    def dialect(self) -> Dialect:
        """The same for expressions."""
        return Dialect(self.sql_mode, mariadb=self.rounds_as_mariadb, old=self.flavour == "5.x")


MakeStore = Callable[[Column, Column, ConversionRules], Store]
"""(old column, new column, rules) -> what stores a value that came along the route."""


def raw_text(value: Any) -> str:
    """A text or bytes, character by character."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
