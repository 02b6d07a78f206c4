"""The columns that CREATE TABLE … SELECT makes of expressions: their names and types.

A server derives the type from the expression before it has read a row (`create_tmp_field`,
sql/sql_tmp_table.cc, and `Item::create_field_for_create_select` of MariaDB). Columns and literals
are here, for which 5.6.24, 5.7.29, 9.7.4 and MariaDB 10.11.18 do the same; what is worked out of
them has the type that `type_of` knows, and any other is refused with 1235. Held against real
servers by tests/tables/test_create_select_servers.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.expression_types import MOST_TEXT, SHORT_DIGITS, ExpressionType
from applier.tables.ddl.type_reader import type_of
from applier.tables.dml.selects import SelectedColumn
from applier.tables.expressions.operands import (
    EXPLICIT,
    INTEGER_TYPES,
    Dialect,
    Operand,
    OperandKind,
    Scope,
    Session,
)
from applier.tables.expressions.visible_columns import VisibleColumns
from applier.tables.sql.sql_text import Token
from lookup.table import Column

MOST_NAME = 64
_SHORT_INTEGER = re.compile(rf"-?(?:0|[1-9]\d{{0,{SHORT_DIGITS - 1}}})|TRUE|FALSE")
_LONG_INTEGER = re.compile(r"[1-9]\d{9,17}")
"""Between them 8.0 and later take a BIGINT earlier than the others."""
_DECIMAL = re.compile(r"-?((?:0|[1-9]\d*)?)\.(\d+)")
_MOMENTS = frozenset(
    "NOW CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP UTC_TIMESTAMP CURDATE CURRENT_DATE UTC_DATE"
    " CURTIME CURRENT_TIME UTC_TIME".split()
)
_NAMED = "NAME_CONST"
_NAMES = ("word", "quoted")
_MOMENT_WORDS = frozenset({"DATE", "TIME", "TIMESTAMP"})
_VALUES = frozenset({"NULL", "TRUE", "FALSE"})
_TEXTS = frozenset({"varchar", "text", "mediumtext"})


def derived_name(column: SelectedColumn, sql: str) -> str | None:
    """The name of a column of `SELECT`, which stands in `sql`; None where it is not known."""
    name = column.alias
    taken = _taken(column)
    if name is None and taken is not None:
        name = ([taken.name] + [one.value for one in column.tokens if one.kind in _NAMES])[-1]
    elif name is None:
        name = _own_name(column.tokens, sql)
    is_plain = 0 < len(name) <= MOST_NAME and name.isascii() and name.isprintable()
    return name if is_plain and name == name.strip() else None


def _taken(column: SelectedColumn) -> Column | None:
    """The column that an expression is, which may stand in parentheses; None for any other."""
    is_name = all(one.kind in _NAMES or one.value in (".", "(", ")") for one in column.tokens)
    is_more = any(  # a call, or COLLATE
        one.kind in _NAMES and (two.value == "(" or two.kind in _NAMES)
        for one, two in zip(column.tokens, column.tokens[1:], strict=False)
    )
    return column.operand.column if is_name and not is_more else None


def _own_name(tokens: tuple[Token, ...], sql: str) -> str:
    """Of an expression without an alias: a text and NAME_CONST say it, any other is its own, but
    for a plus before a number. 5.x and MariaDB write TRUE where 9.7.4 keeps true: "" for such."""
    if len(tokens) == 1 and tokens[0].kind == "string":
        return tokens[0].value.lstrip(" ")
    if len(tokens) == 1 and tokens[0].value.upper() in _VALUES and not tokens[0].value.isupper():
        return ""
    if _word(tokens) == _NAMED and tokens[2].kind == "string":
        return tokens[2].value
    start = tokens[len(tokens) == 2 and tokens[0].value == "+"]
    return sql[start.start : tokens[-1].end]


def derived_column(
    column: SelectedColumn, name: str, columns: VisibleColumns, session: DdlSession
) -> Column | None:
    """The column that a server makes of an expression over `columns`; None where its type is not
    known."""
    operand, taken = column.operand, _taken(column)
    if taken is not None:
        # 9.7.4 gives a BIT b'0' where it is NOT NULL or has a default
        is_bit = taken.type == "bit" and (taken.default or not taken.nullable)
        plain = replace(plain_column(taken, name), nullable=column.nullable)
        return None if is_bit and session.is_modern else plain
    word, tokens = _word(column.tokens), column.tokens
    make = _TYPES.get(operand.kind)
    written = word in _MOMENTS or _is_literal(_named(tokens) if word == _NAMED else tokens)
    if make is None or not written:
        return _worked_out(column, name, type_of(tokens, columns, session), session)
    found = make(operand, session.expressions.dialect)
    if found is None or found.type == "null":
        return found and replace(found, name=name, type="binary")
    if word == _NAMED:
        return replace(found, name=name)
    return replace(found, name=name, nullable=False, default=_default(found, session))


def _worked_out(
    selected: SelectedColumn, name: str, type: ExpressionType | None, session: DdlSession
) -> Column | None:
    if type is None or type.literal or type.mixed:
        return None
    if type.column is not None:  # the least or the greatest of its values
        plain = plain_column(type.column, name)
        return (
            None if plain.zerofill else replace(plain, nullable=True, default=None, on_update=None)
        )
    found = Column(name, type.name, type.length or None, type.scale, type.unsigned, type.nullable)
    if type.name in _TEXTS:
        operand = selected.operand
        if operand.kind is not OperandKind.TEXT:
            return None
        found = replace(found, charset=operand.charset.name, collation=operand.collation)
    return found if found.nullable else replace(found, default=_default(found, session))


def _default(column: Column, session: DdlSession) -> str | None:
    """What MySQL stores where a NOT NULL column that it made gets no value."""
    if session.is_mariadb or (column.type in _ZERO_DATES and not session.has_zero_dates):
        return None
    default = _ZERO_DATES.get(column.type) or _ZEROS.get(column.type, "")
    return f"'{default}.{'0' * column.scale}'" if column.scale else f"'{default}'"


def _named(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """The value of NAME_CONST, without the collation that the log of a routine gives a text."""
    value = tokens[4:-1]
    return value[:-2] if len(value) > 2 and value[-2].value.upper() == "COLLATE" else value


def _is_literal(tokens: tuple[Token, ...]) -> bool:
    """Whether an expression is a literal: a number, which may have a sign, neighbouring texts, or
    one value behind the word that says what it is."""
    kinds = [token.kind for token in tokens]
    if kinds == ["op", "number"]:
        return tokens[0].value in "+-"
    if kinds[:1] == ["word"] and kinds[1:] in (["string"], ["hex"], ["bit"]):
        return tokens[0].value.upper() in _MOMENT_WORDS or tokens[0].value[0] == "_"
    if kinds == ["word"]:
        return tokens[0].value.upper() in _VALUES
    return kinds in (["number"], ["hex"], ["bit"]) or set(kinds) == {"string"}


def _word(tokens: tuple[Token, ...]) -> str:
    """The word of an expression that is one call of a function, or only the word."""
    if not tokens or tokens[0].kind != "word":
        return ""
    depth, ends = 0, []
    for at, token in enumerate(tokens[1:], 1):
        if token.kind == "op":
            depth += (token.value == "(") - (token.value == ")")
        if depth == 0:
            ends.append(at)
    is_alone = not ends or (tokens[1].value == "(" and ends == [len(tokens) - 1])
    return tokens[0].value.upper() if is_alone else ""


def plain_column(column: Column, name: str) -> Column:
    """The column without what belongs to its table: the counter, the expression of a generated one,
    its place out of sight."""
    default = "0" if column.auto_increment else column.default
    return replace(
        column,
        name=name,
        auto_increment=False,
        generated=None,
        expression=None,
        default=default,
        invisible=False,
        system_time=None,
    )


def _null(_operand: Operand, dialect: Dialect) -> Column | None:
    """9.7.4 has a VARBINARY(0)."""
    return Column("", "null", 0) if dialect.display_widths else None


def _integer(operand: Operand, _dialect: Dialect) -> Column | None:
    if _SHORT_INTEGER.fullmatch(operand.sql):
        return Column("", "int", len(operand.sql) if operand.sql[-1].isdigit() else 1)
    if _LONG_INTEGER.fullmatch(operand.sql):
        return Column("", "bigint", len(operand.sql))
    return None


def _decimal(operand: Operand, _dialect: Dialect) -> Column | None:
    digits = _DECIMAL.fullmatch(operand.sql)
    if digits is None or len(operand.sql) > 30:
        return None
    return Column("", "decimal", len(digits[1] + digits[2]), len(digits[2]))


def _text(operand: Operand, _dialect: Dialect) -> Column | None:
    """COLLATE is a function, and those of texts may be NULL in strict mode."""
    length = len(operand.value(Scope((), Session())))
    if not 0 < length <= MOST_TEXT or operand.strength == EXPLICIT:
        return None
    return Column("", "varchar", length, charset=operand.charset.name, collation=operand.collation)


def _binary(operand: Operand, _dialect: Dialect) -> Column | None:
    length = len(operand.value(Scope((), Session())))
    return Column("", "varbinary", length) if 0 < length <= MOST_TEXT else None


def _moment(name: str) -> Callable[[Operand, Dialect], Column | None]:
    return lambda operand, dialect: Column("", name, scale=operand.digits)


_TYPES: Mapping[OperandKind, Callable[[Operand, Dialect], Column | None]] = {
    OperandKind.NULL: _null,
    OperandKind.INTEGER: _integer,
    OperandKind.DECIMAL: _decimal,
    OperandKind.DOUBLE: lambda operand, dialect: Column("", "double"),
    OperandKind.TEXT: _text,
    OperandKind.BINARY: _binary,
    OperandKind.HEX: _binary,
    OperandKind.DATE: lambda operand, dialect: Column("", "date"),
    OperandKind.DATETIME: _moment("datetime"),
    OperandKind.TIME: _moment("time"),
}
_ZERO_DATES = {"date": "0000-00-00", "datetime": "0000-00-00 00:00:00"}
_ZEROS = {**dict.fromkeys((*INTEGER_TYPES, "double", "decimal"), "0"), "time": "00:00:00"}
