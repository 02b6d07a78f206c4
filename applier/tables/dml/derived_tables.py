"""The rows of a SELECT in FROM as a table of their own (`Table_ref::setup_materialized_derived`,
sql/sql_derived.cc)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from applier.tables.catalog import table_of
from applier.tables.engine import MemoryTable
from applier.tables.expressions.operands import (
    Operand,
    OperandKind,
    Scope,
    Session,
    Value,
    mapped,
    rounded_half_up,
    unsupported,
)
from applier.tables.expressions.operators import digits_behind_point
from applier.tables.expressions.storing import storer
from lookup.table import Column, TableDefinition

_WIDEST = {
    OperandKind.INTEGER: Column("", "bigint"),
    OperandKind.DECIMAL: Column("", "decimal", 65),
    OperandKind.DOUBLE: Column("", "double"),
    OperandKind.TEXT: Column("", "longtext"),
    OperandKind.BINARY: Column("", "longblob"),
    OperandKind.DATE: Column("", "date"),
    OperandKind.DATETIME: Column("", "datetime"),
    OperandKind.TIME: Column("", "time"),
}
"""Columns that hold each value of an expression."""


def derived_table(
    names: Sequence[str], operands: Sequence[Operand], scopes: Sequence[Scope], session: Session
) -> MemoryTable:
    """A table with these columns and a row for each scope, in no order that means anything.

    Raises ReplicationError 1235 for expressions of which the server may keep more or less than
    they show.
    """
    columns = tuple(map(_column, names, operands))
    # no transactions, so that no order of a primary key is taken for granted
    table = table_of(TableDefinition("", "", columns, engine="MEMORY"))
    writes = [
        storer(column, _shown(operand), session.dialect)
        for column, operand in zip(columns, operands, strict=True)
    ]
    table.load(tuple(write(scope) for write in writes) for scope in scopes)
    return table


def _column(name: str, operand: Operand) -> Column:
    if operand.column is not None:
        return replace(
            operand.column, name=name, nullable=True, default=None, on_update=None,
            auto_increment=False, generated=None, expression=None, invisible=False,
        )  # fmt: skip
    widest = _WIDEST.get(operand.kind)
    if widest is None:
        raise unsupported(f"{operand.sql} in a derived table")
    charset = operand.charset.name if operand.kind is OperandKind.TEXT else None
    return replace(
        widest, name=name, scale=operand.digits, unsigned=operand.unsigned, charset=charset,
        collation=operand.collation,
    )  # fmt: skip


def _shown(operand: Operand) -> Operand:
    """The digits that a DECIMAL of groups shows. Raises ReplicationError 1235 at any other quotient
    that holds more: a server may not make a table of the SELECT."""
    if operand.kind is not OperandKind.DECIMAL:
        return operand
    if operand.of_groups:
        return mapped(operand, operand.kind, lambda value: rounded_half_up(value, operand.digits))

    def value(scope: Scope) -> Value:
        found = operand.value(scope)
        if isinstance(found, Decimal) and digits_behind_point(found) > operand.digits:
            raise unsupported(f"{operand.sql} in a derived table")
        return found

    return replace(operand, value=value)
