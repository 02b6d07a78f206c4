"""What a condition wants to be equal: each `=` and IN that AND joins with all the rest.

A row for which one of them does not hold is not chosen, so rows that others rule out need not be
looked at. The condition itself decides about the rows that are left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from applier.binlog.charsets import charset
from applier.binlog.types.texts import TEXT_TYPES
from applier.tables.engine import MemoryTable
from applier.tables.expressions.operands import INTEGER_TYPES, Dialect
from applier.tables.expressions.visible_columns import VisibleColumns
from applier.tables.sql.sql_text import Token
from lookup.handler import Ref
from lookup.table import Column

_BETWEEN_PIECES = frozenset("AND && WHERE ORDER LIMIT LOCK FOR".split())
_NAMES = ("word", "quoted")
_NOT_ALL = frozenset("OR XOR NOT BETWEEN CASE || !".split())
"""Words beside which a comparison may hold for fewer rows than are wanted."""
_INTEGERS = {"number": re.compile(r"\d+"), "string": re.compile(r"-?\d{1,15}")}
"""Literals that a server compares with an integer as the number that they are, by their token."""

Wanted = Mapping[int, Sequence[Any]]
"""Position of a column -> the stored values, one of which each row that is chosen has."""


def equal_names(tokens: Sequence[Token]) -> Iterator[tuple[list[str], list[str]]]:
    """The names on both sides of each `=` that stands between names."""
    for one, two in _sides(tokens):
        names = _names(one), _names(two)
        if all(names):
            yield names


def wanted_values(
    tokens: Sequence[Token], columns: VisibleColumns | None, dialect: Dialect
) -> Wanted:
    """Of each `=` and IN between a column and literals that are stored as they are written."""
    found: dict[int, Sequence[Any]] = {}
    # texts of a binary client are compared by their bytes
    types = INTEGER_TYPES if dialect.collation == "binary" else INTEGER_TYPES | TEXT_TYPES
    for one, two in _sides(tokens):
        for named, literals in ((one, _literals(two)), (two, _literals(one))):
            names = _names(named)
            place = columns.place(names) if columns is not None and names else None
            if place is None or place[1].type not in types:
                continue
            values = [_stored(place[1], literal) for literal in literals]
            if None not in values:
                found.setdefault(place[0], values)
    return found


def refs_by_unique_key(table: MemoryTable, wanted: Wanted) -> list[Ref] | None:
    """The rows with these values, in scan order, by the first unique key of such columns only; None
    without such a key. Rows with other values may be among them."""
    for key in table.unique_keys:
        if wanted.keys() >= set(key.columns):
            is_primary = key is table.definition.primary
            find = (
                table.primary_lookup(key.columns)
                if is_primary
                else table.unique_lookup(key, key.columns)
            )
            images = product(*(wanted[at] for at in key.columns))
            return sorted({ref for image in images if (ref := find(image)) is not None})
    return None


def _pieces(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """What AND joins, outside of parentheses; nothing where it may hold for fewer rows than are
    wanted."""
    if any(token.value.upper() in _NOT_ALL for token in tokens if token.kind != "string"):
        return
    depth, piece, pieces = 0, list[Token](), list[list[Token]]()
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.value, 0) if token.kind == "op" else 0
        is_between = token.kind in ("word", "op") and token.value.upper() in _BETWEEN_PIECES
        if depth == 0 and is_between:
            pieces.append(piece)
            piece = []
        else:
            piece.append(token)
    for found in [*pieces, piece]:
        if _is_enclosed(found) and found[1].value.upper() != "SELECT":
            yield from _pieces(found[1:-1])
        else:
            yield found


def _is_enclosed(tokens: Sequence[Token]) -> bool:
    """Whether the first token is a parenthesis that the last one closes."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.value, 0) if token.kind == "op" else 0
        if depth == 0:
            return 0 < at == len(tokens) - 1
    return False


def _sides(tokens: Sequence[Token]) -> Iterator[tuple[Sequence[Token], Sequence[Token]]]:
    """What stands on both sides of the first `=` or IN of each piece."""
    for piece in _pieces(tokens):
        for at, token in enumerate(piece):
            if (token.kind, token.value.upper()) in (("op", "="), ("word", "IN")):
                yield piece[:at], piece[at + (token.value == "=") :]
                break


def _names(tokens: Sequence[Token]) -> list[str]:
    """The parts of a name with dots; empty where the tokens are anything else."""
    is_name = len(tokens) % 2 == 1 and all(
        token.value == "." if at % 2 else token.kind in _NAMES for at, token in enumerate(tokens)
    )
    return [token.value for token in tokens[::2]] if is_name else []


def _literals(tokens: Sequence[Token]) -> Sequence[Sequence[Token]]:
    """The literal, or those of `IN (literal, …)`; what is no literal has more tokens, or others."""
    if not (tokens and tokens[0].value.upper() == "IN" and _is_enclosed(tokens[1:])):
        return [tokens]
    found = [list[Token]()]
    for token in tokens[2:-1]:
        if (token.kind, token.value) == ("op", ","):
            found.append([])
        else:
            found[-1].append(token)
    return found


def _stored(column: Column, literal: Sequence[Token]) -> Any:
    """A literal as the column stores it; None where that takes more than its own text."""
    minus = len(literal) == 2 and (literal[0].kind, literal[0].value) == ("op", "-")
    token = literal[-1] if len(literal) == 1 or minus else None
    if token is None or (minus and token.kind != "number"):
        return None
    if column.type in INTEGER_TYPES:
        if token.kind not in _INTEGERS or not _INTEGERS[token.kind].fullmatch(token.value):
            return None
        return -int(token.value) if minus else int(token.value)
    try:
        return charset(column.charset).encode(token.value) if token.kind == "string" else None
    except UnicodeError:
        return None
