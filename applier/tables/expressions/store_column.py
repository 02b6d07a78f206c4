"""A column and the expression whose values it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from applier.binlog.types import ValueRefused
from applier.binlog.types.temporal_parse import DateRules
from applier.tables.expressions.moment_rules import date_rules
from applier.tables.expressions.operands import Dialect, Operand, Session, Value, unsupported
from lookup.table import Column

Stored = Any
Write = Callable[[Value, Session], Stored]


@dataclass(frozen=True, slots=True)
class StoreColumn:
    """A column that an operand is stored in."""

    column: Column
    operand: Operand
    dialect: Dialect

    @property
    def dates(self) -> DateRules:
        """Which dates the column takes."""
        return date_rules(self.column, self.dialect)

    def refused(self, number: int, what: str, closest: Stored) -> ValueRefused:
        """The server's error for a value that does not fit."""
        return ValueRefused(number, f"{what} for column '{self.column.name}'", closest)

    def unknown(self) -> Exception:
        """The error of what is not stored exactly here."""
        return unsupported(
            f"{self.operand.sql[:60]} in the {self.column.type} column `{self.column.name}`"
        )
