"""Functions and operators whose arguments have a grammar of their own: CAST, TRIM, CASE, BINARY and
others (`function_call_keyword`, `function_call_nonkeyword` and `simple_expr`, sql/sql_yacc.yy)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from applier.binlog.charsets import ALIASES
from applier.tables.expressions.calendar_functions import timestamp_difference
from applier.tables.expressions.casts import cast, recoded
from applier.tables.expressions.comparisons import comparison
from applier.tables.expressions.date_functions import with_interval
from applier.tables.expressions.functions import trimmed
from applier.tables.expressions.literals import string_literal
from applier.tables.expressions.operands import (
    COLUMN,
    Dialect,
    Operand,
    OperandKind,
    Scope,
    Session,
    Value,
    as_text,
    column_operand,
    constant,
    shared_collation,
    truth,
    unsupported,
)
from applier.tables.expressions.operators import choice, null_or
from applier.tables.expressions.storing import storer
from applier.tables.sql.sql_text import Parser

_EXTRACTED = frozenset(
    {"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND", "QUARTER"}
)


class SubqueryReader(Protocol):
    """The SELECTs in an expression. The cursor stands at the word, and is left at the parenthesis
    behind."""

    def among(self, left: Operand) -> Operand:
        """Of IN (SELECT …), with what stands before IN."""

    def scalar(self) -> Operand:
        """Of (SELECT …), which is one value."""

    def exists(self) -> Operand:
        """Of EXISTS (SELECT …)."""


class ExpressionGrammar(Protocol):
    """The rules of the grammar that arguments are read by. Each passes what it reads."""

    parser: Parser
    dialect: Dialect
    subqueries: SubqueryReader | None

    def expression(self) -> Operand:
        """Any expression (`expr`)."""

    def bit_expression(self) -> Operand:
        """What stands on either side of a comparison (`bit_expr`)."""

    def simple(self) -> Operand:
        """What an operator binds to (`simple_expr`)."""

    def interval(self, date: Operand, sign: int) -> Operand:
        """INTERVAL and what follows it, added to the date or taken from it."""

    def arguments(self) -> list[Operand]:
        """Expressions up to the closing parenthesis, which is passed."""

    def call(self, name: str, arguments: list[Operand]) -> Operand:
        """The function of this name. Raises ReplicationError 1235 for an unknown one."""

    def names(self) -> list[str]:
        """The parts of [[database.]table.]column."""

    def column(self, names: list[str], *, inserted: bool = False) -> Operand:
        """The column of these names. `inserted`: the value that the statement gives it."""

    def read_default(self, sql: str) -> Operand:
        """The expression of a DEFAULT clause, which is spelled without modes."""


def _cast(rules: ExpressionGrammar) -> Operand:
    rules.parser.expect("(")
    value = rules.expression()
    rules.parser.expect("AS")
    return _cast_to(rules, value)


def _convert(rules: ExpressionGrammar) -> Operand:
    rules.parser.expect("(")
    value = rules.expression()
    if rules.parser.accept("USING"):
        found = _recoded(rules, value)
        rules.parser.expect(")")
        return found
    rules.parser.expect(",")
    return _cast_to(rules, value)


def _characters(rules: ExpressionGrammar) -> Operand:
    rules.parser.expect("(")
    codes = [rules.expression()]
    while rules.parser.accept(","):
        codes.append(rules.expression())
    found = rules.call("CHAR", codes)
    if rules.parser.accept("USING"):
        found = _recoded(rules, found)
    rules.parser.expect(")")
    return found


def _recoded(rules: ExpressionGrammar, value: Operand) -> Operand:
    name = rules.parser.name().lower()
    return recoded(value, ALIASES.get(name, name), rules.dialect)


def _cast_to(rules: ExpressionGrammar, value: Operand) -> Operand:
    kind = rules.parser.skip_until(")")
    rules.parser.expect(")")
    return cast(value, kind, rules.dialect)


def _binary_cast(rules: ExpressionGrammar) -> Operand:
    return cast(rules.simple(), "BINARY", rules.dialect)


def _substring(rules: ExpressionGrammar) -> Operand:
    rules.parser.expect("(")
    arguments = [rules.expression()]
    while rules.parser.accept_any(",", "FROM", "FOR"):
        arguments.append(rules.expression())
    rules.parser.expect(")")
    return rules.call("SUBSTRING", arguments)


def _trim(rules: ExpressionGrammar) -> Operand:
    rules.parser.expect("(")
    side = rules.parser.accept_any("BOTH", "LEADING", "TRAILING")
    what = (
        rules.expression() if rules.parser.word() != "FROM" else string_literal(" ", rules.dialect)
    )
    if not rules.parser.accept("FROM"):
        rules.parser.expect(")")
        return rules.call("TRIM", [what])
    texts = [as_text(rules.expression(), rules.dialect), as_text(what, rules.dialect)]
    rules.parser.expect(")")
    collation, strength = shared_collation(
        [text for text in texts if text.kind is OperandKind.TEXT]
        or [string_literal("", rules.dialect)]
    )
    compute = null_or(texts, lambda text, cut: trimmed(text, cut, side or "BOTH"))
    return Operand(OperandKind.TEXT, compute, "TRIM(…)", collation=collation, strength=strength)


def _position(rules: ExpressionGrammar) -> Operand:
    rules.parser.expect("(")
    wanted = rules.bit_expression()
    rules.parser.expect("IN")
    value = rules.expression()
    rules.parser.expect(")")
    return rules.call("LOCATE", [wanted, value])


def _extract(rules: ExpressionGrammar) -> Operand:
    rules.parser.expect("(")
    unit = rules.parser.word()
    rules.parser.at += 1
    rules.parser.expect("FROM")
    value = rules.expression()
    rules.parser.expect(")")
    if unit not in _EXTRACTED or value.kind is OperandKind.TIME:
        raise unsupported(f"EXTRACT({unit} …)")
    return rules.call(unit, [value])


def _date_add(rules: ExpressionGrammar, sign: int) -> Operand:
    rules.parser.expect("(")
    date = rules.expression()
    rules.parser.expect(",")
    if rules.parser.word() == "INTERVAL":
        found = rules.interval(date, sign)
    else:
        found = rules.call("ADDDATE" if sign > 0 else "SUBDATE", [date, rules.expression()])
    rules.parser.expect(")")
    return found


def _unit_and_two(rules: ExpressionGrammar) -> tuple[str, Operand, Operand]:
    rules.parser.expect("(")
    unit = rules.parser.word().removeprefix("SQL_TSI_")
    rules.parser.at += 1
    rules.parser.expect(",")
    one = rules.expression()
    rules.parser.expect(",")
    two = rules.expression()
    rules.parser.expect(")")
    return unit, one, two


def _timestamp_add(rules: ExpressionGrammar) -> Operand:
    unit, count, date = _unit_and_two(rules)
    return with_interval(date, count, unit, 1)


def _timestamp_difference(rules: ExpressionGrammar) -> Operand:
    return timestamp_difference(*_unit_and_two(rules), rules.dialect)


def _name_const(rules: ExpressionGrammar) -> Operand:
    """The value, which must stand there as a literal."""
    rules.parser.expect("(")
    arguments = rules.arguments()
    if len(arguments) != 2 or not arguments[1].literal:
        raise unsupported("NAME_CONST()")
    return replace(arguments[1], strength=COLUMN) if arguments[1].collation else arguments[1]


def _default(rules: ExpressionGrammar) -> Operand:
    """DEFAULT(column): what its DEFAULT clause stores; NULL for a column that has none and may be
    NULL. Raises ReplicationError 1235 for anything but a literal."""
    rules.parser.expect("(")
    operand = rules.column(rules.names())
    rules.parser.expect(")")
    column, sql = operand.column, f"DEFAULT({operand.sql})"
    if column is None or column.generated or column.type == "timestamp":
        raise unsupported(sql)
    stored = None
    if column.default is not None:
        given = rules.read_default(column.default)
        if not given.literal:
            raise unsupported(sql)
        stored = storer(column, given, rules.dialect)(Scope((), Session()))
    if stored is None and not column.nullable:
        raise unsupported(f"{sql} of a column without a default")
    found = column_operand(column, 0, rules.dialect)
    value = found.value
    return replace(
        found, value=lambda scope: value(replace(scope, row=(stored,))), sql=sql, column=None
    )


def _if(rules: ExpressionGrammar) -> Operand:
    rules.parser.expect("(")
    arguments = rules.arguments()
    if len(arguments) != 3:
        raise unsupported("IF()")
    return choice([(truth(arguments[0]), arguments[1])], arguments[2], rules.dialect)


def _case(rules: ExpressionGrammar) -> Operand:
    subject = None if rules.parser.word() == "WHEN" else rules.expression()
    branches = []
    while rules.parser.accept("WHEN"):
        condition = rules.expression()
        rules.parser.expect("THEN")
        if subject is None:
            test: Callable[..., bool | None] = truth(condition)
        else:
            test = _equal(comparison(subject, condition, rules.dialect))
        branches.append((test, rules.expression()))
    otherwise = (
        rules.expression()
        if rules.parser.accept("ELSE")
        else constant(OperandKind.NULL, None, sql="NULL")
    )
    rules.parser.expect("END")
    return choice(branches, otherwise, rules.dialect)


def _values(rules: ExpressionGrammar) -> Operand:
    rules.parser.expect("(")
    names = rules.names()
    rules.parser.expect(")")
    return rules.column(names, inserted=True)


def _random(rules: ExpressionGrammar) -> Operand:
    rules.parser.expect("(")
    rules.parser.expect(")")
    return Operand(OperandKind.DOUBLE, lambda scope: scope.session.random(), "RAND()")


def _last_insert_id(rules: ExpressionGrammar) -> Operand:
    rules.parser.expect("(")
    rules.parser.expect(")")

    def value(scope: Scope) -> Value:
        if not scope.session.is_recorded:
            raise unsupported("LAST_INSERT_ID() of a dump")
        return scope.session.last_insert_id

    return Operand(OperandKind.INTEGER, value, "LAST_INSERT_ID()", unsigned=True)


def _exists(rules: ExpressionGrammar) -> Operand:
    rules.parser.expect("(")
    if rules.subqueries is None or rules.parser.word() != "SELECT":
        raise unsupported("EXISTS")
    found = rules.subqueries.exists()
    rules.parser.expect(")")
    return found


def _equal(order: Callable[..., int | None]) -> Callable[..., bool | None]:
    return lambda scope: order(scope) == 0


SPECIAL_CALLS: Mapping[str, Callable[[ExpressionGrammar], Operand]] = {
    "CAST": _cast,
    "CONVERT": _convert,
    "CHAR": _characters,
    **dict.fromkeys(("SUBSTRING", "SUBSTR", "MID"), _substring),
    "TRIM": _trim,
    "POSITION": _position,
    "EXTRACT": _extract,
    **dict.fromkeys(("DATE_ADD", "ADDDATE"), lambda rules: _date_add(rules, 1)),
    **dict.fromkeys(("DATE_SUB", "SUBDATE"), lambda rules: _date_add(rules, -1)),
    "IF": _if,
    "CASE": _case,
    "BINARY": _binary_cast,
    **dict.fromkeys(("VALUES", "VALUE"), _values),
    "RAND": _random,
    "LAST_INSERT_ID": _last_insert_id,
    "TIMESTAMPADD": _timestamp_add,
    "TIMESTAMPDIFF": _timestamp_difference,
    "NAME_CONST": _name_const,
    "DEFAULT": _default,
    "EXISTS": _exists,
}
"""By the word that they begin with. The cursor stands behind it."""
