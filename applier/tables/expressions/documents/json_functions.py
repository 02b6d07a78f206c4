"""The JSON functions that are exact here, with their domains; see
`applier.tables.expressions.functions`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from typing import Any

from applier.binlog.types import json
from applier.tables.expressions.calls import ANY, Call, Domain, Function
from applier.tables.expressions.documents import mariadb_json
from applier.tables.expressions.documents.paths import paths_and_values, written_legs
from applier.tables.expressions.operands import (
    Dialect,
    Operand,
    OperandKind,
    Scope,
    Value,
    as_document,
    as_parsed,
    constant,
    document_text,
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
        return None if text is None else as_document(json.parse_text(text, first=dialect.old))

    return value


def json_extract(call: Call) -> Operand:
    """JSON_EXTRACT with one path that names one place."""
    document, path = call.arguments
    if path.kind is OperandKind.NULL or document.kind is OperandKind.NULL:
        return constant(OperandKind.NULL, None, sql=call.sql)
    legs: list[json.Leg] = [0, *_legs_of(path, call)]
    read = document_of(document, call.sql, call.dialect)

    def value(scope: Scope) -> Value:
        found = read(scope)
        if found is None:
            return None
        inner: Any = [as_parsed(found)]
        for leg in legs:
            if leg in (0, ("last", 0)) and not isinstance(inner, list):
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
            return found if isinstance(found, str) else document_text(found, call.dialect)
        if call.dialect.mariadb or not found.isascii():
            raise unsupported(call.sql)
        return (
            json.parse_text(found, first=False)
            if found[:1] == found[-1:] == '"' and len(found) > 1
            else found
        )

    return Operand(OperandKind.TEXT, value, call.sql, collation="utf8mb4_bin", strength=2)


def json_valid(call: Call) -> Operand:
    """JSON_VALID of text."""
    (one,) = call.arguments

    def is_document(text: str) -> int:
        try:
            json.parse_text(text, first=False)
        except (ValueError, RecursionError):
            return 0
        return 1

    return Operand(
        OperandKind.INTEGER,
        null_or([one], is_document if one.kind is OperandKind.TEXT else lambda value: 1),
        call.sql,
    )


_WRITTEN_INTEGER = re.compile(r"-?[0-9]+")
_BOOLEANS = {"TRUE": True, "FALSE": False}


def _member(operand: Operand, call: Call) -> Callable[[Scope], Any]:
    """A value of SQL as one in a document. Raises ReplicationError 1235 for integers that may be
    truth values, and for types that JSON does not have."""
    kind, inner = operand.kind, operand.value
    if kind is OperandKind.NULL:
        return lambda scope: None
    if operand.literal and operand.sql in _BOOLEANS:
        return lambda scope: _BOOLEANS[operand.sql]
    converts: dict[OperandKind, Callable[[Any], Any]] = {
        OperandKind.JSON: as_parsed,
        OperandKind.TEXT: str,
        OperandKind.DOUBLE: float,
        OperandKind.INTEGER: json.Unsigned if operand.unsigned else int,
    }
    convert = converts.get(kind)
    is_number = operand.column is not None or (
        operand.literal and _WRITTEN_INTEGER.fullmatch(operand.sql) is not None
    )
    if convert is None or (kind is OperandKind.INTEGER and not is_number):
        raise unsupported(call.sql)

    def value(scope: Scope) -> Any:
        found = inner(scope)
        return None if found is None else convert(found)

    return value


def _made(document: Any) -> Value:
    """A document that was put together, with its members in the server's order."""
    return as_document(json.decode(json.encode(document)))


def json_array(call: Call) -> Operand:
    """JSON_ARRAY."""
    members = [_member(argument, call) for argument in call.arguments]
    return Operand(
        OperandKind.JSON, lambda scope: _made([member(scope) for member in members]), call.sql
    )


def json_object(call: Call) -> Operand:
    """JSON_OBJECT of names and values. Raises ReplicationError 1235 for a name that is there twice,
    of which 5.7 takes the first value."""
    names, values = call.arguments[::2], call.arguments[1::2]
    if len(names) != len(values) or any(name.kind is not OperandKind.TEXT for name in names):
        raise unsupported(call.sql)
    members = [_member(value, call) for value in values]

    def value(scope: Scope) -> Value:
        found = [name.value(scope) for name in names]
        if None in found or len(set(found)) < len(found):
            raise unsupported(call.sql)
        return _made(dict(zip(found, (member(scope) for member in members), strict=True)))

    return Operand(OperandKind.JSON, value, call.sql)


def _with_each_path(
    call: Call, change: Callable[[list[Any], list[json.Leg], Any], None]
) -> Operand:
    """The document behind a change for each path and value; `change` gets a list that has the
    document alone."""
    read = document_of(call.arguments[0], call.sql, call.dialect)
    pairs = paths_and_values(call, _legs_of, _member)

    def value(scope: Scope) -> Value:
        found = read(scope)
        if found is None:
            return None
        root = [as_parsed(_made(as_parsed(found)))]
        for legs, member in pairs:
            change(root, legs, member(scope))
        return _made(root[0])

    return Operand(OperandKind.JSON, value, call.sql)


def _changing(*, adds: bool, replaces: bool) -> Callable[[Call], Operand]:
    """JSON_SET, JSON_INSERT and JSON_REPLACE, with paths that stand in the statement."""

    def build(call: Call) -> Operand:
        def change(root: list[Any], legs: list[json.Leg], value: Any) -> None:
            _change(root, legs, value, call, adds=adds, replaces=replaces)

        return _with_each_path(call, change)

    return build


def json_remove(call: Call) -> Operand:
    """JSON_REMOVE, with paths that stand in the statement."""
    read = document_of(call.arguments[0], call.sql, call.dialect)
    paths = [_legs_of(path, call) for path in call.arguments[1:]]
    if not all(paths):
        raise unsupported(call.sql)

    def value(scope: Scope) -> Value:
        found = read(scope)
        if found is None:
            return None
        root = [as_parsed(_made(as_parsed(found)))]
        for legs in paths:
            parent = _parent(root, legs, call)
            if parent is not None and json.child(parent[0], legs[-1]) is not None:
                del parent[0][json.cell_of(parent[0], legs[-1])]
        return _made(root[0])

    return Operand(OperandKind.JSON, value, call.sql)


def json_array_append(call: Call) -> Operand:
    """JSON_ARRAY_APPEND, with paths that stand in the statement: what is no array becomes one."""

    def append(root: list[Any], legs: list[json.Leg], value: Any) -> None:
        parent = (root,) if not legs else _parent(root, legs, call)
        last = legs[-1] if legs else 0
        inner: Any = None if parent is None else json.child(parent[0], last)
        if inner is not None:
            before = inner[0] if isinstance(inner[0], list) else [inner[0]]
            _change(root, legs, [*before, value], call, adds=False, replaces=True)

    return _with_each_path(call, append)


def json_merge_patch(call: Call) -> Operand:
    """JSON_MERGE_PATCH (RFC 7396). What is merged into NULL is NULL, until a document that is no
    object takes the place of all before it."""
    reads = [document_of(one, call.sql, call.dialect) for one in call.arguments]

    def value(scope: Scope) -> Value:
        documents = [read(scope) for read in reads]
        found = documents[0]
        for patch in documents[1:]:
            if patch is None or not isinstance(as_parsed(patch), dict):
                found = patch
            elif found is not None:
                found = _patched(as_parsed(found), patch)
        return None if found is None else _made(as_parsed(found))

    return Operand(OperandKind.JSON, value, call.sql)


def _patched(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for name, member in patch.items():
        if member is None:
            found.pop(name, None)
        else:
            found[name] = _patched(found.get(name), member)
    return found


def json_merge_preserve(call: Call) -> Operand:
    """JSON_MERGE_PRESERVE: both values of a name, one behind the other in an array."""
    reads = [document_of(one, call.sql, call.dialect) for one in call.arguments]

    def value(scope: Scope) -> Value:
        documents = [read(scope) for read in reads]
        if None in documents:
            return None
        return _made(reduce(_both_of, map(as_parsed, documents)))

    return Operand(OperandKind.JSON, value, call.sql)


def _both_of(one: Any, two: Any) -> Any:
    if not (isinstance(one, dict) and isinstance(two, dict)):
        lists = [each if isinstance(each, list) else [each] for each in (one, two)]
        return lists[0] + lists[1]
    shared = {name: _both_of(one[name], two[name]) for name in one.keys() & two.keys()}
    return {**one, **two, **shared}


def json_length(call: Call) -> Operand:
    """JSON_LENGTH of a whole document."""
    read = document_of(call.arguments[0], call.sql, call.dialect)

    def value(scope: Scope) -> Value:
        found = read(scope)
        return None if found is None else len(found) if isinstance(found, dict | list) else 1

    return Operand(OperandKind.INTEGER, value, call.sql)


def _legs_of(path: Operand, call: Call) -> list[json.Leg]:
    """As `written_legs`; 5.7 does not know "last"."""
    legs = written_legs(path, call)
    if call.dialect.old and any(isinstance(leg, tuple) for leg in legs):
        raise unsupported(call.sql)
    return legs


def _parent(root: list[Any], legs: list[json.Leg], call: Call) -> tuple[Any] | None:
    """What the last step is taken in, None where there is none. Raises ReplicationError 1235 for a
    cell of something that is no array, which is an array of it alone."""
    inner: Any = root
    steps: list[json.Leg] = [0, *legs]
    for leg, step in zip(steps, legs, strict=False):
        found = json.child(inner, leg)
        if found is None:
            return None
        (inner,) = found
        if not isinstance(step, str) and not isinstance(inner, list):
            raise unsupported(call.sql)
    return (inner,)


def _change(
    root: list[Any], legs: list[json.Leg], value: Any, call: Call, *, adds: bool, replaces: bool
) -> None:
    parent = (root,) if not legs else _parent(root, legs, call)
    if parent is None:
        return
    inner: Any = parent[0]
    last = json.cell_of(inner, legs[-1]) if legs else 0
    if json.child(inner, last) is not None:
        if replaces:
            inner[last] = value
    elif adds and isinstance(inner, dict) and isinstance(last, str):
        inner[last] = value
    elif adds and isinstance(inner, list) and isinstance(last, int):
        if last < 0:  # before the first
            raise unsupported(call.sql)
        inner.append(value)


def _of(
    build: Callable[[Call], Operand], of_mariadb: Callable[[Call], Operand]
) -> Callable[[Call], Operand]:
    """A function that MariaDB has for its texts."""
    return lambda call: (of_mariadb if call.dialect.mariadb else build)(call)


def _only_of_mariadb(call: Call) -> Operand:
    raise unsupported(f"function {call.name}")


_JSONS = Domain(frozenset({OperandKind.JSON, OperandKind.TEXT}), lambda operand, dialect: operand)
JSON_FUNCTIONS: dict[str, Function] = {
    "JSON_EXTRACT": Function((_JSONS,), _of(json_extract, mariadb_json.extract), 2, 2),
    "JSON_UNQUOTE": Function((_JSONS,), _of(json_unquote, mariadb_json.unquote), 1, 1),
    "JSON_ARRAY": Function((ANY,), _of(json_array, mariadb_json.array), 0),
    "JSON_OBJECT": Function((ANY,), _of(json_object, mariadb_json.made_object), 0),
    **{
        name: Function(
            (_JSONS, ANY),
            _of(
                _changing(adds=adds, replaces=replaces),
                mariadb_json.changing(adds=adds, replaces=replaces),
            ),
            3,
        )
        for name, adds, replaces in (
            ("JSON_SET", True, True),
            ("JSON_INSERT", True, False),
            ("JSON_REPLACE", False, True),
        )
    },
    "JSON_REMOVE": Function((_JSONS, ANY), _of(json_remove, mariadb_json.remove), 2),
    "JSON_ARRAY_APPEND": Function(
        (_JSONS, ANY), _of(json_array_append, mariadb_json.array_append), 3
    ),
    "JSON_MERGE_PATCH": Function((_JSONS,), _of(json_merge_patch, mariadb_json.merge_patch), 2),
    "JSON_MERGE_PRESERVE": Function((_JSONS,), json_merge_preserve, 2),
    "JSON_MERGE": Function((_JSONS,), json_merge_preserve, 2),  # its older name
    "JSON_LENGTH": Function((_JSONS,), _of(json_length, mariadb_json.length), 1, 1),
    "JSON_VALID": Function((_JSONS,), json_valid, 1, 1),
    "JSON_COMPACT": Function((_JSONS,), _of(_only_of_mariadb, mariadb_json.formatted), 1, 1),
    "JSON_LOOSE": Function((_JSONS,), _of(_only_of_mariadb, mariadb_json.formatted), 1, 1),
}
