"""SQL expressions as Python functions: defaults, generated columns, and the plain expressions of statement-format DML.

sqlglot parses, this module gives the meaning: three-valued logic, the server's number and text coercions, and a table of
functions. An expression that holds anything else is refused by name; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.mysql import MySQL

from applier.binlog.types import ValueRefused, from_sql, to_python
from applier.errors import ReplicationError
from applier.tables.functions import FUNCTIONS, like
from applier.tables.sql_values import Value, compare, number, remainder, text, truth, unsupported
from lookup.handler import Row
from lookup.table import Column, KeyPart, TableDefinition


@dataclass
class Session:
    """What a statement's session gives its expressions. `now` in the session's time zone, `offset` from UTC."""

    now: datetime = datetime(1970, 1, 1)
    offset: timedelta = timedelta(0)
    variables: dict[str, Value] = field(default_factory=dict)
    last_insert_id: int = 0
    seeds: tuple[int, int] | None = None

    def random(self) -> float:
        """RAND() from the seeds of a RAND event (`my_rnd`, mysys/my_rnd.cc). Raises ReplicationError 1235 without such an event."""
        if self.seeds is None:
            raise unsupported("RAND() without a RAND event")
        limit = 0x3FFFFFFF
        first = (self.seeds[0] * 3 + self.seeds[1]) % limit
        second = (first + self.seeds[1] + 33) % limit
        self.seeds = (first, second)
        return first / limit


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an expression is evaluated: the row's values by column name, and the session."""

    values: Mapping[str, Value]
    session: Session
    columns: Mapping[str, Column]
    inserted: Mapping[str, Value] | None = None
    """VALUES(column) of INSERT … ON DUPLICATE KEY UPDATE."""


Evaluate = Callable[[Scope], Value]


class _PlainNames(MySQL):
    """MySQL's grammar, every function by the name that stands in the SQL.

    sqlglot's own classes join functions that are not the same (CHAR_LENGTH and LENGTH) and differ from release to release.
    """

    class Parser(MySQL.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parse for name, parse in MySQL.Parser.FUNCTION_PARSERS.items() if name in ("CAST", "CONVERT", "SUBSTRING", "TRIM")
        }


@lru_cache(maxsize=1024)
def compile_expression(sql: str) -> Evaluate:
    """Raises ReplicationError 1235 when the expression holds something that is not known here."""
    try:
        select = sqlglot.parse_one(f"SELECT {sql}", read=_PlainNames)
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise unsupported(f"{sql[:80]!r} ({str(error).splitlines()[0]})") from None
    clauses = {name for name, part in select.args.items() if part}
    if not isinstance(select, exp.Select) or len(select.expressions) != 1 or clauses != {"expressions"}:
        raise unsupported(f"{sql[:80]!r}")
    (tree,) = select.expressions
    assert isinstance(tree, exp.Expression)
    return compile_tree(tree)


def evaluate_constant(sql: str, session: Session | None = None) -> Value:
    """The value of an expression without columns, such as a DEFAULT."""
    return compile_expression(_plain(sql))(Scope({}, session or Session(), {}))


def _plain(sql: str) -> str:
    """MariaDB's and old spellings that sqlglot does not know."""
    return re.sub(r"(?i)^current_timestamp\(\)$", "CURRENT_TIMESTAMP", sql.strip())


def row_scope(definition: TableDefinition, row: Row, session: Session, values: dict[str, Value] | None = None) -> Scope:
    """A row's values for expressions; `values` is filled with them where it is given."""
    values = {} if values is None else values
    for column, stored in zip(definition.columns, row, strict=True):
        values[column.name.lower()] = to_python(column)(stored)
    return Scope(values, session, {column.name.lower(): column for column in definition.columns})


def generated_columns(definition: TableDefinition) -> Callable[[Row], Row]:
    """A function that sets the generated columns of a row, in column order."""
    steps = [
        (at, column, compile_expression(column.expression or "NULL"), from_sql(column))
        for at, column in enumerate(definition.columns)
        if column.generated
    ]
    readers = [(column.name.lower(), to_python(column)) for column in definition.columns]
    columns = {column.name.lower(): column for column in definition.columns}
    session = Session()

    def generate(row: Row) -> Row:
        values = {name: read(stored) for (name, read), stored in zip(readers, row, strict=True)}
        new = list(row)
        for at, column, evaluate, write in steps:
            value = evaluate(Scope(values, session, columns))
            new[at] = write(value)
            values[column.name.lower()] = to_python(column)(new[at])
        return tuple(new)

    return generate


def key_expression(definition: TableDefinition, part: KeyPart) -> Callable[[Row], Any]:
    """A function from a row to the value of a functional key part."""
    evaluate = compile_expression(part.expression or "NULL")
    session = Session()
    return lambda row: _comparable(evaluate(row_scope(definition, row, session)))


def _comparable(value: Value) -> Value:
    return text(value).casefold() if isinstance(value, str) else value


# from tree to function


def compile_tree(tree: exp.Expression) -> Evaluate:
    """A parsed expression as a function of a scope. Raises ReplicationError 1235 for what is not known here."""
    handler = _HANDLERS.get(type(tree))
    if handler is not None:
        return handler(tree)
    if isinstance(tree, exp.Func):
        return _function(tree)
    raise unsupported(tree.sql("mysql")[:80])


def _literal(tree: exp.Expression) -> Evaluate:
    raw = str(tree.this)
    if tree.args.get("is_string"):
        value: Value = raw
    elif re.fullmatch(r"\d+", raw):
        value = int(raw)
    else:
        try:
            value = float(raw) if "e" in raw.lower() else Decimal(raw)
        except (ValueError, InvalidOperation):
            raise unsupported(f"the number {raw[:80]}") from None
    return lambda scope: value


def _constant(value: Value) -> Evaluate:
    return lambda scope: value


def _column(tree: exp.Expression) -> Evaluate:
    name = str(tree.this.this if isinstance(tree.this, exp.Identifier) else tree.this).lower()

    def evaluate(scope: Scope) -> Value:
        if name not in scope.values:
            raise ReplicationError(1054, f"Unknown column '{name}' in 'field list'")
        return scope.values[name]

    return evaluate


def _variable(tree: exp.Expression) -> Evaluate:
    name = str(tree.this).strip("`'\"").lower() if not isinstance(tree.this, exp.Expression) else str(tree.this.name).lower()
    return lambda scope: scope.session.variables.get(name)


def _arithmetic(operate: Callable[[Any, Any], Any]) -> Callable[[exp.Expression], Evaluate]:
    def build(tree: exp.Expression) -> Evaluate:
        left, right = compile_tree(tree.this), compile_tree(tree.args["expression"])

        def evaluate(scope: Scope) -> Value:
            one, two = number(left(scope)), number(right(scope))
            if one is None or two is None:
                return None
            if isinstance(one, float) or isinstance(two, float):
                one, two = float(one), float(two)
            try:
                return operate(one, two)
            except (ZeroDivisionError, InvalidOperation):
                return None
            except (ArithmeticError, ValueError) as error:
                raise unsupported(f"{tree.sql('mysql')[:80]} ({error})") from None

        return evaluate

    return build


def _divide(one: Any, two: Any) -> Any:
    if isinstance(one, float):
        return one / two
    places = max(-Decimal(one).as_tuple().exponent, 0) + 4  # type: ignore[operator]
    return (Decimal(one) / Decimal(two)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def _negate(tree: exp.Expression) -> Evaluate:
    inner = compile_tree(tree.this)

    def evaluate(scope: Scope) -> Value:
        value = number(inner(scope))
        return None if value is None else -value

    return evaluate


def _comparison(holds: Callable[[int], bool]) -> Callable[[exp.Expression], Evaluate]:
    def build(tree: exp.Expression) -> Evaluate:
        left, right = compile_tree(tree.this), compile_tree(tree.args["expression"])
        names = [str(side.name).lower() for side in (tree.this, tree.args["expression"]) if isinstance(side, exp.Column)]

        def evaluate(scope: Scope) -> Value:
            column = next((scope.columns[name] for name in names if name in scope.columns), None)
            result = compare(left(scope), right(scope), column if column is not None and column.charset else None)
            return None if result is None else int(holds(result))

        return evaluate

    return build


def _null_safe(tree: exp.Expression) -> Evaluate:
    left, right = compile_tree(tree.this), compile_tree(tree.args["expression"])

    def evaluate(scope: Scope) -> Value:
        one, two = left(scope), right(scope)
        return int(one is None and two is None) if one is None or two is None else int(compare(one, two) == 0)

    return evaluate


def _and(tree: exp.Expression) -> Evaluate:
    left, right = compile_tree(tree.this), compile_tree(tree.args["expression"])

    def evaluate(scope: Scope) -> Value:
        one = truth(left(scope))
        if one is False:
            return 0
        two = truth(right(scope))
        return 0 if two is False else None if one is None or two is None else 1

    return evaluate


def _or(tree: exp.Expression) -> Evaluate:
    left, right = compile_tree(tree.this), compile_tree(tree.args["expression"])

    def evaluate(scope: Scope) -> Value:
        one = truth(left(scope))
        if one:
            return 1
        two = truth(right(scope))
        return 1 if two else None if one is None or two is None else 0

    return evaluate


def _not(tree: exp.Expression) -> Evaluate:
    inner = compile_tree(tree.this)

    def evaluate(scope: Scope) -> Value:
        value = truth(inner(scope))
        return None if value is None else int(not value)

    return evaluate


def _is(tree: exp.Expression) -> Evaluate:
    inner, wanted = compile_tree(tree.this), tree.args["expression"]
    if isinstance(wanted, exp.Null):
        return lambda scope: int(inner(scope) is None)
    target = bool(wanted.this)
    return lambda scope: int(truth(inner(scope)) is target)


def _between(tree: exp.Expression) -> Evaluate:
    value, low, high = (compile_tree(tree.args[name]) for name in ("this", "low", "high"))

    def evaluate(scope: Scope) -> Value:
        one = value(scope)
        below, above = compare(one, low(scope)), compare(one, high(scope))
        if below is None or above is None:
            return None
        return int(below >= 0 and above <= 0)

    return evaluate


def _in(tree: exp.Expression) -> Evaluate:
    if tree.args.get("query") is not None:
        raise unsupported("IN (SELECT …)")
    value, items = compile_tree(tree.this), [compile_tree(item) for item in tree.expressions]

    def evaluate(scope: Scope) -> Value:
        one = value(scope)
        results = [compare(one, item(scope)) for item in items]
        return 1 if 0 in results else None if None in results else 0

    return evaluate


def _like(tree: exp.Expression) -> Evaluate:
    value, pattern = compile_tree(tree.this), compile_tree(tree.args["expression"])

    def evaluate(scope: Scope) -> Value:
        one, two = value(scope), pattern(scope)
        if one is None or two is None:
            return None
        return int(like(text(one), text(two)))

    return evaluate


def _case(tree: exp.Expression) -> Evaluate:
    subject = compile_tree(tree.this) if tree.this is not None else None
    branches = [(compile_tree(branch.this), compile_tree(branch.args["true"])) for branch in tree.args.get("ifs") or ()]
    otherwise = compile_tree(tree.args["default"]) if tree.args.get("default") is not None else _constant(None)

    def evaluate(scope: Scope) -> Value:
        for condition, result in branches:
            hit = truth(condition(scope)) if subject is None else compare(subject(scope), condition(scope)) == 0
            if hit:
                return result(scope)
        return otherwise(scope)

    return evaluate


def _if(tree: exp.Expression) -> Evaluate:
    condition, yes = compile_tree(tree.this), compile_tree(tree.args["true"])
    no = compile_tree(tree.args["false"]) if tree.args.get("false") is not None else _constant(None)
    return lambda scope: yes(scope) if truth(condition(scope)) else no(scope)


def _cast(tree: exp.Expression) -> Evaluate:
    inner, kind = compile_tree(tree.this), tree.args["to"].sql("mysql").lower()
    cast = FUNCTIONS["CAST"]
    return lambda scope: _called("CAST", cast, scope.session, [inner(scope), kind])


def _trim(tree: exp.Expression) -> Evaluate:
    value = compile_tree(tree.this)
    given = tree.args.get("expression")
    what = compile_tree(given) if given is not None else _constant(" ")
    side = str(tree.args.get("position") or "BOTH").upper()

    def evaluate(scope: Scope) -> Value:
        one, two = value(scope), what(scope)
        if one is None or two is None:
            return None
        found, cut = text(one), text(two)
        while cut and side != "TRAILING" and found.startswith(cut):
            found = found[len(cut) :]
        while cut and side != "LEADING" and found.endswith(cut):
            found = found[: -len(cut)]
        return found

    return evaluate


def _json_path(tree: exp.Expression) -> Evaluate:
    """column -> path and column ->> path."""
    document = compile_tree(tree.this)
    path = tree.args["expression"].sql("mysql").strip("'")
    name = "JSON_EXTRACT_SCALAR" if isinstance(tree, exp.JSONExtractScalar) else "JSON_EXTRACT"
    return lambda scope: _called(name, FUNCTIONS[name], scope.session, [document(scope), path])


def _inner(tree: exp.Expression) -> Evaluate:
    return compile_tree(tree.this)


def _values(tree: exp.Expression) -> Evaluate:
    named = tree.expressions[0] if tree.expressions else tree.this
    if not isinstance(named, exp.Expression):
        raise unsupported("VALUES() of no column")
    name = str(named.name).lower()
    return lambda scope: (scope.inserted or {}).get(name)


def _bytes(base: int) -> Callable[[exp.Expression], Evaluate]:
    def build(tree: exp.Expression) -> Evaluate:
        digits = str(tree.this)
        value = int(digits, base) if digits else 0
        size = (len(digits) + 1) // 2 if base == 16 else (len(digits) + 7) // 8
        return _constant(value.to_bytes(size, "big"))

    return build


def _function(tree: exp.Expression) -> Evaluate:
    """A function call: by sqlglot's class or, where it has none, by name."""
    if isinstance(tree, exp.Anonymous):
        name, arguments = str(tree.this).upper(), list(tree.expressions)
    else:
        assert isinstance(tree, exp.Func)
        name = tree.sql_name().upper()
        arguments = [item for key in tree.arg_types for item in _as_list(tree.args.get(key))]
    if name == "VALUES":
        return _values(tree)
    function = FUNCTIONS.get(name)
    if function is None:
        raise unsupported(f"function {name}")
    compiled = [compile_tree(argument) if isinstance(argument, exp.Expression) else _constant(argument) for argument in arguments]
    call = function
    return lambda scope: _called(name, call, scope.session, [argument(scope) for argument in compiled])


def _called(name: str, function: Callable[..., Value], session: Session, values: list[Value]) -> Value:
    """A function of values that it does not know what to do with is refused, as one that is not known."""
    try:
        return function(session, *values)
    except ValueRefused:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise unsupported(f"{name} of {values!r:.80} ({error})") from None


def _as_list(value: Any) -> list[Any]:
    if value is None or value is False or value is True:
        return []
    return list(value) if isinstance(value, list) else [value]


_HANDLERS: dict[type[exp.Expression], Callable[[Any], Evaluate]] = {
    exp.Literal: _literal,
    exp.Null: lambda tree: _constant(None),
    exp.Boolean: lambda tree: _constant(int(bool(tree.this))),
    exp.Column: _column,
    exp.Identifier: _column,
    exp.Parameter: _variable,
    exp.SessionParameter: _variable,
    exp.Paren: _inner,
    exp.Neg: _negate,
    exp.Add: _arithmetic(lambda one, two: one + two),
    exp.Sub: _arithmetic(lambda one, two: one - two),
    exp.Mul: _arithmetic(lambda one, two: one * two),
    exp.Div: _arithmetic(_divide),
    exp.IntDiv: _arithmetic(lambda one, two: int(one / two) if isinstance(one, float) else int(Decimal(one) // Decimal(two))),
    exp.Mod: _arithmetic(remainder),
    exp.BitwiseAnd: _arithmetic(lambda one, two: int(one) & int(two)),
    exp.BitwiseOr: _arithmetic(lambda one, two: int(one) | int(two)),
    exp.BitwiseXor: _arithmetic(lambda one, two: int(one) ^ int(two)),
    exp.EQ: _comparison(lambda result: result == 0),
    exp.NEQ: _comparison(lambda result: result != 0),
    exp.GT: _comparison(lambda result: result > 0),
    exp.GTE: _comparison(lambda result: result >= 0),
    exp.LT: _comparison(lambda result: result < 0),
    exp.LTE: _comparison(lambda result: result <= 0),
    exp.NullSafeEQ: _null_safe,
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.Trim: _trim,
    exp.JSONExtract: _json_path,
    exp.JSONExtractScalar: _json_path,
    exp.Introducer: lambda tree: compile_tree(tree.args["expression"]),
    exp.HexString: _bytes(16),
    exp.BitString: _bytes(2),
    exp.National: lambda tree: _constant(str(tree.this)),
}
