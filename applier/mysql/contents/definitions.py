"""Is a server's table defined as a replay left it? Columns, their order, and keys of two
definitions, in one form for both sides.

The server's definition is its SHOW CREATE TABLE, read by the parser that reads the log's. Forms
leave out what a server shows in its own spelling, or fills in: display widths, names of character
sets, prefixes as long as their column, the order of keys. Not compared, since each server writes
them anew: the text of expressions, comments, options, foreign keys, checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from applier.binlog.charsets import charset
from applier.binlog.types import Unevaluated
from applier.binlog.types.names import DISPLAY_WIDTHS, column_type
from applier.errors import BinlagError
from applier.tables.collations.collation import full_name
from applier.tables.expressions.defaults import column_default
from applier.tables.sql.quoting import quoted
from lookup.table import BLOB_TYPES, Column, Key, KeyPart, TableDefinition

SERVER, REPLAY = "on the server", "after the replay"
LIKE_BTREE = frozenset({"btree", "hash"})
"""SHOW CREATE TABLE names the algorithm only where a statement did, and engines choose another
one."""
WITH_DESCENDING_KEYS = frozenset({"8.0", "8.4", "9.7"})
"""Others read DESC over, but for MariaDB from 10.8 on: it is not compared there."""
KEY_BYTES = frozenset({767, 1000, 1024, 2000, 2300, 3072})
"""What engines hold of a key part: outside of strict mode, and in keys that are not unique, they
cut what is longer to it."""
_LITERAL = re.compile(r"(?is)[-+]?[\d.][\d.e+-]*|(_\w+\s*)?'.*'|[xb]'.*'|0[xb]\w+|true|false|null")
_QUOTED_NUMBER = re.compile(r"'([-\d.]+)'")
"""As MySQL shows a number's default, and MariaDB does not."""
_NOW = re.compile(r"(?i)(current_timestamp|now|localtime|localtimestamp)\s*(\(\s*\d*\s*\))?")


@dataclass(frozen=True, slots=True)
class Form:
    """What a clause says: `value` compares, `text` is for people."""

    value: Any
    text: str


def differences(expected: TableDefinition, found: TableDefinition, rules_name: str) -> list[str]:
    """What differs, each in words: a column or key, what it is on the server, and what after the
    replay."""
    return [*_columns(expected, found), *_keys(expected, found, rules_name)]


# columns


def _columns(expected: TableDefinition, found: TableDefinition) -> list[str]:
    ours = {column.name.lower(): column for column in expected.columns}
    theirs = {column.name.lower(): column for column in found.columns}
    told = [
        _one_sided("column", ours[name].name, _type(ours[name]).text, REPLAY)
        for name in ours
        if name not in theirs
    ]
    told += [
        _one_sided("column", theirs[name].name, _type(theirs[name]).text, SERVER)
        for name in theirs
        if name not in ours
    ]
    for name, column in ours.items():
        if name in theirs:
            told += _column(column, theirs[name])
    order, other = (
        [name for name in side if name in ours and name in theirs] for side in (ours, theirs)
    )
    if order != other:
        told.append(
            f"the columns stand as {', '.join(other)} {SERVER}, as {', '.join(order)} {REPLAY}"
        )
    return told


def _one_sided(what: str, name: str, text: str, side: str) -> str:
    return f"{what} {quoted(name)}: {text} {side} only"


def _column(ours: Column, theirs: Column) -> list[str]:
    pairs = [(clause(theirs), clause(ours)) for clause in CLAUSES]
    differing = [
        (found.text, wanted.text) for found, wanted in pairs if found.value != wanted.value
    ]
    defaults = _default(theirs), _default(ours)
    if not differing and defaults[0] and defaults[1] and defaults[0].value != defaults[1].value:
        differing.append((defaults[0].text, defaults[1].text))
    if not differing:
        return []
    found, wanted = (", ".join(texts) for texts in zip(*differing, strict=True))
    return [f"column {quoted(ours.name)}: {found} {SERVER}, {wanted} {REPLAY}"]


def _type(column: Column) -> Form:
    """With a width where it shows in values: of ZEROFILL, and of YEAR(2)."""
    if column.type in DISPLAY_WIDTHS and not column.zerofill:
        column = replace(column, length=None)
    text = column_type(column, display_widths=column.type == "year" and column.length == 2)
    return Form(text, text)


def _null(column: Column) -> Form:
    text = "NULL" if column.nullable else "NOT NULL"
    return Form(text, text)


def _collation(column: Column) -> Form:
    if column.charset is None and column.collation is None:
        return Form(None, "no collation")
    own = charset(column.charset)
    text = full_name((column.collation or own.default_collation).lower(), own.name)
    return Form(text, text)


def _flag(words: str, without: str, is_set: Callable[[Column], bool]) -> Callable[[Column], Form]:
    return lambda column: Form(is_set(column), words if is_set(column) else without)


CLAUSES: tuple[Callable[[Column], Form], ...] = (
    _type,
    _null,
    _collation,
    lambda column: Form(
        column.generated, f"generated ({column.generated})" if column.generated else "not generated"
    ),
    _flag("AUTO_INCREMENT", "no AUTO_INCREMENT", lambda column: column.auto_increment),
    _flag(
        "ON UPDATE CURRENT_TIMESTAMP", "no ON UPDATE", lambda column: column.on_update is not None
    ),
    _flag("invisible", "visible", lambda column: column.invisible),
)


def _default(column: Column) -> Form | None:
    """The value that a row gets which names none; None for an expression, whose text is the
    server's own."""
    text = "NULL" if column.default is None else column.default.strip()
    if column.generated or column.auto_increment or column.system_time or column.type in BLOB_TYPES:
        return None
    said = "no DEFAULT" if column.default is None else "DEFAULT " + _QUOTED_NUMBER.sub(r"\1", text)
    if _NOW.fullmatch(text):
        return Form(_NOW, said)
    if not _LITERAL.fullmatch(text):
        return None
    try:
        value = column_default(column)
    except BinlagError:
        return None
    # a literal that is not computed here says nothing
    return None if isinstance(value, Unevaluated) else Form(value, said)


# keys


def _keys(expected: TableDefinition, found: TableDefinition, rules_name: str) -> list[str]:
    """By their names; a key that only bears another name is told as that."""
    ours = {key.name.lower(): (key, _key(key, expected, rules_name)) for key in expected.keys}
    theirs = {key.name.lower(): (key, _key(key, found, rules_name)) for key in found.keys}
    told = [
        f"key {quoted(key.name)}: {theirs[name][1].text} {SERVER}, {form.text} {REPLAY}"
        for name, (key, form) in ours.items()
        if name in theirs and _are_other(form, theirs[name][1])
    ]
    ours_only = [side for name, side in ours.items() if name not in theirs]
    for key, form in (side for name, side in theirs.items() if name not in ours):
        twin = next((side for side in ours_only if not _are_other(side[1], form)), None)
        if twin is None:
            told.append(_one_sided("key", key.name, form.text, SERVER))
        else:
            ours_only.remove(twin)
            told.append(
                f"key on {form.text}: named {quoted(key.name)} {SERVER}, {quoted(twin[0].name)}"
                f" {REPLAY}"
            )
    return told + [_one_sided("key", key.name, form.text, REPLAY) for key, form in ours_only]


def _key(key: Key, definition: TableDefinition, rules_name: str) -> Form:
    parts = [
        _part(part, definition, with_order=rules_name in WITH_DESCENDING_KEYS) for part in key.parts
    ]
    if key.kind not in LIKE_BTREE:  # such keys have no prefixes
        parts = [
            Form((part.value[0], None, 0, False), part.text.partition("(")[0]) for part in parts
        ]
    words = ["UNIQUE"] if key.unique and not key.is_primary else []
    words += [key.kind.upper()] if key.kind not in LIKE_BTREE else []
    words += [] if key.visible else ["invisible"]
    text = " ".join([*words, f"({', '.join(part.text for part in parts)})"])
    return Form((tuple(words), tuple(part.value for part in parts)), text)


def _part(part: KeyPart, definition: TableDefinition, *, with_order: bool) -> Form:
    """(column, prefix, its most bytes, descending)."""
    if part.column is None:
        return Form((None, None, 0, False), "an expression")
    column = definition.columns[part.column]
    prefix = part.prefix
    width = charset(column.charset).max_bytes if column.charset is not None else 1
    descending = part.descending and with_order
    text = (
        column.name
        + (f"({prefix})" if prefix is not None else "")
        + (" DESC" if descending else "")
    )
    return Form((column.name.lower(), prefix, width, descending), text)


def _are_other(ours: Form, theirs: Form) -> bool:
    (words, parts), (other_words, others) = ours.value, theirs.value
    if words != other_words or len(parts) != len(others):
        return True
    return any(not _is_same_part(one, other) for one, other in zip(parts, others, strict=True))


def _is_same_part(ours: tuple[Any, ...], found: tuple[Any, ...]) -> bool:
    """A part that the engine cut to its limit is the same."""
    if (ours[0], ours[3]) != (found[0], found[3]):
        return False
    if ours[1] == found[1]:
        return True
    cut = found[1] is not None and found[1] in {limit // found[2] for limit in KEY_BYTES}
    return cut and (ours[1] is None or ours[1] > found[1])
