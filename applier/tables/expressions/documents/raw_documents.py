"""JSON as MariaDB keeps it: text, whose numbers, escapes and order of names stay as they are
written (`json_nice`, sql/item_jsonfunc.cc of MariaDB 10.11)."""

from __future__ import annotations

import json
import re
from typing import Any

from applier.binlog.types.json import Leg, cell_of

LOOSE, COMPACT = (", ", ": "), (",", ":")
"""What stands between values, and behind names."""
MOST_DEPTH = 30
"""MariaDB reads 32 levels (JSON_DEPTH_LIMIT)."""
_TOKEN = re.compile(
    r'[ \t\r\n]*(?:([{}\[\],:])|("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")'
    r"|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-]))"
)
Raw = Any
"""A text for a value that holds no others, a list, or a dict by names as they are written."""


class UnreadableDocument(Exception):
    """A text that is no JSON, or one whose names are written twice or with escapes."""


def read_raw(text: str) -> Raw:
    """The document of a text. Raises UnreadableDocument."""
    tokens = []
    at = 0
    text = text.rstrip(" \t\r\n")
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise UnreadableDocument
        tokens.append(found.group(found.lastindex or 0))
        at = found.end()
    reader = _Tokens(tokens)
    document = reader.value(0)
    if reader.at < len(tokens):
        raise UnreadableDocument
    return document


class _Tokens:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at = tokens, 0

    def next(self) -> str:
        if self.at >= len(self.tokens):
            raise UnreadableDocument
        self.at += 1
        return self.tokens[self.at - 1]

    def value(self, depth: int) -> Raw:
        token = self.next()
        if depth > MOST_DEPTH or token in "}],:":
            raise UnreadableDocument
        if token == "[":
            return self._members(depth, "]", lambda found: found.append(self.value(depth + 1)), [])
        if token == "{":
            return self._members(depth, "}", lambda found: self._named(found, depth), {})
        return token

    def _members(self, depth: int, end: str, read: Any, found: Any) -> Any:
        if self.at < len(self.tokens) and self.tokens[self.at] == end:
            self.at += 1
            return found
        while True:
            read(found)
            token = self.next()
            if token == end:
                return found
            if token != ",":
                raise UnreadableDocument

    def _named(self, found: dict[str, Raw], depth: int) -> None:
        name = self.next()
        if name[0] != '"' or "\\" in name or name[1:-1] in found or self.next() != ":":
            raise UnreadableDocument
        found[name[1:-1]] = self.value(depth + 1)


def written(document: Raw, style: tuple[str, str] = LOOSE) -> str:
    """The text of a document."""
    between, behind = style
    if isinstance(document, list):
        return f"[{between.join(written(one, style) for one in document)}]"
    if isinstance(document, dict):
        members = (f'"{name}"{behind}{written(one, style)}' for name, one in document.items())
        return f"{{{between.join(members)}}}"
    return str(document)


def quoted(text: str) -> str:
    """A text as a document. Raises UnreadableDocument for control characters."""
    if not text.isprintable():
        raise UnreadableDocument
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def unquoted(document: Raw) -> str:
    """A document as text, without quotes and escapes where it is one."""
    if isinstance(document, str) and document[0] == '"':
        return str(json.loads(document))
    return written(document)


def step(document: Raw, leg: Leg) -> Raw | None:
    """What is at a step; a value that is no array is the first element of itself."""
    if isinstance(leg, str):
        return document.get(leg) if isinstance(document, dict) else None
    if not isinstance(document, list):
        if isinstance(leg, tuple):  # another rule for each function
            raise UnreadableDocument
        return document if leg == 0 else None
    at = cell_of(document, leg)
    return document[at] if isinstance(at, int) and 0 <= at < len(document) else None


def found_at(document: Raw, legs: list[Leg]) -> Raw | None:
    """What a path leads to."""
    for leg in legs:
        if document is not None:
            document = step(document, leg)
    return document


def changed(document: Raw, legs: list[Leg], value: Raw, *, adds: bool, replaces: bool) -> Raw:
    """The document with a value at a path: in place of another, or behind the others."""
    if not legs:
        return value if replaces else document
    leg, rest = legs[0], legs[1:]
    inner = step(document, leg)
    if inner is not None:
        new = changed(inner, rest, value, adds=adds, replaces=replaces)
        if isinstance(document, dict) and isinstance(leg, str):
            return {**document, leg: new}
        if isinstance(document, list):
            at = int(cell_of(document, leg))
            return [*document[:at], new, *document[at + 1 :]]
        return new
    if isinstance(leg, tuple):
        raise UnreadableDocument
    if rest or not adds:
        return document
    if isinstance(leg, str):
        return {**document, leg: value} if isinstance(document, dict) else document
    return [*document, value] if isinstance(document, list) else [document, value]


def without(document: Raw, legs: list[Leg]) -> Raw:
    """The document without what a path leads to."""
    leg, rest = legs[0], legs[1:]
    inner = step(document, leg)
    if inner is None:
        return document
    if rest:
        return changed(document, [leg], without(inner, rest), adds=False, replaces=True)
    if isinstance(document, dict):
        return {name: one for name, one in document.items() if name != leg}
    if isinstance(document, list):
        left_out = cell_of(document, leg)
        return [one for at, one in enumerate(document) if at != left_out]
    return document


def patched(target: Raw, patch: Raw) -> Raw:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for name, member in patch.items():
        if member == "null":
            found.pop(name, None)
        else:
            found[name] = patched(found.get(name), member)
    return found
