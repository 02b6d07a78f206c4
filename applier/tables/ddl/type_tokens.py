"""What the reader of types asks of the words of an expression."""

from __future__ import annotations

from collections.abc import Sequence

from applier.tables.ddl.expression_types import UnknownType
from applier.tables.sql.sql_text import Token

COMPARISONS = frozenset("= <> != < <= > >= && || ! AND OR XOR NOT IN LIKE BETWEEN".split())
_TRUTHS = frozenset({"TRUE", "FALSE"})


def nesting(token: Token) -> int:
    """1 for what begins something nested, -1 for its end."""
    if token.kind == "op":
        return (token.value == "(") - (token.value == ")")
    word = token.value.upper() if token.kind == "word" else ""
    return (word == "CASE") - (word == "END")


def is_call(tokens: Sequence[Token], at: int) -> bool:
    """Whether the word at a place is the name of a function."""
    behind = tokens[at + 1].value if at + 1 < len(tokens) else ""
    return tokens[at].kind == "word" and behind == "("


def names_of(tokens: Sequence[Token]) -> list[list[str]]:
    """The columns that stand in a condition without calls, each with what qualifies it; other words
    look like columns, too."""
    found: list[list[str]] = []
    is_open = False
    for token in tokens:
        is_name = token.kind == "quoted" or (
            token.kind == "word" and token.value.upper() not in COMPARISONS | _TRUTHS
        )
        if is_name and is_open:
            found[-1].append(token.value)
        elif is_name:
            found.append([token.value])
        is_open = token.value == "."
    return found


def arguments_of(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """The arguments between commas."""
    found, depth, start = [], 0, 0
    for at, token in enumerate(tokens):
        depth += nesting(token)
        if depth == 0 and token.kind == "op" and token.value == ",":
            found.append(tokens[start:at])
            start = at + 1
    return [*found, tokens[start:]] if tokens else []


def written_count(tokens: Sequence[Token]) -> int:
    """A number without a sign that is written as an argument."""
    if len(tokens) != 1 or tokens[0].kind != "number" or not tokens[0].value.isdigit():
        raise UnknownType
    return int(tokens[0].value)
