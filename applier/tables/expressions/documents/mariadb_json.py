"""The JSON functions of MariaDB, whose documents are texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from applier.binlog.types import json
from applier.tables.expressions.calls import Call
from applier.tables.expressions.documents.paths import paths_and_values, written_legs
from applier.tables.expressions.documents.raw_documents import (
    COMPACT,
    LOOSE,
    Raw,
    UnreadableDocument,
    changed,
    found_at,
    patched,
    quoted,
    read_raw,
    unquoted,
    without,
    written,
)
from applier.tables.expressions.operands import (
    NUMERIC,
    Operand,
    OperandKind,
    Scope,
    Session,
    Value,
    as_text,
    unsupported,
)

Read = Callable[[Scope], Raw | None]
_BOOLEANS = ("TRUE", "FALSE")
_NUMBERS = frozenset({OperandKind.INTEGER, OperandKind.DECIMAL, OperandKind.DOUBLE})


@dataclass(frozen=True, slots=True)
class JsonText(Operand):
    """The text of a function that returns JSON: as an argument it is a document, and no text in
    quotes."""


def _document_of(operand: Operand, call: Call) -> Read:
    if operand.kind not in (OperandKind.TEXT, OperandKind.NULL):
        raise unsupported(call.sql)
    inner = operand.value

    def read(scope: Scope) -> Raw | None:
        text = inner(scope)
        return None if text is None else read_raw(text)

    return read


def _member(operand: Operand, call: Call) -> Read:
    """A value of SQL as one in a document. A column of JSON is a document there, which its
    definition does not tell here."""
    if isinstance(operand, JsonText):
        return _document_of(operand, call)
    if operand.kind is OperandKind.NULL:
        return lambda scope: "null"
    if operand.literal and operand.sql in _BOOLEANS:
        return lambda scope: operand.sql.lower()
    is_plain = operand.literal or operand.column is not None
    is_long = operand.column is not None and operand.column.type == "longtext"
    if not is_plain or is_long or operand.kind not in _NUMBERS | {OperandKind.TEXT}:
        raise unsupported(call.sql)
    show: Callable[[str], str] = quoted if operand.kind is OperandKind.TEXT else str
    inner = as_text(operand, call.dialect).value

    def read(scope: Scope) -> Raw:
        text = inner(scope)
        return "null" if text is None else show(text)

    return read


def _legs_of(path: Operand, call: Call) -> list[json.Leg]:
    """As `written_legs`; names with escapes are compared otherwise."""
    legs = written_legs(path, call)
    if any('"' in leg or "\\" in leg for leg in legs if isinstance(leg, str)):
        raise unsupported(call.sql)
    return legs


def _json(
    call: Call, like: Operand, make: Callable[[Scope], Raw | None], style: Any = LOOSE
) -> Operand:
    """A document as text. Raises ReplicationError 1235 for texts that are not read exactly, and for
    letters that the character set may not have."""
    charset = like.charset

    def value(scope: Scope) -> Value:
        try:
            found = make(scope)
        except UnreadableDocument:
            raise unsupported(f"{call.sql} of this document") from None
        if found is None:
            return None
        text = written(found, style)
        if not text.isascii() and not charset.name.startswith("utf8"):
            raise unsupported(f"{call.sql} of letters beyond ASCII")
        return text

    return JsonText(
        OperandKind.TEXT, value, call.sql, collation=like.collation, strength=like.strength
    )


def _with_each_path(
    call: Call, change: Callable[[Raw, list[json.Leg], Callable[[], Raw]], Raw | None]
) -> Operand:
    """The document behind a change for each path and value, which are read when they are asked
    for; NULL from the first change on that gives it."""
    read = _document_of(call.arguments[0], call)
    pairs = paths_and_values(call, _legs_of, _member)

    def make(scope: Scope) -> Raw | None:
        document = read(scope)
        for legs, member in pairs:
            if document is not None:
                document = change(document, legs, partial(member, scope))
        return document

    return _json(call, call.arguments[0], make)


def changing(*, adds: bool, replaces: bool) -> Callable[[Call], Operand]:
    """JSON_SET, JSON_INSERT and JSON_REPLACE, with paths that stand in the statement."""

    def change(document: Raw, legs: list[json.Leg], value: Callable[[], Raw]) -> Raw:
        return changed(document, legs, value(), adds=adds, replaces=replaces)

    return lambda call: _with_each_path(call, change)


def array_append(call: Call) -> Operand:
    """JSON_ARRAY_APPEND: NULL where there is nothing at a path."""

    def append(document: Raw, legs: list[json.Leg], value: Callable[[], Raw]) -> Raw | None:
        target = found_at(document, legs)
        if target is None:
            return None
        before = target if isinstance(target, list) else [target]
        return changed(document, legs, [*before, value()], adds=False, replaces=True)

    return _with_each_path(call, append)


def remove(call: Call) -> Operand:
    """JSON_REMOVE, with paths that stand in the statement."""
    read = _document_of(call.arguments[0], call)
    paths = [_legs_of(path, call) for path in call.arguments[1:]]
    if not all(paths):
        raise unsupported(call.sql)

    def make(scope: Scope) -> Raw | None:
        document = read(scope)
        for legs in paths:
            document = None if document is None else without(document, legs)
        return document

    return _json(call, call.arguments[0], make)


def merge_patch(call: Call) -> Operand:
    """JSON_MERGE_PATCH of documents that are not NULL."""
    reads = [_document_of(one, call) for one in call.arguments]

    def make(scope: Scope) -> Raw:
        found, *patches = [read(scope) for read in reads]
        if found is None or None in patches:
            raise unsupported(f"{call.sql} of NULL")
        for patch in patches:
            found = patched(found, patch)
        return found

    return _json(call, call.arguments[0], make)


def formatted(call: Call) -> Operand:
    """JSON_COMPACT and JSON_LOOSE."""
    (one,) = call.arguments
    style = COMPACT if call.name == "JSON_COMPACT" else LOOSE
    return _json(call, one, _document_of(one, call), style)


def extract(call: Call) -> Operand:
    """JSON_EXTRACT with one path that names one place."""
    document, path = call.arguments
    read, legs = _document_of(document, call), _legs_of(path, call)

    def make(scope: Scope) -> Raw | None:
        found = read(scope)
        return None if found is None else found_at(found, legs)

    return _json(call, document, make)


def unquote(call: Call) -> Operand:
    """JSON_UNQUOTE of what a JSON function returns."""
    (one,) = call.arguments
    if not isinstance(one, JsonText):
        raise unsupported(call.sql)
    read = _document_of(one, call)

    def make(scope: Scope) -> Value:
        found = read(scope)
        return None if found is None else unquoted(found)

    return Operand(OperandKind.TEXT, make, call.sql, collation=one.collation, strength=one.strength)


def array(call: Call) -> Operand:
    """JSON_ARRAY."""
    members = [_member(argument, call) for argument in call.arguments]
    return _json(call, _of_connection(call), lambda scope: [member(scope) for member in members])


def made_object(call: Call) -> Operand:
    """JSON_OBJECT of names that are written and of values."""
    names, values = call.arguments[::2], call.arguments[1::2]
    if len(names) != len(values) or not all(
        name.literal and name.kind is OperandKind.TEXT for name in names
    ):
        raise unsupported(call.sql)
    written_names = [str(name.value(Scope((), Session()))) for name in names]
    if len(set(written_names)) < len(names) or any(
        quoted(one)[1:-1] != one for one in written_names
    ):
        raise unsupported(call.sql)
    members = [_member(value, call) for value in values]
    return _json(
        call,
        _of_connection(call),
        lambda scope: {
            name: member(scope) for name, member in zip(written_names, members, strict=True)
        },
    )


def _of_connection(call: Call) -> Operand:
    texts = [one for one in call.arguments if one.kind is OperandKind.TEXT]
    if any(one.charset.name != "utf8mb4" for one in texts):
        raise unsupported(call.sql)
    plain = Operand(OperandKind.TEXT, lambda scope: "", call.sql, strength=NUMERIC)
    return replace(plain, collation=call.dialect.collation)


def length(call: Call) -> Operand:
    """JSON_LENGTH of a whole document."""
    read = _document_of(call.arguments[0], call)

    def value(scope: Scope) -> Value:
        try:
            found = read(scope)
        except UnreadableDocument:
            raise unsupported(f"{call.sql} of this document") from None
        return None if found is None else len(found) if isinstance(found, dict | list) else 1

    return Operand(OperandKind.INTEGER, value, call.sql)
