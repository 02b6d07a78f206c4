"""Functions that choose one of their arguments, as the type that all share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from applier.tables.expressions.calls import Call
from applier.tables.expressions.comparisons import compared, text_key
from applier.tables.expressions.operands import (
    DATES,
    INTEGERS,
    Operand,
    OperandKind,
    Scope,
    Value,
    rounded_half_up,
    shared_collation,
    unsupported,
)
from applier.tables.expressions.operators import common, null_or, typed_as

_WHOLE_KINDS = INTEGERS | DATES | {OperandKind.TIME}
"""Of columns that MySQL compares a literal with as a whole number."""


def elt(call: Call) -> Operand:
    """ELT."""
    at, *texts = call.arguments
    shared = common(texts, call.dialect, call.sql)

    def value(scope: Scope) -> Value:
        number = at.value(scope)
        return (
            shared[number - 1].value(scope)
            if number is not None and 0 < number <= len(shared)
            else None
        )

    return typed_as(shared, value, call.sql)


def extreme(order: int) -> Callable[[Call], Operand]:
    """GREATEST and LEAST."""

    def build(call: Call) -> Operand:
        kinds = {argument.kind for argument in call.arguments}
        is_mixed = OperandKind.INTEGER in kinds and kinds & {OperandKind.TEXT, OperandKind.LABELS}
        if is_mixed or OperandKind.JSON in kinds:
            raise unsupported(call.sql)
        shared = common(call.arguments, call.dialect, call.sql)
        pick, kind = max if order > 0 else min, shared[0].kind
        # 5.x hands a quotient over with the digits that it shows
        digits = max((argument.digits for argument in shared), default=0)
        cuts = call.dialect.old and kind is OperandKind.DECIMAL
        # of equal ones (0.0 and 0.00, 0e0 and -0e0) 5.7.29 and 9.7.4 take the last for GREATEST
        is_real = kind in (OperandKind.DECIMAL, OperandKind.DOUBLE)
        takes_last = is_real and order > 0 and not call.dialect.mariadb
        key = text_key(shared_collation(shared)[0]) if kind is OperandKind.TEXT else None
        signs = call.dialect.old and kind is OperandKind.INTEGER

        def choose(*values: Any) -> Any:
            if signs and max(values) >= 1 << 63:  # 5.x takes it for a negative number
                raise unsupported(call.sql)
            found = pick(values[::-1] if takes_last else values, key=key)
            return rounded_half_up(found, digits) if cuts else found

        return typed_as(shared, null_or(shared, choose), call.sql)

    return build


def coalesce(call: Call) -> Operand:
    """COALESCE, IFNULL."""
    shared = common(call.arguments, call.dialect, call.sql)

    def value(scope: Scope) -> Value:
        return next((found for item in shared if (found := item.value(scope)) is not None), None)

    return typed_as(shared, value, call.sql)


def nullif(call: Call) -> Operand:
    """NULLIF."""
    one, two = call.arguments
    becomes_number = one.literal and one.kind is OperandKind.TEXT and two.column is not None
    if one.of_groups and call.dialect.is_modern:  # 9.7.4 keeps the digits of an AVG
        raise unsupported(call.sql)
    if becomes_number and two.kind in _WHOLE_KINDS and not call.dialect.mariadb:
        # with an INT column u, NULLIF('a', u) is 0 on 5.7.29 and 9.7.4
        raise unsupported(call.sql)
    same = compared("=", one, two, call.dialect)
    if one.kind is OperandKind.HEX:
        one = replace(one, kind=OperandKind.BINARY)
    return replace(
        one,
        value=lambda scope: None if same.value(scope) == 1 else one.value(scope),
        sql=call.sql,
        literal=False,
        column=None,
    )
