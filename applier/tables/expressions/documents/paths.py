"""Paths of JSON that stand in a statement, alone or with the values for what they lead to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from applier.binlog.types import json
from applier.errors import InputError
from applier.tables.expressions.calls import Call
from applier.tables.expressions.operands import Operand, OperandKind, Scope, Session, unsupported

_T = TypeVar("_T")


def written_legs(path: Operand, call: Call) -> list[json.Leg]:
    """The steps of a path that names one place, from the document on. Raises ReplicationError 1235
    for any other."""
    if not path.literal or path.kind is not OperandKind.TEXT:
        raise unsupported(call.sql)
    try:
        return json.path_legs(str(path.value(Scope((), Session()))))
    except InputError:  # a wildcard or a range
        raise unsupported(call.sql) from None


def paths_and_values(
    call: Call,
    legs_of: Callable[[Operand, Call], list[json.Leg]],
    member: Callable[[Operand, Call], _T],
) -> list[tuple[list[json.Leg], _T]]:
    """Those behind the document. Raises ReplicationError 1235 for a path without a value."""
    paths, values = call.arguments[1::2], call.arguments[2::2]
    if len(paths) != len(values):
        raise unsupported(call.sql)
    return [
        (legs_of(path, call), member(value, call))
        for path, value in zip(paths, values, strict=True)
    ]
