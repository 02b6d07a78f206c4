"""The JSON functions that are exact here, with their domains; see
`applier.tables.expressions.functions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from applier.binlog.types import json
from applier.tables.expressions.calls import Call, Domain, Function
from applier.tables.expressions.operands import (
    Dialect,
    Operand,
    OperandKind,
    Scope,
    Session,
    Value,
    as_document,
    as_parsed,
    constant,
    unsupported,
)
from applier.tables.expressions.operators import null_or


def document_of(operand: Operand, call: str, dialect: Dialect) -> Callable[[Scope], Value]:
    """A JSON argument as a document; MariaDB keeps its text, whose formatting would show."""
    if dialect.mariadb:
        raise unsupported(f"{call} of MariaDB")
    inner = operand.value
    if operand.kind is not OperandKind.TEXT:
        return inner

    def value(scope: Scope) -> Value:
        text = inner(scope)
        return None if text is None else as_document(json.parse_text(text))

    return value


def json_extract(call: Call) -> Operand:
    """JSON_EXTRACT with one path that names one place."""
    document, path = call.arguments
    if path.kind is OperandKind.NULL or document.kind is OperandKind.NULL:
        return constant(OperandKind.NULL, None, sql=call.sql)
    if not path.literal or path.kind is not OperandKind.TEXT:
        raise unsupported(call.sql)
    given = str(path.value(Scope((), Session())))
    if "*" in given or " to " in given or "last" in given:
        raise unsupported(call.sql)
    legs = [0, *json.path_legs(given)]
    read = document_of(document, call.sql, call.dialect)

    def value(scope: Scope) -> Value:
        found = read(scope)
        if found is None:
            return None
        inner: Any = [as_parsed(found)]
        for leg in legs:
            if leg == 0 and not isinstance(inner, list):
                continue  # any other value is the first element of itself
            step = json.child(inner, leg)
            if step is None:
                return None
            inner = step[0]
        return as_document(inner)

    return Operand(OperandKind.JSON, value, call.sql)


def json_unquote(call: Call) -> Operand:
    """JSON_UNQUOTE of a document; text in quotes is JSON, too."""
    (one,) = call.arguments
    read = document_of(one, call.sql, call.dialect) if one.kind is OperandKind.JSON else one.value

    def value(scope: Scope) -> Value:
        found = read(scope)
        if found is None:
            return None
        if one.kind is OperandKind.JSON:
            return found if isinstance(found, str) else json.to_text(as_parsed(found))
        if call.dialect.mariadb or not found.isascii():
            raise unsupported(call.sql)
        return (
            json.parse_text(found) if found[:1] == found[-1:] == '"' and len(found) > 1 else found
        )

    return Operand(OperandKind.TEXT, value, call.sql, collation="utf8mb4_bin", strength=2)


def json_valid(call: Call) -> Operand:
    """JSON_VALID of text."""
    (one,) = call.arguments

    def is_document(text: str) -> int:
        try:
            json.parse_text(text)
        except (ValueError, RecursionError):
            return 0
        return 1

    return Operand(
        OperandKind.INTEGER,
        null_or([one], is_document if one.kind is OperandKind.TEXT else lambda value: 1),
        call.sql,
    )


_JSONS = Domain(frozenset({OperandKind.JSON, OperandKind.TEXT}), lambda operand, dialect: operand)
JSON_FUNCTIONS: dict[str, Function] = {
    "JSON_EXTRACT": Function((_JSONS,), json_extract, 2, 2),
    "JSON_UNQUOTE": Function((_JSONS,), json_unquote, 1, 1),
    "JSON_VALID": Function((_JSONS,), json_valid, 1, 1),
}
