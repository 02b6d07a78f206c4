"""SQL functions that compare and take apart text, with their domains; see
`applier.tables.expressions.functions`."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from applier.tables.expressions.calls import (
    EXACT_NUMBERS,
    TEXTS,
    WHOLE,
    WORDS,
    Call,
    Domain,
    Function,
    integer_result,
    plain_text,
    text_result,
    unchanged,
)
from applier.tables.expressions.comparisons import comparison, text_key
from applier.tables.expressions.operands import (
    Operand,
    OperandKind,
    Scope,
    Value,
    constant,
    rounded_half_up,
    shared_collation,
)

_MOST_DIGITS, _MOST_DIGITS_OF_MARIADB = 30, 38
"""Of FORMAT (FORMAT_MAX_DECIMALS)."""
_TEXT = Domain(frozenset({OperandKind.TEXT}), unchanged)
_QUOTES = str.maketrans({"'": "\\'", "\\": "\\\\", "\0": "\\0", "\x1a": "\\Z"})


def _compared(call: Call) -> Operand:
    """STRCMP: -1, 0 or 1."""
    one, two = call.arguments
    if OperandKind.NULL in (one.kind, two.kind):
        return integer_result(lambda *texts: None)(call)
    order = comparison(one, two, call.dialect)
    return Operand(OperandKind.INTEGER, order, call.sql)


def _inserted(text: str, at: int, count: int, new: str) -> str:
    """INSERT(): a place outside of the text leaves it as it is (`Item_func_insert`)."""
    if not 1 <= at <= len(text):
        return text
    end = len(text) if count < 0 else min(at - 1 + count, len(text))
    return text[: at - 1] + new + text[end:]


def _quoted(call: Call) -> Operand:
    """QUOTE: a literal; NULL is the word."""
    (text,) = call.arguments
    if text.kind is OperandKind.NULL:
        return constant(OperandKind.TEXT, "NULL", collation=call.dialect.collation)

    def value(scope: Scope) -> Value:
        found = text.value(scope)
        return "NULL" if found is None else f"'{found.translate(_QUOTES)}'"

    return Operand(
        OperandKind.TEXT, value, call.sql, collation=text.collation, strength=text.strength
    )


def _place_in_set(call: Call) -> Operand:
    """FIND_IN_SET: by the collation of both. Of a SET column the server takes the label's bit."""
    texts = [argument for argument in call.arguments if argument.kind is OperandKind.TEXT]
    if len(texts) < len(call.arguments):
        return integer_result(lambda *values: None)(call)
    collation, _ = shared_collation(texts)
    key: Callable[[str], object] = text_key(collation)

    def find(wanted: str, labels: str) -> int:
        if not labels or "," in wanted:
            return 0
        places = (at for at, one in enumerate(labels.split(","), 1) if key(one) == key(wanted))
        return next(places, 0)

    return integer_result(find)(call)


def _formatted(call: Call) -> Operand:
    """FORMAT by the locale en_US. The digits are a signed number."""
    most = _MOST_DIGITS_OF_MARIADB if call.dialect.mariadb else _MOST_DIGITS

    def with_commas(number: int | Decimal, digits: int) -> str:
        digits = 0 if digits >> 63 else min(max(digits, 0), most)
        return f"{rounded_half_up(Decimal(number), digits):,f}"

    return plain_text(with_commas)(call)


TEXT_FUNCTIONS: dict[str, Function] = {
    "STRCMP": Function((WORDS,), _compared, 2, 2),
    "INSERT": Function((TEXTS, WHOLE, WHOLE, TEXTS), text_result(_inserted), 4, 4),
    "QUOTE": Function((WORDS,), _quoted, 1, 1),
    "FIND_IN_SET": Function((WORDS, _TEXT), _place_in_set, 2, 2),
    "FORMAT": Function((EXACT_NUMBERS, WHOLE), _formatted, 2, 2),
}
